/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

#include <string.h>

static struct brain b;

static void labels_do_not_matter_and_strays_are_left_alone(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 1);
	brain_run_up(&b);
	memcpy(b.pods[0].name, "demo-helper", sizeof("demo-helper"));
	brain_step(&b);
	/* The rank's pod has vanished, and the pod with the other name is left alone. */
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 0);
	brain_release(&b);
}

static void a_name_that_is_taken_is_not_created(void **state)
{
	struct brain_pod *pod;

	(void)state;
	brain_init(&b, &brain_kind, 1, 1);
	brain_run_up(&b);
	pod = brain_pod(&b, "demo-hand-0");
	pod->pod.owned = false;
	brain_quiet(&b);
	assert_false(brain_creates(&b, "demo-hand-0"));
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "hand-0 is taken"));
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_do_not_matter_and_strays_are_left_alone),
		cmocka_unit_test(a_name_that_is_taken_is_not_created),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
