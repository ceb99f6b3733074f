/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBELET_POD_INTERNAL_H
#define HF_KUBELET_POD_INTERNAL_H

#include "kubelet/kubelet_internal.h"

/*
 * A pod of the node, and the parts that move it through its life.
 *
 *   pod.c              chooses the next step; create and destroy
 *   pod_state.c        questions about a pod
 *   pod_prepare.c      from the store's document to a running shim
 *   container_start.c  the start of a container
 *   pod_shim.c         what the shim reports
 *   pod_stop.c         the end of its containers
 *   pod_store.c        its status and its deletion in the store
 *   status.c           status documents
 */

/* --- pod.c --- */
enum hf_kubelet_pod_state {
	HF_KUBELET_POD_NEW, /* nothing has been done */
	/* the kubelet has refused the pod, and waits until the pod is deleted */
	HF_KUBELET_POD_REFUSED,
	HF_KUBELET_POD_PREPARING, /* the objects that the pod's volumes need are being fetched */
	HF_KUBELET_POD_SPAWNING,  /* the pod's shim is being started or connected */
	HF_KUBELET_POD_RUNNING,   /* the shim answers */
	HF_KUBELET_POD_QUITTING,  /* all containers have ended; the shim was told to end */
	HF_KUBELET_POD_ENDED,     /* no process of the pod runs, and none will start */
};

enum hf_kubelet_pod_stop {
	HF_KUBELET_POD_GO,
	HF_KUBELET_POD_STOP_DELETED,
	HF_KUBELET_POD_STOP_DEADLINE,
	HF_KUBELET_POD_STOP_FAILED,
	HF_KUBELET_POD_STOP_DRAIN
};

struct hf_kubelet_pod_container {
	struct hf_kubelet_pod *pod;
	const char *name;
	const struct hf_json *spec; /* borrowed from the pod's first document */
	bool init, sidecar;
	/* the objects that the container's start needs; NULL: no start is being prepared */
	struct hf_kubelet_refs *refs;
	bool asked; /* the shim was told to start `attempt` and has not answered */
	/* the attempt that is being prepared, or that the shim was told to start */
	unsigned attempt;
	unsigned backoff_s;
	hf_time blocked_until; /* HF_TIME_NONE: not blocked */
	/* reason and message of the waiting state while the container is blocked; "": it is not
	 * blocked */
	char reason[64];
	char message[HF_ERROR_TEXT_MAX];
	int64_t told; /* number of the last attempt about which an Event was written; -1: none */
	int64_t term_sent;                /* number of the attempt that got SIGTERM; -1: none */
	struct hf_kubelet_probes *probes; /* NULL: none */
	/* the startup probe has not succeeded yet; the readiness probe fails */
	bool unstarted, unready;
	struct hf_kubelet_exec *hook; /* the hook that runs */
	unsigned post_start_attempt;
	/* due: the postStart hook has yet to begin; runs: it has begun and not succeeded yet */
	bool post_start_due, post_start_runs;
	/* number of the attempt that had its preStop hook started; -1: no attempt */
	int64_t pre_stop_attempt;
	bool pre_stop_runs;
	/* number of the attempt that is being stopped, because a probe or hook failed; -1: none */
	int64_t fail_attempt;
	hf_time fail_kill_at; /* monotonic */
};

struct hf_kubelet_pod {
	struct hf_kubelet *kubelet;
	char *uid, *ns, *name;
	char *dir;
	/* the document with which the pod started: its spec stays in force */
	struct hf_doc *spec_doc;
	/* the latest document; NULL: the store no longer has the pod, or its document has not
	 * arrived yet */
	struct hf_doc *doc;
	enum hf_kubelet_pod_state state;
	struct hf_kubelet_pod_container containers[HF_POD_CONTAINERS_MAX];
	size_t n;
	struct hf_kubelet_shim *shim;
	struct hf_kubelet_refs *refs; /* objects of its volumes */
	struct hf_arena *arena;       /* lifetime of the pod */
	struct hf_shim_pod config;
	uint32_t ip; /* the pod's IPv4 address; 0: the pod has no address of its own */
	struct hf_pod_past past;
	hf_time start_time;
	struct hf_task *task;
	struct hf_timer *timer;

