/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBELET_KUBELET_INTERNAL_H
#define HF_KUBELET_KUBELET_INTERNAL_H

#include "base/arena.h"
#include "base/map.h"
#include "kubelet/kubelet.h"
#include "kubelet/plan_internal.h"
#include "kubelet/runtime/shim_internal.h"
#include "store/resource.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The parts of the kubelet and the functions between them. pod_internal.h has the parts of a pod's
 * life; runtime/ has the processes.
 *
 *   kubelet.c          create and destroy, the pods of the store and those found on disk
 *   machine.c          what the machine allows; the node's network
 *   ready.c            what follows once that is known
 *   node.c             the Node and its Lease
 *   disk.c             when the disk is nearly full
 *   uplink.c           the pods' way to other networks
 *   addresses.c        addresses of pods
 *   hosts.c            hosts files
 *   drain.c            the end of all pods
 *   watch.c            pods and services of the store
 *   references.c       fetching the ConfigMaps and Secrets of a pod
 *   configmap_data.c   the content of ConfigMaps and Secrets (pure)
 *   pod_check.c        which pods are refused (pure)
 *   plan.c             what should happen to a pod's containers (pure)
 *   env.c              variables (pure)
 *   volumes.c          volumes on disk, and mounts
 *   shim_link.c        the connection to a shim
 *   logs.c             reading log files
 *   events.c           Events, and notices for the user
 */

/* bytes of a pod's folder; longer state folders are refused */
#define HF_KUBELET_PATH_MAX 2048
/* for errors that may pass, such as a missing ConfigMap */
#define HF_KPOD_RETRY (2 * HF_SECOND)
#define HF_TERMINATION_BYTES_MAX 4096       /* as in upstream's kubelet */
#define HF_KUBELET_LOG_BYTES_MAX (10 << 20) /* per file; upstream's containerLogMaxSize */
#define HF_PRELOAD_FILE "libholdfast-names.so"
#define HF_KUBELET_LOG_FILES_MAX 5 /* upstream's containerLogMaxFiles */

struct hf_kpod;

/* --- watch.c --- */
struct hf_kwatch;
struct hf_kwatch_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const struct hf_resource *resource;
	/* NULL: all objects; static, or outlives the watch */
	const char *field_selector;
	/* The loop calls these; doc is borrowed. */
	void (*changed)(void *arg, struct hf_doc *doc);
	void (*removed)(void *arg, struct hf_doc *last);
	void (*synced)(void *arg); /* once, after the first list */
	void *arg;
};
struct hf_kwatch *hf_kwatch_create(const struct hf_kwatch_options *options);
/* NULL is allowed; returns NULL */
struct hf_kwatch *hf_kwatch_destroy(struct hf_kwatch *watch);
/* Iterates over the objects, borrowed: for (size_t it = 0; hf_kwatch_next(watch, &it, &doc);) … */
bool hf_kwatch_next(const struct hf_kwatch *watch, size_t *it, struct hf_doc **ret_doc);

/* --- references.c --- */
struct hf_krefs;
#define HF_KREFS_MAX 256 /* objects that a pod may name */
typedef void (*hf_krefs_fn)(void *arg);
struct hf_krefs *hf_krefs_create(struct hf_store *store, struct hf_loop *loop, const char *ns);
/* NULL is allowed; returns NULL */
struct hf_krefs *hf_krefs_destroy(struct hf_krefs *refs);
/* Adds an object to fetch. The same object may be added twice; a NULL name adds nothing. */
void hf_krefs_add(struct hf_krefs *refs, const struct hf_resource *resource, const char *name);
/* Fetches all objects. The loop calls done once, when there is a reply for each. */
void hf_krefs_fetch(struct hf_krefs *refs, hf_krefs_fn done, void *arg);
/* Returns the object, or NULL with the reason in err (HF_E_NOT_FOUND with upstream's message). */
struct hf_doc *hf_krefs_get(const struct hf_krefs *refs, const struct hf_resource *resource,
			    const char *name, struct hf_error *err);

/* --- configmap_data.c: values of ConfigMaps and Secrets --- */
/* Appends the bytes of a key to sb. HF_E_NOT_FOUND: no such key; HF_E_INVALID: not base64. */
int hf_kdata_get(struct hf_doc *doc, const char *key, struct hf_strbuf *sb, struct hf_error *err)
	HF_MUST_CHECK;
/* Calls fn for every key, in the object's order, until fn fails. */
typedef int (*hf_kdata_fn)(void *arg, const char *key, const struct hf_strbuf *bytes,
			   struct hf_error *err);
int hf_kdata_each(struct hf_doc *doc, hf_kdata_fn fn, void *arg, struct hf_error *err)
	HF_MUST_CHECK;

