/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/rollout_driver.h"

#include "api/node_locks.h"
#include "api/remediation.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* What a rollout waits for, and how it says so: devices of DRA drivers, missing rights, nodes that may not begin yet. */

#define DRIVER "'change':{'daemonSet':{'namespace':'default','name':'driver'}}"
#define FAST ",'soakSeconds':60,'proof':{'seconds':120}"
#define LEASE HF_NODE_LEASE_PREFIX "n000"

/* ---- DRA drivers ----------------------------------------------------------------------------------- */

static struct rd *begin_dra(struct rw *w)
{
	struct rd *d = rd_create(w, 4);
	char name[16];

	d->is_dra = true;
	for (int i = 0; i < 4; i++) {
		rw_name(i, name);
		rw_patch_status(w, &hf_nodes, name,
				"{'status':{'allocatable':{'nvidia.com/gpu':null,'cpu':'64'}}}");
	}
	return d;
}

/* The amount of the record; NULL: none. */
static const char *find_recorded(struct rd *d, const char *resource)
{
	return hf_json_path_str(rd_entry(d, "r", 0), "before", "resources", resource, NULL);
}

static void a_dra_driver_has_to_offer_as_many_devices_as_before(void **state)
{
	struct rw *w = *state;
	struct rd *d = begin_dra(w);

	d->effect[0][2] = RD_LOSES_GPU;
	rd_roll(d, DRIVER FAST);
	rd_run_until(d, "Halted");
	assert_string_equal(find_recorded(d, "gpu.example.com"), "8");
	rd_expect_condition(
		d, "Halted", "True NodeFailed",
		"the node offers 7 of gpu.example.com, and offered 8 before the change");
}

/* The slices of the old driver are still there when the new one is Ready. */
static void slices_of_the_old_driver_prove_nothing(void **state)
{
	struct rw *w = *state;
	struct rd *d = begin_dra(w);

	d->slices_stay = 30 * HF_SECOND;
	d->effect[0][2] = RD_LOSES_GPU;
	rd_roll(d, DRIVER FAST);
	rd_run_until(d, "Halted");
	rd_expect_condition(
		d, "Halted", "True NodeFailed",
		"the node offers 7 of gpu.example.com, and offered 8 before the change");
	rw_run(w, HF_MINUTE);
	assert_int_equal(rd_count_running(d, 2), 1);
}

/* The time in which slices of the old driver may be there does not count for the deadline. */
static void slices_of_the_old_driver_fail_no_node(void **state)
{
	struct rw *w = *state;
	struct rd *d = begin_dra(w);

	rd_roll(d, DRIVER ",'soakSeconds':60,'proof':{'seconds':30}");
	rd_run_until(d, "Succeeded");
	rd_expect_message(d, "4 of 4 nodes changed and proved, 0 failed, 0 skipped");
}

static void a_dra_driver_that_offers_all_devices_is_proved(void **state)
{
	struct rw *w = *state;
	struct rd *d = begin_dra(w);

	rd_roll(d, DRIVER FAST);
	rd_run_until(d, "Succeeded");
	assert_string_equal(find_recorded(d, "gpu.example.com"), "8");
}

static void a_dra_driver_that_the_proof_does_not_name_does_not_count(void **state)
{
	struct rw *w = *state;
	struct rd *d = begin_dra(w);

	rd_set_effect(d, 2, RD_LOSES_GPU);
	rd_roll(d, DRIVER ",'soakSeconds':60,'proof':{'seconds':120,'resources':['a.example/b']}");
	rd_run_until(d, "Succeeded");
	assert_null(find_recorded(d, "gpu.example.com"));
}

static void without_the_right_to_list_slices_no_dra_driver_counts(void **state)
{
	struct rw *w = *state;
	struct rd *d = begin_dra(w);

	d->no_slices = true;
	rd_roll(d, DRIVER FAST);
	rd_run_until(d, "Succeeded");
	assert_null(find_recorded(d, "gpu.example.com"));
}

