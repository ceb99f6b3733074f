/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Normalizes PCI addresses, compares them, and makes empty evidence. */
#include "health/evidence.h"
#include "health/scan_internal.h"

#include <stdio.h>
#include <string.h>

/* Reads one to eight hexadecimal digits without "0x". */
static bool read_hex(struct hf_scan *s, int digits_max, unsigned *ret_value)
{
	char text[11] = "0x";
	struct hf_scan word, number;
	uint32_t value;
	size_t len;

	if (!hf_scan_word(s, "", &word))
		return false;
	len = hf_scan_left(&word);
	if (len > (size_t)digits_max)
		return false;
	memcpy(text + 2, word.at, len);
	number = hf_scan_of(text, len + 2);
	if (!hf_scan_hex32(&number, &value) || number.at != number.end)
		return false;
	*ret_value = value;
	return true;
}

/* Reads numbers with colons between them: two (bus, device), or three with the domain in front. */
static bool read_numbers(struct hf_scan *s, unsigned ret_numbers[3])
{
	unsigned found[3];
	int n = 0;

	do {
		if (n == 3 || !read_hex(s, 8, &found[n++]))
			return false;
	} while (hf_scan_char(s, ':'));
	if (n < 2)
		return false;
	ret_numbers[0] = n == 3 ? found[0] : 0;
	ret_numbers[1] = found[n - 2];
	ret_numbers[2] = found[n - 1];
	return true;
}

bool hf_health_pci_normalize(const char *bytes, size_t len, char ret_text[HF_HEALTH_DEVICE_MAX])
{
	struct hf_scan s = hf_scan_of(bytes, len);
	unsigned n[3], function = 0;

	hf_scan_text(&s, "PCI:");
	if (!read_numbers(&s, n))
		return false;
	if (hf_scan_char(&s, '.') && !read_hex(&s, 1, &function))
		return false;
	if (s.at != s.end || n[1] > 0xff || n[2] > 0x1f || function > 7)
		return false;
	memset(ret_text, 0, HF_HEALTH_DEVICE_MAX);
	snprintf(ret_text, HF_HEALTH_DEVICE_MAX, "%04x:%02x:%02x.%x", n[0], n[1], n[2], function);
	return true;
}

static bool are_same_until(const char *a, const char *b, char end)
{
	const char *end_a = strchr(a, end), *end_b = strchr(b, end);

	return end_a && end_b && end_a - a == end_b - b && memcmp(a, b, (size_t)(end_a - a)) == 0;
}

bool hf_health_pci_same_device(const char *a, const char *b)
{
	return are_same_until(a, b, '.');
}

bool hf_health_pci_same_domain(const char *a, const char *b)
{
	return are_same_until(a, b, ':');
}

struct hf_health_evidence hf_health_evidence_none(void)
{
	struct hf_health_evidence none;

	/* The padding is cleared too, so that equal evidence has equal bytes. */
	memset(&none, 0, sizeof(none));
	none.subcode = -1;
	none.gpu_instance = -1;
	none.compute_instance = -1;
	none.at = HF_TIME_NONE;
	return none;
}
