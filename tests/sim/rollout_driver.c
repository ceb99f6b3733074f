/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/front_store.h"
#include "sim/rollout_driver.h"

#include "api/device_rollout.h"
#include "api/lifetime.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "harness/json_text.h"
#include "json/patch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Input: the pods of the driver in the store. Output: new pods, their readiness, and what the nodes offer. */

#define EVERY (500 * HF_MS)
#define READY_TAKES (3 * HF_SECOND)
#define CRASHES_AFTER (2 * HF_SECOND)
#define BACK_AFTER (20 * HF_SECOND)
#define NS "default"

/* ---- the DaemonSet and its revisions ------------------------------------------------------------- */

static struct hf_doc *make_daemon_set(struct rd *d)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "{'apiVersion':'apps/v1','kind':'DaemonSet','metadata':{'name':'driver',"
		 "'namespace':'" NS "','uid':'ds-uid','resourceVersion':'%d','generation':%d},"
		 "'spec':{'updateStrategy':{'type':'%s'},'selector':{'matchLabels':{'app':"
		 "'driver'}},'template':{'spec':{'version':%d}}},'status':{"
		 "'observedGeneration':%d}}",
		 d->object_version, d->generation, d->strategy, d->version, d->generation);
	return json_doc_of(text);
}

static struct hf_doc *make_revision(struct rd *d, int version)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "{'apiVersion':'apps/v1','kind':'ControllerRevision','metadata':{'name':"
		 "'driver-h%d','namespace':'" NS
		 "','creationTimestamp':'2020-01-01T00:00:0%dZ','labels':{'app':'driver',"
		 "'controller-revision-hash':'h%d'},'ownerReferences':[{'apiVersion':'apps/v1',"
		 "'kind':'DaemonSet','name':'driver','uid':'ds-uid','controller':true}]},"
		 "'revision':%d,'data':{'spec':{'template':{'spec':{'version':%d},'$patch':"
		 "'replace'}}}}",
		 version, version, version, d->revision[version], version);
	return json_doc_of(text);
}

void rd_set_version(struct rd *d, int version)
{
	d->version = version;
	d->generation++;
	d->object_version++;
	d->revision[version] = ++d->newest_revision;
}

static int change_daemon_set(struct rd *d, struct hf_doc *body)
{
	HF_AUTO_DOC doc = make_daemon_set(d);
	HF_AUTO_JSON changed = NULL;
	int version;

	if (hf_json_patch(hf_doc_json(doc), hf_doc_json(body), &changed, NULL) != 0)
		return HF_E_INVALID;
	if (hf_json_path(changed, "spec", "template", "$patch", NULL) != NULL)
		rw_break(d->w, "the template has the mark of a strategic patch", "driver");
	version = (int)hf_json_i64(
		hf_json_path(changed, "spec", "template", "spec", "version", NULL), 0);
	d->undos++;
	rd_set_version(d, version);
	return 0;
}

static void answer_revisions(struct rd *d, struct front_call *call)
{
	struct hf_doc *items[RD_VERSIONS_MAX];
	size_t len = 0;

	for (int v = 0; v < RD_VERSIONS_MAX; v++)
		if (d->revision[v] > 0)
			items[len++] = make_revision(d, v);
	front_answer_list(call, items, len, "1");
	for (size_t i = 0; i < len; i++)
		hf_doc_unref(items[i]);
}

static void answer_daemon_set(struct rd *d, struct front_call *call)
{
	HF_AUTO_DOC doc = NULL;
	int code = 0;

	if (!hf_streq(call->name, "driver") || d->gone) {
		front_answer(call, HF_E_NOT_FOUND, NULL);
		return;
	}
	if (call->verb == HF_VERB_PATCH)
		code = change_daemon_set(d, call->body);
	doc = make_daemon_set(d);
	front_answer(call, code, code == 0 ? doc : NULL);
}

