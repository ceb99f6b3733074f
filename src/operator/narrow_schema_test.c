/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/narrow_schema_internal.h"

#include "operator/script_test.h"

#include <stdio.h>
#include <string.h>

#define CRDS "customresourcedefinitions"
#define NARROW                                                                                     \
	"{\"type\":\"object\",\"properties\":{\"status\":{\"type\":\"object\",\"properties\":"     \
	"{\"conditions\":{\"type\":\"array\"}}}}}"
#define WIDE                                                                                       \
	"{\"type\":\"object\",\"properties\":{\"status\":{\"type\":\"object\",\"properties\":"     \
	"{\"recovery\":{\"type\":\"object\",\"properties\":{\"generation\":{}}}}}}}"
#define LEDGER(generation)                                                                         \
	"{\"schema\":1,\"generation\":" #generation ",\"phase\":\"Creating\",\"uid\":\"u-1\"}"

static struct hf_doc *crd_doc(int version, const char *schema)
{
	char text[TEXT_MAX];

	snprintf(
		text, sizeof(text),
		"{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
		"\"metadata\":{\"name\":\"pytorchjobs.kubeflow.org\",\"uid\":\"c\","
		"\"resourceVersion\":\"%d\"},\"spec\":{\"versions\":[{\"name\":\"v1beta1\"},"
		"{\"name\":\"v1\",\"schema\":{\"openAPIV3Schema\":%s}}]}}",
		version, schema);
	return hf_doc_from_text(text, strlen(text));
}

/* The job under a narrow CRD after the ledger's patch (its text) and a status (NULL: none). */
static struct hf_doc *narrow_job(int version, const char *ledger, const char *status)
{
	struct hf_doc *plain = job_doc("ddp", "u-1", version, "");
	struct hf_json *root = hf_json_copy(hf_doc_json(plain));
	struct hf_json *parsed = NULL;
	struct hf_error err;

	if (ledger != NULL)
		hf_json_set_str(hf_json_ensure_object(hf_json_get(root, "metadata"), "annotations"),
				"holdfast.dev/ledger", ledger);
	if (status != NULL) {
		assert_int_equal(hf_json_parse(status, strlen(status), NULL, &parsed, &err), 0);
		hf_json_set(root, "status", parsed);
	}
	hf_doc_unref(plain);
	return hf_doc_from_json(root);
}

static const char *ledger_of(const struct fake_call *call)
{
	return hf_json_path_str(hf_doc_json(call->request->body), "metadata", "annotations",
				"holdfast.dev/ledger", NULL);
}

static double narrow_metric(struct bench *bench)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT((size_t)1 << 20);

	hf_operator_update_metrics(bench->op);
	hf_metrics_render(bench->metrics, &text);
	if (strstr(text.data, "holdfast_crd_narrow{kind=\"PyTorchJob\"} 1\n") != NULL)
		return 1;
	assert_non_null(strstr(text.data, "holdfast_crd_narrow{kind=\"PyTorchJob\"} 0\n"));
	return 0;
}

/* Starts an operator that watches CRDs. The lists are answered, and the CRD has this schema. */
static void start_job_under(struct bench *bench, const char *schema, struct hf_doc *job)
{
	struct fake_call *call;
	int crds = 0;

	hf_operator_start(bench->op);
	while (!hf_operator_synced(bench->op)) {
		call = next(bench);
		assert_non_null(call);
		assert_int_equal(call->request->verb, HF_VERB_LIST);
		if (hf_streq(call->request->resource->plural, CRDS)) {
			struct hf_doc *crd = crd_doc(50, schema);

			assert_string_equal(call->request->field_selector,
					    "metadata.name=pytorchjobs.kubeflow.org");
			fake_answer_list(call, "100", "", &crd, 1);
			crds++;
		} else if (hf_streq(call->request->resource->plural, "pytorchjobs")) {
			fake_answer_list(call, "100", "", &job, 1);
		} else {
			fake_answer_list(call, "100", "", NULL, 0);
		}
	}
	assert_int_equal(crds, 1);
}

