/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy.h"

#include "api/device_health.h"
#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"
#include "fleet/fleet.h"
#include "harness/json_text.h"
#include "rollout/rollout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The world of the tests remedy*.c: nodes with agents as documents in the embedded store, a
 * controller for nodes on a virtual clock, and the counts of what it did (struct rw in remedy.h).
 */

#define TEXT_MAX 4096
#define HEARTBEAT (5 * HF_MINUTE)

const struct rw_ill rw_ills[] = {
	[RW_WELL] = {"Healthy", NULL, NULL},
	[RW_RESET] = {"Unhealthy", "gpu-reset", "reset-device"},
	[RW_REBOOT] = {"Unhealthy", "reboot", "restart-node"},
	[RW_SLOW] = {"Degraded", "degraded", "move-pod"},
	[RW_SUSPECT] = {"Suspect", "degraded", "move-pod"},
	[RW_UNKNOWN] = {"Unknown", "reboot", "restart-node"},
	[RW_PROBATION] = {"Probation", NULL, NULL},
	[RW_FAILED] = {"Failed", "replace", "replace-node"},
	[RW_PLUGIN] = {"Degraded", "software", "restart-driver"},
	[RW_UNSEEN] = {"Unknown", NULL, NULL},
	[RW_PROGRAM] = {"Healthy", "app", "restart-process"},
};

/* --- documents ----------------------------------------------------------------------------- */

static int apply(struct rw *w, const struct hf_request *request)
{
	HF_AUTO_RESULT result = {0};

	hf_memstore_apply(w->memstore, request, &result);
	if (result.code != 0)
		fprintf(stderr, "%s: %s\n", hf_str_or(request->name, "?"), result.err.text);
	return result.code;
}

void rw_create(struct rw *w, const struct hf_resource *resource, const char *ns, const char *text)
{
	HF_AUTO_DOC body = json_doc_of(text);
	const struct hf_request request = {
		.verb = HF_VERB_CREATE, .resource = resource, .ns = ns, .body = body};

	assert_int_equal(apply(w, &request), 0);
}

static void patch_doc(struct rw *w, const struct hf_resource *resource, const char *ns,
		      const char *name, const char *sub, struct hf_doc *body)
{
	const struct hf_request request = {.verb = HF_VERB_PATCH,
					   .resource = resource,
					   .ns = ns,
					   .name = name,
					   .subresource = sub,
					   .patch_type = HF_PATCH_MERGE,
					   .body = body};

	assert_int_equal(apply(w, &request), 0);
}

void rw_patch_in(struct rw *w, const struct hf_resource *resource, const char *ns, const char *name,
		 const char *sub, const char *text)
{
	HF_AUTO_DOC body = json_doc_of(text);

	patch_doc(w, resource, ns, name, sub, body);
}

void rw_patch(struct rw *w, const struct hf_resource *resource, const char *name, const char *text)
{
	rw_patch_in(w, resource, NULL, name, NULL, text);
}

void rw_patch_status(struct rw *w, const struct hf_resource *resource, const char *name,
		     const char *text)
{
	rw_patch_in(w, resource, NULL, name, "status", text);
}

void rw_patch_node(struct rw *w, int node, const char *text)
{
	char name[16];

	rw_name(node, name);
	rw_patch(w, &hf_nodes, name, text);
}

void rw_set_ready(struct rw *w, int node, const char *status)
{
	char name[16], text[128];

	rw_name(node, name);
	snprintf(text, sizeof(text), "{'status':{'conditions':[{'type':'Ready','status':'%s'}]}}",
		 status);
	rw_patch_status(w, &hf_nodes, name, text);
}

void rw_close_breaker(struct rw *w, int epoch)
{
	char text[64];

	if (hf_streq(rw_status(w, "breaker", "state"), "Open")) {
		w->closed_at = hf_loop_wall(w->loop);
		w->met.closed++;
		for (int i = 0; i < w->nodes; i++)
			if (rw_ills[w->ill[i]].cls != NULL && w->ill[i] != RW_SUSPECT &&
			    w->ill[i] != RW_UNKNOWN) {
				w->met.stale++;
				break;
			}
	}
	snprintf(text, sizeof(text), "{'spec':{'breaker':{'epoch':%d}}}", epoch);
	rw_patch(w, &hf_healthpolicies, "p", text);
}

