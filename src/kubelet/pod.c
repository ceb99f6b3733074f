/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/kubelet_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/patch.h"
#include "kubelet/runtime/netns_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The life of a pod. Every event (a new document, a message from its shim, a reply, a timer) only
 * schedules sync_pod. sync_pod compares the state with what should be and does what is missing. A
 * lost or repeated event therefore does no harm.
 */
#define ARENA_BYTES_MAX ((size_t)64 << 20)
#define DEFAULT_GRACE_S 30
#define KILL_AGAIN HF_SECOND
#define REPLY_RETRY HF_SECOND
/* interval for repeating a command that a busy shim could not take */
#define TELL_AGAIN (20 * HF_MS)

static void sync_pod(void *arg);

const struct hf_json *hf_kpod_spec(const struct hf_kpod *pod)
{
	return hf_json_get(hf_doc_json(pod->spec_doc), "spec");
}

hf_time hf_kpod_grace(const struct hf_kpod *pod)
{
	int64_t s = hf_json_i64(hf_json_get(hf_kpod_spec(pod), "terminationGracePeriodSeconds"),
				DEFAULT_GRACE_S);

	return (s < 0 ? 1 : s > 86400 ? 86400 : s) * HF_SECOND;
}

bool hf_kpod_active(const struct hf_kpod *pod)
{
	return pod->state == HF_KPOD_SPAWNING || pod->state == HF_KPOD_RUNNING ||
	       pod->state == HF_KPOD_QUITTING;
}

bool hf_kpod_settled(const struct hf_kpod *pod)
{
	return pod->settled || !pod->doc || !pod->kubelet->probed;
}

bool hf_kpod_drained(const struct hf_kpod *pod, const struct hf_pod_plan *plan)
{
	return pod->stop == HF_KPOD_STOP_DRAIN && (pod->past.ran_at_stop > 0 || !plan->over);
}

void hf_kpod_wake(struct hf_kpod *pod)
{
	hf_task_post(pod->task);
}

static void wake_in(struct hf_kpod *pod, hf_time span)
{
	if (!hf_timer_armed(pod->timer) ||
	    hf_timer_due(pod->timer) > hf_time_add(hf_loop_mono(pod->kubelet->loop), span))
		hf_timer_arm(pod->timer, span);
}

static const struct hf_json *deletion_time(const struct hf_kpod *pod)
{
	return hf_json_path(hf_doc_json(pod->doc), "metadata", "deletionTimestamp", NULL);
}

/* --- the plan --- */

static enum hf_restart_policy policy_of(const struct hf_kpod *pod)
{
	const char *policy = hf_json_path_str(hf_kpod_spec(pod), "restartPolicy", NULL);

	if (hf_streq(policy, "Never"))
		return HF_RESTART_NEVER;
	return hf_streq(policy, "OnFailure") ? HF_RESTART_ON_FAILURE : HF_RESTART_ALWAYS;
}

void hf_kpod_fill_plan(const struct hf_kpod *pod, struct hf_pod_plan *plan,
		       struct hf_plan_container containers[HF_POD_CONTAINERS_MAX])
{
	for (size_t i = 0; i < pod->n; i++)
		containers[i] = (struct hf_plan_container){
			.init = pod->containers[i].init,
			.past = hf_pod_past_find(&pod->past, pod->containers[i].name),
			.blocked_until = pod->containers[i].blocked_until,
		};
	*plan = (struct hf_pod_plan){
		.policy = policy_of(pod),
		.stopping = pod->stop != HF_KPOD_GO || pod->state == HF_KPOD_ENDED,
		.now = hf_loop_wall(pod->kubelet->loop),
		.containers = containers,
		.n = pod->n,
	};
	hf_pod_plan(plan);
}

/* --- status --- */

/* Returns the members of a status that this kubelet writes; it leaves the others. */
static struct hf_json *own_part(const struct hf_json *status)
{
	static const char *const keys[] = {
		"phase", "reason", "message",   "conditions",        "hostIP",
		"podIP", "podIPs", "startTime", "containerStatuses", "initContainerStatuses",
	};
	struct hf_json *part = hf_json_object();

	for (size_t i = 0; i < HF_ARRAY_LEN(keys); i++)
		hf_json_set(part, keys[i], hf_json_copy(hf_json_get(status, keys[i])));
	return part;
}

static void take_doc(struct hf_kpod *pod, struct hf_doc *doc)
{
	int64_t version;

	/* A reply may arrive before the events of earlier writes. */
	if (hf_str_to_i64(hf_doc_resource_version(doc), 0, INT64_MAX, &version, NULL) == 0) {
		if ((uint64_t)version < pod->doc_version)
			return;
		pod->doc_version = (uint64_t)version;
	}
	hf_doc_ref(doc);
	(void)hf_doc_unref(pod->doc);
	pod->doc = doc;
}

