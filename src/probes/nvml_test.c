/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/real_loop.h"
#include "probes/nvml.h"
#include "probes/nvml_child.h"
#include "probes/nvml_script_test.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>
#include <unistd.h>

/*
 * Runs the watch and the probe with real child processes of this program, which load the tests'
 * double of NVML. Each test writes the script of the double and waits for the reported samples.
 */

#define DEADLINE (300 * HF_MS)
#define BACKOFF (20 * HF_MS)
/* A deadline that no test reaches. */
#define FOR_EVER HF_HOUR

static const char *library, *library_old, *self;

struct bench {
	struct hf_test_loop t;
	char script[sizeof(NVML_SCRIPT)];
	const char *argv[5];
	struct hf_intake *intake;
	struct hf_nvml_watch *watch;
	struct hf_probe *probe;
	unsigned told[4], urgent;
	enum hf_nvml_outcome last;
	struct hf_nvml_record record, news;
	char text[HF_ERROR_TEXT_MAX];
	bool destroy_when_told;
	hf_time first_deadline; /* 0: the normal deadline, so that a hang is reported soon */
};

static void on_news(void *arg, bool urgent)
{
	struct bench *b = arg;

	b->urgent += urgent;
	if (b->probe)
		hf_loop_stop(b->t.loop);
}

static void script(struct bench *b, const char *lines)
{
	nvml_script_write(b->script, lines);
}

static int setup(void **state)
{
	struct bench *b = hf_xcalloc(1, sizeof(*b));

	nvml_script_make(b->script);
	hf_test_loop_init(&b->t);
	b->intake = hf_intake_create(
		&(struct hf_intake_options){.loop = b->t.loop, .news = on_news, .arg = b});
	b->argv[0] = self;
	b->argv[1] = "child";
	b->argv[2] = library;
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	hf_nvml_watch_destroy(b->watch);
	if (b->probe)
		b->probe->ops->destroy(b->probe);
	hf_intake_destroy(b->intake);
	hf_test_loop_release(&b->t);
	unlink(b->script);
	free(b);
	return 0;
}

/* ---- the watch ------------------------------------------------------------------------------------------ */

static void on_told(void *arg, enum hf_nvml_outcome outcome, const struct hf_nvml_record *record,
		    const struct hf_error *err)
{
	struct bench *b = arg;

	b->told[outcome]++;
	b->last = outcome;
	if (outcome == HF_NVML_EVENTS)
		b->news = *record;
	else if (record)
		b->record = *record;
	snprintf(b->text, sizeof(b->text), "%s", err ? err->text : "");
	if (b->destroy_when_told)
		b->watch = hf_nvml_watch_destroy(b->watch);
	hf_loop_stop(b->t.loop);
}

static hf_time first_deadline(const struct bench *b)
{
	return b->first_deadline > 0 ? b->first_deadline : DEADLINE;
}

static void watch(struct bench *b)
{
	b->watch = hf_nvml_watch_create(b->t.loop, &(struct hf_nvml_watch_options){
							   .child_argv = b->argv,
							   .deadline = DEADLINE,
							   .first_deadline = first_deadline(b),
							   .backoff = BACKOFF,
							   .backoff_max = 4 * BACKOFF,
							   .told = on_told,
							   .arg = b,
						   });
}

static void until(struct bench *b, enum hf_nvml_outcome outcome)
{
	unsigned before = b->told[outcome];

	while (b->told[outcome] == before)
		hf_test_loop_run(&b->t);
}

static void on_try(void *arg)
{
	struct bench *b = arg;

	hf_loop_stop(b->t.loop);
}

/* Asks until an answer comes: a killed child may not have ended yet, or the next one may wait for
 * its backoff. */
static void look(struct bench *b)
{
	struct hf_timer *again = hf_timer_create(b->t.loop, on_try, b);
	unsigned before = b->told[HF_NVML_ANSWERED];

	while (b->told[HF_NVML_ANSWERED] == before) {
		(void)hf_nvml_watch_ask(b->watch);
		hf_timer_arm(again, 10 * HF_MS);
		hf_test_loop_run(&b->t);
	}
	hf_timer_destroy(again);
}

static uint64_t fact(const struct hf_nvml_device *d, enum hf_nvml_fact which)
{
	assert_int_equal(d->codes[which], HF_NVML_OK);
	return d->values[which];
}

