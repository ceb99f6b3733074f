/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Watches what concerns nodes, and makes rows, lists and the page of one node. */
#include "page/nodes.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "ctl/cache.h"
#include "page/jobs.h"
#include "page/json_out.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>

#define NODES_MAX ((size_t)20000)
#define TEXT_BYTES_MAX ((size_t)64 << 10)
/* Limit of the jobs in the row of a node. */
#define JOBS_SHOWN 32
#define MENDS_SHOWN 20

enum kind { KIND_NODE, KIND_HEALTH, KIND_POLICY, KIND_MEND, KINDS };

struct row {
	char *name;
	struct hf_page_text_ref *text; /* NULL: not made yet */
	uint64_t version;
	bool marked;
	struct row *next_marked;
};

struct hf_page_nodes {
	struct hf_page_nodes_options options;
	struct hf_cache *caches[KINDS];
	struct hf_map *rows; /* name → row */
	struct row *first, **last;
	struct hf_timer *timer;
};

static void free_row(void *value)
{
	struct row *row = value;

	hf_page_text_unref(row->text);
	free(row->name);
	free(row);
}

/* ---- what is known of one node -------------------------------------------------------------------------- */

static const void *view_of(const struct hf_page_nodes *nodes, enum kind kind, const char *name)
{
	const struct hf_cache_entry *entry = hf_cache_get(nodes->caches[kind], "", name);

	return entry == NULL ? NULL : entry->view;
}

/* What a policy answers about the node; the policies' statuses name at most 64 nodes each. */
static const struct hf_json *find_answer(const struct hf_page_nodes *nodes, const char *name)
{
	const struct hf_cache_entry *entry;

	for (size_t it = 0; (entry = hf_cache_next(nodes->caches[KIND_POLICY], &it)) != NULL;) {
		const struct hf_json *list =
			hf_json_path(hf_doc_json(entry->doc), "status", "nodes", NULL);

		for (size_t i = 0; i < hf_json_len(list); i++)
			if (hf_streq(hf_json_path_str(hf_json_item(list, i), "name", NULL), name))
				return hf_json_item(list, i);
	}
	return NULL;
}

/* What the state of a node depends on. */
static struct hf_page_node_input facts_of(const struct hf_page_nodes *nodes, const char *name)
{
	return (struct hf_page_node_input){.name = name,
					   .node = view_of(nodes, KIND_NODE, name),
					   .health = view_of(nodes, KIND_HEALTH, name),
					   .now = hf_loop_wall(nodes->options.loop)};
}

static struct hf_page_node_input input_of(const struct hf_page_nodes *nodes, const char *name)
{
	struct hf_page_node_input input = facts_of(nodes, name);

	input.answer = find_answer(nodes, name);
	return input;
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

static void mark_row(struct hf_page_nodes *nodes, const char *name)
{
	struct row *row = hf_map_get(nodes->rows, name);

	if (row == NULL) {
		row = hf_xcalloc(1, sizeof(*row));
		row->name = hf_xstrdup(name);
		if (!hf_map_put(nodes->rows, row->name, row)) {
			free_row(row);
			return;
		}
	}
	if (row->marked)
		return;
	row->marked = true;
	row->next_marked = NULL;
	*nodes->last = row;
	nodes->last = &row->next_marked;
	if (!hf_timer_armed(nodes->timer))
		hf_timer_arm(nodes->timer, nodes->options.settle);
}

static void push_change(struct hf_page_nodes *nodes, struct row *row, enum hf_page_change change,
			struct hf_page_text_ref *text)
{
	const struct hf_page_delta delta = {.change = change, .text = text};

	row->version = hf_page_ring_add(nodes->options.ring, &delta, row->version);
}

static struct hf_page_text_ref *text_of(const struct hf_json *object)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(TEXT_BYTES_MAX);

	hf_json_write(object, HF_JSON_COMPACT, &sb);
	return hf_page_text_make(sb.data, sb.len);
}

static void remove_row(struct hf_page_nodes *nodes, struct row *row)
{
	HF_AUTO_JSON gone = hf_json_object();
	struct hf_page_text_ref *text;

	hf_json_set_str(gone, "kind", "Node");
	hf_page_set_text(gone, "namespace", NULL);
	hf_json_set_str(gone, "name", row->name);
	text = text_of(gone);
	if (row->text != NULL)
		push_change(nodes, row, HF_PAGE_CHANGE_GONE_NODE, text);
	hf_page_text_unref(text);
	hf_map_remove(nodes->rows, row->name);
}

