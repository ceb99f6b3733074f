/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/grpc_server.h"
#include "harness/kubelet.h"
#include "probes/podresources.h"
#include "probes/podresources_probe.h"

#include "base/str.h"

/* Tests of the client and the probe against a server on a unix socket. */

#define WAIT HF_MINUTE

static void add_device_of(struct hf_strbuf *to, const char *pod, const char *resource,
			  const char *id)
{
	HF_AUTO_STRBUF container = HF_STRBUF_INIT(4096);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(4096);

	hf_kubelet_device(&container, 2, resource, id);
	hf_pb_text(&sb, 1, pod);
	hf_pb_text(&sb, 2, "ml");
	hf_pb_bytes(&sb, 3, container.data, container.len);
	hf_pb_bytes(to, 1, sb.data, sb.len);
}

/* ---- asking ------------------------------------------------------------------------------------------- */

struct bench {
	struct hf_test_loop t;
	char folder[48], path[64];
	struct hf_grpc_server server;
	struct hf_strbuf list, allocatable;
	/* length of the head of a List request; the head of the other request is longer */
	size_t list_head;
	bool refuse, unsupported, silent, busy;
	char asked_for[64];

	struct hf_podresources_client *client;
	unsigned done;
	int code;
	size_t devices, pods;
	char first[64], text[HF_ERROR_TEXT_MAX];

	struct hf_intake *intake;
	struct hf_probe *probe;
};

/* Puts gRPC's head of five bytes before the message. */
static void frame(struct hf_strbuf *sb, const struct hf_strbuf *message)
{
	hf_strbuf_clear(sb);
	hf_strbuf_addch(sb, 0);
	for (int i = 3; i >= 0; i--)
		hf_strbuf_addch(sb, (char)(message->len >> (8 * i) & 255));
	hf_strbuf_add(sb, message->data, message->len);
}

static void serve(void *arg, size_t head_len, const char *message, size_t len,
		  struct hf_grpc_answer *ret_answer)
{
	struct bench *b = arg;
	struct hf_strbuf *body = &b->list;

	if (len > 0)
		snprintf(b->asked_for, sizeof(b->asked_for), "%.*s", (int)len, message);
	else if (b->list_head == 0)
		b->list_head = head_len;
	else if (head_len > b->list_head + 4)
		body = &b->allocatable;
	*ret_answer = (struct hf_grpc_answer){
		.body = body->data, .body_len = body->len, .status = "0", .silent = b->silent};
	if (b->refuse)
		*ret_answer = (struct hf_grpc_answer){
			.status = "2", .message = "not ready", .trailers_only = true};
	if (b->busy)
		*ret_answer = (struct hf_grpc_answer){
			.status = "8", .message = "rejected by rate limit", .trailers_only = true};
	if (b->unsupported && body == &b->allocatable)
		*ret_answer = (struct hf_grpc_answer){.status = "12", .trailers_only = true};
}

static void on_news(void *arg, HF_UNUSED bool urgent)
{
	struct bench *b = arg;

	hf_loop_stop(b->t.loop);
}

static void hold(struct bench *b, const char *id)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 16);

	if (id)
		hf_kubelet_pod(&sb, "rank-0", id, NULL);
	frame(&b->list, &sb);
}

static void offer(struct bench *b, int gpus)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 16);

	for (int i = 0; i < gpus; i++) {
		char id[16];

		snprintf(id, sizeof(id), "GPU-%d", i);
		hf_kubelet_device(&sb, 1, "nvidia.com/gpu", id);
	}
	frame(&b->allocatable, &sb);
}

static void listen_again(struct bench *b)
{
	b->server.serve = serve;
	b->server.arg = b;
	hf_grpc_server_start(&b->server, b->t.loop, b->path);
}

static void on_found(void *arg, int code, const struct hf_podresources *found,
		     const struct hf_error *err)
{
	struct bench *b = arg;

	b->done++;
	b->code = code;
	b->devices = found ? found->devices_len : 0;
	b->pods = found ? found->pods : 0;
	snprintf(b->first, sizeof(b->first), "%s", b->devices > 0 ? found->devices[0].id : "");
	snprintf(b->text, sizeof(b->text), "%s", err->text);
	hf_loop_stop(b->t.loop);
}

static void await(struct bench *b)
{
	unsigned before = b->done;

	while (b->done == before)
		hf_test_loop_run(&b->t);
}

