/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy_dra_store.h"
#include "sim/remedy.h"
#include "sim/seeds.h"

#include "base/str.h"
#include "store/resource.h"

#include <stdio.h>
#include <string.h>

/*
 * Single devices out of use under random trouble, each schedule from one seed: devices that fail, recover and relapse,
 * a DRA driver that goes, comes back, renames its devices and rewrites its pool in parts, people who delete and edit
 * rules, marks and taints, policies that change between Node and Device, operators that die, a second leader, lost
 * requests and slow replies.
 *
 * Invariants: each rule names exactly one device, which is the failed one; no more nodes are out than the budget
 * allows. After a calm time exactly the failed devices are out of use, and once all are well nothing is left.
 *
 *   device_swarm [--corpus FILE] [--start S] [--seeds N] [--wide 0|1|2]
 *
 * The seeds of the corpus run first. In the wide world drivers also publish partitions, PCI addresses in the place of
 * UUIDs, slices of an older generation and devices of a second driver; pools get other names; and the cluster serves
 * another version of the rules after an upgrade. In the wild world several GPUs of a node fail and recover one by one, and
 * the agent loses the UUIDs of sick GPUs.
 */

#define NODES_MAX 16
/* Trouble comes to so many nodes, at most; the others are well, so neither the breaker nor a wide budget holds anything. */
#define TROUBLED_MAX 6
#define GPUS 4
#define DRIVER "gpu.example.com"
#define TURNS 50
/* So long after a change a request may still tell of the time before. */
#define LATE (15 * HF_SECOND)
#define DEVICE "{'mode':'quarantine','quarantine':'Device'," WIDE "}"

static struct seeds seeds = {.start = 1, .count = 60};

/* What the DRA driver of a node publishes. */
struct published {
	bool away, split, half; /* half: the second of two slices is missing */
	int generation;
	int names
		[GPUS]; /* GPU i has the name gpu-NUMBER; GPU 0 is the one that the agent reports */
	bool gone;      /* GPU 0 is not published */
	hf_time changed_at;
	/* Of the wide world alone. */
	int partitions;  /* GPU 0 is published as so many partitions; 0: as one device */
	bool by_address; /* a PCI address in the place of the UUID */
	bool old_slice;  /* a slice of the generation before is left */
	bool twice;      /* a second driver publishes GPU 0 too */
	int pool;        /* number in the name of the pool; 0: none */
	/* Of the wild world alone. */
	hf_time sick_at; /* when other GPUs became sick */
};

struct swarm {
	struct rw *w;
	struct dra *dra;
	struct published nodes[NODES_MAX];
	hf_time well_at[NODES_MAX]; /* when the device recovered */
	bool flips;                 /* the policy changes between Node and Device */
	bool by_hand;               /* people change rules, taints and marks */
	int budget;                 /* -1: wide */
	int troubled;
	unsigned rules, troubles;
	bool wide, wild;
};

static unsigned pick(struct swarm *s, unsigned below)
{
	return rw_pick(s->w, below);
}

static hf_time read_clock(const struct swarm *s)
{
	return hf_loop_mono(s->w->loop);
}

/* ---- the DRA driver ------------------------------------------------------------------------------ */

static void add_device(char devices[2048], const char *name, const char *key, const char *value)
{
	snprintf(devices + strlen(devices), 2048 - strlen(devices),
		 "%s{'name':'%s','attributes':{'%s':{'string':'%s'}}}", *devices == '\0' ? "" : ",",
		 name, key, value);
}

static void add_gpu(const struct published *p, const char *node, int gpu, char devices[2048])
{
	char name[32], uuid[24], address[24];

	snprintf(uuid, sizeof(uuid), gpu == 0 ? "GPU-%s" : "GPU-%s-%d", node, gpu);
	snprintf(address, sizeof(address), "0000:%X:00.0", 0x1a + gpu);
	snprintf(name, sizeof(name), "gpu-%d", p->names[gpu]);
	if (gpu > 0 || p->partitions == 0) {
		add_device(devices, name,
			   p->by_address ? "resource.kubernetes.io/pciBusID" : "uuid",
			   p->by_address ? address : uuid);
		return;
	}
	for (int i = 0; i < p->partitions; i++) {
		snprintf(name, sizeof(name), "gpu-%d-mig-%d", p->names[gpu], i);
		add_device(devices, name, "parentUUID", uuid);
	}
}

