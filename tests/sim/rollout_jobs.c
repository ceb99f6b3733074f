/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/rollout_driver.h"

#include "api/device_health.h"
#include "api/lifetime.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Jobs on the fleet of rollout_driver.h: canaries, and a job "train" with a rank on each of the first nodes. The
 * operator under test creates their pods; this file is the scheduler, the kubelets and the reports of ranks.
 * Input: pods of these jobs. Output: their nodes, their statuses, and the ranks in DeviceHealth.
 */

#define NS "default"
#define CANARY "canary-"
#define TRAIN "train-worker-"
#define TEXT_MAX 1024

struct found {
	struct hf_doc *docs[RD_RUNS_MAX];
	size_t len;
};

static void collect(void *arg, struct hf_doc *doc)
{
	struct found *found = arg;

	if (found->len < RD_RUNS_MAX && (hf_str_has_prefix(hf_doc_name(doc), CANARY) ||
					 hf_str_has_prefix(hf_doc_name(doc), TRAIN)))
		found->docs[found->len++] = hf_doc_ref(doc);
}

static int number_of(const char *text)
{
	int64_t number = -1;

	if (text == NULL || hf_str_to_i64(text, 0, RW_NODES_MAX - 1, &number, NULL) != 0)
		fail_msg("no number: %s", hf_str_or(text, "NULL"));
	return (int)number;
}

static bool is_canary(const char *name)
{
	return hf_str_has_prefix(name, CANARY);
}

/* ---- reports ------------------------------------------------------------------------------------- */

/* What the agent of the node reports of ranks. */
static void report_ranks(void *arg, int node, struct hf_device_health *health)
{
	struct rd *d = arg;
	size_t len = 0;

	for (size_t i = 0; i < d->jobs_len && len < RD_RANKS_MAX; i++) {
		const struct rd_run *run = &d->jobs[i];
		int version = d->runs[node];
		int64_t own = is_canary(run->pod) ? d->canary[version].own_us : d->own_us[version];

		if (run->node != node || !run->running || own == 0)
			continue;
		d->reports[len++] = (struct hf_rank_report){.ns = NS,
							    .pod = run->pod,
							    .uid = run->uid,
							    .rank = 0,
							    .state = HF_RANK_ADVANCING,
							    .step = 20,
							    .own_us = own,
							    .advanced_at = HF_TIME_NONE,
							    .heard_at = HF_TIME_NONE};
	}
	health->ranks.items = d->reports;
	health->ranks.len = len;
}

void rd_report(struct rd *d, int node)
{
	if (!d->w->silent[node] && d->w->ill[node] == RW_WELL)
		rw_say(d->w, node, RW_WELL);
}

/* ---- the scheduler and the kubelets -------------------------------------------------------------- */

static bool is_in_work(struct rd *d, const char *node)
{
	const struct hf_json *object = rw_get(d->w, &hf_nodes, NULL, node);

	return hf_json_true(hf_json_path(object, "spec", "unschedulable", NULL), false) &&
	       hf_json_path_str(object, "metadata", "annotations", "holdfast.dev/rollout", NULL) !=
		       NULL;
}

static bool tolerates_cordon(const struct hf_json *pod)
{
	const struct hf_json *list = hf_json_path(pod, "spec", "tolerations", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(list, i), "key", NULL),
			     "node.kubernetes.io/unschedulable"))
			return true;
	return false;
}

