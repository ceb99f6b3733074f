/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_SAVER_H
#define HF_AGENT_SAVER_H

#include "agent/journal.h"

HF_BEGIN_DECLS

/*
 * Writes journals on a thread of its own.  The two fsync calls of a write take milliseconds on a good disk, seconds
 * on a busy disk, and do not end on a disk that hangs.  A plan waits for the write, but only up to a deadline.
 */
struct hf_saver;

/* After this time the disk is reported as failing, and the agent goes on without the write. */
#define HF_SAVER_DEADLINE (5 * HF_SECOND)

struct hf_saver_options {
	struct hf_loop *loop;
	const char *dir; /* copied */
	/* The result of the write.  HF_E_TIMEOUT: there is none yet; a late result follows in another call. */
	void (*saved)(void *arg, int code, const char *message);
	void *arg;
};

struct hf_saver *hf_saver_create(const struct hf_saver_options *options);
struct hf_saver *hf_saver_destroy(struct hf_saver *saver); /* NULL is fine; returns NULL */
/* Encodes the journal now and writes it on the thread.  False: the former write still runs, and `saved` is not
 * called. */
bool hf_saver_save(struct hf_saver *saver, const struct hf_journal *journal) HF_MUST_CHECK;
bool hf_saver_is_busy(const struct hf_saver *saver);
/* Waits for a write that is under way, at most for the deadline; for the end of the program. */
void hf_saver_settle(struct hf_saver *saver);
/* Duration of the last finished write; HF_TIME_NONE: no write has finished yet. */
hf_time hf_saver_took(const struct hf_saver *saver);

HF_END_DECLS

#endif
