/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"

#include "harness/plan_text.h"
#include "harness/test.h"

#include "base/mem.h"
#include "base/str.h"
#include "core/model/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES ((size_t)256 << 20)
#define START ((hf_time)1767225600 * HF_SECOND) /* 2026-01-01T00:00:00Z */

/* ---- the kind ---------------------------------------------------------------------------------- */

static int kind_pod(const struct hf_job *job, const struct hf_rank *rank, struct hf_edits *edits,
		    struct hf_error *err)
{
	if (!job->roles[rank->role].present)
		return hf_error_set(err, HF_E_INVALID, "no such role");
	hf_edits_env(edits, HF_EDIT_EVERY_CONTAINER, "RANK", "%d", rank->index);
	return 0;
}

static bool kind_is_master(const struct hf_job *job, const struct hf_rank *rank)
{
	return job->roles[BRAIN_BOSS].present && rank->role == BRAIN_BOSS;
}

static void kind_judge(const struct hf_job *job, const struct hf_counts *counts,
		       struct hf_arena *arena, struct hf_judgement *ret)
{
	int role = job->roles[BRAIN_BOSS].present ? BRAIN_BOSS : BRAIN_HAND;

	ret->running = counts[role].active > 0;
	ret->succeeded = job->roles[role].replicas > 0 &&
			 counts[role].succeeded >= job->roles[role].replicas;
	ret->running_message = hf_arena_printf(arena, "TestJob %s is running.", job->view->name);
	ret->succeeded_message =
		hf_arena_printf(arena, "TestJob %s is successfully completed.", job->view->name);
}

static bool kind_goes_on(const struct hf_job *job, const struct hf_counts *counts)
{
	return job->elastic.present && job->elastic.min_replicas.set &&
	       counts[BRAIN_HAND].active >= job->elastic.min_replicas.value;
}

const struct hf_framework brain_kind = {
	.api_version = "test.dev/v1",
	.group = "test.dev",
	.version = "v1",
	.kind = "TestJob",
	.plural = "testjobs",
	.singular = "testjob",
	.replicas_key = "testReplicaSpecs",
	.container_name = "main",
	.port_name = "test-port",
	.port_number = 4242,
	.inject_port = true,
	.has_services = true,
	.default_restart = HF_RESTART_ON_FAILURE,
	.controller_name = "testjob-controller",
	.metrics_name = "test",
	.has_scale = true,
	.scale_role = BRAIN_HAND,
	.roles = {[BRAIN_BOSS] = {.name = "Boss", .default_replicas = 1},
		  [BRAIN_HAND] = {.name = "Hand", .default_replicas = 1}},
	.roles_len = 2,
	.pod = kind_pod,
	.is_master = kind_is_master,
	.judge = kind_judge,
	.goes_on = kind_goes_on,
};

/* ---- birth and death ------------------------------------------------------------------------------ */

static void no_status(struct hf_status *status)
{
	memset(status, 0, sizeof(*status));
	status->start_time = status->completion_time = HF_TIME_NONE;
	status->last_reconcile_time = HF_TIME_NONE;
	status->ledger.since = status->ledger.not_before = HF_TIME_NONE;
	status->ledger.in_place_at = status->ledger.save_until = status->ledger.steps_at =
		HF_TIME_NONE;
	status->ledger.incident.opened_at = status->ledger.verdict.at = HF_TIME_NONE;
}

void brain_init(struct brain *b, const struct hf_framework *kind, int boss, int hands)
{
	const int wanted[] = {boss, hands};

	memset(b, 0, sizeof(*b));
	for (int i = 0; i < 2; i++)
		b->stored[i] = hf_arena_create(ARENA_BYTES);
	b->pass = hf_arena_create(ARENA_BYTES);
	b->now = START;
	b->container = (struct hf_container){.name = kind->container_name, .image = "image"};
	b->view.framework = kind;
	b->view.settings = &b->settings;
	b->view.ns = "lab";
	b->view.name = "demo";
	b->view.uid = "job-uid";
	b->view.resource_version = "1";
	b->view.creation_time = START;
	b->view.deletion_time = HF_TIME_NONE;
	b->view.has_replicas = true;
	b->view.replicas = b->replicas;
	b->view.run_policy.rules = b->rules;
	for (int i = 0; i < 2; i++) {
		struct hf_replica_spec *spec = &b->replicas[b->view.replicas_len];

		if (wanted[i] == 0)
			continue;
		spec->type = kind->roles[i].name;
		spec->replicas = HF_SOME_INT(wanted[i]);
		spec->restart_policy = "OnFailure";
		spec->pod.containers = &b->container;
		spec->pod.containers_len = 1;
		b->view.replicas_len++;
	}
	no_status(&b->view.status);
	for (int i = 0; i < 2; i++) {
		struct hf_node_seen *node = &b->nodes[b->nodes_len++];

		hf_node_seen_init(node, i ? "n1" : "n0", HF_NODE_READY, b->now);
		node->zone_nodes = 10;
		node->calm_since = 0;
	}
	brain_nodes_heard(b);
}