static void make_row(struct hf_page_nodes *nodes, struct row *row)
{
	const struct hf_page_node_input input = input_of(nodes, row->name);
	struct hf_page_text_ref *text;

	if (input.node == NULL && input.health == NULL) {
		remove_row(nodes, row);
		return;
	}
	HF_AUTO_JSON object = hf_page_node_json(&input);

	text = text_of(object);
	if (row->text != NULL && row->text->len == text->len &&
	    memcmp(row->text->bytes, text->bytes, text->len) == 0) {
		hf_page_text_unref(text);
		return;
	}
	hf_page_text_unref(row->text);
	row->text = text;
	push_change(nodes, row, HF_PAGE_CHANGE_NODE, text);
}

static void on_settled(void *arg)
{
	struct hf_page_nodes *nodes = arg;
	uint64_t before = hf_page_ring_newest(nodes->options.ring);

	for (size_t n = 0; nodes->first != NULL && n < HF_PAGE_SLICE; n++) {
		struct row *row = nodes->first;

		nodes->first = row->next_marked;
		if (nodes->first == NULL)
			nodes->last = &nodes->first;
		row->marked = false;
		make_row(nodes, row);
	}
	if (nodes->first != NULL)
		hf_timer_arm(nodes->timer, 0);
	if (hf_page_ring_newest(nodes->options.ring) != before && nodes->options.changed != NULL)
		nodes->options.changed(nodes->options.arg);
}

/* ---- the caches ---------------------------------------------------------------------------------------------- */

static void take_node(void *arg, enum hf_cache_change change, const struct hf_cache_entry *before,
		      const struct hf_cache_entry *now)
{
	if (change != HF_CACHE_SYNCED)
		mark_row(arg, now != NULL ? now->name : before->name);
}

/* The status of a HealthPolicy has an answer for each of these nodes. */
static void mark_nodes_of(struct hf_page_nodes *nodes, const struct hf_cache_entry *policy)
{
	const struct hf_json *list =
		policy == NULL ? NULL
			       : hf_json_path(hf_doc_json(policy->doc), "status", "nodes", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const char *name = hf_json_path_str(hf_json_item(list, i), "name", NULL);

		if (name != NULL && hf_map_has(nodes->rows, name))
			mark_row(nodes, name);
	}
}

static void take_policy(void *arg, enum hf_cache_change change, const struct hf_cache_entry *before,
			const struct hf_cache_entry *now)
{
	if (change == HF_CACHE_SYNCED)
		return;
	mark_nodes_of(arg, before);
	mark_nodes_of(arg, now);
}

static void *decode_node(void *arg, struct hf_doc *doc)
{
	return hf_page_node_read(doc);
}

static void *decode_health(void *arg, struct hf_doc *doc)
{
	const struct hf_page_nodes *nodes = arg;

	return hf_page_health_read(doc, nodes->options.ranks);
}

static void *decode_mend(void *arg, struct hf_doc *doc)
{
	return hf_page_mend_read(doc);
}

static struct hf_doc *trim_policy(void *arg, struct hf_doc *doc)
{
	return hf_doc_without_managed_fields(doc);
}

static const char *index_by_node(const struct hf_cache_entry *entry)
{
	return ((const struct hf_page_mend *)entry->view)->node;
}

static void create_caches(struct hf_page_nodes *nodes)
{
	const struct hf_cache_options shared = {.loop = nodes->options.loop,
						.store = nodes->options.store,
						.seed = nodes->options.seed,
						.entries_max = NODES_MAX,
						.arg = nodes};
	struct hf_cache_options options[KINDS] = {shared, shared, shared, shared};

	options[KIND_NODE].resource = &hf_nodes;
	options[KIND_NODE].decode = decode_node;
	options[KIND_NODE].view_free = hf_page_node_free;
	options[KIND_NODE].changed = take_node;
	options[KIND_HEALTH].resource = &hf_devicehealths;
	options[KIND_HEALTH].decode = decode_health;
	options[KIND_HEALTH].view_free = hf_page_health_free;
	options[KIND_HEALTH].changed = take_node;
	options[KIND_POLICY].resource = &hf_healthpolicies;
	options[KIND_POLICY].keep_docs = true;
	options[KIND_POLICY].trim = trim_policy;
	options[KIND_POLICY].changed = take_policy;
	options[KIND_MEND].resource = &hf_remediations;
	options[KIND_MEND].decode = decode_mend;
	options[KIND_MEND].view_free = hf_page_mend_free;
	options[KIND_MEND].index_key[0] = index_by_node;
	for (size_t i = 0; i < KINDS; i++) {
		nodes->caches[i] = hf_cache_create(&options[i]);
		hf_cache_start(nodes->caches[i]);
	}
}

struct hf_page_nodes *hf_page_nodes_create(const struct hf_page_nodes_options *options)
{
	struct hf_page_nodes *nodes = hf_xcalloc(1, sizeof(*nodes));