static void print_pool(const struct swarm *s, int node, char pool[24])
{
	char name[16];

	rw_name(node, name);
	snprintf(pool, 24, s->nodes[node].pool == 0 ? "%s" : "%s-%d", name, s->nodes[node].pool);
}

static void publish_slice(struct swarm *s, int node, const char *driver, int part, int parts,
			  int generation)
{
	const struct published *p = &s->nodes[node];
	char name[16], pool[24], devices[2048] = "", text[3072];

	rw_name(node, name);
	print_pool(s, node, pool);
	for (int i = 0; i < GPUS; i++)
		if (i % parts == part && !(i == 0 && p->gone))
			add_gpu(p, name, i, devices);
	snprintf(text, sizeof(text),
		 "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceSlice','metadata':{'name':"
		 "'s-%s-%d-%d','uid':'u-%s-%d','resourceVersion':'1'},'spec':{'driver':'%s',"
		 "'nodeName':'%s','pool':{'name':'%s','generation':%d,'resourceSliceCount':%d},"
		 "'devices':[%s]}}",
		 name, part, generation, name, part, driver, name, pool, generation, parts,
		 devices);
	dra_publish_more(s->dra, text);
}

static void publish(struct swarm *s, int node)
{
	struct published *p = &s->nodes[node];
	char name[16];

	rw_name(node, name);
	p->changed_at = read_clock(s);
	dra_publish(s->dra, name, NULL);
	if (p->away)
		return;
	p->generation++;
	if (p->old_slice)
		publish_slice(s, node, DRIVER, 0, 1, p->generation - 1);
	publish_slice(s, node, DRIVER, 0, p->split ? 2 : 1, p->generation);
	if (p->split && !p->half)
		publish_slice(s, node, DRIVER, 1, 2, p->generation);
	if (p->twice)
		publish_slice(s, node, "second.example.com", 0, 1, p->generation);
}

static void rename_devices(struct swarm *s, int node)
{
	struct published *p = &s->nodes[node];
	int a = (int)pick(s, GPUS), b = (int)pick(s, GPUS), other = p->names[a];

	p->names[a] = p->names[b];
	p->names[b] = other;
	publish(s, node);
}

static void change_driver(struct swarm *s, int node)
{
	struct published *p = &s->nodes[node];

	p->away = !p->away;
	publish(s, node);
}

static void change_parts(struct swarm *s, int node)
{
	struct published *p = &s->nodes[node];

	p->split = pick(s, 2) == 0;
	p->half = pick(s, 2) == 0;
	publish(s, node);
}

static void change_gone(struct swarm *s, int node)
{
	struct published *p = &s->nodes[node];

	p->gone = !p->gone;
	publish(s, node);
}

static void change_partitions(struct swarm *s, int node)
{
	s->nodes[node].partitions = s->nodes[node].partitions > 0 ? 0 : 1 + (int)pick(s, 3);
	publish(s, node);
}

static void change_attributes(struct swarm *s, int node)
{
	s->nodes[node].by_address = !s->nodes[node].by_address;
	publish(s, node);
}

static void change_old_slice(struct swarm *s, int node)
{
	s->nodes[node].old_slice = !s->nodes[node].old_slice;
	rename_devices(s, node);
}

static void change_second_driver(struct swarm *s, int node)
{
	s->nodes[node].twice = !s->nodes[node].twice;
	publish(s, node);
}

static void change_pool(struct swarm *s, int node)
{
	s->nodes[node].pool = (int)pick(s, 3);
	publish(s, node);
}

/* An upgrade of the control plane. Until the operator starts again it asks for the former version. */
static void change_version(struct swarm *s, int node)
{
	(void)node;
	if (s->w->second != NULL)
		rw_change_leaders(s->w);
	rw_stop(s->w);
	s->dra->serves = pick(s, 2) == 0 ? "v1" : "v1beta2";
}