static size_t count_ends(struct hf_doc *doc)
{
	static const char *const lists[] = {"containerStatuses", "initContainerStatuses"};
	size_t n = 0;

	for (size_t l = 0; l < HF_ARRAY_LEN(lists); l++) {
		const struct hf_json *list =
			hf_json_path(hf_doc_json(doc), "status", lists[l], NULL);

		for (size_t i = 0; i < hf_json_len(list); i++) {
			const struct hf_json *s = hf_json_item(list, i);

			n += hf_json_path(s, "state", "terminated", NULL) != NULL;
			n += hf_json_path(s, "lastState", "terminated", NULL) != NULL;
			n += (size_t)hf_json_i64(hf_json_get(s, "restartCount"), 0);
		}
	}
	return n;
}

static void on_status(void *arg, const struct hf_reply *reply)
{
	struct hf_kpod *pod = arg;

	pod->status_call = NULL;
	if (reply->code == 0 && reply->object) {
		size_t before = count_ends(pod->doc);

		take_doc(pod, reply->object);
		/* The operator may wait for a heartbeat after a container's end; an early renewal
		 * of the Lease spares it the wait. */
		if (count_ends(pod->doc) > before && pod->kubelet->node)
			hf_knode_renew(pod->kubelet->node);
		hf_kpod_wake(pod);
	} else if (reply->code != HF_E_NOT_FOUND) {
		/* After a conflict, the newer document arrives soon. */
		wake_in(pod, reply->retry_after > 0         ? reply->retry_after
			     : reply->code == HF_E_CONFLICT ? 50 * HF_MS
							    : REPLY_RETRY);
	}
}

/* Tells whether the stored status is already final. It is then not written again, even if the text
 * would differ. */
static bool is_final(const struct hf_kpod *pod, const struct hf_json *status)
{
	static const char *const lists[] = {"containerStatuses", "initContainerStatuses"};
	const char *phase = hf_json_path_str(status, "phase", NULL);

	if (pod->state != HF_KPOD_ENDED ||
	    (!hf_streq(phase, "Failed") && !hf_streq(phase, "Succeeded")))
		return false;
	for (size_t l = 0; l < HF_ARRAY_LEN(lists); l++) {
		const struct hf_json *list = hf_json_get(status, lists[l]);

		for (size_t i = 0; i < hf_json_len(list); i++)
			if (hf_json_path(hf_json_item(list, i), "state", "running", NULL))
				return false;
	}
	return true;
}

/* Writes the status if it differs from the stored one. Returns true if the store is up to date. */
static bool write_status(struct hf_kpod *pod, const struct hf_pod_plan *plan)
{
	const struct hf_json *stored = hf_json_get(hf_doc_json(pod->doc), "status");
	HF_AUTO_JSON from = own_part(stored);
	HF_AUTO_JSON to = hf_kstatus_build(pod, plan, hf_loop_wall(pod->kubelet->loop));
	HF_AUTO_JSON diff = hf_json_merge_diff(from, to);
	HF_AUTO_JSON patch = hf_json_object();
	HF_AUTO_DOC body = NULL;
	struct hf_json *meta = hf_json_ensure_object(patch, "metadata");
	struct hf_request request = {.verb = HF_VERB_PATCH,
				     .resource = &hf_pods,
				     .ns = pod->ns,
				     .name = pod->name,
				     .subresource = "status",
				     .patch_type = HF_PATCH_MERGE,
				     .field_manager = "kubelet"};

	if (is_final(pod, stored) || hf_json_len(diff) == 0)
		return true;
	if (pod->status_call)
		return false;
	hf_json_set_str(meta, "uid", pod->uid);
	/* A patch replaces the list of conditions. The resourceVersion makes the server refuse it
	 * if another writer has changed a condition meanwhile. */
	hf_json_set_str(meta, "resourceVersion", hf_doc_resource_version(pod->doc));
	hf_json_set(patch, "status", hf_steal(&diff));
	body = hf_doc_from_json(hf_steal(&patch));
	request.body = body;
	pod->status_call = hf_store_request(pod->kubelet->store, &request, on_status, pod);
	return false;
}

/* --- deletion of the object --- */

static void on_deleted(void *arg, const struct hf_reply *reply)
{
	struct hf_kpod *pod = arg;

	pod->delete_call = NULL;
	if (reply->code == 0 || reply->code == HF_E_NOT_FOUND || reply->code == HF_E_CONFLICT) {
		/* The object is deleted, or has a successor of the same name (a conflict), or a
		 * finalizer keeps it. */
		pod->removed = true;
		return;
	}
	wake_in(pod, reply->retry_after > 0 ? reply->retry_after : REPLY_RETRY);
}

static void delete_object(struct hf_kpod *pod)
{
	struct hf_request request = {.verb = HF_VERB_DELETE,
				     .resource = &hf_pods,
				     .ns = pod->ns,
				     .name = pod->name,
				     .precondition_uid = pod->uid,
				     .grace_seconds = 0,
				     .field_manager = "kubelet"};

	if (!pod->delete_call && !pod->removed)
		pod->delete_call = hf_store_request(pod->kubelet->store, &request, on_deleted, pod);
}