void brain_release(struct brain *b)
{
	for (int i = 0; i < 2; i++)
		b->stored[i] = hf_arena_destroy(b->stored[i]);
	b->pass = hf_arena_destroy(b->pass);
}

/* ---- the stored status ------------------------------------------------------------------------------ */

static const char *copy(struct hf_arena *arena, const char *text)
{
	return text ? hf_arena_strdup(arena, text) : NULL;
}

static void copy_ledger(struct hf_arena *arena, struct hf_ledger *ledger)
{
	for (int r = 0; r < HF_ROLES_MAX; r++) {
		struct hf_role_ledger *role = &ledger->roles[r];

		role->attempts = copy(arena, role->attempts);
		role->created = copy(arena, role->created);
		role->succeeded = copy(arena, role->succeeded);
		role->seen = copy(arena, role->seen);
		role->init_seen = copy(arena, role->init_seen);
		role->trained = copy(arena, role->trained);
		role->covered = copy(arena, role->covered);
		role->hold = copy(arena, role->hold);
		role->in_place = copy(arena, role->in_place);
		role->in_place_since = copy(arena, role->in_place_since);
	}
	for (size_t i = 0; i < ledger->records_len; i++) {
		struct hf_record *record = &ledger->records[i];

		record->reason = copy(arena, record->reason);
		record->scope = copy(arena, record->scope);
		record->replica = copy(arena, record->replica);
		record->pod = copy(arena, record->pod);
		record->node = copy(arena, record->node);
		record->rule = copy(arena, record->rule);
	}
	ledger->restart_handled = copy(arena, ledger->restart_handled);
	ledger->verdict.reason = copy(arena, ledger->verdict.reason);
	ledger->verdict.message = copy(arena, ledger->verdict.message);
}

void brain_write_status(struct brain *b)
{
	struct hf_arena *arena = b->stored[1 - b->stored_now];
	struct hf_status *status = &b->view.status;
	struct hf_condition *conditions;

	if (!b->plan.status_changed)
		return;
	hf_arena_reset(arena);
	*status = b->plan.status;
	conditions = HF_ARENA_ARRAY(arena, struct hf_condition, status->conditions_len + 1);
	for (size_t i = 0; i < status->conditions_len; i++) {
		conditions[i] = status->conditions[i];
		conditions[i].stored = (int)i;
		conditions[i].type = copy(arena, conditions[i].type);
		conditions[i].status = copy(arena, conditions[i].status);
		conditions[i].reason = copy(arena, conditions[i].reason);
		conditions[i].message = copy(arena, conditions[i].message);
	}
	status->conditions = conditions;
	for (int r = 0; r < HF_ROLES_MAX; r++)
		status->replicas[r].selector = copy(arena, status->replicas[r].selector);
	copy_ledger(arena, &status->ledger);
	b->stored_now = 1 - b->stored_now;
}

/* ---- stepping ----------------------------------------------------------------------------------------- */

static size_t place(const struct brain *b, size_t i, size_t len)
{
	/* Places object i in the order of the test. shuffle 1: the order is reversed; else it is
	 * rotated by `shuffle`. */
	if (b->shuffle == 1)
		return len - 1 - i;
	return (i + b->shuffle) % len;
}

/* Copies the texts of a pod into the memory of this step. So the plan's texts stay valid when the
 * pod changes. */
static void show_pod(struct brain *b, struct brain_pod *pod)
{
	struct hf_process_seen *process = HF_ARENA_NEW(b->pass, struct hf_process_seen);

	*process = pod->process;
	pod->pod.process = pod->reported ? process : NULL;
	pod->pod.name = hf_arena_strdup(b->pass, pod->name);
	pod->pod.uid = hf_arena_strdup(b->pass, pod->uid);
	pod->pod.resource_version = hf_arena_strdup(b->pass, pod->version);
	pod->pod.node = *pod->node ? hf_arena_strdup(b->pass, pod->node) : NULL;
	pod->pod.containers = pod->containers;
	pod->pod.conditions = &pod->condition;
}

