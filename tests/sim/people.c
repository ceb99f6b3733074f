/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/check.h"
#include "sim/nodes.h"

#include "api/job.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "framework/framework.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What people and other programs do. They create, suspend, resume, scale, edit and delete jobs, and
 * delete pods. Kueue stops and starts jobs. */
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

/* Picks one object; each has the same chance. */
static void pick_one(void *arg, struct hf_doc *doc)
{
	struct pick *pick = arg;

	pick->seen++;
	if (sim_how(pick->sim, pick->seen) == 0)
		pick->doc = doc;
}

/* NULL: a job. */
static struct hf_doc *random_object(struct sim *sim, const struct hf_resource *resource)
{
	struct pick pick = {.sim = sim};

	if (resource == NULL)
		sim_each_job(sim, pick_one, &pick);
	else
		hf_memstore_each(sim->memstore, resource, "default", pick_one, &pick);
	return hf_doc_ref(pick.doc);
}

static const struct hf_resource *job_resource(struct sim *sim, struct hf_doc *job)
{
	return sim_kind_of(sim, hf_doc_name(job))->resource;
}

/* If admission would refuse the job, the generator has a fault. */
static void check_valid(struct sim *sim, struct hf_doc *job)
{
	HF_AUTO_ARENA arena = hf_arena_create((size_t)1 << 20);
	struct hf_field_errors errors;
	struct hf_error err;

	hf_field_errors_init(&errors, arena);
	hf_job_check(job, NULL, sim_kind_of(sim, hf_doc_name(job))->framework, &errors);
	if (hf_field_errors_result(&errors, &err) != 0)
		sim_fail(sim, "generator", "%s", err.text);
}

static void create_job(struct sim *sim)
{
	const char *name = names[sim_how(sim, SIM_JOBS_MAX)];
	HF_AUTO_DOC body = hf_doc_from_json(sim_random_job(sim, name));
	const struct hf_request request = {.verb = HF_VERB_CREATE,
					   .resource = sim_kind_of(sim, name)->resource,
					   .ns = "default",
					   .body = body};

	check_valid(sim, body);
	if (sim_apply(sim, &request) == 0)
		sim_tell(sim, "person: creates %s: %s", name, hf_doc_text(body, NULL));
}

static void delete_object(struct sim *sim, const struct hf_resource *resource, struct hf_doc *doc,
			  bool force)
{
	const struct hf_request request = {.verb = HF_VERB_DELETE,
					   .resource = resource,
					   .ns = "default",
					   .name = hf_doc_name(doc),
					   .grace_seconds = force ? 0 : HF_GRACE_DEFAULT,
					   .propagation = sim_how(sim, 2) == 0
								  ? HF_PROPAGATE_FOREGROUND
								  : HF_PROPAGATE_BACKGROUND};

	sim_tell(sim, "person: deletes %s %s%s", resource->singular, hf_doc_name(doc),
		 force ? " by force" : "");
	sim_apply(sim, &request);
}

static void patch_job(struct sim *sim, struct hf_doc *job, const char *text)
{
	sim_patch(sim, job_resource(sim, job), "default", hf_doc_name(job), NULL, text);
}

static void set_suspend(struct sim *sim, struct hf_doc *job, bool suspend)
{
	sim_tell(sim, "person: %s %s", suspend ? "suspends" : "resumes", hf_doc_name(job));
	patch_job(sim, job,
		  suspend ? "{\"spec\":{\"runPolicy\":{\"suspend\":true}}}"
			  : "{\"spec\":{\"runPolicy\":{\"suspend\":false}}}");
}

static bool is_suspended(struct hf_doc *job)
{
	return hf_json_true(hf_json_path(hf_doc_json(job), "spec", "runPolicy", "suspend", NULL),
			    false);
}

/* {"spec":{"<kind>ReplicaSpecs":{"Worker":<patch>}}}, if it has workers. */
static void patch_workers(struct sim *sim, struct hf_doc *job, const char *patch)
{
	char text[256];

	if (hf_json_get(sim_replicas_of(sim, job), "Worker") == NULL)
		return;
	snprintf(text, sizeof(text), "{\"spec\":{\"%s\":{\"Worker\":%s}}}",
		 sim_kind_of(sim, hf_doc_name(job))->framework->replicas_key, patch);
	sim_tell(sim, "person: edits the workers of %s: %s", hf_doc_name(job), patch);
	patch_job(sim, job, text);
}

