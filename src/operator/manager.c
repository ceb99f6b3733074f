/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/manager.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "ctl/backoff.h"
#include "ctl/write_guard.h"
#include "ctl/recorder.h"
#include "operator/rival.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Decides when this process may act as the operator; the states and their changes stand in
 * manager.h.
 *
 * Input: the Lease, the Deployments and jobs that show a rival (rival.h), timers.  Output: an
 * operator that exists only in the states LEADING and STOPPING.
 */

#define WHY_MAX 256
/* Limit of the memory for the managedFields of one job, which are read one job at a time. */
#define SCRATCH_BYTES_MAX ((size_t)16 << 20)
#define LOOK_TIMEOUT (10 * HF_SECOND)
#define PROBLEM_BYTES_MAX 1024
#define LEASE_RIGHT                                                                                \
	"; `holdfast manifests --operator` allows the default Lease in its own namespace alone: "  \
	"leave --leader-election-id and --leader-election-namespace out, or change its Role"

struct hf_manager {
	struct hf_manager_options options;
	char *rival_ns[HF_RIVAL_NS_MAX], *lease_name;
	size_t looking_at; /* LOOKING, LEADING: index of rival_ns */
	struct hf_loop *loop;
	struct hf_lease *lease; /* NULL: no election */
	struct hf_store *guard; /* the store that the operator uses; lives as long as the manager */
	struct hf_operator *op;
	enum hf_manager_state state;
	char why[WHY_MAX];

	struct hf_call *look;
	struct hf_timer *timer; /* YIELDING, LEADING: look again; STOPPING: patience */
	struct hf_backoff patience, retry;
	struct hf_rng rng;
	struct hf_arena *scratch;
	hf_time led_since; /* monotonic */
	hf_time since;     /* server time from which on writes of a rival count */
	char rival[HF_RIVAL_NAME_MAX];
	bool warned;              /* this process has stepped back for a rival before */
	struct hf_doc *rival_job; /* that it wrote to */
	struct hf_recorder *recorder;
	/* steps back later, because a cache's callback must not destroy the operator */
	struct hf_task *yield;
	struct hf_task *stopped_task;
	hf_task_fn stopped;
	void *stopped_arg;

	struct hf_family *master, *yields, *held_back;
	unsigned long long told_held_back;
};

const char *hf_manager_state_name(enum hf_manager_state state)
{
	static const char *const names[] = {"standby", "looking",  "yielding",
					    "leading", "stopping", "over"};

	return names[state];
}

static void enter_state(struct hf_manager *manager, enum hf_manager_state state, const char *why)
{
	manager->state = state;
	snprintf(manager->why, sizeof(manager->why), "%s", why);
	if (manager->options.changed != NULL)
		manager->options.changed(manager->options.arg, state, manager->why);
}

static void log_problem(const struct hf_manager *manager, const char *what, int code,
			const char *message)
{
	if (manager->options.problem != NULL)
		manager->options.problem(manager->options.arg, what, code, message);
}

/* How long a write that is sent now may take: until the Lease may be lost; 0 beside a rival. */
static hf_time write_time_left(void *arg)
{
	const struct hf_manager *manager = arg;

	if (manager->rival[0] != '\0')
		return 0;
	return manager->lease == NULL ? HF_TIME_NEVER : hf_lease_left(manager->lease);
}

/* --- acting ----------------------------------------------------------------------------------- */

static void drop_operator(struct hf_manager *manager)
{
	manager->op = hf_operator_destroy(manager->op);
	hf_task_cancel(manager->yield);
	manager->rival[0] = '\0';
	manager->rival_job = hf_doc_unref(manager->rival_job);
}

/* Record an event of the job or of the Deployment that shows the rival.  Beside another operator
 * this is the only write. */
static void report_rival(struct hf_manager *manager, struct hf_doc *about, const char *why,
			 hf_time now)
{
	const struct hf_json *root = hf_doc_json(about);
	HF_AUTOFREE char *message = hf_xasprintf("Holdfast steps back: %s", why);
	const struct hf_event_note note = {
		.api_version = hf_json_path_str(root, "apiVersion", NULL),
		.kind = hf_json_path_str(root, "kind", NULL),
		.ns = hf_doc_namespace(about),
		.name = hf_doc_name(about),
		.uid = hf_doc_uid(about),
		.resource_version = hf_doc_resource_version(about),
		.type = "Warning",
		.reason = "AnotherOperator",
		.message = message,
	};

	hf_recorder_record(manager->recorder, &note,
			   now != HF_TIME_NONE ? now : hf_loop_wall(manager->loop));
}

