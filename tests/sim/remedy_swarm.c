/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy_swarm.h"
#include "sim/remedy_swarm_wild.h"
#include "sim/seeds.h"

#include "api/node_locks.h"
#include "api/remediation.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/*
 * Acts that mend nodes under random trouble, each schedule from one seed: machines that relapse or never come
 * back, actors and operators that die, a second leader, lost requests, clocks that step, and people who delete
 * or change any object in the middle. The invariants of remedy_actor.c hold at each write. After a calm time
 * each act that began has ended, nothing is held, and each ill node is left to a person.
 *
 *   remedy_swarm [--corpus FILE] [--start S] [--seeds N] [--wide 0|1|2]
 *
 * The seeds of the corpus run first. A seed is of the narrow world, of the wide world (remedy_swarm_wide.c), or of the
 * wild world, which adds to the wide one (remedy_swarm_wild.h).
 */

#define TURNS 50
#define CALM (150 * HF_MINUTE)

static struct seeds seeds = {.start = 1, .count = 60};

/* Writes the name of a random Remediation; "": there is none. */
static void pick_act(struct rs *s, bool unfinished, char name[254])
{
	struct rs_list list;

	*name = '\0';
	rs_list_acts(s, &list);
	for (unsigned tries = 0; tries < 8 && list.len > 0; tries++) {
		struct hf_doc *doc = list.docs[rs_pick(s, (unsigned)list.len)];

		if (!unfinished || !rs_is_final(doc))
			snprintf(name, 254, "%s", hf_doc_name(doc));
	}
	rs_drop_list(&list);
}

/* ---- trouble ------------------------------------------------------------------------------------- */

static void fall_ill(struct rs *s, int node)
{
	static const int ills[] = {RW_RESET, RW_REBOOT, RW_RESET, RW_FAILED, RW_UNKNOWN};

	if (s->a->ends_at[node] == 0)
		rw_say(s->w, node, ills[rs_pick(s, HF_ARRAY_LEN(ills))]);
}

static void get_well(struct rs *s, int node)
{
	if (s->a->ends_at[node] == 0 && !rs_is_approved(s, node))
		rw_say(s->w, node, RW_WELL);
}

static void change_hold(struct rs *s, int node)
{
	char name[16];

	if (!s->held[node] && rs_is_approved(s, node))
		return;
	s->held[node] = !s->held[node];
	rw_name(node, name);
	rw_patch(s->w, &hf_nodes, name,
		 s->held[node] ? "{'metadata':{'annotations':{'holdfast.dev/hold':'yes'}}}"
			       : "{'metadata':{'annotations':{'holdfast.dev/hold':null}}}");
}

static void untaint(struct rs *s, int node)
{
	char name[16];

	rw_name(node, name);
	if (!rs_is_approved(s, node))
		rw_patch(s->w, &hf_nodes, name, UNTAINTED);
}

/* The Node object alone: its kubelet registers again. */
static void renew_node(struct rs *s, int node)
{
	char name[16], boot[40], text[256];

	if (rs_is_approved(s, node))
		return;
	rw_name(node, name);
	(void)rw_remove(s->w, &hf_nodes, NULL, name, 0);
	rw_run(s->w, (hf_time)rs_pick(s, 30) * HF_SECOND);
	if (rw_get(s->w, &hf_nodes, NULL, name) == NULL)
		rw_node(s->w, node);
	rw_boot_id(s->w, node, boot);
	snprintf(text, sizeof(text),
		 "{'status':{'nodeInfo':{'bootID':'%s'},'conditions':[{'type':'Ready','status':"
		 "'True'}]}}",
		 boot);
	rw_patch_status(s->w, &hf_nodes, name, text);
	s->held[node] = false;
}

static void delete_lease(struct rs *s, int node)
{
	char name[40];

	snprintf(name, sizeof(name), "holdfast-mend-n%03d", node);
	if (!rs_is_approved(s, node))
		(void)rw_remove(s->w, &hf_leases, HF_MEND_NAMESPACE, name, 0);
}

static void change_act(struct rs *s)
{
	char name[254], pod[260];

	pick_act(s, true, name);
	if (*name == '\0')
		return;
	switch (rs_pick(s, 3)) {
	case 0: rw_patch(s->w, &hf_remediations, name, "{'spec':{'cancel':true}}"); break;
	case 1: (void)rw_remove(s->w, &hf_remediations, NULL, name, HF_GRACE_DEFAULT); break;
	default:
		snprintf(pod, sizeof(pod), HF_MEND_POD_PREFIX "%s", name);
		(void)rw_remove(s->w, &hf_pods, HF_MEND_NAMESPACE, pod, HF_GRACE_DEFAULT);
	}
}