/* ---- what must hold ------------------------------------------------------------------------------ */

static const char *effect_of(const struct hf_json *rule)
{
	return hf_str_or(hf_json_path_str(rule, "spec", "taint", "effect", NULL), "");
}

static const char *node_of(const struct hf_json *rule)
{
	return hf_json_path_str(rule, "metadata", "annotations", "holdfast.dev/node", NULL);
}

static bool is_sick(const struct swarm *s, int node)
{
	return s->w->ill[node] != RW_WELL && s->w->ill[node] != RW_PLUGIN;
}

/* If the node is sick, this GPU of it is. */
static bool is_sick_gpu(const struct swarm *s, int node, int gpu)
{
	unsigned sick = s->w->sick[node] == 0 ? 1 : s->w->sick[node];

	return (sick >> gpu & 1) != 0;
}

static bool has_rule(struct swarm *s, int node)
{
	char name[16];

	rw_name(node, name);
	for (size_t i = 0; i < s->dra->rules_len; i++)
		if (hf_streq(node_of(hf_doc_json(s->dra->rules[i])), name) &&
		    !hf_streq(effect_of(hf_doc_json(s->dra->rules[i])), "None"))
			return true;
	return false;
}

static bool exists(struct swarm *s, int node)
{
	char name[16];

	rw_name(node, name);
	return rw_get(s->w, &hf_nodes, NULL, name) != NULL;
}

static int count_out(struct swarm *s)
{
	int out = 0;

	for (int i = 0; i < s->w->nodes; i++)
		/* The rule of a device that is well is deleted soon. */
		out += exists(s, i) && ((has_rule(s, i) && is_sick(s, i)) || rw_tainted(s->w, i));
	return out;
}

/* The name of the device, or of a partition of it. */
static bool is_wanted(const char *device, const char *wanted)
{
	size_t len = strlen(wanted);

	return device != NULL && strncmp(device, wanted, len) == 0 &&
	       (device[len] == '\0' || device[len] == '-');
}

/* The device is a sick GPU of the node, or a partition of one. */
static bool is_failed(const struct swarm *s, int node, const char *device)
{
	char wanted[16];

	for (int i = 0; i < GPUS; i++) {
		snprintf(wanted, sizeof(wanted), "gpu-%d", s->nodes[node].names[i]);
		if (is_sick_gpu(s, node, i) && is_wanted(device, wanted))
			return true;
	}
	return false;
}

/* The operator has created or changed the rule. */
static void check_rule(void *arg, const struct hf_json *rule)
{
	struct swarm *s = arg;
	const char *name = node_of(rule);
	const char *device = hf_json_path_str(rule, "spec", "deviceSelector", "device", NULL);
	int node = rw_index_of(s->w, name);
	const struct published *p = &s->nodes[node];

	s->rules++;
	/* A name that is not published selects nothing. */
	if (!p->away && !p->gone && !p->half && !is_failed(s, node, device) &&
	    read_clock(s) - p->changed_at > LATE && read_clock(s) - p->sick_at > LATE)
		rw_break(s->w, "a rule selects another device than the failed one", name);
	if (!is_sick(s, node) && read_clock(s) - s->well_at[node] > LATE)
		rw_break(s->w, "a rule selects a device that is well", name);
	if (s->budget >= 0 && count_out(s) > s->budget)
		rw_break(s->w, "more nodes are out than the budget allows", name);
}

/* ---- trouble ------------------------------------------------------------------------------------- */

static void say(struct swarm *s, int node, int ill)
{
	if (is_sick(s, node) && (ill == RW_WELL || ill == RW_PLUGIN))
		s->well_at[node] = read_clock(s);
	rw_say(s->w, node, ill);
}

static void fall_ill(struct swarm *s, int node)
{
	static const int ills[] = {RW_RESET,  RW_RESET,   RW_REBOOT, RW_FAILED,
				   RW_PLUGIN, RW_UNKNOWN, RW_SLOW,   RW_SUSPECT};

	say(s, node, ills[pick(s, HF_ARRAY_LEN(ills))]);
}

