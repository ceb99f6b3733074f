/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Input: a JSONPath template, a NUL, and a document, which is printed by the template. */

#include "base/compiler.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "fuzz/fuzz.h"
#include "json/jsonpath.h"

#include <string.h>

static void check_print(const char *text, const struct hf_json *doc)
{
	HF_AUTO_JSONPATH path = NULL;
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 16);
	struct hf_error err;

	if (hf_jsonpath_compile(text, &path, &err) != 0 ||
	    hf_jsonpath_print(path, doc, &sb, &err) != 0)
		hf_assert(err.text[0] != '\0');
	hf_assert(sb.len <= 1 << 16);
}

static void check_column(const char *text, const struct hf_json *doc)
{
	HF_AUTO_JSONPATH path = NULL;
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 16);
	struct hf_error err;

	if (hf_jsonpath_compile_relaxed(text, &path, &err) != 0)
		return;
	if (hf_jsonpath_column(path, doc, &sb, &err) != 0)
		hf_assert(err.text[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	HF_AUTOFREE char *text = hf_xstrndup((const char *)data, size);
	HF_AUTO_JSON doc = NULL;
	size_t len = strlen(text);

	if (len < size &&
	    hf_json_parse((const char *)data + len + 1, size - len - 1, NULL, &doc, NULL) != 0)
		return 0;
	check_print(text, doc);
	check_column(text, doc);
	return 0;
}
