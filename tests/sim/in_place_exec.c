/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/in_place.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exec, which runs the program of a pod and obeys its agent; and kubelets. */

const char *const ip_phase_names[] = {"Waiting", "Running", "Ended", "Down"};

/* --- exec ------------------------------------------------------------------------------------------- */

bool ip_is_lower(const struct pod *pod)
{
	return pod->g < pod->tg || (pod->g == pod->tg && pod->a < pod->ta);
}

static void enter(struct pod *pod, enum phase phase)
{
	struct world *w = pod->w;

	pod->phase = phase;
	pod->since = hf_loop_wall(w->loop);
	ip_tell(w, "exec: %s is %s at %lld.%lld", pod->name, ip_phase_names[phase],
		(long long)pod->g, (long long)pod->a);
	ip_agent_hears(pod);
}

static void start_process(struct pod *pod, int64_t g, int64_t a)
{
	hf_assert(pod->container && !pod->process);
	pod->g = g;
	pod->a = a;
	pod->process = true;
	pod->ordinal++;
	hf_timer_disarm(pod->wait);
	ip_check_start(pod);
	enter(pod, RUNNING);
}

/* Most programs end at once on SIGTERM. Some use all of their grace and are killed. */
static void end_process(struct pod *pod)
{
	pod->saving = false;
	hf_timer_arm(pod->stop, ip_trouble(pod->w, 100) ? GRACE_SECONDS * HF_SECOND
							: ip_span(pod->w, 300 * HF_MS));
}

/* Some never answer, and have all the time that the order gives. */
static void begin_save(struct pod *pod)
{
	struct world *w = pod->w;
	bool never = w->never_saves || ip_trouble(w, 300);
	hf_time most = pod->tsave * HF_SECOND;

	pod->saving = true;
	pod->saved = !never;
	ip_tell(w, "exec: %s is asked to save within %lld s", pod->name, (long long)pod->tsave);
	hf_timer_arm(pod->stop, never ? most : ip_span(w, most / 2));
}

/* Exec obeys its last order as far as it can now: it stops a process of an older attempt, waits, or
 * starts the next one. */
void ip_obey(struct pod *pod)
{
	if (!pod->container || !pod->told || pod->stopping)
		return;
	if (pod->process) {
		if (!ip_is_lower(pod))
			return;
		pod->stopping = true;
		if (pod->tsave > 0)
			begin_save(pod);
		else
			end_process(pod);
		return;
	}
	if (ip_is_lower(pod) || (pod->phase == WAITING && !pod->thold)) {
		bool news = ip_is_lower(pod);

		pod->g = pod->tg;
		pod->a = pod->ta;
		if (pod->thold) {
			hf_timer_arm(pod->wait, WAIT);
			if (news)
				enter(pod, DOWN);
			return;
		}
		start_process(pod, pod->tg, pod->ta);
		return;
	}
	if (pod->phase == DOWN || pod->phase == WAITING) {
		if (pod->thold)
			hf_timer_arm(pod->wait, WAIT);
		else
			start_process(pod, pod->tg, pod->ta);
	}
}

static void on_stop(void *arg)
{
	struct pod *pod = arg;

	if (pod->container && pod->saving) {
		*(pod->saved ? &pod->w->met->saves : &pod->w->met->unsaved) += 1;
		end_process(pod);
		return;
	}
	pod->stopping = false;
	if (!pod->container)
		return;
	pod->process = false;
	pod->g = pod->tg;
	pod->a = pod->ta;
	if (pod->thold) {
		hf_timer_arm(pod->wait, WAIT);
		enter(pod, DOWN);
	} else {
		start_process(pod, pod->tg, pod->ta);
	}
}

/* The program ends by itself. */
void ip_program_ends(struct pod *pod, int code)
{
	if (!pod->process || pod->stopping)
		return;
	ip_tell(pod->w, "world: the program of %s exits with %d", pod->name, code);
	pod->process = false;
	pod->code = code;
	if (code != 0 && pod->connected && pod->stays) {
		hf_timer_arm(pod->wait, WAIT);
		enter(pod, ENDED);
		ip_obey(pod);
		return;
	}
	ip_container_ends(pod, code);
}

