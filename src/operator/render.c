/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/operator_internal.h"

#include "api/extra_object.h"
#include "base/str.h"
#include "core/model/names.h"
#include "json/yaml.h"

#include <string.h>

/*
 * Makes the documents of pods, services and extra objects.
 *
 * Input: the job's document and an action with its edits.  Output: the job's template with the
 * edits, or an error that says what of the template cannot be used.  The pod template of the job is
 * copied whole, with unknown fields.
 */

/* most bytes of the init container template after its variables are replaced */
#define TEMPLATE_BYTES_MAX ((size_t)64 << 10)

/* Upstream's defaults for the variables of init container templates. */
#define INIT_IMAGE "alpine:3.10"
#define INIT_TRIES 100
#define ACTION_SHOWN_MAX 80
#define NOBODY_UID 65532 /* the usual number of images without root */

static void set_owner(struct hf_json *meta, struct hf_doc *job,
		      const struct hf_framework *framework)
{
	struct hf_json *owner = hf_json_object();

	hf_json_set_str(owner, "apiVersion", framework->api_version);
	hf_json_set_str(owner, "kind", framework->kind);
	hf_json_set_str(owner, "name", hf_doc_name(job));
	hf_json_set_str(owner, "uid", hf_doc_uid(job));
	hf_json_set_bool(owner, "controller", true);
	hf_json_set_bool(owner, "blockOwnerDeletion", true);
	hf_json_append(hf_json_ensure_array(meta, "ownerReferences"), owner);
}

/* The pod template of a role.  The key of the replica type may be written in any case. */
static const struct hf_json *find_template(const struct hf_render_args *args, int role)
{
	const struct hf_json *map =
		hf_json_path(hf_doc_json(args->job), "spec", args->framework->replicas_key, NULL);
	struct hf_json *value;
	const char *key;

	for (void *it = NULL; (it = hf_json_next(map, it, &key, &value)) != NULL;)
		if (hf_framework_role(args->framework, key) == role)
			return hf_json_get(value, "template");
	return NULL;
}

/* --- the init container template -------------------------------------------------------------- */

/* The characters that Go's text/template trims as blanks. */
#define BLANKS " \t\r\n"

struct action {
	/* len: bytes of the action with its braces; name: index of the variable it names */
	size_t len, name;
	/* the action removes the blanks before or behind its braces */
	bool trims_before, trims_behind;
};

/* Read one action of the init container template: {{.Name}}, {{ .Name }} or {{- .Name -}}.  False:
 * the braces hold anything else. */
static bool read_action(const char *text, const char *const names[], size_t n_names,
			struct action *ret)
{
	const char *p = text + strlen("{{");

	ret->trims_before = p[0] == '-' && p[1] != '\0' && strchr(BLANKS, p[1]) != NULL;
	p += ret->trims_before;
	p += strspn(p, BLANKS);
	for (size_t i = 0; i < n_names; i++) {
		size_t len = strlen(names[i]), blanks;

		if (strncmp(p, names[i], len) != 0)
			continue;
		blanks = strspn(p + len, BLANKS);
		ret->trims_behind = blanks > 0 && p[len + blanks] == '-';
		len += blanks + ret->trims_behind;
		if (!hf_str_has_prefix(p + len, "}}"))
			continue;
		ret->name = i;
		ret->len = (size_t)(p - text) + len + strlen("}}");
		return true;
	}
	return false;
}

static int refuse_action(const char *template, const char *at, struct hf_error *err)
{
	const char *end = strstr(at, "}}");
	int len = (int)(end == NULL ? strcspn(at, "\n") : (size_t)(end - at) + strlen("}}"));
	int line = 1;

	for (const char *p = template; p < at; p++)
		line += *p == '\n';
	return hf_error_set(
		err, HF_E_INVALID,
		"init container template: line %d: '%.*s' cannot be expanded; only .MasterAddr, "
		".InitContainerImage and .MaxTries can be, with or without trim markers",
		line, len < ACTION_SHOWN_MAX ? len : (int)hf_utf8_cut(at, ACTION_SHOWN_MAX), at);
}

