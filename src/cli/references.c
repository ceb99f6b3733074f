/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Finds ConfigMaps and Secrets that a job's pods need and that no manifest has. Input: the jobs and
 * objects of all manifests of a command line. Output: a line for each missing object. */
#include "cli/references.h"

#include "base/str.h"
#include "cli/text.h"

#include <stdio.h>

#define FIELD_BYTES_MAX 512

struct search {
	struct hf_cli *cli;
	const struct hf_manifests *set;
	size_t job; /* index in the set */
	const char *verdict;
	size_t n_missing;
};

static bool has_object(const struct hf_manifest_objects *objects, const char *kind,
		       const char *name)
{
	for (size_t i = 0; i < objects->len; i++)
		if (hf_streq(hf_doc_name(objects->items[i]), name) &&
		    hf_streq(hf_json_path_str(hf_doc_json(objects->items[i]), "kind", NULL), kind))
			return true;
	return false;
}

/* Checks one reference. key: the member of `ref` with the object's name. */
static void check_reference(struct search *search, const char *field, const struct hf_json *ref,
			    const char *kind, const char *key)
{
	const char *name = hf_json_path_str(ref, key, NULL);
	FILE *err = search->cli->err;

	if (hf_str_is_empty(name) || hf_json_true(hf_json_get(ref, "optional"), false) ||
	    has_object(&search->set->objects, kind, name))
		return;
	search->n_missing++;
	fputs("holdfast: ", err);
	hf_text_print_safe(err, search->set->job_files[search->job]);
	fprintf(err, ": %s", search->verdict);
	hf_text_print_safe(err, field);
	fprintf(err, " needs the %s '", kind);
	hf_text_print_safe(err, name);
	fprintf(err, "', and no manifest has it; add it to the file, or give its file with -f\n");
}

/* Checks the members configMap… and secret… of an object. */
static void check_pair(struct search *search, const char *field, const struct hf_json *object,
		       const char *map_member, const char *secret_member, const char *secret_key)
{
	HF_AUTO_STRBUF at = HF_STRBUF_INIT(FIELD_BYTES_MAX);

	hf_strbuf_addf(&at, "%s.%s", field, map_member);
	check_reference(search, at.data, hf_json_get(object, map_member), "ConfigMap", "name");
	hf_strbuf_clear(&at);
	hf_strbuf_addf(&at, "%s.%s", field, secret_member);
	check_reference(search, at.data, hf_json_get(object, secret_member), "Secret", secret_key);
}

static void check_containers(struct search *search, const char *path, const char *list_name,
			     const struct hf_json *spec)
{
	const struct hf_json *list = hf_json_get(spec, list_name);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *env = hf_json_get(hf_json_item(list, i), "env");
		const struct hf_json *from = hf_json_get(hf_json_item(list, i), "envFrom");

		for (size_t k = 0; k < hf_json_len(env); k++) {
			HF_AUTO_STRBUF at = HF_STRBUF_INIT(FIELD_BYTES_MAX);

			hf_strbuf_addf(&at, "%s.%s[%zu].env[%zu].valueFrom", path, list_name, i, k);
			check_pair(search, at.data, hf_json_get(hf_json_item(env, k), "valueFrom"),
				   "configMapKeyRef", "secretKeyRef", "name");
		}
		for (size_t k = 0; k < hf_json_len(from); k++) {
			HF_AUTO_STRBUF at = HF_STRBUF_INIT(FIELD_BYTES_MAX);

			hf_strbuf_addf(&at, "%s.%s[%zu].envFrom[%zu]", path, list_name, i, k);
			check_pair(search, at.data, hf_json_item(from, k), "configMapRef",
				   "secretRef", "name");
		}
	}
}

static void check_volumes(struct search *search, const char *path, const struct hf_json *spec)
{
	const struct hf_json *volumes = hf_json_get(spec, "volumes");

	for (size_t i = 0; i < hf_json_len(volumes); i++) {
		const struct hf_json *volume = hf_json_item(volumes, i);
		const struct hf_json *sources = hf_json_path(volume, "projected", "sources", NULL);
		HF_AUTO_STRBUF at = HF_STRBUF_INIT(FIELD_BYTES_MAX);

		hf_strbuf_addf(&at, "%s.volumes[%zu]", path, i);
		check_pair(search, at.data, volume, "configMap", "secret", "secretName");
		for (size_t k = 0; k < hf_json_len(sources); k++) {
			HF_AUTO_STRBUF source = HF_STRBUF_INIT(FIELD_BYTES_MAX);

			hf_strbuf_addf(&source, "%s.projected.sources[%zu]", at.data, k);
			check_pair(search, source.data, hf_json_item(sources, k), "configMap",
				   "secret", "name");
		}
	}
}

static void check_job(struct search *search)
{
	const struct hf_manifest *job = &search->set->jobs[search->job];
	const char *replicas_key = job->framework->replicas_key, *type;
	const struct hf_json *replicas =
		hf_json_path(hf_doc_json(job->doc), "spec", replicas_key, NULL);
	struct hf_json *value;

	for (void *it = NULL; (it = hf_json_next(replicas, it, &type, &value)) != NULL;) {
		const struct hf_json *spec = hf_json_path(value, "template", "spec", NULL);
		HF_AUTO_STRBUF path = HF_STRBUF_INIT(FIELD_BYTES_MAX);

		hf_strbuf_addf(&path, "spec.%s[%.60s].template.spec", replicas_key, type);
		check_containers(search, path.data, "initContainers", spec);
		check_containers(search, path.data, "containers", spec);
		check_volumes(search, path.data, spec);
	}
}

size_t hf_references_missing(struct hf_cli *cli, const struct hf_manifests *set,
			     const char *verdict)
{
	struct search search = {.cli = cli, .set = set, .verdict = verdict};

	for (search.job = 0; search.job < set->n_jobs; search.job++)
		check_job(&search);
	return search.n_missing;
}