int rw_remove(struct rw *w, const struct hf_resource *resource, const char *ns, const char *name,
	      int64_t grace)
{
	const struct hf_request request = {.verb = HF_VERB_DELETE,
					   .resource = resource,
					   .ns = ns,
					   .name = name,
					   .grace_seconds = grace};
	HF_AUTO_RESULT result = {0};

	hf_memstore_apply(w->memstore, &request, &result);
	return result.code;
}

void rw_delete(struct rw *w, const struct hf_resource *resource, const char *name)
{
	int code = rw_remove(w, resource, NULL, name, HF_GRACE_DEFAULT);

	if (code != 0)
		fail_msg("%s is not deleted: code %d", name, code);
}

const struct hf_json *rw_get(struct rw *w, const struct hf_resource *resource, const char *ns,
			     const char *name)
{
	return hf_doc_json(hf_memstore_peek(w->memstore, resource, ns, name));
}

void rw_name(int node, char ret_name[16])
{
	snprintf(ret_name, 16, "n%03d", node);
}

/* --- the world ----------------------------------------------------------------------------- */

void rw_node(struct rw *w, int node)
{
	char text[TEXT_MAX], name[16];

	rw_name(node, name);
	snprintf(text, sizeof(text),
		 "{'apiVersion':'v1','kind':'Node','metadata':{'name':'%s','labels':{"
		 "'pool':'%s','rack':'r%d'}},'spec':{'taints':[{'key':'nvidia.com/gpu',"
		 "'value':'present','effect':'NoSchedule'}]}}",
		 name, node % 2 ? "odd" : "even", node / 4);
	rw_create(w, &hf_nodes, NULL, text);
	snprintf(text, sizeof(text),
		 "{'status':{'nodeInfo':{'bootID':'b-%s'},'conditions':[{'type':'Ready',"
		 "'status':'True'}]}}",
		 name);
	rw_patch_in(w, &hf_nodes, NULL, name, "status", text);
}

static void create_health(struct rw *w, const char *name)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text),
		 "{'apiVersion':'holdfast.dev/v1alpha1','kind':'DeviceHealth','metadata':{"
		 "'name':'%s'}}",
		 name);
	rw_create(w, &hf_devicehealths, NULL, text);
}

void rw_fleet(struct rw *w, int nodes)
{
	char name[16];

	w->nodes = nodes;
	for (int i = 0; i < nodes; i++) {
		rw_node(w, i);
		rw_name(i, name);
		create_health(w, name);
		rw_say(w, i, RW_WELL);
	}
}

void rw_pod(struct rw *w, const char *name, int node, const char *owner_kind)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text),
		 "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':'default',"
		 "'labels':{'app':'%s'},'ownerReferences':[{'apiVersion':'apps/v1','kind':'%s',"
		 "'name':'o','uid':'o-uid','controller':true}]},'spec':{'nodeName':'n%03d',"
		 "'containers':[{'name':'c','image':'i'}]}}",
		 name, name, owner_kind, node);
	rw_create(w, &hf_pods, "default", text);
	rw_patch_in(w, &hf_pods, "default", name, "status", "{'status':{'phase':'Running'}}");
	w->holder[node] = name;
}

void rw_policy_named(struct rw *w, const char *name, const char *spec)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text),
		 "{'apiVersion':'holdfast.dev/v1alpha1','kind':'HealthPolicy','metadata':{"
		 "'name':'%s'},'spec':%s}",
		 name, spec);
	rw_create(w, &hf_healthpolicies, NULL, text);
}

void rw_policy(struct rw *w, const char *spec)
{
	rw_policy_named(w, "p", spec);
}

void rw_boot_id(const struct rw *w, int node, char ret_boot[40])
{
	char name[16];

	rw_name(node, name);
	snprintf(ret_boot, 40, w->boots[node] == 0 ? "b-%s" : "b-%s-%d", name, w->boots[node]);
}

