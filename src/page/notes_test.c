/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "page/notes.h"

#include "harness/test.h"

#include <stdio.h>
#include <string.h>

static void add(struct hf_page_notes *notes, const char *uid, const char *message, hf_time at)
{
	const struct hf_event_note note = {
		.uid = uid, .type = "Warning", .reason = "Restarting", .message = message};

	hf_page_notes_add(notes, &note, at);
}

static struct hf_json *write_notes(const struct hf_page_notes *notes, const char *uid)
{
	HF_AUTO_JSON object = hf_json_object();

	hf_page_notes_write(notes, uid, object);
	return hf_json_share(hf_json_get(object, "events"));
}

static void events_of_an_object_are_listed_the_newest_first(void **state)
{
	struct hf_page_notes *notes = hf_page_notes_create();
	HF_AUTO_JSON list = NULL;

	add(notes, "u1", "first", HF_SECOND);
	add(notes, "u2", "other", 2 * HF_SECOND);
	add(notes, "u1", "second", 3 * HF_SECOND);
	list = write_notes(notes, "u1");
	assert_int_equal(hf_json_len(list), 2);
	assert_string_equal(hf_json_path_str(hf_json_item(list, 0), "message", NULL), "second");
	assert_string_equal(hf_json_path_str(hf_json_item(list, 0), "at", NULL),
			    "1970-01-01T00:00:03.000Z");
	assert_string_equal(hf_json_path_str(hf_json_item(list, 1), "type", NULL), "Warning");
	hf_page_notes_destroy(notes);
}

static void the_same_event_again_raises_its_count(void **state)
{
	struct hf_page_notes *notes = hf_page_notes_create();
	HF_AUTO_JSON list = NULL;

	for (int i = 0; i < 3; i++)
		add(notes, "u1", "same", i * HF_SECOND);
	list = write_notes(notes, "u1");
	assert_int_equal(hf_json_len(list), 1);
	assert_int_equal(hf_json_i64(hf_json_get(hf_json_item(list, 0), "count"), 0), 3);
	hf_page_notes_destroy(notes);
}

static void old_events_give_way_and_long_messages_are_cut(void **state)
{
	struct hf_page_notes *notes = hf_page_notes_create();
	static char longer[2 * HF_PAGE_NOTE_TEXT];
	HF_AUTO_JSON gone = NULL;
	HF_AUTO_JSON list = NULL;
	char text[32];

	memset(longer, 'x', sizeof(longer) - 1);
	add(notes, "old", "old", 0);
	for (int i = 0; i < HF_PAGE_NOTES_MAX; i++) {
		snprintf(text, sizeof(text), "event %d", i);
		add(notes, "u1", text, i);
	}
	gone = write_notes(notes, "old");
	assert_int_equal(hf_json_len(gone), 0);
	add(notes, "u1", longer, 0);
	add(notes, NULL, "of no object", 0);
	list = write_notes(notes, "u1");
	assert_int_equal(hf_json_len(list), HF_PAGE_NOTES_SHOWN);
	assert_int_equal(strlen(hf_json_path_str(hf_json_item(list, 0), "message", NULL)),
			 HF_PAGE_NOTE_TEXT);
	hf_page_notes_destroy(notes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_of_an_object_are_listed_the_newest_first),
		cmocka_unit_test(the_same_event_again_raises_its_count),
		cmocka_unit_test(old_events_give_way_and_long_messages_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
