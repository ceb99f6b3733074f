/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_CONTACT_H
#define HF_HEALTH_CONTACT_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * When this node last had contact with the control plane.  The agent writes this record into a file, for the training
 * processes that fence themselves:
 *
 *     holdfast-contact/1 boot=0a1b2c3d-… at_ms=123456789
 *
 * The time is of CLOCK_BOOTTIME, which counts from the boot, sleep included; setting the wall clock does not change
 * it.  The time is never later than the last contact.
 */
#define HF_CONTACT_VERSION "holdfast-contact/1"
#define HF_CONTACT_FILE "contact" /* beside the agent's socket */
#define HF_CONTACT_BYTES_MAX 128
#define HF_CONTACT_BOOT_MAX 64 /* letters, digits, '-', and the NUL */

struct hf_contact {
	char boot_id[HF_CONTACT_BOOT_MAX];
	uint64_t at_ms;
};

/* Formats the record with a line feed and a NUL; returns the length without the NUL.  boot_id must be one that can
 * be parsed. */
size_t hf_contact_format(const struct hf_contact *contact, char ret_text[HF_CONTACT_BYTES_MAX]);
/* Parses bytes, which need no NUL.  False: they are no record. */
bool hf_contact_parse(const char *bytes, size_t len, struct hf_contact *ret_contact);

enum hf_contact_word {
	HF_CONTACT_FRESH,
	HF_CONTACT_OLD,
	HF_CONTACT_BROKEN,     /* no record */
	HF_CONTACT_OTHER_BOOT, /* the record is of another boot, so it tells nothing about this boot */
	/* the record's time lies in the future: it was written with another clock */
	HF_CONTACT_FUTURE,
};

/* Judges the record at the time `now`.  FRESH and OLD: *ret_age_ms gets the age of the contact; in other cases it
 * stays unchanged. */
enum hf_contact_word hf_contact_judge(const char *bytes, size_t len, const struct hf_contact *now,
				      uint64_t limit_ms, uint64_t *ret_age_ms);

HF_END_DECLS

#endif
