/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/in_place.h"

#include "base/str.h"
#include "harness/json_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The story of a seed, requests of the world, and the invariants. */

/* --- story ------------------------------------------------------------------------------------- */

void ip_tell(struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (!w->aloud)
		return;
	printf("%9.3f  ", (double)hf_loop_mono(w->loop) / HF_SECOND);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

void ip_fail_world(struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (w->failed)
		return;
	w->failed = true;
	va_start(ap, fmt);
	(void)vsnprintf(w->failure, sizeof(w->failure), fmt, ap);
	va_end(ap);
	ip_tell(w, "BROKEN: %s", w->failure);
}

hf_time ip_now(const struct world *w)
{
	return hf_loop_mono(w->loop);
}

uint64_t ip_below(struct world *w, uint64_t n)
{
	return hf_rng_below(&w->rng, n);
}

hf_time ip_span(struct world *w, hf_time max)
{
	return HF_MS + (hf_time)ip_below(w, (uint64_t)max);
}

bool ip_chance(struct world *w, unsigned permille)
{
	return ip_below(w, 1000) < permille;
}

/* While there is trouble. */
bool ip_trouble(struct world *w, unsigned permille)
{
	return !w->calm && !w->quiet && ip_chance(w, permille);
}

/* --- the store ----------------------------------------------------------------------------------- */

int ip_apply(struct world *w, const struct hf_request *request)
{
	HF_AUTO_RESULT result = {0};

	hf_memstore_apply(w->memstore, request, &result);
	return result.code;
}

int ip_create(struct world *w, const struct hf_resource *resource, const char *ns, const char *text)
{
	HF_AUTO_DOC body = json_doc_of(text);
	const struct hf_request request = {
		.verb = HF_VERB_CREATE, .resource = resource, .ns = ns, .body = body};

	return ip_apply(w, &request);
}

int ip_patch(struct world *w, const struct hf_resource *resource, const char *ns, const char *name,
	     const char *sub, const char *text)
{
	HF_AUTO_DOC body = json_doc_of(text);
	const struct hf_request request = {.verb = HF_VERB_PATCH,
					   .resource = resource,
					   .ns = ns,
					   .name = name,
					   .subresource = sub,
					   .patch_type = HF_PATCH_MERGE,
					   .body = body};

	return ip_apply(w, &request);
}

int ip_delete_object(struct world *w, const struct hf_resource *resource, const char *ns,
		     const char *name, const char *uid, int64_t grace)
{
	const struct hf_request request = {.verb = HF_VERB_DELETE,
					   .resource = resource,
					   .ns = ns,
					   .name = name,
					   .precondition_uid = uid,
					   .grace_seconds = grace};

	return ip_apply(w, &request);
}

struct hf_doc *ip_job_doc(struct world *w)
{
	return hf_memstore_peek(w->memstore, &hf_pytorchjobs, "default", "ddp");
}

const char *ip_format_time(struct world *w, char text[HF_TIME_TEXT_MAX])
{
	hf_time_format_micro(hf_loop_wall(w->loop), text);
	return text;
}

/* --- what must hold -------------------------------------------------------------------------------- */

bool ip_is_reachable(const struct pod *pod)
{
	return pod->node && pod->node->power && pod->node->link;
}

struct hf_json *ip_ledger(struct hf_doc *job)
{
	const struct hf_json *object = hf_doc_json(job);
	const char *text =
		hf_json_path_str(object, "metadata", "annotations", "holdfast.dev/ledger", NULL);
	struct hf_json *ledger = NULL;
	struct hf_error err;

	if (text == NULL)
		return hf_json_ref(hf_json_path(object, "status", "recovery", NULL));
	return hf_json_parse(text, strlen(text), NULL, &ledger, &err) == 0 ? ledger : NULL;
}

/* A time of the ledger; 0: it has none. */
static hf_time read_wall(const struct hf_json *ledger, const char *key)
{
	const char *text = hf_json_path_str(ledger, key, NULL);
	hf_time at;

	return text != NULL && hf_time_parse(text, &at, NULL) == 0 ? at : 0;
}

/* A restart of all ranks does not start before the ledger's notBefore. */
static void check_delay(struct pod *pod)
{
	struct world *w = pod->w;
	HF_AUTO_JSON ledger = ip_ledger(ip_job_doc(w));
	hf_time at = read_wall(ledger, "notBefore");

	if (w->scope_job && pod->g == w->generation && pod->ordinal > 1 &&
	    hf_loop_wall(w->loop) < at)
		ip_fail_world(w, "%s starts %lld ms before the delay is over", pod->name,
			      (long long)((at - hf_loop_wall(w->loop)) / HF_MS));
}

void ip_check_start(struct pod *pod)
{
	struct world *w = pod->w;
	const char *key;
	void *value;

	check_delay(pod);

	for (size_t it = 0; hf_map_next(w->pods, &it, &key, &value);) {
		const struct pod *other = value;

		/* An operator that gave up an object or a node that is cut off has decided this
		 * already, so such pods do not count. */
		if (other == pod || !other->process || !other->object || !ip_is_reachable(other) ||
		    !ip_is_reachable(pod) || !hf_streq(other->job_uid, pod->job_uid))
			continue;
		if (hf_streq(other->name, pod->name))
			ip_fail_world(w, "two processes of %s", pod->name);
		if (other->g != pod->g)
			ip_fail_world(w, "%s starts generation %lld while %s runs generation %lld",
				      pod->name, (long long)pod->g, other->name,
				      (long long)other->g);
	}
}

void ip_check_kill(const struct pod *pod)
{
	struct world *w = pod->w;
	struct hf_doc *job = ip_job_doc(w);
	hf_time now = hf_loop_wall(w->loop);

	/* The operator may not have known of the exec when it decided: its watch was late, or had to
	 * begin anew. Or the pod was deleted before the present request: its grace cannot be taken back. */
	if (!pod->process || !pod->saving || pod->excused ||
	    pod->written_at + WATCH_LATE >= w->save_since || job == NULL ||
	    !hf_streq(hf_doc_uid(job), pod->job_uid) ||
	    hf_json_path(hf_doc_json(job), "metadata", "deletionTimestamp", NULL) != NULL ||
	    (pod->leaving && pod->leaving_since < w->save_since))
		return;
	HF_AUTO_JSON ledger = ip_ledger(job);

	if (now < read_wall(ledger, "saveUntil"))
		ip_fail_world(w, "%s is killed %lld ms before its time to save is over", pod->name,
			      (long long)((read_wall(ledger, "saveUntil") - now) / HF_MS));
}

/* The place of the pod's rank in the world's lists. */
static size_t find_place(const struct pod *pod)
{
	long long index = ip_index_of(pod);

	hf_assert(index >= 0 && index < WORKERS_MAX);
	return hf_streq(ip_type_of(pod), "Master") ? 0 : 1 + (size_t)index;
}

void ip_check_made(const struct pod *pod)
{
	struct world *w = pod->w;
	size_t place = find_place(pod);

	if (w->scope_job && !w->retired[place] && w->let_start[place] == pod->g0 &&
	    hf_streq(pod->job_uid, w->job_uid))
		ip_fail_world(w, "%s begins once more in generation %lld, and its peers go on",
			      pod->name, (long long)pod->g0);
}

static void note_ledger(struct world *w, const struct hf_json *job, const struct hf_json *ledger)
{
	int64_t workers = hf_json_i64(
		hf_json_path(job, "spec", "pytorchReplicaSpecs", "Worker", "replicas", NULL), 0);
	const char *key;
	void *value;

	if (hf_json_get(ledger, "saveUntil") == NULL)
		w->save_since = 0;
	else if (w->save_since == 0)
		w->save_since = ip_now(w);
	for (int64_t i = workers; i < WORKERS_MAX; i++)
		w->retired[1 + i] = true;
	for (size_t it = 0; hf_map_next(w->pods, &it, &key, &value);) {
		const struct pod *pod = value;

		if (pod->container && !pod->leaving && hf_streq(pod->job_uid, w->job_uid) &&
		    ip_is_let_start(pod, ledger))
			w->let_start[find_place(pod)] =
				hf_json_i64(hf_json_get(ledger, "generation"), 0);
	}
}

int64_t ip_sum_restarts(const struct hf_json *ledger)
{
	static const char *const budgets[] = {"application", "infrastructure", "device"};
	int64_t sum = 0;

	for (size_t i = 0; i < HF_ARRAY_LEN(budgets); i++)
		sum += hf_json_i64(hf_json_path(ledger, "restarts", budgets[i], NULL), 0);
	return sum;
}

static const char *hold_of(const struct hf_json *ledger, const char *type)
{
	return hf_str_or(hf_json_path_str(ledger, "replicas", type, "hold", NULL), "");
}

bool ip_is_held(const struct hf_json *ledger)
{
	return *hold_of(ledger, "Master") != '\0' || *hold_of(ledger, "Worker") != '\0';
}

void ip_check_job(struct world *w, struct hf_doc *doc)
{
	HF_AUTO_JSON ledger = ip_ledger(doc);
	int64_t generation = hf_json_i64(hf_json_get(ledger, "generation"), 0);
	int64_t restarts = ip_sum_restarts(ledger);
	int64_t incident = hf_json_i64(hf_json_path(ledger, "incident", "id", NULL), 0);
	bool held = ip_is_held(ledger);

	if (ledger == NULL)
		return;
	if (restarts > w->faults)
		ip_fail_world(w, "%lld units are charged for only %lld faults", (long long)restarts,
			      (long long)w->faults);
	if (restarts > w->restarts && incident == w->incident && w->restarts >= 0 &&
	    restarts - w->restarts > 1)
		ip_fail_world(w, "incident %lld is charged twice", (long long)incident);
	if (generation < w->generation)
		ip_fail_world(w, "the generation fell");
	if (held && w->hold_since == 0) {
		w->hold_since = ip_now(w);
		w->met->barriers++;
	} else if (!held) {
		w->hold_since = 0;
	}
	w->delayed_until = read_wall(ledger, "notBefore");
	note_ledger(w, hf_doc_json(doc), ledger);
	if (generation > w->generation) {
		bool in_place = hf_json_true(hf_json_path(ledger, "last", "inPlace", NULL), false);

		*(in_place ? &w->met->in_place : &w->met->recreated) += w->generation > 0;
	}
	w->generation = generation;
	if (hf_streq(hf_json_path_str(ledger, "phase", NULL), "Running"))
		w->running_in = generation;
	w->restarts = restarts;
	w->incident = incident;
}

void ip_check_barrier(struct world *w)
{
	if (w->hold_since != 0 && ip_now(w) - w->hold_since > HOLD_MAX &&
	    hf_loop_wall(w->loop) > w->delayed_until + HOLD_MAX &&
	    ip_now(w) > w->unwell_until + HOLD_MAX)
		ip_fail_world(w, "ranks are held for %lld s",
			      (long long)((ip_now(w) - w->hold_since) / HF_SECOND));
}
