/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/front_store.h"
#include "sim/remedy_swarm_wild.h"

#include "api/node_locks.h"
#include "api/remediation.h"
#include "base/mem.h"
#include "base/str.h"
#include "harness/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The wild world of remedy_swarm. As in the other worlds, nothing that must prevent an act begins between its approval
 * and its intent.
 */

#define EVERY HF_SECOND
#define QUIET_CHANGES 40
#define ACT_WRITES 300
#define GPUS_MAX 8
#define EXTERNAL                                                                                   \
	"'rungs':['reset-device','reboot','restart-plugin','external'],'external':{'template':{'apiVersion':'fix.example/v1','kind':'FixTemplate','name':'t'}}"

/* The hooks of struct rw for requests have no argument. */
static struct wild *present;

unsigned wild_pick(struct wild *wild, unsigned below)
{
	return (unsigned)hf_rng_below(&wild->rng, below);
}

static bool is_any_approved(struct rs *s)
{
	for (int i = 0; i < s->w->nodes; i++)
		if (rs_is_approved(s, i))
			return true;
	return false;
}

/* ---- requests and watches that fail -------------------------------------------------------------- */

static bool fail_request(const struct rw *w, const struct hf_request *request,
			 struct hf_fault *ret_fault)
{
	static const int codes[] = {HF_E_CONFLICT, HF_E_INVALID,     HF_E_TOO_MANY,
				    HF_E_INTERNAL, HF_E_UNAVAILABLE, HF_E_TIMEOUT};
	struct wild *wild = present;
	bool reads = request->verb == HF_VERB_GET || request->verb == HF_VERB_LIST;

	(void)w;
	if (wild_pick(wild, 1000) >= wild->fail_permille)
		return false;
	switch (wild_pick(wild, 5)) {
	case 0:
	case 1:
		ret_fault->refuse = codes[wild_pick(wild, HF_ARRAY_LEN(codes))];
		if (ret_fault->refuse == HF_E_CONFLICT && reads)
			ret_fault->refuse = HF_E_INTERNAL;
		ret_fault->message = "the world is wild";
		ret_fault->retry_after = (hf_time)wild_pick(wild, 5) * HF_SECOND;
		break;
	case 2: ret_fault->lose_reply = true; break;
	case 3: ret_fault->delay_before = (hf_time)wild_pick(wild, 20000) * HF_MS; break;
	default:
		if (reads)
			ret_fault->stale = wild_pick(wild, 20);
		ret_fault->delay_after = (hf_time)wild_pick(wild, 20000) * HF_MS;
	}
	return true;
}

static void fail_event(void *arg, const struct hf_watch_options *options,
		       const struct hf_event *event, struct hf_event_fault *ret_fault)
{
	struct wild *wild = present;

	(void)arg;
	(void)options;
	(void)event;
	if (!wild->slow_watches)
		return;
	switch (wild_pick(wild, 40)) {
	case 0: ret_fault->delay = (hf_time)wild_pick(wild, 8000) * HF_MS; break;
	case 1: ret_fault->duplicate = true; break;
	case 2: ret_fault->end = wild_pick(wild, 2) == 0 ? HF_E_GONE : HF_E_UNAVAILABLE; break;
	default: break;
	}
}

/* ---- the DRA driver ------------------------------------------------------------------------------ */

static void publish(struct wild *wild, int node)
{
	struct rw *w = wild->s->w;
	char name[16], devices[1024] = "", text[2048];
	size_t used = 0;

	rw_name(node, name);
	if (wild->dra == NULL)
		return;
	if (wild->away[node]) {
		dra_publish(wild->dra, name, NULL);
		return;
	}
	for (int i = 0; i < w->gpus; i++) {
		char uuid[24];

		snprintf(uuid, sizeof(uuid), i == 0 ? "GPU-%s" : "GPU-%s-%d", name, i);
		used += (size_t)snprintf(
			devices + used, sizeof(devices) - used,
			"%s{'name':'gpu-%d','attributes':{'uuid':{'string':'%s'}}}",
			used > 0 ? "," : "", wild->names[node][i], uuid);
	}
	snprintf(text, sizeof(text),
		 "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceSlice','metadata':{'name':"
		 "'s-%s','uid':'u-%s','resourceVersion':'1'},'spec':{'driver':'gpu.example.com',"
		 "'nodeName':'%s','pool':{'name':'%s','generation':%d,'resourceSliceCount':1},"
		 "'devices':[%s]}}",
		 name, name, name, name, ++wild->generations[node], devices);
	dra_publish(wild->dra, name, text);
}