#define GPUS_MAX 8

static void fill_gpu(struct rw *w, int node, int gpu, char id[16], char uuid[24],
		     struct hf_device_report *device)
{
	const struct rw_ill *ill = &rw_ills[w->ill[node]];
	unsigned sick_gpus = w->sick[node] == 0 ? 1 : w->sick[node];
	bool sick = w->ill[node] != RW_PLUGIN && (sick_gpus & (1u << gpu)) != 0;
	char name[16];

	rw_name(node, name);
	snprintf(id, 16, "0000:%x:00.0", 0x1a + gpu);
	snprintf(uuid, 24, gpu == 0 ? "GPU-%s" : "GPU-%s-%d", name, gpu);
	*device = (struct hf_device_report){
		.id = id,
		.uuid = w->old_agent[node] || (sick && w->unnamed[node]) ? NULL : uuid,
		.kind = "gpu",
		.state = sick ? ill->state : "Healthy",
		.since = HF_TIME_NONE,
		.hold_until = HF_TIME_NONE};
	device->faults.len = sick && ill->cls != NULL;
	if (device->faults.len > 0)
		device->since = w->ill_since[node] + w->clock[node];
}

/* Writes DeviceHealth with the agent's own code, so it leaves out and removes the same members as a
 * real agent. */
static void say(struct rw *w, int node)
{
	const struct rw_ill *ill = &rw_ills[w->ill[node]];
	char name[16], boot[40], uuids[GPUS_MAX][24], ids[GPUS_MAX][16];
	struct hf_device_holder holder = {.ns = "default", .container = "c", .until = HF_TIME_NONE};
	bool of_node = w->ill[node] == RW_PLUGIN;
	int gpus = w->gpus == 0 ? 1 : w->gpus;
	struct hf_device_fault fault = {.detector = of_node ? "plugin" : "xid",
					.code = of_node ? 1 : 119,
					.subcode = -1,
					.cls = ill->cls,
					.action = ill->action,
					.first = w->ill_since[node],
					.last = w->ill_since[node],
					.count = 1,
					.acts = true};
	struct hf_device_report devices[1 + GPUS_MAX] = {{.id = "",
							  .kind = "node",
							  .state = of_node ? ill->state : "Healthy",
							  .since = HF_TIME_NONE,
							  .hold_until = HF_TIME_NONE,
							  .faults = {&fault, of_node}}};
	struct hf_device_health health = {
		.state = ill->state,
		.cls = ill->cls,
		.action = ill->action,
		.driver_at = HF_TIME_NONE,
		.evidence_at = HF_TIME_NONE,
		.devices = {devices, w->bare[node] ? 1 : 1 + (size_t)gpus}};
	struct hf_json *root = hf_json_object();
	HF_AUTO_DOC body = NULL;

	rw_name(node, name);
	for (int i = 0; i < gpus; i++) {
		fill_gpu(w, node, i, ids[i], uuids[i], &devices[1 + i]);
		devices[1 + i].faults.items = &fault;
	}
	devices[1].holders.items = &holder;
	rw_boot_id(w, node, boot);
	health.boot_id = w->old_agent[node] ? NULL : boot;
	health.observed_at = health.driver_at = hf_loop_wall(w->loop) + w->clock[node];
	if (ill->cls != NULL) {
		if (of_node)
			devices[0].since = w->ill_since[node] + w->clock[node];
		health.evidence_at = w->ill_since[node] + w->clock[node];
		if (w->measured_at[node] != 0) {
			fault.last = w->measured_at[node];
			health.evidence_at = w->measured_at[node] + w->clock[node];
		}
	}
	holder.pod = w->holder[node];
	if (holder.pod != NULL)
		holder.uid = hf_json_path_str(rw_get(w, &hf_pods, "default", holder.pod),
					      "metadata", "uid", NULL);
	devices[1].holders.len = holder.uid != NULL;
	if (w->ranks != NULL)
		w->ranks(w->ranks_arg, node, &health);
	hf_json_set(root, "status", hf_device_health_status(&health));
	body = hf_doc_from_json(root);
	if (rw_get(w, &hf_devicehealths, NULL, name) == NULL)
		create_health(w, name);
	patch_doc(w, &hf_devicehealths, NULL, name, "status", body);
}

