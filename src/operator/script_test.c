/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/script_test.h"

#include "base/mem.h"
#include "core/model/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct hf_framework *const script_frameworks[] = {&hf_framework_pytorch, NULL};

/* --- the scripted brain ----------------------------------------------------------------------- */

struct script brain;

/* Remember what the step saw, except texts: those live only as long as the step. */
static void remember(const struct hf_observed *seen, hf_time now)
{
	brain.now = now;
	brain.watched_since = seen->watched_since;
	brain.news_at = seen->pods_len > 0 ? seen->pods[0].news_at : HF_TIME_NONE;
	brain.unwell_at = seen->pods_len > 0 ? seen->pods[0].unwell_at : HF_TIME_NONE;
	brain.own_ended_at = seen->pods_len > 0 ? seen->pods[0].own_ended_at : HF_TIME_NONE;
	brain.n_nodes = seen->nodes_len;
	brain.n_gone = seen->gone_len;
	brain.n_claims = seen->claims_len;
	for (size_t i = 0; i < SEEN_MAX; i++) {
		if (i < seen->nodes_len) {
			brain.nodes[i] = seen->nodes[i];
			snprintf(brain.node_names[i], sizeof(brain.node_names[i]), "%s",
				 seen->nodes[i].name);
		}
		if (i < seen->gone_len) {
			const struct hf_pod *last = seen->gone[i].last;

			brain.gone[i] = seen->gone[i];
			brain.gone[i].last = NULL;
			brain.gone_owned[i] = last != NULL && last->owned;
			brain.gone_deleted[i] = last != NULL ? last->deletion_time : HF_TIME_NONE;
			snprintf(brain.gone_names[i], sizeof(brain.gone_names[i]), "%s",
				 seen->gone[i].name);
		}
		if (i < seen->claims_len) {
			brain.claims[i] = seen->claims[i];
			snprintf(brain.claim_names[i], sizeof(brain.claim_names[i]), "%s",
				 seen->claims[i].name);
		}
	}
}

static void remember_process(const struct hf_pod *pod)
{
	brain.step = pod != NULL ? pod->step : 0;
	brain.processed = pod != NULL && pod->process != NULL;
	if (!brain.processed)
		return;
	brain.process = *pod->process;
	brain.process.cause = brain.process.message = NULL;
	(void)snprintf(brain.process_cause, sizeof(brain.process_cause), "%s",
		       hf_str_or(pod->process->cause, "-"));
	(void)snprintf(brain.process_message, sizeof(brain.process_message), "%s",
		       hf_str_or(pod->process->message, "-"));
}

static void remember_devices(const struct hf_observed *seen)
{
	const struct hf_pod *pod = seen->pods_len > 0 ? &seen->pods[0] : NULL;

	brain.n_late = seen->late_len;
	brain.n_sick = seen->sick_len;
	brain.n_mended = seen->mended_len;
	brain.mended_at = seen->mended_len > 0 ? seen->mended[0].at : HF_TIME_NONE;
	for (size_t i = 0; i < seen->sick_len && i < SEEN_MAX; i++) {
		brain.sick[i] = seen->sick[i];
		snprintf(brain.sick_names[i], sizeof(brain.sick_names[i]), "%s",
			 seen->sick[i].node);
	}
	brain.n_devices = pod != NULL ? pod->devices_len : 0;
	brain.watched = pod != NULL && pod->watched;
	brain.advance = pod != NULL ? pod->advance : HF_ADVANCE_UNKNOWN;
	brain.advanced_at = pod != NULL ? pod->advanced_at : HF_TIME_NONE;
	brain.stepped_at = pod != NULL ? pod->stepped_at : HF_TIME_NONE;
	brain.told_at = pod != NULL ? pod->told_at : HF_TIME_NONE;
	brain.slow_permille = pod != NULL ? pod->slow_permille : 0;
	brain.fence_seconds = pod != NULL ? pod->fence_seconds : 0;
	remember_process(pod);
	for (size_t i = 0; i < brain.n_devices && i < SEEN_MAX; i++) {
		brain.devices[i] = pod->devices[i];
		snprintf(brain.device_ids[i], sizeof(brain.device_ids[i]), "%s",
			 pod->devices[i].id);
		snprintf(brain.device_classes[i], sizeof(brain.device_classes[i]), "%s",
			 pod->devices[i].cls);
	}
}

