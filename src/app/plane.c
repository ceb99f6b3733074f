/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The embedded plane: the store with garbage collector and scheduler, the kubelet and the
 * operator, on one loop. `run` and `up` use it. */
#include "app/plane.h"

#include "agent/agent.h"
#include "agent/exec_socket.h"
#include "apiserver/admission.h"
#include "app/node_health.h"
#include "app/page_joint.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"
#include "memstore/gc.h"
#include "scheduler/scheduler.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Limit for the base environment; larger than ARG_MAX, the kernel's limit of a process's
 * environment. */
#define ENVIRON_BYTES_MAX ((size_t)3 << 20)

/* The built-in init container of PyTorchJobs, which waits until the Master's name resolves, but without
 * requests: the plane has one small node, and the requests of 50m each would keep ranks waiting for
 * CPUs that the init containers do not use. */
static const char init_template[] =
	"- name: " HF_PLANE_INIT_CONTAINER "\n"
	"  image: '{{.InitContainerImage}}'\n"
	"  imagePullPolicy: IfNotPresent\n"
	"  command:\n"
	"  - sh\n"
	"  - -c\n"
	"  - err=1;for i in $(seq {{.MaxTries}}); do if nslookup {{.MasterAddr}}; then err=0 && break; "
	"fi;echo waiting for master; sleep 2; done; exit $err\n";

struct hf_plane {
	struct hf_plane_options options;
	struct hf_memstore *memstore;
	struct hf_gc *gc;
	struct hf_scheduler *scheduler;
	struct hf_kubelet *kubelet;
	struct hf_metrics *metrics;
	struct hf_operator *op;
	struct hf_report_socket *beats;
	struct hf_exec_socket *execs;
	struct hf_page_joint *page; /* NULL: no page */
	struct hf_node_health
		/* the agent; NULL: the node offers no GPUs, and no `holdfast exec` has
		 * connected */
		*health;
	/* "NAME=PATH", for containers: the socket for training reports; NULL: no socket */
	char *beats_env;
	/* set by hf_plane_stop */
	hf_time grace;
	void (*stopped)(void *arg);
	void *stopped_arg;
	bool stopping;
	bool operator_stopped;
};

int hf_plane_default_dir(char **ret_dir, struct hf_error *err)
{
	const char *dir = getenv("HOLDFAST_DIR"), *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");

	if (!hf_str_is_empty(dir) && dir[0] == '/')
		*ret_dir = hf_xstrdup(dir);
	else if (!hf_str_is_empty(dir))
		return hf_error_set(err, HF_E_INVALID,
				    "HOLDFAST_DIR must be an absolute path, not '%s'", dir);
	else if (!hf_str_is_empty(state) && state[0] == '/')
		*ret_dir = hf_xasprintf("%s/holdfast", state);
	else if (!hf_str_is_empty(home) && home[0] == '/')
		*ret_dir = hf_xasprintf("%s/.local/state/holdfast", home);
	else
		return hf_error_set(
			err, HF_E_INVALID,
			"no folder for Holdfast's data: set HOME or HOLDFAST_DIR to an absolute path");
	return 0;
}

int hf_plane_make_dir(const char *dir, struct hf_error *err)
{
	struct hf_error why;
	int rc = hf_fs_mkdirs(dir, 0700, &why);

	if (rc == 0 || rc == HF_E_NO_SPACE) {
		if (rc != 0)
			*err = why;
		return rc;
	}
	/* Every other error becomes HF_E_IO, because "not found" or "forbidden" would look like an
	 * answer of an API server. */
	return hf_error_set(err, HF_E_IO, "%s", why.text);
}

static void on_notice(void *arg, const char *text)
{
	struct hf_plane *plane = arg;

	if (plane->options.notice != NULL)
		plane->options.notice(plane->options.arg, text);
}

static void send_target(void *arg HF_UNUSED, struct hf_exec_peer *peer,
			const struct hf_process_target *target)
{
	hf_exec_socket_send(peer, target);
}

/* Creates the agent. An error is only a notice, because training works without the agent. */
static void create_health(struct hf_plane *plane, bool gpus)
{
	HF_AUTOFREE char *journal =
		plane->options.in_memory ? NULL : hf_xasprintf("%s/agent", plane->options.dir);
	const struct hf_node_health_options options = {.loop = plane->options.loop,
						       .store = hf_memstore_store(plane->memstore),
						       .kubelet = plane->kubelet,
						       .gpus = gpus,
						       .send_target = send_target,
						       .journal = journal};
	struct hf_error err;

	if (journal != NULL && hf_fs_mkdirs(journal, 0700, &err) != 0)
		on_notice(plane, err.text);
	else if (hf_node_health_create(&options, &plane->health, &err) != 0)
		on_notice(plane, err.text);
}

