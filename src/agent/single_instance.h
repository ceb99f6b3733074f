/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_SINGLE_INSTANCE_H
#define HF_AGENT_SINGLE_INSTANCE_H

#include "base/compiler.h"
#include "base/time.h"

HF_BEGIN_DECLS

/*
 * Keeps a second agent of a node from running beside the first: both would write one journal, each without the
 * other's knowledge. An agent holds the file "lock" of its state directory (flock) as long as it lives.
 *
 * A stopping agent may take some time, so a new agent waits for the lock up to a limit.  After the limit it runs
 * without the lock: a dead agent can hold the lock by a thread that hangs in a driver, and the node must not be
 * without an agent.  The new agent takes the lock as soon as it is free, or a third agent could start.
 */
enum hf_single_instance {
	HF_SINGLE_INSTANCE_YES,
	HF_SINGLE_INSTANCE_NO, /* another agent still holds the lock */
	/* no lock is possible here, for example in a read-only folder */
	HF_SINGLE_INSTANCE_UNKNOWN,
};

/* Takes the lock; call this before the journal is read.  Blocks up to `patience`; `waits` is called once before a
 * wait. ret_fd holds the lock until it is closed (programs that the agent starts do not inherit it); -1: no lock. */
enum hf_single_instance hf_single_instance_take(const char *dir, hf_time patience,
						void (*waits)(void *arg), void *arg, int *ret_fd);

HF_END_DECLS

#endif
