/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Writes the operator's log. Each kind of line has a rate limit; the next line of that kind has
 * the number of suppressed lines. */
#include "app/operator_log.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "ctl/backoff.h"

#include <stdio.h>
#include <stdlib.h>

/* A kind is the message of a line, such as an event reason; there are some dozens. Kinds beyond the
 * limit share one bucket. */
#define KINDS_MAX 256
#define PAIRS_MAX 8

struct bucket {
	double tokens;
	hf_time at;
	unsigned long long suppressed;
};

struct hf_operator_log {
	struct hf_loop *loop;
	struct hf_rng rng;
	struct hf_map *buckets;
	struct bucket shared;
};

struct hf_operator_log *hf_operator_log_create(struct hf_loop *loop, uint64_t seed)
{
	struct hf_operator_log *log = hf_xcalloc(1, sizeof(*log));

	log->loop = loop;
	log->buckets = hf_map_create(KINDS_MAX, seed, free);
	log->shared = (struct bucket){.tokens = HF_LOG_BURST, .at = hf_loop_mono(loop)};
	hf_rng_init(&log->rng, seed);
	return log;
}

struct hf_operator_log *hf_operator_log_destroy(struct hf_operator_log *log)
{
	if (log == NULL)
		return NULL;
	hf_map_destroy(log->buckets);
	free(log);
	return NULL;
}

static struct bucket *bucket_of(struct hf_operator_log *log, const char *kind)
{
	struct bucket *bucket = hf_map_get(log->buckets, kind);

	if (bucket != NULL)
		return bucket;
	bucket = hf_xcalloc(1, sizeof(*bucket));
	*bucket = (struct bucket){.tokens = HF_LOG_BURST, .at = hf_loop_mono(log->loop)};
	if (hf_map_put(log->buckets, kind, bucket))
		return bucket;
	free(bucket);
	return &log->shared;
}

bool hf_operator_log_allows(struct hf_operator_log *log, const char *kind,
			    unsigned long long *ret_suppressed)
{
	struct bucket *bucket = bucket_of(log, kind);
	hf_time now = hf_loop_mono(log->loop);

	bucket->tokens += HF_LOG_PER_SECOND * (double)(now - bucket->at) / (double)HF_SECOND;
	bucket->at = now;
	if (bucket->tokens > HF_LOG_BURST)
		bucket->tokens = HF_LOG_BURST;
	if (bucket->tokens < 1) {
		bucket->suppressed++;
		return false;
	}
	bucket->tokens--;
	*ret_suppressed = bucket->suppressed;
	bucket->suppressed = 0;
	return true;
}

/* --- lines --------------------------------------------------------------------------------- */

/* Key-value pairs of one line. Empty values are left out; the first NULL key ends the list. */
struct pairs {
	const char *keys[PAIRS_MAX], *values[PAIRS_MAX];
	size_t n;
	char suppressed[24];
};

static void add_pair(struct pairs *pairs, const char *key, const char *value)
{
	if (hf_str_is_empty(value))
		return;
	hf_assert(pairs->n < PAIRS_MAX - 1);
	pairs->keys[pairs->n] = key;
	pairs->values[pairs->n++] = value;
}

static void write_line(struct hf_operator_log *log, enum hf_log_level level, const char *msg,
		       struct pairs *p)
{
	unsigned long long suppressed;

	if (!hf_log_enabled(level) || !hf_operator_log_allows(log, msg, &suppressed))
		return;
	if (suppressed > 0) {
		snprintf(p->suppressed, sizeof(p->suppressed), "%llu", suppressed);
		add_pair(p, "suppressed", p->suppressed);
	}
	hf_log(level, "operator", msg, p->keys[0], p->values[0], p->keys[1], p->values[1],
	       p->keys[2], p->values[2], p->keys[3], p->values[3], p->keys[4], p->values[4],
	       p->keys[5], p->values[5], p->keys[6], p->values[6], NULL);
}

/* Keys common to all lines about one pass. */
struct pass_line {
	char id[40], generation[24], job[600];
	const struct hf_operator_pass *pass;
};

static void pass_line_init(struct pass_line *line, struct hf_operator_log *log,
			   const struct hf_operator_pass *pass)
{
	uint64_t a = hf_rng_next(&log->rng), b = hf_rng_next(&log->rng);

	line->pass = pass;
	/* A random ID in the form of a version 4 UUID, as in controller-runtime. */
	snprintf(line->id, sizeof(line->id), "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32),
		 (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff),
		 (unsigned)(b >> 48 & 0x3fff) | 0x8000u,
		 (unsigned long long)(b & 0xffffffffffffULL));
	snprintf(line->job, sizeof(line->job), "%s/%s", hf_doc_namespace(pass->job),
		 hf_doc_name(pass->job));
	line->generation[0] = '\0';
	if (pass->plan != NULL && pass->plan->status.ledger.present)
		snprintf(line->generation, sizeof(line->generation), "%lld",
			 (long long)pass->plan->status.ledger.generation);
}

/* Writes a line about a pass. The shared keys do not fit into `struct pairs`, so hf_log gets them
 * directly. */
