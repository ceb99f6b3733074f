/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/kubelet.h"
#include "harness/test.h"
#include "probes/podresources.h"

/* Decodes valid and malformed messages of a kubelet. */

static int decode(const struct hf_strbuf *sb, struct hf_arena *arena,
		  struct hf_podresources *ret_found)
{
	struct hf_error err = {0};
	int rc = hf_podresources_decode_list(sb->data, sb->len, arena, ret_found, &err);

	assert_int_equal(err.code, rc);
	return rc;
}

static void both_shapes_of_a_list_are_read(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(HF_PODRESOURCES_ARENA_MAX);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 16);
	struct hf_podresources found = {0};
	const struct hf_podresources_device *d;

	hf_kubelet_pod(&sb, "rank-0", "GPU-5a1d", NULL);
	hf_kubelet_pod(&sb, "rank-1", "gpu-1", "rank-1-gpu");
	hf_pb_text(&sb, 1, ""); /* a pod without anything */
	assert_int_equal(decode(&sb, arena, &found), 0);
	assert_int_equal(found.pods, 3);
	assert_int_equal(found.devices_len, 2);
	d = &found.devices[0];
	assert_string_equal(d->ns, "ml");
	assert_string_equal(d->pod, "rank-0");
	assert_string_equal(d->container, "trainer");
	assert_string_equal(d->resource, "nvidia.com/gpu");
	assert_string_equal(d->id, "GPU-5a1d");
	assert_string_equal(d->claim, "");
	d = &found.devices[1];
	assert_string_equal(d->pod, "rank-1");
	assert_string_equal(d->resource, "gpu.nvidia.com");
	assert_string_equal(d->pool, "node-a");
	assert_string_equal(d->id, "gpu-1");
	assert_string_equal(d->claim_ns, "ml");
	assert_string_equal(d->claim, "rank-1-gpu");
	assert_string_equal(d->cdi, "k8s.gpu.nvidia.com/device=gpu-1");
}

static void an_empty_answer_names_no_pod(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(HF_PODRESOURCES_ARENA_MAX);
	struct hf_podresources found = {.pods = 9};
	struct hf_error err = {0};

	assert_ok(hf_podresources_decode_list("", 0, arena, &found, &err), &err);
	assert_int_equal(found.pods + found.devices_len, 0);
}

static void no_part_of_an_answer_is_one(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(HF_PODRESOURCES_ARENA_MAX);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 16);
	struct hf_podresources found = {.pods = 9};
	size_t whole;

	hf_kubelet_pod(&sb, "rank-1", "gpu-1", "rank-1-gpu");
	whole = sb.len;
	for (size_t len = whole - 1; len > 0; len--) {
		hf_strbuf_truncate(&sb, len);
		assert_int_equal(decode(&sb, arena, &found), HF_E_BAD_REQUEST);
		hf_arena_reset(arena);
	}
	assert_int_equal(found.pods, 9);
}

static void bytes_that_are_no_message_are_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = {
		{"\x0a\x05"
		 "abc",
		 5},                                                  /* longer than it is */
		{"\x0b\x00", 2},                                      /* a group */
		{"\x07", 1},                                          /* wire type 7 */
		{"\x02\x00", 2},                                      /* field 0 */
		{"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11}, /* 65 bits */
		{"\x09\x01\x02", 3},                                  /* half of a fixed64 */
		{"\x0d\x01\x02", 3},                                  /* half of a fixed32 */
		{"\x0a\x05\x0a\x03"
		 "a\nb",
		 7}, /* a line break in a name */
		{"\x0a\x05\x0a\x03"
		 "a\xff"
		 "b",
		 7}, /* not UTF-8 */
	};
	HF_AUTO_ARENA arena = hf_arena_create(HF_PODRESOURCES_ARENA_MAX);
	struct hf_podresources found;

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(64);

		hf_strbuf_add(&sb, bad[i].bytes, bad[i].len);
		assert_int_equal(decode(&sb, arena, &found), HF_E_BAD_REQUEST);
	}
}

