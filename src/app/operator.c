/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast operator: runs the job operator for a cluster. Connects the store over HTTPS, the
 * manager that takes the Lease, the HTTP probes, the metrics and the log. */
#include "app/config_file.h"
#include "app/operator_flags.h"
#include "app/operator_log.h"
#include "app/otlp_exporter.h"
#include "app/page_joint.h"
#include "app/probes.h"
#include "app/process_memory.h"
#include "app/process_metrics.h"
#include "app/verbs.h"
#include "app/webhook_caller.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"
#include "kube/kube.h"
#include "operator/manager.h"
#include "fleet/fleet.h"
#include "rollout/rollout.h"
#include "store/resource.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEMPLATE_BYTES_MAX ((size_t)64 << 10)
#define TEMPLATE_FLAG "--pytorch-init-container-template-file"
/* Variable with the image of the operator's pod; the pods that mend nodes run the same image. */
#define IMAGE_ENV "HOLDFAST_IMAGE"
/* Variable with the token for webhooks of rung external: a variable comes from a Secret, and a flag would show it. */
#define TOKEN_ENV "HOLDFAST_WEBHOOK_TOKEN"
#define HOST_NAME_BYTES_MAX 256
/* Namespace of the training operator in upstream's manifests. */
#define GO_OPERATOR_NS "kubeflow"
/* When, after the start, pages of code that only the start used are unmapped: by then the operator
 * has normally connected and listed. If it has not, the kernel maps the pages again. */
#define STARTED_AFTER (2 * HF_SECOND)
/* Delay between the first pass of a burst and the return of free heap pages to the kernel, so that
 * the later passes of the burst can reuse the pages. */
#define TRIM_AFTER (5 * HF_SECOND)

struct process {
	struct hf_cli *cli;
	struct hf_operator_flags flags;
	struct hf_loop *loop;
	struct hf_kube_config kube;
	struct hf_store *store, *lease_store;
	struct hf_config_file *config;
	struct hf_strbuf template;
	struct hf_metrics *metrics;
	struct hf_family *requests, *retries, *request_time, *config_rejected;
	struct hf_probes *probes;
	struct hf_page_joint *page; /* NULL: no page */
	struct hf_operator_log *log;
	struct hf_otlp_exporter *traces; /* NULL: no collector */
	struct hf_webhook_caller *webhooks;
	struct hf_manager *manager;
	struct hf_signal *sigterm, *sigint;
	struct hf_timer *started_timer, *trim_timer;
	uint64_t seed;
	/* The last error of the manager in its present state, for /readyz; "": no error. */
	char trouble[HF_ERROR_TEXT_MAX];
	bool stopping;
	/* true: the operator is stopping, and then starts again with the changed config file */
	bool start_again;
	int exit_code;
};

/* ---- the end of the operator process ------------------------------------------------------ */

static void on_stopped(void *arg)
{
	struct process *process = arg;

	hf_log(HF_LOG_INFO, "setup", "Stopped", NULL);
	hf_loop_stop(process->loop);
}

static void on_signal(void *arg, int signum)
{
	struct process *process = arg;

	if (process->start_again) {
		/* The operator was stopping in order to start with a new config file; after a
		 * signal it ends instead. */
		process->start_again = false;
		return;
	}
	if (process->stopping) {
		/* A second signal ends the process at once. */
		process->exit_code = HF_EXIT_FAILED;
		hf_loop_stop(process->loop);
		return;
	}
	process->stopping = true;
	hf_log(HF_LOG_INFO, "setup", "Stopping", "signal", strsignal(signum), NULL);
	hf_manager_stop(process->manager, on_stopped, process);
}

/* Stops the operator, to start it again in this process with the new config. Jobs go on: the
 * operator reads their state from the server again, as after every start. */
