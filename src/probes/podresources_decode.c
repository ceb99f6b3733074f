/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Decodes the few PodResources messages in protobuf's wire format. The known shape of the messages
 * limits the depth. Fields may come in any order. Unknown fields are skipped. If a text field is
 * repeated, the last one counts.
 */
#include "probes/podresources.h"

#include "base/str.h"
#include "base/vec.h"
#include "base/wire.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the arena that the texts of an answer leave free. The list of the answer's devices and
 * the list of their ids are allocated after the texts and need them. */
#define RESERVED_BYTES                                                                             \
	((size_t)HF_PODRESOURCES_DEVICES_MAX *                                                     \
		 (sizeof(struct hf_podresources_device) + sizeof(char *)) +                        \
	 4096)

struct reader {
	struct hf_arena *arena;
	struct hf_error *err;
	HF_VEC(struct hf_podresources_device) devices;
	size_t pods;
};

static int refuse_answer(struct reader *r, const char *what)
{
	return hf_error_set(r->err, HF_E_BAD_REQUEST, "PodResources: %s", what);
}

/* Reads the next field of a message. Returns 1, or 0 at the end of the message, or an error. */
static int next_field(struct reader *r, struct hf_wire *in, struct hf_wire_field *ret_field)
{
	if (in->at == in->end)
		return 0;
	switch (hf_wire_next(in, ret_field)) {
	case HF_WIRE_OK: return 1;
	case HF_WIRE_NO_FIELD: return refuse_answer(r, "a field is missing or malformed");
	default: return refuse_answer(r, "a field is cut off");
	}
}

/* The field has this number and contains bytes. */
static bool is_message(const struct hf_wire_field *f, uint32_t number)
{
	return f->number == number && f->type == HF_WIRE_BYTES;
}

/* Reads a name. Names go into messages, events and metrics, so only valid printable text may
 * pass. */
static int read_text(struct reader *r, const struct hf_wire_field *f, const char **ret_text)
{
	size_t len = (size_t)(f->bytes.end - f->bytes.at);
	const char *bytes = (const char *)f->bytes.at;

	if (len > HF_PODRESOURCES_TEXT_MAX)
		return refuse_answer(r, "a name is too long");
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)bytes[i] < ' ' || bytes[i] == 127)
			return refuse_answer(r, "a name contains control characters");
	if (!hf_utf8_valid(bytes, len))
		return refuse_answer(r, "a name is not UTF-8");
	if (len > 0 && hf_arena_left(r->arena) < RESERVED_BYTES + len)
		return hf_error_set(r->err, HF_E_TOO_LARGE, "PodResources: too many names");
	*ret_text = len > 0 ? hf_arena_strndup(r->arena, bytes, len) : "";
	return 0;
}

/* Finds the last text field with this number; "": the message has none. */
static int find_text(struct reader *r, struct hf_wire in, uint32_t number, const char **ret_text)
{
	struct hf_wire_field f, found = {.number = 0};
	int rc;

	while ((rc = next_field(r, &in, &f)) > 0)
		if (is_message(&f, number))
			found = f;
	*ret_text = "";
	if (rc < 0 || found.number == 0)
		return rc;
	return read_text(r, &found, ret_text);
}

static int push_device(struct reader *r, const struct hf_podresources_device *device)
{
	if (!HF_VEC_PUSH(&r->devices, *device))
		return hf_error_set(r->err, HF_E_TOO_LARGE, "PodResources: more than %d devices",
				    HF_PODRESOURCES_DEVICES_MAX);
	return 0;
}

/* Decodes a ContainerDevices. Field numbers: resource_name 1, device_ids 2, topology 3. */
static int container_devices(struct reader *r, struct hf_wire in,
			     const struct hf_podresources_device *holder)
{
	struct hf_podresources_device device = *holder;
	struct hf_wire_field f;
	int rc = find_text(r, in, 1, &device.resource);

	if (rc < 0)
		return rc;
	while ((rc = next_field(r, &in, &f)) > 0) {
		if (!is_message(&f, 2))
			continue;
		rc = read_text(r, &f, &device.id);
		if (rc == 0)
			rc = push_device(r, &device);
		if (rc < 0)
			return rc;
	}
	return rc;
}

