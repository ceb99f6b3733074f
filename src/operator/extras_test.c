/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/script_test.h"

#include "api/extra_object.h"
#include "operator/operator_internal.h"
#include "store/resource.h"

#include <stdio.h>
#include <string.h>

/* Tests when the kinds of extra objects are watched, and which requests are sent. */

static struct hf_extra config = {.kind = HF_EXTRA_CONFIG_MAP, .name = "pi-config"};
static struct hf_leaf hosts = {.path = "data/hostfile", .value = "a\n"};

static struct hf_doc *mpi_job(void)
{
	static const char text[] =
		"{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"MPIJob\",\"metadata\":{\"name\":"
		"\"pi\",\"namespace\":\"ns\",\"uid\":\"u-9\",\"resourceVersion\":\"7\"},\"spec\":{"
		"\"mpiReplicaSpecs\":{\"Launcher\":{\"template\":{\"spec\":{\"containers\":[{"
		"\"name\":\"mpi\",\"image\":\"i\"}]}}}}}}";

	return hf_doc_from_text(text, strlen(text));
}

static struct hf_doc *config_doc(const char *uid, const char *owner, const char *value)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
		 "\"pi-config\",\"namespace\":\"ns\",\"uid\":\"%s\",\"resourceVersion\":\"200\","
		 "\"ownerReferences\":[{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"MPIJob\","
		 "\"name\":\"pi\",\"uid\":\"%s\",\"controller\":true}]},\"data\":{\"hostfile\":"
		 "\"%s\"}}",
		 uid, owner, value);
	return hf_doc_from_text(text, strlen(text));
}

/* Answer lists until a request of another kind comes.  Returns how many lists of extra objects
 * there were. */
static int answer_lists(struct bench *bench, bool job)
{
	struct fake_call *call;
	int extras = 0;

	while ((call = next(bench)) != NULL && call->request->verb == HF_VERB_LIST) {
		const struct hf_resource *resource = call->request->resource;
		struct hf_doc *jobs[] = {NULL};

		for (int i = 0; i < HF_EXTRA_KINDS; i++)
			extras += resource == hf_extra_resource((enum hf_extra_kind)i);
		if (job && resource == &hf_mpijobs)
			jobs[0] = mpi_job();
		fake_answer_list(call, "100", "", jobs, jobs[0] != NULL);
	}
	if (call != NULL)
		bench->store->looked--;
	turn(bench);
	return extras;
}

static int setup_mpi(void **state)
{
	config.content = &hosts;
	config.content_len = 1;
	return setup_with_mpi(state);
}

static void nothing_is_watched_until_a_job_needs_it(void **state)
{
	struct bench *bench = *state;

	hf_operator_start(bench->op);
	assert_int_equal(answer_lists(bench, false), 0);
	assert_true(hf_operator_synced(bench->op));
	fake_event(watch_of(bench, "mpijobs"), HF_EVENT_ADDED, mpi_job());
	turn(bench);
	assert_int_equal(brain.steps, 0);
	/* The four kinds of an MPIJob, but neither autoscalers nor pod groups. */
	assert_int_equal(answer_lists(bench, false), 4);
	gathered(bench);
	assert_int_equal(brain.steps, 1);
}

/* Runs a step with this action in the plan. Returns the request for the action. */
static struct fake_call *asked(struct bench *bench, enum hf_action_kind kind, enum hf_verb verb)
{
	want(0, kind, 0, 1);
	actions[0].extra = &config;
	actions[0].name = config.name;
	actions[0].uid = "cm-1";
	brain.once = true;
	hf_operator_start(bench->op);
	answer_lists(bench, true);
	answer_lists(bench, true);
	gathered(bench);
	return expect(bench, verb, "configmaps");
}

static void a_create_has_the_job_as_owner(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call = asked(bench, HF_ACTION_CREATE_EXTRA, HF_VERB_CREATE);
	const struct hf_json *body = hf_doc_json(call->request->body);

	assert_string_equal(hf_json_path_str(body, "metadata", "namespace", NULL), "ns");
	assert_string_equal(hf_json_path_str(body, "data", "hostfile", NULL), "a\n");
	assert_string_equal(
		hf_json_path_str(
			hf_json_item(hf_json_path(body, "metadata", "ownerReferences", NULL), 0),
			"uid", NULL),
		"u-9");
	fake_answer_object(call, config_doc("cm-1", "u-9", "a\\n"));
	turn(bench);
	assert_int_equal(bench->last_code, 0);
}

