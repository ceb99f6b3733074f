/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_KMSG_H
#define HF_PROBES_KMSG_H

#include "probes/probe.h"

HF_BEGIN_DECLS

/*
 * The probe of the kernel's log: it turns lines of the log into evidence. Instead of /dev/kmsg, the
 * source may be
 *
 *   a FIFO or a unix stream socket   the probe reads lines as they come
 *   a plain file                     the probe reads lines as they are appended and follows
 *                                    truncation and rotation; if the file was rotated while no
 *                                    agent ran, the probe reads the old file from the same folder
 *
 * A line has the form of a record of /dev/kmsg, or is bare ("[12.3] text", "text").
 *
 * The probe reads each record once: the journal stores the sequence number of the last record of
 * /dev/kmsg, or the inode and offset of a plain file. Without a stored place, a plain file is read
 * from its end, because its lines may be years old.
 */

/* The place where reading stopped, which the journal stores. It is valid in the same boot only. */
struct hf_kmsg_place {
	bool has_seq;
	/* number of the last record that was read */
	uint64_t seq;
	/* file and offset where reading stopped; inode 0: the source is not a plain file */
	uint64_t file_device, file_inode, file_offset;
};

struct hf_kmsg_stats {
	uint64_t records; /* records that were read, of all kinds */
	/* records that the kernel overwrote, or whose file was gone, before they were read */
	uint64_t lost;
	uint64_t forged; /* records that a process wrote, not the kernel */
	uint64_t broken; /* lines that are no record in the form of /dev/kmsg */
	uint64_t cut;    /* lines longer than any record */
	/* lines of NVIDIA's driver about a device that another driver has by now */
	uint64_t foreign;
	uint64_t evidence;
};

struct hf_kmsg_options {
	const char *path; /* copied */
	/* root of sysfs, where the driver of a device is looked up; copied; NULL: not looked up */
	const char *sys_root;
	/* also take lines that processes, not the kernel, wrote into the log */
	bool trust_user;
	struct hf_kmsg_place place; /* zeros: nothing is remembered */
};

struct hf_probe *hf_kmsg_probe_create(struct hf_intake *intake,
				      const struct hf_kmsg_options *options);
/* Reports all detectors of the kernel's log as off. */
void hf_kmsg_off(struct hf_intake *intake, const char *why);
const struct hf_kmsg_stats *hf_kmsg_probe_stats(const struct hf_probe *probe);
void hf_kmsg_probe_place(const struct hf_probe *probe, struct hf_kmsg_place *ret_place);
/* All records that exist have been read: the evidence reaches to the present. */
bool hf_kmsg_probe_is_caught_up(const struct hf_probe *probe);

HF_END_DECLS

#endif
