/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "rollout/rollout_internal.h"

#include "api/lifetime.h"
#include "api/node_locks.h"
#include "api/remediation.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/str.h"
#include "fleet/device_taint_rule.h"
#include "store/resource.h"

#include <stdlib.h>

/*
 * The live reads of a pass.
 * Input: the names of the pass. Output: its documents, then hf_ro_decide. Invariant: a pass with a failed read ends
 * without a write.
 */

#define PAGE_LIMIT 500
#define SELECTOR_MAX ((size_t)16384)
#define LOOK_WAITING (30 * HF_SECOND)

static void read_next(struct ro *ro);

/* ---- the label selector of a DaemonSet ----------------------------------------------------------- */

static void add_values(struct hf_strbuf *sb, const struct hf_json *values)
{
	for (size_t i = 0; i < hf_json_len(values); i++)
		hf_strbuf_addf(sb, "%s%s", i > 0 ? "," : "",
			       hf_json_str(hf_json_item(values, i), ""));
}

/* Appends an item of matchExpressions. Returns false if its operator is unknown. */
static bool add_expression(struct hf_strbuf *sb, const struct hf_json *item)
{
	const char *key = hf_str_or(hf_json_path_str(item, "key", NULL), "");
	const char *op = hf_str_or(hf_json_path_str(item, "operator", NULL), "");

	hf_strbuf_addf(sb, "%s", sb->len > 0 ? "," : "");
	if (hf_streq(op, "Exists") || hf_streq(op, "DoesNotExist")) {
		hf_strbuf_addf(sb, "%s%s", hf_streq(op, "Exists") ? "" : "!", key);
		return true;
	}
	if (!hf_streq(op, "In") && !hf_streq(op, "NotIn"))
		return false;
	hf_strbuf_addf(sb, "%s %s (", key, hf_streq(op, "In") ? "in" : "notin");
	add_values(sb, hf_json_get(item, "values"));
	hf_strbuf_addf(sb, ")");
	return true;
}

/* Prints the selector of the DaemonSet's pods for a list. NULL: it cannot be printed. */
static const char *print_selector(struct hf_arena *arena, const struct hf_json *daemon_set)
{
	const struct hf_json *selector = hf_json_path(daemon_set, "spec", "selector", NULL);
	const struct hf_json *labels = hf_json_get(selector, "matchLabels");
	const struct hf_json *list = hf_json_get(selector, "matchExpressions");
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(SELECTOR_MAX);
	struct hf_json *value;
	const char *key;

	for (void *it = NULL; (it = hf_json_next(labels, it, &key, &value));)
		hf_strbuf_addf(&sb, "%s%s=%s", sb.len > 0 ? "," : "", key, hf_json_str(value, ""));
	for (size_t i = 0; i < hf_json_len(list); i++)
		if (!add_expression(&sb, hf_json_item(list, i)))
			return NULL;
	return sb.len == 0 ? NULL : hf_arena_strdup(arena, sb.data);
}

/* ---- taking replies ------------------------------------------------------------------------------ */

static bool take_object(struct ro *ro, struct hf_doc *doc)
{
	struct ro_pass *pass = &ro->pass;
	struct hf_error err = {0};

	if (hf_rollout_read(doc, pass->arena, &pass->r, NULL) != 0 ||
	    !hf_rollout_state_of(pass->r.status.phase, &pass->state))
		return false;
	hf_cache_put_live(ro->cache, doc);
	pass->spec_problem = NULL;
	if (hf_rollout_spec_read(doc, pass->arena, &pass->spec, &err) != 0) {
		pass->spec = (struct hf_rollout_spec){.empty = "Wait"};
		pass->spec_problem = hf_arena_strdup(pass->arena, err.text);
	}
	if (*pass->node != '\0')
		pass->entry = hf_ro_find_entry(&pass->r.status, pass->node);
	return true;
}

