/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The binary format of a record that the child sends to the agent, in one description for writing
 * and reading, and the record as text for people. Invariant: the reader turns any bytes into a
 * checked record or an error.
 */
#include "probes/nvml_record.h"

#include "base/str.h"
#include "health/evidence.h"
#include "probes/mig_instances.h"

#include <string.h>

static const char magic[4] = {'H', 'F', 'N', 'V'};

static const char *const fact_names[HF_NVML_FACTS] = {
	[HF_NVML_MINOR] = "minor",
	[HF_NVML_TEMPERATURE_C] = "temperature_c",
	[HF_NVML_POWER_MW] = "power_mw",
	[HF_NVML_POWER_LIMIT_MW] = "power_limit_mw",
	[HF_NVML_SM_MHZ] = "sm_mhz",
	[HF_NVML_LOAD_PERCENT] = "load_percent",
	[HF_NVML_THROTTLE_REASONS] = "throttle_reasons",
	[HF_NVML_ECC_ON] = "ecc_on",
	[HF_NVML_ECC_CORRECTED] = "ecc_corrected",
	[HF_NVML_ECC_UNCORRECTED] = "ecc_uncorrected",
	[HF_NVML_REMAPPED_CORRECTED] = "remapped_corrected",
	[HF_NVML_REMAPPED_UNCORRECTED] = "remapped_uncorrected",
	[HF_NVML_REMAP_PENDING] = "remap_pending",
	[HF_NVML_REMAP_FAILED] = "remap_failed",
	[HF_NVML_RETIRE_PENDING] = "retire_pending",
	[HF_NVML_PCIE_GENERATION] = "pcie_generation",
	[HF_NVML_PCIE_GENERATION_MAX] = "pcie_generation_max",
	[HF_NVML_PCIE_WIDTH] = "pcie_width",
	[HF_NVML_PCIE_WIDTH_MAX] = "pcie_width_max",
	[HF_NVML_PCIE_REPLAYS] = "pcie_replays",
	[HF_NVML_RECOVERY_ACTION] = "recovery_action",
	[HF_NVML_NVLINKS] = "nvlinks",
	[HF_NVML_MIG_ON] = "mig_on",
	[HF_NVML_PROCESSES] = "processes",
	[HF_NVML_FABRIC_STATE] = "fabric_state",
	[HF_NVML_FABRIC_STATUS] = "fabric_status",
	[HF_NVML_FABRIC_HEALTH] = "fabric_health",
};

const char *hf_nvml_fact_name(enum hf_nvml_fact fact)
{
	return (unsigned)fact < HF_NVML_FACTS ? fact_names[fact] : "?";
}

/* The code means that the device does not work ("Unknown error" is one such code). 1 and 9 describe
 * the library itself, 4 and 17 forbid access (control group), and the others concern the
 * question. */
static bool is_failure(int code)
{
	return code == HF_NVML_NO_POWER || code == HF_NVML_TIMEOUT ||
	       code == HF_NVML_NO_INTERRUPT || code == HF_NVML_UNKNOWN;
}

/* The driver knows the fact, or the bus does, so an answer does not show that the device works. */
static bool is_known_without(enum hf_nvml_fact fact)
{
	return fact == HF_NVML_MINOR || fact >= HF_NVML_FABRIC_STATE ||
	       (fact >= HF_NVML_PCIE_GENERATION && fact <= HF_NVML_PCIE_WIDTH_MAX);
}

int hf_nvml_failure(const struct hf_nvml_device *device)
{
	int failure = HF_NVML_OK;

	if (device->code != HF_NVML_OK)
		return is_failure(device->code) ? device->code : HF_NVML_OK;
	for (int i = 0; i < HF_NVML_FACTS; i++) {
		int code = device->codes[i];

		if (is_known_without((enum hf_nvml_fact)i))
			continue;
		if (code == HF_NVML_OK)
			return HF_NVML_OK;
		if (failure == HF_NVML_OK && is_failure(code))
			failure = code;
	}
	return failure;
}

/*
 * One description of the layout for writing and reading. Numbers are little-endian. A text is a
 * byte with its length, and its bytes. After the first error all further calls do nothing.
 */
struct codec {
	struct hf_strbuf *out; /* writing; NULL: reading */
	const unsigned char *at, *end;
	bool bad;
};

static void code_bytes(struct codec *c, uint64_t *value, unsigned bytes, uint64_t max)
{
	uint64_t v = 0;

	if (c->out) {
		for (unsigned i = 0; i < bytes; i++)
			hf_strbuf_addch(c->out, (char)(*value >> (8 * i) & 255));
		return;
	}
	if (c->bad || (size_t)(c->end - c->at) < bytes) {
		c->bad = true;
		return;
	}
	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)*c->at++ << (8 * i);
	if (v > max)
		c->bad = true;
	else
		*value = v;
}

static void code_number(struct codec *c, uint64_t *value)
{
	code_bytes(c, value, 8, UINT64_MAX);
}