static void list(struct bench *b)
{
	struct hf_error err = {0};

	assert_ok(hf_podresources_list(b->client, on_found, b, &err), &err);
	await(b);
}

static int setup(void **state)
{
	struct bench *b = hf_xcalloc(1, sizeof(*b));
	struct hf_error err = {0};

	snprintf(b->folder, sizeof(b->folder), "/tmp/holdfast-podresources-XXXXXX");
	assert_non_null(mkdtemp(b->folder));
	snprintf(b->path, sizeof(b->path), "%s/s", b->folder);
	hf_strbuf_init(&b->list, 1 << 20);
	hf_strbuf_init(&b->allocatable, 1 << 20);
	hf_test_loop_init(&b->t);
	hold(b, "GPU-0");
	offer(b, 4);
	listen_again(b);
	assert_ok(hf_podresources_client_create(b->t.loop, b->path, WAIT, &b->client, &err), &err);
	/* from this first question on, the server knows the length of a List request's head */
	list(b);
	b->intake = hf_intake_create(
		&(struct hf_intake_options){.loop = b->t.loop, .news = on_news, .arg = b});
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	if (b->probe)
		b->probe->ops->destroy(b->probe);
	hf_intake_destroy(b->intake);
	hf_podresources_client_destroy(b->client);
	hf_grpc_server_stop(&b->server);
	hf_test_loop_release(&b->t);
	hf_strbuf_release(&b->list);
	hf_strbuf_release(&b->allocatable);
	rmdir(b->folder);
	free(b);
	return 0;
}

static void the_three_questions_are_answered(void **state)
{
	struct bench *b = *state;
	struct hf_error err = {0};

	assert_int_equal(b->code, 0);
	assert_int_equal(b->pods, 1);
	assert_string_equal(b->first, "GPU-0");
	assert_ok(hf_podresources_allocatable(b->client, on_found, b, &err), &err);
	await(b);
	assert_int_equal(b->code, 0);
	assert_int_equal(b->devices, 4);
	assert_ok(hf_podresources_get(b->client, "ml", "rank-0", on_found, b, &err), &err);
	await(b);
	assert_int_equal(b->code, 0);
	assert_string_equal(b->asked_for, "\x0a\x06rank-0\x12\x02ml");
}

static void a_question_of_a_kind_is_asked_once_at_a_time(void **state)
{
	struct bench *b = *state;
	struct hf_error err = {0};
	char name[600];

	assert_ok(hf_podresources_list(b->client, on_found, b, &err), &err);
	assert_code(hf_podresources_list(b->client, on_found, b, &err), HF_E_CONFLICT);
	await(b);
	assert_int_equal(b->code, 0);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_code(hf_podresources_get(b->client, "ml", name, on_found, b, &err), HF_E_INVALID);
	/* Names of two bytes of length. */
	name[200] = '\0';
	assert_ok(hf_podresources_get(b->client, "ml", name, on_found, b, &err), &err);
	await(b);
	assert_memory_equal(b->asked_for, "\x0a\xc8\x01nnn", 6);
}

static void errors_of_kubelet_and_socket_are_told(void **state)
{
	struct bench *b = *state;

	b->refuse = true;
	list(b);
	assert_int_equal(b->code, HF_E_INTERNAL);
	assert_string_equal(b->text, "PodResources: gRPC status 2: not ready");
	b->refuse = false;
	hf_strbuf_addch(&b->list, 7); /* a byte too many */
	list(b);
	assert_int_equal(b->code, HF_E_BAD_REQUEST);
	hf_grpc_server_stop(&b->server);
	list(b);
	assert_int_equal(b->code, HF_E_UNAVAILABLE);
	/* The client finds a kubelet again that has restarted. */
	hold(b, "GPU-0");
	listen_again(b);
	list(b);
	assert_int_equal(b->code, 0);
}

/* ---- the probe -------------------------------------------------------------------------------------------- */

static void probe(struct bench *b, const char *path)
{
	b->probe = hf_kubelet_probe_create(b->intake,
					   &(struct hf_kubelet_options){.socket_path = path,
									.every = 20 * HF_MS,
									.timeout = 200 * HF_MS});
	b->probe->ops->start(b->probe);
}