void brain_step(struct brain *b)
{
	struct hf_error err = {0};

	/* The plan may refer to texts of the objects that the step saw. These objects change while
	 * the plan is performed, so each step has copies of the texts. */
	hf_arena_reset(b->pass);
	for (size_t i = 0; i < b->pods_len; i++) {
		show_pod(b, &b->pods[i]);
		b->seen_pods[place(b, i, b->pods_len)] = b->pods[i].pod;
	}
	for (size_t i = 0; i < b->gone_len; i++) {
		struct brain_pod *last = &b->gone_pods[i];

		show_pod(b, last);
		b->gone[i].last = last->pod.deletion_time == HF_TIME_NONE ? NULL : &last->pod;
	}
	for (size_t i = 0; i < b->services_len; i++) {
		b->services[i].service.name = hf_arena_strdup(b->pass, b->services[i].name);
		b->services[i].service.uid = hf_arena_strdup(b->pass, b->services[i].uid);
		b->seen_services[place(b, i, b->services_len)] = b->services[i].service;
	}
	for (size_t i = 0; i < b->extras_len; i++) {
		b->extras[i].extra.name = hf_arena_strdup(b->pass, b->extras[i].name);
		b->extras[i].extra.uid = hf_arena_strdup(b->pass, b->extras[i].uid);
		b->seen_extras[place(b, i, b->extras_len)] = b->extras[i].extra;
	}
	b->seen = (struct hf_observed){
		.sick = b->sick,
		.sick_len = b->sick_len,
		.extras = b->seen_extras,
		.extras_len = b->extras_len,
		.extras_unknown = b->blind ? ~0u : 0,
		.pods = b->seen_pods,
		.pods_len = b->pods_len,
		.services = b->seen_services,
		.services_len = b->services_len,
		.nodes = b->nodes,
		.nodes_len = b->nodes_len,
		.gone = b->gone,
		.gone_len = b->gone_len,
		.claims = b->claims,
		.claims_len = b->claims_len,
		.watched_since = HF_TIME_NONE,
		.blind = b->blind,
	};
	assert_ok(hf_job_step(&b->view, &b->seen, b->now, b->pass, &b->plan, &err), &err);
}

char *brain_text(struct brain *b)
{
	struct hf_strbuf sb = HF_STRBUF_INIT((size_t)64 << 20);

	hf_plan_render(&b->plan, b->view.framework, &sb);
	return hf_strbuf_detach(&sb);
}

static void fill(char to[BRAIN_TEXT_MAX], const char *text)
{
	int n = snprintf(to, BRAIN_TEXT_MAX, "%s", text);

	assert_true(n < BRAIN_TEXT_MAX);
}

/* Gives the pod a new resourceVersion, as every write does. */
static void touch(struct brain *b, struct brain_pod *pod)
{
	snprintf(pod->version, sizeof(pod->version), "%d", ++b->next_version);
}

/* Chooses a node for a pod as a scheduler would: the next Ready node without a NoExecute taint.
 * "": no node fits. */
static const char *find_node(const struct brain *b)
{
	for (size_t i = 0; i < b->nodes_len; i++) {
		const struct hf_node_seen *node =
			&b->nodes[((size_t)b->next_uid + 1 + i) % b->nodes_len];

		if (node->ready == HF_NODE_READY && !node->no_execute)
			return node->name;
	}
	return "";
}

static int64_t edit_number(const struct hf_action *action, const char *name)
{
	for (size_t i = 0; i < action->edits_len; i++) {
		if (action->edits[i].kind == HF_EDIT_ANNOTATION &&
		    hf_streq(action->edits[i].name, name))
			return strtoll(action->edits[i].value, NULL, 10);
	}
	fail_msg("pod %s has no %s", action->name, name);
	return 0;
}

