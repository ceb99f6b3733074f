/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOCAL_KUBELET_INTERNAL_H
#define HF_LOCAL_KUBELET_INTERNAL_H

#include "base/arena.h"
#include "base/map.h"
#include "local/kubelet.h"
#include "local/kubelet_plan_internal.h"
#include "local/shim_internal.h"
#include "store/resource.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The parts of the kubelet and what they know of each other.
 *
 *   kubelet.c          birth and end, the pods found on disk, drain
 *   kubelet_watch.c    pods and services as the store has them
 *   kubelet_pod.c      the life of one pod: what is done when
 *   kubelet_plan.c     ... and what should happen to its containers (pure)
 *   kubelet_start.c    from a container's spec to a run file
 *   kubelet_check.c    what is refused (pure)
 *   kubelet_env.c      variables (pure)
 *   kubelet_data.c     the content of ConfigMaps and Secrets (pure)
 *   kubelet_volumes.c  volumes on disk and mounts
 *   kubelet_refs.c     ConfigMaps and Secrets a pod names
 *   kubelet_status.c   status documents (pure but for termination messages)
 *   kubelet_shim.c     talking to one shim
 *   kubelet_hosts.c    hosts files
 *   kubelet_probe.c    what the machine allows; the node's network
 *   kubelet_uplink.c   ... and the way out of it
 *   kubelet_node.c     the Node and its Lease
 *   kubelet_disk.c     when the disk counts as short
 *   kubelet_event.c    Events
 *   kubelet_logs.c     reading log files
 */

#define HF_KUBELET_PATH_MAX 2048      /* of a pod's folder; longer state folders are refused */
#define HF_KPOD_RETRY (2 * HF_SECOND) /* for what may come right by itself (a missing ConfigMap) */
#define HF_TERMINATION_BYTES_MAX 4096 /* as upstream's kubelet */
#define HF_KUBELET_LOG_BYTES_MAX (10 << 20) /* of one file; upstream's containerLogMaxSize */
#define HF_PRELOAD_FILE "libholdfast-names.so"
#define HF_KUBELET_LOG_FILES_MAX 5 /* upstream's containerLogMaxFiles */

struct hf_kpod;

/* --- kubelet_watch.c --- */
struct hf_kwatch;
struct hf_kwatch_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const struct hf_resource *resource;
	const char *field_selector; /* NULL: all; static or outlives the watch */
	/* Called from the loop; doc is borrowed. */
	void (*changed)(void *arg, struct hf_doc *doc);
	void (*removed)(void *arg, struct hf_doc *last);
	void (*synced)(void *arg); /* once, after the first list was handed over */
	void *arg;
};
struct hf_kwatch *hf_kwatch_create(const struct hf_kwatch_options *options);
struct hf_kwatch *hf_kwatch_destroy(struct hf_kwatch *watch); /* NULL is fine; returns NULL */
/* for (size_t it = 0; hf_kwatch_next(watch, &it, &doc);) …   borrowed */
bool hf_kwatch_next(const struct hf_kwatch *watch, size_t *it, struct hf_doc **ret_doc);

/* --- kubelet_refs.c --- */
struct hf_krefs;
#define HF_KREFS_MAX 256 /* objects one pod may name */
typedef void (*hf_krefs_fn)(void *arg);
struct hf_krefs *hf_krefs_create(struct hf_store *store, struct hf_loop *loop, const char *ns);
struct hf_krefs *hf_krefs_destroy(struct hf_krefs *refs); /* NULL is fine; returns NULL */
/* Naming one twice is fine.  name may be NULL (nothing is added). */
void hf_krefs_add(struct hf_krefs *refs, const struct hf_resource *resource, const char *name);
/* done runs once, from the loop, when every object was answered for. */
void hf_krefs_fetch(struct hf_krefs *refs, hf_krefs_fn done, void *arg);
/* The object, or NULL and why in err (HF_E_NOT_FOUND with upstream's message). */
struct hf_doc *hf_krefs_get(const struct hf_krefs *refs, const struct hf_resource *resource,
			    const char *name, struct hf_error *err);

