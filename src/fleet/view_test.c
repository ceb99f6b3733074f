/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/fleet_internal.h"

#include "api/device_health.h"
#include "base/str.h"
#include "harness/test.h"

#include <string.h>

/* A view must hold everything that the agent, kubelet or administrator of one node can write into
 * an object. */

#define OBJECT_MAX ((size_t)3 << 19) /* limit of an object in etcd */

static struct hf_fleet fleet;
static struct hf_strbuf text;

static int setup(void **state)
{
	(void)state;
	fleet.scratch = hf_arena_create(HF_FLEET_ARENA_MAX);
	text = (struct hf_strbuf)HF_STRBUF_INIT(3 * OBJECT_MAX);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	hf_strbuf_release(&text);
	fleet.scratch = hf_arena_destroy(fleet.scratch);
	return 0;
}

/* Adds n characters of two bytes each: a CRD limits characters, and etcd limits bytes. */
static void add_characters(size_t n)
{
	for (size_t i = 0; i < n; i++)
		hf_strbuf_addstr(&text, "\xC3\xA4");
}

static void add_holder(size_t characters, int number)
{
	static const char *const keys[] = {"namespace", "pod", "uid"};

	for (size_t i = 0; i < HF_ARRAY_LEN(keys); i++) {
		hf_strbuf_addf(&text, "%s\"%s\":\"%d", i == 0 ? "{" : ",", keys[i], number);
		add_characters(characters);
		hf_strbuf_addstr(&text, "\"");
	}
	hf_strbuf_addstr(&text, "}");
}

static struct fleet_health *health_with(size_t characters)
{
	HF_AUTO_DOC doc = NULL;

	hf_strbuf_addstr(&text, "{\"status\":{\"state\":\"Unhealthy\",\"devices\":[");
	for (int d = 0; d < HF_DEVICE_HEALTH_DEVICES_MAX; d++) {
		hf_strbuf_addf(&text, "%s{\"id\":\"%d\",\"state\":\"Unhealthy\",\"holders\":[",
			       d > 0 ? "," : "", d);
		for (int h = 0; h < HF_DEVICE_HEALTH_HOLDERS_MAX; h++) {
			hf_strbuf_addstr(&text, h > 0 ? "," : "");
			add_holder(characters, d * HF_DEVICE_HEALTH_HOLDERS_MAX + h);
		}
		hf_strbuf_addstr(&text, "]}");
	}
	hf_strbuf_addstr(&text, "]}}");
	doc = hf_doc_from_text(text.data, text.len);
	return hf_fleet_read_health(&fleet, doc);
}

static void the_longest_names_are_read(void **state)
{
	struct fleet_health *view;

	(void)state;
	view = health_with(120);
	assert_int_equal(view->holders_len,
			 HF_DEVICE_HEALTH_DEVICES_MAX * HF_DEVICE_HEALTH_HOLDERS_MAX);
	hf_fleet_free_health(view);
}

static void what_is_no_name_holds_nothing(void **state)
{
	struct fleet_health *view;

	(void)state;
	view = health_with(230);
	assert_true(text.len > OBJECT_MAX - (OBJECT_MAX >> 4));
	assert_int_equal(view->state, HF_HEALTH_UNHEALTHY);
	assert_int_equal(view->holders_len, 0);
	hf_fleet_free_health(view);
}

/* When the newest error in `text` came, in seconds after midnight. */
static int anew(void)
{
	HF_AUTO_DOC doc = hf_doc_from_text(text.data, text.len);
	struct fleet_health *view = hf_fleet_read_health(&fleet, doc);
	hf_time day, at = view->anew_at;

	hf_fleet_free_health(view);
	assert_true(hf_time_parse("2026-01-01T00:00:00Z", &day, NULL) == 0);
	return (int)((at - day) / HF_SECOND);
}

