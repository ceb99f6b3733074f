/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/kubelet_internal.h"

#include "base/mem.h"
#include "base/quantity.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * Builds a container's environment and expands $(NAME). Pure, apart from reading the fetched
 * ConfigMaps and Secrets.
 */

#define VARIABLES_MAX 4096
/* limit of one value: the kernel's ARG_MAX. (The kernel allows 128 KiB for one variable, and
 * refuses the program otherwise.) */
#define VALUE_BYTES_MAX ((size_t)2 << 20)

struct variables {
	const char **items; /* "NAME=value", NULL-terminated */
	/* `items` begins with n_base variables of the kubelet; $(NAME) in a value refers only to
	 * the pod's variables behind them */
	size_t n, n_base;
	struct hf_arena *arena;
};

/* --- $(NAME) --- */

static const char *value_of(const char *const *env, const char *name, size_t len)
{
	for (size_t i = 0; env && env[i]; i++)
		if (strncmp(env[i], name, len) == 0 && env[i][len] == '=')
			return env[i] + len + 1;
	return NULL;
}

const char *hf_kubelet_env_expand(const char *text, const char *const *env, struct hf_arena *arena)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(VALUE_BYTES_MAX);

	while (*text) {
		const char *close, *value;

		if (text[0] == '$' && text[1] == '$') {
			hf_strbuf_addch(&sb, '$');
			text += 2;
			continue;
		}
		close = text[0] == '$' && text[1] == '(' ? strchr(text, ')') : NULL;
		value = close ? value_of(env, text + 2, (size_t)(close - text) - 2) : NULL;
		if (value) {
			hf_strbuf_addstr(&sb, value);
			text = close + 1;
		} else {
			hf_strbuf_addch(&sb, *text++);
		}
	}
	return hf_arena_strndup(arena, sb.data, sb.len);
}

/* --- fields of the pod --- */

/* Returns KEY of "metadata.labels['KEY']", or NULL if the path has another form. */
static const char *parse_subscript(const char *path, const char *map, struct hf_arena *arena)
{
	size_t len = strlen(map);
	const char *end;

	if (strncmp(path, map, len) != 0 || strncmp(path + len, "['", 2) != 0)
		return NULL;
	path += len + 2;
	end = strstr(path, "']");
	if (!end || end[2] != '\0')
		return NULL;
	return hf_arena_strndup(arena, path, (size_t)(end - path));
}

const char *hf_kubelet_env_field(const struct hf_kubelet_env_input *input, const char *path,
				 struct hf_arena *arena, struct hf_error *err)
{
	static const char *const maps[] = {"labels", "annotations"};
	const struct hf_json *meta = hf_json_get(input->pod, "metadata");
	const struct hf_json *spec = hf_json_get(input->pod, "spec");
	const struct {
		const char *path;
		const char *value;
	} fields[] = {
		{"metadata.name", hf_json_path_str(meta, "name", NULL)},
		{"metadata.namespace", hf_json_path_str(meta, "namespace", NULL)},
		{"metadata.uid", hf_json_path_str(meta, "uid", NULL)},
		{"spec.nodeName", hf_json_path_str(spec, "nodeName", NULL)},
		{"spec.serviceAccountName", hf_json_path_str(spec, "serviceAccountName", NULL)},
		{"status.podIP", input->pod_ip},
		{"status.podIPs", input->pod_ip},
		{"status.hostIP", input->host_ip},
		{"status.hostIPs", input->host_ip},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(fields); i++)
		if (hf_streq(path, fields[i].path))
			return hf_str_or(fields[i].value, "");
	for (size_t i = 0; i < HF_ARRAY_LEN(maps); i++) {
		const char *key = parse_subscript(
			path, hf_arena_printf(arena, "metadata.%s", maps[i]), arena);

		if (key)
			return hf_str_or(hf_json_path_str(meta, maps[i], key, NULL), "");
	}
	(void)hf_error_set(err, HF_E_INVALID, "fieldPath '%s' is not supported", path);
	return NULL;
}

static const struct hf_json *find_container(const struct hf_json *pod, const char *name)
{
	static const char *const lists[] = {"containers", "initContainers"};

	for (size_t l = 0; l < HF_ARRAY_LEN(lists); l++) {
		const struct hf_json *list = hf_json_path(pod, "spec", lists[l], NULL);

		for (size_t i = 0; i < hf_json_len(list); i++) {
			const struct hf_json *c = hf_json_item(list, i);

			if (hf_streq(hf_json_path_str(c, "name", NULL), name))
				return c;
		}
	}
	return NULL;
}

