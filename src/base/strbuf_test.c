/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/strbuf.h"

#include "harness/promise.h"
#include "harness/random.h"

#include "base/str.h"

#include <stdint.h>
#include <string.h>

static void a_new_buffer_is_an_empty_string_without_memory(void **state)
{
	HF_AUTO_STRBUF a = HF_STRBUF_INIT(10);
	struct hf_strbuf b;

	hf_strbuf_init(&b, 10);
	assert_string_equal(a.data, "");
	assert_string_equal(b.data, "");
	assert_int_equal(a.cap, 0);
	hf_strbuf_add(&a, "x", 0);
	hf_strbuf_addstr(&a, "");
	hf_strbuf_addf(&a, "%s", "");
	hf_strbuf_clear(&a);
	hf_strbuf_truncate(&a, 0);
	hf_strbuf_consume(&a, 0);
	assert_int_equal(a.cap, 0);
	hf_strbuf_release(&b);
}

static void a_buffer_may_be_initialized_before_main(void **state)
{
	static struct hf_strbuf sb = HF_STRBUF_INIT(10);

	assert_string_equal(sb.data, "");
	hf_strbuf_addch(&sb, 'x');
	assert_string_equal(sb.data, "x");
	hf_strbuf_release(&sb);
}

static void adders_add_behind_each_other(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1000);

	hf_strbuf_addstr(&sb, "one");
	hf_strbuf_addch(&sb, ' ');
	hf_strbuf_add(&sb, "two", 3);
	hf_strbuf_addf(&sb, " %d%c", 3, '!');
	assert_string_equal(sb.data, "one two 3!");
	assert_int_equal(sb.len, 10);
	assert_ok(hf_strbuf_ok(&sb, "text", NULL), &(struct hf_error){.text = ""});
}

static void bytes_may_be_nul(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(100);

	hf_strbuf_add(&sb, "a\0b", 3);
	hf_strbuf_addch(&sb, '\0');
	assert_int_equal(sb.len, 4);
	assert_memory_equal(sb.data, "a\0b\0", 5);
}

static void bytes_that_do_not_fit_are_cut_and_reported_at_the_end(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(8);
	struct hf_error err;

	hf_strbuf_addstr(&sb, "12345");
	hf_strbuf_addstr(&sb, "6789");
	assert_string_equal(sb.data, "12345678");
	assert_true(sb.full);
	assert_code(hf_strbuf_ok(&sb, "the answer", &err), HF_E_TOO_LARGE);
	assert_string_equal(err.text, "the answer is larger than 8 bytes");
}

static void nothing_is_added_behind_a_gap(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(8);

	hf_strbuf_addstr(&sb, "123456789");
	hf_strbuf_truncate(&sb, 2);
	hf_strbuf_addch(&sb, 'x');
	hf_strbuf_addf(&sb, "%d", 7);
	assert_string_equal(sb.data, "12");
	hf_strbuf_clear(&sb);
	hf_strbuf_addch(&sb, 'y');
	assert_string_equal(sb.data, "y");
	assert_false(sb.full);
}

static void exactly_the_maximum_fits(void **state)
{
	HF_AUTO_STRBUF add = HF_STRBUF_INIT(70);
	HF_AUTO_STRBUF addf = HF_STRBUF_INIT(70);
	HF_AUTO_STRBUF none = HF_STRBUF_INIT(0);

	for (int i = 0; i < 70; i++)
		hf_strbuf_addch(&add, 'x');
	assert_false(add.full);
	hf_strbuf_addf(&addf, "%70s", "x");
	assert_false(addf.full);
	assert_int_equal(addf.len, 70);
	hf_strbuf_addf(&addf, "%s", "y");
	assert_true(addf.full);
	assert_int_equal(strlen(addf.data), 70);
	hf_strbuf_addch(&none, 'x');
	assert_true(none.full);
	assert_string_equal(none.data, "");
}