static void step_back(struct hf_manager *manager, const char *why)
{
	bool led = manager->state == HF_MANAGER_LEADING;

	hf_call_cancel(manager->look);
	manager->look = NULL;
	drop_operator(manager);
	/* A rival that appears after this operator has led for so long is a new one, so the
	 * operator yields for the shortest time again. */
	if (led && hf_loop_mono(manager->loop) - manager->led_since > HF_MANAGER_YIELD_MAX)
		hf_backoff_reset(&manager->patience);
	hf_timer_arm(manager->timer, hf_backoff_next(&manager->patience, &manager->rng));
	if (manager->yields != NULL)
		hf_family_add(manager->yields, 1, NULL);
	enter_state(manager, HF_MANAGER_YIELDING, why);
}

static void on_yield(void *arg)
{
	struct hf_manager *manager = arg;
	hf_time now = hf_operator_now(manager->op);
	char why[WHY_MAX];

	snprintf(why, sizeof(why),
		 "another operator writes to the jobs of this one, as '%s'; only one may run",
		 manager->rival);
	/* Only later writes show that the rival is still at work.  One second is added, because the
	 * estimate of the server's time may lag by the second to which time stamps are cut. */
	manager->since = now + HF_SECOND;
	manager->warned = true;
	report_rival(manager, manager->rival_job, why, now);
	step_back(manager, why);
}

/*
 * Any client that may write a job can forge managedFields, but not a change of the status.  So
 * managedFields count only together with a changed status that this operator did not write.
 *
 * For HF_MANAGER_WARY after stepping back, managedFields of listed jobs count alone, so that a
 * rival is seen before this operator's first write.
 */
static bool is_believed(const struct hf_manager *manager, struct hf_doc *was, struct hf_doc *job)
{
	if (was == NULL || !hf_streq(hf_doc_uid(was), hf_doc_uid(job)))
		return manager->warned &&
		       hf_loop_mono(manager->loop) - manager->led_since < HF_MANAGER_WARY;
	return !hf_json_equal(hf_json_get(hf_doc_json(was), "status"),
			      hf_json_get(hf_doc_json(job), "status"));
}

/* A cache shows a version of a job.  The operator must not be destroyed here, because its cache is
 * the caller.  Once a rival is noted, the guard lets no write through. */
static void job_seen(void *arg, struct hf_doc *was, struct hf_doc *job)
{
	struct hf_manager *manager = arg;
	char rival[HF_RIVAL_NAME_MAX];
	hf_time now;

	if (manager->rival[0] != '\0' || manager->state != HF_MANAGER_LEADING)
		return;
	now = hf_operator_now(manager->op);
	if (now == HF_TIME_NONE)
		now = hf_loop_wall(manager->loop);
	if (!hf_rival_wrote(job, manager->since, now + HF_MANAGER_SKEW, manager->scratch, rival) ||
	    !is_believed(manager, was, job))
		return;
	memcpy(manager->rival, rival, sizeof(rival));
	manager->rival_job = hf_doc_ref(job);
	hf_task_post(manager->yield);
}

static int create_operator(struct hf_manager *manager, struct hf_operator **ret_op,
			   struct hf_error *err)
{
	struct hf_operator_options options = manager->options.op;

	options.store = manager->guard;
	options.job_seen = job_seen;
	options.job_seen_arg = manager;
	options.seed = hf_rng_next(&manager->rng);
	return hf_operator_create(&options, ret_op, err);
}

static void look_later(struct hf_manager *manager)
{
	if (manager->rival_ns[0] != NULL)
		hf_timer_arm(manager->timer, HF_MANAGER_LOOK_AGAIN);
}

static void start_leading(struct hf_manager *manager)
{
	struct hf_error err;

	if (create_operator(manager, &manager->op, &err) != 0) {
		step_back(manager, err.text);
		return;
	}
	manager->led_since = hf_loop_mono(manager->loop);
	look_later(manager);
	enter_state(manager, HF_MANAGER_LEADING, "");
	hf_operator_start(manager->op);
}

