/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Gives the flags of `holdfast operator` their meaning. They are the Go training-operator's flags. */
#include "app/operator_flags.h"

#include "base/mem.h"
#include "base/str.h"
#include "core/model/names.h"
#include "framework/framework.h"
#include "store/resource.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum kind {
	TEXT,
	SWITCH,
	INTEGER,
	NUMBER,
	SCHEME,
	LEVEL,
	ENCODER,
	NAME,
	UNUSED,
};

#define DEFAULT_METRICS ":8080"
#define DEFAULT_HEALTH ":8081"
#define DEFAULT_POD_NS "kubeflow"
#define DEFAULT_CONFIG "/etc/holdfast/operator.yaml"
#define DEFAULT_TEMPLATE "/etc/config/initContainer.yaml"

/* Two tables in the same order have one row for each flag: hf_operator_flag_table for the help texts,
 * `meanings` for parsing. */
const struct hf_flag hf_operator_flag_table[] = {
	{"kubeconfig", 0, "FILE", "kubeconfig file", "$KUBECONFIG, else the pod's service account"},
	{"context", 0, "NAME", "the context of the kubeconfig file to use", NULL},
	{"config", 0, "FILE", "defaults of spec.runPolicy.recovery for every job (YAML)",
	 DEFAULT_CONFIG},
	{"metrics-bind-address", 0, "ADDRESS", "address of /metrics; 0: off", DEFAULT_METRICS},
	{"health-probe-bind-address", 0, "ADDRESS", "address of /healthz and /readyz; 0: off",
	 DEFAULT_HEALTH},
	{"leader-elect", 0, NULL, "elect one of several replicas as the leader, with a Lease",
	 NULL},
	{"leader-election-id", 0, "NAME", "name of the Lease", HF_LEADER_LEASE},
	{"leader-election-namespace", 0, "NAME", "namespace of the Lease",
	 "$MY_POD_NAMESPACE, else " DEFAULT_POD_NS},
	{"enable-scheme", 0, "KIND", "a kind of job to run, may be repeated", "all kinds"},
	{"namespace", 0, "NAME", "the only namespace to run jobs in",
	 "$KUBEFLOW_NAMESPACE, else all"},
	{"kube-api-qps", 0, "N", "limit of API requests a second; 0: no limit", "0"},
	{"kube-api-burst", 0, "N", "API requests allowed at once, with --kube-api-qps", "30"},
	{"pytorch-init-container-image", 0, "IMAGE", "image of the workers' init container", NULL},
	{"pytorch-init-container-template-file", 0, "FILE",
	 "init containers instead, as a YAML list", DEFAULT_TEMPLATE},
	{"pytorch-init-container-max-tries", 0, "N",
	 "tries of the init container to find the master", "100"},
	{"zap-log-level", 0, "LEVEL", "debug, info, warn or error; a number from 1 is debug",
	 "info"},
	{"zap-encoder", 0, "NAME", "json or console", "console on a terminal, else json"},
	{"zap-devel", 0, NULL, "defaults for development: console and debug", NULL},
	{"zap-stacktrace-level", 0, "LEVEL", "no effect", NULL},
	{"zap-time-encoding", 0, "NAME", "no effect", NULL},
	{"controller-threads", 0, "N", "no effect", NULL},
	{"gang-scheduler-name", 0, "NAME",
	 "create PodGroups for this scheduler: volcano, or one of scheduler-plugins", NULL},
	{"mpi-kubectl-delivery-image", 0, "IMAGE",
	 "image that copies kubectl into the launchers of MPIJobs", NULL},
	{"exec-image", 0, "IMAGE", "image with holdfast-exec, for jobs with recovery.exec: Inject",
	 "$HOLDFAST_IMAGE"},
	{"exec-csi-driver", 0, "NAME",
	 "mount the agent's folder by this CSI driver, where hostPath is not allowed", NULL},
	{"otlp-endpoint", 0, "URL",
	 "send a trace of each restart to this OpenTelemetry collector, by OTLP/HTTP",
	 "$OTEL_EXPORTER_OTLP_ENDPOINT, else none"},
	{"page", 0, "ADDRESS", "address of the page for browsers, such as :8082; 0: off", "0"},
	{"page-host", 0, "NAME", "a name that the page is served under; may be repeated", NULL},
	{"webhook-server-port", 0, "PORT", "no effect", NULL},
	{"webhook-service-name", 0, "NAME", "no effect", NULL},
	{"webhook-secret-name", 0, "NAME", "no effect", NULL},
	{NULL, 0, NULL, NULL, NULL},
};