static void create_pod(struct brain *b, const struct hf_action *action)
{
	struct brain_pod *pod = &b->pods[b->pods_len];

	if (brain_pod(b, action->name))
		return; /* AlreadyExists */
	assert_true(b->pods_len < BRAIN_PODS_MAX);
	b->pods_len++;
	for (size_t i = 0; i < b->gone_ours_len; i++) {
		if (hf_streq(b->gone_ours[i], action->name))
			memcpy(b->gone_ours[i], b->gone_ours[--b->gone_ours_len], BRAIN_TEXT_MAX);
	}
	memset(pod, 0, sizeof(*pod));
	fill(pod->name, action->name);
	snprintf(pod->uid, sizeof(pod->uid), "uid-%d", ++b->next_uid);
	fill(pod->node, find_node(b));
	touch(b, pod);
	pod->pod = (struct hf_pod){
		.owned = true,
		.stamped = true,
		.phase = HF_POD_PENDING,
		.generation = edit_number(action, HF_ANNOTATION_GENERATION),
		.attempt = edit_number(action, HF_ANNOTATION_ATTEMPT),
		.incident = edit_number(action, HF_ANNOTATION_INCIDENT),
		.creation_time = b->now,
		.deletion_time = HF_TIME_NONE,
		.deleted_at = HF_TIME_NONE,
		.bound_at = b->now,
		.news_at = HF_TIME_NONE,
		.unwell_at = HF_TIME_NONE,
		.own_ended_at = HF_TIME_NONE,
		.containers_len = 1,
	};
	pod->containers[0] = (struct hf_container_seen){
		.name = b->view.framework->container_name,
		.phase = HF_CONTAINER_WAITING,
		.finished_at = HF_TIME_NONE,
		.started_at = HF_TIME_NONE,
	};
	b->created++;
}

static void delete_pod(struct brain *b, const struct hf_action *action)
{
	struct brain_pod *pod = brain_pod(b, action->name);

	if (!pod || !hf_streq(pod->uid, action->uid) ||
	    (action->resource_version && !hf_streq(pod->version, action->resource_version)))
		return; /* not found, or the precondition says no */
	assert_true(pod->pod.owned || hf_pod_is_inherited(&b->view, &pod->pod));
	pod->ours = true;
	/* A pod that has ended or has no node is removed at once, because no kubelet has to end it
	 * first. */
	if (pod->pod.phase == HF_POD_SUCCEEDED || pod->pod.phase == HF_POD_FAILED || !*pod->node ||
	    (action->grace_seconds.set && action->grace_seconds.value == 0))
		brain_gone(b, action->name);
	else
		brain_terminate(b, action->name);
}

static bool is_lost(const struct brain *b, const struct brain_pod *pod)
{
	for (size_t i = 0; i < b->nodes_len; i++) {
		if (hf_streq(b->nodes[i].name, pod->node))
			return b->nodes[i].ready == HF_NODE_UNKNOWN ||
			       b->nodes[i].ready == HF_NODE_GONE;
	}
	return false;
}

/* Changes the pod as the write of a living kubelet does. */
static void kubelet_writes(struct brain *b, struct brain_pod *pod)
{
	pod->pod.news_at = b->now;
	touch(b, pod);
}

static void end_container(const struct brain *b, struct hf_container_seen *container, int code)
{
	container->phase = HF_CONTAINER_TERMINATED;
	container->again = HF_AGAIN_NEVER;
	container->exit_code = code;
	container->terminated_reason = code == 0 ? "Completed" : "Error";
	container->finished_at = b->now;
}

/* Sets the pod to Failed, as an API server does with a patch. If the pod has changed since the
 * step saw it, the patch is a conflict and does nothing. */
static void fail_pod(struct brain *b, const struct hf_action *action)
{
	struct brain_pod *pod = brain_pod(b, action->name);

	assert_non_null(action->message);
	if (!pod || !hf_streq(pod->uid, action->uid) ||
	    !hf_streq(pod->version, action->resource_version))
		return;
	pod->pod.phase = HF_POD_FAILED;
	pod->condition = (struct hf_pod_condition){.type = HF_POD_COND_NODE_LOST, .status = "True"};
	pod->pod.conditions_len = 1;
	touch(b, pod);
}

/* Sets activeDeadlineSeconds. If the kubelet lives, it ends the containers at once, with
 * SIGKILL. */
static void stop_pod(struct brain *b, const struct hf_action *action)
{
	struct brain_pod *pod = brain_pod(b, action->name);

	assert_non_null(action->message);
	if (!pod || !hf_streq(pod->uid, action->uid))
		return;
	pod->pod.active_deadline_seconds = HF_SOME_INT(1);
	/* The text needs no copy, because plans use constants here. */
	pod->pod.stopped = action->message;
	touch(b, pod);
	if (is_lost(b, pod) || pod->pod.phase != HF_POD_RUNNING)
		return;
	kubelet_writes(b, pod);
	pod->pod.phase = HF_POD_FAILED;
	pod->pod.reason = "DeadlineExceeded";
	for (size_t i = 0; i < pod->pod.containers_len; i++)
		if (pod->containers[i].phase != HF_CONTAINER_TERMINATED)
			end_container(b, &pod->containers[i], 137);
}

