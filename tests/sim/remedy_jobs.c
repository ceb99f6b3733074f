/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy_actor.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Acts beside jobs: the operator under test creates the pods of a job "train"; this file is the scheduler and the kubelets.
 * Each node has two GPUs. GPU 0 is the job's, and GPU 1 is free.
 */

#define NS "default"
#define PODS_MAX 8
#define NODE 3
#define MEND                                                                                       \
	"{'mode':'remediate','mend':{},'drain':{'graceSeconds':10,'timeoutSeconds':600}," WIDE "}"

struct pods {
	struct rw *w;
	struct hf_doc *docs[PODS_MAX];
	size_t len;
	/* The first `together` pods are on node 3; from then on, the node of the next pod. */
	int together, next;
	bool full;       /* no node but node 3 has a free GPU */
	bool full_after; /* no node has a free GPU for further pods */
	bool saves;      /* pods end 20 s after they are asked */
	char holders[RW_NODES_MAX][64];
	/* Processes on node 3 wait in the kernel: no signal ends them, but a reboot does. */
	bool hangs;
};

static void collect(void *arg, struct hf_doc *doc)
{
	struct pods *pods = arg;

	if (pods->len < PODS_MAX && hf_str_has_prefix(hf_doc_name(doc), "train-"))
		pods->docs[pods->len++] = hf_doc_ref(doc);
}

static void start_pod(struct pods *pods, struct hf_doc *doc)
{
	bool here = pods->together > 0 || pods->full;
	int node = here ? NODE : pods->next;
	char text[512];

	if ((pods->full && rw_tainted(pods->w, NODE)) || (pods->full_after && pods->together == 0))
		return;
	pods->next += !here;
	snprintf(text, sizeof(text),
		 "{'apiVersion':'v1','kind':'Binding','metadata':{'name':'%s'},'target':{"
		 "'kind':'Node','name':'n%03d'}}",
		 hf_doc_name(doc), node);
	pods->together -= pods->together > 0;
	HF_AUTO_DOC body = json_doc_of(text);
	const struct hf_request request = {.verb = HF_VERB_CREATE,
					   .resource = &hf_pods,
					   .ns = NS,
					   .name = hf_doc_name(doc),
					   .subresource = "binding",
					   .body = body};
	HF_AUTO_RESULT result = {0};

	hf_memstore_apply(pods->w->memstore, &request, &result);
	assert_int_equal(result.code, 0);
	rw_patch_in(
		pods->w, &hf_pods, NS, hf_doc_name(doc), "status",
		"{'status':{'phase':'Running','conditions':[{'type':'Ready','status':'True'}],"
		"'containerStatuses':[{'name':'pytorch','ready':true,'restartCount':0,'image':'i',"
		"'imageID':'','state':{'running':{'startedAt':'2023-11-14T22:13:20Z'}}}]}}");
	if (pods->w->holder[node] == NULL) {
		snprintf(pods->holders[node], sizeof(pods->holders[node]), "%s", hf_doc_name(doc));
		pods->w->holder[node] = pods->holders[node];
	}
	rw_report(pods->w, node);
}

static void end_pod(struct pods *pods, struct hf_doc *doc)
{
	const struct hf_json *json = hf_doc_json(doc);
	int node = rw_index_of(pods->w, hf_json_path_str(json, "spec", "nodeName", NULL));
	hf_time until;

	/* Pods have 30 s. */
	assert_int_equal(
		hf_time_parse(hf_json_path_str(json, "metadata", "deletionTimestamp", NULL), &until,
			      NULL),
		0);
	if (pods->saves && hf_loop_wall(pods->w->loop) < until - 10 * HF_SECOND)
		return;
	if (pods->hangs && node == NODE && pods->w->boots[node] == 0)
		return;
	(void)rw_remove(pods->w, &hf_pods, NS, hf_doc_name(doc), 0);
	if (hf_streq(pods->w->holder[node], hf_doc_name(doc)))
		pods->w->holder[node] = NULL;
	rw_report(pods->w, node);
}