void rw_say(struct rw *w, int node, int ill)
{
	w->ill[node] = ill;
	w->ill_since[node] = hf_loop_wall(w->loop);
	w->measured_at[node] = 0;
	rw_report(w, node);
}

void rw_report(struct rw *w, int node)
{
	if (!w->silent[node] && !w->mute[node])
		say(w, node);
}

void rw_measure(struct rw *w, int node)
{
	w->measured_at[node] = hf_loop_wall(w->loop);
	say(w, node);
}

void rw_say_again(struct rw *w)
{
	for (int i = 0; i < w->nodes; i++)
		if (!w->silent[i] && !w->mute[i] && !w->by_test[i])
			say(w, i);
}

/* --- what must hold ------------------------------------------------------------------------ */

void rw_break(struct rw *w, const char *what, const char *name)
{
	if (*w->broken == '\0')
		snprintf(w->broken, sizeof(w->broken), "%s: %s", name, what);
}

int rw_index_of(const struct rw *w, const char *name)
{
	int64_t index = 0;

	if (name == NULL || hf_str_to_i64(name + 1, 0, w->nodes - 1, &index, NULL) != 0)
		fail_msg("no node: %s", hf_str_or(name, "NULL"));
	return (int)index;
}

static bool has_taint(const struct hf_json *node, const char *key)
{
	const struct hf_json *taints = hf_json_path(node, "spec", "taints", NULL);

	for (size_t i = 0; i < hf_json_len(taints); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(taints, i), "key", NULL), key) &&
		    hf_streq(hf_json_path_str(hf_json_item(taints, i), "effect", NULL),
			     "NoSchedule"))
			return true;
	return false;
}

static bool is_out(const struct hf_json *node)
{
	return has_taint(node, "holdfast.dev/device") ||
	       hf_json_true(hf_json_path(node, "spec", "unschedulable", NULL), false);
}

static void count_out(void *arg, struct hf_doc *doc)
{
	*(int *)arg += is_out(hf_doc_json(doc));
}

static bool lacks_fault(const struct rw *w, int node)
{
	return w->ill[node] == RW_UNKNOWN || w->ill[node] == RW_UNSEEN || w->ill[node] == RW_WELL ||
	       w->ill[node] == RW_SUSPECT || w->ill[node] == RW_PLUGIN ||
	       w->ill[node] == RW_PROGRAM || w->silent[node];
}

static void check_put(struct rw *w, const struct hf_json *node)
{
	const char *name = hf_json_path_str(node, "metadata", "name", NULL);
	hf_time now = hf_loop_wall(w->loop);
	int out = 0, lately = 1, index;

	hf_memstore_each(w->memstore, &hf_nodes, NULL, count_out, &out);
	if (w->limit >= 0 && out > w->limit)
		rw_break(w, "more nodes are out than the budget allows", name);
	for (int i = 0; i < w->taints_put; i++)
		lately += now - w->put_at[i] < HF_HOUR;
	if (w->rate >= 0 && lately > w->rate)
		rw_break(w, "more quarantines within an hour than the budget allows", name);
	if (w->taints_put < (int)HF_ARRAY_LEN(w->put_at))
		w->put_at[w->taints_put++] = now;
	index = rw_index_of(w, name);
	if (!w->people_ask && !w->by_test[index] && lacks_fault(w, index))
		rw_break(w, "the node is quarantined without a confirmed fault", name);
	if (w->ill_since[index] < w->closed_at)
		rw_break(w,
			 "the node is quarantined for a fault from before the breaker was closed",
			 name);
	if (hf_json_path_str(node, "metadata", "annotations", "holdfast.dev/quarantine", NULL) ==
	    NULL)
		rw_break(w, "the node has the taint without the annotation", name);
	w->met.quarantines++;
}

static bool is_open(const struct hf_json *policy)
{
	return hf_streq(hf_json_path_str(policy, "status", "breaker", "state", NULL), "Open");
}