static void on_config_changed(void *arg)
{
	struct process *process = arg;

	if (process->stopping)
		return;
	hf_log(HF_LOG_INFO, "setup", "Config file changed: starting again with it", "file",
	       process->flags.config, NULL);
	process->stopping = true;
	process->start_again = true;
	hf_manager_stop(process->manager, on_stopped, process);
}

static void on_config_rejected(void *arg, const char *why)
{
	const struct process *process = arg;

	if (why != NULL)
		hf_log(HF_LOG_ERROR, "setup",
		       "Config file is invalid: the operator keeps the one that it started with",
		       "file", process->flags.config, "error", why, NULL);
	else
		hf_log(HF_LOG_INFO, "setup", "Config file is valid again", "file",
		       process->flags.config, NULL);
}

/* ---- callbacks of the manager --------------------------------------------------------------- */

static void on_state(void *arg, enum hf_manager_state state, const char *why)
{
	struct process *process = arg;

	process->trouble[0] = '\0';
	hf_operator_log_state(process->log, state, why);
	if (state == HF_MANAGER_LEADING)
		hf_page_joint_changed(process->page);
}

static void on_trouble(void *arg, const char *what, int code, const char *message)
{
	struct process *process = arg;

	snprintf(process->trouble, sizeof(process->trouble), "%s: %s", what, message);
	hf_operator_log_trouble(process->log, what, code, message);
}

static void on_passed(void *arg, const struct hf_operator_pass *pass)
{
	struct process *process = arg;

	hf_operator_log_passed(process->log, pass);
	hf_page_joint_passed(process->page, pass);
	if (!hf_timer_armed(process->trim_timer))
		hf_timer_arm(process->trim_timer, TRIM_AFTER);
}

static void on_recovered(void *arg, const struct hf_operator_recovery *recovery)
{
	struct process *process = arg;

	if (process->traces != NULL)
		hf_otlp_add(process->traces, recovery);
}

static void on_traces_problem(void *arg, const char *message)
{
	(void)arg;
	if (message != NULL)
		hf_log(HF_LOG_WARN, "traces", "Traces cannot be sent", "error", message, NULL);
	else
		hf_log(HF_LOG_INFO, "traces", "Traces are sent again", NULL);
}

static void on_seen(void *arg, const char *key)
{
	hf_page_joint_seen(((struct process *)arg)->page, key);
}

static void on_noted(void *arg, const struct hf_event_note *note, hf_time now)
{
	hf_page_joint_noted(((struct process *)arg)->page, note, now);
}

static void on_started(void *arg)
{
	hf_process_memory_drop_start();
	(void)hf_process_memory_trim();
}

static void on_trim(void *arg)
{
	(void)hf_process_memory_trim();
}

static void on_problem(void *arg, const char *key, int code, const char *message)
{
	struct process *process = arg;

	if (code == 0)
		process->trouble[0] = '\0';
	else if (strchr(key, '/') == NULL)
		snprintf(process->trouble, sizeof(process->trouble), "%s: %s", key, message);
	hf_operator_log_problem(process->log, key, code, message);
}

/* Counts requests as client-go does. A request without a response has the code "<error>". */
static void on_request(void *arg, const struct hf_kube_observation *seen)
{
	struct process *process = arg;
	char status[16] = "<error>";

	if (seen->status != 0)
		snprintf(status, sizeof(status), "%d", seen->status);
	hf_family_add(process->requests, 1, status, seen->host, seen->method, NULL);
	hf_family_observe(process->request_time, (double)seen->took / (double)HF_SECOND, seen->host,
			  seen->method, NULL);
	if (seen->retry > 0)
		hf_family_add(process->retries, 1, status, seen->host, seen->method, NULL);
}

/* ---- probes and metrics -------------------------------------------------------------- */

static int is_ready(void *arg, struct hf_error *err)
{
	const struct process *process = arg;
	int rc = hf_manager_ready(process->manager, err);

	if (rc != 0 && process->trouble[0] != '\0')
		return hf_error_wrap(err, "%s", process->trouble);
	return rc;
}

