/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Gives up capabilities by system calls, because the C library has no functions for them. */
#include "app/capabilities.h"

#include "base/compiler.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NUMBERS_MAX 64

/* A child that becomes another program as root gets the capabilities of the bounding set. */
static void shrink_bounding_set(uint64_t kept)
{
	for (int number = 0; number < NUMBERS_MAX; number++)
		if ((kept >> number & 1) == 0)
			(void)prctl(PR_CAPBSET_DROP, number, 0, 0, 0);
}

int hf_capabilities_keep(uint64_t kept, struct hf_error *err)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};

	/* First, because it needs CAP_SETPCAP, which may be among those given up. */
	shrink_bounding_set(kept);
	if (syscall(SYS_capget, &head, sets) != 0)
		return hf_error_errno(err, errno, "cannot read the capabilities of this process");
	for (size_t i = 0; i < HF_ARRAY_LEN(sets); i++) {
		sets[i].permitted &= (uint32_t)(kept >> (32 * i));
		sets[i].effective = sets[i].permitted;
		sets[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &head, sets) != 0)
		return hf_error_errno(err, errno, "cannot give up capabilities of this process");
	return 0;
}
