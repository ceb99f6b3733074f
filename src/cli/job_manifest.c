/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Loads the manifests of a file or stdin and checks the jobs among them. Input: YAML or JSON documents.
 * Output: the checked documents, or one error line for each problem with file, line and field. */
#include "cli/job_manifest.h"

#include "api/job.h"
#include "api/metadata.h"
#include "api/pod_rules.h"
#include "base/arena.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cluster_manifest.h"
#include "cli/text.h"
#include "framework/framework.h"
#include "json/yaml.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Memory limit of one check. A check needs some hundred bytes for each field of the manifest. */
#define CHECK_BYTES_MAX ((size_t)64 << 20)

/* Length of the suffix that a name gets from generateName, and of the longest prefix, as in
 * apimachinery. */
#define GENERATED_LEN 5
#define GENERATED_BASE_LEN_MAX (63 - GENERATED_LEN)

struct loading {
	struct hf_cli *cli;
	const char *name; /* name of the file, for messages */
	struct hf_yaml *yaml;
	size_t doc;           /* index of the document in the file */
	struct hf_json *root; /* the object: the document, or an item of a List */
	const char *prefix;   /* path of the object in the document: "", or "items[2]." */
	bool here;    /* also check whether the job can run on this machine (cli->check_here) */
	bool refused; /* the machine refuses the job */
};

/* Returns the line of a field in the file. path: the path of the field in the object, as in
 * hf_yaml_find. */
static int find_line(const struct loading *ld, const char *path)
{
	HF_AUTOFREE char *whole = hf_xasprintf("%s%s", ld->prefix, path);
	size_t len = strlen(whole);

	if (len > 0 && whole[len - 1] == '.')
		whole[len - 1] = '\0';
	return hf_yaml_find(ld->yaml, ld->doc, whole).line;
}

static void print_line(const struct loading *ld, int line, const char *kind, const char *text)
{
	FILE *out = ld->cli->err;

	fputs("holdfast: ", out);
	hf_text_print_safe(out, ld->name);
	if (line > 0)
		fprintf(out, ":%d", line);
	fprintf(out, ": %s", kind);
	hf_text_print_safe(out, text);
	fputc('\n', out);
}

static void print_field_error(const struct loading *ld, const struct hf_field_error *error)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(16384);

	hf_field_error_write(error, &text);
	print_line(ld, find_line(ld, error->field), "", text.data);
}

static int print_errors(const struct loading *ld, const struct hf_field_errors *errors)
{
	for (size_t i = 0; i < errors->warnings_len; i++)
		print_line(ld, 0, "warning: ", errors->warnings[i]);
	for (size_t i = 0; i < errors->len; i++)
		print_field_error(ld, &errors->items[i]);
	if (errors->dropped > 0)
		fprintf(ld->cli->err, "holdfast: %zu more errors are not shown\n", errors->dropped);
	return errors->len > 0 ? HF_EXIT_USAGE : 0;
}

static void print_error(const struct loading *ld, const struct hf_error *err)
{
	fputs("holdfast: ", ld->cli->err);
	hf_text_print_safe(ld->cli->err, err->text);
	fputc('\n', ld->cli->err);
}

/* Names the kind with the nearest name and its version; if none is near, names all kinds. */
static void add_known_kinds(struct hf_strbuf *text, const char *kind)
{
	struct hf_nearest search = {.text = kind, .len = strlen(kind)};

	for (size_t i = 0; hf_frameworks[i] != NULL; i++)
		hf_nearest_offer(&search, hf_frameworks[i]->kind);
	hf_strbuf_addstr(text, search.nearest != NULL ? ": did you mean" : "; known kinds:");
	for (size_t i = 0; hf_frameworks[i] != NULL; i++)
		if (search.nearest == NULL || hf_streq(search.nearest, hf_frameworks[i]->kind))
			hf_strbuf_addf(text, " %s (%s)", hf_frameworks[i]->kind,
				       hf_frameworks[i]->api_version);
	if (search.nearest != NULL)
		hf_strbuf_addch(text, '?');
}