static void a_formatted_text_is_cut_at_the_maximum(void **state)
{
	for (size_t max = 0; max < 200; max++) {
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(max);

		hf_strbuf_addstr(&sb, "ab");
		hf_strbuf_addf(&sb, "%0100d|%s", 5, "tail");
		assert_int_equal(sb.len, max < 107 ? max : 107);
		assert_int_equal(strlen(sb.data), sb.len);
		assert_int_equal(sb.full, max < 107);
		assert_true(sb.cap <= max + 1);
	}
}

static void consume_drops_the_front(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(100);

	hf_strbuf_addstr(&sb, "line one\nline two\n");
	hf_strbuf_consume(&sb, 9);
	assert_string_equal(sb.data, "line two\n");
	hf_strbuf_consume(&sb, 9);
	assert_string_equal(sb.data, "");
	assert_int_equal(sb.len, 0);
}

static void consuming_more_than_the_content_is_a_broken_promise(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(100);

	hf_strbuf_addstr(&sb, "abc");
	expect_broken_promise(hf_strbuf_consume(&sb, 4));
	expect_broken_promise(hf_strbuf_truncate(&sb, 4));
	assert_string_equal(sb.data, "abc");
}

static void reserve_gives_room_to_write_in_place(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1000);
	char *room;

	hf_strbuf_addstr(&sb, "a");
	room = hf_strbuf_reserve(&sb, 500);
	assert_non_null(room);
	assert_string_equal(sb.data, "a");
	memset(room, 'b', 500);
	hf_strbuf_grew(&sb, 3);
	assert_string_equal(sb.data, "abbb");
	hf_strbuf_grew(&sb, 0);
	assert_int_equal(sb.len, 4);
}

static void reserve_stops_at_the_maximum(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(10);

	hf_strbuf_addstr(&sb, "abc");
	assert_null(hf_strbuf_reserve(&sb, 8));
	assert_null(hf_strbuf_reserve(&sb, SIZE_MAX));
	assert_false(sb.full);
	assert_non_null(hf_strbuf_reserve(&sb, 7));
	memcpy(sb.data + 3, "defghij", 7);
	hf_strbuf_grew(&sb, 7);
	assert_string_equal(sb.data, "abcdefghij");
	assert_non_null(hf_strbuf_reserve(&sb, 0));
}

static void growing_beyond_the_reserved_room_is_a_broken_promise(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(10);

	expect_broken_promise(hf_strbuf_grew(&sb, 1));
	assert_non_null(hf_strbuf_reserve(&sb, 10));
	expect_broken_promise(hf_strbuf_grew(&sb, 11));
	expect_broken_promise(hf_strbuf_grew(&sb, SIZE_MAX));
}

static void detach_hands_the_string_over(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(10);
	HF_AUTOFREE char *first = NULL;
	HF_AUTOFREE char *second = NULL;

	hf_strbuf_addstr(&sb, "mine");
	first = hf_strbuf_detach(&sb);
	assert_string_equal(first, "mine");
	assert_string_equal(sb.data, "");
	/* An empty buffer also returns memory that must be freed. */
	second = hf_strbuf_detach(&sb);
	assert_string_equal(second, "");
	hf_strbuf_addstr(&sb, "again");
	assert_string_equal(sb.data, "again");
	assert_int_equal(sb.bytes_max, 10);
}

static void a_released_buffer_may_be_used_again(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(3);

	hf_strbuf_addstr(&sb, "abcd");
	hf_strbuf_release(&sb);
	assert_false(sb.full);
	assert_string_equal(sb.data, "");
	hf_strbuf_addstr(&sb, "xyz");
	assert_string_equal(sb.data, "xyz");
}

static void clear_keeps_the_memory(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1000);
	const char *data;

	hf_strbuf_addf(&sb, "%500s", "x");
	data = sb.data;
	hf_strbuf_clear(&sb);
	hf_strbuf_addf(&sb, "%500s", "x");
	assert_ptr_equal(sb.data, data);
}

