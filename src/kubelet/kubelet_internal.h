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
 *   host_ports.c       ports of the machine that two pods want
 *   drain.c            the end of all pods
 *   watch.c            pods and services of the store
 *   references.c       fetching the ConfigMaps and Secrets of a pod
 *   configmap_data.c   the content of ConfigMaps and Secrets (pure)
 *   check.c            what is refused and what is ignored (pure; check.h)
 *   plan.c             what should happen to a pod's containers (pure)
 *   env.c              variables (pure)
 *   volumes.c          volumes on disk, and mounts
 *   question.c         asks a child for a line of JSON (question.h)
 *   gpu_search.c       the search for GPUs (gpu_search.h)
 *   gpus.c             the machine's GPUs and their owners
 *   torchrun.c         Debian 12's torchrun, which fails
 *   claims.c           folders of PersistentVolumeClaims
 *   shim_link.c        the connection to a shim
 *   logs.c             reading log files
 *   kept_logs.c        logs that outlive their pod
 *   events.c           Events, and notices for the user
 */

/* limit of the path of a pod's folder, in bytes; a longer state_dir is refused */
#define HF_KUBELET_PATH_MAX 2048
/* delay before a pod is prepared again, after an error that may pass, such as a missing
 * ConfigMap */
#define HF_KUBELET_POD_RETRY (2 * HF_SECOND)
#define HF_TERMINATION_BYTES_MAX 4096       /* as in upstream's kubelet */
#define HF_KUBELET_LOG_BYTES_MAX (10 << 20) /* per file; upstream's containerLogMaxSize */
/* the node's address in status.hostIP, also the address of pods on the machine's network */
#define HF_KUBELET_HOST_IP "127.0.0.1"
#define HF_PRELOAD_FILE "libholdfast-names.so"
#define HF_KUBELET_LOG_FILES_MAX 5 /* upstream's containerLogMaxFiles */

struct hf_kubelet_pod;

/* --- watch.c --- */
struct hf_kubelet_watch;
struct hf_kubelet_watch_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const struct hf_resource *resource;
	/* selects the objects to watch; NULL: all objects. Static, or outlives the watch */
	const char *field_selector;
	/* Called from the loop when an object is new or has changed; doc is borrowed. */
	void (*changed)(void *arg, struct hf_doc *doc);
	void (*removed)(void *arg, struct hf_doc *last);
	void (*synced)(void *arg); /* called once, when the first list is complete */
	void *arg;
};
struct hf_kubelet_watch *hf_kubelet_watch_create(const struct hf_kubelet_watch_options *options);
/* NULL is allowed; returns NULL */
struct hf_kubelet_watch *hf_kubelet_watch_destroy(struct hf_kubelet_watch *watch);
/* Iterates over the objects, borrowed: for (size_t it = 0; hf_kubelet_watch_next(watch, &it, &doc);) … */
bool hf_kubelet_watch_next(const struct hf_kubelet_watch *watch, size_t *it,
			   struct hf_doc **ret_doc);

/* --- references.c --- */
struct hf_kubelet_refs;
#define HF_KUBELET_REFS_MAX 256 /* objects that a pod may name */
typedef void (*hf_kubelet_refs_fn)(void *arg);
struct hf_kubelet_refs *hf_kubelet_refs_create(struct hf_store *store, struct hf_loop *loop,
					       const char *ns);
/* NULL is allowed; returns NULL */
struct hf_kubelet_refs *hf_kubelet_refs_destroy(struct hf_kubelet_refs *refs);
/* Adds an object to the list of objects to fetch. An object may be added twice; a NULL name adds
 * nothing. */
void hf_kubelet_refs_add(struct hf_kubelet_refs *refs, const struct hf_resource *resource,
			 const char *name);
/* Requests all objects of the list. The loop calls `done` once, when each request has its
 * reply. */
void hf_kubelet_refs_fetch(struct hf_kubelet_refs *refs, hf_kubelet_refs_fn done, void *arg);
/* Returns a fetched object; NULL and err if the fetch failed (HF_E_NOT_FOUND with upstream's
 * message). */