static bool find_sender(void *arg, pid_t pid, char ret_uid[HF_REPORT_POD_UID_MAX]);

/* Starts the agent when the first `holdfast exec` connects, if it does not run already. On a node
 * without GPUs no agent runs before: so a node with neither GPUs nor exec has no DeviceHealth. */
static bool on_exec_opened(void *arg, struct hf_exec_peer *peer, const char *pod_uid)
{
	struct hf_plane *plane = arg;

	if (plane->stopping)
		return false;
	if (plane->health == NULL)
		create_health(plane, false);
	return plane->health != NULL &&
	       hf_agent_exec_opened(hf_node_health_agent(plane->health), peer, pod_uid);
}

static void on_exec_told(void *arg, struct hf_exec_peer *peer, const struct hf_process_state *state)
{
	struct hf_plane *plane = arg;

	hf_agent_exec_told(hf_node_health_agent(plane->health), peer, state);
}

static void on_exec_noted(void *arg, const char *pod_uid, const char *words)
{
	struct hf_plane *plane = arg;

	hf_agent_exec_noted(hf_node_health_agent(plane->health), pod_uid, words);
}

static void on_exec_closed(void *arg, struct hf_exec_peer *peer)
{
	struct hf_plane *plane = arg;

	hf_agent_exec_closed(hf_node_health_agent(plane->health), peer);
}

static void on_exec_trouble(void *arg, const char *why)
{
	if (why != NULL)
		on_notice(arg, why);
}

/* Opens the socket for `holdfast exec`. An error is only a notice: without the socket a failed
 * rank gets a new pod instead of a restart in place. */
static void create_execs(struct hf_plane *plane)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/" HF_EXEC_SOCKET_FILE, plane->options.dir);
	const struct hf_exec_socket_options options = {.loop = plane->options.loop,
						       .path = path,
						       .mode = 0600,
						       .identify = find_sender,
						       .opened = on_exec_opened,
						       .told = on_exec_told,
						       .noted = on_exec_noted,
						       .closed = on_exec_closed,
						       .trouble = on_exec_trouble,
						       .arg = plane,
						       .metrics = plane->metrics};
	struct hf_error err;

	if (hf_exec_socket_create(&options, &plane->execs, &err) != 0)
		on_notice(plane, err.text);
}

static void on_passed(void *arg, const struct hf_operator_pass *pass)
{
	struct hf_plane *plane = arg;

	hf_page_joint_passed(plane->page, pass);
	if (plane->options.passed != NULL)
		plane->options.passed(plane->options.arg, pass);
}

static void on_seen(void *arg, const char *key)
{
	hf_page_joint_seen(((struct hf_plane *)arg)->page, key);
}

static void on_noted(void *arg, const struct hf_event_note *note, hf_time now)
{
	hf_page_joint_noted(((struct hf_plane *)arg)->page, note, now);
}

static void on_problem(void *arg, const char *key, int code, const char *message)
{
	struct hf_plane *plane = arg;

	if (plane->options.problem != NULL)
		plane->options.problem(plane->options.arg, key, code, message);
}

/* Creates the operator, after the search for GPUs. Only if the node has GPUs does the operator
 * wait for DeviceHealth before it declares a failure final. The plane has one node, so the
 * operator never avoids it for a failed device. */
static int create_operator(struct hf_plane *plane, struct hf_error *err)
{
	bool gpus = hf_kubelet_offered_gpus(plane->kubelet) > 0;
	struct hf_operator_options options = {
		.loop = plane->options.loop,
		.store = hf_memstore_store(plane->memstore),
		.frameworks = hf_frameworks,
		.settings = {.no_autoscaler = true,
			     .no_fence = true,
			     .exec_program = "holdfast", /* in the pods' PATH */
			     .recovery = {.device_avoid = {.set = true, .value = false}}},
		.watch_nodes = gpus && plane->options.watch_gpus,
		.watch_agents = true,
		.init_container_template = plane->options.no_init_containers ? "[]" : init_template,
		.passed = on_passed,
		.problem = on_problem,
		.seen = on_seen,
		.noted = on_noted,
		.arg = plane,
	};
	int rc = hf_random_bytes(&options.seed, sizeof(options.seed), err);

	if (rc != 0)
		return rc;
	if (plane->options.no_operator)
		return 0;
	options.metrics = plane->metrics;
	rc = hf_operator_create(&options, &plane->op, err);
	if (rc == 0)
		hf_operator_start(plane->op);
	if (rc == 0)
		hf_page_joint_changed(plane->page);
	return rc;
}

