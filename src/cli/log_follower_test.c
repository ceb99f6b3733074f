/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/log_follower.h"

#include "harness/cli_world.h"
#include "harness/test.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"

static struct cli_world world;
static struct hf_log_follower *follows;
static struct hf_strbuf said = HF_STRBUF_INIT(4096);

static void on_bytes(void *arg, const char *pod, const char *bytes, size_t len)
{
	hf_strbuf_addf(&said, "%s<%.*s>", pod, (int)len, bytes);
}

static void on_init_bytes(void *arg, const char *pod, const char *container, const char *bytes,
			  size_t len)
{
	hf_strbuf_addf(&said, "%s/%s<%.*s>", pod, container, (int)len, bytes);
}

static void on_ended(void *arg, const char *pod, int code, const char *message)
{
	hf_strbuf_addf(&said, "%s%s", code != 0 ? message : "",
		       hf_log_follower_is_open(follows) ? "" : ".");
	if (!hf_log_follower_is_open(follows))
		hf_loop_stop(world.loop);
}

/* container, init_bytes: options of the follower, each of which may be NULL. */
static void begin_with(const char *container,
		       void (*init_bytes)(void *, const char *, const char *, const char *, size_t))
{
	struct hf_log_follower_options options = {.ns = "default",
						  .container = container,
						  .tail_lines = -1,
						  .bytes = on_bytes,
						  .init_bytes = init_bytes,
						  .ended = on_ended};

	cli_world_init(&world);
	cli_world_job(&world, "j", 1, "Running");
	cli_world_pod(&world, "j", "worker-0", "Running");
	options.loop = world.loop;
	options.store = world.store;
	follows = hf_log_follower_create(&options);
	hf_strbuf_clear(&said);
}

static void begin(void)
{
	begin_with(NULL, NULL);
}

static void end(void)
{
	follows = hf_log_follower_destroy(follows);
	hf_strbuf_release(&said);
	cli_world_release(&world);
}

/* Gives the pod's container this status (JSON with ' in place of ") and passes the pod to the
 * follower. */
static void becomes(const char *status)
{
	HF_AUTOFREE char *patch =
		hf_xasprintf("{'status':{'containerStatuses':[{'name':'pytorch',%s}]}}", status);
	struct hf_doc *pod;

	cli_world_patch(&world, &hf_pods, "j-worker-0", patch);
	pod = cli_world_get(&world, &hf_pods, "j-worker-0");
	hf_log_follower_update_pod(follows, pod);
	hf_doc_unref(pod);
}

static void told_to_the_end(void)
{
	while (hf_log_follower_is_open(follows))
		hf_loop_run(world.loop);
}

static void the_next_run_of_a_container_is_told_too(void **state)
{
	(void)state;
	begin();
	cli_world_log(&world, "j-worker-0", "one");
	becomes("'restartCount':0,'state':{'running':{}}");
	told_to_the_end();
	becomes("'restartCount':0,'state':{'running':{}}");
	assert_false(hf_log_follower_is_open(follows));
	cli_world_log(&world, "j-worker-0", "two");
	becomes("'restartCount':1,'state':{'running':{}},'lastState':{'terminated':{'exitCode':7}}");
	told_to_the_end();
	becomes("'restartCount':1,'state':{'terminated':{'exitCode':0}}");
	assert_false(hf_log_follower_is_open(follows));
	assert_string_equal(said.data, "j-worker-0<one>.j-worker-0<two>.");
	end();
}

static void the_log_of_an_init_container_is_followed(void **state)
{
	static const char init[] =
		"{'status':{'initContainerStatuses':[{'name':'prep','restartCount':0,'state':{'running':{}}}],"
		"'containerStatuses':[{'name':'pytorch','restartCount':0,'state':{'waiting':{'reason':"
		"'PodInitializing'}}}]}}";
	struct hf_doc *pod;

	(void)state;
	begin_with("prep", NULL);
	cli_world_log(&world, "j-worker-0", "prepared");
	cli_world_patch(&world, &hf_pods, "j-worker-0", init);
	pod = cli_world_get(&world, &hf_pods, "j-worker-0");
	hf_log_follower_update_pod(follows, pod);
	hf_doc_unref(pod);
	told_to_the_end();
	assert_string_equal(said.data, "j-worker-0<prepared>.");
	end();
}

static void init_containers_are_followed_beside_the_first_container(void **state)
{
	static const char init[] =
		"{'status':{'initContainerStatuses':["
		"{'name':'prep','restartCount':0,'state':{'terminated':{'exitCode':0}}},"
		"{'name':'fetch','restartCount':0,'state':{'terminated':{'exitCode':0}}}]}}";

	(void)state;
	begin_with(NULL, on_init_bytes);
	cli_world_log(&world, "j-worker-0", "x");
	cli_world_patch(&world, &hf_pods, "j-worker-0", init);
	becomes("'restartCount':0,'state':{'running':{}}");
	told_to_the_end();
	assert_string_equal(said.data, "j-worker-0/prep<x>j-worker-0/fetch<x>j-worker-0<x>.");
	end();
}

static void runs_of_one_pod_come_one_after_the_other(void **state)
{
	(void)state;
	begin();
	cli_world_log(&world, "j-worker-0", "x");
	becomes("'restartCount':0,'state':{'running':{}}");
	becomes("'restartCount':1,'state':{'running':{}}");
	told_to_the_end();
	assert_string_equal(said.data, "j-worker-0<x>j-worker-0<x>.");
	end();
}