struct hf_doc *hf_kubelet_refs_get(const struct hf_kubelet_refs *refs,
				   const struct hf_resource *resource, const char *name,
				   struct hf_error *err);

/* --- configmap_data.c: values of ConfigMaps and Secrets --- */
/* Appends the value of a key of a ConfigMap or Secret to sb. HF_E_NOT_FOUND: the object has no
 * such key; HF_E_INVALID: the value is not base64. */
int hf_kubelet_data_get(struct hf_doc *doc, const char *key, struct hf_strbuf *sb,
			struct hf_error *err) HF_MUST_CHECK;
/* Calls fn for every key, in the object's order, until fn fails. */
typedef int (*hf_kubelet_data_fn)(void *arg, const char *key, const struct hf_strbuf *bytes,
				  struct hf_error *err);
int hf_kubelet_data_each(struct hf_doc *doc, hf_kubelet_data_fn fn, void *arg, struct hf_error *err)
	HF_MUST_CHECK;

/* --- env.c --- */
struct hf_kubelet_env_input {
	const struct hf_json *pod; /* the whole Pod object */
	/* the container's entry in spec.containers or spec.initContainers */
	const struct hf_json *container;
	struct hf_kubelet *kubelet; /* knows the folders of PersistentVolumeClaims */
	const struct hf_kubelet_refs *refs;
	const char *const *base; /* "NAME=value", the base of every container */
	const char *hostname;
	const char *pod_ip, *host_ip;
};
void hf_kubelet_env_add_refs(const struct hf_json *container, struct hf_kubelet_refs *refs);
/* Builds the environment of a container. HF_E_INVALID: the container cannot start; the text is the
 * message of its CreateContainerConfigError. */
int hf_kubelet_env_build(const struct hf_kubelet_env_input *input, struct hf_arena *arena,
			 const char *const **ret_env, struct hf_error *err) HF_MUST_CHECK;
/* Expands $(NAME) by the variables in env ("NAME=value", NULL-terminated), and $$(NAME) to $(NAME). */
const char *hf_kubelet_env_expand(const char *text, const char *const *env, struct hf_arena *arena);
/* Returns the value of a field of the pod (fieldRef); NULL and err if the path is not
 * supported. */
const char *hf_kubelet_env_field(const struct hf_kubelet_env_input *input, const char *path,
				 struct hf_arena *arena, struct hf_error *err);
/* Returns the value of a resourceFieldRef. */
const char *hf_kubelet_env_resource(const struct hf_kubelet_env_input *input,
				    const struct hf_json *ref, struct hf_arena *arena,
				    struct hf_error *err);

/* --- volumes.c --- */
void hf_kubelet_volumes_add_refs(const struct hf_json *spec, struct hf_kubelet_refs *refs);
/* Writes the volumes of a pod to pod_dir/volumes. A volume in memory is not written but listed for
 * the shim, which mounts it. */
int hf_kubelet_volumes_make(const struct hf_kubelet_env_input *input, const char *pod_dir,
			    struct hf_arena *arena, struct hf_shim_pod *pod, struct hf_error *err)
	HF_MUST_CHECK;
struct hf_kubelet_mounts {
	struct hf_run_mount items[HF_RUN_MOUNTS_MAX];
	size_t n;
};
/* Appends the container's volumeMounts. */
int hf_kubelet_volumes_mounts(const struct hf_kubelet_env_input *input, const char *pod_dir,
			      struct hf_arena *arena, struct hf_kubelet_mounts *mounts,
			      struct hf_error *err) HF_MUST_CHECK;

/* --- shim_link.c --- */
struct hf_kubelet_shim;
struct hf_kubelet_shim_handler {
	/* The shim has answered: its journal can be read and it takes commands. */
	void (*ready)(void *arg);
	/* The shim could not be started; text says why. */
	void (*failed)(void *arg, const char *text);
	void (*journal)(void *arg);
	void (*refused)(void *arg, const char *container, unsigned attempt, const char *text);
	/* Lines in CRI format that the shim could not write to the container's log. */
	void (*output)(void *arg, const char *container, unsigned attempt, const char *lines,
		       size_t len);
	/* The shim has ended, so its lock is free. */
	void (*gone)(void *arg);
	void *arg;
};
/* Starts a shim for the pod in the folder pod_dir; the caller has written pod.json there. */
int hf_kubelet_shim_start(const struct hf_kubelet *kubelet, const char *pod_dir,
			  const struct hf_kubelet_shim_handler *handler,
			  struct hf_kubelet_shim **ret_shim, struct hf_error *err) HF_MUST_CHECK;
