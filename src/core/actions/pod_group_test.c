/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/actions/actions_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

#include "base/str.h"

static struct brain b;
static struct hf_key_value requests[] = {{"cpu", "500m"}, {"nvidia.com/gpu", "1"}};

static void begin(const char *scheduler)
{
	brain_init(&b, &brain_kind, 1, 3);
	b.settings.gang_scheduler = scheduler;
	b.container.requests = requests;
	b.container.requests_len = HF_ARRAY_LEN(requests);
}

static const char *leaf(const struct hf_extra *extra, const char *path)
{
	for (size_t i = 0; i < extra->content_len; i++)
		if (hf_streq(extra->content[i].path, path))
			return extra->content[i].value;
	return NULL;
}

static int64_t number(const struct hf_extra *extra, const char *path)
{
	for (size_t i = 0; i < extra->content_len; i++)
		if (hf_streq(extra->content[i].path, path))
			return extra->content[i].number;
	return -1;
}

static const struct hf_action *created_group(void)
{
	const struct hf_action *action = brain_action(&b, HF_ACTION_CREATE_EXTRA, "demo");

	assert_non_null(action);
	return action;
}

static void a_group_has_all_ranks_and_what_they_ask_for(void **state)
{
	const struct hf_action *action;

	(void)state;
	begin("my-scheduler");
	brain_step(&b);
	action = created_group();
	assert_int_equal(action->extra->kind, HF_EXTRA_POD_GROUP);
	assert_int_equal(number(action->extra, "spec/minMember"), 4);
	assert_string_equal(leaf(action->extra, "spec/minResources/cpu"), "2");
	assert_string_equal(leaf(action->extra, "spec/minResources/nvidia.com~1gpu"), "4");
	assert_null(leaf(action->extra, "spec/queue"));
	/* The pods are created in the same step, after the group. */
	assert_string_equal(
		brain_edit(&b, "demo-hand-1", HF_EDIT_LABEL, "scheduling.x-k8s.io/pod-group"),
		"demo");
	assert_string_equal(brain_edit(&b, "demo-hand-1", HF_EDIT_SCHEDULER_NAME, NULL),
			    "my-scheduler");
	brain_run_up(&b);
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_release(&b);
}

static void fewer_members_count_in_the_order_of_the_types(void **state)
{
	const struct hf_action *action;

	(void)state;
	begin("my-scheduler");
	b.view.run_policy.min_available = (struct hf_opt_int){.set = true, .value = 2};
	b.view.run_policy.schedule_timeout_seconds = (struct hf_opt_int){.set = true, .value = 60};
	brain_step(&b);
	action = created_group();
	assert_int_equal(number(action->extra, "spec/minMember"), 2);
	assert_int_equal(number(action->extra, "spec/scheduleTimeoutSeconds"), 60);
	assert_string_equal(leaf(action->extra, "spec/minResources/cpu"), "1");
	brain_release(&b);
}

static void what_the_policy_says_comes_first(void **state)
{
	static const struct hf_key_value least[] = {{"memory", "2048Mi"}, {"cpu", "no number"}};
	const struct hf_action *action;

	(void)state;
	begin("Volcano");
	b.view.run_policy.has_min_resources = true;
	b.view.run_policy.min_resources = least;
	b.view.run_policy.min_resources_len = 2;
	b.view.run_policy.priority_class = "high";
	b.view.run_policy.queue = "research";
	brain_step(&b);
	action = created_group();
	assert_int_equal(action->extra->kind, HF_EXTRA_VOLCANO_GROUP);
	assert_string_equal(leaf(action->extra, "spec/minResources/memory"), "2Gi");
	assert_null(leaf(action->extra, "spec/minResources/cpu"));
	assert_string_equal(leaf(action->extra, "spec/priorityClassName"), "high");
	assert_string_equal(leaf(action->extra, "spec/queue"), "research");
	brain_release(&b);
}

/* While the job waits in Volcano's queue, the operator creates only its group, and the deadline
 * does not run. */
