/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast agent: runs the agent of one node. Connects the store over HTTPS, the device probes,
 * the agent and its HTTP page, and returns free memory to the kernel. */
#include "agent/agent.h"
#include "agent/csi_driver.h"
#include "agent/node_check.h"
#include "agent/rules_file.h"
#include "agent/single_instance.h"
#include "app/agent_page.h"
#include "app/capabilities.h"
#include "app/process_memory.h"
#include "app/verbs.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "health/contact.h"
#include "health/process_line.h"
#include "json/json.h"
#include "kube/kube.h"
#include "probes/nvml.h"
#include "probes/nvml_child.h"
#include "probes/podresources_probe.h"
#include "probes/probe_once.h"
#include "probes/sysfs.h"

#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOST_NAME_BYTES_MAX 256
#define BOOT_ID_BYTES_MAX 64
#define RULES_ARENA_BYTES_MAX ((size_t)1 << 20)
#define STARTED_AFTER (2 * HF_SECOND)
#define TRIM_EVERY (5 * HF_MINUTE)
#define LOOK_TIMEOUT (30 * HF_SECOND)
/* How long a new agent waits for the previous agent of the node to end. Kubernetes gives a pod 30
 * seconds to end, and the DaemonSet gives the agent 10. */
#define OTHER_AGENT_PATIENCE (30 * HF_SECOND)
#define LOCK_AGAIN_EVERY (10 * HF_SECOND)

#define DEFAULT_KMSG "/dev/kmsg"
#define DEFAULT_STATE_DIR "/var/lib/holdfast-agent"
#define DEFAULT_NVML "libnvidia-ml.so.1"
#define DEFAULT_SOCKET "/var/lib/kubelet/pod-resources/kubelet.sock"
#define DEFAULT_REPORT_SOCKET "/run/holdfast/agent.sock"
#define DEFAULT_LISTEN "127.0.0.1:7445"

struct process {
	struct hf_cli *cli;
	struct hf_loop *loop;
	struct hf_kube_config kube;
	struct hf_store *store;
	struct hf_metrics *metrics;
	struct hf_arena *arena; /* holds the rules of --rules */
	struct hf_health_rules rules;
	bool has_rules;
	char node[HOST_NAME_BYTES_MAX], boot_id[BOOT_ID_BYTES_MAX];
	int lock_fd; /* descriptor that holds the lock of the state directory; -1: not held */
	const char *nvml;
	char *child_argv[5];
	char *resource_names; /* what resources[] points into */
	const char *resources[HF_KUBELET_RESOURCES_MAX + 1];
	struct hf_agent *agent;
	struct hf_csi_driver *csi; /* NULL: off */
	struct hf_agent_page *page;
	struct hf_signal *sigterm, *sigint;
	struct hf_timer *trim_timer, *lock_timer;
};

static const char *flag_or(const struct process *process, const char *name, const char *fallback)
{
	return hf_cli_has(process->cli, name) ? hf_cli_flag(process->cli, name) : fallback;
}

static void on_signal(void *arg, int signum)
{
	struct process *process = arg;

	hf_log(HF_LOG_INFO, "setup", "Stopping", "signal", strsignal(signum), NULL);
	hf_agent_stop(process->agent);
	hf_loop_stop(process->loop);
}

static void on_trim(void *arg)
{
	struct process *process = arg;

	hf_process_memory_drop_start();
	(void)hf_process_memory_trim();
	hf_timer_arm(process->trim_timer, TRIM_EVERY);
}

/* ---- set-up ----------------------------------------------------------------------------------- */

/* Reads the boot ID from --proc, which tests and containers may set to another folder. */
static int read_boot_id(struct process *process, struct hf_error *err)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(BOOT_ID_BYTES_MAX);
	HF_AUTOFREE char *path =
		hf_xasprintf("%s/sys/kernel/random/boot_id", flag_or(process, "proc", "/proc"));
	int rc = hf_fs_read(path, &text, err);

	if (rc != 0)
		return hf_error_wrap(
			err,
			"cannot read the boot ID, which tells device faults of this boot from older ones");
	snprintf(process->boot_id, sizeof(process->boot_id), "%.*s", (int)strcspn(text.data, "\n"),
		 text.data);
	return 0;
}