int hf_job_step(const struct hf_job_view *job, const struct hf_observed *seen, hf_time now,
		struct hf_arena *arena, struct hf_plan *ret_plan, struct hf_error *err)
{
	brain.steps++;
	brain.pods = seen->pods_len;
	brain.services = seen->services_len;
	remember(seen, now);
	remember_devices(seen);
	if (brain.code != 0)
		return hf_error_set(err, brain.code, "the brain said no");
	*ret_plan = brain.plan;
	ret_plan->status = job->status;
	brain.seen = job->status.ledger;
	brain.leaving = job->deletion_time != HF_TIME_NONE;
	if (brain.generation != 0) {
		ret_plan->status.ledger.present = true;
		ret_plan->status.ledger.schema = HF_LEDGER_SCHEMA;
		ret_plan->status.ledger.generation = brain.generation;
	}
	if (brain.phase != HF_PHASE_CREATING)
		ret_plan->status.ledger.phase = brain.phase;
	if (brain.start_time != HF_TIME_NONE)
		ret_plan->status.start_time = brain.start_time;
	if (brain.once) {
		brain.plan = (struct hf_plan){.wake_at = HF_TIME_NEVER};
		brain.start_time = HF_TIME_NONE;
		brain.generation = 0;
	}
	return 0;
}

struct hf_action actions[64];
static char action_names[64][32];
static const struct hf_edit stamps[] = {
	{.kind = HF_EDIT_ANNOTATION, .name = HF_ANNOTATION_GENERATION, .value = "2"},
	{.kind = HF_EDIT_ANNOTATION, .name = HF_ANNOTATION_ATTEMPT, .value = "0"},
};

/* Let stage s of the next plan have n actions of a kind, from slot `at` on. */
void want(int s, enum hf_action_kind kind, size_t at, size_t n)
{
	for (size_t i = at; i < at + n; i++) {
		snprintf(action_names[i], sizeof(action_names[i]), "ddp-worker-%zu", i);
		actions[i] = (struct hf_action){.kind = kind,
						.name = action_names[i],
						.role = 1,
						.uid = "p-uid",
						.edits = stamps,
						.edits_len = 2};
	}
	brain.plan.stages[s] = (struct hf_stage){.actions = &actions[at], .actions_len = n};
	if (brain.plan.stages_len <= (size_t)s)
		brain.plan.stages_len = (size_t)s + 1;
}

void want_status(hf_time start_time, bool urgent)
{
	brain.start_time = start_time;
	brain.plan.status_changed = true;
	brain.plan.status_urgent = urgent;
}

/* --- bench ------------------------------------------------------------------------------------ */

static void on_passed(void *arg, const struct hf_operator_pass *pass)
{
	struct bench *bench = arg;

	bench->passes++;
	bench->last_code = pass->code;
	bench->last_gone = pass->gone;
}

static void on_problem(void *arg, const char *key, int code, const char *message)
{
	struct bench *bench = arg;

	snprintf(bench->problem, sizeof(bench->problem), "%s: %s", key, message);
}

static void on_seen(void *arg, const char *key)
{
	struct bench *bench = arg;

	snprintf(bench->told, sizeof(bench->told), "%s", key);
	bench->n_told++;
}

