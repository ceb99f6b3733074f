/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/runtime/shim_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Creates processes for the shim and runs programs. loop/process.h does not fit: the first process
 * of a container starts in new namespaces and sets up mounts between fork and exec. A shim has one
 * thread, so the child may call any function.
 */
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

pid_t hf_shim_fork(unsigned long namespaces)
{
	/* clone without a stack continues in the child on a copy of this stack, as fork does. */
	return (pid_t)syscall(SYS_clone, namespaces | SIGCHLD, NULL, NULL, NULL, NULL);
}

/* Calls execve. Its parameters are arrays without const, but execve does not change them. */
static int exec_file(const char *path, const char *const *argv, const char *const *env)
{
	union {
		const char *const *in;
		char *const *out;
	} a = {.in = argv}, e = {.in = env};

	(void)execve(path, a.out, e.out);
	return errno;
}

int hf_shim_exec(const char *const *argv, const char *const *env)
{
	HF_AUTOFREE char *path = NULL;
	char *rest, *folder;
	int found = ENOENT;

	if (strchr(argv[0], '/'))
		return exec_file(argv[0], argv, env);
	path = hf_xstrdup(DEFAULT_PATH);
	for (size_t i = 0; env[i]; i++) {
		if (!hf_str_has_prefix(env[i], "PATH="))
			continue;
		hf_autofree_cleanup(&path);
		path = hf_xstrdup(env[i] + strlen("PATH="));
	}
	rest = path;
	while ((folder = strsep(&rest, ":"))) {
		HF_AUTOFREE char *file = hf_xasprintf("%s/%s", folder[0] ? folder : ".", argv[0]);
		int errnum = exec_file(file, argv, env);

		if (errnum == ENOENT || errnum == ENOTDIR)
			continue;
		if (errnum != EACCES)
			return errnum;
		/* Skip a file that may not be executed, and go on with the next folder. A folder
		 * that may not be read counts as empty. */
		if (access(file, F_OK) == 0)
			found = EACCES;
	}
	return found;
}
