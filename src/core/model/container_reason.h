/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_CONTAINER_REASON_H
#define HF_CORE_CONTAINER_REASON_H

#include "base/arena.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * The meaning of the reasons in the status of containers and pods, for people.  The kubelet, the
 * container runtime and the control plane write those reasons.  Each row has a sentence and names
 * the side that must act.  No decision depends on the sentences.
 */

enum hf_actor {
	HF_ACTOR_NONE,  /* nothing is wrong */
	HF_ACTOR_USER,  /* the author of the job */
	HF_ACTOR_ADMIN, /* the administrator of the cluster */
};

struct hf_container_reason {
	const char *reason;   /* "OutOf*": every reason with that beginning */
	const char *sentence; /* without a full stop */
	enum hf_actor actor;
	/* the kubelet or the operator tries again, and the trouble may pass by itself */
	bool mends;
	bool never_started; /* the container's program did not run */
};

/* The row for the reason.  NULL: the table has no such reason, or the reason is empty. */
const struct hf_container_reason *hf_container_reason_find(const char *reason);

/* What comes next and which side must act, as a sentence; "" if nothing is wrong. */
const char *hf_container_reason_next(const struct hf_container_reason *row);

/*
 * Write a node's message as one line of text: at most HF_STATUS_MESSAGE_MAX bytes, whole
 * characters, control characters as blanks, without blanks at the end.  A longer message loses its
 * middle, because Go's errors name the cause last.  NULL and "" become "".
 */
#define HF_STATUS_MESSAGE_MAX 400
void hf_status_message_write(const char *message, char ret_text[HF_STATUS_MESSAGE_MAX + 1]);
const char *hf_status_message_clean(struct hf_arena *arena, const char *message);

/* "SIGKILL" for 9; NULL: Linux has no such signal. */
const char *hf_signal_name(int64_t number);
/* The likely sender of a signal that ended a program, as a sentence; "" for an unknown signal. */
const char *hf_signal_sender(int64_t number);
/* The reason says that the exit code is lost: the kubelet or the runtime wrote 137 or 255 in its
 * place. */
bool hf_exit_code_is_lost(const char *reason);
/* The signal for which an exit code stands by the convention of shells and container runtimes: 9
 * for 137; 0: none. */
int64_t hf_exit_code_signal(int64_t code);
/* The meaning of an exit code of `holdfast exec`, 220 to 225; NULL: any other code. */
const char *hf_exit_code_meaning(int64_t code);

HF_END_DECLS

#endif
