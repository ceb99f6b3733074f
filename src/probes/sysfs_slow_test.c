/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/real_loop.h"
#include "probes/nvml.h"
#include "probes/sysfs.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

/* Tests on the real loop, with a sysfs whose reads block until the test releases them. */

#define DEADLINE (50 * HF_MS)

static sem_t go;
static bool devices_hang, ports_hang;

static void wait_for_driver(void)
{
	while (sem_wait(&go) != 0)
		assert_int_equal(errno, EINTR);
}

void __wrap_hf_sysfs_gpus(const char *sys_root, const char *proc_root,
			  struct hf_sysfs_gpus *ret_gpus);
void __wrap_hf_sysfs_gpus(const char *sys_root, const char *proc_root,
			  struct hf_sysfs_gpus *ret_gpus)
{
	(void)sys_root;
	if (devices_hang)
		wait_for_driver();
	memset(ret_gpus, 0, sizeof(*ret_gpus));
	ret_gpus->known = true;
	ret_gpus->len = 1;
	ret_gpus->items[0].vendor = HF_SYSFS_AMD;
	ret_gpus->items[0].ras_uncorrectable = 0;
	snprintf(ret_gpus->items[0].address, sizeof(ret_gpus->items[0].address), "0000:1a:00.0");
}

void __wrap_hf_sysfs_ports(const char *sys_root, bool counters, struct hf_sysfs_ports *ret_ports);
void __wrap_hf_sysfs_ports(const char *sys_root, bool counters, struct hf_sysfs_ports *ret_ports)
{
	(void)sys_root;
	(void)counters;
	if (ports_hang)
		wait_for_driver();
	memset(ret_ports, 0, sizeof(*ret_ports));
	ret_ports->known = true;
	ret_ports->len = 1;
	ret_ports->items[0].state = 4;
	snprintf(ret_ports->items[0].id, sizeof(ret_ports->items[0].id), "mlx5_0/1");
}

struct bench {
	struct hf_test_loop t;
	struct hf_metrics *metrics;
	struct hf_intake *intake;
	struct hf_probe *probe;
	bool (*until)(const struct bench *bench);
};

static void on_news(void *arg, HF_UNUSED bool urgent)
{
	struct bench *b = arg;

	if (b->until && b->until(b))
		hf_loop_stop(b->t.loop);
}

static void run_until(struct bench *b, bool (*until)(const struct bench *bench))
{
	b->until = until;
	if (!until(b))
		hf_test_loop_run(&b->t);
	b->until = NULL;
	assert_true(until(b));
}

static int setup(void **state)
{
	struct bench *b = hf_xcalloc(1, sizeof(*b));

	devices_hang = ports_hang = false;
	hf_test_loop_init(&b->t);
	b->metrics = hf_metrics_create();
	b->intake = hf_intake_create(&(struct hf_intake_options){
		.loop = b->t.loop, .metrics = b->metrics, .news = on_news, .arg = b});
	hf_intake_off(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, "no library");
	b->probe = hf_sysfs_probe_create(b->intake,
					 &(struct hf_sysfs_options){.sys_root = "/nonexistent",
								    .proc_root = "/nonexistent",
								    .ports_every = 10 * HF_MS,
								    .devices_every = 10 * HF_MS,
								    .deadline = DEADLINE});
	b->probe->ops->start(b->probe);
	*state = b;
	return 0;
}

static unsigned count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	unsigned count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

/* Waits until the thread that the probe left behind has ended, because it holds an open file. */
static void await_left_thread(void)
{
	for (int ms = 0; ms < 60000 && count_threads() > 1; ms++)
		(void)poll(NULL, 0, 1);
	assert_int_equal(count_threads(), 1);
}

static int teardown(void **state)
{
	struct bench *b = *state;

	if (b->probe)
		b->probe->ops->destroy(b->probe);
	await_left_thread();
	hf_intake_destroy(b->intake);
	hf_metrics_destroy(b->metrics);
	hf_test_loop_release(&b->t);
	free(b);
	return 0;
}

static bool is(const struct bench *b, enum hf_health_detector detector, enum hf_intake_state state)
{
	const char *why;

	return hf_intake_state(b->intake, HF_HEALTH_BY_SYSFS, detector, &why) == state;
}

static bool both_see(const struct bench *b)
{
	return is(b, HF_HEALTH_AMD, HF_INTAKE_OK) && is(b, HF_HEALTH_IB, HF_INTAKE_OK);
}

static bool device_is_off(const struct bench *b)
{
	return is(b, HF_HEALTH_AMD, HF_INTAKE_OFF);
}

static bool port_is_off(const struct bench *b)
{
	return is(b, HF_HEALTH_IB, HF_INTAKE_OFF);
}