static void create_service(struct brain *b, const struct hf_action *action)
{
	struct brain_service *service = &b->services[b->services_len];

	for (size_t i = 0; i < b->services_len; i++) {
		if (hf_streq(b->services[i].name, action->name))
			return;
	}
	assert_true(b->services_len < BRAIN_PODS_MAX);
	b->services_len++;
	memset(service, 0, sizeof(*service));
	fill(service->name, action->name);
	snprintf(service->uid, sizeof(service->uid), "uid-%d", ++b->next_uid);
	service->service.owned = true;
}

static void delete_service(struct brain *b, const struct hf_action *action)
{
	for (size_t i = 0; i < b->services_len; i++) {
		if (hf_streq(b->services[i].name, action->name) &&
		    hf_streq(b->services[i].uid, action->uid)) {
			b->services[i] = b->services[--b->services_len];
			return;
		}
	}
}

struct brain_extra *brain_extra(struct brain *b, const char *name)
{
	for (size_t i = 0; i < b->extras_len; i++) {
		if (hf_streq(b->extras[i].name, name))
			return &b->extras[i];
	}
	return NULL;
}

void brain_extra_gone(struct brain *b, const char *name)
{
	struct brain_extra *extra = brain_extra(b, name);

	assert_non_null(extra);
	*extra = b->extras[--b->extras_len];
}

static void create_extra(struct brain *b, const struct hf_action *action)
{
	struct brain_extra *extra = &b->extras[b->extras_len];

	for (size_t i = 0; i < b->extras_len; i++) {
		if (b->extras[i].extra.kind == action->extra->kind &&
		    hf_streq(b->extras[i].name, action->name))
			return;
	}
	assert_true(b->extras_len < BRAIN_EXTRAS_MAX);
	b->extras_len++;
	memset(extra, 0, sizeof(*extra));
	fill(extra->name, action->name);
	snprintf(extra->uid, sizeof(extra->uid), "uid-%d", ++b->next_uid);
	extra->extra.kind = action->extra->kind;
	extra->extra.owned = true;
	extra->extra.ready = action->extra->kind != HF_EXTRA_VOLCANO_GROUP;
	extra->extra.digest = hf_extra_digest(action->extra);
}

static void change_extra(struct brain *b, const struct hf_action *action)
{
	for (size_t i = 0; i < b->extras_len; i++) {
		struct brain_extra *extra = &b->extras[i];

		if (extra->extra.kind != action->extra->kind || !hf_streq(extra->uid, action->uid))
			continue;
		if (action->kind == HF_ACTION_UPDATE_EXTRA)
			extra->extra.digest = hf_extra_digest(action->extra);
		else
			*extra = b->extras[--b->extras_len];
		return;
	}
}

void brain_perform(struct brain *b, const struct hf_action *action)
{
	switch (action->kind) {
	case HF_ACTION_CREATE_POD: create_pod(b, action); break;
	case HF_ACTION_DELETE_POD: delete_pod(b, action); break;
	case HF_ACTION_CREATE_SERVICE: create_service(b, action); break;
	case HF_ACTION_DELETE_SERVICE: delete_service(b, action); break;
	case HF_ACTION_FAIL_POD: fail_pod(b, action); break;
	case HF_ACTION_STOP_POD: stop_pod(b, action); break;
	case HF_ACTION_CREATE_EXTRA: create_extra(b, action); break;
	case HF_ACTION_UPDATE_EXTRA:
	case HF_ACTION_DELETE_EXTRA: change_extra(b, action); break;
	case HF_ACTION_DELETE_JOB:
		assert_string_equal(action->uid, b->view.uid);
		b->view.deletion_time = b->now;
		b->job_deleted = true;
		break;
	}
}

void brain_write_ledger(struct brain *b)
{
	struct hf_ledger ledger = b->plan.status.ledger;

	b->plan.status = b->view.status;
	b->plan.status.ledger = ledger;
	brain_write_status(b);
}

void brain_perform_all(struct brain *b)
{
	brain_write_status(b);
	for (size_t s = 0; s < b->plan.stages_len; s++)
		for (size_t a = 0; a < b->plan.stages[s].actions_len; a++)
			brain_perform(b, &b->plan.stages[s].actions[a]);
}

int brain_quiet(struct brain *b)
{
	for (int n = 0; n < 50; n++) {
		brain_step(b);
		if (!b->plan.status_changed && hf_plan_actions(&b->plan) == 0)
			return n;
		brain_perform_all(b);
	}
	fail_msg("no quiet after 50 steps");
	return 0;
}