/* Options that differ between benches. */
static int make_bench(void **state, struct hf_operator_options options)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));
	struct hf_error err;

	memset(&brain, 0, sizeof(brain));
	brain.start_time = HF_TIME_NONE;
	brain.plan.wake_at = HF_TIME_NEVER;
	brain.once = true;
	bench->loop = hf_loop_create_virtual(JOB_TIME);
	bench->store = fake_store_create();
	bench->metrics = hf_metrics_create();
	if (options.frameworks == NULL)
		options.frameworks = script_frameworks;
	options.passed = on_passed;
	options.problem = on_problem;
	options.seen = on_seen;
	options.arg = bench;
	options.seed = 1;
	options.loop = bench->loop;
	options.store = &bench->store->base;
	options.metrics = bench->metrics;
	assert_ok(hf_operator_create(&options, &bench->op, &err), &err);
	*state = bench;
	return 0;
}

int setup(void **state)
{
	return make_bench(state, (struct hf_operator_options){.seed = 1});
}

int setup_with_crds(void **state)
{
	return make_bench(state, (struct hf_operator_options){.watch_crds = true});
}

int setup_with_nodes(void **state)
{
	return make_bench(state, (struct hf_operator_options){.watch_nodes = true});
}

int setup_with_agents(void **state)
{
	return make_bench(state, (struct hf_operator_options){.watch_agents = true});
}

int setup_with_two_kinds(void **state)
{
	static const struct hf_framework *const two[] = {&hf_framework_pytorch,
							 &hf_framework_tensorflow, NULL};

	return make_bench(state, (struct hf_operator_options){.frameworks = two});
}

int setup_with_mpi(void **state)
{
	static const struct hf_framework *const frameworks[] = {&hf_framework_mpi, NULL};

	return make_bench(state, (struct hf_operator_options){.frameworks = frameworks});
}

int setup_with_gangs(void **state, const char *scheduler)
{
	return make_bench(state,
			  (struct hf_operator_options){.settings = {.gang_scheduler = scheduler}});
}

int teardown(void **state)
{
	struct bench *bench = *state;

	hf_operator_destroy(bench->op);
	fake_store_destroy(bench->store);
	hf_metrics_destroy(bench->metrics);
	hf_loop_destroy(bench->loop);
	free(bench);
	return 0;
}

struct hf_doc *job_doc(const char *name, const char *uid, int version, const char *more)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text),
		 "{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"metadata\":{"
		 "\"name\":\"%s\",\"namespace\":\"n\",\"uid\":\"%s\",\"resourceVersion\":\"%d\"},"
		 "\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{\"replicas\":3,\"template\":{"
		 "\"spec\":{\"containers\":[{\"name\":\"pytorch\",\"image\":\"i\"}]}}}}}%s}",
		 name, uid, version, more);
	return hf_doc_from_text(text, strlen(text));
}

struct hf_doc *pod_doc(const char *name, const char *uid, int version, const char *owner,
		       const char *more)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"n\",\"uid\":\"%s\","
		 "\"resourceVersion\":\"%d\",\"annotations\":{\"holdfast.dev/generation\":\"2\","
		 "\"holdfast.dev/attempt\":\"0\",\"holdfast.dev/avoids\":\"n%d\"},"
		 "\"ownerReferences\":[{\"kind\":\"PyTorchJob\","
		 "\"apiVersion\":\"kubeflow.org/v1\",\"name\":\"ddp\",\"uid\":\"%s\","
		 "\"controller\":true}]%s}}",
		 name, uid, version, version, owner, more);
	return hf_doc_from_text(text, strlen(text));
}

void turn(struct bench *bench)
{
	hf_loop_run_until(bench->loop, hf_loop_mono(bench->loop));
}

void turn_for(struct bench *bench, hf_time span)
{
	hf_loop_run_until(bench->loop, hf_loop_mono(bench->loop) + span);
}

void gathered(struct bench *bench)
{
	turn_for(bench, 50 * HF_MS);
}

/* The next request that is not for an event.  NULL: no such request. */
struct fake_call *next(struct bench *bench)
{
	struct fake_call *call;

	turn(bench);
	while ((call = fake_next(bench->store)) != NULL &&
	       hf_streq(call->request->resource->plural, "events"))
		;
	return call;
}

