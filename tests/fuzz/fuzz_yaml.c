/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Input: a YAML text. A value that is read is the same after it is written and read again, and
 * each field has a line and a column. */

#include "base/compiler.h"
#include "base/strbuf.h"
#include "fuzz/fuzz.h"
#include "json/yaml.h"
#include "json/yaml_write.h"

#include <string.h>

static void check_written(const struct hf_json *value)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT((size_t)64 << 20);
	HF_AUTO_YAML back = NULL;
	struct hf_error err;
	/* Larger limits for the text that is read again: block style needs more room than flow
	 * style. */
	const struct hf_yaml_limits limits = {
		.bytes_max = (size_t)64 << 20,
		.nodes_max = 4 * HF_YAML_NODES_MAX,
	};

	hf_yaml_write(value, &sb);
	hf_assert(hf_strbuf_ok(&sb, "text", NULL) == 0);
	hf_assert(hf_yaml_parse(sb.data, sb.len, &limits, &back, &err) == 0);
	if (hf_json_type(value) == HF_JSON_NULL) {
		hf_assert(hf_yaml_len(back) == 0);
		return;
	}
	hf_assert(hf_yaml_len(back) == 1);
	hf_assert(hf_json_equal(value, hf_yaml_doc(back, 0)));
}

static void check_places(const struct hf_yaml *yaml, size_t i)
{
	const char *key;
	struct hf_json *value;
	const struct hf_json *doc = hf_yaml_doc(yaml, i);
	int root = hf_yaml_find(yaml, i, "").line;

	for (void *it = NULL; root > 0 && (it = hf_json_next(doc, it, &key, &value));) {
		struct hf_yaml_place place = hf_yaml_find(yaml, i, key);
		/* Each field must have a line and a column. (Only an alias can put a field before
		 * the first line of its document.) */
		hf_assert(place.line > 0 && place.column > 0);
		hf_assert(place.exact || strpbrk(key, ".[]") || key[0] == '\0');
	}
	(void)hf_yaml_find(yaml, i, "spec.a[b].c[0]..[[]");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct hf_yaml_limits limits = {.nodes_max = 20000, .bytes_max = 1 << 20};
	HF_AUTO_YAML yaml = NULL;
	struct hf_error err;

	if (hf_yaml_parse((const char *)data, size, &limits, &yaml, &err) != 0) {
		hf_assert(err.text[0] != '\0');
		return 0;
	}
	for (size_t i = 0; i < hf_yaml_len(yaml); i++) {
		check_written(hf_yaml_doc(yaml, i));
		check_places(yaml, i);
	}
	return 0;
}
