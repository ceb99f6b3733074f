/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/golden.h"

#include "base/str.h"
#include "health/dra_devices.h"
#include "harness/health_plan_text.h"
#include "harness/test.h"

/* What would be done about the nodes of a fleet: see README.md. */

#define NOW (1000 * HF_DAY)
#define NODES_MAX 64
#define SLICES_MAX 8

static struct hf_health_attempt attempts[NODES_MAX][HF_HEALTH_ATTEMPTS_MAX];

/* `key` seconds ago. */
static hf_time ago(const struct hf_json *json, const char *key, hf_time fallback)
{
	const struct hf_json *value = hf_json_get(json, key);

	return value == NULL ? fallback : NOW - hf_json_i64(value, 0) * HF_SECOND;
}

static bool flag(const struct hf_json *json, const char *key, bool fallback)
{
	return hf_json_true(hf_json_get(json, key), fallback);
}

static enum hf_health_action action_of(const struct hf_json *json)
{
	enum hf_health_action action = HF_HEALTH_RECORD;
	const char *word = hf_json_path_str(json, "action", NULL);

	assert_true(word == NULL || hf_health_action_of(word, &action));
	return action;
}

static void read_attempts(const struct hf_json *json, size_t i, struct hf_health_node *node)
{
	const struct hf_json *list = hf_json_get(json, "tried");
	const struct hf_json *running = hf_json_get(json, "running");

	node->attempts = attempts[i];
	node->attempts_len = hf_json_len(list);
	assert_true(node->attempts_len <= HF_HEALTH_ATTEMPTS_MAX);
	for (size_t a = 0; a < node->attempts_len; a++) {
		const struct hf_json *item = hf_json_item(list, a);

		attempts[i][a] = (struct hf_health_attempt){.action = action_of(item),
							    .at = ago(item, "ago", NOW),
							    .failed = flag(item, "failed", false)};
	}
	if (running != NULL) {
		node->running = action_of(running);
		node->running_since = ago(running, "ago", NOW);
	}
}

static void read_node(const struct hf_json *json, size_t i, struct hf_health_node *node)
{
	const char *state = hf_json_path_str(json, "state", NULL);
	const char *cls = hf_json_path_str(json, "class", NULL);

	*node = (struct hf_health_node){
		.name = hf_json_path_str(json, "name", NULL),
		.domain = hf_str_or(hf_json_path_str(json, "domain", NULL), ""),
		.job = hf_str_or(hf_json_path_str(json, "job", NULL), ""),
		.state = HF_HEALTH_HEALTHY,
		.action = action_of(json),
		.evidence_at = ago(json, "seen", cls == NULL ? HF_TIME_NONE : NOW - HF_MINUTE),
		.began_at = ago(json, "began", HF_TIME_NONE),
		.observed_at =
			flag(json, "unheard", false) ? HF_TIME_NONE : ago(json, "heard", NOW),
		.awaited = flag(json, "awaited", false),
		.same_boot = flag(json, "sameBoot", true),
		.foreign = flag(json, "foreign", false),
		.held = flag(json, "held", false),
		.no_remedy = flag(json, "noRemedy", false),
		.of_act = flag(json, "ofAct", false),
		.excluded = flag(json, "excluded", false),
		.by_pods = flag(json, "byPods", false),
		.rest_well = flag(json, "restWell", false),
		.device_busy = flag(json, "busy", false),
		.undrainable = flag(json, "undrainable", false),
		.not_before = NOW + hf_json_i64(hf_json_get(json, "refused"), 0) * HF_SECOND,
		.weighed = flag(json, "weighed", false),
		.replaceable = flag(json, "replaceable", true),
		.owned = hf_json_get(json, "owned") != NULL,
		.owned_at = ago(json, "owned", HF_TIME_NONE),
	};
	node->unavailable = node->owned || node->foreign;
	assert_true(state == NULL || hf_health_state_of(state, &node->state));
	assert_true(cls == NULL || hf_health_class_of(cls, &node->cls));
	read_attempts(json, i, node);
}

static void read_policy(const struct hf_json *json, struct hf_health_policy *policy)
{
	const char *mode = hf_str_or(hf_json_path_str(json, "mode", NULL), "remediate");

	*policy = hf_health_policy_default;
	for (int m = HF_HEALTH_OBSERVE; m <= HF_HEALTH_REMEDIATES; m++)
		if (hf_streq(mode, hf_health_mode_name((enum hf_health_mode)m)))
			policy->mode = (enum hf_health_mode)m;
	policy->paused = flag(json, "paused", false);
	policy->concurrent = (int32_t)hf_json_i64(hf_json_get(json, "concurrent"), 1);
	policy->per_domain = (int32_t)hf_json_i64(hf_json_get(json, "perDomain"), 0);
	policy->unavailable.count = (int32_t)hf_json_i64(hf_json_get(json, "unavailable"), 10);
	policy->unavailable.percent = -1;
	policy->quarantines.count = (int32_t)hf_json_i64(hf_json_get(json, "quarantines"), 5);
	policy->breaker.percent = -1;
	policy->breaker.count = (int32_t)hf_json_i64(hf_json_get(json, "breaker"), 20);
}