static void check_taken_off(struct rw *w, const struct hf_json *node)
{
	const char *name = hf_json_path_str(node, "metadata", "name", NULL);
	int ill = w->ill[rw_index_of(w, name)];

	w->met.releases++;
	if (!w->by_hand && ill != RW_WELL && ill != RW_PLUGIN &&
	    hf_json_path(node, "metadata", "annotations", "holdfast.dev/quarantine", NULL) == NULL)
		rw_break(w, "the node is released but is not well", name);
}

static void on_change(void *arg, const struct hf_memstore_change *change)
{
	struct rw *w = arg;
	const struct hf_json *before = hf_doc_json(change->before);
	const struct hf_json *after = hf_doc_json(change->after);
	bool was = has_taint(before, "holdfast.dev/device");
	bool is = has_taint(after, "holdfast.dev/device");

	if (change->resource == &hf_healthpolicies)
		w->met.opened += is_open(after) && !is_open(before);
	if (change->resource != &hf_nodes || change->before == NULL || change->after == NULL)
		return;
	if (!has_taint(after, "nvidia.com/gpu"))
		rw_break(w, "a foreign taint is gone",
			 hf_json_path_str(after, "metadata", "name", NULL));
	if (!was && is)
		check_put(w, after);
	if (was && !is)
		check_taken_off(w, after);
}

/* A store in memory is never reset. */
static void on_reset(void *arg)
{
	rw_break(arg, "the store was reset", "store");
}

/* --- the operator -------------------------------------------------------------------------- */

static void die(void *arg)
{
	struct rw *w = arg;

	w->met.deaths++;
	rw_stop(w);
}

static bool is_of_interest(const struct hf_request *request)
{
	return request->verb != HF_VERB_GET && request->verb != HF_VERB_LIST &&
	       request->resource != &hf_events;
}

static void on_request(void *arg, const struct hf_request *request, struct hf_fault *ret_fault)
{
	struct rw *w = arg;

	if (w->fault != NULL && w->fault(w, request, ret_fault)) {
		w->writes += is_of_interest(request);
		return;
	}
	if (w->refuse_evictions && hf_streq(request->subresource, "eviction")) {
		ret_fault->refuse = HF_E_TOO_MANY;
		ret_fault->message = "Cannot evict pod as it would violate the pod's disruption "
				     "budget.";
		return;
	}
	if (w->refuse_permille > 0 && hf_rng_below(&w->rng, 1000) < w->refuse_permille) {
		bool refused = hf_rng_below(&w->rng, 2) != 0;

		if (refused)
			ret_fault->refuse = HF_E_UNAVAILABLE;
		else
			ret_fault->lose_reply = true;
		*(refused ? &w->met.refusals : &w->met.lost) += 1;
	}
	if (!is_of_interest(request))
		return;
	w->writes++;
	if (w->how == RW_ALIVE || w->writes != w->die_at)
		return;
	if (w->how == RW_BEFORE)
		ret_fault->delay_before = HF_HOUR;
	else
		ret_fault->delay_after = HF_HOUR;
	w->how = RW_ALIVE;
	/* After this time the store has done the request, unless it was never sent. */
	hf_timer_arm(w->death, HF_MS);
}

void rw_start(struct rw *w)
{
	const struct hf_memstore_faults faults = {
		.request = on_request, .event = w->event_fault, .arg = w};
	static const struct hf_framework *const frameworks[] = {&hf_framework_pytorch, NULL};
	struct hf_operator_options options = {.loop = w->loop,
					      .frameworks = w->frameworks != NULL ? w->frameworks
										  : frameworks,
					      .seed = 1,
					      .metrics = w->metrics,
					      .watch_nodes = true,
					      .companions = {hf_fleet_create, hf_rollout_create},
					      .image = "holdfast:test",
					      .pod_ns = "holdfast-system",
					      .webhooks = w->webhooks};
	struct hf_error err = {0};

	w->client = hf_memstore_client_create(w->memstore, &faults);
	if (w->wrap != NULL)
		w->client = w->wrap(w->wrap_arg, w->client);
	options.store = w->client;
	assert_ok(hf_operator_create(&options, &w->op, &err), &err);
	hf_operator_start(w->op);
}