static bool read_quantity(const struct hf_json *value, int64_t *ret_milli)
{
	const char *text = hf_json_str(value, NULL);

	if (text)
		return hf_quantity_parse_milli(text, ret_milli, NULL) == 0;
	*ret_milli = hf_json_i64(value, 0);
	return hf_json_type(value) == HF_JSON_INT &&
	       !__builtin_mul_overflow(*ret_milli, 1000, ret_milli);
}

const char *hf_kubelet_env_resource(const struct hf_kubelet_env_input *input,
				    const struct hf_json *ref, struct hf_arena *arena,
				    struct hf_error *err)
{
	const char *name = hf_json_path_str(ref, "containerName", NULL);
	const char *resource = hf_str_or(hf_json_path_str(ref, "resource", NULL), "");
	const char *dot = strchr(resource, '.');
	const struct hf_json *container =
		name ? find_container(input->pod, name) : input->container;
	int64_t milli, divisor = 1000;
	const struct hf_json *value = NULL;

	if (dot) {
		const char *list = hf_arena_strndup(arena, resource, (size_t)(dot - resource));

		value = hf_json_path(container, "resources", list, dot + 1, NULL);
	}
	if (!value || !read_quantity(value, &milli)) {
		(void)hf_error_set(err, HF_E_INVALID,
				   "resourceFieldRef '%s': the container does not set it",
				   resource);
		return NULL;
	}
	if (hf_json_get(ref, "divisor"))
		(void)read_quantity(hf_json_get(ref, "divisor"), &divisor);
	if (divisor <= 0)
		divisor = 1000;
	return hf_arena_printf(arena, "%" PRId64, milli / divisor + (milli % divisor > 0));
}

/* --- valueFrom --- */

void hf_kubelet_env_add_refs(const struct hf_json *container, struct hf_kubelet_refs *refs)
{
	const struct hf_json *env = hf_json_get(container, "env");
	const struct hf_json *from = hf_json_get(container, "envFrom");

	for (size_t i = 0; i < hf_json_len(env); i++) {
		const struct hf_json *source = hf_json_get(hf_json_item(env, i), "valueFrom");

		hf_kubelet_refs_add(refs, &hf_configmaps,
				    hf_json_path_str(source, "configMapKeyRef", "name", NULL));
		hf_kubelet_refs_add(refs, &hf_secrets,
				    hf_json_path_str(source, "secretKeyRef", "name", NULL));
	}
	for (size_t i = 0; i < hf_json_len(from); i++) {
		const struct hf_json *item = hf_json_item(from, i);

		hf_kubelet_refs_add(refs, &hf_configmaps,
				    hf_json_path_str(item, "configMapRef", "name", NULL));
		hf_kubelet_refs_add(refs, &hf_secrets,
				    hf_json_path_str(item, "secretRef", "name", NULL));
	}
}

/* Reads the value of a valueFrom. If the key is missing and the reference is optional, *ret_value
 * is NULL. */
static int value_of_key(const struct hf_kubelet_env_input *input,
			const struct hf_resource *resource, const struct hf_json *ref,
			struct hf_arena *arena, const char **ret_value, struct hf_error *err)
{
	HF_AUTO_STRBUF bytes = HF_STRBUF_INIT(VALUE_BYTES_MAX);
	bool optional = hf_json_true(hf_json_get(ref, "optional"), false);
	const char *name = hf_str_or(hf_json_path_str(ref, "name", NULL), "");
	const char *key = hf_str_or(hf_json_path_str(ref, "key", NULL), "");
	struct hf_doc *doc = hf_kubelet_refs_get(input->refs, resource, name, err);
	int rc;

	*ret_value = NULL;
	if (!doc)
		return optional && err->code == HF_E_NOT_FOUND ? 0 : err->code;
	rc = hf_kubelet_data_get(doc, key, &bytes, err);
	if (rc == HF_E_NOT_FOUND && optional)
		return 0;
	if (rc)
		return hf_error_set(err, HF_E_INVALID, "couldn't find key %s in %s %s/%s", key,
				    resource->kind, hf_doc_namespace(doc), name);
	*ret_value = hf_arena_strndup(arena, bytes.data, bytes.len);
	return 0;
}

static int value_from(const struct hf_kubelet_env_input *input, const struct hf_json *source,
		      struct hf_arena *arena, const char **ret_value, struct hf_error *err)
{
	const struct hf_json *ref;