/* ---- rights ---------------------------------------------------------------------------------------- */

/* A request that the API server refuses, and where the rollout is then. */
struct refused {
	const char *plural;
	enum hf_verb verb;
	const char *sub, *node_phase, *phase;
};
static const struct refused *refused;

static bool refuse(const struct rw *w, const struct hf_request *request, struct hf_fault *ret_fault)
{
	if (!hf_streq(request->resource->plural, refused->plural) ||
	    request->verb != refused->verb ||
	    !hf_streq(hf_str_or(request->subresource, ""), refused->sub))
		return false;
	*ret_fault = (struct hf_fault){.refuse = HF_E_FORBIDDEN, .message = "no right"};
	return true;
}

/* The message names the refusal, and the rollout goes on once the right is there. */
static void a_missing_right_is_named(void **state)
{
	static const struct refused all[] = {
		{"nodes", HF_VERB_GET, "", "Waiting", "Rolling"},
		{"nodes", HF_VERB_PATCH, "", "Locked", "Rolling"},
		{"devicehealths", HF_VERB_GET, "", "Waiting", "Rolling"},
		{"nodemaintenances", HF_VERB_LIST, "", "Waiting", "Rolling"},
		{"leases", HF_VERB_GET, "", "Waiting", "Rolling"},
		{"leases", HF_VERB_CREATE, "", "Waiting", "Rolling"},
		{"pods", HF_VERB_CREATE, "eviction", "Emptying", "Rolling"},
		{"pods", HF_VERB_DELETE, "", "Failed", "Halted"},
		{"pods", HF_VERB_LIST, "", "", "Pending"},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(all); i++) {
		const char *message;
		struct rw *w;
		struct rd *d;

		rw_setup((void **)&w);
		d = rd_begin(w, 3, DRIVER FAST);
		rd_pod(d, "train", 0, "ReplicaSet");
		refused = &all[i];
		w->fault = refuse;
		rw_run(w, 5 * HF_MINUTE);
		rd_expect_phase(d, all[i].phase);
		message = *all[i].node_phase == '\0' ? rd_message(d, "r")
						     : rd_node_message(d, "r", 0);
		if (!hf_streq(rd_node_phase(d, "r", 0), all[i].node_phase) ||
		    strstr(message, "no right") == NULL)
			fail_msg("%zu: %s: %s", i, rd_node_phase(d, "r", 0), message);
		w->fault = NULL;
		if (rw_get(w, &hf_pods, "default", "train") != NULL)
			rd_end_pod(d, "train");
		rw_run(w, 20 * HF_MINUTE);
		rd_expect_phase(d, hf_streq(all[i].phase, "Halted") ? "Halted" : "Succeeded");
		rw_teardown((void **)&w);
	}
}

static bool lack_namespace(const struct rw *w, const struct hf_request *request,
			   struct hf_fault *ret_fault)
{
	(void)w;
	if (request->resource != &hf_leases || !hf_streq(request->ns, "holdfast-mend") ||
	    request->verb != HF_VERB_CREATE)
		return false;
	*ret_fault = (struct hf_fault){.refuse = HF_E_NOT_FOUND,
				       .message = "namespaces \"holdfast-mend\" not found"};
	return true;
}

