/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Input: the target of an HTTP request. A target that is accepted is within its limits, and is the
 * same after it is written with everything escaped and read again.
 */
#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "fuzz/fuzz.h"
#include "http/client.h"
#include "http/server.h"
#include "http/target.h"

#include <stdlib.h>
#include <string.h>

static void check_text(const char *text)
{
	hf_assert(hf_utf8_valid(text, strlen(text)));
}

static void check_same(const struct hf_target *a, const struct hf_target *b)
{
	hf_assert(strcmp(a->path, b->path) == 0);
	hf_assert(a->query_count == b->query_count);
	for (size_t i = 0; i < a->query_count; i++) {
		hf_assert(strcmp(a->query[i].name, b->query[i].name) == 0);
		hf_assert(strcmp(a->query[i].value, b->query[i].value) == 0);
	}
}

static void write_again(const struct hf_target *target, struct hf_strbuf *sb)
{
	/* The first '/' is not escaped, because a target must begin with it. */
	hf_strbuf_addch(sb, '/');
	hf_url_escape(sb, target->path + 1);
	for (size_t i = 0; i < target->query_count; i++) {
		hf_strbuf_addch(sb, i == 0 ? '?' : '&');
		hf_url_escape(sb, target->query[i].name);
		hf_strbuf_addch(sb, '=');
		hf_url_escape(sb, target->query[i].value);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	HF_AUTOFREE char *raw = hf_xstrndup((const char *)data, size);
	struct hf_target target, again;
	struct hf_error err = {0};

	if (hf_target_parse(raw, &target, &err) < 0) {
		hf_assert(err.code < 0 && err.text[0] != '\0');
		return 0;
	}
	hf_assert(target.path[0] == '/' && target.query_count <= HF_HTTP_QUERY_PARAMS_MAX);
	check_text(target.path);
	for (size_t i = 0; i < target.query_count; i++) {
		check_text(target.query[i].name);
		check_text(target.query[i].value);
	}
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT((size_t)1 << 20);
	write_again(&target, &sb);
	if (sb.len <= HF_HTTP_TARGET_BYTES_MAX) {
		int rc = hf_target_parse(sb.data, &again, &err);
		hf_assert(rc == 0);
		check_same(&target, &again);
		hf_target_release(&again);
	}
	hf_target_release(&target);
	return 0;
}