/* Keeps the revisions, the newest of them, and the one to go back to. */
static void take_revision(struct ro_pass *pass, struct hf_doc *doc)
{
	const struct hf_json *json = hf_doc_json(doc);
	struct ro_revision found = {.hash = hf_json_path_str(json, "metadata", "labels",
							     "controller-revision-hash", NULL),
				    .number = hf_json_i64(hf_json_get(json, "revision"), 0),
				    .created_at = hf_created_at(json)};

	if (hf_str_is_empty(found.hash) ||
	    !hf_is_owned_by(json, hf_doc_uid(pass->docs[RO_READ_DAEMON_SET])))
		return;
	found.hash = hf_arena_strdup(pass->arena, found.hash);
	if (hf_streq(found.hash, pass->r.status.from_revision)) {
		hf_doc_unref(pass->from);
		pass->from = hf_doc_ref(doc);
	}
	if (pass->revisions_len < RO_REVISIONS_MAX)
		pass->revisions[pass->revisions_len++] = found;
	if (pass->newest.hash == NULL || found.number > pass->newest.number)
		pass->newest = found;
}

static bool take_driver(struct ro_pass *pass, struct hf_doc *doc)
{
	const struct hf_json *json = hf_doc_json(doc);
	const char *node = hf_json_path_str(json, "spec", "nodeName", NULL);

	if (hf_str_is_empty(node) || !hf_ro_is_of_daemon_set(json, &pass->spec))
		return true;
	if (pass->drivers_len == RO_DRIVERS_MAX)
		return false;
	if (pass->drivers == NULL)
		pass->drivers = HF_ARENA_ARRAY(pass->arena, struct ro_driver, RO_DRIVERS_MAX);
	pass->drivers[pass->drivers_len++] = (struct ro_driver){
		.node = hf_arena_strdup(pass->arena, node),
		.created_at = hf_created_at(json),
		.unready_at = hf_ro_find_ready(json, false),
		.revision = hf_arena_strdup(
			pass->arena, hf_str_or(hf_json_path_str(json, "metadata", "labels",
								"controller-revision-hash", NULL),
					       ""))};
	return true;
}

/* Keeps what hf_dra_count asks for. */
static bool take_slice(struct ro_pass *pass, struct hf_doc *doc)
{
	struct hf_dra_slice slice;

	if (!hf_slice_read(doc, pass->arena, &slice))
		return true;
	if (pass->slices_len == RO_SLICES_MAX)
		return false;
	if (pass->slices == NULL)
		pass->slices = HF_ARENA_ARRAY(pass->arena, struct hf_dra_slice, RO_SLICES_MAX);
	slice.driver = hf_arena_strdup(pass->arena, slice.driver);
	slice.pool = hf_arena_strdup(pass->arena, slice.pool);
	slice.devices = NULL;
	pass->slices[pass->slices_len++] = slice;
	return true;
}

/* Pods of the driver count also when they are over, and those of the canary tell how long it took. */
static bool is_needless(const struct ro_pass *pass, const struct hf_json *pod)
{
	const char *owner = hf_json_path_str(hf_find_controller(pod), "name", NULL);

	return hf_is_pod_over(pod) && !hf_ro_is_of_daemon_set(pod, &pass->spec) &&
	       !hf_streq(owner, hf_ro_present_canary(pass));
}

/* Takes one item of a list. False: there are too many. */
static bool take_item(struct ro *ro, struct hf_doc *doc)
{
	struct ro_pass *pass = &ro->pass;

	switch (pass->read) {
	case RO_READ_REVISIONS: take_revision(pass, doc); return true;
	case RO_READ_DRIVERS: return take_driver(pass, doc);
	case RO_READ_SLICES: return take_slice(pass, doc);
	case RO_READ_MAINTENANCE:
		pass->in_maintenance |= hf_streq(
			hf_json_path_str(hf_doc_json(doc), "spec", "nodeName", NULL), pass->node);
		return true;
	default: break;
	}
	if (is_needless(pass, hf_doc_json(doc)))
		return true;
	if (pass->pods_len == RO_PODS_MAX)
		return false;
	pass->pods[pass->pods_len++] = hf_doc_ref(doc);
	return true;
}