static int find_framework(const struct loading *ld, const struct hf_json *root,
			  const struct hf_framework **ret_framework)
{
	const char *api_version = hf_json_path_str(root, "apiVersion", NULL);
	const char *kind = hf_json_path_str(root, "kind", NULL);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
	const struct hf_framework *framework;

	if (hf_json_type(root) != HF_JSON_OBJECT || api_version == NULL || kind == NULL) {
		print_line(ld, find_line(ld, ""), "",
			   "not a Kubernetes object: apiVersion or kind is missing");
		return HF_EXIT_USAGE;
	}
	framework = hf_framework_by_kind(api_version, kind);
	if (framework == NULL) {
		hf_strbuf_addf(&text, "unknown kind '%s' in '%s'", kind, api_version);
		add_known_kinds(&text, kind);
		print_line(ld, find_line(ld, "kind"), "", text.data);
		return HF_EXIT_USAGE;
	}
	*ret_framework = framework;
	return 0;
}

struct metadata_check {
	const struct loading *ld;
	bool refused;
};

static void on_metadata(void *arg, const char *reason, const char *field, const char *text)
{
	struct metadata_check *check = arg;
	HF_AUTO_STRBUF line = HF_STRBUF_INIT(16384);

	hf_strbuf_addf(&line, "%s: %s", field, text);
	print_line(check->ld, find_line(check->ld, field), "", line.data);
	check->refused = true;
}

/* Checks the metadata with a server's rules for new objects. */
static int check_metadata(const struct loading *ld, const struct hf_json *meta)
{
	struct metadata_check check = {.ld = ld};
	const char *ns = hf_json_path_str(meta, "namespace", NULL);
	const char *problem = hf_str_is_empty(ns) ? NULL : hf_dns1123_label_problem(ns);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);

	hf_metadata_check(meta, NULL, on_metadata, &check);
	if (problem != NULL) {
		hf_strbuf_addf(&text, "Invalid value: \"%s\": %s", ns, problem);
		on_metadata(&check, "FieldValueInvalid", "metadata.namespace", text.data);
	}
	if (!hf_str_is_empty(hf_json_path_str(meta, "resourceVersion", NULL)))
		on_metadata(&check, "FieldValueInvalid", "metadata.resourceVersion",
			    "should not be set on objects to be created");
	return check.refused ? HF_EXIT_USAGE : 0;
}

/* Makes a name from generateName, as a server does. The suffix has no vowels, so it spells no words. */
static void choose_name(struct hf_json *meta)
{
	static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
	const char *base = hf_json_path_str(meta, "generateName", NULL);
	unsigned char random[GENERATED_LEN];
	char end[GENERATED_LEN + 1] = {0};
	HF_AUTOFREE char *name = NULL;

	if (!hf_str_is_empty(hf_json_path_str(meta, "name", NULL)) || hf_str_is_empty(base) ||
	    hf_random_bytes(random, sizeof(random), NULL) != 0)
		return;
	for (size_t i = 0; i < GENERATED_LEN; i++)
		end[i] = letters[random[i] % (sizeof(letters) - 1)];
	name = hf_xasprintf("%.*s%s", GENERATED_BASE_LEN_MAX, base, end);
	hf_json_set_str(meta, "name", name);
}

/* ---- pods --------------------------------------------------------------------------------- */

/* Warns of containers without a command: `holdfast run` pulls no image, so it cannot know the
 * image's command. first_given: the operator sets the command of the first container, which is
 * then not checked. */
static void warn_of_commands(const struct loading *ld, const struct hf_json *spec,
			     const char *field, bool first_given)
{
	static const char *const lists[] = {"initContainers", "containers"};

	for (size_t l = 0; l < HF_ARRAY_LEN(lists); l++) {
		const struct hf_json *list = hf_json_get(spec, lists[l]);
		for (size_t i = 0; i < hf_json_len(list); i++) {
			HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
			if (hf_json_len(hf_json_get(hf_json_item(list, i), "command")) > 0 ||
			    (first_given && l == 1 && i == 0))
				continue;
			hf_strbuf_addf(&text, "%s.%s[%zu].command", field, lists[l], i);
			int line = find_line(ld, text.data);
			hf_strbuf_addstr(
				&text,
				": not set: a cluster runs the image's command, but "
				"'holdfast run' pulls no image and cannot start the container");
			print_line(ld, line, "warning: ", text.data);
		}
	}
}