static void pods_wait_until_volcano_lets_the_group_in(void **state)
{
	(void)state;
	begin("volcano");
	b.view.run_policy.active_deadline_seconds = (struct hf_opt_int){.set = true, .value = 5};
	brain_quiet(&b);
	assert_int_equal(b.pods_len, 0);
	assert_int_equal(b.services_len, 0);
	assert_int_equal(b.extras_len, 1);
	assert_true(b.view.status.start_time == HF_TIME_NONE);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "until Volcano admits PodGroup 'demo'"));
	b.now += 60 * HF_SECOND;
	brain_quiet(&b);
	assert_false(hf_status_is_finished(&b.view.status));
	brain_extra(&b, "demo")->extra.ready = true;
	brain_step(&b);
	assert_string_equal(
		brain_edit(&b, "demo-hand-1", HF_EDIT_ANNOTATION, "scheduling.k8s.io/group-name"),
		"demo");
	assert_string_equal(
		brain_edit(&b, "demo-hand-1", HF_EDIT_ANNOTATION, "volcano.sh/task-spec"), "hand");
	brain_run_up(&b);
	assert_int_equal(b.pods_len, 4);
	assert_false(b.view.status.start_time == HF_TIME_NONE);
	brain_release(&b);
}

static void a_group_put_back_in_the_queue_stops_no_pod_that_is_there(void **state)
{
	(void)state;
	begin("volcano");
	brain_step(&b);
	brain_perform(&b, created_group());
	brain_extra(&b, "demo")->extra.ready = true;
	brain_run_up(&b);
	brain_extra(&b, "demo")->extra.ready = false;
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_exit(&b, "demo-hand-1", 1);
	brain_quiet(&b);
	assert_int_equal(b.pods_len, 3);
	brain_extra(&b, "demo")->extra.ready = true;
	brain_quiet(&b);
	assert_int_equal(b.pods_len, 4);
	brain_release(&b);
}

static void a_group_goes_when_its_job_is_suspended_and_comes_back(void **state)
{
	(void)state;
	begin("my-scheduler");
	brain_run_up(&b);
	assert_non_null(brain_extra(&b, "demo"));
	b.view.run_policy.suspend = (struct hf_opt_bool){.set = true, .value = true};
	brain_quiet(&b);
	assert_null(brain_extra(&b, "demo"));
	b.view.run_policy.suspend.value = false;
	brain_run_up(&b);
	assert_non_null(brain_extra(&b, "demo"));
	brain_release(&b);
}

static void a_group_goes_with_the_jobs_end(void **state)
{
	(void)state;
	begin("my-scheduler");
	brain_run_up(&b);
	brain_exit(&b, "demo-boss-0", 0);
	brain_quiet(&b);
	assert_true(hf_status_is_finished(&b.view.status));
	assert_null(brain_extra(&b, "demo"));
	brain_release(&b);
}

static void a_group_follows_the_replicas(void **state)
{
	(void)state;
	begin("my-scheduler");
	brain_run_up(&b);
	b.replicas[BRAIN_HAND].replicas.value = 5;
	brain_step(&b);
	assert_int_equal(
		number(brain_action(&b, HF_ACTION_UPDATE_EXTRA, "demo")->extra, "spec/minMember"),
		6);
	brain_run_up(&b);
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_release(&b);
}

static void a_scheduler_of_the_templates_own_is_kept_and_told_once(void **state)
{
	size_t told = 0;

	(void)state;
	begin("my-scheduler");
	b.replicas[BRAIN_HAND].pod.scheduler_name = "other";
	brain_step(&b);
	for (size_t i = 0; i < b.plan.events_len; i++)
		told += hf_streq(b.plan.events[i].reason, "SetPodTemplateSchedulerName");
	assert_int_equal(told, 1);
	assert_null(brain_edit(&b, "demo-hand-0", HF_EDIT_SCHEDULER_NAME, NULL));
	assert_non_null(brain_edit(&b, "demo-boss-0", HF_EDIT_SCHEDULER_NAME, NULL));
	brain_release(&b);
}

static void without_a_gang_scheduler_there_is_no_group(void **state)
{
	(void)state;
	begin(NULL);
	brain_run_up(&b);
	assert_int_equal(b.extras_len, 0);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_group_has_all_ranks_and_what_they_ask_for),
		cmocka_unit_test(fewer_members_count_in_the_order_of_the_types),
		cmocka_unit_test(what_the_policy_says_comes_first),
		cmocka_unit_test(pods_wait_until_volcano_lets_the_group_in),
		cmocka_unit_test(a_group_put_back_in_the_queue_stops_no_pod_that_is_there),
		cmocka_unit_test(a_group_goes_when_its_job_is_suspended_and_comes_back),
		cmocka_unit_test(a_group_goes_with_the_jobs_end),
		cmocka_unit_test(a_group_follows_the_replicas),
		cmocka_unit_test(a_scheduler_of_the_templates_own_is_kept_and_told_once),
		cmocka_unit_test(without_a_gang_scheduler_there_is_no_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