#define WEBHOOK "Holdfast has no webhook: rules in the CRDs validate jobs"
#define AT(member) offsetof(struct hf_operator_flags, member)
static const struct {
	enum kind kind;
	size_t offset;
	int64_t max;     /* INTEGER, from 0 */
	const char *why; /* UNUSED */
} meanings[] = {
	{TEXT, AT(kubeconfig), 0, NULL},
	{TEXT, AT(context), 0, NULL},
	{TEXT, AT(config), 0, NULL},
	{TEXT, AT(metrics_address), 0, NULL},
	{TEXT, AT(health_address), 0, NULL},
	{SWITCH, AT(leader_elect), 0, NULL},
	{TEXT, AT(lease_name), 0, NULL},
	{TEXT, AT(lease_ns), 0, NULL},
	{SCHEME, 0, 0, NULL},
	{TEXT, AT(ns), 0, NULL},
	{NUMBER, AT(qps), 0, NULL},
	{INTEGER, AT(burst), 1000000, NULL},
	{TEXT, AT(init_image), 0, NULL},
	{TEXT, AT(init_template), 0, NULL},
	{INTEGER, AT(init_tries), INT32_MAX, NULL},
	{LEVEL, 0, 0, NULL},
	{ENCODER, 0, 0, NULL},
	{SWITCH, AT(devel), 0, NULL},
	{UNUSED, 0, 0, "no stack traces are logged"},
	{UNUSED, 0, 0, "times are RFC 3339 with milliseconds"},
	{UNUSED, 0, 0, "one thread works on many jobs at once"},
	{TEXT, AT(gang_scheduler), 0, NULL},
	{TEXT, AT(kubectl_image), 0, NULL},
	{TEXT, AT(exec_image), 0, NULL},
	{TEXT, AT(exec_csi_driver), 0, NULL},
	{TEXT, AT(otlp_endpoint), 0, NULL},
	{TEXT, AT(page_address), 0, NULL},
	{NAME, 0, 0, NULL},
	{UNUSED, 0, 0, WEBHOOK},
	{UNUSED, 0, 0, WEBHOOK},
	{UNUSED, 0, 0, WEBHOOK},
};
_Static_assert(HF_ARRAY_LEN(meanings) + 1 == HF_ARRAY_LEN(hf_operator_flag_table),
	       "both tables must have the same number of rows");

/* --- values -------------------------------------------------------------------------------- */

static int parse_number(const char *name, const char *text, double *ret_value, struct hf_error *err)
{
	char *end;
	double value = strtod(text, &end);

	if (*text == '\0' || *end != '\0' || !isfinite(value) || value < 0)
		return hf_error_set(err, HF_E_INVALID, "--%s takes a number from 0, not '%s'", name,
				    text);
	*ret_value = value;
	return 0;
}