static void a_missing_namespace_is_named(void **state)
{
	struct rw *w;
	struct rd *d;

	(void)state;
	rw_setup((void **)&w);
	w->fault = lack_namespace;
	d = rd_begin(w, 2, DRIVER FAST);
	rw_run(w, 5 * HF_MINUTE);
	assert_string_equal(rd_node_phase(d, "r", 0), "Waiting");
	rd_expect_node_message(d, 0, "namespaces \"holdfast-mend\" not found");
	/* The tries grow rare. */
	assert_in_range(w->writes, 1, 80);
	w->fault = NULL;
	rw_run(w, 10 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	rw_teardown((void **)&w);
}

/* ---- pods that stay -------------------------------------------------------------------------------- */

static void a_disruption_budget_is_named(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 1);
	unsigned long long writes;

	rd_pod(d, "train-0", 0, "train");
	w->refuse_evictions = true;
	rd_roll(d, DRIVER FAST ",'emptySeconds':600");
	rw_run(w, HF_MINUTE);
	rd_expect_node_message(d, 0,
			       "eviction of pod default/train-0: Cannot evict pod as it would "
			       "violate the pod's disruption budget");
	writes = w->writes;
	rw_run(w, 8 * HF_MINUTE);
	/* The message is written once. */
	assert_int_equal(w->writes, writes);
	rw_run(w, 12 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_string_equal(rd_node_phase(d, "r", 0), "Skipped");
	rd_expect_node_message(d, 0,
			       "1 pod still requests a device after 600 s, first "
			       "default/train-0: eviction of pod default/train-0: Cannot "
			       "evict pod");
}

static void create_job(struct rw *w, int limit)
{
	char text[1024];

	snprintf(
		text, sizeof(text),
		"{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{'name':'train',"
		"'namespace':'default'},'spec':{'runPolicy':{'recovery':{'infrastructureLimit':%d}},"
		"'pytorchReplicaSpecs':{'Worker':{'replicas':1,'restartPolicy':'OnFailure',"
		"'template':{'spec':{'containers':[{'name':'pytorch','image':'i','resources':{"
		"'limits':{'nvidia.com/gpu':'8'}}}]}}}}}}",
		limit);
	rw_create(w, &hf_pytorchjobs, "default", text);
}

/* The eviction of a pod costs a unit of the job's budget. A job without a unit left would fail. */
static void a_job_that_an_eviction_would_fail_stays(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 2);
	const struct hf_json *conditions;

	rd_use_jobs(d);
	rw_start(w);
	create_job(w, 0);
	rw_run(w, 30 * HF_SECOND);
	rd_set_version(d, 2);
	rd_rollout(d, "r", DRIVER FAST ",'emptySeconds':300");
	rw_run(w, HF_MINUTE);
	rd_expect_node_message(d, 0,
			       "waits for pod default/train-worker-0, which belongs to a job "
			       "that one more eviction would fail");
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	assert_string_equal(rd_node_phase(d, "r", 0), "Skipped");
	assert_int_equal(d->deletes[0], 0);
	conditions = hf_json_path(rw_get(w, &hf_pytorchjobs, "default", "train"), "status",
				  "conditions", NULL);
	for (size_t i = 0; i < hf_json_len(conditions); i++)
		assert_string_not_equal(hf_json_path_str(hf_json_item(conditions, i), "type", NULL),
					"Failed");
}

static void a_job_with_a_restart_left_is_moved(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 2);

	rd_use_jobs(d);
	rw_start(w);
	create_job(w, 1);
	rw_run(w, 30 * HF_SECOND);
	rd_set_version(d, 2);
	rd_rollout(d, "r", DRIVER FAST ",'emptySeconds':300,'waves':[1]");
	rw_run(w, 30 * HF_SECOND);
	assert_string_equal(hf_json_path_str(rw_get(w, &hf_pytorchjobs, "default", "train"),
					     "status", "recovery", "last", "cause", NULL),
			    "infrastructure");
}

/* Pods of ended jobs stay on node 0 until somebody deletes them, and hold nothing. */
static void pods_that_have_ended_keep_no_node_back(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 3);
	char name[16];

	for (int i = 0; i < 1200; i++) {
		snprintf(name, sizeof(name), "ended-%d", i);
		rd_pod(d, name, 0, NULL);
		rd_end_pod(d, name);
	}
	rd_roll(d, DRIVER FAST);
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	rd_expect_message(d, "3 of 3 nodes changed and proved");
}

/* ---- nodes that may not begin yet ------------------------------------------------------------------ */

