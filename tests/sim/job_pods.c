/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/job_pods.h"

#include "api/condition.h"
#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"
#include "harness/json_text.h"
#include "harness/ledger_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Input: the pods in the store, and the job's ledger. Output: bindings, statuses and ends of pods, and DeviceHealth. */

#define TEXT_MAX 4096

static void tell(const struct jp *jp, const char *what, const char *name)
{
	if (jp->aloud)
		print_message("%7.1f  %s %s\n",
			      (double)(hf_loop_wall(jp->w->loop) - RW_START) / HF_SECOND, what,
			      name);
}

static const struct hf_json *get_job(struct jp *jp)
{
	return rw_get(jp->w, jp->resource, JP_NS, "train");
}

static const struct hf_json *get_ledger(struct jp *jp)
{
	return hf_json_path(get_job(jp), "status", "recovery", NULL);
}

static bool is_up(const struct jp_run *run)
{
	return run->there && run->started && !run->over;
}

static bool is_launcher(const struct jp_run *run)
{
	return strstr(run->pod, "-launcher") != NULL;
}

/* The programs of MPI workers run under the launcher's mpirun, and so outside of an exec of their own. */
static bool is_under_exec(const struct jp *jp, const struct jp_run *run)
{
	return jp->exec && (jp->resource != &hf_mpijobs || is_launcher(run));
}

static int count_up(const struct jp *jp, const char *part)
{
	int up = 0;

	for (size_t i = 0; i < jp->len; i++)
		up += is_up(&jp->runs[i]) && jp->runs[i].asked == 0 &&
		      strstr(jp->runs[i].pod, part) != NULL;
	return up;
}

static int count_workers(struct jp *jp)
{
	const struct hf_json *spec = hf_json_get(get_job(jp), "spec");
	struct hf_json *value;
	const char *key;

	for (void *it = NULL; (it = hf_json_next(spec, it, &key, &value)) != NULL;)
		if (strstr(key, "ReplicaSpecs") != NULL)
			return (int)hf_json_i64(hf_json_path(value, "Worker", "replicas", NULL), 0);
	return 0;
}

/* ---- the scheduler ------------------------------------------------------------------------------- */

static const struct hf_json *first_container(const struct hf_json *pod)
{
	return hf_json_item(hf_json_path(pod, "spec", "containers", NULL), 0);
}

/* A free GPU of the node; -1: none. */
static int find_gpu(const struct jp *jp, int node)
{
	bool used[2] = {false, false};

	for (size_t i = 0; i < jp->len; i++)
		if (jp->runs[i].there && !jp->runs[i].over && jp->runs[i].gpu >= 0 &&
		    jp->runs[i].node == node)
			used[jp->runs[i].gpu] = true;
	return !used[0] ? 0 : !used[1] ? 1 : -1;
}

static bool takes_pod(struct jp *jp, int node, bool gpu)
{
	char name[16];

	rw_name(node, name);
	return !rw_tainted(jp->w, node) &&
	       !hf_json_true(hf_json_path(rw_get(jp->w, &hf_nodes, NULL, name), "spec",
					  "unschedulable", NULL),
			     false) &&
	       (!gpu || find_gpu(jp, node) >= 0);
}

/* A node selector names one node. */
static int choose_node(struct jp *jp, const struct jp_run *run, const struct hf_json *pod)
{
	const char *wanted =
		hf_json_path_str(pod, "spec", "nodeSelector", "kubernetes.io/hostname", NULL);
	int from = wanted != NULL ? rw_index_of(jp->w, wanted) : JP_NODE;
	int to = wanted != NULL ? from + 1 : JP_NODES;

	for (int node = from; node < to; node++)
		if (takes_pod(jp, node, run->wants_gpu))
			return node;
	return -1;
}