static void tick(struct pods *pods)
{
	pods->len = 0;
	hf_memstore_each(pods->w->memstore, &hf_pods, NS, collect, pods);
	for (size_t i = 0; i < pods->len; i++) {
		const struct hf_json *json = hf_doc_json(pods->docs[i]);
		const char *node = hf_json_path_str(json, "spec", "nodeName", NULL);

		if (hf_json_path(json, "metadata", "deletionTimestamp", NULL) == NULL) {
			if (node == NULL)
				start_pod(pods, pods->docs[i]);
		} else if (node != NULL) {
			end_pod(pods, pods->docs[i]);
		}
		hf_doc_unref(pods->docs[i]);
	}
}

static void run(struct pods *pods, hf_time span)
{
	for (hf_time at = 0; at < span; at += HF_SECOND) {
		rw_run(pods->w, HF_SECOND);
		tick(pods);
	}
}

static void create_job(struct pods *pods, const char *policy, int ranks)
{
	char text[1024];

	snprintf(
		text, sizeof(text),
		"{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{'name':'train',"
		"'namespace':'" NS
		"'},'spec':{'runPolicy':%s,'pytorchReplicaSpecs':{'Worker':{'replicas':%d,"
		"'restartPolicy':'OnFailure','template':{'spec':{'containers':[{'name':'pytorch','image':'i',"
		"'resources':{'limits':{'nvidia.com/gpu':'1'}}}]}}}}}}",
		policy, ranks);
	rw_create(pods->w, &hf_pytorchjobs, NS, text);
	run(pods, 10 * HF_SECOND);
}

static void free_pods(void *arg)
{
	free(arg);
}

/* A fleet with the job: its first `together` ranks are on node 3, and the others on the next nodes. */
static struct pods *begin(struct rw *w, struct ra **ret_ra, const char *policy, int ranks,
			  int together)
{
	struct pods *pods = hf_xcalloc(1, sizeof(*pods));

	*pods = (struct pods){.w = w, .together = together, .next = NODE + 1};
	rw_at_end(w, free_pods, pods);
	w->gpus = 2;
	for (int i = 0; i < 10; i++)
		w->sick[i] = 2;
	*ret_ra = ra_begin(w, 10, MEND);
	create_job(pods, policy, ranks);
	assert_string_equal(w->holder[NODE], "train-worker-0");
	return pods;
}

static void expect_restarts(struct rw *w, const char *summary)
{
	assert_string_equal(hf_json_path_str(rw_get(w, &hf_pytorchjobs, NS, "train"), "status",
					     "recovery", "summary", NULL),
			    summary);
}

static bool has_failed(struct rw *w)
{
	const struct hf_json *list =
		hf_json_path(rw_get(w, &hf_pytorchjobs, NS, "train"), "status", "conditions", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(list, i), "type", NULL), "Failed"))
			return true;
	return false;
}

/* ---- jobs that may not move ------------------------------------------------------------------------ */

/* The eviction of a pod costs a unit of the job's budget. A job without a unit left would fail. */
static void a_job_that_an_eviction_would_fail_stays(void **state)
{
	struct rw *w = *state;
	struct ra *a;
	struct pods *pods = begin(w, &a, "{'recovery':{'infrastructureLimit':0}}", 1, 1);

	rw_say(w, NODE, RW_REBOOT);
	run(pods, 2 * HF_MINUTE);
	assert_false(has_failed(w));
	assert_string_equal(ra_phase(a, NODE), "Draining");
	rw_expect_message(w, "n003-1", "one more eviction would fail");
	run(pods, HF_HOUR);
	assert_false(has_failed(w));
	assert_int_equal(a->acts, 0);
	assert_string_equal(rw_rung(w, "n003-2"), "person");
}

/* A person asks before the act. */
static void a_dry_run_names_a_job_that_stays(void **state)
{
	struct rw *w = *state;
	struct ra *a;
	struct pods *pods = begin(w, &a, "{'recovery':{'infrastructureLimit':0}}", 1, 1);

	w->people_ask = true;
	ra_request(a, NODE, 1, "reboot", ",'dryRun':true");
	run(pods, HF_MINUTE);
	rw_expect_message(
		w, "n003-1",
		"1 of 1 pod would stay: default/train-worker-0: one more eviction would fail");
	assert_string_equal(ra_phase(a, NODE), "Cancelled");
}

