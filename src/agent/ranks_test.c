/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/ranks.h"
#include "base/str.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

#define ARENA_BYTES ((size_t)4 << 20)

static struct {
	struct hf_ranks *ranks;
	struct hf_arena *arena;
	struct hf_device_health health;
	const char *gone; /* UID of a deleted pod */
	hf_time now;
	uint64_t step;
} t;

static bool pod(void *arg, const char *uid, struct hf_pod_name *ret_name)
{
	ret_name->ns = "team";
	ret_name->name = uid;
	ret_name->uid = uid;
	return !hf_streq(uid, t.gone);
}

static int make(void **state)
{
	memset(&t, 0, sizeof(t));
	t.ranks = hf_ranks_create();
	t.arena = hf_arena_create(ARENA_BYTES);
	t.now = HF_HOUR;
	return 0;
}

static int unmake(void **state)
{
	hf_ranks_destroy(t.ranks);
	hf_arena_destroy(t.arena);
	return 0;
}

static void hear(const char *uid, const char *text)
{
	struct hf_beat beat;

	assert_true(hf_beat_parse(text, strlen(text), &beat));
	hf_ranks_heard(t.ranks, uid, &beat, t.now);
}

/* Reports so many steps, each a second long. */
static void train(const char *uid, int steps, int own_ms)
{
	char text[128];

	for (int i = 0; i < steps; i++) {
		t.now += HF_SECOND;
		snprintf(text, sizeof(text), "holdfast/1 step=%d total=1000 own_us=%d000",
			 (int)++t.step, own_ms);
		hear(uid, text);
	}
}

static bool look(void)
{
	return hf_ranks_look(t.ranks, pod, NULL, t.now);
}

static const struct hf_rank_report *publish(void)
{
	hf_ranks_list(t.ranks, pod, NULL, t.now, t.arena, &t.health);
	hf_ranks_published(t.ranks, pod, NULL, t.now);
	return t.health.ranks.items;
}

static void a_job_that_just_trains_is_published_once_and_with_its_own_time(void **state)
{
	const struct hf_rank_report *r;

	train("a", 1, 30);
	assert_true(look());
	r = publish();
	assert_int_equal(t.health.ranks.len, 1);
	assert_string_equal(r->ns, "team");
	assert_string_equal(r->state, HF_RANK_ADVANCING);
	assert_int_equal(r->own_us, 0);
	/* Two windows behind the first steps. */
	train("a", HF_HEALTH_SKIP_STEPS + 2 * HF_HEALTH_WINDOW_STEPS, 30);
	assert_true(look());
	r = publish();
	assert_int_equal(r->own_us, 30000);
	assert_int_equal(r->total, 1000);
	for (int i = 0; i < 100; i++) {
		train("a", 10, 30 + i % 2);
		assert_false(look());
	}
}

static void slower_by_more_than_noise_is_news_when_two_windows_say_so(void **state)
{
	train("a", 40, 30);
	publish();
	train("a", 9, 45);
	assert_false(look());
	train("a", 10, 45);
	assert_false(look());
	train("a", 10, 45);
	assert_true(look());
	assert_int_equal(publish()->own_us, 45000);
}

static void what_stands_still_is_said_again(void **state)
{
	train("a", 3, 30);
	publish();
	for (int i = 0; i < 6; i++) {
		t.now += 5 * HF_SECOND;
		hear("a", "holdfast/1");
	}
	assert_true(look());
	for (int lives = 0; lives < 3; lives++) {
		assert_string_equal(publish()->state, HF_RANK_STALLED);
		for (int i = 0; i < 5; i++) {
			t.now += 5 * HF_SECOND;
			hear("a", "holdfast/1");
			assert_false(look());
		}
		t.now += 5 * HF_SECOND;
		hear("a", "holdfast/1");
		assert_true(look());
	}
	train("a", 1, 30);
	assert_true(look());
	assert_string_equal(publish()->state, HF_RANK_ADVANCING);
	t.now += HF_RANKS_STALLED_EVERY;
	train("a", 1, 30);
	assert_false(look());
	/* The pod is deleted a moment after a write: the next write has to publish that. */
	publish();
	t.gone = "a";
	assert_false(look());
	assert_int_equal(hf_ranks_count(t.ranks), 0);
	assert_true(hf_ranks_owes(t.ranks));
	t.now += HF_RANKS_GAP;
	assert_true(look());
	publish();
	assert_false(hf_ranks_owes(t.ranks));
}

static void without_a_step_it_is_stalled_and_without_a_word_silent(void **state)
{
	train("a", 3, 30);
	publish();
	for (int i = 0; i < 5; i++) {
		t.now += 5 * HF_SECOND;
		hear("a", "holdfast/1");
	}
	assert_false(look());
	t.now += 5 * HF_SECOND;
	hear("a", "holdfast/1 step=3");
	assert_true(look());
	assert_string_equal(publish()->state, HF_RANK_STALLED);
	assert_true(publish()->advanced_at == HF_HOUR + 3 * HF_SECOND);
	t.now += HF_RANKS_SILENT_AFTER;
	assert_true(look());
	assert_string_equal(publish()->state, HF_RANK_SILENT);
	assert_false(hf_ranks_alive(t.ranks, t.now));
	train("a", 1, 30);
	t.now += HF_RANKS_GAP;
	hear("a", "holdfast/1");
	assert_true(look());
	assert_string_equal(publish()->state, HF_RANK_ADVANCING);
}