static bool take_items(struct ro *ro, const struct hf_reply *reply)
{
	for (size_t i = 0; i < reply->n_items; i++)
		if (!take_item(ro, reply->items[i]))
			return false;
	free(ro->pass.token);
	ro->pass.token =
		hf_str_is_empty(reply->continue_token) ? NULL : hf_xstrdup(reply->continue_token);
	return true;
}

static bool take_doc(struct ro *ro, struct hf_doc *doc)
{
	struct ro_pass *pass = &ro->pass;

	pass->docs[pass->read] = hf_doc_ref(doc);
	if (pass->read == RO_READ_OBJECT)
		return take_object(ro, doc);
	if (pass->read == RO_READ_DAEMON_SET)
		pass->lists_pods = print_selector(pass->arena, hf_doc_json(doc));
	if (pass->read == RO_READ_NODE)
		hf_cache_put_live(ro->nodes, doc);
	if (pass->read == RO_READ_HEALTH)
		hf_cache_put_live(ro->health, doc);
	return true;
}

static bool is_recorded(const struct ro_pass *pass)
{
	return hf_streq(pass->entry->phase, hf_rollout_phase_name(HF_ROLLOUT_CORDONED));
}

/* Nothing of this kind is there. Without the right to list slices, no DRA driver is recorded. */
static bool is_nothing(const struct ro_pass *pass, int code)
{
	return code == HF_E_NOT_FOUND ||
	       (code == HF_E_FORBIDDEN && pass->read == RO_READ_SLICES && is_recorded(pass));
}

static void on_read(void *arg, const struct hf_reply *reply)
{
	struct ro *ro = arg;
	bool good;

	ro->call = NULL;
	ro->env.heard(ro->env.arg, reply);
	if (reply->code == HF_E_NOT_FOUND && ro->pass.read == RO_READ_OBJECT) {
		hf_ro_end_pass(ro, LOOK_WAITING);
		return;
	}
	if (reply->code != 0 && !is_nothing(&ro->pass, reply->code)) {
		hf_ro_fail_pass(ro, reply->code, reply->message);
		return;
	}
	good = reply->object != NULL && reply->code == 0 ? take_doc(ro, reply->object)
							 : take_items(ro, reply);
	if (!good) {
		hf_ro_fail_pass(ro, HF_E_TOO_LARGE,
				"an object that the rollout depends on is too large or cannot be "
				"read");
		return;
	}
	if (ro->pass.token == NULL)
		ro->pass.read++;
	read_next(ro);
}

/* ---- requests ------------------------------------------------------------------------------------ */

/* The DaemonSet and its revisions: for the whole, and for a node that is not changed yet. */
static bool needs_daemon_set(const struct ro_pass *pass, enum ro_read read, bool changes)
{
	if (pass->spec_problem != NULL || pass->spec.daemon_set.name == NULL)
		return false;
	if (*pass->node != '\0' && (!changes || read == RO_READ_DRIVERS))
		return false;
	return read == RO_READ_DAEMON_SET ||
	       (pass->docs[RO_READ_DAEMON_SET] != NULL && pass->lists_pods != NULL);
}

/* The devices of DRA drivers count when the node is recorded. Later, only drivers of the record count. */
static bool needs_slices(const struct ro_pass *pass, enum hf_rollout_phase phase)
{
	return phase == HF_ROLLOUT_PROVING || phase == HF_ROLLOUT_CANARY
		       ? hf_ro_has_dra(pass->entry)
		       : is_recorded(pass);
}

