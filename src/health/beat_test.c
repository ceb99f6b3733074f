/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "health/beat.h"

#include <stdio.h>
#include <string.h>

static bool parse(const char *text, struct hf_beat *ret_beat)
{
	return hf_beat_parse(text, strlen(text), ret_beat);
}

/* A report, and the text that parsing and formatting it gives; NULL: the report is refused. */
static const struct {
	const char *text, *again;
} cases[] = {
	{"holdfast/1", "holdfast/1"},
	{"holdfast/1\n", "holdfast/1"},
	{"holdfast/1 step=120 total=200 own_us=31000 wait_us=1200 loss=0.0972 phase=training rank=3",
	 "holdfast/1 step=120 total=200 own_us=31000 wait_us=1200 loss=0.0972 rank=3"},
	{"holdfast/1 attempt=77", "holdfast/1 attempt=77"},
	{"holdfast/1 phase=other step=7", "holdfast/1 step=7 phase=other"},
	{"holdfast/1 group=Worker.tp-0", "holdfast/1 group=Worker.tp-0"},
	{"holdfast/1 step=0 own_us=0", "holdfast/1 step=0 own_us=0"},
	{"holdfast/1 rank=0", "holdfast/1 rank=0"},
	{"holdfast/1 saved=0 can_save=1", "holdfast/1 can_save=1 saved=0"},
	{"holdfast/1 can_save=0 saved=x", "holdfast/1"},
	{"holdfast/1 can_save=2", "holdfast/1"},
	/* Keys of a later version are skipped. */
	{"holdfast/1 colour=red step=1 x=y=z", "holdfast/1 step=1"},
	/* Losses as programs print them. */
	{"holdfast/1 loss=nan", "holdfast/1 loss=nan"},
	{"holdfast/1 loss=-inf", "holdfast/1 loss=-inf"},
	{"holdfast/1 loss=1.5e-07", "holdfast/1 loss=1.5e-07"},
	{"holdfast/1 loss=-2.2250738585072014e-308", "holdfast/1 loss=-2.2250738585072014e-308"},
	{"holdfast/1 loss=.5", "holdfast/1 loss=.5"},
	{"holdfast/1 loss=2.2250738585072014e-30890", "holdfast/1"},
	{"holdfast/1 loss=.", "holdfast/1"},
	{"holdfast/1 loss=1.2.3", "holdfast/1"},
	{"holdfast/1 loss=1e", "holdfast/1"},
	{"holdfast/1 loss=0x10", "holdfast/1"},
	{"holdfast/1 loss=nano", "holdfast/1"},
	{"holdfast/1 loss=\033[2J", NULL},
	/* Another version, another protocol. */
	{"", NULL},
	{"holdfast/2 step=1", NULL},
	{"holdfast/10", NULL},
	{"holdfast", NULL},
	{"GET / HTTP/1.1", NULL},
	/* Form. */
	{"holdfast/1 ", NULL},
	{"holdfast/1  step=1", NULL},
	{"holdfast/1\tstep=1", NULL},
	{"holdfast/1 step=1\n\n", NULL},
	{"holdfast/1 step", NULL},
	{"holdfast/1 step=", "holdfast/1"},
	{"holdfast/1 =1", NULL},
	{"holdfast/1 step=1 step=1", NULL},
	{"holdfast/1 averyveryverylongkey=1", NULL},
	/* A wrong value is left out, together with the values that depend on it. */
	{"holdfast/1 step=5 own_us=-10 wait_us=3000 rank=2",
	 "holdfast/1 step=5 wait_us=3000 rank=2"},
	{"holdfast/1 step=5 total=inf loss=n/a", "holdfast/1 step=5"},
	{"holdfast/1 step=5 own_us=7 group=tp:0 rank=1", "holdfast/1 step=5 rank=1"},
	{"holdfast/1 group=tp:0 own_us=7 step=5", "holdfast/1 step=5"},
	{"holdfast/1 step=5 attempt=first", "holdfast/1 step=5"},
	{"holdfast/1 step=5 rank=", NULL},
	{"holdfast/1 step=5 fence_s=", NULL},
	{"holdfast/1 step=x step=5", NULL},
	{"holdfast/1 step=-1", "holdfast/1"},
	{"holdfast/1 step=1.0", "holdfast/1"},
	{"holdfast/1 step=999999999999999999", "holdfast/1 step=999999999999999999"},
	{"holdfast/1 step=1999999999999999999", "holdfast/1"},
	{"holdfast/1 own_us=1000000000000000", "holdfast/1"},
	{"holdfast/1 rank=-1", NULL},
	{"holdfast/1 rank=20000", NULL},
	{"holdfast/1 rank=19999", "holdfast/1 rank=19999"},
	{"holdfast/1 fence_s=50", "holdfast/1 fence_s=50"},
	{"holdfast/1 fence_s=86400", "holdfast/1 fence_s=86400"},
	{"holdfast/1 fence_s=86401", NULL},
	{"holdfast/1 fence_s=0", NULL},
	{"holdfast/1 fence_s=-5", NULL},
	{"holdfast/1 fence_s=50 fence_s=50", NULL},
	{"holdfast/1 phase=", "holdfast/1 phase=other"},
	{"holdfast/1 phase=trainings", "holdfast/1 phase=other"},
	{"holdfast/1 group=a/b", "holdfast/1"},
	{"holdfast/1 group=a23456789012345678901234567890123", "holdfast/1"},
};