/* --- kubelet_data.c: what ConfigMaps and Secrets hold --- */
/* The bytes behind key, appended to sb; HF_E_NOT_FOUND, HF_E_INVALID (no base64). */
int hf_kdata_get(struct hf_doc *doc, const char *key, struct hf_strbuf *sb, struct hf_error *err)
	HF_MUST_CHECK;
/* Every key, in the object's order; stops at the first failure of fn. */
typedef int (*hf_kdata_fn)(void *arg, const char *key, const struct hf_strbuf *bytes,
			   struct hf_error *err);
int hf_kdata_each(struct hf_doc *doc, hf_kdata_fn fn, void *arg, struct hf_error *err)
	HF_MUST_CHECK;

/* --- kubelet_env.c --- */
struct hf_kenv_input {
	const struct hf_json *pod;       /* the whole object */
	const struct hf_json *container; /* its entry in the spec */
	const struct hf_krefs *refs;
	const char *const *base; /* "NAME=value", what every container starts with */
	const char *hostname;
	const char *pod_ip, *host_ip;
};
void hf_kenv_add_refs(const struct hf_json *container, struct hf_krefs *refs);
/* HF_E_INVALID: the text is the waiting message of CreateContainerConfigError. */
int hf_kenv_build(const struct hf_kenv_input *input, struct hf_arena *arena,
		  const char *const **ret_env, struct hf_error *err) HF_MUST_CHECK;
/* $(NAME) by the variables in env ("NAME=value", NULL-terminated), $$(NAME) to $(NAME). */
const char *hf_kenv_expand(const char *text, const char *const *env, struct hf_arena *arena);
/* The value of a fieldRef; NULL and err for a path that is not offered. */
const char *hf_kenv_field(const struct hf_kenv_input *input, const char *path,
			  struct hf_arena *arena, struct hf_error *err);
/* ... and of a resourceFieldRef. */
const char *hf_kenv_resource(const struct hf_kenv_input *input, const struct hf_json *ref,
			     struct hf_arena *arena, struct hf_error *err);

/* --- kubelet_check.c: HF_E_UNSUPPORTED with a text that names the field --- */
struct hf_kcheck {
	bool isolate; /* what the pod will get */
	bool root;
	int64_t uid; /* of this process */
};
int hf_kcheck_pod(const struct hf_json *spec, const struct hf_kcheck *facts, struct hf_error *err)
	HF_MUST_CHECK;
/* spec: the pod's; path: "spec.containers[0]". */
int hf_kcheck_container(const struct hf_json *container, const struct hf_json *spec,
			const char *path, const struct hf_kcheck *facts, struct hf_error *err)
	HF_MUST_CHECK;

/* --- kubelet_volumes.c --- */
void hf_kvolumes_add_refs(const struct hf_json *spec, struct hf_krefs *refs);
/* Make the content of the volumes in pod_dir/volumes; memory-backed ones are listed for the
 * shim. */
int hf_kvolumes_make(const struct hf_kenv_input *input, const char *pod_dir, struct hf_arena *arena,
		     struct hf_shim_pod *pod, struct hf_error *err) HF_MUST_CHECK;
struct hf_kmounts {
	struct hf_run_mount items[HF_RUN_MOUNTS_MAX];
	size_t n;
};
/* Append the container's volumeMounts. */
int hf_kvolumes_mounts(const struct hf_json *spec, const struct hf_json *container,
		       const char *pod_dir, struct hf_arena *arena, struct hf_kmounts *mounts,
		       struct hf_error *err) HF_MUST_CHECK;

/* --- kubelet_shim.c --- */
struct hf_kshim;
struct hf_kshim_handler {
	/* The shim answers: its journal can be read and commands be sent. */
	void (*ready)(void *arg);
	/* It could not be started; text is its reason. */
	void (*failed)(void *arg, const char *text);
	void (*journal)(void *arg);
	void (*refused)(void *arg, const char *container, unsigned attempt, const char *text);
	/* It is gone for sure: its lock is free. */
	void (*gone)(void *arg);
	void *arg;
};
/* Start a shim for the pod in that folder (its pod.json is there). */
int hf_kshim_start(const struct hf_kubelet *kubelet, const char *pod_dir,
		   const struct hf_kshim_handler *handler, struct hf_kshim **ret_shim,
		   struct hf_error *err) HF_MUST_CHECK;
