/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/pod_rules.h"

#include "api/reader_internal.h"
#include "base/quantity.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/*
 * Checks a pod's spec by the rules of core/v1 validation. The texts of the errors equal those of
 * the Kubernetes API server.
 */

#define PORT_NAME_LEN_MAX 15
#define VALUE_BYTES_MAX 4096 /* an error quotes at most this many bytes of a value */

static const char *member_str(const struct hf_json *object, const char *key)
{
	return hf_json_str(hf_json_get(object, key), "");
}

/* Adds an error about a member of the object at the reader's path. key: the member, such as
 * ".name"; "": the object itself. */
static void add_problem(struct hf_reader *r, enum hf_problem problem, const struct hf_json *value,
			const char *detail, const char *key)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(VALUE_BYTES_MAX);

	if (value != NULL)
		hf_json_write(value, HF_JSON_COMPACT, &text);
	else
		hf_strbuf_addstr(&text, "null");
	hf_field_add(r->errors, problem, text.data, detail, "%s%s", hf_reader_path(r), key);
}

/* Tells whether one of the items before i has this name. The lists are short, so a linear search
 * will do. */
static bool seen_before(const struct hf_json *list, size_t i, const char *name)
{
	for (size_t k = 0; k < i; k++)
		if (hf_streq(member_str(hf_json_item(list, k), "name"), name))
			return true;
	return false;
}

/* Checks the name of item i: present, well formed and unique in the list. */
static void check_name(struct hf_reader *r, const struct hf_json *list, size_t i)
{
	const struct hf_json *item = hf_json_item(list, i), *value = hf_json_get(item, "name");
	const char *name = member_str(item, "name"), *problem = hf_dns1123_label_problem(name);

	if (*name == '\0')
		add_problem(r, HF_PROBLEM_REQUIRED, value, "", ".name");
	else if (problem != NULL)
		add_problem(r, HF_PROBLEM_INVALID, value, problem, ".name");
	else if (seen_before(list, i, name))
		add_problem(r, HF_PROBLEM_DUPLICATE, value, "", ".name");
}

static void check_one_of(struct hf_reader *r, const struct hf_json *object, const char *key,
			 const char *const *supported)
{
	HF_AUTO_STRBUF detail = HF_STRBUF_INIT(512);
	const char *value = member_str(object, key);
	char place[64];

	hf_strbuf_addstr(&detail, "supported values: ");
	for (size_t i = 0; supported[i] != NULL; i++) {
		if (hf_streq(value, supported[i]))
			return;
		hf_strbuf_addf(&detail, "%s\"%s\"", i > 0 ? ", " : "", supported[i]);
	}
	(void)snprintf(place, sizeof(place), ".%s", key);
	if (*value != '\0')
		add_problem(r, HF_PROBLEM_NOT_SUPPORTED, hf_json_get(object, key), detail.data,
			    place);
}

static void check_ports(struct hf_reader *r, const struct hf_json *container)
{
	static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};
	const struct hf_json *ports = hf_json_get(container, "ports");

	for (size_t i = 0; i < hf_json_len(ports); i++) {
		const struct hf_json *port = hf_json_item(ports, i);
		const struct hf_json *number = hf_json_get(port, "containerPort");
		const struct hf_json *named = hf_json_get(port, "name");
		size_t mark = hf_reader_enter(r, ".ports[%zu]", i);
		const char *name = member_str(port, "name");
		if (number == NULL)
			add_problem(r, HF_PROBLEM_REQUIRED, NULL, "", ".containerPort");
		else if (hf_json_i64(number, 0) < 1 || hf_json_i64(number, 0) > 65535)
			add_problem(r, HF_PROBLEM_INVALID, number,
				    "must be between 1 and 65535, inclusive", ".containerPort");
		check_one_of(r, port, "protocol", protocols);
		if (strlen(name) > PORT_NAME_LEN_MAX)
			add_problem(r, HF_PROBLEM_INVALID, named,
				    "must be no more than 15 characters", ".name");
		else if (*name != '\0' && hf_dns1123_label_problem(name) != NULL)
			add_problem(r, HF_PROBLEM_INVALID, named, hf_dns1123_label_problem(name),
				    ".name");
		if (*name != '\0' && seen_before(ports, i, name))
			add_problem(r, HF_PROBLEM_DUPLICATE, named, "", ".name");
		hf_reader_leave(r, mark);
	}
}