/* The control plane loses all nodes for a while: a rollout that ended then would have changed none of them. */
static void a_rollout_waits_for_nodes_that_are_not_ready(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);

	rw_start(w);
	for (int i = 0; i < 4; i++)
		rw_set_ready(w, i, "Unknown");
	rd_set_version(d, 2);
	rd_rollout(d, "r", DRIVER FAST ",'emptySeconds':1800");
	rw_run(w, 10 * HF_MINUTE);
	rd_expect_phase(d, "Rolling");
	rd_expect_message(d, "4 nodes that may not begin yet, first n000: the node is "
			     "not Ready");
	for (int i = 0; i < 4; i++)
		rw_set_ready(w, i, "True");
	rw_run(w, 20 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(rd_count_running(d, 2), 4);
}

/* Nodes 0 to 19 are in a failure domain without room for one more node out of use. The other domain has room. */
static void a_full_domain_keeps_no_other_domain_back(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 24);

	rw_policy(w, "{'mode':'quarantine','budget':{'maxUnavailable':{'percent':100},"
		     "'perDomain':{'topologyKey':'half','max':1}}}");
	for (int i = 0; i < 24; i++)
		rw_patch_node(w, i,
			      i < 20 ? "{'metadata':{'labels':{'half':'a'}}}"
				     : "{'metadata':{'labels':{'half':'b'}}}");
	rw_patch(w, &hf_nodes, "n019", "{'spec':{'unschedulable':true}}");
	rw_start(w);
	rw_run(w, HF_MINUTE);
	rd_set_version(d, 2);
	rd_rollout(d, "r", DRIVER FAST ",'atOnce':1,'waves':['100%']");
	rw_run(w, HF_HOUR);
	/* Node 19 is out of use already. */
	assert_int_equal(rd_count_running(d, 2), 5);
	rd_expect_phase(d, "Rolling");
	rd_expect_message(d, "n000: budget.perDomain of the HealthPolicy is used up");
}

/* A node that does not come back is left out after a time. */
static void a_node_that_stays_away_does_not_keep_the_rollout(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);

	rw_start(w);
	rw_set_ready(w, 2, "Unknown");
	rd_set_version(d, 2);
	rd_rollout(d, "r", DRIVER FAST ",'emptySeconds':1800");
	rw_run(w, 25 * HF_MINUTE);
	rd_expect_phase(d, "Rolling");
	assert_int_equal(rd_count_running(d, 2), 3);
	rw_run(w, 20 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	rd_expect_message(d, "n002: the node is not Ready");
	rd_expect_clean(d);
}

/* A person takes the rollout's cordon off a failed node. The annotation of the cordon goes at the end: else a cordon of that
 * person would count as the rollout's later. */
static void no_annotation_is_left_on_a_node_that_a_person_uncordons(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 3);

	d->by_hand = true;
	d->effect[0][2] = RD_NEVER_READY;
	rd_roll(d, DRIVER FAST);
	rw_run(w, 10 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	assert_true(rd_is_cordoned(d, 0));
	rw_patch(w, &hf_nodes, "n000", "{'spec':{'unschedulable':null}}");
	rd_patch_spec(d, "r", "'cancel':true");
	rw_run(w, HF_MINUTE);
	rd_expect_phase(d, "Cancelled");
	rd_expect_clean(d);
}

/* The status lists each skipped node, and its list has an end. */
static void more_nodes_are_skipped_than_the_status_can_list(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 250);
	char name[16];

	rw_start(w);
	for (int i = 0; i < 240; i++) {
		snprintf(name, sizeof(name), "bare-%d", i);
		rd_pod(d, name, i, NULL);
	}
	rd_set_version(d, 2);
	rd_rollout(d, "r",
		   DRIVER ",'soakSeconds':10,'emptySeconds':10,'atOnce':64,'waves':['100%']");
	rw_run(w, HF_HOUR / 2);
	rd_expect_phase(d, "Succeeded");
	rd_expect_message(d, "the status cannot list more skipped nodes");
	rd_expect_clean(d);
}

/* ---- nodes that leave the rollout -------------------------------------------------------------------- */

/* Node 0 is skipped, because a pod stays there. It ends after a while, and the rollout may try the node again. */
static struct rd *skip_first_node(struct rw *w)
{
	struct rd *d = rd_create(w, 4);