static void long_steps_are_given_their_time(void **state)
{
	for (int step = 1; step <= 3; step++) {
		char text[64];

		snprintf(text, sizeof(text), "holdfast/1 step=%d", step);
		hear("a", text);
		t.now += 20 * HF_SECOND;
	}
	t.now += 75 * HF_SECOND;
	hear("a", "holdfast/1");
	assert_string_equal(publish()->state, HF_RANK_ADVANCING);
	t.now += 20 * HF_SECOND;
	hear("a", "holdfast/1");
	assert_string_equal(publish()->state, HF_RANK_STALLED);
}

/* torchrun starts its workers again in the same pod. */
static void a_rank_that_goes_back_to_its_checkpoint_advances(void **state)
{
	train("a", 140, 30);
	t.now += 5 * HF_MINUTE;
	t.step = 100;
	train("a", HF_HEALTH_BACK_STEPS - 1, 30);
	assert_string_equal(publish()->state, HF_RANK_STALLED);
	train("a", 1, 30);
	assert_string_equal(publish()->state, HF_RANK_ADVANCING);
	assert_int_equal(publish()->step, 103);
	assert_int_equal(publish()->own_us, 0);
	/* The time that the restart took is no step's time. */
	t.now += HF_RANKS_STALLED_AFTER;
	hear("a", "holdfast/1");
	assert_string_equal(publish()->state, HF_RANK_STALLED);
}

static void ranks_of_a_pod_that_is_gone_go_and_that_is_news(void **state)
{
	train("a", 1, 30);
	hear("b", "holdfast/1 step=1 rank=1");
	hear("b", "holdfast/1 step=1 rank=0");
	publish();
	assert_int_equal(t.health.ranks.len, 3);
	assert_int_equal(t.health.ranks.items[1].rank, 0);
	t.gone = "b";
	t.now += HF_RANKS_GAP;
	assert_true(look());
	publish();
	assert_int_equal(t.health.ranks.len, 1);
	t.now += HF_RANKS_GAP;
	assert_false(look());
}

static void a_pod_that_the_api_server_has_not_told_of_yet_is_waited_for(void **state)
{
	t.gone = "a";
	train("a", 1, 30);
	assert_false(look());
	publish();
	assert_int_equal(t.health.ranks.len, 0);
	t.gone = NULL;
	t.now += HF_RANKS_GAP;
	assert_true(look());
	assert_int_equal(publish()->step, 1);
}

static void writes_are_ten_seconds_apart(void **state)
{
	train("a", 1, 30);
	publish();
	hear("b", "holdfast/1 step=1");
	assert_false(look());
	t.now += HF_RANKS_GAP;
	assert_true(look());
}

static void signs_of_life_alone_are_no_rank(void **state)
{
	hear("a", "holdfast/1");
	assert_int_equal(hf_ranks_count(t.ranks), 0);
	assert_false(look());
}

static void there_is_an_end_to_ranks(void **state)
{
	char text[64];

	for (int i = 0; i < 2 * HF_RANKS_HEARD_MAX; i++) {
		snprintf(text, sizeof(text), "holdfast/1 step=1 rank=%d", i);
		hear("a", text);
	}
	assert_int_equal(hf_ranks_count(t.ranks), HF_RANKS_HEARD_MAX);
}

/* The number of the pod's ranks in the list that would be published. */
static int published(const char *uid)
{
	int n = 0;

	publish();
	for (size_t i = 0; i < t.health.ranks.len; i++)
		n += hf_streq(t.health.ranks.items[i].uid, uid);
	return n;
}

static void a_pod_of_many_ranks_keeps_no_other_out(void **state)
{
	char text[64];

	for (int i = 0; i < 200; i++) {
		snprintf(text, sizeof(text), "holdfast/1 step=1 rank=%d", i);
		hear("loud", text);
	}
	assert_int_equal(published("loud"), HF_RANKS_HEARD_MAX);
	t.now += HF_RANKS_GAP;
	for (int i = 0; i < 8; i++) {
		snprintf(text, sizeof(text), "holdfast/1 step=1 rank=%d", i);
		hear("victim", text);
	}
	assert_true(look());
	assert_int_equal(published("victim"), 8);
	for (int i = 0; i < 200; i++) {
		snprintf(text, sizeof(text), "holdfast/1 step=2 rank=%d", i);
		hear("loud", text);
		hear("loud too", text);
	}
	assert_int_equal(published("victim"), 8);
	assert_int_equal(published("loud") + published("loud too"), HF_RANKS_HEARD_MAX - 8);
	assert_int_equal(hf_ranks_count(t.ranks), HF_RANKS_HEARD_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_job_that_just_trains_is_published_once_and_with_its_own_time, make,
			unmake),
		cmocka_unit_test_setup_teardown(
			slower_by_more_than_noise_is_news_when_two_windows_say_so, make, unmake),
		cmocka_unit_test_setup_teardown(what_stands_still_is_said_again, make, unmake),
		cmocka_unit_test_setup_teardown(
			without_a_step_it_is_stalled_and_without_a_word_silent, make, unmake),
		cmocka_unit_test_setup_teardown(long_steps_are_given_their_time, make, unmake),
		cmocka_unit_test_setup_teardown(a_rank_that_goes_back_to_its_checkpoint_advances,
						make, unmake),
		cmocka_unit_test_setup_teardown(ranks_of_a_pod_that_is_gone_go_and_that_is_news,
						make, unmake),
		cmocka_unit_test_setup_teardown(
			a_pod_that_the_api_server_has_not_told_of_yet_is_waited_for, make, unmake),
		cmocka_unit_test_setup_teardown(writes_are_ten_seconds_apart, make, unmake),
		cmocka_unit_test_setup_teardown(signs_of_life_alone_are_no_rank, make, unmake),
		cmocka_unit_test_setup_teardown(there_is_an_end_to_ranks, make, unmake),
		cmocka_unit_test_setup_teardown(a_pod_of_many_ranks_keeps_no_other_out, make,
						unmake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
