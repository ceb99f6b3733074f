/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/device_health.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "framework/framework.h"
#include "memstore/gc.h"
#include "memstore/memstore.h"
#include "operator/manager.h"
#include "store/resource.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Restarts in place: the whole operator, agents, execs and kubelets on the in-memory engine and one
 * seed.  See README.md.
 *
 * The world knows each process: its pod, generation, attempt and node.  What is checked, at every
 * start of a process and every write of the job:
 *
 * - no process of a generation starts beside a process of another one, and no rank has two, but on
 *   nodes that are cut off;
 * - no more is charged than the world broke, and each incident is charged once;
 * - a barrier stands no longer than its deadlines allow, where all nodes are well;
 * - a time-out of exec, a lost order and a stop by the agent are charged to nothing;
 * - in the end, with all well again, the job runs: each rank's process has the ledger's generation
 *   and attempt, and nothing is held;
 * - in a quiet world each fault is charged, pods keep their UIDs, and a restart of all ranks takes
 *   nodes + 4 writes at most.
 */
#define WALL_START (1767225600 * HF_SECOND)
#define NODES 4
#define WORKERS_MAX 6
#define PODS_MAX 100000
#define GRACE_SECONDS 5
#define WAIT (60 * HF_SECOND)     /* inPlaceWaitSeconds */
#define UNHEARD (600 * HF_SECOND) /* HOLDFAST_HOLD and no order */
#define REPEAT (20 * HF_SECOND)   /* an agent says its orders again */
#define HEARTBEAT (170 * HF_SECOND)
#define TROUBLE (20 * HF_MINUTE)
#define CALM (40 * HF_MINUTE)
#define HOLD_MAX (4 * HF_MINUTE)
#define LIVES_MAX 2
#define TEXT_MAX 16384

enum phase { WAITING, RUNNING, ENDED, DOWN };
static const char *const phase_names[] = {"Waiting", "Running", "Ended", "Down"};

struct world;
struct node;

struct pod {
	struct world *w;
	char *name, *uid, *job_uid;
	struct node *node; /* NULL: not bound */
	int64_t g0, a0;    /* stamps */
	bool hold, never;  /* HOLDFAST_HOLD; restartPolicy Never */
	bool object;       /* it is in the store */
	bool leaving;      /* marked for deletion */
	bool container;    /* exec runs */
	bool over;         /* Failed or Succeeded */
	int restarts;
	hf_time started; /* the container */
	/* exec */
	enum phase phase;
	int64_t g, a; /* of the process now or last, or of the order that it obeyed */
	int ordinal, code;
	bool process, stopping;
	bool connected, stays;
	bool written;   /* its report is in the store */
	int64_t tg, ta; /* the last order */
	bool thold, told;
	hf_time since;   /* of the phase */
	hf_time give_up; /* exec ends then; NEVER */
	struct hf_timer *start, *stop, *end, *connect, *kubelet, *wait, *ends_soon;
	int soon_code;
};

struct node {
	struct world *w;
	char name[8];
	bool power, link, agent, unknown;
	bool dirty;
	hf_time off_at; /* power or link went */
	struct hf_timer *write, *read, *repeat, *beat, *lease, *lost, *back, *agent_back;
	struct hf_doc *job; /* as the agent has read it last; NULL: none */
};

struct life {
	struct world *w;
	char identity[16];
	struct hf_store *client;
	struct hf_operator *op;
	struct hf_manager *manager;
	struct hf_timer *death, *birth, *relist;
};

struct met {
	unsigned long long seeds, faults, in_place, moved, recreated, barriers, deaths, node_losses,
		agent_deaths, execs_killed, timeouts, people, charged, lost, requests;
};

struct world {
	uint64_t seed;
	struct hf_rng rng, engine_rng;
	struct hf_loop *loop;
	struct hf_memstore *memstore;
	struct hf_gc *gc;
	struct hf_memstore_observer observer;
	struct node nodes[NODES];
	struct hf_map *pods; /* uid → struct pod */
	struct life lives[LIVES_MAX];
	int n_lives;
	struct hf_timer *deeds;
	bool calm, quiet, aloud, scope_job;
	char job_uid[64];
	int jobs;             /* made so far */
	int64_t faults;       /* of the present job */
	hf_time hold_since;   /* 0: nothing is held */
	hf_time unwell_until; /* a node was, until then */
	int64_t generation, restarts, incident, running_in;
	unsigned long long agent_writes, job_writes;
	struct met *met;
	bool failed;
	char failure[512];
};

/* --- story ------------------------------------------------------------------------------------- */

static void tell(struct world *w, const char *fmt, ...) HF_PRINTF(2, 3);
static void tell(struct world *w, const char *fmt, ...)
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

static void fail_world(struct world *w, const char *fmt, ...) HF_PRINTF(2, 3);
static void fail_world(struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (w->failed)
		return;
	w->failed = true;
	va_start(ap, fmt);
	(void)vsnprintf(w->failure, sizeof(w->failure), fmt, ap);
	va_end(ap);
	tell(w, "BROKEN: %s", w->failure);
}

static hf_time now(const struct world *w)
{
	return hf_loop_mono(w->loop);
}

static uint64_t below(struct world *w, uint64_t n)
{
	return hf_rng_below(&w->rng, n);
}

static hf_time span(struct world *w, hf_time max)
{
	return HF_MS + (hf_time)below(w, (uint64_t)max);
}

static bool chance(struct world *w, unsigned permille)
{
	return below(w, 1000) < permille;
}

/* While there is trouble. */
static bool trouble(struct world *w, unsigned permille)
{
	return !w->calm && !w->quiet && chance(w, permille);
}

/* --- the store ----------------------------------------------------------------------------------- */

static int apply(struct world *w, const struct hf_request *request)
{
	HF_AUTO_RESULT result = {0};

	hf_memstore_apply(w->memstore, request, &result);
	return result.code;
}

static struct hf_doc *doc_of(const char *text)
{
	HF_AUTOFREE char *copy = hf_xstrdup(text);

	for (char *c = copy; *c != '\0'; c++)
		if (*c == '\'')
			*c = '"';
	return hf_doc_from_text(copy, strlen(copy));
}

static int create(struct world *w, const struct hf_resource *resource, const char *ns,
		  const char *text)
{
	HF_AUTO_DOC body = doc_of(text);
	const struct hf_request request = {
		.verb = HF_VERB_CREATE, .resource = resource, .ns = ns, .body = body};

	return apply(w, &request);
}

static int patch(struct world *w, const struct hf_resource *resource, const char *ns,
		 const char *name, const char *sub, const char *text)
{
	HF_AUTO_DOC body = doc_of(text);
	const struct hf_request request = {.verb = HF_VERB_PATCH,
					   .resource = resource,
					   .ns = ns,
					   .name = name,
					   .subresource = sub,
					   .patch_type = HF_PATCH_MERGE,
					   .body = body};

	return apply(w, &request);
}