static void answer(void *arg, struct front_call *call)
{
	if (hf_streq(call->plural, "daemonsets"))
		answer_daemon_set(arg, call);
	else
		answer_revisions(arg, call);
}

/* The older generation of the pool has one device more. */
static struct hf_doc *make_slice(struct rd *d, int node, int generation)
{
	bool fewer = d->effect[node][d->runs[node]] == RD_LOSES_GPU &&
		     hf_loop_mono(d->w->loop) >= d->ready_at[node] + d->slices_stay;
	int gpus = generation == 1 ? RD_GPUS + 1 : fewer ? RD_GPUS - 1 : RD_GPUS;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);

	hf_strbuf_addf(
		&text,
		"{'apiVersion':'resource.k8s.io/v1','kind':'ResourceSlice','metadata':{'name':"
		"'n%03d-%d'},'spec':{'driver':'gpu.example.com','nodeName':'n%03d','pool':{"
		"'name':'n%03d','generation':%d,'resourceSliceCount':1},'devices':[",
		node, generation, node, node, generation);
	for (int i = 0; i < gpus; i++)
		hf_strbuf_addf(&text, "%s{'name':'gpu-%d'}", i > 0 ? "," : "", i);
	hf_strbuf_addf(&text, "]}}");
	return json_doc_of(text.data);
}

/* Lists the slices of the node in the field selector. Other kinds of the group do not exist. */
static void answer_slices(void *arg, struct front_call *call)
{
	struct rd *d = arg;
	const char *name = strchr(call->field_selector, '=');
	struct hf_doc *items[2];
	int node;

	if (!hf_streq(call->plural, "resourceslices") || name == NULL || d->no_slices) {
		front_answer(call, d->no_slices ? HF_E_FORBIDDEN : HF_E_NOT_FOUND, NULL);
		return;
	}
	node = rw_index_of(d->w, name + 1);
	for (int i = 0; i < 2; i++)
		items[i] = make_slice(d, node, i + 1);
	front_answer_list(call, items, d->is_dra && d->ready[node] ? 2 : 0, "1");
	for (int i = 0; i < 2; i++)
		hf_doc_unref(items[i]);
}

static struct hf_store *wrap(void *arg, struct hf_store *inner)
{
	struct rd *d = arg;
	const struct front_options apps = {.loop = d->w->loop,
					   .group = "apps",
					   .answer = answer,
					   .arg = d},
				   slices = {.loop = d->w->loop,
					     .group = "resource.k8s.io",
					     .answer = answer_slices,
					     .arg = d};

	return front_store_create(&slices, front_store_create(&apps, inner));
}

/* ---- the controller of DaemonSets, and kubelets -------------------------------------------------- */

static void print_pod(struct rd *d, int node, char name[64])
{
	snprintf(name, 64, "driver-n%03d-v%d", node, d->runs[node]);
}

static void make_pod(struct rd *d, int node)
{
	char text[1024], name[64];

	d->runs[node] = d->version;
	d->ready[node] = false;
	d->ready_at[node] = hf_loop_mono(d->w->loop) + READY_TAKES;
	print_pod(d, node, name);
	snprintf(text, sizeof(text),
		 "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':'" NS "',"
		 "'labels':{'app':'driver','controller-revision-hash':'h%d'},'ownerReferences':[{"
		 "'apiVersion':'apps/v1','kind':'DaemonSet','name':'driver','uid':'ds-uid',"
		 "'controller':true}]},'spec':{'nodeName':'n%03d','containers':[{'name':'c',"
		 "'image':'i'}]}}",
		 name, d->version, node);
	rw_create(d->w, &hf_pods, NS, text);
	d->pods_made++;
}

static void offer(struct rd *d, int node, int gpus)
{
	char text[128], name[16];

	rw_name(node, name);
	snprintf(text, sizeof(text),
		 "{'status':{'allocatable':{'nvidia.com/gpu':'%d','cpu':'64'}}}",
		 d->is_dra ? 0 : gpus);
	rw_patch_in(d->w, &hf_nodes, NULL, name, "status", text);
}