/* Checks the pod templates. A server accepts a job with a bad template and later refuses each of its
 * pods. */
static void check_pods(const struct loading *ld, const struct hf_framework *framework,
		       struct hf_field_errors *errors)
{
	const struct hf_json *replicas =
		hf_json_path(ld->root, "spec", framework->replicas_key, NULL);
	struct hf_json *value;
	const char *key;

	/* An empty map gets no error here, because upstream's API server accepts it. */
	if (hf_json_type(replicas) == HF_JSON_OBJECT && hf_json_len(replicas) == 0)
		hf_field_warn(
			errors,
			"spec.%s: is empty: a job without replicas never ends; add a replica type",
			framework->replicas_key);
	for (void *it = NULL; (it = hf_json_next(replicas, it, &key, &value)) != NULL;) {
		const struct hf_json *spec = hf_json_path(value, "template", "spec", NULL);
		HF_AUTO_STRBUF field = HF_STRBUF_INIT(1024);
		if (hf_json_type(value) == HF_JSON_NULL)
			continue;
		hf_strbuf_addf(&field, "spec.%s[%s].template.spec", framework->replicas_key, key);
		hf_pod_rules_check(spec, field.data, errors);
		int role = hf_framework_role(framework, key);

		/* check_here refuses such a container later. */
		if (!ld->here)
			warn_of_commands(ld, spec, field.data,
					 hf_has_role(framework->given_commands, role));
	}
}

static void on_finding(void *arg, bool refused, const char *field, const char *text)
{
	struct loading *ld = arg;

	print_line(ld, find_line(ld, field),
		   refused ? "cannot run on this machine: " : "warning: ", text);
	ld->refused = ld->refused || refused;
}

static int check_here(struct loading *ld, const struct hf_manifest *job)
{
	ld->refused = false;
	if (ld->here)
		ld->cli->check_here(ld->cli, job, on_finding, ld);
	return ld->refused ? HF_EXIT_USAGE : 0;
}

static int check_job(const struct loading *ld, struct hf_manifest *ret_manifest)
{
	struct hf_json *root = ld->root, *meta;
	HF_AUTO_ARENA arena = NULL;
	HF_AUTO_DOC doc = NULL;
	const struct hf_framework *framework;
	struct hf_field_errors errors;
	int rc = find_framework(ld, root, &framework);

	if (rc != 0)
		return rc;
	meta = hf_json_get(root, "metadata");
	if (hf_json_type(meta) == HF_JSON_OBJECT) {
		choose_name(meta);
		rc = check_metadata(ld, meta);
	}
	doc = hf_doc_from_json(hf_json_ref(root));
	arena = hf_arena_create(CHECK_BYTES_MAX);
	hf_field_errors_init(&errors, arena);
	hf_job_read_unknown(doc, framework, &errors);
	hf_job_check(doc, NULL, framework, &errors);
	if (errors.len == 0)
		check_pods(ld, framework, &errors);
	if (print_errors(ld, &errors) != 0)
		rc = HF_EXIT_USAGE;
	if (rc != 0)
		return rc;
	ret_manifest->doc = hf_steal(&doc);
	ret_manifest->framework = framework;
	return 0;
}

/* ---- several objects ----------------------------------------------------------------------------- */

#define OBJECTS_MAX 1000 /* of all files, jobs left out */

/* True if neither the API group nor the kind is that of a training job: such an object is not
 * checked. */