/* Chooses the name of the Node. By default the kubelet uses the host name in lower case. */
static int find_node(struct process *process, struct hf_error *err)
{
	const char *name = flag_or(process, "node-name", getenv("NODE_NAME"));

	if (hf_str_is_empty(name)) {
		if (gethostname(process->node, sizeof(process->node) - 1) != 0)
			process->node[0] = '\0';
		hf_str_lower(process->node);
	} else {
		snprintf(process->node, sizeof(process->node), "%s", name);
	}
	if (hf_dns1123_subdomain_problem(process->node) != NULL)
		return hf_error_set(
			err, HF_E_INVALID,
			"--node-name '%s': not a valid node name; give the name from 'kubectl get nodes'",
			process->node);
	return 0;
}

static int read_rules(struct process *process, struct hf_error *err)
{
	const char *path = hf_cli_flag(process->cli, "rules");

	if (path == NULL)
		return 0;
	process->arena = hf_arena_create(RULES_ARENA_BYTES_MAX);
	process->has_rules = true;
	return hf_rules_load(path, process->arena, &process->rules, err);
}

static int connect_store(struct process *process, struct hf_error *err)
{
	const char *path = hf_cli_flag(process->cli, "kubeconfig");
	const struct hf_kube_load load = {
		.paths = path,
		.required = path != NULL,
		.context = hf_cli_flag(process->cli, "context"),
	};
	int rc = hf_kube_config_find(&load, &process->kube, err);

	if (rc == 0)
		rc = hf_loop_create(&process->loop, err);
	if (rc == 0)
		rc = hf_kube_create(process->loop, &process->kube, &process->store, err);
	return rc;
}

static bool misses_resource(void *arg)
{
	return hf_agent_misses_resource(arg);
}

static void add_probes(struct process *process)
{
	struct hf_intake *intake = hf_agent_intake(process->agent);
	const struct hf_nvml_options nvml = {
		.library = process->nvml,
		.child_argv = (const char *const *)process->child_argv,
	};
	const struct hf_sysfs_options sysfs = {
		.sys_root = hf_cli_flag(process->cli, "sysfs"),
		.proc_root = hf_cli_flag(process->cli, "proc"),
		.aer = *flag_or(process, "kmsg", DEFAULT_KMSG) == '\0',
	};
	const struct hf_kubelet_options kubelet = {
		.socket_path = flag_or(process, "kubelet-socket", DEFAULT_SOCKET),
		.resources = process->resources[0] ? process->resources : NULL,
		.was_gone = misses_resource,
		.arg = process->agent,
	};

	hf_agent_add_probe(process->agent, hf_nvml_probe_create(intake, &nvml));
	hf_agent_add_probe(process->agent, hf_sysfs_probe_create(intake, &sysfs));
	hf_agent_add_probe(process->agent, hf_kubelet_probe_create(intake, &kubelet));
}

static int read_resources(struct process *process, struct hf_error *err)
{
	size_t len = 0;
	char *save = NULL;

	process->resource_names = hf_xstrdup(flag_or(process, "resources", ""));
	for (char *name = strtok_r(process->resource_names, ",", &save); name;
	     name = strtok_r(NULL, ",", &save)) {
		if (len == HF_KUBELET_RESOURCES_MAX || hf_qualified_name_problem(name))
			return hf_error_set(err, HF_E_INVALID,
					    "--resources: '%s' is not a resource name such as "
					    "nvidia.com/gpu, or there are too many names",
					    name);
		process->resources[len++] = name;
	}
	return 0;
}

static void on_other_agent(void *arg)
{
	const char *const *dir = arg;

	hf_log(HF_LOG_WARN, "setup",
	       "Another agent uses this state directory: waiting until it ends", "stateDir", *dir,
	       NULL);
}