static void on_ready(void *arg, int code, const char *message)
{
	struct hf_plane *plane = arg;
	struct hf_error err;

	if (plane->stopping)
		return;
	if (plane->options.only_drains) {
		plane->options.ready(plane->options.arg, code, message);
		return;
	}
	if (code == 0 && plane->options.watch_gpus && hf_kubelet_offered_gpus(plane->kubelet) > 0)
		create_health(plane, true);
	if (code == 0)
		create_execs(plane);
	if (code == 0) {
		code = create_operator(plane, &err);
		message = code != 0 ? err.text : message;
	}
	if (plane->options.ready != NULL)
		plane->options.ready(plane->options.arg, code, message);
}

static void on_health(void *arg, const struct hf_error *err)
{
	struct hf_plane *plane = arg;

	if (plane->options.health != NULL)
		plane->options.health(plane->options.arg, err);
}

static int create_store(struct hf_plane *plane, struct hf_error *err)
{
	HF_AUTOFREE char *store_dir = hf_xasprintf("%s/store", plane->options.dir);
	struct hf_memstore_options options = {
		.data_dir = plane->options.in_memory ? NULL : store_dir,
		.health = on_health,
		.health_arg = plane,
	};
	int rc = hf_memstore_create(plane->options.loop, &options, &plane->memstore, err);

	if (rc != 0)
		return rc;
	hf_admission_install(plane->memstore, hf_frameworks);
	plane->gc = hf_gc_create(plane->memstore, NULL);
	if (plane->options.only_drains)
		return 0;
	plane->scheduler = hf_scheduler_create(
		plane->memstore,
		&(struct hf_scheduler_options){.missing_claims = plane->options.in_memory});
	return 0;
}

static bool find_sender(void *arg HF_UNUSED, pid_t pid, char ret_uid[HF_REPORT_POD_UID_MAX])
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(ENVIRON_BYTES_MAX);
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	return hf_fs_read(path, &text, NULL) == 0 &&
	       hf_report_socket_pod_of_environ(text.data, text.len, ret_uid);
}

static void on_heard(void *arg, const char *pod_uid, const struct hf_beat *beat)
{
	struct hf_plane *plane = arg;

	if (plane->page != NULL)
		hf_page_see_beat(hf_page_joint_page(plane->page), pod_uid, beat);
	if (plane->options.heard != NULL)
		plane->options.heard(plane->options.arg, pod_uid, beat);
}

/* Opens the socket for reports of training processes. An error is only a notice: training works without
 * reports. */
static void create_beats(struct hf_plane *plane)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/agent.sock", plane->options.dir);
	const struct hf_report_socket_options options = {.loop = plane->options.loop,
							 .path = path,
							 .mode = 0600,
							 .identify = find_sender,
							 .heard = on_heard,
							 .arg = plane,
							 .metrics = plane->metrics};
	struct hf_error err;

	if (hf_report_socket_create(&options, &plane->beats, &err) == 0)
		plane->beats_env = hf_xasprintf("HOLDFAST_AGENT_SOCKET=%s", path);
	else
		on_notice(plane, err.text);
}

static int find_claims_dir(const struct hf_plane_options *options, char **ret_dir,
			   struct hf_error *err)
{
	HF_AUTOFREE char *base = NULL;

	if (options->claims_dir != NULL) {
		*ret_dir = hf_xstrdup(options->claims_dir);
		return 0;
	}
	if (options->in_memory && hf_plane_default_dir(&base, err) != 0)
		return err->code;
	*ret_dir = hf_xasprintf("%s/claims", base != NULL ? base : options->dir);
	return 0;
}

static int create_kubelet(struct hf_plane *plane, struct hf_error *err)
{
	HF_AUTOFREE char *claims_dir = NULL;
	HF_AUTOFREE char *pods_dir = hf_xasprintf("%s/node", plane->options.dir);
	size_t n = 0;

	while (plane->options.env != NULL && plane->options.env[n] != NULL)
		n++;
	HF_AUTOFREE const char **env = hf_xcalloc(n + 2, sizeof(*env));
	for (size_t i = 0; i < n; i++)
		env[i] = plane->options.env[i];
	env[n] = plane->beats_env;
	struct hf_kubelet_options options = {
		.loop = plane->options.loop,
		.store = hf_memstore_store(plane->memstore),
		.state_dir = pods_dir,
		.gpus = plane->options.gpus,
		.make_claims = plane->options.in_memory,
		.pods_end_with_process = plane->options.in_memory,
		.only_drains = plane->options.only_drains,
		.network = plane->options.network,
		.pods_max = plane->options.pods_max,
		.env = env,
		.kept_logs = plane->options.kept_logs,
		.notice = on_notice,
		.ready = on_ready,
		.arg = plane,
	};
	int rc = find_claims_dir(&plane->options, &claims_dir, err);

	options.claims_dir = claims_dir;
	if (rc == 0)
		rc = hf_kubelet_create(&options, &plane->kubelet, err);
	if (rc == 0)
		hf_memstore_set_logs(plane->memstore,
				     &(struct hf_memstore_logs){.start = hf_kubelet_logs,
								.arg = plane->kubelet});
	return rc;
}