static int delete_object(struct world *w, const struct hf_resource *resource, const char *ns,
			 const char *name, const char *uid, int64_t grace)
{
	const struct hf_request request = {.verb = HF_VERB_DELETE,
					   .resource = resource,
					   .ns = ns,
					   .name = name,
					   .precondition_uid = uid,
					   .grace_seconds = grace};

	return apply(w, &request);
}

static struct hf_doc *job_doc(struct world *w)
{
	return hf_memstore_peek(w->memstore, &hf_pytorchjobs, "default", "ddp");
}

static const char *format_time(struct world *w, char text[HF_TIME_TEXT_MAX])
{
	hf_time_format_micro(hf_loop_wall(w->loop), text);
	return text;
}

/* --- what must hold -------------------------------------------------------------------------------- */

static bool is_reachable(const struct pod *pod)
{
	return pod->node && pod->node->power && pod->node->link;
}

/* A restart of all ranks waits for its delay. */
static void check_delay(struct pod *pod)
{
	struct world *w = pod->w;
	const char *text =
		hf_json_path_str(hf_doc_json(job_doc(w)), "status", "recovery", "notBefore", NULL);
	hf_time at;

	if (w->scope_job && pod->g == w->generation && pod->ordinal > 1 && text != NULL &&
	    hf_time_parse(text, &at, NULL) == 0 && hf_loop_wall(w->loop) < at)
		fail_world(w, "%s starts %lld ms before the delay is over", pod->name,
			   (long long)((at - hf_loop_wall(w->loop)) / HF_MS));
}

static void check_start(struct pod *pod)
{
	struct world *w = pod->w;
	const char *key;
	void *value;

	check_delay(pod);

	for (size_t it = 0; hf_map_next(w->pods, &it, &key, &value);) {
		const struct pod *other = value;

		/* Who gave up an object, or cut off a node, has decided that already. */
		if (other == pod || !other->process || !other->object || !is_reachable(other) ||
		    !is_reachable(pod) || !hf_streq(other->job_uid, pod->job_uid))
			continue;
		if (hf_streq(other->name, pod->name))
			fail_world(w, "two processes of %s", pod->name);
		if (other->g != pod->g)
			fail_world(w, "%s starts generation %lld while %s runs generation %lld",
				   pod->name, (long long)pod->g, other->name, (long long)other->g);
	}
}

static int64_t sum_restarts(const struct hf_json *ledger)
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

static bool is_held(const struct hf_json *ledger)
{
	return *hold_of(ledger, "Master") != '\0' || *hold_of(ledger, "Worker") != '\0';
}

