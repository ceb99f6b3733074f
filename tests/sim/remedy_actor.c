/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy_actor.h"

#include "api/health_policy.h"
#include "api/lifetime.h"
#include "api/remediation.h"
#include "base/mem.h"
#include "base/str.h"
#include "harness/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Input: the actor's pods in the store. Output: intents and results in Remediations, and the state
 * of the nodes after the acts. */

#define EVERY (500 * HF_MS)
#define RESET_TAKES (5 * HF_SECOND)
#define REBOOT_TAKES (2 * HF_MINUTE)

static int apply(struct ra *a, const struct hf_request *request)
{
	HF_AUTO_RESULT result = {0};

	hf_memstore_apply(a->w->memstore, request, &result);
	return result.code;
}

static int patch(struct ra *a, const struct hf_resource *resource, const char *ns, const char *name,
		 struct hf_doc *body)
{
	const struct hf_request request = {.verb = HF_VERB_PATCH,
					   .resource = resource,
					   .ns = ns,
					   .name = name,
					   .subresource = "status",
					   .patch_type = HF_PATCH_MERGE,
					   .body = body};

	return apply(a, &request);
}

static void patch_text(struct ra *a, const struct hf_resource *resource, const char *ns,
		       const char *name, const char *text)
{
	HF_AUTO_DOC body = json_doc_of(text);

	assert_int_equal(patch(a, resource, ns, name, body), 0);
}

/* ---- the actor ------------------------------------------------------------------------------- */

/* Writes status.act as the actor of src/mend does. Returns the result code of the store. */
static int write_act(struct ra *a, const struct hf_remediation *r, const char *phase,
		     const struct hf_remediation_act *act)
{
	const struct hf_remediation_act_write write = {
		.resource_version = r->resource_version, .phase = phase, .act = act};
	HF_AUTO_DOC body = hf_doc_from_json(hf_remediation_act_patch(&write));

	return patch(a, &hf_remediations, NULL, r->name, body);
}

static void end_pod(struct ra *a, const char *pod, int code)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "{'status':{'phase':'%s','containerStatuses':[{'name':'mend','image':'i',"
		 "'imageID':'','ready':false,'restartCount':0,'state':{'terminated':{"
		 "'exitCode':%d}}}]}}",
		 code == 0 ? "Succeeded" : "Failed", code);
	patch_text(a, &hf_pods, HF_MEND_NAMESPACE, pod, text);
}

static bool read_it(struct ra *a, const char *name, struct hf_arena *arena,
		    struct hf_remediation *r)
{
	struct hf_doc *doc = hf_memstore_peek(a->w->memstore, &hf_remediations, NULL, name);

	return doc != NULL && hf_remediation_read(doc, arena, r, NULL) == 0;
}

/* The node's mark says that single devices are out of use, by DeviceTaintRules. */
static bool is_device_out(const struct hf_json *node)
{
	const char *mark =
		hf_json_path_str(node, "metadata", "annotations", "holdfast.dev/quarantine", NULL);

	return mark != NULL && strstr(mark, "\"scope\":\"Device\"") != NULL;
}

/* The pod was asked to leave, and its kubelet has killed it in vain. */
static bool is_stuck(struct rw *w, const char *pod)
{
	const char *until = hf_json_path_str(rw_get(w, &hf_pods, "default", pod), "metadata",
					     "deletionTimestamp", NULL);
	hf_time at;

	return until != NULL && hf_time_parse(until, &at, NULL) == 0 &&
	       hf_loop_wall(w->loop) > at + HF_MINUTE;
}

/* Pods of DaemonSets do not leave. */
static bool has_work(struct ra *a, int node)
{
	const char *pod = a->w->holder[node];

	return pod != NULL && !hf_is_pod_of_node(rw_get(a->w, &hf_pods, "default", pod));
}

