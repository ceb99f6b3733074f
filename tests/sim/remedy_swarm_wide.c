/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy_swarm.h"

#include "api/node_locks.h"
#include "api/remediation.h"
#include "base/str.h"
#include "harness/json_text.h"

#include <stdio.h>
#include <string.h>

/* The troubles of the wide world of remedy_swarm. As in the narrow world, nothing that must prevent an act begins between
 * its approval and its intent. */

unsigned rs_pick(struct rs *s, unsigned below)
{
	return rw_pick(s->w, below);
}

/* ---- the objects --------------------------------------------------------------------------------- */

static void add_doc(void *arg, struct hf_doc *doc)
{
	struct rs_list *list = arg;

	if (list->len < HF_ARRAY_LEN(list->docs))
		list->docs[list->len++] = hf_doc_ref(doc);
}

void rs_list_acts(struct rs *s, struct rs_list *list)
{
	list->len = 0;
	hf_memstore_each(s->w->memstore, &hf_remediations, NULL, add_doc, list);
}

void rs_drop_list(struct rs_list *list)
{
	for (size_t i = 0; i < list->len; i++)
		hf_doc_unref(list->docs[i]);
	list->len = 0;
}

const char *rs_phase_of(struct hf_doc *doc)
{
	return hf_str_or(hf_json_path_str(hf_doc_json(doc), "status", "phase", NULL), "");
}

const char *rs_text_of(const struct hf_json *act, const char *key)
{
	return hf_str_or(hf_json_path_str(act, "spec", key, NULL), "");
}

bool rs_has_node(struct rs *s, int node)
{
	char name[16];

	rw_name(node, name);
	return !s->gone[node] && rw_get(s->w, &hf_nodes, NULL, name) != NULL;
}

bool rs_is_final(struct hf_doc *doc)
{
	return ra_is_final(rs_phase_of(doc));
}

static int apply(struct rs *s, const struct hf_request *request)
{
	HF_AUTO_RESULT result = {0};

	hf_memstore_apply(s->w->memstore, request, &result);
	return result.code;
}

/* Between approval and intent only the operator could withdraw, and it may be dead at that moment. So nothing
 * that must prevent an act begins then. */
bool rs_is_approved(struct rs *s, int node)
{
	struct rs_list list;
	bool approved = false;
	char name[16];

	rw_name(node, name);
	rs_list_acts(s, &list);
	for (size_t i = 0; i < list.len; i++)
		approved |= hf_streq(rs_text_of(hf_doc_json(list.docs[i]), "node"), name) &&
			    hf_streq(rs_phase_of(list.docs[i]), "Approved");
	rs_drop_list(&list);
	return approved;
}

static void print_doc(struct hf_doc *doc)
{
	fputs(doc == NULL ? "(none)" : hf_doc_text(doc, NULL), stderr);
	fputc('\n', stderr);
}

/* What a failure needs for its explanation. */
void rs_print_node(struct rs *s, const struct rs_list *list, int node)
{
	char name[16];

	rw_name(node, name);
	print_doc(hf_memstore_peek(s->w->memstore, &hf_healthpolicies, NULL, "p"));
	print_doc(hf_memstore_peek(s->w->memstore, &hf_nodes, NULL, name));
	print_doc(hf_memstore_peek(s->w->memstore, &hf_devicehealths, NULL, name));
	for (size_t i = 0; i < list->len; i++)
		if (hf_streq(rs_text_of(hf_doc_json(list->docs[i]), "node"), name) ||
		    !rs_is_final(list->docs[i]))
			print_doc(list->docs[i]);
}

/* ---- troubles ------------------------------------------------------------------------------- */

static const char *const others[] = {"o", "q", "r"};

static bool is_any_approved(struct rs *s)
{
	for (int i = 0; i < s->w->nodes; i++)
		if (rs_is_approved(s, i))
			return true;
	return false;
}

/* Writes the spec of a policy, with `selector` or "". */
static void print_policy(struct rs *s, const char *selector, char text[1024])
{
	static const char *const modes[] = {"observe", "quarantine", "remediate", "remediate",
					    "remediate"};
	static const char *const windows[] = {
		"", "",
		"'windows':[{'days':['Tuesday','Wednesday'],'start':'22:00','end':'23:30'}],",
		"'windows':[{'days':['Wednesday'],'start':'00:00','end':'00:40'}],"};
	static const char *const rungs[] = {"", "", "'rungs':['reset-device'],",
					    "'rungs':['reboot','restart-plugin'],"};
	char budget[256], domain[80] = "";

	if (rs_pick(s, 2) == 0)
		snprintf(domain, sizeof(domain), ",'perDomain':{'topologyKey':'%s','max':%u}",
			 rs_pick(s, 2) == 0 ? "rack" : "pool", 1 + rs_pick(s, 3));
	snprintf(budget, sizeof(budget),
		 "'budget':{'maxUnavailable':{'%s':%u},'maxQuarantines':{'count':60}%s}",
		 rs_pick(s, 2) == 0 ? "count" : "percent", 1 + rs_pick(s, 60), domain);
	snprintf(text, 1024,
		 "{'mode':'%s',%s%s'mend':{'maxConcurrent':%u,%s%s'settleSeconds':%u},%s,"
		 "'breaker':{'percent':100}}",
		 modes[rs_pick(s, HF_ARRAY_LEN(modes))], selector, *selector == '\0' ? "" : ",",
		 1 + rs_pick(s, 3), windows[rs_pick(s, HF_ARRAY_LEN(windows))],
		 rungs[rs_pick(s, HF_ARRAY_LEN(rungs))], rs_pick(s, 20), budget);
}