static void names_and_lists_have_limits(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(HF_PODRESOURCES_ARENA_MAX);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT((size_t)8 << 20);
	HF_AUTO_STRBUF devices = HF_STRBUF_INIT((size_t)8 << 20);
	HF_AUTO_STRBUF container = HF_STRBUF_INIT((size_t)8 << 20);
	char name[HF_PODRESOURCES_TEXT_MAX + 2];
	struct hf_podresources found;

	memset(name, 'n', sizeof(name));
	name[HF_PODRESOURCES_TEXT_MAX] = '\0';
	hf_kubelet_pod(&sb, name, "GPU-1", NULL);
	assert_int_equal(decode(&sb, arena, &found), 0);
	name[HF_PODRESOURCES_TEXT_MAX] = 'n';
	name[HF_PODRESOURCES_TEXT_MAX + 1] = '\0';
	hf_kubelet_pod(&sb, name, "GPU-1", NULL);
	assert_int_equal(decode(&sb, arena, &found), HF_E_BAD_REQUEST);
	/* A device takes two bytes in the message and far more in memory, so the number of devices
	 * has a limit. */
	hf_strbuf_clear(&sb);
	for (int i = 0; i <= HF_PODRESOURCES_DEVICES_MAX; i++)
		hf_pb_text(&devices, 2, "");
	hf_pb_bytes(&container, 2, devices.data, devices.len);
	hf_strbuf_clear(&devices);
	hf_pb_bytes(&devices, 3, container.data, container.len);
	hf_pb_bytes(&sb, 1, devices.data, devices.len);
	assert_int_equal(decode(&sb, arena, &found), HF_E_TOO_LARGE);
	/* Names have a limit too: one byte in the message takes up to sixteen bytes of memory. */
	hf_arena_reset(arena);
	hf_strbuf_clear(&sb);
	while (sb.len < HF_PODRESOURCES_BYTES_MAX - 64)
		hf_pb_bytes(&sb, 1, "\x0a\x01n\x12\x01n", 6);
	assert_int_equal(decode(&sb, arena, &found), HF_E_TOO_LARGE);
	while (sb.len <= HF_PODRESOURCES_BYTES_MAX)
		hf_pb_text(&sb, 1, "");
	assert_int_equal(decode(&sb, arena, &found), HF_E_TOO_LARGE);
}

static void what_is_allocatable_is_counted_by_device_and_not_by_share(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(HF_PODRESOURCES_ARENA_MAX);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 16);
	struct hf_podresources found;
	struct hf_error err = {0};

	hf_kubelet_device(&sb, 1, "nvidia.com/gpu", "GPU-b::1");
	hf_kubelet_device(&sb, 1, "nvidia.com/gpu", "GPU-a");
	hf_kubelet_device(&sb, 1, "nvidia.com/gpu", "GPU-b::0");
	hf_kubelet_device(&sb, 1, "nvidia.com/gpu", "GPU-bb::0");
	hf_kubelet_device(&sb, 1, "example.com/nic", "nic-0");
	assert_ok(hf_podresources_decode_allocatable(sb.data, sb.len, arena, &found, &err), &err);
	assert_int_equal(found.devices_len, 5);
	assert_int_equal(hf_podresources_count(&found, "nvidia.com/gpu", arena), 3);
	assert_int_equal(hf_podresources_count(&found, "example.com/nic", arena), 1);
	assert_int_equal(hf_podresources_count(&found, "amd.com/gpu", arena), 0);
}

static bool is(const char *id, const char *claim)
{
	const struct hf_podresources_names names = {
		.uuid = "GPU-5a1d", .address = "0000:1a:00.0", .minor = 12};
	const struct hf_podresources_device device = {.id = id, .claim = claim};

	return hf_podresources_is(&device, &names);
}

static void a_device_is_known_by_any_of_its_names(void **state)
{
	const struct hf_podresources_names nameless = {.uuid = "", .address = "", .minor = -1};
	const struct hf_podresources_device empty = {.id = "", .claim = ""};

	assert_true(is("GPU-5a1d", ""));
	assert_true(is("GPU-5a1d::3", ""));
	assert_true(is("0000:1A:00.0", ""));
	assert_true(is("gpu-12", "claim"));
	assert_false(is("gpu-12", ""));
	assert_false(is("12", ""));
	assert_false(is("12", "claim"));
	assert_false(is("gpu-1", "claim"));
	assert_false(is("gpu-", "claim"));
	assert_false(is("gpu-12x", "claim"));
	assert_false(is("GPU-5a1", ""));
	assert_false(is("", ""));
	assert_false(hf_podresources_is(&empty, &nameless));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_shapes_of_a_list_are_read),
		cmocka_unit_test(an_empty_answer_names_no_pod),
		cmocka_unit_test(no_part_of_an_answer_is_one),
		cmocka_unit_test(bytes_that_are_no_message_are_refused),
		cmocka_unit_test(names_and_lists_have_limits),
		cmocka_unit_test(what_is_allocatable_is_counted_by_device_and_not_by_share),
		cmocka_unit_test(a_device_is_known_by_any_of_its_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