static void a_look_sees_all_facts_of_all_devices(void **state)
{
	struct bench *b = *state;
	const struct hf_nvml_device *d = &b->record.devices[1];

	script(b, "devices 2\n"
		  "firmware 570.86.16\n"
		  "value nvmlDeviceGetTotalEccErrors 1 14 3\n"
		  "value nvmlDeviceGetRemappedRows 1 5 2 1 0\n"
		  "value nvmlDeviceGetFieldValues 1 4\n"
		  "value nvmlDeviceGetNvLinkState 1 0x3fffe\n"
		  "value nvmlDeviceGetCurrentClocksEventReasons 1 0x48\n"
		  "value nvmlDeviceGetComputeRunningProcesses_v3 1 2\n");
	watch(b);
	look(b);
	assert_int_equal(b->record.code, HF_NVML_OK);
	assert_string_equal(b->record.driver, "570.86.15");
	assert_string_equal(b->record.library, "12.570.86.15");
	assert_string_equal(b->record.firmware, "570.86.16");
	assert_int_equal(b->record.count, 2);
	assert_int_equal(b->record.devices_len, 2);
	assert_string_equal(d->address, "0000:1b:00.0");
	assert_string_equal(d->uuid, "GPU-5a1d0000-0000-4000-8000-000000000001");
	assert_string_equal(d->serial, "1650000000001");
	assert_int_equal(d->code, HF_NVML_OK);
	assert_int_equal(fact(d, HF_NVML_MINOR), 1);
	assert_int_equal(fact(d, HF_NVML_TEMPERATURE_C), 41);
	assert_int_equal(fact(d, HF_NVML_LOAD_PERCENT), 97);
	assert_int_equal(fact(d, HF_NVML_SM_MHZ), 1980);
	assert_int_equal(fact(d, HF_NVML_ECC_CORRECTED), 14);
	assert_int_equal(fact(d, HF_NVML_ECC_UNCORRECTED), 3);
	assert_int_equal(fact(d, HF_NVML_REMAPPED_CORRECTED), 5);
	assert_int_equal(fact(d, HF_NVML_REMAPPED_UNCORRECTED), 2);
	assert_int_equal(fact(d, HF_NVML_REMAP_PENDING), 1);
	assert_int_equal(fact(d, HF_NVML_REMAP_FAILED), 0);
	assert_int_equal(fact(d, HF_NVML_RECOVERY_ACTION), 4);
	assert_int_equal(fact(d, HF_NVML_NVLINKS), 0x3fffe);
	assert_int_equal(fact(d, HF_NVML_THROTTLE_REASONS), 0x48);
	assert_int_equal(fact(d, HF_NVML_PROCESSES), 2);
	assert_int_equal(fact(d, HF_NVML_PCIE_WIDTH_MAX), 16);
	assert_int_equal(d->codes[HF_NVML_RETIRE_PENDING], HF_NVML_UNSUPPORTED);
}

static void a_library_without_half_of_its_functions_is_used_as_far_as_it_goes(void **state)
{
	struct bench *b = *state;
	const struct hf_nvml_device *d = &b->record.devices[0];

	b->argv[2] = library_old;
	script(b, "devices 1\n"
		  "value nvmlDeviceGetCurrentClocksThrottleReasons 0 0x8\n");
	watch(b);
	look(b);
	assert_int_equal(b->record.code, HF_NVML_OK);
	/* The old library has this function under an older name. */
	assert_int_equal(fact(d, HF_NVML_THROTTLE_REASONS), 8);
	assert_int_equal(fact(d, HF_NVML_RETIRE_PENDING), 0);
	assert_int_equal(d->codes[HF_NVML_REMAP_PENDING], HF_NVML_NO_FUNCTION);
	assert_int_equal(d->codes[HF_NVML_RECOVERY_ACTION], HF_NVML_NO_FUNCTION);
	assert_int_equal(d->codes[HF_NVML_PROCESSES], HF_NVML_NO_FUNCTION);
	assert_int_equal(d->codes[HF_NVML_FABRIC_STATE], HF_NVML_NO_FUNCTION);
	assert_int_equal(d->code, HF_NVML_OK);
}

static void how_far_the_fabric_is_is_asked_in_either_form(void **state)
{
	struct bench *b = *state;
	const struct hf_nvml_device *d = &b->record.devices[0];

	script(b, "devices 2\n"
		  "value nvmlDeviceGetGpuFabricInfoV 0 2 0 0x84\n"
		  "code nvmlDeviceGetGpuFabricInfoV 1 25\n"
		  "value nvmlDeviceGetGpuFabricInfo 1 3 999\n");
	watch(b);
	look(b);
	assert_int_equal(fact(d, HF_NVML_FABRIC_STATE), 2);
	assert_int_equal(fact(d, HF_NVML_FABRIC_STATUS), 0);
	assert_int_equal(fact(d, HF_NVML_FABRIC_HEALTH), 0x84);
	d = &b->record.devices[1];
	assert_int_equal(fact(d, HF_NVML_FABRIC_STATE), 3);
	assert_int_equal(fact(d, HF_NVML_FABRIC_STATUS), 999);
	assert_int_equal(d->codes[HF_NVML_FABRIC_HEALTH], HF_NVML_UNSUPPORTED);
}

#define CUT                                                                                        \
	"devices 2\nvalue nvmlDeviceGetMigMode 1 1\n"                                              \
	"part 1 0 MIG-0aa1bb2c-0000-4000-8000-000000000007 7 0\n"                                  \
	"part 1 3 MIG-0aa1bb2c-0000-4000-8000-000000000009 9 0\n"