	nodes->options = *options;
	if (options->settle <= 0)
		nodes->options.settle = HF_PAGE_SETTLE;
	nodes->last = &nodes->first;
	nodes->rows = hf_map_create_borrowing(NODES_MAX, options->seed, free_row);
	nodes->timer = hf_timer_create(options->loop, on_settled, nodes);
	create_caches(nodes);
	return nodes;
}

struct hf_page_nodes *hf_page_nodes_destroy(struct hf_page_nodes *nodes)
{
	if (nodes == NULL)
		return NULL;
	for (size_t i = 0; i < KINDS; i++)
		hf_cache_destroy(nodes->caches[i]);
	hf_timer_destroy(nodes->timer);
	hf_map_destroy(nodes->rows);
	free(nodes);
	return NULL;
}

/* ---- JSON --------------------------------------------------------------------------------------------------------- */

struct job_list {
	struct hf_json *list;
	const struct hf_page_session *session;
};

static void add_job(void *arg, const struct hf_page_job *job)
{
	const struct job_list *jobs = arg;
	struct hf_json *item;

	if (hf_json_len(jobs->list) >= JOBS_SHOWN ||
	    !hf_page_session_may(jobs->session, job->framework->plural, job->ns))
		return;
	item = hf_json_object();
	hf_json_set_str(item, "namespace", job->ns);
	hf_json_set_str(item, "kind", job->framework->kind);
	hf_json_set_str(item, "name", job->name);
	hf_json_append(jobs->list, item);
}

static struct hf_json *node_json(const struct hf_page_nodes *nodes,
				 const struct hf_page_session *session, const char *name)
{
	const struct hf_page_source *source = nodes->options.source;
	const struct hf_page_node_input input = input_of(nodes, name);
	struct hf_json *object = hf_page_node_json(&input);
	struct job_list jobs = {hf_json_ensure_array(object, "jobs"), session};

	source->jobs_on_node(source->arg, name, add_job, &jobs);
	return object;
}

static void add_budget(struct hf_json *list, const struct hf_cache_entry *policy)
{
	const struct hf_json *status = hf_json_get(hf_doc_json(policy->doc), "status");
	const struct hf_json *counts = hf_json_get(status, "counts");
	const struct hf_json *budget = hf_json_get(status, "budget");
	int64_t used = hf_json_i64(hf_json_get(counts, "quarantined"), 0);
	int64_t left = hf_json_i64(hf_json_get(budget, "quarantinesLeft"), -1);
	struct hf_json *item = hf_json_object();
	HF_AUTOFREE char *sentence =
		left < 0 ? hf_xasprintf("%lld nodes are quarantined; the policy has no limit",
					(long long)used)
			 : hf_xasprintf("%lld nodes are quarantined; %lld more may be, within the "
					"policy's window",
					(long long)used, (long long)left);

	hf_json_set_str(item, "policy", policy->name);
	hf_page_set_text(item, "mode", hf_json_path_str(status, "mode", NULL));
	hf_page_set_count(item, "used", used);
	hf_page_set_count(item, "limit", left < 0 ? -1 : used + left);
	hf_page_set_count(item, "left", left);
	hf_page_set_count(item, "unavailableLeft",
			  hf_json_i64(hf_json_get(budget, "unavailableLeft"), -1));
	hf_json_set_str(item, "sentence", sentence);
	hf_json_append(list, item);
}

static void add_policies(const struct hf_page_nodes *nodes, struct hf_json *object)
{
	struct hf_json *breaker = hf_json_ensure_object(object, "breaker");
	struct hf_json *budgets = hf_json_ensure_array(object, "budgets");
	const struct hf_cache_entry *policy;
	HF_AUTOFREE char *sentence = NULL;
	bool open = false;

	for (size_t it = 0; (policy = hf_cache_next(nodes->caches[KIND_POLICY], &it)) != NULL;) {
		const struct hf_json *state =
			hf_json_path(hf_doc_json(policy->doc), "status", "breaker", NULL);

		add_budget(budgets, policy);
		if (open || !hf_streq(hf_json_path_str(state, "state", NULL), "Open"))
			continue;
		open = true;
		sentence = hf_xasprintf(
			"policy %s: %s", policy->name,
			hf_str_or(hf_json_path_str(state, "message", NULL), "the breaker is open"));
	}
	hf_json_set_bool(breaker, "open", open);
	hf_page_set_text(breaker, "sentence",
			 sentence != NULL ? sentence
			 : hf_json_len(budgets) == 0
				 ? "No HealthPolicy exists, so Holdfast only reports nodes."
				 : NULL);
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(const struct row *const *)a)->name, (*(const struct row *const *)b)->name);
}

