/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/sim.h"

#include "api/job.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "framework/framework.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* People make jobs, suspend, resume, scale and delete them, and delete pods by hand. */
struct sim_people {
	struct hf_timer *timer;
	unsigned jobs_made;
};

static const char *const names[SIM_JOBS_MAX] = {"ant", "bee", "cat"};

struct job_list {
	HF_VEC(struct hf_doc *) jobs;
};

struct pick {
	struct sim *sim;
	unsigned seen;
	struct hf_doc *doc;
};

/* One of all, each with the same chance. */
static void pick_one(void *arg, struct hf_doc *doc)
{
	struct pick *pick = arg;

	pick->seen++;
	if (hf_rng_below(&pick->sim->rng, pick->seen) == 0)
		pick->doc = doc;
}

static struct hf_doc *random_object(struct sim *sim, const struct hf_resource *resource)
{
	struct pick pick = {.sim = sim};

	hf_local_each(sim->local, resource, "default", pick_one, &pick);
	return hf_doc_ref(pick.doc);
}

/* What admission would refuse is a mistake of the generator. */
static void check_valid(struct sim *sim, struct hf_doc *job)
{
	HF_AUTO_ARENA arena = hf_arena_create((size_t)1 << 20);
	struct hf_field_errors errors;
	struct hf_error err;

	hf_field_errors_init(&errors, arena);
	hf_job_check(job, NULL, &hf_framework_pytorch, &errors);
	if (hf_field_errors_result(&errors, &err) != 0)
		sim_fail(sim, "generator", "%s", err.text);
}

static void create_job(struct sim *sim)
{
	const char *name = names[hf_rng_below(&sim->rng, SIM_JOBS_MAX)];
	HF_AUTO_DOC body = hf_doc_from_json(sim_random_job(sim, name));
	const struct hf_request request = {
		.verb = HF_VERB_CREATE, .resource = &hf_pytorchjobs, .ns = "default", .body = body};

	check_valid(sim, body);
	if (sim_apply(sim, &request) == 0)
		sim_tell(sim, "person: creates %s: %s", name, hf_doc_text(body, NULL));
}

static void delete_object(struct sim *sim, const struct hf_resource *resource, struct hf_doc *doc)
{
	const struct hf_request request = {
		.verb = HF_VERB_DELETE,
		.resource = resource,
		.ns = "default",
		.name = hf_doc_name(doc),
		.grace_seconds = sim_chance(sim, 200) ? 0 : HF_GRACE_DEFAULT,
		.propagation =
			sim_chance(sim, 500) ? HF_PROPAGATE_FOREGROUND : HF_PROPAGATE_BACKGROUND};

	sim_tell(sim, "person: deletes %s %s%s", resource->singular, hf_doc_name(doc),
		 request.grace_seconds == 0 ? " by force" : "");
	sim_apply(sim, &request);
}

static void set_suspend(struct sim *sim, struct hf_doc *job, bool suspend)
{
	sim_tell(sim, "person: %s %s", suspend ? "suspends" : "resumes", hf_doc_name(job));
	sim_patch(sim, &hf_pytorchjobs, "default", hf_doc_name(job), NULL,
		  suspend ? "{\"spec\":{\"runPolicy\":{\"suspend\":true}}}"
			  : "{\"spec\":{\"runPolicy\":{\"suspend\":false}}}");
}

static bool is_suspended(struct hf_doc *job)
{
	return hf_json_true(hf_json_path(hf_doc_json(job), "spec", "runPolicy", "suspend", NULL),
			    false);
}

static void scale(struct sim *sim, struct hf_doc *job)
{
	const struct hf_json *worker =
		hf_json_path(hf_doc_json(job), "spec", "pytorchReplicaSpecs", "Worker", NULL);
	int replicas = 1 + (int)hf_rng_below(&sim->rng, SIM_PODS_MAX - 2);
	char text[128];

	if (worker == NULL)
		return;
	snprintf(text, sizeof(text),
		 "{\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{\"replicas\":%d}}}}", replicas);
	sim_tell(sim, "person: scales the workers of %s to %d", hf_doc_name(job), replicas);
	sim_patch(sim, &hf_pytorchjobs, "default", hf_doc_name(job), NULL, text);
}

static void touch(struct sim *sim, struct hf_doc *job)
{
	char text[128];

	snprintf(text, sizeof(text), "{\"metadata\":{\"labels\":{\"touched\":\"%llu\"}}}",
		 (unsigned long long)hf_rng_below(&sim->rng, 1000));
	sim_tell(sim, "person: labels %s", hf_doc_name(job));
	sim_patch(sim, &hf_pytorchjobs, "default", hf_doc_name(job), NULL, text);
}

static void restart(struct sim *sim, struct hf_doc *job)
{
	char text[160], now[HF_TIME_TEXT_MAX];

	hf_time_format(hf_loop_wall(sim->loop), now);
	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"annotations\":{\"holdfast.dev/restart\":\"%s\"}}}", now);
	sim_tell(sim, "person: restarts %s", hf_doc_name(job));
	sim_patch(sim, &hf_pytorchjobs, "default", hf_doc_name(job), NULL, text);
}

