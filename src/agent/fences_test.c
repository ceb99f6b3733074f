/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "agent/fences.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define ARENA_BYTES ((size_t)4 << 20)

static struct {
	struct hf_fences *fences;
	struct hf_arena *arena;
	struct hf_device_health health;
	const char *gone; /* the API server has no pod of this UID, or none yet */
	hf_time now;
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
	t.fences = hf_fences_create();
	t.arena = hf_arena_create(ARENA_BYTES);
	t.now = HF_HOUR;
	return 0;
}

static int unmake(void **state)
{
	hf_fences_destroy(t.fences);
	hf_arena_destroy(t.arena);
	return 0;
}

static bool look(void)
{
	return hf_fences_look(t.fences, pod, NULL, t.now);
}

static const struct hf_fence_report *publish(void)
{
	hf_fences_list(t.fences, pod, NULL, t.arena, &t.health);
	hf_fences_published(t.fences, pod, NULL);
	return t.health.fences.items;
}

static void a_pod_is_told_of_once(void **state)
{
	const struct hf_fence_report *f;

	assert_false(look());
	hf_fences_heard(t.fences, "b", 50, t.now);
	hf_fences_heard(t.fences, "a", 50, t.now);
	assert_true(look());
	f = publish();
	assert_int_equal(t.health.fences.len, 2);
	assert_string_equal(f[0].uid, "a");
	assert_string_equal(f[0].ns, "team");
	assert_string_equal(f[1].uid, "b");
	assert_int_equal(f[0].seconds, 50);
	for (int i = 0; i < 100; i++) {
		t.now += 5 * HF_SECOND;
		hf_fences_heard(t.fences, "a", 50, t.now);
		assert_false(look());
	}
}

static void a_pod_that_falls_silent_keeps_its_word(void **state)
{
	hf_fences_heard(t.fences, "a", 50, t.now);
	publish();
	t.now += HF_DAY;
	assert_false(look());
	publish();
	assert_int_equal(t.health.fences.len, 1);
}

static void of_several_words_the_longest_counts(void **state)
{
	hf_fences_heard(t.fences, "a", 50, t.now);
	publish();
	hf_fences_heard(t.fences, "a", 1, t.now);
	assert_false(look());
	assert_int_equal(publish()[0].seconds, 50);
	hf_fences_heard(t.fences, "a", 70, t.now);
	assert_true(look());
	assert_int_equal(publish()[0].seconds, 70);
}

static void a_pod_that_is_gone_is_forgotten_and_that_is_told(void **state)
{
	hf_fences_heard(t.fences, "a", 50, t.now);
	publish();
	t.gone = "a";
	assert_true(look());
	publish();
	assert_int_equal(t.health.fences.len, 0);
	assert_false(look());
}

static void a_pod_that_is_not_known_yet_is_told_of_when_it_is(void **state)
{
	t.gone = "a";
	hf_fences_heard(t.fences, "a", 50, t.now);
	assert_false(look());
	t.gone = NULL;
	assert_true(look());
	assert_int_equal(publish()[0].seconds, 50);
	/* A pod that the agent does not know is forgotten. */
	t.gone = "x";
	hf_fences_heard(t.fences, "x", 50, t.now);
	t.now += HF_RANKS_SILENT_AFTER;
	assert_false(look());
	t.gone = NULL;
	assert_false(look());
}

static void contacts_are_wanted_while_a_fenced_rank_reports_and_a_while_longer(void **state)
{
	assert_false(hf_fences_wanted(t.fences, t.now));
	hf_fences_heard(t.fences, "a", 50, t.now);
	assert_true(hf_fences_wanted(t.fences, t.now + HF_FENCES_WANTED_FOR - 1));
	assert_false(hf_fences_wanted(t.fences, t.now + HF_FENCES_WANTED_FOR));
}

static void there_is_room_for_as_many_as_can_be_told(void **state)
{
	char uid[16];

	for (int i = 0; i < HF_FENCES_MAX + 10; i++) {
		snprintf(uid, sizeof(uid), "pod-%d", i);
		hf_fences_heard(t.fences, uid, 50, t.now);
	}
	publish();
	assert_int_equal(t.health.fences.len, HF_FENCES_MAX);
}

#define T(name) cmocka_unit_test_setup_teardown(name, make, unmake)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_pod_is_told_of_once),
		T(a_pod_that_falls_silent_keeps_its_word),
		T(of_several_words_the_longest_counts),
		T(a_pod_that_is_gone_is_forgotten_and_that_is_told),
		T(a_pod_that_is_not_known_yet_is_told_of_when_it_is),
		T(contacts_are_wanted_while_a_fenced_rank_reports_and_a_while_longer),
		T(there_is_room_for_as_many_as_can_be_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