/* Find the one that runs already; gone() if there is none. */
struct hf_kshim *hf_kshim_attach(struct hf_loop *loop, const char *pod_dir,
				 const struct hf_kshim_handler *handler);
struct hf_kshim *hf_kshim_destroy(struct hf_kshim *shim); /* NULL is fine; returns NULL */
/* false: it did not get through; ask again when the shim is ready. */
bool hf_kshim_command(struct hf_kshim *shim, const char *fmt, ...) HF_PRINTF(2, 3);
/* Whether some shim holds the folder's lock. */
bool hf_kshim_alive(const char *pod_dir);
/* SIGKILL to every process whose environment says that it is of this pod, which has no process
 * namespace (HOLDFAST_POD_UID). */
void hf_kstray_kill(const char *pod_uid);

/* --- kubelet_pod.c --- */
enum hf_kpod_state {
	HF_KPOD_NEW,       /* nothing was done yet */
	HF_KPOD_REFUSED,   /* asks for what is not done; waits to be deleted */
	HF_KPOD_PREPARING, /* volumes' sources are being read */
	HF_KPOD_SPAWNING,  /* its shim is being started, or found */
	HF_KPOD_RUNNING,   /* the shim answers */
	HF_KPOD_QUITTING,  /* all is over; the shim was told to end */
	HF_KPOD_ENDED,     /* nothing of it runs, nothing will */
};

enum hf_kpod_stop {
	HF_KPOD_GO,
	HF_KPOD_STOP_DELETED,
	HF_KPOD_STOP_DEADLINE,
	HF_KPOD_STOP_FAILED,
	HF_KPOD_STOP_DRAIN
};

struct hf_kpod_container {
	struct hf_kpod *pod;
	const char *name;
	const struct hf_json *spec; /* borrowed from the pod's first document */
	bool init;
	struct hf_krefs *refs; /* its start is being prepared */
	bool asked;            /* the shim was told to start `attempt` and has not said */
	unsigned attempt;      /* being prepared or asked for */
	unsigned backoff_s;
	hf_time blocked_until; /* HF_TIME_NONE: not blocked */
	char reason[64];       /* of a block: waiting.reason and message; "" for none */
	char message[HF_ERROR_TEXT_MAX];
	int64_t told;      /* number of the last attempt an Event was made of; -1: none */
	int64_t term_sent; /* attempt that got SIGTERM, -1: none */
};

struct hf_kpod {
	struct hf_kubelet *kubelet;
	char *uid, *ns, *name;
	char *dir;
	struct hf_doc *spec_doc; /* the first seen: what runs */
	struct hf_doc *doc;      /* the latest; NULL: gone from the store, or not yet seen there */
	enum hf_kpod_state state;
	struct hf_kpod_container containers[HF_POD_CONTAINERS_MAX];
	size_t n;
	struct hf_kshim *shim;
	struct hf_krefs *refs;  /* of its volumes */
	struct hf_arena *arena; /* object lifetime */
	struct hf_shim_pod config;
	uint32_t ip; /* 0: none of our own */
	struct hf_pod_past past;
	hf_time start_time;
	struct hf_task *task;
	struct hf_timer *timer;

	enum hf_kpod_stop stop;
	hf_time stop_since, stop_grace; /* monotonic; span */
	bool stop_told;                 /* to the shim, over the connection there is */
	bool settled;                   /* the store says all there is to say */
	bool shim_gone;                 /* ... and the pod is not known yet */
	bool lost;
	char lost_text[HF_ERROR_TEXT_MAX];
	char trouble[HF_ERROR_TEXT_MAX]; /* of the pod itself, shown by each waiting container */
	char trouble_reason[64];
	hf_time retry_at; /* monotonic; of the pod's preparation */

