/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "probes/nvml_record.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SB_MAX ((size_t)1 << 18)

static struct hf_nvml_record *made(void)
{
	struct hf_nvml_record *r = hf_xcalloc(1, sizeof(*r));

	r->kind = HF_NVML_ROUND;
	r->code = 0;
	r->count = 2;
	snprintf(r->driver, sizeof(r->driver), "570.86.15");
	snprintf(r->library, sizeof(r->library), "12.570.86.15");
	snprintf(r->firmware, sizeof(r->firmware), "570.86.16");
	r->devices_len = 2;
	for (size_t i = 0; i < 2; i++) {
		struct hf_nvml_device *d = &r->devices[i];

		snprintf(d->address, sizeof(d->address), "0000:1%c:00.0", "ab"[i]);
		snprintf(d->uuid, sizeof(d->uuid), "GPU-%zu", i);
		d->code = i == 1 ? HF_NVML_LOST : 0;
		for (int f = 0; f < HF_NVML_FACTS; f++) {
			d->codes[f] = f % 3 == 0 ? HF_NVML_UNSUPPORTED : 0;
			d->values[f] = d->codes[f] ? 0 : UINT64_MAX - (unsigned)f;
		}
		d->mig_instances_len = i;
		for (size_t p = 0; p < i; p++)
			d->mig_instances[p] = (struct hf_nvml_mig_instance){
				.uuid = "MIG-1", .gpu_instance = 7, .compute_instance = UINT32_MAX};
	}
	r->events_len = 1;
	r->events[0] = (struct hf_nvml_event){
		.type = 8, .data = 79, .gpu_instance = UINT32_MAX, .compute_instance = 3};
	snprintf(r->events[0].address, sizeof(r->events[0].address), "0000:1b:00.0");
	return r;
}

static void what_is_written_is_read(void **state)
{
	struct hf_nvml_record *r = made(), *got = hf_xcalloc(1, sizeof(*got));
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(SB_MAX);
	struct hf_error err = {0};

	hf_nvml_record_write(r, &sb);
	r->kind = HF_NVML_NEWS;
	r->count = -1;
	r->devices_len = 0;
	hf_nvml_record_write(r, &sb);
	assert_int_equal(hf_nvml_record_read(&sb, got, &err), 1);
	assert_int_equal(got->kind, HF_NVML_ROUND);
	assert_int_equal(got->count, 2);
	assert_memory_equal(got->devices, r->devices, sizeof(r->devices));
	assert_memory_equal(got->events, r->events, sizeof(r->events));
	assert_string_equal(got->driver, "570.86.15");
	assert_string_equal(got->firmware, "570.86.16");
	assert_int_equal(hf_nvml_record_read(&sb, got, &err), 1);
	assert_int_equal(got->kind, HF_NVML_NEWS);
	assert_int_equal(got->count, -1);
	assert_int_equal(got->devices_len, 0);
	assert_int_equal(hf_nvml_record_read(&sb, got, &err), 0);
	assert_int_equal(sb.len, 0);
	free(r);
	free(got);
}

static void the_largest_record_fits_its_frame(void **state)
{
	struct hf_nvml_record *r = made(), *got = hf_xcalloc(1, sizeof(*got));
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_NVML_FRAME_HEAD + HF_NVML_FRAME_MAX);
	struct hf_error err = {0};

	r->devices_len = HF_NVML_DEVICES_MAX;
	r->events_len = HF_NVML_EVENTS_MAX;
	for (size_t i = 0; i < HF_NVML_DEVICES_MAX; i++) {
		struct hf_nvml_device *d = &r->devices[i];

		*d = r->devices[0];
		memset(d->uuid, 'u', sizeof(d->uuid) - 1);
		memset(d->serial, 's', sizeof(d->serial) - 1);
		memset(d->name, 'n', sizeof(d->name) - 1);
		d->mig_instances_len = HF_NVML_MIG_INSTANCES_MAX;
		for (size_t p = 0; p < HF_NVML_MIG_INSTANCES_MAX; p++) {
			memset(d->mig_instances[p].uuid, 'p', sizeof(d->mig_instances[p].uuid) - 1);
			memcpy(d->mig_instances[p].uuid, "MIG-", 4);
		}
		r->events[i] = r->events[0];
	}
	hf_nvml_record_write(r, &sb);
	assert_false(sb.full);
	assert_int_equal(hf_nvml_record_read(&sb, got, &err), 1);
	assert_memory_equal(got->devices, r->devices, sizeof(r->devices));
	free(r);
	free(got);
}

static void a_part_is_waited_for_and_no_byte_may_be_another(void **state)
{
	struct hf_nvml_record *r = made(), *got = hf_xcalloc(1, sizeof(*got));
	HF_AUTO_STRBUF whole = HF_STRBUF_INIT(SB_MAX);
	HF_AUTO_STRBUF in = HF_STRBUF_INIT(SB_MAX);
	struct hf_error err = {0};

	hf_nvml_record_write(r, &whole);
	for (size_t len = 0; len < whole.len; len++) {
		hf_strbuf_clear(&in);
		hf_strbuf_add(&in, whole.data, len);
		assert_int_equal(hf_nvml_record_read(&in, got, &err), 0);
		assert_int_equal(in.len, len);
	}
	for (size_t i = 0; i < whole.len; i++) {
		int rc;

		hf_strbuf_clear(&in);
		hf_strbuf_add(&in, whole.data, whole.len);
		in.data[i] ^= 1;
		rc = hf_nvml_record_read(&in, got, &err);
		/* A flipped bit in the length may make it larger: then the reader waits for more
		 * bytes. */
		assert_true(rc == HF_E_BAD_REQUEST || (rc == 0 && i >= 4 && i < 8));
	}
	free(r);
	free(got);
}

