/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_OPERATOR_FLAGS_H
#define HF_APP_OPERATOR_FLAGS_H

#include "base/log.h"
#include "cli/cli.h"
#include "core/model/framework.h"

/*
 * The command line of `holdfast operator`: the flags of the Go training-operator, so that a
 * Deployment's args need not change, in the style of Go's flag package: one dash or two,
 * -name=value or -name value, switches as -name or -name=false.  If a flag is repeated, the last value
 * counts; each enable-scheme adds a kind.
 *
 * A flag without effect is listed in `ignored` with the reason, for the log.  Strings belong to argv and
 * to the environment.
 */
#define HF_SCHEMES_MAX 8
#define HF_IGNORED_MAX 16
#define HF_PAGE_NAMES_MAX 8

enum hf_encoder { HF_ENCODER_AUTO, HF_ENCODER_JSON, HF_ENCODER_CONSOLE };

struct hf_ignored_flag {
	const char *name, *why;
};

struct hf_operator_flags {
	const char *kubeconfig, *context; /* NULL: not given */
	const char *config;               /* a file */
	/* --config was given; false: the default file is used, and may be missing */
	bool config_given;
	const char *metrics_address, *health_address; /* "0": none */
	const char *page_address;                     /* "0" or "": no page */
	/* names that the page is served under; ends with NULL */
	const char *page_hosts[HF_PAGE_NAMES_MAX + 1];
	bool leader_elect;
	const char *lease_name;
	const char *lease_ns; /* NULL: not given */
	const char *pod_ns;   /* namespace of the operator's own pod */
	const char *ns;       /* NULL: all namespaces */
	bool ns_of_env;       /* ns comes from $KUBEFLOW_NAMESPACE */
	const struct hf_framework *frameworks[HF_SCHEMES_MAX + 1]; /* ends with NULL */
	double qps;                                                /* 0: any number */
	int64_t burst;
	const char *init_image;      /* NULL: the default */
	const char *kubectl_image;   /* NULL: the default */
	const char *exec_image;      /* NULL: the image of the operator itself */
	const char *exec_csi_driver; /* NULL: none */
	const char *otlp_endpoint;   /* URL of an OpenTelemetry collector; NULL or "": none */
	const char *init_template;   /* a file */
	/* the flag for the template file was given; false: the default file is used, and may be
	 * missing */
	bool init_template_given;
	int64_t init_tries;         /* 0: the default */
	const char *gang_scheduler; /* NULL: none */
	const char *cluster_domain; /* NULL: none */
	enum hf_log_level log_level;
	bool log_level_given;
	enum hf_encoder encoder;
	bool devel;
	struct hf_ignored_flag ignored[HF_IGNORED_MAX];
	size_t n_ignored;
};

/* The values of the environment variables that the operator reads; NULL or "": the variable is not
 * set. */
struct hf_operator_env {
	const char *kubeflow_namespace, *my_pod_namespace, *custom_cluster_domain, *otlp_endpoint;
};

/* The flags of `holdfast operator`, parsed in the style HF_FLAGS_GO; the last row has name
 * NULL. */
extern const struct hf_flag hf_operator_flag_table[];

/* Read the flags of the command line, in its order.  Flags that the table does not have are skipped.
 * HF_E_INVALID: an invalid value, or a kind that this build does not support. */
int hf_operator_flags_take(const struct hf_flag_item *items, size_t n,
			   const struct hf_operator_env *env, struct hf_operator_flags *ret_flags,
			   struct hf_error *err) HF_MUST_CHECK;

/* Parse "host:port" or ":port"; else HF_E_INVALID.  ret_host "": all addresses.  Port 0: the kernel
 * chooses a free port. */
#define HF_HOST_BYTES_MAX 256
int hf_bind_address_parse(const char *text, char ret_host[HF_HOST_BYTES_MAX], uint16_t *ret_port,
			  struct hf_error *err) HF_MUST_CHECK;

#endif