/* --- looking for the Go operator -------------------------------------------------------------- */

static void look_further(struct hf_manager *manager);

/* No rival was found in this namespace: look in the next one, or lead. */
static void look_next(struct hf_manager *manager)
{
	manager->looking_at++;
	look_further(manager);
}

static void look_reply(void *arg, const struct hf_reply *reply)
{
	struct hf_manager *manager = arg;
	bool leads = manager->state == HF_MANAGER_LEADING;
	char why[WHY_MAX];

	manager->look = NULL;
	if (reply->server_time != HF_TIME_NONE && manager->since == HF_TIME_NONE)
		manager->since = reply->server_time;
	switch (reply->code) {
	case 0:
		if (!hf_rival_is_ready(reply->object) ||
		    !hf_rival_shares(reply->object, manager->options.op.frameworks,
				     manager->options.op.ns))
			break;
		snprintf(why, sizeof(why),
			 "Deployment %s/" HF_RIVAL_DEPLOYMENT
			 " is ready and serves the same jobs: scale it to 0",
			 manager->rival_ns[manager->looking_at]);
		report_rival(manager, reply->object, why, reply->server_time);
		/* Writes that the rival makes before it is scaled down must not count later. */
		manager->since = HF_TIME_NONE;
		step_back(manager, why);
		return;
	case HF_E_NOT_FOUND: break;
	case HF_E_FORBIDDEN:
		/* Without the right to read Deployments, a rival still shows itself by its writes.
		 * While leading, the missing right is not logged again. */
		if (!leads)
			log_problem(manager, "deployment", reply->code, reply->message);
		break;
	default:
		log_problem(manager, "deployment", reply->code, reply->message);
		if (leads)
			break;
		hf_timer_arm(manager->timer, hf_backoff_next(&manager->retry, &manager->rng));
		return;
	}
	hf_backoff_reset(&manager->retry);
	look_next(manager);
}

static void look_further(struct hf_manager *manager)
{
	size_t i = manager->looking_at;
	const struct hf_request request = {
		.verb = HF_VERB_GET,
		.resource = &hf_rival_deployments,
		.ns = i < HF_RIVAL_NS_MAX ? manager->rival_ns[i] : NULL,
		.name = HF_RIVAL_DEPLOYMENT,
		.timeout = LOOK_TIMEOUT,
	};

	if (request.ns != NULL) {
		manager->look =
			hf_store_request(manager->options.op.store, &request, look_reply, manager);
		return;
	}
	if (manager->state == HF_MANAGER_LEADING) {
		look_later(manager);
		return;
	}
	if (manager->since == HF_TIME_NONE)
		manager->since = hf_loop_wall(manager->loop);
	start_leading(manager);
}

static void start_looking(struct hf_manager *manager)
{
	if (manager->state != HF_MANAGER_LOOKING && manager->state != HF_MANAGER_LEADING)
		enter_state(manager, HF_MANAGER_LOOKING, "looking for another operator");
	manager->looking_at = 0;
	look_further(manager);
}

/* --- the Lease -------------------------------------------------------------------------------- */

static void on_lease(void *arg, bool held, const char *why)
{
	struct hf_manager *manager = arg;

	if (manager->state == HF_MANAGER_STOPPING || manager->state == HF_MANAGER_OVER)
		return;
	hf_call_cancel(manager->look);
	manager->look = NULL;
	hf_timer_disarm(manager->timer);
	drop_operator(manager);
	if (held)
		start_looking(manager);
	else
		enter_state(manager, HF_MANAGER_STANDBY, why);
}

static void on_lease_problem(void *arg, int code, const char *message)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(PROBLEM_BYTES_MAX);

	hf_strbuf_addstr(&text, message);
	if (code == HF_E_FORBIDDEN)
		hf_strbuf_addstr(&text, LEASE_RIGHT);
	log_problem(arg, "lease", code, text.data);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void on_stopped(void *arg)
{
	struct hf_manager *manager = arg;
	hf_task_fn stopped = manager->stopped;

	manager->stopped = NULL;
	if (stopped != NULL)
		stopped(manager->stopped_arg);
}

static void note_released(void *arg)
{
	struct hf_manager *manager = arg;

	enter_state(manager, HF_MANAGER_OVER, "");
	hf_task_post(manager->stopped_task);
}