/* Puts a valid head before any payload, then reads the record. */
static int read_payload(const void *payload, size_t len)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(SB_MAX);
	struct hf_nvml_record *got = hf_xcalloc(1, sizeof(*got));
	uint64_t sum = hf_hash_bytes(payload, len);
	struct hf_error err = {0};
	int rc;

	hf_strbuf_add(&sb, "HFNV", 4);
	for (unsigned i = 0; i < 4; i++)
		hf_strbuf_addch(&sb, (char)(len >> (8 * i) & 255));
	for (unsigned i = 0; i < 8; i++)
		hf_strbuf_addch(&sb, (char)(sum >> (8 * i) & 255));
	hf_strbuf_add(&sb, payload, len);
	rc = hf_nvml_record_read(&sb, got, &err);
	free(got);
	return rc;
}

static void a_right_checksum_over_nonsense_is_nonsense(void **state)
{
	/* the smallest payload: kind, code, why, driver, library, firmware, count, devices, events */
	unsigned char least[] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	unsigned char more[sizeof(least) + 1] = {1};

	assert_int_equal(read_payload(least, sizeof(least)), 1);
	assert_int_equal(read_payload(more, sizeof(more)), HF_E_BAD_REQUEST);
	assert_int_equal(read_payload("", 0), HF_E_BAD_REQUEST);
	least[0] = 0;
	assert_int_equal(read_payload(least, sizeof(least)), HF_E_BAD_REQUEST);
	least[0] = 3;
	assert_int_equal(read_payload(least, sizeof(least)), HF_E_BAD_REQUEST);
	least[0] = 1;
	least[2] = 0x40; /* a code of 16384, too large */
	assert_int_equal(read_payload(least, sizeof(least)), HF_E_BAD_REQUEST);
	least[2] = 0;
	least[9] = 65; /* more devices than the limit */
	assert_int_equal(read_payload(least, sizeof(least)), HF_E_BAD_REQUEST);
	least[9] = 1; /* a device that is missing */
	assert_int_equal(read_payload(least, sizeof(least)), HF_E_BAD_REQUEST);
	least[9] = 0;
	least[3] = 200; /* the text is longer than the whole payload */
	assert_int_equal(read_payload(least, sizeof(least)), HF_E_BAD_REQUEST);
}

static void texts_are_printable_and_addresses_normal(void **state)
{
	static const char *const bad[] = {"0000:1A:00.0", "1a:00.0", "nonsense", "0000:1a:00.0 "};
	struct hf_nvml_record *r = made(), *got = hf_xcalloc(1, sizeof(*got));
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(SB_MAX);
	struct hf_error err = {0};

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		memset(r->devices[1].address, 0, sizeof(r->devices[1].address));
		snprintf(r->devices[1].address, sizeof(r->devices[1].address), "%s", bad[i]);
		hf_strbuf_clear(&sb);
		hf_nvml_record_write(r, &sb);
		assert_code(hf_nvml_record_read(&sb, got, &err), HF_E_BAD_REQUEST);
	}
	memset(r->devices[1].address, 0, sizeof(r->devices[1].address));
	r->devices[1].name[0] = '\n';
	hf_strbuf_clear(&sb);
	hf_nvml_record_write(r, &sb);
	assert_code(hf_nvml_record_read(&sb, got, &err), HF_E_BAD_REQUEST);
	free(r);
	free(got);
}

/* The name of a MIG instance must begin with "MIG-": with a free choice, a library could attribute
 * a device's holders to another device. */
static void an_instance_has_an_instances_name(void **state)
{
	static const char *const bad[] = {"", "GPU-0", "0000:1a:00.0", "MIG", "MIG-\n"};
	struct hf_nvml_record *r = made(), *got = hf_xcalloc(1, sizeof(*got));
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(SB_MAX);
	struct hf_error err = {0};

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		struct hf_nvml_mig_instance *mig = &r->devices[1].mig_instances[0];

		memset(mig->uuid, 0, sizeof(mig->uuid));
		snprintf(mig->uuid, sizeof(mig->uuid), "%s", bad[i]);
		hf_strbuf_clear(&sb);
		hf_nvml_record_write(r, &sb);
		assert_code(hf_nvml_record_read(&sb, got, &err), HF_E_BAD_REQUEST);
	}
	free(r);
	free(got);
}

static void a_record_reads_as_text(void **state)
{
	struct hf_nvml_record *r = made();
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(SB_MAX);

	snprintf(r->why, sizeof(r->why), "because");
	hf_nvml_record_render(r, &sb);
	assert_non_null(strstr(sb.data, "code: 0\nwhy: because\ndriver: 570.86.15\n"));
	assert_non_null(strstr(sb.data, "device 0000:1b:00.0\n  uuid: GPU-1\n"));
	assert_non_null(strstr(sb.data, "  code: 15\n  minor: not known (3)\n"));
	assert_non_null(strstr(sb.data, "event 0000:1b:00.0 type 0x8 data 79\n"));
	for (int f = 0; f < HF_NVML_FACTS; f++)
		assert_non_null(strstr(sb.data, hf_nvml_fact_name((enum hf_nvml_fact)f)));
	assert_string_equal(hf_nvml_fact_name(HF_NVML_FACTS), "?");
	assert_non_null(
		strstr(sb.data, "  MIG instance MIG-1: GPU instance 7, compute instance -1\n"));
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(the_largest_record_fits_its_frame),
		cmocka_unit_test(a_part_is_waited_for_and_no_byte_may_be_another),
		cmocka_unit_test(a_right_checksum_over_nonsense_is_nonsense),
		cmocka_unit_test(texts_are_printable_and_addresses_normal),
		cmocka_unit_test(an_instance_has_an_instances_name),
		cmocka_unit_test(a_record_reads_as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
