/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/health_watch.h"

#include "agent/acknowledgement.h"
#include "api/device_health.h"
#include "base/mem.h"
#include "base/str.h"
#include "ctl/cache.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>

/* Most objects that the watch keeps.  A field selector by name finds one object; with this limit a server that
 * ignores the selector fills no memory. */
#define ENTRIES_MAX 4
/* Longer texts are of no use: an acknowledgement names at most 64 devices. */
#define TEXT_MAX ((size_t)8192)

struct annotations {
	char *cleared, *report; /* NULL: none */
};

struct hf_health_watch {
	struct hf_health_watch_options options;
	char *node;
	struct hf_cache *cache;
};

static char *copy_annotation(struct hf_doc *doc, const char *key)
{
	const char *text = hf_json_path_str(hf_doc_json(doc), "metadata", "annotations", key, NULL);

	return text == NULL || strlen(text) > TEXT_MAX ? NULL : hf_xstrdup(text);
}

static void *decode_health(void *arg HF_UNUSED, struct hf_doc *doc)
{
	struct annotations *view = hf_xcalloc(1, sizeof(*view));

	view->cleared = copy_annotation(doc, HF_ANNOTATION_CLEARED);
	view->report = copy_annotation(doc, HF_REPORT_ANNOTATION);
	hf_doc_drop_tree(doc);
	return view;
}

static void free_annotations(void *arg)
{
	struct annotations *view = arg;

	free(view->cleared);
	free(view->report);
	free(view);
}

static void on_change(void *arg, enum hf_cache_change change HF_UNUSED,
		      const struct hf_cache_entry *before HF_UNUSED,
		      const struct hf_cache_entry *now)
{
	const struct hf_health_watch *watch = arg;
	const struct annotations *view;

	if (now == NULL || !hf_streq(now->name, watch->node))
		return;
	view = now->view;
	watch->options.changed(watch->options.arg, view->cleared, view->report);
}

struct hf_health_watch *hf_health_watch_create(const struct hf_health_watch_options *options)
{
	struct hf_health_watch *watch = hf_xcalloc(1, sizeof(*watch));
	HF_AUTOFREE char *selector = hf_xasprintf("metadata.name=%s", options->node);
	const struct hf_cache_options cache = {
		.loop = options->loop,
		.store = options->store,
		.resource = &hf_devicehealths,
		.field_selector = selector,
		.seed = options->seed ^ hf_hash_str(hf_devicehealths.plural),
		.entries_max = ENTRIES_MAX,
		.decode = decode_health,
		.view_free = free_annotations,
		.changed = on_change,
		.arg = watch,
	};

	watch->options = *options;
	watch->node = hf_xstrdup(options->node);
	watch->cache = hf_cache_create(&cache);
	return watch;
}

struct hf_health_watch *hf_health_watch_destroy(struct hf_health_watch *watch)
{
	if (watch == NULL)
		return NULL;
	hf_cache_destroy(watch->cache);
	free(watch->node);
	free(watch);
	return NULL;
}

void hf_health_watch_start(struct hf_health_watch *watch)
{
	hf_cache_start(watch->cache);
}

bool hf_health_watch_works(const struct hf_health_watch *watch)
{
	return hf_cache_synced(watch->cache);
}