static void on_lock_timer(void *arg)
{
	struct process *process = arg;
	const char *dir = flag_or(process, "state-dir", DEFAULT_STATE_DIR);

	if (hf_single_instance_take(dir, 0, NULL, NULL, &process->lock_fd) ==
	    HF_SINGLE_INSTANCE_YES)
		hf_log(HF_LOG_INFO, "setup", "The other agent has ended", "stateDir", dir, NULL);
	else
		hf_timer_arm(process->lock_timer, LOCK_AGAIN_EVERY);
}

static void lock_state(struct process *process, const char *dir)
{
	if (hf_single_instance_take(dir, OTHER_AGENT_PATIENCE, on_other_agent, &dir,
				    &process->lock_fd) != HF_SINGLE_INSTANCE_NO)
		return;
	hf_log(HF_LOG_ERROR, "setup",
	       "Another agent still uses this state directory: both agents write one journal; "
	       "end one of them",
	       "stateDir", dir, NULL);
	process->lock_timer = hf_timer_create(process->loop, on_lock_timer, process);
	hf_timer_arm(process->lock_timer, LOCK_AGAIN_EVERY);
}

/* Returns the path of `file` in the folder that has the socket of the reports. */
static char *beside_socket(const char *socket, const char *file)
{
	const char *slash = strrchr(socket, '/');

	return hf_xasprintf("%.*s%s", slash != NULL ? (int)(slash - socket + 1) : 0, socket, file);
}

static void on_csi_registered(void *arg HF_UNUSED, const char *error)
{
	if (error != NULL)
		hf_log(HF_LOG_ERROR, "setup", "The kubelet refused the CSI driver", "driver",
		       HF_CSI_DRIVER_NAME, "error", error, NULL);
	else
		hf_log(HF_LOG_INFO, "setup", "The kubelet has registered the CSI driver", "driver",
		       HF_CSI_DRIVER_NAME, NULL);
}

static void on_csi_trouble(void *arg HF_UNUSED, const char *why)
{
	if (why != NULL)
		hf_log(HF_LOG_ERROR, "setup", "The kubelet cannot reach the CSI driver", "error",
		       why, NULL);
	else
		hf_log(HF_LOG_INFO, "setup", "The kubelet can reach the CSI driver again", NULL);
}

static int create_csi(struct process *process, struct hf_error *err)
{
	const char *dir = flag_or(process, "csi-kubelet-dir", "");
	const char *reports = flag_or(process, "report-socket", DEFAULT_REPORT_SOCKET);
	const char *slash = strrchr(reports, '/');
	HF_AUTOFREE char *folder =
		hf_xstrndup(reports, slash != NULL ? (size_t)(slash - reports) : 0);
	const struct hf_csi_driver_options options = {.loop = process->loop,
						      .kubelet_dir = dir,
						      .folder = folder,
						      .node = process->node,
						      .registered = on_csi_registered,
						      .trouble = on_csi_trouble};

	if (*dir == '\0')
		return 0;
	if (folder[0] != '/' || dir[0] != '/')
		return hf_error_set(
			err, HF_E_INVALID,
			"--csi-kubelet-dir needs a folder from '/', and --report-socket "
			"too");
	return hf_csi_driver_create(&options, &process->csi, err);
}