	rd_pod(d, "bare", 0, NULL);
	rd_roll(d, DRIVER FAST ",'nodeSelector':{'matchLabels':{'pool':'even'}},'emptySeconds':60,"
			       "'waves':[1,'100%']");
	rw_run(w, 2 * HF_MINUTE);
	assert_string_equal(rd_node_phase(d, "r", 0), "Skipped");
	return d;
}

static void a_node_that_a_person_takes_out_of_the_selection_is_left_alone(void **state)
{
	struct rw *w = *state;
	struct rd *d = skip_first_node(w);

	rw_patch(w, &hf_nodes, "n000", "{'metadata':{'labels':{'pool':'mine'}}}");
	rd_end_pod(d, "bare");
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(d->deletes[0], 0);
	rd_expect_message(d, "n000: spec.nodeSelector does not select the node");
}

/* The DaemonSet does not select node 0 any more. */
static void drop_driver(struct rw *w)
{
	rw_patch_in(w, &hf_pods, "default", "driver-n000-v1", NULL,
		    "{'metadata':{'ownerReferences':null}}");
}

static void a_node_without_a_pod_of_the_driver_fails_nothing(void **state)
{
	struct rw *w = *state;
	struct rd *d = skip_first_node(w);

	drop_driver(w);
	rd_end_pod(d, "bare");
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	rd_expect_message(d, "n000: the node has no pod of the DaemonSet");
}

static void a_node_that_loses_its_driver_in_work_is_skipped(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);

	rd_pod(d, "train", 0, "train");
	rd_roll(d, DRIVER FAST ",'empty':'Wait','emptySeconds':300");
	rw_run(w, HF_MINUTE);
	assert_string_equal(rd_node_phase(d, "r", 0), "Emptying");
	drop_driver(w);
	rd_end_pod(d, "train");
	rw_run(w, HF_MINUTE);
	assert_string_equal(rd_node_message(d, "r", 0),
			    "waits: the node has no pod of the DaemonSet");
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	assert_string_equal(rd_node_phase(d, "r", 0), "Skipped");
	rd_expect_clean(d);
}

/* A person holds the node back in the moment in which its change is to begin, for longer than the proof may take. */
static void a_hold_before_the_change_is_not_blamed_on_it(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 4, DRIVER FAST);

	for (int i = 0; i < 6000 && !hf_streq(rd_node_phase(d, "r", 0), "Changing"); i++)
		rw_run(w, HF_MS);
	rw_patch_node(w, 0, "{'metadata':{'annotations':{'holdfast.dev/hold':'yes'}}}");
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(rd_node_message(d, "r", 0),
			    "waits: annotation holdfast.dev/hold of the node");
	assert_int_equal(d->deletes[0], 0);
	rw_patch_node(w, 0, "{'metadata':{'annotations':{'holdfast.dev/hold':null}}}");
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	rd_expect_message(d, "4 of 4 nodes changed and proved");
}

/* ---- what is not there any more -------------------------------------------------------------------- */

static bool refuse_deletes(const struct rw *w, const struct hf_request *request,
			   struct hf_fault *ret_fault)
{
	(void)w;
	if (request->resource != &hf_pods || request->verb != HF_VERB_DELETE)
		return false;
	*ret_fault = (struct hf_fault){.refuse = HF_E_UNAVAILABLE, .message = "overloaded"};
	return true;
}

/* The change of a node is marked, and the API server refuses it until the rollout has halted. */
static void a_halted_rollout_changes_no_marked_node(void **state)
{
	struct rw *w = *state;
	struct rd *d;

	w->fault = refuse_deletes;
	d = rd_begin(w, 3, DRIVER FAST);
	rw_run(w, 10 * HF_SECOND);
	assert_string_equal(rd_node_phase(d, "r", 0), "Changing");
	d->gone = true;
	rw_run(w, HF_MINUTE);
	rd_expect_phase(d, "Halted");
	w->fault = NULL;
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(d->total_deletes, 0);
	assert_string_equal(rd_node_phase(d, "r", 0), "Skipped");
	rd_expect_clean(d);
}