static bool is_other(const struct hf_json *root)
{
	const char *api_version = hf_json_path_str(root, "apiVersion", NULL);
	const char *kind = hf_json_path_str(root, "kind", NULL);

	if (api_version == NULL || kind == NULL || hf_str_has_prefix(api_version, "kubeflow.org/"))
		return false;
	for (size_t i = 0; hf_frameworks[i] != NULL; i++)
		if (hf_streq(hf_frameworks[i]->kind, kind))
			return false;
	return true;
}

static int add_job(struct loading *ld, struct hf_manifests *set)
{
	struct hf_manifest job = {.doc = NULL};
	int rc = check_job(ld, &job);

	if (rc == 0)
		rc = check_here(ld, &job);
	if (rc != 0) {
		hf_manifest_release(&job);
		return rc;
	}
	if (set->n_jobs == HF_MANIFEST_JOBS_MAX) {
		hf_manifest_release(&job);
		print_line(ld, find_line(ld, ""), "", "too many jobs on one command line");
		return HF_EXIT_USAGE;
	}
	if (set->jobs == NULL) {
		set->jobs = hf_xcalloc(HF_MANIFEST_JOBS_MAX, sizeof(*set->jobs));
		set->job_files = hf_xcalloc(HF_MANIFEST_JOBS_MAX, sizeof(*set->job_files));
	}
	set->job_files[set->n_jobs] = hf_xstrdup(ld->name);
	set->jobs[set->n_jobs++] = job;
	return 0;
}

static void on_cluster_problem(void *arg, const char *field, const char *text)
{
	on_metadata(arg, "FieldValueInvalid", field, text);
}

static int check_cluster_object(const struct loading *ld)
{
	struct metadata_check check = {.ld = ld};
	struct hf_json *meta = hf_json_get(ld->root, "metadata");
	bool fine = hf_cluster_manifest_check(ld->root, on_cluster_problem, &check);

	if (hf_json_type(meta) == HF_JSON_OBJECT) {
		choose_name(meta);
		fine &= check_metadata(ld, meta) == 0;
	}
	return fine ? 0 : HF_EXIT_USAGE;
}

static int add_other(const struct loading *ld, struct hf_manifests *set)
{
	const struct hf_resource *resource =
		hf_resource_by_kind(hf_json_path_str(ld->root, "apiVersion", NULL),
				    hf_json_path_str(ld->root, "kind", NULL));
	bool checked = hf_cluster_manifest_is(ld->root);

	if (checked && check_cluster_object(ld) != 0)
		return HF_EXIT_USAGE;
	if (checked && set->checked != NULL)
		set->checked(set->arg, ld->name, ld->root);
	else if (set->passed != NULL)
		set->passed(set->arg, ld->name, ld->root, resource != NULL);
	if (resource == NULL)
		return 0;
	if (set->objects.len == OBJECTS_MAX) {
		print_line(ld, find_line(ld, ""), "", "too many objects on one command line");
		return HF_EXIT_USAGE;
	}
	if (set->objects.items == NULL)
		set->objects.items = hf_xcalloc(OBJECTS_MAX, sizeof(*set->objects.items));
	set->objects.items[set->objects.len++] = hf_doc_from_json(hf_json_ref(ld->root));
	return 0;
}

/* True if the document has no sign of Kubernetes. A manifest with one of the fields is a mistake of its author. */
static bool is_foreign(const struct hf_json *root)
{
	return hf_json_get(root, "apiVersion") == NULL && hf_json_get(root, "kind") == NULL &&
	       hf_json_path(root, "spec", "runPolicy", NULL) == NULL;
}

static int add_object(struct loading *ld, struct hf_manifests *set)
{
	if (set->foreign != NULL && is_foreign(ld->root)) {
		set->foreign(set->arg, ld->name, "is not a Kubernetes object");
		return 0;
	}
	return is_other(ld->root) ? add_other(ld, set) : add_job(ld, set);
}

