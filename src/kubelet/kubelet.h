/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBELET_KUBELET_H
#define HF_KUBELET_KUBELET_H

#include "base/error.h"
#include "json/json.h"
#include "loop/loop.h"
#include "store/store.h"

#include <stdbool.h>

/*
 * The kubelet of the embedded plane: a client of the store that runs the pods bound to its node as
 * processes of this machine.
 *
 * Images are not pulled; command and args run from the machine's own file system. Each pod has a
 * shim (kubelet/runtime/shim.h), a small process that outlives the kubelet. The shim holds the pod's
 * namespaces, starts and reaps its containers, and records how each of them ended. The pods thus
 * run on when the kubelet is destroyed or killed. The next kubelet on the same folder finds them
 * again, or declares them lost (phase Failed, reason "Lost", condition DisruptionTarget). It never
 * starts a pod twice.
 *
 * A pod that requires a feature which this kubelet lacks is refused: the container waits with
 * reason CreateContainerConfigError and a message that names the field.
 */
struct hf_kubelet;

#define HF_KUBELET_NODE "local"
#define HF_KUBELET_PODS_MAX 110 /* upstream's default; the Node's status.capacity.pods */

enum hf_kubelet_network {
	/* a network namespace for each pod if the machine allows it */
	HF_KUBELET_NETWORK_AUTO,
	/* all pods use the machine's network; for tests, or at a user's request */
	HF_KUBELET_NETWORK_HOST,
};

struct hf_kubelet_options {
	struct hf_loop *loop;   /* a real loop; must outlive the kubelet */
	struct hf_store *store; /* must outlive the kubelet */
	/* absolute; created with mode 0700 if absent; one kubelet at a time */
	const char *state_dir;
	/* The folders of PersistentVolumeClaims, by namespace and name; they are never removed. NULL:
	 * "claims" in state_dir. */
	const char *claims_dir;
	/* true: if a pod names a claim that the store does not have, the kubelet creates the
	 * claim; false: the pod waits for the claim. */
	bool make_claims;
	/* GPUs for pods: "all" (also NULL), "none", or numbers such as "0,2". */
	const char *gpus;
	const char *sysfs;     /* the sysfs in which GPUs of AMD are searched; NULL: "/sys" */
	const char *node_name; /* NULL: HF_KUBELET_NODE */
	/* The program that starts shims by its verb "shim" (kubelet/runtime/shim.h). NULL:
	 * /proc/self/exe. */
	const char *exe;
	enum hf_kubelet_network network;
	int pods_max; /* the Node's status.capacity.pods; 0: HF_KUBELET_PODS_MAX */
	/* "NAME=value" for every container; a variable of the pod replaces the one of the same
	 * name. NULL-terminated; NULL: none. */
	const char *const *env;
	/* Folder for the logs of removed pods. Each pod has a folder there, named by the UID. The
	 * kubelet creates the folder at the first use. NULL: logs are removed with their pod. */
	const char *kept_logs;
	/* The pods end soon after this process, however it ended. false: they run on, and the next
	 * kubelet of state_dir finds them. */
	bool pods_end_with_process;
	/* true: start no pod and no container, and end the pods that an earlier kubelet of
	 * state_dir left, with the grace of each pod. hf_kubelet_drain tells when they have ended. */
	bool only_drains;
	/* Called with a warning for the user, for instance that pods are not isolated and how to
	 * change that. Each warning is given once. text is one line, borrowed for the call. May be
	 * NULL. */
	void (*notice)(void *arg, const char *text);
	/* Called once, from the loop: code 0 when the node is registered and takes pods; otherwise
	 * the kubelet cannot start and does nothing more. May be NULL. */
	void (*ready)(void *arg, int code, const char *message);
	void *arg; /* passed to both callbacks */
};

/* Creates the kubelet. HF_E_CONFLICT: another kubelet uses state_dir. HF_E_IO, HF_E_NO_SPACE: the
 * folder cannot be written. */
int hf_kubelet_create(const struct hf_kubelet_options *options, struct hf_kubelet **ret_kubelet,
		      struct hf_error *err) HF_MUST_CHECK;