static struct hf_operator *find_operator(void *arg)
{
	return ((const struct hf_plane *)arg)->op;
}

static int create_page(struct hf_plane *plane, struct hf_error *err)
{
	const struct hf_page_joint_options options = {
		.loop = plane->options.loop,
		.store = hf_memstore_store(plane->memstore),
		.find_operator = find_operator,
		.arg = plane,
		.address = plane->options.page,
		.watch_nodes = true,
		.metrics = plane->metrics,
	};

	return plane->options.page == NULL ? 0 : hf_page_joint_create(&options, &plane->page, err);
}

void hf_plane_print_page(const struct hf_plane *plane, const char *prefix, FILE *out)
{
	HF_AUTO_STRBUF url = HF_STRBUF_INIT(1024);

	if (plane->page == NULL)
		return;
	hf_page_joint_url(plane->page, &url);
	fprintf(out, "%spage: %s\n", prefix, url.data);
	(void)fflush(out);
}

int hf_plane_create(const struct hf_plane_options *options, struct hf_plane **ret_plane,
		    struct hf_error *err)
{
	struct hf_plane *plane = hf_xcalloc(1, sizeof(*plane));
	int rc;

	plane->options = *options;
	plane->metrics = hf_metrics_create();
	rc = hf_plane_make_dir(options->dir, err);
	if (rc == 0)
		rc = create_store(plane, err);
	if (rc == 0 && !options->only_drains)
		create_beats(plane);
	if (rc == 0)
		rc = create_kubelet(plane, err);
	if (rc == 0)
		rc = create_page(plane, err);
	if (rc != 0) {
		hf_plane_destroy(plane);
		return rc;
	}
	*ret_plane = plane;
	return 0;
}

struct hf_plane *hf_plane_destroy(struct hf_plane *plane)
{
	if (plane == NULL)
		return NULL;
	plane->op = hf_operator_destroy(plane->op);
	plane->page = hf_page_joint_destroy(plane->page);
	plane->metrics = hf_metrics_destroy(plane->metrics);
	if (plane->memstore != NULL)
		hf_memstore_set_logs(plane->memstore, NULL);
	plane->execs = hf_exec_socket_destroy(plane->execs);
	plane->health = hf_node_health_destroy(plane->health);
	plane->kubelet = hf_kubelet_destroy(plane->kubelet);
	plane->beats = hf_report_socket_destroy(plane->beats);
	free(plane->beats_env);
	plane->scheduler = hf_scheduler_destroy(plane->scheduler);
	plane->gc = hf_gc_destroy(plane->gc);
	plane->memstore = hf_memstore_destroy(plane->memstore);
	free(plane);
	return NULL;
}

static void drain_pods(struct hf_plane *plane)
{
	hf_kubelet_drain(plane->kubelet, plane->grace, plane->stopped, plane->stopped_arg);
}

static void operator_stopped(void *arg)
{
	struct hf_plane *plane = arg;

	plane->operator_stopped = true;
	drain_pods(plane);
}

void hf_plane_stop(struct hf_plane *plane, hf_time grace, void (*stopped)(void *arg), void *arg)
{
	plane->grace = grace;
	plane->stopped = stopped;
	plane->stopped_arg = arg;
	if (!plane->stopping && plane->op == NULL) {
		plane->stopping = true;
		operator_stopped(plane);
	} else if (!plane->stopping) {
		plane->stopping = true;
		hf_operator_stop(plane->op, operator_stopped, plane);
	} else if (plane->operator_stopped) {
		drain_pods(plane);
	}
}

struct hf_memstore *hf_plane_local(struct hf_plane *plane)
{
	return plane->memstore;
}

struct hf_store *hf_plane_store(struct hf_plane *plane)
{
	return hf_memstore_store(plane->memstore);
}

struct hf_kubelet *hf_plane_kubelet(struct hf_plane *plane)
{
	return plane->kubelet;
}

struct hf_operator *hf_plane_operator(struct hf_plane *plane)
{
	return plane->op;
}

struct hf_metrics *hf_plane_metrics(struct hf_plane *plane)
{
	if (plane->page != NULL)
		hf_page_update_metrics(hf_page_joint_page(plane->page));
	return plane->metrics;
}
