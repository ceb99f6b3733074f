/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/mend_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "ctl/backoff.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>

/*
 * Tells people which request of an act the API server refuses, for instance because a right is missing.
 *
 * Input: the code and the message of a failed request. Output: the message of the Remediation. If there is no object yet:
 * an event, and what the policy's status says of the node. Invariant: only texts depend on what is kept here, so the next
 * leader has to know nothing of it.
 */

#define WAITS "waits: "
#define NOT_PUT_BACK "; not put back: "
/* The rest of a message has to find room beside it. */
#define REFUSAL_MAX 300
#define KEY_MAX (HF_REMEDIATION_NODE_MAX + 16)

/* Before the text of a refused create. */
#define NO_ACT "no act can be created; are the rights of 'holdfast manifests --mender' there? "

/* Makes the key under which the refusal of a create is kept. No Remediation has such a name. */
static const char *print_create_key(const char *node, struct hf_strbuf *key)
{
	hf_strbuf_addf(key, "create %s", node);
	return key->data;
}

const char *hf_fleet_mend_refusal(const struct fleet_mend *mend)
{
	return hf_map_get(mend->refusals, mend->name);
}

const char *hf_fleet_mend_refused_create(const struct fleet_mend *mend, const char *node)
{
	HF_AUTO_STRBUF key = HF_STRBUF_INIT(KEY_MAX);

	return hf_map_get(mend->refusals, print_create_key(node, &key));
}

void hf_fleet_mend_forget_refusal(struct fleet_mend *mend)
{
	HF_AUTO_STRBUF key = HF_STRBUF_INIT(KEY_MAX);

	hf_map_remove(mend->refusals,
		      mend->creates ? print_create_key(mend->node, &key) : mend->name);
}

static void note_refused_create(struct fleet_mend *mend, const struct hf_reply *reply)
{
	HF_AUTO_STRBUF key = HF_STRBUF_INIT(KEY_MAX);
	char *why = hf_xasprintf("%s%.*s", reply->code == HF_E_FORBIDDEN ? NO_ACT : "", REFUSAL_MAX,
				 reply->message);

	if (!hf_map_put(mend->refusals, print_create_key(mend->node, &key), why))
		free(why);
}

void hf_fleet_mend_note_eviction(struct fleet_mend *mend, const char *message)
{
	HF_AUTOFREE char *text =
		hf_xasprintf("Remediation %s waits: pod %s may not be evicted yet: %.400s",
			     mend->name, mend->evicts, message);

	hf_fleet_event_node(mend->fleet, mend->node, true, "EvictionRefused", text);
	hf_fleet_note_refused(mend->fleet, mend->evicts_uid, message);
}

const char *hf_fleet_mend_print_wait(const struct fleet_mend *mend, const char *why)
{
	return hf_arena_printf(mend->arena, WAITS "%s", why);
}

const char *hf_fleet_mend_print_end(const struct fleet_mend *mend, const char *why)
{
	const char *end = hf_str_or(mend->r.status.message, "");
	const char *cut = strstr(end, NOT_PUT_BACK);

	return hf_arena_printf(mend->arena, "%.*s%s%s",
			       (int)(cut == NULL ? strlen(end) : (size_t)(cut - end)), end,
			       why == NULL ? "" : NOT_PUT_BACK, hf_str_or(why, ""));
}

bool hf_fleet_mend_note_refusal(struct fleet_mend *mend, const struct hf_reply *reply,
				struct hf_request *ret_request, struct hf_doc **ret_body)
{
	struct hf_remediation_status status = mend->r.status;
	char *why;

	if (!hf_is_lasting_failure(reply->code))
		return false;
	why = hf_xasprintf("%s%.*s",
			   reply->code == HF_E_TOO_LARGE
				   ? ""
				   : "the API server refuses a request of the operator: ",
			   REFUSAL_MAX, reply->message);
	if (mend->creates) {
		hf_fleet_event_node(mend->fleet, mend->node, true, "MendRefused", why);
		note_refused_create(mend, reply);
		free(why);
		return false;
	}
	/* The object itself could not be read, or is at its end. */
	if (mend->read == MEND_READ_OBJECT || hf_mend_is_final(mend->phase)) {
		free(why);
		return false;
	}
	status.message = mend->phase == HF_MEND_RESTORING ? hf_fleet_mend_print_end(mend, why)
							  : hf_fleet_mend_print_wait(mend, why);
	if (!hf_map_put(mend->refusals, mend->name, why))
		free(why);
	if (hf_streq(status.message, mend->r.status.message))
		return false;
	status.phase = hf_mend_phase_name(mend->phase);
	*ret_body =
		hf_doc_from_json(hf_remediation_status_patch(mend->r.resource_version, &status));
	*ret_request = (struct hf_request){.verb = HF_VERB_PATCH,
					   .resource = &hf_remediations,
					   .name = mend->name,
					   .subresource = "status",
					   .patch_type = HF_PATCH_MERGE,
					   .body = *ret_body};
	return true;
}