/* Kueue starts or stops a job with one patch, of suspend and of the zone where its pods may run. */
static void kueue(struct sim *sim, struct hf_doc *job, bool start)
{
	const struct hf_framework *framework = sim_kind_of(sim, hf_doc_name(job))->framework;
	HF_AUTO_JSON patch = hf_json_object();
	struct hf_json *spec = hf_json_ensure_object(patch, "spec");
	struct hf_json *specs = hf_json_ensure_object(spec, framework->replicas_key);
	char zone[16];

	snprintf(zone, sizeof(zone), "zone-%d", (int)sim_how(sim, (uint64_t)sim->nodes->zones));
	hf_json_set_bool(hf_json_ensure_object(spec, "runPolicy"), "suspend", !start);
	for (int i = 0; i < framework->roles_len; i++) {
		const char *type = framework->roles[i].name;
		struct hf_json *pod;

		if (hf_json_get(sim_replicas_of(sim, job), type) == NULL)
			continue;
		pod = hf_json_ensure_object(
			hf_json_ensure_object(hf_json_ensure_object(specs, type), "template"),
			"spec");
		hf_json_set(hf_json_ensure_object(pod, "nodeSelector"), "zone",
			    start ? hf_json_string(zone) : hf_json_null());
	}
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);

	hf_json_write(patch, HF_JSON_COMPACT, &text);
	sim_tell(sim, "kueue: %s %s", start ? "starts" : "stops", hf_doc_name(job));
	patch_job(sim, job, text.data);
}

static void scale(struct sim *sim, struct hf_doc *job)
{
	char text[32];

	snprintf(text, sizeof(text), "{\"replicas\":%d}", 1 + (int)sim_how(sim, SIM_PODS_MAX - 4));
	patch_workers(sim, job, text);
}

static void edit(struct sim *sim, struct hf_doc *job)
{
	static const char *const workers[] = {
		"{\"template\":{\"spec\":{\"terminationGracePeriodSeconds\":3}}}",
		"{\"restartPolicy\":\"OnFailure\"}",
	};
	static const char *const edits[] = {
		"{\"spec\":{\"runPolicy\":{\"backoffLimit\":4}}}",
		"{\"spec\":{\"runPolicy\":{\"backoffLimit\":null}}}",
		"{\"spec\":{\"runPolicy\":{\"cleanPodPolicy\":\"Running\"}}}",
		"{\"spec\":{\"runPolicy\":{\"activeDeadlineSeconds\":300}}}",
		"{\"spec\":{\"runPolicy\":{\"ttlSecondsAfterFinished\":60}}}",
	};
	uint64_t which = sim_how(sim, HF_ARRAY_LEN(workers) + HF_ARRAY_LEN(edits));

	if (which < HF_ARRAY_LEN(workers)) {
		patch_workers(sim, job, workers[which]);
		return;
	}
	which -= HF_ARRAY_LEN(workers);
	sim_tell(sim, "person: edits %s: %s", hf_doc_name(job), edits[which]);
	patch_job(sim, job, edits[which]);
}

static void label(struct sim *sim, struct hf_doc *job)
{
	char text[128];

	snprintf(text, sizeof(text), "{\"metadata\":{\"labels\":{\"touched\":\"%llu\"}}}",
		 (unsigned long long)sim_how(sim, 1000));
	sim_tell(sim, "person: labels %s", hf_doc_name(job));
	patch_job(sim, job, text);
}

static void restart(struct sim *sim, struct hf_doc *job)
{
	char text[160], now[HF_TIME_TEXT_MAX];

	hf_time_format(hf_loop_wall(sim->loop), now);
	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"annotations\":{\"holdfast.dev/restart\":\"%s\"}}}", now);
	sim_tell(sim, "person: restarts %s", hf_doc_name(job));
	patch_job(sim, job, text);
}