static void on_wait(void *arg)
{
	struct pod *pod = arg;

	if (!pod->container || pod->process)
		return;
	pod->w->met->timeouts++;
	ip_container_ends(pod, pod->phase == ENDED ? pod->code : 227);
}

static void on_ends_soon(void *arg)
{
	struct pod *pod = arg;

	ip_program_ends(pod, pod->soon_code);
}

static void on_connect(void *arg)
{
	struct pod *pod = arg;

	if (!pod->container)
		return;
	if (!pod->node->agent || !pod->node->power) {
		hf_timer_arm(pod->connect, HF_SECOND);
		return;
	}
	pod->connected = true;
	ip_agent_hears(pod);
}

static void container_starts(struct pod *pod)
{
	struct world *w = pod->w;

	pod->container = true;
	pod->started = hf_loop_wall(w->loop);
	pod->ordinal = 0;
	pod->told = pod->stays = pod->connected = pod->stopping = pod->written = false;
	pod->saving = pod->saved = false;
	pod->g = pod->g0;
	pod->a = pod->a0;
	hf_timer_arm(pod->connect, ip_span(w, HF_SECOND));
	if (pod->hold) {
		hf_timer_arm(pod->wait, UNHEARD);
		enter(pod, WAITING);
	} else {
		start_process(pod, pod->g0, pod->a0);
	}
}

/* --- kubelet ----------------------------------------------------------------------------------------- */

static bool can_say(const struct pod *pod)
{
	return pod->object && ip_is_reachable(pod);
}

static void report(struct pod *pod, const char *phase, const char *state)
{
	char text[1024];

	if (!can_say(pod))
		return;
	snprintf(text, sizeof(text),
		 "{'status':{'phase':'%s','containerStatuses':[{'name':'pytorch',"
		 "'restartCount':%d,'state':{%s}}]}}",
		 phase, pod->restarts, state);
	(void)ip_patch(pod->w, &hf_pods, "default", pod->name, "status", text);
}

void ip_report_running(struct pod *pod)
{
	char state[128], at[HF_TIME_TEXT_MAX];

	hf_time_format(pod->started, at);
	snprintf(state, sizeof(state), "'running':{'startedAt':'%s'}", at);
	report(pod, "Running", state);
}

void ip_report_ended(struct pod *pod, const char *phase)
{
	char state[160], at[HF_TIME_TEXT_MAX];

	hf_time_format(hf_loop_wall(pod->w->loop), at);
	snprintf(state, sizeof(state),
		 "'terminated':{'exitCode':%d,'reason':'Error','finishedAt':'%s'}", pod->code, at);
	report(pod, phase, state);
}

void ip_stop_exec(struct pod *pod)
{
	pod->container = pod->process = pod->connected = pod->stopping = pod->saving = false;
	hf_timer_disarm(pod->stop);
	hf_timer_disarm(pod->wait);
	hf_timer_disarm(pod->connect);
	hf_timer_disarm(pod->ends_soon);
}

void ip_container_ends(struct pod *pod, int code)
{
	struct world *w = pod->w;

	if (!pod->container)
		return;
	ip_stop_exec(pod);
	pod->code = code;
	ip_tell(w, "kubelet: the container of %s ends with %d", pod->name, code);
	if (!pod->never && code != 0 && !pod->leaving) {
		ip_report_ended(pod, "Running");
		hf_timer_arm(pod->start,
			     pod->restarts == 0 ? ip_span(w, HF_SECOND) : 10 * HF_SECOND);
		return;
	}
	pod->over = true;
	ip_report_ended(pod, "Running");
	ip_report_ended(pod, code == 0 ? "Succeeded" : "Failed");
	if (pod->leaving)
		hf_timer_arm(pod->kubelet, ip_span(w, HF_SECOND));
}

