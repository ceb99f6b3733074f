/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/actions/actions_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

/* A kind of job with two extra objects: a ConfigMap with the number of Hands that run, and a
 * service account that may be anybody's. */
static int32_t wanted_hands;
static bool account_gone;

static void some_extras(const struct hf_job *job, const struct hf_ranks_seen *seen,
			struct hf_extras *extras)
{
	struct hf_extra *config = hf_extras_add(extras, HF_EXTRA_CONFIG_MAP, "demo-config");
	struct hf_extra *account;

	wanted_hands = 0;
	for (int32_t i = 0; seen->states[1] && i < job->roles[1].replicas; i++)
		wanted_hands += seen->states[1][i] == HF_RANK_RUNNING;
	hf_extra_label(extras, config, "app", job->view->name);
	hf_extra_set(extras, config, "data/hands",
		     hf_arena_printf(extras->arena, "%d", wanted_hands));
	account = hf_extras_add(extras, HF_EXTRA_SERVICE_ACCOUNT, "demo-account");
	account->shared = true;
	account->gone = account_gone;
}

static struct hf_framework kind;
static struct brain b;

static void begin(void)
{
	kind = brain_kind;
	kind.extras = some_extras;
	kind.extra_kinds =
		HF_EXTRA_BIT(HF_EXTRA_CONFIG_MAP) | HF_EXTRA_BIT(HF_EXTRA_SERVICE_ACCOUNT);
	account_gone = false;
	brain_init(&b, &kind, 0, 2);
}

static void objects_come_before_pods_and_follow_what_is_seen(void **state)
{
	(void)state;
	begin();
	brain_step(&b);
	assert_int_equal(b.plan.stages_len, 2);
	assert_int_equal(b.plan.stages[0].actions_len, 2);
	assert_int_equal(b.plan.stages[0].actions[0].kind, HF_ACTION_CREATE_EXTRA);
	brain_run_up(&b);
	assert_int_equal(wanted_hands, 2);
	/* The next step changes nothing, so the digest of the written object equals that of the
	 * wanted object. */
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_exit(&b, "demo-hand-1", 1);
	brain_step(&b);
	assert_int_equal(brain_count(&b, HF_ACTION_UPDATE_EXTRA), 1);
	assert_string_equal(brain_action(&b, HF_ACTION_UPDATE_EXTRA, "demo-config")->uid,
			    brain_extra(&b, "demo-config")->uid);
	brain_release(&b);
}

static void what_is_edited_or_deleted_is_made_good(void **state)
{
	(void)state;
	begin();
	brain_run_up(&b);
	brain_extra(&b, "demo-config")->extra.digest++;
	brain_extra_gone(&b, "demo-account");
	brain_step(&b);
	assert_int_equal(brain_count(&b, HF_ACTION_UPDATE_EXTRA), 1);
	assert_int_equal(brain_count(&b, HF_ACTION_CREATE_EXTRA), 1);
	brain_quiet(&b);
	brain_release(&b);
}

static void a_name_that_is_held_keeps_pods_from_being_made(void **state)
{
	(void)state;
	begin();
	brain_step(&b);
	brain_perform(&b, brain_action(&b, HF_ACTION_CREATE_EXTRA, "demo-config"));
	brain_extra(&b, "demo-config")->extra.owned = false;
	brain_quiet(&b);
	assert_int_equal(b.pods_len, 0);
	assert_string_equal(hf_status_condition(&b.view.status, HF_COND_NAME_TAKEN)->reason,
			    "ConfigMapOfAnotherOwner");
	/* When the object of the other owner is gone, the operator creates its own ConfigMap and
	 * the pods. */
	brain_extra(&b, "demo-config")->extra.terminating = true;
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_extra_gone(&b, "demo-config");
	brain_quiet(&b);
	assert_int_equal(b.pods_len, 2);
	assert_string_equal(hf_status_condition(&b.view.status, HF_COND_NAME_TAKEN)->status,
			    "False");
	brain_release(&b);
}

static void ours_that_is_being_deleted_is_waited_for(void **state)
{
	(void)state;
	begin();
	brain_step(&b);
	brain_perform(&b, brain_action(&b, HF_ACTION_CREATE_EXTRA, "demo-config"));
	brain_extra(&b, "demo-config")->extra.terminating = true;
	brain_quiet(&b);
	assert_int_equal(b.pods_len, 0);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "which is being deleted"));
	brain_release(&b);
}

static void a_shared_one_of_another_owner_serves_and_is_never_deleted(void **state)
{
	(void)state;
	begin();
	brain_step(&b);
	brain_perform(&b, brain_action(&b, HF_ACTION_CREATE_EXTRA, "demo-account"));
	brain_extra(&b, "demo-account")->extra.owned = false;
	brain_run_up(&b);
	assert_int_equal(b.pods_len, 2);
	account_gone = true;
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_extra(&b, "demo-account")->extra.owned = true;
	brain_step(&b);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_EXTRA), 1);
	brain_quiet(&b);
	assert_null(brain_extra(&b, "demo-account"));
	brain_release(&b);
}

static void nothing_is_done_to_them_while_suspended_finished_or_unseen(void **state)
{
	(void)state;
	begin();
	brain_run_up(&b);
	b.extras_len = 0;
	b.blind = true;
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	b.blind = false;
	b.view.run_policy.suspend = (struct hf_opt_bool){.set = true, .value = true};
	brain_step(&b);
	assert_int_equal(brain_count(&b, HF_ACTION_CREATE_EXTRA), 0);
	brain_release(&b);
}

static void a_digest_sees_the_root_alone_and_no_order(void **state)
{
	struct hf_arena *arena = hf_arena_create(1 << 16);
	struct hf_extras extras = {.arena = arena};
	struct hf_extra one, other;

	(void)state;
	one = *hf_extras_add(&extras, HF_EXTRA_ROLE_BINDING, "x");
	other = one;
	hf_extra_set(&extras, &one, "subjects/[0]/kind", "a");
	hf_extra_set(&extras, &one, "subjects/[0]/name", "b");
	hf_extra_set(&extras, &other, "roleRef/name", "r");
	hf_extra_set(&extras, &other, "subjects/[0]/name", "b");
	hf_extra_set(&extras, &other, "subjects/[0]/kind", "a");
	assert_true(hf_extra_digest(&one) == hf_extra_digest(&other));
	/* The same values under other paths are a different content. */
	other.content_len = 0;
	hf_extra_set(&extras, &other, "subjects/[0]/name", "a");
	hf_extra_set(&extras, &other, "subjects/[0]/kind", "b");
	assert_false(hf_extra_digest(&one) == hf_extra_digest(&other));
	one = *hf_extras_add(&extras, HF_EXTRA_SERVICE_ACCOUNT, "x");
	assert_true(hf_extra_digest(&one) == 0);
	hf_arena_destroy(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_come_before_pods_and_follow_what_is_seen),
		cmocka_unit_test(what_is_edited_or_deleted_is_made_good),
		cmocka_unit_test(a_name_that_is_held_keeps_pods_from_being_made),
		cmocka_unit_test(ours_that_is_being_deleted_is_waited_for),
		cmocka_unit_test(a_shared_one_of_another_owner_serves_and_is_never_deleted),
		cmocka_unit_test(nothing_is_done_to_them_while_suspended_finished_or_unseen),
		cmocka_unit_test(a_digest_sees_the_root_alone_and_no_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
