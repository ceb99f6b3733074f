/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Input: lines of a letter and a JSON text: requests of clients to a small plane with one pod, one
 * job and one config map. Names and UIDs of objects must not change, stored objects must be
 * readable, and an undone write must leave no trace.
 */

#include "base/mem.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "memstore/memstore.h"

#include <stdlib.h>
#include <string.h>

#define LINES_MAX 16

static void counted(void *arg, void *bytes, size_t len)
{
	static unsigned char n;
	unsigned char *out = bytes;

	for (size_t i = 0; i < len; i++)
		out[i] = ++n;
}

static const struct {
	const struct hf_resource *resource;
	const char *text;
} objects[] = {
	{&hf_pods,
	 "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"o\",\"finalizers\":"
	 "[\"a.b/c\"]},\"spec\":{\"containers\":[{\"name\":\"c\",\"env\":[{\"name\":\"E\"}]}]}}"},
	{&hf_pytorchjobs,
	 "{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"metadata\":{"
	 "\"name\":\"o\"},\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{\"replicas\":1}}}}"},
	{&hf_configmaps,
	 "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"o\"},"
	 "\"data\":{\"k\":\"v\"}}"},
};

static void apply(struct hf_memstore *memstore, struct hf_request *request, const char *text,
		  size_t len)
{
	HF_AUTO_RESULT result = {0};
	HF_AUTO_DOC body = hf_doc_from_text(text, len);

	request->body = body;
	hf_memstore_apply(memstore, request, &result);
	hf_assert(result.code == 0 || result.err.text[0]);
}

/* Performs the request of one line. The letter gives the kind of object, and then the action. */
static void one_line(struct hf_memstore *memstore, const char *line, size_t len)
{
	unsigned letter = (unsigned char)line[0];
	size_t kind = letter % HF_ARRAY_LEN(objects), what = letter / HF_ARRAY_LEN(objects) % 9;
	const struct hf_resource *resource = objects[kind].resource;
	struct hf_request request = {
		.resource = resource,
		.ns = "default",
		.name = "o",
		.grace_seconds = HF_GRACE_DEFAULT,
		.verb = what < 6    ? HF_VERB_PATCH
			: what == 6 ? HF_VERB_UPDATE
				    : HF_VERB_CREATE,
		.patch_type = what % 3 == 0   ? HF_PATCH_MERGE
			      : what % 3 == 1 ? HF_PATCH_JSON
					      : HF_PATCH_STRATEGIC,
		.subresource = what == 3 || what == 4 ? "status"
			       : what == 5            ? "scale"
						      : NULL,
		.dry_run = letter & 0x80,
	};
	HF_AUTO_DOC before = hf_doc_ref(hf_memstore_peek(memstore, resource, "default", "o"));

	if (what == 5)
		request.patch_type = HF_PATCH_MERGE;
	if (request.verb == HF_VERB_CREATE)
		request.name = NULL;
	if (what == 8)
		request.verb = HF_VERB_DELETE, request.name = "o";
	apply(memstore, &request, line + 1, len - 1);

	struct hf_doc *after = hf_memstore_peek(memstore, resource, "default", "o");
	if (before && after && what < 7) {
		hf_assert(hf_streq(hf_doc_uid(before), hf_doc_uid(after)));
		hf_assert(hf_streq(hf_doc_name(after), "o"));
		hf_assert(hf_streq(hf_doc_namespace(after), "default"));
		hf_assert(!request.dry_run || before == after);
	}
}

static void check_readable(struct hf_memstore *memstore, const struct hf_resource *resource)
{
	struct hf_doc *doc = hf_memstore_peek(memstore, resource, "default", "o");
	HF_AUTO_DOC copy = NULL;
	size_t len;

	if (!doc)
		return;
	const char *text = hf_doc_text(doc, &len);
	const struct hf_json_limits limits = {.bytes_max = len + 1};
	hf_assert(hf_doc_parse(text, len, &limits, &copy, NULL) == 0);
	hf_assert(hf_json_equal(hf_doc_json(doc), hf_doc_json(copy)));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hf_loop *loop = hf_loop_create_virtual(1790000000 * HF_SECOND);
	const struct hf_memstore_options options = {.random = counted, .object_bytes_max = 65536};
	struct hf_memstore *memstore = NULL;
	const char *at = (const char *)bytes, *end = at + len;

	hf_assert(hf_memstore_create(loop, &options, &memstore, NULL) == 0);
	for (size_t i = 0; i < HF_ARRAY_LEN(objects); i++) {
		struct hf_request request = {
			.verb = HF_VERB_CREATE, .resource = objects[i].resource, .ns = "default"};
		apply(memstore, &request, objects[i].text, strlen(objects[i].text));
	}
	for (int n = 0; at < end && n < LINES_MAX; n++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t line = newline ? (size_t)(newline - at) : (size_t)(end - at);
		if (line > 1)
			one_line(memstore, at, line);
		at += line + 1;
	}
	hf_assert(hf_memstore_flush(memstore, NULL) == 0);
	for (size_t i = 0; i < HF_ARRAY_LEN(objects); i++)
		check_readable(memstore, objects[i].resource);
	hf_loop_run_ready(loop);
	hf_memstore_destroy(memstore);
	hf_loop_destroy(loop);
	return 0;
}