static void a_run_that_was_missed_is_asked_for_as_the_previous_one(void **state)
{
	(void)state;
	begin();
	cli_world_log(&world, "j-worker-0", "x");
	becomes("'restartCount':1,'state':{'running':{}}");
	assert_true(world.log_asked.previous);
	assert_false(world.log_asked.follow);
	told_to_the_end();
	assert_false(world.log_asked.previous);
	assert_true(world.log_asked.follow);
	end();
}

static void of_a_run_that_the_kubelet_lost_the_previous_one_is_asked_for(void **state)
{
	(void)state;
	begin();
	cli_world_log(&world, "j-worker-0", "x");
	becomes("'restartCount':3,'state':{'terminated':{'exitCode':137,"
		"'reason':'ContainerStatusUnknown'}},'lastState':{'terminated':{'exitCode':3}}");
	assert_true(world.log_asked.previous);
	assert_false(world.log_asked.follow);
	told_to_the_end();
	assert_string_equal(said.data, "j-worker-0<x>.");
	end();
}

static void nothing_is_asked_before_a_container_has_started(void **state)
{
	(void)state;
	begin();
	becomes("'state':{'waiting':{'reason':'ContainerCreating'}}");
	becomes("'state':{'waiting':{'reason':'CreateContainerConfigError'}}");
	assert_false(hf_log_follower_is_open(follows));
	end();
}

static void what_a_crash_loop_wrote_last_is_told(void **state)
{
	(void)state;
	begin();
	cli_world_log(&world, "j-worker-0", "x");
	becomes("'restartCount':0,'state':{'terminated':{'exitCode':5}}");
	told_to_the_end();
	becomes("'restartCount':1,'state':{'waiting':{'reason':'CrashLoopBackOff'}},"
		"'lastState':{'terminated':{'exitCode':5}}");
	assert_true(hf_log_follower_is_open(follows));
	told_to_the_end();
	/* While the container is created, restartCount already has the number of the next run. */
	becomes("'restartCount':2,'state':{'waiting':{'reason':'ContainerCreating'}},"
		"'lastState':{'terminated':{'exitCode':5}}");
	assert_false(hf_log_follower_is_open(follows));
	end();
}

static void write_log(struct cli_world *w)
{
	cli_world_log(w, "j-worker-0", "at last");
}

static void a_log_that_cannot_be_opened_is_tried_again(void **state)
{
	(void)state;
	begin();
	cli_world_log(&world, "j-worker-0", NULL);
	becomes("'restartCount':0,'state':{'running':{}}");
	cli_world_later(&world, 3 * HF_SECOND, write_log);
	told_to_the_end();
	assert_string_equal(said.data, "j-worker-0<at last>.");
	end();
}

static void a_log_that_was_given_up_is_tried_when_its_pod_changes(void **state)
{
	(void)state;
	begin();
	cli_world_log(&world, "j-worker-0", NULL);
	becomes("'restartCount':0,'state':{'running':{}}");
	told_to_the_end();
	assert_string_equal(said.data, "container \"pytorch\" is waiting to start.");
	write_log(&world);
	becomes("'restartCount':0,'state':{'running':{}},'image':'y'");
	told_to_the_end();
	assert_true(hf_str_has_suffix(said.data, "start.j-worker-0<at last>."));
	becomes("'restartCount':0,'state':{'running':{}},'image':'z'");
	assert_false(hf_log_follower_is_open(follows));
	end();
}

static void of_a_pod_that_is_joined_only_the_newest_run_is_told(void **state)
{
	struct hf_doc *pod;

	(void)state;
	begin();
	cli_world_log(&world, "j-worker-0", "x");
	pod = cli_world_get(&world, &hf_pods, "j-worker-0"); /* restarted twice */
	hf_log_follower_join_pod(follows, pod);
	hf_doc_unref(pod);
	assert_false(world.log_asked.previous);
	told_to_the_end();
	assert_string_equal(said.data, "j-worker-0<x>.");
	becomes("'restartCount':3,'state':{'running':{}}");
	assert_false(hf_log_follower_is_ending(follows));
	becomes("'restartCount':3,'state':{'terminated':{'exitCode':0}}");
	assert_true(hf_log_follower_is_ending(follows));
	told_to_the_end();
	assert_string_equal(said.data, "j-worker-0<x>.j-worker-0<x>.");
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_run_of_a_container_is_told_too),
		cmocka_unit_test(the_log_of_an_init_container_is_followed),
		cmocka_unit_test(init_containers_are_followed_beside_the_first_container),
		cmocka_unit_test(runs_of_one_pod_come_one_after_the_other),
		cmocka_unit_test(a_run_that_was_missed_is_asked_for_as_the_previous_one),
		cmocka_unit_test(of_a_run_that_the_kubelet_lost_the_previous_one_is_asked_for),
		cmocka_unit_test(nothing_is_asked_before_a_container_has_started),
		cmocka_unit_test(what_a_crash_loop_wrote_last_is_told),
		cmocka_unit_test(a_log_that_cannot_be_opened_is_tried_again),
		cmocka_unit_test(a_log_that_was_given_up_is_tried_when_its_pod_changes),
		cmocka_unit_test(of_a_pod_that_is_joined_only_the_newest_run_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