/* ---- one device of DRA -------------------------------------------------------------------------- */

static struct hf_dra_device devices[SLICES_MAX][NODES_MAX];

static void read_slice(const struct hf_json *json, size_t at, struct hf_dra_slice *slice)
{
	const struct hf_json *list = hf_json_get(json, "devices");

	*slice =
		(struct hf_dra_slice){.driver = hf_json_path_str(json, "driver", NULL),
				      .pool = hf_json_path_str(json, "pool", NULL),
				      .generation = hf_json_i64(hf_json_get(json, "generation"), 0),
				      .pool_slices = hf_json_i64(hf_json_get(json, "slices"), 1),
				      .devices = devices[at],
				      .len = hf_json_len(list)};
	assert_true(slice->len <= NODES_MAX);
	for (size_t i = 0; i < slice->len; i++) {
		const struct hf_json *item = hf_json_item(list, i);

		devices[at][i] = (struct hf_dra_device){
			.name = hf_json_path_str(item, "name", NULL),
			.uuid = hf_json_path_str(item, "uuid", NULL),
			.pci = hf_json_path_str(item, "pci", NULL),
			.parent_uuid = hf_json_path_str(item, "parent", NULL)};
	}
}

static void find_devices(const struct golden_file *file, struct hf_strbuf *sb)
{
	const struct hf_json *list = hf_json_get(file->root, "slices");
	const struct hf_json *wanted = hf_json_get(file->root, "find");
	struct hf_dra_match matches[HF_DRA_MATCHES_MAX];
	struct hf_dra_slice slices[SLICES_MAX];
	size_t len = hf_json_len(list), found;

	assert_true(len <= SLICES_MAX);
	for (size_t i = 0; i < len; i++)
		read_slice(hf_json_item(list, i), i, &slices[i]);
	for (size_t i = 0; i < hf_json_len(wanted); i++) {
		const struct hf_json *item = hf_json_item(wanted, i);
		const char *uuid = hf_json_path_str(item, "uuid", NULL);
		const char *pci = hf_json_path_str(item, "pci", NULL);
		enum hf_dra_answer answer = hf_dra_find(slices, len, uuid, pci, matches, &found);

		hf_strbuf_addf(sb, "- %s: ", hf_str_or(uuid, hf_str_or(pci, "-")));
		if (answer != HF_DRA_FOUND)
			hf_strbuf_addstr(sb, hf_dra_answer_text(answer));
		for (size_t k = 0; k < found; k++)
			hf_strbuf_addf(sb, "%s%s/%s/%s", k > 0 ? ", " : "", matches[k].driver,
				       matches[k].pool, matches[k].device);
		hf_strbuf_addstr(sb, "\n");
	}
}

/* ---- the plan of a fleet ------------------------------------------------------------------------- */

static void decide(const struct golden_file *file, struct hf_strbuf *sb)
{
	const struct hf_json *list = hf_json_get(file->root, "nodes");
	const struct hf_json *breaker = hf_json_get(file->root, "breaker");
	HF_AUTO_ARENA arena = hf_arena_create((size_t)1 << 20);
	static struct hf_health_node nodes[NODES_MAX];
	struct hf_health_policy policy;
	struct hf_health_fleet_plan plan;
	struct hf_error err = {0};
	struct hf_health_fleet fleet = {
		.now = NOW,
		.nodes = nodes,
		.nodes_len = hf_json_len(list),
		.selected = 100,
		.room = (int32_t)hf_json_i64(hf_json_get(file->root, "room"), -1),
		.breaker = {.tripped = flag(breaker, "open", false),
			    .closed_at = ago(breaker, "closed", HF_TIME_NONE)}};

	assert_true(fleet.nodes_len <= NODES_MAX);
	for (size_t i = 0; i < fleet.nodes_len; i++)
		read_node(hf_json_item(list, i), i, &nodes[i]);
	read_policy(hf_json_get(file->root, "policy"), &policy);
	assert_ok(hf_health_fleet_decide(&fleet, &policy, arena, &plan, &err), &err);
	hf_health_fleet_render(&plan, sb);
}

static void actual(const struct golden_file *file, struct hf_strbuf *sb)
{
	if (hf_json_get(file->root, "slices") != NULL)
		find_devices(file, sb);
	else
		decide(file, sb);
}

int main(int argc, char **argv)
{
	static const char *const sections[] = {"then: |\n", NULL};
	static const struct golden_kind kind = {
		.name = "fleet golden", .sections = sections, .actual = actual};

	return golden_main(argc, argv, &kind);
}