	enum hf_kubelet_pod_stop stop;
	/* when the stop began (monotonic clock), and how long the containers have from then on */
	hf_time stop_since, stop_grace;
	/* when the sidecars were told to end (monotonic clock); HF_TIME_NONE: not told */
	hf_time sidecars_since;
	/* the shim was told on the present connection that the pod is being stopped */
	bool stop_told;
	/* the last run of sync_pod found no status to write: the store has the status, the store no
	 * longer has the pod, or the kubelet has not probed the machine and writes none yet */
	bool settled;
	/* the shim has ended, and the end waits to be handled until the store's document
	 * arrives */
	bool shim_gone;
	bool lost;
	char lost_text[HF_ERROR_TEXT_MAX];
	/* a problem of the whole pod; the status of each waiting container shows it */
	char trouble[HF_ERROR_TEXT_MAX];
	char trouble_reason[64];
	hf_time retry_at; /* when the preparation of the pod is repeated (monotonic clock) */

	struct hf_call *status_call, *delete_call;
	bool told_ignored; /* the Events about fields that are ignored have been written */
	/* the store accepted the deletion of the object, so it is not requested again */
	bool removed;
	uint64_t doc_version;
	unsigned looks; /* how often sync_pod has run; read by tests */
};

/* Create a pod from a document of the store (pod_create), or from its folder on disk
 * (pod_create_found; doc is NULL). */
struct hf_kubelet_pod *hf_kubelet_pod_create(struct hf_kubelet *kubelet, struct hf_doc *doc);
struct hf_kubelet_pod *hf_kubelet_pod_create_found(struct hf_kubelet *kubelet, const char *uid);
/* Frees the record of the pod. The pod's shim and files stay. Returns NULL. */
struct hf_kubelet_pod *hf_kubelet_pod_destroy(struct hf_kubelet_pod *pod);
void hf_kubelet_pod_set_doc(struct hf_kubelet_pod *pod, struct hf_doc *doc);
void hf_kubelet_pod_gone_from_store(struct hf_kubelet_pod *pod);

/* --- pod_state.c --- */
void hf_kubelet_pod_wake(struct hf_kubelet_pod *pod); /* runs sync_pod soon */
/* Makes sync_pod run within the time `span`. */
void hf_kubelet_pod_wake_in(struct hf_kubelet_pod *pod, hf_time span);
/* Tells whether a process of the pod runs, or may still run. */
bool hf_kubelet_pod_active(const struct hf_kubelet_pod *pod);
/* Tells whether no status of the pod waits to be written. True if the store has the pod's status, if
 * the store does not have the pod, and as long as the kubelet has not probed the machine. */
bool hf_kubelet_pod_settled(const struct hf_kubelet_pod *pod);
/* Tells whether the drain ended the pod: its containers had not ended by themselves before. */
bool hf_kubelet_pod_drained(const struct hf_kubelet_pod *pod, const struct hf_pod_plan *plan);
const struct hf_json *hf_kubelet_pod_spec(const struct hf_kubelet_pod *pod);
/* Returns the containerID of an attempt; the caller frees it. */
char *hf_kubelet_container_id(const struct hf_kubelet_pod *pod, const char *container,
			      unsigned attempt);
hf_time hf_kubelet_pod_grace(const struct hf_kubelet_pod *pod); /* terminationGracePeriodSeconds */
/* Returns metadata.deletionTimestamp; NULL: the object is not being deleted. */
const struct hf_json *hf_kubelet_pod_deletion_time(const struct hf_kubelet_pod *pod);
void hf_kubelet_pod_fill_plan(const struct hf_kubelet_pod *pod, struct hf_pod_plan *plan,
			      struct hf_plan_container containers[HF_POD_CONTAINERS_MAX]);
/* Opens a file that a live shim of an earlier kubelet has open. number: the descriptor in the
 * shim. Returns a descriptor of the first file for which fits() is true; -1: none. */