void rd_set_effect(struct rd *d, int version, enum rd_effect effect)
{
	for (int i = 0; i < d->w->nodes; i++)
		d->effect[i][version] = effect;
}

void rd_evict(struct rd *d, int node)
{
	char name[64];

	print_pod(d, node, name);
	(void)rw_remove(d->w, &hf_pods, NS, name, 0);
	d->ready[node] = false;
	d->ready_at[node] = HF_TIME_NEVER;
}

/* The operator deletes pods with the grace period of the pod. */
bool rd_is_evicted(const struct hf_json *pod)
{
	return hf_json_i64(hf_json_path(pod, "metadata", "deletionGracePeriodSeconds", NULL), -1) ==
	       0;
}

static void become_ready(struct rd *d, int node)
{
	enum rd_effect effect = d->effect[node][d->runs[node]];
	char text[512], name[64], at[HF_TIME_TEXT_MAX];

	if (effect == RD_NEVER_READY)
		return;
	d->ready[node] = true;
	print_pod(d, node, name);
	hf_time_format(hf_loop_wall(d->w->loop), at);
	snprintf(text, sizeof(text),
		 "{'status':{'phase':'Running','conditions':[{'type':'Ready','status':'True',"
		 "'lastTransitionTime':'%s'}]}}",
		 at);
	rw_patch_in(d->w, &hf_pods, NS, name, "status", text);
	offer(d, node, effect == RD_LOSES_GPU ? RD_GPUS - 1 : RD_GPUS);
	if (effect != RD_BREAKS_DEVICE)
		rw_say(d->w, node, effect == RD_NOT_ANSWERS ? RW_UNSEEN : RW_WELL);
}

/* Ends the pod's container if the version does that; it is Ready again after a while, or never. */
static void end_container(struct rd *d, int node)
{
	enum rd_effect effect = d->effect[node][d->runs[node]];
	hf_time lasts = effect == RD_CRASHES ? CRASHES_AFTER : HF_MINUTE;
	char text[512], name[64], at[HF_TIME_TEXT_MAX];

	if ((effect != RD_CRASHES && effect != RD_ENDS_LATER) || !d->ready[node] ||
	    hf_loop_mono(d->w->loop) < d->ready_at[node] + lasts)
		return;
	d->ready[node] = false;
	d->ready_at[node] =
		effect == RD_CRASHES ? hf_loop_mono(d->w->loop) + BACK_AFTER : HF_TIME_NEVER;
	print_pod(d, node, name);
	hf_time_format(hf_loop_wall(d->w->loop), at);
	snprintf(text, sizeof(text),
		 "{'status':{'conditions':[{'type':'Ready','status':'False',"
		 "'lastTransitionTime':'%s'}]}}",
		 at);
	rw_patch_in(d->w, &hf_pods, NS, name, "status", text);
}

static void remove_pod(struct rd *d, const char *name)
{
	(void)rw_remove(d->w, &hf_pods, NS, name, 0);
}

struct leaving {
	struct hf_doc *docs[RW_NODES_MAX];
	size_t len;
};

static void collect_leaving(void *arg, struct hf_doc *doc)
{
	struct leaving *leaving = arg;

	if (leaving->len < RW_NODES_MAX &&
	    hf_json_path(hf_doc_json(doc), "metadata", "deletionTimestamp", NULL) != NULL)
		leaving->docs[leaving->len++] = hf_doc_ref(doc);
}

static void kubelet(struct rd *d)
{
	struct leaving *leaving = hf_xcalloc(1, sizeof(*leaving));

	hf_memstore_each(d->w->memstore, &hf_pods, NS, collect_leaving, leaving);
	for (size_t i = 0; i < leaving->len; i++) {
		remove_pod(d, hf_doc_name(leaving->docs[i]));
		hf_doc_unref(leaving->docs[i]);
	}
	free(leaving);
}