/* A stranger takes a name that the job will want. */
static void squat(struct sim *sim, struct hf_doc *job)
{
	bool pod = sim_chance(sim, 500);
	const struct hf_resource *resource = pod ? &hf_pods : &hf_services;
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"apiVersion\":\"v1\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s-worker-%d\","
		 "\"namespace\":\"default\",\"labels\":{\"stranger\":\"yes\"}},\"spec\":{%s}}",
		 resource->kind, hf_doc_name(job), (int)hf_rng_below(&sim->rng, 4),
		 pod ? "\"containers\":[{\"name\":\"pytorch\",\"image\":\"x\"}]"
		     : "\"clusterIP\":\"None\",\"ports\":[{\"port\":80}]");
	HF_AUTO_DOC body = hf_doc_from_text(text, strlen(text));
	const struct hf_request request = {
		.verb = HF_VERB_CREATE, .resource = resource, .ns = "default", .body = body};

	if (sim_apply(sim, &request) == 0)
		sim_tell(sim, "stranger: creates %s %s", resource->singular, hf_doc_name(body));
}

/* Another controller adds a condition and a field of its own to the job's status. */
static void write_foreign_status(struct sim *sim, struct hf_doc *job)
{
	static const char text[] =
		"[{\"op\":\"add\",\"path\":\"/status/conditions/-\",\"value\":{\"type\":"
		"\"example.com/Foreign\",\"status\":\"True\",\"note\":\"kept\"}},"
		"{\"op\":\"add\",\"path\":\"/status/foreign\",\"value\":{\"deep\":[7]}}]";
	const struct hf_json *list = hf_json_path(hf_doc_json(job), "status", "conditions", NULL);
	struct sim_job_truth *truth = sim_job_truth(sim, hf_doc_uid(job));

	if (hf_json_len(list) == 0 || truth->foreign)
		return;
	HF_AUTO_DOC body = hf_doc_from_text(text, strlen(text));
	const struct hf_request request = {.verb = HF_VERB_PATCH,
					   .resource = &hf_pytorchjobs,
					   .ns = "default",
					   .name = hf_doc_name(job),
					   .subresource = "status",
					   .body = body,
					   .patch_type = HF_PATCH_JSON};

	free(truth->patch_version);
	truth->patch_version = hf_xstrdup(hf_doc_resource_version(job));
	if (sim_apply(sim, &request) != 0)
		return;
	truth->foreign = true;
	sim_tell(sim, "stranger: writes into the status of %s", hf_doc_name(job));
}

static void step_clock(struct sim *sim)
{
	hf_time by = sim_span(sim, 20 * HF_MINUTE) - 10 * HF_MINUTE;

	sim_tell(sim, "world: the API server's clock steps by %lld s", (long long)(by / HF_SECOND));
	hf_loop_step_wall(sim->loop, by);
}

static void do_something(struct sim *sim)
{
	uint64_t what = hf_rng_below(&sim->rng, 24);
	const struct hf_resource *resource = what < 5   ? &hf_pods
					     : what < 6 ? &hf_services
							: &hf_pytorchjobs;
	HF_AUTO_DOC doc = random_object(sim, resource);

	if (sim_chance(sim, sim->mood.clock_permille))
		step_clock(sim);
	if (doc == NULL || (what >= 17 && what < 20)) {
		create_job(sim);
		return;
	}
	if (what >= 20) {
		if (what < 22)
			squat(sim, doc);
		else
			write_foreign_status(sim, doc);
		return;
	}
	if (what < 15)
		sim_check_touched(sim, doc);
	if (what < 6)
		delete_object(sim, resource, doc);
	else if (what < 7)
		delete_object(sim, resource, doc);
	else if (what < 11)
		set_suspend(sim, doc, !is_suspended(doc));
	else if (what < 13)
		scale(sim, doc);
	else if (what < 15)
		restart(sim, doc);
	else
		touch(sim, doc);
}

static void on_timer(void *arg)
{
	struct sim *sim = arg;

	if (sim->calm)
		return;
	if (sim->people->jobs_made++ < 1 + sim->seed % SIM_JOBS_MAX)
		create_job(sim);
	else
		do_something(sim);
	hf_timer_arm(sim->people->timer,
		     HF_MS + sim_span(sim, 2 * HF_HOUR / sim->mood.people_per_hour));
}

static void collect(void *arg, struct hf_doc *job)
{
	struct job_list *list = arg;
	bool pushed = HF_VEC_PUSH(&list->jobs, hf_doc_ref(job));

	hf_assert(pushed);
}

/* Nobody can finish a job whose name somebody sits on. */
static void evict_strangers(struct sim *sim, const struct hf_resource *resource)
{
	const struct hf_request list = {.verb = HF_VERB_LIST,
					.resource = resource,
					.ns = "default",
					.label_selector = "stranger=yes"};
	HF_AUTO_RESULT result = {0};

	hf_local_apply(sim->local, &list, &result);
	for (size_t i = 0; i < result.n_items; i++)
		delete_object(sim, resource, result.items[i]);
}

void sim_people_calm(struct sim *sim)
{
	struct job_list list = {.jobs = HF_VEC_INIT(SIM_JOBS_MAX)};

	hf_local_each(sim->local, &hf_pytorchjobs, "default", collect, &list);
	for (size_t i = 0; i < list.jobs.len; i++) {
		struct hf_doc *job = list.jobs.items[i];

		/* Some stay suspended: that must be stable as well. */
		if (is_suspended(job) && sim_chance(sim, 700)) {
			sim_check_touched(sim, job);
			set_suspend(sim, job, false);
		}
		hf_doc_unref(job);
	}
	HF_VEC_RELEASE(&list.jobs);
	evict_strangers(sim, &hf_pods);
	evict_strangers(sim, &hf_services);
}

void sim_people_init(struct sim *sim)
{
	sim->people = hf_xcalloc(1, sizeof(*sim->people));
	sim->people->timer = hf_timer_create(sim->loop, on_timer, sim);
	hf_timer_arm(sim->people->timer, 0);
}

void sim_people_release(struct sim *sim)
{
	hf_timer_destroy(sim->people->timer);
	free(sim->people);
}
