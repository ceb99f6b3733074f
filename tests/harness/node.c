/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/node.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "harness/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_AT_MOST (60 * HF_SECOND) /* what is broken ends the test */

/* --- waiting --- */

static void look(struct testnode *node)
{
	if (node->until && node->until(node, node->until_arg))
		hf_loop_stop(node->loop);
}

static void on_changed(void *arg, const struct hf_memstore_change *change HF_UNUSED)
{
	look(arg);
}

static void on_reset(void *arg HF_UNUSED)
{
}

/* Checks the awaited condition every 20 ms, because it may depend on files and not on a change of
 * the store. */
static void on_tick(void *arg)
{
	struct testnode *node = arg;

	hf_timer_arm(node->tick, 20 * HF_MS);
	look(node);
}

static void on_guard(void *arg)
{
	struct testnode *node = arg;

	hf_loop_stop(node->loop);
}

void testnode_wait(struct testnode *node, bool (*until)(struct testnode *node, void *arg),
		   void *arg)
{
	node->until = until;
	node->until_arg = arg;
	hf_timer_arm(node->guard, WAIT_AT_MOST);
	hf_timer_arm(node->tick, 0);
	hf_loop_run(node->loop);
	hf_timer_disarm(node->guard);
	hf_timer_disarm(node->tick);
	node->until = NULL;
	if (!until(node, arg))
		fail_msg("waited for a minute");
}

struct wanted {
	const char *pod, *what, *reason;
};

static void show(struct testnode *node, const char *pod)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT((size_t)1 << 20);

	hf_json_write(testnode_status(node, pod), HF_JSON_COMPACT, &sb);
	(void)fprintf(stderr, "# %s: %s\n", pod, sb.data);
}

static bool has_phase(struct testnode *node, void *arg)
{
	const struct wanted *w = arg;

	return hf_streq(hf_json_path_str(testnode_status(node, w->pod), "phase", NULL), w->what);
}

static bool is_terminal(struct testnode *node, void *arg)
{
	const struct wanted *w = arg;
	const char *phase = hf_json_path_str(testnode_status(node, w->pod), "phase", NULL);

	return has_phase(node, arg) || hf_streq(phase, "Failed") || hf_streq(phase, "Succeeded");
}

void testnode_wait_phase(struct testnode *node, const char *pod, const char *phase)
{
	struct wanted w = {pod, phase, NULL};

	testnode_wait(node, is_terminal, &w);
	if (!has_phase(node, &w)) {
		show(node, pod);
		fail_msg("%s is not %s", pod, phase);
	}
}

static bool is_gone(struct testnode *node, void *arg)
{
	return !testnode_get(node, arg);
}

void testnode_wait_gone(struct testnode *node, const char *pod)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "%s", pod);
	testnode_wait(node, is_gone, name);
}

static bool has_state(struct testnode *node, void *arg)
{
	const struct wanted *w = arg;
	const struct hf_json *state =
		hf_json_path(testnode_container(node, w->pod, 0, false), "state", w->what, NULL);

	return state &&
	       (!w->reason || hf_streq(hf_json_path_str(state, "reason", NULL), w->reason));
}

void testnode_wait_state(struct testnode *node, const char *pod, const char *state,
			 const char *reason)
{
	struct wanted w = {pod, state, reason};

	testnode_wait(node, has_state, &w);
}

/* --- the plane --- */

static void on_notice(void *arg, const char *text)
{
	struct testnode *node = arg;

	(void)snprintf(node->notice, sizeof(node->notice), "%s", text);
}

static void on_ready(void *arg, int code, const char *message)
{
	struct testnode *node = arg;

	if (code)
		fail_msg("the node is not ready: %s", message);
	node->ready = true;
	look(node);
}

static bool is_ready(struct testnode *node, void *arg HF_UNUSED)
{
	return node->ready;
}

static void open_store(struct testnode *node)
{
	HF_AUTOFREE char *data = hf_xasprintf("%s/store", node->dir);
	struct hf_memstore_options options = {.data_dir = node->on_disk ? data : NULL};
	struct hf_error err;

	assert_ok(hf_memstore_create(node->loop, &options, &node->memstore, &err), &err);
	node->observer = (struct hf_memstore_observer){
		.changed = on_changed, .reset = on_reset, .arg = node};
	hf_memstore_observe(node->memstore, &node->observer);
}

static void close_store(struct testnode *node)
{
	hf_memstore_unobserve(node->memstore, &node->observer);
	node->memstore = hf_memstore_destroy(node->memstore);
}

void testnode_start(struct testnode *node)
{
	HF_AUTOFREE char *state = hf_xasprintf("%s/node", node->dir);
	struct hf_kubelet_options options = {.network = node->network,
					     .loop = node->loop,
					     .state_dir = state,
					     .gpus = node->gpus,
					     .sysfs = node->sysfs,
					     .only_drains = node->only_drains,
					     .notice = on_notice,
					     .ready = on_ready,
					     .arg = node};
	struct hf_error err;

	if (!node->memstore)
		open_store(node);
	options.store = hf_memstore_store(node->memstore);
	node->ready = false;
	assert_ok(hf_kubelet_create(&options, &node->kubelet, &err), &err);
	testnode_wait(node, is_ready, NULL);
	hf_kubelet_facts(node->kubelet, &node->facts);
}

