/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/device_rollout.h"

#include "api/canary.h"
#include "api/window_internal.h"
#include "base/str.h"

#include <string.h>

/* Reads the spec of a DeviceRollout strictly: the first wrong field is an error. Fills in the defaults. */

#define DAY_SECONDS (24 * 3600)
#define NEEDED (HF_FIELD_REQUIRED | HF_FIELD_NONEMPTY)

struct daemon_set {
	uint64_t present;
	const char *ns, *name;
};
static const struct hf_field daemon_set_fields[] = {
	HF_FIELD_STRING("namespace", struct daemon_set, ns, 63, NEEDED),
	HF_FIELD_STRING("name", struct daemon_set, name, 253, NEEDED),
};
static const struct hf_field_table daemon_set_table =
	HF_FIELD_TABLE(daemon_set_fields, struct daemon_set);

struct label {
	uint64_t present;
	const char *key, *value;
};
static const struct hf_field label_fields[] = {
	HF_FIELD_STRING("key", struct label, key, 317, NEEDED),
	HF_FIELD_STRING("value", struct label, value, 63, HF_FIELD_REQUIRED),
};
static const struct hf_field_table label_table = HF_FIELD_TABLE(label_fields, struct label);

struct change {
	uint64_t present;
	struct daemon_set daemon_set;
	struct label label;
};
enum { CHANGE_DAEMON_SET, CHANGE_LABEL };
static const struct hf_field change_fields[] = {
	[CHANGE_DAEMON_SET] =
		HF_FIELD_OBJECT("daemonSet", struct change, daemon_set, &daemon_set_table, 0),
	[CHANGE_LABEL] = HF_FIELD_OBJECT("nodeLabel", struct change, label, &label_table, 0),
};
static const struct hf_field_table change_table = HF_FIELD_TABLE(change_fields, struct change);

struct canary {
	uint64_t present;
	int32_t seconds, slower_percent;
};
enum { CANARY_TEMPLATE, CANARY_SECONDS, CANARY_SLOWER };
static const struct hf_field canary_fields[] = {
	/* A job: hf_canary_template_check looks at it. */
	[CANARY_TEMPLATE] = HF_FIELD_PRESENCE("template", HF_FIELD_REQUIRED),
	[CANARY_SECONDS] = HF_FIELD_INT32("seconds", struct canary, seconds, 10, DAY_SECONDS, 0),
	[CANARY_SLOWER] =
		HF_FIELD_INT32("slowerPercent", struct canary, slower_percent, 0, 1000, 0),
};
static const struct hf_field_table canary_table = HF_FIELD_TABLE(canary_fields, struct canary);

struct proof {
	uint64_t present;
	int32_t seconds;
	const char *driver_version;
	HF_LIST(const char *) resources;
	struct canary canary;
};
enum { PROOF_SECONDS, PROOF_CANARY };
static const struct hf_field proof_fields[] = {
	[PROOF_SECONDS] = HF_FIELD_INT32("seconds", struct proof, seconds, 30, DAY_SECONDS, 0),
	[PROOF_CANARY] = HF_FIELD_OBJECT("canary", struct proof, canary, &canary_table, 0),
	HF_FIELD_STRING("driverVersion", struct proof, driver_version, 64, HF_FIELD_NONEMPTY),
	HF_FIELD_STRINGS("resources", struct proof, resources, HF_ROLLOUT_RESOURCES_MAX, 0),
};
static const struct hf_field_table proof_table = HF_FIELD_TABLE(proof_fields, struct proof);