/* Adds a document of a file: one object, or the items of a List. */
static int add_document(struct loading *ld, struct hf_manifests *set)
{
	struct hf_json *root = hf_yaml_doc(ld->yaml, ld->doc);
	const struct hf_json *items = hf_json_get(root, "items");
	int worst = 0;

	ld->root = root;
	ld->prefix = "";
	if (!hf_streq(hf_json_path_str(root, "apiVersion", NULL), "v1") ||
	    !hf_streq(hf_json_path_str(root, "kind", NULL), "List") ||
	    hf_json_type(items) != HF_JSON_ARRAY)
		return add_object(ld, set);
	for (size_t i = 0; i < hf_json_len(items); i++) {
		HF_AUTOFREE char *prefix = hf_xasprintf("items[%zu].", i);
		int rc;

		ld->root = hf_json_item(items, i);
		ld->prefix = prefix;
		rc = add_object(ld, set);
		worst = rc != 0 ? rc : worst;
	}
	return worst;
}

/* Reads and parses the file. Returns HF_EXIT_USAGE after a message; with *ret_yaml NULL and 0, the file is foreign. */
static int read_documents(const struct loading *ld, const char *path, struct hf_manifests *set,
			  struct hf_strbuf *text, struct hf_yaml **ret_yaml)
{
	struct hf_error err;
	int rc = hf_streq(path, "-") ? hf_fs_read_fd(STDIN_FILENO, ld->name, text, &err)
				     : hf_fs_read(path, text, &err);
	const char *why = rc == HF_E_TOO_LARGE ? "is too large for a manifest" : NULL;

	*ret_yaml = NULL;
	if (rc != 0 && (why == NULL || set->foreign == NULL)) {
		print_error(ld, &err);
		return HF_EXIT_USAGE;
	}
	if (rc == 0 && hf_yaml_parse(text->data, text->len, NULL, ret_yaml, &err) == 0) {
		if (hf_yaml_len(*ret_yaml) > 0)
			return 0;
		*ret_yaml = hf_yaml_destroy(*ret_yaml);
		why = "has no document";
		(void)hf_error_set(&err, HF_E_INVALID, "the file has no document");
	} else if (rc == 0 && memmem(text->data, text->len, "apiVersion", 10) == NULL) {
		why = "is neither YAML nor JSON";
	}
	if (set->foreign == NULL || why == NULL) {
		print_line(ld, 0, "", err.text);
		return HF_EXIT_USAGE;
	}
	set->foreign(set->arg, ld->name, why);
	return 0;
}

int hf_manifests_add(struct hf_cli *cli, const char *path, struct hf_manifests *set)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_MANIFEST_BYTES_MAX);
	HF_AUTO_YAML yaml = NULL;
	struct loading ld = {.cli = cli,
			     .name = hf_streq(path, "-") ? "<stdin>" : path,
			     .prefix = "",
			     .here = set->here};
	int worst = 0;

	if (read_documents(&ld, path, set, &text, &yaml) != 0)
		return HF_EXIT_USAGE;
	set->n_files++;
	if (yaml == NULL)
		return 0;
	ld.yaml = yaml;
	for (ld.doc = 0; ld.doc < hf_yaml_len(yaml); ld.doc++) {
		int rc = add_document(&ld, set);

		worst = rc != 0 ? rc : worst;
	}
	return worst;
}

void hf_manifest_objects_release(struct hf_manifest_objects *objects)
{
	for (size_t i = 0; i < objects->len; i++)
		hf_doc_unref(objects->items[i]);
	free(objects->items);
	*objects = (struct hf_manifest_objects){.len = 0};
}

void hf_manifests_release(struct hf_manifests *set)
{
	for (size_t i = 0; i < set->n_jobs; i++)
		hf_manifest_release(&set->jobs[i]);
	for (size_t i = 0; set->job_files != NULL && i < HF_MANIFEST_JOBS_MAX; i++)
		free(set->job_files[i]);
	free(set->jobs);
	free(set->job_files);
	hf_manifest_objects_release(&set->objects);
	set->jobs = NULL;
	set->job_files = NULL;
	set->n_jobs = 0;
}

void hf_manifest_release(struct hf_manifest *manifest)
{
	manifest->doc = hf_doc_unref(manifest->doc);
}
