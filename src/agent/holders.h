/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_HOLDERS_H
#define HF_AGENT_HOLDERS_H

#include "agent/pod_rank.h"
#include "probes/intake.h"
#include "store/store.h"

HF_BEGIN_DECLS

/*
 * Which containers of this node hold which devices, or held them within the last hour: the
 * kubelet's report (names only) joined with the node's pods from the API server (UIDs,
 * terminations, our condition). The hour serves questions about the cause of a pod's termination.
 */
struct hf_holders;

#define HF_HOLDER_KEPT HF_HOUR
#define HF_POD_UID_MAX 64
/* 32 digits, by which the kubelet knows a static pod. */
#define HF_POD_HASH_MAX 33
#define HF_POD_MESSAGE_MAX 256

struct hf_holder {
	struct hf_holding holding;
	char uid[HF_POD_UID_MAX];   /* "": not known */
	char hash[HF_POD_HASH_MAX]; /* of a static pod; its mirror pod may be created anew */
	hf_time until;              /* end of the holding by the kubelet's list; NONE: still held */
};

enum hf_device_condition { HF_POD_NO_CONDITION, HF_POD_WELL, HF_POD_SICK };

/* A pod of this node. */
struct hf_holder_pod {
	hf_time seen_at;            /* first, on the steps' clock */
	char hash[HF_POD_HASH_MAX]; /* UID of the static pod that this pod mirrors; "": no mirror */
	uint64_t ends;              /* of its containers, so far */
	uint64_t moves;             /* likewise: taken on by the kubelet, begun, ended */
	enum hf_device_condition condition; /* the present state of our condition */
	char reason[64], message[HF_POD_MESSAGE_MAX];
	struct hf_pod_rank rank;
};

struct hf_holders_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const char *node; /* copied */
	uint64_t seed;
	hf_time (*now)(void *arg); /* the steps' clock */
	/* A container of a pod that holds, or held, a device has ended. */
	void (*ended)(void *arg);
	/* A pod appeared, or one of its containers was accepted, started or ended: ask the
	 * kubelet for the holders now. Called for each such change. */
	void (*ask)(void *arg);
	/* A pod came, went or changed: holders may have a UID now, start may be ahead. */
	void (*changed)(void *arg);
	void (*problem)(void *arg, int code, const char *message);
	void *arg;
};

struct hf_holders *hf_holders_create(const struct hf_holders_options *options);
struct hf_holders *hf_holders_destroy(struct hf_holders *holders); /* NULL is fine */
void hf_holders_start(struct hf_holders *holders);

/* Takes the kubelet's list. An unknown or cut list ends no holding. The list has names, and a
 * name may come again (rank 0 of a job): a name counts for the pod that existed at the time of
 * the question, else for none until the next question. */
void hf_holders_update(struct hf_holders *holders, const struct hf_holdings *told);
/* Grows with each change of the list but forgetting. */
uint64_t hf_holders_version(const struct hf_holders *holders);
const struct hf_holder *hf_holders_list(struct hf_holders *holders, size_t *ret_len);
/* NULL: no such pod, or with another UID. */
const struct hf_holder_pod *hf_holders_pod(const struct hf_holders *holders,
					   const struct hf_holder *holder);
/* As the API server has it. */
struct hf_pod_name {
	const char *ns, *name, *uid;
};
/* Any pod of this node, whether it holds something or not, by the UID that its control groups have: a static
 * pod's is not its object's.  Good until the loop's next turn; false: none has it. */
bool hf_holders_name(const struct hf_holders *holders, const char *uid,
		     struct hf_pod_name *ret_name);
/* Likewise, with the rank that the pod is. */
bool hf_holders_rank(const struct hf_holders *holders, const char *uid,
		     struct hf_pod_name *ret_name, const struct hf_pod_rank **ret_rank);

HF_END_DECLS

#endif