static void code_result(struct codec *c, int32_t *value)
{
	uint64_t v = (uint64_t)*value;

	code_bytes(c, &v, 2, HF_NVML_CODE_MAX);
	*value = (int32_t)v;
}

static void code_length(struct codec *c, size_t *len, size_t max)
{
	uint64_t v = *len;

	code_bytes(c, &v, 2, max);
	*len = (size_t)v;
}

static void code_text(struct codec *c, char *bytes, size_t size)
{
	uint64_t len = c->out ? strnlen(bytes, size) : 0;

	code_bytes(c, &len, 1, size - 1);
	if (c->out) {
		hf_strbuf_add(c->out, bytes, (size_t)len);
		return;
	}
	if (c->bad || (uint64_t)(c->end - c->at) < len) {
		c->bad = true;
		return;
	}
	for (uint64_t i = 0; i < len; i++)
		c->bad = c->bad || c->at[i] < ' ' || c->at[i] > '~';
	memset(bytes, 0, size);
	memcpy(bytes, c->at, (size_t)len);
	c->at += len;
}

/* Reads a PCI address. The brain identifies devices by it, so any other form than the normal one is
 * an error. */
static void code_address(struct codec *c, char bytes[HF_HEALTH_DEVICE_MAX])
{
	char normal[HF_HEALTH_DEVICE_MAX];

	code_text(c, bytes, HF_HEALTH_DEVICE_MAX);
	if (c->out || c->bad || bytes[0] == '\0')
		return;
	if (!hf_health_pci_normalize(bytes, strlen(bytes), normal) || strcmp(normal, bytes) != 0)
		c->bad = true;
}

/* Reads a MIG instance. Its name must begin like one: it must not be the name of another device. */
static void code_mig_instance(struct codec *c, struct hf_nvml_mig_instance *p)
{
	uint64_t gpu = p->gpu_instance, compute = p->compute_instance;

	code_text(c, p->uuid, sizeof(p->uuid));
	code_bytes(c, &gpu, 4, UINT32_MAX);
	code_bytes(c, &compute, 4, UINT32_MAX);
	p->gpu_instance = (uint32_t)gpu;
	p->compute_instance = (uint32_t)compute;
	if (!c->out && !hf_str_has_prefix(p->uuid, HF_MIG_PREFIX))
		c->bad = true;
}

static void code_device(struct codec *c, struct hf_nvml_device *d)
{
	code_address(c, d->address);
	code_text(c, d->uuid, sizeof(d->uuid));
	code_text(c, d->serial, sizeof(d->serial));
	code_text(c, d->name, sizeof(d->name));
	code_result(c, &d->code);
	for (int i = 0; i < HF_NVML_FACTS; i++) {
		int32_t fact_code = d->codes[i];

		code_result(c, &fact_code);
		d->codes[i] = (uint16_t)fact_code;
		code_number(c, &d->values[i]);
	}
	code_length(c, &d->mig_instances_len, HF_NVML_MIG_INSTANCES_MAX);
	for (size_t i = 0; i < d->mig_instances_len && !c->bad; i++)
		code_mig_instance(c, &d->mig_instances[i]);
}

static void code_event(struct codec *c, struct hf_nvml_event *e)
{
	uint64_t gpu = e->gpu_instance, compute = e->compute_instance;

	code_address(c, e->address);
	code_number(c, &e->type);
	code_number(c, &e->data);
	code_bytes(c, &gpu, 4, UINT32_MAX);
	code_bytes(c, &compute, 4, UINT32_MAX);
	e->gpu_instance = (uint32_t)gpu;
	e->compute_instance = (uint32_t)compute;
}

static void code_record(struct codec *c, struct hf_nvml_record *r)
{
	uint64_t kind = r->kind, count = (uint64_t)((int64_t)r->count + 1);

	code_bytes(c, &kind, 1, HF_NVML_NEWS);
	c->bad = c->bad || kind == 0;
	r->kind = kind == HF_NVML_NEWS ? HF_NVML_NEWS : HF_NVML_ROUND;
	code_result(c, &r->code);
	code_text(c, r->why, sizeof(r->why));
	code_text(c, r->driver, sizeof(r->driver));
	code_text(c, r->library, sizeof(r->library));
	code_text(c, r->firmware, sizeof(r->firmware));
	code_bytes(c, &count, 2, UINT16_MAX);
	r->count = (int32_t)count - 1;
	code_length(c, &r->devices_len, HF_NVML_DEVICES_MAX);
	for (size_t i = 0; i < r->devices_len && !c->bad; i++)
		code_device(c, &r->devices[i]);
	code_length(c, &r->events_len, HF_NVML_EVENTS_MAX);
	for (size_t i = 0; i < r->events_len && !c->bad; i++)
		code_event(c, &r->events[i]);
}

static uint64_t get_number(const char *bytes, unsigned len)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < len; i++)
		v |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
	return v;
}

