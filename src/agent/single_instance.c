/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Takes the lock of the state directory by flock().  Blocks before the loop runs, as long as the caller allows.
 */
#include "agent/single_instance.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#define LOOK_EVERY_MS 100

enum hf_single_instance hf_single_instance_take(const char *dir, hf_time patience,
						void (*waits)(void *arg), void *arg, int *ret_fd)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/lock", dir);
	HF_AUTO_FD fd = -1;
	struct hf_error err;
	hf_time waited = 0;

	*ret_fd = -1;
	if (hf_fs_mkdirs(dir, 0700, &err) != 0)
		return HF_SINGLE_INSTANCE_UNKNOWN;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0)
		return HF_SINGLE_INSTANCE_UNKNOWN;
	while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK)
			return HF_SINGLE_INSTANCE_UNKNOWN;
		if (waited >= patience)
			return HF_SINGLE_INSTANCE_NO;
		if (waited == 0)
			waits(arg);
		(void)poll(NULL, 0, LOOK_EVERY_MS);
		waited += LOOK_EVERY_MS * HF_MS;
	}
	*ret_fd = fd;
	fd = -1;
	return HF_SINGLE_INSTANCE_YES;
}