static void render_metrics(void *arg, struct hf_strbuf *sb)
{
	struct process *process = arg;

	hf_manager_update_metrics(process->manager);
	if (process->page != NULL)
		hf_page_update_metrics(hf_page_joint_page(process->page));
	hf_family_set(process->config_rejected, hf_config_file_is_rejected(process->config), NULL);
	hf_process_metrics_update(process->metrics);
	hf_metrics_render(process->metrics, sb);
}

/* ---- setting up --------------------------------------------------------------------------- */

static void set_up_log(const struct process *process)
{
	enum hf_log_format format = isatty(STDERR_FILENO) == 1 ? HF_LOG_TEXT : HF_LOG_JSON;

	if (process->flags.encoder != HF_ENCODER_AUTO)
		format = process->flags.encoder == HF_ENCODER_JSON ? HF_LOG_JSON : HF_LOG_TEXT;
	hf_log_setup(stderr, process->flags.log_level, format);
}

static int read_flags(struct process *process, struct hf_error *err)
{
	const struct hf_operator_env env = {
		.kubeflow_namespace = getenv("KUBEFLOW_NAMESPACE"),
		.my_pod_namespace = getenv("MY_POD_NAMESPACE"),
		.custom_cluster_domain = getenv("CUSTOM_CLUSTER_DOMAIN"),
		.otlp_endpoint = getenv("OTEL_EXPORTER_OTLP_ENDPOINT"),
	};

	return hf_operator_flags_take(process->cli->flags, process->cli->n_flags, &env,
				      &process->flags, err);
}

static int read_config(struct process *process, struct hf_error *err)
{
	const struct hf_config_file_options options = {
		.path = process->flags.config,
		.may_be_missing = !process->flags.config_given,
		.changed = on_config_changed,
		.rejected = on_config_rejected,
		.arg = process,
	};

	return hf_config_file_read(&options, &process->config, err);
}

/* A template file of the command line must exist; the default file may be missing. */
static int read_template(struct process *process, struct hf_error *err)
{
	int rc = hf_fs_read(process->flags.init_template, &process->template, err);

	if (rc == HF_E_NOT_FOUND && !process->flags.init_template_given)
		return 0;
	if (rc == 0 && process->flags.init_template_given && process->template.len == 0)
		rc = hf_error_set(err, HF_E_INVALID, "'%s' is empty", process->flags.init_template);
	return rc == 0 ? 0 : hf_error_wrap(err, TEMPLATE_FLAG);
}

static int connect_stores(struct process *process, struct hf_error *err)
{
	const struct hf_kube_load load = {
		.paths = process->flags.kubeconfig,
		.required = process->flags.kubeconfig != NULL,
		.context = process->flags.context,
	};
	const struct hf_kube_options options = {
		.seed = process->seed, .observe = on_request, .observe_arg = process};
	int rc = hf_kube_config_find(&load, &process->kube, err);

	if (rc == 0 && process->kube.warning != NULL)
		hf_log(HF_LOG_WARN, "setup", process->kube.warning, "kubeconfig",
		       process->kube.path, NULL);
	if (rc == 0)
		rc = hf_loop_create(&process->loop, err);
	if (rc == 0)
		rc = hf_kube_create_with(process->loop, &process->kube, &options, &process->store,
					 err);
	if (rc == 0 && process->flags.leader_elect)
		rc = hf_kube_create_with(process->loop, &process->kube, &options,
					 &process->lease_store, err);
	return rc;
}

