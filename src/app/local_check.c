/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Checks a job against this machine. Input: a manifest that a server would accept. Output: findings,
 * each with the field and a sentence. */
#include "app/local_check.h"

#include "base/mem.h"
#include "base/quantity.h"
#include "base/str.h"
#include "kubelet/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TEXT_MAX 512

/* One replica type of the job. */
struct replicas {
	const char *type;
	int64_t n;
	const struct hf_json *spec; /* of the pods */
	char path[HF_KUBELET_FIELD_MAX];
	bool command_given; /* the operator sets the first container's command */
};

/* Reads the next replica type. *it is NULL at first. */
static bool next_replicas(const struct hf_manifest *job, void **it, struct replicas *ret_replicas)
{
	const struct hf_framework *framework = job->framework;
	const struct hf_json *all =
		hf_json_path(hf_doc_json(job->doc), "spec", framework->replicas_key, NULL);
	struct hf_json *value;
	const char *type;
	int role;

	do {
		*it = hf_json_next(all, *it, &type, &value);
		if (*it == NULL)
			return false;
	} while (hf_json_type(value) != HF_JSON_OBJECT);
	role = hf_framework_role(framework, type);
	*ret_replicas = (struct replicas){
		.type = type,
		.n = hf_json_i64(hf_json_get(value, "replicas"), 1),
		.spec = hf_json_path(value, "template", "spec", NULL),
		.command_given = role >= 0 && (framework->given_commands >> role & 1u) != 0,
	};
	(void)snprintf(ret_replicas->path, sizeof(ret_replicas->path),
		       "spec.%s[%.60s].template.spec", framework->replicas_key, type);
	return true;
}

/* ---- resources -------------------------------------------------------------------------------- */

/* The request of a container, else the limit, in thousandths. */
static int64_t read_request(const struct hf_json *container, const char *resource)
{
	static const char *const keys[] = {"requests", "limits"};

	for (size_t i = 0; i < HF_ARRAY_LEN(keys); i++) {
		const struct hf_json *value =
			hf_json_get(hf_json_path(container, "resources", keys[i], NULL), resource);
		char number[32];
		const char *text = hf_json_str(value, NULL);
		int64_t milli;

		if (text == NULL && value != NULL) {
			(void)snprintf(number, sizeof(number), "%" PRId64, hf_json_i64(value, 0));
			text = number;
		}
		if (text != NULL && hf_quantity_parse_milli(text, &milli, NULL) == 0)
			return milli;
	}
	return 0;
}

/* What the containers of a pod ask for together. Init containers run one after the other, before. */
static int64_t add_requests(const struct hf_json *spec, const char *resource)
{
	const struct hf_json *list = hf_json_get(spec, "containers");
	int64_t total = 0;

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (__builtin_add_overflow(total, read_request(hf_json_item(list, i), resource),
					   &total))
			return INT64_MAX;
	return total;
}

static void format_amount(const char *resource, int64_t milli, char *text, size_t size)
{
	if (hf_streq(resource, "cpu"))
		(void)snprintf(text, size, "%g CPUs", (double)milli / 1000);
	else
		(void)snprintf(text, size, "%.1f GiB of memory",
			       (double)milli / 1000 / ((int64_t)1 << 30));
}