int hf_kubelet_live_pod_fd(const struct hf_kubelet *kubelet, int number, int flags,
			   bool (*fits)(int fd));

/* --- pod_store.c --- */
/* Takes a new document of the pod, unless the pod already has a newer one. */
void hf_kubelet_pod_take_doc(struct hf_kubelet_pod *pod, struct hf_doc *doc);
/* Returns how many terminations of containers the status of the document contains. */
size_t hf_kubelet_pod_count_ends(struct hf_doc *doc);
/* Compares the pod's status with the status in the store. If they are equal, or the stored status
 * is final, returns true. If they differ, starts a write and returns false; the reply makes
 * sync_pod run again. */
bool hf_kubelet_pod_write_status(struct hf_kubelet_pod *pod, const struct hf_pod_plan *plan);
void hf_kubelet_pod_delete_object(struct hf_kubelet_pod *pod);

/* --- pod_prepare.c --- */
/* Begins to prepare a pod, from its check to a running shim. A pod that this kubelet cannot run
 * gets the state REFUSED. */
void hf_kubelet_pod_prepare(struct hf_kubelet_pod *pod);

/* --- gpus.c --- */
/* Gives the pod's containers the GPUs that they ask for. HF_E_TOO_MANY: too few are free. */
int hf_kubelet_gpus_give(struct hf_kubelet_pod *pod, struct hf_error *err) HF_MUST_CHECK;
/* Returns the variable that limits a container to its GPUs of this kind: "CUDA_VISIBLE_DEVICES=…"
 * or "ROCR_VISIBLE_DEVICES=…". */
const char *hf_kubelet_gpus_variable(const struct hf_kubelet_pod *pod,
				     const struct hf_kubelet_pod_container *c, size_t kind,
				     struct hf_arena *arena);

/* --- host_ports.c --- */
/* Writes an Event for each port of the machine that this pod and another pod with hostNetwork both
 * want. */
void hf_kubelet_pod_tell_shared_ports(struct hf_kubelet_pod *pod);

/* --- pod_shim.c --- */
/* Sets the functions by which the pod's shim reports, and returns `handler`. */
const struct hf_kubelet_shim_handler *hf_kubelet_pod_handler(
	struct hf_kubelet_pod *pod, struct hf_kubelet_shim_handler *handler);
/* Continues a stop that an earlier kubelet has recorded in the journal, with a new grace
 * period. */
void hf_kubelet_pod_take_stop(struct hf_kubelet_pod *pod);
/* Marks the pod as lost: the attempts that ran when the shim died have ended, with unknown exit
 * codes. */
void hf_kubelet_pod_mark_lost(struct hf_kubelet_pod *pod, const char *why);
/* Handles the end of the shim. Before the store's document is known, only notes the end; the
 * kubelet calls the function again when the document arrives. */
void hf_kubelet_pod_shim_gone(void *pod_arg);

/* --- pod_stop.c --- */
/* Ends the pod. If it is already being ended, the first reason stays and the shorter grace
 * wins. */
void hf_kubelet_pod_stop(struct hf_kubelet_pod *pod, enum hf_kubelet_pod_stop why, hf_time grace);
/* Stops the pod if its document asks for that: a deletion, a phase that another client has set, or
 * a passed deadline. */
void hf_kubelet_pod_look_for_ends(struct hf_kubelet_pod *pod);
/* Tells the shim to record in the journal that the kubelet ends the pod. Returns false if the shim
 * cannot take the command now. */
bool hf_kubelet_pod_tell_stop(struct hf_kubelet_pod *pod);
/* Signals the containers that run: SIGTERM, and SIGKILL after the grace period. */
void hf_kubelet_pod_stop_containers(struct hf_kubelet_pod *pod);

/* Ends the sidecars of a pod after its other containers; the last sidecar ends first. */
void hf_kubelet_pod_stop_sidecars(struct hf_kubelet_pod *pod);

/* Stops a container because a probe or hook failed. why: completes the Event's text "Container
 * NAME …"; grace_s -1: the pod's grace period. */