static void check_intent(struct ra *a, const struct hf_remediation *r, int node)
{
	const struct hf_json *object = rw_get(a->w, &hf_nodes, NULL, r->spec.node);

	a->acts++;
	a->resets += hf_streq(r->spec.rung, "reset-device");
	if (a->ends_at[node] != 0)
		rw_break(a->w, "two acts at once on a node", r->name);
	if (r->spec.fault.cls != NULL && a->w->ill[node] == RW_WELL && !a->w->mute[node])
		rw_break(a->w, "an act on a node that is well", r->name);
	if (!rw_tainted(a->w, node) &&
	    !(hf_streq(r->spec.rung, "reset-device") && is_device_out(object)))
		rw_break(a->w, "an act on a node that is not quarantined", r->name);
	if (has_work(a, node) &&
	    !(hf_streq(r->spec.rung, "reboot") && is_stuck(a->w, a->w->holder[node])))
		rw_break(a->w, "an act on a node with a pod on its device", r->name);
	if (hf_json_path(object, "metadata", "annotations", "holdfast.dev/hold", NULL) != NULL)
		rw_break(a->w, "an act on a node with annotation holdfast.dev/hold", r->name);
}

static void begin_act(struct ra *a, const char *pod, const struct hf_remediation *r, int node)
{
	bool reboots = hf_streq(r->spec.rung, "reboot");
	enum ra_end end = reboots ? a->reboot[node] : a->reset[node];
	struct hf_remediation_holder holder = {.pid = 42, .comm = "dcgm"};
	char boot[40];
	struct hf_remediation_act act = {.nonce = r->spec.nonce,
					 .actor = "a",
					 .started_at = HF_TIME_NONE,
					 .ended_at = HF_TIME_NONE,
					 .boot_id = r->status.approval.boot_id};

	/* As src/mend, it begins no act in another boot than the approved one. */
	rw_boot_id(a->w, node, boot);
	if (end == RA_REFUSES || !hf_streq(r->status.approval.boot_id, boot)) {
		end_pod(a, pod, 2);
		return;
	}
	/* It finds the process in procfs, also if the agent has not reported the pod yet. */
	if (!reboots && a->w->holder[node] != NULL)
		end = RA_BUSY;
	if (end == RA_BUSY) {
		act.holders.items = &holder;
		act.holders.len = 1;
		(void)write_act(a, r, NULL, &act);
		end_pod(a, pod, 3);
		return;
	}
	act.started_at = hf_loop_wall(a->w->loop) + a->w->clock[node];
	if (write_act(a, r, "Acting", &act) != 0)
		return;
	check_intent(a, r, node);
	if (end == RA_DIES) {
		end_pod(a, pod, 137);
		return;
	}
	a->ends_at[node] = hf_loop_mono(a->w->loop) + (reboots ? REBOOT_TAKES : RESET_TAKES);
	a->reboots[node] = reboots;
	a->end[node] = end;
	snprintf(a->act[node], sizeof(a->act[node]), "%s", r->name);
	if (reboots) {
		a->w->silent[node] = true;
		rw_set_ready(a->w, node, "Unknown");
	}
}

static bool acts_already(const struct ra *a, int node, const char *pod)
{
	return a->ends_at[node] != 0 && hf_streq(a->act[node], pod + strlen(HF_MEND_POD_PREFIX));
}

/* Runs one pod, as the kubelet of its node would. */
static void run_pod(struct ra *a, const char *pod)
{
	const struct hf_json *json = rw_get(a->w, &hf_pods, HF_MEND_NAMESPACE, pod);
	int node = rw_index_of(a->w, hf_json_path_str(json, "spec", "nodeName", NULL));
	const char *phase = hf_json_path_str(json, "status", "phase", NULL);
	HF_AUTO_ARENA arena = hf_arena_create((size_t)1 << 20);
	struct hf_remediation r;
	char name[16];

	if (hf_json_path(json, "metadata", "deletionTimestamp", NULL) != NULL) {
		const struct hf_request request = {.verb = HF_VERB_DELETE,
						   .resource = &hf_pods,
						   .ns = HF_MEND_NAMESPACE,
						   .name = pod,
						   .grace_seconds = 0};

		/* A reset whose tool hangs ends with its pod. */
		if (!a->reboots[node])
			a->ends_at[node] = 0;
		/* The kubelet of a node that does not come back confirms no deletion. Kubernetes collects
		 * the pods of a node that does not exist. */
		rw_name(node, name);
		if (!a->w->silent[node] || rw_get(a->w, &hf_nodes, NULL, name) == NULL)
			assert_int_equal(apply(a, &request), 0);
		return;
	}
	if (ra_is_final(phase) || a->w->silent[node] || acts_already(a, node, pod))
		return;
	if (!read_it(a, pod + strlen(HF_MEND_POD_PREFIX), arena, &r) ||
	    !hf_streq(r.status.phase, "Approved") || r.spec.cancel ||
	    r.status.act.started_at != HF_TIME_NONE)
		return;
	if ((hf_streq(r.spec.rung, "reboot") ? a->reboot : a->reset)[node] != RA_NO_START)
		begin_act(a, pod, &r, node);
}