static void check_job(struct world *w, struct hf_doc *doc)
{
	const struct hf_json *ledger = hf_json_path(hf_doc_json(doc), "status", "recovery", NULL);
	int64_t generation = hf_json_i64(hf_json_get(ledger, "generation"), 0);
	int64_t restarts = sum_restarts(ledger);
	int64_t incident = hf_json_i64(hf_json_path(ledger, "incident", "id", NULL), 0);
	bool held = is_held(ledger);

	if (ledger == NULL)
		return;
	if (restarts > w->faults)
		fail_world(w, "%lld charged, and %lld faults", (long long)restarts,
			   (long long)w->faults);
	if (restarts > w->restarts && incident == w->incident && w->restarts >= 0 &&
	    restarts - w->restarts > 1)
		fail_world(w, "incident %lld is charged twice", (long long)incident);
	if (generation < w->generation)
		fail_world(w, "the generation fell");
	if (held && w->hold_since == 0) {
		w->hold_since = now(w);
		w->met->barriers++;
	} else if (!held) {
		w->hold_since = 0;
	}
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

static void check_barrier(struct world *w)
{
	if (w->hold_since != 0 && now(w) - w->hold_since > HOLD_MAX &&
	    now(w) > w->unwell_until + HOLD_MAX)
		fail_world(w, "ranks are held for %lld s",
			   (long long)((now(w) - w->hold_since) / HF_SECOND));
}

/* --- exec ------------------------------------------------------------------------------------------- */

static void agent_hears(struct pod *pod);
static void container_ends(struct pod *pod, int code);

static bool is_lower(const struct pod *pod)
{
	return pod->g < pod->tg || (pod->g == pod->tg && pod->a < pod->ta);
}

static void enter(struct pod *pod, enum phase phase)
{
	struct world *w = pod->w;

	pod->phase = phase;
	pod->since = hf_loop_wall(w->loop);
	tell(w, "exec: %s is %s at %lld.%lld", pod->name, phase_names[phase], (long long)pod->g,
	     (long long)pod->a);
	agent_hears(pod);
}

static void arm_wait(struct pod *pod, hf_time after)
{
	if (after == HF_TIME_NEVER)
		hf_timer_disarm(pod->wait);
	else
		hf_timer_arm(pod->wait, after);
}

static void start_process(struct pod *pod, int64_t g, int64_t a)
{
	hf_assert(pod->container && !pod->process);
	pod->g = g;
	pod->a = a;
	pod->process = true;
	pod->ordinal++;
	arm_wait(pod, HF_TIME_NEVER);
	check_start(pod);
	enter(pod, RUNNING);
}

/* The order is obeyed as far as it can be now. */
static void obey(struct pod *pod)
{
	struct world *w = pod->w;

	if (!pod->container || !pod->told || pod->stopping)
		return;
	if (pod->process) {
		if (!is_lower(pod))
			return;
		pod->stopping = true;
		/* Most end at once; some need all of their grace, and are killed. */
		hf_timer_arm(pod->stop,
			     trouble(w, 100) ? GRACE_SECONDS * HF_SECOND : span(w, 300 * HF_MS));
		return;
	}
	if (is_lower(pod) || (pod->phase == WAITING && !pod->thold)) {
		bool news = is_lower(pod);

		pod->g = pod->tg;
		pod->a = pod->ta;
		if (pod->thold) {
			arm_wait(pod, WAIT);
			if (news)
				enter(pod, DOWN);
			return;
		}
		start_process(pod, pod->tg, pod->ta);
		return;
	}
	if (pod->phase == DOWN || pod->phase == WAITING) {
		if (pod->thold)
			arm_wait(pod, WAIT);
		else
			start_process(pod, pod->tg, pod->ta);
	}
}

static void on_stop(void *arg)
{
	struct pod *pod = arg;

	pod->stopping = false;
	if (!pod->container)
		return;
	pod->process = false;
	pod->g = pod->tg;
	pod->a = pod->ta;
	if (pod->thold) {
		arm_wait(pod, WAIT);
		enter(pod, DOWN);
	} else {
		start_process(pod, pod->tg, pod->ta);
	}
}

/* The program ends by itself. */
static void program_ends(struct pod *pod, int code)
{
	if (!pod->process || pod->stopping)
		return;
	tell(pod->w, "world: the program of %s exits with %d", pod->name, code);
	pod->process = false;
	pod->code = code;
	if (code != 0 && pod->connected && pod->stays) {
		arm_wait(pod, WAIT);
		enter(pod, ENDED);
		obey(pod);
		return;
	}
	container_ends(pod, code);
}

static void on_wait(void *arg)
{
	struct pod *pod = arg;

	if (!pod->container || pod->process)
		return;
	pod->w->met->timeouts++;
	container_ends(pod, pod->phase == ENDED ? pod->code : 227);
}

static void on_ends_soon(void *arg)
{
	struct pod *pod = arg;

	program_ends(pod, pod->soon_code);
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
	agent_hears(pod);
}

static void container_starts(struct pod *pod)
{
	struct world *w = pod->w;

	pod->container = true;
	pod->started = hf_loop_wall(w->loop);
	pod->ordinal = 0;
	pod->told = pod->stays = pod->connected = pod->stopping = pod->written = false;
	pod->g = pod->g0;
	pod->a = pod->a0;
	hf_timer_arm(pod->connect, span(w, HF_SECOND));
	if (pod->hold) {
		arm_wait(pod, UNHEARD);
		enter(pod, WAITING);
	} else {
		start_process(pod, pod->g0, pod->a0);
	}
}

/* --- kubelet ----------------------------------------------------------------------------------------- */

static bool can_say(const struct pod *pod)
{
	return pod->object && is_reachable(pod);
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
	(void)patch(pod->w, &hf_pods, "default", pod->name, "status", text);
}

static void report_running(struct pod *pod)
{
	char state[128], at[HF_TIME_TEXT_MAX];

	hf_time_format(pod->started, at);
	snprintf(state, sizeof(state), "'running':{'startedAt':'%s'}", at);
	report(pod, "Running", state);
}

static void report_ended(struct pod *pod, const char *phase)
{
	char state[160], at[HF_TIME_TEXT_MAX];

	hf_time_format(hf_loop_wall(pod->w->loop), at);
	snprintf(state, sizeof(state),
		 "'terminated':{'exitCode':%d,'reason':'Error','finishedAt':'%s'}", pod->code, at);
	report(pod, phase, state);
}

static void stop_exec(struct pod *pod)
{
	pod->container = pod->process = pod->connected = pod->stopping = false;
	hf_timer_disarm(pod->stop);
	hf_timer_disarm(pod->wait);
	hf_timer_disarm(pod->connect);
	hf_timer_disarm(pod->ends_soon);
}

static void container_ends(struct pod *pod, int code)
{
	struct world *w = pod->w;

	if (!pod->container)
		return;
	stop_exec(pod);
	pod->code = code;
	tell(w, "kubelet: the container of %s ends with %d", pod->name, code);
	if (!pod->never && code != 0 && !pod->leaving) {
		report_ended(pod, "Running");
		hf_timer_arm(pod->start, pod->restarts == 0 ? span(w, HF_SECOND) : 10 * HF_SECOND);
		return;
	}
	pod->over = true;
	report_ended(pod, "Running");
	report_ended(pod, code == 0 ? "Succeeded" : "Failed");
	if (pod->leaving)
		hf_timer_arm(pod->kubelet, span(w, HF_SECOND));
}

static struct node *pick_node(struct world *w)
{
	for (int tries = 0; tries < 40; tries++) {
		struct node *node = &w->nodes[below(w, NODES)];

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

	if (apply(w, &request) != 0) {
		pod->node = NULL;
		return;
	}
	hf_timer_arm(pod->start, trouble(w, 50) ? span(w, 90 * HF_SECOND) : span(w, 3 * HF_SECOND));
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
	if (!is_reachable(pod)) {
		hf_timer_arm(pod->start, 5 * HF_SECOND);
		return;
	}
	if (pod->ordinal > 0 || pod->code != 0)
		pod->restarts++;
	container_starts(pod);
	report_running(pod);
}

/* The kubelet ends what is to go, and takes its object away. */
static void on_kubelet(void *arg)
{
	struct pod *pod = arg;

	if (pod->node != NULL && (!pod->node->power || !pod->node->link))
		return; /* when the node is back */
	stop_exec(pod);
	if (pod->object)
		(void)delete_object(pod->w, &hf_pods, "default", pod->name, pod->uid, 0);
}

/* --- the agent ------------------------------------------------------------------------------------------ */

static void write_soon(struct node *node, hf_time within)
{
	if (!hf_timer_armed(node->write) ||
	    hf_timer_due(node->write) > hf_loop_mono(node->w->loop) + within)
		hf_timer_arm(node->write, within);
}

static void give_orders(struct node *node);

/* All ranks of the node that are held have stopped: one write says so of all. */
static bool is_wave_over(const struct node *node)
{
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(node->w->pods, &it, &key, &value);) {
		const struct pod *pod = value;

		if (pod->node == node && pod->connected && pod->told && pod->thold &&
		    (pod->process || is_lower(pod)))
			return false;
	}
	return true;
}

/* What must be known at once is written at once; that a process runs, with the next write. */
static void agent_hears(struct pod *pod)
{
	struct node *node = pod->node;

	if (!pod->connected || !node->agent)
		return;
	node->dirty = true;
	give_orders(node);
	if (pod->phase == RUNNING)
		write_soon(node, pod->ordinal == 1 ? span(node->w, 3 * HF_SECOND) : HEARTBEAT);
	else if (pod->phase == DOWN && !is_wave_over(node))
		write_soon(node, HF_SECOND);
	else
		write_soon(node, 20 * HF_MS);
}

static bool may_speak(const struct node *node)
{
	return node->agent && node->power && node->link;
}

static void add_process(struct hf_strbuf *sb, const struct pod *pod)
{
	char at[HF_TIME_TEXT_MAX];

	hf_time_format_micro(pod->since, at);
	hf_strbuf_addf(
		sb,
		"%s{'namespace':'default','pod':'%s','uid':'%s','job':'%s','generation':%lld,"
		"'attempt':%lld,'ordinal':%d,'phase':'%s','time':'%s'",
		sb->len > 0 ? "," : "", pod->name, pod->uid, pod->job_uid, (long long)pod->g,
		(long long)pod->a, pod->ordinal, phase_names[pod->phase], at);
	if (pod->phase == ENDED)
		hf_strbuf_addf(sb, ",'code':%d", pod->code);
	hf_strbuf_addstr(sb, "}");
}

static void on_write(void *arg)
{
	struct node *node = arg;
	struct world *w = node->w;
	HF_AUTO_STRBUF list = HF_STRBUF_INIT(TEXT_MAX);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(2 * TEXT_MAX);
	char at[HF_TIME_TEXT_MAX];
	const char *key;
	void *value;

	hf_timer_arm(node->beat, HEARTBEAT);
	if (!may_speak(node)) {
		if (node->agent)
			hf_timer_arm(node->write, HF_SECOND);
		return;
	}
	/* The API server is slow, or refuses. */
	if (trouble(w, 60)) {
		hf_timer_arm(node->write, span(w, 8 * HF_SECOND));
		return;
	}
	for (size_t it = 0; hf_map_next(w->pods, &it, &key, &value);) {
		struct pod *pod = value;

		if (pod->node != node || !pod->connected)
			continue;
		add_process(&list, pod);
		pod->written = true;
	}
	hf_strbuf_addf(&text, "{'status':{'observedTime':'%s','processes':[%s]}}",
		       format_time(w, at), list.data);
	if (hf_memstore_peek(w->memstore, &hf_devicehealths, NULL, node->name) == NULL) {
		char object[256];

		snprintf(object, sizeof(object),
			 "{'apiVersion':'holdfast.dev/v1alpha1','kind':'DeviceHealth','metadata':"
			 "{'name':'%s'}}",
			 node->name);
		(void)create(w, &hf_devicehealths, NULL, object);
	}
	(void)patch(w, &hf_devicehealths, NULL, node->name, "status", text.data);
	w->agent_writes++;
	node->dirty = false;
	give_orders(node);
	if (trouble(w, 30)) /* once more the same */
		hf_timer_arm(node->write, span(w, HF_SECOND));
}

static int64_t sparse(const char *text, long long index)
{
	for (const char *at = hf_str_or(text, ""); *at != '\0';) {
		char *end;
		long long i = strtoll(at, &end, 10);
		long long v = strtoll(end + 1, &end, 10);

		if (i == index)
			return v;
		at = *end == ',' ? end + 1 : end;
	}
	return 0;
}

static bool in_ranges(const char *text, long long index)
{
	for (const char *at = hf_str_or(text, ""); *at != '\0';) {
		char *end;
		long long from = strtoll(at, &end, 10), to = from;

		if (*end == '-')
			to = strtoll(end + 1, &end, 10);
		if (index >= from && index <= to)
			return true;
		at = *end == ',' ? end + 1 : end;
	}
	return false;
}

static const char *type_of(const struct pod *pod)
{
	return strstr(pod->name, "-master-") != NULL ? "Master" : "Worker";
}

static long long index_of(const struct pod *pod)
{
	return strtoll(strrchr(pod->name, '-') + 1, NULL, 10);
}

/* A pod that was given up while its node was cut off, or that is about to go, starts nothing more. */
static bool is_of_now(const struct pod *pod, const struct hf_json *ledger)
{
	const struct hf_json *role = hf_json_path(ledger, "replicas", type_of(pod), NULL);
	int64_t g = hf_json_i64(hf_json_get(ledger, "generation"), 0);
	int64_t base = hf_json_i64(hf_json_get(ledger, "inPlaceBase"), g);
	int64_t a = sparse(hf_json_str(hf_json_get(role, "attempts"), NULL), index_of(pod));
	int64_t alone = sparse(hf_json_str(hf_json_get(role, "inPlace"), NULL), index_of(pod));

	return pod->g0 >= base && pod->g0 <= g && pod->a0 + alone == a;
}

static void give_order(struct pod *pod, const struct hf_json *job)
{
	const struct hf_json *ledger = hf_json_path(job, "status", "recovery", NULL);
	const struct hf_json *role = hf_json_path(ledger, "replicas", type_of(pod), NULL);
	const char *in_place =
		hf_json_path_str(job, "spec", "runPolicy", "recovery", "inPlace", NULL);
	int64_t g, a;

	if (ledger == NULL ||
	    !hf_streq(hf_json_path_str(job, "metadata", "uid", NULL), pod->job_uid))
		return;
	g = hf_json_i64(hf_json_get(ledger, "generation"), 0);
	a = sparse(hf_json_str(hf_json_get(role, "attempts"), NULL), index_of(pod));
	pod->stays = !hf_streq(in_place, "Never");
	/* An order that is older than the last one is of a watch that is behind. */
	if (pod->told && (g < pod->tg || (g == pod->tg && a < pod->ta)))
		return;
	/* The pod is not of the job's present time: it is about to go. */
	if (g < pod->g0 || (g == pod->g0 && a < pod->a0))
		return;
	pod->tg = g;
	pod->ta = a;
	pod->thold = in_ranges(hf_json_str(hf_json_get(role, "hold"), NULL), index_of(pod)) ||
		     !is_of_now(pod, ledger);
	pod->told = true;
	obey(pod);
}

static void give_orders(struct node *node)
{
	const char *key;
	void *value;
	struct pod *list[64];
	size_t n = 0;

	if (!node->agent || node->job == NULL)
		return;
	for (size_t it = 0; hf_map_next(node->w->pods, &it, &key, &value);) {
		struct pod *pod = value;

		/* An operator that does not know of an exec does not hold it. */
		if (pod->node == node && pod->connected && pod->written && n < HF_ARRAY_LEN(list))
			list[n++] = pod;
	}
	for (size_t i = 0; i < n; i++)
		give_order(list[i], hf_doc_json(node->job));
}

/* Its watch, or its list after a watch that broke. */
static void on_read(void *arg)
{
	struct node *node = arg;
	struct hf_doc *job = job_doc(node->w);

	if (!may_speak(node)) {
		hf_timer_arm(node->read, HF_SECOND);
		return;
	}
	if (job == NULL)
		return;
	hf_doc_unref(node->job);
	node->job = hf_doc_ref(job);
	give_orders(node);
}

static void on_repeat(void *arg)
{
	struct node *node = arg;

	hf_timer_arm(node->repeat, REPEAT);
	if (!may_speak(node))
		return;
	on_read(node);
}

static void on_beat(void *arg)
{
	struct node *node = arg;

	hf_timer_arm(node->beat, HEARTBEAT);
	if (node->agent)
		write_soon(node, HF_MS);
}

static void job_changed(struct world *w)
{
	for (int i = 0; i < NODES; i++) {
		struct node *node = &w->nodes[i];

		/* The event is lost: the agent lists again by and by. */
		if (trouble(w, 30))
			continue;
		if (!hf_timer_armed(node->read))
			hf_timer_arm(node->read, trouble(w, 60) ? span(w, 10 * HF_SECOND)
								: span(w, 20 * HF_MS));
	}
}

static void agent_dies(struct node *node, hf_time away)
{
	struct world *w = node->w;
	const char *key;
	void *value;

	if (!node->agent)
		return;
	tell(w, "world: the agent of %s dies", node->name);
	w->met->agent_deaths++;
	node->agent = false;
	hf_doc_unref(node->job);
	node->job = NULL;
	hf_timer_disarm(node->write);
	for (size_t it = 0; hf_map_next(w->pods, &it, &key, &value);) {
		struct pod *pod = value;

		if (pod->node != node || !pod->connected)
			continue;
		pod->connected = false;
		hf_timer_arm(pod->connect, HF_SECOND);
	}
	hf_timer_arm(node->agent_back, away);
}

static void on_agent_back(void *arg)
{
	struct node *node = arg;

	if (!node->power) {
		hf_timer_arm(node->agent_back, 5 * HF_SECOND);
		return;
	}
	node->agent = true;
	tell(node->w, "world: the agent of %s is back", node->name);
	hf_timer_arm(node->read, HF_MS);
	write_soon(node, span(node->w, HF_SECOND));
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

static void set_ready(struct node *node, const char *status)
{
	char text[512], at[HF_TIME_TEXT_MAX];
	bool unknown = hf_streq(status, "Unknown");

	hf_time_format(hf_loop_wall(node->w->loop), at);
	node->unknown = unknown;
	snprintf(text, sizeof(text),
		 "{'status':{'conditions':[{'type':'Ready','status':'%s','lastTransitionTime':'%s'"
		 "}]}}",
		 status, at);
	(void)patch(node->w, &hf_nodes, NULL, node->name, "status", text);
	(void)patch(node->w, &hf_nodes, NULL, node->name, NULL,
		    unknown ? "{'spec':{'taints':[{'key':'node.kubernetes.io/unreachable','effect':"
			      "'NoExecute'},{'key':'node.kubernetes.io/unreachable','effect':"
			      "'NoSchedule'}]}}"
			    : "{'spec':{'taints':[]}}");
}

static void on_lease(void *arg)
{
	struct node *node = arg;
	char text[256], at[HF_TIME_TEXT_MAX];

	hf_timer_arm(node->lease, 10 * HF_SECOND);
	if (!node->power || !node->link)
		return;
	snprintf(text, sizeof(text), "{'spec':{'renewTime':'%s'}}", format_time(node->w, at));
	(void)patch(node->w, &hf_leases, "kube-node-lease", node->name, NULL, text);
}

static void on_lost(void *arg)
{
	struct node *node = arg;

	if (node->power && node->link)
		return;
	tell(node->w, "control plane: %s is Unknown", node->name);
	node->w->met->node_losses++;
	set_ready(node, "Unknown");
}

static void node_goes(struct node *node, bool power)
{
	struct world *w = node->w;
	const char *key;
	void *value;

	if (!node->power || !node->link)
		return;
	tell(w, "world: %s %s", node->name, power ? "loses its power" : "is cut off");
	for (size_t it = 0; hf_map_next(w->pods, &it, &key, &value);) {
		struct pod *pod = value;

		if (pod->node != node)
			continue;
		w->faults += pod->object && !pod->over;
		if (power && pod->container) {
			stop_exec(pod);
			pod->code = 137;
			hf_timer_disarm(pod->start);
		}
	}
	if (power) {
		node->power = false;
		node->agent = false;
		hf_doc_unref(node->job);
		node->job = NULL;
	} else {
		node->link = false;
	}
	node->off_at = now(w);
	w->unwell_until = HF_TIME_NEVER - HF_DAY;
	hf_timer_arm(node->lost, 40 * HF_SECOND + span(w, 10 * HF_SECOND));
	hf_timer_arm(node->back, w->calm ? HF_SECOND : HF_SECOND + span(w, 8 * HF_MINUTE));
}

static void settle_pods(struct node *node)
{
	struct world *w = node->w;
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(w->pods, &it, &key, &value);) {
		struct pod *pod = value;

		if (pod->node != node)
			continue;
		if (!pod->object || pod->leaving) {
			hf_timer_arm(pod->kubelet, HF_SECOND + span(w, HF_SECOND));
		} else if (!pod->container && !pod->over && (pod->ordinal > 0 || pod->code != 0)) {
			/* It went with the power. */
			if (pod->never) {
				pod->over = true;
				report_ended(pod, "Failed");
			} else {
				report_ended(pod, "Running");
				hf_timer_arm(pod->start, span(w, 5 * HF_SECOND));
			}
		} else if (pod->over) {
			report_ended(pod, pod->code == 0 ? "Succeeded" : "Failed");
		} else if (pod->container) {
			report_running(pod);
		}
	}
}

static void on_back(void *arg)
{
	struct node *node = arg;
	struct world *w = node->w;

	if (node->power && node->link)
		return;
	tell(w, "world: %s is back", node->name);
	if (!node->power)
		hf_timer_arm(node->agent_back, HF_SECOND + span(w, 5 * HF_SECOND));
	node->power = node->link = true;
	hf_timer_arm(node->read, HF_MS);
	on_lease(node);
	if (node->unknown)
		set_ready(node, "True");
	settle_pods(node);
	w->unwell_until = now(w);
	for (int i = 0; i < NODES; i++)
		if (!w->nodes[i].power || !w->nodes[i].link)
			w->unwell_until = HF_TIME_NEVER - HF_DAY;
}

/* --- what the store shows ----------------------------------------------------------------------------------- */

static void pod_free(void *value)
{
	struct pod *pod = value;

	hf_timer_destroy(pod->start);
	hf_timer_destroy(pod->stop);
	hf_timer_destroy(pod->end);
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
	pod->end = hf_timer_create(w->loop, on_stop, pod);
	pod->connect = hf_timer_create(w->loop, on_connect, pod);
	pod->kubelet = hf_timer_create(w->loop, on_kubelet, pod);
	pod->wait = hf_timer_create(w->loop, on_wait, pod);
	pod->ends_soon = hf_timer_create(w->loop, on_ends_soon, pod);
	hf_assert(hf_map_put(w->pods, pod->uid, pod));
	w->met->moved += pod->hold;
	tell(w, "store: %s is made, %lld.%lld%s", pod->name, (long long)pod->g0, (long long)pod->a0,
	     pod->hold ? ", held" : "");
	hf_timer_arm(pod->start, span(w, HF_SECOND));
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
		tell(w, "store: %s is gone", pod->name);
		if (pod->container)
			hf_timer_arm(pod->kubelet, span(w, 2 * HF_SECOND));
		return;
	}
	if (hf_json_path(hf_doc_json(doc), "metadata", "deletionTimestamp", NULL) == NULL ||
	    pod->leaving)
		return;
	pod->leaving = true;
	hf_timer_arm(pod->kubelet, pod->node == NULL || !pod->process
					   ? span(w, HF_SECOND)
					   : span(w, GRACE_SECONDS * HF_SECOND));
}

