/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "rollout/rollout_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "ctl/backoff.h"

#include <stdlib.h>

/*
 * Tells people which request of a pass the API server refuses, for instance because a right is missing.
 * Input: the code and the message of a failed request. Output: the message of the entry, or of the rollout. Invariant:
 * only texts depend on what is kept here, so the next leader has to know nothing of it.
 */

#define WAITS "waits: the API server refuses a request of the operator: "
/* The rest of a message has to find room beside it. */
#define REFUSAL_MAX 200

static const char *print_key(const struct ro *ro)
{
	return hf_arena_printf(ro->pass.arena, "%s/%s", ro->pass.name, ro->pass.node);
}

const char *hf_ro_refusal(const struct ro *ro)
{
	return hf_map_get(ro->refusals, print_key(ro));
}

void hf_ro_forget_refusal(struct ro *ro)
{
	hf_map_remove(ro->refusals, print_key(ro));
}

void hf_ro_keep_refusal(struct ro *ro, const char *message)
{
	char *why = hf_xasprintf("%.*s", REFUSAL_MAX, message);

	if (!hf_map_put(ro->refusals, print_key(ro), why))
		free(why);
}

bool hf_ro_note_refusal(struct ro *ro, int code, const char *message,
			struct hf_request *ret_request, struct hf_doc **ret_body)
{
	struct hf_rollout_status *status = &ro->pass.r.status;
	bool whole = *ro->pass.node == '\0';
	const char **text;

	/* The object itself could not be read, or is at its end. */
	if (!(hf_is_lasting_failure(code) ||
	      (ro->doing == HF_ROLLOUT_EVICT && code == HF_E_TOO_MANY)) ||
	    ro->pass.read == RO_READ_OBJECT ||
	    (whole ? hf_rollout_state_is_end(ro->pass.state) : ro->pass.entry == NULL))
		return false;
	hf_ro_keep_refusal(ro, message);
	text = whole ? &status->message : &ro->pass.entry->message;
	message = hf_arena_printf(ro->pass.arena, WAITS "%.*s", REFUSAL_MAX, message);
	if (hf_streq(message, *text))
		return false;
	*text = message;
	if (status->phase == NULL)
		status->phase = hf_rollout_state_name(ro->pass.state);
	return hf_ro_write_status(ro, status, ret_request, ret_body);
}