static void remove_files(struct hf_kpod *pod)
{
	HF_AUTOFREE char *groups = hf_xasprintf("%s.", pod->uid);
	struct hf_error err;

	hf_cgroup_sweep(&pod->config.cgroups, groups);
	/* The next kubelet tries again to remove the files. */
	if (hf_fs_remove_tree(pod->dir, &err) != 0)
		hf_kubelet_notice(pod->kubelet, "cannot remove the files of pod %s/%s: %s", pod->ns,
				  pod->name, err.text);
}

/* --- messages from the shim --- */

static void tell_events(struct hf_kpod *pod)
{
	for (size_t i = 0; i < pod->n; i++) {
		struct hf_kpod_container *c = &pod->containers[i];
		const struct hf_container_past *past = hf_pod_past_find(&pod->past, c->name);

		if (!past || (int64_t)past->last.number <= c->told ||
		    past->last.state < HF_ATTEMPT_RUNNING)
			continue;
		c->told = (int64_t)past->last.number;
		if (past->last.state == HF_ATTEMPT_FAILED)
			hf_kevent(pod, "Warning", "Failed", "Error: %s", past->last.text);
		else
			hf_kevent(pod, "Normal", "Started", "Started container %s", c->name);
	}
}

/* Continues the stop that an earlier kubelet has recorded, with a new grace period. */
static void take_stop(struct hf_kpod *pod)
{
	if (pod->stop != HF_KPOD_GO || pod->past.stop == HF_STOPPED_NOT)
		return;
	pod->stop =
		pod->past.stop == HF_STOPPED_BY_DRAIN ? HF_KPOD_STOP_DRAIN : HF_KPOD_STOP_DEADLINE;
	pod->stop_since = hf_loop_mono(pod->kubelet->loop);
	pod->stop_grace = hf_kpod_grace(pod);
	pod->stop_told = true;
}

