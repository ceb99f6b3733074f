/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast mend-node: performs one approved Remediation on this node. The operator's pod runs it; every
 * path comes from the pod's manifest. */
#include "mend/mend.h"

#include "app/verbs.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"
#include "health/mend_steps.h"
#include "kube/kube.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_PROC "/proc"

static int read_span(const struct hf_cli *cli, const char *name, hf_time fallback,
		     hf_time *ret_span, struct hf_error *err)
{
	const char *text = hf_cli_flag(cli, name);

	*ret_span = fallback;
	if (text == NULL)
		return 0;
	return hf_span_parse(text, ret_span, err) != 0 ? hf_error_wrap(err, "--%s", name) : 0;
}

static int read_spans(const struct hf_cli *cli, struct hf_mend_options *options,
		      struct hf_error *err)
{
	const struct {
		const char *flag;
		hf_time fallback;
		hf_time *span;
	} spans[] = {
		{"holders-wait", 30 * HF_SECOND, &options->holders_wait},
		{"tool-timeout", 2 * HF_MINUTE, &options->tool_timeout},
		{"diagnostic-timeout", 0, &options->diagnostic_timeout},
		{"orderly-wait", 5 * HF_MINUTE, &options->orderly_wait},
		{"signal-wait", 2 * HF_MINUTE, &options->signal_wait},
		{"sync-wait", 5 * HF_SECOND, &options->sync_wait},
		{"watchdog-timeout", 10 * HF_MINUTE, &options->watchdog_timeout},
	};
	int rc = 0;

	for (size_t i = 0; i < HF_ARRAY_LEN(spans) && rc == 0; i++)
		rc = read_span(cli, spans[i].flag, spans[i].fallback, spans[i].span, err);
	return rc;
}

static int read_options(const struct hf_cli *cli, struct hf_mend_options *ret_options,
			struct hf_error *err)
{
	const char *init = hf_cli_flag(cli, "init-pid"), *only = hf_cli_flag(cli, "only");

	*ret_options = (struct hf_mend_options){
		.name = hf_cli_flag(cli, "intent"),
		.node = hf_str_or(hf_cli_flag(cli, "node-name"), getenv("HOLDFAST_NODE_NAME")),
		.nonce = getenv("HOLDFAST_MEND_NONCE"),
		.self = "/proc/self/exe",
		.root = hf_cli_flag(cli, "root"),
		.proc = hf_str_or(hf_cli_flag(cli, "proc"), DEFAULT_PROC),
		.sys = hf_cli_flag(cli, "sys"),
		.sysrq = hf_cli_flag(cli, "sysrq"),
		.watchdog = hf_cli_flag(cli, "watchdog"),
		.only = only,
	};
	if (ret_options->name == NULL)
		return hf_error_set(err, HF_E_INVALID, "--intent: name the Remediation");
	if (hf_str_is_empty(ret_options->node))
		return hf_error_set(err, HF_E_INVALID,
				    "HOLDFAST_NODE_NAME or --node-name: name the node");
	if (hf_str_is_empty(ret_options->nonce))
		return hf_error_set(err, HF_E_INVALID, "HOLDFAST_MEND_NONCE: not set");
	if (only != NULL && !hf_streq(only, "logind") && !hf_streq(only, "signal") &&
	    !hf_streq(only, "sysrq"))
		return hf_error_set(err, HF_E_INVALID, "--only: logind, signal or sysrq, not '%s'",
				    only);
	if (init != NULL && hf_str_to_i64(init, 1, 1 << 22, &ret_options->init_pid, err) != 0)
		return hf_error_wrap(err, "--init-pid");
	return read_spans(cli, ret_options, err);
}

/* The words behind the flags. */
static int read_diagnostic(const struct hf_cli *cli, struct hf_mend_options *options,
			   struct hf_error *err)
{
	bool timed = hf_cli_has(cli, "diagnostic-timeout");

	if (timed != (cli->n_args > 0))
		return hf_error_set(
			err, HF_E_INVALID,
			"--diagnostic-timeout: needs a command, and a command needs it");
	if (cli->n_args > HF_MEND_DIAGNOSTIC_MAX)
		return hf_error_set(err, HF_E_INVALID,
				    "the diagnostic command has more than %d words",
				    HF_MEND_DIAGNOSTIC_MAX);
	if (timed && (options->root == NULL || options->diagnostic_timeout <= 0 ||
		      strchr(cli->args[0], '/') != NULL))
		return hf_error_set(err, HF_E_INVALID,
				    "the diagnostic is the name of a program below --root, with a "
				    "deadline above 0");
	for (int i = 0; i < cli->n_args; i++)
		options->diagnostic[i] = cli->args[i];
	return 0;
}