static int parse_level(const char *text, struct hf_operator_flags *flags, struct hf_error *err)
{
	static const struct {
		const char *name;
		enum hf_log_level level;
	} levels[] = {
		{"debug", HF_LOG_DEBUG}, {"info", HF_LOG_INFO},   {"warn", HF_LOG_WARN},
		{"error", HF_LOG_ERROR}, {"panic", HF_LOG_ERROR},
	};
	int64_t verbosity;

	flags->log_level_given = true;
	for (size_t i = 0; i < HF_ARRAY_LEN(levels); i++) {
		if (hf_str_case_eq(text, levels[i].name)) {
			flags->log_level = levels[i].level;
			return 0;
		}
	}
	/* As in zap, every number above 0 stands for a debug level. */
	if (hf_str_to_i64(text, 1, 127, &verbosity, NULL) == 0) {
		flags->log_level = HF_LOG_DEBUG;
		return 0;
	}
	return hf_error_set(err, HF_E_INVALID,
			    "--zap-log-level takes debug, info, warn, error or a number from 1, "
			    "not '%s'",
			    text);
}

static int parse_encoder(const char *text, struct hf_operator_flags *flags, struct hf_error *err)
{
	if (hf_streq(text, "json"))
		flags->encoder = HF_ENCODER_JSON;
	else if (hf_streq(text, "console"))
		flags->encoder = HF_ENCODER_CONSOLE;
	else
		return hf_error_set(err, HF_E_INVALID,
				    "--zap-encoder takes json or console, "
				    "not '%s'",
				    text);
	return 0;
}

/* Finds one of the six kinds of jobs. This build may not support the kind. */
static const struct hf_resource *find_kind(const char *text)
{
	for (size_t i = 0; i < hf_resource_count(); i++) {
		const struct hf_resource *resource = hf_resource_at(i)->resource;

		if (hf_resource_is_job(resource) && hf_str_case_eq(resource->kind, text))
			return resource;
	}
	return NULL;
}

/* The name is compared with the header Host, without the port. */
static int add_page_host(const char *text, struct hf_operator_flags *flags, struct hf_error *err)
{
	size_t n = 0;

	while (flags->page_hosts[n] != NULL)
		n++;
	if (n == HF_PAGE_NAMES_MAX)
		return hf_error_set(err, HF_E_INVALID, "--page-host: at most %d names are allowed",
				    HF_PAGE_NAMES_MAX);
	if (*text == '\0' || strpbrk(text, "/ ") != NULL)
		return hf_error_set(
			err, HF_E_INVALID,
			"--page-host takes a name such as holdfast.example.com, not '%s'", text);
	flags->page_hosts[n] = text;
	return 0;
}

static int add_scheme(const char *text, struct hf_operator_flags *flags, struct hf_error *err)
{
	const struct hf_resource *resource = find_kind(text);
	const struct hf_framework *framework;
	size_t n = 0;

	if (resource == NULL)
		return hf_error_set(err, HF_E_INVALID, "--enable-scheme: unknown kind of job '%s'",
				    text);
	framework = hf_framework_by_name(resource->plural);
	if (framework == NULL)
		return hf_error_set(err, HF_E_INVALID,
				    "--enable-scheme: this build of Holdfast does not support %s; "
				    "its jobs would never run",
				    resource->kind);
	for (; flags->frameworks[n] != NULL; n++)
		if (flags->frameworks[n] == framework)
			return 0;
	hf_assert(n < HF_SCHEMES_MAX);
	flags->frameworks[n] = framework;
	return 0;
}

static void add_ignored(const char *name, const char *why, struct hf_operator_flags *flags)
{
	for (size_t i = 0; i < flags->n_ignored; i++)
		if (hf_streq(flags->ignored[i].name, name))
			return;
	hf_assert(flags->n_ignored < HF_IGNORED_MAX);
	flags->ignored[flags->n_ignored++] = (struct hf_ignored_flag){.name = name, .why = why};
}

static int set_flag(size_t i, const char *value, struct hf_operator_flags *flags,
		    struct hf_error *err)
{
	const char *name = hf_operator_flag_table[i].name;
	char *member = (char *)flags + meanings[i].offset;
	struct hf_error number = {0};

