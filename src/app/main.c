/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The program: prepares the process, then runs a verb. The kubelet of `run` and `up` starts the
 * same binary inside pods, as a helper. */
#include "app/connect.h"
#include "app/kept_runs.h"
#include "app/local_check.h"
#include "app/patient_stream.h"
#include "app/verbs.h"
#include "base/str.h"
#include "cli/cli.h"
#include "exec/exec.h"
#include "json/json.h"
#include "kubelet/runtime/shim.h"

#include "base/fs.h"
#include "base/mem.h"
#include "loop/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static const struct hf_cli_verb *const plane_verbs[] = {
	&hf_verb_run,   &hf_verb_up,        &hf_verb_down, &hf_verb_operator,
	&hf_verb_agent, &hf_verb_mend_node, &hf_verb_exec, &hf_verb_runs,
	&hf_verb_plot,  &hf_verb_top,       NULL};

/* If a standard stream is closed, the next opened file gets its number, and output for the user goes
 * into that file. So /dev/null takes the number, opened in the wrong direction: reads and writes still
 * fail, as on a closed stream. */
static void hold_standard_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static void prepare_process(void)
{
	hold_standard_streams();
	/* Ignore these signals, so that a write beyond the limit on file sizes, or to a closed
	 * pipe, is an error and does not end the process. */
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	hf_process_raise_files();
}

/* The streams are flushed when the program ends. */
static void use_patient_streams(struct hf_cli *cli)
{
	FILE *out = hf_patient_stream_open(STDOUT_FILENO);
	FILE *err = hf_patient_stream_open(STDERR_FILENO);

	cli->out = out != NULL ? out : stdout;
	cli->err = err != NULL ? err : stderr;
	(void)setvbuf(cli->err, NULL, _IONBF, 0);
}

int main(int argc, char **argv)
{
	static const struct hf_cli_verb *const *const tables[] = {plane_verbs, hf_cli_verbs, NULL};
	struct hf_cli cli = {.out = stdout,
			     .out_fd = STDOUT_FILENO,
			     .err = stderr,
			     .connect = hf_connect,
			     .check_here = hf_local_check,
			     .each_run = hf_kept_runs_each,
			     .starts_helpers = true};
	struct hf_error err;
	uint32_t seed;
	int rc;

	/* A helper that was started as /proc/self/exe would be "exe" in ps and top. */
	(void)prctl(PR_SET_NAME, "holdfast");
	/* Inside pods, the kubelet of `run` and `up` starts this binary as a helper. */
	rc = hf_shim_helper_main(argc, argv);
	if (rc >= 0)
		return rc;
	/* `exec` runs before prepare_process, so that the training program inherits the original signals and
	 * limits. */
	if (argc > 2 && hf_streq(argv[1], "exec") && !hf_streq(argv[2], "--help") &&
	    !hf_streq(argv[2], "-h"))
		return hf_exec_main(argc - 1, argv + 1);
	prepare_process();
	use_patient_streams(&cli);
	if (hf_random_bytes(&seed, sizeof(seed), &err) != 0)
		return hf_cli_fail(&cli, &err);
	hf_json_seed(seed);
	cli.ns = hf_xstrdup("default");
	rc = hf_cli_main(&cli, tables, argc, (const char *const *)argv);
	hf_disconnect(&cli);
	free(cli.ns);
	/* Only now the last output is written: hf_cli_main has checked what it flushed. */
	(void)fclose(cli.out);
	(void)fclose(cli.err);
	return rc;
}
