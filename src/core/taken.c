/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/brain_internal.h"

/*
 * Names of ranks that objects of other owners hold.  They are left alone, whoever they belong to,
 * so a rank may never run: that is said, in words that upstream's event of a refused create has.
 * What is being deleted will be gone and is no news, as when a job is made anew under its name.
 */

static const char *first_pod(struct hf_brain *b, int32_t *ret_count)
{
	const char *first = NULL;

	for (int r = 0; r < b->crews_len; r++) {
		for (int32_t i = 0; i < b->crews[r].replicas; i++) {
			const struct hf_slot *slot = &b->crews[r].slots[i];

			if (slot->pod || slot->succeeded || !slot->pod_taken)
				continue;
			if (!first)
				first = hf_arena_printf(b->arena, "%s-%d", b->crews[r].lower, i);
			*ret_count += !slot->pod_leaving;
		}
	}
	return first;
}

static const char *first_service(struct hf_brain *b, int32_t *ret_count)
{
	const char *first = NULL;

	for (int r = 0; r < b->crews_len && b->job.framework->has_services; r++) {
		for (int32_t i = 0; i < b->crews[r].replicas; i++) {
			const struct hf_slot *slot = &b->crews[r].slots[i];

			if (slot->service || !slot->service_taken)
				continue;
			if (!first)
				first = hf_arena_printf(b->arena, "%s-%d", b->crews[r].lower, i);
			*ret_count += !slot->service_leaving;
		}
	}
	return first;
}

static void show(struct hf_brain *b, const char *thing, const char *reason, const char *message)
{
	if (!hf_cond_is_true(b, HF_COND_NAME_TAKEN))
		hf_event(b, true, hf_arena_printf(b->arena, "FailedCreate%s", thing),
			 hf_arena_printf(b->arena, "Error creating: %s", message));
	hf_cond_set(b, HF_COND_NAME_TAKEN, true, reason, message);
}

void hf_taken_step(struct hf_brain *b)
{
	int32_t pods = 0, services = 0;
	const char *pod, *service, *message = NULL;

	if (hf_lost_unseen(b, HF_COND_NAME_TAKEN))
		return;
	pod = first_pod(b, &pods);
	service = first_service(b, &services);
	if (service)
		message = hf_arena_printf(
			b->arena, "the name of %s is taken by a service of another owner", service);
	/* A rank that does not run outranks one that is not found. */
	if (pod)
		message = hf_arena_printf(b->arena,
					  "the name of %s is taken by a pod of another owner", pod);
	if (message)
		hf_say(b, b->now, HF_TOPIC_BLOCKED, "%s", message);
	if (pods > 0)
		show(b, "Pod", "PodOfAnotherOwner", message);
	else if (services > 0)
		show(b, "Service", "ServiceOfAnotherOwner", message);
	else
		hf_cond_lower(b, HF_COND_NAME_TAKEN, "NamesFree",
			      "No name of the job's is held by an object of another owner.");
}
