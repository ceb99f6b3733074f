/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * Startup, liveness and readiness probes of a container, by the rules of upstream's kubelet: results
 * count in a row, the other probes wait for the startup probe, and a container that fails its startup
 * or liveness probe is stopped, so that the restartPolicy decides.
 *
 * The state belongs to one attempt. A later kubelet takes it over from the stored status. A probe that
 * could not be run (the shim is busy) counts neither way.
 */
enum probe_kind { STARTUP, LIVENESS, READINESS, N_PROBES };

static const char *const keys[] = {"startupProbe", "livenessProbe", "readinessProbe"};
static const char *const names[] = {"Startup", "Liveness", "Readiness"};

#define SECONDS_MAX 86400
#define ARENA_BYTES_MAX ((size_t)1 << 20)
#define BUSY_AGAIN (200 * HF_MS)

struct probe {
	struct hf_kubelet_probes *all;
	enum probe_kind kind;
	/* the probe in the container's spec; NULL: the container has no such probe */
	const struct hf_json *spec;
	struct hf_kubelet_exec *exec;
	struct hf_timer *timer;
	int64_t successes, failures; /* in a row */
	bool good;                   /* the verdict: started, alive, ready */
};

struct hf_kubelet_probes {
	struct hf_kubelet_pod_container *c;
	int64_t attempt; /* -1: none runs */
	hf_time started; /* wall clock */
	struct probe probes[N_PROBES];
};

static bool is_started(const struct hf_kubelet_probes *all)
{
	return !all->probes[STARTUP].spec || all->probes[STARTUP].good;
}

/* Writes the results of the probes to the container, for its status and for the plan of the
 * pod. */
static void publish_verdicts(struct hf_kubelet_probes *all)
{
	struct hf_kubelet_pod_container *c = all->c;
	bool unstarted = !is_started(all);
	bool unready = unstarted || (all->probes[READINESS].spec && !all->probes[READINESS].good);

	if (c->unstarted == unstarted && c->unready == unready)
		return;
	c->unstarted = unstarted;
	c->unready = unready;
	hf_kubelet_pod_wake(c->pod);
}

static int64_t read_seconds(const struct probe *p, const char *key, int64_t fallback)
{
	int64_t s = hf_json_i64(hf_json_get(p->spec, key), fallback);

	return s < 0 ? fallback : s > SECONDS_MAX ? SECONDS_MAX : s;
}

static int64_t read_threshold(const struct probe *p, const char *key, int64_t fallback)
{
	int64_t n = hf_json_i64(hf_json_get(p->spec, key), fallback);

	return n < 1 ? 1 : n;
}

static hf_time period_of(const struct probe *p)
{
	int64_t s = read_seconds(p, "periodSeconds", 10);

	return (s < 1 ? 1 : s) * HF_SECOND;
}

/* Arms a probe for its first run: initialDelaySeconds after the container's start. */
static void arm_first(struct probe *p)
{
	hf_time now = hf_loop_wall(p->all->c->pod->kubelet->loop);
	hf_time at =
		hf_time_add(p->all->started, read_seconds(p, "initialDelaySeconds", 0) * HF_SECOND);

	if (p->spec)
		hf_timer_arm(p->timer, at > now ? at - now : 0);
}

static void arm_waiting(struct hf_kubelet_probes *all)
{
	for (int i = LIVENESS; i < N_PROBES; i++)
		arm_first(&all->probes[i]);
}

/* --- results --- */

static void fail_container(struct probe *p)
{
	struct hf_kubelet_pod_container *c = p->all->c;
	char text[64];

	(void)snprintf(text, sizeof(text), "failed %s probe",
		       p->kind == STARTUP ? "startup" : "liveness");
	hf_kubelet_container_fail(
		c, (unsigned)p->all->attempt, text,
		hf_json_i64(hf_json_get(p->spec, "terminationGracePeriodSeconds"), -1));
}

static void take_success(struct probe *p)
{
	p->failures = 0;
	if (++p->successes < read_threshold(p, "successThreshold", 1))
		return;
	p->good = true;
	if (p->kind == STARTUP)
		arm_waiting(p->all);
	publish_verdicts(p->all);
}

static void take_failure(struct probe *p, const char *text)
{
	struct hf_kubelet_pod_container *c = p->all->c;

	p->successes = 0;
	hf_kubelet_event(c->pod, "Warning", "Unhealthy", "%s probe failed: %s", names[p->kind],
			 text);
	if (++p->failures < read_threshold(p, "failureThreshold", 3))
		return;
	if (p->kind == READINESS) {
		p->good = false;
		publish_verdicts(p->all);
		return;
	}
	hf_timer_disarm(p->timer);
	fail_container(p);
}

static void on_result(void *arg, const struct hf_kubelet_exec_result *result)
{
	struct probe *p = arg;

	p->exec = hf_kubelet_exec_destroy(p->exec);
	hf_timer_arm(p->timer, result->ran ? period_of(p) : BUSY_AGAIN);
	if (!result->ran)
		return;
	if (result->code == 0)
		take_success(p);
	else
		take_failure(p, result->text);
	/* A startup probe that has succeeded is not run again. */
	if (p->kind == STARTUP && p->good)
		hf_timer_disarm(p->timer);
}