static void read_journal(struct hf_kpod *pod)
{
	HF_AUTO_FD dir = open(pod->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct hf_error err;

	/* An unreadable journal is read again later; on_shim_gone handles a damaged one. */
	if (dir < 0 || hf_journal_read(dir, &pod->past, &err) != 0)
		return;
	for (size_t i = 0; i < pod->n; i++) {
		struct hf_kpod_container *c = &pod->containers[i];
		const struct hf_container_past *past = hf_pod_past_find(&pod->past, c->name);

		if (past && c->asked && past->last.number >= c->attempt) {
			c->asked = false;
			c->blocked_until = HF_TIME_NONE;
			c->reason[0] = c->message[0] = '\0';
		}
	}
	if (pod->spec_doc)
		take_stop(pod);
	tell_events(pod);
}

static void on_shim_ready(void *arg)
{
	struct hf_kpod *pod = arg;

	if (pod->state == HF_KPOD_SPAWNING)
		pod->state = HF_KPOD_RUNNING;
	pod->trouble[0] = '\0';
	pod->stop_told = false;
	/* Commands sent on a broken connection are repeated. */
	for (size_t i = 0; i < pod->n; i++)
		pod->containers[i].asked = false;
	read_journal(pod);
	hf_khosts_changed(pod->kubelet);
	hf_kpod_wake(pod);
}

static const struct hf_kshim_handler *handler_of(struct hf_kpod *pod,
						 struct hf_kshim_handler *handler);

static void on_shim_failed(void *arg, const char *text)
{
	struct hf_kpod *pod = arg;
	struct hf_kshim_handler handler;

	pod->shim = hf_kshim_destroy(pod->shim);
	/* An earlier kubelet was killed while it started this shim; connects to it. */
	if (hf_streq(text, HF_SHIM_TAKEN)) {
		pod->shim =
			hf_kshim_attach(pod->kubelet->loop, pod->dir, handler_of(pod, &handler));
		return;
	}
	hf_kevent(pod, "Warning", "FailedCreatePodSandBox", "Failed to create pod sandbox: %s",
		  text);
	(void)snprintf(pod->trouble, sizeof(pod->trouble), "failed to create pod sandbox: %s",
		       text);
	pod->trouble_reason[0] = '\0';
	pod->state = HF_KPOD_NEW;
	pod->retry_at = hf_time_add(hf_loop_mono(pod->kubelet->loop), HF_KPOD_RETRY);
	hf_kpod_wake(pod);
}

static void on_shim_journal(void *arg)
{
	struct hf_kpod *pod = arg;

	read_journal(pod);
	hf_kpod_wake(pod);
}

static void on_shim_refused(void *arg, const char *name, unsigned attempt, const char *text)
{
	struct hf_kpod *pod = arg;

	for (size_t i = 0; i < pod->n; i++) {
		struct hf_kpod_container *c = &pod->containers[i];

		if (hf_streq(c->name, name) && c->attempt == attempt && c->asked)
			hf_kstart_block(pod, c, "RunContainerError", text, HF_KPOD_RETRY);
	}
}

/* Marks the pod as lost: the attempts that ran when the shim died have ended, with unknown exit
 * codes. */
static void mark_lost(struct hf_kpod *pod, const char *why)
{
	hf_time now = hf_loop_wall(pod->kubelet->loop);

	pod->lost = true;
	(void)snprintf(pod->lost_text, sizeof(pod->lost_text), "%s", why);
	for (size_t i = 0; i < pod->past.n_containers; i++) {
		struct hf_attempt *a = &pod->past.containers[i].last;

		if (!hf_attempt_running(a))
			continue;
		if (a->state == HF_ATTEMPT_BEGUN)
			a->started = a->begun;
		a->state = HF_ATTEMPT_EXITED;
		a->code = 137;
		a->signum = 0;
		a->finished = now;
		(void)snprintf(a->text, sizeof(a->text),
			       "the container was lost with its shim; its exit code is unknown");
	}
	hf_kevent(pod, "Warning", "Lost", "%s", why);
}

static const char *why_lost(const struct hf_kpod *pod)
{
	struct hf_process_id self;

	if (pod->past.shim.pid && hf_process_id_get(getpid(), &self, NULL) == 0 &&
	    !hf_streq(self.boot_id, pod->past.shim.boot_id))
		return "the machine was restarted while the pod ran";
	return "the pod's shim process is gone, and its containers with it";
}

/* Without a process namespace, descendants of the containers may have survived. */
static void kill_strays(const struct hf_kpod *pod)
{
	if (!pod->config.pid_ns)
		hf_kstray_kill(pod->uid);
}

static void on_shim_gone(void *arg)
{
	struct hf_kpod *pod = arg;
	struct hf_pod_plan plan;
	struct hf_plan_container containers[HF_POD_CONTAINERS_MAX];
	HF_AUTO_FD dir = open(pod->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct hf_error err;
	int rc;

	pod->shim = hf_kshim_destroy(pod->shim);
	/* The pod's containers are not known before the store's document arrives. */
	if (!pod->spec_doc && pod->stop == HF_KPOD_GO) {
		pod->shim_gone = true;
		return;
	}
	pod->shim_gone = false;
	rc = dir < 0 ? HF_E_IO : hf_journal_read(dir, &pod->past, &err);
	/* The shim died before its first container, so another one may be started. */
	if (pod->state == HF_KPOD_SPAWNING &&
	    (rc == HF_E_NOT_FOUND || (rc == 0 && pod->past.n_containers == 0 && !pod->past.quit))) {
		pod->state = HF_KPOD_NEW;
		hf_kpod_wake(pod);
		return;
	}
	if (rc && rc != HF_E_NOT_FOUND)
		mark_lost(pod, "the journal of the pod's shim is damaged");
	else
		tell_events(pod);
	if (pod->spec_doc)
		take_stop(pod);
	hf_kpod_fill_plan(pod, &plan, containers);
	if (!pod->lost && !plan.finished && !pod->past.quit)
		mark_lost(pod, why_lost(pod));
	kill_strays(pod);
	pod->state = HF_KPOD_ENDED;
	hf_khosts_changed(pod->kubelet);
	pod->settled = false;
	hf_kpod_wake(pod);
	hf_kubelet_check_drained(pod->kubelet);
}

static const struct hf_kshim_handler *handler_of(struct hf_kpod *pod,
						 struct hf_kshim_handler *handler)
{
	*handler = (struct hf_kshim_handler){
		.ready = on_shim_ready,
		.failed = on_shim_failed,
		.journal = on_shim_journal,
		.refused = on_shim_refused,
		.gone = on_shim_gone,
		.arg = pod,
	};
	return handler;
}

/* --- preparation and start of the shim --- */

static void set_trouble(struct hf_kpod *pod, const char *reason, const char *message)
{
	bool news = !hf_streq(pod->trouble, message);

	(void)snprintf(pod->trouble_reason, sizeof(pod->trouble_reason), "%s", reason);
	(void)snprintf(pod->trouble, sizeof(pod->trouble), "%s", message);
	if (news)
		hf_kevent(pod, "Warning", "Failed", "%s", message);
}

static int check_spec(const struct hf_kpod *pod, struct hf_error *err)
{
	struct hf_kcheck facts = {
		.isolate = pod->kubelet->isolate, .root = geteuid() == 0, .uid = geteuid()};
	size_t counts[2] = {0, 0};
	int rc = hf_kcheck_pod(hf_kpod_spec(pod), &facts, err);

	for (size_t i = 0; !rc && i < pod->n; i++) {
		const struct hf_kpod_container *c = &pod->containers[i];
		char path[64];

		(void)snprintf(path, sizeof(path), "spec.%s[%zu]",
			       c->init ? "initContainers" : "containers", counts[c->init]++);
		if (hf_dns1123_label_problem(c->name))
			rc = hf_error_set(err, HF_E_INVALID, "%s.name is not a DNS label", path);
		else
			rc = hf_kcheck_container(c->spec, hf_kpod_spec(pod), path, &facts, err);
	}
	return rc;
}

static void describe_sandbox(struct hf_kpod *pod)
{
	const struct hf_kubelet *k = pod->kubelet;
	const struct hf_json *spec = hf_kpod_spec(pod);
	bool host_network = hf_json_true(hf_json_get(spec, "hostNetwork"), false);
	bool host_pid = hf_json_true(hf_json_get(spec, "hostPID"), false);
	char text[HF_NET_IP_MAX];

	hf_arena_reset(pod->arena);
	if (!pod->ip && !(k->isolate && host_network))
		pod->ip = hf_kubelet_take_ip(pod->kubelet);
	hf_net_ip_format(pod->ip, text);
	pod->config = (struct hf_shim_pod){
		.ns = pod->ns,
		.name = pod->name,
		.uid = pod->uid,
		.hostname = hf_arena_strdup(pod->arena,
					    hf_str_or(hf_json_path_str(spec, "hostname", NULL),
						      hf_arena_strndup(pod->arena, pod->name, 63))),
		.isolate = k->isolate,
		.pid_ns = k->isolate && k->pid_ns && !host_pid,
		.host_network = host_network,
		.host_ipc = hf_json_true(hf_json_get(spec, "hostIPC"), false),
		.ip = pod->ip ? hf_arena_strdup(pod->arena, text) : NULL,
		.prefix = HF_NET_PREFIX,
		.gateway = k->uplink ? HF_NET_GATEWAY_IP : NULL,
		.cgroups = k->cgroups,
		.log_bytes_max = HF_KUBELET_LOG_BYTES_MAX,
		.log_files_max = HF_KUBELET_LOG_FILES_MAX,
	};
}

static int make_folders(const struct hf_kpod *pod, struct hf_error *err)
{
	static const char *const folders[] = {"run", "logs", "term", "volumes"};

	for (size_t i = 0; i < HF_ARRAY_LEN(folders); i++) {
		HF_AUTOFREE char *path = hf_xasprintf("%s/%s", pod->dir, folders[i]);
		int rc = hf_fs_mkdirs(path, 0700, err);

		if (rc)
			return rc;
	}
	return 0;
}

static int write_config(const struct hf_kpod *pod, struct hf_error *err)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT((size_t)1 << 20);
	HF_AUTOFREE char *path = hf_xasprintf("%s/" HF_SHIM_CONFIG_FILE, pod->dir);
	HF_AUTO_JSON json = hf_shim_pod_to_json(&pod->config);
	int rc;

	hf_json_write(json, HF_JSON_COMPACT, &sb);
	rc = hf_strbuf_ok(&sb, "the pod's description", err);
	return rc ? rc : hf_fs_write_atomic(path, sb.data, sb.len, 0600, err);
}

static void start_shim(struct hf_kpod *pod)
{
	struct hf_kshim_handler handler;
	struct hf_kenv_input input;
	struct hf_error err;
	int rc;

	describe_sandbox(pod);
	hf_kstart_input(pod, NULL, pod->refs, &input);
	rc = make_folders(pod, &err);
	if (!rc)
		rc = hf_khosts_make(pod, &err);
	if (!rc)
		rc = hf_kvolumes_make(&input, pod->dir, pod->arena, &pod->config, &err);
	if (!rc)
		rc = write_config(pod, &err);
	if (!rc)
		rc = hf_kshim_start(pod->kubelet, pod->dir, handler_of(pod, &handler), &pod->shim,
				    &err);
	if (rc) {
		set_trouble(pod,
			    rc == HF_E_UNSUPPORTED || rc == HF_E_INVALID
				    ? "CreateContainerConfigError"
				    : "ContainerCreating",
			    err.text);
		pod->state = HF_KPOD_NEW;
		pod->retry_at = hf_time_add(hf_loop_mono(pod->kubelet->loop), HF_KPOD_RETRY);
		return;
	}
	pod->state = HF_KPOD_SPAWNING;
	if (pod->start_time == HF_TIME_NONE)
		pod->start_time = hf_loop_wall(pod->kubelet->loop);
}

static void on_volume_refs(void *arg)
{
	struct hf_kpod *pod = arg;

	if (pod->state == HF_KPOD_PREPARING)
		start_shim(pod);
	pod->refs = hf_krefs_destroy(pod->refs);
	hf_kpod_wake(pod);
}

/* Tells whether the store knows of containers that ran, although this folder has no trace of them. */
static bool ran_elsewhere(const struct hf_kpod *pod)
{
	return count_ends(pod->doc) > 0 ||
	       hf_streq(hf_json_path_str(hf_doc_json(pod->doc), "status", "phase", NULL),
			"Running");
}

static void prepare_pod(struct hf_kpod *pod)
{
	struct hf_kubelet *k = pod->kubelet;
	struct hf_error err;

	if (ran_elsewhere(pod)) {
		mark_lost(
			pod,
			"the plane's folder has no files of the pod, although its containers ran");
		pod->state = HF_KPOD_ENDED;
		return;
	}
	if (check_spec(pod, &err) != 0) {
		set_trouble(pod, "CreateContainerConfigError", err.text);
		pod->state = HF_KPOD_REFUSED;
		return;
	}
	if (hf_loop_mono(k->loop) < pod->retry_at) {
		wake_in(pod, pod->retry_at - hf_loop_mono(k->loop));
		return;
	}
	pod->state = HF_KPOD_PREPARING;
	pod->refs = hf_krefs_create(k->store, k->loop, pod->ns);
	hf_kvolumes_add_refs(hf_kpod_spec(pod), pod->refs);
	hf_krefs_fetch(pod->refs, on_volume_refs, pod);
}

/* --- stopping --- */

void hf_kpod_stop(struct hf_kpod *pod, enum hf_kpod_stop why, hf_time grace)
{
	hf_time now = hf_loop_mono(pod->kubelet->loop);

	if (pod->state == HF_KPOD_QUITTING || pod->state == HF_KPOD_ENDED)
		return;
	if (pod->stop == HF_KPOD_GO) {
		pod->stop = why;
		pod->stop_since = now;
		pod->stop_grace = grace;
	} else if (hf_time_add(pod->stop_since, pod->stop_grace) > hf_time_add(now, grace)) {
		pod->stop_grace = now + grace - pod->stop_since;
	} else {
		/* already stopped with a shorter grace; every run of sync_pod calls this again */
		return;
	}
	hf_kpod_wake(pod);
}

/* Tells the shim to record the stop before any container gets a signal. A later reader of the
 * journal then knows that the kubelet caused the ends, even if this program is killed. Returns
 * false if the shim cannot take the command now. */
static bool tell_stop(struct hf_kpod *pod)
{
	if (pod->stop_told || pod->past.stop != HF_STOPPED_NOT)
		return true;
	if (pod->stop == HF_KPOD_STOP_DRAIN)
		pod->stop_told = hf_kshim_command(pod->shim, "stop drain");
	else if (pod->stop == HF_KPOD_STOP_DEADLINE)
		pod->stop_told = hf_kshim_command(pod->shim, "stop deadline");
	else
		pod->stop_told = true;
	return pod->stop_told;
}

static void stop_containers(struct hf_kpod *pod)
{
	hf_time now = hf_loop_mono(pod->kubelet->loop);
	hf_time kill_at = hf_time_add(pod->stop_since, pod->stop_grace);
	bool any = false;

	for (size_t i = 0; i < pod->n; i++) {
		struct hf_kpod_container *c = &pod->containers[i];
		const struct hf_container_past *past = hf_pod_past_find(&pod->past, c->name);

		if (!past || !hf_attempt_running(&past->last))
			continue;
		any = true;
		if (now >= kill_at) {
			hf_kshim_command(pod->shim, "signal %s %u %d", c->name, past->last.number,
					 SIGKILL);
		} else if (c->term_sent < (int64_t)past->last.number) {
			c->term_sent = (int64_t)past->last.number;
			hf_kevent(pod, "Normal", "Killing", "Stopping container %s", c->name);
			hf_kshim_command(pod->shim, "signal %s %u %d", c->name, past->last.number,
					 SIGTERM);
		}
	}
	if (any)
		wake_in(pod, now >= kill_at ? KILL_AGAIN : kill_at - now);
}

/* Stops the pod because of a deletion, a phase that another client has set, or a passed deadline. */
static void look_for_ends(struct hf_kpod *pod)
{
	const struct hf_json *root = hf_doc_json(pod->doc);
	const char *phase = hf_json_path_str(root, "status", "phase", NULL);
	int64_t deadline_s =
		hf_json_i64(hf_json_path(root, "spec", "activeDeadlineSeconds", NULL), -1);
	int64_t grace_s =
		hf_json_i64(hf_json_path(root, "metadata", "deletionGracePeriodSeconds", NULL), -1);

	if (!pod->doc)
		return; /* hf_kpod_gone_from_store has stopped the pod already */
	if (deletion_time(pod))
		hf_kpod_stop(pod, HF_KPOD_STOP_DELETED,
			     grace_s < 0 ? hf_kpod_grace(pod) : grace_s * HF_SECOND);
	if ((hf_streq(phase, "Failed") || hf_streq(phase, "Succeeded")) &&
	    pod->state != HF_KPOD_ENDED)
		hf_kpod_stop(pod, HF_KPOD_STOP_FAILED, hf_kpod_grace(pod));
	if (deadline_s >= 0 && pod->start_time != HF_TIME_NONE && pod->state != HF_KPOD_ENDED) {
		hf_time left = hf_time_add(pod->start_time, deadline_s * HF_SECOND) -
			       hf_loop_wall(pod->kubelet->loop);

		if (left <= 0)
			hf_kpod_stop(pod, HF_KPOD_STOP_DEADLINE, hf_kpod_grace(pod));
		else
			wake_in(pod, left);
	}
}

/* --- choice of the next step --- */

static void run_plan(struct hf_kpod *pod, const struct hf_pod_plan *plan)
{
	if (pod->stop != HF_KPOD_GO && !tell_stop(pod)) {
		wake_in(pod, TELL_AGAIN);
		return;
	}
	if (plan->finished) {
		pod->state = HF_KPOD_QUITTING;
		hf_kshim_command(pod->shim, "quit");
		return;
	}
	if (pod->stop != HF_KPOD_GO) {
		stop_containers(pod);
		return;
	}
	for (size_t i = 0; i < plan->n; i++) {
		const struct hf_plan_container *p = &plan->containers[i];
		struct hf_kpod_container *c = &pod->containers[i];

		if (p->step != HF_STEP_START || c->refs || c->asked)
			continue;
		c->attempt = p->attempt;
		c->backoff_s = p->backoff_s;
		hf_kstart_container(pod, c);
	}
	if (plan->wake != HF_TIME_NEVER)
		wake_in(pod, plan->wake - plan->now);
}

static void act_on_plan(struct hf_kpod *pod, const struct hf_pod_plan *plan)
{
	switch (pod->state) {
	case HF_KPOD_NEW:
	case HF_KPOD_REFUSED:
	case HF_KPOD_PREPARING:
		if (pod->stop != HF_KPOD_GO || !pod->doc) {
			pod->state = HF_KPOD_ENDED;
			hf_kpod_wake(pod);
		} else if (pod->state == HF_KPOD_NEW && pod->kubelet->probed) {
			prepare_pod(pod);
		}
		break;
	case HF_KPOD_RUNNING: run_plan(pod, plan); break;
	case HF_KPOD_QUITTING: hf_kshim_command(pod->shim, "quit"); break;
	case HF_KPOD_SPAWNING:
	case HF_KPOD_ENDED: break;
	}
}

/* Finishes a pod whose processes have ended: waits for the status, deletes the object, and forgets
 * the pod when the object is gone. */
static void finish_pod(struct hf_kpod *pod, bool settled)
{
	if (!pod->doc) {
		remove_files(pod);
		hf_kubelet_forget(pod->kubelet, pod);
		return;
	}
	if (settled && deletion_time(pod))
		delete_object(pod);
}

/* Tells whether this kubelet is ending the pod. Its ends, phase and reason are then written
 * together, as upstream's kubelet does: an end without the reason would count as the program's. */
static bool is_being_ended(const struct hf_kpod *pod, const struct hf_pod_plan *plan)
{
	return (pod->stop == HF_KPOD_STOP_DRAIN || pod->stop == HF_KPOD_STOP_DEADLINE) &&
	       pod->state == HF_KPOD_RUNNING && !plan->finished;
}

static void sync_pod(void *arg)
{
	struct hf_kpod *pod = arg;
	struct hf_plan_container containers[HF_POD_CONTAINERS_MAX];
	struct hf_pod_plan plan;
	enum hf_kpod_state before = pod->state;
	bool settled = true;

	hf_timer_disarm(pod->timer);
	pod->looks++;
	/* A pod found on disk waits for the store's document. */
	if (!pod->doc && pod->stop == HF_KPOD_GO && pod->state != HF_KPOD_ENDED)
		return;
	look_for_ends(pod);
	hf_kpod_fill_plan(pod, &plan, containers);
	act_on_plan(pod, &plan);
	if (pod->state != before)
		hf_kpod_fill_plan(pod, &plan, containers);
	/* The kubelet creates its Node, and writes statuses, once the machine's facts are known. */
	if (pod->doc && pod->kubelet->probed)
		settled = !is_being_ended(pod, &plan) && write_status(pod, &plan);
	pod->settled = settled;
	if (pod->state == HF_KPOD_ENDED && settled)
		hf_kubelet_check_drained(pod->kubelet);
	if (pod->state == HF_KPOD_ENDED)
		finish_pod(pod, settled);
}

/* --- create and destroy --- */

static void add_containers(struct hf_kpod *pod, const char *list_name, bool init)
{
	const struct hf_json *list = hf_json_get(hf_kpod_spec(pod), list_name);

	for (size_t i = 0; i < hf_json_len(list) && pod->n < HF_POD_CONTAINERS_MAX; i++) {
		struct hf_kpod_container *c = &pod->containers[pod->n++];

		*c = (struct hf_kpod_container){
			.pod = pod,
			.spec = hf_json_item(list, i),
			.init = init,
			.blocked_until = HF_TIME_NONE,
			.told = -1,
			.term_sent = -1,
		};
		c->name = hf_str_or(hf_json_path_str(c->spec, "name", NULL), "");
	}
}

static void first_doc(struct hf_kpod *pod, struct hf_doc *doc)
{
	const struct hf_json *status = hf_json_get(hf_doc_json(doc), "status");
	const char *started = hf_json_path_str(status, "startTime", NULL);
	const char *phase = hf_json_path_str(status, "phase", NULL);

	pod->spec_doc = hf_doc_ref(doc);
	free(pod->ns);
	free(pod->name);
	pod->ns = hf_xstrdup(hf_doc_namespace(doc));
	pod->name = hf_xstrdup(hf_doc_name(doc));
	add_containers(pod, "initContainers", true);
	add_containers(pod, "containers", false);
	if (started && hf_time_parse(started, &pod->start_time, NULL) != 0)
		pod->start_time = HF_TIME_NONE;
	/* The pod had ended before this kubelet started. */
	if (pod->state == HF_KPOD_NEW &&
	    (hf_streq(phase, "Failed") || hf_streq(phase, "Succeeded")))
		pod->state = HF_KPOD_ENDED;
	take_stop(pod);
	/* Attempts from before get no new Events. */
	for (size_t i = 0; i < pod->n; i++) {
		const struct hf_container_past *past =
			hf_pod_past_find(&pod->past, pod->containers[i].name);

		if (past)
			pod->containers[i].told = (int64_t)past->last.number;
	}
}

static struct hf_kpod *create_pod(struct hf_kubelet *kubelet, const char *uid)
{
	struct hf_kpod *pod = hf_xcalloc(1, sizeof(*pod));

	pod->kubelet = kubelet;
	pod->uid = hf_xstrdup(uid);
	pod->ns = hf_xstrdup("");
	pod->name = hf_xstrdup("");
	pod->dir = hf_xasprintf("%s/%s", kubelet->pods_dir, uid);
	pod->arena = hf_arena_create(ARENA_BYTES_MAX);
	pod->start_time = HF_TIME_NONE;
	pod->task = hf_task_create(kubelet->loop, sync_pod, pod);
	pod->timer = hf_timer_create(kubelet->loop, sync_pod, pod);
	return pod;
}

struct hf_kpod *hf_kpod_create(struct hf_kubelet *kubelet, struct hf_doc *doc)
{
	struct hf_kpod *pod = create_pod(kubelet, hf_doc_uid(doc));

	hf_kpod_set_doc(pod, doc);
	return pod;
}

struct hf_kpod *hf_kpod_create_found(struct hf_kubelet *kubelet, const char *uid)
{
	struct hf_kpod *pod = create_pod(kubelet, uid);
	HF_AUTO_FD dir = open(pod->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	HF_AUTO_JSON json = NULL;
	struct hf_kshim_handler handler;
	struct hf_error err;

	/* Without pod.json no shim was ever started. */
	if (dir < 0 || hf_shim_read_json(dir, HF_SHIM_CONFIG_FILE, &json, &err) != 0 ||
	    hf_shim_pod_from_json(json, pod->arena, &pod->config, &err) != 0)
		return pod;
	free(pod->ns);
	free(pod->name);
	pod->ns = hf_xstrdup(pod->config.ns);
	pod->name = hf_xstrdup(pod->config.name);
	if (pod->config.ip)
		(void)!hf_net_ip_parse(pod->config.ip, &pod->ip, NULL);
	if (hf_journal_read(dir, &pod->past, &err) == 0 && pod->past.quit) {
		pod->state = HF_KPOD_ENDED;
		return pod;
	}
	pod->state = HF_KPOD_SPAWNING;
	pod->shim = hf_kshim_attach(kubelet->loop, pod->dir, handler_of(pod, &handler));
	return pod;
}

struct hf_kpod *hf_kpod_destroy(struct hf_kpod *pod)
{
	if (!pod)
		return NULL;
	hf_call_cancel(pod->status_call);
	hf_call_cancel(pod->delete_call);
	for (size_t i = 0; i < pod->n; i++)
		pod->containers[i].refs = hf_krefs_destroy(pod->containers[i].refs);
	pod->refs = hf_krefs_destroy(pod->refs);
	pod->shim = hf_kshim_destroy(pod->shim);
	pod->task = hf_task_destroy(pod->task);
	pod->timer = hf_timer_destroy(pod->timer);
	pod->arena = hf_arena_destroy(pod->arena);
	(void)hf_doc_unref(pod->doc);
	(void)hf_doc_unref(pod->spec_doc);
	free(pod->uid);
	free(pod->ns);
	free(pod->name);
	free(pod->dir);
	free(pod);
	return NULL;
}

void hf_kpod_set_doc(struct hf_kpod *pod, struct hf_doc *doc)
{
	if (!pod->spec_doc)
		first_doc(pod, doc);
	take_doc(pod, doc);
	if (pod->shim_gone)
		on_shim_gone(pod);
	hf_kpod_wake(pod);
}

void hf_kpod_gone_from_store(struct hf_kpod *pod)
{
	hf_call_cancel(pod->status_call);
	hf_call_cancel(pod->delete_call);
	pod->status_call = pod->delete_call = NULL;
	(void)hf_doc_unref(pod->doc);
	pod->doc = NULL;
	/* The pod was force-deleted, or belongs to another store: it ends without a grace period. */
	hf_kpod_stop(pod, HF_KPOD_STOP_DELETED, 0);
	if (pod->shim_gone)
		on_shim_gone(pod);
	hf_kpod_wake(pod);
}