static bool is_needed(const struct ro_pass *pass, enum ro_read read)
{
	enum hf_rollout_phase phase = HF_ROLLOUT_DONE;
	bool changes = pass->entry != NULL && hf_rollout_phase_of(pass->entry->phase, &phase) &&
		       phase <= HF_ROLLOUT_CHANGING;

	if (read == RO_READ_OBJECT)
		return true;
	if (read <= RO_READ_DRIVERS)
		return needs_daemon_set(pass, read, changes);
	if (*pass->node == '\0' || pass->entry == NULL)
		return false;
	if (read == RO_READ_CANARY)
		return hf_ro_may_have_canary(pass);
	if (read == RO_READ_SLICES)
		return needs_slices(pass, phase);
	return read < RO_READ_KURED || changes;
}

static void fill_list(const struct ro_pass *pass, struct hf_request *request)
{
	request->verb = HF_VERB_LIST;
	request->name = NULL;
	request->limit = PAGE_LIMIT;
	request->continue_token = pass->token;
}

static void fill_request(const struct ro_pass *pass, struct hf_request *request)
{
	*request = (struct hf_request){.verb = HF_VERB_GET, .name = pass->node};
	switch (pass->read) {
	case RO_READ_OBJECT:
		request->resource = &hf_devicerollouts;
		request->name = pass->name;
		break;
	case RO_READ_DAEMON_SET:
		request->resource = &hf_daemonsets;
		request->ns = pass->spec.daemon_set.ns;
		request->name = pass->spec.daemon_set.name;
		break;
	case RO_READ_REVISIONS:
	case RO_READ_DRIVERS:
		request->resource =
			pass->read == RO_READ_DRIVERS ? &hf_pods : &hf_controllerrevisions;
		request->ns = pass->spec.daemon_set.ns;
		request->label_selector = pass->lists_pods;
		fill_list(pass, request);
		break;
	case RO_READ_NODE: request->resource = &hf_nodes; break;
	case RO_READ_HEALTH: request->resource = &hf_devicehealths; break;
	case RO_READ_LEASE:
		request->resource = &hf_leases;
		request->ns = HF_MEND_NAMESPACE;
		request->name = hf_arena_printf(pass->arena, HF_NODE_LEASE_PREFIX "%s", pass->node);
		break;
	case RO_READ_PODS:
		request->resource = &hf_pods;
		request->field_selector =
			hf_arena_printf(pass->arena, "spec.nodeName=%s", pass->node);
		fill_list(pass, request);
		break;
	case RO_READ_SLICES:
		request->resource = &hf_resourceslices;
		request->field_selector =
			hf_arena_printf(pass->arena, "spec.nodeName=%s", pass->node);
		fill_list(pass, request);
		break;
	case RO_READ_KURED:
		request->resource = &hf_daemonsets;
		request->ns = HF_KURED_NAMESPACE;
		request->name = HF_KURED_NAME;
		break;
	case RO_READ_CANARY:
		request->resource = hf_ro_canary_kind(&pass->spec);
		request->ns = pass->spec.proof.canary.ns;
		request->name = hf_ro_present_canary(pass);
		break;
	case RO_READ_MAINTENANCE:
	case RO_READS:
		request->resource = &hf_nodemaintenances;
		fill_list(pass, request);
		break;
	}
}

static void read_next(struct ro *ro)
{
	struct ro_pass *pass = &ro->pass;
	struct hf_request request;

	while (pass->read < RO_READS && !is_needed(pass, pass->read))
		pass->read++;
	if (*pass->node != '\0' && pass->read > RO_READ_OBJECT && pass->entry == NULL) {
		hf_ro_end_pass(ro, LOOK_WAITING);
		return;
	}
	if (pass->read == RO_READS) {
		hf_ro_decide(ro);
		return;
	}
	fill_request(pass, &request);
	request.timeout = ro->env.request_timeout;
	ro->call = hf_store_request(ro->env.store, &request, on_read, ro);
}

void hf_ro_begin_pass(struct ro *ro)
{
	hf_ro_drop_reads(ro);
	ro->doing = HF_ROLLOUT_DO_NOTHING;
	ro->pass.read = RO_READ_OBJECT;
	ro->pass.lists_pods = NULL;
	ro->pass.spec_problem = NULL;
	read_next(ro);
}