static int create_agent(struct process *process, struct hf_error *err)
{
	const char *kmsg = flag_or(process, "kmsg", DEFAULT_KMSG);
	const char *dir = flag_or(process, "state-dir", DEFAULT_STATE_DIR);
	const char *reports = flag_or(process, "report-socket", DEFAULT_REPORT_SOCKET);
	HF_AUTOFREE char *contact = beside_socket(reports, HF_CONTACT_FILE);
	HF_AUTOFREE char *check = beside_socket(reports, HF_NODE_CHECK_SOCKET_FILE);
	HF_AUTOFREE char *exec = beside_socket(reports, HF_EXEC_SOCKET_FILE);
	struct hf_agent_options options = {
		.loop = process->loop,
		.store = process->store,
		.node = process->node,
		.boot_id = process->boot_id,
		.state_dir = *dir != '\0' ? dir : NULL,
		.kmsg = *kmsg != '\0' ? kmsg : NULL,
		.kmsg_trust_user = hf_cli_has(process->cli, "kmsg-trust-user"),
		.sys = flag_or(process, "sysfs", "/sys"),
		.rules = process->has_rules ? &process->rules : NULL,
		.metrics = process->metrics,
		.report_socket = *reports != '\0' ? reports : NULL,
		.exec_socket = *reports != '\0' ? exec : NULL,
		.check_socket = *reports != '\0' ? check : NULL,
		.proc = hf_cli_flag(process->cli, "proc"),
		.contact = *reports != '\0' ? contact : NULL,
	};
	int rc = hf_random_bytes(&options.seed, sizeof(options.seed), err);

	if (rc == 0 && options.state_dir != NULL)
		lock_state(process, options.state_dir);
	if (rc == 0)
		rc = hf_agent_create(&options, &process->agent, err);
	if (rc == 0)
		rc = create_csi(process, err);
	if (rc == 0)
		add_probes(process);
	return rc;
}

static int begin_agent(struct process *process, struct hf_error *err)
{
	const char *listen = flag_or(process, "listen", DEFAULT_LISTEN);
	int rc = find_node(process, err);

	process->metrics = hf_metrics_create();
	if (rc == 0)
		rc = read_boot_id(process, err);
	if (rc == 0)
		rc = read_rules(process, err);
	if (rc == 0)
		rc = read_resources(process, err);
	if (rc == 0)
		rc = connect_store(process, err);
	if (rc == 0)
		rc = create_agent(process, err);
	if (rc == 0)
		rc = hf_agent_page_create(process->loop, process->agent, process->metrics, listen,
					  &process->page, err);
	if (rc == 0)
		rc = hf_signal_create(process->loop, SIGTERM, on_signal, process, &process->sigterm,
				      err);
	if (rc == 0)
		rc = hf_signal_create(process->loop, SIGINT, on_signal, process, &process->sigint,
				      err);
	if (rc != 0)
		return rc;
	process->trim_timer = hf_timer_create(process->loop, on_trim, process);
	hf_timer_arm(process->trim_timer, STARTED_AFTER);
	return 0;
}

static void release_process(struct process *process)
{
	hf_signal_destroy(process->sigterm);
	hf_signal_destroy(process->sigint);
	hf_agent_page_destroy(process->page);
	hf_csi_driver_destroy(process->csi);
	hf_agent_destroy(process->agent);
	hf_store_destroy(process->store);
	hf_timer_destroy(process->trim_timer);
	hf_timer_destroy(process->lock_timer);
	hf_metrics_destroy(process->metrics);
	hf_kube_config_release(&process->kube);
	hf_arena_destroy(process->arena);
	free(process->resource_names);
	hf_fd_cleanup(&process->lock_fd);
	hf_loop_destroy(process->loop);
}

static void tell_start(const struct process *process)
{
	char port[8];

	snprintf(port, sizeof(port), "%u", (unsigned)hf_agent_page_port(process->page));
	hf_log(HF_LOG_INFO, "setup", "Starting", "version", HF_VERSION, "server",
	       process->kube.server, "node", process->node, "bootID", process->boot_id, "port",
	       port, NULL);
}

static void print_checks_json(struct hf_cli *cli, const struct hf_probe_checks *checks)
{
	HF_AUTO_JSON object = hf_json_object();
	struct hf_json *items = hf_json_ensure_array(object, "checks");
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_PROBE_ONCE_BYTES_MAX);

	for (size_t i = 0; i < checks->len; i++) {
		const struct hf_probe_check *check = &checks->items[i];
		struct hf_json *item = hf_json_object();

		hf_json_set_str(item, "name", check->name);
		hf_json_set_str(item, "status", hf_probe_verdict_name(check->verdict));
		hf_json_set_str(item, "message", check->message);
		if (check->missing[0] != '\0')
			hf_json_set_str(item, "missing", check->missing);
		hf_json_append(items, item);
	}
	hf_json_write(object, HF_JSON_INDENTED, &text);
	fprintf(cli->out, "%s\n", text.data);
}

