/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Makes the JSON of a job: the row of lists, and the page of one job.
 * Input: the job's document, its pods, the operator's plan. Output: JSON.
 */
#include "page/job_view.h"

#include "api/job.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/facts.h"
#include "core/explain/record_text.h"
#include "page/json_out.h"

#include <string.h>

/* Memory of one job's ledger, which has at most 11 records and the texts of its replicas. */
#define LEDGER_BYTES_MAX ((size_t)8 << 20)

static const char *const causes[HF_PAGE_CAUSES] = {"application", "infrastructure", "device",
						   "planned"};

const char *hf_page_cause_name(enum hf_page_cause cause)
{
	return causes[cause];
}

enum hf_page_cause hf_page_cause_of(enum hf_class cls)
{
	switch (cls) {
	case HF_CLASS_DEVICE: return HF_PAGE_DEVICE;
	case HF_CLASS_INFRASTRUCTURE:
	case HF_CLASS_ADMISSION: return HF_PAGE_INFRASTRUCTURE;
	case HF_CLASS_USER:
	case HF_CLASS_OURS: return HF_PAGE_PLANNED;
	case HF_CLASS_NONE:
	case HF_CLASS_OUT_OF_MEMORY:
	case HF_CLASS_APPLICATION: break;
	}
	return HF_PAGE_APPLICATION;
}

struct hf_json *hf_page_tree(struct hf_doc *doc)
{
	struct hf_json *tree = NULL;
	const char *text;
	size_t len;

	if (hf_doc_has_tree(doc))
		return hf_json_share(hf_doc_json(doc));
	text = hf_doc_text(doc, &len);
	return hf_json_parse(text, len, NULL, &tree, NULL) == 0 ? tree : NULL;
}

bool hf_page_pod_is_ready(const struct hf_pod *pod)
{
	for (size_t i = 0; i < pod->conditions_len; i++)
		if (hf_streq(pod->conditions[i].type, "Ready"))
			return hf_streq(pod->conditions[i].status, "True");
	return false;
}

struct hf_json *hf_page_read_status(const struct hf_json *tree,
				    const struct hf_framework *framework, struct hf_arena *arena,
				    struct hf_status *ret_status)
{
	const struct hf_json *status = hf_json_get(tree, "status");
	HF_AUTO_JSON recovery = hf_job_recovery(tree);
	struct hf_json *whole;

	/* Under a CRD without Holdfast's fields the ledger is in an annotation. */
	if (recovery != NULL && hf_json_get(status, "recovery") == NULL) {
		whole = status == NULL ? hf_json_object() : hf_json_copy(status);
		hf_json_set(whole, "recovery", hf_json_ref(recovery));
	} else {
		whole = hf_json_share(status);
	}
	hf_status_read(whole, framework, arena, ret_status);
	return whole;
}

/* ---- the row ------------------------------------------------------------------------------------- */

static int64_t count_ready(const struct hf_page_job_input *input)
{
	int64_t ready = 0;

	for (size_t i = 0; i < input->pods_len; i++)
		ready += hf_page_pod_is_ready(&input->pods[i]);
	return ready;
}

static hf_time ended_at(const struct hf_json *tree, const struct hf_job_facts *facts)
{
	hf_time ended = hf_page_time_of(hf_json_get(tree, "status"), "completionTime");

	if (ended != HF_TIME_NONE ||
	    (!hf_streq(facts->state, HF_COND_SUCCEEDED) && !hf_streq(facts->state, HF_COND_FAILED)))
		return ended;
	return hf_page_time_of(hf_job_last_condition(tree), "lastTransitionTime");
}

/* Counts the records of restarts that people asked for; the ledger has no counter of them. */
static int64_t count_planned(const struct hf_json *recovery)
{
	const struct hf_json *history = hf_json_get(recovery, "history");
	const struct hf_json *record = hf_json_get(recovery, "last");
	int64_t planned = 0;

	for (size_t i = 0; record != NULL; i++) {
		enum hf_class cls =
			hf_class_parse(hf_str_or(hf_json_path_str(record, "cause", NULL), ""));

		planned += hf_page_cause_of(cls) == HF_PAGE_PLANNED;
		record = hf_json_item(history, i);
	}
	return planned;
}

static void set_restarts(struct hf_json *object, const struct hf_job_facts *facts, int64_t planned)
{
	struct hf_json *restarts = hf_json_ensure_object(object, "restarts");

	for (int i = 0; i < HF_BUDGETS; i++)
		hf_page_set_count(restarts, hf_budget_name((enum hf_budget)i), facts->restarts[i]);
	hf_page_set_count(restarts, "planned", planned);
}

static void set_training(struct hf_json *object, const struct hf_page_job_input *input,
			 struct hf_page_job_keys *keys)
{
	const struct hf_page_progress *progress = &input->progress;
	struct hf_job_training training;
	int64_t step;