/* ---- the machine ----------------------------------------------------------------------------- */

static void come_back(struct ra *a, int node)
{
	char name[16], boot[40], text[256];

	a->w->boots[node]++;
	a->w->silent[node] = false;
	rw_boot_id(a->w, node, boot);
	rw_name(node, name);
	/* If a person has deleted the Node meanwhile, the kubelet registers it. */
	if (rw_get(a->w, &hf_nodes, NULL, name) == NULL)
		rw_node(a->w, node);
	snprintf(text, sizeof(text),
		 "{'status':{'nodeInfo':{'bootID':'%s'},'conditions':[{'type':'Ready',"
		 "'status':'True'}]}}",
		 boot);
	patch_text(a, &hf_nodes, NULL, name, text);
}

/* The actor writes the result of its act. */
static void write_result(struct ra *a, int node, bool failed)
{
	HF_AUTO_ARENA arena = hf_arena_create((size_t)1 << 20);
	struct hf_remediation_act act;
	struct hf_remediation r;

	a->w->silent[node] = false;
	if (!read_it(a, a->act[node], arena, &r) || !hf_streq(r.status.phase, "Acting"))
		return;
	act = r.status.act;
	act.ended_at = hf_loop_wall(a->w->loop) + a->w->clock[node];
	act.has_exit_code = true;
	act.exit_code = failed ? 15 : 0;
	(void)write_act(a, &r, NULL, &act);
}

/* The reset of the named GPUs ends their faults; the faults of others stay as they are. */
static void mend_gpus(struct ra *a, int node, const char *names)
{
	unsigned sick = a->w->sick[node] == 0 ? 1 : a->w->sick[node];
	char uuid[32], name[16];

	rw_name(node, name);
	for (int i = 0; i < a->w->gpus; i++) {
		snprintf(uuid, sizeof(uuid), i == 0 ? "GPU-%s" : "GPU-%s-%d", name, i);
		for (const char *at = names; (at = strstr(at, uuid)) != NULL; at++)
			if (strchr(" ,", at[strlen(uuid)]) != NULL)
				sick &= ~(1u << i);
	}
	if (sick == 0 || a->w->gpus < 2) {
		rw_say(a->w, node, RW_WELL);
		a->w->sick[node] = 0;
		return;
	}
	if (a->w->sick[node] == sick)
		return;
	a->w->sick[node] = sick;
	rw_report(a->w, node);
}

/* The names of the devices of the act, each with a comma. */
static void print_devices(struct ra *a, int node, char text[512])
{
	const struct hf_json *list = hf_json_path(
		rw_get(a->w, &hf_remediations, NULL, a->act[node]), "spec", "devices", NULL);

	*text = '\0';
	for (size_t i = 0; i < hf_json_len(list); i++)
		snprintf(text + strlen(text), 512 - strlen(text), "%s,",
			 hf_str_or(hf_json_path_str(hf_json_item(list, i), "uuid", NULL), ""));
}

static void change_machine(struct ra *a, int node, enum ra_end end)
{
	char names[512];

	print_devices(a, node, names);
	if (end == RA_MENDS && !a->reboots[node] && a->w->gpus > 1)
		mend_gpus(a, node, names);
	else if (end == RA_MENDS)
		rw_say(a->w, node, RW_WELL);
	else if (a->reboots[node] && a->w->gpus > 0)
		/* The agent finds the fault again in the new boot. */
		rw_say(a->w, node, a->w->ill[node]);
	else if (end == RA_LIES)
		a->relapses_at[node] = hf_loop_mono(a->w->loop) + 2 * HF_SECOND;
	else if (end == RA_KEEPS)
		a->keeps[node] = true;
}