static void the_instances_of_a_device_are_named(void **state)
{
	struct bench *b = *state;
	const struct hf_nvml_device *d = b->record.devices;

	script(b, CUT "part 0 0 MIG-of-one-that-is-not-cut 1 0\npart 1 5 GPU-no-instance 5 0\n");
	watch(b);
	look(b);
	assert_int_equal(d[0].mig_instances_len, 0);
	assert_int_equal(d[1].mig_instances_len, 2);
	assert_string_equal(d[1].mig_instances[0].uuid, "MIG-0aa1bb2c-0000-4000-8000-000000000007");
	assert_int_equal(d[1].mig_instances[0].gpu_instance, 7);
	assert_int_equal(d[1].mig_instances[0].compute_instance, 0);
	assert_string_equal(d[1].mig_instances[1].uuid, "MIG-0aa1bb2c-0000-4000-8000-000000000009");
	assert_int_equal(d[1].mig_instances[1].gpu_instance, 9);
	/* The instances are listed even if the library lacks the function that returns their
	 * number. */
	script(b, CUT "code nvmlDeviceGetGpuInstanceId * 13\n"
		      "code nvmlDeviceGetMaxMigDeviceCount * 13\n");
	look(b);
	assert_int_equal(d[1].mig_instances_len, 2);
	assert_true(d[1].mig_instances[1].gpu_instance == UINT32_MAX);
	/* A library without MIG functions lists no instance. */
	b->argv[2] = library_old;
	hf_nvml_watch_renew(b->watch);
	look(b);
	assert_int_equal(d[1].mig_instances_len, 0);
}

static void a_library_that_is_not_there_is_told_with_the_loaders_words(void **state)
{
	struct bench *b = *state;

	b->argv[2] = "libno-such-library.so.1";
	watch(b);
	look(b);
	assert_int_equal(b->record.code, HF_NVML_NO_LIBRARY);
	assert_non_null(strstr(b->record.why, "libno-such-library.so.1"));
	assert_int_equal(b->record.count, -1);
}

static void a_driver_that_hangs_is_told_of_and_asked_again(void **state)
{
	struct bench *b = *state;

	script(b, "devices 1\nhang nvmlDeviceGetTemperature\n");
	watch(b);
	assert_true(hf_nvml_watch_ask(b->watch));
	assert_false(hf_nvml_watch_ask(b->watch)); /* false: one look at a time */
	until(b, HF_NVML_TIMED_OUT);
	assert_string_equal(b->text, "the driver did not answer in time");
	assert_false(hf_nvml_watch_ask(b->watch)); /* false: the next child has to wait */
	script(b, "devices 1\n");
	look(b);
	assert_int_equal(b->record.devices_len, 1);
	assert_int_equal(b->told[HF_NVML_TIMED_OUT], 1);
	assert_int_equal(b->told[HF_NVML_FAILED], 0);
}

/* Runs the loop until this time has passed or an outcome is reported. */
static void for_a_while(struct bench *b, hf_time span)
{
	struct hf_timer *over = hf_timer_create(b->t.loop, on_try, b);

	hf_timer_arm(over, span);
	hf_test_loop_run(&b->t);
	hf_timer_destroy(over);
}

/* A start of the library may take long, for example to attach eight devices. The watch does not
 * kill it: the next start would begin again. */
static void a_library_that_takes_long_to_begin_is_let_begin(void **state)
{
	struct bench *b = *state;

	b->first_deadline = FOR_EVER;
	script(b, "devices 1\nwait nvmlInitWithFlags\n");
	watch(b);
	assert_true(hf_nvml_watch_ask(b->watch));
	for_a_while(b, 3 * DEADLINE);
	assert_int_equal(b->told[HF_NVML_TIMED_OUT], 0);
	script(b, "devices 1\n");
	until(b, HF_NVML_ANSWERED);
	assert_int_equal(b->record.devices_len, 1);
	assert_int_equal(b->told[HF_NVML_TIMED_OUT] + b->told[HF_NVML_FAILED], 0);
	/* After a start of the library, a hang is reported at the normal deadline. */
	script(b, "devices 1\nhang nvmlDeviceGetCount_v2\n");
	assert_true(hf_nvml_watch_ask(b->watch));
	until(b, HF_NVML_TIMED_OUT);
}

/* A driver may be loaded after the agent's start. So each look has the long deadline until the
 * library has started. */
static void until_there_is_a_driver_each_look_may_be_the_long_one(void **state)
{
	struct bench *b = *state;

	b->first_deadline = FOR_EVER;
	script(b, "devices 1\ncode nvmlInitWithFlags * 9\n");
	watch(b);
	look(b);
	assert_int_equal(b->record.code, HF_NVML_NOT_LOADED);
	script(b, "devices 1\nwait nvmlInitWithFlags\n");
	assert_true(hf_nvml_watch_ask(b->watch));
	for_a_while(b, 2 * DEADLINE);
	script(b, "devices 1\n");
	until(b, HF_NVML_ANSWERED);
	assert_int_equal(b->record.code, HF_NVML_OK);
	assert_int_equal(b->told[HF_NVML_TIMED_OUT], 0);
}

static void how_long_it_takes_to_begin_is_known_afterwards(void **state)
{
	struct bench *b = *state;

	b->first_deadline = FOR_EVER;
	script(b, "devices 1\n");
	watch(b);
	look(b);
	script(b, "devices 1\nwait nvmlInitWithFlags\n");
	hf_nvml_watch_renew(b->watch);
	while (!hf_nvml_watch_ask(b->watch))
		for_a_while(b, 10 * HF_MS);
	until(b, HF_NVML_TIMED_OUT);
	assert_string_equal(b->text, "the driver did not answer in time");
}

