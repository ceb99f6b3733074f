/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_NODE_H
#define HF_TESTS_HARNESS_NODE_H

/* A plane for tests of the kubelet: a store and a kubelet on a real loop, in a folder of its
 * own. */

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
	bool only_drains;         /* of the kubelet's options */
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
/* Opens a plane on disk, in an existing folder. testnode_close removes this folder too. */
void testnode_open_at(struct testnode *node, const char *dir);
/* Ends every pod and removes the folder. */
void testnode_close(struct testnode *node);
/* Set-up and tear-down functions of cmocka: each test gets a plane of its own. */
int testnode_setup(void **state, enum hf_kubelet_network network, bool on_disk);
int testnode_teardown(void **state);
/* Set-up functions for rows of a table of tests. `where` is the place of the store: memory or
 * disk. Pods have their own networks if the machine allows it; in a TESTNODE_HOST_TEST they use
 * the machine's network. */
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
/* testnode_drain begins to end every pod; testnode_wait_drained waits for the end of the drain. */
void testnode_drain(struct testnode *node, hf_time grace);
void testnode_wait_drained(struct testnode *node);
/* Start or stop the kubelet, for tests of restarts. The store stays, or is closed and opened again
 * if it is on disk. */
void testnode_start(struct testnode *node);
void testnode_stop(struct testnode *node);

/* Runs the loop until the condition holds. The test fails after a minute. */
void testnode_wait(struct testnode *node, bool (*until)(struct testnode *node, void *arg),
		   void *arg);
/* Runs the loop until the test's folder has the file. */
void testnode_wait_file(struct testnode *node, const char *name);
void testnode_wait_phase(struct testnode *node, const char *pod, const char *phase);
void testnode_wait_gone(struct testnode *node, const char *pod);
/* Runs the loop until the state of the pod's first container is `state` ("running", "waiting" or
 * "terminated"), with this reason if reason is not NULL. */
void testnode_wait_state(struct testnode *node, const char *pod, const char *state,
			 const char *reason);

/* Creates an object given as JSON, with ' in place of ". */
void testnode_create(struct testnode *node, const struct hf_resource *resource, const char *text,
		     ...) HF_PRINTF(3, 4);
/* Creates a pod that is bound to the node. spec: the members of its spec, without braces and
 * nodeName. */
void testnode_pod(struct testnode *node, const char *name, const char *spec, ...) HF_PRINTF(3, 4);
/* Creates a pod with one container "main", which runs the shell script. */
void testnode_script(struct testnode *node, const char *name, const char *policy,
		     const char *script);
/* Writes a file into the test's folder. */
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
/* Returns how many Events with the reason were recorded about the pod. */
int testnode_events(struct testnode *node, const char *pod, const char *reason);

struct testlog {
	struct hf_strbuf text;
	int code;
	char message[512];
	bool ended;
	struct hf_log_stream *stream;
};
/* Reads a log to its end. options: the function sets ns and pod. */
void testnode_logs(struct testnode *node, const char *pod, struct hf_log_options options,
		   struct testlog *log);
void testlog_start(struct testnode *node, const char *pod, struct hf_log_options options,
		   struct testlog *log);
void testlog_release(struct testlog *log);
/* Asserts that the whole output of the pod's only container is `expected`. */
void testnode_assert_output(struct testnode *node, const char *pod, const char *expected);

#endif