static bool is_wanted(const struct row *row, const char *state, const struct hf_page_query *query)
{
	return (query->state == NULL || hf_streq(state, query->state)) &&
	       (query->q == NULL || strstr(row->name, query->q) != NULL);
}

struct hf_json *hf_page_nodes_list(struct hf_page_nodes *nodes,
				   const struct hf_page_session *session,
				   const struct hf_page_query *query)
{
	HF_AUTOFREE struct row **rows =
		hf_xcalloc(hf_map_len(nodes->rows) + 1, sizeof(struct row *));
	struct hf_json *object = hf_json_object();
	char version[HF_PAGE_VERSION_MAX];
	struct hf_json *states, *items;
	int64_t total = 0, shown = 0;
	const char *key, *last = NULL;
	size_t len = 0;
	void *value;

	hf_page_ring_version(nodes->options.ring, hf_page_ring_newest(nodes->options.ring),
			     version);
	hf_json_set_str(object, "resourceVersion", version);
	hf_json_set_i64(object, "total", 0);
	states = hf_json_ensure_object(object, "states");
	add_policies(nodes, object);
	items = hf_json_ensure_array(object, "items");
	for (size_t it = 0; hf_map_next(nodes->rows, &it, &key, &value);)
		if (((const struct row *)value)->text != NULL)
			rows[len++] = value;
	qsort(rows, len, sizeof(*rows), by_name);
	for (size_t i = 0; i < len; i++) {
		const struct hf_page_node_input input = facts_of(nodes, rows[i]->name);
		const char *state = hf_page_node_state(&input);

		hf_page_count_up(states, state);
		if (!is_wanted(rows[i], state, query))
			continue;
		total++;
		if ((query->token != NULL && strcmp(rows[i]->name, query->token) <= 0) ||
		    shown > query->limit)
			continue;
		if (shown++ < query->limit) {
			hf_json_append(items, node_json(nodes, session, rows[i]->name));
			last = rows[i]->name;
		}
	}
	hf_json_set_i64(object, "total", total);
	hf_page_set_text(object, "continue", shown > query->limit ? last : NULL);
	return object;
}

static void add_mends(const struct hf_page_nodes *nodes, const char *name, struct hf_json *object)
{
	const struct hf_cache *cache = nodes->caches[KIND_MEND];
	struct hf_json *list = hf_json_ensure_array(object, "remediations");
	const struct hf_cache_entry *entry = hf_cache_first(cache, 0, name);

	for (; entry != NULL && hf_json_len(list) < MENDS_SHOWN;
	     entry = hf_cache_after(cache, 0, entry)) {
		const struct hf_page_mend *mend = entry->view;
		struct hf_json *item = hf_json_object();

		hf_json_set_str(item, "name", entry->name);
		hf_json_set_str(item, "rung", mend->rung);
		hf_json_set_str(item, "state", mend->phase);
		hf_page_set_text(item, "sentence", mend->message);
		hf_page_set_time(item, "at", mend->at);
		hf_json_append(list, item);
	}
}

struct hf_json *hf_page_nodes_one(struct hf_page_nodes *nodes,
				  const struct hf_page_session *session, const char *name)
{
	const struct hf_page_node_input input = facts_of(nodes, name);
	struct hf_json *object, *devices = NULL;

	if (input.node == NULL && input.health == NULL)
		return NULL;
	object = node_json(nodes, session, name);
	/* The counts of lists stand beside the devices themselves. */
	hf_json_set(object, "deviceCounts", hf_json_share(hf_json_get(object, "devices")));
	if (input.health == NULL ||
	    hf_json_parse(input.health->devices, strlen(input.health->devices), NULL, &devices,
			  NULL) != 0)
		devices = hf_json_array();
	hf_json_set(object, "devices", devices);
	add_mends(nodes, name, object);
	return object;
}

struct hf_json *hf_page_nodes_count(struct hf_page_nodes *nodes, int64_t *ret_total)
{
	struct hf_json *states = hf_json_object();
	const char *key;
	void *value;

	*ret_total = 0;
	for (size_t it = 0; hf_map_next(nodes->rows, &it, &key, &value);) {
		const struct hf_page_node_input input = facts_of(nodes, key);

		hf_page_count_up(states, hf_page_node_state(&input));
		(*ret_total)++;
	}
	return states;
}

int64_t hf_page_nodes_lost_devices(const struct hf_page_nodes *nodes)
{
	const struct hf_cache_entry *entry;
	int64_t lost = 0;

	for (size_t it = 0; (entry = hf_cache_next(nodes->caches[KIND_HEALTH], &it)) != NULL;) {
		const struct hf_page_health *health = entry->view;

		lost += health->total - health->well;
	}
	return lost;
}
