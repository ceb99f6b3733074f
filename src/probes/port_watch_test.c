/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/samples.h"
#include "harness/tree.h"
#include "probes/port_watch.h"

#include "base/mem.h"
#include "base/str.h"

/* Tests with port files in a temporary tree, on the virtual clock. */

#define PORT "/class/infiniband/mlx5_0/ports/1"

struct bench {
	char root[TREE_ROOT_MAX];
	struct hf_loop *loop;
	struct hf_intake *intake;
	struct hf_port_watch *watch;
	struct hf_health_input input;
};

static void on_news(HF_UNUSED void *arg, HF_UNUSED bool urgent)
{
}

static void put(struct bench *b, const char *name, const char *text)
{
	tree_put(b->root, name, text);
}

static void drop(struct bench *b, const char *name)
{
	tree_drop(b->root, name);
}

static void put_port(struct bench *b)
{
	tree_put_port(b->root, "mlx5_0", "0000:5e:00.0");
}

static int setup(void **state)
{
	struct bench *b = hf_xcalloc(1, sizeof(*b));

	tree_init(b->root);
	b->loop = hf_loop_create_virtual(0);
	b->intake = hf_intake_create(
		&(struct hf_intake_options){.loop = b->loop, .news = on_news, .arg = b});
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	hf_port_watch_destroy(b->watch);
	hf_intake_destroy(b->intake);
	hf_loop_destroy(b->loop);
	tree_release(b->root);
	free(b);
	return 0;
}

static void start(struct bench *b)
{
	b->watch = hf_port_watch_create(
		b->intake,
		&(struct hf_sysfs_options){.sys_root = b->root, .devices_every = 30 * HF_SECOND});
}

static void pass(struct bench *b, hf_time span)
{
	samples_pass(b->loop, b->intake, span, &b->input);
}

static const struct hf_health_sample *last(const struct bench *b, enum hf_health_detector detector,
					   size_t *ret_count)
{
	return samples_last(&b->input, detector, ret_count);
}

static void a_port_is_measured_each_ten_seconds_and_its_changes_at_once(void **state)
{
	struct bench *b = *state;
	const struct hf_health_sample *s;
	const struct hf_health_presence *known;
	size_t count, len;

	put_port(b);
	start(b);
	pass(b, HF_SECOND / 2);
	s = last(b, HF_HEALTH_IB, &count);
	assert_int_equal(count, 1);
	assert_string_equal(s->device, "mlx5_0/1");
	assert_true(s->ib.up && !s->ib.missing);
	assert_int_equal(s->ib.link_downed, 2);
	assert_int_equal(s->ib.fatal_errors, 6);
	assert_int_equal(s->ib.symbol_errors, 40);
	assert_int_equal(s->ib.recoveries, 5);
	assert_int_equal(s->ib.slow_restarts, 6);
	known = hf_intake_devices(b->intake, &len);
	assert_int_equal(len, 1);
	assert_int_equal(known->kind, HF_HEALTH_PORT);
	assert_string_equal(known->alias, "0000:5e:00.0");
	pass(b, 20 * HF_SECOND);
	assert_non_null(last(b, HF_HEALTH_IB, &count));
	assert_int_equal(count, 2);
	put(b, PORT "/state", "1: DOWN\n");
	put(b, PORT "/counters/link_downed", "3\n");
	pass(b, HF_SECOND);
	s = last(b, HF_HEALTH_IB, &count);
	assert_int_equal(count, 1);
	assert_false(s->ib.up);
	/* Counters have their own interval, so this rise is reported with the next reading of the
	 * counters. */
	assert_int_equal(s->ib.link_downed, 2);
	pass(b, 10 * HF_SECOND);
	s = last(b, HF_HEALTH_IB, &count);
	assert_int_equal(count, 1);
	assert_int_equal(s->ib.link_downed, 3);
}

static void the_ports_above_its_function_are_known(void **state)
{
	struct bench *b = *state;
	const struct hf_health_presence *known;
	size_t len;

	put_port(b);
	tree_link(b->root, "/bus/pci/devices/0000:5e:00.0",
		  "../../../devices/pci0000:5c/0000:5c:01.0/0000:5e:00.0");
	start(b);
	pass(b, HF_SECOND / 2);
	known = hf_intake_devices(b->intake, &len);
	assert_int_equal(len, 1);
	assert_string_equal(known->above, "0000:5c:01.0");
	/* The port's place on the bus stays known while only states are read. */
	pass(b, 5 * HF_SECOND);
	assert_string_equal(known->above, "0000:5c:01.0");
}

