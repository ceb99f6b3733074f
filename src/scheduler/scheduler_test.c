/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "contract/plane.h"

#include "base/str.h"
#include "scheduler/scheduler.h"

#include <stdio.h>
#include <string.h>

static void add_node(struct plane *p, const char *name, const char *more)
{
	AUTO_OUTCOME o = {0};

	assert_int_equal(create(&p->w, &hf_nodes, NULL, &o,
				"{'apiVersion':'v1','kind':'Node','metadata':{'name':'%s',"
				"'labels':{'name':'%s'}},'status':{'allocatable':{'cpu':'2',"
				"'pods':'10'}}%s}",
				name, name, more),
			 0);
}

static void add_pod(struct plane *p, const char *name, const char *spec)
{
	AUTO_OUTCOME o = {0};

	assert_int_equal(create(&p->w, &hf_pods, "default", &o,
				"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s'},"
				"'spec':{'containers':[{'name':'c','image':'i','resources':{"
				"'requests':{'cpu':'1'}}}]%s}}",
				name, spec),
			 0);
}

static const char *node_of(struct plane *p, const char *name)
{
	struct hf_doc *pod = hf_memstore_peek(p->memstore, &hf_pods, "default", name);

	return hf_str_or(hf_json_path_str(hf_doc_json(pod), "spec", "nodeName", NULL), "");
}

static const struct hf_json *condition_of(struct plane *p, const char *name)
{
	struct hf_doc *pod = hf_memstore_peek(p->memstore, &hf_pods, "default", name);

	return hf_json_item(hf_json_path(hf_doc_json(pod), "status", "conditions", NULL), 0);
}

static const char *condition_text(struct plane *p, const char *name, const char *key)
{
	return hf_str_or(hf_json_path_str(condition_of(p, name), key, NULL), "");
}

struct counted {
	const char *reason;
	int n;
	char message[256];
};

static void count_event(void *arg, struct hf_doc *doc)
{
	struct counted *c = arg;

	if (!hf_streq(hf_json_path_str(hf_doc_json(doc), "reason", NULL), c->reason))
		return;
	c->n++;
	snprintf(c->message, sizeof(c->message), "%s",
		 hf_json_path_str(hf_doc_json(doc), "message", NULL));
}

static struct counted events_of(struct plane *p, const char *reason)
{
	struct counted c = {.reason = reason};

	hf_memstore_each(p->memstore, &hf_events, "default", count_event, &c);
	return c;
}

static void a_pod_gets_a_node_and_an_event(void **state)
{
	struct plane p;

	plane_open(&p, NULL, false);
	struct hf_scheduler *s = hf_scheduler_create(p.memstore, NULL);
	add_node(&p, "n1", "");
	add_pod(&p, "p", "");
	settle(&p.w);
	assert_string_equal(node_of(&p, "p"), "n1");
	assert_string_equal(condition_text(&p, "p", "status"), "True");
	struct counted e = events_of(&p, "Scheduled");
	assert_int_equal(e.n, 1);
	assert_string_equal(e.message, "Successfully assigned default/p to n1");
	hf_scheduler_destroy(s);
	plane_close(&p);
}

static void a_pod_waits_for_a_claim_that_it_names(void **state)
{
	static const char volumes[] =
		",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'data'}}]";
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	struct hf_scheduler *s = hf_scheduler_create(p.memstore, NULL);
	add_node(&p, "n1", "");
	add_pod(&p, "p", volumes);
	settle(&p.w);
	assert_string_equal(node_of(&p, "p"), "");
	assert_string_equal(condition_text(&p, "p", "message"),
			    "0/1 nodes are available: persistentvolumeclaim \"data\" not found.");
	assert_int_equal(create(&p.w, &hf_persistentvolumeclaims, "default", &o,
				"{'apiVersion':'v1','kind':'PersistentVolumeClaim','metadata':{"
				"'name':'data'},'spec':{'accessModes':['ReadWriteOnce']}}"),
			 0);
	settle(&p.w);
	assert_string_equal(node_of(&p, "p"), "n1");
	hf_scheduler_destroy(s);

	/* With missing_claims the scheduler binds the pod at once, because the kubelet makes the
	 * claims. */
	s = hf_scheduler_create(p.memstore, &(struct hf_scheduler_options){.missing_claims = true});
	add_pod(&p, "q", ",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'other'}}]");
	settle(&p.w);
	assert_string_equal(node_of(&p, "q"), "n1");
	hf_scheduler_destroy(s);
	plane_close(&p);
}