static void on_change(void *arg, const struct hf_memstore_change *change)
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
	}
	if (change->after != NULL && change->before != NULL) {
		if (!hf_json_equal(hf_json_get(hf_doc_json(change->before), "status"),
				   hf_json_get(hf_doc_json(change->after), "status")))
			w->job_writes++;
		if (w->aloud) {
			HF_AUTO_STRBUF text = HF_STRBUF_INIT((size_t)1 << 16);

			hf_json_write(hf_json_path(hf_doc_json(change->after), "status", "recovery",
						   NULL),
				      HF_JSON_COMPACT, &text);
			tell(w, "job: %.700s", text.data);
		}
		check_job(w, change->after);
	}
	job_changed(w);
}

static void on_reset(void *arg)
{
	fail_world(arg, "the store was reset");
}

/* --- the operators --------------------------------------------------------------------------------------------- */

static void on_death(void *arg)
{
	struct life *life = arg;

	if (life->client == NULL)
		return;
	tell(life->w, "operator %s dies", life->identity);
	life->w->met->deaths++;
	life->op = hf_operator_destroy(life->op);
	life->manager = hf_manager_destroy(life->manager);
	life->client = hf_store_destroy(life->client);
	hf_timer_arm(life->birth, span(life->w, 10 * HF_SECOND));
}