static void check_env(struct hf_reader *r, const struct hf_json *container)
{
	const struct hf_json *env = hf_json_get(container, "env");

	for (size_t i = 0; i < hf_json_len(env); i++) {
		const struct hf_json *var = hf_json_item(env, i), *name = hf_json_get(var, "name");
		size_t mark = hf_reader_enter(r, ".env[%zu]", i);
		if (*member_str(var, "name") == '\0')
			add_problem(r, HF_PROBLEM_REQUIRED, name, "", ".name");
		else if (strchr(member_str(var, "name"), '=') != NULL)
			add_problem(r, HF_PROBLEM_INVALID, name,
				    "a valid environment variable name must not contain '='",
				    ".name");
		if (*member_str(var, "value") != '\0' &&
		    hf_json_len(hf_json_get(var, "valueFrom")) > 0)
			add_problem(r, HF_PROBLEM_INVALID, NULL,
				    "may not be specified when `value` is not empty", ".valueFrom");
		hf_reader_leave(r, mark);
	}
}

static void check_mounts(struct hf_reader *r, const struct hf_json *container,
			 const struct hf_json *volumes)
{
	const struct hf_json *mounts = hf_json_get(container, "volumeMounts");

	for (size_t i = 0; i < hf_json_len(mounts); i++) {
		const struct hf_json *mount = hf_json_item(mounts, i);
		const struct hf_json *name = hf_json_get(mount, "name");
		size_t mark = hf_reader_enter(r, ".volumeMounts[%zu]", i);
		if (*member_str(mount, "name") == '\0')
			add_problem(r, HF_PROBLEM_REQUIRED, name, "", ".name");
		else if (!seen_before(volumes, hf_json_len(volumes), member_str(mount, "name")))
			add_problem(r, HF_PROBLEM_NOT_FOUND, name, "", ".name");
		if (*member_str(mount, "mountPath") == '\0')
			add_problem(r, HF_PROBLEM_REQUIRED, NULL, "", ".mountPath");
		hf_reader_leave(r, mark);
	}
}

/* Reads a quantity in thousandths. Returns false after adding an error. */
static bool read_amount(struct hf_reader *r, const struct hf_json *value, int64_t *ret_milli)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(256);

	if (hf_json_type(value) == HF_JSON_STRING)
		hf_strbuf_addstr(&sb, hf_json_str(value, ""));
	else
		hf_json_write(value, HF_JSON_COMPACT, &sb);
	if (sb.full || hf_quantity_parse_milli(sb.data, ret_milli, NULL) != 0) {
		add_problem(r, HF_PROBLEM_INVALID, value,
			    "quantities must match the regular expression "
			    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
			    "");
		return false;
	}
	if (*ret_milli < 0) {
		add_problem(r, HF_PROBLEM_INVALID, value, "must be greater than or equal to 0", "");
		return false;
	}
	return true;
}

static bool read_quietly(const struct hf_json *value, int64_t *ret_milli)
{
	return hf_json_type(value) == HF_JSON_STRING &&
	       hf_quantity_parse_milli(hf_json_str(value, ""), ret_milli, NULL) == 0;
}

static void check_resources(struct hf_reader *r, const struct hf_json *container)
{
	const struct hf_json *resources = hf_json_get(container, "resources");
	const struct hf_json *limits = hf_json_get(resources, "limits");
	const struct hf_json *requests = hf_json_get(resources, "requests");
	struct hf_json *value;
	const char *key;
	int64_t amount, most;

	for (void *it = NULL; (it = hf_json_next(limits, it, &key, &value)) != NULL;) {
		size_t mark = hf_reader_enter(r, ".resources.limits[%s]", key);
		(void)read_amount(r, value, &amount);
		hf_reader_leave(r, mark);
	}
	for (void *it = NULL; (it = hf_json_next(requests, it, &key, &value)) != NULL;) {
		size_t mark = hf_reader_enter(r, ".resources.requests[%s]", key);
		char detail[256];
		(void)snprintf(detail, sizeof(detail), "must be less than or equal to %.200s limit",
			       key);
		if (read_amount(r, value, &amount) &&
		    read_quietly(hf_json_get(limits, key), &most) && amount > most)
			add_problem(r, HF_PROBLEM_INVALID, value, detail, "");
		hf_reader_leave(r, mark);
	}
}

