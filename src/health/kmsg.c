/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Parses a record of /dev/kmsg, or a line of a file without the kernel's header.
 * Invariant: only records of facility 0 are the kernel's.
 */
#include "health/kmsg.h"
#include "health/scan_internal.h"

#include "base/ascii.h"

#include <string.h>

/* Undoes the kernel's escapes: it writes \xHH, in lower case, for each byte that it does not print, and for the
 * backslash. */
static void undo_escapes(const struct hf_scan *s, struct hf_health_record *record)
{
	const char *p = s->at;
	size_t n = 0;

	while (p < s->end && n < sizeof(record->text)) {
		int byte = s->end - p >= 4 && p[0] == '\\' && p[1] == 'x' ? hf_ascii_hex_byte(p + 2)
									  : -1;

		if (byte >= 0) {
			record->text[n++] = (char)byte;
			p += 4;
		} else {
			record->text[n++] = *p++;
		}
	}
	record->text_len = n;
}

/* Reads "prio,seq,usec,flags", and further fields of newer kernels, up to the semicolon. */
static bool read_header(struct hf_scan *s, struct hf_health_record *record)
{
	struct hf_scan head;
	uint64_t prefix;

	/* A facility can have more than 8 bits: the kernel keeps what fits an int. */
	if (!hf_scan_until(s, ";", &head) || !hf_scan_decimal(&head, 9, &prefix) ||
	    !hf_scan_char(&head, ',') || !hf_scan_decimal(&head, 19, &record->seq) ||
	    !hf_scan_char(&head, ',') || !hf_scan_decimal(&head, 19, &record->usec) ||
	    !hf_scan_char(&head, ','))
		return false;
	record->priority = (unsigned)prefix & 7;
	record->facility = (unsigned)prefix >> 3;
	record->continuation = hf_scan_char(&head, 'c') || hf_scan_char(&head, '+');
	record->indented = false;
	return true;
}

enum hf_health_kmsg hf_health_kmsg_parse(const char *bytes, size_t len,
					 struct hf_health_record *ret_record)
{
	struct hf_scan s = hf_scan_of(bytes, len), text;

	ret_record->text_len = 0;
	if (len > HF_HEALTH_RECORD_MAX)
		s.end = s.at + HF_HEALTH_RECORD_MAX;
	if (!read_header(&s, ret_record))
		return HF_HEALTH_KMSG_BROKEN;
	/* The text of the record ends with its first line; lines of context follow. */
	text = s;
	if (hf_scan_until(&s, "\n", &text))
		hf_assert(text.end < s.end || s.at == s.end);
	undo_escapes(&text, ret_record);
	return ret_record->facility == 0 ? HF_HEALTH_KMSG_KERNEL : HF_HEALTH_KMSG_FORGED;
}

/* "12.345678"; ret_usec may be NULL. */
static bool read_seconds(struct hf_scan *s, uint64_t *ret_usec)
{
	struct hf_scan p = *s;
	uint64_t seconds, fraction = 0;

	hf_scan_blanks(&p);
	if (!hf_scan_decimal(&p, 9, &seconds))
		return false;
	if (hf_scan_char(&p, '.')) {
		const char *digits = p.at;

		if (!hf_scan_decimal(&p, 6, &fraction))
			return false;
		for (size_t n = (size_t)(p.at - digits); n < 6; n++)
			fraction *= 10;
	}
	if (ret_usec)
		*ret_usec = seconds * 1000000 + fraction;
	*s = p;
	return true;
}

/* "03:05" or "03:05:42" */
static bool read_clock(struct hf_scan *s)
{
	uint64_t number;

	if (!hf_scan_decimal(s, 2, &number) || !hf_scan_char(s, ':') ||
	    !hf_scan_decimal(s, 2, &number))
		return false;
	return !hf_scan_char(s, ':') || hf_scan_decimal(s, 2, &number);
}

/* Reads a date, "Nov27 22:23" of dmesg -e or "Fri Nov 27 22:23:44 2026" of dmesg -T. */
static bool read_date(struct hf_scan *s)
{
	struct hf_scan p = *s, clock, word;
	uint64_t number;

	if (!hf_scan_word(&p, "", &word) || !hf_scan_char(&p, ' '))
		return false;
	clock = p;
	if (!read_clock(&clock)) {
		if (!hf_scan_word(&p, "", &word))
			return false;
		hf_scan_blanks(&p);
		if (!hf_scan_decimal(&p, 2, &number) || !hf_scan_char(&p, ' ') || !read_clock(&p) ||
		    !hf_scan_char(&p, ' ') || !hf_scan_decimal(&p, 4, &number))
			return false;
		clock = p;
	}
	*s = clock;
	return true;
}

