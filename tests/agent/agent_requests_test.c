/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/agent_world.h"

#include "harness/test.h"

#include <stdio.h>

/* What others write into the annotations of DeviceHealth, with the right to watch it. */

static void expect_state(struct world *w, const char *state)
{
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health = health_of(w, arena);

	assert_string_equal(device_in(&health, GPU)->state, state);
}

static void annotate(struct world *w, const char *name, const char *value)
{
	char patch[256];

	snprintf(patch, sizeof(patch),
		 "{\"metadata\":{\"annotations\":{\"holdfast.dev/%s\":\"%s\"}}}", name, value);
	apply(w, HF_VERB_PATCH, &hf_devicehealths, "n1", NULL, patch);
}

/* The watch of DeviceHealth brings an acknowledgement at once, and the agent asks for none. */
static void an_acknowledgement_takes_effect_at_once(void **state)
{
	struct world *w = *state;
	char time[HF_TIME_TEXT_MAX], text[128];
	int requests;

	open_agent(w);
	run_for(w, 2 * HF_SECOND);
	kernel_says(w, LOST);
	run_for(w, 2 * HF_MINUTE);
	expect_state(w, "Unhealthy");
	requests = w->device_writes;
	run_for(w, 3 * HF_MINUTE);
	assert_in_range(w->device_writes - requests, 0, 1);
	hf_time_format(hf_loop_wall(w->loop), time);
	snprintf(text, sizeof(text), UUID " %s", time);
	annotate(w, "cleared", text);
	run_for(w, 300 * HF_MS);
	expect_state(w, "Probation");
}

static hf_time observed_at(struct world *w)
{
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);

	return health_of(w, arena).observed_at;
}

static void a_report_that_is_asked_for_comes_at_once(void **state)
{
	struct world *w = *state;
	hf_time at;

	open_agent(w);
	run_for(w, 2 * HF_MINUTE);
	at = hf_loop_wall(w->loop);
	assert_true(observed_at(w) < at);
	annotate(w, "report", "n1-1 x 0");
	run_for(w, 200 * HF_MS);
	assert_true(observed_at(w) > at);
	/* Seconds after the request. */
	at = hf_loop_wall(w->loop);
	annotate(w, "report", "n1-2 x 3");
	run_for(w, 2900 * HF_MS);
	assert_true(observed_at(w) < at);
	run_for(w, 300 * HF_MS);
	assert_true(observed_at(w) > at + 3 * HF_SECOND);
	/* The driver's library is there, and does not answer. */
	at = hf_loop_wall(w->loop);
	hf_intake_driver_answered(hf_agent_intake(w->agent), 1);
	annotate(w, "report", "n1-3 x 0");
	run_for(w, 5 * HF_SECOND);
	assert_true(observed_at(w) < at);
	hf_intake_driver_answered(hf_agent_intake(w->agent),
				  hf_intake_now(hf_agent_intake(w->agent)));
	run_for(w, 200 * HF_MS);
	assert_true(observed_at(w) > at);
}

/* A probe that has stayed off the devices during an act. */
struct shy_probe {
	struct hf_probe base; /* first */
	int resumed;
};

static void shy_starts(struct hf_probe *probe)
{
	(void)probe;
}

static void shy_resumes(struct hf_probe *probe)
{
	((struct shy_probe *)probe)->resumed++;
}

static void a_request_ends_the_time_off_the_devices(void **state)
{
	static const struct hf_probe_ops ops = {
		.name = "shy", .start = shy_starts, .resume = shy_resumes, .destroy = shy_starts};
	static struct shy_probe probe;
	struct world *w = *state;

	probe = (struct shy_probe){.base = {.ops = &ops}};
	w->probe = &probe.base;
	open_agent(w);
	run_for(w, 2 * HF_MINUTE);
	assert_int_equal(probe.resumed, 0);
	annotate(w, "report", "n1-1 x 3");
	run_for(w, 200 * HF_MS);
	assert_int_equal(probe.resumed, 1);
	/* Another annotation changes nothing about it. */
	run_for(w, HF_MINUTE);
	annotate(w, "other", "x");
	run_for(w, HF_MINUTE);
	assert_int_equal(probe.resumed, 1);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(an_acknowledgement_takes_effect_at_once),
		TEST(a_report_that_is_asked_for_comes_at_once),
		TEST(a_request_ends_the_time_off_the_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
