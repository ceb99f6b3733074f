/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_FENCE_H
#define HF_EXEC_FENCE_H

#include "health/contact.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

HF_BEGIN_DECLS

/* What the agent says of this node's contact with the control plane: health/contact.h. */
struct hf_fence {
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + sizeof(HF_CONTACT_FILE)];
	char boot_id[HF_CONTACT_BOOT_MAX]; /* "": it cannot be told */
	uint32_t limit_s;
	char why[256]; /* there is no contact, in words */
};

/* limit_s above 0.  proc: "/proc". */
void hf_fence_open(struct hf_fence *fence, const char *agent_socket, uint32_t limit_s,
		   const char *proc);
/* There was contact within limit_s before now, which is CLOCK_BOOTTIME's; else why says what is.
 * Whatever cannot be read or believed is no contact.  Never waits. */
bool hf_fence_holds(struct hf_fence *fence, int64_t now_ms);
/* And it will hold until an agent that nobody asked for contacts lately has found the next one, with a
 * kubelet that renews every 10 s; where the limit is short, for half of it. */
#define HF_FENCE_START_MS 12000
bool hf_fence_lets_start(struct hf_fence *fence, int64_t now_ms);

HF_END_DECLS

#endif