/* The newest error of a node with one device and one fault, in seconds. */
static int came_anew(const char *detector, int code, const char *active)
{
	hf_strbuf_clear(&text);
	hf_strbuf_addf(
		&text,
		"{\"status\":{\"state\":\"Degraded\",\"evidenceTime\":\"2026-01-01T00:00:09Z\","
		"\"devices\":[{\"id\":\"g0\",\"state\":\"Degraded\",\"since\":"
		"\"2026-01-01T00:00:01Z\",\"faults\":[{\"detector\":\"%s\",\"code\":%d,\"class\":"
		"\"degraded\",\"active\":%s,\"firstTime\":\"2026-01-01T00:00:02Z\","
		"\"lastTime\":\"2026-01-01T00:00:09Z\"}]}]}}",
		detector, code, active);
	return anew();
}

/* The counter of uncorrectable errors rose again at second 9: that is a new error. */
static void one_more_in_a_counter_is_anew(void **state)
{
	(void)state;
	assert_int_equal(came_anew("ecc", 1, "true"), 9);
	assert_int_equal(came_anew("amd", 1, "true"), 9);
	assert_int_equal(came_anew("ecc", 2, "true"), 2);
}

/* The newest error, in seconds, of a device that has been in `state` since second `since`, with faults
 * of seconds 1, 2 and 9. */
static int anew_of(const char *state, int since, const char *cls, const char *last_cls)
{
	hf_strbuf_clear(&text);
	hf_strbuf_addf(
		&text,
		"{\"status\":{\"state\":\"%s\",\"devices\":[{\"id\":\"g0\",\"state\":\"%s\","
		"\"since\":\"2026-01-01T00:00:0%dZ\",\"faults\":["
		"{\"detector\":\"throttle\",\"code\":1,\"class\":\"degraded\",\"active\":true,"
		"\"firstTime\":\"2026-01-01T00:00:01Z\",\"lastTime\":\"2026-01-01T00:00:09Z\"},"
		"{\"detector\":\"xid\",\"code\":119,\"class\":\"%s\",\"active\":true,"
		"\"firstTime\":\"2026-01-01T00:00:02Z\",\"lastTime\":\"2026-01-01T00:00:02Z\"},"
		"{\"detector\":\"xid\",\"code\":43,\"class\":\"%s\",\"active\":true,"
		"\"firstTime\":\"2026-01-01T00:00:09Z\",\"lastTime\":\"2026-01-01T00:00:09Z\"}"
		"]}]}}",
		state, state, since, cls, last_cls);
	return anew();
}

static void what_a_program_did_is_not_anew(void **state)
{
	(void)state;
	assert_int_equal(anew_of("Unhealthy", 2, "gpu-reset", "app"), 2);
	assert_int_equal(anew_of("Unhealthy", 2, "gpu-reset", "info"), 2);
	assert_int_equal(anew_of("Unhealthy", 2, "gpu-reset", "degraded"), 9);
	/* A fault that was a suspicion was confirmed at second 8: that is a new error. */
	assert_int_equal(anew_of("Degraded", 8, "app", "app"), 8);
}

/* A view of a node with these faults and devices; "": the node has no device. */
static struct fleet_health *health_of(const char *faults_of_node, const char *devices)
{
	HF_AUTO_DOC doc = NULL;

	hf_strbuf_clear(&text);
	hf_strbuf_addf(&text,
		       "{\"status\":{\"state\":\"Degraded\",\"devices\":[{\"id\":\"node\",\"kind\":"
		       "\"node\",\"state\":\"Degraded\",\"faults\":[%s]}%s]}}",
		       faults_of_node, devices);
	doc = hf_doc_from_text(text.data, text.len);
	return hf_fleet_read_health(&fleet, doc);
}

#define FAULT(detector, code, class)                                                               \
	"{\"detector\":\"" detector "\",\"code\":" code ",\"class\":\"" class "\",\"active\":true}"
#define GPU(state, faults)                                                                         \
	",{\"id\":\"g\",\"kind\":\"gpu\",\"resource\":\"nvidia.com/gpu\",\"state\":\"" state       \
	"\",\"faults\":[" faults "]}"

static void expect_by_pods(const char *faults_of_node, const char *devices, bool by_pods,
			   bool rest_well)
{
	struct fleet_health *view = health_of(faults_of_node, devices);

	assert_int_equal(view->by_pods, by_pods);
	assert_int_equal(view->rest_well, rest_well);
	hf_fleet_free_health(view);
}