struct spec {
	uint64_t present;
	struct change change;
	const char *group_by, *empty, *on_failure;
	int32_t at_once, soak, empty_seconds, failures_max;
	struct proof proof;
	HF_LIST(struct hf_window_read) windows;
	bool paused, cancel;
};
enum { SPEC_CHANGE, SPEC_SELECTOR, SPEC_WAVES, SPEC_AT_ONCE, SPEC_SOAK, SPEC_EMPTY_SECONDS };
static const struct hf_field spec_fields[] = {
	[SPEC_CHANGE] =
		HF_FIELD_OBJECT("change", struct spec, change, &change_table, HF_FIELD_REQUIRED),
	[SPEC_SELECTOR] = HF_FIELD_PRESENCE("nodeSelector", 0),
	/* Numbers and texts: read_waves reads them. */
	[SPEC_WAVES] = HF_FIELD_PRESENCE("waves", 0),
	[SPEC_AT_ONCE] =
		HF_FIELD_INT32("atOnce", struct spec, at_once, 1, HF_ROLLOUT_AT_ONCE_MAX, 0),
	[SPEC_SOAK] = HF_FIELD_INT32("soakSeconds", struct spec, soak, 0, 7 * DAY_SECONDS, 0),
	[SPEC_EMPTY_SECONDS] =
		HF_FIELD_INT32("emptySeconds", struct spec, empty_seconds, 10, 30 * DAY_SECONDS, 0),
	HF_FIELD_STRING("groupBy", struct spec, group_by, 317, 0),
	HF_FIELD_STRING("empty", struct spec, empty, 16, 0),
	HF_FIELD_STRING("onFailure", struct spec, on_failure, 16, 0),
	HF_FIELD_INT32("maxFailures", struct spec, failures_max, 0, HF_ROLLOUT_FAILURES_MAX, 0),
	HF_FIELD_OBJECT("proof", struct spec, proof, &proof_table, 0),
	HF_FIELD_OBJECTS("windows", struct spec, windows, &hf_window_table,
			 HF_HEALTH_POLICY_WINDOWS_MAX, 0),
	HF_FIELD_BOOL("paused", struct spec, paused, 0),
	HF_FIELD_BOOL("cancel", struct spec, cancel, 0),
};
static const struct hf_field_table spec_table = HF_FIELD_TABLE(spec_fields, struct spec);

/* ---- waves ------------------------------------------------------------------------------------- */

/* Reads 3, "3" or "3%". */
static bool read_wave(const struct hf_json *json, struct hf_rollout_wave *ret_wave)
{
	const char *text = hf_json_str(json, NULL);
	char digits[16];
	int64_t value = hf_json_i64(json, 0);
	size_t len = text == NULL ? 0 : strlen(text);
	bool percent = len > 0 && text[len - 1] == '%';

	if (len >= sizeof(digits))
		return false;
	if (text != NULL) {
		memcpy(digits, text, len + 1);
		digits[len - percent] = '\0';
		if (hf_str_to_i64(digits, 1, INT32_MAX, &value, NULL) != 0)
			return false;
	}
	if (value < 1 || value > (percent ? 100 : INT32_MAX))
		return false;
	ret_wave->count = percent ? -1 : (int32_t)value;
	ret_wave->percent = percent ? (int32_t)value : -1;
	return true;
}

/* A number and a percentage can be compared only once the nodes are known. */
static bool is_rising(const struct hf_rollout_spec *spec, const struct hf_rollout_wave *next)
{
	for (size_t i = 0; i < spec->waves_len; i++)
		if (next->percent >= 0 ? spec->waves[i].percent >= next->percent
				       : spec->waves[i].count >= next->count)
			return false;
	return true;
}

static int read_waves(const struct hf_json *list, struct hf_rollout_spec *spec,
		      struct hf_error *err)
{
	struct hf_rollout_wave wave;