static void tick_node(struct rd *d, int node)
{
	hf_time now = hf_loop_mono(d->w->loop);
	char name[64];

	print_pod(d, node, name);
	if (!d->bare[node] && rw_get(d->w, &hf_pods, NS, name) == NULL)
		make_pod(d, node);
	else if (!d->bare[node] && !d->ready[node] && now >= d->ready_at[node])
		become_ready(d, node);
	end_container(d, node);
	if (d->ready[node] && d->effect[node][d->runs[node]] == RD_BREAKS_DEVICE &&
	    now >= d->ready_at[node] + d->breaks_after && d->w->ill[node] == RW_WELL)
		rw_say(d->w, node, RW_RESET);
	if (!d->asked[node])
		return;
	d->asked[node] = false;
	/* The agent reports what is there. */
	if (d->w->ill[node] == RW_WELL)
		rw_say(d->w, node, RW_WELL);
	else
		rw_measure(d->w, node);
}

static void tick(void *arg)
{
	struct rd *d = arg;

	kubelet(d);
	rd_tick_jobs(d);
	for (int i = 0; i < d->w->nodes; i++)
		tick_node(d, i);
	hf_timer_arm(d->timer, EVERY);
}

/* ---- what must hold ------------------------------------------------------------------------------ */

static bool has_own_cordon(const struct hf_json *node)
{
	return hf_json_true(hf_json_path(node, "spec", "unschedulable", NULL), false) &&
	       hf_json_path_str(node, "metadata", "annotations", "holdfast.dev/rollout", NULL) !=
		       NULL;
}

struct count {
	int cordoned;
	bool holds;
	const char *node;
};

static void count_cordoned(void *arg, struct hf_doc *doc)
{
	struct count *count = arg;

	count->cordoned += has_own_cordon(hf_doc_json(doc));
}

static bool requests(const struct hf_json *pod)
{
	return hf_json_path(hf_json_item(hf_json_path(pod, "spec", "containers", NULL), 0),
			    "resources", "limits", "nvidia.com/gpu", NULL) != NULL;
}

static void find_holder(void *arg, struct hf_doc *doc)
{
	struct count *count = arg;
	const struct hf_json *pod = hf_doc_json(doc);

	count->holds |= requests(pod) && !hf_has_pod_ended(pod) &&
			hf_streq(hf_json_path_str(pod, "spec", "nodeName", NULL), count->node);
}

const char *rd_mark(const struct hf_json *node, const char *label)
{
	const struct hf_rollout_spec spec = {
		.daemon_set = {.ns = "default", .name = label == NULL ? "driver" : NULL},
		.label = {.key = label}};
	char key[HF_ROLLOUT_MARK_KEY_MAX];

	return hf_json_path_str(node, "metadata", "annotations", hf_rollout_mark_key(&spec, key),
				NULL);
}

/* A pod of the driver is deleted. */
static void check_change(struct rd *d, const struct hf_json *pod)
{
	const char *node = hf_json_path_str(pod, "spec", "nodeName", NULL);
	const struct hf_json *object = rw_get(d->w, &hf_nodes, NULL, node);
	struct count count = {.node = node};
	int i = rw_index_of(d->w, node);
	char wanted[16];

	d->total_deletes++;
	d->deletes[i]++;
	if (object == NULL)
		return;
	if (!hf_json_true(hf_json_path(object, "spec", "unschedulable", NULL), false))
		rw_break(d->w, "the node is changed without a cordon", node);
	if (rd_mark(object, NULL) == NULL)
		rw_break(d->w, "the node is changed without a mark", node);
	hf_memstore_each(d->w->memstore, &hf_pods, NULL, find_holder, &count);
	if (count.holds && !d->beside_pods)
		rw_break(d->w, "the node is changed beside a pod that requests a device", node);
	snprintf(wanted, sizeof(wanted), "h%d", d->version);
	if (hf_streq(hf_json_path_str(pod, "metadata", "labels", "controller-revision-hash", NULL),
		     wanted))
		rw_break(d->w, "a pod of the wanted version is deleted", node);
}