static void what_pods_of_drivers_and_plugins_mend_is_known(void **state)
{
	(void)state;
	expect_by_pods(FAULT("plugin", "1", "software"), GPU("Healthy", ""), true, true);
	expect_by_pods(FAULT("driver", "2", "software") "," FAULT("count", "2", "software"),
		       GPU("Unknown", ""), true, false);
	/* The driver hangs or does not match its library, or a device is off the bus: no pod can
	 * end these faults. */
	expect_by_pods(FAULT("driver", "3", "software"), GPU("Healthy", ""), false, true);
	expect_by_pods(FAULT("driver", "1", "software"), GPU("Healthy", ""), false, true);
	expect_by_pods(FAULT("count", "3", "degraded"), GPU("Healthy", ""), false, true);
	expect_by_pods(FAULT("plugin", "2", "software"),
		       GPU("Unhealthy", FAULT("xid", "119", "gpu-reset")), false, false);
	/* A suspicion about a device does not keep the plugin's pod away; a device that is out of
	 * service does. */
	expect_by_pods(FAULT("plugin", "1", "software"),
		       GPU("Suspect", FAULT("xid", "74", "fabric")), true, false);
	expect_by_pods(FAULT("count", "2", "software"), GPU("Failed", ""), false, false);
	/* No fault is active, so no pod can end one. */
	expect_by_pods("", GPU("Healthy", FAULT("xid", "43", "app")), false, true);
}

static void a_node_has_devices_or_misses_some(void **state)
{
	struct fleet_health *view = health_of("", "");

	(void)state;
	assert_false(view->has_devices);
	hf_fleet_free_health(view);
	view = health_of(FAULT("count", "3", "degraded"), "");
	assert_true(view->has_devices && view->has_gpus);
	hf_fleet_free_health(view);
	view = health_of(FAULT("plugin", "1", "software"), GPU("Healthy", "") GPU("Healthy", ""));
	assert_true(view->has_devices && view->has_gpus);
	assert_int_equal(view->gpus, 2);
	hf_fleet_free_health(view);
	view = health_of("", ",{\"id\":\"mlx5_0/1\",\"kind\":\"port\",\"state\":\"Healthy\"}");
	assert_true(view->has_devices && !view->has_gpus);
	hf_fleet_free_health(view);
}

static void what_is_measured_on_and_on_is_not_anew(void **state)
{
	(void)state;
	assert_int_equal(came_anew("throttle", 1, "true"), 2);
	assert_int_equal(came_anew("xid", 43, "true"), 9);
	assert_int_equal(came_anew("xid", 43, "false"), 1); /* no fault: the state counts */
	assert_int_equal(came_anew("of a later agent", 1, "true"), 2);
}

static void a_node_is_read_whatever_it_says(void **state)
{
	HF_AUTO_DOC doc = NULL;
	struct fleet_node *view;

	(void)state;
	hf_strbuf_addstr(&text, "{\"metadata\":{\"labels\":{\"pool\":\"gpu\"");
	for (int i = 0; text.len < OBJECT_MAX; i++)
		hf_strbuf_addf(&text, ",\"%x\":\"\"", (unsigned)i);
	hf_strbuf_addstr(&text, "}},\"status\":{\"nodeInfo\":{\"bootID\":\"");
	for (size_t i = 0; i < OBJECT_MAX; i++)
		hf_strbuf_addstr(&text, "b");
	hf_strbuf_addstr(&text, "\"}}}");
	doc = hf_doc_from_text(text.data, text.len);
	view = hf_fleet_read_node(&fleet, doc);
	assert_null(view->marks.boot_id);
	assert_string_equal(view->marks.labels.items[0].value, "gpu");
	hf_fleet_free_node(view);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_longest_names_are_read),
		TEST(what_is_no_name_holds_nothing),
		TEST(what_is_measured_on_and_on_is_not_anew),
		TEST(one_more_in_a_counter_is_anew),
		TEST(what_a_program_did_is_not_anew),
		TEST(what_pods_of_drivers_and_plugins_mend_is_known),
		TEST(a_node_has_devices_or_misses_some),
		TEST(a_node_is_read_whatever_it_says),
	};

	return cmocka_run_group_tests_name("remedy_view", tests, NULL, NULL);
}