static void write_pass_line(struct hf_operator_log *log, enum hf_log_level level, const char *msg,
			    const struct pass_line *line, struct pairs *p)
{
	const struct hf_operator_pass *pass = line->pass;
	unsigned long long suppressed;

	if (!hf_log_enabled(level) || !hf_operator_log_allows(log, msg, &suppressed))
		return;
	add_pair(p, "generation", line->generation);
	if (suppressed > 0) {
		snprintf(p->suppressed, sizeof(p->suppressed), "%llu", suppressed);
		add_pair(p, "suppressed", p->suppressed);
	}
	hf_log(level, "operator", msg, "controller", pass->framework->controller_name,
	       "controllerKind", pass->framework->kind, "namespace", hf_doc_namespace(pass->job),
	       "name", hf_doc_name(pass->job), "job", line->job, "reconcileID", line->id,
	       p->keys[0], p->values[0], p->keys[1], p->values[1], p->keys[2], p->values[2],
	       p->keys[3], p->values[3], p->keys[4], p->values[4], p->keys[5], p->values[5], NULL);
}

static void log_event(struct hf_operator_log *log, const struct pass_line *line,
		      const struct hf_plan_event *event)
{
	const struct hf_plan *plan = line->pass->plan;
	struct pairs pairs = {.n = 0};

	add_pair(&pairs, "event", event->message);
	add_pair(&pairs, "pod", event->pod);
	if (plan->metrics[HF_METRIC_RESTARTS] > 0) {
		add_pair(&pairs, "cause", hf_class_name(plan->restart_cause));
		if (plan->status.ledger.records_len > 0)
			add_pair(&pairs, "node", plan->status.ledger.records[0].node);
	}
	write_pass_line(log, event->warning ? HF_LOG_WARN : HF_LOG_INFO, event->reason, line,
			&pairs);
}

/* True for errors of normal operation: a conflict with another writer, a job deleted meanwhile, or a
 * request that Holdfast itself canceled. "Not found" for an existing job is not normal: the server
 * refuses writes. */
static bool is_ordinary(const struct hf_operator_pass *pass)
{
	return pass->code == HF_E_CONFLICT || pass->code == HF_E_CANCELED ||
	       (pass->code == HF_E_NOT_FOUND && pass->gone);
}

void hf_operator_log_passed(struct hf_operator_log *log, const struct hf_operator_pass *pass)
{
	struct pass_line line;
	struct pairs pairs = {.n = 0};

	if (pass->code == 0 && (!pass->told || pass->plan->events_len == 0))
		return;
	pass_line_init(&line, log, pass);
	for (size_t i = 0; pass->told && i < pass->plan->events_len; i++)
		log_event(log, &line, &pass->plan->events[i]);
	if (pass->code == 0)
		return;
	add_pair(&pairs, "error", pass->message);
	add_pair(&pairs, "code", hf_code_name(pass->code));
	write_pass_line(log, is_ordinary(pass) ? HF_LOG_DEBUG : HF_LOG_ERROR, "Reconciler error",
			&line, &pairs);
}

static const char *failed_at(const char *key, int code)
{
	if (hf_streq(key, "events"))
		return "Failed to write";
	if (hf_streq(key, "evictions"))
		return "Failed to evict";
	return code == HF_E_TOO_LARGE ? "More than there is room for" : "Request failed";
}

void hf_operator_log_problem(struct hf_operator_log *log, const char *key, int code,
			     const char *message)
{
	struct pairs pairs = {.n = 0};

	for (const char *p = key; *p != '\0'; p++)
		if (*p == '/')
			return;
	add_pair(&pairs, "resource", key);
	if (code == 0) {
		add_pair(&pairs, "reason", message);
		write_line(log, HF_LOG_INFO, "Found", &pairs);
		return;
	}
	/* The server keeps a few minutes of changes. A watch that falls further behind gets
	 * HF_E_GONE and lists again, which is normal. */
	if (code == HF_E_GONE) {
		add_pair(&pairs, "reason", message);
		write_line(log, HF_LOG_INFO, "Listing again", &pairs);
		return;
	}
	add_pair(&pairs, "error", message);
	add_pair(&pairs, "code", hf_code_name(code));
	/* A server that asks to wait is no error: it does so in the second after a CRD was made. */
	write_line(log, code == HF_E_TOO_MANY ? HF_LOG_WARN : HF_LOG_ERROR, failed_at(key, code),
		   &pairs);
}

void hf_operator_log_trouble(struct hf_operator_log *log, const char *what, int code,
			     const char *message)
{
	struct pairs pairs = {.n = 0};

	add_pair(&pairs, "object", what);
	add_pair(&pairs, "error", message);
	add_pair(&pairs, "code", hf_code_name(code));
	write_line(log, HF_LOG_ERROR, "Failed to read or write", &pairs);
}

void hf_operator_log_state(struct hf_operator_log *log, enum hf_manager_state state,
			   const char *why)
{
	struct pairs pairs = {.n = 0};

	add_pair(&pairs, "state", hf_manager_state_name(state));
	add_pair(&pairs, "reason", why);
	write_line(log, state == HF_MANAGER_YIELDING ? HF_LOG_WARN : HF_LOG_INFO, "State changed",
		   &pairs);
}
