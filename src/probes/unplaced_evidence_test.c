/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "probes/unplaced_evidence.h"

#include <stdio.h>
#include <string.h>

static struct hf_health_evidence evidence_of(const char *device)
{
	struct hf_health_evidence e = hf_health_evidence_none();

	e.detector = HF_HEALTH_AER;
	e.code = HF_HEALTH_CODE_AER;
	e.at = HF_SECOND;
	snprintf(e.device, sizeof(e.device), "%s", device);
	return e;
}

static struct hf_health_presence gpu(const char *id, const char *above)
{
	struct hf_health_presence p;

	memset(&p, 0, sizeof(p));
	p.kind = HF_HEALTH_GPU;
	snprintf(p.id, sizeof(p.id), "%s", id);
	snprintf(p.above, sizeof(p.above), "%s", above);
	return p;
}

static void evidence_about_a_port_waits_for_a_device_below_it(void **state)
{
	struct hf_unplaced_evidence *list = hf_unplaced_evidence_create(0);
	struct hf_health_evidence e = evidence_of("0000:9c:01.0"), found;
	struct hf_health_presence other = gpu("0000:1a:00.0", "0000:19:01.0");
	struct hf_health_presence own = gpu("0000:9d:00.0", "0000:9b:00.0 0000:9c:01.0");

	(void)state;
	hf_unplaced_evidence_keep(list, &e, &other, 1, HF_SECOND);
	assert_false(hf_unplaced_evidence_take(list, &other, &found));
	assert_true(hf_unplaced_evidence_take(list, &own, &found));
	assert_string_equal(found.device, "0000:9c:01.0");
	assert_int_equal(found.at, HF_SECOND);
	/* The evidence is given out once. */
	assert_false(hf_unplaced_evidence_take(list, &own, &found));
	hf_unplaced_evidence_destroy(list);
}

static void evidence_about_another_function_waits_for_its_device(void **state)
{
	struct hf_unplaced_evidence *list = hf_unplaced_evidence_create(0);
	struct hf_health_evidence audio = evidence_of("0000:9d:00.1"), found;
	struct hf_health_evidence management = evidence_of("0000:18:00.1");
	struct hf_health_presence own = gpu("0000:9d:00.0", "0000:9c:01.0");
	struct hf_health_presence below =
		gpu("0000:1a:00.0", "0000:17:01.0 0000:18:00.0 0000:19:00.0");

	(void)state;
	hf_unplaced_evidence_keep(list, &audio, NULL, 0, HF_SECOND);
	hf_unplaced_evidence_keep(list, &management, NULL, 0, HF_SECOND);
	assert_true(hf_unplaced_evidence_take(list, &own, &found));
	assert_string_equal(found.device, "0000:9d:00.1");
	assert_true(hf_unplaced_evidence_take(list, &below, &found));
	assert_string_equal(found.device, "0000:18:00.1");
	hf_unplaced_evidence_destroy(list);
}

static void evidence_about_a_known_device_is_not_kept(void **state)
{
	struct hf_unplaced_evidence *list = hf_unplaced_evidence_create(0);
	struct hf_health_evidence e = evidence_of("0000:9d:00.0"), found;
	struct hf_health_presence own = gpu("0000:9d:00.0", "0000:9c:01.0");

	(void)state;
	hf_unplaced_evidence_keep(list, &e, &own, 1, HF_SECOND);
	assert_false(hf_unplaced_evidence_take(list, &own, &found));
	/* Evidence of an Xid does not wait: the brain creates a device for its address. */
	e.detector = HF_HEALTH_XID;
	hf_unplaced_evidence_keep(list, &e, NULL, 0, HF_SECOND);
	assert_false(hf_unplaced_evidence_take(list, &own, &found));
	hf_unplaced_evidence_destroy(list);
}

static void the_list_has_limits_of_time_and_length(void **state)
{
	struct hf_unplaced_evidence *list = hf_unplaced_evidence_create(0);
	struct hf_health_presence own = gpu("0000:9d:00.0", "0000:9c:01.0");
	struct hf_health_evidence found;
	int n = 0;

	(void)state;
	for (int i = 0; i < HF_UNPLACED_EVIDENCE_MAX + 10; i++) {
		struct hf_health_evidence e = evidence_of("0000:9c:01.0");

		e.seq = (uint64_t)i;
		hf_unplaced_evidence_keep(list, &e, NULL, 0, HF_UNPLACED_EVIDENCE_SPAN - 1);
	}
	for (; hf_unplaced_evidence_take(list, &own, &found); n++)
		assert_int_equal(found.seq, n + 10);
	assert_int_equal(n, HF_UNPLACED_EVIDENCE_MAX);
	found = evidence_of("0000:9c:01.0");
	hf_unplaced_evidence_keep(list, &found, NULL, 0, HF_UNPLACED_EVIDENCE_SPAN);
	assert_false(hf_unplaced_evidence_take(list, &own, &found));
	hf_unplaced_evidence_destroy(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evidence_about_a_port_waits_for_a_device_below_it),
		cmocka_unit_test(evidence_about_another_function_waits_for_its_device),
		cmocka_unit_test(evidence_about_a_known_device_is_not_kept),
		cmocka_unit_test(the_list_has_limits_of_time_and_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