	if ((ref = hf_json_get(source, "fieldRef")))
		*ret_value = hf_kubelet_env_field(
			input, hf_str_or(hf_json_path_str(ref, "fieldPath", NULL), ""), arena, err);
	else if ((ref = hf_json_get(source, "resourceFieldRef")))
		*ret_value = hf_kubelet_env_resource(input, ref, arena, err);
	else if ((ref = hf_json_get(source, "configMapKeyRef")))
		return value_of_key(input, &hf_configmaps, ref, arena, ret_value, err);
	else if ((ref = hf_json_get(source, "secretKeyRef")))
		return value_of_key(input, &hf_secrets, ref, arena, ret_value, err);
	else
		return hf_error_set(err, HF_E_UNSUPPORTED,
				    "this kind of valueFrom is not supported");
	return *ret_value ? 0 : err->code;
}

/* --- the list of variables --- */

static int set_variable(struct variables *v, const char *name, const char *value,
			struct hf_error *err)
{
	size_t len = strlen(name);
	const char *item = hf_arena_printf(v->arena, "%s=%s", name, value);

	for (size_t i = 0; i < v->n; i++) {
		if (strncmp(v->items[i], name, len) == 0 && v->items[i][len] == '=') {
			v->items[i] = item;
			/* The pod sets a variable that the kubelet had set: move it to the pod's
			 * variables, so that $(NAME) can refer to it. */
			if (i < v->n_base) {
				v->items[i] = v->items[v->n_base - 1];
				v->items[--v->n_base] = item;
			}
			return 0;
		}
	}
	if (v->n == VARIABLES_MAX)
		return hf_error_set(err, HF_E_TOO_LARGE, "more than %d variables", VARIABLES_MAX);
	v->items[v->n++] = item;
	return 0;
}

struct from {
	struct variables *variables;
	const char *prefix;
};

static int add_from(void *arg, const char *key, const struct hf_strbuf *bytes, struct hf_error *err)
{
	struct from *from = arg;

	return set_variable(from->variables,
			    hf_arena_printf(from->variables->arena, "%s%s", from->prefix, key),
			    bytes->data, err);
}

static int add_env_from(const struct hf_kubelet_env_input *input, const struct hf_json *item,
			struct variables *v, struct hf_error *err)
{
	bool secret = hf_json_get(item, "secretRef") != NULL;
	const struct hf_json *ref = hf_json_get(item, secret ? "secretRef" : "configMapRef");
	struct from from = {v, hf_str_or(hf_json_path_str(item, "prefix", NULL), "")};
	struct hf_doc *doc =
		hf_kubelet_refs_get(input->refs, secret ? &hf_secrets : &hf_configmaps,
				    hf_str_or(hf_json_path_str(ref, "name", NULL), ""), err);

	if (doc)
		return hf_kubelet_data_each(doc, add_from, &from, err);
	if (err->code == HF_E_NOT_FOUND && hf_json_true(hf_json_get(ref, "optional"), false))
		return 0;
	return err->code;
}

static int add_env(const struct hf_kubelet_env_input *input, const struct hf_json *item,
		   struct variables *v, struct hf_error *err)
{
	const struct hf_json *source = hf_json_get(item, "valueFrom");
	const char *name = hf_str_or(hf_json_path_str(item, "name", NULL), "");
	const char *value = NULL;

	if (!name[0] || strchr(name, '='))
		return hf_error_set(err, HF_E_INVALID, "env: '%s' cannot name a variable", name);
	if (source) {
		int rc = value_from(input, source, v->arena, &value, err);

		if (rc || !value)
			return rc;
	} else {
		value = hf_kubelet_env_expand(hf_str_or(hf_json_path_str(item, "value", NULL), ""),
					      v->items + v->n_base, v->arena);
	}
	return set_variable(v, name, value, err);
}

int hf_kubelet_env_build(const struct hf_kubelet_env_input *input, struct hf_arena *arena,
			 const char *const **ret_env, struct hf_error *err)
{
	const struct hf_json *from = hf_json_get(input->container, "envFrom");
	const struct hf_json *env = hf_json_get(input->container, "env");
	struct variables v = {.arena = arena,
			      .items = HF_ARENA_ARRAY(arena, const char *, VARIABLES_MAX + 1)};
	int rc = 0;

	for (size_t i = 0; input->base && input->base[i]; i++) {
		const char *equals = strchr(input->base[i], '=');

		hf_assert(equals && v.n < VARIABLES_MAX);
		v.items[v.n++] = input->base[i];
	}
	rc = set_variable(&v, "HOSTNAME", input->hostname, err);
	v.n_base = v.n;
	for (size_t i = 0; !rc && i < hf_json_len(from); i++)
		rc = add_env_from(input, hf_json_item(from, i), &v, err);
	for (size_t i = 0; !rc && i < hf_json_len(env); i++)
		rc = add_env(input, hf_json_item(env, i), &v, err);
	if (!rc)
		*ret_env = v.items;
	return rc;
}
