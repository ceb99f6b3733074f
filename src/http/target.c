/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Splits and percent-decodes the target of a request, which comes from untrusted clients. */
#include "http/target.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "base/str.h"
#include "http/server.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Decodes text in place. Returns false for a broken escape, a decoded NUL, or invalid UTF-8. */
static bool decode_text(char *text, bool plus_is_blank)
{
	char *out = text;

	for (const char *in = text; *in; in++) {
		char c = *in;

		if (c == '%') {
			int byte = hf_ascii_hex_byte(in + 1);
			if (byte <= 0)
				return false;
			c = (char)byte;
			in += 2;
		} else if (c == '+' && plus_is_blank) {
			c = ' ';
		}
		*out++ = c;
	}
	*out = '\0';
	return hf_utf8_valid(text, (size_t)(out - text));
}

/* Skips "http://host:port" of the absolute form. */
static char *skip_authority(char *text)
{
	size_t scheme = hf_str_has_prefix(text, "http://")    ? 7
			: hf_str_has_prefix(text, "https://") ? 8
							      : 0;

	return scheme == 0 ? text : text + scheme + strcspn(text + scheme, "/?");
}

static int parse_query(char *text, struct hf_target *target, struct hf_error *err)
{
	size_t pairs = 1;

	for (const char *c = text; *c; c++)
		pairs += *c == '&';
	if (pairs > HF_HTTP_QUERY_PARAMS_MAX)
		return hf_error_set(err, HF_E_BAD_REQUEST, "more than %d parameters in the query",
				    HF_HTTP_QUERY_PARAMS_MAX);
	target->query = hf_xcalloc(pairs, sizeof(*target->query));
	for (char *next = text; next;) {
		char *name = next;

		next = strchr(name, '&');
		if (next)
			*next++ = '\0';
		if (*name == '\0')
			continue; /* skip the empty parameter in "a=1&&b=2" */
		char *equals = strchr(name, '=');
		char *value = equals ? equals + 1 : name + strlen(name);
		if (equals)
			*equals = '\0';
		if (!decode_text(name, true) || !decode_text(value, true))
			return hf_error_set(err, HF_E_BAD_REQUEST, "a broken escape in the query");
		target->query[target->query_count++] =
			(struct hf_target_pair){.name = name, .value = value};
	}
	return 0;
}

int hf_target_parse(const char *raw, struct hf_target *ret_target, struct hf_error *err)
{
	if (strlen(raw) > HF_HTTP_TARGET_BYTES_MAX)
		return hf_error_set(err, HF_E_TOO_LARGE,
				    "the request's target is longer than %u bytes",
				    HF_HTTP_TARGET_BYTES_MAX);

	struct hf_target target = {.raw = hf_xstrdup(raw), .decoded = hf_xstrdup(raw)};
	char *path = skip_authority(target.decoded);
	char *query = path + strcspn(path, "?");
	int rc = 0;

	if (*query == '?')
		*query++ = '\0';
	target.path = path;
	if (*path != '/')
		rc = hf_error_set(err, HF_E_BAD_REQUEST, "the request's target has no path");
	else if (!decode_text(path, false))
		rc = hf_error_set(err, HF_E_BAD_REQUEST, "a broken escape in the path");
	else if (*query != '\0')
		rc = parse_query(query, &target, err);
	if (rc < 0) {
		hf_target_release(&target);
		return rc;
	}
	*ret_target = target;
	return 0;
}

void hf_target_release(struct hf_target *target)
{
	free(target->raw);
	free(target->decoded);
	free(target->query);
	*target = (struct hf_target){0};
}
