/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/mend_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Rung external by a webhook. A call takes seconds or minutes, and passes of other Remediations go on meanwhile: its
 * result waits here until the next pass of its Remediation writes it.
 * Invariants: a call begins once, after the guarded write of phase Acting. A result that nothing has written is lost with
 * the leader: then the proof decides.
 */

/* Calls at the same time; further acts wait. */
#define CALLS_MAX 64

struct answer {
	struct fleet_mend *mend;
	char name[HF_REMEDIATION_NAME_MAX];
	struct hf_webhook_call *call; /* NULL: the call has ended */
	int code;
	char message[HF_REMEDIATION_TEXT_MAX];
	void (*wake)(struct fleet_mend *mend, const char *name);
};

static const struct hf_webhooks *webhooks_of(const struct fleet_mend *mend)
{
	return mend->fleet->env.webhooks;
}

static void free_answer(void *value)
{
	struct answer *answer = value;

	if (answer->call != NULL)
		webhooks_of(answer->mend)->cancel(answer->call);
	free(answer);
}

void hf_fleet_mend_drop_calls(struct fleet_mend *mend)
{
	hf_map_clear(mend->answers);
}

struct hf_map *hf_fleet_mend_create_answers(const struct fleet_mend *mend)
{
	return hf_map_create(CALLS_MAX, mend->fleet->env.seed, free_answer);
}

/* Drops results of Remediations that are gone. */
static void drop_old(struct fleet_mend *mend)
{
	const char *name;
	void *value;

	for (size_t it = 0; hf_map_next(mend->answers, &it, &name, &value);)
		if (hf_cache_get(mend->cache, NULL, name) == NULL)
			hf_map_remove(mend->answers, name);
}

const char *hf_fleet_mend_lacks_webhook(struct fleet_mend *mend)
{
	if (webhooks_of(mend) == NULL)
		return "this operator calls no webhooks";
	if (hf_map_len(mend->answers) == CALLS_MAX)
		drop_old(mend);
	return hf_map_len(mend->answers) < CALLS_MAX ? NULL : "too many webhooks are being called";
}

static struct hf_json *list_devices(const struct hf_remediation *r)
{
	struct hf_json *list = hf_json_array();

	for (size_t i = 0; i < r->spec.devices.len; i++) {
		struct hf_json *device = hf_json_object();

		hf_json_set_str(device, "id", r->spec.devices.items[i].id);
		if (r->spec.devices.items[i].uuid != NULL)
			hf_json_set_str(device, "uuid", r->spec.devices.items[i].uuid);
		hf_json_append(list, device);
	}
	return list;
}

struct hf_doc *hf_fleet_mend_webhook_body(const struct fleet_mend *mend)
{
	const struct hf_remediation *r = &mend->r;
	struct hf_json *body = hf_json_object(), *fault;
	const char *provider = hf_json_path_str(hf_doc_json(mend->docs[MEND_READ_NODE]), "spec",
						"providerID", NULL);
	char due[HF_TIME_TEXT_MAX];

	hf_json_set_str(body, "remediation", mend->name);
	hf_json_set_str(body, "uid", r->uid);
	hf_json_set_str(body, "policy", mend->policy);
	hf_json_set_str(body, "node", mend->node);
	if (provider != NULL)
		hf_json_set_str(body, "providerID", provider);
	if (r->spec.boot_id != NULL)
		hf_json_set_str(body, "bootID", r->spec.boot_id);
	hf_json_set_i64(body, "attempt", r->spec.attempt);
	if (r->spec.fault.cls != NULL) {
		fault = hf_json_ensure_object(body, "fault");
		hf_json_set_str(fault, "class", r->spec.fault.cls);
		if (r->spec.fault.text != NULL)
			hf_json_set_str(fault, "text", r->spec.fault.text);
	}
	hf_json_set(body, "devices", list_devices(r));
	hf_time_format(r->status.approval.at + r->spec.deadline_seconds * HF_SECOND, due);
	hf_json_set_str(body, "proofDue", due);
	return hf_doc_from_json(body);
}

static void on_result(void *arg, const struct hf_webhook_result *result)
{
	struct answer *answer = arg;

	answer->call = NULL;
	answer->code = result->code;
	snprintf(answer->message, sizeof(answer->message), "%s", result->message);
	answer->wake(answer->mend, answer->name);
}

void hf_fleet_mend_call_webhook(struct fleet_mend *mend, struct hf_doc *body,
				void (*wake)(struct fleet_mend *mend, const char *name))
{
	const struct hf_policy_mend *rules = hf_fleet_mend_rules(mend);
	struct answer *answer = hf_xcalloc(1, sizeof(*answer));
	struct hf_webhook webhook;

	answer->mend = mend;
	answer->wake = wake;
	snprintf(answer->name, sizeof(answer->name), "%s", mend->name);
	if (!hf_map_put(mend->answers, mend->name, answer)) {
		free(answer);
		return;
	}
	if (rules == NULL || rules->webhook.url == NULL) {
		answer->code = HF_E_INVALID;
		snprintf(answer->message, sizeof(answer->message),
			 "the policy has no webhook any more");
		return;
	}
	webhook = (struct hf_webhook){.url = rules->webhook.url,
				      .key = mend->r.uid,
				      .body = hf_doc_text(body, NULL),
				      .timeout = rules->webhook.timeout,
				      .attempts = (unsigned)rules->webhook.attempts};
	answer->call = webhooks_of(mend)->call(webhooks_of(mend)->arg, &webhook, on_result, answer);
}

bool hf_fleet_mend_is_calling(const struct fleet_mend *mend)
{
	const struct answer *answer = hf_map_get(mend->answers, mend->name);

	return answer != NULL && answer->call != NULL;
}

bool hf_fleet_mend_take_answer(struct fleet_mend *mend, int *ret_code, const char **ret_message)
{
	const struct answer *answer = hf_map_get(mend->answers, mend->name);

	if (answer == NULL)
		return false;
	/* The act was decided without the answer, or the answer is stored. */
	if (mend->phase != HF_MEND_ACTING || mend->r.status.act.ended_at != HF_TIME_NONE) {
		hf_map_remove(mend->answers, mend->name);
		return false;
	}
	*ret_code = answer->code;
	*ret_message = answer->message;
	return answer->call == NULL;
}