static void request_act(struct rs *s, int node)
{
	static const char *const rungs[] = {"reset-device", "reboot", "restart-plugin", "external"};

	ra_request(s->a, node, ra_newest_attempt(s->a, node) + 1,
		   rungs[rs_pick(s, HF_ARRAY_LEN(rungs))],
		   rs_pick(s, 2) == 0   ? ",'policy':'p'"
		   : rs_pick(s, 4) == 0 ? ",'dryRun':true"
					: "");
}

static void step_clock(struct rs *s, int node)
{
	s->w->clock[node] = ((hf_time)rs_pick(s, 7200) - 3600) * HF_SECOND;
}

/* An agent of an older version, which writes neither boot nor UUIDs. */
static void speak_old(struct rs *s, int node)
{
	char name[16];

	rw_name(node, name);
	if (rw_get(s->w, &hf_devicehealths, NULL, name) == NULL)
		return;
	rw_patch_status(s->w, &hf_devicehealths, name,
			"{'status':{'bootID':null,'devices':[{'id':'node','kind':'node','state':"
			"'Healthy'},{'id':'0000:1a:00.0','kind':'gpu','state':'Healthy'}]}}");
}

/* Creates a pod that holds the device of the node. The kubelet ends the pod after its eviction. */
static void put_pod(struct rs *s, int node)
{
	if (s->pods[node] != NULL || s->w->holder[node] != NULL || rs_is_approved(s, node) ||
	    s->a->ends_at[node] != 0)
		return;
	s->pods[node] = rw_pod_name(node);
	rw_pod(s->w, s->pods[node], node, "ReplicaSet");
	rw_say(s->w, node, s->w->ill[node]);
}

static void end_pods(struct rs *s)
{
	for (int i = 0; i < s->w->nodes; i++) {
		const struct hf_json *pod =
			s->pods[i] == NULL ? NULL : rw_get(s->w, &hf_pods, "default", s->pods[i]);

		/* No kubelet ends the pods of a machine that is off. */
		if (s->pods[i] == NULL ||
		    (pod != NULL &&
		     (hf_json_path(pod, "metadata", "deletionTimestamp", NULL) == NULL ||
		      (s->w->silent[i] && rs_has_node(s, i)))))
			continue;
		(void)rw_remove(s->w, &hf_pods, "default", s->pods[i], 0);
		s->pods[i] = s->w->holder[i] = NULL;
		if (!s->w->silent[i])
			rw_say(s->w, i, s->w->ill[i]);
	}
}

static void kill_any(struct rs *s, int node)
{
	(void)node;
	rw_kill_soon(s->w);
}

static void change_any_act(struct rs *s, int node)
{
	(void)node;
	change_act(s);
}

static void change_leaders(struct rs *s, int node)
{
	(void)node;
	rw_change_leaders(s->w);
}

static void change_losses(struct rs *s, int node)
{
	(void)node;
	s->w->refuse_permille = rs_pick(s, 2) * 100;
}

static void change_policy(struct rs *s, int node)
{
	(void)node;
	rw_patch(s->w, &hf_healthpolicies, "p",
		 rs_pick(s, 2) == 0 ? "{'spec':{'mend':{'hold':true}}}"
				    : "{'spec':{'mend':{'hold':null}}}");
}

/* ---- troubles ------------------------------------------------------------------------------------- */

static void disturb(struct rs *s)
{
	static void (*const troubles[])(struct rs *, int) = {
		fall_ill,      fall_ill,       fall_ill,     fall_ill,    get_well,
		kill_any,      change_any_act, delete_lease, untaint,     renew_node,
		change_hold,   step_clock,     speak_old,    request_act, change_leaders,
		change_losses, put_pod,        change_policy};
	int node = (int)rs_pick(s, (unsigned)s->w->nodes);

	if (!rs_has_node(s, node))
		return;
	s->a->reset[node] = (enum ra_end)rs_pick(s, RA_ENDS);
	s->a->reboot[node] = rs_pick(s, 3) == 0 ? RA_NEVER : (enum ra_end)rs_pick(s, RA_ENDS);
	s->troubles++;
	troubles[rs_pick(s, HF_ARRAY_LEN(troubles))](s, node);
}

/* ---- after the calm ------------------------------------------------------------------------------ */