static void start_under(struct bench *bench, const char *schema)
{
	start_job_under(bench, schema, job_doc("ddp", "u-1", 7, ""));
}

static void want_ledger(int64_t generation)
{
	brain.generation = generation;
	want_status(JOB_TIME, true);
	want(0, HF_ACTION_CREATE_POD, 0, 1);
}

/* --- the schema ------------------------------------------------------------------------------- */

static void a_schema_without_a_place_for_the_ledger_is_narrow(void **state)
{
	static const struct {
		const char *schema;
		bool narrow;
	} cases[] = {
		{NARROW, true},
		{WIDE, false},
		{"{}", true},
		{"{\"x-kubernetes-preserve-unknown-fields\":true}", false},
		{"{\"properties\":{\"status\":{\"x-kubernetes-preserve-unknown-fields\":true}}}",
		 false},
		{"{\"properties\":{\"status\":{\"properties\":{\"recovery\":{}}}}}", true},
		{"{\"properties\":{\"status\":{\"properties\":{\"recovery\":"
		 "{\"x-kubernetes-preserve-unknown-fields\":true}}}}}",
		 false},
	};

	struct hf_arena *scratch = hf_arena_create(1 << 20);

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_DOC crd = crd_doc(1, cases[i].schema);

		assert_int_equal(hf_crd_is_narrow(crd, "v1", scratch), cases[i].narrow);
		assert_false(hf_crd_is_narrow(crd, "v2", scratch));
	}
	hf_arena_destroy(scratch);
}

/* --- the order -------------------------------------------------------------------------------- */

static void the_ledger_goes_first_then_the_status_then_the_actions(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;
	HF_AUTO_STRBUF lines = HF_STRBUF_INIT(TEXT_MAX);

	want_ledger(4);
	start_under(bench, NARROW);
	call = expect(bench, HF_VERB_PATCH, "pytorchjobs");
	assert_null(call->request->subresource);
	assert_string_equal(hf_doc_resource_version(call->request->body), "7");
	assert_string_equal(ledger_of(call), LEDGER(4));
	assert_null(next(bench));
	fake_answer_object(call, narrow_job(101, LEDGER(4), NULL));

	call = expect(bench, HF_VERB_PATCH, "pytorchjobs");
	assert_string_equal(call->request->subresource, "status");
	assert_string_equal(hf_doc_resource_version(call->request->body), "101");
	assert_null(hf_json_path(hf_doc_json(call->request->body), "status", "recovery", NULL));
	assert_null(next(bench));
	fake_answer_object(call, narrow_job(102, LEDGER(4),
					    "{\"startTime\":\"2023-11-14T22:13:20Z\","
					    "\"conditions\":[],\"replicaStatuses\":{}}"));

	grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 103);
	assert_null(next(bench));
	assert_int_equal(bench->last_code, 0);
	/* The next step has read it. */
	gathered(bench);
	assert_int_equal(brain.seen.generation, 4);
	assert_true(narrow_metric(bench) == 1);
	event_lines(bench, &lines);
	assert_true(hf_str_has_prefix(lines.data, "NarrowCRD: "));
	assert_null(strstr(lines.data + 1, "NarrowCRD"));
}

static void a_wide_crd_keeps_the_ledger_in_the_status(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	want_ledger(4);
	start_under(bench, WIDE);
	call = expect(bench, HF_VERB_PATCH, "pytorchjobs");
	assert_string_equal(call->request->subresource, "status");
	assert_non_null(hf_json_path(hf_doc_json(call->request->body), "status", "recovery", NULL));
	grant_status(call, 101);
	grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 102);
	assert_true(narrow_metric(bench) == 0);
}

/* --- what goes wrong -------------------------------------------------------------------------- */

static void a_ledger_that_is_not_kept_stops_the_job(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_STRBUF lines = HF_STRBUF_INIT(TEXT_MAX);

	want_ledger(4);
	start_under(bench, NARROW);
	fake_answer_object(expect(bench, HF_VERB_PATCH, "pytorchjobs"),
			   narrow_job(101, LEDGER(3), NULL));
	assert_int_equal(bench->last_code, HF_E_UNSUPPORTED);
	assert_null(next(bench));
	event_lines(bench, &lines);
	assert_non_null(strstr(lines.data, "StatusNotKept: "));
}

