/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_BRAIN_H
#define HF_TESTS_HARNESS_BRAIN_H

#include "base/arena.h"
#include "base/strbuf.h"
#include "core/step.h"

#include <stdbool.h>

HF_BEGIN_DECLS

/*
 * A world for tests of the operator's decision step (hf_job_step) without documents: one job with
 * its pods, services and nodes as plain structs. brain_perform does what an API server and
 * kubelets would do with a plan. Nothing else happens by itself: the test says which pod starts,
 * ends or gets lost.
 */

#define BRAIN_PODS_MAX 256
#define BRAIN_TEXT_MAX 48
#define BRAIN_CONTAINERS_MAX 3

/* A kind of job made for tests, with the rules of PyTorchJob: one Boss and several Hands, whose
 * container is "main". */
extern const struct hf_framework brain_kind;
enum { BRAIN_BOSS, BRAIN_HAND };

struct brain_pod {
	char name[BRAIN_TEXT_MAX];
	char uid[BRAIN_TEXT_MAX];
	char node[BRAIN_TEXT_MAX];
	char version[BRAIN_TEXT_MAX]; /* resourceVersion: another with each change */
	struct hf_container_seen containers[BRAIN_CONTAINERS_MAX];
	struct hf_pod_condition condition; /* one is enough */
	struct hf_process_seen process;    /* of brain_report */
	bool reported;
	bool ours; /* a plan has deleted it */
	struct hf_pod pod;
};

struct brain_service {
	char name[BRAIN_TEXT_MAX];
	char uid[BRAIN_TEXT_MAX];
	struct hf_service_seen service;
};

#define BRAIN_EXTRAS_MAX 16
struct brain_extra {
	char name[BRAIN_TEXT_MAX];
	char uid[BRAIN_TEXT_MAX];
	struct hf_extra_seen extra;
};

struct brain {
	/* memory of the stored status and of the next status, in turn; stored_now is the index of
	 * the former */
	struct hf_arena *stored[2];
	int stored_now;
	struct hf_arena *pass; /* memory of the last step, with its plan */
	hf_time now;

	struct hf_settings settings;
	struct hf_port port;
	struct hf_container container;
	struct hf_replica_spec replicas[HF_ROLES_MAX];
	struct hf_rule rules[4];
	int32_t rule_code; /* of brain_fail_on */
	struct hf_job_view view;

	struct brain_pod pods[BRAIN_PODS_MAX];
	size_t pods_len;
	struct brain_service services[BRAIN_PODS_MAX];
	size_t services_len;
	struct brain_extra extras[BRAIN_EXTRAS_MAX];
	size_t extras_len;
	struct hf_node_seen nodes[8];
	size_t nodes_len;
	struct hf_gone_seen gone[BRAIN_PODS_MAX];
	char gone_names[BRAIN_PODS_MAX][BRAIN_TEXT_MAX];
	struct brain_pod gone_pods[BRAIN_PODS_MAX]; /* as they were last */
	size_t gone_len;
	struct hf_claim_seen claims[4];
	size_t claims_len;
	bool blind; /* the observer does not watch nodes */
	const struct hf_sick_seen *sick;
	size_t sick_len;
	bool claims_exclusive; /* true: the claims that a plan asks for are ReadWriteOnce */
	/* the objects that the last step saw, in the order that `shuffle` gives */
	struct hf_pod seen_pods[BRAIN_PODS_MAX];
	struct hf_service_seen seen_services[BRAIN_PODS_MAX];
	struct hf_extra_seen seen_extras[BRAIN_EXTRAS_MAX];
	struct hf_observed seen;
	unsigned shuffle; /* 0: as they are */

	struct hf_plan plan;
	/* names of pods that a plan has deleted and that are gone; a new pod of the name removes
	 * the entry */
	char gone_ours[BRAIN_PODS_MAX][BRAIN_TEXT_MAX];
	size_t gone_ours_len;
	int next_uid;
	int next_version;
	bool job_deleted;
	int64_t created; /* pods, ever */
};

/* Makes the job "demo" in the namespace "lab", with restart policy OnFailure: one Boss (boss 0:
 * none) and `hands` Hands. Two nodes have just renewed their Leases. */
void brain_init(struct brain *b, const struct hf_framework *kind, int boss, int hands);
void brain_release(struct brain *b);
/* Gives the job one rule of podFailurePolicy: the exit code `code` fails the job. */
void brain_fail_on(struct brain *b, int32_t code);