static void put_number(char *bytes, unsigned len, uint64_t v)
{
	for (unsigned i = 0; i < len; i++)
		bytes[i] = (char)(v >> (8 * i) & 255);
}

void hf_nvml_record_write(const struct hf_nvml_record *r, struct hf_strbuf *sb)
{
	char head[HF_NVML_FRAME_HEAD] = {0};
	size_t start = sb->len, len;
	struct codec c = {.out = sb};

	hf_assert(r->devices_len <= HF_NVML_DEVICES_MAX && r->events_len <= HF_NVML_EVENTS_MAX);
	hf_strbuf_add(sb, head, sizeof(head));
	/* The writing codec changes nothing. */
	code_record(&c, (struct hf_nvml_record *)(uintptr_t)r);
	len = sb->len - start - HF_NVML_FRAME_HEAD;
	hf_assert(!sb->full && len <= HF_NVML_FRAME_MAX);
	memcpy(head, magic, sizeof(magic));
	put_number(head + 4, 4, len);
	put_number(head + 8, 8, hf_hash_bytes(sb->data + start + HF_NVML_FRAME_HEAD, len));
	memcpy(sb->data + start, head, sizeof(head));
}

int hf_nvml_record_read(struct hf_strbuf *in, struct hf_nvml_record *ret_record,
			struct hf_error *err)
{
	struct codec c = {.out = NULL};
	uint64_t len;

	if (memcmp(in->data, magic, in->len < sizeof(magic) ? in->len : sizeof(magic)) != 0)
		return hf_error_set(err, HF_E_BAD_REQUEST,
				    "the child's output does not begin with a record");
	if (in->len < HF_NVML_FRAME_HEAD)
		return 0;
	len = get_number(in->data + 4, 4);
	if (len > HF_NVML_FRAME_MAX)
		return hf_error_set(err, HF_E_BAD_REQUEST, "a record of %llu bytes",
				    (unsigned long long)len);
	if (in->len < HF_NVML_FRAME_HEAD + len)
		return 0;
	if (hf_hash_bytes(in->data + HF_NVML_FRAME_HEAD, len) != get_number(in->data + 8, 8))
		return hf_error_set(err, HF_E_BAD_REQUEST,
				    "the child sent a record with a wrong checksum");
	memset(ret_record, 0, sizeof(*ret_record));
	c.at = (const unsigned char *)in->data + HF_NVML_FRAME_HEAD;
	c.end = c.at + len;
	code_record(&c, ret_record);
	if (c.bad || c.at != c.end) {
		memset(ret_record, 0, sizeof(*ret_record));
		return hf_error_set(err, HF_E_BAD_REQUEST, "a malformed record");
	}
	hf_strbuf_consume(in, HF_NVML_FRAME_HEAD + len);
	return 1;
}

/* ---- a record as text for people -------------------------------------------------------------------- */

static void render_device(const struct hf_nvml_device *d, struct hf_strbuf *sb)
{
	hf_strbuf_addf(sb, "device %s\n  uuid: %s\n  serial: %s\n  name: %s\n  code: %d\n",
		       hf_str_or(d->address, "?"), d->uuid, d->serial, d->name, d->code);
	for (int i = 0; i < HF_NVML_FACTS; i++) {
		hf_strbuf_addf(sb, "  %s: ", fact_names[i]);
		if (d->codes[i] != 0)
			hf_strbuf_addf(sb, "not known (%d)\n", d->codes[i]);
		else if (i == HF_NVML_THROTTLE_REASONS || i == HF_NVML_NVLINKS ||
			 i == HF_NVML_FABRIC_HEALTH)
			hf_strbuf_addf(sb, "0x%llx\n", (unsigned long long)d->values[i]);
		else
			hf_strbuf_addf(sb, "%llu\n", (unsigned long long)d->values[i]);
	}
	for (size_t i = 0; i < d->mig_instances_len; i++)
		hf_strbuf_addf(sb, "  MIG instance %s: GPU instance %d, compute instance %d\n",
			       d->mig_instances[i].uuid, (int)d->mig_instances[i].gpu_instance,
			       (int)d->mig_instances[i].compute_instance);
}

void hf_nvml_record_render(const struct hf_nvml_record *r, struct hf_strbuf *sb)
{
	hf_strbuf_addf(sb, "code: %d\n", r->code);
	if (r->why[0] != '\0')
		hf_strbuf_addf(sb, "why: %s\n", r->why);
	hf_strbuf_addf(sb, "driver: %s\nlibrary: %s\nfirmware: %s\ncount: %d\n", r->driver,
		       r->library, r->firmware, r->count);
	for (size_t i = 0; i < r->devices_len; i++)
		render_device(&r->devices[i], sb);
	for (size_t i = 0; i < r->events_len; i++) {
		const struct hf_nvml_event *e = &r->events[i];

		hf_strbuf_addf(sb, "event %s type 0x%llx data %llu\n", hf_str_or(e->address, "?"),
			       (unsigned long long)e->type, (unsigned long long)e->data);
	}
}