static void get_well(struct swarm *s, int node)
{
	say(s, node, pick(s, 3) == 0 ? RW_PROBATION : RW_WELL);
}

static void delete_rule(struct swarm *s, int node)
{
	(void)node;
	if (s->by_hand && s->dra->rules_len > 0)
		dra_remove_rule(s->dra, pick(s, (unsigned)s->dra->rules_len));
}

static void edit_rule(struct swarm *s, int node)
{
	static const char *const texts[] = {
		"{'spec':{'taint':{'effect':'None'}}}", "{'spec':{'taint':{'effect':'NoExecute'}}}",
		"{'spec':{'taint':{'value':'mine'}}}", "{'metadata':{'labels':{'team':'a'}}}"};

	(void)node;
	if (s->by_hand && s->dra->rules_len > 0)
		dra_edit_rule(s->dra, pick(s, (unsigned)s->dra->rules_len),
			      texts[pick(s, HF_ARRAY_LEN(texts))]);
}

static void take_mark_off(struct swarm *s, int node)
{
	/* A taint without the mark is a person's. */
	if (s->by_hand && !rw_tainted(s->w, node))
		rw_patch_node(s->w, node, UNMARKED);
}

static void take_taint_off(struct swarm *s, int node)
{
	if (s->by_hand)
		rw_patch_node(s->w, node, UNTAINTED);
}

static void change_pause(struct swarm *s, int node)
{
	rw_patch_node(s->w, node,
		      pick(s, 2) == 0 ? "{'metadata':{'annotations':{'holdfast.dev/hold':'yes'}}}"
				      : "{'metadata':{'annotations':{'holdfast.dev/hold':null}}}");
}

static void change_policy(struct swarm *s, int node)
{
	static const char *const texts[] = {
		"{'spec':{'quarantine':'Node'}}",   "{'spec':{'quarantine':'Device'}}",
		"{'spec':{'quarantine':'Device'}}", "{'spec':{'mode':'observe'}}",
		"{'spec':{'mode':'quarantine'}}",   "{'spec':{'mode':'quarantine'}}",
		"{'spec':{'paused':true}}",         "{'spec':{'paused':false}}"};

	(void)node;
	if (s->flips)
		rw_patch(s->w, &hf_healthpolicies, "p", texts[pick(s, HF_ARRAY_LEN(texts))]);
}

static void kill_operator(struct swarm *s, int node)
{
	(void)node;
	if (pick(s, 2) == 0) {
		rw_kill_soon(s->w);
		return;
	}
	rw_run(s->w, (hf_time)pick(s, 200) * HF_MS);
	rw_stop(s->w);
}

static void change_leaders(struct swarm *s, int node)
{
	(void)node;
	rw_change_leaders(s->w);
}

static void change_losses(struct swarm *s, int node)
{
	(void)node;
	s->w->refuse_permille = s->dra->lose_permille = pick(s, 2) * 150;
	s->dra->delay = pick(s, 2) == 0 ? HF_MS : (hf_time)pick(s, 3000) * HF_MS;
}

static void refuse_rules(struct swarm *s, int node)
{
	(void)node;
	s->dra->refuse_rules = pick(s, 3) == 0 ? HF_E_FORBIDDEN : 0;
}

static void reboot(struct swarm *s, int node)
{
	char text[128], boot[40], name[16];

	s->w->boots[node]++;
	rw_boot_id(s->w, node, boot);
	rw_name(node, name);
	snprintf(text, sizeof(text), "{'status':{'nodeInfo':{'bootID':'%s'}}}", boot);
	rw_patch_status(s->w, &hf_nodes, name, text);
	rw_run(s->w, (hf_time)pick(s, 60) * HF_SECOND);
	say(s, node, pick(s, 2) == 0 ? s->w->ill[node] : RW_WELL);
}