static void bind_pod(struct rd *d, struct hf_doc *doc)
{
	const char *name = hf_doc_name(doc);
	const struct hf_json *pod = hf_doc_json(doc);
	char node[16], text[TEXT_MAX];
	HF_AUTO_DOC body = NULL;
	HF_AUTO_RESULT result = {0};

	if (is_canary(name))
		snprintf(node, sizeof(node), "%s",
			 hf_str_or(hf_json_path_str(pod, "spec", "nodeSelector",
						    "kubernetes.io/hostname", NULL),
				   "?"));
	else
		rw_name(number_of(name + strlen(TRAIN)), node);
	if (is_canary(name) && (!is_in_work(d, node) || !tolerates_cordon(pod)))
		return;
	snprintf(text, sizeof(text),
		 "{'apiVersion':'v1','kind':'Binding','metadata':{'name':'%s'},'target':{"
		 "'kind':'Node','name':'%s'}}",
		 name, node);
	body = json_doc_of(text);
	const struct hf_request request = {.verb = HF_VERB_CREATE,
					   .resource = &hf_pods,
					   .ns = NS,
					   .name = name,
					   .subresource = "binding",
					   .body = body};

	hf_memstore_apply(d->w->memstore, &request, &result);
	assert_int_equal(result.code, 0);
}

/* code -1: the container runs. */
static void report_pod(struct rd *d, const struct rd_run *run, int code)
{
	char text[TEXT_MAX], state[256], from[HF_TIME_TEXT_MAX], now[HF_TIME_TEXT_MAX];
	hf_time at = hf_loop_wall(d->w->loop);

	hf_time_format(at, now);
	hf_time_format(at - (hf_loop_mono(d->w->loop) - run->since), from);
	if (code < 0)
		snprintf(state, sizeof(state), "'running':{'startedAt':'%s'}", from);
	else
		snprintf(state, sizeof(state),
			 "'terminated':{'exitCode':%d,'reason':'%s','startedAt':'%s','finishedAt':"
			 "'%s'}",
			 code, code == 0 ? "Completed" : "Error", from, now);
	snprintf(text, sizeof(text),
		 "{'status':{'phase':'%s','conditions':[{'type':'Ready','status':'%s'}],"
		 "'containerStatuses':[{'name':'pytorch','ready':%s,'restartCount':0,'image':'i',"
		 "'imageID':'','state':{%s}}]}}",
		 code < 0    ? "Running"
		 : code == 0 ? "Succeeded"
			     : "Failed",
		 code < 0 ? "True" : "False", code < 0 ? "true" : "false", state);
	rw_patch_in(d->w, &hf_pods, NS, run->pod, "status", text);
}

static void start_pod(struct rd *d, struct hf_doc *doc)
{
	struct rd_run *run = &d->jobs[d->jobs_len];
	const char *node = hf_json_path_str(hf_doc_json(doc), "spec", "nodeName", NULL);

	if (d->jobs_len == RD_RUNS_MAX)
		return;
	*run = (struct rd_run){.node = number_of(node + 1),
			       .since = hf_loop_mono(d->w->loop),
			       .running = true,
			       .seen = true};
	snprintf(run->pod, sizeof(run->pod), "%s", hf_doc_name(doc));
	snprintf(run->uid, sizeof(run->uid), "%s", hf_doc_uid(doc));
	for (size_t i = 0; i < d->jobs_len && is_canary(run->pod); i++)
		if (d->jobs[i].node == run->node && d->jobs[i].running && is_canary(d->jobs[i].pod))
			rw_break(d->w, "two canaries run on the node", node);
	/* A person may take the cordon off between the binding and the start. */
	if (is_canary(run->pod) && !is_in_work(d, node) && !d->w->by_hand)
		rw_break(d->w, "a canary runs on a node that is not in work", node);
	d->jobs_len++;
	report_pod(d, run, -1);
	rd_report(d, run->node);
}

static void end_pod(struct rd *d, struct rd_run *run)
{
	bool fails = d->canary[d->runs[run->node]].fails || d->canary_fails_on == run->node + 1;

	run->running = false;
	report_pod(d, run, fails);
	rd_report(d, run->node);
}

static struct rd_run *find_run(struct rd *d, const char *uid)
{
	for (size_t i = 0; i < d->jobs_len; i++)
		if (hf_streq(d->jobs[i].uid, uid))
			return &d->jobs[i];
	return NULL;
}