/* Decodes a ClaimResource. Field numbers: cdi_devices 1 (its name 1), driver_name 2, pool_name 3,
 * device_name 4. */
static int claim_resource(struct reader *r, struct hf_wire in,
			  const struct hf_podresources_device *holder)
{
	struct hf_podresources_device device = *holder;
	struct hf_wire all = in;
	struct hf_wire_field f;
	int rc = find_text(r, all, 2, &device.resource);

	if (rc == 0)
		rc = find_text(r, all, 3, &device.pool);
	if (rc == 0)
		rc = find_text(r, all, 4, &device.id);
	if (rc < 0)
		return rc;
	while ((rc = next_field(r, &in, &f)) > 0) {
		if (!is_message(&f, 1) || device.cdi[0] != '\0')
			continue;
		rc = find_text(r, f.bytes, 1, &device.cdi);
		if (rc < 0)
			return rc;
	}
	return rc < 0 ? rc : push_device(r, &device);
}

/* Decodes a DynamicResource. Field numbers: claim_name 2, claim_namespace 3, claim_resources 4. */
static int dynamic_resource(struct reader *r, struct hf_wire in,
			    const struct hf_podresources_device *holder)
{
	struct hf_podresources_device device = *holder;
	struct hf_wire all = in;
	struct hf_wire_field f;
	int rc = find_text(r, all, 2, &device.claim);

	if (rc == 0)
		rc = find_text(r, all, 3, &device.claim_ns);
	if (rc < 0)
		return rc;
	while ((rc = next_field(r, &in, &f)) > 0) {
		if (!is_message(&f, 4))
			continue;
		rc = claim_resource(r, f.bytes, &device);
		if (rc < 0)
			return rc;
	}
	return rc;
}

/* Decodes a ContainerResources. Field numbers: name 1, devices 2, cpu_ids 3, memory 4,
 * dynamic_resources 5. */
static int read_container(struct reader *r, struct hf_wire in,
			  const struct hf_podresources_device *pod)
{
	struct hf_podresources_device holder = *pod;
	struct hf_wire_field f;
	int rc = find_text(r, in, 1, &holder.container);

	if (rc < 0)
		return rc;
	while ((rc = next_field(r, &in, &f)) > 0) {
		rc = 0;
		if (is_message(&f, 2))
			rc = container_devices(r, f.bytes, &holder);
		else if (is_message(&f, 5))
			rc = dynamic_resource(r, f.bytes, &holder);
		if (rc < 0)
			return rc;
	}
	return rc;
}

static const struct hf_podresources_device nobody = {
	.ns = "",
	.pod = "",
	.container = "",
	.resource = "",
	.id = "",
	.pool = "",
	.claim_ns = "",
	.claim = "",
	.cdi = "",
};

/* Decodes a PodResources. Field numbers: name 1, namespace 2, containers 3. */
static int pod_resources(struct reader *r, struct hf_wire in)
{
	struct hf_podresources_device holder = nobody;
	struct hf_wire_field f;
	int rc = find_text(r, in, 1, &holder.pod);

	r->pods++;
	if (rc == 0)
		rc = find_text(r, in, 2, &holder.ns);
	if (rc < 0)
		return rc;
	while ((rc = next_field(r, &in, &f)) > 0) {
		if (!is_message(&f, 3))
			continue;
		rc = read_container(r, f.bytes, &holder);
		if (rc < 0)
			return rc;
	}
	return rc;
}

/* Reads an answer. Its field 1 holds the pods, or the allocatable devices. */
static int read_answer(const void *bytes, size_t len, bool pods, struct reader *r,
		       struct hf_podresources *ret_found)
{
	struct hf_wire in = {bytes, (const unsigned char *)bytes + len};
	struct hf_podresources_device *copy;
	struct hf_wire_field f;
	int rc = 0;

	r->devices.len_max = HF_PODRESOURCES_DEVICES_MAX;
	if (len > HF_PODRESOURCES_BYTES_MAX)
		return hf_error_set(r->err, HF_E_TOO_LARGE, "PodResources: %zu bytes", len);
	while (len > 0 && (rc = next_field(r, &in, &f)) > 0) {
		rc = !is_message(&f, 1) ? 0
		     : pods             ? pod_resources(r, f.bytes)
					: container_devices(r, f.bytes, &nobody);
		if (rc < 0)
			break;
	}
	if (rc == 0) {
		copy = HF_ARENA_ARRAY(r->arena, struct hf_podresources_device, r->devices.len + 1);
		if (r->devices.len > 0)
			memcpy(copy, r->devices.items, r->devices.len * sizeof(*copy));
		*ret_found = (struct hf_podresources){
			.devices = copy, .devices_len = r->devices.len, .pods = r->pods};
	}
	HF_VEC_RELEASE(&r->devices);
	return rc;
}