void rw_stop(struct rw *w)
{
	if (w->op == NULL)
		return;
	w->op = hf_operator_destroy(w->op);
	w->client = hf_store_destroy(w->client);
}

static void end_second(struct rw *w)
{
	if (w->second == NULL)
		return;
	w->second = hf_operator_destroy(w->second);
	w->second_client = hf_store_destroy(w->second_client);
}

void rw_change_leaders(struct rw *w)
{
	if (w->second != NULL) {
		end_second(w);
		return;
	}
	if (w->op == NULL || w->how != RW_ALIVE)
		return;
	w->second = w->op;
	w->second_client = w->client;
	w->op = NULL;
	w->client = NULL;
	rw_start(w);
}

void rw_kill_soon(struct rw *w)
{
	w->how = rw_pick(w, 2) == 0 ? RW_BEFORE : RW_AFTER;
	w->die_at = w->writes + 1 + rw_pick(w, 6);
}

void rw_calm(struct rw *w)
{
	end_second(w);
	w->how = RW_ALIVE;
	w->refuse_permille = 0;
	if (w->op == NULL)
		rw_start(w);
}

unsigned rw_pick(struct rw *w, unsigned below)
{
	return (unsigned)hf_rng_below(&w->rng, below);
}

const char *rw_pod_name(int node)
{
	static const char *const names[] = {"p0", "p1", "p2", "p3", "p4",  "p5",
					    "p6", "p7", "p8", "p9", "p10", "p11"};

	hf_assert(node < (int)HF_ARRAY_LEN(names));
	return names[node];
}

void rw_run(struct rw *w, hf_time span)
{
	hf_time until = hf_loop_mono(w->loop) + span;

	while (hf_loop_mono(w->loop) < until) {
		hf_time next = hf_loop_mono(w->loop) / HEARTBEAT * HEARTBEAT + HEARTBEAT;

		hf_loop_run_until(w->loop, next < until ? next : until);
		if (next <= until)
			rw_say_again(w);
	}
	assert_string_equal(w->broken, "");
}

/* --- looking ------------------------------------------------------------------------------- */

void rw_begin(struct rw *w, int nodes, const char *policy)
{
	rw_fleet(w, nodes);
	rw_policy(w, policy);
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
}

bool rw_tainted(struct rw *w, int node)
{
	char name[16];

	rw_name(node, name);
	return has_taint(rw_get(w, &hf_nodes, NULL, name), "holdfast.dev/device");
}

int rw_count_tainted(struct rw *w)
{
	int n = 0;

	for (int i = 0; i < w->nodes; i++)
		n += rw_tainted(w, i);
	return n;
}

const char *rw_status(struct rw *w, const char *a, const char *b)
{
	const struct hf_json *value =
		hf_json_path(rw_get(w, &hf_healthpolicies, NULL, "p"), "status", a, b, NULL);
	static char number[32];

	if (hf_json_type(value) != HF_JSON_INT)
		return hf_json_str(value, "");
	snprintf(number, sizeof(number), "%lld", (long long)hf_json_i64(value, 0));
	return number;
}

void rw_next(struct rw *w, int node, char text[256])
{
	const struct hf_json *list =
		hf_json_path(rw_get(w, &hf_healthpolicies, NULL, "p"), "status", "nodes", NULL);
	char name[16];

	rw_name(node, name);
	*text = '\0';
	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *item = hf_json_item(list, i);

		if (hf_streq(hf_json_path_str(item, "name", NULL), name))
			snprintf(text, 256, "%s %s %s", hf_json_path_str(item, "answer", NULL),
				 hf_str_or(hf_json_path_str(item, "next", NULL), "-"),
				 hf_str_or(hf_json_path_str(item, "why", NULL), "-"));
	}
}

const char *rw_rung(struct rw *w, const char *act)
{
	return hf_str_or(
		hf_json_path_str(rw_get(w, &hf_remediations, NULL, act), "spec", "rung", NULL), "");
}