/* The garbage collector: the job of the pod is gone. */
static bool collect_orphan(struct rd *d, struct hf_doc *doc)
{
	const struct hf_json *owner = hf_find_controller(hf_doc_json(doc));
	const struct hf_json *job =
		rw_get(d->w, &hf_pytorchjobs, NS, hf_json_path_str(owner, "name", NULL));

	if (hf_streq(hf_json_path_str(job, "metadata", "uid", NULL),
		     hf_json_path_str(owner, "uid", NULL)))
		return false;
	(void)rw_remove(d->w, &hf_pods, NS, hf_doc_name(doc), 0);
	return true;
}

static void tick_pod(struct rd *d, struct hf_doc *doc)
{
	struct rd_run *run = find_run(d, hf_doc_uid(doc));
	int seconds;

	if (collect_orphan(d, doc))
		return;
	if (run != NULL)
		run->seen = true;
	if (hf_json_path(hf_doc_json(doc), "metadata", "deletionTimestamp", NULL) != NULL)
		return;
	if (hf_json_path(hf_doc_json(doc), "spec", "nodeName", NULL) == NULL) {
		bind_pod(d, doc);
		return;
	}
	if (run == NULL) {
		start_pod(d, doc);
		return;
	}
	seconds = d->canary[d->runs[run->node]].seconds;
	if (is_canary(run->pod) && run->running && seconds > 0 &&
	    hf_loop_mono(d->w->loop) >= run->since + seconds * HF_SECOND)
		end_pod(d, run);
}

/* Forgets the pods that are gone. */
static void sweep(struct rd *d)
{
	size_t kept = 0;

	for (size_t i = 0; i < d->jobs_len; i++) {
		struct rd_run run = d->jobs[i];

		if (run.seen)
			d->jobs[kept++] = run;
	}
	d->jobs_len = kept;
}

void rd_tick_jobs(struct rd *d)
{
	struct found *found = hf_xcalloc(1, sizeof(*found));

	for (size_t i = 0; i < d->jobs_len; i++)
		d->jobs[i].seen = false;
	hf_memstore_each(d->w->memstore, &hf_pods, NS, collect, found);
	for (size_t i = 0; i < found->len; i++) {
		tick_pod(d, found->docs[i]);
		hf_doc_unref(found->docs[i]);
	}
	free(found);
	sweep(d);
}

/* ---- for tests ----------------------------------------------------------------------------------- */

void rd_use_jobs(struct rd *d)
{
	d->w->ranks = report_ranks;
	d->w->ranks_arg = d;
}

void rd_train(struct rd *d, int ranks)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text),
		 "{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{'name':'train',"
		 "'namespace':'" NS "'},'spec':{'pytorchReplicaSpecs':{'Worker':{'replicas':%d,"
		 "'restartPolicy':'OnFailure','template':{'spec':{'containers':[{'name':'pytorch',"
		 "'image':'i'}]}}}}}}",
		 ranks);
	rw_create(d->w, &hf_pytorchjobs, NS, text);
}

static void count_canary(void *arg, struct hf_doc *doc)
{
	*(int *)arg += is_canary(hf_doc_name(doc));
}

int rd_count_canaries(struct rd *d)
{
	int count = 0;

	hf_memstore_each(d->w->memstore, &hf_pytorchjobs, NS, count_canary, &count);
	return count;
}

static void name_canary(void *arg, struct hf_doc *doc)
{
	if (is_canary(hf_doc_name(doc)))
		snprintf(arg, 64, "%s", hf_doc_name(doc));
}

void rd_delete_canary(struct rd *d)
{
	char name[64] = "";

	hf_memstore_each(d->w->memstore, &hf_pytorchjobs, NS, name_canary, name);
	assert_int_equal(rw_remove(d->w, &hf_pytorchjobs, NS, name, HF_GRACE_DEFAULT), 0);
}
