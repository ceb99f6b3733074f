/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "scheduler/fit_internal.h"

#include "base/compiler.h"
#include "base/quantity.h"
#include "base/str.h"

#include <stdio.h>

/* The filters of kube-scheduler that the plane supports: unschedulable nodes, taints, node selector
 * and affinity, and resources. Pure functions over documents. */

/* --- amounts --- */

void hf_amounts_add(struct hf_amounts *amounts, const char *name, int64_t milli)
{
	for (size_t i = 0; i < amounts->n; i++)
		if (hf_streq(amounts->items[i].name, name)) {
			if (__builtin_add_overflow(amounts->items[i].milli, milli,
						   &amounts->items[i].milli))
				amounts->items[i].milli = INT64_MAX;
			return;
		}
	if (amounts->n < HF_FIT_RESOURCES_MAX) {
		amounts->items[amounts->n].name = name;
		amounts->items[amounts->n].milli = milli;
		amounts->n++;
	}
}

int64_t hf_amounts_get(const struct hf_amounts *amounts, const char *name)
{
	for (size_t i = 0; i < amounts->n; i++)
		if (hf_streq(amounts->items[i].name, name))
			return amounts->items[i].milli;
	return 0;
}

static int64_t parse_amount(const struct hf_json *value)
{
	const char *text = hf_json_str(value, NULL);
	int64_t milli;

	if (text)
		return hf_quantity_parse_milli(text, &milli, NULL) == 0 ? milli : 0;
	return hf_json_i64(value, 0) > INT64_MAX / 1000 ? INT64_MAX : hf_json_i64(value, 0) * 1000;
}

/* Adds the requests of a container to the amounts. For a resource without a request, the limit
 * counts as the request. */
static void container_requests(const struct hf_json *container, struct hf_amounts *ret)
{
	const struct hf_json *requests = hf_json_path(container, "resources", "requests", NULL);
	const struct hf_json *limits = hf_json_path(container, "resources", "limits", NULL);
	const char *name;
	struct hf_json *value;

	for (void *it = NULL; (it = hf_json_next(requests, it, &name, &value));)
		hf_amounts_add(ret, name, parse_amount(value));
	for (void *it = NULL; (it = hf_json_next(limits, it, &name, &value));)
		if (!hf_json_get(requests, name))
			hf_amounts_add(ret, name, parse_amount(value));
}

static bool is_sidecar(const struct hf_json *init_container)
{
	return hf_streq(hf_json_path_str(init_container, "restartPolicy", NULL), "Always");
}

static void raise_to(struct hf_amounts *amounts, const struct hf_amounts *at_least)
{
	for (size_t i = 0; i < at_least->n; i++) {
		const char *name = at_least->items[i].name;
		int64_t have = hf_amounts_get(amounts, name);
		if (at_least->items[i].milli > have)
			hf_amounts_add(amounts, name, at_least->items[i].milli - have);
	}
}

void hf_fit_requests(const struct hf_json *pod, struct hf_amounts *ret_requests)
{
	const struct hf_json *containers = hf_json_path(pod, "spec", "containers", NULL);
	const struct hf_json *inits = hf_json_path(pod, "spec", "initContainers", NULL);

	*ret_requests = (struct hf_amounts){0};
	for (size_t i = 0; i < hf_json_len(containers); i++)
		container_requests(hf_json_item(containers, i), ret_requests);
	for (size_t i = 0; i < hf_json_len(inits); i++)
		if (is_sidecar(hf_json_item(inits, i)))
			container_requests(hf_json_item(inits, i), ret_requests);
	for (size_t i = 0; i < hf_json_len(inits); i++) {
		struct hf_amounts one = {0};
		if (is_sidecar(hf_json_item(inits, i)))
			continue;
		container_requests(hf_json_item(inits, i), &one);
		raise_to(ret_requests, &one);
	}
	hf_amounts_add(ret_requests, "pods", 1000);
}

/* --- node affinity --- */

static bool in_values(const struct hf_json *values, const char *text)
{
	for (size_t i = 0; i < hf_json_len(values); i++)
		if (hf_streq(hf_json_str(hf_json_item(values, i), NULL), text))
			return true;
	return false;
}