static void check_cordons(struct rd *d, const struct hf_json *before, const struct hf_json *after)
{
	struct count count = {0};

	if (has_own_cordon(before) || !has_own_cordon(after))
		return;
	hf_memstore_each(d->w->memstore, &hf_nodes, NULL, count_cordoned, &count);
	if (count.cordoned > d->most_cordoned)
		d->most_cordoned = count.cordoned;
	if (d->at_once >= 0 && count.cordoned > d->at_once)
		rw_break(d->w, "more nodes are in work than allowed",
			 hf_json_path_str(after, "metadata", "name", NULL));
}

static bool is_leaving(const struct hf_json *object)
{
	return hf_json_path(object, "metadata", "deletionTimestamp", NULL) != NULL;
}

static void on_change(void *arg, const struct hf_memstore_change *change)
{
	struct rd *d = arg;
	const struct hf_json *before = hf_doc_json(change->before);
	const struct hf_json *after = hf_doc_json(change->after);

	d->canaries_made += change->resource == &hf_pytorchjobs && change->before == NULL &&
			    hf_str_has_prefix(hf_doc_name(change->after), "canary-");
	if (change->before == NULL || change->after == NULL)
		return;
	if (change->resource == &hf_nodes)
		check_cordons(d, before, after);
	if (change->resource == &hf_pods && !is_leaving(before) && is_leaving(after) &&
	    !rd_is_evicted(after) &&
	    hf_streq(hf_json_path_str(after, "metadata", "labels", "app", NULL), "driver"))
		check_change(d, after);
	if (change->resource == &hf_devicehealths) {
		const char *asks = hf_json_path_str(after, "metadata", "annotations",
						    "holdfast.dev/report", NULL);

		if (asks != NULL &&
		    !hf_streq(asks, hf_json_path_str(before, "metadata", "annotations",
						     "holdfast.dev/report", NULL)))
			d->asked[rw_index_of(
				d->w, hf_json_path_str(after, "metadata", "name", NULL))] = true;
	}
}

