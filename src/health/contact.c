/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Formats and parses the record of contact. */
#include "health/contact.h"

#include "base/str.h"
#include "health/scan_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MS_DIGITS 15 /* thirty thousand years */

size_t hf_contact_format(const struct hf_contact *contact, char ret_text[HF_CONTACT_BYTES_MAX])
{
	int n = snprintf(ret_text, HF_CONTACT_BYTES_MAX, "%s boot=%s at_ms=%" PRIu64 "\n",
			 HF_CONTACT_VERSION, contact->boot_id, contact->at_ms);

	hf_assert(n > 0 && n < HF_CONTACT_BYTES_MAX);
	return (size_t)n;
}

bool hf_contact_parse(const char *bytes, size_t len, struct hf_contact *ret_contact)
{
	struct hf_contact contact = {.at_ms = 0};
	struct hf_scan s, boot;

	if (len >= HF_CONTACT_BYTES_MAX)
		return false;
	s = hf_scan_of(bytes, len);
	/* A record without its line feed may have been cut off within the number, so it does not count. */
	if (!hf_scan_text(&s, HF_CONTACT_VERSION " boot=") || !hf_scan_word(&s, "-", &boot) ||
	    hf_scan_left(&boot) >= HF_CONTACT_BOOT_MAX || !hf_scan_text(&s, " at_ms=") ||
	    !hf_scan_decimal(&s, MS_DIGITS, &contact.at_ms) || !hf_scan_char(&s, '\n') ||
	    hf_scan_left(&s) > 0)
		return false;
	memcpy(contact.boot_id, boot.at, hf_scan_left(&boot));
	*ret_contact = contact;
	return true;
}

enum hf_contact_word hf_contact_judge(const char *bytes, size_t len, const struct hf_contact *now,
				      uint64_t limit_ms, uint64_t *ret_age_ms)
{
	struct hf_contact contact;

	if (!hf_contact_parse(bytes, len, &contact))
		return HF_CONTACT_BROKEN;
	if (!hf_streq(contact.boot_id, now->boot_id))
		return HF_CONTACT_OTHER_BOOT;
	if (contact.at_ms > now->at_ms)
		return HF_CONTACT_FUTURE;
	*ret_age_ms = now->at_ms - contact.at_ms;
	return *ret_age_ms < limit_ms ? HF_CONTACT_FRESH : HF_CONTACT_OLD;
}