/* Another program creates a pod or Service with a name that the job needs. */
static void squat(struct sim *sim, struct hf_doc *job)
{
	bool pod = sim_how(sim, 2) == 0;
	const struct hf_resource *resource = pod ? &hf_pods : &hf_services;
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"apiVersion\":\"v1\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s-worker-%d\","
		 "\"namespace\":\"default\",\"labels\":{\"stranger\":\"yes\"}},\"spec\":{%s}}",
		 resource->kind, hf_doc_name(job), (int)sim_how(sim, 4),
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
					   .resource = job_resource(sim, job),
					   .ns = "default",
					   .name = hf_doc_name(job),
					   .subresource = "status",
					   .body = body,
					   .patch_type = HF_PATCH_JSON};

	/* The operator may send a patch before the check hears of this write, so the version is
	 * noted first. */
	free(truth->foreign_version);
	truth->foreign_version = hf_xstrdup(hf_doc_resource_version(job));
	if (sim_apply(sim, &request) != 0)
		return;
	truth->foreign = true;
	sim_tell(sim, "stranger: writes into the status of %s", hf_doc_name(job));
}

/* A finalizer of another program keeps the pod's object for a while. */
static void add_finalizer(struct sim *sim, struct hf_doc *pod)
{
	sim_tell(sim, "stranger: a finalizer on %s", hf_doc_name(pod));
	sim_patch(sim, &hf_pods, "default", hf_doc_name(pod), NULL,
		  "{\"metadata\":{\"finalizers\":[\"example.com/hold\"]}}");
}

static void drop_finalizer(void *arg, struct hf_doc *pod)
{
	struct job_list *list = arg;

	if (hf_json_len(hf_json_path(hf_doc_json(pod), "metadata", "finalizers", NULL)) > 0) {
		bool pushed = HF_VEC_PUSH(&list->jobs, hf_doc_ref(pod));

		hf_assert(pushed);
	}
}

static void drop_finalizers(struct sim *sim)
{
	struct job_list list = {.jobs = HF_VEC_INIT(10000)};

	hf_memstore_each(sim->memstore, &hf_pods, "default", drop_finalizer, &list);
	for (size_t i = 0; i < list.jobs.len; i++) {
		sim_patch(sim, &hf_pods, "default", hf_doc_name(list.jobs.items[i]), NULL,
			  "{\"metadata\":{\"finalizers\":null}}");
		hf_doc_unref(list.jobs.items[i]);
	}
	HF_VEC_RELEASE(&list.jobs);
}

/* NULL: a job. */
static const struct hf_resource *resource_of(enum sim_trouble kind)
{
	switch (kind) {
	case SIM_POD_DELETED:
	case SIM_POD_FORCED:
	case SIM_FINALIZER: return &hf_pods;
	case SIM_SERVICE_DELETED: return &hf_services;
	default: return NULL;
	}
}

/* True if the deed ends or restarts pods, so that their ends may not be the job's own. */
static bool touches(enum sim_trouble kind)
{
	return kind != SIM_LABELED && kind != SIM_SQUATTED && kind != SIM_STATUS_FOREIGN &&
	       kind != SIM_FINALIZER;
}

static void delete_job(struct sim *sim, struct hf_doc *doc)
{
	delete_object(sim, job_resource(sim, doc), doc, false);
}

static void delete_pod(struct sim *sim, struct hf_doc *doc)
{
	delete_object(sim, &hf_pods, doc, false);
}

static void force_pod(struct sim *sim, struct hf_doc *doc)
{
	delete_object(sim, &hf_pods, doc, true);
}

static void delete_service(struct sim *sim, struct hf_doc *doc)
{
	delete_object(sim, &hf_services, doc, false);
}

static void suspend(struct sim *sim, struct hf_doc *job)
{
	set_suspend(sim, job, true);
}

static void resume(struct sim *sim, struct hf_doc *job)
{
	set_suspend(sim, job, false);
}

static void kueue_stops(struct sim *sim, struct hf_doc *job)
{
	kueue(sim, job, false);
}

static void kueue_starts(struct sim *sim, struct hf_doc *job)
{
	kueue(sim, job, true);
}

static void act_on(struct sim *sim, enum sim_trouble kind, struct hf_doc *doc)
{
	static void (*const deeds[SIM_TROUBLES])(struct sim *, struct hf_doc *) = {
		[SIM_JOB_DELETED] = delete_job,
		[SIM_POD_DELETED] = delete_pod,
		[SIM_POD_FORCED] = force_pod,
		[SIM_SERVICE_DELETED] = delete_service,
		[SIM_SUSPENDED] = suspend,
		[SIM_RESUMED] = resume,
		[SIM_SCALED] = scale,
		[SIM_EDITED] = edit,
		[SIM_RESTARTED] = restart,
		[SIM_LABELED] = label,
		[SIM_KUEUE_STOPS] = kueue_stops,
		[SIM_KUEUE_STARTS] = kueue_starts,
		[SIM_SQUATTED] = squat,
		[SIM_STATUS_FOREIGN] = write_foreign_status,
		[SIM_FINALIZER] = add_finalizer,
	};

	hf_assert(deeds[kind] != NULL);
	deeds[kind](sim, doc);
}

