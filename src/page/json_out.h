/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_JSON_OUT_H
#define HF_PAGE_JSON_OUT_H

#include "base/time.h"
#include "json/json.h"

HF_BEGIN_DECLS

/* Members of the page's JSON. An unknown value is null, never absent. */

void hf_page_set_text(struct hf_json *object, const char *key, const char *text); /* NULL: null */
void hf_page_set_time(struct hf_json *object, const char *key, hf_time time);     /* NONE: null */
/* A negative count or number is unknown. */
void hf_page_set_count(struct hf_json *object, const char *key, int64_t count);
void hf_page_set_number(struct hf_json *object, const char *key, double number);
void hf_page_set_seconds(struct hf_json *object, const char *key, hf_time span); /* NONE: null */
/* Adds 1 to the count under this key. */
void hf_page_count_up(struct hf_json *counts, const char *key);
/* Reads a time of a document; HF_TIME_NONE: absent or malformed. */
hf_time hf_page_time_of(const struct hf_json *object, const char *key);

HF_END_DECLS

#endif