/* Connects to the running shim of a pod; calls gone() if no shim runs. */
struct hf_kubelet_shim *hf_kubelet_shim_attach(struct hf_loop *loop, const char *pod_dir,
					       const struct hf_kubelet_shim_handler *handler);
/* NULL is allowed; returns NULL */
struct hf_kubelet_shim *hf_kubelet_shim_destroy(struct hf_kubelet_shim *shim);
/* Sends a command. Returns false if the shim cannot take it now; repeat it when the shim is ready. */
bool hf_kubelet_shim_command(struct hf_kubelet_shim *shim, const char *fmt, ...) HF_PRINTF(2, 3);
/* Tells whether a shim runs for the pod: it holds the lock of the folder. */
bool hf_kubelet_shim_alive(const char *pod_dir);
/* Sends SIGKILL to every process that has this HOLDFAST_POD_UID in its environment. For pods
 * without a process namespace: their processes can outlive the shim. */
void hf_kubelet_kill_strays(const char *pod_uid);

/* --- hosts.c --- */
/* Writes the hosts files again soon, because names or addresses may have changed. */
void hf_kubelet_hosts_changed(struct hf_kubelet *kubelet);
void hf_kubelet_hosts_write_all(void *kubelet_arg);
/* Writes the files of the pod for /etc (hosts, nsswitch.conf, resolv.conf), before its shim
 * starts. */
int hf_kubelet_hosts_make(struct hf_kubelet_pod *pod, struct hf_error *err) HF_MUST_CHECK;

/* --- node.c --- */
struct hf_kubelet_node;
struct hf_kubelet_node *hf_kubelet_node_create(struct hf_kubelet *kubelet);
/* NULL is allowed; returns NULL */
struct hf_kubelet_node *hf_kubelet_node_destroy(struct hf_kubelet_node *node);
/* Renews the Lease now instead of at the next interval: a container has ended, and the store has
 * the status that says so. */
void hf_kubelet_node_renew(struct hf_kubelet_node *node);
/* Writes the Node's status soon, because a value in the status has changed. */
void hf_kubelet_node_changed(struct hf_kubelet_node *node);

/* --- disk.c --- */
struct hf_kubelet_disk {
	uint64_t bytes, free_bytes, files, free_files;
};
bool hf_kubelet_disk_read(const char *dir, struct hf_kubelet_disk *ret_disk);
/* Tells whether the disk is nearly full. before: the result of the last check, which makes the
 * limit higher. */
bool hf_kubelet_disk_is_short(const struct hf_kubelet_disk *disk, bool before);
void hf_kubelet_disk_text(const struct hf_kubelet_disk *disk, const char *dir, char *text,
			  size_t size);

/* --- uplink.c: the pods' way to other networks --- */
struct hf_kubelet_uplink;
/* Starts slirp4netns, or takes over one that runs. Needs netns_fd. If hf_kubelet_uplink_pending is
 * false afterwards, the caller calls hf_kubelet_probed; if it is true, the uplink calls it
 * later. */
struct hf_kubelet_uplink *hf_kubelet_uplink_create(struct hf_kubelet *kubelet);
/* NULL is allowed; returns NULL */
struct hf_kubelet_uplink *hf_kubelet_uplink_destroy(struct hf_kubelet_uplink *uplink);
bool hf_kubelet_uplink_pending(const struct hf_kubelet_uplink *uplink);
/* Returns the pipe that keeps slirp4netns alive, for the shims to hold; -1: there is no uplink. */
int hf_kubelet_uplink_fd(const struct hf_kubelet_uplink *uplink);

