/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "mend/mend_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The child of the actor enters the root folder of the host and becomes a program of the host.  The actor's image
 * has no such programs, and nvidia-smi must fit the loaded driver. */

#define FAILED_EXIT 127

const char *const hf_mend_folders[HF_MEND_FOLDERS] = {
	"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",    "/usr/bin",
	"/sbin",           "/bin",           "/opt/rocm/bin"};

int hf_mend_enter_root(const char *root, const char *const *argv)
{
	/* A clean environment: without the address of another D-Bus, and without a library to load. */
	static const char *const env[] = {
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/rocm/bin",
		"LC_ALL=C", NULL};
	union {
		const char *const *in;
		char *const *out;
	} args = {.in = argv}, envs = {.in = env};
	char path[256];

	if (chroot(root) != 0 || chdir("/") != 0) {
		fprintf(stderr, "cannot enter '%s': %s\n", root, strerror(errno));
		return FAILED_EXIT;
	}
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGXFSZ, SIG_DFL);
	for (size_t i = 0; i < HF_MEND_FOLDERS; i++) {
		int n = snprintf(path, sizeof(path), "%s/%s", hf_mend_folders[i], argv[0]);

		if (n > 0 && (size_t)n < sizeof(path))
			(void)execve(path, args.out, envs.out);
	}
	fprintf(stderr, "cannot start '%s' in '%s': %s\n", argv[0], root, strerror(errno));
	return FAILED_EXIT;
}