static void check_container(struct hf_reader *r, const struct hf_json *spec,
			    const struct hf_json *list, size_t i)
{
	static const char *const pull[] = {"Always", "IfNotPresent", "Never", NULL};
	static const char *const message[] = {"FallbackToLogsOnError", "File", NULL};
	const struct hf_json *container = hf_json_item(list, i);

	check_name(r, list, i);
	if (*member_str(container, "image") == '\0')
		add_problem(r, HF_PROBLEM_REQUIRED, NULL, "", ".image");
	check_one_of(r, container, "imagePullPolicy", pull);
	check_one_of(r, container, "terminationMessagePolicy", message);
	check_ports(r, container);
	check_env(r, container);
	check_mounts(r, container, hf_json_get(spec, "volumes"));
	check_resources(r, container);
}

static void check_containers(struct hf_reader *r, const struct hf_json *spec, const char *key)
{
	const struct hf_json *list = hf_json_get(spec, key);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		size_t mark = hf_reader_enter(r, ".%s[%zu]", key, i);
		check_container(r, spec, list, i);
		hf_reader_leave(r, mark);
	}
}

static void check_volumes(struct hf_reader *r, const struct hf_json *spec)
{
	const struct hf_json *volumes = hf_json_get(spec, "volumes");

	for (size_t i = 0; i < hf_json_len(volumes); i++) {
		const struct hf_json *host = hf_json_get(hf_json_item(volumes, i), "hostPath");
		size_t mark = hf_reader_enter(r, ".volumes[%zu]", i);
		check_name(r, volumes, i);
		if (host != NULL && *member_str(host, "path") == '\0')
			add_problem(r, HF_PROBLEM_REQUIRED, NULL, "", ".hostPath.path");
		hf_reader_leave(r, mark);
	}
}

void hf_pod_rules_check(const struct hf_json *spec, const char *field,
			struct hf_field_errors *errors)
{
	static const char *const restart[] = {"Always", "OnFailure", "Never", NULL};
	static const char *const dns[] = {"ClusterFirstWithHostNet", "ClusterFirst", "Default",
					  "None", NULL};
	const struct hf_json *grace = hf_json_get(spec, "terminationGracePeriodSeconds");
	const struct hf_json *deadline = hf_json_get(spec, "activeDeadlineSeconds");
	const char *hostname = member_str(spec, "hostname");
	struct hf_reader r = {.arena = errors->arena, .errors = errors};

	(void)hf_reader_enter(&r, "%s", field);
	if (hf_json_len(hf_json_get(spec, "containers")) == 0)
		add_problem(&r, HF_PROBLEM_REQUIRED, NULL, "", ".containers");
	check_volumes(&r, spec);
	check_containers(&r, spec, "initContainers");
	check_containers(&r, spec, "containers");
	check_one_of(&r, spec, "restartPolicy", restart);
	check_one_of(&r, spec, "dnsPolicy", dns);
	if (hf_json_i64(grace, 0) < 0)
		add_problem(&r, HF_PROBLEM_INVALID, grace, "must be greater than or equal to 0",
			    ".terminationGracePeriodSeconds");
	if (hf_json_type(deadline) == HF_JSON_INT &&
	    (hf_json_i64(deadline, 0) < 1 || hf_json_i64(deadline, 0) > INT32_MAX))
		add_problem(&r, HF_PROBLEM_INVALID, deadline,
			    "must be between 1 and 2147483647, inclusive",
			    ".activeDeadlineSeconds");
	if (*hostname != '\0' && hf_dns1123_label_problem(hostname) != NULL)
		add_problem(&r, HF_PROBLEM_INVALID, hf_json_get(spec, "hostname"),
			    hf_dns1123_label_problem(hostname), ".hostname");
}
