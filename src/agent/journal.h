/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_JOURNAL_H
#define HF_AGENT_JOURNAL_H

#include "base/strbuf.h"
#include "health/memory.h"
#include "probes/kmsg.h"

HF_BEGIN_DECLS

/*
 * What an agent must still know after a crash, an upgrade or a loss of power: the brain's memory
 * and where reading had stopped, in one file that is replaced as a whole.  Words stand in it as
 * words, so that another version of this program reads them; a checksum covers all of it.
 */

#define HF_JOURNAL_FILE "journal"
/* 64 devices with all faults and all state of the judges take 1.2 MiB. */
#define HF_JOURNAL_BYTES_MAX ((size_t)4 << 20)

/* With the line before it. */
#define HF_JOURNAL_ENCODED_MAX (HF_JOURNAL_BYTES_MAX + 64)

struct hf_journal {
	struct hf_health_memory memory;
	hf_time boot_at; /* the steps' clock at the start of that boot */
	struct hf_kmsg_place place;
	uint64_t lost; /* records of the kernel's log, in that boot */
	bool unasked;  /* memory.doubted because DeviceHealth was not read (previous_health.h) */
};

/* A body behind the line with its sum: how encode ends. */
void hf_journal_seal(const char *body, size_t len, struct hf_strbuf *sb);
void hf_journal_encode(const struct hf_journal *journal, struct hf_strbuf *sb);
/* HF_E_INVALID: cut, changed, or not a journal; err has the reason. Devices come from the arena. */
int hf_journal_decode(const char *bytes, size_t len, struct hf_arena *arena,
		      struct hf_journal *ret_journal, struct hf_error *err) HF_MUST_CHECK;

/* Creates the folder. After a failure the former journal stands. */
int hf_journal_save(const char *dir, const struct hf_journal *journal, struct hf_error *err)
	HF_MUST_CHECK;
/* The same of what was encoded; may be called from any thread. */
int hf_journal_write(const char *dir, const struct hf_strbuf *encoded, struct hf_error *err)
	HF_MUST_CHECK;
/* HF_E_NOT_FOUND: the folder has no journal. */
int hf_journal_load(const char *dir, struct hf_arena *arena, struct hf_journal *ret_journal,
		    struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
