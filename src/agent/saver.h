/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_SAVER_H
#define HF_AGENT_SAVER_H

#include "agent/journal.h"

HF_BEGIN_DECLS

/*
 * Writes journals on a thread. Two fsyncs take milliseconds on a good disk, seconds on a busy one,
 * and never end on one that hangs. The plan waits for the write up to a deadline.
 */
struct hf_saver;

/* A slower disk is reported as failing, and the step goes on. */
#define HF_SAVER_DEADLINE (5 * HF_SECOND)

struct hf_saver_options {
	struct hf_loop *loop;
	const char *dir; /* copied */
	/* The result of the write; HF_E_TIMEOUT: none yet, and a late result follows in another
	 * call. */
	void (*saved)(void *arg, int code, const char *message);
	void *arg;
};

struct hf_saver *hf_saver_create(const struct hf_saver_options *options);
struct hf_saver *hf_saver_destroy(struct hf_saver *saver); /* NULL is fine; returns NULL */
/* Encodes the journal now and writes it on the thread. False: the former write still runs;
 * `saved` is not called. */
bool hf_saver_save(struct hf_saver *saver, const struct hf_journal *journal) HF_MUST_CHECK;
bool hf_saver_is_busy(const struct hf_saver *saver);
/* Waits for what is under way, for the deadline at most: for the end of a program. */
void hf_saver_settle(struct hf_saver *saver);
/* Duration of the last finished write; HF_TIME_NONE: no write yet. */
hf_time hf_saver_took(const struct hf_saver *saver);

HF_END_DECLS

#endif
