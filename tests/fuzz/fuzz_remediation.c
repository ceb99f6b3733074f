/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Remediation objects from hostile writers. An object that can be read stays the same when its status
 * is written and read again; the intent of an act in particular is never lost. */

#include "api/remediation.h"
#include "base/str.h"
#include "fuzz/fuzz.h"

#include <string.h>

#define ARENA_BYTES_MAX ((size_t)16 << 20)

static void check_same(const struct hf_remediation *a, const struct hf_remediation *b)
{
	const struct hf_remediation_act *one = &a->status.act, *two = &b->status.act;

	hf_assert(hf_streq(a->spec.node, b->spec.node) && hf_streq(a->spec.nonce, b->spec.nonce));
	hf_assert(a->spec.devices.len == b->spec.devices.len);
	/* The writer has microseconds. */
	hf_assert((one->started_at == HF_TIME_NONE) == (two->started_at == HF_TIME_NONE));
	hf_assert((one->ended_at == HF_TIME_NONE) == (two->ended_at == HF_TIME_NONE));
	hf_assert(one->has_exit_code == two->has_exit_code && one->exit_code == two->exit_code);
	hf_assert(one->holders.len == two->holders.len);
	hf_assert(a->status.conditions.len == b->status.conditions.len);
	hf_assert((a->status.approval.at == HF_TIME_NONE) ==
		  (b->status.approval.at == HF_TIME_NONE));
	hf_assert((a->status.proof.at == HF_TIME_NONE) == (b->status.proof.at == HF_TIME_NONE));
	hf_assert(hf_streq(hf_str_or(a->status.phase, ""), hf_str_or(b->status.phase, "")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	HF_AUTO_DOC doc = hf_doc_from_text((const char *)data, size);
	HF_AUTO_DOC written = NULL;
	struct hf_json *object, *patch;
	struct hf_remediation got, again;
	struct hf_error err;
	int rc;

	if (hf_remediation_read(doc, arena, &got, &err) != 0)
		return 0;
	hf_assert(strlen(got.spec.nonce) == HF_REMEDIATION_NONCE_LEN && *got.spec.node != '\0');
	hf_assert(got.spec.attempt >= 1);
	object = hf_remediation_object(&got.spec);
	patch = hf_remediation_status_patch(got.resource_version, &got.status);
	hf_json_set(object, "status", hf_json_copy(hf_json_get(patch, "status")));
	hf_json_unref(patch);
	written = hf_doc_from_json(object);
	rc = hf_remediation_read(written, arena, &again, &err);
	hf_assert(rc == 0);
	check_same(&got, &again);
	return 0;
}