static void change_driver(struct wild *wild, int node)
{
	int *names = wild->names[node];
	unsigned a = wild_pick(wild, GPUS_MAX), b = wild_pick(wild, GPUS_MAX);
	int other = names[a];

	if (rs_is_approved(wild->s, node))
		return;
	if (wild_pick(wild, 3) == 0) {
		wild->away[node] = !wild->away[node];
	} else {
		names[a] = names[b];
		names[b] = other;
	}
	wild->named_at[node] = hf_loop_mono(wild->s->w->loop);
	publish(wild, node);
}

static const char *node_of_rule(const struct dra *dra, size_t i)
{
	return hf_json_path_str(hf_doc_json(dra->rules[i]), "metadata", "annotations",
				"holdfast.dev/node", NULL);
}

static void change_rule(struct wild *wild)
{
	struct dra *dra = wild->dra;
	unsigned at;

	if (dra == NULL || dra->rules_len == 0 || is_any_approved(wild->s))
		return;
	at = wild_pick(wild, (unsigned)dra->rules_len);
	if (wild_pick(wild, 2) == 0)
		dra_remove_rule(dra, at);
	else
		dra_edit_rule(dra, at,
			      wild_pick(wild, 2) == 0
				      ? "{'spec':{'taint':{'effect':'None'}}}"
				      : "{'spec':{'taint':{'effect':'NoExecute'}}}");
}

static bool has_rule(struct wild *wild, const char *node, int gpu)
{
	const struct dra *dra = wild->dra;
	char wanted[16];

	snprintf(wanted, sizeof(wanted), "gpu-%d", wild->names[rw_index_of(wild->s->w, node)][gpu]);
	for (size_t i = 0; i < dra->rules_len; i++) {
		const struct hf_json *spec = hf_json_get(hf_doc_json(dra->rules[i]), "spec");

		if (hf_streq(node_of_rule(dra, i), node) &&
		    hf_streq(hf_json_path_str(spec, "deviceSelector", "device", NULL), wanted) &&
		    !hf_streq(hf_json_path_str(spec, "taint", "effect", NULL), "None"))
			return true;
	}
	return false;
}

/* ---- machines ------------------------------------------------------------------------------------ */

void wild_collect(struct wild *wild, const char *node)
{
	struct dra *dra = wild->dra;

	gang_drop_plugin(wild, rw_index_of(wild->s->w, node));
	for (size_t i = dra == NULL ? 0 : dra->rules_len; i > 0; i--)
		if (hf_streq(node_of_rule(dra, i - 1), node))
			dra_remove_rule(dra, i - 1);
}

void wild_come_back(struct wild *wild, int node)
{
	struct rw *w = wild->s->w;
	char name[16], boot[40], text[256];

	w->boots[node]++;
	w->silent[node] = wild->off[node] = false;
	rw_boot_id(w, node, boot);
	rw_name(node, name);
	if (rw_get(w, &hf_nodes, NULL, name) == NULL)
		rw_node(w, node);
	snprintf(text, sizeof(text),
		 "{'status':{'nodeInfo':{'bootID':'%s'},'conditions':[{'type':'Ready',"
		 "'status':'True'}]}}",
		 boot);
	rw_patch_status(w, &hf_nodes, name, text);
}

/* ---- locks of other tools ------------------------------------------------------------------------ */

static bool is_kured_locked(struct wild *wild, const char *node)
{
	char part[40];

	snprintf(part, sizeof(part), "\\'nodeID\\':\\'%s\\'", node);
	return strstr(wild->kured, part) != NULL;
}