static void on_reset(void *arg)
{
	rw_break(((struct rd *)arg)->w, "the store was reset", "store");
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void destroy(void *arg)
{
	struct rd *d = arg;

	hf_memstore_unobserve(d->w->memstore, &d->observer);
	hf_timer_destroy(d->timer);
	free(d);
}

struct rd *rd_create(struct rw *w, int nodes)
{
	struct rd *d = hf_xcalloc(1, sizeof(*d));

	d->w = w;
	d->strategy = "OnDelete";
	d->at_once = -1;
	d->breaks_after = 5 * HF_SECOND;
	rw_create(d->w, &hf_namespaces, NULL,
		  "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'holdfast-mend'}}");
	rw_fleet(w, nodes);
	rd_set_version(d, 1);
	for (int i = 0; i < nodes; i++) {
		offer(d, i, RD_GPUS);
		make_pod(d, i);
		become_ready(d, i);
	}
	d->timer = hf_timer_create(w->loop, tick, d);
	hf_timer_arm(d->timer, EVERY);
	d->observer =
		(struct hf_memstore_observer){.changed = on_change, .reset = on_reset, .arg = d};
	hf_memstore_observe(w->memstore, &d->observer);
	w->wrap = wrap;
	w->wrap_arg = d;
	w->people_ask = true;
	rw_at_end(w, destroy, d);
	return d;
}

void rd_rollout(struct rd *d, const char *name, const char *spec)
{
	char text[4096];

	snprintf(text, sizeof(text),
		 "{'apiVersion':'holdfast.dev/v1alpha1','kind':'DeviceRollout','metadata':{'name':"
		 "'%s'},'spec':{%s}}",
		 name, spec);
	rw_create(d->w, &hf_devicerollouts, NULL, text);
}

void rd_roll(struct rd *d, const char *spec)
{
	rw_start(d->w);
	rd_set_version(d, 2);
	rd_rollout(d, "r", spec);
}

struct rd *rd_begin(struct rw *w, int nodes, const char *spec)
{
	struct rd *d = rd_create(w, nodes);

	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	rd_set_version(d, 2);
	rd_rollout(d, "r", spec);
	return d;
}

void rd_patch_spec(struct rd *d, const char *name, const char *spec)
{
	char text[512];

	snprintf(text, sizeof(text), "{'spec':{%s}}", spec);
	rw_patch_in(d->w, &hf_devicerollouts, NULL, name, NULL, text);
}

void rd_pod(struct rd *d, const char *name, int node, const char *owner)
{
	char text[1024], owners[256] = "";

	if (owner != NULL)
		snprintf(owners, sizeof(owners),
			 ",'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':"
			 "'%s','uid':'%s-uid','controller':true}]",
			 owner, owner);
	snprintf(text, sizeof(text),
		 "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':'" NS "'%s},"
		 "'spec':{'nodeName':'n%03d','containers':[{'name':'c','image':'i','resources':{"
		 "'limits':{'nvidia.com/gpu':'1'}}}]}}",
		 name, owners, node);
	rw_create(d->w, &hf_pods, NS, text);
	rw_patch_in(d->w, &hf_pods, NS, name, "status", "{'status':{'phase':'Running'}}");
}

void rd_end_pod(struct rd *d, const char *name)
{
	rw_patch_in(d->w, &hf_pods, NS, name, "status", "{'status':{'phase':'Succeeded'}}");
}

/* ---- looking ------------------------------------------------------------------------------------- */

static const struct hf_json *status_of(struct rd *d, const char *name)
{
	return hf_json_get(rw_get(d->w, &hf_devicerollouts, NULL, name), "status");
}

const char *rd_phase(struct rd *d, const char *name)
{
	return hf_str_or(hf_json_path_str(status_of(d, name), "phase", NULL), "");
}

const char *rd_message(struct rd *d, const char *name)
{
	return hf_str_or(hf_json_path_str(status_of(d, name), "message", NULL), "");
}

const struct hf_json *rd_entry(struct rd *d, const char *name, int node)
{
	const struct hf_json *list = hf_json_get(status_of(d, name), "nodes");
	char text[16];

	rw_name(node, text);
	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(list, i), "name", NULL), text))
			return hf_json_item(list, i);
	return NULL;
}

const char *rd_node_phase(struct rd *d, const char *name, int node)
{
	return hf_str_or(hf_json_path_str(rd_entry(d, name, node), "phase", NULL), "");
}

const char *rd_node_message(struct rd *d, const char *name, int node)
{
	return hf_str_or(hf_json_path_str(rd_entry(d, name, node), "message", NULL), "");
}

const char *rd_condition(struct rd *d, const char *name, const char *type)
{
	const struct hf_json *list = hf_json_get(status_of(d, name), "conditions");
	static char text[1024];

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *c = hf_json_item(list, i);

		if (!hf_streq(hf_json_path_str(c, "type", NULL), type))
			continue;
		snprintf(text, sizeof(text), "%s %s %s", hf_json_path_str(c, "status", NULL),
			 hf_json_path_str(c, "reason", NULL), hf_json_path_str(c, "message", NULL));
		return text;
	}
	return "";
}

void rd_run_until(struct rd *d, const char *phase)
{
	for (int i = 0; i < 3600 && !hf_streq(rd_phase(d, "r"), phase); i++)
		rw_run(d->w, HF_SECOND);
	rd_expect_phase(d, phase);
}