static void end_act(struct ra *a, int node)
{
	enum ra_end end = a->end[node];
	char pod[260];

	if (end == RA_NEVER)
		return;
	a->ends_at[node] = 0;
	if (a->reboots[node])
		come_back(a, node);
	else
		write_result(a, node, end == RA_FAILS);
	snprintf(pod, sizeof(pod), HF_MEND_POD_PREFIX "%s", a->act[node]);
	if (rw_get(a->w, &hf_pods, HF_MEND_NAMESPACE, pod) != NULL)
		end_pod(a, pod, end == RA_FAILS ? 1 : 0);
	change_machine(a, node, end);
}

/* ---- each half second ------------------------------------------------------------------------ */

struct names {
	char all[64][260];
	size_t len;
};

static void add_pod(void *arg, struct hf_doc *doc)
{
	struct names *names = arg;

	if (hf_streq(hf_doc_namespace(doc), HF_MEND_NAMESPACE) &&
	    names->len < HF_ARRAY_LEN(names->all))
		snprintf(names->all[names->len++], sizeof(names->all[0]), "%s", hf_doc_name(doc));
}

/* The agent reads the acknowledgement: it ends faults that are older than its time, of the node's clock. */
static void read_cleared(struct ra *a, int node)
{
	const char *text, *at;
	char name[16];
	hf_time time;

	rw_name(node, name);
	text = hf_json_path_str(rw_get(a->w, &hf_devicehealths, NULL, name), "metadata",
				"annotations", "holdfast.dev/cleared", NULL);
	at = text == NULL ? NULL : strrchr(text, ' ');
	if (at == NULL || hf_time_parse(at + 1, &time, NULL) != 0 ||
	    (!a->keeps[node] && a->w->ill_since[node] + a->w->clock[node] > time))
		return;
	a->keeps[node] = false;
	if (a->w->gpus > 1)
		mend_gpus(a, node, text);
	else
		rw_say(a->w, node, RW_WELL);
}

static void run_node(struct ra *a, int node)
{
	hf_time now = hf_loop_mono(a->w->loop);

	if (a->ends_at[node] != 0 && now >= a->ends_at[node])
		end_act(a, node);
	if (a->keeps[node] || a->w->ill[node] == RW_RESET)
		read_cleared(a, node);
	if (a->relapses_at[node] == 0 || now < a->relapses_at[node])
		return;
	a->relapses_at[node] = 0;
	rw_say(a->w, node, a->w->ill[node]);
}

static void tick(void *arg)
{
	struct ra *a = arg;
	struct names names = {.len = 0};

	hf_memstore_each(a->w->memstore, &hf_pods, NULL, add_pod, &names);
	for (size_t i = 0; i < names.len; i++)
		run_pod(a, names.all[i]);
	for (int i = 0; i < a->w->nodes; i++)
		run_node(a, i);
	hf_timer_arm(a->timer, EVERY);
}

/* ---- what must hold -------------------------------------------------------------------------- */

struct open_acts {
	const char *node;
	int on_node, all, of_policy;
};

static bool is_at_work(const char *phase)
{
	return hf_streq(phase, "Approved") || hf_streq(phase, "Acting") ||
	       hf_streq(phase, "Verifying") || hf_streq(phase, "Restoring");
}

/* An act that is over may stay in phase Restoring, for instance while its node is lost. After five minutes it takes no
 * place of others. */
static bool takes_place(const struct hf_json *json)
{
	const struct hf_json *act = hf_json_path(json, "status", "act", NULL);

	return !hf_streq(hf_json_path_str(json, "status", "phase", NULL), "Restoring") ||
	       (hf_json_get(act, "startedAt") != NULL && hf_json_get(act, "endedAt") == NULL);
}

static void count_open(void *arg, struct hf_doc *doc)
{
	struct open_acts *open = arg;
	const struct hf_json *json = hf_doc_json(doc);
	bool at_work = is_at_work(hf_json_path_str(json, "status", "phase", NULL));
	bool counts = at_work && takes_place(json);

	open->all += counts;
	open->of_policy += counts && hf_json_path_str(json, "spec", "policy", NULL) != NULL;
	open->on_node +=
		at_work && hf_streq(hf_json_path_str(json, "spec", "node", NULL), open->node);
}