/* After a start of the library, the next child that hangs has the normal deadline, even if an error
 * ended the child before. */
static void an_error_gives_a_library_that_had_begun_no_more_time(void **state)
{
	struct bench *b = *state;

	b->first_deadline = FOR_EVER;
	script(b, "devices 1\n");
	watch(b);
	look(b);
	script(b, "devices 1\ncode nvmlDeviceGetCount_v2 * 999\n");
	look(b);
	assert_int_equal(b->record.code, HF_NVML_UNKNOWN);
	script(b, "devices 1\nhang nvmlDeviceGetCount_v2\n");
	assert_true(hf_nvml_watch_ask(b->watch));
	until(b, HF_NVML_TIMED_OUT);
}

static void a_library_that_never_begins_is_a_driver_that_hangs(void **state)
{
	struct bench *b = *state;

	b->first_deadline = 2 * DEADLINE;
	script(b, "devices 1\nwait nvmlInitWithFlags\n");
	watch(b);
	assert_true(hf_nvml_watch_ask(b->watch));
	until(b, HF_NVML_TIMED_OUT);
	assert_false(hf_nvml_watch_ask(b->watch)); /* false: the next child has to wait */
	/* The next child has the same time. Each deadline that passes is reported. */
	while (!hf_nvml_watch_ask(b->watch))
		for_a_while(b, 10 * HF_MS);
	until(b, HF_NVML_TIMED_OUT);
	assert_int_equal(b->told[HF_NVML_TIMED_OUT], 2);
	script(b, "devices 1\n");
	until(b, HF_NVML_ANSWERED);
	assert_int_equal(b->told[HF_NVML_TIMED_OUT], 2);
	assert_int_equal(b->told[HF_NVML_FAILED], 0);
}

static void a_driver_that_kills_the_child_is_no_driver_that_hangs(void **state)
{
	struct bench *b = *state;

	script(b, "crash nvmlInitWithFlags\n");
	watch(b);
	assert_true(hf_nvml_watch_ask(b->watch));
	until(b, HF_NVML_FAILED);
	assert_string_equal(b->text, "the child process was killed by signal 9");
	assert_int_equal(b->told[HF_NVML_TIMED_OUT], 0);
	script(b, "devices 1\n");
	look(b);
}

static void what_the_library_prints_is_not_in_the_way(void **state)
{
	struct bench *b = *state;

	script(b, "devices 1\nprint nvmlInitWithFlags\nprint nvmlDeviceGetCount_v2\n");
	watch(b);
	look(b);
	look(b);
	assert_int_equal(b->record.devices_len, 1);
}

static void a_lost_device_keeps_the_name_that_it_had(void **state)
{
	struct bench *b = *state;

	script(b, "devices 2\n");
	watch(b);
	look(b);
	script(b, "devices 2\nlost 1\n");
	look(b);
	assert_int_equal(b->record.devices[0].code, HF_NVML_OK);
	assert_int_equal(b->record.devices[1].code, HF_NVML_LOST);
	assert_string_equal(b->record.devices[1].address, "0000:1b:00.0");
	assert_string_equal(b->record.devices[1].uuid, "GPU-5a1d0000-0000-4000-8000-000000000001");
	/* A device that a child never saw well has no name. */
	hf_nvml_watch_renew(b->watch);
	look(b);
	assert_int_equal(b->record.devices[1].code, HF_NVML_LOST);
	assert_string_equal(b->record.devices[1].address, "");
}

static void any_call_may_say_that_a_device_is_lost(void **state)
{
	struct bench *b = *state;

	script(b, "devices 3\n"
		  "code nvmlDeviceGetPowerUsage 0 16\n"
		  "code nvmlDeviceGetTemperature 1 16\n"
		  "code nvmlDeviceGetNvLinkState 1 15\n"
		  "code nvmlDeviceGetTemperature 2 999\n");
	watch(b);
	look(b);
	assert_int_equal(b->record.devices[0].code, HF_NVML_RESET_REQUIRED);
	assert_int_equal(b->record.devices[1].code, HF_NVML_LOST);
	assert_int_equal(b->record.devices[2].code, HF_NVML_OK);
}

static void an_xid_is_told_of_unasked(void **state)
{
	struct bench *b = *state;

	script(b, "devices 2\n");
	watch(b);
	look(b);
	script(b, "devices 2\nxid 1 94\nxid 0 31\n");
	until(b, HF_NVML_EVENTS);
	while (b->news.events_len < 2 && b->told[HF_NVML_EVENTS] < 2)
		hf_test_loop_run(&b->t);
	assert_int_equal(b->news.events[b->news.events_len - 1].data, 31);
	assert_string_equal(b->news.events[b->news.events_len - 1].address, "0000:1a:00.0");
	/* The child answers questions as before. */
	look(b);
}