	hf_job_training_read(input->tree, input->now, &training);
	step = training.step > progress->step ? training.step : progress->step;
	keys->times = training.times;
	hf_page_set_count(object, "step", step > 0 ? step : -1);
	hf_page_set_count(object, "totalSteps", progress->total > 0 ? progress->total : -1);
	hf_page_set_number(object, "stepsPerSecond", progress->steps_per_second);
	hf_page_set_number(object, "ettr",
			   training.has_ettr ? (double)training.ettr_permille / 1000 : -1);
}

struct hf_json *hf_page_job_json(const struct hf_page_job_input *input,
				 struct hf_page_job_keys *ret_keys)
{
	const struct hf_page_job *job = input->job;
	struct hf_json *object = hf_json_object();
	HF_AUTO_JSON recovery = hf_job_recovery(input->tree);
	const char *cls = hf_json_path_str(recovery, "last", "cause", NULL);
	int64_t planned = count_planned(recovery);
	struct hf_job_facts facts;
	hf_time created =
		hf_page_time_of(hf_json_get(input->tree, "metadata"), "creationTimestamp");

	hf_job_facts_read(input->tree, &facts);
	*ret_keys = (struct hf_page_job_keys){
		.state = facts.state,
		.cause = cls == NULL ? "" : causes[hf_page_cause_of(hf_class_parse(cls))],
		.restarts = hf_job_restarts(&facts),
		.created = created,
	};
	hf_json_set_str(object, "namespace", job->ns);
	hf_json_set_str(object, "kind", job->framework->kind);
	hf_json_set_str(object, "name", job->name);
	hf_json_set_str(object, "uid", job->uid);
	hf_json_set_str(object, "state", facts.state);
	hf_page_set_time(object, "since",
			 hf_page_time_of(hf_job_last_condition(input->tree), "lastTransitionTime"));
	hf_page_set_text(object, "sentence",
			 input->sentence != NULL ? input->sentence : facts.message);
	hf_page_set_count(object, "ready", hf_job_ready(&facts, count_ready(input)));
	hf_page_set_count(object, "ranks", facts.wanted);
	hf_page_set_count(object, "generation", facts.generation);
	set_restarts(object, &facts, planned);
	hf_page_set_text(object, "cause", cls == NULL ? NULL : ret_keys->cause);
	set_training(object, input, ret_keys);
	hf_page_set_time(object, "created", created);
	hf_page_set_time(object, "ended", ended_at(input->tree, &facts));
	return object;
}

/* ---- the page of one job --------------------------------------------------------------------------- */

static void add_conditions(struct hf_json *object, const struct hf_status *status)
{
	struct hf_json *list = hf_json_ensure_array(object, "conditions");

	for (size_t i = 0; i < status->conditions_len; i++) {
		const struct hf_condition *condition = &status->conditions[i];
		struct hf_json *item = hf_json_object();

		hf_json_set_str(item, "type", condition->type);
		hf_json_set_str(item, "status", condition->status);
		hf_page_set_text(item, "reason", condition->reason);
		hf_page_set_text(item, "message", condition->message);
		hf_page_set_time(item, "since", condition->last_transition);
		hf_json_append(list, item);
	}
}

static void add_seconds(struct hf_json *item, const struct hf_record *record)
{
	struct hf_json *seconds = hf_json_ensure_object(item, "seconds");
	struct hf_record_parts parts = hf_record_parts(record);

	hf_page_set_seconds(seconds, "detect", parts.detect);
	hf_page_set_seconds(seconds, "decide", parts.decide);
	hf_page_set_seconds(seconds, "down", parts.down);
	hf_page_set_seconds(seconds, "start", parts.start);
	hf_page_set_seconds(seconds, "firstStep", parts.first_step);
	hf_page_set_seconds(seconds, "total", parts.total);
}

static struct hf_json *record_json(const struct hf_record *record, struct hf_arena *arena)
{
	struct hf_json *item = hf_json_object();

	hf_page_set_time(item, "at", record->detected_at);
	hf_json_set_str(item, "cause", causes[hf_page_cause_of(record->cause)]);
	hf_page_set_text(item, "reason", record->reason);
	hf_page_set_text(item, "rank", record->replica);
	hf_page_set_text(item, "node", record->node);
	hf_page_set_text(item, "device", record->device);
	hf_page_set_count(item, "code", record->exit_code.set ? record->exit_code.value : -1);
	hf_page_set_count(item, "signal",
			  hf_record_signal(record) > 0 ? hf_record_signal(record) : -1);
	hf_page_set_text(item, "scope", record->scope);
	hf_json_set_bool(item, "inPlace", record->in_place);
	hf_page_set_count(item, "generation", record->generation);
	hf_page_set_count(item, "stepsLost", hf_record_lost_steps(record));
	add_seconds(item, record);
	hf_json_set_str(item, "sentence", hf_record_evidence(arena, record));
	return item;
}

static void add_records(struct hf_json *object, const struct hf_ledger *ledger,
			struct hf_arena *arena)
{
	struct hf_json *list = hf_json_ensure_array(object, "restartRecords");

