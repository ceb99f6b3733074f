/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Input: a pod, a service or a node as JSON. Reading from the text must give the same as reading
 * from a tree, with values within the limits on which the decision step relies. */

#include "api/node.h"
#include "api/pod.h"
#include "base/str.h"
#include "fuzz/fuzz.h"

#define ARENA_BYTES_MAX ((size_t)64 << 20)

static void check_pod(struct hf_doc *doc, struct hf_arena *arena, struct hf_pod *ret_pod)
{
	hf_pod_read(doc, NULL, arena, ret_pod);
	hf_assert(!ret_pod->tolerates_unreachable.set || ret_pod->tolerates_unreachable.value >= 0);
	hf_assert(ret_pod->stamped || ret_pod->generation == 0);
	hf_assert(ret_pod->news_at == HF_TIME_NONE);
	for (size_t i = 0; i < ret_pod->claims_len; i++)
		hf_assert(!hf_str_is_empty(ret_pod->claims[i]));
	for (size_t i = 0; i < ret_pod->containers_len; i++)
		hf_assert(ret_pod->containers[i].name != NULL &&
			  ret_pod->containers[i].restart_count >= 0);
	for (size_t i = 0; i < ret_pod->conditions_len; i++)
		hf_assert(ret_pod->conditions[i].type != NULL &&
			  ret_pod->conditions[i].status != NULL);
}

static bool same_node(const struct hf_node_facts *a, const struct hf_node_facts *b)
{
	return a->ready == b->ready && a->unreachable == b->unreachable &&
	       a->out_of_service == b->out_of_service && a->no_execute == b->no_execute &&
	       a->schedulable == b->schedulable && hf_streq(a->zone, b->zone);
}

static bool same_pod(const struct hf_pod *a, const struct hf_pod *b)
{
	return a->phase == b->phase && a->deletion_time == b->deletion_time &&
	       hf_streq(a->node, b->node) && a->claims_len == b->claims_len &&
	       a->containers_len == b->containers_len && a->conditions_len == b->conditions_len &&
	       a->finalizers_len == b->finalizers_len && a->forced == b->forced &&
	       a->tolerates_unreachable.set == b->tolerates_unreachable.set;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	HF_AUTO_DOC text = hf_doc_from_text((const char *)data, size);
	HF_AUTO_DOC tree = NULL;
	struct hf_node_facts node, again;
	struct hf_service_seen service;
	struct hf_pod pod, other;
	struct hf_error err;

	check_pod(text, arena, &pod);
	hf_service_read(text, NULL, arena, &service);
	hf_node_read(text, arena, &node);
	hf_assert(node.ready != HF_NODE_GONE && (node.zone == NULL || *node.zone != '\0'));
	hf_assert(!hf_doc_has_tree(text));
	if (hf_doc_parse((const char *)data, size, NULL, &tree, &err) != 0)
		return 0;
	check_pod(tree, arena, &other);
	hf_node_read(tree, arena, &again);
	hf_assert(same_pod(&pod, &other) && same_node(&node, &again));
	return 0;
}