static void on_request(void *arg, const struct hf_request *request, struct hf_fault *fault)
{
	struct life *life = arg;
	struct world *w = life->w;

	w->met->requests++;
	if (w->calm || w->quiet)
		return;
	if (chance(w, 15)) {
		fault->refuse = HF_E_UNAVAILABLE;
		fault->message = "refused by the simulator";
	} else if (chance(w, 15)) {
		fault->lose_reply = true;
		w->met->lost++;
	} else if (chance(w, 20)) {
		fault->delay_before = span(w, 2 * HF_SECOND);
		fault->delay_after = span(w, 2 * HF_SECOND);
	}
	if (hf_streq(request->resource->plural, "events") || !chance(w, 8))
		return;
	/* It dies before the request arrives, or after it was done. */
	if (chance(w, 500)) {
		fault->delay_before = HF_MINUTE;
		hf_timer_arm(life->death, 0);
	} else {
		fault->delay_after = HF_MINUTE;
		hf_timer_arm(life->death, HF_MS);
	}
}

static void on_relist(void *arg)
{
	struct life *life = arg;

	if (life->client != NULL)
		hf_memstore_client_break_watches(life->client, HF_E_GONE, "events were lost");
}

static void on_event(void *arg, const struct hf_watch_options *options,
		     const struct hf_event *event, struct hf_event_fault *fault)
{
	struct life *life = arg;
	struct world *w = life->w;

	(void)options;
	(void)event;
	if (w->calm || w->quiet)
		return;
	if (chance(w, 4)) {
		fault->drop = true;
		hf_timer_arm(life->relist, span(w, 30 * HF_SECOND));
	} else if (chance(w, 30)) {
		fault->delay = span(w, 5 * HF_SECOND);
	}
	fault->duplicate = chance(w, 20);
}