	if (hf_json_type(list) != HF_JSON_ARRAY || hf_json_len(list) == 0 ||
	    hf_json_len(list) > HF_ROLLOUT_WAVES_MAX)
		return hf_error_set(err, HF_E_INVALID,
				    "spec.waves: Invalid value: must be a list of 1 to %d waves",
				    HF_ROLLOUT_WAVES_MAX);
	for (size_t i = 0; i < hf_json_len(list); i++) {
		if (!read_wave(hf_json_item(list, i), &wave))
			return hf_error_set(err, HF_E_INVALID,
					    "spec.waves[%zu]: Invalid value: must be a number of "
					    "nodes above 0, or a percentage from 1%% to 100%%",
					    i);
		if (!is_rising(spec, &wave))
			return hf_error_set(err, HF_E_INVALID,
					    "spec.waves[%zu]: Invalid value: must be above the "
					    "waves before it",
					    i);
		spec->waves[spec->waves_len++] = wave;
	}
	return 0;
}

static void set_default_waves(struct hf_rollout_spec *spec)
{
	static const struct hf_rollout_wave waves[] = {{1, -1}, {-1, 5}, {-1, 25}, {-1, 100}};

	memcpy(spec->waves, waves, sizeof(waves));
	spec->waves_len = HF_ARRAY_LEN(waves);
}

/* ---- the rest ---------------------------------------------------------------------------------- */

static int check_change(const struct change *change, struct hf_error *err)
{
	bool daemon_set = hf_field_has(change->present, CHANGE_DAEMON_SET);
	bool label = hf_field_has(change->present, CHANGE_LABEL);
	const char *problem;

	if (daemon_set == label)
		return hf_error_set(
			err, HF_E_INVALID,
			"spec.change: Invalid value: must have exactly one of daemonSet "
			"and nodeLabel");
	if (!label)
		return 0;
	problem = hf_qualified_name_problem(change->label.key);
	if (problem != NULL)
		return hf_error_set(err, HF_E_INVALID,
				    "spec.change.nodeLabel.key: Invalid value: \"%s\": %s",
				    change->label.key, problem);
	problem = hf_label_value_problem(change->label.value);
	if (problem != NULL)
		return hf_error_set(err, HF_E_INVALID,
				    "spec.change.nodeLabel.value: Invalid value: \"%s\": %s",
				    change->label.value, problem);
	return 0;
}

static int check_words(const struct spec *read, struct hf_error *err)
{
	const char *empty = hf_str_or(read->empty, "Save");
	const char *on_failure = hf_str_or(read->on_failure, "Halt");
	const char *problem =
		hf_str_is_empty(read->group_by) ? NULL : hf_qualified_name_problem(read->group_by);

	if (!hf_streq(empty, "Save") && !hf_streq(empty, "Wait") && !hf_streq(empty, "Never"))
		return hf_error_set(err, HF_E_INVALID,
				    "spec.empty: Unsupported value: \"%s\": supported values: "
				    "\"Never\", \"Save\", \"Wait\"",
				    empty);
	if (!hf_streq(on_failure, "Halt") && !hf_streq(on_failure, "Rollback"))
		return hf_error_set(err, HF_E_INVALID,
				    "spec.onFailure: Unsupported value: \"%s\": supported values: "
				    "\"Halt\", \"Rollback\"",
				    on_failure);
	if (problem != NULL)
		return hf_error_set(err, HF_E_INVALID, "spec.groupBy: Invalid value: \"%s\": %s",
				    read->group_by, problem);
	for (size_t i = 0; i < read->proof.resources.len; i++)
		if (hf_qualified_name_problem(read->proof.resources.items[i]) != NULL)
			return hf_error_set(err, HF_E_INVALID,
					    "spec.proof.resources[%zu]: Invalid value: \"%s\": "
					    "must be the name of a resource",
					    i, read->proof.resources.items[i]);
	return 0;
}

static hf_time span_or(uint64_t present, unsigned field, int32_t seconds, hf_time fallback)
{
	return hf_field_has(present, field) ? (hf_time)seconds * HF_SECOND : fallback;
}

static const struct hf_json *template_of(const struct hf_json *spec)
{
	return hf_json_path(spec, "proof", "canary", "template", NULL);
}