/* Frees the kubelet; the pods run on. NULL is allowed; returns NULL. */
struct hf_kubelet *hf_kubelet_destroy(struct hf_kubelet *kubelet);

/*
 * Ends every pod, for "down" and for the end of "run". The kubelet sends SIGTERM, and SIGKILL after
 * grace (HF_TIME_NONE: each pod's terminationGracePeriodSeconds). Then it writes the final
 * statuses, for at most 5 s if the store accepts none. The pod objects stay, and no pod is started
 * any more.
 *
 * A pod that this drain ends is Failed with reason Terminated and condition DisruptionTarget,
 * whatever the exit codes of its containers: its work is not done.
 *
 * done runs once, from the loop, when no process of any pod runs any more. A second call may
 * shorten the grace; only its done is then called.
 */
void hf_kubelet_drain(struct hf_kubelet *kubelet, hf_time grace, void (*done)(void *arg),
		      void *arg);

/* Sends a signal to a container's main process. container NULL: the first one. HF_E_NOT_FOUND: the
 * pod is not here, or the container does not run. */
int hf_kubelet_signal(struct hf_kubelet *kubelet, const char *ns, const char *pod,
		      const char *container, int signum, struct hf_error *err);

/* How many GPUs a kubelet with this option would offer. */
struct hf_kubelet_gpu_counts {
	int64_t nvidia, amd;
	/* why NVIDIA's GPUs may be missing from the count; "": no reason is known */
	char why[HF_ERROR_TEXT_MAX];
};
/* Counts the GPUs. It blocks until NVML has answered, at most 20 s. exe as in struct
 * hf_kubelet_options. HF_E_INVALID: the text is no value of the option. */
int hf_kubelet_count_gpus(const char *option, const char *exe,
			  struct hf_kubelet_gpu_counts *ret_counts, struct hf_error *err)
	HF_MUST_CHECK;

/* How many GPUs the node offers, working or not. Valid after ready. */
size_t hf_kubelet_offered_gpus(const struct hf_kubelet *kubelet);
/* A container that has a GPU. */
struct hf_kubelet_gpu_owner {
	const char *ns, *pod, *container;
	const char *resource; /* "nvidia.com/gpu" */
	const char *id;       /* as in the variable: "GPU-5a1d…" */
	const char *address;  /* address on the PCI bus of a GPU of AMD; NULL: unknown */
};
typedef void (*hf_kubelet_gpu_owner_fn)(void *arg, const struct hf_kubelet_gpu_owner *owner);
void hf_kubelet_each_gpu_owner(const struct hf_kubelet *kubelet, hf_kubelet_gpu_owner_fn fn,
			       void *arg);
/* Sets a function that is called before a pod gets GPUs, so that the caller can report its newest
 * knowledge by hf_kubelet_set_gpu_works. */
void hf_kubelet_set_gpu_check(struct hf_kubelet *kubelet, void (*check)(void *arg), void *arg);
/* Takes a GPU out of service, or back into service. A GPU out of service is given to no further
 * pod; a pod that has it keeps it. id: the GPU's id, as in CUDA_VISIBLE_DEVICES, or its address.
 * why: the fault, for the user's notice. Unknown ids are ignored. */
void hf_kubelet_set_gpu_works(struct hf_kubelet *kubelet, const char *id, bool works,
			      const char *why);

/*
 * Reads the log of a container, for struct hf_memstore_logs (memstore/memstore.h), whose start has this
 * signature; kubelet_arg is the struct hf_kubelet. The loop calls fn, never hf_kubelet_logs itself;
 * a call with len 0 ends the stream. Errors have upstream's texts ("container "c" in pod "p" is
 * waiting to start: ContainerCreating"). Stop every stream, with logs_stop of its ops, before the
 * kubelet is destroyed.
 */
struct hf_log_stream *hf_kubelet_logs(void *kubelet_arg, struct hf_doc *pod,
				      const struct hf_log_options *options, hf_log_fn fn,
				      void *fn_arg);

/*
 * Reads a log in the same way without a kubelet. logs_dir is a folder of kept_logs: the logs of this
 * pod. Every container counts as ended, so that `follow` changes nothing.
 */