static void on_birth(void *arg)
{
	struct life *life = arg;
	struct world *w = life->w;
	static const struct hf_framework *const frameworks[] = {&hf_framework_pytorch, NULL};
	const struct hf_memstore_faults faults = {
		.request = on_request, .event = on_event, .arg = life};
	struct hf_error err = {0};
	int rc;

	life->client = hf_memstore_client_create(w->memstore, &faults);
	const struct hf_operator_options options = {.loop = w->loop,
						    .store = life->client,
						    .frameworks = frameworks,
						    .watch_nodes = true,
						    .seed = hf_rng_next(&w->rng)};
	const struct hf_manager_options manager = {.op = options,
						   .elect = true,
						   .lease_ns = "default",
						   .lease_name = "leader",
						   .identity = life->identity};

	tell(w, "operator %s starts", life->identity);
	if (w->n_lives == 1)
		rc = hf_operator_create(&options, &life->op, &err);
	else
		rc = hf_manager_create(&manager, &life->manager, &err);
	if (rc != 0)
		fail_world(w, "operator: %s", err.text);
	else if (life->op != NULL)
		hf_operator_start(life->op);
	else
		hf_manager_start(life->manager);
}

/* --- people, and what breaks --------------------------------------------------------------------------------------- */

static void make_job(struct world *w)
{
	char text[2048];
	int workers = 1 + (int)below(w, WORKERS_MAX - 1);

	snprintf(
		text, sizeof(text),
		"{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{'name':'ddp',"
		"'namespace':'default'},'spec':{'runPolicy':{'recovery':{'restartScope':'%s',"
		"'backoff':{'initialSeconds':1,'maxSeconds':20}}},'pytorchReplicaSpecs':{'Master':{"
		"'replicas':1,'restartPolicy':'OnFailure','template':{'spec':{"
		"'terminationGracePeriodSeconds':%d,'containers':[{'name':'pytorch','image':'i'}]"
		"}}},'Worker':{'replicas':%d,'restartPolicy':'OnFailure','template':{'spec':{"
		"'terminationGracePeriodSeconds':%d,'containers':[{'name':'pytorch','image':'i'}]"
		"}}}}}}",
		w->scope_job ? "Job" : "Replica", GRACE_SECONDS, workers, GRACE_SECONDS);
	w->jobs++;
	if (create(w, &hf_pytorchjobs, "default", text) != 0)
		fail_world(w, "the job cannot be made");
}

static struct pod *pick_pod(struct world *w)
{
	const char *key;
	void *value;
	struct pod *found = NULL;
	uint64_t n = 0;

	for (size_t it = 0; hf_map_next(w->pods, &it, &key, &value);) {
		struct pod *pod = value;

		if (pod->object && pod->container && below(w, ++n) == 0)
			found = pod;
	}
	return found;
}

/* A rank fails, and in every other case its peers fail of that a little later. */
static void rank_fails(struct world *w)
{
	static const int codes[] = {1, 1, 2, 137, 143, 220};
	struct pod *pod = pick_pod(w);
	const char *key;
	void *value;

	if (pod == NULL || !pod->process || pod->stopping)
		return;
	w->faults++;
	w->met->faults++;
	if (w->scope_job && chance(w, 500)) {
		for (size_t it = 0; hf_map_next(w->pods, &it, &key, &value);) {
			struct pod *peer = value;

			if (peer == pod || !peer->process ||
			    !hf_streq(peer->job_uid, pod->job_uid) || chance(w, 300))
				continue;
			peer->soon_code = 1;
			hf_timer_arm(peer->ends_soon, span(w, 40 * HF_MS));
		}
	}
	program_ends(pod, codes[below(w, HF_ARRAY_LEN(codes))]);
}

static void patch_job(struct world *w, const char *what, const char *text)
{
	tell(w, "people: %s", what);
	w->met->people++;
	(void)patch(w, &hf_pytorchjobs, "default", "ddp", NULL, text);
}

static void people_act(struct world *w)
{
	char text[256], at[HF_TIME_TEXT_MAX];
	struct pod *pod;

	if (job_doc(w) == NULL) {
		make_job(w);
		return;
	}
	switch (below(w, 9)) {
	case 0: patch_job(w, "suspend", "{'spec':{'runPolicy':{'suspend':true}}}"); break;
	case 1:
	case 2: patch_job(w, "resume", "{'spec':{'runPolicy':{'suspend':false}}}"); break;
	case 3:
		snprintf(text, sizeof(text),
			 "{'spec':{'pytorchReplicaSpecs':{'Worker':{'replicas':%d}}}}",
			 1 + (int)below(w, WORKERS_MAX));
		patch_job(w, "scale", text);
		break;
	case 4:
		patch_job(w, "edit",
			  chance(w, 300)
				  ? "{'spec':{'runPolicy':{'recovery':{'inPlace':'Never'}}}}"
				  : "{'spec':{'runPolicy':{'recovery':{'inPlace':'Auto'}}}}");
		break;
	case 5:
		hf_time_format(hf_loop_wall(w->loop), at);
		snprintf(text, sizeof(text),
			 "{'metadata':{'annotations':{'holdfast.dev/restart':'%s%s'}}}", at,
			 chance(w, 400) ? " worker-0" : "");
		patch_job(w, "restart", text);
		break;
	case 6:
		if (!chance(w, 200))
			break;
		tell(w, "people: delete the job");
		(void)delete_object(w, &hf_pytorchjobs, "default", "ddp", w->job_uid,
				    HF_GRACE_DEFAULT);
		break;
	default:
		pod = pick_pod(w);
		if (pod == NULL)
			break;
		tell(w, "people: delete %s", pod->name);
		/* Where the watch lost it, it looks as if it had vanished. */
		w->faults++;
		(void)delete_object(w, &hf_pods, "default", pod->name, pod->uid, HF_GRACE_DEFAULT);
		break;
	}
}