static void bind_pod(struct jp *jp, struct jp_run *run, const struct hf_json *pod)
{
	int node = choose_node(jp, run, pod);
	char text[512], name[16];
	HF_AUTO_DOC body = NULL;
	HF_AUTO_RESULT result = {0};

	if (node < 0)
		return;
	rw_name(node, name);
	snprintf(text, sizeof(text),
		 "{'apiVersion':'v1','kind':'Binding','metadata':{'name':'%s'},'target':{"
		 "'kind':'Node','name':'%s'}}",
		 run->pod, name);
	body = json_doc_of(text);
	const struct hf_request request = {.verb = HF_VERB_CREATE,
					   .resource = &hf_pods,
					   .ns = JP_NS,
					   .name = run->pod,
					   .subresource = "binding",
					   .body = body};

	hf_memstore_apply(jp->w->memstore, &request, &result);
	assert_int_equal(result.code, 0);
	run->gpu = run->wants_gpu ? find_gpu(jp, node) : -1;
	run->node = node;
	tell(jp, name, run->pod);
}

/* ---- reports ------------------------------------------------------------------------------------- */

static const char *const phases[] = {"Waiting", "Running", "Down"};

/* Adds the pods that were given the GPUs of the node to its report. */
static void add_holders(void *arg, int node, struct hf_device_health *health)
{
	struct jp *jp = arg;

	for (size_t i = 0; i < jp->len; i++) {
		const struct jp_run *run = &jp->runs[i];

		if (!is_up(run) || run->node != node || run->gpu < 0)
			continue;
		jp->holders[run->gpu] = (struct hf_device_holder){
			.ns = JP_NS, .pod = run->pod, .uid = run->uid, .until = HF_TIME_NONE};
		health->devices.items[1 + run->gpu].holders.items = &jp->holders[run->gpu];
		health->devices.items[1 + run->gpu].holders.len = 1;
	}
}

/* The reports of the node's execs. */
static void report_execs(struct jp *jp, int node)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);
	char name[16], at[HF_TIME_TEXT_MAX];
	const char *comma = "";

	if (!jp->exec || jp->w->silent[node])
		return;
	rw_name(node, name);
	hf_strbuf_addstr(&text, "{'status':{'processes':[");
	for (size_t i = 0; i < jp->len; i++) {
		const struct jp_run *run = &jp->runs[i];

		if (!is_up(run) || run->node != node || !is_under_exec(jp, run))
			continue;
		hf_time_format_micro(run->since, at);
		hf_strbuf_addf(&text,
			       "%s{'namespace':'" JP_NS "','pod':'%s','uid':'%s','job':'%s',"
			       "'generation':%lld,'attempt':%lld,'ordinal':%d,'phase':'%s',"
			       "'time':'%s'}",
			       comma, run->pod, run->uid, jp->job_uid, (long long)run->g,
			       (long long)run->a, run->ordinal, phases[run->phase], at);
		comma = ",";
	}
	hf_strbuf_addstr(&text, "]}}");
	rw_patch_status(jp->w, &hf_devicehealths, name, text.data);
}

static void report_node(struct jp *jp, int node)
{
	jp->w->holder[node] = NULL;
	for (size_t i = 0; i < jp->len; i++)
		if (is_up(&jp->runs[i]) && jp->runs[i].gpu == 0 && jp->runs[i].node == node) {
			snprintf(jp->holder[node], sizeof(jp->holder[node]), "%s", jp->runs[i].pod);
			jp->w->holder[node] = jp->holder[node];
		}
	rw_report(jp->w, node);
	report_execs(jp, node);
}

static void report_pod(struct jp *jp, const struct jp_run *run)
{
	const char *phase = !run->over ? "Running" : run->code == 0 ? "Succeeded" : "Failed";
	char state[256], fresh[256], text[TEXT_MAX], at[HF_TIME_TEXT_MAX];

	hf_time_format(hf_loop_wall(jp->w->loop), at);
	snprintf(fresh, sizeof(fresh),
		 ",'startTime':'%s','conditions':[{'type':'Ready','status':'True'}]", at);
	if (run->over)
		snprintf(state, sizeof(state),
			 "'terminated':{'exitCode':%d,'reason':'Error','finishedAt':'%s'}",
			 run->code, at);
	else
		snprintf(state, sizeof(state), "'running':{'startedAt':'%s'}", at);
	/* The condition that the eviction API writes stays. */
	snprintf(text, sizeof(text),
		 "{'status':{'phase':'%s'%s,'containerStatuses':[{'name':'%s','ready':%s,"
		 "'restartCount':0,'image':'i','imageID':'','state':{%s}}]}}",
		 phase, run->over ? "" : fresh, run->container, run->over ? "false" : "true",
		 state);
	rw_patch_in(jp->w, &hf_pods, JP_NS, run->pod, "status", text);
}