static unsigned hung_drivers(struct bench *b)
{
	struct hf_health_input input = {.now = 0};
	unsigned found = 0;

	hf_intake_take(b->intake, &input);
	for (size_t i = 0; i < input.samples_len; i++)
		found += input.samples[i].detector == HF_HEALTH_DRIVER &&
			 input.samples[i].driver.timed_out;
	hf_intake_taken(b->intake);
	return found;
}

static bool timed_out_thrice(const struct bench *b)
{
	struct hf_health_input input = {.now = 0};
	unsigned found = 0;

	hf_intake_take((struct hf_intake *)(uintptr_t)b->intake, &input);
	for (size_t i = 0; i < input.samples_len; i++)
		found += input.samples[i].detector == HF_HEALTH_DRIVER &&
			 input.samples[i].driver.timed_out;
	return found >= 3;
}

static void a_read_that_hangs_is_a_driver_that_hangs_and_the_ports_are_seen_on(void **state)
{
	struct bench *b = *state;

	run_until(b, both_see);
	assert_int_equal(hung_drivers(b), 0);
	devices_hang = true;
	/* Each passed deadline is one more sample, and no further look starts meanwhile. */
	run_until(b, timed_out_thrice);
	assert_true(device_is_off(b));
	assert_true(is(b, HF_HEALTH_IB, HF_INTAKE_OK));
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_PCI), -1);
	devices_hang = false;
	sem_post(&go);
	run_until(b, both_see);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_PCI), 1);
}

static bool timed_out_once(const struct bench *b)
{
	struct hf_health_input input = {.now = 0};

	hf_intake_take((struct hf_intake *)(uintptr_t)b->intake, &input);
	for (size_t i = 0; i < input.samples_len; i++)
		if (input.samples[i].detector == HF_HEALTH_DRIVER &&
		    input.samples[i].driver.timed_out)
			return true;
	return false;
}

/* An image for both makers has NVIDIA's library too, which answers between the deadlines that AMD's
 * sysfs misses. */
static void so_it_is_beside_a_library_that_has_no_devices_here(void **state)
{
	struct bench *b = *state;
	struct hf_nvml_record *none = hf_xcalloc(1, sizeof(*none));

	none->kind = HF_NVML_ROUND;
	run_until(b, both_see);
	devices_hang = true;
	for (int i = 0; i < 3; i++) {
		(void)hung_drivers(b);
		run_until(b, timed_out_once);
		hf_nvml_report(b->intake, none);
	}
	devices_hang = false;
	sem_post(&go);
	run_until(b, both_see);
	free(none);
}

static void a_port_that_hangs_is_not_seen_and_the_devices_are(void **state)
{
	struct bench *b = *state;

	run_until(b, both_see);
	ports_hang = true;
	run_until(b, port_is_off);
	assert_true(is(b, HF_HEALTH_AMD, HF_INTAKE_OK));
	assert_int_equal(hung_drivers(b), 0);
	/* The probe ends without waiting for the hanging thread. */
	b->probe->ops->destroy(b->probe);
	b->probe = NULL;
	sem_post(&go);
}

static void times_and_time_outs_are_counted_by_probe(void **state)
{
	struct bench *b = *state;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(1 << 16);

	ports_hang = true;
	run_until(b, port_is_off);
	hf_metrics_render(b->metrics, &text);
	assert_non_null(
		strstr(text.data, "holdfast_agent_probe_seconds_count{probe=\"sysfs-devices\"}"));
	assert_null(strstr(text.data, "holdfast_agent_probe_seconds_count{probe=\"sysfs-ports\"}"));
	assert_non_null(
		strstr(text.data, "holdfast_agent_probe_timeouts_total{probe=\"sysfs-ports\"} 1"));
	assert_non_null(strstr(text.data, "holdfast_agent_probe_timeouts_total{probe=\"nvml\"} 0"));
	assert_true(hf_intake_looked_at(b->intake, HF_PROBE_PORTS) == HF_TIME_NONE);
	ports_hang = false;
	sem_post(&go);
	run_until(b, both_see);
	assert_true(hf_intake_looked_at(b->intake, HF_PROBE_PORTS) != HF_TIME_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_read_that_hangs_is_a_driver_that_hangs_and_the_ports_are_seen_on, setup,
			teardown),
		cmocka_unit_test_setup_teardown(so_it_is_beside_a_library_that_has_no_devices_here,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_port_that_hangs_is_not_seen_and_the_devices_are,
						setup, teardown),
		cmocka_unit_test_setup_teardown(times_and_time_outs_are_counted_by_probe, setup,
						teardown),
	};

	/* Initialize the semaphore once for all tests: a thread that a test left behind may still
	 * wait for it. */
	if (sem_init(&go, 0, 0) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