static void fill_operator(struct process *process, struct hf_operator_options *op)
{
	const struct hf_operator_flags *flags = &process->flags;

	*op = (struct hf_operator_options){
		.loop = process->loop,
		.store = process->store,
		.ns = flags->ns,
		.frameworks = flags->frameworks,
		.settings = {.init_container_image = flags->init_image,
			     .kubectl_image = flags->kubectl_image,
			     .exec_image = flags->exec_image != NULL ? flags->exec_image
								     : getenv(IMAGE_ENV),
			     .exec_csi_driver = flags->exec_csi_driver,
			     .init_container_max_tries = (int)flags->init_tries,
			     .gang_scheduler = flags->gang_scheduler,
			     .cluster_domain = flags->cluster_domain,
			     .recovery = *hf_config_file_recovery(process->config)},
		.init_container_template =
			process->template.len > 0 ? process->template.data : NULL,
		.seed = process->seed,
		.metrics = process->metrics,
		.qps = flags->qps,
		.burst = (unsigned)flags->burst,
		.watch_crds = true,
		.watch_nodes = true,
		.companions = {hf_fleet_create, hf_rollout_create},
		.image = getenv(IMAGE_ENV),
		.pod_ns = flags->pod_ns,
		.webhooks = hf_webhook_caller_webhooks(process->webhooks),
		.passed = on_passed,
		.problem = on_problem,
		.recovered = on_recovered,
		.seen = on_seen,
		.noted = on_noted,
		.arg = process,
	};
}

/* Makes the holder for the Lease: unique for each process, and readable in `kubectl get lease`. */
static char *make_identity(const struct process *process)
{
	char host[HOST_NAME_BYTES_MAX] = "";

	if (gethostname(host, sizeof(host) - 1) != 0)
		host[0] = '\0';
	return hf_xasprintf("%s_%016llx-%d", hf_str_or(host, "holdfast"),
			    (unsigned long long)process->seed, (int)getpid());
}

static int create_manager(struct process *process, struct hf_error *err)
{
	const struct hf_operator_flags *flags = &process->flags;
	HF_AUTOFREE char *identity = make_identity(process);
	const char *other = hf_streq(flags->pod_ns, GO_OPERATOR_NS) ? NULL : flags->pod_ns;
	struct hf_manager_options options = {
		.elect = flags->leader_elect,
		.lease_store = process->lease_store,
		.lease_ns = hf_str_or(flags->lease_ns, flags->pod_ns),
		.lease_name = flags->lease_name,
		.identity = identity,
		.rival_ns = {GO_OPERATOR_NS, other},
		.changed = on_state,
		.problem = on_trouble,
		.arg = process,
	};
	int rc;

	fill_operator(process, &options.op);
	rc = hf_manager_create(&options, &process->manager, err);
	/* Of all options of the manager, only the template can be invalid, so the error names its
	 * flag. */
	return rc == HF_E_INVALID ? hf_error_wrap(err, TEMPLATE_FLAG " '%s'", flags->init_template)
				  : rc;
}

static void create_metrics(struct process *process)
{
	const struct hf_metric_options requests = {
		.name = "rest_client_requests_total",
		.help = "Requests to the API server, by the status code of the response.",
		.type = HF_METRIC_COUNTER,
		.labels = {"code", "host", "method"},
	};
	const struct hf_metric_options retries = {
		.name = "rest_client_request_retries_total",
		.help = "Requests to the API server that repeat a failed request.",
		.type = HF_METRIC_COUNTER,
		.labels = {"code", "host", "method"},
	};
	const struct hf_metric_options time = {
		.name = "rest_client_request_duration_seconds",
		.help = "Time from sending a request to the API server until its response has ended; for a watch, until the response has begun.",
		.type = HF_METRIC_HISTOGRAM,
		.labels = {"host", "method"},
		.buckets = {0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60},
	};

	const struct hf_metric_options rejected = {
		.name = "holdfast_config_rejected",
		.help = "1: the config file is invalid, and its earlier content is in use.",
		.type = HF_METRIC_GAUGE,
	};

	process->metrics = hf_metrics_create();
	process->config_rejected = hf_metrics_family(process->metrics, &rejected);
	process->requests = hf_metrics_family(process->metrics, &requests);
	process->retries = hf_metrics_family(process->metrics, &retries);
	process->request_time = hf_metrics_family(process->metrics, &time);
}

