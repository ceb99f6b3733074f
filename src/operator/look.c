/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Reads the operator's caches for other parts of this process.
 */
#include "operator/look.h"

#include "operator/operator_internal.h"

#include "api/job.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/model/status.h"

#include <string.h>

/* The most pods of one node that are looked at; a kubelet runs 110 by default. */
#define NODE_PODS_MAX 1024

static void fill_job(const struct hf_kind *kind, const struct hf_cache_entry *entry,
		     struct hf_operator_job *ret_job)
{
	*ret_job = (struct hf_operator_job){.framework = kind->framework,
					    .ns = entry->ns,
					    .name = entry->name,
					    .uid = entry->uid,
					    .doc = entry->doc};
}

bool hf_operator_next_job(const struct hf_operator *op, struct hf_operator_iterator *it,
			  struct hf_operator_job *ret_job)
{
	for (; it->kind < op->n_kinds; it->kind++, it->at = 0) {
		const struct hf_kind *kind = &op->kinds[it->kind];
		const struct hf_cache_entry *entry = hf_cache_next(kind->cache, &it->at);

		if (entry != NULL) {
			fill_job(kind, entry, ret_job);
			return true;
		}
	}
	return false;
}

bool hf_operator_find_job(const struct hf_operator *op, const struct hf_job_ref *ref,
			  struct hf_operator_job *ret_job)
{
	for (size_t i = 0; i < op->n_kinds; i++) {
		const struct hf_cache_entry *entry =
			op->kinds[i].framework != ref->framework
				? NULL
				: hf_cache_get(op->kinds[i].cache, ref->ns, ref->name);

		if (entry != NULL) {
			fill_job(&op->kinds[i], entry, ret_job);
			return true;
		}
	}
	return false;
}

size_t hf_operator_find_pods(const struct hf_operator *op, const char *uid, struct hf_arena *arena,
			     const struct hf_pod **ret_pods)
{
	const struct hf_cache *cache = op->pods.cache;
	const struct hf_cache_entry *e;
	size_t n = 0, len = 0;
	struct hf_pod *pods;

	for (e = hf_cache_first(cache, HF_PODS_BY_OWNER, uid); e != NULL;
	     e = hf_cache_after(cache, HF_PODS_BY_OWNER, e))
		n++;
	pods = HF_ARENA_ARRAY(arena, struct hf_pod, n + 1);
	for (e = hf_cache_first(cache, HF_PODS_BY_OWNER, uid); e != NULL;
	     e = hf_cache_after(cache, HF_PODS_BY_OWNER, e))
		hf_view_pod(e->view, arena, &pods[len++]);
	*ret_pods = pods;
	return len;
}

/* Finds the job of a key such as "pytorchjobs/ns/name". */
static bool find_by_key(const struct hf_operator *op, const char *key,
			struct hf_operator_job *ret_job)
{
	HF_AUTOFREE char *ns = NULL;
	const char *name;
	const struct hf_kind *kind =
		hf_kind_of_key((struct hf_operator *)(uintptr_t)op, key, &ns, &name);
	const struct hf_cache_entry *entry =
		kind == NULL ? NULL : hf_cache_get(kind->cache, ns, name);

	if (entry != NULL)
		fill_job(kind, entry, ret_job);
	return entry != NULL;
}

void hf_operator_each_job_on(const struct hf_operator *op, const char *node,
			     void (*fn)(void *arg, const struct hf_operator_job *job), void *arg)
{
	struct hf_map *told;
	const struct hf_cache_entry *e;
	struct hf_operator_job job;

	if (!op->options.watch_nodes && !op->options.watch_agents)
		return;
	told = hf_map_create(NODE_PODS_MAX, op->options.seed, NULL);
	for (e = hf_cache_first(op->pods.cache, HF_PODS_BY_NODE, node); e != NULL;
	     e = hf_cache_after(op->pods.cache, HF_PODS_BY_NODE, e)) {
		const struct hf_view *view = e->view;
		const char *key = hf_map_get(op->job_keys, view->controller_uid);

		if (key != NULL && !hf_map_has(told, key) &&
		    hf_map_put(told, key, (void *)(uintptr_t)key) && find_by_key(op, key, &job))
			fn(arg, &job);
	}
	hf_map_destroy(told);
}

/* ---- restarts by devices -------------------------------------------------------------------- */

static void tell_record(const struct hf_json *record, hf_device_restart_fn fn, void *arg)
{
	struct hf_device_restart restart = {.node = hf_json_path_str(record, "node", NULL)};
	const char *at = hf_json_path_str(record, "detectedAt", NULL);

	if (!hf_str_is_empty(restart.node) && at != NULL &&
	    hf_class_parse(hf_json_path_str(record, "cause", NULL)) == HF_CLASS_DEVICE &&
	    hf_time_parse(at, &restart.at, NULL) == 0)
		fn(arg, &restart);
}

/* Most jobs have no record with cause device, and there may be thousands of jobs: a text without the word is not parsed.
 * The ledger is in the status, or as a text in an annotation. */
static bool may_tell_devices(struct hf_doc *doc)
{
	static const char in_status[] = "device\"", in_annotation[] = "device\\\"";
	size_t len;
	const char *text = hf_doc_text(doc, &len);

	return memmem(text, len, in_status, sizeof(in_status) - 1) != NULL ||
	       memmem(text, len, in_annotation, sizeof(in_annotation) - 1) != NULL;
}

/* The ledger of the job, without a tree of the whole job. */
static struct hf_json *read_ledger(struct hf_doc *doc)
{
	HF_AUTO_JSON job = hf_json_object();
	static const char *const members[] = {"status", "metadata"};
	struct hf_json *ledger = NULL;

	/* The metadata matters only if the status has no ledger. */
	for (size_t i = 0; i < HF_ARRAY_LEN(members) && ledger == NULL; i++) {
		hf_json_set(job, members[i], hf_doc_member_json(doc, members[i]));
		ledger = hf_job_recovery(job);
	}
	return ledger;
}

void hf_operator_each_device_restart(const struct hf_operator *op, hf_device_restart_fn fn,
				     void *arg)
{
	struct hf_operator_iterator it = {0};
	struct hf_operator_job job;

	while (hf_operator_next_job(op, &it, &job)) {
		HF_AUTO_JSON ledger = may_tell_devices(job.doc) ? read_ledger(job.doc) : NULL;
		const struct hf_json *history = hf_json_get(ledger, "history");

		tell_record(hf_json_get(ledger, "last"), fn, arg);
		for (size_t i = 0; i < hf_json_len(history); i++)
			tell_record(hf_json_item(history, i), fn, arg);
	}
}
