/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/real_loop.h"
#include "probes/nvml.h"
#include "probes/nvml_child.h"
#include "probes/nvml_script_test.h"

#include "base/mem.h"

#include <string.h>
#include <unistd.h>

/*
 * The actor of a reset kills the child that keeps the devices open. The next child must not open them in the middle of the
 * reset. The double of NVML kills its own process with the same signal.
 */

#define BACKOFF (20 * HF_MS)
#define WELL "devices 1\n"

static const char *library;

struct bench {
	struct hf_test_loop t;
	char script[sizeof(NVML_SCRIPT)];
	const char *argv[4];
	struct hf_nvml_watch *watch;
	unsigned told[4];
};

static void script(struct bench *b, const char *lines)
{
	nvml_script_write(b->script, lines);
}

static int setup(void **state)
{
	struct bench *b = hf_xcalloc(1, sizeof(*b));

	nvml_script_make(b->script);
	hf_test_loop_init(&b->t);
	b->argv[0] = "/proc/self/exe";
	b->argv[1] = "child";
	b->argv[2] = library;
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	hf_nvml_watch_destroy(b->watch);
	hf_test_loop_release(&b->t);
	unlink(b->script);
	free(b);
	return 0;
}

static void on_told(void *arg, enum hf_nvml_outcome outcome,
		    const struct hf_nvml_record *record HF_UNUSED,
		    const struct hf_error *err HF_UNUSED)
{
	struct bench *b = arg;

	b->told[outcome]++;
	hf_loop_stop(b->t.loop);
}

static void watch(struct bench *b, hf_time yield)
{
	b->watch = hf_nvml_watch_destroy(b->watch);
	b->watch = hf_nvml_watch_create(b->t.loop, &(struct hf_nvml_watch_options){
							   .child_argv = b->argv,
							   .backoff = BACKOFF,
							   .backoff_max = BACKOFF,
							   .yield = yield,
							   .told = on_told,
							   .arg = b,
						   });
}

static void on_over(void *arg)
{
	hf_loop_stop(((struct bench *)arg)->t.loop);
}

static void for_a_while(struct bench *b, hf_time span)
{
	struct hf_timer *over = hf_timer_create(b->t.loop, on_over, b);

	hf_timer_arm(over, span);
	hf_test_loop_run(&b->t);
	hf_timer_destroy(over);
}

/* Asks until an answer comes. */
static void look(struct bench *b)
{
	unsigned before = b->told[HF_NVML_ANSWERED];

	while (b->told[HF_NVML_ANSWERED] == before) {
		(void)hf_nvml_watch_ask(b->watch);
		for_a_while(b, 10 * HF_MS);
	}
}

/* A child is killed by signal 9 when it calls this function of the library. */
static void kill_at(struct bench *b, const char *lines)
{
	unsigned before = b->told[HF_NVML_FAILED];

	script(b, lines);
	assert_true(hf_nvml_watch_ask(b->watch));
	while (b->told[HF_NVML_FAILED] == before)
		hf_test_loop_run(&b->t);
	script(b, WELL);
}

static void after_a_kill_the_devices_stay_free(void **state)
{
	struct bench *b = *state;

	script(b, WELL);
	watch(b, 0);
	look(b);
	kill_at(b, WELL "crash nvmlDeviceGetTemperature\n");
	for_a_while(b, 10 * BACKOFF);
	assert_false(hf_nvml_watch_ask(b->watch));
	hf_nvml_watch_resume(b->watch);
	look(b);
}

static void without_a_request_the_child_comes_back_after_a_while(void **state)
{
	struct bench *b = *state;

	script(b, WELL);
	watch(b, 5 * BACKOFF);
	look(b);
	kill_at(b, WELL "crash nvmlDeviceGetTemperature\n");
	look(b);
}

/* A child that has not started the library keeps no device open. */
static void a_library_that_crashes_at_its_start_has_its_backoff(void **state)
{
	struct bench *b = *state;

	watch(b, 0);
	kill_at(b, "crash nvmlInitWithFlags\n");
	hf_nvml_watch_resume(b->watch);
	assert_false(hf_nvml_watch_ask(b->watch));
	look(b);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(after_a_kill_the_devices_stay_free),
		T(without_a_request_the_child_comes_back_after_a_while),
		T(a_library_that_crashes_at_its_start_has_its_backoff),
	};

	if (argc == 3 && strcmp(argv[1], "child") == 0)
		return hf_nvml_child_main(argv[2]);
	if (argc != 2)
		return 2;
	library = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