/* A person deletes the Lease of a node in work. */
static void no_condition_is_left_on_a_node_whose_lease_was_deleted(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 1);

	rd_pod(d, "train-0", 0, "train");
	rd_roll(d, DRIVER FAST ",'empty':'Wait'");
	rw_run(w, 10 * HF_SECOND);
	assert_string_equal(rd_node_phase(d, "r", 0), "Emptying");
	rd_patch_spec(d, "r", "'paused':true");
	assert_int_equal(rw_remove(w, &hf_leases, HF_MEND_NAMESPACE, LEASE, 0), 0);
	rw_run(w, 10 * HF_SECOND);
	assert_string_equal(rd_node_phase(d, "r", 0), "Skipped");
	rd_patch_spec(d, "r", "'cancel':true");
	rw_run(w, HF_MINUTE);
	rd_expect_phase(d, "Cancelled");
	rd_expect_clean(d);
}

/* A person deletes the Lease of a node that is being proved, and another rollout waits for the node. */
static void a_deleted_lease_lets_no_other_rollout_in(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 1);

	d->effect[0][2] = RD_NEVER_READY;
	rd_roll(d, DRIVER ",'soakSeconds':60,'proof':{'seconds':600}");
	rw_run(w, 10 * HF_SECOND);
	assert_string_equal(rd_node_phase(d, "r", 0), "Proving");
	rd_rollout(d, "b",
		   "'change':{'nodeLabel':{'key':'example.com/driver','value':'two'}}" FAST);
	rw_run(w, 4 * HF_MINUTE);
	assert_string_equal(rd_node_phase(d, "b", 0), "Waiting");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rw_remove(w, &hf_leases, HF_MEND_NAMESPACE, LEASE, 0), 0);
		rw_run(w, 20 * HF_SECOND);
		if (!hf_streq(rd_node_phase(d, "b", 0), "Waiting"))
			fail_msg("%s beside %s", rd_node_phase(d, "b", 0),
				 rd_node_phase(d, "r", 0));
	}
}

/* ---- a time without an operator ------------------------------------------------------------------------ */

static unsigned long long deaf_from;

static bool refuse_all(const struct rw *w, const struct hf_request *request,
		       struct hf_fault *ret_fault)
{
	(void)request;
	if (w->writes < deaf_from)
		return false;
	*ret_fault = (struct hf_fault){.refuse = HF_E_UNAVAILABLE, .message = "no API server"};
	return true;
}

/* After so many writes no operator runs for an hour (deaf: the API server does not answer): that says nothing about the
 * driver. */
static void rest_for_an_hour(unsigned writes, bool deaf)
{
	struct rw *w;
	struct rd *d;

	rw_setup((void **)&w);
	d = rd_begin(w, 3, DRIVER FAST);
	deaf_from = w->writes + writes;
	if (deaf)
		w->fault = refuse_all;
	else
		w->die_at = deaf_from;
	w->how = deaf ? RW_ALIVE : RW_AFTER;
	rw_run(w, HF_HOUR);
	w->fault = NULL;
	w->how = RW_ALIVE;
	if (w->op == NULL)
		rw_start(w);
	rw_run(w, HF_HOUR);
	if (!hf_streq(rd_phase(d, "r"), "Succeeded"))
		fail_msg("%s after %u writes: %s %s", deaf ? "no API server" : "no operator",
			 writes, rd_phase(d, "r"), rd_message(d, "r"));
	rd_expect_clean(d);
	rw_teardown((void **)&w);
}

static void an_hour_without_an_operator_does_not_halt(void **state)
{
	(void)state;
	for (unsigned writes = 1; writes < 25; writes++) {
		rest_for_an_hour(writes, false);
		rest_for_an_hour(writes, true);
	}
}

/* ---- a status that is lost --------------------------------------------------------------------------- */