/* The garbage collector deletes the rules of a Node that is gone. */
static void renew_node(struct swarm *s, int node)
{
	char name[16], boot[40], text[128];

	rw_name(node, name);
	rw_delete(s->w, &hf_nodes, name);
	rw_run(s->w, (hf_time)pick(s, 20) * HF_SECOND);
	for (size_t i = s->dra->rules_len; i > 0; i--)
		if (hf_streq(node_of(hf_doc_json(s->dra->rules[i - 1])), name))
			dra_remove_rule(s->dra, i - 1);
	rw_node(s->w, node);
	rw_boot_id(s->w, node, boot);
	snprintf(text, sizeof(text), "{'status':{'nodeInfo':{'bootID':'%s'}}}", boot);
	rw_patch_status(s->w, &hf_nodes, name, text);
}

static void disturb(struct swarm *s)
{
	static void (*const troubles[])(struct swarm *, int) = {
		fall_ill,       fall_ill,       fall_ill,       get_well,       get_well,
		rename_devices, rename_devices, change_driver,  change_parts,   change_gone,
		delete_rule,    edit_rule,      take_mark_off,  take_taint_off, change_pause,
		change_policy,  kill_operator,  change_leaders, change_losses,  refuse_rules,
		reboot,         renew_node};

	s->troubles++;
	troubles[pick(s, HF_ARRAY_LEN(troubles))](s, (int)pick(s, (unsigned)s->troubled));
}

static void disturb_widely(struct swarm *s)
{
	static void (*const troubles[])(struct swarm *, int) = {
		change_partitions, change_attributes, change_old_slice, change_second_driver,
		change_pool,       change_version,    fall_ill,         get_well};

	troubles[pick(s, HF_ARRAY_LEN(troubles))](s, (int)pick(s, (unsigned)s->troubled));
}

static void change_sick(struct swarm *s, int node)
{
	s->nodes[node].sick_at = read_clock(s);
	s->w->sick[node] = 1 + pick(s, (1u << GPUS) - 1);
	say(s, node, s->w->ill[node]);
}

static void change_names(struct swarm *s, int node)
{
	s->w->unnamed[node] = !s->w->unnamed[node];
	rw_report(s->w, node);
}

static void disturb_wildly(struct swarm *s)
{
	static void (*const troubles[])(struct swarm *, int) = {change_sick, change_sick,
								change_sick, change_names};

	troubles[pick(s, HF_ARRAY_LEN(troubles))](s, (int)pick(s, (unsigned)s->troubled));
}

/* ---- after the calm ------------------------------------------------------------------------------ */

static void calm_down(struct swarm *s)
{
	s->dra->lose_permille = 0;
	s->dra->delay = HF_MS;
	s->dra->refuse_rules = 0;
	rw_calm(s->w);
	rw_patch(s->w, &hf_healthpolicies, "p",
		 "{'spec':{'quarantine':'Device','mode':'quarantine','paused':false}}");
	for (int i = 0; i < s->w->nodes; i++) {
		struct published *p = &s->nodes[i];

		rw_patch_node(s->w, i, "{'metadata':{'annotations':{'holdfast.dev/hold':null}}}");
		p->away = p->half = p->gone = p->twice = false;
		publish(s, i);
	}
}

static void run_calm(struct swarm *s, hf_time span)
{
	for (hf_time at = 0; at < span; at += HF_MINUTE) {
		if (s->w->op == NULL)
			rw_start(s->w);
		rw_run(s->w, HF_MINUTE);
	}
}

static const char *note_of(struct swarm *s, const struct hf_resource *resource, int node,
			   const char *annotation)
{
	char name[16];

	rw_name(node, name);
	return hf_json_path_str(rw_get(s->w, resource, NULL, name), "metadata", "annotations",
				annotation, NULL);
}

/* The rule selects what the driver publishes of this GPU. If the agent has lost the UUID of a GPU, the rule for a device
 * that is not published any more stays, and selects nothing. */
