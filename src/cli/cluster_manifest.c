/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Checks the manifest of a HealthPolicy or DeviceRollout, for `lint`, with the readers that the operator uses. */
#include "cli/cluster_manifest.h"

#include "api/device_rollout.h"
#include "api/health_policy.h"
#include "base/str.h"
#include "framework/framework.h"
#include "store/selector.h"

#include <stdio.h>
#include <string.h>

#define ARENA_BYTES_MAX ((size_t)8 << 20)

struct checking {
	hf_cluster_problem_fn found;
	void *arg;
	bool wrong;
};

static void report_problem(struct checking *c, const char *field, const char *text)
{
	c->found(c->arg, field, text);
	c->wrong = true;
}

static int read_rollout(struct hf_doc *doc, struct hf_arena *arena, struct hf_error *err)
{
	struct hf_rollout_spec spec;

	return hf_rollout_spec_read(doc, arena, &spec, err);
}

static int read_policy(struct hf_doc *doc, struct hf_arena *arena, struct hf_error *err)
{
	struct hf_health_policy_spec spec;

	return hf_health_policy_read(doc, arena, &spec, err);
}

static const struct cluster_kind {
	const char *api_version, *kind;
	int (*read)(struct hf_doc *doc, struct hf_arena *arena, struct hf_error *err);
	/* label selectors of the spec; NULL ends a path */
	const char *selectors[3][3];
} kinds[] = {
	{HF_ROLLOUT_API_VERSION, HF_ROLLOUT_KIND, read_rollout, {{"nodeSelector"}}},
	{HF_HEALTH_POLICY_API_VERSION,
	 HF_HEALTH_POLICY_KIND,
	 read_policy,
	 {{"selector"}, {"exclude"}, {"drain", "podSelector"}}},
};

static const struct cluster_kind *find_kind(const struct hf_json *root)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++)
		if (hf_streq(hf_json_path_str(root, "apiVersion", NULL), kinds[i].api_version) &&
		    hf_streq(hf_json_path_str(root, "kind", NULL), kinds[i].kind))
			return &kinds[i];
	return NULL;
}

bool hf_cluster_manifest_is(const struct hf_json *root)
{
	return find_kind(root) != NULL;
}

/* Reports an error of a reader: "spec.waves[1]: Invalid value: …". */
static void report_error(struct checking *c, const struct hf_error *err)
{
	char field[HF_ERROR_TEXT_MAX];
	const char *colon = strstr(err->text, ": ");

	if (colon == NULL) {
		report_problem(c, "spec", err->text);
		return;
	}
	snprintf(field, sizeof(field), "%.*s", (int)(colon - err->text), err->text);
	report_problem(c, field, colon + 2);
}

/* A selector whose only field is misspelt would select every node. */
static void check_selector_fields(struct checking *c, const struct hf_json *selector,
				  const char *path)
{
	char field[HF_ERROR_TEXT_MAX];
	struct hf_json *value;
	const char *key;

	for (void *it = hf_json_next(selector, NULL, &key, &value); it != NULL;
	     it = hf_json_next(selector, it, &key, &value)) {
		if (hf_streq(key, "matchLabels") || hf_streq(key, "matchExpressions"))
			continue;
		snprintf(field, sizeof(field), "%s.%s", path, key);
		report_problem(c, field, "unknown field");
	}
}

static void check_selector(struct checking *c, const struct hf_json *spec, const char *const path[])
{
	const struct hf_json *json = hf_json_path(spec, path[0], path[1], NULL);
	struct hf_selector *selector = NULL;
	struct hf_error err;
	char field[HF_ERROR_TEXT_MAX];

	snprintf(field, sizeof(field), "spec.%s%s%s", path[0], path[1] == NULL ? "" : ".",
		 hf_str_or(path[1], ""));
	if (json != NULL && hf_selector_from_json(json, &selector, &err) != 0)
		report_problem(c, field, err.text);
	if (hf_json_type(json) == HF_JSON_OBJECT)
		check_selector_fields(c, json, field);
	hf_selector_destroy(selector);
}

/* Checks the name and the namespace. The rules for jobs are different. */
static void check_metadata(struct checking *c, const struct hf_json *meta)
{
	const char *name = hf_json_path_str(meta, "name", NULL);
	const char *problem = hf_str_is_empty(name) ? NULL : hf_dns1123_subdomain_problem(name);

	if (hf_json_type(meta) != HF_JSON_OBJECT)
		report_problem(c, "metadata", "Required value: name is missing");
	else if (hf_json_get(meta, "namespace") != NULL)
		report_problem(c, "metadata.namespace", "Forbidden: not allowed on this type");
	if (problem != NULL)
		report_problem(c, "metadata.name", problem);
}

bool hf_cluster_manifest_check(const struct hf_json *root, hf_cluster_problem_fn found, void *arg)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	HF_AUTO_DOC doc = hf_doc_from_json(hf_json_share(root));
	const struct cluster_kind *kind = find_kind(root);
	struct checking c = {.found = found, .arg = arg};
	struct hf_error err;

	check_metadata(&c, hf_json_get(root, "metadata"));
	if (kind->read(doc, arena, &err) != 0)
		report_error(&c, &err);
	for (size_t i = 0; i < HF_ARRAY_LEN(kind->selectors) && kind->selectors[i][0] != NULL; i++)
		check_selector(&c, hf_json_get(root, "spec"), kind->selectors[i]);
	return !c.wrong;
}
