/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/check_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/facts.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* The facts of `holdfast check`, its lines, and questions about the facts that several rules ask. */

#define TEXT_BYTES_MAX ((size_t)8192)
#define SEED 0x63686563u
#define RIGHTS_BYTES_MAX ((size_t)1 << 20)

void hf_check_facts_init(struct hf_check_facts *facts)
{
	*facts = (struct hf_check_facts){.skew = HF_TIME_NONE,
					 .arena = hf_arena_create(RIGHTS_BYTES_MAX),
					 .rights = HF_VEC_INIT(HF_CHECK_RIGHTS_MAX)};
}

void hf_check_facts_release(struct hf_check_facts *facts)
{
	for (size_t s = 0; s < HF_CHECK_SOURCES; s++) {
		for (size_t i = 0; i < facts->lists[s].n_items; i++)
			hf_doc_unref(facts->lists[s].items[i]);
		free(facts->lists[s].items);
		hf_map_destroy(facts->lists[s].by_name);
	}
	HF_VEC_RELEASE(&facts->rights);
	hf_arena_destroy(facts->arena);
	free(facts->version);
}

void hf_check_list_add(struct hf_check_list *list, struct hf_doc *doc)
{
	const char *name = hf_check_name_of(hf_doc_json(doc));

	if (list->by_name == NULL)
		list->by_name = hf_map_create(HF_CLI_ITEMS_MAX, SEED, NULL);
	/* A cluster chooses the names, but the number of names is limited. */
	if (!hf_map_has(list->by_name, name))
		(void)!hf_map_put(list->by_name, name, doc);
	if (list->n_items == list->n_allocated) {
		list->n_allocated = list->n_allocated > 0 ? list->n_allocated * 2 : 16;
		list->items = hf_xrealloc(list->items, list->n_allocated * sizeof(struct hf_doc *));
	}
	list->items[list->n_items++] = doc;
}

void hf_check_lines_init(struct hf_check_lines *lines)
{
	*lines = (struct hf_check_lines){.list = HF_VEC_INIT(HF_CHECK_LINES_MAX)};
}

void hf_check_lines_release(struct hf_check_lines *lines)
{
	for (size_t i = 0; i < lines->list.len; i++) {
		free(lines->list.items[i].found);
		free(lines->list.items[i].action);
	}
	HF_VEC_RELEASE(&lines->list);
}

void hf_check_add(struct hf_check_lines *lines, enum hf_check_result result, const char *check,
		  const char *action, const char *fmt, ...)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_BYTES_MAX);
	struct hf_check_line line = {.result = result, .check = check};
	va_list ap;

	va_start(ap, fmt);
	hf_strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	line.found = hf_xstrdup(text.data);
	line.action = action != NULL ? hf_xstrdup(action) : NULL;
	if (HF_VEC_PUSH(&lines->list, line))
		return;
	free(line.found);
	free(line.action);
}

void hf_check_name(struct hf_check_names *names, const char *fmt, ...)
{
	va_list ap;

	if (names->len++ >= HF_CHECK_NAMES_SHOWN)
		return;
	if (names->len > 1)
		hf_strbuf_addstr(&names->text, ", ");
	va_start(ap, fmt);
	hf_strbuf_vaddf(&names->text, fmt, ap);
	va_end(ap);
}

const char *hf_check_names_end(struct hf_check_names *names)
{
	if (names->len > HF_CHECK_NAMES_SHOWN)
		hf_strbuf_addf(&names->text, " and %zu more", names->len - HF_CHECK_NAMES_SHOWN);
	return names->text.data;
}

void hf_check_names_release(struct hf_check_names *names)
{
	hf_strbuf_release(&names->text);
}

/* ---- questions --------------------------------------------------------------------------------------- */

bool hf_check_known(const struct hf_check_facts *facts, enum hf_check_source source,
		    const char *check, struct hf_check_lines *lines)
{
	const struct hf_check_list *list = &facts->lists[source];

	if (list->code == 0)
		return true;
	hf_check_add(lines, HF_CHECK_WARN, check,
		     list->code == HF_E_FORBIDDEN
			     ? "run this command with an administrator's credentials"
			     : NULL,
		     "unknown: %s", list->why);
	return false;
}

size_t hf_check_len(const struct hf_check_facts *facts, enum hf_check_source source)
{
	return facts->lists[source].n_items;
}