static int run_with_store(const struct hf_cli *cli, struct hf_mend_options *options,
			  struct hf_error *err)
{
	const char *path = hf_cli_flag(cli, "kubeconfig");
	const struct hf_kube_load load = {.paths = path, .required = path != NULL};
	struct hf_kube_config config = {0};
	char message[HF_MEND_TEXT_MAX];
	int code, rc = hf_kube_config_find(&load, &config, err);

	if (rc == 0)
		rc = hf_loop_create(&options->loop, err);
	if (rc == 0)
		rc = hf_kube_create(options->loop, &config, &options->store, err);
	hf_kube_config_release(&config);
	if (rc == 0) {
		code = hf_mend_run(options, message);
		hf_log(code == HF_MEND_EXIT_DONE ? HF_LOG_INFO : HF_LOG_ERROR, "mend", message,
		       "remediation", options->name, NULL);
	} else {
		/* The loop or the connection to the API server could not be set up, so nothing was
		 * read, written or done. */
		(void)hf_cli_fail(cli, err);
		code = HF_MEND_EXIT_REFUSED;
	}
	hf_store_destroy(options->store);
	hf_loop_destroy(options->loop);
	return code;
}

static int verb_mend_node(struct hf_cli *cli)
{
	const char *root = hf_cli_flag(cli, "in-root");
	struct hf_mend_options options;
	struct hf_error err;

	if (root != NULL && cli->n_args > 0)
		return hf_mend_enter_root(root, cli->args);
	if (root != NULL)
		return hf_cli_usage(cli, "--in-root needs a command");
	hf_log_setup(stderr, HF_LOG_INFO, isatty(STDERR_FILENO) == 1 ? HF_LOG_TEXT : HF_LOG_JSON);
	if (read_options(cli, &options, &err) != 0 || read_diagnostic(cli, &options, &err) != 0)
		return hf_cli_usage(cli, "%s", err.text);
	return run_with_store(cli, &options, &err);
}

static const struct hf_flag mend_node_flags[] = {
	{"intent", 0, "NAME", "the Remediation to perform", NULL},
	{"node-name", 0, "NAME", "name of this machine's Node", "$HOLDFAST_NODE_NAME"},
	{"kubeconfig", 0, "FILE", "kubeconfig file", "the service account, else $KUBECONFIG"},
	{"root", 0, "DIR", "root folder of the host: nvidia-smi, amd-smi and busctl", "no tool"},
	{"proc", 0, "DIR", "where the host's procfs is mounted", DEFAULT_PROC},
	{"sys", 0, "DIR", "where sysfs is mounted, for AMD devices", "no AMD device"},
	{"init-pid", 0, "PID", "systemd's pid, for a reboot by SIGRTMIN+5", "no signal"},
	{"sysrq", 0, "FILE", "sysrq-trigger of the host, for a reboot without a shutdown",
	 "no sysrq"},
	{"watchdog", 0, "FILE", "hardware watchdog that is armed before a reboot", "no watchdog"},
	{"only", 0, "METHOD", "reboot only by logind, signal or sysrq", "all, in this order"},
	{"holders-wait", 0, "SPAN", "time for processes to close the devices", "30s"},
	{"tool-timeout", 0, "SPAN", "deadline of the vendor's tool", "2m"},
	{"diagnostic-timeout", 0, "SPAN", "deadline of COMMAND, which runs after a reset",
	 "no command"},
	{"orderly-wait", 0, "SPAN", "time for a shutdown by logind", "5m"},
	{"signal-wait", 0, "SPAN", "time for a shutdown by signal", "2m"},
	{"sync-wait", 0, "SPAN", "time between the letters of sysrq", "5s"},
	{"watchdog-timeout", 0, "SPAN", "time until the watchdog resets the machine", "10m"},
	{"in-root", 0, "DIR", "internal: run a program of the host, with this folder as its root",
	 NULL},
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_mend_node = {
	.name = "mend-node",
	.summary = "Perform one approved Remediation on this node, as the operator's pod does",
	.usage = "--intent NAME [FLAGS] [--diagnostic-timeout SPAN -- COMMAND…]",
	.group = HF_CLI_ON_CLUSTER,
	.examples =
		"  holdfast mend-node --intent gpu-7-3 --root /host --sys /sys\n"
		"  holdfast mend-node --intent gpu-7-4 --root /host --init-pid 1 --sysrq /proc/sysrq-trigger\n"
		"  holdfast mend-node --intent gpu-7-4 --root /host --only logind\n",
	.note = "Exit codes: 0 done, 1 the act failed, 2 refused and nothing was done, 3 processes kept the devices open.",
	.flags = mend_node_flags,
	.args_max = -1,
	.style = HF_FLAGS_COMMAND,
	.run = verb_mend_node,
};