const char *rw_message(struct rw *w, const char *act)
{
	return hf_str_or(
		hf_json_path_str(rw_get(w, &hf_remediations, NULL, act), "status", "message", NULL),
		"");
}

void rw_expect_message(struct rw *w, const char *act, const char *part)
{
	if (strstr(rw_message(w, act), part) == NULL)
		fail_msg("%s: '%s', expected '%s'", act, rw_message(w, act), part);
}

void rw_end_work(struct rw *w, const char *name, int node)
{
	(void)rw_remove(w, &hf_pods, "default", name, 0);
	w->holder[node] = NULL;
	rw_report(w, node);
}

bool rw_is_evicted(struct rw *w, const char *ns, const char *pod)
{
	const struct hf_json *json = rw_get(w, &hf_pods, ns, pod);

	return json == NULL || hf_json_path(json, "metadata", "deletionTimestamp", NULL) != NULL;
}

struct wanted_event {
	const char *reason, *name;
	bool found;
};

static void look_at_event(void *arg, struct hf_doc *doc)
{
	struct wanted_event *wanted = arg;
	const struct hf_json *event = hf_doc_json(doc);

	wanted->found |=
		hf_streq(hf_json_path_str(event, "reason", NULL), wanted->reason) &&
		hf_streq(hf_json_path_str(event, "involvedObject", "name", NULL), wanted->name);
}

bool rw_event(struct rw *w, const char *reason, const char *name)
{
	struct wanted_event wanted = {reason, name, false};

	hf_memstore_each(w->memstore, &hf_events, NULL, look_at_event, &wanted);
	return wanted.found;
}

/* UIDs of the store: the same in each run of a seed. */
static void fill_random(void *arg, void *bytes, size_t len)
{
	struct rw *w = arg;

	for (size_t i = 0; i < len; i++)
		((unsigned char *)bytes)[i] = (unsigned char)hf_rng_below(&w->uids, 256);
}

void rw_choose_tests(int argc, char **argv)
{
	if (argc > 2 && hf_streq(argv[1], "-x"))
		cmocka_set_skip_filter(argv[2]);
	else if (argc > 1)
		cmocka_set_test_filter(argv[1]);
}

int rw_setup(void **state)
{
	struct rw *w = hf_xcalloc(1, sizeof(*w));
	const struct hf_memstore_options options = {
		.random = fill_random, .random_arg = w, .event_ttl = HF_DAY};
	struct hf_error err = {0};

	hf_rng_init(&w->uids, 1);
	w->loop = hf_loop_create_virtual(RW_START);
	assert_ok(hf_memstore_create(w->loop, &options, &w->memstore, &err), &err);
	w->metrics = hf_metrics_create();
	w->death = hf_timer_create(w->loop, die, w);
	w->observer =
		(struct hf_memstore_observer){.changed = on_change, .reset = on_reset, .arg = w};
	hf_memstore_observe(w->memstore, &w->observer);
	w->limit = w->rate = -1;
	hf_rng_init(&w->rng, 1);
	*state = w;
	return 0;
}

void rw_at_end(struct rw *w, void (*fn)(void *arg), void *arg)
{
	hf_assert(w->ends_len < RW_ENDS_MAX);
	w->ends[w->ends_len++] = (struct rw_end){fn, arg};
}

int rw_teardown(void **state)
{
	struct rw *w = *state;

	end_second(w);
	rw_stop(w);
	while (w->ends_len > 0) {
		const struct rw_end *end = &w->ends[--w->ends_len];

		end->fn(end->arg);
	}
	hf_memstore_unobserve(w->memstore, &w->observer);
	hf_timer_destroy(w->death);
	hf_memstore_destroy(w->memstore);
	hf_metrics_destroy(w->metrics);
	hf_loop_destroy(w->loop);
	free(w);
	return 0;
}

void rw_expect_next(struct rw *w, int node, const char *start)
{
	char text[256];

	rw_next(w, node, text);
	if (!hf_str_has_prefix(text, start))
		fail_msg("n%03d: '%s', expected '%s'", node, text, start);
}