static void a_program_that_talks_otherwise_is_ended(void **state)
{
	static const char *const argv[] = {"/bin/sh", "-c", "echo hello; exec tail -f /dev/null",
					   NULL};
	struct bench *b = *state;

	memcpy(b->argv, argv, sizeof(argv));
	watch(b);
	assert_true(hf_nvml_watch_ask(b->watch));
	until(b, HF_NVML_FAILED);
	assert_string_equal(b->text, "the child's output does not begin with a record");
}

static void a_program_that_is_not_there_is_told_from_the_loop(void **state)
{
	struct bench *b = *state;

	b->argv[0] = "/no/such/program";
	watch(b);
	assert_false(hf_nvml_watch_ask(b->watch));
	assert_int_equal(b->told[HF_NVML_FAILED], 0);
	until(b, HF_NVML_FAILED);
	assert_true(hf_str_has_prefix(b->text, "the driver's library: cannot start"));
	assert_false(hf_nvml_watch_ask(b->watch));
}

static void the_callback_may_destroy_the_probe(void **state)
{
	struct bench *b = *state;

	script(b, "devices 1\n");
	b->destroy_when_told = true;
	watch(b);
	assert_true(hf_nvml_watch_ask(b->watch));
	until(b, HF_NVML_ANSWERED);
	assert_null(b->watch);
	script(b, "hang nvmlInitWithFlags\n");
	watch(b);
	assert_true(hf_nvml_watch_ask(b->watch));
	until(b, HF_NVML_TIMED_OUT);
	assert_null(b->watch);
	watch(b);
	assert_true(hf_nvml_watch_ask(b->watch));
	b->watch = hf_nvml_watch_destroy(b->watch);
}

/* ---- the probe -------------------------------------------------------------------------------------------- */

static void probe(struct bench *b, hf_time span)
{
	b->probe = hf_nvml_probe_create(b->intake, &(struct hf_nvml_options){
							   .library = b->argv[2],
							   .child_argv = b->argv,
							   .every = span,
							   .deadline = DEADLINE,
							   .first_deadline = first_deadline(b),
							   .backoff = BACKOFF,
							   .backoff_max = BACKOFF,
							   .renew_after = 50 * HF_MS,
						   });
	b->probe->ops->start(b->probe);
}

/* Waits for the next sample of the detector that `is` accepts. */
static struct hf_health_sample until_sample(struct bench *b, enum hf_health_detector detector,
					    bool (*is)(const struct hf_health_sample *s))
{
	for (;;) {
		struct hf_health_input input = {0};

		hf_intake_take(b->intake, &input);
		for (size_t i = 0; i < input.samples_len; i++)
			if (input.samples[i].detector == detector &&
			    (!is || is(&input.samples[i]))) {
				struct hf_health_sample s = input.samples[i];

				hf_intake_taken(b->intake);
				return s;
			}
		hf_intake_taken(b->intake);
		hf_test_loop_run(&b->t);
	}
}

static bool is_timed_out(const struct hf_health_sample *s)
{
	return s->driver.timed_out;
}

static bool is_well(const struct hf_health_sample *s)
{
	return !s->driver.timed_out && !s->driver.mismatch && !s->driver.not_loaded;
}

static bool is_lost(const struct hf_health_sample *s)
{
	return s->bus.lost;
}

static bool needs_reset(const struct hf_health_sample *s)
{
	return s->bus.reset_required;
}

static bool is_there(const struct hf_health_sample *s)
{
	return !s->bus.lost && !s->bus.reset_required && !s->bus.mute;
}

static bool second_is_there(const struct hf_health_sample *s)
{
	return is_there(s) && strcmp(s->device, "0000:1b:00.0") == 0;
}

static bool is_drain_and_reset(const struct hf_health_sample *s)
{
	return s->recovery.action == 4;
}

static bool is_reset(const struct hf_health_sample *s)
{
	return s->recovery.action == 1;
}

static bool is_none(const struct hf_health_sample *s)
{
	return s->recovery.action == 0;
}

static void the_probe_tells_what_the_brain_can_use(void **state)
{
	struct bench *b = *state;
	struct hf_health_sample s;
	const struct hf_health_presence *known;
	const char *why;
	uint32_t load = 0;
	size_t len;

	script(b, "devices 1\n"
		  "value nvmlDeviceGetTotalEccErrors 0 14 3\n"
		  "value nvmlDeviceGetRemappedRows 0 5 2 1 0\n");
	probe(b, 20 * HF_MS);
	s = until_sample(b, HF_HEALTH_ECC, NULL);
	assert_string_equal(s.device, "0000:1a:00.0");
	assert_int_equal(s.source, HF_HEALTH_BY_NVML);
	assert_true(s.supported);
	assert_int_equal(s.ecc.uncorrectable, 3);
	assert_true(s.ecc.remap_known && s.ecc.pending && !s.ecc.failed);
	assert_int_equal(s.ecc.remapped_uncorrectable, 2);
	s = until_sample(b, HF_HEALTH_REPLAY, NULL);
	assert_int_equal(s.replay.lanes, 16);
	assert_int_equal(s.replay.generation, 5);
	assert_int_equal(s.replay.load_percent, 97);
	s = until_sample(b, HF_HEALTH_CLOCK, NULL);
	assert_int_equal(s.clock.mhz, 1980);
	assert_int_equal(s.clock.load_percent, 97);
	assert_true(s.clock.model == hf_hash_str("Double"));
	assert_int_equal(s.clock.reasons, 0);
	s = until_sample(b, HF_HEALTH_NVLINK, NULL);
	assert_int_equal(s.nvlink.active, 0x3ffff);
	assert_true(hf_intake_load_of(b->intake, "0000:1a:00.0", &load));
	assert_int_equal(load, 97);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_NVML), 1);
	known = hf_intake_devices(b->intake, &len);
	assert_int_equal(len, 1);
	assert_string_equal(known->uuid, "GPU-5a1d0000-0000-4000-8000-000000000000");
	assert_string_equal(known->alias, "gpu-0");
	assert_int_equal(hf_intake_state(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_ECC, &why),
			 HF_INTAKE_OK);
}