/* Without a collector nothing is created. */
static int create_traces(struct process *process, struct hf_error *err)
{
	const struct hf_otlp_options options = {
		.loop = process->loop,
		.endpoint = process->flags.otlp_endpoint,
		.headers = getenv("OTEL_EXPORTER_OTLP_HEADERS"),
		.metrics = process->metrics,
		.problem = on_traces_problem,
		.arg = process,
		.seed = process->seed,
	};
	int rc;

	if (hf_str_is_empty(options.endpoint))
		return 0;
	rc = hf_otlp_create(&options, &process->traces, err);
	return rc == 0 ? 0 : hf_error_wrap(err, "--otlp-endpoint '%s'", options.endpoint);
}

static int create_probes(struct process *process, struct hf_error *err)
{
	const struct hf_probes_options options = {
		.loop = process->loop,
		.health_address = process->flags.health_address,
		.metrics_address = process->flags.metrics_address,
		.ready = is_ready,
		.metrics = render_metrics,
		.arg = process,
	};

	return hf_probes_create(&options, &process->probes, err);
}

static struct hf_operator *find_operator(void *arg)
{
	return hf_manager_operator(((const struct process *)arg)->manager);
}

static int create_page(struct process *process, struct hf_error *err)
{
	const struct hf_page_joint_options options = {
		.loop = process->loop,
		.store = process->store,
		.find_operator = find_operator,
		.arg = process,
		.address = process->flags.page_address,
		.hosts = process->flags.page_hosts,
		.kube = &process->kube,
		/* An operator of one namespace has no right to list nodes. */
		.watch_nodes = process->flags.ns == NULL,
		.metrics = process->metrics,
	};

	if (hf_str_is_empty(options.address) || hf_streq(options.address, "0"))
		return 0;
	return hf_page_joint_create(&options, &process->page, err);
}

/* Logs a warning for each kind that deploy/ has a CRD for but this build does not support. */
static void log_missing_kinds(void)
{
	for (size_t i = 0; i < hf_resource_count(); i++) {
		const struct hf_resource *resource = hf_resource_at(i)->resource;

		if (hf_resource_is_job(resource) && !hf_framework_by_name(resource->plural))
			hf_log(HF_LOG_WARN, "setup",
			       "This build does not support a kind: the operator ignores its jobs",
			       "kind", resource->kind, NULL);
	}
}

static void log_page(const struct process *process)
{
	HF_AUTO_STRBUF url = HF_STRBUF_INIT(1024);

	hf_page_joint_url(process->page, &url);
	hf_log(HF_LOG_INFO, "setup", "Serving the page", "url", url.data, NULL);
}

static void log_start(const struct process *process)
{
	const struct hf_operator_flags *flags = &process->flags;
	char metrics[8], health[8];

	snprintf(metrics, sizeof(metrics), "%u", (unsigned)hf_probes_metrics_port(process->probes));
	snprintf(health, sizeof(health), "%u", (unsigned)hf_probes_health_port(process->probes));
	hf_log(HF_LOG_INFO, "setup", "Starting", "version", HF_VERSION, "server",
	       process->kube.server, "namespace", hf_str_or(flags->ns, "(all)"), "leaderElection",
	       flags->leader_elect ? "true" : "false", "metricsPort", metrics, "healthPort", health,
	       NULL);
	for (size_t i = 0; i < flags->n_ignored; i++)
		hf_log(HF_LOG_INFO, "setup", "Flag has no effect", "flag", flags->ignored[i].name,
		       "reason", flags->ignored[i].why, NULL);
	if (process->page != NULL)
		log_page(process);
	log_missing_kinds();
}