static void change_kured(struct wild *wild, int node)
{
	char name[16];

	rw_name(node, name);
	if (is_any_approved(wild->s))
		return;
	if (*wild->kured != '\0' && wild_pick(wild, 3) > 0)
		*wild->kured = '\0';
	else if (wild_pick(wild, 2) == 0)
		snprintf(wild->kured, sizeof(wild->kured),
			 "{\\'nodeID\\':\\'%s\\',\\'metadata\\':{\\'unschedulable\\':false},"
			 "\\'created\\':\\'2023-11-14T22:13:20.1Z\\',\\'TTL\\':0}",
			 name);
	else
		snprintf(wild->kured, sizeof(wild->kured),
			 "{\\'maxOwners\\':2,\\'locks\\':[{\\'nodeID\\':\\'other\\',\\'TTL\\':0},"
			 "{\\'nodeID\\':\\'%s\\',\\'TTL\\':0}]}",
			 name);
}

static void change_maintenance(struct wild *wild, int node)
{
	bool any = false;

	for (int i = 0; i < wild->s->w->nodes; i++) {
		any |= wild->in_maintenance[i];
		wild->in_maintenance[i] = false;
	}
	if (!any && !rs_is_approved(wild->s, node))
		wild->in_maintenance[node] = true;
}

static struct hf_doc *make_maintenance(int node)
{
	char name[16], text[512];

	rw_name(node, name);
	snprintf(
		text, sizeof(text),
		"{'apiVersion':'nodemaintenance.medik8s.io/v1beta1','kind':'NodeMaintenance',"
		"'metadata':{'name':'m-%s','uid':'m-%s','resourceVersion':'1'},'spec':{'nodeName':'%s',"
		"'reason':'disk'},'status':{'phase':'Running'}}",
		name, name, name);
	return json_doc_of(text);
}

static void list_maintenances(struct wild *wild, struct front_call *call)
{
	struct hf_doc *items[RS_NODES_MAX];
	size_t len = 0;

	for (int i = 0; i < wild->s->w->nodes; i++)
		if (wild->in_maintenance[i])
			items[len++] = make_maintenance(i);
	front_answer_list(call, items, len, "1");
	while (len > 0)
		hf_doc_unref(items[--len]);
}

static void answer_locks(void *arg, struct front_call *call)
{
	struct wild *wild = arg;
	HF_AUTO_DOC doc = NULL;
	char text[1024];

	if (call->verb == HF_VERB_LIST) {
		list_maintenances(wild, call);
		return;
	}
	if (!hf_streq(call->name, HF_KURED_NAME)) {
		front_answer(call, HF_E_NOT_FOUND, NULL);
		return;
	}
	snprintf(
		text, sizeof(text),
		"{'apiVersion':'apps/v1','kind':'DaemonSet','metadata':{'name':'kured',"
		"'namespace':'kube-system','uid':'k','resourceVersion':'1','annotations':{%s%s%s}}}",
		*wild->kured == '\0' ? "" : "'weave.works/kured-node-lock':'", wild->kured,
		*wild->kured == '\0' ? "" : "'");
	doc = json_doc_of(text);
	front_answer(call, 0, doc);
}

static struct hf_store *wrap(void *arg, struct hf_store *inner)
{
	struct wild *wild = arg;
	struct front_options options = {.loop = wild->s->w->loop,
					.group = "apps",
					.delay = &wild->fixes.delay,
					.answer = answer_locks,
					.arg = wild};

	inner = front_store_create(&options, inner);
	options.group = "nodemaintenance.medik8s.io";
	inner = fix_wrap(wild, front_store_create(&options, inner));
	return wild->dra == NULL ? inner : wild->dra_wrap(wild->dra_arg, inner);
}

/* ---- the policy ---------------------------------------------------------------------------------- */

#define WITHOUT_TEMPLATE                                                                           \
	"{'spec':{'mend':{'external':{'template':{'apiVersion':'fix.example/v2','kind':"           \
	"'PowerTemplate','name':'none'}}}}}"

