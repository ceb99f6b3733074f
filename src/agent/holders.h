/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_HOLDERS_H
#define HF_AGENT_HOLDERS_H

#include "probes/intake.h"
#include "store/store.h"

HF_BEGIN_DECLS

/*
 * Which containers of this node hold which devices, or held them within the last hour: the
 * kubelet's word (names alone) joined with the node's pods as the API server has them (UIDs,
 * ends, what stands in our condition).  Whoever asks why a pod has died asks after its end.
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
	char hash[HF_POD_HASH_MAX]; /* of a static pod: whose mirror may be made anew */
	hf_time until;              /* the kubelet no longer names it; NONE: it holds it */
};

enum hf_pod_word { HF_POD_NO_WORD, HF_POD_WELL, HF_POD_SICK };

/* A pod of this node. */
struct hf_holder_pod {
	hf_time seen_at; /* first, on the steps' clock */
	char hash
		[HF_POD_HASH_MAX]; /* it mirrors a static pod, whose UID that is; "": it does not */
	uint64_t ends;             /* of its containers, so far */
	uint64_t moves;            /* likewise: taken on by the kubelet, begun, ended */
	enum hf_pod_word word;     /* what our condition says */
	char reason[64], message[HF_POD_MESSAGE_MAX];
};

struct hf_holders_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const char *node; /* copied */
	uint64_t seed;
	hf_time (*now)(void *arg); /* the steps' clock */
	/* A container of a pod that holds, or held, a device has ended. */
	void (*ended)(void *arg);
	/* A pod came, or a container of one was taken on, began or ended: who holds what by now the kubelet
	 * says when it is asked.  Comes for each of them. */
	void (*ask)(void *arg);
	/* A pod came, went or changed: holders may have a UID now, start may be ahead. */
	void (*changed)(void *arg);
	void (*problem)(void *arg, int code, const char *message);
	void *arg;
};

struct hf_holders *hf_holders_create(const struct hf_holders_options *options);
struct hf_holders *hf_holders_destroy(struct hf_holders *holders); /* NULL is fine */
void hf_holders_start(struct hf_holders *holders);

/* What the kubelet says.  Where it could not be asked, or tells of more than is kept, nothing ends.  It tells names, and a name may come again
 * (rank 0 of a job): what it tells is of the pod that was there when it was asked, or of nobody until
 * it is asked again. */
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

HF_END_DECLS

#endif