static int begin_operator(struct process *process, struct hf_error *err)
{
	int rc = read_config(process, err);

	create_metrics(process);
	if (rc == 0)
		rc = read_template(process, err);
	if (rc == 0)
		rc = hf_random_bytes(&process->seed, sizeof(process->seed), err);
	if (rc == 0)
		rc = connect_stores(process, err);
	if (rc != 0)
		return rc;
	process->log = hf_operator_log_create(process->loop, process->seed);
	process->started_timer = hf_timer_create(process->loop, on_started, process);
	process->trim_timer = hf_timer_create(process->loop, on_trim, process);
	hf_timer_arm(process->started_timer, STARTED_AFTER);
	hf_config_file_watch(process->config, process->loop);
	process->webhooks =
		hf_webhook_caller_create(process->loop, getenv(TOKEN_ENV), process->seed);
	rc = create_manager(process, err);
	if (rc == 0)
		rc = create_traces(process, err);
	if (rc == 0)
		rc = create_probes(process, err);
	if (rc == 0)
		rc = create_page(process, err);
	if (rc == 0)
		rc = hf_signal_create(process->loop, SIGTERM, on_signal, process, &process->sigterm,
				      err);
	if (rc == 0)
		rc = hf_signal_create(process->loop, SIGINT, on_signal, process, &process->sigint,
				      err);
	return rc;
}

static void release_process(struct process *process)
{
	hf_signal_destroy(process->sigterm);
	hf_signal_destroy(process->sigint);
	hf_probes_destroy(process->probes);
	hf_manager_destroy(process->manager);
	hf_webhook_caller_destroy(process->webhooks);
	hf_page_joint_destroy(process->page);
	/* Destroy the stores before the metrics: they update the metrics until their end. */
	hf_store_destroy(process->lease_store);
	hf_store_destroy(process->store);
	hf_otlp_destroy(process->traces);
	hf_operator_log_destroy(process->log);
	hf_timer_destroy(process->started_timer);
	hf_timer_destroy(process->trim_timer);
	hf_metrics_destroy(process->metrics);
	hf_kube_config_release(&process->kube);
	hf_config_file_destroy(process->config);
	hf_strbuf_release(&process->template);
	hf_loop_destroy(process->loop);
}

/* Runs the operator once: from reading the command line to the last reply. Runs again after a
 * change of the config file. */
static int run_process(struct process *process)
{
	struct hf_cli *cli = process->cli;
	struct hf_error err;
	int rc = read_flags(process, &err);

	if (rc != 0)
		return hf_cli_usage(cli, "%s", err.text);
	set_up_log(process);
	rc = begin_operator(process, &err);
	if (rc == 0) {
		log_start(process);
		hf_manager_start(process->manager);
		hf_loop_run(process->loop);
		rc = process->exit_code;
	} else {
		/* An invalid config or template counts as a wrong command line. */
		rc = err.code == HF_E_INVALID || err.code == HF_E_BAD_REQUEST
			     ? hf_cli_usage(cli, "%s", err.text)
			     : hf_cli_fail(cli, &err);
	}
	return rc;
}

static int verb_operator(struct hf_cli *cli)
{
	bool start_again;
	int rc;

	hf_process_memory_set_up();
	do {
		struct process process = {.cli = cli,
					  .template = HF_STRBUF_INIT(TEMPLATE_BYTES_MAX)};

		rc = run_process(&process);
		start_again = process.start_again;
		release_process(&process);
	} while (start_again);
	return rc;
}

const struct hf_cli_verb hf_verb_operator = {
	.name = "operator",
	.summary = "Run the operator of a cluster, as its Deployment does",
	.usage = "[FLAG…]",
	.group = HF_CLI_ON_CLUSTER,
	.examples = "  holdfast operator --kubeconfig admin.conf\n"
		    "  holdfast operator --leader-elect --namespace team-a --config recovery.yaml\n"
		    "  holdfast operator -metrics-bind-address=:8080 -enable-scheme=pytorchjob\n",
	.flags = hf_operator_flag_table,
	.style = HF_FLAGS_GO,
	.run = verb_operator,
};