/* A cluster with upstream's CRDs has the limit in an annotation. */
static void a_limit_in_the_annotation_counts_too(void **state)
{
	struct rw *w = *state;
	struct ra *a;
	struct pods *pods = begin(w, &a, "{}", 1, 1);

	rw_patch_in(w, &hf_pytorchjobs, NS, "train", NULL,
		    "{'metadata':{'annotations':{'holdfast.dev/run-policy':"
		    "'{\\'recovery\\':{\\'infrastructureLimit\\':0}}'}}}");
	run(pods, 2 * HF_SECOND);
	rw_say(w, NODE, RW_REBOOT);
	run(pods, 2 * HF_MINUTE);
	assert_false(has_failed(w));
	rw_expect_message(w, "n003-1", "one more eviction would fail");
}

static void a_job_with_a_restart_left_is_moved(void **state)
{
	struct rw *w = *state;
	struct ra *a;
	struct pods *pods = begin(w, &a, "{'recovery':{'infrastructureLimit':1}}", 4, 1);

	rw_say(w, NODE, RW_REBOOT);
	run(pods, 10 * HF_MINUTE);
	assert_false(has_failed(w));
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_string_equal(hf_json_path_str(rw_get(w, &hf_pytorchjobs, NS, "train"), "status",
					     "recovery", "last", "cause", NULL),
			    "infrastructure");
}