static void change_rules(struct wild *wild)
{
	static const char *const patches[] = {
		"{'spec':{'quarantine':'Device'}}",
		"{'spec':{'quarantine':'Node'}}",
		"{'spec':{'mend':{'rungs':['external']}}}",
		"{'spec':{'mend':{'rungs':['reset-device','external']}}}",
		"{'spec':{'mend':{'rungs':['no-rung']}}}",
		"{'spec':{'mend':{'rungs':null}}}",
		"{'spec':{'mend':{" EXTERNAL "}}}",
		"{'spec':{'mend':{'external':null,'rungs':null}}}",
		WITHOUT_TEMPLATE,
		"{'spec':{'mend':{'diagnostic':{'command':['dcgmi','diag'],'timeoutSeconds':5}}}}",
		"{'spec':{'mend':{'diagnostic':null}}}",
		"{'spec':{'mend':{'deadlineSeconds':60}}}",
		"{'spec':{'mend':{'maxConcurrent':1}}}",
		"{'spec':{'budget':{'maxUnavailable':{'count':0}}}}",
		"{'spec':{'budget':{'maxUnavailable':{'count':null}}}}",
		"{'spec':{'drain':{'mode':'complete'}}}",
		"{'spec':{'drain':{'mode':'immediate','graceSeconds':20}}}",
		"{'spec':{'drain':{'timeoutSeconds':60}}}",
		"{'spec':{'drain':null}}",
		"{'spec':{'paused':true}}",
		"{'spec':{'paused':null}}",
		"{'spec':{'mend':null}}",
		"{'spec':{'mend':{'maxConcurrent':2}}}",
	};
	struct rs *s = wild->s;

	if (is_any_approved(s))
		return;
	s->changed_at = hf_loop_wall(s->w->loop);
	rw_patch(s->w, &hf_healthpolicies, "p",
		 wild_pick(wild, 2) == 0 ? "{'spec':{'mode':'remediate','mend':{" EXTERNAL "}}}"
					 : patches[wild_pick(wild, HF_ARRAY_LEN(patches))]);
}

/* A fault that no reset and no reboot mends. */
static void fall_ill_gravely(struct wild *wild, int node)
{
	static const int ills[] = {RW_FAILED, RW_FAILED, RW_REBOOT, RW_RESET};
	struct rs *s = wild->s;

	if (s->a->ends_at[node] != 0)
		return;
	s->a->reset[node] = s->a->reboot[node] = RA_FAILS;
	rw_say(s->w, node, ills[wild_pick(wild, HF_ARRAY_LEN(ills))]);
}

/* ---- clocks -------------------------------------------------------------------------------------- */

/* The clock of the control plane steps; those of the nodes stay. The operator's time never goes back: it stands still
 * instead, for so long as the step, so an hour back would outlast the calm. */
static void step_clocks(struct wild *wild)
{
	struct rs *s = wild->s;
	hf_time by = wild_pick(wild, 2) == 0 ? (hf_time)wild_pick(wild, 3600) * HF_SECOND
					     : -(hf_time)wild_pick(wild, 60) * HF_SECOND;

	if (!s->clocks_step || is_any_approved(s))
		return;
	hf_loop_step_wall(s->w->loop, by);
	for (int i = 0; i < s->w->nodes; i++) {
		s->w->clock[i] -= by;
		s->w->ill_since[i] += by;
		if (s->w->measured_at[i] != 0)
			s->w->measured_at[i] += by;
	}
	s->changed_at = hf_loop_wall(s->w->loop);
}

/* ---- what must hold ------------------------------------------------------------------------------ */

static bool is_foreign_locked(struct wild *wild, const struct hf_json *node, const char *name)
{
	return is_kured_locked(wild, name) || hf_node_find_maintenance(node) != NULL ||
	       wild->in_maintenance[rw_index_of(wild->s->w, name)];
}

/* The pod was asked to leave, its time is over, and no kubelet can end it. */
static bool is_left_behind(struct wild *wild, int node)
{
	struct rw *w = wild->s->w;
	const char *until = hf_json_path_str(rw_get(w, &hf_pods, "default", w->holder[node]),
					     "metadata", "deletionTimestamp", NULL);
	hf_time at;

	return w->silent[node] && until != NULL && hf_time_parse(until, &at, NULL) == 0 &&
	       (at <= hf_loop_wall(w->loop) || wild->s->clocks_step);
}

static void check_external(struct wild *wild, const char *act, int node)
{
	struct rs *s = wild->s;

	if (!rw_tainted(s->w, node))
		rw_break(s->w, "an act on a node that is not quarantined", act);
	if (s->w->holder[node] != NULL && !is_left_behind(wild, node))
		rw_break(s->w, "an act on a node with a pod on its device", act);
	/* A machine that has not come back from a reboot is what an external controller is for. */
	if (s->a->ends_at[node] != 0 &&
	    !ra_is_final(hf_json_path_str(rw_get(s->w, &hf_remediations, NULL, s->a->act[node]),
					  "status", "phase", NULL)))
		rw_break(s->w, "two acts at once on a node", act);
}