static void a_conflict_of_the_ledger_is_read_live_and_nothing_is_done(void **state)
{
	struct bench *bench = *state;

	want_ledger(4);
	start_under(bench, NARROW);
	fake_refuse(expect(bench, HF_VERB_PATCH, "pytorchjobs"), HF_E_CONFLICT);
	fake_answer_object(expect(bench, HF_VERB_GET, "pytorchjobs"),
			   job_doc("ddp", "u-1", 150, ""));
	assert_int_equal(bench->last_code, HF_E_CONFLICT);
	assert_null(next(bench));
}

static void a_reply_without_the_ledger_teaches_where_to_keep_it(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	brain.once = false;
	want_ledger(4);
	start(bench);
	call = expect(bench, HF_VERB_PATCH, "pytorchjobs");
	assert_string_equal(call->request->subresource, "status");
	fake_answer_object(call, narrow_job(101, NULL,
					    "{\"startTime\":\"2023-11-14T22:13:20Z\","
					    "\"conditions\":[],\"replicaStatuses\":{}}"));
	assert_int_equal(bench->last_code, HF_E_UNSUPPORTED);
	assert_true(narrow_metric(bench) == 1);
	turn_for(bench, HF_SECOND);
	call = expect(bench, HF_VERB_PATCH, "pytorchjobs");
	assert_null(call->request->subresource);
	assert_string_equal(ledger_of(call), LEDGER(4));
	brain.once = true;
	fake_answer_object(call, narrow_job(102, LEDGER(4),
					    "{\"startTime\":\"2023-11-14T22:13:20Z\","
					    "\"conditions\":[],\"replicaStatuses\":{}}"));
	grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 103);
}

static void a_job_whose_ledger_stands_in_an_annotation_keeps_it_there(void **state)
{
	struct bench *bench = *state;
	struct hf_doc *jobs[] = {narrow_job(7, LEDGER(3), NULL)};
	struct fake_call *call;

	/* A new operator has not seen the CRD yet. */
	want_ledger(4);
	start_with(bench, jobs, 1);
	call = expect(bench, HF_VERB_PATCH, "pytorchjobs");
	assert_null(call->request->subresource);
	assert_string_equal(ledger_of(call), LEDGER(4));
}

/* A user can write the annotation of one job.  The ledgers of the others stay where they are read. */
static void an_annotation_of_one_job_moves_no_other_ledger(void **state)
{
	struct bench *bench = *state;
	struct hf_doc *other = job_doc("other", "u-2", 8, "");
	struct hf_json *root = hf_json_copy(hf_doc_json(other)), *status = NULL;
	struct hf_doc *jobs[2] = {narrow_job(7, "no ledger", NULL)};
	static const char stored[] = "{\"recovery\":{\"schema\":1,\"generation\":3,"
				     "\"phase\":\"Creating\"}}";
	struct fake_call *call;

	assert_int_equal(hf_json_parse(stored, strlen(stored), NULL, &status, NULL), 0);
	hf_json_set(root, "status", status);
	hf_doc_unref(other);
	jobs[1] = hf_doc_from_json(root);
	brain.once = false;
	want_ledger(4);
	start_with(bench, jobs, 2);
	for (int seen = 0; seen < 2; seen++) {
		call = expect(bench, HF_VERB_PATCH, "pytorchjobs");
		if (hf_streq(call->request->name, "other"))
			assert_string_equal(call->request->subresource, "status");
		else
			assert_null(call->request->subresource);
	}
	assert_true(narrow_metric(bench) == 0);
}