const struct hf_json *hf_check_item(const struct hf_check_facts *facts, enum hf_check_source source,
				    size_t i)
{
	return hf_doc_json(facts->lists[source].items[i]);
}

const struct hf_json *hf_check_find(const struct hf_check_facts *facts, enum hf_check_source source,
				    const char *name)
{
	const struct hf_map *by_name = facts->lists[source].by_name;

	return by_name != NULL ? hf_doc_json(hf_map_get(by_name, name)) : NULL;
}

const struct hf_json *hf_check_find_crd(const struct hf_check_facts *facts, const char *plural,
					const char *group)
{
	HF_AUTOFREE char *name = hf_xasprintf("%s.%s", plural, group);

	return hf_check_find(facts, HF_CHECK_CRDS, name);
}

const char *hf_check_name_of(const struct hf_json *object)
{
	return hf_str_or(hf_json_path_str(object, "metadata", "name", NULL), "");
}

const char *hf_check_ns_of(const struct hf_json *object)
{
	return hf_str_or(hf_json_path_str(object, "metadata", "namespace", NULL), "");
}

const char *hf_check_label(const struct hf_json *object, const char *key)
{
	return hf_str_or(hf_json_path_str(object, "metadata", "labels", key, NULL), "");
}

const struct hf_json *hf_check_operator(const struct hf_check_facts *facts)
{
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_DEPLOYMENTS); i++) {
		const struct hf_json *item = hf_check_item(facts, HF_CHECK_DEPLOYMENTS, i);

		if (hf_streq(hf_check_label(item, HF_CHECK_LABEL_NAME), "holdfast") &&
		    hf_streq(hf_check_label(item, HF_CHECK_LABEL_COMPONENT), "operator"))
			return item;
	}
	return NULL;
}

static bool is_old_pod(const struct hf_json *pod)
{
	return hf_streq(hf_check_label(pod, HF_CHECK_OLD_LABEL), HF_CHECK_OLD_LABEL_VALUE) &&
	       !hf_streq(hf_check_label(pod, HF_CHECK_LABEL_NAME), "holdfast");
}

size_t hf_check_count_old(const struct hf_check_facts *facts, size_t *ret_ready)
{
	size_t n = 0;

	*ret_ready = 0;
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_PODS); i++) {
		const struct hf_json *pod = hf_check_item(facts, HF_CHECK_PODS, i);

		if (!is_old_pod(pod))
			continue;
		n++;
		*ret_ready += hf_condition_is_true(pod, "Ready");
	}
	return n;
}

const char *hf_check_old_ns(const struct hf_check_facts *facts)
{
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_PODS); i++)
		if (is_old_pod(hf_check_item(facts, HF_CHECK_PODS, i)))
			return hf_check_ns_of(hf_check_item(facts, HF_CHECK_PODS, i));
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_DEPLOYMENTS); i++) {
		const struct hf_json *item = hf_check_item(facts, HF_CHECK_DEPLOYMENTS, i);

		if (hf_streq(hf_check_name_of(item), HF_CHECK_OLD_OPERATOR) &&
		    !hf_streq(hf_check_label(item, HF_CHECK_LABEL_NAME), "holdfast"))
			return hf_check_ns_of(item);
	}
	return NULL;
}

bool hf_check_is_old_webhook(const struct hf_json *configuration)
{
	return hf_streq(hf_check_name_of(configuration),
			"validator." HF_CHECK_OLD_OPERATOR ".kubeflow.org");
}

bool hf_check_has_old_webhook(const struct hf_check_facts *facts)
{
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_WEBHOOKS); i++)
		if (hf_check_is_old_webhook(hf_check_item(facts, HF_CHECK_WEBHOOKS, i)))
			return true;
	return false;
}

bool hf_check_is_narrow(const struct hf_json *crd)
{
	const struct hf_json *versions = hf_json_path(crd, "spec", "versions", NULL);

	for (size_t i = 0; i < hf_json_len(versions); i++) {
		const struct hf_json *version = hf_json_item(versions, i);
		const struct hf_json *recovery =
			hf_json_path(version, "schema", "openAPIV3Schema", "properties", "status",
				     "properties", "recovery", NULL);

		if (hf_streq(hf_json_path_str(version, "name", NULL), "v1"))
			return hf_json_path(recovery, "properties", "generation", NULL) == NULL;
	}
	return false;
}