/* GPUs that no taint keeps pods from are kept by rules. */
static void check_rules(struct wild *wild, const struct hf_json *r, const char *act, int node)
{
	const struct hf_json *devices = hf_json_path(r, "spec", "devices", NULL);
	struct rs *s = wild->s;
	char name[16], uuid[24];

	if (rw_tainted(s->w, node) || wild->dra == NULL || wild->away[node] ||
	    hf_loop_mono(s->w->loop) - wild->named_at[node] < 10 * HF_MINUTE)
		return;
	rw_name(node, name);
	for (size_t i = 0; i < hf_json_len(devices); i++)
		for (int k = 0; k < s->w->gpus; k++) {
			snprintf(uuid, sizeof(uuid), k == 0 ? "GPU-%s" : "GPU-%s-%d", name, k);
			if (hf_streq(hf_json_path_str(hf_json_item(devices, i), "uuid", NULL),
				     uuid) &&
			    !has_rule(wild, name, k))
				rw_break(s->w, "a reset of a device that pods can be given", act);
		}
}

/* The intent of an act is written. */
static void check_intent(struct wild *wild, const struct hf_json *r)
{
	struct rs *s = wild->s;
	const char *act = hf_json_path_str(r, "metadata", "name", NULL);
	const char *rung = rs_text_of(r, "rung"), *name = rs_text_of(r, "node");
	const struct hf_json *node = rw_get(s->w, &hf_nodes, NULL, name);
	int i = rw_index_of(s->w, name);
	const struct hf_json *notes = hf_json_path(node, "metadata", "annotations", NULL);

	if (is_foreign_locked(wild, node, name))
		rw_break(s->w, "an act on a node that another tool locks", act);
	if (hf_json_get(notes, "holdfast.dev/hold") != NULL)
		rw_break(s->w, "an act on a node with annotation holdfast.dev/hold", act);
	if (hf_json_get(notes, "holdfast.dev/paused") != NULL)
		rw_break(s->w, "an act on a node that is paused", act);
	if (hf_streq(rung, "external"))
		check_external(wild, act, i);
	if (hf_streq(rung, "reset-device"))
		check_rules(wild, r, act, i);
	if (hf_streq(rung, "reset-device") && gang_has_plugin(wild, i))
		rw_break(s->w, "a reset while the device plugin runs", act);
	if ((hf_streq(rung, "external") || hf_streq(rung, "reboot")) &&
	    gang_on_node(wild, i) != NULL)
		rw_break(s->w, "an act on a node whose gang was not asked", act);
}

/* Writes for one act are bounded, whatever happens. */
static void count_write(struct wild *wild, struct hf_doc *act)
{
	size_t i = 0;

	while (i < wild->acts_len && !hf_streq(wild->acts[i].uid, hf_doc_uid(act)))
		i++;
	if (i == ACTS_MAX)
		return;
	if (i == wild->acts_len)
		snprintf(wild->acts[wild->acts_len++].uid, sizeof(wild->acts[0].uid), "%s",
			 hf_doc_uid(act));
	wild->acts[i].writes++;
}

static void on_change(void *arg, const struct hf_memstore_change *change)
{
	struct wild *wild = arg;
	const struct hf_json *after = hf_doc_json(change->after);
	const char *is = hf_json_path_str(after, "status", "phase", NULL);
	const char *was = hf_json_path_str(hf_doc_json(change->before), "status", "phase", NULL);

	wild->changes += change->resource == &hf_nodes || change->resource == &hf_leases ||
			 (change->resource == &hf_remediations &&
			  !hf_streq(rs_text_of(after, "rung"), "restart-process"));
	if (change->resource == &hf_nodes && after == NULL) {
		wild->was_deleted[rw_index_of(wild->s->w, hf_doc_name(change->before))] = true;
		wild_collect(wild, hf_doc_name(change->before));
	}
	if (change->resource == &hf_pods && after == NULL)
		gang_forget(wild, hf_doc_uid(change->before));
	if (change->resource != &hf_remediations || after == NULL)
		return;
	/* The message of a process restart that waits follows the job. Two leaders that know different clocks undo each
	 * other's messages, some writes a second, for as long as both lead. */
	if (!hf_streq(rs_text_of(after, "rung"), "restart-process") && wild->s->w->second == NULL)
		count_write(wild, change->after);
	if (hf_streq(is, "Acting") && !hf_streq(was, "Acting"))
		check_intent(wild, after);
}

