/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Finds pods that do not end at SIGTERM. The time of the SIGKILL is that of the pod's deletion, or that of
 * the stop of `run` and the pod's grace period. */
#include "app/slow_ends.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "cli/rank.h"
#include "store/resource.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PODS_MAX 4096    /* pods that are remembered as reported */
#define NAMES_SHOWN 3    /* ranks that one line names */
#define DEFAULT_GRACE 30 /* seconds; upstream's terminationGracePeriodSeconds */

struct hf_slow_ends {
	char *job;
	struct hf_map *told; /* UIDs of the pods that were reported */
	/* the present look */
	hf_time stopping_since, now;
	struct hf_strbuf names;
	size_t n;
	hf_time left; /* until the last SIGKILL */
};

struct hf_slow_ends *hf_slow_ends_create(const char *job)
{
	struct hf_slow_ends *ends = hf_xcalloc(1, sizeof(*ends));

	ends->job = hf_xstrdup(job);
	ends->told = hf_map_create(PODS_MAX, 0, NULL);
	hf_strbuf_init(&ends->names, 1024);
	return ends;
}

struct hf_slow_ends *hf_slow_ends_destroy(struct hf_slow_ends *ends)
{
	if (ends == NULL)
		return NULL;
	hf_map_destroy(ends->told);
	hf_strbuf_release(&ends->names);
	free(ends->job);
	free(ends);
	return NULL;
}

void hf_slow_ends_begin(struct hf_slow_ends *ends, hf_time stopping_since, hf_time now)
{
	ends->stopping_since = stopping_since;
	ends->now = now;
	hf_strbuf_clear(&ends->names);
	ends->n = 0;
	ends->left = 0;
}

static bool is_running(const struct hf_json *pod)
{
	const struct hf_json *list = hf_json_path(pod, "status", "containerStatuses", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_json_path(hf_json_item(list, i), "state", "running", NULL) != NULL)
			return true;
	return false;
}

/* Returns the seconds between SIGTERM and SIGKILL. */
static int64_t grace_of(const struct hf_json *pod, bool deleted)
{
	int64_t grace = hf_json_i64(
		hf_json_path(pod, "spec", "terminationGracePeriodSeconds", NULL), DEFAULT_GRACE);

	if (deleted)
		grace = hf_json_i64(
			hf_json_path(pod, "metadata", "deletionGracePeriodSeconds", NULL), grace);
	return grace < 0 || grace > HF_DAY / HF_SECOND ? HF_DAY / HF_SECOND : grace;
}

/* Finds the times of the SIGTERM and of the SIGKILL. False: the pod is not being ended. */
static bool find_times(const struct hf_slow_ends *ends, const struct hf_json *pod,
		       hf_time *ret_term, hf_time *ret_kill)
{
	const char *deleted = hf_json_path_str(pod, "metadata", "deletionTimestamp", NULL);

	/* A deletionTimestamp is the time at which the grace period ends. */
	if (deleted != NULL && hf_time_parse(deleted, ret_kill, NULL) == 0) {
		*ret_term = *ret_kill - grace_of(pod, true) * HF_SECOND;
		return true;
	}
	if (ends->stopping_since == HF_TIME_NONE)
		return false;
	*ret_term = ends->stopping_since;
	*ret_kill = ends->stopping_since + grace_of(pod, false) * HF_SECOND;
	return true;
}

void hf_slow_ends_pod(struct hf_slow_ends *ends, struct hf_doc *doc)
{
	const struct hf_json *pod = hf_doc_json(doc);
	hf_time term, kill;

	if (!is_running(pod) || !find_times(ends, pod, &term, &kill) ||
	    ends->now - term < HF_SLOW_ENDS_AFTER || kill <= ends->now ||
	    hf_map_get(ends->told, hf_doc_uid(doc)) != NULL ||
	    !hf_map_put(ends->told, hf_doc_uid(doc), ends))
		return;
	if (ends->n < NAMES_SHOWN)
		hf_strbuf_addf(&ends->names, "%s%s", ends->n > 0 ? ", " : "",
			       hf_cli_rank_of_pod(hf_doc_name(doc), ends->job));
	ends->n++;
	if (kill - ends->now > ends->left)
		ends->left = kill - ends->now;
}

char *hf_slow_ends_take(struct hf_slow_ends *ends)
{
	bool stopping = ends->stopping_since != HF_TIME_NONE;
	char more[64] = "";

	if (ends->n == 0)
		return NULL;
	if (ends->n > NAMES_SHOWN)
		(void)snprintf(more, sizeof(more), " and %zu more", ends->n - NAMES_SHOWN);
	return hf_xasprintf("waiting up to %" PRId64 " s for %s%s to end; %s",
			    (ends->left + HF_SECOND - 1) / HF_SECOND, ends->names.data, more,
			    !stopping ? "the process has not ended at SIGTERM, and SIGKILL follows"
			    : ends->n == 1 ? "Ctrl-C again kills it"
					   : "Ctrl-C again kills them");
}

static void see_pod(void *arg, struct hf_doc *pod)
{
	hf_slow_ends_pod(arg, pod);
}

char *hf_slow_ends_look(struct hf_slow_ends *ends, struct hf_memstore *store, const char *ns,
			hf_time stopping_since, hf_time now)
{
	hf_slow_ends_begin(ends, stopping_since, now);
	hf_memstore_each(store, &hf_pods, ns, see_pod, ends);
	return hf_slow_ends_take(ends);
}