void rd_run_node_until(struct rd *d, int node, const char *phase)
{
	for (int i = 0; i < 3600 && !hf_streq(rd_node_phase(d, "r", node), phase); i++)
		rw_run(d->w, HF_SECOND);
	assert_string_equal(rd_node_phase(d, "r", node), phase);
}

void rd_expect_phase(struct rd *d, const char *phase)
{
	if (!hf_streq(rd_phase(d, "r"), phase))
		fail_msg("%s instead of %s: %s", rd_phase(d, "r"), phase, rd_message(d, "r"));
}

void rd_expect_message(struct rd *d, const char *part)
{
	if (strstr(rd_message(d, "r"), part) == NULL)
		fail_msg("'%s', expected '%s'", rd_message(d, "r"), part);
}

void rd_expect_node_message(struct rd *d, int node, const char *part)
{
	if (strstr(rd_node_message(d, "r", node), part) == NULL)
		fail_msg("'%s', expected '%s'", rd_node_message(d, "r", node), part);
}

void rd_expect_condition(struct rd *d, const char *type, const char *start, const char *part)
{
	const char *text = rd_condition(d, "r", type);

	if (!hf_str_has_prefix(text, start) || strstr(text, part) == NULL)
		fail_msg("%s: '%s', expected '%s' and '%s'", type, text, start, part);
}

int rd_count(struct rd *d, const char *name, const char *key)
{
	return (int)hf_json_i64(hf_json_path(status_of(d, name), "counts", key, NULL), -1);
}

bool rd_is_cordoned(struct rd *d, int node)
{
	char name[16];

	rw_name(node, name);
	return hf_json_true(
		hf_json_path(rw_get(d->w, &hf_nodes, NULL, name), "spec", "unschedulable", NULL),
		false);
}

int rd_count_running(struct rd *d, int version)
{
	int n = 0;

	for (int i = 0; i < d->w->nodes; i++)
		n += d->runs[i] == version && d->ready[i];
	return n;
}

/* The condition is True, and of a rollout. An act may have begun by now, and its condition is none of a rollout. */
static bool is_at_work(const struct hf_json *condition)
{
	return hf_streq(hf_json_path_str(condition, "type", NULL),
			"holdfast.dev/MaintenanceInProgress") &&
	       hf_streq(hf_json_path_str(condition, "status", NULL), "True") &&
	       hf_str_has_prefix(hf_str_or(hf_json_path_str(condition, "message", NULL), ""),
				 "DeviceRollout ");
}

void rd_expect_clean(struct rd *d)
{
	if (rd_count_canaries(d) > 0)
		fail_msg("%d canaries are left", rd_count_canaries(d));
	for (int i = 0; i < d->w->nodes; i++) {
		char name[16], lease[32];
		const struct hf_json *node, *list;
		const char *annotation, *holder;

		rw_name(i, name);
		node = rw_get(d->w, &hf_nodes, NULL, name);
		annotation = hf_json_path_str(node, "metadata", "annotations",
					      "holdfast.dev/rollout", NULL);
		if (rd_is_cordoned(d, i) || annotation != NULL)
			fail_msg("%s is %scordoned, and has annotation holdfast.dev/rollout '%s'",
				 name, rd_is_cordoned(d, i) ? "" : "not ",
				 hf_str_or(annotation, ""));
		snprintf(lease, sizeof(lease), "holdfast-mend-%s", name);
		holder = hf_json_path_str(rw_get(d->w, &hf_leases, "holdfast-mend", lease), "spec",
					  "holderIdentity", NULL);
		if (hf_str_has_prefix(hf_str_or(holder, ""), "devicerollouts/"))
			fail_msg("%s has a Lease of %s", name, holder);
		list = hf_json_path(node, "status", "conditions", NULL);
		for (size_t k = 0; k < hf_json_len(list); k++)
			if (is_at_work(hf_json_item(list, k)))
				fail_msg("%s has the condition of a rollout", name);
	}
}