	struct hf_call *status_call, *delete_call;
	bool removed; /* we asked for the object to be removed, and it was taken */
	uint64_t doc_version;
	unsigned looks; /* how often it was looked at, for tests */
};

/* A pod of the store; or one found on disk (doc NULL). */
struct hf_kpod *hf_kpod_create(struct hf_kubelet *kubelet, struct hf_doc *doc);
struct hf_kpod *hf_kpod_create_found(struct hf_kubelet *kubelet, const char *uid);
struct hf_kpod *hf_kpod_destroy(struct hf_kpod *pod); /* its shim and files stay */
void hf_kpod_set_doc(struct hf_kpod *pod, struct hf_doc *doc);
void hf_kpod_gone_from_store(struct hf_kpod *pod);
void hf_kpod_wake(struct hf_kpod *pod); /* look again soon */
/* End it; a reason that is already there stays, the shorter grace wins. */
void hf_kpod_stop(struct hf_kpod *pod, enum hf_kpod_stop why, hf_time grace);
bool hf_kpod_active(const struct hf_kpod *pod); /* something of it runs or may */
/* The store has heard the end of it; also where there is nobody to tell. */
bool hf_kpod_settled(const struct hf_kpod *pod);
/* Its end is the drain's doing: its containers did not end it before. */
bool hf_kpod_drained(const struct hf_kpod *pod, const struct hf_pod_plan *plan);
const struct hf_json *hf_kpod_spec(const struct hf_kpod *pod);
hf_time hf_kpod_grace(const struct hf_kpod *pod); /* terminationGracePeriodSeconds */
void hf_kpod_fill_plan(const struct hf_kpod *pod, struct hf_pod_plan *plan,
		       struct hf_plan_container containers[HF_POD_CONTAINERS_MAX]);

/* --- kubelet_start.c --- */
/* Prepare attempt c->attempt and tell the shim; a failure blocks the container. */
void hf_kstart_container(struct hf_kpod *pod, struct hf_kpod_container *c);
void hf_kstart_input(const struct hf_kpod *pod, const struct hf_json *container,
		     const struct hf_krefs *refs, struct hf_kenv_input *ret_input);
void hf_kstart_block(struct hf_kpod *pod, struct hf_kpod_container *c, const char *reason,
		     const char *message, hf_time retry);

/* --- kubelet_status.c --- */
/* The whole status as it should be; new. */
struct hf_json *hf_kstatus_build(const struct hf_kpod *pod, const struct hf_pod_plan *plan,
				 hf_time now);

/* --- kubelet_hosts.c --- */
/* Names or addresses may have changed: write the files again, soon. */
void hf_khosts_changed(struct hf_kubelet *kubelet);
void hf_khosts_write_all(void *kubelet_arg);
/* The pod's files for /etc, before its shim starts. */
int hf_khosts_make(struct hf_kpod *pod, struct hf_error *err) HF_MUST_CHECK;

/* --- kubelet_node.c --- */
struct hf_knode;
struct hf_knode *hf_knode_create(struct hf_kubelet *kubelet);
struct hf_knode *hf_knode_destroy(struct hf_knode *node); /* NULL is fine; returns NULL */
/* A container ended and the store knows: renew the Lease now rather than on time. */
void hf_knode_renew(struct hf_knode *node);

/* --- kubelet_disk.c --- */
struct hf_kdisk {
	uint64_t bytes, free_bytes, files, free_files;
};
bool hf_kdisk_read(const char *dir, struct hf_kdisk *ret_disk);
/* before: it was short when last looked at. */
bool hf_kdisk_is_short(const struct hf_kdisk *disk, bool before);
void hf_kdisk_text(const struct hf_kdisk *disk, const char *dir, char *text, size_t size);

/* --- kubelet_uplink.c: the way out of the pods' network --- */
struct hf_kuplink;
/* Needs netns_fd; ends in hf_kubelet_probed, at once (by the return, hf_kuplink_pending false) or
 * later. */