/* Called when the operator has stopped, or when HF_MANAGER_STOP_MAX has passed. */
static void operator_is_over(void *arg)
{
	struct hf_manager *manager = arg;

	hf_timer_disarm(manager->timer);
	drop_operator(manager);
	if (manager->lease != NULL)
		hf_lease_release(manager->lease, note_released, manager);
	else
		note_released(manager);
}

static void operator_stopped(void *arg)
{
	operator_is_over(arg);
}

void hf_manager_stop(struct hf_manager *manager, hf_task_fn stopped, void *arg)
{
	hf_assert(manager->state < HF_MANAGER_STOPPING);
	manager->stopped = stopped;
	manager->stopped_arg = arg;
	hf_call_cancel(manager->look);
	manager->look = NULL;
	hf_task_cancel(manager->yield);
	enter_state(manager, HF_MANAGER_STOPPING, "stopping");
	if (manager->op == NULL) {
		operator_is_over(manager);
		return;
	}
	hf_timer_arm(manager->timer, HF_MANAGER_STOP_MAX);
	hf_operator_stop(manager->op, operator_stopped, manager);
}

static void on_timer(void *arg)
{
	struct hf_manager *manager = arg;

	if (manager->state == HF_MANAGER_STOPPING)
		operator_is_over(manager);
	else
		start_looking(manager);
}

/* --- life ------------------------------------------------------------------------------------- */

static void create_lease(struct hf_manager *manager)
{
	const struct hf_manager_options *options = &manager->options;
	const struct hf_lease_options lease = {
		.loop = manager->loop,
		.store = options->lease_store != NULL ? options->lease_store : options->op.store,
		.ns = options->lease_ns,
		.name = options->lease_name,
		.identity = options->identity,
		.seed = hf_rng_next(&manager->rng),
		.changed = on_lease,
		.problem = on_lease_problem,
		.arg = manager,
	};

	manager->lease_name = hf_xstrdup(options->lease_name);
	manager->lease = hf_lease_create(&lease);
}

static void create_metrics(struct hf_manager *manager)
{
	const struct hf_metric_options master = {
		.name = "leader_election_master_status",
		.help = "1 if this process holds the Lease.",
		.type = HF_METRIC_GAUGE,
		.labels = {"name"},
	};
	const struct hf_metric_options yields = {
		.name = "holdfast_yields_total",
		.help = "Times this operator stepped back because another operator was at work.",
		.type = HF_METRIC_COUNTER,
	};
	const struct hf_metric_options held_back = {
		.name = "holdfast_writes_held_back_total",
		.help = "Writes that the guard held back because the Lease was lost or a rival was found.",
		.type = HF_METRIC_COUNTER,
	};
	struct hf_metrics *metrics = manager->options.op.metrics;

	if (metrics == NULL)
		return;
	if (manager->lease != NULL)
		manager->master = hf_metrics_family(metrics, &master);
	manager->yields = hf_metrics_family(metrics, &yields);
	manager->held_back = hf_metrics_family(metrics, &held_back);
	hf_family_add(manager->yields, 0, NULL);
}

static void create_guard(struct hf_manager *manager)
{
	const struct hf_write_guard_options guard = {
		.loop = manager->loop,
		.store = manager->options.op.store,
		.left = write_time_left,
		.arg = manager,
		.timeout = manager->options.op.request_timeout,
	};

	manager->guard = hf_write_guard_create(&guard);
}

static void recorder_refused(void *arg, int code, const char *message)
{
	log_problem(arg, "events", code, message);
}

static void create_recorder(struct hf_manager *manager)
{
	const struct hf_recorder_options options = {
		.loop = manager->loop,
		.store = manager->options.op.store,
		.component = "holdfast",
		.seed = manager->options.op.seed,
		.refused = recorder_refused,
		.arg = manager,
	};

	manager->recorder = hf_recorder_create(&options);
}

int hf_manager_create(const struct hf_manager_options *options, struct hf_manager **ret_manager,
		      struct hf_error *err)
{
	struct hf_manager *manager = hf_xcalloc(1, sizeof(*manager));
	struct hf_operator *probe;
	int rc;