/* --- env.c --- */
struct hf_kenv_input {
	const struct hf_json *pod;       /* the whole object */
	const struct hf_json *container; /* its entry in the spec */
	const struct hf_krefs *refs;
	const char *const *base; /* "NAME=value", the base of every container */
	const char *hostname;
	const char *pod_ip, *host_ip;
};
void hf_kenv_add_refs(const struct hf_json *container, struct hf_krefs *refs);
/* Builds the environment. HF_E_INVALID: the text is the message of a CreateContainerConfigError. */
int hf_kenv_build(const struct hf_kenv_input *input, struct hf_arena *arena,
		  const char *const **ret_env, struct hf_error *err) HF_MUST_CHECK;
/* Expands $(NAME) by the variables in env ("NAME=value", NULL-terminated), and $$(NAME) to $(NAME). */
const char *hf_kenv_expand(const char *text, const char *const *env, struct hf_arena *arena);
/* Returns the value of a fieldRef; NULL and err if the path is not supported. */
const char *hf_kenv_field(const struct hf_kenv_input *input, const char *path,
			  struct hf_arena *arena, struct hf_error *err);
/* Returns the value of a resourceFieldRef. */
const char *hf_kenv_resource(const struct hf_kenv_input *input, const struct hf_json *ref,
			     struct hf_arena *arena, struct hf_error *err);

/* --- pod_check.c: HF_E_UNSUPPORTED with a text that names the field --- */
struct hf_kcheck {
	bool isolate; /* the pod will get namespaces */
	bool root;
	int64_t uid; /* of this process */
};
int hf_kcheck_pod(const struct hf_json *spec, const struct hf_kcheck *facts, struct hf_error *err)
	HF_MUST_CHECK;
/* Tells why a container is refused. spec: the pod's; path: such as "spec.containers[0]". */
int hf_kcheck_container(const struct hf_json *container, const struct hf_json *spec,
			const char *path, const struct hf_kcheck *facts, struct hf_error *err)
	HF_MUST_CHECK;

/* --- volumes.c --- */
void hf_kvolumes_add_refs(const struct hf_json *spec, struct hf_krefs *refs);
/* Writes the volumes to pod_dir/volumes. Volumes in memory are listed for the shim instead. */
int hf_kvolumes_make(const struct hf_kenv_input *input, const char *pod_dir, struct hf_arena *arena,
		     struct hf_shim_pod *pod, struct hf_error *err) HF_MUST_CHECK;
struct hf_kmounts {
	struct hf_run_mount items[HF_RUN_MOUNTS_MAX];
	size_t n;
};
/* Appends the container's volumeMounts. */
int hf_kvolumes_mounts(const struct hf_json *spec, const struct hf_json *container,
		       const char *pod_dir, struct hf_arena *arena, struct hf_kmounts *mounts,
		       struct hf_error *err) HF_MUST_CHECK;

/* --- shim_link.c --- */
struct hf_kshim;
struct hf_kshim_handler {
	/* The shim has answered: its journal can be read and it takes commands. */
	void (*ready)(void *arg);
	/* The shim could not be started; text is the reason. */
	void (*failed)(void *arg, const char *text);
	void (*journal)(void *arg);
	void (*refused)(void *arg, const char *container, unsigned attempt, const char *text);
	/* The shim has ended: its lock is free. */
	void (*gone)(void *arg);
	void *arg;
};
/* Starts a shim for the pod in this folder; pod.json is written already. */
int hf_kshim_start(const struct hf_kubelet *kubelet, const char *pod_dir,
		   const struct hf_kshim_handler *handler, struct hf_kshim **ret_shim,
		   struct hf_error *err) HF_MUST_CHECK;
/* Connects to the running shim of a pod; calls gone() if no shim runs. */
struct hf_kshim *hf_kshim_attach(struct hf_loop *loop, const char *pod_dir,
				 const struct hf_kshim_handler *handler);
/* NULL is allowed; returns NULL */
struct hf_kshim *hf_kshim_destroy(struct hf_kshim *shim);
/* Sends a command. Returns false if the shim cannot take it now; repeat it when the shim is ready. */
bool hf_kshim_command(struct hf_kshim *shim, const char *fmt, ...) HF_PRINTF(2, 3);
/* Tells whether a shim holds the folder's lock. */
bool hf_kshim_alive(const char *pod_dir);
/* Sends SIGKILL to every process with this HOLDFAST_POD_UID in its environment; for pods without a
 * process namespace. */
void hf_kstray_kill(const char *pod_uid);