static void on_reset(void *arg)
{
	(void)arg;
}

/* ---- trouble ------------------------------------------------------------------------------------- */

static void change_failures(struct wild *wild)
{
	static const unsigned permilles[] = {0, 0, 20, 100, 300};

	wild->fail_permille = permilles[wild_pick(wild, HF_ARRAY_LEN(permilles))];
	wild->slow_watches = wild_pick(wild, 2) == 0;
	if (wild->dra == NULL)
		return;
	wild->dra->lose_permille = wild_pick(wild, 2) * 100;
	wild->dra->delay = wild_pick(wild, 2) == 0 ? HF_MS : (hf_time)wild_pick(wild, 3000) * HF_MS;
}

/* A person asks for an act of any rung, by a policy or not. */
static void request_act(struct wild *wild, int node)
{
	static const char *const rungs[] = {"reset-device", "reboot",   "restart-plugin",
					    "external",     "external", "restart-process",
					    "person"};
	static const char *const more[] = {"", ",'policy':'p'", ",'policy':'p'",
					   ",'policy':'p','deadlineSeconds':60",
					   ",'policy':'p','dryRun':true"};

	ra_request(wild->s->a, node, ra_newest_attempt(wild->s->a, node) + 1,
		   rungs[wild_pick(wild, HF_ARRAY_LEN(rungs))],
		   more[wild_pick(wild, HF_ARRAY_LEN(more))]);
}

/* A person deletes the report. The agent writes it anew. */
static void delete_health(struct wild *wild, int node)
{
	char name[16];

	rw_name(node, name);
	if (!rs_is_approved(wild->s, node))
		(void)rw_remove(wild->s->w, &hf_devicehealths, NULL, name, 0);
}

static void disturb_machine(struct wild *wild, int node, unsigned kind)
{
	switch (kind) {
	case 15: fix_switch_off(wild, node); break;
	case 16: delete_health(wild, node); break;
	case 17: fix_linger(wild); break;
	default: fall_ill_gravely(wild, node); break;
	}
}

static void disturb_once(struct wild *wild, int node)
{
	unsigned kind = wild_pick(wild, 18);

	switch (kind) {
	case 0:
	case 1: fix_disturb(wild, node); break;
	case 2:
	case 14:
	case 3: change_rules(wild); break;
	case 4: change_failures(wild); break;
	case 5: change_kured(wild, node); break;
	case 6: change_maintenance(wild, node); break;
	case 7: step_clocks(wild); break;
	case 8: change_driver(wild, node); break;
	case 9: change_rule(wild); break;
	case 10: request_act(wild, node); break;
	default: disturb_machine(wild, node, kind); break;
	}
}

