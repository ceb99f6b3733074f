/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/kubelet_internal.h"

#include "base/base64.h"
#include "base/str.h"

#include <string.h>

/* Reads the values of ConfigMaps and Secrets. */

/* Limit of one value: the store limits the size of an object, and decoded base64 is shorter than
 * its text. */
#define VALUE_BYTES_MAX ((size_t)2 << 20)

/* Iterates over the maps of an object that have values, and tells whether their values are base64:
 * data and stringData of a Secret, data and binaryData of a ConfigMap. */
static int next_value(struct hf_doc *doc, int place, const struct hf_json **ret_map,
		      bool *ret_encoded)
{
	const struct hf_json *root = hf_doc_json(doc);
	bool secret = hf_streq(hf_json_path_str(root, "kind", NULL), "Secret");
	static const char *const secret_places[] = {"data", "stringData"};
	static const char *const map_places[] = {"data", "binaryData"};

	if (place > 1)
		return 0;
	*ret_map = hf_json_get(root, (secret ? secret_places : map_places)[place]);
	*ret_encoded = secret ? place == 0 : place == 1;
	return 1;
}

static int decode_value(const struct hf_json *value, bool encoded, struct hf_strbuf *sb,
			struct hf_error *err)
{
	const char *text = hf_json_str(value, "");

	if (encoded)
		return hf_base64_decode(text, sb, err);
	hf_strbuf_addstr(sb, text);
	return 0;
}

int hf_kubelet_data_get(struct hf_doc *doc, const char *key, struct hf_strbuf *sb,
			struct hf_error *err)
{
	const struct hf_json *map;
	bool encoded;

	for (int place = 0; next_value(doc, place, &map, &encoded); place++)
		if (hf_json_get(map, key))
			return decode_value(hf_json_get(map, key), encoded, sb, err);
	return hf_error_set(err, HF_E_NOT_FOUND, "there is no key '%s'", key);
}

int hf_kubelet_data_each(struct hf_doc *doc, hf_kubelet_data_fn fn, void *arg, struct hf_error *err)
{
	const struct hf_json *map;
	bool encoded;

	for (int place = 0; next_value(doc, place, &map, &encoded); place++) {
		const char *key;
		struct hf_json *value;

		for (void *it = NULL; (it = hf_json_next(map, it, &key, &value));) {
			HF_AUTO_STRBUF bytes = HF_STRBUF_INIT(VALUE_BYTES_MAX);
			int rc = decode_value(value, encoded, &bytes, err);

			if (rc)
				return hf_error_wrap(err, "key '%s'", key);
			rc = fn(arg, key, &bytes, err);
			if (rc)
				return rc;
		}
	}
	return 0;
}
