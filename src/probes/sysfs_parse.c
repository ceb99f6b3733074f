/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Parses the text of files in sysfs and procfs. The reader adds a NUL to each text, so these
 * functions do not rely on the driver for it. */
#include "probes/sysfs.h"

#include "base/ascii.h"
#include "base/str.h"
#include "health/evidence.h"

#include <string.h>

static int digit_value(char c, unsigned base)
{
	int value = hf_ascii_hex_value(c);

	return value < (int)base ? value : -1;
}

/* Parses digits; returns the end of the number. NULL: there is no digit, or the number exceeds 64
 * bits. */
static const char *read_digits(const char *text, unsigned base, uint64_t *ret_number)
{
	uint64_t number = 0;
	const char *at = text;

	for (; digit_value(*at, base) >= 0; at++) {
		if (__builtin_mul_overflow(number, base, &number) ||
		    __builtin_add_overflow(number, (uint64_t)digit_value(*at, base), &number))
			return NULL;
	}
	if (at == text)
		return NULL;
	*ret_number = number;
	return at;
}

bool hf_sysfs_number(const char *text, uint64_t *ret_number)
{
	uint64_t number;
	unsigned base = 10;

	while (hf_ascii_is_space(*text))
		text++;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	}
	text = read_digits(text, base, &number);
	if (!text)
		return false;
	while (hf_ascii_is_space(*text))
		text++;
	if (*text != '\0')
		return false;
	*ret_number = number;
	return true;
}

uint32_t hf_sysfs_speed(const char *text)
{
	uint64_t whole, tenths = 0;
	const char *at = read_digits(text, 10, &whole);

	/* PCIe 7 has 128 GT/s. */
	if (!at || whole > 1000)
		return 0;
	if (*at == '.') {
		if (digit_value(at[1], 10) < 0 || digit_value(at[2], 10) >= 0)
			return 0;
		tenths = (uint64_t)digit_value(at[1], 10);
		at += 2;
	}
	return hf_str_has_prefix(at, " GT/s") ? (uint32_t)(whole * 10 + tenths) : 0;
}

uint32_t hf_sysfs_width(const char *text)
{
	uint64_t width;

	return hf_sysfs_number(text, &width) && width <= 32 ? (uint32_t)width : 0;
}

bool hf_sysfs_line(const char *text, const char *name, uint64_t *ret_number)
{
	size_t len = strlen(name);

	while (*text) {
		size_t line = strcspn(text, "\n");

		if (line > len + 1 && memcmp(text, name, len) == 0 && text[len] == ' ') {
			uint64_t number;
			const char *end = read_digits(text + len + 1, 10, &number);

			if (!end || end != text + line)
				return false;
			*ret_number = number;
			return true;
		}
		text += line + (text[line] == '\n');
	}
	return false;
}

bool hf_sysfs_ras(const char *text, uint64_t *ret_uncorrectable)
{
	return hf_sysfs_line(text, "ue:", ret_uncorrectable);
}

void hf_sysfs_unique_id(const char *text, char ret_id[HF_SYSFS_NAME_MAX])
{
	size_t len = strspn(text, "0123456789abcdefABCDEF");

	ret_id[0] = '\0';
	if (len == 0 || len >= HF_SYSFS_NAME_MAX || (text[len] != '\n' && text[len] != '\0') ||
	    strspn(text, "0") == len)
		return;
	memcpy(ret_id, text, len);
	ret_id[len] = '\0';
}

int hf_sysfs_state(const char *text)
{
	uint64_t state;
	const char *end = read_digits(text, 10, &state);

	return end && *end == ':' && state < 100 ? (int)state : -1;
}

/* The word is a version: digits and points only, at least one of each. */
static bool is_version(const char *word, size_t len)
{
	bool point = false;

	for (size_t i = 0; i < len; i++) {
		if (word[i] != '.' && digit_value(word[i], 10) < 0)
			return false;
		point = point || word[i] == '.';
	}
	return point && digit_value(word[0], 10) >= 0 && len < HF_SYSFS_NAME_MAX;
}

void hf_sysfs_driver_version(const char *text, char ret_version[HF_SYSFS_NAME_MAX])
{
	const char *end = text + strcspn(text, "\n");

	memset(ret_version, 0, HF_SYSFS_NAME_MAX);
	while (text < end) {
		size_t len = strcspn(text, " \t\n");

		if (len > 0 && is_version(text, len)) {
			memcpy(ret_version, text, len);
			return;
		}
		text += len + (text[len] != '\0');
	}
}

/* Returns true if this part of a path is a PCI address in the form that the kernel writes. */
static bool is_address(const char *part, size_t len)
{
	char address[HF_HEALTH_DEVICE_MAX];

	return hf_health_pci_normalize(part, len, address) && strlen(address) == len &&
	       memcmp(address, part, len) == 0;
}

static void put_above(const char *part, size_t len, char ret_above[HF_HEALTH_ABOVE_MAX])
{
	size_t has = strlen(ret_above);

	/* If there is no room, drop the port that is farthest from the device: more other devices
	 * are below it. */
	while (has > 0 && has + 1 + len >= HF_HEALTH_ABOVE_MAX) {
		size_t first = strcspn(ret_above, " ");

		first += ret_above[first] == ' ';
		memmove(ret_above, ret_above + first, has - first + 1);
		has -= first;
	}
	if (has > 0)
		ret_above[has++] = ' ';
	memcpy(ret_above + has, part, len);
	ret_above[has + len] = '\0';
}

void hf_sysfs_list_above(const char *target, char ret_above[HF_HEALTH_ABOVE_MAX])
{
	const char *end = strrchr(target, '/');
	char above[HF_HEALTH_ABOVE_MAX] = "";

	for (const char *at = target; end != NULL && at < end;) {
		size_t len = strcspn(at, "/");

		if (is_address(at, len))
			put_above(at, len, above);
		at += len + 1;
	}
	/* Clear the unused bytes as well: presences are compared as bytes. */
	memset(ret_above, 0, HF_HEALTH_ABOVE_MAX);
	memcpy(ret_above, above, strlen(above));
}

bool hf_sysfs_excluded(const char *text)
{
	static const char *const keys[] = {"GPU Excluded:", "Blacklisted:"};

	for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		for (size_t i = 0; i < HF_ARRAY_LEN(keys); i++) {
			const char *value = line + strlen(keys[i]);

			if (hf_str_has_prefix(line, keys[i]) &&
			    hf_str_has_prefix(value + strspn(value, " \t"), "Yes"))
				return true;
		}
	}
	return false;
}