/* --- hosts.c --- */
/* Writes the hosts files again soon, because names or addresses may have changed. */
void hf_khosts_changed(struct hf_kubelet *kubelet);
void hf_khosts_write_all(void *kubelet_arg);
/* Writes the pod's files for /etc before its shim starts. */
int hf_khosts_make(struct hf_kpod *pod, struct hf_error *err) HF_MUST_CHECK;

/* --- node.c --- */
struct hf_knode;
struct hf_knode *hf_knode_create(struct hf_kubelet *kubelet);
/* NULL is allowed; returns NULL */
struct hf_knode *hf_knode_destroy(struct hf_knode *node);
/* Renews the Lease now, not at the next interval: a container has ended and the store knows. */
void hf_knode_renew(struct hf_knode *node);

/* --- disk.c --- */
struct hf_kdisk {
	uint64_t bytes, free_bytes, files, free_files;
};
bool hf_kdisk_read(const char *dir, struct hf_kdisk *ret_disk);
/* before: the disk was nearly full at the last check. */
bool hf_kdisk_is_short(const struct hf_kdisk *disk, bool before);
void hf_kdisk_text(const struct hf_kdisk *disk, const char *dir, char *text, size_t size);

/* --- uplink.c: the pods' way to other networks --- */
struct hf_kuplink;
/* Starts slirp4netns, or takes over one that runs; needs netns_fd. If hf_kuplink_pending returns
 * false after it, the caller calls hf_kubelet_probed; otherwise the uplink does so later. */
struct hf_kuplink *hf_kuplink_create(struct hf_kubelet *kubelet);
/* NULL is allowed; returns NULL */
struct hf_kuplink *hf_kuplink_destroy(struct hf_kuplink *uplink);
bool hf_kuplink_pending(const struct hf_kuplink *uplink);
/* Returns the pipe for the shims to hold; -1: no uplink. */
int hf_kuplink_fd(const struct hf_kuplink *uplink);

/* --- events.c --- */
struct hf_kevents;
struct hf_kevents *hf_kevents_create(struct hf_kubelet *kubelet);
struct hf_kevents *hf_kevents_destroy(struct hf_kevents *events);
void hf_kevent(struct hf_kpod *pod, const char *type, const char *reason, const char *fmt, ...)
	HF_PRINTF(4, 5);
/* Writes an Event about the Node. */
void hf_kevent_node(struct hf_kubelet *kubelet, const char *type, const char *reason,
		    const char *message);

/* Tells the user of the machine, by options.notice. */
void hf_kubelet_notice(struct hf_kubelet *kubelet, const char *fmt, ...) HF_PRINTF(2, 3);

/* --- logs.c --- */
struct hf_klogs;
/* Appends the end of a log, for termination messages: at most bytes_max bytes and lines_max lines. */
void hf_klogs_tail(const char *pod_dir, const char *container, unsigned attempt, size_t bytes_max,
		   int lines_max, struct hf_strbuf *sb);

/* --- kubelet.c --- */
struct hf_kubelet {
	struct hf_loop *loop;
	struct hf_store *store;
	char *state_dir, *pods_dir, *bin_dir;
	char *node_name, *exe;
	/* shared object for pods on the machine's network; NULL: not found */
	char *preload;
	char *selector; /* field selector of the pods: spec.nodeName=… */
	enum hf_kubelet_network network;
	void (*notice)(void *arg, const char *text);
	void (*ready)(void *arg, int code, const char *message);
	void *arg;
	int lock_fd;

	/* What the machine allows; valid once `probed` is set. */
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
	struct hf_timer *drain_timer; /* limits the wait for final statuses */
	void (*drained)(void *arg);
	void *drained_arg;
};

struct hf_kpod *hf_kubelet_find(const struct hf_kubelet *kubelet, const char *ns, const char *name);

/* --- drain.c --- */
void hf_kdrain_init(struct hf_kubelet *kubelet);
void hf_kdrain_release(struct hf_kubelet *kubelet);
/* Checks whether a drain is complete; call it when a pod has ended. */
void hf_kubelet_check_drained(struct hf_kubelet *kubelet);

/* --- addresses.c --- */
uint32_t hf_kubelet_take_ip(struct hf_kubelet *kubelet);
/* Makes the next address follow those of the pods that were found on disk. */
void hf_kubelet_skip_known_ips(struct hf_kubelet *kubelet);

/* --- machine.c, ready.c --- */
/* Finds out what the machine allows and sets up the node's network: machine.c. */
struct hf_kprobe;
int hf_kprobe_start(struct hf_kubelet *kubelet, struct hf_error *err) HF_MUST_CHECK;
struct hf_kprobe *hf_kprobe_destroy(struct hf_kprobe *probe);
/* Continues the start: the facts are known, or cannot be found (pods then use the machine's
 * network). */
void hf_kubelet_probed(struct hf_kubelet *kubelet);

#endif
