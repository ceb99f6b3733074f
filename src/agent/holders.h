/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_HOLDERS_H
#define HF_AGENT_HOLDERS_H

#include "agent/pod_rank.h"
#include "probes/intake.h"
#include "store/store.h"

HF_BEGIN_DECLS

/*
 * Which containers of this node hold which devices, or held them within the last hour: the kubelet's list (names
 * only) joined with the node's pods from the API server (UIDs, terminations, the agent's condition).  Holdings of the
 * last hour serve to find the cause of a pod's termination.
 */
struct hf_holders;

#define HF_HOLDER_KEPT HF_HOUR
#define HF_POD_UID_MAX 64
/* Size of the 32 digits, with the NUL, by which the kubelet knows a static pod. */
#define HF_POD_HASH_MAX 33
#define HF_POD_MESSAGE_MAX 256

struct hf_holder {
	struct hf_holding holding;
	char uid[HF_POD_UID_MAX]; /* "": not known */
	/* the kubelet's hash of a static pod, whose mirror pod may be created again; "": no static pod */
	char hash[HF_POD_HASH_MAX];
	bool of_node; /* the pod is of a DaemonSet or static */
	/* when the holding was missing in the kubelet's list; NONE: still held */
	hf_time until;
};

enum hf_device_condition { HF_POD_NO_CONDITION, HF_POD_WELL, HF_POD_SICK };

/* A pod of this node. */
struct hf_holder_pod {
	hf_time seen_at; /* when the agent first saw the pod, on the steps' clock */
	/* the kubelet's hash of the static pod that this pod mirrors; "": no mirror */
	char hash[HF_POD_HASH_MAX];
	uint64_t ends; /* how many terminations of the pod's containers were seen so far */
	/* counts changes of the pod's containers: accepted by the kubelet, started, ended */
	uint64_t moves;
	bool over; /* all containers have ended for good */
	bool of_node;
	/* what the agent's condition in the pod's status says at present */
	enum hf_device_condition condition;
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
	/* A pod appeared, or one of its containers was accepted, started or ended: the agent should ask the
	 * kubelet for the holders now.  Called for each such change. */
	void (*ask)(void *arg);
	/* A pod came, went or changed: holders may have a UID now, and targets of `holdfast exec` may change. */
	void (*changed)(void *arg);
	void (*problem)(void *arg, int code, const char *message);
	void *arg;
};

struct hf_holders *hf_holders_create(const struct hf_holders_options *options);
struct hf_holders *hf_holders_destroy(struct hf_holders *holders); /* NULL is fine */
void hf_holders_start(struct hf_holders *holders);

/* Takes the kubelet's list.  An unknown or incomplete list ends no holding.  The list has names, and a new pod may
 * have the name of a former one (rank 0 of a job).  So a name counts for the pod that existed when the agent
 * asked; without such a pod the holder has no UID until the next list. */
void hf_holders_update(struct hf_holders *holders, const struct hf_holdings *told);
/* A number that grows with each change of the list, except when old holdings are forgotten. */
uint64_t hf_holders_version(const struct hf_holders *holders);
const struct hf_holder *hf_holders_list(struct hf_holders *holders, size_t *ret_len);
/* Returns the holder's pod by namespace, name and UID; NULL: no such pod is known. */
const struct hf_holder_pod *hf_holders_pod(const struct hf_holders *holders,
					   const struct hf_holder *holder);
/* A pod's namespace, name and UID in the API server. For a static pod these are of its mirror
 * pod. */
struct hf_pod_name {
	const char *ns, *name, *uid;
};
/* Finds any pod of this node, also one that holds no device, by the UID in its control groups' names; for a static
 * pod that is the kubelet's hash, not the UID of the mirror.  The result is good until the loop's next turn.
 * False: no pod has the UID. */
bool hf_holders_name(const struct hf_holders *holders, const char *uid,
		     struct hf_pod_name *ret_name);
/* As hf_holders_name(), with the rank that the pod is. */
bool hf_holders_rank(const struct hf_holders *holders, const char *uid,
		     struct hf_pod_name *ret_name, const struct hf_pod_rank **ret_rank);

HF_END_DECLS

#endif
