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
 * A process cannot write a record of facility 0, which the kernel enforces.  So a record of another facility is a
 * text of a process that looks like the kernel's.
 */

/* The size of the kernel's own buffer for one record on this device (CONSOLE_EXT_LOG_MAX). */
#define HF_HEALTH_RECORD_MAX 8192

enum hf_health_kmsg {
	HF_HEALTH_KMSG_KERNEL,
	HF_HEALTH_KMSG_FORGED, /* of another facility */
	HF_HEALTH_KMSG_BROKEN, /* no record at all */
};

struct hf_health_record {
	unsigned priority; /* the kernel's log level: 0 (emergency) to 7 (debug) */
	unsigned facility;
	uint64_t seq;
	uint64_t usec;     /* since boot */
	bool continuation; /* the record is a part of a line that another record began */
	bool indented;     /* the line is a further line of the record before, as dmesg prints it */
	char text[HF_HEALTH_RECORD_MAX];
	size_t text_len;
};

/* Parses a record.  ret_record is filled for FORGED too, so that the record can be counted and shown.  The text
 * has no escapes any more, so it may hold any byte; a text that does not fit is cut off. */
enum hf_health_kmsg hf_health_kmsg_parse(const char *bytes, size_t len,
					 struct hf_health_record *ret_record);

/*
 * Parses a line of a plain file, as dmesg prints it with any of its options:
 *
 *     "<6>[   12.345] text", "[ 12.3] [ T77] text", "kern  :info  : [ 12.3] text",
 *     "[Fri Nov 27 22:23:44 2026] text", "2026-11-27T22:23:44,345678+00:00 text", "text"
 *
 * If a record has several lines, dmesg indents all but the first: an indented line belongs to the record before and
 * is no record.  A date and a host of syslog are not skipped, because any process may log there.  Use it only for
 * files that an administrator names; seq and usec are 0 if the line has none.
 */
void hf_health_kmsg_bare(const char *bytes, size_t len, struct hf_health_record *ret_record);

/* A record to which later records belong: its device, and how many records came since. */
struct hf_health_line_mark {
	bool set;
	unsigned lines; /* records since */
	char device[HF_HEALTH_DEVICE_MAX];
};

/* The processor or the task that is stuck. */
struct hf_health_stuck {
	bool has_cpu, has_pid;
	bool worker; /* the stuck task is a worker of the kernel's work queues */
	uint64_t cpu, pid;
};

/* Most notices of three lines, of different devices, that may come mixed. */
#define HF_HEALTH_NOTICES_MAX 8

/*
 * Reads what records of the kernel's log say about devices, and remembers records to which later ones belong, each
 * for a limited number of records.
 *
 * A notice of three lines may come as three records: it is one printk(), but consoles and journals break it.  So the
 * reader remembers the device that the first line names.  Notices of several devices may come mixed; the last line of
 * the first notice comes first.
 */
struct hf_health_line_reader {
	struct hf_health_line_mark notices[HF_HEALTH_NOTICES_MAX]; /* the oldest first */
	struct hf_health_line_mark
		stuck; /* a task or a processor is stuck; a later record names the driver */
	struct hf_health_stuck stuck_is;
	struct hf_health_line_mark
		/* an adapter's error with a severity; lines with its details have no severity */
		rated;
	struct hf_health_line_mark
		report; /* a report about PCIe; the kernel prints later how its recovery ended */
	enum hf_health_severity reported; /* the severity of the report about PCIe */
	struct hf_health_line_mark
		/* an error that the firmware reports; the address of its device follows */
		firmware;
	/* the severity of the error that the firmware reports */
	enum hf_health_severity firmware_said;
	/* the error that the firmware reports is an error of PCIe */
	bool firmware_pcie;
	struct hf_health_line_mark
		/* the registers of a device; the register that tells which errors are fatal follows */
		status;
	uint32_t status_bits; /* the unmasked errors in the registers of that device */
};

/* Reads a record.  True: ret_evidence is filled (`at` is left HF_TIME_NONE).  False: the line is about something
 * else, is broken, or names no device.  Two forms name no device and concern the node (device ""): a reset that
 * some GPU needs, and a driver of a network adapter that is stuck. */
bool hf_health_line_parse(struct hf_health_line_reader *reader,
			  const struct hf_health_record *record,
			  struct hf_health_evidence *ret_evidence) HF_MUST_CHECK;

HF_END_DECLS

#endif