/* The actor's pod serves an act under a policy. */
static bool is_of_policy(struct ra *a, const struct hf_json *pod)
{
	const char *name = hf_json_path_str(pod, "metadata", "name", NULL);

	return hf_json_path_str(
		       rw_get(a->w, &hf_remediations, NULL, name + strlen(HF_MEND_POD_PREFIX)),
		       "spec", "policy", NULL) != NULL;
}

static void check_pod(struct ra *a, const struct hf_json *pod)
{
	struct open_acts open = {.node = NULL};

	hf_memstore_each(a->w->memstore, &hf_remediations, NULL, count_open, &open);
	if ((a->at_once >= 0 && open.all > a->at_once) ||
	    (a->policy_at_once > 0 && is_of_policy(a, pod) && open.of_policy > a->policy_at_once))
		rw_break(a->w, "more acts at once than the policy allows",
			 hf_json_path_str(pod, "metadata", "name", NULL));
}

static void check_phase(struct ra *a, const char *was, const struct hf_json *after)
{
	const char *is = hf_json_path_str(after, "status", "phase", NULL);
	const char *name = hf_json_path_str(after, "metadata", "name", NULL);
	struct open_acts open = {.node = hf_json_path_str(after, "spec", "node", NULL)};

	if (ra_is_final(was))
		rw_break(a->w, "a final phase changed", name);
	if (hf_streq(is, "Acting") && !hf_streq(was, "Approved"))
		rw_break(a->w, "an act that was not approved", name);
	a->mended += hf_streq(is, "Succeeded");
	a->failed += hf_streq(is, "Failed");
	a->cancelled += hf_streq(is, "Cancelled");
	if (!hf_streq(is, "Approved"))
		return;
	hf_memstore_each(a->w->memstore, &hf_remediations, NULL, count_open, &open);
	if (open.on_node > 1)
		rw_break(a->w, "two approved acts on a node", name);
}

static void on_change(void *arg, const struct hf_memstore_change *change)
{
	struct ra *a = arg;
	const struct hf_json *after = hf_doc_json(change->after);
	const char *was = hf_json_path_str(hf_doc_json(change->before), "status", "phase", NULL);

	if (change->resource == &hf_pods && change->before == NULL &&
	    hf_streq(hf_json_path_str(after, "metadata", "namespace", NULL), HF_MEND_NAMESPACE))
		check_pod(a, after);
	if (change->resource != &hf_remediations || after == NULL)
		return;
	if (change->before == NULL)
		a->persons += hf_streq(hf_json_path_str(after, "spec", "rung", NULL), "person");
	if (hf_streq(was, hf_json_path_str(after, "status", "phase", NULL)))
		return;
	check_phase(a, was, after);
	if (hf_streq(hf_json_path_str(after, "status", "phase", NULL), "Acting") &&
	    hf_json_path(hf_doc_json(change->before), "status", "act", "startedAt", NULL) != NULL)
		rw_break(a->w, "a second act of one object", hf_doc_name(change->after));
}

static void on_reset(void *arg)
{
	rw_break(((struct ra *)arg)->w, "the store was reset", "store");
}

/* ---- for tests ------------------------------------------------------------------------------- */

static void destroy(void *arg)
{
	struct ra *a = arg;

	hf_memstore_unobserve(a->w->memstore, &a->observer);
	hf_timer_destroy(a->timer);
	free(a);
}

struct ra *ra_create(struct rw *w)
{
	struct ra *a = hf_xcalloc(1, sizeof(*a));

	a->w = w;
	if (rw_get(w, &hf_namespaces, NULL, HF_MEND_NAMESPACE) == NULL)
		rw_create(w, &hf_namespaces, NULL,
			  "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':"
			  "'" HF_MEND_NAMESPACE "'}}");
	a->at_once = -1;
	a->timer = hf_timer_create(w->loop, tick, a);
	hf_timer_arm(a->timer, EVERY);
	a->observer =
		(struct hf_memstore_observer){.changed = on_change, .reset = on_reset, .arg = a};
	hf_memstore_observe(w->memstore, &a->observer);
	rw_at_end(w, destroy, a);
	return a;
}