/* ---- exec and agents ------------------------------------------------------------------------------ */

struct order {
	int64_t g, a;
	bool hold, save;
};

/* What the ledger orders for the rank. */
static struct order read_order(struct jp *jp, const struct jp_run *run)
{
	const struct hf_json *ledger = get_ledger(jp);
	const struct hf_json *role =
		hf_json_path(ledger, "replicas", is_launcher(run) ? "Launcher" : "Worker", NULL);
	const char *dash = strrchr(run->pod, '-');
	long long index = is_launcher(run) ? 0 : strtoll(dash + 1, NULL, 10);
	int64_t g = hf_json_i64(hf_json_get(ledger, "generation"), 0);
	int64_t base = hf_json_i64(hf_json_get(ledger, "inPlaceBase"), g);
	int64_t a = ledger_text_number(hf_json_path_str(role, "attempts", NULL), index);
	int64_t alone = ledger_text_number(hf_json_path_str(role, "inPlace", NULL), index);
	bool counts = run->g0 >= base && run->g0 <= g && run->a0 + alone == a;

	return (struct order){.g = g,
			      .a = a,
			      .hold = !counts ||
				      ledger_text_has(hf_json_path_str(role, "hold", NULL), index),
			      .save = hf_json_get(ledger, "saveUntil") != NULL};
}

#define SAVE_TAKES (5 * HF_SECOND)

static void enter(struct jp *jp, struct jp_run *run, enum jp_phase phase)
{
	run->phase = phase;
	run->since = hf_loop_wall(jp->w->loop);
	run->ordinal += phase == JP_RUNNING;
	tell(jp, phases[phase], run->pod);
	report_execs(jp, run->node);
}

static void obey(struct jp *jp, struct jp_run *run)
{
	const struct order order = read_order(jp, run);
	bool lower = run->g < order.g || (run->g == order.g && run->a < order.a);
	hf_time now = hf_loop_mono(jp->w->loop);

	if (run->phase == JP_RUNNING && !lower)
		return;
	if (run->phase == JP_RUNNING && run->stops_at == 0) {
		run->stops_at = now + (order.save ? SAVE_TAKES : 0);
		jp->saves += order.save;
	}
	if (now < run->stops_at)
		return;
	run->stops_at = 0;
	run->g = order.g;
	run->a = order.a;
	if (!order.hold || lower)
		enter(jp, run, order.hold ? JP_DOWN : JP_RUNNING);
}

/* ---- kubelets -------------------------------------------------------------------------------------- */

static struct jp_run *find_run(struct jp *jp, struct hf_doc *doc)
{
	for (size_t i = 0; i < jp->len; i++)
		if (hf_streq(jp->runs[i].uid, hf_doc_uid(doc)))
			return &jp->runs[i];
	return NULL;
}

static bool waits_for_order(const struct hf_json *pod)
{
	const struct hf_json *env = hf_json_get(first_container(pod), "env");

	for (size_t i = 0; i < hf_json_len(env); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(env, i), "name", NULL), "HOLDFAST_HOLD"))
			return true;
	return false;
}

static int64_t read_stamp(const struct hf_json *pod, const char *key)
{
	const char *text = hf_json_path_str(pod, "metadata", "annotations", key, NULL);

	return strtoll(hf_str_or(text, "0"), NULL, 10);
}