static void an_unschedulable_pod_gets_one_event_per_reason(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	struct hf_scheduler *s = hf_scheduler_create(p.memstore, NULL);
	add_pod(&p, "p", "");
	settle(&p.w);
	assert_string_equal(condition_text(&p, "p", "reason"), "Unschedulable");
	assert_string_equal(condition_text(&p, "p", "message"),
			    "no nodes available to schedule pods");
	add_node(&p, "n1", ",'spec':{'unschedulable':true}");
	add_node(&p, "n2", ",'spec':{'taints':[{'key':'k','value':'v','effect':'NoSchedule'}]}");
	add_node(&p, "n3", ",'spec':{'unschedulable':true}");
	settle(&p.w);
	assert_string_equal(condition_text(&p, "p", "message"),
			    "0/3 nodes are available: 1 node(s) had untolerated taint {k: v}, "
			    "2 node(s) were unschedulable.");
	/* The reasons did not change, so the scheduler writes nothing and records no further
	 * Event. */
	int before = events_of(&p, "FailedScheduling").n;
	assert_int_equal(
		merge(&p.w, AT(&hf_nodes, NULL, "n1"), &o, "{'metadata':{'labels':{'x':'y'}}}"), 0);
	settle(&p.w);
	assert_int_equal(events_of(&p, "FailedScheduling").n, before);
	/* Now a node fits. */
	assert_int_equal(
		merge(&p.w, AT(&hf_nodes, NULL, "n3"), &o, "{'spec':{'unschedulable':null}}"), 0);
	settle(&p.w);
	assert_string_equal(node_of(&p, "p"), "n3");
	assert_string_equal(condition_text(&p, "p", "status"), "True");
	hf_scheduler_destroy(s);
	plane_close(&p);
}

static void pods_spread_over_the_nodes_with_the_fewest(void **state)
{
	struct plane p;
	int on[3] = {0};

	plane_open(&p, NULL, false);
	struct hf_scheduler *s = hf_scheduler_create(p.memstore, NULL);
	add_node(&p, "n0", "");
	add_node(&p, "n1", "");
	add_node(&p, "n2", "");
	for (int i = 0; i < 6; i++) {
		char name[8];
		snprintf(name, sizeof(name), "p%d", i);
		add_pod(&p, name, "");
	}
	settle(&p.w);
	for (int i = 0; i < 6; i++) {
		char name[8];
		snprintf(name, sizeof(name), "p%d", i);
		on[node_of(&p, name)[1] - '0']++;
	}
	assert_int_equal(on[0], 2);
	assert_int_equal(on[1], 2);
	assert_int_equal(on[2], 2);
	hf_scheduler_destroy(s);
	plane_close(&p);
}

static void freed_resources_are_assigned(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	struct hf_scheduler *s = hf_scheduler_create(p.memstore, NULL);
	add_node(&p, "n1", "");
	for (int i = 0; i < 4; i++) {
		char name[8];
		snprintf(name, sizeof(name), "p%d", i);
		add_pod(&p, name, "");
	}
	settle(&p.w);
	assert_string_equal(node_of(&p, "p1"), "n1");
	assert_string_equal(node_of(&p, "p2"), "");
	assert_string_equal(condition_text(&p, "p2", "message"),
			    "0/1 nodes are available: 1 Insufficient cpu.");
	/* One pod ends, another is deleted. */
	assert_int_equal(merge_status(&p.w, AT(&hf_pods, "default", "p0"), &o,
				      "{'status':{'phase':'Succeeded'}}"),
			 0);
	settle(&p.w);
	assert_string_equal(node_of(&p, "p2"), "n1");
	assert_string_equal(node_of(&p, "p3"), "");
	assert_int_equal(ask(&p.w,
			     &(struct hf_request){.verb = HF_VERB_DELETE,
						  .resource = &hf_pods,
						  .ns = "default",
						  .name = "p1",
						  .grace_seconds = 0},
			     &o),
			 0);
	settle(&p.w);
	assert_string_equal(node_of(&p, "p3"), "n1");
	hf_scheduler_destroy(s);
	plane_close(&p);
}

static void gated_pods_and_those_of_other_schedulers_are_skipped(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	struct hf_scheduler *s = hf_scheduler_create(p.memstore, NULL);
	add_node(&p, "n1", "");
	add_pod(&p, "other", ",'schedulerName':'theirs'");
	add_pod(&p, "named", ",'schedulerName':'default-scheduler'");
	add_pod(&p, "gated", ",'schedulingGates':[{'name':'example.com/g'}]");
	add_pod(&p, "placed", ",'nodeName':'elsewhere'");
	settle(&p.w);
	assert_string_equal(node_of(&p, "other"), "");
	assert_null(condition_of(&p, "other"));
	assert_string_equal(node_of(&p, "named"), "n1");
	assert_string_equal(node_of(&p, "gated"), "");
	assert_string_equal(condition_text(&p, "gated", "reason"), "SchedulingGated");
	assert_string_equal(node_of(&p, "placed"), "elsewhere");
	assert_int_equal(merge(&p.w, AT(&hf_pods, "default", "gated"), &o,
			       "{'spec':{'schedulingGates':null}}"),
			 0);
	settle(&p.w);
	assert_string_equal(node_of(&p, "gated"), "n1");
	hf_scheduler_destroy(s);
	plane_close(&p);
}

