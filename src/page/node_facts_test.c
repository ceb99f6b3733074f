/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "page/node_facts.h"

#include "harness/test.h"

#include <string.h>

#define NOW (1767268800 * HF_SECOND) /* 2026-01-01T12:00:00Z */

#define READY(status)                                                                              \
	"\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"" status                     \
	"\",\"lastTransitionTime\":\"2026-01-01T11:00:00Z\"}]}"
#define META "\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"uid\":\"u\"}"
#define QUARANTINED                                                                                \
	"{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"uid\":\"u\","    \
	"\"annotations\":{\"holdfast.dev/quarantine\":"                                            \
	"\"{\\\"policy\\\":\\\"gpus\\\",\\\"class\\\":\\\"gpu-reset\\\",\\\"time\\\":"             \
	"\\\"2026-01-01T11:30:00.000000Z\\\",\\\"epoch\\\":1}\"}},\"spec\":{\"taints\":[{\"key\":" \
	"\"holdfast.dev/device\",\"value\":\"gpu-reset\",\"effect\":\"NoSchedule\"}]}," READY(     \
		"True") "}"
#define HEALTH                                                                                                 \
	"{\"apiVersion\":\"holdfast.dev/v1alpha1\",\"kind\":\"DeviceHealth\",\"metadata\":{\"name\":\"n1\"},"  \
	"\"status\":{\"observedTime\":\"2026-01-01T11:59:00.000000Z\",\"state\":\"Unhealthy\",\"class\":"      \
	"\"gpu-reset\",\"action\":\"reset-device\",\"devices\":[{\"id\":\"node\",\"kind\":\"node\",\"state\":" \
	"\"Healthy\"},{\"id\":\"0000:1a:00.0\",\"uuid\":\"GPU-1\",\"kind\":\"gpu\",\"state\":\"Unhealthy\","   \
	"\"class\":\"gpu-reset\",\"since\":\"2026-01-01T11:45:00.000000Z\",\"faults\":[{\"detector\":\"xid\"," \
	"\"code\":79,\"class\":\"gpu-reset\",\"line\":\"NVRM: Xid 79\",\"lastTime\":"                          \
	"\"2026-01-01T11:45:00.000000Z\",\"count\":2,\"active\":true}]},{\"id\":\"0000:1b:00.0\",\"uuid\":"    \
	"\"GPU-2\",\"kind\":\"gpu\",\"state\":\"Healthy\"}],\"ranks\":[{\"namespace\":\"a\",\"pod\":\"p\","    \
	"\"uid\":\"pod-1\",\"rank\":0,\"state\":\"Advancing\",\"step\":12,\"totalSteps\":100,\"ownMicros\":"   \
	"20000,\"advancedTime\":\"2026-01-01T11:59:00.000000Z\"}]}}"

struct made {
	struct hf_page_node *node;
	struct hf_page_health *health;
	struct hf_page_ranks *ranks;
	struct hf_json *object;
};

static void make(struct made *made, const char *node, const char *health, hf_time now)
{
	HF_AUTO_DOC node_doc = node == NULL ? NULL : hf_doc_from_text(node, strlen(node));
	HF_AUTO_DOC health_doc = health == NULL ? NULL : hf_doc_from_text(health, strlen(health));
	struct hf_page_node_input input = {.name = "n1", .now = now};

	made->ranks = hf_page_ranks_create();
	made->node = node == NULL ? NULL : hf_page_node_read(node_doc);
	made->health = health == NULL ? NULL : hf_page_health_read(health_doc, made->ranks);
	input.node = made->node;
	input.health = made->health;
	made->object = hf_page_node_json(&input);
}

static void release(struct made *made)
{
	hf_json_unref(made->object);
	if (made->node != NULL)
		hf_page_node_free(made->node);
	if (made->health != NULL)
		hf_page_health_free(made->health);
	hf_page_ranks_destroy(made->ranks);
}

static void assert_text(const struct made *made, const char *key, const char *want)
{
	assert_string_equal(hf_json_path_str(made->object, key, NULL), want);
}