static void labels_and_annotations_of_a_job_do_not_disturb_its_metrics(void **state)
{
	struct bench *bench = *state;
	struct hf_doc *jobs[] = {narrow_job(7, "no JSON", NULL)};
	HF_AUTO_STRBUF text = HF_STRBUF_INIT((size_t)1 << 20);
	struct hf_json *root = hf_json_copy(hf_doc_json(jobs[0]));

	hf_json_set_str(hf_json_ensure_object(hf_json_get(root, "metadata"), "labels"),
			"kueue.x-k8s.io/queue-name", "q");
	hf_doc_unref(jobs[0]);
	jobs[0] = hf_doc_from_json(root);
	start_with(bench, jobs, 1);
	hf_operator_update_metrics(bench->op);
	hf_metrics_render(bench->metrics, &text);
	assert_non_null(strstr(text.data, "queue=\"q\""));
	assert_non_null(strstr(text.data, "holdfast_job_productive_seconds_total{namespace=\"n\","
					  "job=\"ddp\"} 0\n"));
}

static void metrics_of_a_job_are_read_from_the_annotation(void **state)
{
	struct bench *bench = *state;
	struct hf_doc *jobs[] = {narrow_job(7, "{\"schema\":1,\"productiveSeconds\":42}", NULL)};
	HF_AUTO_STRBUF text = HF_STRBUF_INIT((size_t)1 << 20);

	start_with(bench, jobs, 1);
	hf_operator_update_metrics(bench->op);
	hf_metrics_render(bench->metrics, &text);
	assert_non_null(strstr(text.data, "holdfast_job_productive_seconds_total{namespace=\"n\","
					  "job=\"ddp\"} 42\n"));
}

/* --- from narrow to wide ---------------------------------------------------------------------- */

#define RECOVERY(generation)                                                                       \
	"\"recovery\":{\"schema\":1,\"generation\":" #generation                                   \
	",\"phase\":\"Creating\",\"summary\":\"0\"}"
#define WIDE_STATUS(generation) "{" RECOVERY(generation) "}"

static int64_t recovery_generation(const struct fake_call *call)
{
	return hf_json_i64(hf_json_path(hf_doc_json(call->request->body), "status", "recovery",
					"generation", NULL),
			   0);
}

/* The next step wants something, which is what the change of the job brings about. */
static void change_job(struct bench *bench, struct hf_doc *job)
{
	fake_event(watch_of(bench, "pytorchjobs"), HF_EVENT_MODIFIED, job);
}

/* What a look brings: the version that the cache has, as it is under the present schema. */
static void answer_look(struct bench *bench, struct hf_doc *job)
{
	int steps = brain.steps;
	struct fake_call *call = expect(bench, HF_VERB_GET, "pytorchjobs");

	assert_int_equal(brain.steps, steps);
	fake_answer_object(call, job);
}

static void under_a_wide_crd_an_annotated_ledger_moves_into_the_status(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	start_job_under(bench, WIDE, narrow_job(7, LEDGER(3), NULL));
	answer_look(bench, narrow_job(7, LEDGER(3), NULL));
	turn_for(bench, HF_WIDE_SETTLE);
	want_ledger(4);
	change_job(bench, narrow_job(101, LEDGER(3), NULL));
	answer_look(bench, narrow_job(101, LEDGER(3), NULL));
	call = expect(bench, HF_VERB_PATCH, "pytorchjobs");
	assert_string_equal(call->request->subresource, "status");
	assert_int_equal(brain.seen.generation, 3);
	assert_int_equal(recovery_generation(call), 4);
}

static void a_ledger_stays_annotated_while_the_wide_crd_is_new(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	want_ledger(4);
	start_job_under(bench, WIDE, narrow_job(7, LEDGER(3), NULL));
	answer_look(bench, narrow_job(7, LEDGER(3), NULL));
	call = expect(bench, HF_VERB_PATCH, "pytorchjobs");
	assert_null(call->request->subresource);
	assert_string_equal(ledger_of(call), LEDGER(4));
	assert_true(narrow_metric(bench) == 0);
}