static void fill_canary(const struct canary *read, const struct hf_json *template,
			struct hf_arena *arena, struct hf_rollout_spec *spec)
{
	spec->proof.canary.wanted = true;
	spec->proof.canary.api_version =
		hf_arena_strdup(arena, hf_json_path_str(template, "apiVersion", NULL));
	spec->proof.canary.kind = hf_arena_strdup(arena, hf_json_path_str(template, "kind", NULL));
	spec->proof.canary.ns =
		hf_arena_strdup(arena, hf_json_path_str(template, "metadata", "namespace", NULL));
	spec->proof.canary.within =
		span_or(read->present, CANARY_SECONDS, read->seconds, 600 * HF_SECOND);
	spec->proof.canary.slower_percent =
		hf_field_has(read->present, CANARY_SLOWER) ? read->slower_percent : -1;
}

static void fill_proof(const struct proof *read, struct hf_rollout_spec *spec)
{
	spec->proof.within = span_or(read->present, PROOF_SECONDS, read->seconds, 900 * HF_SECOND);
	spec->proof.driver_version = read->driver_version;
	spec->proof.resources.items = read->resources.items;
	spec->proof.resources.len = read->resources.len;
}

static void fill_spec(const struct spec *read, struct hf_rollout_spec *spec)
{
	spec->daemon_set.ns = read->change.daemon_set.ns;
	spec->daemon_set.name = read->change.daemon_set.name;
	spec->label.key = read->change.label.key;
	spec->label.value = read->change.label.value;
	spec->has_selector = hf_field_has(read->present, SPEC_SELECTOR);
	spec->group_by = hf_str_is_empty(read->group_by) ? NULL : read->group_by;
	spec->at_once = hf_field_has(read->present, SPEC_AT_ONCE) ? read->at_once : 1;
	spec->soak = span_or(read->present, SPEC_SOAK, read->soak, 600 * HF_SECOND);
	spec->empty = hf_str_or(read->empty, "Save");
	spec->empty_for = span_or(read->present, SPEC_EMPTY_SECONDS, read->empty_seconds, HF_HOUR);
	spec->rolls_back = hf_streq(read->on_failure, "Rollback");
	spec->failures_max = read->failures_max;
	spec->windows_len = read->windows.len;
	spec->paused = read->paused;
	spec->cancel = read->cancel;
	fill_proof(&read->proof, spec);
}

int hf_rollout_spec_read(struct hf_doc *doc, struct hf_arena *arena,
			 struct hf_rollout_spec *ret_spec, struct hf_error *err)
{
	static const struct hf_fields_options strict = {.root = "spec", .strict = true};
	const struct hf_json *json = hf_json_get(hf_doc_json(doc), "spec");
	struct hf_rollout_spec spec = {.waves_len = 0};
	struct spec read;
	int rc;

	if (json == NULL)
		return hf_error_set(err, HF_E_INVALID, "spec: Required value");
	rc = hf_fields_read(&spec_table, json, &strict, arena, &read, err);
	if (rc == 0)
		rc = check_change(&read.change, err);
	if (rc == 0)
		rc = check_words(&read, err);
	if (rc == 0 && hf_field_has(read.proof.present, PROOF_CANARY))
		rc = hf_canary_template_check(template_of(json), "spec.proof.canary.template", err);
	if (rc == 0 && hf_field_has(read.present, SPEC_WAVES))
		rc = read_waves(hf_json_get(json, "waves"), &spec, err);
	if (rc == 0)
		rc = hf_windows_read(read.windows.items, read.windows.len, "spec.windows",
				     spec.windows, err);
	if (rc != 0)
		return rc;
	if (spec.waves_len == 0)
		set_default_waves(&spec);
	fill_spec(&read, &spec);
	if (hf_field_has(read.proof.present, PROOF_CANARY))
		fill_canary(&read.proof.canary, template_of(json), arena, &spec);
	*ret_spec = spec;
	return 0;
}
