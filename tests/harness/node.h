/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_NODE_H
#define HF_TESTS_HARNESS_NODE_H

/* For tests of the kubelet: a plane of store and kubelet on a real loop, in a folder of its own. */

#include "harness/test.h"

#include "kubelet/kubelet.h"
#include "memstore/memstore.h"

struct testnode {
	char dir[64];
	struct hf_loop *loop;
	struct hf_memstore *memstore;
	struct hf_kubelet *kubelet;
	struct hf_kubelet_facts facts;
	enum hf_kubelet_network network;
	const char *gpus, *sysfs; /* of the kubelet's options */
	bool on_disk;
	bool ready, drained;
	char notice[1024];
	struct hf_memstore_observer observer;
	/* What is waited for. */
	bool (*until)(struct testnode *node, void *arg);
	void *until_arg;
	struct hf_timer *guard, *tick;
};

void testnode_open(struct testnode *node, enum hf_kubelet_network network, bool on_disk);
/* In a folder that is there, on disk; it is removed in the end all the same. */
void testnode_open_at(struct testnode *node, const char *dir);
/* Ends every pod and removes the folder. */
void testnode_close(struct testnode *node);
/* A node for each test, as cmocka has it. */
int testnode_setup(void **state, enum hf_kubelet_network network, bool on_disk);
int testnode_teardown(void **state);
/* Rows of a table of tests. The pods have networks of their own where the machine allows it; in a test of
 * TESTNODE_HOST_TEST they have the machine's. where: memory or disk, for the store. */
int testnode_setup_memory(void **state);
int testnode_setup_memory_host(void **state);
int testnode_setup_disk(void **state);
int testnode_setup_disk_host(void **state);
#define TESTNODE_TEST(name, where)                                                                 \
	cmocka_unit_test_setup_teardown(name, testnode_setup_##where, testnode_teardown)
#define TESTNODE_HOST_TEST(name, where)                                                            \
	{                                                                                          \
#name " (no namespaces)", name, testnode_setup_##where##_host, testnode_teardown,  \
			NULL                                                                       \
	}
/* Begins to end every pod; waits until the drain is over. */
void testnode_drain(struct testnode *node, hf_time grace);
void testnode_wait_drained(struct testnode *node);
/* The parts alone, for restarts: the store stays (on_disk: is opened again). */
void testnode_start(struct testnode *node);
void testnode_stop(struct testnode *node);

/* Run the loop until the condition holds; the test fails after a minute. */
void testnode_wait(struct testnode *node, bool (*until)(struct testnode *node, void *arg),
		   void *arg);
/* ... until the folder of the test has the file. */
void testnode_wait_file(struct testnode *node, const char *name);
void testnode_wait_phase(struct testnode *node, const char *pod, const char *phase);
void testnode_wait_gone(struct testnode *node, const char *pod);
/* ... until the state of the pod's first container is that ("running", "waiting",
 * "terminated"), with that reason unless NULL. */
void testnode_wait_state(struct testnode *node, const char *pod, const char *state,
			 const char *reason);

/* Bodies are JSON with ' for ". */
void testnode_create(struct testnode *node, const struct hf_resource *resource, const char *text,
		     ...) HF_PRINTF(3, 4);
/* A pod "NAME" bound to the node: its spec but for nodeName, without braces. */
void testnode_pod(struct testnode *node, const char *name, const char *spec, ...) HF_PRINTF(3, 4);
/* A pod whose one container "main" runs the shell script. */
void testnode_script(struct testnode *node, const char *name, const char *policy,
		     const char *script);
/* A file in the folder of the test. */
void testnode_file(struct testnode *node, const char *name, const char *text);
bool testnode_has_file(const struct testnode *node, const char *name);
void testnode_assert_file(const struct testnode *node, const char *name, const char *expected);
void testnode_delete(struct testnode *node, const char *pod, int64_t grace_s);
const struct hf_json *testnode_get(struct testnode *node, const char *pod); /* NULL: gone */
const struct hf_json *testnode_status(struct testnode *node, const char *pod);
/* status.containerStatuses[i], or of the init containers. */
const struct hf_json *testnode_container(struct testnode *node, const char *pod, size_t i,
					 bool init);
const char *testnode_condition(struct testnode *node, const char *pod, const char *type);
/* How often an Event with the reason was made for the pod. */
int testnode_events(struct testnode *node, const char *pod, const char *reason);

struct testlog {
	struct hf_strbuf text;
	int code;
	char message[512];
	bool ended;
	struct hf_log_stream *stream;
};
/* Read to the end.  options: ns and pod are filled in. */
void testnode_logs(struct testnode *node, const char *pod, struct hf_log_options options,
		   struct testlog *log);
void testlog_start(struct testnode *node, const char *pod, struct hf_log_options options,
		   struct testlog *log);
void testlog_release(struct testlog *log);
/* The whole output of the pod's only container. */
void testnode_assert_output(struct testnode *node, const char *pod, const char *expected);

#endif
