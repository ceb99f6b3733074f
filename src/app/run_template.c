/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Changes the pod templates of a job for this machine: working folder, variables, network. */
#include "app/run_template.h"

#include "app/job_resources.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

#define POD_NAME "HOLDFAST_POD_NAME"
#define ERROR_FILE "TORCHELASTIC_ERROR_FILE"

static bool has_variable(const struct hf_json *env, const char *name)
{
	for (size_t i = 0; i < hf_json_len(env); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(env, i), "name", NULL), name))
			return true;
	return false;
}

static bool is_set(const char *const *env, const char *name)
{
	size_t len = strlen(hf_str_or(name, ""));

	for (size_t i = 0; len > 0 && env != NULL && env[i] != NULL; i++)
		if (strncmp(env[i], name, len) == 0 && env[i][len] == '=')
			return true;
	return false;
}

static void remove_variables(struct hf_json *container, const char *const *env)
{
	const struct hf_json *list = hf_json_get(container, "env");
	struct hf_json *rest = hf_json_array();

	for (size_t i = 0; i < hf_json_len(list); i++) {
		struct hf_json *item = hf_json_item(list, i);

		if (!is_set(env, hf_json_path_str(item, "name", NULL)))
			hf_json_append(rest, hf_json_copy(item));
	}
	hf_json_set(container, "env", rest);
}

static void add_variables(struct hf_json *container, const char *const *env)
{
	struct hf_json *list = hf_json_ensure_array(container, "env");

	for (size_t i = 0; env != NULL && env[i] != NULL; i++) {
		struct hf_json *item = hf_json_object();
		HF_AUTOFREE char *name = hf_xstrndup(env[i], strcspn(env[i], "="));

		hf_json_set_str(item, "name", name);
		hf_json_set_str(item, "value", env[i] + strlen(name) + 1);
		hf_json_append(list, item);
	}
}

static void add_pod_name(struct hf_json *list)
{
	struct hf_json *item = hf_json_object();
	struct hf_json *source = hf_json_ensure_object(item, "valueFrom");

	hf_json_set_str(item, "name", POD_NAME);
	hf_json_set_str(hf_json_ensure_object(source, "fieldRef"), "fieldPath", "metadata.name");
	hf_json_append(list, item);
}

/* Sets TORCHELASTIC_ERROR_FILE to a file in the folder `errors`. A worker of torchrun writes its
 * exception to the file of this variable; torchrun then copies the file of the first failed worker
 * to this path. */
static void add_error_file(struct hf_json *container, const char *errors)
{
	struct hf_json *list = hf_json_ensure_array(container, "env");
	struct hf_json *item = hf_json_object();
	HF_AUTOFREE char *path = hf_xasprintf("%s/$(" POD_NAME ").json", errors);

	if (!has_variable(list, POD_NAME))
		add_pod_name(list);
	hf_json_set_str(item, "name", ERROR_FILE);
	hf_json_set_str(item, "value", path);
	hf_json_append(list, item);
}

/* Sets the number of the port with this name, or adds the port. */
static void set_port(struct hf_json *container, const char *name, int number)
{
	struct hf_json *list = hf_json_ensure_array(container, "ports");
	struct hf_json *port = NULL;

	for (size_t i = 0; port == NULL && i < hf_json_len(list); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(list, i), "name", NULL), name))
			port = hf_json_item(list, i);
	if (port == NULL) {
		port = hf_json_object();
		hf_json_set_str(port, "name", name);
		hf_json_append(list, port);
	}
	hf_json_set_i64(port, "containerPort", number);
}

static void change_container(const struct hf_run_template *change, struct hf_json *container,
			     bool trains)
{
	if (change->cwd != NULL && hf_str_is_empty(hf_json_path_str(container, "workingDir", NULL)))
		hf_json_set_str(container, "workingDir", change->cwd);
	if (change->env != NULL && hf_json_len(hf_json_get(container, "env")) > 0)
		remove_variables(container, change->env);
	if (change->add_env)
		add_variables(container, change->env);
	if (trains && change->errors != NULL && !is_set(change->env, ERROR_FILE) &&
	    !has_variable(hf_json_get(container, "env"), ERROR_FILE))
		add_error_file(container, change->errors);
}

static void change_template(const struct hf_run_template *change,
			    const struct hf_framework *framework, struct hf_json *spec)
{
	static const char *const lists[] = {"initContainers", "containers"};

	if (change->host_network)
		hf_json_set_bool(spec, "hostNetwork", true);
	for (size_t l = 0; l < HF_ARRAY_LEN(lists); l++) {
		const struct hf_json *list = hf_json_get(spec, lists[l]);

		for (size_t i = 0; i < hf_json_len(list); i++) {
			struct hf_json *container = hf_json_item(list, i);
			const char *name = hf_json_path_str(container, "name", NULL);

			bool trains = l == 1 && hf_streq(name, framework->container_name);

			change_container(change, container, trains);
			if (trains && change->port > 0)
				set_port(container, framework->port_name, change->port);
		}
	}
}

void hf_run_template_apply(const struct hf_run_template *change, struct hf_manifest *manifest)
{
	struct hf_json *root = hf_json_copy(hf_doc_json(manifest->doc));
	struct hf_job_replicas r;

	for (void *it = NULL; hf_job_replicas_next(manifest->framework, root, &it, &r);)
		if (hf_json_type(r.spec) == HF_JSON_OBJECT)
			change_template(change, manifest->framework, r.spec);
	hf_doc_unref(manifest->doc);
	manifest->doc = hf_doc_from_json(root);
}
