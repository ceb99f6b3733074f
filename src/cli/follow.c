/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/follow.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

#include <stdlib.h>

struct follow {
	struct hf_follows *follows;
	char *pod, *uid, *container;
	int64_t told;   /* number of the newest run whose log was opened; -1: none */
	int64_t newest; /* that there is; -1: none */
	bool running;   /* the newest one */
	struct hf_log_stream *stream;
};

struct hf_follows {
	struct hf_follows_options options;
	HF_VEC(struct follow *) items;
};

static const struct hf_json *container_status(const struct hf_json *pod, const char *container)
{
	const struct hf_json *list = hf_json_path(pod, "status", "containerStatuses", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *item = hf_json_item(list, i);
		if (container == NULL || hf_streq(hf_json_path_str(item, "name", NULL), container))
			return item;
	}
	return NULL;
}

int64_t hf_container_run(const struct hf_json *pod, const char *container, bool *ret_running)
{
	const struct hf_json *status = container_status(pod, container);
	const struct hf_json *state = hf_json_get(status, "state");
	int64_t count = hf_json_i64(hf_json_get(status, "restartCount"), 0);

	*ret_running = hf_json_get(state, "running") != NULL;
	if (*ret_running || hf_json_get(state, "terminated") != NULL)
		return count;
	/* One that waits to be started again has its last run behind it; one whose first start
	 * failed has none. */
	if (hf_json_path(status, "lastState", "terminated", NULL) != NULL)
		return hf_streq(hf_json_path_str(state, "waiting", "reason", NULL),
				"ContainerCreating")
			       ? count - 1
			       : count;
	return -1;
}

static void next_run(struct follow *follow);

static void on_log(void *arg, const char *bytes, size_t len, int code, const char *message)
{
	struct follow *follow = arg;
	const struct hf_follows_options *options = &follow->follows->options;

	if (len > 0) {
		options->bytes(options->arg, follow->pod, bytes, len);
		return;
	}
	follow->stream = hf_log_stream_stop(follow->stream);
	next_run(follow);
	options->ended(options->arg, follow->pod, code, message);
}

static void next_run(struct follow *follow)
{
	const struct hf_follows_options *options = &follow->follows->options;
	struct hf_log_options log = {.ns = options->ns,
				     .pod = follow->pod,
				     .container = follow->container,
				     .follow = true,
				     .tail_lines = -1};

	if (follow->stream != NULL || follow->newest <= follow->told)
		return;
	/* A short run may have been seen by its successor alone.  Of what ran before that one
	 * nothing is kept. */
	log.previous = follow->running && follow->newest - follow->told > 1;
	log.follow = !log.previous;
	follow->told = log.previous ? follow->newest - 1 : follow->newest;
	follow->stream = hf_store_logs(options->store, &log, on_log, follow);
}

static struct follow *find(struct hf_follows *follows, struct hf_doc *pod)
{
	struct follow *follow;

	for (size_t i = 0; i < follows->items.len; i++)
		if (hf_streq(follows->items.items[i]->uid, hf_doc_uid(pod)))
			return follows->items.items[i];
	follow = hf_xcalloc(1, sizeof(*follow));
	if (!HF_VEC_PUSH(&follows->items, follow)) {
		free(follow);
		return NULL;
	}
	follow->follows = follows;
	follow->pod = hf_xstrdup(hf_doc_name(pod));
	follow->uid = hf_xstrdup(hf_doc_uid(pod));
	follow->told = follow->newest = -1;
	return follow;
}

void hf_follows_pod(struct hf_follows *follows, struct hf_doc *pod)
{
	const struct hf_json *root = hf_doc_json(pod);
	const char *container = follows->options.container;
	bool running;
	int64_t run = hf_container_run(root, container, &running);
	struct follow *follow = run >= 0 ? find(follows, pod) : NULL;

	if (follow == NULL)
		return;
	if (follow->container == NULL)
		follow->container = hf_xstrdup(
			hf_json_path_str(container_status(root, container), "name", NULL));
	if (run > follow->newest)
		follow->newest = run;
	follow->running = running;
	next_run(follow);
}

bool hf_follows_open(const struct hf_follows *follows)
{
	for (size_t i = 0; i < follows->items.len; i++)
		if (follows->items.items[i]->stream != NULL)
			return true;
	return false;
}

struct hf_follows *hf_follows_create(const struct hf_follows_options *options)
{
	struct hf_follows *follows = hf_xcalloc(1, sizeof(*follows));

	follows->options = *options;
	follows->items.len_max = HF_FOLLOWS_MAX;
	return follows;
}

struct hf_follows *hf_follows_destroy(struct hf_follows *follows)
{
	if (follows == NULL)
		return NULL;
	for (size_t i = 0; i < follows->items.len; i++) {
		struct follow *follow = follows->items.items[i];
		follow->stream = hf_log_stream_stop(follow->stream);
		free(follow->pod);
		free(follow->uid);
		free(follow->container);
		free(follow);
	}
	HF_VEC_RELEASE(&follows->items);
	free(follows);
	return NULL;
}