void ra_all(struct ra *a, enum ra_end reset, enum ra_end reboot)
{
	for (int i = 0; i < RW_NODES_MAX; i++) {
		a->reset[i] = reset;
		a->reboot[i] = reboot;
	}
}

void ra_calm(struct ra *a)
{
	ra_all(a, RA_MENDS, RA_MENDS);
	for (int i = 0; i < a->w->nodes; i++)
		if (a->ends_at[i] != 0) {
			a->end[i] = RA_MENDS;
			a->ends_at[i] = hf_loop_mono(a->w->loop);
		}
}

struct newest {
	const char *node;
	int64_t attempt, below;
	const char *phase;
	int all, final;
};

static void look_at(void *arg, struct hf_doc *doc)
{
	struct newest *n = arg;
	const struct hf_json *json = hf_doc_json(doc);
	int64_t attempt = hf_json_i64(hf_json_path(json, "spec", "attempt", NULL), 0);
	const char *phase = hf_json_path_str(json, "status", "phase", NULL);

	n->all++;
	n->final += ra_is_final(phase);
	if (!hf_streq(hf_json_path_str(json, "spec", "node", NULL), n->node) ||
	    attempt <= n->attempt || attempt >= n->below)
		return;
	n->attempt = attempt;
	n->phase = hf_str_or(phase, "New");
}

const char *ra_phase(struct ra *a, int node)
{
	char name[16];
	struct newest n = {.node = name, .phase = "", .below = INT64_MAX};

	rw_name(node, name);
	hf_memstore_each(a->w->memstore, &hf_remediations, NULL, look_at, &n);
	return n.phase;
}

int ra_newest_attempt(struct ra *a, int node)
{
	char name[16];
	struct newest n = {.node = name, .below = INT32_MAX};

	rw_name(node, name);
	hf_memstore_each(a->w->memstore, &hf_remediations, NULL, look_at, &n);
	return (int)n.attempt;
}

bool ra_is_final(const char *phase)
{
	return hf_streq(phase, "Succeeded") || hf_streq(phase, "Failed") ||
	       hf_streq(phase, "Cancelled");
}

bool ra_has_lease(struct ra *a, int node)
{
	char name[40];

	snprintf(name, sizeof(name), "holdfast-mend-n%03d", node);
	return rw_get(a->w, &hf_leases, HF_MEND_NAMESPACE, name) != NULL;
}

int ra_count_final(struct ra *a)
{
	struct newest n = {.phase = ""};

	hf_memstore_each(a->w->memstore, &hf_remediations, NULL, look_at, &n);
	return n.final;
}

int ra_count(struct ra *a)
{
	struct newest n = {.phase = ""};

	hf_memstore_each(a->w->memstore, &hf_remediations, NULL, look_at, &n);
	return n.all;
}

struct ra *ra_begin(struct rw *w, int nodes, const char *policy)
{
	struct ra *a = ra_create(w);

	a->at_once = 1;
	rw_begin(w, nodes, policy);
	return a;
}

void ra_request(struct ra *a, int node, int attempt, const char *rung, const char *more)
{
	char text[1024], device[80];
	HF_AUTO_DOC body = NULL;

	snprintf(device, sizeof(device), "{'id':'0000:1a:00.0','uuid':'GPU-n%03d'}", node);
	snprintf(text, sizeof(text),
		 "{'apiVersion':'holdfast.dev/v1alpha1','kind':'Remediation','metadata':{'name':"
		 "'n%03d-%d'},'spec':{'node':'n%03d','rung':'%s','attempt':%d,'nonce':"
		 "'0123456789abcdef0123456789abcdef','requestedBy':'ann','devices':[%s]%s}}",
		 node, attempt, node, rung, attempt, hf_streq(rung, "reset-device") ? device : "",
		 more);
	body = json_doc_of(text);
	const struct hf_request request = {
		.verb = HF_VERB_CREATE, .resource = &hf_remediations, .body = body};

	assert_int_equal(apply(a, &request), 0);
}