static void change_others(struct rs *s, int node)
{
	static const char *const selectors[] = {
		"'selector':{'matchLabels':{'pool':'even'}}",
		"'selector':{'matchLabels':{'rack':'r1'}}",
		"'selector':{'matchLabels':{'rack':'r0'}},'exclude':{'matchLabels':{'pool':'odd'}}"};
	unsigned i = rs_pick(s, HF_ARRAY_LEN(others));
	char spec[1024];

	(void)node;
	if (is_any_approved(s))
		return;
	s->changed_at = hf_loop_wall(s->w->loop);
	if (rw_get(s->w, &hf_healthpolicies, NULL, others[i]) != NULL) {
		rw_delete(s->w, &hf_healthpolicies, others[i]);
		if (rs_pick(s, 2) == 0)
			return;
	}
	print_policy(s, selectors[i], spec);
	rw_policy_named(s->w, others[i], spec);
}

/* The policy of all nodes changes, or is deleted and created again. */
static void change_main(struct rs *s, int node)
{
	static const char *const modes[] = {"observe", "quarantine", "remediate", "remediate",
					    "remediate"};
	char text[1024];

	(void)node;
	if (is_any_approved(s))
		return;
	s->changed_at = hf_loop_wall(s->w->loop);
	if (rs_pick(s, 3) > 0) {
		snprintf(text, sizeof(text), "{'spec':{'mode':'%s'}}",
			 modes[rs_pick(s, HF_ARRAY_LEN(modes))]);
		rw_patch(s->w, &hf_healthpolicies, "p", text);
		return;
	}
	print_policy(s, "", text);
	rw_delete(s->w, &hf_healthpolicies, "p");
	rw_run(s->w, (hf_time)rs_pick(s, 30) * HF_SECOND);
	rw_policy(s->w, text);
}

static void cordon(struct rs *s, int node)
{
	char name[16];

	if (is_any_approved(s))
		return;
	s->changed_at = hf_loop_wall(s->w->loop);
	rw_name(node, name);
	rw_patch(s->w, &hf_nodes, name,
		 rs_pick(s, 2) == 0 ? "{'spec':{'unschedulable':true}}"
				    : "{'spec':{'unschedulable':null}}");
}

static void pause_node(struct rs *s, int node)
{
	char name[16];

	if (rs_is_approved(s, node))
		return;
	rw_name(node, name);
	rw_patch(s->w, &hf_nodes, name,
		 rs_pick(s, 2) == 0 ? "{'metadata':{'annotations':{'holdfast.dev/paused':'true'}}}"
				    : "{'metadata':{'annotations':{'holdfast.dev/paused':null}}}");
}

static void change_evictions(struct rs *s, int node)
{
	(void)node;
	s->w->refuse_evictions = !s->w->refuse_evictions;
}

static void mute_agent(struct rs *s, int node)
{
	s->w->mute[node] = !s->w->mute[node];
	rw_report(s->w, node);
}

static void change_agent(struct rs *s, int node)
{
	s->w->old_agent[node] = !s->w->old_agent[node];
	rw_report(s->w, node);
}

static void lock_node(struct rs *s, int node, bool locks)
{
	char name[16], text[256];
	HF_AUTO_DOC body = NULL;

	rw_name(node, name);
	snprintf(
		text, sizeof(text),
		"{'status':{'conditions':[{'type':'other.dev/MaintenanceInProgress','status':'%s'}]}}",
		locks ? "True" : "False");
	body = json_doc_of(text);
	const struct hf_request request = {.verb = HF_VERB_PATCH,
					   .resource = &hf_nodes,
					   .name = name,
					   .subresource = "status",
					   .patch_type = HF_PATCH_STRATEGIC,
					   .body = body};

	(void)apply(s, &request);
}

static void change_lock(struct rs *s, int node)
{
	if (!rs_is_approved(s, node))
		lock_node(s, node, rs_pick(s, 2) == 0);
}

/* The machine is sold: its Node and its DeviceHealth are deleted, and never come back. */
static void lose_node(struct rs *s, int node)
{
	char name[16];

	if (rs_is_approved(s, node) || s->a->ends_at[node] != 0 || rs_pick(s, 3) > 0)
		return;
	rw_name(node, name);
	s->gone[node] = s->w->silent[node] = true;
	s->changed_at = hf_loop_wall(s->w->loop);
	(void)rw_remove(s->w, &hf_nodes, NULL, name, 0);
	if (rs_pick(s, 2) == 0)
		(void)rw_remove(s->w, &hf_devicehealths, NULL, name, 0);
	if (s->pods[node] != NULL)
		(void)rw_remove(s->w, &hf_pods, "default", s->pods[node], 0);
	s->pods[node] = s->w->holder[node] = NULL;
}