static struct node *pick_node(struct world *w)
{
	for (int tries = 0; tries < 40; tries++) {
		struct node *node = &w->nodes[ip_below(w, NODES)];

		if (!node->unknown && node->power && node->link)
			return node;
	}
	return NULL;
}

static void bind(struct pod *pod)
{
	struct world *w = pod->w;
	char text[256];
	HF_AUTO_DOC body = NULL;

	pod->node = pick_node(w);
	if (pod->node == NULL) {
		hf_timer_arm(pod->start, 5 * HF_SECOND);
		return;
	}
	snprintf(text, sizeof(text),
		 "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"%s\"},"
		 "\"target\":{\"kind\":\"Node\",\"name\":\"%s\"}}",
		 pod->name, pod->node->name);
	body = hf_doc_from_text(text, strlen(text));
	const struct hf_request request = {.verb = HF_VERB_CREATE,
					   .resource = &hf_pods,
					   .ns = "default",
					   .name = pod->name,
					   .subresource = "binding",
					   .body = body};

	if (ip_apply(w, &request) != 0) {
		pod->node = NULL;
		return;
	}
	hf_timer_arm(pod->start,
		     ip_trouble(w, 50) ? ip_span(w, 90 * HF_SECOND) : ip_span(w, 3 * HF_SECOND));
}

static void on_start(void *arg)
{
	struct pod *pod = arg;

	if (!pod->object || pod->over || pod->container || pod->leaving)
		return;
	if (pod->node == NULL) {
		bind(pod);
		return;
	}
	if (!ip_is_reachable(pod)) {
		hf_timer_arm(pod->start, 5 * HF_SECOND);
		return;
	}
	if (pod->ordinal > 0 || pod->code != 0)
		pod->restarts++;
	container_starts(pod);
	ip_report_running(pod);
}

/* The kubelet ends a deleted pod and removes its object. */
static void on_kubelet(void *arg)
{
	struct pod *pod = arg;

	if (pod->node != NULL && (!pod->node->power || !pod->node->link))
		return; /* when the node is back */
	ip_check_kill(pod);
	ip_stop_exec(pod);
	if (pod->object)
		(void)ip_delete_object(pod->w, &hf_pods, "default", pod->name, pod->uid, 0);
}

/* --- what the store shows ----------------------------------------------------------------------------------- */

void ip_pod_free(void *value)
{
	struct pod *pod = value;

	hf_timer_destroy(pod->start);
	hf_timer_destroy(pod->stop);
	hf_timer_destroy(pod->connect);
	hf_timer_destroy(pod->kubelet);
	hf_timer_destroy(pod->wait);
	hf_timer_destroy(pod->ends_soon);
	free(pod->name);
	free(pod->uid);
	free(pod->job_uid);
	free(pod);
}

static int64_t stamp(const struct hf_json *pod, const char *key)
{
	return strtoll(hf_str_or(hf_json_path_str(pod, "metadata", "annotations", key, NULL), "0"),
		       NULL, 10);
}

static bool has_hold(const struct hf_json *pod)
{
	const struct hf_json *env =
		hf_json_get(hf_json_item(hf_json_path(pod, "spec", "containers", NULL), 0), "env");

	for (size_t i = 0; i < hf_json_len(env); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(env, i), "name", NULL), "HOLDFAST_HOLD"))
			return true;
	return false;
}

