/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_FACTS_TEST_H
#define HF_OPERATOR_FACTS_TEST_H

#include "operator/script_test.h"

#include <stdio.h>
#include <string.h>

/* One job with one pod on node "a", for tests of the facts that a step gets about nodes. */

#define N(name) cmocka_unit_test_setup_teardown(name, setup_with_nodes, teardown)

static inline struct hf_doc *node_doc(const char *name, int version, const char *ready,
				      const char *more)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"%s\",\"uid\":\"uid-%s\",\"resourceVersion\":\"%d\","
		 "\"labels\":{\"topology.kubernetes.io/zone\":\"z\"}},\"spec\":{%s},\"status\":{"
		 "\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
		 name, name, version, more, ready);
	return hf_doc_from_text(text, strlen(text));
}

/* A pod of the job on a node; its container has the given state. */
static inline struct hf_doc *bound_pod(const char *name, int version, const char *node,
				       const char *status)
{
	char more[TEXT_MAX], uid[64];

	snprintf(more, sizeof(more), "},\"spec\":{\"nodeName\":\"%s\"},\"status\":{%s", node,
		 status);
	snprintf(uid, sizeof(uid), "uid-%s", name);
	return pod_doc(name, uid, version, "u-1", more);
}

#define RUNNING                                                                                    \
	"\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"pytorch\",\"state\":{"           \
	"\"running\":{\"startedAt\":\"2026-01-01T00:00:00Z\"}}}]"

/* Start with a job that has a single pod, on node a. */
static inline void start_on_a(struct bench *bench, struct hf_doc *node)
{
	if (node != NULL)
		bench->nodes[bench->n_nodes++] = node;
	start(bench);
	fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED,
		   bound_pod("ddp-worker-0", 110, "a", RUNNING));
	turn_for(bench, HF_SECOND);
}

static inline void step_again(struct bench *bench)
{
	static int version = 1000;
	int steps = brain.steps;

	fake_event(watch_of(bench, "pytorchjobs"), HF_EVENT_MODIFIED,
		   job_doc("ddp", "u-1", version++, ""));
	turn(bench);
	assert_true(brain.steps > steps);
}

static inline void node_becomes(struct bench *bench, int version, const char *ready,
				const char *more)
{
	fake_event(watch_of(bench, "nodes"), HF_EVENT_MODIFIED,
		   node_doc("a", version, ready, more));
	turn_for(bench, 100 * HF_MS);
}

#endif
