/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Writes the state of a pod in a few words, for the lines and the block of `holdfast run`. Input: a pod's JSON. */
#include "app/pod_state.h"

#include "app/rank_states.h"
#include "base/str.h"
#include "cli/facts.h"
#include "core/model/container_reason.h"

#include <inttypes.h>
#include <string.h>

void hf_pod_state_add_end(const struct hf_json *container, int64_t code, struct hf_strbuf *sb)
{
	const char *reason = hf_json_path_str(container, "state", "terminated", "reason", NULL);
	const char *name = hf_signal_name(hf_exit_code_signal(code));
	char why[HF_FAILED_START_MAX];

	if (hf_exit_code_is_lost(reason))
		hf_strbuf_addf(sb, ": %s", reason);
	else if (hf_container_failed_start(container, why))
		hf_strbuf_addf(sb, ": %s", why);
	else if (name != NULL)
		hf_strbuf_addf(sb, " (%s)", name);
}

/* Writes how long a container waits for its next start, and after which end. waiting: its state. */
static void add_wait(const struct hf_json *waiting, const struct hf_json *last,
		     struct hf_strbuf *sb)
{
	const char *reason = hf_json_path_str(waiting, "reason", NULL);
	const char *message = hf_str_or(hf_json_path_str(waiting, "message", NULL), "");
	const struct hf_container_reason *row =
		hf_container_reason_find(hf_json_path_str(last, "reason", NULL));
	/* The terminated state of the last start has the reason why the start failed. */
	const char *why =
		row != NULL && row->never_started ? hf_json_path_str(last, "message", NULL) : NULL;
	/* The kubelet's text goes on with names: "back-off 10s restarting failed container=… pod=…". */
	const char *end = hf_streq(reason, "CrashLoopBackOff")
				  ? strstr(message, " restarting failed ")
				  : NULL;

	hf_strbuf_addf(sb, "%s%s%.*s", reason, message[0] != '\0' ? ": " : "",
		       (int)(end != NULL ? (size_t)(end - message) : strlen(message)), message);
	if (why != NULL)
		hf_strbuf_addf(sb, ": %s", why);
	else if (end != NULL && last != NULL)
		hf_strbuf_addf(sb, " before the next start, after code=%" PRId64,
			       hf_json_i64(hf_json_get(last, "exitCode"), 0));
}

/* Writes why the container waits. False: it does not wait, or only for its normal start. */
static bool describe_waiting(const struct hf_json *pod, const char *phase, struct hf_strbuf *sb)
{
	const struct hf_json *status = hf_pod_main_status(pod);
	const struct hf_json *waiting = hf_json_path(status, "state", "waiting", NULL);
	const char *reason = hf_json_path_str(waiting, "reason", NULL);
	const char *message = hf_str_or(hf_json_path_str(waiting, "message", NULL), "");

	if (reason == NULL || hf_streq(reason, "PodInitializing") ||
	    (hf_streq(reason, "ContainerCreating") && message[0] == '\0'))
		return false;
	hf_strbuf_addf(sb, "%s: ", hf_streq(phase, "Pending") ? phase : "Waiting");
	add_wait(waiting, hf_json_path(status, "lastState", "terminated", NULL), sb);
	return true;
}

/* Writes how the init container ended that keeps the pod from starting. False: none does. */
static bool describe_init(const struct hf_json *pod, const char *phase, struct hf_strbuf *sb)
{
	const struct hf_json *init = hf_pod_failed_init(pod);
	const struct hf_json *ended = hf_json_path(init, "state", "terminated", NULL);
	int64_t code = hf_json_i64(hf_json_get(ended, "exitCode"), 0);

	if (init == NULL)
		return false;
	hf_strbuf_addf(sb, "%s: init container '%s' ", phase, hf_json_path_str(init, "name", NULL));
	if (ended != NULL) {
		hf_strbuf_addf(sb, "failed code=%" PRId64, code);
		hf_pod_state_add_end(init, code, sb);
		return true;
	}
	hf_strbuf_addstr(sb, "waits: ");
	add_wait(hf_json_path(init, "state", "waiting", NULL),
		 hf_json_path(init, "lastState", "terminated", NULL), sb);
	return true;
}

void hf_pod_state_add(const struct hf_json *pod, struct hf_strbuf *sb)
{
	const struct hf_json *state = hf_json_get(hf_pod_main_status(pod), "state");
	const char *phase = hf_str_or(hf_json_path_str(pod, "status", "phase", NULL), "Pending");
	const struct hf_json *code = hf_json_path(state, "terminated", "exitCode", NULL);
	bool ended = hf_streq(phase, "Failed") || hf_streq(phase, "Succeeded");

	if (hf_json_path(pod, "metadata", "deletionTimestamp", NULL) != NULL && !ended)
		hf_strbuf_addstr(sb, "Terminating");
	else if (hf_streq(phase, "Failed") && code != NULL) {
		/* The kubelet ended the pod, for Ctrl-C for instance. A code of 0 then says that the
		 * program has saved its work. */
		bool stopped =
			hf_json_i64(code, 0) == 0 &&
			hf_streq(hf_json_path_str(pod, "status", "reason", NULL), "Terminated");

		hf_strbuf_addf(sb, "%s code=%" PRId64, stopped ? "Stopped" : "Failed",
			       hf_json_i64(code, 0));
		hf_pod_state_add_end(hf_pod_main_status(pod), hf_json_i64(code, 0), sb);
	} else if (hf_streq(phase, "Pending") && hf_rank_unschedulable(pod) != NULL)
		hf_strbuf_addf(sb, "Pending: %s", hf_rank_unschedulable(pod));
	else if (describe_init(pod, phase, sb))
		return;
	else if (ended || !describe_waiting(pod, phase, sb))
		hf_strbuf_addstr(sb, phase);
}