static void a_port_that_never_was_up_is_nobodys(void **state)
{
	struct bench *b = *state;
	size_t count;

	put_port(b);
	put(b, PORT "/state", "1: DOWN\n");
	start(b);
	pass(b, HF_MINUTE);
	assert_null(last(b, HF_HEALTH_IB, &count));
	put(b, PORT "/state", "4: ACTIVE\n");
	pass(b, HF_MINUTE);
	assert_non_null(last(b, HF_HEALTH_IB, &count));
}

static void ports_that_there_is_no_room_for_are_counted_once_each(void **state)
{
	struct bench *b = *state;
	char name[64];

	for (int i = 0; i < HF_HEALTH_DEVICES_MAX + 10; i++) {
		snprintf(name, sizeof(name), "/class/infiniband/mlx5_%02d/ports/1/state", i);
		/* A port that was never up does not count as missing. */
		put(b, name, i == 7 ? "1: DOWN\n" : "4: ACTIVE\n");
	}
	start(b);
	pass(b, HF_MINUTE);
	assert_int_equal(hf_intake_refused(b->intake),
			 HF_HEALTH_DEVICES_MAX + 9 - HF_HEALTH_PORTS_MAX);
}

static void a_port_that_is_gone_is_missing(void **state)
{
	struct bench *b = *state;
	const struct hf_health_sample *s;
	size_t count;

	put_port(b);
	start(b);
	pass(b, HF_SECOND);
	drop(b, "/class/infiniband/mlx5_0");
	pass(b, 30 * HF_SECOND);
	s = last(b, HF_HEALTH_IB, &count);
	assert_int_equal(count, 3);
	assert_true(s->ib.missing);
	put_port(b);
	pass(b, 10 * HF_SECOND);
	s = last(b, HF_HEALTH_IB, &count);
	assert_true(s && !s->ib.missing && s->ib.up);
}

static void rename_to(struct bench *b, const char *from, const char *to)
{
	char old[512], new[512];

	snprintf(old, sizeof(old), "%s/class/infiniband/%s", b->root, from);
	snprintf(new, sizeof(new), "%s/class/infiniband/%s", b->root, to);
	assert_int_equal(rename(old, new), 0);
}

static const struct hf_health_sample *of(const struct bench *b, const char *device)
{
	const struct hf_health_sample *found = NULL;

	for (size_t i = 0; i < b->input.samples_len; i++)
		if (hf_streq(b->input.samples[i].device, device))
			found = &b->input.samples[i];
	return found;
}

static bool is_up(const struct bench *b, const char *device)
{
	const struct hf_health_sample *s = of(b, device);

	return s && s->ib.up && !s->ib.missing && !s->ib.hidden;
}

/* A port's name may change by "rdma dev set … name", by udev after a reload of the driver, or by
 * another order of probing. */
static void a_port_that_is_renamed_is_the_same_port(void **state)
{
	struct bench *b = *state;
	size_t count, len;

	put_port(b);
	tree_put_port(b->root, "mlx5_1", "0000:5f:00.0");
	start(b);
	pass(b, HF_SECOND);
	rename_to(b, "mlx5_0", "ibp94s0");
	pass(b, 30 * HF_SECOND);
	(void)last(b, HF_HEALTH_IB, &count);
	assert_int_equal(count, 6);
	assert_true(is_up(b, "mlx5_0/1") && is_up(b, "mlx5_1/1"));
	(void)hf_intake_devices(b->intake, &len);
	assert_int_equal(len, 2);
	/* Later faults are the renamed port's. */
	put(b, "/class/infiniband/ibp94s0/ports/1/state", "1: DOWN\n");
	pass(b, HF_SECOND);
	assert_false(is_up(b, "mlx5_0/1"));
	put(b, "/class/infiniband/ibp94s0/ports/1/state", "4: ACTIVE\n");
	/* The two ports have exchanged their names. */
	rename_to(b, "ibp94s0", "mlx5_2");
	rename_to(b, "mlx5_1", "mlx5_0");
	rename_to(b, "mlx5_2", "mlx5_1");
	put(b, "/class/infiniband/mlx5_1/ports/1/counters/link_downed", "7\n");
	pass(b, 30 * HF_SECOND);
	assert_true(is_up(b, "mlx5_0/1") && is_up(b, "mlx5_1/1"));
	assert_int_equal(of(b, "mlx5_0/1")->ib.link_downed, 7);
	assert_int_equal(of(b, "mlx5_1/1")->ib.link_downed, 2);
	/* If one of two renamed ports is gone, the probe reports the right one. */
	drop(b, "/class/infiniband/mlx5_1");
	pass(b, 10 * HF_SECOND);
	assert_true(of(b, "mlx5_0/1")->ib.missing && is_up(b, "mlx5_1/1"));
}