static void pod_made(struct world *w, struct hf_doc *doc)
{
	const struct hf_json *object = hf_doc_json(doc);
	struct pod *pod = hf_xcalloc(1, sizeof(*pod));

	pod->w = w;
	pod->object = true;
	pod->name = hf_xstrdup(hf_doc_name(doc));
	pod->uid = hf_xstrdup(hf_doc_uid(doc));
	pod->job_uid = hf_xstrdup(hf_str_or(
		hf_json_path_str(
			hf_json_item(hf_json_path(object, "metadata", "ownerReferences", NULL), 0),
			"uid", NULL),
		""));
	pod->g0 = stamp(object, "holdfast.dev/generation");
	pod->a0 = stamp(object, "holdfast.dev/attempt");
	pod->hold = has_hold(object);
	pod->never = hf_streq(hf_json_path_str(object, "spec", "restartPolicy", NULL), "Never");
	pod->start = hf_timer_create(w->loop, on_start, pod);
	pod->stop = hf_timer_create(w->loop, on_stop, pod);
	pod->connect = hf_timer_create(w->loop, on_connect, pod);
	pod->kubelet = hf_timer_create(w->loop, on_kubelet, pod);
	pod->wait = hf_timer_create(w->loop, on_wait, pod);
	pod->ends_soon = hf_timer_create(w->loop, on_ends_soon, pod);
	hf_assert(hf_map_put(w->pods, pod->uid, pod));
	w->met->moved += pod->hold;
	ip_tell(w, "store: %s is made, %lld.%lld%s", pod->name, (long long)pod->g0,
		(long long)pod->a0, pod->hold ? ", held" : "");
	ip_check_made(pod);
	hf_timer_arm(pod->start, ip_span(w, HF_SECOND));
}

static void pod_seen(struct world *w, const struct hf_memstore_change *change)
{
	struct hf_doc *doc = change->after != NULL ? change->after : change->before;
	struct pod *pod = hf_map_get(w->pods, hf_doc_uid(doc));

	if (change->before == NULL) {
		pod_made(w, doc);
		return;
	}
	if (pod == NULL)
		return;
	if (change->after == NULL) {
		pod->object = false;
		pod->excused |= !ip_is_reachable(pod) || pod->node->unknown;
		ip_tell(w, "store: %s is gone", pod->name);
		if (pod->container)
			hf_timer_arm(pod->kubelet, ip_span(w, 2 * HF_SECOND));
		return;
	}
	if (hf_json_path(hf_doc_json(doc), "metadata", "deletionTimestamp", NULL) == NULL ||
	    pod->leaving)
		return;
	pod->leaving = true;
	pod->leaving_since = ip_now(pod->w);
	pod->excused |= !ip_is_reachable(pod) || pod->node->unknown;
	if (pod->node == NULL || !pod->process)
		hf_timer_arm(pod->kubelet, ip_span(w, HF_SECOND));
	else if (pod->saving)
		hf_timer_arm(pod->kubelet, GRACE_SECONDS * HF_SECOND);
	else
		hf_timer_arm(pod->kubelet, ip_span(w, GRACE_SECONDS * HF_SECOND));
}

void ip_on_change(void *arg, const struct hf_memstore_change *change)
{
	struct world *w = arg;

	if (change->resource == &hf_pods)
		pod_seen(w, change);
	if (change->resource != &hf_pytorchjobs)
		return;
	if (change->before == NULL) {
		(void)snprintf(w->job_uid, sizeof(w->job_uid), "%s", hf_doc_uid(change->after));
		w->faults = w->generation = w->restarts = w->incident = 0;
		w->hold_since = 0;
		memset(w->let_start, 0, sizeof(w->let_start));
		memset(w->retired, 0, sizeof(w->retired));
	}
	if (change->after == NULL)
		w->hold_since = 0;
	if (change->after != NULL && change->before != NULL) {
		if (!hf_json_equal(hf_json_get(hf_doc_json(change->before), "status"),
				   hf_json_get(hf_doc_json(change->after), "status")))
			w->job_writes++;
		if (w->aloud) {
			HF_AUTO_STRBUF text = HF_STRBUF_INIT((size_t)1 << 16);
			HF_AUTO_JSON ledger = ip_ledger(change->after);

			hf_json_write(ledger, HF_JSON_COMPACT, &text);
			ip_tell(w, "job: %.700s", text.data);
		}
		ip_check_job(w, change->after);
	}
	ip_job_changed(w);
}

void ip_on_reset(void *arg)
{
	ip_fail_world(arg, "the store was reset");
}
