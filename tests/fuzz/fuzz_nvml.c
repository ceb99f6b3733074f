/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Input: bytes from the child process that loads NVIDIA's library. They are read as they are, and
 * as the payload of a record with correct length and checksum. An answer that is accepted is
 * within its limits, is the same after it is written and read again, and gives the agent only
 * valid samples.
 */

#include "base/mem.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "health/evidence.h"
#include "probes/nvml.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_MAX (HF_NVML_FRAME_HEAD + HF_NVML_FRAME_MAX)

static void check_text(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	hf_assert(len < size);
	for (size_t i = 0; i < len; i++)
		hf_assert(text[i] >= ' ' && text[i] <= '~');
}

static void on_news(HF_UNUSED void *arg, HF_UNUSED bool urgent)
{
}

static void check_parts(const struct hf_intake *intake, const struct hf_nvml_device *d)
{
	struct hf_mig_instance mig;

	for (size_t i = 0; i < d->mig_instances_len; i++) {
		hf_assert(hf_str_has_prefix(d->mig_instances[i].uuid, HF_MIG_PREFIX));
		if (d->address[0] == '\0')
			continue;
		hf_assert(hf_mig_instances_find(hf_intake_mig_instances(intake),
						d->mig_instances[i].uuid, &mig));
		hf_assert(mig.device[0] != '\0');
		hf_assert(mig.instance >= -1 && mig.instance <= HF_MIG_GPU_INSTANCE_MAX);
	}
}

static void check_sample(const struct hf_health_sample *s)
{
	hf_assert(s->supported && (unsigned)s->detector < HF_HEALTH_DETECTORS);
	hf_assert(s->device[0] != '\0' || s->detector == HF_HEALTH_DRIVER);
	hf_assert(s->detector != HF_HEALTH_CLOCK || s->clock.load_percent <= 100);
	hf_assert(s->detector != HF_HEALTH_THROTTLE || s->throttle.load_percent <= 100);
	hf_assert(s->detector != HF_HEALTH_DRIVER ||
		  (s->driver.fabric_waiting <= s->driver.fabric_asked &&
		   s->driver.fabric_asked <= HF_NVML_DEVICES_MAX && s->driver.fabric_state <= 3));
}

static void check_told(const struct hf_nvml_record *r)
{
	struct hf_loop *loop = hf_loop_create_virtual(0);
	struct hf_intake *intake =
		hf_intake_create(&(struct hf_intake_options){.loop = loop, .news = on_news});
	struct hf_health_input input = {0};

	hf_intake_count(intake, HF_COUNT_NVIDIA, 8);
	hf_nvml_report(intake, r);
	hf_intake_take(intake, &input);
	for (size_t i = 0; i < input.samples_len; i++)
		check_sample(&input.samples[i]);
	for (size_t i = 0; i < input.evidence_len; i++) {
		const struct hf_health_evidence *e = &input.evidence[i];

		hf_assert(e->code > 0 && e->code < 999 && e->device[0] != '\0');
		hf_assert(e->gpu_instance >= -1 && e->gpu_instance <= 64);
	}
	for (size_t i = 0; i < r->devices_len && r->code == HF_NVML_OK; i++)
		if (r->kind == HF_NVML_ROUND)
			check_parts(intake, &r->devices[i]);
	hf_intake_taken(intake);
	hf_intake_destroy(intake);
	hf_loop_destroy(loop);
}

static void check_record(const struct hf_nvml_record *r)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(BYTES_MAX);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT((size_t)1 << 20);
	struct hf_nvml_record *again = hf_xcalloc(1, sizeof(*again));
	struct hf_error err = {0};
	int rc;

	hf_assert(r->kind == HF_NVML_ROUND || r->kind == HF_NVML_NEWS);
	hf_assert(r->count >= -1);
	hf_assert(r->devices_len <= HF_NVML_DEVICES_MAX);
	check_text(r->why, sizeof(r->why));
	check_text(r->driver, sizeof(r->driver));
	for (size_t i = 0; i < r->devices_len; i++) {
		check_text(r->devices[i].address, sizeof(r->devices[i].address));
		check_text(r->devices[i].uuid, sizeof(r->devices[i].uuid));
		hf_assert(r->devices[i].mig_instances_len <= HF_NVML_MIG_INSTANCES_MAX);
	}
	hf_nvml_record_write(r, &sb);
	rc = hf_nvml_record_read(&sb, again, &err);
	hf_assert(rc == 1 && memcmp(r, again, sizeof(*r)) == 0);
	hf_nvml_record_render(r, &text);
	check_told(r);
	free(again);
}

static void read_all(struct hf_strbuf *in)
{
	struct hf_nvml_record *r = hf_xcalloc(1, sizeof(*r));
	struct hf_error err = {0};
	int rc;

	while ((rc = hf_nvml_record_read(in, r, &err)) == 1)
		check_record(r);
	hf_assert(rc == 0 || (rc == HF_E_BAD_REQUEST && err.text[0] != '\0'));
	free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	HF_AUTO_STRBUF in = HF_STRBUF_INIT(2 * BYTES_MAX);
	uint64_t sum = hf_hash_bytes(data, size);

	if (size > HF_NVML_FRAME_MAX)
		return 0;
	hf_strbuf_add(&in, data, size);
	read_all(&in);
	hf_strbuf_clear(&in);
	hf_strbuf_add(&in, "HFNV", 4);
	for (unsigned i = 0; i < 4; i++)
		hf_strbuf_addch(&in, (char)(size >> (8 * i) & 255));
	for (unsigned i = 0; i < 8; i++)
		hf_strbuf_addch(&in, (char)(sum >> (8 * i) & 255));
	hf_strbuf_add(&in, data, size);
	read_all(&in);
	return 0;
}