/* A port of another PCI function that has the old name of a port is another port. */
static void an_old_name_does_not_make_two_ports_one(void **state)
{
	struct bench *b = *state;
	const struct hf_health_presence *known;
	size_t len;

	put_port(b);
	start(b);
	pass(b, HF_SECOND);
	rename_to(b, "mlx5_0", "ibp94s0");
	tree_put_port(b->root, "mlx5_0", "0000:60:00.0");
	put(b, PORT "/counters/link_downed", "9\n");
	pass(b, 30 * HF_SECOND);
	assert_true(is_up(b, "mlx5_0/1") && is_up(b, "0000:60:00.0/1"));
	assert_int_equal(of(b, "mlx5_0/1")->ib.link_downed, 2);
	assert_int_equal(of(b, "0000:60:00.0/1")->ib.link_downed, 9);
	known = hf_intake_devices(b->intake, &len);
	assert_int_equal(len, 2);
	assert_string_equal(known[1].alias, "0000:60:00.0");
}

static void what_was_renamed_while_no_agent_ran_is_known_by_its_function(void **state)
{
	struct bench *b = *state;
	size_t count;

	hf_intake_remember(b->intake, "mlx5_0/1", "0000:5f:00.0");
	hf_intake_remember(b->intake, "mlx5_1/1", "0000:5e:00.0");
	/* An older journal stores no PCI address. */
	hf_intake_remember(b->intake, "mlx5_7/1", "");
	put_port(b);
	tree_put_port(b->root, "ibp95s0", "0000:5f:00.0");
	tree_put_port(b->root, "mlx5_7", "0000:61:00.0");
	start(b);
	pass(b, HF_SECOND);
	(void)last(b, HF_HEALTH_IB, &count);
	assert_int_equal(count, 3);
	assert_true(is_up(b, "mlx5_0/1") && is_up(b, "mlx5_1/1") && is_up(b, "mlx5_7/1"));
}

/* A port in a pod's network namespace is hidden and not missing: its function is on the bus with
 * its driver. */
static void a_port_in_another_namespace_is_hidden_and_not_missing(void **state)
{
	struct bench *b = *state;
	const struct hf_health_sample *s;
	size_t count;

	put_port(b);
	tree_link(b->root, "/0000:5e:00.0/driver", "../bus/pci/drivers/mlx5_core");
	tree_link(b->root, "/bus/pci/devices/0000:5e:00.0", "../../../0000:5e:00.0");
	start(b);
	pass(b, HF_SECOND);
	drop(b, "/class/infiniband/mlx5_0");
	pass(b, 30 * HF_SECOND);
	s = last(b, HF_HEALTH_IB, &count);
	assert_int_equal(count, 3);
	assert_true(s->ib.hidden && !s->ib.missing);
	/* If a virtual machine gets the function, and then if the function has no driver, the port
	 * is gone. */
	drop(b, "/0000:5e:00.0/driver");
	tree_link(b->root, "/0000:5e:00.0/driver", "../bus/pci/drivers/vfio-pci");
	pass(b, 10 * HF_SECOND);
	s = last(b, HF_HEALTH_IB, &count);
	assert_true(s && s->ib.missing && !s->ib.hidden);
	drop(b, "/0000:5e:00.0/driver");
	pass(b, 10 * HF_SECOND);
	s = last(b, HF_HEALTH_IB, &count);
	assert_true(s && s->ib.missing && !s->ib.hidden);
	tree_link(b->root, "/0000:5e:00.0/driver", "../bus/pci/drivers/mlx5_core");
	put_port(b);
	pass(b, 10 * HF_SECOND);
	s = last(b, HF_HEALTH_IB, &count);
	assert_true(s && s->ib.up && !s->ib.hidden && !s->ib.missing);
}