/* --- events.c --- */
struct hf_kubelet_events;
struct hf_kubelet_events *hf_kubelet_events_create(struct hf_kubelet *kubelet);
struct hf_kubelet_events *hf_kubelet_events_destroy(struct hf_kubelet_events *events);
void hf_kubelet_event(struct hf_kubelet_pod *pod, const char *type, const char *reason,
		      const char *fmt, ...) HF_PRINTF(4, 5);
/* Writes an Event about the Node. */
void hf_kubelet_event_node(struct hf_kubelet *kubelet, const char *type, const char *reason,
			   const char *message);

/* Tells the user of the plane something about the machine, by options.notice. */
void hf_kubelet_notice(struct hf_kubelet *kubelet, const char *fmt, ...) HF_PRINTF(2, 3);

/* --- claims.c: folders of PersistentVolumeClaims --- */
struct hf_kubelet_claims *hf_kubelet_claims_create(struct hf_kubelet *kubelet);
/* NULL is allowed; returns NULL */
struct hf_kubelet_claims *hf_kubelet_claims_destroy(struct hf_kubelet_claims *claims);
/* Returns the path of a claim's folder; the caller frees it. */
char *hf_kubelet_claim_folder(const struct hf_kubelet *kubelet, const char *ns, const char *name);
/* Makes the folder of a claim. exists: the store has the claim. HF_E_NOT_FOUND: the store does not
 * have it, and the kubelet may not create it. */
int hf_kubelet_claim_prepare(struct hf_kubelet *kubelet, const char *ns, const char *name,
			     bool exists, struct hf_error *err) HF_MUST_CHECK;

/* --- gpus.c --- */
struct hf_kubelet_gpus;
/* Looks for the GPUs of the machine. The loop calls `found` when the search has ended. With the
 * option "none" there is no search, and `found` is not called. */
int hf_kubelet_gpus_start(struct hf_kubelet *kubelet, void (*found)(struct hf_kubelet *kubelet),
			  struct hf_error *err) HF_MUST_CHECK;
bool hf_kubelet_gpus_known(const struct hf_kubelet_gpus *gpus);
/* NULL is allowed; returns NULL */
struct hf_kubelet_gpus *hf_kubelet_gpus_destroy(struct hf_kubelet_gpus *gpus);
/* Adds the numbers of GPUs to the Node's status. A GPU out of service counts in the capacity, but
 * is not allocatable. */
void hf_kubelet_gpus_set_amounts(const struct hf_kubelet_gpus *gpus, struct hf_json *capacity,
				 struct hf_json *allocatable);
/* Kinds of GPU: NVIDIA's, AMD's. */
#define HF_KUBELET_GPU_KINDS 2
/* Tells whether containers get the variable of this kind of GPU: only on a machine that has such
 * GPUs. */
bool hf_kubelet_gpus_any(const struct hf_kubelet *kubelet, size_t kind);

/* --- torchrun.c --- */
/* Puts a mended torchrun into bin_dir if the torchrun of this machine always fails (torchrun.c);
 * else removes it from bin_dir. */
void hf_kubelet_mend_torchrun(const char *bin_dir);

/* --- logs.c --- */
struct hf_kubelet_log_reader;
/* Passes lines that could not be written to a log to the streams that follow this log. */
void hf_kubelet_logs_spill(struct hf_kubelet *kubelet, const char *pod_uid, const char *container,
			   unsigned attempt, const char *lines, size_t len);
/* Appends the last lines of a log, at most bytes_max bytes and lines_max lines; for termination
 * messages. */
void hf_kubelet_logs_tail(const char *pod_dir, const char *container, unsigned attempt,
			  size_t bytes_max, int lines_max, struct hf_strbuf *sb);

/* --- pod_state.c --- */
/* Returns the container's entry among the statuses of a pod; NULL: there is none. container NULL: the
 * first one. */
const struct hf_json *hf_kubelet_find_status(const struct hf_json *pod, const char *container);

/* --- kept_logs.c: logs of removed pods --- */
/* Moves the logs in pod_dir to the folder UID of kept_logs. */
int hf_kubelet_keep_logs(const char *pod_dir, const char *kept_logs, const char *uid,
			 struct hf_error *err) HF_MUST_CHECK;