	for (size_t i = 0; i < ledger->records_len; i++)
		hf_json_append(list, record_json(&ledger->records[i], arena));
}

static void add_generation(struct hf_json *list, int64_t number, hf_time start,
			   const struct hf_record *ended_by)
{
	struct hf_json *item = hf_json_object();

	hf_page_set_count(item, "number", number);
	hf_page_set_time(item, "start", start);
	hf_page_set_time(item, "end", ended_by == NULL ? HF_TIME_NONE : ended_by->detected_at);
	hf_page_set_text(item, "cause",
			 ended_by == NULL ? NULL : causes[hf_page_cause_of(ended_by->cause)]);
	hf_json_set_bool(item, "inPlace", ended_by != NULL && ended_by->in_place);
	hf_json_append(list, item);
}

/* The generations that the records know, oldest first: each record ends one and begins the next. A record
 * without a scope ended the job. */
static void add_generations(struct hf_json *object, const struct hf_page_job_input *input,
			    const struct hf_status *status)
{
	struct hf_json *list = hf_json_ensure_array(object, "generations");
	const struct hf_ledger *ledger = &status->ledger;
	hf_time start = status->start_time;
	int64_t number = 1;

	for (size_t i = ledger->records_len; i-- > 0;) {
		const struct hf_record *record = &ledger->records[i];

		number = hf_streq(record->scope, "Job") ? record->generation - 1
							: record->generation;
		/* Records of earlier generations may have been dropped: their start is unknown. */
		add_generation(list, number,
			       i + 1 == ledger->records_len && number > 1 ? HF_TIME_NONE : start,
			       record);
		start = record->running_at != HF_TIME_NONE ? record->running_at
							   : record->decided_at;
	}
	/* It begins when all ranks run again. A job may also end before that. */
	if (ledger->records_len > 0 && ledger->records[0].running_at == HF_TIME_NONE &&
	    !hf_status_is_finished(status))
		start = HF_TIME_NONE;
	if (ledger->records_len == 0 || !hf_str_is_empty(ledger->records[0].scope))
		add_generation(list, ledger->generation, start, NULL);
	if (hf_status_is_finished(status) && hf_json_len(list) > 0) {
		struct hf_json *last = hf_json_item(list, hf_json_len(list) - 1);
		struct hf_job_facts facts;

		hf_job_facts_read(input->tree, &facts);
		hf_page_set_time(last, "end", ended_at(input->tree, &facts));
	}
}

static void add_advice(struct hf_json *object, const struct hf_page_job_input *input)
{
	struct hf_job_training training;
	HF_AUTOFREE char *text = NULL;

	hf_job_training_read(input->tree, input->now, &training);
	if (training.has_advice)
		text = hf_xasprintf(
			"Save every %lld s: a save takes %lld ms, and the job has failed %lld times, once in "
			"%lld s.",
			(long long)training.advice.seconds, (long long)training.advice.save_ms,
			(long long)training.advice.incidents,
			(long long)training.advice.between_seconds);
	hf_page_set_text(object, "advice", text);
	hf_page_set_count(object, "lastStepDone", training.step > 0 ? training.step : -1);
	hf_page_set_count(object, "lastStepSaved",
			  training.saved_step > 0 ? training.saved_step : -1);
}

/* What `holdfast why` prints, and the line that begins with "next". */
static void add_reasons(struct hf_json *object, const struct hf_plan *plan)
{
	struct hf_json *list = hf_json_ensure_array(object, "why");
	const char *next = NULL;

	for (size_t i = 0; plan != NULL && i < plan->reasons_len; i++) {
		const struct hf_reason *reason = &plan->reasons[i];
		struct hf_json *item = hf_json_object();

		hf_page_set_time(item, "at", reason->time);
		hf_json_set_str(item, "topic", hf_topic_name(reason->topic));
		hf_json_set_str(item, "text", reason->text);
		hf_json_append(list, item);
		if (reason->topic == HF_TOPIC_NEXT || reason->topic == HF_TOPIC_BLOCKED)
			next = reason->text;
	}
	hf_page_set_text(object, "next", next);
	if (plan != NULL && plan->summary != NULL)
		hf_json_set_str(object, "sentence", plan->summary);
}

void hf_page_job_add_detail(struct hf_json *object, const struct hf_page_job_input *input,
			    const struct hf_plan *plan)
{
	const struct hf_page_job *job = input->job;
	HF_AUTO_ARENA arena = hf_arena_create(LEDGER_BYTES_MAX);
	HF_AUTO_JSON read = NULL; /* what the status borrows from */
	HF_AUTOFREE char *command = hf_xasprintf("holdfast why -n %s %s %s", job->ns,
						 job->framework->singular, job->name);
	struct hf_status status;

	read = hf_page_read_status(input->tree, job->framework, arena, &status);
	add_reasons(object, plan);
	hf_json_set_str(object, "command", command);
	add_conditions(object, &status);
	add_generations(object, input, &status);
	add_records(object, &status.ledger, arena);
	add_advice(object, input);
}
