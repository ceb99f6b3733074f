/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_KMSG_H
#define HF_PROBES_KMSG_H

#include "probes/probe.h"

HF_BEGIN_DECLS

/*
 * The kernel's log as a source of evidence: /dev/kmsg, or in its place
 *
 *   a FIFO or a unix stream socket   lines as they come
 *   a plain file                     lines as they are appended; truncation and a new file under
 *                                    the name (rotation) are followed, rotation also where it was
 *                                    while nobody read, if the old file is in the same folder
 *
 * of which each line is a record as /dev/kmsg has it or a bare one ("[12.3] text", "text").
 *
 * What was read before is not read again: of the device by sequence number, of a plain file by its
 * inode and offset.  A plain file of which nothing is remembered is read from its end: its lines
 * may be years old.
 */

/* Where reading stopped, for a journal; of this boot only. */
struct hf_kmsg_place {
	bool has_seq;
	uint64_t seq;                                  /* the last record that was read */
	uint64_t file_device, file_inode, file_offset; /* inode 0: no plain file */
};

struct hf_kmsg_stats {
	uint64_t records; /* read, of all kinds */
	uint64_t lost;    /* overwritten, or gone with their file, before they could be read */
	uint64_t forged;  /* of another facility than the kernel's */
	uint64_t broken;  /* no record of the device's form */
	uint64_t cut;     /* lines longer than any record */
	uint64_t foreign; /* of NVIDIA's driver, about a device that another driver has by now */
	uint64_t evidence;
};

struct hf_kmsg_options {
	const char *path;           /* copied */
	const char *sys_root;       /* copied; NULL: nobody is asked which driver has a device */
	bool trust_user;            /* take what processes wrote, too */
	struct hf_kmsg_place place; /* zeros: nothing is remembered */
};

struct hf_probe *hf_kmsg_probe_create(struct hf_intake *intake,
				      const struct hf_kmsg_options *options);
/* Where there is none: tells so of all detectors that live on the log. */
void hf_kmsg_off(struct hf_intake *intake, const char *why);
const struct hf_kmsg_stats *hf_kmsg_probe_stats(const struct hf_probe *probe);
void hf_kmsg_probe_place(const struct hf_probe *probe, struct hf_kmsg_place *ret_place);
/* Everything that was there to be read has been: the evidence reaches to now. */
bool hf_kmsg_probe_is_caught_up(const struct hf_probe *probe);

HF_END_DECLS

#endif
