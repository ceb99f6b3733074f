/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_JOURNAL_H
#define HF_AGENT_JOURNAL_H

#include "base/strbuf.h"
#include "health/memory.h"
#include "probes/kmsg.h"

HF_BEGIN_DECLS

/*
 * What an agent must still know after a crash, an upgrade or a loss of power: the brain's memory, and how far the
 * kernel's log was read.  The journal is one file that is replaced as a whole.  Enumerations stand in it as words, so
 * that another version of the program can read it; a checksum covers the whole file.
 */

#define HF_JOURNAL_FILE "journal"
/* Limit of the file: 64 devices with all faults and all samples of the judges take 1.2 MiB. */
#define HF_JOURNAL_BYTES_MAX ((size_t)4 << 20)

/* Limit of the encoded journal: the body, and the line with its checksum before it. */
#define HF_JOURNAL_ENCODED_MAX (HF_JOURNAL_BYTES_MAX + 64)

struct hf_journal {
	struct hf_health_memory memory;
	hf_time boot_at; /* the steps' clock at the start of the journal's boot */
	struct hf_kmsg_place place;
	uint64_t lost; /* records of the kernel's log that were lost in the journal's boot */
	/* memory.doubted holds because DeviceHealth was not read (previous_health.h) */
	bool unasked;
};

/* Writes the head with the checksum of the body, and the body: the last part of encoding. */
void hf_journal_seal(const char *body, size_t len, struct hf_strbuf *sb);
void hf_journal_encode(const struct hf_journal *journal, struct hf_strbuf *sb);
/* Decodes a journal; devices come from the arena.  HF_E_INVALID: the bytes were cut or changed, or are no journal;
 * err has the reason. */
int hf_journal_decode(const char *bytes, size_t len, struct hf_arena *arena,
		      struct hf_journal *ret_journal, struct hf_error *err) HF_MUST_CHECK;

/* Encodes the journal and writes it; creates the folder.  After a failure the former journal stands. */
int hf_journal_save(const char *dir, const struct hf_journal *journal, struct hf_error *err)
	HF_MUST_CHECK;
/* Writes a journal that is encoded already; may be called from any thread. */
int hf_journal_write(const char *dir, const struct hf_strbuf *encoded, struct hf_error *err)
	HF_MUST_CHECK;
/* HF_E_NOT_FOUND: the folder has no journal. */
int hf_journal_load(const char *dir, struct hf_arena *arena, struct hf_journal *ret_journal,
		    struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
