/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Checks the manifest of a DeviceRollout, for `lint`, with the reader that the operator uses. */
#include "cli/rollout_manifest.h"

#include "api/device_rollout.h"
#include "base/str.h"
#include "framework/framework.h"
#include "store/selector.h"

#include <stdio.h>
#include <string.h>

#define ARENA_BYTES_MAX ((size_t)8 << 20)

struct checking {
	hf_rollout_problem_fn found;
	void *arg;
	bool wrong;
};

static void report_problem(struct checking *c, const char *field, const char *text)
{
	c->found(c->arg, field, text);
	c->wrong = true;
}

bool hf_rollout_manifest_is(const struct hf_json *root)
{
	return hf_streq(hf_json_path_str(root, "apiVersion", NULL), HF_ROLLOUT_API_VERSION) &&
	       hf_streq(hf_json_path_str(root, "kind", NULL), HF_ROLLOUT_KIND);
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

static void check_selector(struct checking *c, const struct hf_json *spec)
{
	const struct hf_json *json = hf_json_get(spec, "nodeSelector");
	struct hf_selector *selector = NULL;
	struct hf_error err;

	if (json != NULL && hf_selector_from_json(json, &selector, &err) != 0)
		report_problem(c, "spec.nodeSelector", err.text);
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

bool hf_rollout_manifest_check(const struct hf_json *root, hf_rollout_problem_fn found, void *arg)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	HF_AUTO_DOC doc = hf_doc_from_json(hf_json_share(root));
	const struct hf_json *spec = hf_json_get(root, "spec");
	struct checking c = {.found = found, .arg = arg};
	struct hf_rollout_spec read;
	struct hf_error err;

	check_metadata(&c, hf_json_get(root, "metadata"));
	if (hf_rollout_spec_read(doc, arena, &read, &err) != 0)
		report_error(&c, &err);
	check_selector(&c, spec);
	return !c.wrong;
}