static void run_probe(void *arg)
{
	struct probe *p = arg;
	struct hf_kubelet_pod_container *c = p->all->c;
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	int64_t timeout_s = read_seconds(p, "timeoutSeconds", 1);
	struct hf_kubelet_handler handler;

	/* The other probes wait until the startup probe succeeds; take_success then arms the other
	 * probes. */
	if (p->exec || (p->kind != STARTUP && !is_started(p->all)))
		return;
	timeout_s = timeout_s < 1 ? 1 : timeout_s;
	if (!hf_kubelet_handler_make(c->pod, c->spec, p->spec, timeout_s, arena, &handler)) {
		take_failure(p, "the handler cannot be run");
		hf_timer_arm(p->timer, period_of(p));
		return;
	}
	p->exec = hf_kubelet_exec_start(c->pod, c->name, &handler, timeout_s * HF_SECOND, on_result,
					p);
	if (!p->exec)
		hf_timer_arm(p->timer, BUSY_AGAIN);
}

/* --- attempts --- */

static void stop_probes(struct hf_kubelet_probes *all)
{
	for (int i = 0; i < N_PROBES; i++) {
		all->probes[i].exec = hf_kubelet_exec_destroy(all->probes[i].exec);
		hf_timer_disarm(all->probes[i].timer);
	}
}

/* Returns the stored status of the container, from which a later kubelet takes over the results.
 * NULL: the stored status is of another attempt. */
static const struct hf_json *stored_status(const struct hf_kubelet_pod_container *c,
					   unsigned attempt)
{
	const struct hf_kubelet_pod *pod = c->pod;
	const struct hf_json *status = hf_kubelet_find_status(hf_doc_json(pod->doc), c->name);
	HF_AUTOFREE char *id = hf_kubelet_container_id(pod, c->name, attempt);

	return hf_streq(hf_json_path_str(status, "containerID", NULL), id) ? status : NULL;
}

static void begin_attempt(struct hf_kubelet_probes *all, const struct hf_attempt *a)
{
	const struct hf_json *stored = stored_status(all->c, a->number);

	all->attempt = (int64_t)a->number;
	all->started = a->started;
	for (int i = 0; i < N_PROBES; i++) {
		struct probe *p = &all->probes[i];

		p->successes = p->failures = 0;
		p->good =
			p->kind == LIVENESS ||
			hf_json_true(hf_json_get(stored, p->kind == STARTUP ? "started" : "ready"),
				     false);
	}
	publish_verdicts(all);
	if (all->probes[STARTUP].spec && !all->probes[STARTUP].good)
		arm_first(&all->probes[STARTUP]);
	else
		arm_waiting(all);
}

static struct hf_kubelet_probes *create_probes(struct hf_kubelet_pod_container *c)
{
	struct hf_kubelet_probes *all = hf_xcalloc(1, sizeof(*all));

	all->c = c;
	all->attempt = -1;
	for (int i = 0; i < N_PROBES; i++) {
		struct probe *p = &all->probes[i];

		p->all = all;
		p->kind = (enum probe_kind)i;
		p->spec = hf_json_get(c->spec, keys[i]);
		if (hf_json_type(p->spec) != HF_JSON_OBJECT || hf_json_get(p->spec, "grpc") ||
		    hf_kubelet_handler_uses_tls(p->spec))
			p->spec = NULL; /* ignored; check.c says so */
		p->timer = hf_timer_create(c->pod->kubelet->loop, run_probe, p);
	}
	return all;
}

struct hf_kubelet_probes *hf_kubelet_probes_destroy(struct hf_kubelet_probes *all)
{
	if (!all)
		return NULL;
	for (int i = 0; i < N_PROBES; i++) {
		all->probes[i].exec = hf_kubelet_exec_destroy(all->probes[i].exec);
		all->probes[i].timer = hf_timer_destroy(all->probes[i].timer);
	}
	free(all);
	return NULL;
}

void hf_kubelet_probes_sync(struct hf_kubelet_pod_container *c, bool stopping)
{
	const struct hf_container_past *past = hf_pod_past_find(&c->pod->past, c->name);
	const struct hf_attempt *a =
		past && past->last.state == HF_ATTEMPT_RUNNING ? &past->last : NULL;

	if (!hf_json_get(c->spec, keys[0]) && !hf_json_get(c->spec, keys[1]) &&
	    !hf_json_get(c->spec, keys[2]))
		return;
	if (!c->probes)
		c->probes = create_probes(c);
	if (stopping || !a || (c->probes->attempt >= 0 && c->probes->attempt != a->number))
		stop_probes(c->probes);
	if (!a)
		c->probes->attempt = -1;
	else if (!stopping && c->probes->attempt != (int64_t)a->number)
		begin_attempt(c->probes, a);
}
