/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Parses the faults of `run --inject`. */
#include "app/inject.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Copies the next word of *text to word. False: there is no next word, or it is too long. */
static bool next_word(const char **text, char *word, size_t size)
{
	const char *at = *text + strspn(*text, " \t");
	size_t len = strcspn(at, " \t");

	if (len == 0 || len >= size)
		return false;
	memcpy(word, at, len);
	word[len] = '\0';
	*text = at + len;
	return true;
}

int hf_injection_parse(const char *text, struct hf_injection *ret_injection, struct hf_error *err)
{
	struct hf_injection injection;
	const char *at = text;
	char verb[16], preposition[8], span[32];

	if (!next_word(&at, verb, sizeof(verb)) || !hf_streq(verb, "kill") ||
	    !next_word(&at, injection.rank, sizeof(injection.rank)) ||
	    hf_dns1123_label_problem(injection.rank) != NULL ||
	    !next_word(&at, preposition, sizeof(preposition)) || !hf_streq(preposition, "at") ||
	    !next_word(&at, span, sizeof(span)) || at[strspn(at, " \t")] != '\0')
		return hf_error_set(err, HF_E_INVALID,
				    "'%s' is not a valid fault; write 'kill worker-1 at 5s'", text);
	if (hf_span_parse(span, &injection.after, err) != 0)
		return hf_error_wrap(err, "'%s'", text);
	*ret_injection = injection;
	return 0;
}