/* Check the members that an API server demands: name and image.  Other members of a container may
 * be missing. */
static int check_containers(const struct hf_json *list, struct hf_error *err)
{
	static const char *const needed[] = {"name", "image"};

	for (size_t i = 0; i < hf_json_len(list); i++)
		for (size_t n = 0; n < HF_ARRAY_LEN(needed); n++)
			if (hf_str_is_empty(hf_json_str(
				    hf_json_get(hf_json_item(list, i), needed[n]), NULL)))
				return hf_error_set(err, HF_E_INVALID,
						    "init container template: container %zu has no "
						    "%s",
						    i, needed[n]);
	return 0;
}

static void add_value(size_t name, const char *address, const struct hf_settings *settings,
		      struct hf_strbuf *out)
{
	if (name == 0)
		hf_strbuf_addstr(out, address);
	else if (name == 1)
		hf_strbuf_addstr(out, hf_str_or(settings->init_container_image, INIT_IMAGE));
	else
		hf_strbuf_addf(out, "%d",
			       settings->init_container_max_tries > 0
				       ? settings->init_container_max_tries
				       : INIT_TRIES);
}

/* Expand the template: text and actions take turns.  Trim markers remove blanks of the text, never
 * of a value. */
static int expand_template(const char *template, const char *address,
			   const struct hf_settings *settings, struct hf_strbuf *out,
			   struct hf_error *err)
{
	static const char *const names[] = {".MasterAddr", ".InitContainerImage", ".MaxTries"};
	struct action action = {0};

	for (const char *p = template; *p != '\0';) {
		const char *end = strstr(p, "{{");
		size_t len = end == NULL ? strlen(p) : (size_t)(end - p);

		if (end != NULL && !read_action(end, names, HF_ARRAY_LEN(names), &action))
			return refuse_action(template, end, err);
		while (end != NULL && action.trims_before && len > 0 &&
		       strchr(BLANKS, p[len - 1]) != NULL)
			len--;
		hf_strbuf_addf(out, "%.*s", (int)len, p);
		if (end == NULL)
			break;
		add_value(action.name, address, settings, out);
		p = end + action.len;
		p += action.trims_behind ? strspn(p, BLANKS) : 0;
	}
	return 0;
}

int hf_render_init_containers(const char *text, const char *address,
			      const struct hf_settings *settings, struct hf_json **ret_list,
			      struct hf_error *err)
{
	HF_AUTO_STRBUF out = HF_STRBUF_INIT(TEMPLATE_BYTES_MAX);
	HF_AUTO_YAML yaml = NULL;
	int rc = expand_template(text, address, settings, &out, err);

	if (rc != 0)
		return rc;
	rc = hf_strbuf_ok(&out, "the init container template", err);
	if (rc == 0)
		rc = hf_yaml_parse(out.data, out.len, NULL, &yaml, err);
	if (rc != 0)
		return hf_error_set(err, HF_E_INVALID, "init container template: %s",
				    err == NULL ? "" : err->text);
	if (hf_yaml_len(yaml) != 1 || hf_json_type(hf_yaml_doc(yaml, 0)) != HF_JSON_ARRAY)
		return hf_error_set(err, HF_E_INVALID,
				    "init container template: it is not a list of containers");
	rc = check_containers(hf_yaml_doc(yaml, 0), err);
	if (rc == 0)
		*ret_list = hf_json_copy(hf_yaml_doc(yaml, 0));
	return rc;
}

/* --- edits ------------------------------------------------------------------------------------ */

static void set_pairs(struct hf_json *object, const struct hf_key_value *pairs, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hf_json_set_str(object, pairs[i].key, pairs[i].value);
}

static struct hf_json *new_pair(const char *first, const char *a, const char *second, const char *b)
{
	struct hf_json *object = hf_json_object();

	hf_json_set_str(object, first, a);
	hf_json_set_str(object, second, b);
	return object;
}

