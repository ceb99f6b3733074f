/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_KMSG_H
#define HF_HEALTH_KMSG_H

#include "health/evidence.h"

HF_BEGIN_DECLS

/*
 * Records of the kernel's log, as read from /dev/kmsg one at a time:
 *
 *     6,1234,5678901,-;text, with \x0a for what cannot be printed
 *      KEY=value            (lines of context, ignored)
 *
 * A process cannot write a record of facility 0 (the kernel enforces it), so every other
 * facility is a process's text that looks like the kernel's.
 */

/* The kernel's own buffer for one record on this device (CONSOLE_EXT_LOG_MAX). */
#define HF_HEALTH_RECORD_MAX 8192

enum hf_health_kmsg {
	HF_HEALTH_KMSG_KERNEL,
	HF_HEALTH_KMSG_FORGED, /* of another facility */
	HF_HEALTH_KMSG_BROKEN, /* no record at all */
};

struct hf_health_record {
	unsigned priority; /* 0 emergency … 7 debug */
	unsigned facility;
	uint64_t seq;
	uint64_t usec;     /* since boot */
	bool continuation; /* a fragment of a line that another record began */
	bool indented;     /* a second or later line of the record before, as dmesg prints it */
	char text[HF_HEALTH_RECORD_MAX];
	size_t text_len;
};

/* ret_record is filled for FORGED too, so that it can be counted and shown; the text is cut to
 * what fits, escapes undone (so it may hold any byte). */
enum hf_health_kmsg hf_health_kmsg_parse(const char *bytes, size_t len,
					 struct hf_health_record *ret_record);

/* A line of a plain file, as dmesg prints it with any of its options: "<6>[   12.345] text", "[ 12.3] [ T77] text",
 * "kern  :info  : [ 12.3] text", "[Fri Nov 27 22:23:44 2026] text", "2026-11-27T22:23:44,345678+00:00 text", "text".
 * If a record has several lines, dmesg indents all but the first: an indented line belongs to the record before and is no
 * record.  A date and a host of syslog are not taken off, because any process may log there.  For inputs that an administrator
 * named; seq and usec are 0 if the line has none. */
void hf_health_kmsg_bare(const char *bytes, size_t len, struct hf_health_record *ret_record);

/* A record that later records belong to. */
struct hf_health_line_mark {
	bool set;
	unsigned lines; /* records since */
	char device[HF_HEALTH_DEVICE_MAX];
};

/* The processor or the task that is stuck. */
struct hf_health_stuck {
	bool has_cpu, has_pid;
	bool worker; /* of the kernel's work queues */
	uint64_t cpu, pid;
};

/* Notices of so many devices may come mixed. */
#define HF_HEALTH_NOTICES_MAX 8

/*
 * What a record says of a device.  A notice of three lines may come as three records (the
 * printk is one, but consoles and journals break it): the reader remembers which device the
 * first of them named.  Notices of several devices may come mixed: the last line of the first notice comes first.  It remembers more kinds of records, each for a limited number of records.
 */
struct hf_health_line_reader {
	struct hf_health_line_mark notices[HF_HEALTH_NOTICES_MAX]; /* the oldest first */
	struct hf_health_line_mark
		stuck; /* a task or a processor; a later record names the driver */
	struct hf_health_stuck stuck_is;
	struct hf_health_line_mark
		rated; /* an adapter's error with a severity; lines with details have no severity */
	struct hf_health_line_mark
		report; /* of PCIe; the kernel prints later how its recovery ended */
	enum hf_health_severity reported; /* of that report */
	struct hf_health_line_mark
		firmware; /* an error that the firmware reports; the device follows */
	enum hf_health_severity firmware_said; /* of that error */
	bool firmware_pcie;                    /* it is an error of PCIe */
	struct hf_health_line_mark
		status;       /* registers of a device; which errors are fatal follows */
	uint32_t status_bits; /* the unmasked errors in them */
};

/* True with ret_evidence filled (`at` is left HF_TIME_NONE); false when the line is about
 * something else, is broken or names no device.  Two forms name none and concern the node (device ""): a reset
 * that some GPU needs, and a network adapter's driver that is stuck. */
bool hf_health_line_parse(struct hf_health_line_reader *reader,
			  const struct hf_health_record *record,
			  struct hf_health_evidence *ret_evidence) HF_MUST_CHECK;

HF_END_DECLS

#endif