/* Performs --probe-once: prints one check per source of evidence, then the devices and faults that
 * the probes find. Needs no server and writes no journal. */
static int probe_once(struct process *process)
{
	HF_AUTO_STRBUF details = HF_STRBUF_INIT(HF_PROBE_ONCE_BYTES_MAX);
	HF_AUTO_STRBUF lines = HF_STRBUF_INIT(HF_PROBE_ONCE_BYTES_MAX);
	const char *output = hf_cli_flag(process->cli, "output");
	const struct hf_probe_once_options options = {
		.kmsg = flag_or(process, "kmsg", DEFAULT_KMSG),
		.library = process->nvml,
		.child_argv = (const char *const *)process->child_argv,
		.sys_root = flag_or(process, "sysfs", "/sys"),
		.proc_root = flag_or(process, "proc", "/proc"),
		.podresources = flag_or(process, "kubelet-socket", DEFAULT_SOCKET),
		.timeout = LOOK_TIMEOUT,
	};
	struct hf_probe_checks checks;
	struct hf_error err;

	if (output != NULL && !hf_streq(output, "json"))
		return hf_cli_usage(process->cli, "-o takes only json with this verb, not '%s'",
				    output);
	if (hf_loop_create(&process->loop, &err) != 0)
		return hf_cli_fail(process->cli, &err);
	hf_probe_once(process->loop, &options, &checks, &details);
	hf_loop_destroy(process->loop);
	if (output != NULL) {
		print_checks_json(process->cli, &checks);
		return HF_EXIT_OK;
	}
	hf_probe_checks_render(&checks, &lines);
	fprintf(process->cli->out, "%s\n%s", lines.data, details.data);
	return HF_EXIT_OK;
}

/*
 * A privileged container has all capabilities, also if its manifest drops some: containerd ignores that. Of these the agent
 * needs CAP_SYSLOG for /dev/kmsg, and CAP_SYS_ADMIN to mount CSI volumes. The driver's library may need CAP_SYS_ADMIN for MIG
 * instances. An agent outside of a pod keeps its capabilities, because it may read files of other users.
 */
static void give_up_capabilities(const struct process *process)
{
	struct hf_error err;

	if (hf_str_is_empty(getenv("KUBERNETES_SERVICE_HOST")) ||
	    hf_cli_has(process->cli, "kubeconfig"))
		return;
	if (hf_capabilities_keep((uint64_t)1 << CAP_SYSLOG | (uint64_t)1 << CAP_SYS_ADMIN, &err) !=
	    0)
		hf_log(HF_LOG_WARN, "setup", "The agent keeps all capabilities of its container",
		       "error", err.text, NULL);
}

static int run_agent(struct process *process)
{
	struct hf_error err;
	int rc;

	hf_process_memory_set_up();
	hf_log_setup(stderr, HF_LOG_INFO, isatty(STDERR_FILENO) == 1 ? HF_LOG_TEXT : HF_LOG_JSON);
	give_up_capabilities(process);
	rc = begin_agent(process, &err);
	if (rc == 0) {
		tell_start(process);
		hf_agent_start(process->agent);
		hf_loop_run(process->loop);
	} else {
		rc = err.code == HF_E_INVALID || err.code == HF_E_BAD_REQUEST
			     ? hf_cli_usage(process->cli, "%s", err.text)
			     : hf_cli_fail(process->cli, &err);
	}
	release_process(process);
	return rc;
}