void rs_disturb_wildly(struct rs *s)
{
	for (unsigned n = 1 + wild_pick(s->wild, 3); n > 0; n--) {
		int node = (int)wild_pick(s->wild, (unsigned)s->w->nodes);

		if (rs_has_node(s, node))
			disturb_once(s->wild, node);
	}
	/* The clock of a process never goes back, so after a step two leaders have different times. They would undo each
	 * other's statuses for as long as both lead: some seconds in a cluster, but for ever here. */
	if (s->clocks_step && s->w->second != NULL)
		rw_change_leaders(s->w);
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void tick(void *arg)
{
	struct wild *wild = arg;

	gang_tick(wild);
	fix_tick(wild);
	hf_timer_arm(wild->timer, EVERY);
}

void rs_wild_create(struct rs *s, unsigned seed, char *policy)
{
	struct wild *wild = hf_xcalloc(1, sizeof(*wild));
	char text[512];

	s->wild = present = wild;
	wild->s = s;
	hf_rng_init(&wild->rng, seed + 1);
	fix_create_template(wild);
	if (wild_pick(wild, 2) == 0) {
		wild->dra = dra_create(s->w);
		wild->dra->rng = &wild->rng;
		wild->dra_wrap = s->w->wrap;
		wild->dra_arg = s->w->wrap_arg;
	}
	s->w->wrap = wrap;
	s->w->wrap_arg = wild;
	s->w->fault = fail_request;
	s->w->event_fault = fail_event;
	s->clocks_step = wild_pick(wild, 4) == 0;
	/* "{'mode':'remediate','mend':{...": the sections go in front. */
	snprintf(text, sizeof(text), "%s", strstr(policy, "'maxConcurrent'"));
	snprintf(policy, 1024,
		 "{'mode':'remediate','staleAfterSeconds':%u,'quarantine':'%s','mend':{%s%s%s",
		 360 + wild_pick(wild, 600), wild_pick(wild, 2) == 0 ? "Device" : "Node",
		 wild_pick(wild, 3) > 0 ? EXTERNAL "," : "",
		 wild_pick(wild, 2) == 0 ? "'diagnostic':{'command':['dcgmi'],'timeoutSeconds':5},"
					 : "",
		 text);
}

void rs_wild_begin(struct rs *s)
{
	struct wild *wild = s->wild;

	for (int i = 0; i < s->w->nodes; i++) {
		for (int k = 0; k < GPUS_MAX; k++)
			wild->names[i][k] = k;
		publish(wild, i);
	}
	for (int i = 0; i < (int)wild_pick(wild, GANGS + 1); i++)
		gang_create(wild, i);
	wild->timer = hf_timer_create(s->w->loop, tick, wild);
	hf_timer_arm(wild->timer, EVERY);
	wild->observer =
		(struct hf_memstore_observer){.changed = on_change, .reset = on_reset, .arg = wild};
	hf_memstore_observe(s->w->memstore, &wild->observer);
}

void rs_calm_down_wildly(struct rs *s)
{
	struct wild *wild = s->wild;

	wild->fail_permille = 0;
	wild->slow_watches = false;
	fix_calm(wild);
	*wild->kured = '\0';
	if (wild->dra != NULL) {
		wild->dra->lose_permille = 0;
		wild->dra->delay = HF_MS;
	}
	for (int i = 0; i < s->w->nodes; i++) {
		wild->in_maintenance[i] = false;
		wild->away[i] = false;
		if (s->gone[i])
			continue;
		publish(wild, i);
		/* The state of such a device stays unknown, so an act on it has no proof until its deadline. Several of
		 * these acts, one after the other, take longer than the calm time. */
		if (s->w->ill[i] == RW_UNSEEN || s->w->ill[i] == RW_UNKNOWN)
			rw_say(s->w, i, RW_WELL);
	}
}

static void expect_no_rules(struct wild *wild, unsigned seed)
{
	for (size_t i = 0; wild->dra != NULL && i < wild->dra->rules_len; i++) {
		const char *name = hf_str_or(node_of_rule(wild->dra, i), "?");
		int node = rw_index_of(wild->s->w, name);

		if (wild->s->w->ill[node] == RW_WELL || wild->s->gone[node])
			fail_msg("seed %u: %s is well and has rule %s", seed, name,
				 hf_doc_name(wild->dra->rules[i]));
	}
}

static bool is_true(const struct hf_json *act, const char *type)
{
	const struct hf_json *list = hf_json_path(act, "status", "conditions", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(list, i), "type", NULL), type))
			return hf_streq(hf_json_path_str(hf_json_item(list, i), "status", NULL),
					"True");
	return false;
}

/* What the status of an act that is over says has happened. */
static void expect_true_act(struct wild *wild, unsigned seed, struct hf_doc *doc)
{
	const struct hf_json *act = hf_doc_json(doc);
	bool began = hf_json_path(act, "status", "act", "startedAt", NULL) != NULL;
	bool succeeded = hf_streq(rs_phase_of(doc), "Succeeded");
	const char *wrong = NULL;

	if (!rs_is_final(doc))
		return;
	if (hf_str_is_empty(hf_json_path_str(act, "status", "message", NULL)))
		wrong = "no message";
	else if (began && succeeded != is_true(act, "Proven"))
		wrong = "condition Proven";
	else if (!began && is_true(act, "Approved"))
		wrong = "condition Approved without an act";
	else if (began && hf_streq(rs_phase_of(doc), "Cancelled"))
		wrong = "phase Cancelled after an act";
	/* Nothing is put back on a node that is deleted. */
	else if (!wild->was_deleted[rw_index_of(wild->s->w, rs_text_of(act, "node"))] &&
		 (hf_json_path(act, "status", "saved", "external", "kind", NULL) != NULL ||
		  hf_json_len(hf_json_path(act, "status", "saved", "labels", NULL)) > 0))
		wrong = "something is not put back";
	if (wrong == NULL)
		return;
	fprintf(stderr, "%s\n", hf_doc_text(doc, NULL));
	fail_msg("seed %u: %s: %s", seed, hf_doc_name(doc), wrong);
}