static void add_run(struct jp *jp, struct hf_doc *doc)
{
	const struct hf_json *pod = hf_doc_json(doc), *container = first_container(pod);
	struct jp_run *run = &jp->runs[jp->len++];

	hf_assert(jp->len < JP_RUNS_MAX);
	*run = (struct jp_run){.node = -1, .gpu = -1};
	run->wants_gpu =
		hf_json_path(container, "resources", "limits", "nvidia.com/gpu", NULL) != NULL;
	snprintf(run->pod, sizeof(run->pod), "%s", hf_doc_name(doc));
	snprintf(run->uid, sizeof(run->uid), "%s", hf_doc_uid(doc));
	snprintf(run->container, sizeof(run->container), "%s",
		 hf_json_path_str(container, "name", NULL));
	run->g0 = run->g = read_stamp(pod, "holdfast.dev/generation");
	run->a0 = run->a = read_stamp(pod, "holdfast.dev/attempt");
	run->phase = waits_for_order(pod) ? JP_WAITING : JP_RUNNING;
}

static void end_run(struct jp *jp, struct jp_run *run, int code)
{
	run->over = true;
	run->ends_at = hf_loop_mono(jp->w->loop);
	run->code = code;
	tell(jp, code == 1 ? "crashes:" : "ends:", run->pod);
	report_pod(jp, run);
	report_node(jp, run->node);
}

/* An init container of an MPI launcher waits for the workers. */
static void start_run(struct jp *jp, struct jp_run *run)
{
	if (is_launcher(run) && count_up(jp, "-worker-") < count_workers(jp))
		return;
	run->started = true;
	if (is_under_exec(jp, run))
		enter(jp, run, run->phase);
	report_pod(jp, run);
	report_node(jp, run->node);
}

static void leave(struct jp *jp, struct jp_run *run)
{
	hf_time now = hf_loop_mono(jp->w->loop);

	if (run->asked == 0) {
		run->asked = now;
		tell(jp, "SIGTERM:", run->pod);
	}
	if (run->started && !run->over) {
		if (now >= run->asked + jp->stop_takes * HF_SECOND)
			end_run(jp, run, 143);
		return;
	}
	if (run->over && now < run->ends_at + jp->unmount_takes * HF_SECOND)
		return;
	(void)rw_remove(jp->w, &hf_pods, JP_NS, run->pod, 0);
	run->there = false;
	if (run->node >= 0)
		report_node(jp, run->node);
}

/* mpirun ends when a worker goes. Others do so if they are to crash, once all ranks have met. */
static void crash_with_peers(struct jp *jp, struct jp_run *run)
{
	hf_time now = hf_loop_mono(jp->w->loop);
	bool launcher = is_launcher(run);
	bool complete = count_up(jp, launcher ? "-worker-" : "train-") >= count_workers(jp);

	run->joined |= complete;
	if (complete || !run->joined || run->phase != JP_RUNNING || !(launcher || jp->crashes))
		return;
	if (run->ends_at == 0)
		run->ends_at = now + (launcher ? 1 : 3) * HF_SECOND;
	if (now >= run->ends_at)
		end_run(jp, run, 1);
}

static void tick_pod(struct jp *jp, struct hf_doc *doc)
{
	const struct hf_json *pod = hf_doc_json(doc);
	struct jp_run *run = find_run(jp, doc);

	if (run->node >= 0 && jp->w->silent[run->node])
		return;
	if (hf_json_path(pod, "metadata", "deletionTimestamp", NULL) != NULL) {
		leave(jp, run);
		return;
	}
	if (run->over)
		return;
	if (run->node < 0) {
		bind_pod(jp, run, pod);
		return;
	}
	if (!run->started) {
		start_run(jp, run);
		return;
	}
	if (is_under_exec(jp, run))
		obey(jp, run);
	crash_with_peers(jp, run);
}

struct found {
	struct hf_doc *docs[JP_RUNS_MAX];
	size_t len;
};

static void collect(void *arg, struct hf_doc *doc)
{
	struct found *found = arg;

	if (found->len < JP_RUNS_MAX && hf_str_has_prefix(hf_doc_name(doc), "train-"))
		found->docs[found->len++] = hf_doc_ref(doc);
}

