/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "page/ring.h"

#include "harness/test.h"

#include <stdio.h>
#include <string.h>

#define EPOCH 0x1234

static uint64_t add(struct hf_page_ring *ring, const char *text, uint64_t before)
{
	struct hf_page_text_ref *made = hf_page_text_make(text, strlen(text));
	const struct hf_page_delta delta = {.change = HF_PAGE_CHANGE_JOB,
					    .ns = "team-a",
					    .plural = "pytorchjobs",
					    .text = made};
	uint64_t number = hf_page_ring_add(ring, &delta, before);

	hf_page_text_unref(made);
	return number;
}

static void changes_are_kept_in_their_order(void **state)
{
	struct hf_page_ring *ring = hf_page_ring_create(EPOCH);

	assert_int_equal(hf_page_ring_newest(ring), 0);
	assert_int_equal(add(ring, "a", 0), 1);
	assert_int_equal(add(ring, "b", 0), 2);
	assert_string_equal(hf_page_ring_at(ring, 1)->text->bytes, "a");
	assert_string_equal(hf_page_ring_at(ring, 2)->text->bytes, "b");
	assert_string_equal(hf_page_ring_at(ring, 2)->ns, "team-a");
	assert_null(hf_page_ring_at(ring, 0));
	assert_null(hf_page_ring_at(ring, 3));
	hf_page_ring_destroy(ring);
}

static void a_newer_change_of_an_object_replaces_the_older(void **state)
{
	struct hf_page_ring *ring = hf_page_ring_create(EPOCH);
	uint64_t first = add(ring, "old", 0);
	uint64_t second = add(ring, "new", first);

	assert_null(hf_page_ring_at(ring, first)->text);
	assert_string_equal(hf_page_ring_at(ring, second)->text->bytes, "new");
	hf_page_ring_destroy(ring);
}

static void a_viewer_may_go_on_while_the_ring_has_all_later_changes(void **state)
{
	struct hf_page_ring *ring = hf_page_ring_create(EPOCH);

	for (int i = 0; i < HF_PAGE_RING_MAX + 10; i++)
		add(ring, "x", 0);
	assert_true(hf_page_ring_has_after(ring, HF_PAGE_RING_MAX + 10));
	assert_true(hf_page_ring_has_after(ring, 10));
	assert_false(hf_page_ring_has_after(ring, 9));
	assert_false(hf_page_ring_has_after(ring, HF_PAGE_RING_MAX + 11));
	assert_null(hf_page_ring_at(ring, 10));
	assert_non_null(hf_page_ring_at(ring, 11));
	hf_page_ring_destroy(ring);
}

static void the_text_is_shared_and_outlives_the_ring(void **state)
{
	struct hf_page_ring *ring = hf_page_ring_create(EPOCH);
	struct hf_page_text_ref *text;

	add(ring, "kept", 0);
	text = hf_page_text_ref(hf_page_ring_at(ring, 1)->text);
	hf_page_ring_destroy(ring);
	assert_string_equal(text->bytes, "kept");
	assert_int_equal(text->refs, 1);
	hf_page_text_unref(text);
}

static void a_version_is_recognized_by_the_process_that_made_it(void **state)
{
	struct hf_page_ring *ring = hf_page_ring_create(EPOCH);
	struct hf_page_ring *other = hf_page_ring_create(EPOCH + 1);
	char text[HF_PAGE_VERSION_MAX];
	uint64_t number;

	hf_page_ring_version(ring, 77, text);
	assert_true(hf_page_ring_parse(ring, text, &number));
	assert_int_equal(number, 77);
	assert_false(hf_page_ring_parse(other, text, &number));
	hf_page_ring_destroy(other);
	hf_page_ring_destroy(ring);
}

static void a_malformed_version_is_refused(void **state)
{
	struct hf_page_ring *ring = hf_page_ring_create(EPOCH);
	static const char *const bad[] = {"",
					  "1",
					  "-",
					  "0000000000001234-",
					  "0000000000001234-0x1",
					  "0000000000001234- 1",
					  "0000000000001234-01",
					  "0000000000001234-1x",
					  "0000000000001234-fffffffffffffffff"};
	uint64_t number;

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++)
		assert_false(hf_page_ring_parse(ring, bad[i], &number));
	hf_page_ring_destroy(ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_are_kept_in_their_order),
		cmocka_unit_test(a_newer_change_of_an_object_replaces_the_older),
		cmocka_unit_test(a_viewer_may_go_on_while_the_ring_has_all_later_changes),
		cmocka_unit_test(the_text_is_shared_and_outlives_the_ring),
		cmocka_unit_test(a_version_is_recognized_by_the_process_that_made_it),
		cmocka_unit_test(a_malformed_version_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