static void a_kind_is_narrow_until_its_wide_crd_has_settled(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	start_job_under(bench, NARROW, narrow_job(7, LEDGER(3), NULL));
	assert_null(next(bench));
	fake_event(watch_of(bench, CRDS), HF_EVENT_MODIFIED, crd_doc(101, WIDE));
	turn_for(bench, HF_WIDE_SETTLE / 2);
	/* Told again, it has not changed again. */
	fake_event(watch_of(bench, CRDS), HF_EVENT_MODIFIED, crd_doc(102, WIDE));
	assert_true(narrow_metric(bench) == 1);
	want_ledger(4);
	change_job(bench, narrow_job(103, LEDGER(3), NULL));
	call = expect(bench, HF_VERB_PATCH, "pytorchjobs");
	assert_string_equal(ledger_of(call), LEDGER(4));
	fake_refuse(call, HF_E_CONFLICT);
	fake_answer_object(expect(bench, HF_VERB_GET, "pytorchjobs"),
			   narrow_job(103, LEDGER(3), NULL));
	assert_null(next(bench));
	turn_for(bench, HF_WIDE_SETTLE / 2);
	assert_true(narrow_metric(bench) == 0);
	/* Narrow again, it has to settle anew. */
	fake_event(watch_of(bench, CRDS), HF_EVENT_MODIFIED, crd_doc(104, NARROW));
	assert_true(narrow_metric(bench) == 1);
	fake_event(watch_of(bench, CRDS), HF_EVENT_MODIFIED, crd_doc(105, WIDE));
	assert_true(narrow_metric(bench) == 1);
}

/* The API server serves the watch by the old schema: version 101 comes without the ledger that
 * it has, and the annotation tells what was so before. */
static void a_job_that_a_watch_shows_pruned_is_not_stepped_by_its_old_ledger(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	start_job_under(bench, WIDE, narrow_job(7, LEDGER(3), WIDE_STATUS(4)));
	assert_null(next(bench));
	turn_for(bench, HF_WIDE_SETTLE);
	want_ledger(6);
	change_job(bench, narrow_job(101, LEDGER(3), "{\"startTime\":\"2023-11-14T22:13:20Z\"}"));
	answer_look(bench, narrow_job(101, LEDGER(3), WIDE_STATUS(5)));
	call = expect(bench, HF_VERB_PATCH, "pytorchjobs");
	assert_int_equal(brain.seen.generation, 5);
	assert_string_equal(call->request->subresource, "status");
	assert_string_equal(hf_doc_resource_version(call->request->body), "101");
	assert_int_equal(recovery_generation(call), 6);
	/* The watch says it before the reply: what was written counts all the same. */
	change_job(bench, narrow_job(102, LEDGER(3), "{\"startTime\":\"2023-11-14T22:13:20Z\"}"));
	fake_answer_object(call,
			   narrow_job(102, LEDGER(3),
				      "{\"startTime\":\"2023-11-14T22:13:20Z\","
				      "\"conditions\":[],\"replicaStatuses\":{}," RECOVERY(6) "}"));
	grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 103);
	answer_look(bench, narrow_job(102, LEDGER(3), WIDE_STATUS(6)));
	gathered(bench);
	assert_int_equal(brain.seen.generation, 6);
	assert_null(next(bench));
}

static void a_job_that_has_begun_without_a_ledger_is_looked_at_where_the_crd_was_narrow(
	void **state)
{
	struct bench *bench = *state;
	const char *begun = "{\"startTime\":\"2023-11-14T22:13:20Z\"}";

	start_job_under(bench, NARROW, narrow_job(7, NULL, begun));
	fake_event(watch_of(bench, CRDS), HF_EVENT_MODIFIED, crd_doc(101, WIDE));
	assert_null(next(bench));
	turn_for(bench, HF_WIDE_SETTLE);
	answer_look(bench, narrow_job(7, NULL, WIDE_STATUS(5)));
	gathered(bench);
	assert_int_equal(brain.seen.generation, 5);
	/* A job without any write so far has no hidden ledger. */
	change_job(bench, narrow_job(103, NULL, NULL));
	assert_null(next(bench));
	assert_int_equal(brain.seen.generation, 0);
}

