/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/config.h"

#include "api/job.h"
#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"
#include "json/yaml.h"

#include <stdlib.h>
#include <string.h>

/*
 * Reads the operator's config file:  YAML to struct hf_recovery_spec, with the checks of a job.
 */

#define ARENA_BYTES_MAX ((size_t)4 << 20)

/* The file's `recovery` is read as spec.runPolicy.recovery of a made-up job, so that the rules and
 * texts for jobs apply to it. */
static const char in_job[] = "spec.runPolicy.";
static const char in_file[] = "recovery";

struct hf_operator_config {
	struct hf_arena *arena;
	struct hf_doc *doc;
	struct hf_recovery_spec recovery;
};

static struct hf_doc *make_job(struct hf_json *recovery)
{
	const struct hf_framework *framework = hf_frameworks[0];
	struct hf_json *root = hf_json_object();
	struct hf_json *spec = hf_json_ensure_object(root, "spec");

	hf_json_set_str(root, "apiVersion", framework->api_version);
	hf_json_set_str(root, "kind", framework->kind);
	hf_json_set(hf_json_ensure_object(spec, "runPolicy"), in_file, hf_json_ref(recovery));
	return hf_doc_from_json(root);
}

/* Remove "spec.runPolicy." from an error text, because the path of the file begins with
 * `recovery`. */
static void cut_paths(char *text)
{
	for (char *at; (at = strstr(text, in_job)) != NULL;) {
		const char *rest = at + strlen(in_job);

		memmove(at, rest, strlen(rest) + 1);
	}
}

/* Report the first error in the fields of the file.  Errors of other fields of the made-up job do
 * not matter. */
static int first_error(const struct hf_field_errors *errors, const struct hf_yaml *yaml,
		       const char *name, struct hf_error *err)
{
	for (size_t i = 0; i < errors->len; i++) {
		struct hf_field_error error = errors->items[i];
		HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_ERROR_TEXT_MAX);

		if (!hf_str_has_prefix(error.field, in_job) ||
		    !hf_str_has_prefix(error.field + strlen(in_job), in_file))
			continue;
		hf_field_error_write(&error, &text);
		HF_AUTOFREE char *words = hf_strbuf_detach(&text);
		struct hf_yaml_place place = hf_yaml_find(yaml, 0, error.field + strlen(in_job));

		cut_paths(words);
		return hf_error_set(err, HF_E_INVALID, "%s:%d:%d: %s", name, place.line,
				    place.column, words);
	}
	return 0;
}

static int check_top(const struct hf_json *root, const struct hf_yaml *yaml, const char *name,
		     struct hf_error *err)
{
	struct hf_json *value;
	const char *key;

	if (hf_json_type(root) != HF_JSON_OBJECT)
		return hf_error_set(err, HF_E_INVALID, "%s: must be an object with '%s'", name,
				    in_file);
	for (void *it = NULL; (it = hf_json_next(root, it, &key, &value)) != NULL;) {
		struct hf_yaml_place place = hf_yaml_find(yaml, 0, key);

		if (!hf_streq(key, in_file))
			return hf_error_set(err, HF_E_INVALID,
					    "%s:%d:%d: unknown field \"%s\" (there is '%s')", name,
					    place.line, place.column, key, in_file);
	}
	return 0;
}

static int read_recovery(struct hf_operator_config *config, struct hf_yaml *yaml, const char *name,
			 struct hf_error *err)
{
	const struct hf_framework *framework = hf_frameworks[0];
	struct hf_json *root = hf_yaml_doc(yaml, 0);
	struct hf_field_errors errors;
	struct hf_job_view view;
	int rc = check_top(root, yaml, name, err);

	if (rc != 0)
		return rc;
	config->doc = make_job(hf_json_get(root, in_file));
	hf_field_errors_init(&errors, config->arena);
	hf_job_read(config->doc, framework, NULL, config->arena, &errors, &view);
	hf_job_read_unknown(config->doc, framework, &errors);
	hf_job_validate(&view, NULL, &errors);
	rc = first_error(&errors, yaml, name, err);
	config->recovery = view.run_policy.recovery;
	return rc;
}

int hf_operator_config_parse(const char *text, size_t len, const char *name,
			     struct hf_operator_config **ret_config, struct hf_error *err)
{
	const struct hf_yaml_limits limits = {.bytes_max = HF_OPERATOR_CONFIG_BYTES_MAX};
	struct hf_operator_config *config;
	HF_AUTO_YAML yaml = NULL;
	int rc = hf_yaml_parse(text, len, &limits, &yaml, err);

	if (rc != 0)
		return hf_error_wrap(err, "%s", name);
	if (hf_yaml_len(yaml) > 1)
		return hf_error_set(err, HF_E_INVALID, "%s: one document, not %zu", name,
				    hf_yaml_len(yaml));
	config = hf_xcalloc(1, sizeof(*config));
	config->arena = hf_arena_create(ARENA_BYTES_MAX);
	if (hf_yaml_len(yaml) == 1)
		rc = read_recovery(config, yaml, name, err);
	if (rc != 0) {
		hf_operator_config_destroy(config);
		return rc;
	}
	*ret_config = config;
	return 0;
}

struct hf_operator_config *hf_operator_config_destroy(struct hf_operator_config *config)
{
	if (config == NULL)
		return NULL;
	hf_doc_unref(config->doc);
	hf_arena_destroy(config->arena);
	free(config);
	return NULL;
}

const struct hf_recovery_spec *hf_operator_config_recovery(const struct hf_operator_config *config)
{
	return &config->recovery;
}