static void a_change_is_a_patch_of_that_object(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call = asked(bench, HF_ACTION_UPDATE_EXTRA, HF_VERB_PATCH);

	assert_int_equal(call->request->patch_type, HF_PATCH_JSON);
	assert_string_equal(call->request->name, "pi-config");
	fake_answer_object(call, config_doc("cm-1", "u-9", "a\\n"));
	turn(bench);
	assert_int_equal(bench->last_code, 0);
}

static void a_change_that_was_not_answered_is_looked_at(void **state)
{
	struct bench *bench = *state;

	fake_refuse(asked(bench, HF_ACTION_UPDATE_EXTRA, HF_VERB_PATCH), HF_E_TIMEOUT);
	turn(bench);
	fake_answer_object(expect(bench, HF_VERB_GET, "configmaps"),
			   config_doc("cm-1", "u-9", "a\\n"));
	turn(bench);
	assert_int_equal(bench->last_code, 0);
}

static void a_change_of_what_is_not_there_any_more_is_stepped_again(void **state)
{
	struct bench *bench = *state;

	fake_refuse(asked(bench, HF_ACTION_UPDATE_EXTRA, HF_VERB_PATCH), HF_E_NOT_FOUND);
	turn(bench);
	assert_int_equal(bench->last_code, HF_E_CONFLICT);
	turn_for(bench, HF_SECOND);
	assert_int_equal(brain.steps, 2);
}

static void a_delete_names_the_object(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call = asked(bench, HF_ACTION_DELETE_EXTRA, HF_VERB_DELETE);

	assert_string_equal(call->request->precondition_uid, "cm-1");
	fake_answer_object(call, config_doc("cm-1", "u-9", ""));
	turn(bench);
	assert_int_equal(bench->last_code, 0);
}

/* Defaults that the API server adds cause no second write; a change by another client does. */
static void what_a_server_makes_of_it_is_taken_for_what_was_wanted(void **state)
{
	HF_AUTO_DOC filled = config_doc("cm-1", "u-9", "a b\\n");
	HF_AUTO_DOC edited = config_doc("cm-1", "u-9", "c\\n");
	struct hf_arena *arena = hf_arena_create(1 << 16);
	struct hf_job_state job = {.status_written = HF_TIME_NONE};
	struct hf_extra_seen seen;

	(void)state;
	hf_extra_read(filled, HF_EXTRA_CONFIG_MAP, NULL, arena, &seen);
	assert_false(seen.digest == hf_extra_digest(&config));
	assert_true(hf_extras_as_wanted(&job, HF_EXTRA_CONFIG_MAP, seen.digest) == seen.digest);
	hf_extras_settle(&job, &config, filled, arena);
	assert_true(hf_extras_as_wanted(&job, HF_EXTRA_CONFIG_MAP, seen.digest) ==
		    hf_extra_digest(&config));
	hf_extra_read(edited, HF_EXTRA_CONFIG_MAP, NULL, arena, &seen);
	assert_true(hf_extras_as_wanted(&job, HF_EXTRA_CONFIG_MAP, seen.digest) == seen.digest);
	hf_arena_destroy(arena);
}

static void a_view_keeps_what_is_compared(void **state)
{
	HF_AUTO_DOC doc = config_doc("cm-1", "u-9", "a\\n");
	struct hf_arena *arena = hf_arena_create(1 << 16);
	struct hf_view *view = hf_view_of_extra(doc, HF_EXTRA_CONFIG_MAP, arena);
	struct hf_extra_seen seen;

	(void)state;
	hf_arena_destroy(arena);
	hf_view_extra(view, &seen);
	assert_int_equal(seen.kind, HF_EXTRA_CONFIG_MAP);
	assert_string_equal(seen.name, "pi-config");
	assert_string_equal(seen.uid, "cm-1");
	assert_string_equal(seen.resource_version, "200");
	assert_true(seen.digest == hf_extra_digest(&config));
	assert_string_equal(view->controller_uid, "u-9");
	hf_view_unref(view);
}

int main(void)
{
#define M(name) cmocka_unit_test_setup_teardown(name, setup_mpi, teardown)
	const struct CMUnitTest tests[] = {
		M(nothing_is_watched_until_a_job_needs_it),
		M(a_create_has_the_job_as_owner),
		M(a_change_is_a_patch_of_that_object),
		M(a_change_that_was_not_answered_is_looked_at),
		M(a_change_of_what_is_not_there_any_more_is_stepped_again),
		M(a_delete_names_the_object),
		M(what_a_server_makes_of_it_is_taken_for_what_was_wanted),
		M(a_view_keeps_what_is_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