/* A template may allow more or less; what the container itself says wins. */
static struct hf_json *build_restricted(void)
{
	struct hf_json *context = hf_json_object(), *drop;

	hf_json_set(context, "allowPrivilegeEscalation", hf_json_bool(false));
	drop = hf_json_ensure_array(hf_json_ensure_object(context, "capabilities"), "drop");
	hf_json_append(drop, hf_json_string("ALL"));
	hf_json_set(context, "readOnlyRootFilesystem", hf_json_bool(true));
	hf_json_set(context, "runAsNonRoot", hf_json_bool(true));
	hf_json_set_i64(context, "runAsUser", NOBODY_UID);
	hf_json_set_str(hf_json_ensure_object(context, "seccompProfile"), "type", "RuntimeDefault");
	return context;
}

static struct hf_json *build_container(const struct hf_container_build *build)
{
	struct hf_json *container = hf_json_object(), *command, *resources;

	hf_json_set_str(container, "name", build->name);
	hf_json_set_str(container, "image", build->image);
	hf_json_set_str(container, "imagePullPolicy", build->image_pull_policy);
	for (size_t i = 0; i < build->command_len; i++) {
		command = hf_json_ensure_array(container, "command");
		hf_json_append(command, hf_json_string(build->command[i]));
	}
	resources = hf_json_ensure_object(container, "resources");
	set_pairs(hf_json_ensure_object(resources, "limits"), build->limits, build->limits_len);
	set_pairs(hf_json_ensure_object(resources, "requests"), build->requests,
		  build->requests_len);
	for (size_t i = 0; i < build->env_len; i++)
		hf_json_append(hf_json_ensure_array(container, "env"),
			       new_pair("name", build->env[i].key, "value", build->env[i].value));
	for (size_t i = 0; i < build->mounts_len; i++)
		hf_json_append(hf_json_ensure_array(container, "volumeMounts"),
			       new_pair("name", build->mounts[i].key, "mountPath",
					build->mounts[i].value));
	if (build->restricted)
		hf_json_set(container, "securityContext", build_restricted());
	return container;
}

static struct hf_json *build_env(const struct hf_edit *edit)
{
	struct hf_json *env = hf_json_object();

	hf_json_set_str(env, "name", edit->name);
	if (edit->kind == HF_EDIT_ENV) {
		hf_json_set_str(env, "value", edit->value);
	} else {
		struct hf_json *from = hf_json_ensure_object(env, "valueFrom");

		hf_json_set_str(hf_json_ensure_object(from, "fieldRef"), "fieldPath", edit->value);
	}
	return env;
}

static void put_before_command(struct hf_json *container, const struct hf_edit *edit)
{
	const struct hf_json *command = hf_json_get(container, "command");
	struct hf_json *words = hf_json_array();

	for (size_t i = 0; i < edit->words_len; i++)
		hf_json_append(words, hf_json_string(edit->words[i]));
	for (size_t i = 0; i < hf_json_len(command); i++)
		hf_json_append(words, hf_json_ref(hf_json_item(command, i)));
	hf_json_set(container, "command", words);
}

static void add_mount(struct hf_json *container, const struct hf_edit *edit)
{
	struct hf_json *mount = new_pair("name", edit->name, "mountPath", edit->value);

	if (edit->number != 0)
		hf_json_set(mount, "readOnly", hf_json_bool(true));
	hf_json_append(hf_json_ensure_array(container, "volumeMounts"), mount);
}

