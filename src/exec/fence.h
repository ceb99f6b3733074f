/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_FENCE_H
#define HF_EXEC_FENCE_H

#include "health/contact.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

HF_BEGIN_DECLS

/* The fence: reads the record in which the agent writes the node's last contact with the control plane
 * (health/contact.h). */
struct hf_fence {
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + sizeof(HF_CONTACT_FILE)];
	char boot_id[HF_CONTACT_BOOT_MAX]; /* "": not known */
	uint32_t limit_s;
	char why[256]; /* why the fence cannot be kept, as one line; valid after a failed check */
};

/* limit_s above 0.  proc: "/proc". */
void hf_fence_open(struct hf_fence *fence, const char *agent_socket, uint32_t limit_s,
		   const char *proc);
/* Whether the node had contact with the control plane within limit_s before now_ms (CLOCK_BOOTTIME); if not,
 * fence->why has the reason.  A record that cannot be read, or is not plausible, is no contact.  Does not block. */
bool hf_fence_holds(struct hf_fence *fence, int64_t now_ms);
/* Whether the record will hold for HF_FENCE_START_MS more, or for half of a limit that is shorter.  While no pod
 * of the node has a fence, the agent does not read the node's Lease.  After the first report with a fence the
 * agent needs this long to see the next renewal, which the kubelet makes every 10 s. */
#define HF_FENCE_START_MS 12000
bool hf_fence_lets_start(struct hf_fence *fence, int64_t now_ms);

HF_END_DECLS

#endif
