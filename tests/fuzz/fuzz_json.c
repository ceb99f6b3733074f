/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Input: a JSON text. A value that is read is the same after it is written in each format. The
 * skip reader accepts what the parser accepts. Metadata is the same whether read from the text or
 * from the tree. */

#include "base/arena.h"
#include "base/compiler.h"
#include "fuzz/fuzz.h"
#include "json/doc.h"
#include "json/skip.h"

#include <string.h>

static void check_written(const struct hf_json *value, enum hf_json_style style)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT((size_t)64 << 20);
	HF_AUTO_JSON back = NULL;
	const struct hf_json_limits limits = {.bytes_max = (size_t)64 << 20};

	hf_json_write(value, style, &sb);
	hf_assert(hf_strbuf_ok(&sb, "text", NULL) == 0);
	hf_assert(hf_json_parse(sb.data, sb.len, &limits, &back, NULL) == 0);
	hf_assert(hf_json_equal(value, back));
}

static void check_metadata(const char *text, size_t size, struct hf_json *value)
{
	HF_AUTO_DOC from_text = hf_doc_from_text(text, size);
	HF_AUTO_DOC from_tree = hf_doc_from_json(hf_json_ref(value));

	hf_assert(strcmp(hf_doc_name(from_text), hf_doc_name(from_tree)) == 0);
	hf_assert(strcmp(hf_doc_namespace(from_text), hf_doc_namespace(from_tree)) == 0);
	hf_assert(strcmp(hf_doc_uid(from_text), hf_doc_uid(from_tree)) == 0);
	hf_assert(strcmp(hf_doc_resource_version(from_text), hf_doc_resource_version(from_tree)) ==
		  0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	HF_AUTO_JSON value = NULL;
	struct hf_error err;
	struct hf_skip skip;

	hf_skip_init(&skip, text, size);
	bool skipped = hf_skip_value(&skip) && hf_skip_at_end(&skip);
	if (hf_json_parse(text, size, NULL, &value, &err) != 0) {
		HF_AUTO_DOC doc = hf_doc_from_text(text, size);
		hf_assert(err.text[0] != '\0');
		(void)hf_doc_name(doc);
		return 0;
	}
	hf_assert(skipped);
	check_written(value, HF_JSON_COMPACT);
	check_written(value, HF_JSON_INDENTED);
	check_written(value, HF_JSON_SORTED);
	check_metadata(text, size, value);
	HF_AUTO_JSON copy = hf_json_copy(value);
	hf_assert(hf_json_equal(value, copy));
	return 0;
}