static bool tells_of_fabric(const struct hf_health_sample *s)
{
	return s->driver.fabric_asked > 0;
}

static bool is_ready(const struct hf_health_sample *s)
{
	return s->driver.fabric_asked > 0 && s->driver.fabric_waiting == 0;
}

static bool has_health(const struct hf_health_sample *s)
{
	return s->nvlink.health_known && s->nvlink.health != 0;
}

static void gpus_that_wait_for_the_fabric_are_counted(void **state)
{
	struct bench *b = *state;
	struct hf_health_sample s;

	/* Of four GPUs, one belongs to no fabric and one has MIG instances: two wait for their
	 * registration. */
	script(b, "devices 4\n"
		  "value nvmlDeviceGetGpuFabricInfoV * 1 0 0\n"
		  "value nvmlDeviceGetGpuFabricInfoV 2 0 0 0\n"
		  "value nvmlDeviceGetMigMode 3 1\n");
	probe(b, 20 * HF_MS);
	s = until_sample(b, HF_HEALTH_DRIVER, tells_of_fabric);
	assert_int_equal(s.driver.fabric_asked, 2);
	assert_int_equal(s.driver.fabric_waiting, 2);
	assert_int_equal(s.driver.fabric_state, 1);
	assert_true(is_well(&s));
	script(b, "devices 4\nvalue nvmlDeviceGetGpuFabricInfoV * 3 0 0\n");
	s = until_sample(b, HF_HEALTH_DRIVER, is_ready);
	assert_int_equal(s.driver.fabric_asked, 4);
	script(b, "devices 1\nvalue nvmlDeviceGetGpuFabricInfoV * 3 0 0x1a9\n");
	s = until_sample(b, HF_HEALTH_NVLINK, has_health);
	assert_int_equal(s.nvlink.health, 0x1a9);
}

static void unsupported_is_off_and_never_a_sample(void **state)
{
	struct bench *b = *state;
	struct hf_health_input input = {0};
	const char *why;

	b->argv[2] = library_old;
	script(b, "devices 1\n"
		  "code nvmlDeviceGetTotalEccErrors * 3\n"
		  "code nvmlDeviceGetNvLinkState * 3\n"
		  "code nvmlDeviceGetPcieReplayCounter * 999\n"
		  "code nvmlDeviceGetUtilizationRates * 3\n");
	probe(b, 20 * HF_MS);
	(void)until_sample(b, HF_HEALTH_BUSLOST, is_there);
	(void)until_sample(b, HF_HEALTH_BUSLOST, is_there);
	hf_intake_take(b->intake, &input);
	for (size_t i = 0; i < input.samples_len; i++)
		assert_true(input.samples[i].detector == HF_HEALTH_BUSLOST ||
			    input.samples[i].detector == HF_HEALTH_DRIVER);
	hf_intake_taken(b->intake);
	static const enum hf_health_detector off[] = {HF_HEALTH_RECOVERY, HF_HEALTH_ECC,
						      HF_HEALTH_THROTTLE, HF_HEALTH_CLOCK,
						      HF_HEALTH_REPLAY,   HF_HEALTH_NVLINK};
	for (size_t i = 0; i < HF_ARRAY_LEN(off); i++)
		assert_int_equal(hf_intake_state(b->intake, HF_HEALTH_BY_NVML, off[i], &why),
				 HF_INTAKE_OFF);
	(void)hf_intake_state(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_ECC, &why);
	assert_string_equal(why, "NVML: driver 570.86.15 or its devices do not report this");
	(void)hf_intake_state(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_REPLAY, &why);
	assert_string_equal(why, "NVML: error 999");
}

/* Accepts each sample, and fails if it is of the first device. */
static bool is_not_of_first(const struct hf_health_sample *s)
{
	assert_string_equal(s->device, "0000:1b:00.0");
	return true;
}

/* A GPU with MIG instances has switched its links off. */
static void links_of_a_device_in_parts_are_not_missed(void **state)
{
	struct bench *b = *state;
	const char *why;

	script(b, "devices 2\n"
		  "value nvmlDeviceGetMigMode 0 1\n"
		  "value nvmlDeviceGetNvLinkState 0 0\n");
	probe(b, 20 * HF_MS);
	for (int i = 0; i < 3; i++)
		(void)until_sample(b, HF_HEALTH_NVLINK, is_not_of_first);
	assert_int_equal(hf_intake_state(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_NVLINK, &why),
			 HF_INTAKE_OK);
}