static struct hf_health_sample until_plugin(struct bench *b, bool unreachable, bool gone)
{
	for (;;) {
		struct hf_health_input input = {0};
		struct hf_health_sample s;
		bool found = false;

		hf_test_loop_run(&b->t);
		hf_intake_take(b->intake, &input);
		for (size_t i = 0; i < input.samples_len; i++) {
			s = input.samples[i];
			found = found || (s.detector == HF_HEALTH_PLUGIN &&
					  s.plugin.unreachable == unreachable &&
					  s.plugin.resource_gone == gone);
		}
		hf_intake_taken(b->intake);
		if (found)
			return s;
	}
}

static void holdings_and_counts_are_told(void **state)
{
	struct bench *b = *state;
	struct hf_holdings told;

	probe(b, b->path);
	(void)until_plugin(b, false, false);
	told = hf_intake_holdings_get(b->intake);
	assert_true(told.known);
	assert_int_equal(told.len, 1);
	assert_string_equal(told.items[0].ns, "ml");
	assert_string_equal(told.items[0].pod, "rank-0");
	assert_string_equal(told.items[0].container, "trainer");
	assert_string_equal(told.items[0].resource, "nvidia.com/gpu");
	assert_string_equal(told.items[0].id, "GPU-0");
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_ALLOCATABLE), 4);
	/* The container ends and releases its device. */
	hold(b, NULL);
	do {
		(void)until_plugin(b, false, false);
		told = hf_intake_holdings_get(b->intake);
	} while (told.len > 0);
}

static void a_share_of_a_device_is_held_by_its_known_name(void **state)
{
	struct bench *b = *state;
	struct hf_health_presence gpu = {.kind = HF_HEALTH_GPU};
	struct hf_holdings told;

	snprintf(gpu.id, sizeof(gpu.id), "0000:1a:00.0");
	snprintf(gpu.uuid, sizeof(gpu.uuid), "GPU-0");
	hf_intake_device(b->intake, &gpu);
	hold(b, "GPU-0::7");
	probe(b, b->path);
	(void)until_plugin(b, false, false);
	told = hf_intake_holdings_get(b->intake);
	assert_string_equal(told.items[0].id, "GPU-0");
}

static void a_kubelet_that_stops_answering_is_unreachable(void **state)
{
	struct bench *b = *state;
	struct hf_holdings told;

	probe(b, b->path);
	(void)until_plugin(b, false, false);
	b->silent = true;
	(void)until_plugin(b, true, false);
	told = hf_intake_holdings_get(b->intake);
	assert_false(told.known);
	assert_int_equal(told.len, 1); /* the last list of holdings is kept */
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_ALLOCATABLE), -1);
	b->silent = false;
	(void)until_plugin(b, false, false);
	hf_grpc_server_stop(&b->server);
	(void)until_plugin(b, true, false);
}

static void a_kubelet_that_never_answered_is_no_fault(void **state)
{
	struct bench *b = *state;
	const char *why;

	hf_grpc_server_stop(&b->server);
	probe(b, b->path);
	while (hf_intake_state(b->intake, HF_HEALTH_BY_KUBELET, HF_HEALTH_PLUGIN, &why) !=
	       HF_INTAKE_OFF)
		hf_test_loop_run(&b->t);
	assert_true(hf_str_has_prefix(why, "PodResources: the kubelet does not answer at '/tmp/"));
	listen_again(b);
	(void)until_plugin(b, false, false);
}

static void a_resource_that_was_there_is_gone(void **state)
{
	struct bench *b = *state;

	offer(b, 0);
	probe(b, b->path);
	(void)until_plugin(b, false, false); /* the resource was never there: no fault */
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_ALLOCATABLE), -1);
	offer(b, 3);
	while (hf_intake_counted(b->intake, HF_COUNT_ALLOCATABLE) != 3)
		(void)until_plugin(b, false, false);
	offer(b, 0);
	(void)until_plugin(b, false, true);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_ALLOCATABLE), 0);
	offer(b, 4);
	(void)until_plugin(b, false, false);
}

static void devices_cut_into_instances_are_not_counted(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 16);
	struct bench *b = *state;

	probe(b, b->path);
	while (hf_intake_counted(b->intake, HF_COUNT_ALLOCATABLE) != 4)
		(void)until_plugin(b, false, false);
	hf_kubelet_device(&sb, 1, "nvidia.com/gpu", "GPU-0");
	hf_kubelet_device(&sb, 1, "nvidia.com/mig-1g.5gb", "MIG-0");
	frame(&b->allocatable, &sb);
	while (hf_intake_counted(b->intake, HF_COUNT_ALLOCATABLE) != HF_HEALTH_DIVIDED)
		(void)until_plugin(b, false, false);
}

