/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Prints the log of one pod's container for `wait --logs`, run after run. Reads the pod every
 * 500 ms to find a run that is not printed yet. */
#include "cli/pod_log.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/log_writer.h"
#include "store/resource.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define LOOK_SPAN (500 * HF_MS)
/* how long hf_pod_log_finish waits for the last bytes of the log */
#define LINGER_SPAN (2 * HF_SECOND)

struct hf_pod_log {
	struct hf_cli *cli;
	char *ns, *pod, *container;
	char *seen; /* the run that was printed last: UID of the pod and restartCount */
	struct hf_call *call;
	struct hf_log_stream *stream;
	struct hf_timer *again, *linger;
	struct hf_log_writer writer;
	void (*done)(void *arg); /* not NULL: hf_pod_log_finish was called */
	void *done_arg;
};

static void end_tail(void *arg)
{
	struct hf_pod_log *tail = arg;
	void (*done)(void *) = tail->done;

	tail->stream = hf_log_stream_stop(tail->stream);
	hf_timer_disarm(tail->linger);
	tail->done = NULL;
	if (done != NULL)
		done(tail->done_arg);
}

static void on_log(void *arg, const char *bytes, size_t len, int code, const char *message)
{
	struct hf_pod_log *tail = arg;

	if (len > 0) {
		/* A lost output shows at the end of the program. */
		(void)!hf_log_writer_write(&tail->writer, bytes, len);
		return;
	}
	tail->stream = hf_log_stream_stop(tail->stream);
	if (tail->done != NULL)
		end_tail(tail);
	else
		hf_timer_arm(tail->again, LOOK_SPAN);
}

static const struct hf_json *status_of(const struct hf_json *pod, const char *container)
{
	const struct hf_json *list = hf_json_path(pod, "status", "containerStatuses", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(list, i), "name", NULL), container))
			return hf_json_item(list, i);
	return NULL;
}

/* Returns the name of the container's present run ("UID COUNT"). NULL: there is no run, or its log
 * was printed before. */
static char *new_run(const struct hf_pod_log *tail, struct hf_doc *pod)
{
	const struct hf_json *status = status_of(hf_doc_json(pod), tail->container);
	HF_AUTOFREE char *run = NULL;

	if (hf_json_path(status, "state", "running", NULL) == NULL &&
	    hf_json_path(status, "state", "terminated", NULL) == NULL)
		return NULL;
	run = hf_xasprintf("%s %" PRId64, hf_doc_uid(pod),
			   hf_json_i64(hf_json_get(status, "restartCount"), 0));
	return hf_streq(run, tail->seen) ? NULL : hf_steal(&run);
}

static void on_pod(void *arg, const struct hf_reply *reply)
{
	struct hf_pod_log *tail = arg;
	struct hf_log_options options = {.ns = tail->ns,
					 .pod = tail->pod,
					 .container = tail->container,
					 .follow = true,
					 .tail_lines = -1};
	char *run = reply->code == 0 ? new_run(tail, reply->object) : NULL;

	tail->call = NULL;
	if (run != NULL) {
		free(tail->seen);
		tail->seen = run;
		tail->stream = hf_store_logs(tail->cli->store, &options, on_log, tail);
	} else if (tail->done != NULL) {
		end_tail(tail);
	} else {
		hf_timer_arm(tail->again, LOOK_SPAN);
	}
}

static void look_for_run(void *arg)
{
	struct hf_pod_log *tail = arg;
	struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_pods, .ns = tail->ns, .name = tail->pod};

	if (tail->call == NULL && tail->stream == NULL)
		tail->call = hf_store_request(tail->cli->store, &request, on_pod, tail);
}

struct hf_pod_log *hf_pod_log_create(struct hf_cli *cli, const char *ns, const char *pod,
				     const char *container)
{
	struct hf_pod_log *tail = hf_xcalloc(1, sizeof(*tail));

	tail->cli = cli;
	hf_log_writer_init(&tail->writer, cli->out, isatty(hf_cli_out_fd(cli)) == 1, NULL);
	tail->ns = hf_xstrdup(ns);
	tail->pod = hf_xstrdup(pod);
	tail->container = hf_xstrdup(container);
	tail->again = hf_timer_create(cli->loop, look_for_run, tail);
	tail->linger = hf_timer_create(cli->loop, end_tail, tail);
	look_for_run(tail);
	return tail;
}

void hf_pod_log_finish(struct hf_pod_log *tail, void (*done)(void *arg), void *arg)
{
	tail->done = done;
	tail->done_arg = arg;
	hf_timer_arm(tail->linger, LINGER_SPAN);
	hf_timer_disarm(tail->again);
	/* A whole run may have begun and ended since the last read of the pod. */
	look_for_run(tail);
}

struct hf_pod_log *hf_pod_log_destroy(struct hf_pod_log *tail)
{
	if (tail == NULL)
		return NULL;
	hf_call_cancel(tail->call);
	hf_log_stream_stop(tail->stream);
	hf_timer_destroy(tail->again);
	hf_timer_destroy(tail->linger);
	hf_log_writer_release(&tail->writer);
	free(tail->seen);
	free(tail->container);
	free(tail->pod);
	free(tail->ns);
	free(tail);
	return NULL;
}
