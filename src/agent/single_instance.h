/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_SINGLE_INSTANCE_H
#define HF_AGENT_SINGLE_INSTANCE_H

#include "base/compiler.h"
#include "base/time.h"

HF_BEGIN_DECLS

/*
 * Two agents of one node would write one journal, each what the other does not know.  So an agent holds
 * the file "lock" of its state directory (flock) as long as it lives.
 *
 * One that is told to end may still take its time, so who comes then waits.  It waits no longer than
 * that: a dead agent can hold the lock, by a thread that hangs in a driver, and then a node must not be
 * without one.  Who went on so takes the lock when it is free, or a third agent would.
 */
enum hf_single_instance {
	HF_SINGLE_INSTANCE_YES,
	HF_SINGLE_INSTANCE_NO,      /* another one holds it still */
	HF_SINGLE_INSTANCE_UNKNOWN, /* there can be no lock: the folder cannot be written, say */
};

/* Before anything is read there.  Blocks for so long at most; waits is called once, before it does
 * (never with a patience of 0).  The lock is the descriptor's, which is closed in programs that are
 * started; -1: there is none. */
enum hf_single_instance hf_single_instance_take(const char *dir, hf_time patience,
						void (*waits)(void *arg), void *arg, int *ret_fd);

HF_END_DECLS

#endif