static bool was_gone;

static bool is_was_gone(void *arg)
{
	return was_gone;
}

static void what_an_agent_before_this_one_missed_stays_gone_until_it_is_back(void **state)
{
	struct bench *b = *state;

	was_gone = true;
	offer(b, 0);
	b->probe = hf_kubelet_probe_create(b->intake,
					   &(struct hf_kubelet_options){.socket_path = b->path,
									.every = 20 * HF_MS,
									.timeout = 200 * HF_MS,
									.was_gone = is_was_gone});
	b->probe->ops->start(b->probe);
	(void)until_plugin(b, false, true);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_ALLOCATABLE), 0);
	/* A person acknowledges the missing resource. */
	was_gone = false;
	(void)until_plugin(b, false, false);
	was_gone = true;
	(void)until_plugin(b, false, true);
	offer(b, 3);
	(void)until_plugin(b, false, false);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_ALLOCATABLE), 3);
}

static void offer_as(struct bench *b, const char *resource, const char *id)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 16);

	hf_kubelet_device(&sb, 1, resource, id);
	frame(&b->allocatable, &sb);
}

/* Waits until the plugin offers only parts of devices; true: a resource was reported as gone
 * meanwhile. */
static bool is_gone_after(struct bench *b)
{
	hf_intake_count(b->intake, HF_COUNT_ALLOCATABLE, -1);
	while (hf_intake_counted(b->intake, HF_COUNT_ALLOCATABLE) != HF_HEALTH_DIVIDED) {
		struct hf_health_input input = {0};

		hf_test_loop_run(&b->t);
		hf_intake_take(b->intake, &input);
		for (size_t i = 0; i < input.samples_len; i++)
			if (input.samples[i].detector == HF_HEALTH_PLUGIN &&
			    input.samples[i].plugin.resource_gone)
				return true;
		hf_intake_taken(b->intake);
	}
	return false;
}

static void devices_under_other_names_are_not_gone(void **state)
{
	static const char *const offers[][2] = {
		{"nvidia.com/mig-1g.10gb", "MIG-0"},
		{"nvidia.com/gpu.shared", "GPU-0::1"},
		{"nvidia.com/h100", "GPU-0"},
	};
	struct bench *b = *state;

	probe(b, b->path);
	for (size_t i = 0; i < HF_ARRAY_LEN(offers); i++) {
		offer(b, 4);
		while (hf_intake_counted(b->intake, HF_COUNT_ALLOCATABLE) != 4)
			(void)until_plugin(b, false, false);
		offer_as(b, offers[i][0], offers[i][1]);
		assert_false(is_gone_after(b));
		(void)until_plugin(b, false, false);
	}
	/* Resources of another vendor do not replace them: the NVIDIA resource counts as gone. */
	offer_as(b, "amd.com/cpx_nps4", "0000:0c:00.0");
	(void)until_plugin(b, false, true);
	offer_as(b, "nvidia.com/mig-1g.10gb", "MIG-0");
	(void)until_plugin(b, false, true); /* the AMD resource is gone */
}

static void another_resource_of_the_vendor_is_none_of_its_devices(void **state)
{
	struct bench *b = *state;

	probe(b, b->path);
	while (hf_intake_counted(b->intake, HF_COUNT_ALLOCATABLE) != 4)
		(void)until_plugin(b, false, false);
	offer_as(b, "nvidia.com/hostdev", "0000:5e:00.1");
	(void)until_plugin(b, false, true);
}

static void a_kubelet_that_lacks_one_of_the_questions_is_no_fault(void **state)
{
	struct bench *b = *state;
	struct hf_holdings told;

	b->unsupported = true;
	probe(b, b->path);
	(void)until_plugin(b, false, false);
	told = hf_intake_holdings_get(b->intake);
	assert_true(told.known && told.len == 1);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_ALLOCATABLE), -1);
}

static void turned_off_it_says_so(void **state)
{
	struct bench *b = *state;
	const char *why;

	probe(b, "");
	assert_int_equal(hf_intake_state(b->intake, HF_HEALTH_BY_KUBELET, HF_HEALTH_PLUGIN, &why),
			 HF_INTAKE_OFF);
	b->probe->ops->poke(b->probe);
}