static void a_look_that_fails_is_tried_again_and_nothing_is_done(void **state)
{
	struct bench *bench = *state;

	start_job_under(bench, WIDE, narrow_job(7, LEDGER(3), NULL));
	fake_refuse(expect(bench, HF_VERB_GET, "pytorchjobs"), HF_E_UNAVAILABLE);
	assert_int_equal(bench->last_code, HF_E_UNAVAILABLE);
	assert_int_equal(brain.steps, 0);
	turn_for(bench, HF_SECOND);
	answer_look(bench, narrow_job(7, LEDGER(3), NULL));
	gathered(bench);
	assert_int_equal(brain.steps, 1);
	assert_int_equal(brain.seen.generation, 3);
}

static void a_server_that_is_behind_its_crd_makes_no_kind_narrow(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;
	const char *pruned = "{\"startTime\":\"2023-11-14T22:13:20Z\","
			     "\"conditions\":[],\"replicaStatuses\":{}}";

	brain.once = false;
	want_ledger(4);
	start_under(bench, WIDE);
	call = expect(bench, HF_VERB_PATCH, "pytorchjobs");
	fake_answer_object(call, narrow_job(101, NULL, pruned));
	assert_int_equal(bench->last_code, HF_E_UNSUPPORTED);
	assert_true(narrow_metric(bench) == 0);
	turn_for(bench, HF_SECOND);
	fake_answer_object(expect(bench, HF_VERB_GET, "pytorchjobs"),
			   narrow_job(101, NULL, pruned));
	call = expect(bench, HF_VERB_PATCH, "pytorchjobs");
	assert_string_equal(call->request->subresource, "status");
	assert_int_equal(recovery_generation(call), 4);
}

static void an_operator_that_may_not_read_crds_learns_from_replies(void **state)
{
	struct bench *bench = *state;
	struct hf_doc *job = job_doc("ddp", "u-1", 7, "");
	struct fake_call *call;

	want_ledger(4);
	hf_operator_start(bench->op);
	while (!hf_operator_synced(bench->op)) {
		call = next(bench);
		assert_non_null(call);
		if (hf_streq(call->request->resource->plural, CRDS))
			fake_refuse(call, HF_E_FORBIDDEN);
		else if (hf_streq(call->request->resource->plural, "pytorchjobs"))
			fake_answer_list(call, "100", "", &job, 1);
		else
			fake_answer_list(call, "100", "", NULL, 0);
	}
	assert_true(hf_str_has_prefix(bench->problem, "customresourcedefinitions: "));
	assert_string_equal(expect(bench, HF_VERB_PATCH, "pytorchjobs")->request->subresource,
			    "status");
}

int main(void)
{
#define W(name) cmocka_unit_test_setup_teardown(name, setup_with_crds, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_schema_without_a_place_for_the_ledger_is_narrow),
		W(the_ledger_goes_first_then_the_status_then_the_actions),
		W(a_wide_crd_keeps_the_ledger_in_the_status),
		W(a_ledger_that_is_not_kept_stops_the_job),
		W(a_conflict_of_the_ledger_is_read_live_and_nothing_is_done),
		T(a_reply_without_the_ledger_teaches_where_to_keep_it),
		T(a_job_whose_ledger_stands_in_an_annotation_keeps_it_there),
		T(an_annotation_of_one_job_moves_no_other_ledger),
		T(labels_and_annotations_of_a_job_do_not_disturb_its_metrics),
		T(metrics_of_a_job_are_read_from_the_annotation),
		W(under_a_wide_crd_an_annotated_ledger_moves_into_the_status),
		W(a_ledger_stays_annotated_while_the_wide_crd_is_new),
		W(a_kind_is_narrow_until_its_wide_crd_has_settled),
		W(a_job_that_a_watch_shows_pruned_is_not_stepped_by_its_old_ledger),
		W(a_job_that_has_begun_without_a_ledger_is_looked_at_where_the_crd_was_narrow),
		W(a_look_that_fails_is_tried_again_and_nothing_is_done),
		W(a_server_that_is_behind_its_crd_makes_no_kind_narrow),
		W(an_operator_that_may_not_read_crds_learns_from_replies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
