/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_WRITER_INTERNAL_H
#define HF_API_WRITER_INTERNAL_H

#include "base/str.h"
#include "base/time.h"
#include "json/json.h"

/* Set optional members of an object, which may be a copy of the stored one. A member without a
 * value is removed. */

static inline void hf_write_text(struct hf_json *object, const char *key, const char *text)
{
	if (hf_str_is_empty(text))
		hf_json_remove(object, key);
	else
		hf_json_set_str(object, key, text);
}

static inline void hf_write_micro_time(struct hf_json *object, const char *key, hf_time time)
{
	char text[HF_TIME_TEXT_MAX];

	if (time == HF_TIME_NONE) {
		hf_json_remove(object, key);
		return;
	}
	hf_time_format_micro(time, text);
	hf_json_set_str(object, key, text);
}

static inline void hf_write_count(struct hf_json *object, const char *key, int64_t count)
{
	if (count != 0)
		hf_json_set_i64(object, key, count);
	else
		hf_json_remove(object, key);
}

/* Help to keep the limits of a CRD's schema: how many items of a list to write, and a text cut at a
 * whole character. The schema counts characters, of which a text never has more than bytes. */

static inline size_t hf_at_most(size_t len, size_t len_max)
{
	return len < len_max ? len : len_max;
}

static inline struct hf_json *hf_write_cut(const char *text, size_t bytes_max)
{
	return hf_json_stringn(text, hf_utf8_cut(text, bytes_max));
}

/* Set a member of a merge patch: a text that is cut, or a time. Without a value the member becomes null,
 * which removes it from the stored object. */

static inline void hf_write_cut_or_null(struct hf_json *object, const char *key, const char *text,
					size_t bytes_max)
{
	hf_json_set(object, key,
		    hf_str_is_empty(text) ? hf_json_null() : hf_write_cut(text, bytes_max));
}

static inline void hf_write_time_or_null(struct hf_json *object, const char *key, hf_time time)
{
	if (time == HF_TIME_NONE)
		hf_json_set(object, key, hf_json_null());
	else
		hf_write_micro_time(object, key, time);
}

/* A merge patch of the status that the server refuses if the object has changed since this version. */
static inline struct hf_json *hf_write_guarded_status(const char *resource_version,
						      struct hf_json **ret_status)
{
	struct hf_json *patch = hf_json_object();

	hf_json_set_str(hf_json_ensure_object(patch, "metadata"), "resourceVersion",
			hf_str_or(resource_version, ""));
	*ret_status = hf_json_ensure_object(patch, "status");
	return patch;
}

#endif