	switch (meanings[i].kind) {
	case TEXT: *(const char **)(void *)member = value; return 0;
	case SWITCH: *(bool *)(void *)member = value != NULL; return 0;
	case INTEGER:
		if (hf_str_to_i64(value, 0, meanings[i].max, (int64_t *)(void *)member, &number) !=
		    0)
			return hf_error_set(err, HF_E_INVALID, "--%s: %s", name, number.text);
		return 0;
	case NUMBER: return parse_number(name, value, (double *)(void *)member, err);
	case SCHEME: return add_scheme(value, flags, err);
	case LEVEL: return parse_level(value, flags, err);
	case ENCODER: return parse_encoder(value, flags, err);
	case NAME: return add_page_host(value, flags, err);
	case UNUSED: break;
	}
	add_ignored(name, meanings[i].why, flags);
	return 0;
}

#define BURST 30 /* upstream's */
#define BURST_UNSET (-1)

/* --- the command line ---------------------------------------------------------------------- */

static int set_flags(const struct hf_flag_item *items, size_t n, struct hf_operator_flags *flags,
		     struct hf_error *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		const struct hf_flag *row =
			hf_flag_find(hf_operator_flag_table, items[i].flag->name);

		/* A flag without a row here is one of the flags that all verbs have, such as
		 * --color. */
		if (row != NULL)
			rc = set_flag((size_t)(row - hf_operator_flag_table), items[i].value, flags,
				      err);
	}
	return rc;
}

static const char *set_or_null(const char *text)
{
	return hf_str_is_empty(text) ? NULL : text;
}

/* An empty value counts as an absent flag, as in Go. */
static void drop_empty(struct hf_operator_flags *flags)
{
	flags->kubeconfig = set_or_null(flags->kubeconfig);
	flags->context = set_or_null(flags->context);
	flags->ns = set_or_null(flags->ns);
	flags->lease_ns = set_or_null(flags->lease_ns);
	/* Upstream accepts the value "None" and then uses no gang scheduler. */
	if (flags->gang_scheduler != NULL &&
	    (*flags->gang_scheduler == '\0' || hf_str_case_eq(flags->gang_scheduler, "none")))
		flags->gang_scheduler = NULL;
}

static void take_all_kinds(struct hf_operator_flags *flags)
{
	for (size_t i = 0; hf_frameworks[i] != NULL; i++) {
		hf_assert(i < HF_SCHEMES_MAX);
		flags->frameworks[i] = hf_frameworks[i];
	}
}

/* --- rules --------------------------------------------------------------------------------- */

/* DNS ignores case, and a dot at the end marks a fully qualified name. */
static const char *domain_problem(const char *text)
{
	HF_AUTOFREE char *copy = hf_xstrdup(text);
	size_t len = strlen(copy);

	hf_str_lower(copy);
	if (len > 1 && copy[len - 1] == '.')
		copy[len - 1] = '\0';
	return hf_dns1123_subdomain_problem(copy);
}

/* Checks the values that are names. The error text has the flag or variable that set the name. */
static int check_names(const struct hf_operator_flags *flags, struct hf_error *err)
{
	const struct {
		const char *given_by, *text;
		const char *(*problem)(const char *text);
	} names[] = {
		{flags->ns_of_env ? "KUBEFLOW_NAMESPACE" : "--namespace", flags->ns,
		 hf_dns1123_label_problem},
		{"--leader-election-id", flags->lease_name, hf_dns1123_subdomain_problem},
		{"--leader-election-namespace", flags->lease_ns, hf_dns1123_label_problem},
		{"MY_POD_NAMESPACE", flags->pod_ns, hf_dns1123_label_problem},
		{"CUSTOM_CLUSTER_DOMAIN", flags->cluster_domain, domain_problem},
		/* The name must be a qualified name, because the scheduler uses it as the source
		 * of its events. */
		{"--gang-scheduler-name", flags->gang_scheduler, hf_qualified_name_problem},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++) {
		const char *problem =
			names[i].text == NULL ? NULL : names[i].problem(names[i].text);

		if (problem != NULL)
			return hf_error_set(err, HF_E_INVALID, "%s '%s': %s", names[i].given_by,
					    names[i].text, problem);
	}
	return 0;
}