void brain_run_up(struct brain *b)
{
	brain_quiet(b);
	brain_start_all(b);
	brain_quiet(b);
}

void brain_run_up_exec(struct brain *b)
{
	brain_agents(b, true);
	brain_run_up(b);
	brain_report_all(b, HF_PROCESS_RUNNING, 1);
	brain_quiet(b);
}

void brain_agents(struct brain *b, bool heard)
{
	for (size_t i = 0; i < b->nodes_len; i++)
		b->nodes[i].has_agent = heard;
}

/* ---- what happens to pods ------------------------------------------------------------------------------- */

struct brain_pod *brain_pod(struct brain *b, const char *name)
{
	for (size_t i = 0; i < b->pods_len; i++) {
		if (hf_streq(b->pods[i].name, name))
			return &b->pods[i];
	}
	return NULL;
}

static struct brain_pod *must(struct brain *b, const char *name)
{
	struct brain_pod *pod = brain_pod(b, name);

	if (!pod)
		fail_msg("there is no pod %s", name);
	return pod;
}

void brain_start(struct brain *b, const char *name)
{
	struct brain_pod *pod = must(b, name);

	kubelet_writes(b, pod);
	pod->pod.phase = HF_POD_RUNNING;
	pod->containers[0].phase = HF_CONTAINER_RUNNING;
	pod->containers[0].started_at = b->now;
}

void brain_start_all(struct brain *b)
{
	for (size_t i = 0; i < b->pods_len; i++) {
		struct brain_pod *pod = &b->pods[i];

		if (pod->pod.phase != HF_POD_PENDING || pod->pod.deletion_time != HF_TIME_NONE ||
		    is_lost(b, pod))
			continue;
		if (!*pod->node)
			fill(pod->node, find_node(b));
		if (*pod->node)
			brain_start(b, pod->name);
	}
}

void brain_exit(struct brain *b, const char *name, int code)
{
	struct brain_pod *pod = must(b, name);

	kubelet_writes(b, pod);
	pod->pod.phase = code == 0 ? HF_POD_SUCCEEDED : HF_POD_FAILED;
	end_container(b, &pod->containers[0], code);
}

void brain_report(struct brain *b, const char *name, enum hf_process_phase phase,
		  int64_t generation, int64_t attempt)
{
	struct brain_pod *pod = must(b, name);

	pod->reported = true;
	pod->process = (struct hf_process_seen){
		.phase = phase, .generation = generation, .attempt = attempt, .at = b->now};
}

void brain_report_all(struct brain *b, enum hf_process_phase phase, int64_t generation)
{
	for (size_t i = 0; i < b->pods_len; i++) {
		struct brain_pod *pod = &b->pods[i];

		if (pod->containers[0].phase == HF_CONTAINER_RUNNING)
			brain_report(b, pod->name, phase, generation, pod->pod.attempt);
	}
}

void brain_add_sidecar(struct brain *b, const char *name)
{
	struct brain_pod *pod = must(b, name);

	assert_int_equal(pod->pod.containers_len, 1);
	pod->containers[1] = pod->containers[0];
	pod->containers[1].name = "proxy";
	pod->pod.containers_len = 2;
}

void brain_exit_own(struct brain *b, const char *name, int code)
{
	struct brain_pod *pod = must(b, name);

	assert_int_equal(pod->pod.containers_len, 2);
	kubelet_writes(b, pod);
	end_container(b, &pod->containers[0], code);
	pod->pod.own_ended_at = b->now;
}

void brain_end_in_place(struct brain *b, const char *name, int code)
{
	struct brain_pod *pod = must(b, name);

	kubelet_writes(b, pod);
	pod->containers[0].again = HF_AGAIN_ON_FAILURE;
	pod->containers[0].phase = HF_CONTAINER_TERMINATED;
	pod->containers[0].exit_code = code;
	pod->containers[0].terminated_reason = "Error";
	pod->containers[0].finished_at = b->now;
}

void brain_crash_in_place(struct brain *b, const char *name)
{
	struct brain_pod *pod = must(b, name);

	kubelet_writes(b, pod);
	pod->containers[0].restart_count++;
	if (pod->pod.phase == HF_POD_RUNNING)
		pod->containers[0].phase = HF_CONTAINER_RUNNING;
}