static void act(struct sim *sim, enum sim_trouble kind)
{
	if (!sim_do(sim, kind))
		return;
	HF_AUTO_DOC doc = kind == SIM_JOB_MADE ? NULL : random_object(sim, resource_of(kind));

	if (kind == SIM_JOB_MADE)
		create_job(sim);
	if (doc == NULL)
		return;
	if (touches(kind))
		sim_check_touched(sim, doc);
	act_on(sim, kind, doc);
}

void sim_people_act(struct sim *sim)
{
	act(sim, sim_pick(sim, SIM_BY_PEOPLE, &sim->people_rng));
}

void sim_people_keep(struct sim *sim, const struct hf_request *request)
{
	HF_AUTO_DOC job = hf_doc_ref(
		hf_memstore_peek(sim->memstore, request->resource, request->ns, request->name));

	if (job == NULL)
		return;
	sim_tell(sim, "person: would have %s stay for longer", request->name);
	patch_job(sim, job, "{\"spec\":{\"runPolicy\":{\"ttlSecondsAfterFinished\":1800}}}");
}

void sim_people_delete_pod(struct sim *sim)
{
	if (sim->mood.weight[SIM_POD_DELETED] > 0)
		act(sim, SIM_POD_DELETED);
}

static void on_timer(void *arg)
{
	struct sim *sim = arg;
	hf_time mean = HF_HOUR / sim->mood.per_hour[SIM_BY_PEOPLE];

	if (sim->calm)
		return;
	if (sim->people->jobs_made++ < 1 + sim->seed % SIM_JOBS_MAX)
		act(sim, SIM_JOB_MADE);
	else
		sim_people_act(sim);
	if (hf_rng_below(&sim->people_rng, 4) == 0)
		drop_finalizers(sim);
	hf_timer_arm(sim->people->timer,
		     HF_MS + (hf_time)hf_rng_below(&sim->people_rng, 2 * (uint64_t)mean));
}

static void collect(void *arg, struct hf_doc *job)
{
	struct job_list *list = arg;
	bool pushed = HF_VEC_PUSH(&list->jobs, hf_doc_ref(job));

	hf_assert(pushed);
}

/* A job cannot end while another program's object has the name of one of its ranks. */
static void evict_strangers(struct sim *sim, const struct hf_resource *resource)
{
	const struct hf_request list = {.verb = HF_VERB_LIST,
					.resource = resource,
					.ns = "default",
					.label_selector = "stranger=yes"};
	HF_AUTO_RESULT result = {0};

	hf_memstore_apply(sim->memstore, &list, &result);
	for (size_t i = 0; i < result.n_items; i++)
		delete_object(sim, resource, result.items[i], false);
}

void sim_people_calm(struct sim *sim)
{
	struct job_list list = {.jobs = HF_VEC_INIT(SIM_JOBS_MAX)};

	sim_each_job(sim, collect, &list);
	for (size_t i = 0; i < list.jobs.len; i++) {
		struct hf_doc *job = list.jobs.items[i];

		/* Some jobs stay suspended, because a suspended job must be stable too. */
		if (is_suspended(job) && sim_chance(sim, 700)) {
			sim_check_touched(sim, job);
			set_suspend(sim, job, false);
		}
		hf_doc_unref(job);
	}
	HF_VEC_RELEASE(&list.jobs);
	evict_strangers(sim, &hf_pods);
	evict_strangers(sim, &hf_services);
	drop_finalizers(sim);
}

void sim_people_init(struct sim *sim)
{
	hf_rng_init(&sim->people_rng, sim->seed + 2);
	sim->people = hf_xcalloc(1, sizeof(*sim->people));
	sim->people->timer = hf_timer_create(sim->loop, on_timer, sim);
	hf_timer_arm(sim->people->timer, 0);
}

void sim_people_release(struct sim *sim)
{
	hf_timer_destroy(sim->people->timer);
	free(sim->people);
}
