/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "store/backend.h"
#include "store/resource.h"

#include <stdio.h>
#include <string.h>

/* A back end that records its calls. */
static char asked[256];
static struct hf_call the_call;
static struct hf_watch the_watch;
static struct hf_log_stream the_stream;

static void record_call(const char *what)
{
	size_t len = strlen(asked);

	snprintf(asked + len, sizeof(asked) - len, "%s", what);
}

static struct hf_call *record_request(struct hf_store *s, const struct hf_request *r,
				      hf_reply_fn fn, void *arg)
{
	record_call("request ");
	return &the_call;
}

static void record_cancel(struct hf_call *call)
{
	record_call(call == &the_call ? "cancel " : "?");
}

static struct hf_watch *record_watch(struct hf_store *s, const struct hf_watch_options *o,
				     hf_event_fn fn, void *arg)
{
	record_call("watch ");
	return &the_watch;
}

static void watch_stop(struct hf_watch *w)
{
	record_call(w == &the_watch ? "watch_stop " : "?");
}

static struct hf_log_stream *record_logs(struct hf_store *s, const struct hf_log_options *o,
					 hf_log_fn fn, void *arg)
{
	record_call("logs ");
	return &the_stream;
}

static void logs_stop(struct hf_log_stream *l)
{
	record_call(l == &the_stream ? "logs_stop " : "?");
}

static void record_destroy(struct hf_store *s)
{
	record_call("destroy");
}

static const struct hf_store_ops ops = {.name = "noted",
					.request = record_request,
					.cancel = record_cancel,
					.watch = record_watch,
					.watch_stop = watch_stop,
					.logs = record_logs,
					.logs_stop = logs_stop,
					.destroy = record_destroy};

static void on_reply(void *arg, const struct hf_reply *reply)
{
}

static void on_event(void *arg, const struct hf_event *event)
{
}

static void on_log(void *arg, const char *bytes, size_t len, int code, const char *message)
{
}

static void every_function_reaches_its_back_end(void **state)
{
	struct hf_store store = {.ops = &ops};

	the_call.ops = the_watch.ops = the_stream.ops = &ops;
	asked[0] = '\0';
	hf_call_cancel(hf_store_request(&store, &(struct hf_request){.resource = &hf_pods},
					on_reply, NULL));
	assert_null(hf_watch_stop(hf_store_watch(
		&store, &(struct hf_watch_options){.resource = &hf_pods}, on_event, NULL)));
	assert_null(hf_log_stream_stop(hf_store_logs(
		&store, &(struct hf_log_options){.ns = "n", .pod = "p"}, on_log, NULL)));
	assert_null(hf_store_destroy(&store));
	assert_string_equal(asked, "request cancel watch watch_stop logs logs_stop destroy");
}

static void nothing_is_done_to_null(void **state)
{
	asked[0] = '\0';
	hf_call_cancel(NULL);
	assert_null(hf_watch_stop(NULL));
	assert_null(hf_log_stream_stop(NULL));
	assert_null(hf_store_destroy(NULL));
	assert_string_equal(asked, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_function_reaches_its_back_end),
		cmocka_unit_test(nothing_is_done_to_null),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