/* Another program, such as one that restores objects from a backup, empties the list of nodes. */
static void no_cordon_is_left_by_a_list_that_is_lost(void **state)
{
	(void)state;
	for (hf_time after = 0; after < 6 * HF_SECOND; after += HF_SECOND / 2) {
		struct rw *w;
		struct rd *d;

		rw_setup((void **)&w);
		d = rd_begin(w, 3, DRIVER FAST ",'empty':'Wait'");
		rd_pod(d, "train", 0, "ReplicaSet");
		rw_run(w, 10 * HF_SECOND);
		rd_end_pod(d, "train");
		rw_run(w, after);
		rw_patch_status(w, &hf_devicerollouts, "r", "{'status':{'nodes':null}}");
		rw_run(w, HF_MINUTE);
		rw_delete(w, &hf_devicerollouts, "r");
		rw_run(w, HF_MINUTE);
		assert_null(rw_get(w, &hf_devicerollouts, NULL, "r"));
		rd_expect_clean(d);
		rw_teardown((void **)&w);
	}
}

/* The node was cordoned by a person, so the annotation of a cordon does not tell of the work. */
static void no_lease_is_left_by_a_list_that_is_lost(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 1);

	rd_pod(d, "train", 0, "ReplicaSet");
	rw_patch(w, &hf_nodes, "n000", "{'spec':{'unschedulable':true}}");
	rd_roll(d, DRIVER FAST ",'empty':'Wait'");
	rw_run(w, 10 * HF_SECOND);
	assert_string_equal(rd_node_phase(d, "r", 0), "Emptying");
	rd_patch_spec(d, "r", "'paused':true");
	rw_patch_status(w, &hf_devicerollouts, "r", "{'status':{'nodes':null}}");
	rw_run(w, HF_MINUTE);
	assert_string_equal(rd_node_phase(d, "r", 0), "Skipped");
	assert_true(rd_is_cordoned(d, 0));
	rw_patch(w, &hf_nodes, "n000", "{'spec':{'unschedulable':null}}");
	rd_expect_clean(d);
}

#define T(test) cmocka_unit_test_setup_teardown(test, rw_setup, rw_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(a_dra_driver_has_to_offer_as_many_devices_as_before),
		T(slices_of_the_old_driver_prove_nothing),
		T(slices_of_the_old_driver_fail_no_node),
		T(a_dra_driver_that_offers_all_devices_is_proved),
		T(a_dra_driver_that_the_proof_does_not_name_does_not_count),
		T(without_the_right_to_list_slices_no_dra_driver_counts),
		cmocka_unit_test(a_missing_right_is_named),
		T(a_disruption_budget_is_named),
		T(a_job_that_an_eviction_would_fail_stays),
		T(a_job_with_a_restart_left_is_moved),
		T(pods_that_have_ended_keep_no_node_back),
		cmocka_unit_test(a_missing_namespace_is_named),
		T(a_rollout_waits_for_nodes_that_are_not_ready),
		T(a_full_domain_keeps_no_other_domain_back),
		T(a_node_that_a_person_takes_out_of_the_selection_is_left_alone),
		T(a_node_without_a_pod_of_the_driver_fails_nothing),
		T(a_node_that_loses_its_driver_in_work_is_skipped),
		T(a_node_that_stays_away_does_not_keep_the_rollout),
		T(no_annotation_is_left_on_a_node_that_a_person_uncordons),
		T(more_nodes_are_skipped_than_the_status_can_list),
		T(a_hold_before_the_change_is_not_blamed_on_it),
		T(a_halted_rollout_changes_no_marked_node),
		T(no_condition_is_left_on_a_node_whose_lease_was_deleted),
		T(a_deleted_lease_lets_no_other_rollout_in),
		cmocka_unit_test(no_cordon_is_left_by_a_list_that_is_lost),
		T(no_lease_is_left_by_a_list_that_is_lost),
		cmocka_unit_test(an_hour_without_an_operator_does_not_halt),
	};

	rw_choose_tests(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
