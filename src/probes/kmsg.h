/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_KMSG_H
#define HF_PROBES_KMSG_H

#include "probes/probe.h"

HF_BEGIN_DECLS

/*
 * The probe of the kernel's log: it turns lines into evidence.  The source is /dev/kmsg, or in its place
 *
 *   a FIFO or a unix stream socket   lines as they come
 *   a plain file                     lines as they are appended; the probe follows truncation and rotation,
 *                                    also a rotation while no agent ran, if the old file is in the folder
 *
 * A line is a record as /dev/kmsg has it, or bare ("[12.3] text", "text").
 *
 * A record is read once: the journal keeps the sequence number of the device, or the inode and offset of a
 * plain file.  Without such a place a plain file is read from its end, as its lines may be years old.
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
	const char *path;     /* copied */
	const char *sys_root; /* sysfs, to find the driver of a device; copied; NULL: not checked */
	bool trust_user;      /* take what processes wrote, too */
	struct hf_kmsg_place place; /* zeros: nothing is remembered */
};

struct hf_probe *hf_kmsg_probe_create(struct hf_intake *intake,
				      const struct hf_kmsg_options *options);
/* Reports all detectors of the kernel's log as off. */
void hf_kmsg_off(struct hf_intake *intake, const char *why);
const struct hf_kmsg_stats *hf_kmsg_probe_stats(const struct hf_probe *probe);
void hf_kmsg_probe_place(const struct hf_probe *probe, struct hf_kmsg_place *ret_place);
/* Everything that was there to be read has been: the evidence reaches to now. */
bool hf_kmsg_probe_is_caught_up(const struct hf_probe *probe);

HF_END_DECLS

#endif
