/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/job_watches.h"

#include "base/mem.h"
#include "base/str.h"
#include "ctl/cache.h"

#include <stdio.h>
#include <stdlib.h>

/* Most objects that a watch keeps.  A field selector by name finds one object; with this limit a server that
 * ignores the selector fills no memory. */
#define ENTRIES_MAX 4
/* With "metadata.name=". */
#define SELECTOR_MAX (HF_POD_RANK_NAME_MAX + 16)

struct watch {
	struct hf_job_watches *watches;
	const struct hf_resource *kind;
	char *ns, *job;
	struct hf_cache *cache;
	bool wanted;
};

struct hf_job_watches {
	struct hf_job_watches_options options;
	struct watch *items[HF_JOB_WATCHES_MAX];
	size_t len;
};

static void *decode_job(void *arg HF_UNUSED, struct hf_doc *doc)
{
	struct hf_job_orders *orders = hf_job_orders_read(hf_doc_json(doc));

	hf_doc_drop_tree(doc);
	return orders;
}

static void free_orders(void *orders)
{
	hf_job_orders_destroy(orders);
}

static void on_job(void *arg, enum hf_cache_change change HF_UNUSED,
		   const struct hf_cache_entry *before HF_UNUSED,
		   const struct hf_cache_entry *now HF_UNUSED)
{
	const struct watch *watch = arg;

	watch->watches->options.changed(watch->watches->options.arg);
}

static void on_problem(void *arg, int code, const char *message)
{
	const struct watch *watch = arg;

	watch->watches->options.problem(watch->watches->options.arg, watch->job, code, message);
}

static struct watch *add_watch(struct hf_job_watches *w, const struct hf_pod_rank *rank,
			       const char *ns)
{
	struct watch *watch = hf_xcalloc(1, sizeof(*watch));
	char selector[SELECTOR_MAX];
	const struct hf_cache_options cache = {
		.loop = w->options.loop,
		.store = w->options.store,
		.resource = rank->kind,
		.ns = ns,
		.field_selector = selector,
		.seed = w->options.seed,
		.entries_max = ENTRIES_MAX,
		.decode = decode_job,
		.view_free = free_orders,
		.changed = on_job,
		.problem = on_problem,
		.arg = watch,
	};

	snprintf(selector, sizeof(selector), "metadata.name=%s", rank->job);
	watch->watches = w;
	watch->kind = rank->kind;
	watch->ns = hf_xstrdup(ns);
	watch->job = hf_xstrdup(rank->job);
	watch->cache = hf_cache_create(&cache);
	w->items[w->len++] = watch;
	hf_cache_start(watch->cache);
	return watch;
}

static void free_watch(struct watch *watch)
{
	hf_cache_destroy(watch->cache);
	free(watch->ns);
	free(watch->job);
	free(watch);
}

struct hf_job_watches *hf_job_watches_create(const struct hf_job_watches_options *options)
{
	struct hf_job_watches *w = hf_xcalloc(1, sizeof(*w));

	w->options = *options;
	return w;
}

struct hf_job_watches *hf_job_watches_destroy(struct hf_job_watches *w)
{
	if (w == NULL)
		return NULL;
	while (w->len > 0)
		free_watch(w->items[--w->len]);
	free(w);
	return NULL;
}

void hf_job_watches_begin(struct hf_job_watches *w)
{
	for (size_t i = 0; i < w->len; i++)
		w->items[i]->wanted = false;
}

static struct watch *find_watch(const struct hf_job_watches *w, const struct hf_pod_rank *rank,
				const char *ns)
{
	for (size_t i = 0; i < w->len; i++)
		if (w->items[i]->kind == rank->kind && hf_streq(w->items[i]->job, rank->job) &&
		    hf_streq(w->items[i]->ns, ns))
			return w->items[i];
	return NULL;
}

bool hf_job_watches_want(struct hf_job_watches *w, const struct hf_pod_rank *rank, const char *ns,
			 const struct hf_job_orders **ret_orders)
{
	struct watch *watch = find_watch(w, rank, ns);
	const struct hf_cache_entry *job;

	*ret_orders = NULL;
	if (watch == NULL && w->len == HF_JOB_WATCHES_MAX)
		return false;
	if (watch == NULL)
		watch = add_watch(w, rank, ns);
	watch->wanted = true;
	job = hf_cache_get(watch->cache, ns, rank->job);
	if (job != NULL)
		*ret_orders = job->view;
	return job != NULL || hf_cache_synced(watch->cache);
}

void hf_job_watches_end(struct hf_job_watches *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->len; i++) {
		if (w->items[i]->wanted)
			w->items[kept++] = w->items[i];
		else
			free_watch(w->items[i]);
	}
	w->len = kept;
}
