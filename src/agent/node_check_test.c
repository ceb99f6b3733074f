/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/node_check.h"

#include "harness/health.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

/* The verdict alone; tests/clients/node_check_test.py asks by gRPC. */
struct world {
	struct health_node node;
	struct hf_holder holders[4];
	struct hf_loop *loop;
	struct hf_intake *intake;
	struct hf_report report;
};

static void on_news(void *arg, bool urgent)
{
}

static int setup(void **state)
{
	static struct world w;
	struct hf_intake_options options = {.news = on_news};

	memset(&w, 0, sizeof(w));
	w.loop = options.loop = hf_loop_create_virtual(0);
	w.intake = hf_intake_create(&options);
	health_init(&w.node, 3, 1);
	health_step(&w.node, HF_SECOND);
	w.report = (struct hf_report){.node = "n1", .intake = w.intake, .holders = w.holders};
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	health_release(&w->node);
	hf_intake_destroy(w->intake);
	hf_loop_destroy(w->loop);
	return 0;
}

static void hold(struct world *w, const char *pod, const char *id, hf_time until)
{
	struct hf_holder *h = &w->holders[w->report.holders_len++];

	snprintf(h->holding.pod, sizeof(h->holding.pod), "%s", pod);
	snprintf(h->holding.id, sizeof(h->holding.id), "%s", id);
	snprintf(h->uid, sizeof(h->uid), "uid-%s", pod);
	h->until = until;
}

static size_t judge(struct world *w, const char *uid, const char *wanted)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
	HF_AUTO_JSON json = NULL;
	size_t n;

	w->report.memory = &w->node.memory;
	w->report.now = w->report.reaches = w->node.now;
	n = hf_node_check_judge(&w->report, uid, &json);
	hf_json_write(json, HF_JSON_COMPACT, &text);
	assert_string_equal(text.data, wanted);
	return n;
}

static void break_device(struct world *w)
{
	(void)health_xid(&w->node, 119, "gpu-1");
	health_step(&w->node, HF_SECOND);
}

#define SICK                                                                                       \
	"[{\"device\":\"gpu-1\",\"state\":\"Unhealthy\",\"class\":\"gpu-reset\",\"action\":\"reset-device\"}]}"

static void a_well_node_passes(void **state)
{
	assert_int_equal(
		judge(*state, "",
		      "{\"fail_count\":0,\"node\":\"n1\",\"scope\":\"node\",\"devices\":[]}"),
		0);
}

static void a_sick_device_fails_the_node(void **state)
{
	struct world *w = *state;

	break_device(w);
	assert_int_equal(
		judge(w, "",
		      "{\"fail_count\":1,\"node\":\"n1\",\"scope\":\"node\",\"devices\":" SICK),
		1);
}

/* A launcher on other devices of the node may go on. */
static void only_the_devices_of_the_pod_count(void **state)
{
	struct world *w = *state;

	break_device(w);
	hold(w, "mine", "gpu-1", HF_TIME_NONE);
	hold(w, "other", "gpu-2", HF_TIME_NONE);
	hold(w, "past", "gpu-1", w->node.now);
	assert_int_equal(
		judge(w, "uid-mine",
		      "{\"fail_count\":1,\"node\":\"n1\",\"scope\":\"pod\",\"devices\":" SICK),
		1);
	assert_int_equal(
		judge(w, "uid-other",
		      "{\"fail_count\":0,\"node\":\"n1\",\"scope\":\"pod\",\"devices\":[]}"),
		0);
	/* Of these pods the kubelet reports no device. */
	assert_int_equal(
		judge(w, "uid-past",
		      "{\"fail_count\":1,\"node\":\"n1\",\"scope\":\"node\",\"devices\":" SICK),
		1);
	assert_int_equal(
		judge(w, "uid-none",
		      "{\"fail_count\":1,\"node\":\"n1\",\"scope\":\"node\",\"devices\":" SICK),
		1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_well_node_passes, setup, teardown),
		cmocka_unit_test_setup_teardown(a_sick_device_fails_the_node, setup, teardown),
		cmocka_unit_test_setup_teardown(only_the_devices_of_the_pod_count, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