/* The GPU of a MIG instance stays known after the GPU is lost: the kubelet still names the
 * instance. */
static void the_gpu_of_an_instance_stays_known(void **state)
{
	struct bench *b = *state;
	struct hf_mig_instance mig;

	script(b, CUT);
	probe(b, 20 * HF_MS);
	(void)until_sample(b, HF_HEALTH_BUSLOST, second_is_there);
	script(b, CUT "lost 1\n");
	(void)until_sample(b, HF_HEALTH_BUSLOST, is_lost);
	(void)until_sample(b, HF_HEALTH_BUSLOST, is_lost);
	assert_true(hf_mig_instances_find(hf_intake_mig_instances(b->intake),
					  "MIG-0aa1bb2c-0000-4000-8000-000000000009", &mig));
	assert_string_equal(mig.device, "0000:1b:00.0");
	assert_int_equal(mig.instance, 9);
	assert_int_equal(hf_intake_mig_instances_version(b->intake), 2);
}

static void a_hang_is_a_sample_of_the_driver_until_it_answers_again(void **state)
{
	struct bench *b = *state;

	script(b, "devices 1\n");
	probe(b, 20 * HF_MS);
	(void)until_sample(b, HF_HEALTH_DRIVER, is_well);
	script(b, "devices 1\nhang nvmlDeviceGetCount_v2\n");
	(void)until_sample(b, HF_HEALTH_DRIVER, is_timed_out);
	(void)until_sample(b, HF_HEALTH_DRIVER, is_timed_out);
	(void)until_sample(b, HF_HEALTH_DRIVER, is_timed_out);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_NVML), -1);
	script(b, "devices 1\n");
	(void)until_sample(b, HF_HEALTH_DRIVER, is_well);
}

static void a_device_is_lost_needs_a_reset_and_is_back(void **state)
{
	struct bench *b = *state;
	struct hf_health_sample s;

	script(b, "devices 2\n");
	probe(b, 20 * HF_MS);
	(void)until_sample(b, HF_HEALTH_BUSLOST, is_there);
	script(b, "devices 2\nlost 1\n");
	s = until_sample(b, HF_HEALTH_BUSLOST, is_lost);
	assert_string_equal(s.device, "0000:1b:00.0");
	script(b, "devices 2\nreset 1\n");
	/* A new child never saw the device's name, and the probe reports the device under it
	 * nevertheless. */
	for (int i = 0; i < 10; i++)
		s = until_sample(b, HF_HEALTH_BUSLOST, needs_reset);
	assert_string_equal(s.device, "0000:1b:00.0");
	script(b, "devices 2\n");
	(void)until_sample(b, HF_HEALTH_BUSLOST, second_is_there);
}

static bool is_mute(const struct hf_health_sample *s)
{
	return s->bus.mute;
}

/* No child can open the device, so the PCI bus has to name it. */
static void a_device_that_never_had_a_handle_is_known_by_the_bus(void **state)
{
	struct bench *b = *state;
	struct hf_health_presence there = {.kind = HF_HEALTH_GPU};
	struct hf_health_sample s;

	for (int i = 0; i < 3; i++) {
		snprintf(there.id, sizeof(there.id), "0000:1%c:00.0", 'a' + i);
		hf_intake_device(b->intake, &there);
	}
	hf_intake_count(b->intake, HF_COUNT_NVIDIA, 3);
	script(b, "devices 3\ncode nvmlDeviceGetHandleByIndex_v2 1 999\n");
	probe(b, 20 * HF_MS);
	for (int i = 0; i < 10; i++) {
		s = until_sample(b, HF_HEALTH_BUSLOST, is_mute);
		assert_string_equal(s.device, "0000:1b:00.0");
	}
	script(b, "devices 3\n");
	(void)until_sample(b, HF_HEALTH_BUSLOST, second_is_there);
}

/* The bus has two devices that NVML has not named, so the probe cannot tell which one is
 * nameless. */
static void a_device_without_a_name_is_not_guessed(void **state)
{
	struct bench *b = *state;
	struct hf_health_presence there = {.kind = HF_HEALTH_GPU};

	for (int i = 0; i < 3; i++) {
		snprintf(there.id, sizeof(there.id), "0000:1%c:00.0", 'a' + i);
		hf_intake_device(b->intake, &there);
	}
	hf_intake_count(b->intake, HF_COUNT_NVIDIA, 3);
	script(b, "devices 2\ncode nvmlDeviceGetHandleByIndex_v2 1 999\n");
	probe(b, 20 * HF_MS);
	for (int i = 0; i < 3; i++)
		assert_string_equal(until_sample(b, HF_HEALTH_BUSLOST, NULL).device,
				    "0000:1a:00.0");
}

static void the_recovery_action_is_followed_down_to_none(void **state)
{
	struct bench *b = *state;

	script(b, "devices 1\nvalue nvmlDeviceGetFieldValues 0 4\n");
	probe(b, 20 * HF_MS);
	(void)until_sample(b, HF_HEALTH_RECOVERY, is_drain_and_reset);
	script(b, "devices 1\nvalue nvmlDeviceGetFieldValues 0 1\n");
	(void)until_sample(b, HF_HEALTH_RECOVERY, is_reset);
	script(b, "devices 1\n");
	(void)until_sample(b, HF_HEALTH_RECOVERY, is_none);
}

