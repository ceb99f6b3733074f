/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "health/process_line.h"

#include <stdio.h>
#include <string.h>

/* A line, and the line that parsing and formatting it gives; NULL: the line is refused. */
struct line_case {
	const char *text, *again;
};

static const struct line_case states[] = {
	{"state phase=waiting", "state phase=waiting"},
	{"state phase=running ordinal=1\n", "state phase=running ordinal=1"},
	{"state phase=ended generation=1 attempt=0 ordinal=2 code=220 signal=9 cause=device-fatal step=120 saved=100 save_ms=2500 words=exit code 1: a=b",
	 "state phase=ended generation=1 attempt=0 ordinal=2 code=220 signal=9 cause=device-fatal step=120 saved=100 save_ms=2500 words=exit code 1: a=b"},
	{"state ordinal=3 attempt=7 generation=2 phase=down",
	 "state phase=down generation=2 attempt=7 ordinal=3"},
	{"state phase=ended ordinal=1 ended_ms=1500 signal=9",
	 "state phase=ended ordinal=1 signal=9 ended_ms=1500"},
	{"state phase=running ordinal=1 step=0", "state phase=running ordinal=1 step=0"},
	{"state phase=running ordinal=1 colour=red x=", "state phase=running ordinal=1"},
	{"state phase=ended ordinal=1 words=phase=down",
	 "state phase=ended ordinal=1 words=phase=down"},
	{"state phase=ended ordinal=1 words=\xc3\xa4",
	 "state phase=ended ordinal=1 words=\xc3\xa4"},
	{"state phase=ended ordinal=1 words=", "state phase=ended ordinal=1"},
	/* Form. */
	{"", NULL},
	{"state", NULL},
	{"state ", NULL},
	{"states phase=waiting", NULL},
	{"target phase=waiting", NULL},
	{"state  phase=waiting", NULL},
	{"state phase=waiting ", NULL},
	{"state phase=waiting\n\n", NULL},
	{"state phase", NULL},
	{"state phase waiting=1", NULL},
	{"state phase=waiting =1", NULL},
	{"state phase=waiting phase=waiting", NULL},
	{"state phase=waiting averyveryveryverylongkeyword=1", NULL},
	/* A wrong value voids the line. */
	{"state phase=up ordinal=1", NULL},
	{"state phase=", NULL},
	{"state phase=running", NULL},
	{"state phase=down ordinal=0", NULL},
	{"state phase=running ordinal=1 generation=1", NULL},
	{"state phase=running ordinal=1 attempt=1", NULL},
	{"state phase=running ordinal=1 generation=-1 attempt=0", NULL},
	{"state phase=running ordinal=1 generation=1000000000 attempt=0",
	 "state phase=running generation=1000000000 attempt=0 ordinal=1"},
	{"state phase=running ordinal=1 generation=1000000001 attempt=0", NULL},
	{"state phase=running ordinal=1000000001", NULL},
	{"state phase=ended ordinal=1 code=256", NULL},
	{"state phase=ended ordinal=1 code=1x", NULL},
	{"state phase=ended ordinal=1 signal=65", NULL},
	{"state phase=ended ordinal=1 ended_ms=86400000",
	 "state phase=ended ordinal=1 ended_ms=86400000"},
	{"state phase=ended ordinal=1 ended_ms=86400001", NULL},
	{"state phase=ended ordinal=1 cause=a_b", NULL},
	{"state phase=ended ordinal=1 cause=", NULL},
	{"state phase=ended ordinal=1 cause=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL},
	{"state phase=running ordinal=1 step=1234567890123456789", NULL},
	{"state phase=ended ordinal=1 words=a\tb", NULL},
	{"state phase=ended ordinal=1 words=\x1b[2J", NULL},
	{"state phase=ended ordinal=1 words=\xc2\x9b", NULL},
	{"state phase=ended ordinal=1 words=\xff", NULL},
};

static const struct line_case targets[] = {
	{"target", "target"},
	{"target\n", "target"},
	{"target generation=2 attempt=0 hold=1 wait=60 grace=30 save=120 first_generation=1 first_attempt=3 rendezvous=2",
	 "target generation=2 attempt=0 hold=1 wait=60 grace=30 save=120 first_generation=1 first_attempt=3 rendezvous=2"},
	{"target hold=0 wait=0 grace=0 save=0", "target"},
	{"target later=1 wait=5", "target wait=5"},
	{"target hold=2", NULL},
	{"target hold=", NULL},
	{"target wait=86401", NULL},
	{"target grace=-1", NULL},
	{"target save=1s", NULL},
	{"target generation=1", NULL},
	{"target first_attempt=1", NULL},
	{"target rendezvous=1000000001", NULL},
	{"target wait=1 wait=1", NULL},
	{"target wait=1  grace=1", NULL},
	{"state wait=1", NULL},
};

static void expect_line(const struct line_case *c, bool parsed, const char *again)
{
	if (parsed != (c->again != NULL) || (parsed && strcmp(again, c->again) != 0))
		fail_msg("'%s' gave %s", c->text, parsed ? again : "nothing");
}

static void test_states(void **state HF_UNUSED)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(states); i++) {
		char again[HF_PROCESS_LINE_BYTES_MAX] = "";
		struct hf_process_state read;
		bool parsed = hf_process_state_parse(states[i].text, strlen(states[i].text), &read);

		if (parsed)
			(void)hf_process_state_format(&read, again);
		expect_line(&states[i], parsed, again);
	}
}

