/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/fence.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Compares the record of the node's last contact with the fence's limit.
 *
 * Input: the file that the agent writes (health/contact.h), the boot's id from /proc, the time.
 * Output: whether the fence holds; if not, the reason in fence->why.  Nothing here ends a process:
 * exec.c does.
 */

/* Reads a small file with one call; -1 and errno on failure.  A FIFO or a device under this path is an error, so
 * the call cannot block. */
static ssize_t read_small(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t n = -1;
	int err;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		n = read(fd, text, size);
	else
		errno = EINVAL;
	err = errno;
	(void)close(fd);
	errno = err;
	return n;
}

static void read_boot(struct hf_fence *fence, const char *proc)
{
	char path[256], text[HF_CONTACT_BOOT_MAX];
	ssize_t n;
	size_t len;

	snprintf(path, sizeof(path), "%s/sys/kernel/random/boot_id", proc);
	n = read_small(path, text, sizeof(text) - 1);
	if (n <= 0)
		return;
	text[n] = '\0';
	len = strcspn(text, "\n");
	memcpy(fence->boot_id, text, len);
	fence->boot_id[len] = '\0';
}

void hf_fence_open(struct hf_fence *fence, const char *agent_socket, uint32_t limit_s,
		   const char *proc)
{
	const char *slash = strrchr(agent_socket, '/');
	int folder = slash != NULL ? (int)(slash - agent_socket + 1) : 0;

	hf_assert(limit_s > 0);
	*fence = (struct hf_fence){.limit_s = limit_s};
	/* If the path of the agent's socket is too long for a socket, the fence has no file of contact. */
	if (strlen(agent_socket) < sizeof(fence->path) - sizeof(HF_CONTACT_FILE))
		snprintf(fence->path, sizeof(fence->path), "%.*s%s", folder, agent_socket,
			 HF_CONTACT_FILE);
	read_boot(fence, proc);
}

static void explain_contact(struct hf_fence *fence, enum hf_contact_word word, uint64_t age_ms)
{
	switch (word) {
	case HF_CONTACT_OLD:
		snprintf(fence->why, sizeof(fence->why),
			 "no contact with the control plane for %llu s (limit %u s)",
			 (unsigned long long)(age_ms / 1000), fence->limit_s);
		break;
	case HF_CONTACT_OTHER_BOOT:
		snprintf(fence->why, sizeof(fence->why),
			 "the record of contact %s was written in another boot", fence->path);
		break;
	case HF_CONTACT_FUTURE:
		snprintf(fence->why, sizeof(fence->why),
			 "the record of contact %s has a time in the future", fence->path);
		break;
	default:
		snprintf(fence->why, sizeof(fence->why),
			 "the record of contact %s holds no time of contact", fence->path);
		break;
	}
}

bool hf_fence_holds(struct hf_fence *fence, int64_t now_ms)
{
	struct hf_contact now = {.at_ms = (uint64_t)now_ms};
	char text[HF_CONTACT_BYTES_MAX];
	enum hf_contact_word word;
	uint64_t age_ms = 0;
	ssize_t n;

	if (fence->boot_id[0] == '\0') {
		snprintf(fence->why, sizeof(fence->why),
			 "the boot ID of this machine cannot be read");
		return false;
	}
	n = read_small(fence->path, text, sizeof(text));
	if (n < 0) {
		snprintf(
			fence->why, sizeof(fence->why),
			"%s cannot be read (%s): is the agent's folder mounted, and does the agent run?",
			fence->path, strerror(errno));
		return false;
	}
	memcpy(now.boot_id, fence->boot_id, sizeof(now.boot_id));
	word = hf_contact_judge(text, (size_t)n, &now, (uint64_t)fence->limit_s * 1000, &age_ms);
	if (word == HF_CONTACT_FRESH)
		return true;
	explain_contact(fence, word, age_ms);
	return false;
}

bool hf_fence_lets_start(struct hf_fence *fence, int64_t now_ms)
{
	int64_t half_ms = (int64_t)fence->limit_s * 1000 / 2;

	if (!hf_fence_holds(fence, now_ms))
		return false;
	if (hf_fence_holds(fence,
			   now_ms + (half_ms < HF_FENCE_START_MS ? half_ms : HF_FENCE_START_MS)))
		return true;
	snprintf(
		fence->why, sizeof(fence->why),
		"the last contact with the control plane is too old to start CMD with a limit of %u s",
		fence->limit_s);
	return false;
}