void hf_kubelet_container_fail(struct hf_kubelet_pod_container *c, unsigned attempt,
			       const char *why, int64_t grace_s);
/* Continues the stop of such containers. */
void hf_kubelet_pod_stop_failed(struct hf_kubelet_pod *pod);

/* --- container_start.c --- */
/* Prepares the attempt c->attempt of a container, and tells the shim to start it. If the
 * preparation fails, the container is blocked. */
void hf_kubelet_start_container(struct hf_kubelet_pod *pod, struct hf_kubelet_pod_container *c);
void hf_kubelet_start_input(const struct hf_kubelet_pod *pod, const struct hf_json *container,
			    const struct hf_kubelet_refs *refs,
			    struct hf_kubelet_env_input *ret_input);
void hf_kubelet_start_block(struct hf_kubelet_pod *pod, struct hf_kubelet_pod_container *c,
			    const char *reason, const char *message, hf_time retry);

/* --- handler.c: the handler of a probe or hook, as words for the pod's shim --- */
struct hf_kubelet_handler {
	const char *const *argv; /* NULL-terminated, in the arena */
	/* the handler is a request over the network; false: a program in the container */
	bool probe;
};
/* Tells whether the handler uses TLS. Such a probe or hook is ignored, as check.c reports. */
bool hf_kubelet_handler_uses_tls(const struct hf_json *handler);
/* Builds the command for a handler that does not use TLS. Returns false if the handler cannot be
 * run. timeout_s: the time limit of a probe over the network. */
bool hf_kubelet_handler_make(const struct hf_kubelet_pod *pod, const struct hf_json *container,
			     const struct hf_json *handler, int64_t timeout_s,
			     struct hf_arena *arena, struct hf_kubelet_handler *ret_handler);

/* --- exec_link.c --- */
#define HF_KUBELET_EXEC_TEXT_MAX 512
struct hf_kubelet_exec;
struct hf_kubelet_exec_result {
	/* false: nothing was run, because the shim was busy or the container does not run */
	bool ran;
	/* exit code; -1: the program was not started, or was killed when its time was up */
	int code;
	char text[HF_KUBELET_EXEC_TEXT_MAX]; /* first line of the output */
};
/* Called once, from the loop, with the result of the exec. The function destroys the exec. */
typedef void (*hf_kubelet_exec_fn)(void *arg, const struct hf_kubelet_exec_result *result);
/* Starts a program or probe. Returns NULL if it cannot be started now; `done` is then not
 * called. */
struct hf_kubelet_exec *hf_kubelet_exec_start(const struct hf_kubelet_pod *pod,
					      const char *container,
					      const struct hf_kubelet_handler *handler,
					      hf_time within, hf_kubelet_exec_fn done, void *arg);
/* Ends the exec; kills the program if it still runs. NULL is allowed; returns NULL */
struct hf_kubelet_exec *hf_kubelet_exec_destroy(struct hf_kubelet_exec *exec);

/* --- probes.c --- */
/* Begins, continues or ends the probes of a container, according to its state in the journal. */
void hf_kubelet_probes_sync(struct hf_kubelet_pod_container *c, bool stopping);
/* NULL is allowed; returns NULL */
struct hf_kubelet_probes *hf_kubelet_probes_destroy(struct hf_kubelet_probes *probes);

/* --- hooks.c --- */
/* Notes that the postStart hook is due. Call it when the shim is told to start c->attempt. */
void hf_kubelet_post_start_expect(struct hf_kubelet_pod_container *c);
/* Runs the postStart hook if it is due and the container runs. */
void hf_kubelet_post_start_sync(struct hf_kubelet_pod_container *c);
/* Runs the preStop hook. Returns true if SIGTERM may be sent: the hook has ended, or there is none. */
bool hf_kubelet_pre_stop(struct hf_kubelet_pod_container *c, unsigned attempt, hf_time within);

/* --- status.c --- */
/* Builds a new status of the pod from the journal and the plan. */
struct hf_json *hf_kubelet_status_build(const struct hf_kubelet_pod *pod,
					const struct hf_pod_plan *plan, hf_time now);

#endif