static void check_acts(struct jp *jp)
{
	for (size_t i = 0; i < jp->len; i++) {
		const struct jp_run *run = &jp->runs[i];

		if (run->there && run->started && jp->a->ends_at[run->node] != 0 &&
		    jp->a->reboots[run->node])
			rw_break(jp->w, "a reboot before the kubelet has removed a pod", run->pod);
	}
}

static void tick(struct jp *jp)
{
	struct found *found = hf_xcalloc(1, sizeof(*found));

	for (size_t i = 0; i < jp->len; i++)
		jp->runs[i].there = false;
	hf_memstore_each(jp->w->memstore, &hf_pods, JP_NS, collect, found);
	for (size_t i = 0; i < found->len; i++) {
		if (find_run(jp, found->docs[i]) == NULL)
			add_run(jp, found->docs[i]);
		find_run(jp, found->docs[i])->there = true;
	}
	for (size_t i = 0; i < found->len; i++) {
		tick_pod(jp, found->docs[i]);
		hf_doc_unref(found->docs[i]);
	}
	free(found);
	check_acts(jp);
}

/* ---- for tests ------------------------------------------------------------------------------------- */

void jp_go(struct jp *jp, hf_time span)
{
	for (hf_time at = 0; at < span; at += HF_SECOND) {
		rw_run(jp->w, HF_SECOND);
		tick(jp);
		if (at / HF_SECOND % 10 == 0)
			rw_say_again(jp->w);
	}
}

static void free_jp(void *arg)
{
	free(arg);
}

struct jp *jp_begin(struct rw *w, const struct hf_resource *resource, const char *policy)
{
	struct jp *jp = hf_xcalloc(1, sizeof(*jp));

	*jp = (struct jp){.w = w,
			  .resource = resource,
			  .stop_takes = 2,
			  .aloud = getenv("JOBS_ALOUD") != NULL};
	rw_at_end(w, free_jp, jp);
	w->frameworks = hf_frameworks;
	w->gpus = 2;
	w->ranks = add_holders;
	w->ranks_arg = jp;
	jp->a = ra_begin(w, JP_NODES, policy);
	rw_patch_node(w, JP_NODE, "{'metadata':{'labels':{'kubernetes.io/hostname':'n003'}}}");
	return jp;
}

void jp_create(struct jp *jp, const char *kind, const char *spec)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);

	hf_strbuf_addf(&text,
		       "{'apiVersion':'kubeflow.org/v1','kind':'%s','metadata':{'name':'train',"
		       "'namespace':'" JP_NS "'},'spec':{%s}}",
		       kind, spec);
	rw_create(jp->w, jp->resource, JP_NS, text.data);
	snprintf(jp->job_uid, sizeof(jp->job_uid), "%s",
		 hf_json_path_str(get_job(jp), "metadata", "uid", NULL));
	jp_go(jp, 15 * HF_SECOND);
}

void jp_patch(struct jp *jp, const char *text)
{
	rw_patch_in(jp->w, jp->resource, JP_NS, "train", NULL, text);
}

int jp_made(const struct jp *jp, const char *pod)
{
	int count = 0;

	for (size_t i = 0; i < jp->len; i++)
		count += hf_streq(jp->runs[i].pod, pod);
	return count;
}

int jp_node_of(const struct jp *jp, const char *pod)
{
	for (size_t i = jp->len; i > 0; i--)
		if (hf_streq(jp->runs[i - 1].pod, pod))
			return jp->runs[i - 1].node;
	return -1;
}

bool jp_is_true(struct jp *jp, const char *condition)
{
	return hf_condition_is_true(get_job(jp), condition);
}

void jp_expect_runs(struct jp *jp, const char *restarts)
{
	assert_false(jp_is_true(jp, "Failed"));
	assert_true(jp_is_true(jp, "Running"));
	assert_false(jp_is_true(jp, "Restarting"));
	assert_string_equal(
		hf_str_or(hf_json_path_str(get_ledger(jp), "summary", NULL), "no ledger"),
		restarts);
}