static int verb_agent(struct hf_cli *cli)
{
	struct process process = {.cli = cli, .lock_fd = -1};
	int rc;

	if (hf_cli_flag(cli, "output") != NULL && !hf_cli_has(cli, "probe-once"))
		return hf_cli_usage(cli, "-o is accepted only with --probe-once");
	process.nvml = flag_or(&process, "nvml", DEFAULT_NVML);
	/* The hidden mode --nvml-child: a child process loads the driver's library, so that a hang
	 * or crash of the library does not stop the agent. */
	if (hf_cli_has(cli, "nvml-child"))
		return hf_nvml_child_main(process.nvml);
	process.child_argv[0] = hf_xstrdup("/proc/self/exe");
	process.child_argv[1] = hf_xstrdup("agent");
	process.child_argv[2] = hf_xasprintf("--nvml=%s", process.nvml);
	process.child_argv[3] = hf_xstrdup("--nvml-child");
	rc = hf_cli_has(cli, "probe-once") ? probe_once(&process) : run_agent(&process);
	for (size_t i = 0; i < HF_ARRAY_LEN(process.child_argv); i++)
		free(process.child_argv[i]);
	return rc;
}

static const struct hf_flag agent_flags[] = {
	{"node-name", 0, "NAME", "name of this machine's Node", "$NODE_NAME, else the host name"},
	{"kubeconfig", 0, "FILE", "kubeconfig file", "the service account, else $KUBECONFIG"},
	{"context", 0, "NAME", "the context of the kubeconfig file to use", NULL},
	{"kmsg", 0, "FILE", "kernel log, or a FIFO, socket or file of dmesg lines; '': off",
	 DEFAULT_KMSG},
	{"kmsg-trust-user", 0, NULL,
	 "for tests: also trust lines that processes wrote to the kernel log", NULL},
	{"sysfs", 0, "DIR", "where sysfs is mounted", "/sys"},
	{"proc", 0, "DIR", "where procfs is mounted", "/proc"},
	{"nvml", 0, "LIB", "NVIDIA driver library; '': off", DEFAULT_NVML},
	{"nvml-child", 0, NULL, "internal: run as the child process that loads NVIDIA's library",
	 NULL},
	{"probe-once", 0, NULL,
	 "check what the agent can see on this node: ok, warn or fail per source, then details",
	 NULL},
	{"output", 'o', "FORMAT", "json: the checks of --probe-once", NULL},
	{"kubelet-socket", 0, "PATH", "socket of the PodResources API; '': off", DEFAULT_SOCKET},
	{"resources", 0, "NAMES", "resources to count as whole devices",
	 "nvidia.com/gpu,amd.com/gpu"},
	{"report-socket", 0, "PATH",
	 "socket for reports of training processes, with exec.sock beside it; '': off",
	 DEFAULT_REPORT_SOCKET},
	{"csi-kubelet-dir", 0, "DIR",
	 "folder of the kubelet, to offer pods the socket's folder as CSI volume " HF_CSI_DRIVER_NAME
	 "; '': off",
	 "off"},
	{"rules", 0, "FILE", "JSON rules that classify evidence", "the built-in rules"},
	{"state-dir", 0, "DIR", "folder of the journal; '': no journal", DEFAULT_STATE_DIR},
	{"listen", 0, "ADDRESS", "address of the page, /metrics, /healthz and /readyz; 0: off",
	 DEFAULT_LISTEN},
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_agent = {
	.name = "agent",
	.summary = "Watch the devices of this node, as the DaemonSet does",
	.usage = "[FLAGS]",
	.group = HF_CLI_ON_CLUSTER,
	.examples = "  holdfast agent --node-name gpu-7 --kubeconfig agent.conf\n"
		    "  holdfast agent --kmsg /tmp/kmsg.fifo --nvml '' --kubelet-socket ''\n"
		    "  holdfast agent --probe-once\n"
		    "  holdfast agent --probe-once -o json\n"
		    "  holdfast agent --rules rules.json --listen 127.0.0.1:0\n",
	.flags = agent_flags,
	.run = verb_agent,
};