static void memory_doubles_up_to_the_maximum(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1000);
	size_t grown = 0;

	for (size_t i = 0, cap = 0; i < 1000; i++) {
		hf_strbuf_addch(&sb, 'x');
		grown += sb.cap != cap;
		cap = sb.cap;
	}
	assert_int_equal(sb.cap, 1001);
	assert_in_range(grown, 2, 6);
}

static void a_maximum_without_end_is_possible(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(SIZE_MAX);

	hf_strbuf_addf(&sb, "%1000s", "x");
	assert_int_equal(sb.len, 1000);
	assert_false(sb.full);
}

/* The content that the buffer under test should have. */
struct model {
	char bytes[400];
	size_t len;
	bool full;
};

static void model_add(struct model *m, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len && !m->full; i++) {
		if (m->len == sizeof(m->bytes))
			m->full = true;
		else
			m->bytes[m->len++] = bytes[i];
	}
}

static void a_buffer_behaves_as_a_plain_array_does(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(sizeof(((struct model *)0)->bytes));
	struct model m = {.len = 0};
	uint64_t seed = 2;

	for (int step = 0; step < 30000; step++) {
		char text[64];
		size_t n = test_random_below(&seed, sizeof(text) - 1);

		memset(text, (int)('a' + test_random_below(&seed, 26)), n);
		text[n] = '\0';
		switch (test_random_below(&seed, 8)) {
		case 0:
			n = test_random_below(&seed, m.len + 1);
			hf_strbuf_consume(&sb, n);
			memmove(m.bytes, m.bytes + n, m.len - n);
			m.len -= n;
			break;
		case 1:
			m.len = test_random_below(&seed, m.len + 1);
			hf_strbuf_truncate(&sb, m.len);
			break;
		case 2:
			hf_strbuf_clear(&sb);
			m = (struct model){.len = 0};
			break;
		case 3:
			hf_strbuf_addf(&sb, "<%s>", text);
			model_add(&m, "<", 1);
			model_add(&m, text, n);
			model_add(&m, ">", 1);
			break;
		default:
			hf_strbuf_add(&sb, text, n);
			model_add(&m, text, n);
			break;
		}
		assert_int_equal(sb.len, m.len);
		assert_int_equal(sb.full, m.full);
		assert_memory_equal(sb.data, m.bytes, m.len);
		assert_int_equal(sb.data[sb.len], '\0');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_buffer_is_an_empty_string_without_memory),
		cmocka_unit_test(a_buffer_may_be_initialized_before_main),
		cmocka_unit_test(adders_add_behind_each_other),
		cmocka_unit_test(bytes_may_be_nul),
		cmocka_unit_test(bytes_that_do_not_fit_are_cut_and_reported_at_the_end),
		cmocka_unit_test(nothing_is_added_behind_a_gap),
		cmocka_unit_test(exactly_the_maximum_fits),
		cmocka_unit_test(a_formatted_text_is_cut_at_the_maximum),
		cmocka_unit_test(consume_drops_the_front),
		cmocka_unit_test(consuming_more_than_the_content_is_a_broken_promise),
		cmocka_unit_test(reserve_gives_room_to_write_in_place),
		cmocka_unit_test(reserve_stops_at_the_maximum),
		cmocka_unit_test(growing_beyond_the_reserved_room_is_a_broken_promise),
		cmocka_unit_test(detach_hands_the_string_over),
		cmocka_unit_test(a_released_buffer_may_be_used_again),
		cmocka_unit_test(clear_keeps_the_memory),
		cmocka_unit_test(memory_doubles_up_to_the_maximum),
		cmocka_unit_test(a_maximum_without_end_is_possible),
		cmocka_unit_test(a_buffer_behaves_as_a_plain_array_does),
	};

	return cmocka_run_group_tests(tests, promise_setup, NULL);
}