static void calm_down(struct rs *s)
{
	char name[16];

	rw_calm(s->w);
	rw_patch(s->w, &hf_healthpolicies, "p", "{'spec':{'mend':{'hold':null}}}");
	ra_calm(s->a);
	for (int i = 0; i < s->w->nodes; i++) {
		/* A hold begins in no node between approval and intent, but it may end there. */
		if (s->held[i] && !s->gone[i])
			change_hold(s, i);
		if (s->gone[i])
			continue;
		s->w->clock[i] = 0;
		rw_name(i, name);
		assert_non_null(rw_get(s->w, &hf_nodes, NULL, name));
	}
	rw_close_breaker(s->w, 1000);
	for (hf_time span = 0; span < CALM; span += HF_MINUTE) {
		/* A death of the last turn may come now. */
		if (s->w->op == NULL)
			rw_start(s->w);
		end_pods(s);
		rw_run(s->w, HF_MINUTE);
		/* Acts at the time of the calm end as they like. */
		for (int i = 0; i < s->w->nodes && span < HF_HOUR; i++)
			if (s->w->silent[i] && s->a->ends_at[i] == 0 && !s->gone[i])
				s->w->silent[i] = false;
	}
}

static void expect_end(unsigned seed, struct hf_doc *doc)
{
	const struct hf_json *json = hf_doc_json(doc);
	const char *phase = rs_phase_of(doc);
	bool began = hf_json_path(json, "status", "act", "startedAt", NULL) != NULL;

	if (began && !rs_is_final(doc))
		fail_msg("seed %u: %s began, and is %s: %s", seed, hf_doc_name(doc), phase,
			 hf_str_or(hf_json_path_str(json, "status", "message", NULL), ""));
	if (!rs_is_final(doc) && !hf_streq(phase, "Pending") && !hf_streq(phase, "Draining"))
		fail_msg("seed %u: %s is %s", seed, hf_doc_name(doc), phase);
	if (hf_streq(phase, "Succeeded") &&
	    hf_streq(rs_text_of(hf_doc_json(doc), "requestedBy"), "policy") &&
	    hf_json_path(json, "status", "proof", "time", NULL) == NULL)
		fail_msg("seed %u: %s succeeded without a proof", seed, hf_doc_name(doc));
	if (rs_is_final(doc) && hf_json_path(json, "metadata", "finalizers", NULL) != NULL)
		fail_msg("seed %u: %s is %s and has its finalizer", seed, hf_doc_name(doc), phase);
	if (hf_json_path(json, "metadata", "deletionTimestamp", NULL) != NULL)
		fail_msg("seed %u: %s is never deleted", seed, hf_doc_name(doc));
}

/* An ill node that is tainted waits for something that is shown. */
static void expect_shown(struct rs *s, unsigned seed, const struct rs_list *list, int node)
{
	char name[16];
	bool shown = false;

	rw_name(node, name);
	if (s->w->ill[node] == RW_WELL || s->w->ill[node] == RW_PROBATION ||
	    s->w->ill[node] == RW_UNSEEN || s->w->ill[node] == RW_SUSPECT ||
	    !rw_tainted(s->w, node))
		return;
	for (size_t i = 0; i < list->len; i++)
		shown |= hf_streq(rs_text_of(hf_doc_json(list->docs[i]), "node"), name) &&
			 (!rs_is_final(list->docs[i]) ||
			  hf_streq(rs_phase_of(list->docs[i]), "Cancelled"));
	/* State Failed needs a person by itself: no rung mends it. */
	if (!shown && s->w->ill[node] != RW_FAILED && s->w->ill[node] != RW_UNKNOWN) {
		char next[256];

		rw_next(s->w, node, next);
		/* A failed act of a person has quarantined it, or pods work on with its slow device. */
		if (strstr(next, "of-act") != NULL ||
		    (s->w->ill[node] == RW_SLOW && strstr(next, "undrainable") != NULL))
			return;
		rs_print_node(s, list, node);
		fail_msg("seed %u: %s is ill, and nothing is done or shown: %s", seed, name, next);
	}
}

static void expect_calm(struct rs *s, unsigned seed)
{
	struct rs_list list;

	rs_list_acts(s, &list);
	for (size_t i = 0; i < list.len; i++)
		expect_end(seed, list.docs[i]);
	for (int i = 0; i < s->w->nodes; i++) {
		bool open = false;
		char node[16];

		rw_name(i, node);
		for (size_t k = 0; k < list.len; k++)
			open |= hf_streq(rs_text_of(hf_doc_json(list.docs[k]), "node"), node) &&
				!rs_is_final(list.docs[k]);
		if (!open && ra_has_lease(s->a, i))
			fail_msg("seed %u: Lease holdfast-mend-%s is held by nothing", seed, node);
		if (!open && hf_node_is_in_maintenance(rw_get(s->w, &hf_nodes, NULL, node)))
			fail_msg("seed %u: %s is in maintenance, and no act is open", seed, node);
		expect_shown(s, seed, &list, i);
	}
	if (s->wide)
		rs_expect_clean(s, seed, &list);
	rs_drop_list(&list);
}