static void on_deed(void *arg)
{
	struct world *w = arg;
	struct pod *pod;

	if (w->calm)
		return;
	hf_timer_arm(w->deeds, w->quiet ? 3 * HF_MINUTE : span(w, 40 * HF_SECOND));
	if (w->quiet) {
		rank_fails(w);
		return;
	}
	switch (below(w, 12)) {
	case 0:
	case 1:
	case 2:
	case 3: rank_fails(w); break;
	case 4:
		pod = pick_pod(w);
		if (pod == NULL)
			break;
		tell(w, "world: exec of %s is killed", pod->name);
		w->faults++;
		w->met->execs_killed++;
		container_ends(pod, 137);
		break;
	case 5:
	case 6: agent_dies(&w->nodes[below(w, NODES)], span(w, 3 * HF_MINUTE)); break;
	case 7: node_goes(&w->nodes[below(w, NODES)], chance(w, 500)); break;
	case 8:
	case 9: hf_timer_arm(w->lives[below(w, (uint64_t)w->n_lives)].death, HF_MS); break;
	default: people_act(w); break;
	}
}

/* --- a run ------------------------------------------------------------------------------------------------------------ */

static void make_nodes(struct world *w)
{
	for (int i = 0; i < NODES; i++) {
		struct node *node = &w->nodes[i];
		char text[512], at[HF_TIME_TEXT_MAX];

		*node = (struct node){.w = w, .power = true, .link = true, .agent = true};
		snprintf(node->name, sizeof(node->name), "n%d", i);
		snprintf(text, sizeof(text),
			 "{'apiVersion':'v1','kind':'Node','metadata':{'name':'%s'}}", node->name);
		(void)create(w, &hf_nodes, NULL, text);
		snprintf(text, sizeof(text),
			 "{'apiVersion':'coordination.k8s.io/v1','kind':'Lease','metadata':{'name':"
			 "'%s','namespace':'kube-node-lease'},'spec':{'holderIdentity':'%s',"
			 "'renewTime':'%s'}}",
			 node->name, node->name, format_time(w, at));
		(void)create(w, &hf_leases, "kube-node-lease", text);
		set_ready(node, "True");
		node->write = hf_timer_create(w->loop, on_write, node);
		node->read = hf_timer_create(w->loop, on_read, node);
		node->repeat = hf_timer_create(w->loop, on_repeat, node);
		node->beat = hf_timer_create(w->loop, on_beat, node);
		node->lease = hf_timer_create(w->loop, on_lease, node);
		node->lost = hf_timer_create(w->loop, on_lost, node);
		node->back = hf_timer_create(w->loop, on_back, node);
		node->agent_back = hf_timer_create(w->loop, on_agent_back, node);
		hf_timer_arm(node->lease, span(w, 10 * HF_SECOND));
		hf_timer_arm(node->repeat, span(w, REPEAT));
		hf_timer_arm(node->write, HF_MS);
	}
}

static void run_until(struct world *w, hf_time until)
{
	while (!w->failed && now(w) < until) {
		hf_time next = now(w) + HF_SECOND;

		hf_loop_run_until(w->loop, next < until ? next : until);
		check_barrier(w);
	}
}

static void begin_calm(struct world *w)
{
	tell(w, "--- calm");
	w->calm = true;
	for (int i = 0; i < NODES; i++) {
		struct node *node = &w->nodes[i];

		if (!node->power || !node->link)
			hf_timer_arm(node->back, HF_SECOND);
		if (!node->agent)
			hf_timer_arm(node->agent_back, 3 * HF_SECOND);
	}
	if (job_doc(w) == NULL)
		make_job(w);
	patch_job(w, "resume", "{'spec':{'runPolicy':{'suspend':false}}}");
}

static void check_end(struct world *w)
{
	struct hf_doc *doc = job_doc(w);
	const struct hf_json *job = hf_doc_json(doc);
	const struct hf_json *ledger = hf_json_path(job, "status", "recovery", NULL);
	int64_t workers = hf_json_i64(
		hf_json_path(job, "spec", "pytorchReplicaSpecs", "Worker", "replicas", NULL), 0);
	int64_t running = 0;
	const char *key;
	void *value;

	if (is_held(ledger))
		fail_world(w, "ranks are held in the end");
	if (!hf_streq(hf_json_path_str(ledger, "phase", NULL), "Running"))
		fail_world(w, "the job is %s in the end",
			   hf_str_or(hf_json_path_str(ledger, "phase", NULL), "?"));
	for (size_t it = 0; hf_map_next(w->pods, &it, &key, &value);) {
		const struct pod *pod = value;
		int64_t attempt;

		if (!pod->process)
			continue;
		if (!hf_streq(pod->job_uid, hf_doc_uid(doc))) {
			fail_world(w, "%s of an earlier job runs in the end", pod->name);
			continue;
		}
		attempt =
			sparse(hf_json_path_str(ledger, "replicas", type_of(pod), "attempts", NULL),
			       index_of(pod));
		if (pod->g != hf_json_i64(hf_json_get(ledger, "generation"), 0) ||
		    pod->a != attempt)
			fail_world(w, "%s runs %lld.%lld in the end", pod->name, (long long)pod->g,
				   (long long)pod->a);
		running++;
	}
	if (running != workers + 1)
		fail_world(w, "%lld of %lld ranks run in the end", (long long)running,
			   (long long)workers + 1);
	/* With scope Replica a rank that started before the incident of another one belongs to it. */
	if (w->quiet && w->scope_job && sum_restarts(ledger) != w->faults)
		fail_world(w, "%lld charged of %lld faults", (long long)sum_restarts(ledger),
			   (long long)w->faults);
	w->met->charged += (unsigned long long)sum_restarts(ledger);
}

static void fill_random(void *arg, void *bytes, size_t len)
{
	unsigned char *at = bytes;

	for (size_t i = 0; i < len; i++)
		at[i] = (unsigned char)hf_rng_next(arg);
}