static void a_poke_asks_soon(void **state)
{
	struct bench *b = *state;
	unsigned calls;

	b->probe = hf_kubelet_probe_create(
		b->intake, &(struct hf_kubelet_options){.socket_path = b->path, .every = HF_HOUR});
	b->probe->ops->start(b->probe);
	(void)until_plugin(b, false, false);
	calls = b->server.calls;
	for (int i = 0; i < 100; i++)
		b->probe->ops->poke(b->probe);
	(void)until_plugin(b, false, false);
	assert_int_equal(b->server.calls, calls + 2);
}

/* ---- what cannot be read -------------------------------------------------------------------------------- */

/* Offers more ids of another plugin than the probe reads, besides healthy GPUs: a plugin for shares
 * of memory offers thousands. */
static void offer_too_many(struct bench *b)
{
	HF_AUTO_STRBUF ids = HF_STRBUF_INIT((size_t)1 << 20);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT((size_t)1 << 20);

	hf_kubelet_device(&sb, 1, "nvidia.com/gpu", "GPU-0");
	hf_pb_text(&ids, 1, "example.com/gpu-mem");
	for (int i = 0; i <= HF_PODRESOURCES_DEVICES_MAX; i++)
		hf_pb_text(&ids, 2, "m");
	hf_pb_bytes(&sb, 1, ids.data, ids.len);
	frame(&b->allocatable, &sb);
}

/* Waits for the reason why the detector is off; fails if a sample reports a fault meanwhile. */
static void until_off(struct bench *b, char ret_why[HF_INTAKE_WHY_MAX])
{
	const char *why;

	while (hf_intake_state(b->intake, HF_HEALTH_BY_KUBELET, HF_HEALTH_PLUGIN, &why) !=
	       HF_INTAKE_OFF) {
		struct hf_health_input input = {0};

		hf_test_loop_run(&b->t);
		hf_intake_take(b->intake, &input);
		for (size_t i = 0; i < input.samples_len; i++)
			assert_false(input.samples[i].detector == HF_HEALTH_PLUGIN &&
				     (input.samples[i].plugin.unreachable ||
				      input.samples[i].plugin.resource_gone));
		hf_intake_taken(b->intake);
	}
	snprintf(ret_why, HF_INTAKE_WHY_MAX, "%s", why);
}

static void a_kubelet_that_offers_more_than_is_read_is_no_fault_and_said(void **state)
{
	struct bench *b = *state;
	char why[HF_INTAKE_WHY_MAX];
	struct hf_holdings told;

	probe(b, b->path);
	(void)until_plugin(b, false, false);
	offer_too_many(b);
	until_off(b, why);
	assert_string_equal(why, "PodResources: more than 16384 devices");
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_ALLOCATABLE), -1);
	told = hf_intake_holdings_get(b->intake);
	assert_true(told.known && told.len == 1);
	offer(b, 4);
	while (hf_intake_counted(b->intake, HF_COUNT_ALLOCATABLE) != 4)
		(void)until_plugin(b, false, false);
	assert_int_equal(hf_intake_state(b->intake, HF_HEALTH_BY_KUBELET, HF_HEALTH_PLUGIN,
					 &(const char *){NULL}),
			 HF_INTAKE_OK);
}

static void an_answer_that_cannot_be_read_is_no_fault_and_said(void **state)
{
	struct bench *b = *state;
	char why[HF_INTAKE_WHY_MAX];
	struct hf_holdings told;

	probe(b, b->path);
	(void)until_plugin(b, false, false);
	hold(b, "a\nb");
	until_off(b, why);
	assert_string_equal(why, "PodResources: a name contains control characters");
	/* The list of holdings is not known now, and stays: no holder counts as released. */
	told = hf_intake_holdings_get(b->intake);
	assert_true(!told.known && told.len == 1);
	hold(b, "GPU-0");
	do {
		(void)until_plugin(b, false, false);
		told = hf_intake_holdings_get(b->intake);
	} while (!told.known);
}