/* --- kubelet.c --- */
struct hf_kubelet {
	struct hf_loop *loop;
	struct hf_store *store;
	char *state_dir, *pods_dir, *bin_dir, *claims_dir;
	bool make_claims;
	bool pods_end_with_process;
	char *gpus_option, *sysfs;
	struct hf_kubelet_gpus *gpus;
	void (*gpu_check)(void *arg); /* called before a pod gets GPUs; may be NULL */
	void *gpu_check_arg;
	struct hf_kubelet_claims *claims;
	/* folder for the logs of removed pods; NULL: logs are removed with their pod */
	char *kept_logs;
	char *node_name, *exe;
	/* path of the library that resolves names, for pods on the machine's network; NULL: the
	 * library was not found */
	char *preload;
	char *selector; /* field selector of the pods: spec.nodeName=… */
	enum hf_kubelet_network network;
	int pods_max;
	void (*notice)(void *arg, const char *text);
	void (*ready)(void *arg, int code, const char *message);
	void *arg;
	int lock_fd;

	/* What the machine allows for pods. Valid when `probed` is set. */
	bool net_known; /* the search for the machine's namespaces and network has ended */
	bool probed, told_ready, told_no_limits;
	bool told_no_uplink; /* the notice that pods reach no other network was given */
	bool told_spill;     /* the notice that a log cannot be written was given */
	bool isolate, user_ns, pid_ns;
	struct hf_cgroup_base cgroups;
	char why[HF_ERROR_TEXT_MAX];
	int netns_fd;
	struct hf_kubelet_probe *probe;
	struct hf_kubelet_uplink *uplink_process;
	bool uplink; /* pods reach other networks */
	char uplink_why[HF_ERROR_TEXT_MAX];

	const char **base_env; /* NULL-terminated */
	size_t n_base_env;

	struct hf_map *pods; /* uid → struct hf_kubelet_pod */
	uint32_t last_ip;
	struct hf_kubelet_watch *pod_watch, *service_watch;
	struct hf_kubelet_node *node;
	struct hf_kubelet_events *events;
	struct hf_task *hosts_task, *drain_task;
	struct hf_kubelet_log_reader *streams;

	bool draining;
	hf_time drain_grace;          /* HF_TIME_NONE: that of each pod */
	struct hf_timer *drain_timer; /* limits the wait for final statuses */
	void (*drained)(void *arg);
	void *drained_arg;
};

struct hf_kubelet_pod *hf_kubelet_find(const struct hf_kubelet *kubelet, const char *ns,
				       const char *name);

/* --- drain.c --- */
void hf_kubelet_drain_init(struct hf_kubelet *kubelet);
void hf_kubelet_drain_release(struct hf_kubelet *kubelet);
/* Stops a pod for the drain that has begun. */
void hf_kubelet_drain_pod(struct hf_kubelet_pod *pod);
/* Checks whether a drain is complete; call it when a pod has ended. */
void hf_kubelet_check_drained(struct hf_kubelet *kubelet);

/* --- addresses.c --- */
uint32_t hf_kubelet_take_ip(struct hf_kubelet *kubelet);
/* Finds the machine's address in its own network; "" if the machine has only its loopback. */
void hf_kubelet_machine_ip(char ret_text[16]);
/* Makes the next free address follow the addresses of the pods that were found on disk. */
void hf_kubelet_skip_known_ips(struct hf_kubelet *kubelet);

/* --- machine.c, ready.c --- */
/* Finds out what the machine allows and sets up the node's network: machine.c. */
struct hf_kubelet_probe;
int hf_kubelet_probe_start(struct hf_kubelet *kubelet, struct hf_error *err) HF_MUST_CHECK;
struct hf_kubelet_probe *hf_kubelet_probe_destroy(struct hf_kubelet_probe *probe);
/* Continues the start of the kubelet when machine.c has found out what the machine allows, or
 * could not find out: then pods use the machine's network. */
void hf_kubelet_probed(struct hf_kubelet *kubelet);

#endif
