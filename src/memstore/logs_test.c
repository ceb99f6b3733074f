/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "contract/plane.h"

#include "base/mem.h"
#include "memstore/memstore_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The stream of a kubelet's log; the test decides what comes and when. */
struct fake_stream {
	struct hf_log_stream base;
	hf_log_fn fn;
	void *arg;
	char pod[64];
	int stopped;
};
static struct fake_stream fake;

static void fake_stop(struct hf_log_stream *stream)
{
	struct fake_stream *s = (struct fake_stream *)stream;

	s->stopped++;
}

static const struct hf_store_ops fake_ops = {.name = "fake", .logs_stop = fake_stop};

static struct hf_log_stream *fake_start(void *arg, struct hf_doc *pod,
					const struct hf_log_options *options, hf_log_fn fn,
					void *fn_arg)
{
	fake = (struct fake_stream){.base = {.ops = &fake_ops}, .fn = fn, .arg = fn_arg};
	snprintf(fake.pod, sizeof(fake.pod), "%s/%s", options->ns, hf_doc_name(pod));
	return &fake.base;
}

struct read {
	struct hf_log_stream *stream;
	struct hf_store *store; /* destroyed inside the callback */
	char text[256];
	int ends, code;
	char message[128];
	bool stop_at_first;
};

static void on_log(void *arg, const char *bytes, size_t len, int code, const char *message)
{
	struct read *r = arg;
	size_t used = strlen(r->text);

	if (len == 0) {
		r->ends++;
		r->code = code;
		snprintf(r->message, sizeof(r->message), "%s", message);
	}
	snprintf(r->text + used, sizeof(r->text) - used, "%.*s", (int)len, bytes);
	if (len > 0 && r->stop_at_first)
		r->stream = hf_log_stream_stop(r->stream);
	if (len > 0 && r->store)
		r->store = hf_store_destroy(r->store);
}

static void open_logs(struct plane *p, struct hf_store *store, struct read *r, const char *pod)
{
	r->stream = hf_store_logs(
		store, &(struct hf_log_options){.ns = "default", .pod = pod, .tail_lines = -1},
		on_log, r);
}

static void with_kubelet(struct plane *p)
{
	AUTO_OUTCOME o = {0};

	plane_open(p, NULL, false);
	hf_memstore_set_logs(p->memstore, &(struct hf_memstore_logs){.start = fake_start});
	assert_int_equal(create_pod(&p->w, "default", "p", &o), 0);
}

static void bytes_pass_and_the_end_is_reported_once(void **state)
{
	struct plane p;
	struct read r = {0};

	with_kubelet(&p);
	open_logs(&p, p.w.store, &r, "p");
	assert_string_equal(fake.pod, "default/p");
	fake.fn(fake.arg, "hello ", 6, 0, "");
	fake.fn(fake.arg, "world", 5, 0, "");
	fake.fn(fake.arg, "", 0, 0, "");
	/* The kubelet reports a second end, which the reader must not see. */
	fake.fn(fake.arg, "", 0, HF_E_IO, "again");
	fake.fn(fake.arg, "more", 4, 0, "");
	assert_string_equal(r.text, "hello world");
	assert_int_equal(r.ends, 1);
	assert_int_equal(r.code, 0);
	r.stream = hf_log_stream_stop(r.stream);
	assert_int_equal(fake.stopped, 1);
	plane_close(&p);
}

static void a_kubelets_error_is_the_readers(void **state)
{
	struct plane p;
	struct read r = {0};

	with_kubelet(&p);
	open_logs(&p, p.w.store, &r, "p");
	fake.fn(fake.arg, "", 0, HF_E_BAD_REQUEST, "container \"c\" is waiting to start");
	assert_int_equal(r.code, HF_E_BAD_REQUEST);
	assert_string_equal(r.message, "container \"c\" is waiting to start");
	hf_log_stream_stop(r.stream);
	plane_close(&p);
}

static void logs_of_a_missing_pod_are_refused(void **state)
{
	struct plane p;
	struct read r = {0};

	with_kubelet(&p);
	open_logs(&p, p.w.store, &r, "nobody");
	assert_int_equal(r.ends, 0);
	settle(&p.w);
	assert_int_equal(r.ends, 1);
	assert_int_equal(r.code, HF_E_NOT_FOUND);
	assert_string_equal(r.message, "pods \"nobody\" not found");
	hf_log_stream_stop(r.stream);
	plane_close(&p);
}

static void logs_without_a_kubelet_are_refused(void **state)
{
	struct plane p;
	struct read r = {0};

	with_kubelet(&p);
	hf_memstore_set_logs(p.memstore, NULL);
	open_logs(&p, p.w.store, &r, "p");
	settle(&p.w);
	assert_int_equal(r.code, HF_E_UNAVAILABLE);
	hf_log_stream_stop(r.stream);
	plane_close(&p);
}

static void a_stream_may_be_stopped_before_its_refusal(void **state)
{
	struct plane p;
	struct read r = {0};

	with_kubelet(&p);
	open_logs(&p, p.w.store, &r, "nobody");
	hf_log_stream_stop(r.stream);
	settle(&p.w);
	assert_int_equal(r.ends, 0);
	plane_close(&p);
}

static void a_reader_may_stop_from_its_callback(void **state)
{
	struct plane p;
	struct read r = {.stop_at_first = true};

	with_kubelet(&p);
	open_logs(&p, p.w.store, &r, "p");
	fake.fn(fake.arg, "a", 1, 0, "");
	assert_null(r.stream);
	assert_int_equal(fake.stopped, 1);
	assert_int_equal(r.ends, 0);
	plane_close(&p);
}

static void destroying_a_client_ends_its_streams(void **state)
{
	struct plane p;
	struct read a = {0}, b = {0};

	with_kubelet(&p);
	struct hf_store *store = p.w.client(&p.w);
	open_logs(&p, store, &a, "p");
	hf_store_destroy(store);
	assert_int_equal(a.ends, 1);
	assert_int_equal(a.code, HF_E_CANCELED);
	assert_int_equal(fake.stopped, 1);
	/* The reader still owns the handle. */
	hf_log_stream_stop(a.stream);

	b.store = p.w.client(&p.w);
	open_logs(&p, b.store, &b, "p");
	fake.fn(fake.arg, "x", 1, 0, "");
	assert_null(b.store);
	assert_int_equal(b.ends, 1);
	assert_int_equal(b.code, HF_E_CANCELED);
	hf_log_stream_stop(b.stream);
	plane_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_pass_and_the_end_is_reported_once),
		cmocka_unit_test(a_kubelets_error_is_the_readers),
		cmocka_unit_test(logs_of_a_missing_pod_are_refused),
		cmocka_unit_test(logs_without_a_kubelet_are_refused),
		cmocka_unit_test(a_stream_may_be_stopped_before_its_refusal),
		cmocka_unit_test(a_reader_may_stop_from_its_callback),
		cmocka_unit_test(destroying_a_client_ends_its_streams),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
