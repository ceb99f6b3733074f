/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "rollout/rollout_internal.h"

#include "api/condition.h"
#include "api/lifetime.h"
#include "base/quantity.h"
#include "base/str.h"
#include "fleet/window.h"

#include <stdlib.h>
#include <string.h>

/*
 * What all files of this folder ask: the time, what a pass has read, and simple facts of objects.
 * Input: the objects. Output: their facts. Invariant: no function calls another file of this folder.
 */

hf_time hf_ro_now(const struct ro *ro)
{
	return ro->env.now(ro->env.arg);
}

bool hf_ro_find_mark(const struct ro_pass *pass, const struct hf_json *annotations,
		     struct hf_rollout_mark *ret_mark)
{
	char key[HF_ROLLOUT_MARK_KEY_MAX];
	const char *text =
		hf_json_path_str(annotations, hf_rollout_mark_key(&pass->spec, key), NULL);

	return hf_rollout_mark_read(text, pass->arena, ret_mark) &&
	       hf_streq(ret_mark->uid, pass->r.uid);
}

const char *hf_ro_print_holder(const struct ro *ro)
{
	return hf_arena_printf(ro->pass.arena, "devicerollouts/%s", ro->pass.name);
}

const char *hf_ro_print_work(const struct ro *ro)
{
	return hf_arena_printf(ro->pass.arena, "DeviceRollout %s", ro->pass.name);
}

const char *hf_ro_print_pod(const struct ro *ro, struct hf_doc *pod)
{
	return hf_arena_printf(ro->pass.arena, "%s/%s", hf_doc_namespace(pod), hf_doc_name(pod));
}

bool hf_ro_ends(const struct hf_rollout *r, const struct hf_rollout_spec *spec)
{
	return r->deleting || spec->cancel;
}

void hf_ro_drop_reads(struct ro *ro)
{
	struct ro_pass *pass = &ro->pass;

	for (size_t i = 0; i < RO_READS; i++)
		pass->docs[i] = hf_doc_unref(pass->docs[i]);
	for (size_t i = 0; i < pass->pods_len; i++)
		pass->pods[i] = hf_doc_unref(pass->pods[i]);
	pass->pods_len = 0;
	pass->drivers = NULL;
	pass->drivers_len = 0;
	pass->slices = NULL;
	pass->slices_len = 0;
	pass->newest = (struct ro_revision){0};
	pass->revisions_len = 0;
	pass->from = hf_doc_unref(pass->from);
	pass->in_maintenance = false;
	free(pass->token);
	pass->token = NULL;
	pass->entry = NULL;
	hf_arena_reset(pass->arena);
}

bool hf_ro_is_of_daemon_set(const struct hf_json *pod, const struct hf_rollout_spec *spec)
{
	const struct hf_json *owner = hf_find_controller(pod);

	return hf_streq(hf_json_path_str(owner, "kind", NULL), "DaemonSet") &&
	       hf_streq(hf_json_path_str(owner, "name", NULL), spec->daemon_set.name) &&
	       hf_streq(hf_json_path_str(pod, "metadata", "namespace", NULL), spec->daemon_set.ns);
}

/* The name of an extended resource has a domain; the domain kubernetes.io is reserved. */
bool hf_ro_is_extended(const char *resource)
{
	const char *slash = strchr(resource, '/');

	return slash != NULL && !hf_str_has_prefix(resource, "kubernetes.io/") &&
	       !hf_str_has_prefix(resource, "attachable-volumes-");
}

bool hf_ro_has_dra(const struct hf_rollout_node *entry)
{
	for (size_t i = 0; i < entry->before.resources.len; i++)
		if (strchr(entry->before.resources.items[i].key, '/') == NULL)
			return true;
	return false;
}

int64_t hf_ro_read_amount(const struct ro_pass *pass, const char *resource)
{
	struct hf_doc *node = pass->docs[RO_READ_NODE];
	const char *text = node == NULL ? NULL
					: hf_json_path_str(hf_doc_json(node), "status",
							   "allocatable", resource, NULL);
	int64_t milli = 0;

	if (text == NULL)
		return 1000 * hf_dra_count(pass->slices, pass->slices_len, resource);
	return hf_quantity_parse_milli(text, &milli, NULL) == 0 ? milli : 0;
}

const char *hf_ro_find_closed(const struct ro *ro)
{
	return hf_window_find_closed(ro->pass.spec.windows, ro->pass.spec.windows_len,
				     hf_ro_now(ro), "rollout", ro->pass.arena);
}

hf_time hf_ro_find_ready(const struct hf_json *pod, bool ready)
{
	const struct hf_json *condition = hf_find_condition(pod, "Ready");
	const char *since = hf_json_path_str(condition, "lastTransitionTime", NULL);
	hf_time at;

	if (condition == NULL || hf_condition_is_true(pod, "Ready") != ready)
		return HF_TIME_NONE;
	return since != NULL && hf_time_parse(since, &at, NULL) == 0 ? at : 0;
}

/* ---- the DaemonSet ------------------------------------------------------------------------------- */

const char *hf_ro_print_daemon_set(const struct ro_pass *pass)
{
	return hf_arena_printf(pass->arena, "DaemonSet %s/%s", pass->spec.daemon_set.ns,
			       pass->spec.daemon_set.name);
}

const char *hf_ro_find_daemon_set_problem(const struct ro_pass *pass)
{
	const struct hf_json *json;

	if (pass->docs[RO_READ_DAEMON_SET] == NULL)
		return hf_arena_printf(pass->arena, "spec.change.daemonSet: %s does not exist",
				       hf_ro_print_daemon_set(pass));
	json = hf_doc_json(pass->docs[RO_READ_DAEMON_SET]);
	if (!hf_streq(hf_json_path_str(json, "spec", "updateStrategy", "type", NULL), "OnDelete"))
		return hf_arena_printf(
			pass->arena, "spec.change.daemonSet: %s must have updateStrategy OnDelete",
			hf_ro_print_daemon_set(pass));
	if (pass->lists_pods == NULL)
		return hf_arena_printf(
			pass->arena, "spec.change.daemonSet: %s has a selector that cannot be used",
			hf_ro_print_daemon_set(pass));
	return NULL;
}

bool hf_ro_is_observed(const struct ro_pass *pass)
{
	const struct hf_json *json = hf_doc_json(pass->docs[RO_READ_DAEMON_SET]);

	return hf_json_i64(hf_json_path(json, "status", "observedGeneration", NULL), -1) >=
		       hf_json_i64(hf_json_path(json, "metadata", "generation", NULL), 0) &&
	       pass->newest.hash != NULL;
}

static int32_t count_pods(const struct ro_pass *pass, const char *revision)
{
	int32_t count = 0;

	for (size_t i = 0; i < pass->drivers_len; i++)
		count += hf_streq(pass->drivers[i].revision, revision);
	return count;
}

/* Creation times have whole seconds. */
bool hf_ro_is_undone(const struct ro_pass *pass, const struct ro_revision *revision)
{
	return revision->created_at >= pass->newest.created_at &&
	       count_pods(pass, revision->hash) <= count_pods(pass, pass->newest.hash);
}
