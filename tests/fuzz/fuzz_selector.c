/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Input: a text, read as a label selector, as a field selector and, if it is JSON, as a
 * LabelSelector object. A selector that is accepted must match objects without a crash. */

#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "store/selector.h"

#include <stdlib.h>

static void match(struct hf_selector *selector)
{
	static const char text[] =
		"{\"metadata\":{\"name\":\"n\",\"labels\":{\"a\":\"b\",\"n\":\"7\"}},"
		"\"spec\":{\"nodeName\":\"x\",\"hostNetwork\":true,\"n\":3},"
		"\"source\":{}}";
	HF_AUTO_JSON object = NULL;

	hf_assert(hf_json_parse(text, sizeof(text) - 1, NULL, &object, NULL) == 0);
	hf_selector_match_labels(selector, hf_json_path(object, "metadata", "labels", NULL));
	hf_selector_match_labels(selector, NULL);
	hf_selector_match_fields(selector, object);
	hf_selector_match_fields(selector, NULL);
	hf_selector_exact(selector, "metadata.name");
	hf_selector_destroy(selector);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	HF_AUTOFREE char *text = hf_xstrndup((const char *)bytes, len);
	struct hf_selector *selector = NULL;
	struct hf_error err = {0};
	HF_AUTO_JSON json = NULL;

	if (hf_selector_parse_labels(text, &selector, &err) == 0)
		match(selector);
	selector = NULL;
	if (hf_selector_parse_fields(text, NULL, &selector, &err) == 0)
		match(selector);
	selector = NULL;
	if (hf_json_parse((const char *)bytes, len, NULL, &json, &err) == 0 &&
	    hf_selector_from_json(json, &selector, &err) == 0)
		match(selector);
	return 0;
}