static bool compare_values(const struct hf_json *values, const char *text, bool greater)
{
	const char *bound = hf_json_str(hf_json_item(values, 0), NULL);
	int64_t a, b;

	if (!text || !bound || hf_str_to_i64(text, INT64_MIN, INT64_MAX, &a, NULL) ||
	    hf_str_to_i64(bound, INT64_MIN, INT64_MAX, &b, NULL))
		return false;
	return greater ? a > b : a < b;
}

/* True if a node meets the requirement of a node selector. text: the value of the node's label;
 * NULL: the node does not have the label. */
static bool requirement_matches(const struct hf_json *requirement, const char *text)
{
	const char *op = hf_json_path_str(requirement, "operator", NULL);
	const struct hf_json *values = hf_json_get(requirement, "values");

	if (hf_streq(op, "In"))
		return text && in_values(values, text);
	if (hf_streq(op, "NotIn"))
		return !text || !in_values(values, text);
	if (hf_streq(op, "Exists"))
		return text != NULL;
	if (hf_streq(op, "DoesNotExist"))
		return text == NULL;
	if (hf_streq(op, "Gt") || hf_streq(op, "Lt"))
		return compare_values(values, text, hf_streq(op, "Gt"));
	return false;
}

static bool term_matches(const struct hf_json *term, const struct hf_json *node)
{
	const struct hf_json *labels = hf_json_path(node, "metadata", "labels", NULL);
	const struct hf_json *expressions = hf_json_get(term, "matchExpressions");
	const struct hf_json *fields = hf_json_get(term, "matchFields");

	/* An empty term matches no node. */
	if (hf_json_len(expressions) == 0 && hf_json_len(fields) == 0)
		return false;
	for (size_t i = 0; i < hf_json_len(expressions); i++) {
		const struct hf_json *e = hf_json_item(expressions, i);
		const char *key = hf_str_or(hf_json_path_str(e, "key", NULL), "");
		if (!requirement_matches(e, hf_json_str(hf_json_get(labels, key), NULL)))
			return false;
	}
	for (size_t i = 0; i < hf_json_len(fields); i++) {
		const struct hf_json *f = hf_json_item(fields, i);
		if (!hf_streq(hf_json_path_str(f, "key", NULL), "metadata.name") ||
		    !requirement_matches(f, hf_json_path_str(node, "metadata", "name", NULL)))
			return false;
	}
	return true;
}

const char *hf_fit_missing_label(const struct hf_json *spec, const struct hf_json *node)
{
	const struct hf_json *selector = hf_json_get(spec, "nodeSelector");
	const struct hf_json *labels = hf_json_path(node, "metadata", "labels", NULL);
	const char *key;
	struct hf_json *value;

	for (void *it = NULL; (it = hf_json_next(selector, it, &key, &value));)
		if (!hf_json_equal(hf_json_get(labels, key), value))
			return key;
	return NULL;
}

bool hf_fit_node_affinity(const struct hf_json *spec, const struct hf_json *node)
{
	const struct hf_json *required =
		hf_json_path(spec, "affinity", "nodeAffinity", HF_FIT_REQUIRED, NULL);
	const struct hf_json *terms = hf_json_get(required, "nodeSelectorTerms");

	if (!required)
		return true;
	for (size_t i = 0; i < hf_json_len(terms); i++)
		if (term_matches(hf_json_item(terms, i), node))
			return true;
	return false;
}

/* --- taints --- */

static bool tolerates_taint(const struct hf_json *toleration, const struct hf_json *taint)
{
	const char *key = hf_json_path_str(toleration, "key", NULL);
	const char *effect = hf_json_path_str(toleration, "effect", NULL);
	const char *op = hf_str_or(hf_json_path_str(toleration, "operator", NULL), "Equal");

	if (!hf_str_is_empty(effect) && !hf_streq(effect, hf_json_path_str(taint, "effect", NULL)))
		return false;
	if (!hf_str_is_empty(key) && !hf_streq(key, hf_json_path_str(taint, "key", NULL)))
		return false;
	if (hf_streq(op, "Exists"))
		return true;
	return !hf_str_is_empty(key) &&
	       hf_streq(hf_str_or(hf_json_path_str(toleration, "value", NULL), ""),
			hf_str_or(hf_json_path_str(taint, "value", NULL), ""));
}

/* Returns the first taint of the node that the pod does not tolerate; NULL: the pod tolerates all
 * taints. */