static void world_begin(struct world *w, uint64_t seed, bool aloud, struct met *met)
{
	const struct hf_memstore_options options = {
		.event_ttl = HF_HOUR, .random = fill_random, .random_arg = &w->engine_rng};
	struct hf_error err = {0};

	*w = (struct world){.seed = seed, .aloud = aloud, .met = met};
	hf_rng_init(&w->rng, seed);
	hf_rng_init(&w->engine_rng, ~seed);
	w->scope_job = below(w, 3) != 0;
	w->quiet = below(w, 6) == 0;
	w->n_lives = below(w, 4) == 0 ? 2 : 1;
	w->loop = hf_loop_create_virtual(WALL_START);
	if (hf_memstore_create(w->loop, &options, &w->memstore, &err) != 0)
		fail_world(w, "%s", err.text);
	w->gc = hf_gc_create(w->memstore, NULL);
	w->pods = hf_map_create(PODS_MAX, 0, pod_free);
	w->observer =
		(struct hf_memstore_observer){.changed = on_change, .reset = on_reset, .arg = w};
	hf_memstore_observe(w->memstore, &w->observer);
	w->deeds = hf_timer_create(w->loop, on_deed, w);
	make_nodes(w);
	for (int i = 0; i < w->n_lives; i++) {
		struct life *life = &w->lives[i];

		*life = (struct life){.w = w};
		snprintf(life->identity, sizeof(life->identity), "op-%d", i);
		life->death = hf_timer_create(w->loop, on_death, life);
		life->birth = hf_timer_create(w->loop, on_birth, life);
		life->relist = hf_timer_create(w->loop, on_relist, life);
		on_birth(life);
	}
	make_job(w);
	hf_timer_arm(w->deeds, 30 * HF_SECOND);
}

static void world_end(struct world *w)
{
	for (int i = 0; i < w->n_lives; i++) {
		struct life *life = &w->lives[i];

		life->op = hf_operator_destroy(life->op);
		life->manager = hf_manager_destroy(life->manager);
		life->client = hf_store_destroy(life->client);
		hf_timer_destroy(life->death);
		hf_timer_destroy(life->birth);
		hf_timer_destroy(life->relist);
	}
	for (int i = 0; i < NODES; i++) {
		struct node *node = &w->nodes[i];
		struct hf_timer *timers[] = {node->write, node->read,      node->repeat,
					     node->beat,  node->lease,     node->lost,
					     node->back,  node->agent_back};

		for (size_t t = 0; t < HF_ARRAY_LEN(timers); t++)
			hf_timer_destroy(timers[t]);
		hf_doc_unref(node->job);
	}
	hf_timer_destroy(w->deeds);
	hf_memstore_unobserve(w->memstore, &w->observer);
	hf_map_destroy(w->pods);
	hf_gc_destroy(w->gc);
	hf_memstore_destroy(w->memstore);
	hf_loop_destroy(w->loop);
}

static bool run_seed(uint64_t seed, bool aloud, struct met *met)
{
	struct world w;
	bool failed;

	world_begin(&w, seed, aloud, met);
	run_until(&w, TROUBLE);
	if (!w.failed)
		begin_calm(&w);
	run_until(&w, TROUBLE + CALM);
	if (!w.failed)
		check_end(&w);
	met->seeds++;
	failed = w.failed;
	if (failed)
		printf("seed %llu: %s\n  again: in_place --seed %llu --verbose\n",
		       (unsigned long long)seed, w.failure, (unsigned long long)seed);
	world_end(&w);
	return failed;
}

/* --- the writes of one restart ------------------------------------------------------------------------------------------ */

static bool count_writes(struct met *met)
{
	struct world w;
	struct pod *pod;
	bool failed = false;
	unsigned long long writes;

	world_begin(&w, 1, false, met);
	w.quiet = true;
	hf_timer_disarm(w.deeds);
	(void)patch(&w, &hf_pytorchjobs, "default", "ddp", NULL,
		    "{'spec':{'runPolicy':{'recovery':{'restartScope':'Job'}},"
		    "'pytorchReplicaSpecs':{'Worker':{'replicas':6}}}}");
	run_until(&w, 3 * HF_MINUTE);
	for (int n = 0; n < 3 && !w.failed; n++) {
		pod = pick_pod(&w);
		w.faults++;
		w.agent_writes = w.job_writes = 0;
		program_ends(pod, 1);
		for (int s = 0; s < 60 && w.running_in != n + 2; s++)
			run_until(&w, now(&w) + HF_SECOND);
		writes = w.agent_writes + w.job_writes;
		run_until(&w, now(&w) + 30 * HF_SECOND);
		printf("restart %d of 7 ranks on %d nodes: %llu writes, %llu of them of the "
		       "operator\n",
		       n + 1, NODES, writes, w.job_writes);
		if (writes > NODES + 4 || w.job_writes > 3 || w.hold_since != 0 ||
		    w.generation != n + 2)
			failed = true;
	}
	if (w.failed)
		printf("%s\n", w.failure);
	failed |= w.failed;
	world_end(&w);
	return failed;
}

/* Each thing was met, or the seeds show nothing. */
static bool is_met(const struct met *met)
{
	return met->seeds < 100 ||
	       (met->in_place > 0 && met->moved > 0 && met->recreated > 0 && met->barriers > 0 &&
		met->deaths > 0 && met->node_losses > 0 && met->agent_deaths > 0 &&
		met->execs_killed > 0 && met->timeouts > 0 && met->people > 0 && met->lost > 0);
}

int main(int argc, char **argv)
{
	uint64_t start = 1, seeds = 200, only = 0;
	bool aloud = false, go_on = false;
	struct met met = {0};
	int failures = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "0";

		if (hf_streq(argv[i], "--verbose"))
			aloud = true;
		else if (hf_streq(argv[i], "--go-on"))
			go_on = true;
		else if (hf_streq(argv[i], "--seed"))
			only = strtoull(value, NULL, 10), i++;
		else if (hf_streq(argv[i], "--seeds"))
			seeds = strtoull(value, NULL, 10), i++;
		else if (hf_streq(argv[i], "--start"))
			start = strtoull(value, NULL, 10), i++;
		else
			return 2;
	}
	if (only != 0)
		return run_seed(only, aloud, &met);
	failures += count_writes(&met);
	for (uint64_t seed = start; seed < start + seeds && (go_on || failures == 0); seed++)
		failures += run_seed(seed, false, &met);
	printf("%llu seeds, %llu charged of %llu faults: %llu restarts in place, %llu pods moved at "
	       "the barrier, %llu re-creations, %llu barriers, %llu time-outs of exec, %llu deaths "
	       "of operators, %llu of agents, %llu of execs, %llu lost nodes, %llu deeds of people, "
	       "%llu lost replies, %llu requests\n",
	       met.seeds, met.charged, met.faults, met.in_place, met.moved, met.recreated,
	       met.barriers, met.timeouts, met.deaths, met.agent_deaths, met.execs_killed,
	       met.node_losses, met.people, met.lost, met.requests);
	if (failures == 0 && !is_met(&met)) {
		printf("not everything was met\n");
		return 1;
	}
	return failures != 0;
}