static void an_xid_becomes_evidence(void **state)
{
	struct bench *b = *state;
	struct hf_health_input input = {0};

	script(b, "devices 1\nxid 0 0\nxid 0 999\nxid 0 94\n");
	probe(b, 20 * HF_MS);
	while (input.evidence_len == 0) {
		hf_test_loop_run(&b->t);
		hf_intake_take(b->intake, &input);
	}
	assert_int_equal(input.evidence_len, 1);
	assert_int_equal(input.evidence[0].detector, HF_HEALTH_XID);
	assert_int_equal(input.evidence[0].source, HF_HEALTH_BY_NVML);
	assert_int_equal(input.evidence[0].code, 94);
	assert_int_equal(input.evidence[0].gpu_instance, -1);
	assert_string_equal(input.evidence[0].device, "0000:1a:00.0");
	hf_intake_taken(b->intake);
}

static struct hf_health_sample only_sample(struct bench *b)
{
	struct hf_health_input input = {0};
	struct hf_health_sample s;

	hf_intake_take(b->intake, &input);
	assert_int_equal(input.samples_len, 1);
	s = input.samples[0];
	hf_intake_taken(b->intake);
	assert_int_equal(s.detector, HF_HEALTH_DRIVER);
	return s;
}

/* The driver is asked for the first time, and before it answers, another look is asked for. */
static void a_look_follows_the_one_under_way(void **state)
{
	struct bench *b = *state;
	hf_time poked_at;

	script(b, "devices 1\n");
	probe(b, HF_HOUR);
	for_a_while(b, HF_MS);
	b->probe->ops->poke(b->probe);
	poked_at = hf_intake_now(b->intake);
	while (hf_intake_driver_at(b->intake) < poked_at)
		hf_test_loop_run(&b->t);
}

static void turned_off_or_without_a_library_it_says_so(void **state)
{
	struct bench *b = *state;
	const char *why;

	b->argv[2] = "";
	probe(b, 20 * HF_MS);
	assert_int_equal(hf_intake_state(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, &why),
			 HF_INTAKE_OFF);
	assert_string_equal(why, "NVML is turned off");
	/* Reports of lost devices in the journal are dropped, because NVML can no longer take them
	 * back. */
	assert_true(only_sample(b).driver.aside);
	b->probe->ops->poke(b->probe);
	b->probe->ops->destroy(b->probe);
	b->probe = NULL;
	b->argv[2] = "libno-such-library.so.1";
	probe(b, 20 * HF_MS);
	do {
		hf_test_loop_run(&b->t);
		(void)hf_intake_state(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, &why);
	} while (!strstr(why, "libno-such-library.so.1"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(a_look_sees_all_facts_of_all_devices),
		T(a_library_without_half_of_its_functions_is_used_as_far_as_it_goes),
		T(the_instances_of_a_device_are_named),
		T(how_far_the_fabric_is_is_asked_in_either_form),
		T(a_library_that_is_not_there_is_told_with_the_loaders_words),
		T(a_driver_that_hangs_is_told_of_and_asked_again),
		T(a_library_that_takes_long_to_begin_is_let_begin),
		T(until_there_is_a_driver_each_look_may_be_the_long_one),
		T(how_long_it_takes_to_begin_is_known_afterwards),
		T(an_error_gives_a_library_that_had_begun_no_more_time),
		T(a_library_that_never_begins_is_a_driver_that_hangs),
		T(a_driver_that_kills_the_child_is_no_driver_that_hangs),
		T(what_the_library_prints_is_not_in_the_way),
		T(a_lost_device_keeps_the_name_that_it_had),
		T(any_call_may_say_that_a_device_is_lost),
		T(an_xid_is_told_of_unasked),
		T(a_program_that_talks_otherwise_is_ended),
		T(a_program_that_is_not_there_is_told_from_the_loop),
		T(the_callback_may_destroy_the_probe),
		T(the_probe_tells_what_the_brain_can_use),
		T(unsupported_is_off_and_never_a_sample),
		T(gpus_that_wait_for_the_fabric_are_counted),
		T(links_of_a_device_in_parts_are_not_missed),
		T(the_gpu_of_an_instance_stays_known),
		T(a_hang_is_a_sample_of_the_driver_until_it_answers_again),
		T(a_device_is_lost_needs_a_reset_and_is_back),
		T(a_device_that_never_had_a_handle_is_known_by_the_bus),
		T(a_device_without_a_name_is_not_guessed),
		T(the_recovery_action_is_followed_down_to_none),
		T(an_xid_becomes_evidence),
		T(a_look_follows_the_one_under_way),
		T(turned_off_or_without_a_library_it_says_so),
	};

	if (argc == 3 && strcmp(argv[1], "child") == 0)
		return hf_nvml_child_main(argv[2]);
	if (argc != 3)
		return 2;
	self = "/proc/self/exe";
	library = argv[1];
	library_old = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