static bool selects(const struct swarm *s, const struct hf_json *rule, int node, int gpu)
{
	const struct published *p = &s->nodes[node];
	const struct hf_json *selector = hf_json_path(rule, "spec", "deviceSelector", NULL);
	const char *device = hf_json_path_str(selector, "device", NULL);
	char wanted[16], pool[24];

	snprintf(wanted, sizeof(wanted), "gpu-%d", p->names[gpu]);
	print_pool(s, node, pool);
	return hf_streq(hf_json_path_str(selector, "driver", NULL), DRIVER) &&
	       hf_streq(hf_json_path_str(selector, "pool", NULL), pool) &&
	       (gpu == 0 && p->partitions > 0
			? !hf_streq(device, wanted) && is_wanted(device, wanted)
			: hf_streq(device, wanted));
}

/* How many rules of the node select this GPU, or partitions of it; -1: every GPU. Sets ret_wrong if the effect of one is not
 * NoSchedule. */
static size_t count_rules(struct swarm *s, int node, int gpu, bool *ret_wrong)
{
	char name[16];
	size_t count = 0;

	rw_name(node, name);
	for (size_t i = 0; i < s->dra->rules_len; i++) {
		const struct hf_json *rule = hf_doc_json(s->dra->rules[i]);

		if (!hf_streq(node_of(rule), name) || (gpu >= 0 && !selects(s, rule, node, gpu)))
			continue;
		count++;
		*ret_wrong |= !hf_streq(effect_of(rule), "NoSchedule");
	}
	return count;
}

static void expect_out(struct swarm *s, unsigned seed, int node)
{
	const char *mark = note_of(s, &hf_nodes, node, "holdfast.dev/quarantine");
	const char *out = note_of(s, &hf_devicehealths, node, "holdfast.dev/devices-out");
	bool wrong = false, of_any = false;
	size_t all = count_rules(s, node, -1, &of_any);
	char next[256];

	rw_next(s->w, node, next);
	/* A node that is out as a whole stays so until its release. */
	if (rw_tainted(s->w, node) && all == 0)
		return;
	for (int i = 0; i < GPUS; i++) {
		int parts = i == 0 ? s->nodes[node].partitions : 0;
		size_t expected = !is_sick_gpu(s, node, i) ? 0 : parts == 0 ? 1 : (size_t)parts;
		size_t count = count_rules(s, node, i, &wrong);

		/* Partitions name their GPU by a UUID that the agent does not know. */
		if (parts > 0 && s->w->unnamed[node])
			continue;
		if (count != expected || wrong || out == NULL)
			fail_msg(
				"seed %u: n%03d has failed (%s): %zu of %zu rules for GPU %d, %s effect, "
				"%s, mark %s, devices-out %s, next %s",
				seed, node, rw_ills[s->w->ill[node]].state, count, expected, i,
				wrong ? "wrong" : "right",
				rw_tainted(s->w, node) ? "tainted" : "no taint",
				hf_str_or(mark, "-"), hf_str_or(out, "-"), next);
	}
}

static void expect_clean(struct swarm *s, unsigned seed, int node)
{
	bool wrong = false;
	size_t count = count_rules(s, node, -1, &wrong);
	const char *mark = note_of(s, &hf_nodes, node, "holdfast.dev/quarantine");
	const char *out = note_of(s, &hf_devicehealths, node, "holdfast.dev/devices-out");
	char next[256];

	rw_next(s->w, node, next);
	/* The mark of a quarantine that a person has ended stays, with the time of it. */
	if (mark != NULL && strstr(mark, "takenOff") != NULL)
		mark = NULL;
	if (count > 0 || rw_tainted(s->w, node) || mark != NULL || out != NULL)
		fail_msg("seed %u: n%03d is well: %zu rules, %s, mark %s, devices-out %s, next %s",
			 seed, node, count, rw_tainted(s->w, node) ? "tainted" : "no taint",
			 hf_str_or(mark, "-"), hf_str_or(out, "-"), next);
}