/* Reads " <    1.000012>", the time since the record before. */
static bool read_delta(struct hf_scan *s)
{
	struct hf_scan p = *s;

	hf_scan_blanks(&p);
	if (!hf_scan_char(&p, '<') || !read_seconds(&p, NULL) || !hf_scan_char(&p, '>'))
		return false;
	*s = p;
	return true;
}

/* "2026-11-27T22:23:44,345678+00:00 " */
static bool read_iso(struct hf_scan *s)
{
	struct hf_scan p = *s;
	uint64_t number;

	if (!hf_scan_decimal(&p, 4, &number) || !hf_scan_char(&p, '-') ||
	    !hf_scan_decimal(&p, 2, &number) || !hf_scan_char(&p, '-') ||
	    !hf_scan_decimal(&p, 2, &number) || !hf_scan_char(&p, 'T') || !read_clock(&p) ||
	    !hf_scan_char(&p, ',') || !hf_scan_decimal(&p, 6, &number) ||
	    (!hf_scan_char(&p, '+') && !hf_scan_char(&p, '-')) || !read_clock(&p) ||
	    !hf_scan_char(&p, ' '))
		return false;
	*s = p;
	return true;
}

/* Reads "[   12.345678] ", or another form of dmesg's --time-format: delta, reltime, ctime, iso.  Only the first
 * form has the time since the boot. */
static void bare_time(struct hf_scan *s, struct hf_health_record *record)
{
	struct hf_scan p = *s;
	uint64_t usec = 0;
	bool told;

	if (read_iso(s) || !hf_scan_char(&p, '['))
		return;
	hf_scan_blanks(&p);
	told = hf_scan_char(&p, '+') ? read_seconds(&p, NULL)
				     : read_seconds(&p, &usec) || read_date(&p);
	if ((!read_delta(&p) && !told) || !hf_scan_char(&p, ']'))
		return;
	hf_scan_char(&p, ' ');
	record->usec = usec;
	*s = p;
}

/* Skips "kern  :info  : ", as dmesg -x prints it.  The prefix of another facility is not skipped, and no driver's
 * line begins like it. */
static void bare_facility(struct hf_scan *s)
{
	struct hf_scan p = *s, priority;

	if (!hf_scan_text(&p, "kern  :") || !hf_scan_word(&p, "", &priority))
		return;
	hf_scan_blanks(&p);
	if (hf_scan_char(&p, ':') && hf_scan_char(&p, ' '))
		*s = p;
}

/* Skips "[ T1234] " or "[    C2] ", the thread or the processor that printed the record, if the kernel prints it. */
static void bare_caller(struct hf_scan *s)
{
	struct hf_scan p = *s;
	uint64_t number;

	if (!hf_scan_char(&p, '['))
		return;
	hf_scan_blanks(&p);
	if ((hf_scan_char(&p, 'T') || hf_scan_char(&p, 'C')) && hf_scan_decimal(&p, 9, &number) &&
	    hf_scan_char(&p, ']') && hf_scan_char(&p, ' '))
		*s = p;
}

void hf_health_kmsg_bare(const char *bytes, size_t len, struct hf_health_record *ret_record)
{
	struct hf_scan s = hf_scan_of(bytes, len), p;
	uint64_t prefix;

	ret_record->priority = 6;
	ret_record->facility = 0;
	ret_record->seq = 0;
	ret_record->usec = 0;
	ret_record->continuation = false;
	p = s;
	if (hf_scan_char(&p, '<') && hf_scan_decimal(&p, 9, &prefix) && hf_scan_char(&p, '>')) {
		ret_record->priority = (unsigned)prefix & 7;
		ret_record->facility = (unsigned)prefix >> 3;
		s = p;
	}
	ret_record->indented = s.at < s.end && (*s.at == ' ' || *s.at == '\t');
	while (s.at < s.end && (*s.at == ' ' || *s.at == '\t'))
		s.at++;
	bare_facility(&s);
	bare_time(&s, ret_record);
	bare_caller(&s);
	while (s.end > s.at && (s.end[-1] == '\n' || s.end[-1] == '\r'))
		s.end--;
	if (hf_scan_left(&s) > HF_HEALTH_RECORD_MAX)
		s.end = s.at + HF_HEALTH_RECORD_MAX;
	if (hf_scan_left(&s) > 0)
		memcpy(ret_record->text, s.at, hf_scan_left(&s));
	ret_record->text_len = hf_scan_left(&s);
}