static int check_flags(const struct hf_operator_flags *flags, struct hf_error *err)
{
	const struct {
		const char *address, *flag;
	} addresses[] = {
		{flags->metrics_address, "--metrics-bind-address"},
		{flags->health_address, "--health-probe-bind-address"},
		{flags->page_address, "--page"},
	};
	char host[HF_HOST_BYTES_MAX];
	uint16_t port;
	int rc = check_names(flags, err);

	if (rc != 0)
		return rc;
	for (size_t i = 0; i < HF_ARRAY_LEN(addresses); i++) {
		if (hf_streq(addresses[i].address, "0") || addresses[i].address[0] == '\0')
			continue;
		if (hf_bind_address_parse(addresses[i].address, host, &port, err) != 0)
			return hf_error_wrap(err, "%s", addresses[i].flag);
	}
	return 0;
}

int hf_operator_flags_take(const struct hf_flag_item *items, size_t n,
			   const struct hf_operator_env *env, struct hf_operator_flags *ret_flags,
			   struct hf_error *err)
{
	struct hf_operator_flags flags = {
		.metrics_address = DEFAULT_METRICS,
		.health_address = DEFAULT_HEALTH,
		.page_address = "0",
		.lease_name = HF_LEADER_LEASE,
		.pod_ns = hf_str_or(env->my_pod_namespace, DEFAULT_POD_NS),
		.ns = set_or_null(env->kubeflow_namespace),
		.burst = BURST_UNSET,
		.config = DEFAULT_CONFIG,
		.init_template = DEFAULT_TEMPLATE,
		.cluster_domain = set_or_null(env->custom_cluster_domain),
		.otlp_endpoint = set_or_null(env->otlp_endpoint),
		.log_level = HF_LOG_INFO,
	};
	const char *const default_template = flags.init_template, *const default_config =
									  flags.config;
	int rc = set_flags(items, n, &flags, err);

	if (rc == 0 && flags.qps == 0 && flags.burst != BURST_UNSET)
		add_ignored("kube-api-burst",
			    "it needs --kube-api-qps, without which there is no limit", &flags);
	if (flags.burst == BURST_UNSET)
		flags.burst = BURST;
	drop_empty(&flags);
	flags.ns_of_env = flags.ns != NULL && flags.ns == env->kubeflow_namespace;
	/* An empty value counts as an absent flag. */
	if (hf_str_is_empty(flags.config))
		flags.config = default_config;
	flags.config_given = flags.config != default_config;
	flags.init_template_given = flags.init_template != default_template;
	if (flags.devel && !flags.log_level_given)
		flags.log_level = HF_LOG_DEBUG;
	if (flags.devel && flags.encoder == HF_ENCODER_AUTO)
		flags.encoder = HF_ENCODER_CONSOLE;
	if (flags.frameworks[0] == NULL)
		take_all_kinds(&flags);
	if (rc == 0)
		rc = check_flags(&flags, err);
	if (rc == 0)
		*ret_flags = flags;
	return rc;
}

int hf_bind_address_parse(const char *text, char ret_host[HF_HOST_BYTES_MAX], uint16_t *ret_port,
			  struct hf_error *err)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon == NULL ? 0 : (size_t)(colon - text);
	const char *host = text;
	int64_t port;

	if (colon == NULL || hf_str_to_i64(colon + 1, 0, 65535, &port, NULL) != 0 ||
	    len >= HF_HOST_BYTES_MAX)
		return hf_error_set(err, HF_E_INVALID,
				    "'%s' is not an address; write HOST:PORT or :PORT", text);
	if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
		host++;
		len -= 2;
	}
	memcpy(ret_host, host, len);
	ret_host[len] = '\0';
	*ret_port = (uint16_t)port;
	return 0;
}