/* The pods of one gang leave together, as one restart, although each of them saves for a while. */
static void the_pods_of_a_gang_leave_together(void **state)
{
	struct rw *w = *state;
	struct ra *a;
	struct pods *pods = begin(w, &a, "{'recovery':{'infrastructureLimit':1}}", 5, 4);

	pods->saves = true;
	rw_say(w, NODE, RW_REBOOT);
	run(pods, HF_MINUTE);
	assert_int_equal(a->acts, 1);
	assert_false(has_failed(w));
	expect_restarts(w, "1 (infrastructure)");
	run(pods, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_false(has_failed(w));
}

/* An elastic job runs on while its ranks leave a node, so it has no condition Restarting. They leave as one restart all the same.
 * Once all ranks run again, the next eviction would cost another unit. */
static void the_ranks_of_an_elastic_job_leave_together(void **state)
{
	struct rw *w = *state;
	struct ra *a;
	struct pods *pods =
		begin(w, &a,
		      "{'recovery':{'infrastructureLimit':1}},"
		      "'elasticPolicy':{'minReplicas':1,'maxReplicas':6,'maxRestarts':10}",
		      5, 4);

	pods->saves = true;
	rw_say(w, NODE, RW_REBOOT);
	run(pods, 10 * HF_MINUTE);
	assert_int_equal(a->acts, 1);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	expect_restarts(w, "1 (infrastructure)");
	rw_say(w, NODE + 1, RW_REBOOT);
	run(pods, 5 * HF_MINUTE);
	rw_expect_message(w, "n004-1", "train-worker-4: one more eviction would fail its job");
	assert_false(has_failed(w));
}

/* The new rank 0 waits for a GPU, and only the sick node has a free one. So the restart of the job ends after the reboot, and
 * rank 1 must leave before. Its eviction belongs to the restart under way, and costs nothing. */
static void a_job_that_waits_for_the_node_leaves_it(void **state)
{
	struct rw *w = *state;
	struct ra *a;
	struct pods *pods = begin(w, &a, "{'recovery':{'infrastructureLimit':0}}", 2, 2);

	pods->full = true;
	w->sick[NODE] = 1;
	rw_say(w, NODE, RW_REBOOT);
	run(pods, HF_MINUTE);
	assert_int_equal(a->acts, 1);
	run(pods, 9 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	run(pods, 5 * HF_MINUTE);
	assert_false(has_failed(w));
	assert_string_equal(w->holder[NODE], "train-worker-0");
	expect_restarts(w, "1 (device)");
}

static bool refuse_deletes(const struct rw *w, const struct hf_request *request,
			   struct hf_fault *ret_fault)
{
	(void)w;
	if (request->resource != &hf_pods || request->verb != HF_VERB_DELETE)
		return false;
	ret_fault->refuse = HF_E_FORBIDDEN;
	return true;
}

/* All ranks restart, and the operator has no right to delete the pod of rank 1. The restart has half of the drain. */
static void a_restart_that_cannot_move_a_pod_keeps_no_reboot(void **state)
{
	struct rw *w = *state;
	struct ra *a;
	struct pods *pods = begin(w, &a, "{'recovery':{'restartScope':'Job'}}", 2, 2);

	w->fault = refuse_deletes;
	rw_say(w, NODE, RW_REBOOT);
	run(pods, 3 * HF_MINUTE);
	rw_expect_message(w, "n003-1", "default/train-worker-1: its job restarts");
	run(pods, 7 * HF_MINUTE);
	assert_int_equal(a->acts, 1);
}

static bool delay_jobs(const struct rw *w, const struct hf_request *request,
		       struct hf_fault *ret_fault)
{
	(void)w;
	if (request->resource != &hf_pytorchjobs || request->verb != HF_VERB_LIST)
		return false;
	ret_fault->delay_before = 20 * HF_SECOND;
	return true;
}

/* A new leader knows the pods of the node before it knows their jobs. */
static void a_new_leader_waits_for_the_jobs(void **state)
{
	struct rw *w = *state;
	struct ra *a;
	struct pods *pods = begin(w, &a, "{'recovery':{'infrastructureLimit':0}}", 1, 1);

	rw_say(w, NODE, RW_REBOOT);
	run(pods, 2 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Draining");
	rw_stop(w);
	w->fault = delay_jobs;
	rw_start(w);
	run(pods, HF_MINUTE);
	w->fault = NULL;
	assert_false(has_failed(w));
	assert_string_equal(w->holder[NODE], "train-worker-0");
	run(pods, HF_MINUTE);
	rw_expect_message(w, "n003-1", "one more eviction would fail");
}

/* Rank 0 has failed by itself, and the new rank 0 waits for a GPU. The eviction of rank 1 would cost a unit. */
static void a_restart_of_a_program_moves_no_job_into_its_end(void **state)
{
	struct rw *w = *state;
	struct ra *a;
	struct pods *pods = begin(w, &a, "{'recovery':{'infrastructureLimit':0}}", 2, 2);

	pods->full = true;
	rw_say(w, NODE, RW_REBOOT);
	rw_run(w, HF_SECOND);
	rw_patch_in(
		w, &hf_pods, NS, "train-worker-0", "status",
		"{'status':{'phase':'Failed','containerStatuses':[{'name':'pytorch','ready':false,"
		"'restartCount':0,'image':'i','imageID':'','state':{'terminated':{'exitCode':1}}}]}}");
	w->holder[NODE] = NULL;
	rw_report(w, NODE);
	run(pods, HF_MINUTE);
	rw_expect_message(w, "n003-1", "train-worker-1: one more eviction would fail its job");
	run(pods, 30 * HF_MINUTE);
	assert_int_equal(a->acts, 0);
	assert_false(has_failed(w));
}

/* Both ranks restart after the fault of a device. Rank 0 runs again, and rank 1 waits for a GPU. The new pod of rank 0 does not
 * belong to that fault: its eviction would cost a unit. */
static void a_pod_of_the_restart_moves_no_job_into_its_end(void **state)
{
	struct rw *w = *state;
	struct ra *a;
	struct pods *pods =
		begin(w, &a, "{'recovery':{'infrastructureLimit':0,'restartScope':'Job'}}", 2, 1);

	w->sick[NODE + 1] = 1;
	pods->together = 1;
	pods->full_after = true;
	rw_say(w, NODE + 1, RW_REBOOT);
	run(pods, HF_MINUTE);
	assert_string_equal(w->holder[NODE], "train-worker-0");
	expect_restarts(w, "1 (device)");
	rw_say(w, NODE, RW_REBOOT);
	run(pods, 30 * HF_MINUTE);
	assert_false(has_failed(w));
	rw_expect_message(w, "n003-1", "train-worker-0: one more eviction would fail its job");
}

/* Pods may go on when their job has ended. No eviction fails such a job any more. */
static void the_pods_of_a_failed_job_leave(void **state)
{
	struct rw *w = *state;
	struct ra *a;
	struct pods *pods = begin(
		w, &a,
		"{'backoffLimit':0,'recovery':{'infrastructureLimit':0,'podsAfterEnd':'Keep'}}", 2,
		1);

	rw_patch_in(
		w, &hf_pods, NS, "train-worker-1", "status",
		"{'status':{'phase':'Failed','containerStatuses':[{'name':'pytorch','ready':false,"
		"'restartCount':0,'image':'i','imageID':'','state':{'terminated':{'exitCode':1}}}]}}");
	run(pods, 5 * HF_MINUTE);
	assert_true(has_failed(w));
	assert_string_equal(w->holder[NODE], "train-worker-0");
	rw_say(w, NODE, RW_REBOOT);
	run(pods, 5 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_null(w->holder[NODE]);
}

/* The kubelet is back, and writes since when. */
static void ready_again(struct rw *w)
{
	char at[HF_TIME_TEXT_MAX], text[256];

	hf_time_format_micro(hf_loop_wall(w->loop), at);
	snprintf(
		text, sizeof(text),
		"{'status':{'conditions':[{'type':'Ready','status':'True','lastTransitionTime':'%s'}]}}",
		at);
	rw_patch_status(w, &hf_nodes, "n003", text);
}

/* ---- pods that do not end ---------------------------------------------------------------------------- */

/* The driver hangs, and the process of the pod with it. The kubelet has asked and killed it in vain: only the reboot ends
 * this pod, and its rank is made again after that. */
static void a_pod_that_no_signal_ends_keeps_no_reboot_back(void **state)
{
	struct rw *w = *state;
	struct ra *a;
	struct pods *pods = begin(w, &a, "{}", 1, 1);

	pods->hangs = true;
	w->sick[NODE] = 1;
	rw_say(w, NODE, RW_REBOOT);
	run(pods, HF_MINUTE);
	assert_int_equal(a->acts, 0);
	assert_string_equal(w->holder[NODE], "train-worker-0");
	run(pods, 30 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_int_equal(a->acts, 1);
	assert_null(w->holder[NODE]);
	assert_false(rw_tainted(w, NODE));
	assert_false(has_failed(w));
}

/* The node was away while the pod had its time: its kubelet has not asked the pod yet. */
static void a_pod_of_a_node_that_was_away_has_its_time(void **state)
{
	struct rw *w = *state;
	struct ra *a;
	struct pods *pods = begin(w, &a, "{}", 1, 1);

	pods->hangs = true;
	w->sick[NODE] = 1;
	rw_say(w, NODE, RW_REBOOT);
	run(pods, 20 * HF_SECOND);
	rw_set_ready(w, NODE, "Unknown");
	run(pods, 4 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Draining");
	ready_again(w);
	run(pods, HF_MINUTE);
	assert_int_equal(a->acts, 0);
	run(pods, 3 * HF_MINUTE);
	assert_int_equal(a->acts, 1);
}

int main(int argc, char **argv)
{
#define T(test) cmocka_unit_test_setup_teardown(test, rw_setup, rw_teardown)
	const struct CMUnitTest tests[] = {
		T(a_job_that_an_eviction_would_fail_stays),
		T(a_dry_run_names_a_job_that_stays),
		T(a_limit_in_the_annotation_counts_too),
		T(a_job_with_a_restart_left_is_moved),
		T(the_pods_of_a_gang_leave_together),
		T(the_ranks_of_an_elastic_job_leave_together),
		T(a_job_that_waits_for_the_node_leaves_it),
		T(a_restart_that_cannot_move_a_pod_keeps_no_reboot),
		T(a_new_leader_waits_for_the_jobs),
		T(a_restart_of_a_program_moves_no_job_into_its_end),
		T(a_pod_of_the_restart_moves_no_job_into_its_end),
		T(the_pods_of_a_failed_job_leave),
		T(a_pod_that_no_signal_ends_keeps_no_reboot_back),
		T(a_pod_of_a_node_that_was_away_has_its_time),
	};

	rw_choose_tests(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