/* The kubelet refuses frequent questions: it is reachable, and known devices stay. */
static void a_kubelet_that_is_asked_too_often_is_no_fault_and_said(void **state)
{
	struct bench *b = *state;
	char why[HF_INTAKE_WHY_MAX];

	probe(b, b->path);
	(void)until_plugin(b, false, false);
	b->busy = true;
	until_off(b, why);
	assert_string_equal(why, "PodResources: gRPC status 8: rejected by rate limit");
	b->busy = false;
	(void)until_plugin(b, false, false);
}

/* If no readable answer ever came, an unreadable answer does not show that the kubelet works. */
static void a_kubelet_of_which_nothing_could_be_read_yet_is_not_well_either(void **state)
{
	struct bench *b = *state;
	struct hf_health_input input = {0};
	const char *why;

	b->busy = true;
	probe(b, b->path);
	while (hf_intake_state(b->intake, HF_HEALTH_BY_KUBELET, HF_HEALTH_PLUGIN, &why) !=
	       HF_INTAKE_OFF)
		hf_test_loop_run(&b->t);
	hf_intake_take(b->intake, &input);
	for (size_t i = 0; i < input.samples_len; i++)
		assert_int_not_equal(input.samples[i].detector, HF_HEALTH_PLUGIN);
	hf_intake_taken(b->intake);
	b->busy = false;
	(void)until_plugin(b, false, false);
}

/* After a silence, an unreadable answer shows that the kubelet is reachable. */
static void an_answer_that_cannot_be_read_ends_a_silence(void **state)
{
	struct bench *b = *state;

	offer_too_many(b);
	probe(b, b->path);
	(void)until_plugin(b, false, false);
	b->silent = true;
	(void)until_plugin(b, true, false);
	b->silent = false;
	(void)until_plugin(b, false, false);
}

/* An earlier agent reported the plugin as gone: an unreadable answer does not bring it back; an
 * acknowledgement by a person does. */
static void what_was_gone_before_is_not_back_by_it_either(void **state)
{
	struct bench *b = *state;

	was_gone = true;
	offer_too_many(b);
	b->probe = hf_kubelet_probe_create(b->intake,
					   &(struct hf_kubelet_options){.socket_path = b->path,
									.every = 20 * HF_MS,
									.timeout = 200 * HF_MS,
									.was_gone = is_was_gone});
	b->probe->ops->start(b->probe);
	(void)until_plugin(b, false, true);
	was_gone = false;
	(void)until_plugin(b, false, false);
}

static void what_was_gone_is_not_back_by_an_answer_that_cannot_be_read(void **state)
{
	struct bench *b = *state;

	probe(b, b->path);
	while (hf_intake_counted(b->intake, HF_COUNT_ALLOCATABLE) != 4)
		(void)until_plugin(b, false, false);
	offer(b, 0);
	(void)until_plugin(b, false, true);
	offer_too_many(b);
	while (hf_intake_counted(b->intake, HF_COUNT_ALLOCATABLE) != -1)
		hf_test_loop_run(&b->t);
	hf_intake_taken(b->intake);
	(void)until_plugin(b, false, true);
}

/* ---- more holdings than the limit ------------------------------------------------------------------------- */

/* Adds a pod with many devices of one resource at the start of the list. */
static void add_many(struct hf_strbuf *to, const char *resource, const char *prefix, int count)
{
	HF_AUTO_STRBUF devices = HF_STRBUF_INIT(1 << 18);
	HF_AUTO_STRBUF container = HF_STRBUF_INIT(1 << 18);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 18);

	hf_pb_text(&devices, 1, resource);
	for (int i = 0; i < count; i++) {
		char id[32];

		snprintf(id, sizeof(id), "%s%d", prefix, i);
		hf_pb_text(&devices, 2, id);
	}
	hf_pb_text(&container, 1, "vm");
	hf_pb_bytes(&container, 2, devices.data, devices.len);
	hf_pb_text(&sb, 1, "a-vm");
	hf_pb_text(&sb, 2, "ml");
	hf_pb_bytes(&sb, 3, container.data, container.len);
	hf_pb_bytes(to, 1, sb.data, sb.len);
}

static size_t holdings_of(struct bench *b, const char *pod)
{
	struct hf_holdings told = hf_intake_holdings_get(b->intake);
	size_t count = 0;

	for (size_t i = 0; i < told.len; i++)
		count += hf_streq(told.items[i].pod, pod);
	return count;
}

