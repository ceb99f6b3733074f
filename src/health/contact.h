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
 * When this node last had contact with the control plane, as its agent writes it into a file for
 * the training processes that fence themselves:
 *
 *     holdfast-contact/1 boot=0a1b2c3d-… at_ms=123456789
 *
 * The time is of the clock that has run since the boot, sleep included (CLOCK_BOOTTIME): a wall
 * clock that is set moves nothing.  It is never later than the last contact.
 */
#define HF_CONTACT_VERSION "holdfast-contact/1"
#define HF_CONTACT_FILE "contact" /* beside the agent's socket */
#define HF_CONTACT_BYTES_MAX 128
#define HF_CONTACT_BOOT_MAX 64 /* letters, digits, '-', and the NUL */

struct hf_contact {
	char boot_id[HF_CONTACT_BOOT_MAX];
	uint64_t at_ms;
};

/* With its line feed and a NUL; returns the length without that.  boot_id is one that can be read back. */
size_t hf_contact_format(const struct hf_contact *contact, char ret_text[HF_CONTACT_BYTES_MAX]);
/* False: the bytes are no record.  They need no NUL. */
bool hf_contact_parse(const char *bytes, size_t len, struct hf_contact *ret_contact);

enum hf_contact_word {
	HF_CONTACT_FRESH,
	HF_CONTACT_OLD,
	HF_CONTACT_BROKEN,     /* no record */
	HF_CONTACT_OTHER_BOOT, /* nothing follows from it for this one */
	HF_CONTACT_FUTURE,     /* whoever wrote it had another clock */
};

/* What the bytes say now.  FRESH and OLD: the age of the contact; else that stays. */
enum hf_contact_word hf_contact_judge(const char *bytes, size_t len, const struct hf_contact *now,
				      uint64_t limit_ms, uint64_t *ret_age_ms);

HF_END_DECLS

#endif
