/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Splits the JSON text of API responses without building trees: an event of a watch into type and
 * object, a list into its items and metadata, and one object into a document. */
#include "kube/json_split_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "json/fields.h"
#include "json/skip.h"

#include <stdlib.h>
#include <string.h>

/* Skips a value. The text of the value is [*ret_from, s->p). */
static bool read_span(struct hf_skip *s, const char **ret_from, size_t *ret_len)
{
	/* Skip blanks. */
	if (hf_skip_peek(s) == HF_JSON_ABSENT)
		return false;
	*ret_from = s->p;
	if (!hf_skip_value(s))
		return false;
	*ret_len = (size_t)(s->p - *ret_from);
	return true;
}

static bool key_is(const struct hf_skip_string *key, const char *text)
{
	return hf_skip_equals(key, text, strlen(text));
}

/* ---- an event of a watch ------------------------------------------------------------------- */

/* The reader stands at the first byte of the object, because hf_skip_peek has skipped the blanks
 * before it. */
static bool read_object(struct hf_skip *s, struct hf_kube_event_text *event)
{
	event->object = s->p;
	if (!hf_doc_skip(s, &event->marks))
		return false;
	event->object_len = (size_t)(s->p - event->object);
	return true;
}

int hf_kube_event_split(const char *line, size_t len, struct hf_kube_event_text *ret_event,
			struct hf_error *err)
{
	struct hf_kube_event_text event = {.object = NULL};
	struct hf_skip_string key;
	struct hf_skip s;
	enum hf_skip_next next;

	hf_skip_init(&s, line, len);
	if (hf_skip_peek(&s) != HF_JSON_OBJECT || !hf_skip_enter(&s))
		return hf_skip_error(&s, "no event", err);
	for (bool first = true, ok = true;
	     (next = hf_skip_next_key(&s, &first, &key)) == HF_SKIP_ENTRY;) {
		if (key_is(&key, "type") && hf_skip_peek(&s) == HF_JSON_STRING)
			ok = hf_skip_string(&s, &event.type);
		else if (key_is(&key, "object") && hf_skip_peek(&s) == HF_JSON_OBJECT)
			ok = read_object(&s, &event);
		else
			ok = hf_skip_value(&s);
		if (!ok)
			return hf_skip_error(&s, "not valid JSON", err);
	}
	if (next == HF_SKIP_BROKEN || !hf_skip_at_end(&s))
		return hf_skip_error(&s, "not valid JSON", err);
	if (event.type.bytes == NULL || event.object == NULL)
		return hf_error_set(err, HF_E_BAD_REQUEST, "an event without type or object");
	*ret_event = event;
	return 0;
}

/* ---- a list -------------------------------------------------------------------------------- */

struct list_metadata {
	uint64_t present;
	const char *resource_version, *continue_token;
	int64_t remaining;
};
enum { LIST_VERSION, LIST_CONTINUE, LIST_REMAINING };
static const struct hf_field list_fields[] = {
	[LIST_VERSION] =
		HF_FIELD_STRING("resourceVersion", struct list_metadata, resource_version, 0, 0),
	[LIST_CONTINUE] = HF_FIELD_STRING("continue", struct list_metadata, continue_token, 0, 0),
	[LIST_REMAINING] = HF_FIELD_INT64("remainingItemCount", struct list_metadata, remaining, 0,
					  INT64_MAX, 0),
};
static const struct hf_field_table list_table = HF_FIELD_TABLE(list_fields, struct list_metadata);

/* Bytes of the arena for a list's metadata, beside the bytes of the metadata itself. A version and
 * a continue token have some hundred bytes. */
#define METADATA_BYTES_MAX ((size_t)1 << 16)

static int read_metadata(struct hf_skip *s, struct hf_kube_list *list, struct hf_error *err)
{
	static const struct hf_fields_options lenient = {.lenient = true};
	HF_AUTO_ARENA arena = NULL;
	struct list_metadata metadata;
	struct hf_fields_text text;
	int rc;

	if (!read_span(s, &text.bytes, &text.len))
		return hf_skip_error(s, "not valid JSON", err);
	arena = hf_arena_create(METADATA_BYTES_MAX + text.len);
	rc = hf_fields_read_text(&list_table, &text, &lenient, arena, &metadata, err);
	if (rc < 0)
		return rc;
	free(list->resource_version);
	free(list->continue_token);
	list->resource_version = hf_xstrdup(hf_str_or(metadata.resource_version, ""));
	list->continue_token = hf_xstrdup(hf_str_or(metadata.continue_token, ""));
	list->remaining = metadata.remaining;
	if (!hf_field_has(metadata.present, LIST_REMAINING))
		list->remaining = list->continue_token[0] == '\0' ? 0 : -1;
	return 0;
}

/* Skips an item of a list. Tells whether the item has a field "kind", and whether it has no
 * fields. */
