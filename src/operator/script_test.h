/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_SCRIPT_TEST_H
#define HF_OPERATOR_SCRIPT_TEST_H

#include "harness/fake_store.h"
#include "harness/test.h"
#include "operator/operator.h"

#include "base/str.h"
#include "framework/framework.h"

/*
 * A bench on which plans are performed.  The step is replaced by a script: the hf_job_step of
 * script_test.c is linked instead of core's.  The store is replaced by one that answers what the
 * test says.
 */
#define TEXT_MAX 4096
#define JOB_TIME (1700000000 * HF_SECOND)
#define SEEN_MAX 8

/* The kinds of the bench.  Most tests need only one kind, and answer each request themselves. */
extern const struct hf_framework *const script_frameworks[];

struct bench {
	struct hf_loop *loop;
	struct fake_store *store;
	struct hf_operator *op;
	struct hf_metrics *metrics;
	int passes, last_code;
	bool last_gone;
	int stopped;
	char problem[TEXT_MAX];
	char told[64]; /* the key that was last told as seen */
	int n_told;
	/* the nodes that the first list contains; the bench takes them over */
	struct hf_doc *nodes[SEEN_MAX];
	size_t n_nodes;
	struct hf_doc *health; /* likewise of DeviceHealths; NULL: none */
};

struct script {
	struct hf_plan plan; /* the plan of the next steps; its status is copied from the view */
	hf_time start_time;  /* startTime of the next status; NONE: leave the status as it is */
	int64_t generation;  /* of the ledger; 0: unchanged */
	enum hf_phase phase; /* the phase in the next ledger, if it is not Creating */
	bool once;           /* only the next step has this plan: later steps plan nothing */
	int steps, code;
	size_t pods, services; /* as the last step saw them */
	struct hf_ledger seen; /* likewise; its texts are gone */
	bool leaving;          /* likewise: the job is being deleted */
	/* what the last step saw of the first few pods; texts other than `name` are missing, and
	 * names are cut */
	hf_time now, watched_since, news_at, unwell_at, own_ended_at;
	struct hf_node_seen nodes[SEEN_MAX];
	struct hf_gone_seen gone[SEEN_MAX];
	/* the last state of a deleted pod is owned; the state itself is not kept devices of the
	 * first pod, and devices reported late; texts are cut */
	bool gone_owned[SEEN_MAX];
	hf_time gone_deleted[SEEN_MAX];
	struct hf_claim_seen claims[SEEN_MAX];
	char node_names[SEEN_MAX][32], gone_names[SEEN_MAX][32], claim_names[SEEN_MAX][32];
	size_t n_nodes, n_gone, n_claims;
	/* Of the first pod, and what is told late; texts cut. */
	struct hf_device_seen devices[SEEN_MAX];
	char device_ids[SEEN_MAX][32], device_classes[SEEN_MAX][32];
	size_t n_devices, n_late, n_sick, n_mended;
	hf_time mended_at;
	struct hf_sick_seen sick[SEEN_MAX];
	char sick_names[SEEN_MAX][32];
	bool watched;
	enum hf_advance advance; /* of the first pod */
	hf_time advanced_at, told_at, stepped_at;
	int32_t slow_permille, fence_seconds;
	bool processed;                 /* an agent reported the program of the first pod */
	struct hf_process_seen process; /* that report, without its texts */
	char process_cause[64], process_message[64]; /* the texts of that report */
	int64_t step;
};
extern struct script brain;
extern struct hf_action actions[64];

/* Let stage s of the next plan have n actions of a kind, from slot `at` on. */
void want(int s, enum hf_action_kind kind, size_t at, size_t n);
void want_status(hf_time start_time, bool urgent);

int setup(void **state);
/* Set up an operator that watches the CRDs of its kinds. */
int setup_with_crds(void **state);
/* Set up an operator that watches Nodes; the first list contains `nodes` of the bench. */
int setup_with_nodes(void **state);
int setup_with_agents(void **state);
/* PyTorchJobs and TFJobs. */
int setup_with_two_kinds(void **state);
/* MPIJobs. */
int setup_with_mpi(void **state);
/* Set up an operator for PyTorchJobs with a gang scheduler of this name. */
int setup_with_gangs(void **state, const char *scheduler);
int teardown(void **state);
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

struct hf_doc *job_doc(const char *name, const char *uid, int version, const char *more);
/* A pod in which a step sees a difference between two versions: each avoids another node. */
struct hf_doc *pod_doc(const char *name, const char *uid, int version, const char *owner,
		       const char *more);

void turn(struct bench *bench);
void turn_for(struct bench *bench, hf_time span);
/* Let the time pass in which routine changes gather (GATHER_CALM). */
void gathered(struct bench *bench);
/* The next request that is not for an event.  NULL: no such request. */
struct fake_call *next(struct bench *bench);
struct fake_call *expect(struct bench *bench, enum hf_verb verb, const char *plural);
/* Start the operator and answer the lists with these jobs; start: with one job, "ddp" of UID u-1 at
 * version 7. */
void start_with(struct bench *bench, struct hf_doc **jobs, size_t n);
void start(struct bench *bench);
/* Answer the status patch of this call with the patched job. */
void grant_status(struct fake_call *call, int version);
void grant_pod(struct fake_call *call, int version);
struct fake_watch *watch_of(struct bench *bench, const char *plural);
/* All events that were sent so far, one a line: "reason: message". */
void event_lines(struct bench *bench, struct hf_strbuf *lines);
/* Check the operator's sentence about missing CRDs; "": no CRD is missing. */
void assert_missing(const struct bench *bench, const char *text);
/* The line is among the metrics. */
void assert_metric(struct bench *bench, const char *line);

#endif