	hf_assert(options->op.job_seen == NULL);
	manager->options = *options;
	manager->loop = options->op.loop;
	manager->since = HF_TIME_NONE;
	manager->patience =
		(struct hf_backoff)HF_BACKOFF_INIT(HF_MANAGER_YIELD_MIN, HF_MANAGER_YIELD_MAX, 20);
	manager->retry = (struct hf_backoff)HF_BACKOFF_INIT(HF_SECOND, 30 * HF_SECOND, 50);
	hf_rng_init(&manager->rng, options->op.seed);
	for (size_t i = 0; i < HF_RIVAL_NS_MAX && options->rival_ns[i] != NULL; i++)
		manager->rival_ns[i] = hf_xstrdup(options->rival_ns[i]);
	manager->scratch = hf_arena_create(SCRATCH_BYTES_MAX);
	manager->timer = hf_timer_create(manager->loop, on_timer, manager);
	manager->yield = hf_task_create(manager->loop, on_yield, manager);
	manager->stopped_task = hf_task_create(manager->loop, on_stopped, manager);
	create_guard(manager);
	create_recorder(manager);
	if (options->elect)
		create_lease(manager);
	create_metrics(manager);
	rc = create_operator(manager, &probe, err);
	if (rc != 0) {
		hf_manager_destroy(manager);
		return rc;
	}
	hf_operator_destroy(probe);
	*ret_manager = manager;
	return 0;
}

void hf_manager_start(struct hf_manager *manager)
{
	if (manager->lease == NULL) {
		hf_timer_arm(manager->timer, 0);
		return;
	}
	enter_state(manager, HF_MANAGER_STANDBY, "waiting for the Lease");
	hf_lease_start(manager->lease);
}

struct hf_manager *hf_manager_destroy(struct hf_manager *manager)
{
	if (manager == NULL)
		return NULL;
	hf_call_cancel(manager->look);
	hf_operator_destroy(manager->op);
	hf_doc_unref(manager->rival_job);
	hf_recorder_destroy(manager->recorder);
	hf_store_destroy(manager->guard);
	hf_lease_destroy(manager->lease);
	hf_timer_destroy(manager->timer);
	hf_task_destroy(manager->yield);
	hf_task_destroy(manager->stopped_task);
	hf_arena_destroy(manager->scratch);
	for (size_t i = 0; i < HF_RIVAL_NS_MAX; i++)
		free(manager->rival_ns[i]);
	free(manager->lease_name);
	free(manager);
	return NULL;
}

/* --- questions -------------------------------------------------------------------------------- */

struct hf_operator *hf_manager_operator(const struct hf_manager *manager)
{
	return manager->op;
}

/* 0 if the operator is ready for at least one kind; the text then names missing kinds. */
static int operator_ready(const struct hf_operator *op, struct hf_error *err)
{
	HF_AUTO_STRBUF missing = HF_STRBUF_INIT(WHY_MAX);
	bool synced = hf_operator_synced(op);

	hf_operator_missing(op, &missing);
	if (synced && err != NULL)
		snprintf(err->text, sizeof(err->text), "%s", missing.data);
	if (synced)
		return 0;
	return hf_error_set(err, HF_E_UNAVAILABLE, "jobs and pods are being listed%s%s",
			    missing.len > 0 ? "; " : "", missing.data);
}

int hf_manager_ready(const struct hf_manager *manager, struct hf_error *err)
{
	switch (manager->state) {
	case HF_MANAGER_STANDBY:
		/* A standby is ready if it knows the holder of the Lease. */
		if (hf_lease_holder(manager->lease)[0] != '\0')
			return 0;
		break;
	case HF_MANAGER_LEADING: return operator_ready(manager->op, err);
	default: break;
	}
	return hf_error_set(err, HF_E_UNAVAILABLE, "%s",
			    hf_str_or(manager->why, hf_manager_state_name(manager->state)));
}

void hf_manager_update_metrics(struct hf_manager *manager)
{
	unsigned long long held_back = hf_write_guard_held_back(manager->guard);

	if (manager->options.op.metrics == NULL)
		return;
	if (manager->master != NULL)
		hf_family_set(manager->master, hf_lease_left(manager->lease) > 0 ? 1 : 0,
			      manager->lease_name, NULL);
	hf_family_add(manager->held_back, (double)(held_back - manager->told_held_back), NULL);
	manager->told_held_back = held_back;
	if (manager->op != NULL)
		hf_operator_update_metrics(manager->op);
}