static bool walk_item(struct hf_skip *s, bool *ret_has_kind, bool *ret_empty)
{
	struct hf_skip_string key;
	enum hf_skip_next next;

	*ret_has_kind = false;
	*ret_empty = true;
	if (hf_skip_peek(s) != HF_JSON_OBJECT || !hf_skip_enter(s))
		return false;
	for (bool first = true; (next = hf_skip_next_key(s, &first, &key)) == HF_SKIP_ENTRY;) {
		*ret_empty = false;
		*ret_has_kind = *ret_has_kind || key_is(&key, "kind");
		if (!hf_skip_value(s))
			return false;
	}
	return next == HF_SKIP_END;
}

/* Makes a document of an item of a list. Lists of built-in kinds have items without apiVersion and
 * kind, which are added here. */
static struct hf_doc *item_doc(const char *text, size_t len, bool empty,
			       const struct hf_resource *resource)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(len + HF_API_VERSION_MAX + 256);
	char buf[HF_API_VERSION_MAX];

	hf_strbuf_addf(&sb, "{\"kind\":\"%s\",\"apiVersion\":\"%s\"%s", resource->kind,
		       hf_resource_api_version(resource, buf), empty ? "" : ",");
	hf_strbuf_add(&sb, text + 1, len - 1);
	hf_assert(!sb.full);
	return hf_doc_from_text(sb.data, sb.len);
}

static int read_items(struct hf_skip *s, const struct hf_resource *resource,
		      struct hf_kube_list *list, struct hf_error *err)
{
	bool has_kind, empty;
	enum hf_skip_next next;

	/* Accept null in place of the list of items: some servers send it for an empty list. */
	if (hf_skip_peek(s) == HF_JSON_NULL && hf_skip_value(s))
		return 0;
	if (hf_skip_peek(s) != HF_JSON_ARRAY || !hf_skip_enter(s))
		return hf_skip_error(s, "items is no array", err);
	for (bool first = true; (next = hf_skip_next_item(s, &first)) == HF_SKIP_ENTRY;) {
		/* Skip blanks. */
		(void)hf_skip_peek(s);
		const char *from = s->p;
		if (!walk_item(s, &has_kind, &empty))
			return hf_skip_error(s, "an item is no object", err);
		size_t len = (size_t)(s->p - from);
		bool pushed = HF_VEC_PUSH(list, has_kind ? hf_doc_from_text(from, len)
							 : item_doc(from, len, empty, resource));
		hf_assert(pushed);
	}
	return next == HF_SKIP_END ? 0 : hf_skip_error(s, "not valid JSON", err);
}

int hf_kube_list_read(const char *body, size_t len, const struct hf_resource *resource,
		      struct hf_kube_list *ret_list, struct hf_error *err)
{
	struct hf_kube_list list = {.remaining = 0, .len_max = len + 1};
	struct hf_skip_string key;
	enum hf_skip_next next = HF_SKIP_BROKEN;
	struct hf_skip s;
	int rc = 0;

	list.resource_version = hf_xstrdup("");
	list.continue_token = hf_xstrdup("");
	hf_skip_init(&s, body, len);
	if (hf_skip_peek(&s) != HF_JSON_OBJECT || !hf_skip_enter(&s))
		rc = hf_skip_error(&s, "no list", err);
	for (bool first = true;
	     rc == 0 && (next = hf_skip_next_key(&s, &first, &key)) == HF_SKIP_ENTRY;) {
		if (key_is(&key, "metadata"))
			rc = read_metadata(&s, &list, err);
		else if (key_is(&key, "items"))
			rc = read_items(&s, resource, &list, err);
		else if (!hf_skip_value(&s))
			rc = hf_skip_error(&s, "not valid JSON", err);
	}
	if (rc == 0 && (next == HF_SKIP_BROKEN || !hf_skip_at_end(&s)))
		rc = hf_skip_error(&s, "not valid JSON", err);
	if (rc < 0) {
		hf_kube_list_release(&list);
		return rc;
	}
	*ret_list = list;
	return 0;
}

void hf_kube_list_release(struct hf_kube_list *list)
{
	for (size_t i = 0; i < list->len; i++)
		hf_doc_unref(list->items[i]);
	HF_VEC_RELEASE(list);
	free(list->resource_version);
	free(list->continue_token);
}

/* ---- an object ----------------------------------------------------------------------------- */

int hf_kube_object_read(const char *body, size_t len, struct hf_doc **ret_doc, struct hf_error *err)
{
	struct hf_skip s;

	hf_skip_init(&s, body, len);
	if (hf_skip_peek(&s) != HF_JSON_OBJECT || !hf_skip_value(&s) || !hf_skip_at_end(&s))
		return hf_skip_error(&s, "not a JSON object", err);
	*ret_doc = hf_doc_from_text(body, len);
	return 0;
}