struct hf_log_stream *hf_kubelet_kept_logs(struct hf_loop *loop, const char *logs_dir,
					   struct hf_doc *pod, const struct hf_log_options *options,
					   hf_log_fn fn, void *fn_arg);
/* Makes a stream of hf_kubelet_kept_logs wait for more output, for logs that another process still writes. over is
 * called at the end of the log. It returns true once nothing more is written: then the stream ends. Call this at
 * once after hf_kubelet_kept_logs. */
typedef bool (*hf_kubelet_log_over_fn)(void *arg, const char *pod_uid, const char *container,
				       unsigned attempt);
void hf_kubelet_kept_logs_follow(struct hf_log_stream *stream, hf_kubelet_log_over_fn over,
				 void *over_arg);
/* Returns the path of the youngest part of a container's log. logs_dir: as in
 * hf_kubelet_kept_logs. container NULL: the pod's first container. NULL: no log of the container
 * is kept. The caller frees the path. */
char *hf_kubelet_kept_log(const char *logs_dir, const struct hf_json *pod, const char *container,
			  bool previous);
/* How much of a log is kept: the shim renames full parts PATH to PATH.1 and so on, and drops the oldest. */
struct hf_kubelet_log_extent {
	int parts;       /* files: PATH, PATH.1, … */
	int64_t dropped; /* bytes of parts that were dropped */
};
/* path: from hf_kubelet_kept_log, or of a container that still runs. */
void hf_kubelet_log_extent(const char *path, struct hf_kubelet_log_extent *ret_extent);
/* Appends the end of a log file: whole lines of the last bytes that fit into sb, without the time and stream. Nothing if
 * the file cannot be read. */
void hf_kubelet_log_tail(const char *path, struct hf_strbuf *sb);
/* Moves the logs of all pods of state_dir to kept_logs. No kubelet may use state_dir. */
int hf_kubelet_keep_all_logs(const char *state_dir, const char *kept_logs, struct hf_error *err)
	HF_MUST_CHECK;

/* Checks the member hostPath of a volume on this machine, and makes nothing. The error (HF_E_NOT_FOUND,
 * HF_E_INVALID, HF_E_IO) is that with which a pod would wait. */
int hf_kubelet_check_host_path(const struct hf_json *source, struct hf_error *err) HF_MUST_CHECK;

/* Finds out, as a kubelet does at its start, whether pods get namespaces on this machine. It blocks while a
 * child process tries it (a tenth of a second, at most 30 s). exe as in struct hf_kubelet_options. why: the
 * reason if they get none. */
bool hf_kubelet_can_isolate(const char *exe, char *why, size_t why_size);

/* Returns a Node with the name and the labels that a kubelet gives its own at the first start. The caller
 * frees it. */
struct hf_json *hf_kubelet_make_node(const char *name);

/* What this machine allows for pods, for the output of `up` and for tests. Valid after ready. */
struct hf_kubelet_facts {
	bool pod_network; /* every pod has its own network, host name and mounts */
	bool user_ns;     /* the pod network is made in a user namespace, so no root is needed */
	bool pid_ns;      /* every pod also has its own process numbers */
	bool uplink;      /* pods reach other networks, through slirp4netns */
	/* why the network of the pods reaches no other network; "": it does, or pods have no own network.
	 * Borrowed. */
	const char *uplink_why;
	bool cgroups; /* limits of memory and CPU are enforced */
	/* what the machine lacks and how to get it; "": nothing is missing. Borrowed. */
	const char *why;
};
void hf_kubelet_facts(const struct hf_kubelet *kubelet, struct hf_kubelet_facts *ret_facts);

/* Counts the pods of state_dir that have processes, whether a kubelet uses the folder or not. A folder
 * that cannot be read has none. */
size_t hf_kubelet_count_running(const char *state_dir);
/*
 * Kills the pods that a killed kubelet left in state_dir, without SIGTERM, and waits for their end; it
 * blocks. A kubelet with only_drains ends them gracefully. The pods' folders with the logs stay.
 * HF_E_CONFLICT: a kubelet uses the folder.
 */
int hf_kubelet_kill_leftovers(const char *state_dir, struct hf_error *err) HF_MUST_CHECK;

#endif