void testnode_stop(struct testnode *node)
{
	node->kubelet = hf_kubelet_destroy(node->kubelet);
	if (node->on_disk)
		close_store(node);
}

static void open_rest(struct testnode *node)
{
	struct hf_error err;

	assert_ok(hf_loop_create(&node->loop, &err), &err);
	node->guard = hf_timer_create(node->loop, on_guard, node);
	node->tick = hf_timer_create(node->loop, on_tick, node);
	testnode_start(node);
}

void testnode_open(struct testnode *node, enum hf_kubelet_network network, bool on_disk)
{
	memset(node, 0, sizeof(*node));
	(void)snprintf(node->dir, sizeof(node->dir), "/tmp/hf-kubelet-XXXXXX");
	assert_non_null(mkdtemp(node->dir));
	node->network = network;
	node->on_disk = on_disk;
	open_rest(node);
}

void testnode_open_at(struct testnode *node, const char *dir)
{
	memset(node, 0, sizeof(*node));
	assert_true(strlen(dir) < sizeof(node->dir));
	(void)snprintf(node->dir, sizeof(node->dir), "%s", dir);
	node->on_disk = true;
	open_rest(node);
}

static void on_drained(void *arg)
{
	struct testnode *node = arg;

	node->drained = true;
}

static bool is_drained(struct testnode *node, void *arg HF_UNUSED)
{
	return node->drained;
}

void testnode_drain(struct testnode *node, hf_time grace)
{
	node->drained = false;
	hf_kubelet_drain(node->kubelet, grace, on_drained, node);
}

void testnode_wait_drained(struct testnode *node)
{
	testnode_wait(node, is_drained, NULL);
}

void testnode_close(struct testnode *node)
{
	struct hf_error err;

	if (!node->kubelet)
		testnode_start(node);
	testnode_drain(node, 0);
	testnode_wait_drained(node);
	node->kubelet = hf_kubelet_destroy(node->kubelet);
	close_store(node);
	node->guard = hf_timer_destroy(node->guard);
	node->tick = hf_timer_destroy(node->tick);
	node->loop = hf_loop_destroy(node->loop);
	assert_ok(hf_fs_remove_tree(node->dir, &err), &err);
}

int testnode_setup(void **state, enum hf_kubelet_network network, bool on_disk)
{
	struct testnode *node = hf_xcalloc(1, sizeof(*node));

	testnode_open(node, network, on_disk);
	*state = node;
	return 0;
}

int testnode_setup_memory(void **state)
{
	return testnode_setup(state, HF_KUBELET_NETWORK_AUTO, false);
}

int testnode_setup_memory_host(void **state)
{
	return testnode_setup(state, HF_KUBELET_NETWORK_HOST, false);
}

int testnode_setup_disk(void **state)
{
	return testnode_setup(state, HF_KUBELET_NETWORK_AUTO, true);
}

int testnode_setup_disk_host(void **state)
{
	return testnode_setup(state, HF_KUBELET_NETWORK_HOST, true);
}

int testnode_teardown(void **state)
{
	testnode_close(*state);
	free(*state);
	return 0;
}

/* --- objects --- */

HF_PRINTF(1, 0)
static struct hf_doc *doc_of(const char *fmt, va_list ap)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT((size_t)1 << 20);
	struct hf_doc *doc = NULL;
	struct hf_error err;

	hf_strbuf_vaddf(&sb, fmt, ap);
	json_text(sb.data);
	assert_ok(hf_doc_parse(sb.data, sb.len, NULL, &doc, &err), &err);
	return doc;
}

static void apply(struct testnode *node, const struct hf_request *request)
{
	HF_AUTO_RESULT result = {0};

	hf_memstore_apply(node->memstore, request, &result);
	if (result.code)
		fail_msg("%s", result.err.text);
}

void testnode_create(struct testnode *node, const struct hf_resource *resource, const char *text,
		     ...)
{
	struct hf_request request = {.verb = HF_VERB_CREATE,
				     .resource = resource,
				     .ns = resource->namespaced ? "default" : NULL};
	HF_AUTO_DOC body = NULL;
	va_list ap;

	va_start(ap, text);
	body = doc_of(text, ap);
	va_end(ap);
	request.body = body;
	apply(node, &request);
}

void testnode_pod(struct testnode *node, const char *name, const char *spec, ...)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT((size_t)1 << 20);
	va_list ap;

	va_start(ap, spec);
	hf_strbuf_vaddf(&sb, spec, ap);
	va_end(ap);
	testnode_create(node, &hf_pods,
			"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','labels':"
			"{'app':'%s'}},'spec':{'nodeName':'local',%s}}",
			name, name, sb.data);
}