static void the_state_of_a_node_is_one_word(void **state)
{
	static const struct {
		const char *node, *health, *want;
	} cases[] = {
		{"{" META "," READY("True") "}", NULL, "Ready"},
		{"{" META "," READY("False") "}", NULL, "NotReady"},
		{"{" META "," READY("Unknown") "}", HEALTH, "Unknown"},
		{"{" META ",\"spec\":{\"unschedulable\":true}," READY("True") "}", NULL,
		 "Cordoned"},
		{"{" META "," READY("True") "}", HEALTH, "Unhealthy"},
		{QUARANTINED, HEALTH, "Quarantined"},
		{NULL, HEALTH, "Unhealthy"},
		{"{" META "}", NULL, "Unknown"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct made made;

		make(&made, cases[i].node, cases[i].health, NOW);
		assert_text(&made, "state", cases[i].want);
		release(&made);
	}
}

static void a_quarantine_for_an_act_names_the_act(void **state)
{
	struct made made;

	make(&made,
	     "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"uid\":"
	     "\"u\",\"annotations\":{\"holdfast.dev/quarantine\":\"{\\\"policy\\\":"
	     "\\\"remediations/n1-1\\\",\\\"class\\\":\\\"none\\\",\\\"time\\\":"
	     "\\\"2026-01-01T11:30:00.000000Z\\\",\\\"epoch\\\":1}\"}},\"spec\":{\"taints\":["
	     "{\"key\":\"holdfast.dev/device\",\"value\":\"none\",\"effect\":\"NoSchedule\"}]}," READY(
		     "True") "}",
	     NULL, NOW);
	assert_text(&made, "sentence",
		    "Ready, quarantined by Holdfast for Remediation n1-1; no agent reports its "
		    "devices");
	release(&made);
}

static void a_quarantined_node_says_why(void **state)
{
	struct made made;

	make(&made, QUARANTINED, HEALTH, NOW);
	assert_text(
		&made, "sentence",
		"Ready, quarantined by Holdfast under policy gpus, class gpu-reset; 1 of 2 devices are "
		"healthy, class gpu-reset, needs reset-device");
	assert_text(&made, "since", "2026-01-01T11:30:00.000Z");
	assert_text(&made, "class", "gpu-reset");
	assert_text(&made, "action", "reset-device");
	assert_text(&made, "agent", "ok");
	assert_int_equal(hf_json_i64(hf_json_path(made.object, "devices", "well", NULL), -1), 1);
	assert_int_equal(hf_json_i64(hf_json_path(made.object, "devices", "total", NULL), -1), 2);
	release(&made);
}

static void an_agent_is_silent_after_fifteen_minutes(void **state)
{
	struct made made;

	make(&made, NULL, HEALTH, NOW + 20 * HF_MINUTE);
	assert_text(&made, "agent", "silent");
	release(&made);
	make(&made, "{" META "," READY("True") "}", NULL, NOW);
	assert_text(&made, "agent", "none");
	release(&made);
}

static void devices_have_their_evidence(void **state)
{
	struct made made;
	HF_AUTO_JSON devices = NULL;
	const struct hf_json *evidence;

	make(&made, NULL, HEALTH, NOW);
	assert_int_equal(hf_json_parse(made.health->devices, strlen(made.health->devices), NULL,
				       &devices, NULL),
			 0);
	assert_int_equal(hf_json_len(devices), 3);
	evidence = hf_json_item(hf_json_get(hf_json_item(devices, 1), "evidence"), 0);
	assert_string_equal(hf_json_path_str(evidence, "text", NULL), "NVRM: Xid 79");
	assert_int_equal(hf_json_i64(hf_json_get(evidence, "code"), 0), 79);
	assert_string_equal(hf_json_path_str(evidence, "source", NULL), "xid");
	release(&made);
}

static void reports_of_ranks_are_passed_on(void **state)
{
	const struct hf_pod pod = {.name = "p", .uid = "pod-1"};
	struct made made;

	make(&made, NULL, HEALTH, NOW);
	assert_int_equal(hf_page_ranks_progress(made.ranks, &pod, 1).step, 12);
	release(&made);
}

static void objects_of_wrong_types_are_no_danger(void **state)
{
	static const char *const bad[] = {
		"[]", "{}", "{\"status\":[],\"spec\":7,\"metadata\":\"x\"}",
		"{\"status\":{\"devices\":{},\"ranks\":[1],\"conditions\":[[]]}}"};

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		HF_AUTO_DOC doc = hf_doc_from_text(bad[i], strlen(bad[i]));
		struct made made;

		make(&made, bad[i], bad[i], NOW);
		assert_text(&made, "state", "Unknown");
		release(&made);
		hf_page_mend_free(hf_page_mend_read(doc));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_state_of_a_node_is_one_word),
		cmocka_unit_test(a_quarantine_for_an_act_names_the_act),
		cmocka_unit_test(a_quarantined_node_says_why),
		cmocka_unit_test(an_agent_is_silent_after_fifteen_minutes),
		cmocka_unit_test(devices_have_their_evidence),
		cmocka_unit_test(reports_of_ranks_are_passed_on),
		cmocka_unit_test(objects_of_wrong_types_are_no_danger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