/* Runs one step; the plan is in b->plan. */
void brain_step(struct brain *b);
/* Returns the last plan as text; the caller frees it. */
char *brain_text(struct brain *b);

/* Stores the status of the plan, as an API server would, and performs no action. */
void brain_write_status(struct brain *b);
/* Stores the ledger of the plan alone: as if the ledger were an annotation, and the write of the
 * status were lost. */
void brain_write_ledger(struct brain *b);
/* Performs one action of the plan as an API server and a kubelet would. A deleted pod that has a
 * node and has not ended becomes Terminating; other deleted pods are gone. */
void brain_perform(struct brain *b, const struct hf_action *action);
/* Status and all stages. */
void brain_perform_all(struct brain *b);
/* Repeats step and perform until a plan has nothing but a wake-up. Fails the test after 50
 * steps. */
int brain_quiet(struct brain *b);
/* From nothing to every pod running. */
void brain_run_up(struct brain *b);
/* The same under exec: each node has an agent, which has reported that the processes run. */
void brain_run_up_exec(struct brain *b);
/* The agents of all nodes are heard, or none is. */
void brain_agents(struct brain *b, bool heard);

struct brain_pod *brain_pod(struct brain *b, const char *name); /* NULL: none */
void brain_start(struct brain *b, const char *name);            /* Running */
void brain_start_all(struct brain *b);
void brain_exit(struct brain *b, const char *name, int code); /* 0: Succeeded, else Failed */
/* Adds a second container to the pod, in the state of the first. The kubelet restarts neither of
 * them. */
void brain_add_sidecar(struct brain *b, const char *name);
/* Ends the first container of a pod with a sidecar; the sidecar runs on. */
void brain_exit_own(struct brain *b, const char *name, int code);
/* Makes the agent of the pod's node report the process under exec; brain_report_all does so for
 * all pods, with the attempt of each. */
void brain_report(struct brain *b, const char *name, enum hf_process_phase phase,
		  int64_t generation, int64_t attempt);
void brain_report_all(struct brain *b, enum hf_process_phase phase, int64_t generation);
/* Ends the container of a pod: brain_end_in_place leaves it waiting for its restart by the
 * kubelet, brain_crash_in_place then restarts it. */
void brain_end_in_place(struct brain *b, const char *name, int code);
void brain_crash_in_place(struct brain *b, const char *name);
void brain_terminate(struct brain *b, const char *name); /* another client deletes the pod */
void brain_gone(struct brain *b, const char *name);      /* the object is removed */
void brain_terminating_gone(struct brain *b);            /* every pod that is terminating */
void brain_disrupt(struct brain *b, const char *name);   /* DisruptionTarget=True */
void brain_nodes_heard(struct brain *b);                 /* renewed now, unless lost */
struct hf_node_seen *brain_node(struct brain *b, const char *name);
void brain_lose(struct brain *b, const char *name);   /* Unknown and tainted from now on */
void brain_regain(struct brain *b, const char *name); /* Ready, and heard of now */
/* Answers what the last plan asks for: reads the claims and Leases now. The Lease of a lost node
 * has not been renewed. */
void brain_answer(struct brain *b);
void brain_after(struct brain *b, int seconds);

struct brain_extra *brain_extra(struct brain *b, const char *name); /* NULL: none */
void brain_extra_gone(struct brain *b, const char *name);

/* Returns the job's conditions as text, "Created=True Running=False …", in their order. */
const char *brain_conditions(struct brain *b);
const char *brain_last_condition(struct brain *b);
int brain_count(const struct brain *b, enum hf_action_kind kind);
bool brain_creates(const struct brain *b, const char *name);
bool brain_deletes(const struct brain *b, const char *name);
const struct hf_action *brain_action(const struct brain *b, enum hf_action_kind kind,
				     const char *name);
bool brain_asks(const struct brain *b, enum hf_ask_kind kind, const char *name);
bool brain_gone_by_us(const struct brain *b, const char *name);
/* Returns the value of an edit of the pod that the plan creates; NULL: the plan has no such
 * edit. */
const char *brain_edit(const struct brain *b, const char *pod, enum hf_edit_kind kind,
		       const char *name);
const struct hf_plan_event *brain_event(const struct brain *b, const char *reason);
bool brain_says(const struct brain *b, enum hf_topic topic, const char *part);

HF_END_DECLS

#endif