int hf_podresources_decode_list(const void *bytes, size_t len, struct hf_arena *arena,
				struct hf_podresources *ret_found, struct hf_error *err)
{
	return read_answer(bytes, len, true, &(struct reader){.arena = arena, .err = err},
			   ret_found);
}

int hf_podresources_decode_get(const void *bytes, size_t len, struct hf_arena *arena,
			       struct hf_podresources *ret_found, struct hf_error *err)
{
	/* Field 1 holds one pod in an answer to Get, and all pods in an answer to List. */
	return hf_podresources_decode_list(bytes, len, arena, ret_found, err);
}

int hf_podresources_decode_allocatable(const void *bytes, size_t len, struct hf_arena *arena,
				       struct hf_podresources *ret_found, struct hf_error *err)
{
	return read_answer(bytes, len, false, &(struct reader){.arena = arena, .err = err},
			   ret_found);
}

/* ---- names of devices ------------------------------------------------------------------------------- */

/* Length of the device's name in an id; "GPU-…::3" is share 3 of a device. */
static size_t shared_len(const char *id)
{
	const char *at = strstr(id, "::");

	return at ? (size_t)(at - id) : strlen(id);
}

static int by_id(const void *left, const void *right)
{
	const char *a = *(const char *const *)left, *b = *(const char *const *)right;
	size_t a_len = shared_len(a), b_len = shared_len(b);
	int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

size_t hf_podresources_count(const struct hf_podresources *found, const char *resource,
			     struct hf_arena *arena)
{
	const char **ids = HF_ARENA_ARRAY(arena, const char *, found->devices_len + 1);
	size_t len = 0, count = 0;

	for (size_t i = 0; i < found->devices_len; i++)
		if (strcmp(found->devices[i].resource, resource) == 0)
			ids[len++] = found->devices[i].id;
	if (len > 0)
		qsort(ids, len, sizeof(*ids), by_id);
	for (size_t i = 0; i < len; i++)
		count += i == 0 || by_id(&ids[i - 1], &ids[i]) != 0;
	return count;
}

static bool is_number(const char *text_of_id, size_t len, int number)
{
	char *end;
	long value;

	if (number < 0 || len == 0 || len > 4 || strspn(text_of_id, "0123456789") < len)
		return false;
	value = strtol(text_of_id, &end, 10);
	return end == text_of_id + len && value == number;
}

bool hf_podresources_is(const struct hf_podresources_device *device,
			const struct hf_podresources_names *names)
{
	size_t len = shared_len(device->id);
	const char *id = device->id;

	if (len > 0 && len == strlen(names->uuid) && memcmp(id, names->uuid, len) == 0)
		return true;
	if (len > 0 && len == strlen(names->address) && strncasecmp(id, names->address, len) == 0)
		return true;
	/* An id that is only a number names no device: the order behind that index is unknown. */
	return device->claim[0] != '\0' && hf_str_has_prefix(id, "gpu-") &&
	       is_number(id + 4, len - 4, names->minor);
}

void hf_podresources_render(const struct hf_podresources *found, struct hf_strbuf *sb)
{
	hf_strbuf_addf(sb, "pods: %zu\n", found->pods);
	for (size_t i = 0; i < found->devices_len; i++) {
		const struct hf_podresources_device *d = &found->devices[i];

		if (d->pod[0] != '\0')
			hf_strbuf_addf(sb, "%s/%s %s: ", d->ns, d->pod, d->container);
		hf_strbuf_addf(sb, "%s %s", d->resource, d->id);
		if (d->claim[0] != '\0')
			hf_strbuf_addf(sb, " of pool '%s' by claim %s/%s, CDI '%s'", d->pool,
				       d->claim_ns, d->claim, d->cdi);
		hf_strbuf_addch(sb, '\n');
	}
}