struct fake_call *expect(struct bench *bench, enum hf_verb verb, const char *plural)
{
	struct fake_call *call = next(bench);

	assert_non_null(call);
	assert_int_equal(call->request->verb, verb);
	assert_string_equal(call->request->resource->plural, plural);
	return call;
}

/* Start the operator and answer the lists with these jobs. */
void start_with(struct bench *bench, struct hf_doc **jobs, size_t n)
{
	struct fake_call *call;

	hf_operator_start(bench->op);
	while ((call = next(bench)) != NULL) {
		assert_int_equal(call->request->verb, HF_VERB_LIST);
		assert_int_equal(brain.steps, 0);
		const char *plural = call->request->resource->plural;
		struct hf_doc **items = NULL;
		size_t len = 0;

		if (hf_streq(plural, "pytorchjobs")) {
			items = jobs;
			len = n;
		} else if (hf_streq(plural, "nodes")) {
			items = bench->nodes;
			len = bench->n_nodes;
		} else if (hf_streq(plural, "devicehealths")) {
			items = &bench->health;
			len = bench->health != NULL;
		}
		fake_answer_list(call, "100", "", items, len);
		if (hf_operator_synced(bench->op))
			break;
	}
	assert_true(hf_operator_synced(bench->op));
}

void start(struct bench *bench)
{
	struct hf_doc *jobs[] = {job_doc("ddp", "u-1", 7, "")};

	start_with(bench, jobs, 1);
}

/* Answer the status patch of this call with the patched job. */
void grant_status(struct fake_call *call, int version)
{
	char more[TEXT_MAX];
	HF_AUTO_STRBUF status = HF_STRBUF_INIT(TEXT_MAX);

	hf_json_write(hf_json_get(hf_doc_json(call->request->body), "status"), HF_JSON_COMPACT,
		      &status);
	snprintf(more, sizeof(more), ",\"status\":%s", status.data);
	fake_answer_object(call, job_doc("ddp", "u-1", version, more));
}

void grant_pod(struct fake_call *call, int version)
{
	char uid[32];

	snprintf(uid, sizeof(uid), "uid-%d", version);
	fake_answer_object(call,
			   pod_doc(hf_doc_name(call->request->body), uid, version, "u-1", ""));
}

struct fake_watch *watch_of(struct bench *bench, const char *plural)
{
	struct fake_watch *watch = NULL;

	for (size_t i = 0; i < bench->store->n_watches; i++)
		if (bench->store->watches[i].live &&
		    hf_streq(bench->store->watches[i].resource->plural, plural))
			watch = &bench->store->watches[i];
	assert_non_null(watch);
	return watch;
}

/* All events that were sent so far, one a line: "reason: message". */
void event_lines(struct bench *bench, struct hf_strbuf *lines)
{
	turn_for(bench, 200 * HF_MS);
	for (size_t i = 0; i < bench->store->n_calls; i++) {
		struct fake_call *call = &bench->store->calls[i];

		if (!hf_streq(call->request->resource->plural, "events"))
			continue;
		const struct hf_json *body = hf_doc_json(call->request->body);

		hf_strbuf_addf(lines, "%s: %s\n", hf_json_path_str(body, "reason", NULL),
			       hf_json_path_str(body, "message", NULL));
		if (call->live)
			fake_answer_object(call, fake_object("e", "e", "1", ""));
		turn(bench);
	}
}

void assert_missing(const struct bench *bench, const char *text)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(TEXT_MAX);

	hf_operator_missing(bench->op, &sb);
	assert_string_equal(sb.data, text);
}

void assert_metric(struct bench *bench, const char *line)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 20);

	hf_operator_update_metrics(bench->op);
	hf_metrics_render(bench->metrics, &sb);
	if (strstr(sb.data, line) == NULL)
		fail_msg("'%s' is not in '%s'", line, sb.data);
}