static void expect_calm(struct swarm *s, unsigned seed)
{
	static const int ills[] = {RW_WELL, RW_RESET, RW_REBOOT};
	unsigned long long writes;

	run_calm(s, HF_MINUTE);
	for (int i = 0; i < s->troubled; i++)
		say(s, i, ills[pick(s, 3)]);
	run_calm(s, 14 * HF_HOUR);
	for (int i = 0; i < s->w->nodes; i++)
		if (!is_sick(s, i))
			expect_clean(s, seed, i);
		else if (s->budget < 0)
			expect_out(s, seed, i);
	writes = s->w->writes;
	run_calm(s, HF_HOUR);
	if (s->w->writes - writes > 50)
		fail_msg("seed %u: %llu writes in a quiet hour", seed, s->w->writes - writes);
	for (int i = 0; i < s->w->nodes; i++)
		say(s, i, RW_WELL);
	run_calm(s, 2 * HF_HOUR);
	for (int i = 0; i < s->w->nodes; i++)
		expect_clean(s, seed, i);
}

/* ---- one seed ------------------------------------------------------------------------------------ */

struct met {
	unsigned rules, changes, deletes, deaths, lost, troubles;
};

static void run_seed(void *arg, uint64_t number, unsigned world)
{
	struct met *met = arg;
	unsigned seed = (unsigned)number;
	struct swarm s = {.wide = world != SEEDS_NARROW, .wild = world == SEEDS_WILD};
	int nodes;

	rw_setup((void **)&s.w);
	hf_rng_init(&s.w->rng, seed);
	s.dra = dra_create(s.w);
	s.dra->rng = &s.w->rng;
	s.dra->put = check_rule;
	s.dra->put_arg = &s;
	s.w->people_ask = true;
	s.flips = pick(&s, 2) == 0;
	s.by_hand = pick(&s, 2) == 0;
	s.budget = pick(&s, 2) == 0 && !s.by_hand && !s.flips ? 1 + (int)pick(&s, 2) : -1;
	s.w->by_hand = true;
	s.w->gpus = s.wild ? GPUS : 0;
	nodes = NODES_MAX;
	s.troubled = 1 + (int)pick(&s, TROUBLED_MAX);
	rw_fleet(s.w, nodes);
	for (int i = 0; i < nodes; i++) {
		for (int k = 0; k < GPUS; k++)
			s.nodes[i].names[k] = k;
		publish(&s, i);
	}
	if (s.budget >= 0) {
		char policy[256];

		snprintf(policy, sizeof(policy),
			 "{'mode':'quarantine','quarantine':'Device','budget':{'maxUnavailable':{"
			 "'count':%d},'maxQuarantines':{'count':60}},'breaker':{'percent':100}}",
			 s.budget);
		rw_policy(s.w, policy);
	} else {
		rw_policy(s.w, DEVICE);
	}
	rw_start(s.w);
	rw_run(s.w, 5 * HF_SECOND);
	for (int turn = 0; turn < TURNS; turn++) {
		disturb(&s);
		if (s.wide)
			disturb_widely(&s);
		if (s.wild)
			disturb_wildly(&s);
		rw_run(s.w, (hf_time)pick(&s, 90) * HF_SECOND);
		if (s.w->op == NULL && pick(&s, 3) > 0)
			rw_start(s.w);
	}
	calm_down(&s);
	expect_calm(&s, seed);
	met->rules += s.rules;
	met->changes += s.dra->changes;
	met->deletes += s.dra->deletes;
	met->deaths += s.w->met.deaths;
	met->lost += s.w->met.lost;
	met->troubles += s.troubles;
	rw_teardown((void **)&s.w);
}

static void exactly_the_failed_devices_are_out(void **state)
{
	struct met met = {0};

	(void)state;
	seeds_run(&seeds, run_seed, &met);
	print_message("%u seeds: %u troubles, %u rules written, %u changed, %u deleted, %u deaths, "
		      "%u replies lost\n",
		      seeds.count, met.troubles, met.rules, met.changes, met.deletes, met.deaths,
		      met.lost);
	/* That nothing broke means nothing where nothing was met. */
	assert_true(seeds.count < 20 ||
		    (met.rules > seeds.count && met.changes > 0 && met.deletes > seeds.count / 2 &&
		     met.deaths > 0 && met.lost > 0));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exactly_the_failed_devices_are_out),
	};

	if (!seeds_read_args(argc, argv, 3, &seeds))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