static void conditions_of_others_stay(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	add_pod(&p, "p", "");
	assert_int_equal(
		merge_status(&p.w, AT(&hf_pods, "default", "p"), &o,
			     "{'status':{'conditions':[{'type':'Mine','status':'True'}]}}"),
		0);
	struct hf_scheduler *s = hf_scheduler_create(p.memstore, NULL);
	settle(&p.w);
	assert_int_equal(get(&p.w, &hf_pods, "default", "p", &o), 0);
	assert_string_equal(text_at(&o, "status.conditions.0.type"), "Mine");
	assert_string_equal(text_at(&o, "status.conditions.1.type"), "PodScheduled");
	add_node(&p, "n1", "");
	settle(&p.w);
	assert_int_equal(get(&p.w, &hf_pods, "default", "p", &o), 0);
	assert_string_equal(text_at(&o, "status.conditions.0.type"), "Mine");
	assert_string_equal(text_at(&o, "status.conditions.1.status"), "True");
	assert_false(has(&o, "status.conditions.2"));
	hf_scheduler_destroy(s);
	plane_close(&p);
}

static size_t choose_last(void *arg, size_t n)
{
	int *calls = arg;

	++*calls;
	return n - 1;
}

static void a_caller_may_choose_and_delay(void **state)
{
	struct plane p;
	int calls = 0;

	plane_open(&p, NULL, false);
	struct hf_scheduler *s = hf_scheduler_create(
		p.memstore, &(struct hf_scheduler_options){.delay = 2 * HF_SECOND,
							   .choose = choose_last,
							   .choose_arg = &calls});
	add_node(&p, "n0", "");
	add_node(&p, "n1", "");
	add_node(&p, "n2", ",'spec':{'unschedulable':true}");
	p.w.pass(&p.w, 5 * HF_SECOND);
	add_pod(&p, "p", "");
	p.w.pass(&p.w, HF_SECOND);
	assert_string_equal(node_of(&p, "p"), "");
	p.w.pass(&p.w, 2 * HF_SECOND);
	assert_string_equal(node_of(&p, "p"), "n1");
	assert_int_equal(calls, 1);
	hf_scheduler_destroy(s);
	plane_close(&p);
}

static void a_heartbeat_starts_no_pass(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	add_node(&p, "n1", "");
	struct hf_scheduler *s = hf_scheduler_create(p.memstore, NULL);
	settle(&p.w);
	assert_int_equal(merge_status(&p.w, AT(&hf_nodes, NULL, "n1"), &o,
				      "{'status':{'conditions':[{'type':'Ready','status':'True',"
				      "'lastHeartbeatTime':'2026-01-01T00:00:00Z'}]}}"),
			 0);
	/* A heartbeat starts no pass, so no timer is armed and the loop returns. */
	settle(&p.w);
	hf_loop_run(p.w.loop);
	hf_scheduler_destroy(s);
	plane_close(&p);
}

static void many_pods_are_placed_in_one_pass(void **state)
{
	struct plane p;
	char name[16];
	int bound = 0;

	plane_open(&p, NULL, false);
	for (int i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		add_node(&p, name, "");
	}
	for (int i = 0; i < 120; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		add_pod(&p, name, "");
	}
	struct hf_scheduler *s = hf_scheduler_create(p.memstore, NULL);
	settle(&p.w);
	for (int i = 0; i < 120; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		bound += *node_of(&p, name) != '\0';
	}
	assert_int_equal(bound, 120);
	hf_scheduler_destroy(s);
	plane_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_gets_a_node_and_an_event),
		cmocka_unit_test(a_pod_waits_for_a_claim_that_it_names),
		cmocka_unit_test(an_unschedulable_pod_gets_one_event_per_reason),
		cmocka_unit_test(pods_spread_over_the_nodes_with_the_fewest),
		cmocka_unit_test(freed_resources_are_assigned),
		cmocka_unit_test(gated_pods_and_those_of_other_schedulers_are_skipped),
		cmocka_unit_test(conditions_of_others_stay),
		cmocka_unit_test(a_caller_may_choose_and_delay),
		cmocka_unit_test(a_heartbeat_starts_no_pass),
		cmocka_unit_test(many_pods_are_placed_in_one_pass),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