struct hf_kuplink *hf_kuplink_create(struct hf_kubelet *kubelet);
struct hf_kuplink *hf_kuplink_destroy(struct hf_kuplink *uplink); /* NULL is fine; returns NULL */
bool hf_kuplink_pending(const struct hf_kuplink *uplink);
/* What shims hold for it; -1: nothing. */
int hf_kuplink_fd(const struct hf_kuplink *uplink);

/* --- kubelet_event.c --- */
struct hf_kevents;
struct hf_kevents *hf_kevents_create(struct hf_kubelet *kubelet);
struct hf_kevents *hf_kevents_destroy(struct hf_kevents *events);
void hf_kevent(struct hf_kpod *pod, const char *type, const char *reason, const char *fmt, ...)
	HF_PRINTF(4, 5);
/* About the Node itself. */
void hf_kevent_node(struct hf_kubelet *kubelet, const char *type, const char *reason,
		    const char *message);

/* --- kubelet_logs.c --- */
struct hf_klogs;
/* The last part of a log, for termination messages: at most bytes_max bytes and lines_max lines. */
void hf_klogs_tail(const char *pod_dir, const char *container, unsigned attempt, size_t bytes_max,
		   int lines_max, struct hf_strbuf *sb);

/* --- kubelet.c --- */
struct hf_kubelet {
	struct hf_loop *loop;
	struct hf_store *store;
	char *state_dir, *pods_dir, *bin_dir;
	char *node_name, *exe;
	char *preload;  /* shared object for pods on the machine's network; NULL: not found */
	char *selector; /* of pods: spec.nodeName=… */
	enum hf_kubelet_network network;
	void (*notice)(void *arg, const char *text);
	void (*ready)(void *arg, int code, const char *message);
	void *arg;
	int lock_fd;

	/* What the machine allows; known once `probed`. */
	bool probed, told_ready, told_no_limits;
	bool isolate, user_ns, pid_ns;
	struct hf_cgroup_base cgroups;
	char why[HF_ERROR_TEXT_MAX];
	int netns_fd;
	struct hf_kprobe *probe;
	struct hf_kuplink *uplink_process;
	bool uplink; /* pods reach other networks */
	char uplink_why[HF_ERROR_TEXT_MAX];

	const char **base_env; /* NULL-terminated */
	size_t n_base_env;

	struct hf_map *pods; /* uid → struct hf_kpod */
	uint32_t last_ip;
	struct hf_kwatch *pod_watch, *service_watch;
	struct hf_knode *node;
	struct hf_kevents *events;
	struct hf_task *hosts_task, *drain_task;
	struct hf_klogs *streams;

	bool draining;
	struct hf_timer *drain_timer; /* how long statuses are waited for */
	void (*drained)(void *arg);
	void *drained_arg;
};

struct hf_kpod *hf_kubelet_find(const struct hf_kubelet *kubelet, const char *ns, const char *name);
/* Forget the pod: it is over and gone from the store. */
void hf_kubelet_forget(struct hf_kubelet *kubelet, struct hf_kpod *pod);
/* Something ended: a drain may be complete. */
void hf_kubelet_check_drained(struct hf_kubelet *kubelet);
uint32_t hf_kubelet_take_ip(struct hf_kubelet *kubelet);
void hf_kubelet_notice(struct hf_kubelet *kubelet, const char *fmt, ...) HF_PRINTF(2, 3);
/* A descriptor of the shim of a pod from before, by its number there, opened anew: the first that
 * fits; -1: none.  kubelet_probe.c. */
int hf_kubelet_live_pod_fd(const struct hf_kubelet *kubelet, int number, int flags,
			   bool (*fits)(int fd));
/* Probe, the node's network: kubelet_probe.c. */
struct hf_kprobe;
int hf_kprobe_start(struct hf_kubelet *kubelet, struct hf_error *err) HF_MUST_CHECK;
struct hf_kprobe *hf_kprobe_destroy(struct hf_kprobe *probe);
/* The facts are known, or cannot be found (then the machine's network is used). */
void hf_kubelet_probed(struct hf_kubelet *kubelet);

#endif
