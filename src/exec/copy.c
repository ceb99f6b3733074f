/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Copies this program to another place: an init container gives it to the container of a rank. */
#include "exec/exec_internal.h"

#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES ((size_t)1 << 20)
#define PATH_BYTES_MAX 4096

/* 0 or an errno. */
static int copy_bytes(int from, int to)
{
	ssize_t n;

	do
		n = sendfile(to, from, NULL, PIECE_BYTES);
	while (n > 0 || (n < 0 && errno == EINTR));
	if (n < 0)
		return errno;
	/* Any user may run it: the container of the rank has a user of its own. */
	return fchmod(to, 0755) == 0 && fsync(to) == 0 ? 0 : errno;
}

/* The file appears complete or not at all.  0 or an errno. */
static int copy_to(const char *path)
{
	char part[PATH_BYTES_MAX];
	HF_AUTO_FD from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	HF_AUTO_FD to = -1;
	int err;

	if (from < 0)
		return errno;
	if (snprintf(part, sizeof(part), "%s.part", path) >= (int)sizeof(part))
		return ENAMETOOLONG;
	to = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0700);
	if (to < 0)
		return errno;
	err = copy_bytes(from, to);
	if (err == 0 && rename(part, path) != 0)
		err = errno;
	if (err != 0)
		(void)unlink(part);
	return err;
}

int hf_exec_copy(const char *path)
{
	int err = copy_to(path);

	if (err == 0)
		return 0;
	fprintf(stderr, "holdfast exec: cannot copy this program to '%s': %s\n", path,
		strerror(err));
	return 1;
}
