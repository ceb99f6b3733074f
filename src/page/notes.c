/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "page/notes.h"

#include "base/mem.h"
#include "base/str.h"
#include "page/json_out.h"

#include <stdlib.h>
#include <string.h>

struct note {
	char *uid, *reason, *message;
	bool warning;
	int64_t count;
	hf_time at;
};

struct hf_page_notes {
	struct note ring[HF_PAGE_NOTES_MAX];
	size_t at, len; /* where the next note goes; how many there are */
};

struct hf_page_notes *hf_page_notes_create(void)
{
	return hf_xcalloc(1, sizeof(struct hf_page_notes));
}

static void clear_note(struct note *note)
{
	free(note->uid);
	free(note->reason);
	free(note->message);
	*note = (struct note){.uid = NULL};
}

struct hf_page_notes *hf_page_notes_destroy(struct hf_page_notes *notes)
{
	if (notes == NULL)
		return NULL;
	for (size_t i = 0; i < HF_PAGE_NOTES_MAX; i++)
		clear_note(&notes->ring[i]);
	free(notes);
	return NULL;
}

/* The i-th newest note. */
static struct note *find_newest(const struct hf_page_notes *notes, size_t i)
{
	size_t at = (notes->at + HF_PAGE_NOTES_MAX - 1 - i) % HF_PAGE_NOTES_MAX;

	return (struct note *)(uintptr_t)&notes->ring[at];
}

void hf_page_notes_add(struct hf_page_notes *notes, const struct hf_event_note *note, hf_time now)
{
	const char *message = hf_str_or(note->message, "");
	HF_AUTOFREE char *cut = hf_xstrndup(message, hf_utf8_cut(message, HF_PAGE_NOTE_TEXT));
	struct note *known = notes->len == 0 ? NULL : find_newest(notes, 0);

	if (hf_str_is_empty(note->uid))
		return;
	if (known != NULL && hf_streq(known->uid, note->uid) &&
	    hf_streq(known->reason, hf_str_or(note->reason, "")) && hf_streq(known->message, cut)) {
		known->count++;
		known->at = now;
		return;
	}
	clear_note(&notes->ring[notes->at]);
	notes->ring[notes->at] = (struct note){.uid = hf_xstrdup(note->uid),
					       .reason = hf_xstrdup(hf_str_or(note->reason, "")),
					       .message = hf_steal(&cut),
					       .warning = hf_streq(note->type, "Warning"),
					       .count = 1,
					       .at = now};
	notes->at = (notes->at + 1) % HF_PAGE_NOTES_MAX;
	notes->len += notes->len < HF_PAGE_NOTES_MAX;
}

void hf_page_notes_write(const struct hf_page_notes *notes, const char *uid, struct hf_json *object)
{
	struct hf_json *list = hf_json_ensure_array(object, "events");

	for (size_t i = 0; i < notes->len && hf_json_len(list) < HF_PAGE_NOTES_SHOWN; i++) {
		const struct note *note = find_newest(notes, i);
		struct hf_json *item;

		if (!hf_streq(note->uid, uid))
			continue;
		item = hf_json_object();
		hf_page_set_time(item, "at", note->at);
		hf_json_set_str(item, "type", note->warning ? "Warning" : "Normal");
		hf_json_set_str(item, "reason", note->reason);
		hf_json_set_str(item, "message", note->message);
		hf_json_set_i64(item, "count", note->count);
		hf_json_append(list, item);
	}
}