static void edit_container(struct hf_json *container, const struct hf_edit *edit)
{
	struct hf_json *port, *words;

	switch (edit->kind) {
	case HF_EDIT_PORT: break;
	case HF_EDIT_COMMAND:
	case HF_EDIT_ARGS:
		words = hf_json_array();
		hf_json_append(words, hf_json_string(edit->value));
		hf_json_set(container, edit->kind == HF_EDIT_ARGS ? "args" : "command", words);
		return;
	case HF_EDIT_COMMAND_BEFORE: put_before_command(container, edit); return;
	case HF_EDIT_MOUNT: add_mount(container, edit); return;
	default: hf_json_append(hf_json_ensure_array(container, "env"), build_env(edit)); return;
	}
	port = hf_json_object();
	hf_json_set_str(port, "name", edit->name);
	hf_json_set_i64(port, "containerPort", edit->number);
	hf_json_append(hf_json_ensure_array(container, "ports"), port);
}

static int edit_containers(struct hf_json *spec, const struct hf_edit *edit, struct hf_error *err)
{
	struct hf_json *list = hf_json_get(spec, "containers");
	size_t len = hf_json_len(list);

	for (size_t i = 0; i < len; i++)
		if (edit->container == HF_EDIT_EVERY_CONTAINER || (size_t)edit->container == i)
			edit_container(hf_json_item(list, i), edit);
	if (edit->container != HF_EDIT_EVERY_CONTAINER && (size_t)edit->container >= len)
		return hf_error_set(err, HF_E_INVALID, "the pod template has no container %d",
				    edit->container);
	return 0;
}

static int edit_init_containers(const struct hf_render_args *args, struct hf_json *spec,
				const struct hf_edit *edit, struct hf_error *err)
{
	struct hf_json *list = hf_json_ensure_array(spec, "initContainers");
	HF_AUTO_JSON more = NULL;
	int rc;

	if (edit->add != NULL) {
		hf_json_append(list, build_container(edit->add));
		return 0;
	}
	if (args->init_container_template == NULL)
		return hf_error_set(err, HF_E_INVALID,
				    "the operator has no template of the init container");
	rc = hf_render_init_containers(args->init_container_template, hf_str_or(edit->value, ""),
				       args->settings, &more, err);
	for (size_t i = 0; rc == 0 && i < hf_json_len(more); i++)
		hf_json_append(list, hf_json_ref(hf_json_item(more, i)));
	return rc;
}

/* Add a separate requirement for the node, because the API server takes only one value for
 * matchFields. */
static void add_not_in(struct hf_json *term, const char *node)
{
	struct hf_json *requirement = hf_json_object(), *values = hf_json_array();

	hf_json_append(values, hf_json_string(node));
	hf_json_set_str(requirement, "key", "metadata.name");
	hf_json_set_str(requirement, "operator", "NotIn");
	hf_json_set(requirement, "values", values);
	hf_json_append(hf_json_ensure_array(term, "matchFields"), requirement);
}

/* Exclude the node in every required term, because terms are ORed.  An empty term matches no node
 * and stays as it is. */
