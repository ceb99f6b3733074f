/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_JOB_PODS_H
#define HF_TESTS_SIM_JOB_PODS_H

#include "api/device_health.h"
#include "sim/remedy_actor.h"

/*
 * The pods of a job "train" of any kind on the fleet of remedy.h: the scheduler, the kubelets, the agents and `holdfast exec`. The
 * operator under test creates the pods. Each node has two GPUs; a pod takes one or none.
 *
 * Checked at each second: no reboot begins while the kubelet of the node has a pod of the job.
 */

#define JP_NS "default"
#define JP_NODE 3 /* the first pods come to this node */
#define JP_NODES 10
#define JP_RUNS_MAX 64

enum jp_phase { JP_WAITING, JP_RUNNING, JP_DOWN };

/* A pod as its node knows it. */
struct jp_run {
	char pod[64], uid[64], container[64];
	int node, gpu; /* -1: not bound; no GPU */
	bool wants_gpu, started, over, there;
	bool joined;            /* it has met all its peers */
	hf_time asked, ends_at; /* when SIGTERM came, when it ends or has ended; 0: not yet */
	int code;
	/* exec: generation and attempt of the pod, and of the process */
	enum jp_phase phase;
	int64_t g0, a0, g, a;
	int ordinal;
	hf_time since, stops_at;
};

struct jp {
	struct rw *w;
	struct ra *a;
	const struct hf_resource *resource;
	struct jp_run runs[JP_RUNS_MAX];
	size_t len;
	struct hf_device_holder holders[2];
	char job_uid[64], holder[JP_NODES][64];
	bool exec;         /* programs run under `holdfast exec` */
	bool crashes;      /* ranks end with code 1 when a peer leaves */
	int stop_takes;    /* seconds from SIGTERM until the program has ended */
	int unmount_takes; /* seconds from there until the kubelet confirms the end */
	int saves;         /* ranks that agents asked to save */
	bool aloud;        /* prints what happens, with JOBS_ALOUD in the environment */
};

/* A fleet with actors and this HealthPolicy. */
struct jp *jp_begin(struct rw *w, const struct hf_resource *resource, const char *policy);
/* In this text ' stands for ". Creates the job with this spec, without its braces, and waits until it runs. */
void jp_create(struct jp *jp, const char *kind, const char *spec);
void jp_patch(struct jp *jp, const char *text);
void jp_go(struct jp *jp, hf_time span);
/* Returns how many pods of this name have been created. */
int jp_made(const struct jp *jp, const char *pod);
int jp_node_of(const struct jp *jp, const char *pod); /* -1: none */
bool jp_is_true(struct jp *jp, const char *condition);
/* The job runs, and its restarts so far are these: "1 (infrastructure)". */
void jp_expect_runs(struct jp *jp, const char *restarts);

#endif