static void test_targets(void **state HF_UNUSED)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(targets); i++) {
		char again[HF_PROCESS_LINE_BYTES_MAX] = "";
		struct hf_process_target read;
		bool parsed =
			hf_process_target_parse(targets[i].text, strlen(targets[i].text), &read);

		if (parsed)
			(void)hf_process_target_format(&read, again);
		expect_line(&targets[i], parsed, again);
	}
}

/* The longest values of all keys fit into one line. */
static void test_longest(void **state HF_UNUSED)
{
	struct hf_process_state most = {.phase = HF_PROCESS_LINE_WAITING,
					.start = {true, 1000000000, 1000000000},
					.ordinal = 1000000000,
					.code = 255,
					.signal = 64,
					.has_step = true,
					.step = 999999999999999999,
					.has_saved = true,
					.saved = 999999999999999999};
	struct hf_process_state read;
	char text[HF_PROCESS_LINE_BYTES_MAX], again[HF_PROCESS_LINE_BYTES_MAX];
	size_t len;

	memset(most.cause, 'c', sizeof(most.cause) - 1);
	memset(most.words, 'w', sizeof(most.words) - 1);
	len = hf_process_state_format(&most, text);
	assert_true(hf_process_state_parse(text, len, &read));
	assert_int_equal(hf_process_state_format(&read, again), len);
	assert_memory_equal(again, text, len);
	/* One byte more of words. */
	text[len++] = 'w';
	assert_false(hf_process_state_parse(text, len, &read));
}

static void test_hostile_lengths(void **state HF_UNUSED)
{
	char text[2 * HF_PROCESS_LINE_BYTES_MAX] = "target";
	struct hf_process_target read;
	size_t len = strlen(text);

	for (int i = 0; i < HF_PROCESS_KEYS_MAX + 1; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, " k%d=1", i);
	assert_false(hf_process_target_parse(text, len, &read));
	assert_true(hf_process_target_parse(text, len - strlen(" k32=1"), &read));
	memset(text, ' ', sizeof(text));
	assert_false(hf_process_target_parse(text, sizeof(text), &read));
	assert_false(hf_process_target_parse("target\0", 7, &read));
	assert_false(hf_process_target_parse("\n", 1, &read));
}

static void test_order(void **state HF_UNUSED)
{
	const struct hf_process_start none = {0}, old = {true, 1, 9}, new = {true, 2, 0},
				      newer = {true, 2, 1};

	assert_true(hf_process_start_order(&none, &none) == 0);
	assert_true(hf_process_start_order(&none, &old) < 0);
	assert_true(hf_process_start_order(&old, &none) > 0);
	assert_true(hf_process_start_order(&old, &new) < 0);
	assert_true(hf_process_start_order(&newer, &new) > 0);
	assert_true(hf_process_start_order(&newer, &newer) == 0);
}

static void expect_words(const char *text, const char *wanted)
{
	char words[HF_PROCESS_WORDS_MAX];

	hf_process_words(text, strlen(text), words);
	assert_string_equal(words, wanted);
}

static void test_notes(void **state HF_UNUSED)
{
	static const char *const bad[] = {
		"note",        "note words=",   "note words=a words=b\x01",
		"note rule=x", "notes words=a", "note words=a\nb"};
	char words[HF_PROCESS_WORDS_MAX], text[HF_PROCESS_LINE_BYTES_MAX];
	size_t len = hf_process_note_format("log rule 'loss': nan\tis bad", text);

	assert_string_equal(text, "note words=log rule 'loss': nan is bad");
	assert_true(hf_process_note_parse(text, len, words));
	assert_string_equal(words, "log rule 'loss': nan is bad");
	assert_true(hf_process_note_parse("note later=1 words=a b", 22, words));
	assert_string_equal(words, "a b");
	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++)
		assert_false(hf_process_note_parse(bad[i], strlen(bad[i]), words));
}

static void test_words(void **state HF_UNUSED)
{
	char longest[2 * HF_PROCESS_WORDS_MAX], words[HF_PROCESS_WORDS_MAX];

	expect_words("", "");
	expect_words("a\nb\n", "a b");
	expect_words("\x1b[1mx\xff\xc2\x9by", " [1mx  y");
	/* A text that is too long is cut where a character begins. */
	memset(longest, 'x', sizeof(longest));
	memcpy(longest + HF_PROCESS_WORDS_MAX - 2, "\xc3\xa4", 2);
	hf_process_words(longest, sizeof(longest), words);
	assert_int_equal(strlen(words), HF_PROCESS_WORDS_MAX - 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),  cmocka_unit_test(test_targets),
		cmocka_unit_test(test_longest), cmocka_unit_test(test_hostile_lengths),
		cmocka_unit_test(test_notes),   cmocka_unit_test(test_order),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