static void devices_of_other_kinds_push_out_no_holder(void **state)
{
	static const char *const gpus[] = {"GPU-0", "known-by-name"};
	struct bench *b = *state;
	struct hf_health_presence gpu = {.kind = HF_HEALTH_GPU};

	snprintf(gpu.id, sizeof(gpu.id), "0000:1a:00.0");
	snprintf(gpu.uuid, sizeof(gpu.uuid), "known-by-name");
	hf_intake_device(b->intake, &gpu);
	for (size_t i = 0; i < HF_ARRAY_LEN(gpus); i++) {
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 18);

		add_many(&sb, "devices.kubevirt.io/kvm", "kvm", 1500);
		hf_kubelet_pod(&sb, "rank-0", gpus[i], i == 1 ? "claim" : NULL);
		frame(&b->list, &sb);
		if (!b->probe)
			probe(b, b->path);
		do
			(void)until_plugin(b, false, false);
		while (holdings_of(b, "rank-0") != 1 ||
		       !hf_streq(hf_intake_holdings_get(b->intake).items[0].id, gpus[i]));
		assert_int_equal(holdings_of(b, "a-vm"), 0);
	}
}

/* If the list of holdings is cut, no holder beyond the cut counts as released, and the detector
 * reports the cut. */
static void more_holders_than_are_kept_are_said(void **state)
{
	struct bench *b = *state;
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 18);
	char why[HF_INTAKE_WHY_MAX];
	struct hf_holdings told;

	add_many(&sb, "nvidia.com/gpu", "GPU-", 2 * HF_HOLDINGS_MAX);
	frame(&b->list, &sb);
	probe(b, b->path);
	until_off(b, why);
	assert_string_equal(
		why, "PodResources: containers hold more than 1024 devices; the rest is ignored");
	told = hf_intake_holdings_get(b->intake);
	assert_true(told.known && told.cut);
	assert_int_equal(told.len, HF_HOLDINGS_MAX);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_ALLOCATABLE), 4);
	hold(b, "GPU-0");
	do
		(void)until_plugin(b, false, false);
	while (hf_intake_holdings_get(b->intake).cut);
}

static void the_port_of_a_pod_is_no_device_of_others(void **state)
{
	struct bench *b = *state;
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 18);
	struct hf_health_presence port = {.kind = HF_HEALTH_PORT};

	snprintf(port.id, sizeof(port.id), "mlx5_0/1");
	snprintf(port.alias, sizeof(port.alias), "0000:5e:00.0");
	hf_intake_device(b->intake, &port);
	add_many(&sb, "devices.kubevirt.io/kvm", "kvm", 1500);
	add_device_of(&sb, "rank-0", "rdma/hca", "0000:5e:00.0");
	frame(&b->list, &sb);
	probe(b, b->path);
	(void)until_plugin(b, false, false);
	assert_int_equal(hf_intake_holdings_get(b->intake).len, 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_three_questions_are_answered),
		T(a_question_of_a_kind_is_asked_once_at_a_time),
		T(errors_of_kubelet_and_socket_are_told),
		T(holdings_and_counts_are_told),
		T(a_share_of_a_device_is_held_by_its_known_name),
		T(a_kubelet_that_stops_answering_is_unreachable),
		T(a_kubelet_that_never_answered_is_no_fault),
		T(a_resource_that_was_there_is_gone),
		T(what_an_agent_before_this_one_missed_stays_gone_until_it_is_back),
		T(devices_under_other_names_are_not_gone),
		T(another_resource_of_the_vendor_is_none_of_its_devices),
		T(devices_cut_into_instances_are_not_counted),
		T(a_kubelet_that_lacks_one_of_the_questions_is_no_fault),
		T(a_kubelet_that_offers_more_than_is_read_is_no_fault_and_said),
		T(an_answer_that_cannot_be_read_is_no_fault_and_said),
		T(a_kubelet_that_is_asked_too_often_is_no_fault_and_said),
		T(a_kubelet_of_which_nothing_could_be_read_yet_is_not_well_either),
		T(an_answer_that_cannot_be_read_ends_a_silence),
		T(what_was_gone_is_not_back_by_an_answer_that_cannot_be_read),
		T(what_was_gone_before_is_not_back_by_it_either),
		T(devices_of_other_kinds_push_out_no_holder),
		T(more_holders_than_are_kept_are_said),
		T(the_port_of_a_pod_is_no_device_of_others),
		T(turned_off_it_says_so),
		T(a_poke_asks_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