static void expect_true_acts(struct wild *wild, unsigned seed)
{
	struct rs_list list;

	rs_list_acts(wild->s, &list);
	for (size_t i = 0; i < list.len; i++)
		expect_true_act(wild, seed, list.docs[i]);
	rs_drop_list(&list);
	for (size_t i = 0; i < wild->acts_len; i++)
		if (wild->acts[i].writes > ACT_WRITES)
			fail_msg("seed %u: the Remediation with UID %s was written %u times", seed,
				 wild->acts[i].uid, wild->acts[i].writes);
}

static int64_t count_quarantined(struct wild *wild)
{
	struct rw *w = wild->s->w;
	int64_t n = 0;

	for (int i = 0; i < w->nodes; i++) {
		const char *mark;
		char name[16];

		rw_name(i, name);
		mark = hf_json_path_str(rw_get(w, &hf_nodes, NULL, name), "metadata", "annotations",
					"holdfast.dev/quarantine", NULL);
		n += mark != NULL && strstr(mark, "takenOff") == NULL;
	}
	return n;
}

static void expect_true_status(struct wild *wild, unsigned seed)
{
	struct rw *w = wild->s->w;
	const struct hf_json *policy = rw_get(w, &hf_healthpolicies, NULL, "p");
	const struct hf_json *nodes = hf_json_path(policy, "status", "nodes", NULL);

	if (hf_json_i64(hf_json_path(policy, "status", "observedGeneration", NULL), 0) !=
	    hf_json_i64(hf_json_path(policy, "metadata", "generation", NULL), 0))
		fail_msg("seed %u: the status of the policy is of another generation", seed);
	if (hf_json_i64(hf_json_path(policy, "status", "counts", "quarantined", NULL), -1) !=
	    count_quarantined(wild))
		fail_msg("seed %u: %lld nodes are quarantined, and the status has another number",
			 seed, (long long)count_quarantined(wild));
	for (size_t i = 0; i < hf_json_len(nodes); i++) {
		const struct hf_json *item = hf_json_item(nodes, i);
		const char *name = hf_json_path_str(item, "name", NULL);
		int node = rw_index_of(w, name);

		if (wild->s->gone[node] && rw_get(w, &hf_nodes, NULL, name) == NULL)
			fail_msg("seed %u: the status lists %s, which is gone", seed, name);
		if (rw_tainted(w, node) && !hf_json_true(hf_json_get(item, "quarantined"), false))
			fail_msg("seed %u: the status does not show the quarantine of %s", seed,
				 name);
	}
}

static unsigned long long count_changes(const struct wild *wild)
{
	const struct dra *dra = wild->dra;

	return wild->changes + wild->fixes.creates + wild->fixes.deletes +
	       (dra == NULL ? 0 : dra->creates + dra->changes + dra->deletes);
}

void rs_wild_expect_end(struct rs *s, unsigned seed)
{
	struct wild *wild = s->wild;
	unsigned long long changes;

	fix_expect_end(wild, seed);
	expect_no_rules(wild, seed);
	expect_true_status(wild, seed);
	expect_true_acts(wild, seed);
	s->w->fault = NULL;
	/* A job whose pods are given sick devices goes on restarting, so only these objects count. */
	changes = count_changes(wild);
	rw_run(s->w, HF_HOUR);
	if (count_changes(wild) - changes > QUIET_CHANGES)
		fail_msg("seed %u: %llu changes in a quiet hour", seed,
			 count_changes(wild) - changes);
}

void rs_wild_destroy(struct rs *s)
{
	struct wild *wild = s->wild;

	hf_memstore_unobserve(s->w->memstore, &wild->observer);
	hf_timer_destroy(wild->timer);
	rw_stop(s->w);
	fix_destroy(wild);
	free(wild);
	s->wild = present = NULL;
	s->w->fault = NULL;
}
