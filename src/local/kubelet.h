/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOCAL_KUBELET_H
#define HF_LOCAL_KUBELET_H

#include "base/error.h"
#include "loop/loop.h"
#include "store/store.h"

#include <stdbool.h>

/*
 * The kubelet of the embedded plane: it runs the pods bound to its node as processes
 * of this machine, and is a client of the store like any other.
 *
 * Images are not pulled: command and args run from the machine's own file system.
 * Each pod has a shim (local/shim.h), a small process that outlives this one, holds
 * the pod's namespaces, starts and reaps its containers and writes down how each of
 * them ended.  So destroying the kubelet, or losing its process, ends no pod: the next
 * kubelet on the same folder finds the pods again, or declares them lost (phase Failed,
 * reason "Lost", condition DisruptionTarget), and never starts one twice.
 *
 * What a pod asks for and this kubelet does not do is refused: the container waits with
 * reason CreateContainerConfigError and a message that names the field.
 */
struct hf_kubelet;

#define HF_KUBELET_NODE "local"
#define HF_KUBELET_PODS_MAX 110 /* upstream's default for a node; status.capacity.pods */

enum hf_kubelet_network {
	HF_KUBELET_NETWORK_AUTO, /* a network namespace per pod where the machine allows it */
	HF_KUBELET_NETWORK_HOST, /* all pods on the machine's network (tests; people who ask) */
};

struct hf_kubelet_options {
	struct hf_loop *loop;   /* a real one; outlives the kubelet */
	struct hf_store *store; /* outlives the kubelet */
	const char *state_dir; /* absolute; made with mode 0700 if absent.  One kubelet at a time */
	const char *node_name; /* NULL: HF_KUBELET_NODE */
	/* The program that answers to "shim" (local/shim.h).  NULL: /proc/self/exe. */
	const char *exe;
	enum hf_kubelet_network network;
	/* "NAME=value" of every container, unless the pod says otherwise; NULL-terminated; NULL:
	 * none. */
	const char *const *env;
	/* Something a person should know once: no isolation and how to get it, limits that are
	 * not kept.  text is one line; borrowed for the call.  May be NULL. */
	void (*notice)(void *arg, const char *text);
	/* The node is registered and takes pods (code 0), or it cannot be (the kubelet then does
	 * nothing more).  Called once, from the loop.  May be NULL. */
	void (*ready)(void *arg, int code, const char *message);
	void *arg; /* of both */
};

/* HF_E_CONFLICT: another kubelet works in state_dir.  HF_E_IO, HF_E_NO_SPACE: the folder. */
int hf_kubelet_create(const struct hf_kubelet_options *options, struct hf_kubelet **ret_kubelet,
		      struct hf_error *err) HF_MUST_CHECK;
/* Lets go of everything; pods run on.  NULL is fine; returns NULL. */
struct hf_kubelet *hf_kubelet_destroy(struct hf_kubelet *kubelet);

/*
 * End every pod: SIGTERM, SIGKILL after grace (HF_TIME_NONE: each pod's own
 * terminationGracePeriodSeconds), the final status is written (for at most 5 s more where the
 * store takes nothing); the pod objects stay.  A pod whose end is this drain's doing is Failed,
 * reason Terminated, condition DisruptionTarget, whatever its containers' codes: what there was
 * to do is not done.  No pod is started from here on.  done runs once, from the loop,
 * when nothing of any pod runs any more.  May be called again with a shorter grace; done
 * is then the later one.  For "down", and for the end of "run".
 */
void hf_kubelet_drain(struct hf_kubelet *kubelet, hf_time grace, void (*done)(void *arg),
		      void *arg);

/* Send a signal to a container's main process, as "kill" would.  container may be NULL: the
 * first one.  HF_E_NOT_FOUND: no such pod here, or the container does not run. */
int hf_kubelet_signal(struct hf_kubelet *kubelet, const char *ns, const char *pod,
		      const char *container, int signum, struct hf_error *err);

/*
 * Logs of one container, for struct hf_local_logs (local/local.h): the signature is that
 * of its start, kubelet_arg is the struct hf_kubelet.  fn is called from the loop, never
 * from inside; with len 0 at the end, with upstream's messages for what cannot be shown
 * ("container "c" in pod "p" is waiting to start: ContainerCreating").  The stream's ops
 * have logs_stop; stop every stream before the kubelet is destroyed.
 */
struct hf_log_stream *hf_kubelet_logs(void *kubelet_arg, struct hf_doc *pod,
				      const struct hf_log_options *options, hf_log_fn fn,
				      void *fn_arg);

/* What the pods of this machine get, in words for `up` and for tests.  Valid after ready. */
struct hf_kubelet_facts {
	bool pod_network; /* each pod has its own network, host name and mounts */
	bool user_ns;     /* ... by a user namespace, without being root */
	bool pid_ns;      /* ... and its own process numbers */
	bool uplink;      /* ... and reaches other networks, through slirp4netns */
	bool cgroups;     /* limits of memory and CPU are kept */
	const char *why;  /* what is missing and how to get it; "" when all is there.  Borrowed */
};
void hf_kubelet_facts(const struct hf_kubelet *kubelet, struct hf_kubelet_facts *ret_facts);

/*
 * Kill what a kubelet that is gone left in state_dir, and wait for it: for `down` where `up`
 * was killed, synchronous, for programs that are about to exit.  Pods' folders (logs) stay.
 * HF_E_CONFLICT: a kubelet works there.
 */
int hf_kubelet_kill_leftovers(const char *state_dir, struct hf_error *err) HF_MUST_CHECK;

#endif
