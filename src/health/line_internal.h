/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_LINE_INTERNAL_H
#define HF_HEALTH_LINE_INTERNAL_H

#include "health/kmsg.h"
#include "health/scan_internal.h"

HF_BEGIN_DECLS

/* What the readers of lines share: line.c, line_pcie.c, line_stuck.c. */

/* `device` may be NULL. */
void hf_health_mark_set(struct hf_health_line_mark *mark, const char *device);
void hf_health_mark_clear(struct hf_health_line_mark *mark);

/* Reads a whole address, "0000:1a:00" or "0000:1a:00.0"; with `function` only the second. */
bool hf_health_scan_address(struct hf_scan *s, bool function,
			    char ret_device[HF_HEALTH_DEVICE_MAX]);
void hf_health_unit_set(struct hf_health_evidence *e, const struct hf_scan *unit);

/* Reads a line about an error of PCIe.  False: it is none, and may have filled in parts of the evidence. */
bool hf_health_read_pcie(struct hf_health_line_reader *reader, struct hf_scan s,
			 struct hf_health_evidence *e);

/* The kernel prints modules, registers and a stack of what is stuck; records of other processors come between. */
#define HF_HEALTH_STUCK_LINES_MAX 64

/* Reads a line of a dump.  False: no evidence, and e is unchanged. */
bool hf_health_read_stuck(struct hf_health_line_reader *reader, struct hf_scan s,
			  struct hf_health_evidence *e);

HF_END_DECLS

#endif