/* A person's request with a spec that no program writes. */
static void request_odd_act(struct rs *s, int node)
{
	static const char *const odd[] = {
		"'devices':[{'id':'0000:99:00.0','uuid':'GPU-none'}]",
		"'devices':[{'id':'0000:1a:00.0','uuid':'GPU-n001'}]",
		"'bootID':'other'",
		"'deadlineSeconds':60",
		"'policy':'none'",
		"'policy':'q'",
		"'policy':'r'",
		"'policy':'p','requestedBy':'policy'",
		"'requestedBy':'policy'",
		"'fault':{'class':'gpu-reset','time':'2020-01-01T00:00:00Z'}",
		"'fault':{'class':'reboot','time':'2040-01-01T00:00:00Z'}",
		"'attempt':2147483647",
		"'dryRun':true,'policy':'q'",
		"'cancel':true",
	};
	static const char *const rungs[] = {"reset-device", "reboot", "restart-plugin",
					    "external",     "person", "restart-process"};
	char text[1024];
	const char *more = odd[rs_pick(s, HF_ARRAY_LEN(odd))], *rung = rungs[rs_pick(s, 6)];
	HF_AUTO_DOC body = NULL;

	snprintf(text, sizeof(text),
		 "{'apiVersion':'holdfast.dev/v1alpha1','kind':'Remediation','metadata':{'name':"
		 "'odd-%u'},'spec':{'node':'n%03d','rung':'%s','nonce':"
		 "'0123456789abcdef0123456789abcdef',%s%s%s}}",
		 ++s->requests, node, rung, strstr(more, "'attempt'") == NULL ? "'attempt':1," : "",
		 strstr(more, "requestedBy") == NULL ? "'requestedBy':'ann'," : "", more);
	if (hf_streq(rung, "reset-device") && strstr(more, "'devices'") == NULL)
		snprintf(text + strlen(text) - 2, sizeof(text) - strlen(text) + 2,
			 ",'devices':[{'id':'0000:1a:00.0','uuid':'GPU-n%03d'}]}}", node);
	body = json_doc_of(text);
	const struct hf_request request = {
		.verb = HF_VERB_CREATE, .resource = &hf_remediations, .body = body};

	(void)apply(s, &request);
}

static void fall_ill_widely(struct rs *s, int node)
{
	static const int ills[] = {RW_RESET,     RW_RESET,   RW_REBOOT, RW_PLUGIN,
				   RW_PROBATION, RW_SUSPECT, RW_SLOW,   RW_UNSEEN};

	if (s->a->ends_at[node] != 0)
		return;
	s->w->sick[node] = rs_pick(s, 1u << s->w->gpus);
	rw_say(s->w, node, ills[rs_pick(s, HF_ARRAY_LEN(ills))]);
}

void rs_disturb_widely(struct rs *s)
{
	static void (*const troubles[])(struct rs *, int) = {
		change_others,   change_others,   change_main,      cordon,
		pause_node,      mute_agent,      change_evictions, change_lock,
		lose_node,       request_odd_act, fall_ill_widely,  fall_ill_widely,
		fall_ill_widely, request_odd_act, change_agent};
	int node = (int)rs_pick(s, (unsigned)s->w->nodes);

	if (rs_has_node(s, node))
		troubles[rs_pick(s, HF_ARRAY_LEN(troubles))](s, node);
}

/* People end all that they hold back, and leave the policy of all nodes alone. */
void rs_calm_down_widely(struct rs *s, const char *policy)
{
	char name[16];

	s->w->refuse_evictions = false;
	for (size_t i = 0; i < HF_ARRAY_LEN(others); i++)
		(void)rw_remove(s->w, &hf_healthpolicies, NULL, others[i], HF_GRACE_DEFAULT);
	(void)rw_remove(s->w, &hf_healthpolicies, NULL, "p", HF_GRACE_DEFAULT);
	rw_policy(s->w, policy);
	for (int i = 0; i < s->w->nodes; i++) {
		if (s->gone[i])
			continue;
		rw_name(i, name);
		rw_patch(s->w, &hf_nodes, name, "{'spec':{'unschedulable':null}}");
		rw_patch(s->w, &hf_nodes, name,
			 "{'metadata':{'annotations':{'holdfast.dev/paused':null}}}");
		lock_node(s, i, false);
		/* An agent of an older version does not tell of another boot. */
		s->w->mute[i] = s->w->old_agent[i] = false;
		rw_report(s->w, i);
	}
}

void rs_widen(struct rs *s)
{
	char name[16];

	for (int i = 0; i < s->w->nodes; i++) {
		rw_name(i, name);
		rw_patch(s->w, &hf_nodes, name,
			 "{'metadata':{'labels':{'nvidia.com/gpu.deploy.device-plugin':'true',"
			 "'nvidia.com/gpu.deploy.dcgm':'paused-for-driver-upgrade'}}}");
	}
}