static void so_is_one_that_the_agent_before_saw(void **state)
{
	struct bench *b = *state;
	const struct hf_health_sample *s;
	size_t count;

	hf_intake_remember(b->intake, "mlx5_0/1", "0000:5e:00.0");
	tree_link(b->root, "/bus/pci/devices/0000:5e:00.0/driver", "../mlx5_core");
	start(b);
	pass(b, HF_SECOND);
	s = last(b, HF_HEALTH_IB, &count);
	assert_true(s && s->ib.hidden && !s->ib.missing);
	drop(b, "/bus/pci/devices/0000:5e:00.0/driver");
	tree_link(b->root, "/bus/pci/devices/0000:5e:00.0/driver", "../vfio-pci");
	pass(b, 10 * HF_SECOND);
	s = last(b, HF_HEALTH_IB, &count);
	assert_true(s && s->ib.missing && !s->ib.hidden);
}

static void a_port_that_the_agent_before_saw_is_watched_though_it_is_down_or_gone(void **state)
{
	struct bench *b = *state;
	const struct hf_health_sample *s;
	size_t count;

	hf_intake_remember(b->intake, "0000:3d:00.0", "");
	hf_intake_remember(b->intake, "mlx5_0/1", "");
	put_port(b);
	put(b, PORT "/state", "1: DOWN\n");
	start(b);
	pass(b, HF_SECOND);
	s = last(b, HF_HEALTH_IB, &count);
	assert_int_equal(count, 1);
	assert_string_equal(s->device, "mlx5_0/1");
	assert_true(!s->ib.up && !s->ib.missing);
	assert_int_equal(s->ib.link_downed, 2);
	drop(b, "/class/infiniband/mlx5_0");
	pass(b, 10 * HF_SECOND);
	s = last(b, HF_HEALTH_IB, &count);
	assert_true(s && s->ib.missing);
}

static void a_port_that_was_gone_at_the_start_is_measured_when_it_is_back(void **state)
{
	struct bench *b = *state;
	const struct hf_health_sample *s;
	size_t count;

	hf_intake_remember(b->intake, "mlx5_0/1", "");
	start(b);
	pass(b, HF_SECOND);
	s = last(b, HF_HEALTH_IB, &count);
	assert_int_equal(count, 1);
	assert_true(s->ib.missing);
	put_port(b);
	pass(b, 10 * HF_SECOND);
	s = last(b, HF_HEALTH_IB, &count);
	assert_true(s && s->ib.up && s->ib.symbol_errors == 40);
}

static void a_counter_that_cannot_be_read_makes_no_sample(void **state)
{
	struct bench *b = *state;
	const struct hf_health_sample *s;
	size_t count;

	put_port(b);
	drop(b, PORT "/hw_counters/roce_slow_restart");
	start(b);
	pass(b, HF_SECOND);
	/* A counter that was absent in the first look is not used later. */
	put(b, PORT "/hw_counters/roce_slow_restart", "6\n");
	pass(b, 10 * HF_SECOND);
	s = last(b, HF_HEALTH_IB, &count);
	assert_true(s && s->ib.slow_restarts == 0);
	put(b, PORT "/counters/symbol_error", "N/A (no PMA)\n");
	pass(b, 30 * HF_SECOND);
	assert_null(last(b, HF_HEALTH_IB, &count));
	put(b, PORT "/counters/symbol_error", "40\n");
	pass(b, 10 * HF_SECOND);
	s = last(b, HF_HEALTH_IB, &count);
	assert_true(s && s->ib.symbol_errors == 40);
	/* A malformed state counts as unknown: no sample is made. */
	put(b, PORT "/state", "\n");
	pass(b, 10 * HF_SECOND);
	assert_null(last(b, HF_HEALTH_IB, &count));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_port_is_measured_each_ten_seconds_and_its_changes_at_once),
		T(a_port_that_never_was_up_is_nobodys),
		T(the_ports_above_its_function_are_known),
		T(ports_that_there_is_no_room_for_are_counted_once_each),
		T(a_port_that_is_gone_is_missing),
		T(a_port_that_is_renamed_is_the_same_port),
		T(an_old_name_does_not_make_two_ports_one),
		T(what_was_renamed_while_no_agent_ran_is_known_by_its_function),
		T(a_port_in_another_namespace_is_hidden_and_not_missing),
		T(so_is_one_that_the_agent_before_saw),
		T(a_port_that_the_agent_before_saw_is_watched_though_it_is_down_or_gone),
		T(a_port_that_was_gone_at_the_start_is_measured_when_it_is_back),
		T(a_counter_that_cannot_be_read_makes_no_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