/* Checks one resource: no pod, and not all pods together, may ask for more than the machine has. */
static void check_amount(const struct hf_manifest *job, const char *resource, int64_t have,
			 hf_finding_fn found, void *arg)
{
	bool elastic = hf_json_path(hf_doc_json(job->doc), "spec", "elasticPolicy", NULL) != NULL;
	char text[TEXT_MAX], wants[64], has[64], field[HF_KUBELET_FIELD_MAX] = "spec";
	int64_t total = 0, pods = 0;
	struct replicas r;

	format_amount(resource, have, has, sizeof(has));
	for (void *it = NULL; next_replicas(job, &it, &r);) {
		int64_t pod = add_requests(r.spec, resource), all;

		pods += r.n;
		(void)snprintf(field, sizeof(field), "%s", r.path);
		if (__builtin_mul_overflow(pod, r.n, &all) ||
		    __builtin_add_overflow(total, all, &total))
			total = INT64_MAX;
		if (pod <= have)
			continue;
		format_amount(resource, pod, wants, sizeof(wants));
		(void)snprintf(text, sizeof(text),
			       "each pod of %s asks for %s, and this machine has %s", r.type, wants,
			       has);
		found(arg, true, field, text);
		return;
	}
	/* An elastic job may run with fewer pods. */
	if (total <= have || elastic)
		return;
	format_amount(resource, total, wants, sizeof(wants));
	(void)snprintf(text, sizeof(text),
		       "the %" PRId64 " pods ask for %s together, and this machine has %s", pods,
		       wants, has);
	found(arg, true, field, text);
}

/* True for resources of every node. All other resources are devices, and this node offers none. */
static bool is_common(const char *resource)
{
	return hf_streq(resource, "cpu") || hf_streq(resource, "memory") ||
	       hf_streq(resource, "ephemeral-storage") || hf_streq(resource, "pods");
}

static void check_devices(const struct replicas *r, hf_finding_fn found, void *arg)
{
	const struct hf_json *list = hf_json_get(r->spec, "containers");

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *limits =
			hf_json_path(hf_json_item(list, i), "resources", "limits", NULL);
		struct hf_json *value;
		const char *name;

		for (void *it = NULL; (it = hf_json_next(limits, it, &name, &value)) != NULL;) {
			char field[HF_KUBELET_FIELD_MAX], text[TEXT_MAX];
			int64_t milli = read_request(hf_json_item(list, i), name);

			if (is_common(name) || milli <= 0)
				continue;
			(void)snprintf(field, sizeof(field), "%.140s.containers[%zu].resources",
				       r->path, i);
			(void)snprintf(
				text, sizeof(text),
				"each pod of %s asks for %" PRId64
				" %.80s, and the node of 'holdfast run' offers none; remove the "
				"limit to run without",
				r->type, milli / 1000, name);
			found(arg, true, field, text);
			return;
		}
	}
}

void hf_local_check_resources(const struct hf_manifest *job, const struct hf_local_machine *machine,
			      hf_finding_fn found, void *arg)
{
	int64_t memory;
	struct replicas r;

	check_amount(job, "cpu", machine->cpus * 1000, found, arg);
	if (__builtin_mul_overflow(machine->memory_bytes, 1000, &memory))
		memory = INT64_MAX;
	check_amount(job, "memory", memory, found, arg);
	for (void *it = NULL; next_replicas(job, &it, &r);)
		check_devices(&r, found, arg);
}

/* ---- the kubelet ------------------------------------------------------------------------------- */

static void check_template(const struct replicas *r, struct hf_kubelet_findings *findings)
{
	/* If the machine allows no namespaces, the kubelet refuses more; it finds that out later. */
	const struct hf_kubelet_check facts = {
		.isolate = true, .root = geteuid() == 0, .uid = (int64_t)geteuid()};
	const struct hf_kubelet_check_input input = {
		.spec = r->spec,
		.path = r->path,
		.facts = &facts,
		.command_given = r->command_given,
	};

	hf_kubelet_check_template(&input, findings);
}

void hf_local_check(const struct hf_manifest *job, hf_finding_fn found, void *arg)
{
	const struct hf_local_machine machine = {
		.cpus = sysconf(_SC_NPROCESSORS_ONLN),
		.memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE),
	};
	HF_AUTOFREE struct hf_kubelet_findings *findings = hf_xcalloc(1, sizeof(*findings));
	struct replicas r;

	for (void *it = NULL; next_replicas(job, &it, &r);)
		if (hf_json_type(r.spec) == HF_JSON_OBJECT)
			check_template(&r, findings);
	for (size_t i = 0; i < findings->n; i++)
		found(arg, findings->items[i].refused, findings->items[i].field,
		      findings->items[i].text);
	hf_local_check_resources(job, &machine, found, arg);
}