static void each_text_is_taken_or_refused_as_a_whole(void **state)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_beat beat;
		char again[HF_BEAT_BYTES_MAX];
		size_t len;
		bool taken = parse(cases[i].text, &beat);

		if (taken != (cases[i].again != NULL))
			fail_msg("'%s' was %s", cases[i].text, taken ? "taken" : "refused");
		if (!taken)
			continue;
		len = hf_beat_format(&beat, again);
		assert_int_equal(len, strlen(again));
		assert_string_equal(again, cases[i].again);
	}
}

static void a_refused_one_leaves_what_was_there(void **state)
{
	struct hf_beat beat = {.step = 42};

	assert_false(parse("holdfast/1 step=1 rank=x", &beat));
	assert_int_equal(beat.step, 42);
}

static void what_is_not_said_is_told_apart_from_zero(void **state)
{
	struct hf_beat beat;

	assert_true(parse("holdfast/1", &beat));
	assert_false(beat.has_step);
	assert_false(beat.has_own);
	assert_int_equal(beat.rank, -1);
	assert_int_equal(beat.phase, HF_HEALTH_TRAINING);
	assert_true(parse("holdfast/1 step=0 own_us=0", &beat));
	assert_true(beat.has_step);
	assert_true(beat.has_own);
}

static void no_byte_behind_the_length_is_read(void **state)
{
	char bytes[] = {'h', 'o', 'l', 'd', 'f', 'a', 's', 't', '/', '1', '7'};
	struct hf_beat beat;

	assert_true(hf_beat_parse(bytes, sizeof(bytes) - 1, &beat));
	assert_false(hf_beat_parse(bytes, sizeof(bytes), &beat));
	assert_false(hf_beat_parse("holdfast/1\0", 11, &beat));
}

static void bytes_and_keys_are_bounded(void **state)
{
	char text[HF_BEAT_BYTES_MAX + 16];
	struct hf_beat beat;
	size_t len = (size_t)snprintf(text, sizeof(text), "%s", HF_BEAT_VERSION);

	for (int i = 0; i < HF_BEAT_KEYS_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, " k%d=v", i);
	assert_true(hf_beat_parse(text, len, &beat));
	len += (size_t)snprintf(text + len, sizeof(text) - len, " k=v");
	assert_false(hf_beat_parse(text, len, &beat));
	memset(text, 'a', sizeof(text));
	len = (size_t)snprintf(text, sizeof(text), "%s x=", HF_BEAT_VERSION);
	text[len] = 'a';
	assert_true(hf_beat_parse(text, HF_BEAT_BYTES_MAX - 1, &beat));
	assert_false(hf_beat_parse(text, HF_BEAT_BYTES_MAX, &beat));
}

static void the_longest_beat_fits(void **state)
{
	struct hf_beat beat = {
		.has_step = true,
		.step = UINT64_C(999999999999999999),
		.total = UINT64_C(999999999999999999),
		.has_own = true,
		.own_us = UINT64_C(999999999999999),
		.wait_us = UINT64_C(999999999999999),
		.loss = "-2.2250738585072014e-308",
		.group = "abcdefghijklmnopqrstuvwxyz012345",
		.phase = HF_HEALTH_OTHER_PHASE,
		.rank = 19999,
		.attempt = UINT64_C(999999999999999999),
		.fence_s = HF_BEAT_FENCE_MAX,
	};
	struct hf_beat again;
	char text[HF_BEAT_BYTES_MAX];
	size_t len = hf_beat_format(&beat, text);

	assert_true(hf_beat_parse(text, len, &again));
	assert_string_equal(again.group, beat.group);
	assert_string_equal(again.loss, beat.loss);
	assert_true(again.step == beat.step && again.attempt == beat.attempt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_text_is_taken_or_refused_as_a_whole),
		cmocka_unit_test(a_refused_one_leaves_what_was_there),
		cmocka_unit_test(what_is_not_said_is_told_apart_from_zero),
		cmocka_unit_test(no_byte_behind_the_length_is_read),
		cmocka_unit_test(bytes_and_keys_are_bounded),
		cmocka_unit_test(the_longest_beat_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
