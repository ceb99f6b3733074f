/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Input: answers of a kubelet's PodResources API: gRPC's frames, status and messages. A list that
 * is accepted has printable texts within their limits, and is the same for the same bytes.
 */

#include "base/mem.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "http/grpc.h"
#include "probes/podresources.h"

#include <stdlib.h>
#include <string.h>

static void check_text(const char *text)
{
	size_t len = strlen(text);

	hf_assert(len <= HF_PODRESOURCES_TEXT_MAX && hf_utf8_valid(text, len));
	for (size_t i = 0; i < len; i++)
		hf_assert((unsigned char)text[i] >= ' ');
}

static void check(const struct hf_podresources *found, size_t size, struct hf_arena *arena)
{
	const struct hf_podresources_names names = {
		.uuid = "GPU-1", .address = "0000:1a:00.0", .minor = 1};

	hf_assert(found->devices_len <= HF_PODRESOURCES_DEVICES_MAX);
	/* A device or a pod needs at least two bytes of the message. */
	hf_assert(2 * found->devices_len <= size && 2 * found->pods <= size);
	for (size_t i = 0; i < found->devices_len; i++) {
		const struct hf_podresources_device *d = &found->devices[i];

		check_text(d->ns);
		check_text(d->pod);
		check_text(d->container);
		check_text(d->resource);
		check_text(d->id);
		check_text(d->pool);
		check_text(d->claim_ns);
		check_text(d->claim);
		check_text(d->cdi);
		(void)hf_podresources_is(d, &names);
	}
	if (found->devices_len > 0)
		hf_assert(hf_podresources_count(found, found->devices[0].resource, arena) >= 1);
}

static void decode(const void *bytes, size_t len)
{
	HF_AUTO_ARENA arena = hf_arena_create(HF_PODRESOURCES_ARENA_MAX);
	struct hf_podresources found = {0};
	struct hf_error err = {0};

	if (hf_podresources_decode_list(bytes, len, arena, &found, &err) == 0)
		check(&found, len, arena);
	else
		hf_assert(err.text[0] != '\0');
	hf_arena_reset(arena);
	if (hf_podresources_decode_allocatable(bytes, len, arena, &found, &err) == 0)
		check(&found, len, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	HF_AUTOFREE char *header = hf_xstrndup((const char *)data, size);
	const unsigned char *message = NULL;
	struct hf_error err = {0};
	size_t len = 0;
	char text[32];
	int status = hf_grpc_status_parse(header);

	hf_assert(status >= 0 && status <= HF_GRPC_STATUS_MAX);
	hf_assert(status == 0 || hf_grpc_status_code(status) < 0);
	hf_grpc_text_decode(header, text, sizeof(text));
	for (size_t i = 0; text[i]; i++)
		hf_assert(text[i] >= ' ' && text[i] <= '~');
	decode(data, size);
	if (hf_grpc_unframe(data, size, &message, &len, &err) == 0) {
		hf_assert(len + HF_GRPC_PREFIX_BYTES == size);
		decode(message, len);
	}
	return 0;
}