static void edit_required(struct hf_json *affinity, const char *node)
{
	struct hf_json *required =
		hf_json_ensure_object(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
	struct hf_json *terms = hf_json_ensure_array(required, "nodeSelectorTerms");
	size_t n = hf_json_len(terms);

	if (n == 0) {
		struct hf_json *term = hf_json_object();

		add_not_in(term, node);
		hf_json_append(terms, term);
	}
	for (size_t i = 0; i < n; i++)
		if (hf_json_len(hf_json_item(terms, i)) > 0)
			add_not_in(hf_json_item(terms, i), node);
}

static void edit_preferred(struct hf_json *affinity, const char *node)
{
	struct hf_json *term = hf_json_object();

	hf_json_set_i64(term, "weight", 100);
	add_not_in(hf_json_ensure_object(term, "preference"), node);
	hf_json_append(
		hf_json_ensure_array(affinity, "preferredDuringSchedulingIgnoredDuringExecution"),
		term);
}

static void edit_avoid(struct hf_json *spec, const struct hf_edit *edit)
{
	struct hf_json *affinity =
		hf_json_ensure_object(hf_json_ensure_object(spec, "affinity"), "nodeAffinity");

	if (edit->number != 0)
		edit_required(affinity, edit->name);
	else
		edit_preferred(affinity, edit->name);
}

static struct hf_json *build_config(const struct hf_edit *edit)
{
	struct hf_json *config = hf_json_object();

	hf_json_set_str(config, "name", edit->value);
	for (size_t i = 0; i < edit->files_len; i++) {
		struct hf_json *item =
			new_pair("key", edit->files[i].name, "path", edit->files[i].name);

		hf_json_set_i64(item, "mode", edit->files[i].mode);
		hf_json_append(hf_json_ensure_array(config, "items"), item);
	}
	return config;
}

static void edit_volumes(struct hf_json *spec, const struct hf_edit *edit)
{
	struct hf_json *volume = hf_json_object(), *csi;

	hf_json_set_str(volume, "name", edit->name);
	switch (edit->kind) {
	case HF_EDIT_VOLUME_EMPTY: hf_json_set(volume, "emptyDir", hf_json_object()); break;
	case HF_EDIT_VOLUME_CONFIG: hf_json_set(volume, "configMap", build_config(edit)); break;
	case HF_EDIT_VOLUME_HOST:
		hf_json_set(volume, "hostPath",
			    new_pair("path", edit->value, "type", "DirectoryOrCreate"));
		break;
	default:
		csi = hf_json_ensure_object(volume, "csi");
		hf_json_set_str(csi, "driver", edit->value);
		hf_json_set(csi, "readOnly", hf_json_bool(true));
		break;
	}
	hf_json_append(hf_json_ensure_array(spec, "volumes"), volume);
}

static void set_text(struct hf_json *spec, const struct hf_edit *edit)
{
	hf_json_set_str(spec,
			edit->kind == HF_EDIT_RESTART_POLICY   ? "restartPolicy"
			: edit->kind == HF_EDIT_SCHEDULER_NAME ? "schedulerName"
							       : "serviceAccountName",
			edit->value);
}

static bool is_of_containers(enum hf_edit_kind kind)
{
	return kind == HF_EDIT_ENV || kind == HF_EDIT_ENV_FIELD || kind == HF_EDIT_PORT ||
	       kind == HF_EDIT_COMMAND || kind == HF_EDIT_COMMAND_BEFORE || kind == HF_EDIT_ARGS ||
	       kind == HF_EDIT_MOUNT;
}

static int apply_edit(const struct hf_render_args *args, struct hf_json *pod,
		      const struct hf_edit *edit, struct hf_error *err)
{
	struct hf_json *meta = hf_json_ensure_object(pod, "metadata");
	struct hf_json *spec = hf_json_ensure_object(pod, "spec");

	if (edit->kind >= HF_EDIT_VOLUME_EMPTY) {
		edit_volumes(spec, edit);
		return 0;
	}
	if (is_of_containers(edit->kind))
		return edit_containers(spec, edit, err);
	switch (edit->kind) {
	case HF_EDIT_LABEL:
		hf_json_set_str(hf_json_ensure_object(meta, "labels"), edit->name, edit->value);
		return 0;
	case HF_EDIT_ANNOTATION:
		hf_json_set_str(hf_json_ensure_object(meta, "annotations"), edit->name,
				edit->value);
		return 0;
	case HF_EDIT_SCHEDULER_NAME:
	case HF_EDIT_SERVICE_ACCOUNT:
	case HF_EDIT_RESTART_POLICY: set_text(spec, edit); return 0;
	case HF_EDIT_AVOID_NODE: edit_avoid(spec, edit); return 0;
	case HF_EDIT_INIT_CONTAINER: return edit_init_containers(args, spec, edit, err);
	default: break;
	}
	return hf_error_set(err, HF_E_INTERNAL, "an edit of an unknown kind (%d)", (int)edit->kind);
}

static struct hf_json *new_object(const struct hf_render_args *args, const char *kind,
				  const char *name)
{
	struct hf_json *object = hf_json_object(), *meta;

	hf_json_set_str(object, "apiVersion", "v1");
	hf_json_set_str(object, "kind", kind);
	meta = hf_json_ensure_object(object, "metadata");
	hf_json_set_str(meta, "name", name);
	hf_json_set_str(meta, "namespace", hf_doc_namespace(args->job));
	set_owner(meta, args->job, args->framework);
	return object;
}

int hf_render_pod(const struct hf_render_args *args, const struct hf_action *action,
		  struct hf_doc **ret_pod, struct hf_error *err)
{
	/* The members of the template's metadata that upstream copies into a pod.  MPIJobs get only
	 * the first two. */
	static const char *const kept[] = {"labels", "annotations", "finalizers"};
	const struct hf_json *template = find_template(args, action->role);
	HF_AUTO_JSON pod = NULL;
	int rc = 0;

	if (hf_json_type(hf_json_get(template, "spec")) != HF_JSON_OBJECT)
		return hf_error_set(err, HF_E_INVALID, "replica type %s has no pod template",
				    args->framework->roles[action->role].name);
	pod = new_object(args, "Pod", action->name);
	for (size_t i = 0; i < HF_ARRAY_LEN(kept) - args->framework->no_finalizers; i++)
		hf_json_set(hf_json_get(pod, "metadata"), kept[i],
			    hf_json_copy(hf_json_path(template, "metadata", kept[i], NULL)));
	hf_json_set(pod, "spec", hf_json_copy(hf_json_get(template, "spec")));
	for (size_t i = 0; i < action->edits_len && rc == 0; i++)
		rc = apply_edit(args, pod, &action->edits[i], err);
	hf_json_set_str(hf_json_ensure_object(hf_json_get(pod, "metadata"), "annotations"),
			HF_ANNOTATION_SPEC, args->spec);
	if (rc == 0)
		*ret_pod = hf_doc_from_json(hf_json_ref(pod));
	return rc;
}

/* Copy the job's annotations, by which users give instructions to schedulers.  Holdfast's own
 * annotations and kubectl's copy of the job are left out. */
static void copy_annotations(struct hf_json *meta, const struct hf_json *job)
{
	const struct hf_json *from = hf_json_path(job, "metadata", "annotations", NULL);
	struct hf_json *value;
	const char *key;

	for (void *it = NULL; (it = hf_json_next(from, it, &key, &value)) != NULL;)
		if (!hf_str_has_prefix(key, "holdfast.dev/") &&
		    !hf_streq(key, "kubectl.kubernetes.io/last-applied-configuration"))
			hf_json_set(hf_json_ensure_object(meta, "annotations"), key,
				    hf_json_ref(value));
}

struct hf_doc *hf_render_extra(const struct hf_render_args *args, const struct hf_action *action)
{
	struct hf_json *object = hf_extra_write(action->extra), *meta;

	meta = hf_json_get(object, "metadata");
	if (action->extra->annotated)
		copy_annotations(meta, hf_doc_json(args->job));
	hf_json_set_str(meta, "namespace", hf_doc_namespace(args->job));
	set_owner(meta, args->job, args->framework);
	return hf_doc_from_json(object);
}

struct hf_doc *hf_render_service(const struct hf_render_args *args, const struct hf_action *action)
{
	struct hf_json *service = new_object(args, "Service", action->name);
	struct hf_json *meta = hf_json_get(service, "metadata");
	struct hf_json *spec = hf_json_ensure_object(service, "spec"), *ports;

	set_pairs(hf_json_ensure_object(meta, "labels"), action->labels, action->labels_len);
	hf_json_set_str(spec, "clusterIP", "None");
	set_pairs(hf_json_ensure_object(spec, "selector"), action->labels, action->labels_len);
	ports = hf_json_ensure_array(spec, "ports");
	for (size_t i = 0; i < action->ports_len; i++) {
		struct hf_json *port = hf_json_object();

		if (!hf_str_is_empty(action->ports[i].name))
			hf_json_set_str(port, "name", action->ports[i].name);
		hf_json_set_i64(port, "port", action->ports[i].number);
		hf_json_append(ports, port);
	}
	return hf_doc_from_json(service);
}