static const struct hf_json *find_untolerated(const struct hf_json *pod, const struct hf_json *node)
{
	const struct hf_json *taints = hf_json_path(node, "spec", "taints", NULL);
	const struct hf_json *tolerations = hf_json_path(pod, "spec", "tolerations", NULL);

	for (size_t i = 0; i < hf_json_len(taints); i++) {
		const struct hf_json *taint = hf_json_item(taints, i);
		if (hf_streq(hf_json_path_str(taint, "effect", NULL), "PreferNoSchedule"))
			continue;
		size_t t = 0;
		while (t < hf_json_len(tolerations) &&
		       !tolerates_taint(hf_json_item(tolerations, t), taint))
			t++;
		if (t == hf_json_len(tolerations))
			return taint;
	}
	return NULL;
}

static bool tolerates_unschedulable(const struct hf_json *pod)
{
	const struct hf_json *tolerations = hf_json_path(pod, "spec", "tolerations", NULL);
	HF_AUTO_JSON taint = hf_json_object();

	hf_json_set_str(taint, "key", "node.kubernetes.io/unschedulable");
	hf_json_set_str(taint, "effect", "NoSchedule");
	for (size_t i = 0; i < hf_json_len(tolerations); i++)
		if (tolerates_taint(hf_json_item(tolerations, i), taint))
			return true;
	return false;
}

/* --- unsupported requirements --- */

const char *hf_fit_other_scheduler(const struct hf_json *spec)
{
	const char *name = hf_json_path_str(spec, "schedulerName", NULL);

	return hf_str_is_empty(name) || hf_streq(name, HF_SCHEDULER_NAME) ? NULL : name;
}

const char *hf_fit_unsupported(const struct hf_json *spec)
{
	static const char *const names[] = {"podAffinity", "podAntiAffinity"};
	const struct hf_json *affinity = hf_json_get(spec, "affinity");

	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++)
		if (hf_json_len(hf_json_path(affinity, names[i], HF_FIT_REQUIRED, NULL)) > 0)
			return names[i];
	return NULL;
}

static const char *resource_problem(const struct hf_amounts *requests,
				    const struct hf_fit_node *node, char buf[HF_FIT_REASON_MAX])
{
	const struct hf_json *allocatable = hf_json_path(node->node, "status", "allocatable", NULL);

	for (size_t i = 0; i < requests->n; i++) {
		const char *name = requests->items[i].name;
		const struct hf_json *have = hf_json_get(allocatable, name);
		/* If the node does not say how many pods it allows (allocatable "pods"), there is
		 * no limit. */
		if (requests->items[i].milli == 0 || (!have && hf_streq(name, "pods")))
			continue;
		int64_t left = parse_amount(have) - hf_amounts_get(&node->used, name);
		if (requests->items[i].milli <= left)
			continue;
		if (hf_streq(name, "pods"))
			return "Too many pods";
		snprintf(buf, HF_FIT_REASON_MAX, "Insufficient %s", name);
		return buf;
	}
	return NULL;
}

const char *hf_fit_problem(const struct hf_json *pod, const struct hf_amounts *requests,
			   const struct hf_fit_node *node, char buf[HF_FIT_REASON_MAX])
{
	const struct hf_json *of_pod = hf_json_get(pod, "spec");
	const struct hf_json *spec = hf_json_get(node->node, "spec");

	if (hf_fit_unsupported(of_pod))
		return "node(s) were not considered: this scheduler does not support required pod "
		       "(anti-)affinity";
	if (hf_json_true(hf_json_get(spec, "unschedulable"), false) &&
	    !tolerates_unschedulable(pod))
		return "node(s) were unschedulable";
	const struct hf_json *taint = find_untolerated(pod, node->node);
	if (taint) {
		snprintf(buf, HF_FIT_REASON_MAX, "node(s) had untolerated taint {%s: %s}",
			 hf_str_or(hf_json_path_str(taint, "key", NULL), ""),
			 hf_str_or(hf_json_path_str(taint, "value", NULL), ""));
		return buf;
	}
	if (hf_fit_missing_label(of_pod, node->node) || !hf_fit_node_affinity(of_pod, node->node))
		return "node(s) didn't match Pod's node affinity/selector";
	return resource_problem(requests, node, buf);
}