void brain_terminate(struct brain *b, const char *name)
{
	struct brain_pod *pod = must(b, name);

	if (pod->pod.deletion_time != HF_TIME_NONE)
		return;
	pod->pod.deleted_at = b->now;
	pod->pod.deletion_time = b->now + 30 * HF_SECOND;
	touch(b, pod);
}

/* Remembers a deleted pod, as the operator remembers the pods that its watch saw go. */
static void remember_gone(struct brain *b, const struct brain_pod *pod)
{
	size_t i = 0;

	while (i < b->gone_len && !hf_streq(b->gone_names[i], pod->name))
		i++;
	assert_true(i < BRAIN_PODS_MAX);
	if (i == b->gone_len)
		b->gone_len++;
	memcpy(b->gone_names[i], pod->name, BRAIN_TEXT_MAX);
	b->gone_pods[i] = *pod;
	b->gone[i] = (struct hf_gone_seen){
		.name = b->gone_names[i], .at = b->now, .no_execute = is_lost(b, pod)};
	for (size_t n = 0; n < b->nodes_len; n++) {
		if (hf_streq(b->nodes[n].name, pod->node) && b->nodes[n].no_execute)
			b->gone[i].no_execute = true;
	}
}

static void take_away(struct brain *b, struct brain_pod *pod)
{
	remember_gone(b, pod);
	if (pod->ours && b->gone_ours_len < BRAIN_PODS_MAX)
		memcpy(b->gone_ours[b->gone_ours_len++], pod->name, BRAIN_TEXT_MAX);
	*pod = b->pods[--b->pods_len];
}

bool brain_gone_by_us(const struct brain *b, const char *name)
{
	for (size_t i = 0; i < b->gone_ours_len; i++) {
		if (hf_streq(b->gone_ours[i], name))
			return true;
	}
	return false;
}

void brain_gone(struct brain *b, const char *name)
{
	take_away(b, must(b, name));
}

void brain_terminating_gone(struct brain *b)
{
	for (size_t i = b->pods_len; i-- > 0;) {
		if (b->pods[i].pod.deletion_time != HF_TIME_NONE && !is_lost(b, &b->pods[i]))
			take_away(b, &b->pods[i]);
	}
}

void brain_fail_on(struct brain *b, int32_t code)
{
	b->rule_code = code;
	b->rules[0] = (struct hf_rule){.action = HF_RULE_FAIL_JOB,
				       .has_exit_codes = true,
				       .values = &b->rule_code,
				       .values_len = 1};
	b->view.run_policy.rules_len = 1;
}

void brain_disrupt(struct brain *b, const char *name)
{
	struct brain_pod *pod = must(b, name);

	touch(b, pod);
	pod->condition = (struct hf_pod_condition){
		.type = "DisruptionTarget", .status = "True", .reason = "PreemptionByScheduler"};
	pod->pod.conditions_len = 1;
}

void brain_nodes_heard(struct brain *b)
{
	for (size_t i = 0; i < b->nodes_len; i++) {
		if (b->nodes[i].ready == HF_NODE_READY)
			b->nodes[i].renewed_at = b->now;
	}
}

struct hf_node_seen *brain_node(struct brain *b, const char *name)
{
	for (size_t i = 0; i < b->nodes_len; i++) {
		if (hf_streq(b->nodes[i].name, name))
			return &b->nodes[i];
	}
	fail_msg("there is no node %s", name);
	return NULL;
}

void brain_lose(struct brain *b, const char *name)
{
	struct hf_node_seen *node = brain_node(b, name);

	node->ready = HF_NODE_UNKNOWN;
	node->since = node->unknown_at = b->now;
	node->unreachable = node->no_execute = true;
	node->lease_since = node->lease_read_at = node->confirmed_at = HF_TIME_NONE;
}

void brain_regain(struct brain *b, const char *name)
{
	struct hf_node_seen *node = brain_node(b, name);

	node->ready = HF_NODE_READY;
	node->unknown_at = HF_TIME_NONE;
	node->since = node->renewed_at = b->now;
	node->unreachable = node->no_execute = node->out_of_service = false;
	node->lease_since = node->lease_read_at = node->confirmed_at = HF_TIME_NONE;
}

static void read_lease(struct brain *b, struct hf_node_seen *node)
{
	bool lost = node->ready == HF_NODE_UNKNOWN || node->ready == HF_NODE_GONE;

	if (!lost)
		node->renewed_at = b->now;
	if (!lost || node->lease_since == HF_TIME_NONE)
		node->lease_since = b->now;
	node->lease_read_at = b->now;
}