/* ---- one seed ------------------------------------------------------------------------------------ */

struct met {
	unsigned acts, mended, failed, cancelled, persons, deaths, lost, troubles;
	unsigned wild, external, rules; /* wild: seeds of the wild world */
};

static void add_met(struct met *met, const struct rs *s)
{
	met->acts += s->a->acts;
	met->mended += s->a->mended;
	met->failed += s->a->failed;
	met->cancelled += s->a->cancelled;
	met->persons += s->a->persons;
	met->deaths += s->w->met.deaths;
	met->lost += s->w->met.lost;
	met->troubles += s->troubles;
	if (s->wild == NULL)
		return;
	met->wild++;
	met->external += s->wild->fixes.creates;
	met->rules += s->wild->dra == NULL ? 0 : s->wild->dra->creates;
}

static void run_seed(void *arg, uint64_t number, unsigned world)
{
	struct met *met = arg;
	unsigned seed = (unsigned)number;
	bool is_wide = world != SEEDS_NARROW;
	struct rs s = {.wide = is_wide};
	char policy[1024];
	int at_once;

	rw_setup((void **)&s.w);
	hf_rng_init(&s.w->rng, seed);
	s.a = ra_create(s.w);
	s.w->people_ask = s.w->by_hand = true;
	at_once = 1 + (int)rs_pick(&s, 3);
	/* Acts without a policy have no budget. */
	s.a->at_once = -1;
	s.a->policy_at_once = at_once;
	snprintf(policy, sizeof(policy),
		 "{'mode':'remediate','mend':{'maxConcurrent':%d,'settleSeconds':%u,"
		 "'deadlineSeconds':%u}," WIDE "}",
		 at_once, rs_pick(&s, 20), 60 + rs_pick(&s, 600));
	if (is_wide)
		s.w->gpus = 1 + (int)rs_pick(&s, 4);
	if (world == SEEDS_WILD)
		rs_wild_create(&s, seed, policy);
	rw_begin(s.w, 4 + (int)rs_pick(&s, RS_NODES_MAX - 4), policy);
	if (is_wide) {
		rs_widen(&s);
		/* Each policy has its own limit: see rs_watch. */
		s.a->policy_at_once = 0;
		rs_watch(&s);
	}
	if (s.wild != NULL)
		rs_wild_begin(&s);
	for (int turn = 0; turn < TURNS; turn++) {
		disturb(&s);
		if (is_wide)
			rs_disturb_widely(&s);
		if (s.wild != NULL)
			rs_disturb_wildly(&s);
		rw_run(s.w, (hf_time)rs_pick(&s, 90) * HF_SECOND);
		end_pods(&s);
		if (s.w->op == NULL && rs_pick(&s, 3) > 0)
			rw_start(s.w);
	}
	if (s.wild != NULL)
		rs_calm_down_wildly(&s);
	if (is_wide)
		rs_calm_down_widely(&s, policy);
	calm_down(&s);
	expect_calm(&s, seed);
	if (s.wild != NULL)
		rs_wild_expect_end(&s, seed);
	add_met(met, &s);
	if (s.wild != NULL)
		rs_wild_destroy(&s);
	if (is_wide)
		rs_unwatch(&s);
	rw_teardown((void **)&s.w);
}

static void each_act_ends_in_proof_climb_or_person(void **state)
{
	struct met met = {0};

	(void)state;
	seeds_run(&seeds, run_seed, &met);
	print_message("%u seeds: %u troubles, %u acts, %u mended, %u failed, %u cancelled, %u for "
		      "persons, %u deaths, %u replies lost\n",
		      seeds.count, met.troubles, met.acts, met.mended, met.failed, met.cancelled,
		      met.persons, met.deaths, met.lost);
	print_message(
		"%u seeds of the wild world: %u objects of rung external, %u rules of devices\n",
		met.wild, met.external, met.rules);
	/* That nothing broke means nothing where nothing was met. */
	assert_true(met.wild < 20 || (met.external > 0 && met.rules > 0));
	assert_true(seeds.count < 20 || (met.acts > seeds.count && met.mended > seeds.count &&
					 met.failed > seeds.count / 2 && met.cancelled > 0 &&
					 met.persons > 0 && met.deaths > 0 && met.lost > 0));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_act_ends_in_proof_climb_or_person),
	};

	if (!seeds_read_args(argc, argv, 3, &seeds))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