void testnode_script(struct testnode *node, const char *name, const char *policy,
		     const char *script)
{
	testnode_pod(node, name,
		     "'restartPolicy':'%s','containers':[{'name':'main','image':'x',"
		     "'command':['sh','-c','%s']}]",
		     policy, script);
}

void testnode_file(struct testnode *node, const char *name, const char *text)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", node->dir, name);
	struct hf_error err;

	assert_ok(hf_fs_write_atomic(path, text, strlen(text), 0644, &err), &err);
}

bool testnode_has_file(const struct testnode *node, const char *name)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", node->dir, name);

	return access(path, F_OK) == 0;
}

static bool has_file(struct testnode *node, void *arg)
{
	return testnode_has_file(node, arg);
}

void testnode_wait_file(struct testnode *node, const char *name)
{
	HF_AUTOFREE char *copy = hf_xstrdup(name);

	testnode_wait(node, has_file, copy);
}

void testnode_assert_file(const struct testnode *node, const char *name, const char *expected)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", node->dir, name);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
	struct hf_error err;

	assert_ok(hf_fs_read(path, &text, &err), &err);
	assert_string_equal(text.data, expected);
}

void testnode_delete(struct testnode *node, const char *pod, int64_t grace_s)
{
	struct hf_request request = {.verb = HF_VERB_DELETE,
				     .resource = &hf_pods,
				     .ns = "default",
				     .name = pod,
				     .grace_seconds = grace_s};

	apply(node, &request);
}

const struct hf_json *testnode_get(struct testnode *node, const char *pod)
{
	return hf_doc_json(hf_memstore_peek(node->memstore, &hf_pods, "default", pod));
}

const struct hf_json *testnode_status(struct testnode *node, const char *pod)
{
	return hf_json_get(testnode_get(node, pod), "status");
}

const struct hf_json *testnode_container(struct testnode *node, const char *pod, size_t i,
					 bool init)
{
	const char *list = init ? "initContainerStatuses" : "containerStatuses";

	return hf_json_item(hf_json_get(testnode_status(node, pod), list), i);
}

const char *testnode_condition(struct testnode *node, const char *pod, const char *type)
{
	const struct hf_json *conditions = hf_json_get(testnode_status(node, pod), "conditions");

	for (size_t i = 0; i < hf_json_len(conditions); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(conditions, i), "type", NULL), type))
			return hf_json_path_str(hf_json_item(conditions, i), "status", NULL);
	return NULL;
}

struct counting {
	const char *pod, *reason;
	int n;
};

static void count_event(void *arg, struct hf_doc *doc)
{
	struct counting *c = arg;
	const struct hf_json *event = hf_doc_json(doc);

	c->n += hf_streq(hf_json_path_str(event, "involvedObject", "name", NULL), c->pod) &&
		hf_streq(hf_json_path_str(event, "reason", NULL), c->reason);
}

int testnode_events(struct testnode *node, const char *pod, const char *reason)
{
	struct counting c = {pod, reason, 0};

	hf_memstore_each(node->memstore, &hf_events, "default", count_event, &c);
	return c.n;
}

/* --- logs --- */

static void on_log(void *arg, const char *bytes, size_t len, int code, const char *message)
{
	struct testlog *log = arg;

	assert_false(log->ended);
	if (len) {
		hf_strbuf_add(&log->text, bytes, len);
		return;
	}
	log->ended = true;
	log->code = code;
	(void)snprintf(log->message, sizeof(log->message), "%s", message);
}

void testlog_start(struct testnode *node, const char *pod, struct hf_log_options options,
		   struct testlog *log)
{
	struct hf_doc *doc = hf_memstore_peek(node->memstore, &hf_pods, "default", pod);

	memset(log, 0, sizeof(*log));
	hf_strbuf_init(&log->text, (size_t)64 << 20);
	options.ns = "default";
	options.pod = pod;
	log->stream = hf_kubelet_logs(node->kubelet, doc, &options, on_log, log);
}

void testlog_release(struct testlog *log)
{
	log->stream = hf_log_stream_stop(log->stream);
	hf_strbuf_release(&log->text);
}

static bool log_ended(struct testnode *node HF_UNUSED, void *arg)
{
	return ((struct testlog *)arg)->ended;
}

void testnode_logs(struct testnode *node, const char *pod, struct hf_log_options options,
		   struct testlog *log)
{
	testlog_start(node, pod, options, log);
	testnode_wait(node, log_ended, log);
}

void testnode_assert_output(struct testnode *node, const char *pod, const char *expected)
{
	HF_AUTOFREE char *text = NULL;
	struct testlog log;

	testnode_logs(node, pod, (struct hf_log_options){.tail_lines = -1}, &log);
	text = hf_strbuf_detach(&log.text);
	testlog_release(&log);
	assert_string_equal(text, expected);
}