static void read_claim(struct brain *b, const char *name)
{
	for (size_t i = 0; i < b->claims_len; i++) {
		if (hf_streq(b->claims[i].name, name))
			return;
	}
	assert_true(b->claims_len < HF_ARRAY_LEN(b->claims));
	b->claims[b->claims_len++] =
		(struct hf_claim_seen){.name = name, .exclusive = b->claims_exclusive};
}

void brain_answer(struct brain *b)
{
	for (size_t i = 0; i < b->plan.asks_len; i++) {
		const struct hf_ask *ask = &b->plan.asks[i];

		if (ask->kind == HF_ASK_LEASE)
			read_lease(b, brain_node(b, ask->name));
		else if (ask->kind == HF_ASK_CLAIM)
			read_claim(b, ask->name);
		else
			brain_node(b, ask->name)->confirmed_at = b->now;
	}
}

void brain_after(struct brain *b, int seconds)
{
	b->now += seconds * HF_SECOND;
}

/* ---- asking -------------------------------------------------------------------------------------------------- */

const char *brain_conditions(struct brain *b)
{
	char *text = hf_arena_alloc(b->pass, 1024);
	size_t at = 0;

	for (size_t i = 0; i < b->plan.status.conditions_len; i++) {
		const struct hf_condition *condition = &b->plan.status.conditions[i];

		at += (size_t)snprintf(text + at, 1024 - at, "%s%s=%s", i > 0 ? " " : "",
				       condition->type, condition->status);
		assert_true(at < 1024);
	}
	return text;
}

const char *brain_last_condition(struct brain *b)
{
	const struct hf_status *status = &b->plan.status;

	assert_true(status->conditions_len > 0);
	assert_string_equal(status->conditions[status->conditions_len - 1].status, "True");
	return status->conditions[status->conditions_len - 1].type;
}

static const struct hf_action *find_action(const struct brain *b, enum hf_action_kind kind,
					   const char *name, int *count)
{
	const struct hf_action *found = NULL;

	for (size_t s = 0; s < b->plan.stages_len; s++) {
		for (size_t a = 0; a < b->plan.stages[s].actions_len; a++) {
			const struct hf_action *action = &b->plan.stages[s].actions[a];

			if (action->kind != kind)
				continue;
			++*count;
			if (name && hf_streq(action->name, name))
				found = action;
		}
	}
	return found;
}

int brain_count(const struct brain *b, enum hf_action_kind kind)
{
	int count = 0;

	find_action(b, kind, NULL, &count);
	return count;
}

bool brain_creates(const struct brain *b, const char *name)
{
	int count = 0;

	return find_action(b, HF_ACTION_CREATE_POD, name, &count) != NULL;
}

bool brain_deletes(const struct brain *b, const char *name)
{
	int count = 0;

	return find_action(b, HF_ACTION_DELETE_POD, name, &count) != NULL;
}

const struct hf_action *brain_action(const struct brain *b, enum hf_action_kind kind,
				     const char *name)
{
	int count = 0;

	return find_action(b, kind, name, &count);
}

bool brain_asks(const struct brain *b, enum hf_ask_kind kind, const char *name)
{
	for (size_t i = 0; i < b->plan.asks_len; i++) {
		if (b->plan.asks[i].kind == kind && hf_streq(b->plan.asks[i].name, name))
			return true;
	}
	return false;
}

const char *brain_edit(const struct brain *b, const char *pod, enum hf_edit_kind kind,
		       const char *name)
{
	int count = 0;
	const struct hf_action *action = find_action(b, HF_ACTION_CREATE_POD, pod, &count);
	const char *value = NULL;

	if (!action)
		fail_msg("pod %s is not created", pod);
	for (size_t i = 0; action && i < action->edits_len; i++) {
		/* If an edit is repeated, the last value counts, as in a program's environment. */
		if (action->edits[i].kind == kind &&
		    (!name || hf_streq(action->edits[i].name, name)))
			value = action->edits[i].value;
	}
	return value;
}

const struct hf_plan_event *brain_event(const struct brain *b, const char *reason)
{
	for (size_t i = 0; i < b->plan.events_len; i++) {
		if (hf_streq(b->plan.events[i].reason, reason))
			return &b->plan.events[i];
	}
	return NULL;
}

bool brain_says(const struct brain *b, enum hf_topic topic, const char *part)
{
	for (size_t i = 0; i < b->plan.reasons_len; i++) {
		if (b->plan.reasons[i].topic == topic && strstr(b->plan.reasons[i].text, part))
			return true;
	}
	return false;
}
