/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_LINE_INTERNAL_H
#define HF_HEALTH_LINE_INTERNAL_H

#include "health/kmsg.h"
#include "health/scan_internal.h"

HF_BEGIN_DECLS

/* What the readers of lines in line.c, line_pcie.c and line_stuck.c share. */

/* `device` may be NULL. */
void hf_health_mark_set(struct hf_health_line_mark *mark, const char *device);
void hf_health_mark_clear(struct hf_health_line_mark *mark);

/* Reads a whole PCI address, "0000:1a:00" or "0000:1a:00.0"; with `function` only the form with a function. */
bool hf_health_scan_address(struct hf_scan *s, bool function,
			    char ret_device[HF_HEALTH_DEVICE_MAX]);
void hf_health_unit_set(struct hf_health_evidence *e, const struct hf_scan *unit);

/* Reads a line about an error of PCIe.  False: the line is none, though parts of the evidence may be filled in. */
bool hf_health_read_pcie(struct hf_health_line_reader *reader, struct hf_scan s,
			 struct hf_health_evidence *e);

/* Most records of a dump: the kernel prints modules, registers and a stack of what is stuck, and records of other
 * processors may come between. */
#define HF_HEALTH_STUCK_LINES_MAX 64

/* Reads a line of a dump of a stuck processor or task.  False: the line gives no evidence, and e is unchanged. */
bool hf_health_read_stuck(struct hf_health_line_reader *reader, struct hf_scan s,
			  struct hf_health_evidence *e);

HF_END_DECLS

#endif
