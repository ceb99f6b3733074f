/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/connect.h"
#include "app/verbs.h"
#include "base/str.h"
#include "cli/cli.h"
#include "exec/exec.h"
#include "json/json.h"
#include "local/shim.h"

#include "base/fs.h"
#include "base/mem.h"
#include "loop/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static const struct hf_cli_verb *const plane_verbs[] = {
	&hf_verb_run,   &hf_verb_up,   &hf_verb_down, &hf_verb_operator,
	&hf_verb_agent, &hf_verb_exec, NULL};

/* A standard stream that came closed would be the number of the next file that is opened, and get
 * what is meant for a person.  Held the wrong way round, it goes on failing as a closed one. */
static void hold_standard_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static void prepare_process(void)
{
	hold_standard_streams();
	/* A file-size limit then reads as a full disk, and a reader that left as a failed write. */
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	hf_process_raise_files();
}

int main(int argc, char **argv)
{
	static const struct hf_cli_verb *const *const tables[] = {plane_verbs, hf_cli_verbs, NULL};
	struct hf_cli cli = {.out = stdout, .err = stderr, .connect = hf_connect};
	struct hf_error err;
	uint32_t seed;
	int rc;

	/* This binary is also what its own kubelet starts inside pods. */
	rc = hf_local_helper_main(argc, argv);
	if (rc >= 0)
		return rc;
	/* Its program gets signals and limits as they are here, before anything is changed. */
	if (argc > 2 && hf_streq(argv[1], "exec") && !hf_streq(argv[2], "--help") &&
	    !hf_streq(argv[2], "-h"))
		return hf_exec_main(argc - 1, argv + 1);
	prepare_process();
	if (hf_random_bytes(&seed, sizeof(seed), &err) != 0)
		return hf_cli_fail(&cli, &err);
	hf_json_seed(seed);
	cli.ns = hf_xstrdup("default");
	rc = hf_cli_main(&cli, tables, argc, (const char *const *)argv);
	hf_disconnect(&cli);
	free(cli.ns);
	return rc;
}
