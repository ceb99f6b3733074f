/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/health_policy.h"

#include "api/window_internal.h"
#include "api/writer_internal.h"
#include "base/str.h"

#include <string.h>

/*
 * Reads the spec of a HealthPolicy strictly (the first wrong field is an error) and fills in the
 * defaults. Reads and writes its status, and builds pod Evictions.
 */

/* health/fleet.c explains the defaults; deploy/crds/healthpolicies.yaml documents them for users. */

#define COUNT_MAX 20000
#define SECONDS_MAX (30 * 24 * 3600)
#define WINDOW_MIN 60
#define LATE_PODS_MAX 1000
#define URL_MAX 1024

static const struct hf_fields_options lenient = {.lenient = true};

/* ---- the spec -------------------------------------------------------------------------------- */

struct limit {
	uint64_t present;
	int32_t count, percent, window;
	bool at_least_one;
};
enum { LIMIT_COUNT, LIMIT_PERCENT, LIMIT_ONE, LIMIT_WINDOW };
static const struct hf_field share_fields[] = {
	[LIMIT_COUNT] = HF_FIELD_INT32("count", struct limit, count, 0, COUNT_MAX, 0),
	[LIMIT_PERCENT] = HF_FIELD_INT32("percent", struct limit, percent, 0, 100, 0),
	[LIMIT_ONE] = HF_FIELD_BOOL("atLeastOne", struct limit, at_least_one, 0),
};
static const struct hf_field_table share_table = HF_FIELD_TABLE(share_fields, struct limit);
static const struct hf_field rate_fields[] = {
	[LIMIT_COUNT] =
		HF_FIELD_INT32("count", struct limit, count, 0, HF_HEALTH_POLICY_RECENT_MAX / 2, 0),
	[LIMIT_PERCENT] = HF_FIELD_INT32("percent", struct limit, percent, 0, 100, 0),
	[LIMIT_ONE] = HF_FIELD_BOOL("atLeastOne", struct limit, at_least_one, 0),
	[LIMIT_WINDOW] =
		HF_FIELD_INT32("windowSeconds", struct limit, window, WINDOW_MIN, SECONDS_MAX, 0),
};
static const struct hf_field_table rate_table = HF_FIELD_TABLE(rate_fields, struct limit);

struct domain {
	uint64_t present;
	const char *key;
	int32_t max;
};
static const struct hf_field domain_fields[] = {
	HF_FIELD_STRING("topologyKey", struct domain, key, 317,
			HF_FIELD_REQUIRED | HF_FIELD_NONEMPTY),
	HF_FIELD_INT32("max", struct domain, max, 1, COUNT_MAX, HF_FIELD_REQUIRED),
};
static const struct hf_field_table domain_table = HF_FIELD_TABLE(domain_fields, struct domain);

struct job {
	uint64_t present;
	int32_t max, window;
};
enum { JOB_MAX, JOB_WINDOW };
static const struct hf_field job_fields[] = {
	[JOB_MAX] = HF_FIELD_INT32("quarantines", struct job, max, 0, COUNT_MAX, 0),
	[JOB_WINDOW] =
		HF_FIELD_INT32("windowSeconds", struct job, window, WINDOW_MIN, SECONDS_MAX, 0),
};
static const struct hf_field_table job_table = HF_FIELD_TABLE(job_fields, struct job);

struct budget {
	uint64_t present;
	struct limit unavailable, quarantines;
	struct domain domain;
	struct job job;
	int32_t spares;
};
enum { BUDGET_UNAVAILABLE, BUDGET_QUARANTINES, BUDGET_DOMAIN, BUDGET_JOB };
static const struct hf_field budget_fields[] = {
	[BUDGET_UNAVAILABLE] =
		HF_FIELD_OBJECT("maxUnavailable", struct budget, unavailable, &share_table, 0),
	[BUDGET_QUARANTINES] =
		HF_FIELD_OBJECT("maxQuarantines", struct budget, quarantines, &rate_table, 0),
	[BUDGET_DOMAIN] = HF_FIELD_OBJECT("perDomain", struct budget, domain, &domain_table, 0),
	[BUDGET_JOB] = HF_FIELD_OBJECT("perJob", struct budget, job, &job_table, 0),
	HF_FIELD_INT32("minSpares", struct budget, spares, 0, COUNT_MAX, 0),
};
static const struct hf_field_table budget_table = HF_FIELD_TABLE(budget_fields, struct budget);

struct breaker {
	uint64_t present;
	int32_t count, percent, window;
	int64_t epoch;
};
enum { BREAKER_COUNT, BREAKER_PERCENT, BREAKER_WINDOW };
static const struct hf_field breaker_fields[] = {
	[BREAKER_COUNT] = HF_FIELD_INT32("count", struct breaker, count, 0, COUNT_MAX, 0),
	[BREAKER_PERCENT] = HF_FIELD_INT32("percent", struct breaker, percent, 0, 100, 0),
	[BREAKER_WINDOW] =
		HF_FIELD_INT32("windowSeconds", struct breaker, window, WINDOW_MIN, SECONDS_MAX, 0),
	HF_FIELD_INT64("epoch", struct breaker, epoch, 0, INT32_MAX, 0),
};
static const struct hf_field_table breaker_table = HF_FIELD_TABLE(breaker_fields, struct breaker);

struct drain {
	uint64_t present;
	const char *mode;
	int32_t grace, timeout, late_pods;
};
enum { DRAIN_MODE, DRAIN_GRACE, DRAIN_TIMEOUT, DRAIN_PODS };
static const struct hf_field drain_fields[] = {
	[DRAIN_MODE] = HF_FIELD_STRING("mode", struct drain, mode, 0, 0),
	[DRAIN_GRACE] = HF_FIELD_INT32("graceSeconds", struct drain, grace, 0, SECONDS_MAX, 0),
	[DRAIN_TIMEOUT] =
		HF_FIELD_INT32("timeoutSeconds", struct drain, timeout, WINDOW_MIN, SECONDS_MAX, 0),
	[DRAIN_PODS] = HF_FIELD_PRESENCE("podSelector", 0),
	HF_FIELD_INT32("latePods", struct drain, late_pods, 0, LATE_PODS_MAX, 0),
};
static const struct hf_field_table drain_table = HF_FIELD_TABLE(drain_fields, struct drain);

struct diagnostic {
	uint64_t present;
	HF_LIST(const char *) command;
	int32_t timeout;
};
enum { DIAGNOSTIC_TIMEOUT };
static const struct hf_field diagnostic_fields[] = {
	[DIAGNOSTIC_TIMEOUT] =
		HF_FIELD_INT32("timeoutSeconds", struct diagnostic, timeout, 1, 3600, 0),
	HF_FIELD_STRINGS("command", struct diagnostic, command, HF_HEALTH_POLICY_WORDS_MAX,
			 HF_FIELD_REQUIRED),
};
static const struct hf_field_table diagnostic_table =
	HF_FIELD_TABLE(diagnostic_fields, struct diagnostic);

struct template
{
	uint64_t present;
	const char *api_version, *kind, *name, *ns;
};
static const struct hf_field template_fields[] = {
	HF_FIELD_STRING("apiVersion", struct template, api_version, 253, HF_FIELD_REQUIRED),
	HF_FIELD_STRING("kind", struct template, kind, 63, HF_FIELD_REQUIRED),
	HF_FIELD_STRING("name", struct template, name, 253, HF_FIELD_REQUIRED),
	HF_FIELD_STRING("namespace", struct template, ns, 63, 0),
};
static const struct hf_field_table template_table =
	HF_FIELD_TABLE(template_fields, struct template);

struct webhook {
	uint64_t present;
	const char *url;
	int32_t timeout, attempts;
};
enum { WEBHOOK_TIMEOUT, WEBHOOK_ATTEMPTS };
static const struct hf_field webhook_fields[] = {
	[WEBHOOK_TIMEOUT] = HF_FIELD_INT32("timeoutSeconds", struct webhook, timeout, 1, 60, 0),
	[WEBHOOK_ATTEMPTS] = HF_FIELD_INT32("attempts", struct webhook, attempts, 1, 10, 0),
	HF_FIELD_STRING("url", struct webhook, url, URL_MAX, HF_FIELD_REQUIRED),
};
static const struct hf_field_table webhook_table = HF_FIELD_TABLE(webhook_fields, struct webhook);

struct external {
	uint64_t present;
	struct template template;
	struct webhook webhook;
};
enum { EXTERNAL_TEMPLATE, EXTERNAL_WEBHOOK };
static const struct hf_field external_fields[] = {
	[EXTERNAL_TEMPLATE] =
		HF_FIELD_OBJECT("template", struct external, template, &template_table, 0),
	[EXTERNAL_WEBHOOK] =
		HF_FIELD_OBJECT("webhook", struct external, webhook, &webhook_table, 0),
};
static const struct hf_field_table external_table =
	HF_FIELD_TABLE(external_fields, struct external);

struct mend {
	uint64_t present;
	bool hold, watchdog;
	HF_LIST(const char *) rungs;
	int32_t at_once, deadline, settle;
	HF_LIST(struct hf_window_read) windows;
	struct diagnostic diagnostic;
	struct external external;
};
enum { MEND_AT_ONCE, MEND_DEADLINE, MEND_SETTLE, MEND_RUNGS, MEND_EXTERNAL };
static const struct hf_field mend_fields[] = {
	[MEND_AT_ONCE] = HF_FIELD_INT32("maxConcurrent", struct mend, at_once, 1, COUNT_MAX, 0),
	[MEND_DEADLINE] =
		HF_FIELD_INT32("deadlineSeconds", struct mend, deadline, WINDOW_MIN, 24 * 3600, 0),
	[MEND_SETTLE] = HF_FIELD_INT32("settleSeconds", struct mend, settle, 0, 3600, 0),
	[MEND_RUNGS] = HF_FIELD_STRINGS("rungs", struct mend, rungs, 4, 0),
	[MEND_EXTERNAL] = HF_FIELD_OBJECT("external", struct mend, external, &external_table, 0),
	HF_FIELD_OBJECT("diagnostic", struct mend, diagnostic, &diagnostic_table, 0),
	HF_FIELD_BOOL("hold", struct mend, hold, 0),
	HF_FIELD_BOOL("watchdog", struct mend, watchdog, 0),
	HF_FIELD_OBJECTS("windows", struct mend, windows, &hf_window_table,
			 HF_HEALTH_POLICY_WINDOWS_MAX, 0),
};
static const struct hf_field_table mend_table = HF_FIELD_TABLE(mend_fields, struct mend);

struct spec {
	uint64_t present;
	const char *mode, *quarantine;
	bool paused;
	struct mend mend;
	struct budget budget;
	struct breaker breaker;
	struct drain drain;
	int32_t stale;
	HF_LIST(const char *) taints;
};
enum { SPEC_MODE, SPEC_SELECTOR, SPEC_EXCLUDE, SPEC_STALE, SPEC_MEND };
static const struct hf_field spec_fields[] = {
	[SPEC_MODE] = HF_FIELD_STRING("mode", struct spec, mode, 0, 0),
	[SPEC_SELECTOR] = HF_FIELD_PRESENCE("selector", 0),
	[SPEC_EXCLUDE] = HF_FIELD_PRESENCE("exclude", 0),
	[SPEC_STALE] =
		HF_FIELD_INT32("staleAfterSeconds", struct spec, stale, WINDOW_MIN, SECONDS_MAX, 0),
	[SPEC_MEND] = HF_FIELD_OBJECT("mend", struct spec, mend, &mend_table, 0),
	HF_FIELD_STRING("quarantine", struct spec, quarantine, 0, 0),
	HF_FIELD_BOOL("paused", struct spec, paused, 0),
	HF_FIELD_OBJECT("budget", struct spec, budget, &budget_table, 0),
	HF_FIELD_OBJECT("breaker", struct spec, breaker, &breaker_table, 0),
	HF_FIELD_OBJECT("drain", struct spec, drain, &drain_table, 0),
	HF_FIELD_STRINGS("unavailableTaints", struct spec, taints, HF_HEALTH_POLICY_TAINTS_MAX, 0),
};
static const struct hf_field_table spec_table = HF_FIELD_TABLE(spec_fields, struct spec);

static int32_t or_else(uint64_t present, unsigned field, int32_t value, int32_t fallback)
{
	return hf_field_has(present, field) ? value : fallback;
}

static hf_time span_or(uint64_t present, unsigned field, int32_t seconds, hf_time fallback)
{
	return hf_field_has(present, field) ? (hf_time)seconds * HF_SECOND : fallback;
}

static struct hf_policy_limit limit_of(const struct limit *read)
{
	return (struct hf_policy_limit){
		.count = or_else(read->present, LIMIT_COUNT, read->count, -1),
		.percent = or_else(read->present, LIMIT_PERCENT, read->percent, -1),
		.at_least_one = read->at_least_one,
	};
}

static bool has_number(const struct limit *read)
{
	return hf_field_has(read->present, LIMIT_COUNT) ||
	       hf_field_has(read->present, LIMIT_PERCENT);
}

static void read_budget(const struct budget *read, struct hf_health_policy_spec *spec)
{
	bool one = hf_field_has(read->unavailable.present, LIMIT_ONE);

	spec->unavailable = limit_of(&read->unavailable);
	if (!has_number(&read->unavailable)) {
		spec->unavailable.percent = 10;
		spec->unavailable.at_least_one = !one || read->unavailable.at_least_one;
	}
	spec->quarantines = limit_of(&read->quarantines);
	if (!has_number(&read->quarantines))
		spec->quarantines.count = 5;
	/* The status remembers at most HF_HEALTH_POLICY_RECENT_MAX quarantines. So a policy that
	 * limits them by a percentage alone also gets a limit as a number. */
	if (spec->quarantines.count < 0)
		spec->quarantines.count = HF_HEALTH_POLICY_RECENT_MAX / 2;
	spec->quarantine_window =
		span_or(read->quarantines.present, LIMIT_WINDOW, read->quarantines.window, HF_HOUR);
	spec->domain_key = read->domain.key;
	spec->domain_max = read->domain.max;
	spec->job_max = or_else(read->job.present, JOB_MAX, read->job.max, 2);
	spec->job_window = span_or(read->job.present, JOB_WINDOW, read->job.window, HF_HOUR);
	spec->spares_min = read->spares;
}

/* ---- mend ------------------------------------------------------------------------------------ */

static int read_diagnostic(const struct diagnostic *read, struct hf_policy_mend *mend,
			   struct hf_error *err)
{
	mend->diagnostic_seconds = or_else(read->present, DIAGNOSTIC_TIMEOUT, read->timeout, 300);
	for (size_t i = 0; i < read->command.len; i++) {
		if (hf_str_is_empty(read->command.items[i]) && i == 0)
			return hf_error_set(
				err, HF_E_INVALID,
				"spec.mend.diagnostic.command[0]: Invalid value: \"\": must "
				"name a program");
		mend->words[mend->words_len++] = read->command.items[i];
	}
	return 0;
}

/* A URL with a host and without a password, of characters that an HTTP request may have in its first line. */
static bool is_url(const char *url)
{
	const char *host = hf_str_has_prefix(url, "https://")  ? url + strlen("https://")
			   : hf_str_has_prefix(url, "http://") ? url + strlen("http://")
							       : "";
	size_t len = strcspn(host, "/?");

	if (len == 0 || memchr(host, '@', len) != NULL)
		return false;
	for (const char *at = host; *at != '\0'; at++)
		if (*at <= ' ' || *at > '~' || strchr("\"<>\\^`{|}#", *at) != NULL)
			return false;
	return true;
}

static int read_webhook(const struct webhook *read, struct hf_policy_mend *mend,
			struct hf_error *err)
{
	if (!is_url(read->url))
		return hf_error_set(
			err, HF_E_INVALID,
			"spec.mend.external.webhook.url: Invalid value: \"%.200s\": must be "
			"a URL such as https://HOST/PATH",
			read->url);
	mend->webhook.url = read->url;
	mend->webhook.timeout =
		span_or(read->present, WEBHOOK_TIMEOUT, read->timeout, 10 * HF_SECOND);
	mend->webhook.attempts = or_else(read->present, WEBHOOK_ATTEMPTS, read->attempts, 3);
	return 0;
}

static int read_external(const struct mend *read, struct hf_policy_mend *mend, struct hf_error *err)
{
	const struct template *template = &read->external.template;
	bool has_webhook = hf_field_has(read->external.present, EXTERNAL_WEBHOOK);

	if (!hf_field_has(read->present, MEND_EXTERNAL))
		return !mend->externals
			       ? 0
			       : hf_error_set(err, HF_E_INVALID,
					      "spec.mend.external: Required value: rung external "
					      "needs a template or a webhook");
	if (has_webhook == hf_field_has(read->external.present, EXTERNAL_TEMPLATE))
		return hf_error_set(
			err, HF_E_INVALID,
			"spec.mend.external: Invalid value: must have either template or "
			"webhook");
	if (has_webhook)
		return read_webhook(&read->external.webhook, mend, err);
	if (!hf_str_has_suffix(template->kind, "Template") || hf_streq(template->kind, "Template"))
		return hf_error_set(
			err, HF_E_INVALID,
			"spec.mend.external.template.kind: Invalid value: \"%s\": must end "
			"with Template",
			template->kind);
	mend->external.api_version = template->api_version;
	mend->external.kind = template->kind;
	mend->external.name = template->name;
	mend->external.ns = template->ns;
	return 0;
}

static int read_rung(const char *rung, size_t i, struct hf_policy_mend *mend, struct hf_error *err)
{
	bool *const allowed[] = {&mend->resets, &mend->reboots, &mend->plugins, &mend->externals};
	static const char *const names[] = {"reset-device", "reboot", "restart-plugin", "external"};

	for (size_t k = 0; k < HF_ARRAY_LEN(names); k++) {
		if (hf_streq(rung, names[k])) {
			*allowed[k] = true;
			return 0;
		}
	}
	return hf_error_set(err, HF_E_INVALID,
			    "spec.mend.rungs[%zu]: Unsupported value: \"%s\": supported values: "
			    "\"external\", \"reboot\", \"reset-device\", \"restart-plugin\"",
			    i, rung);
}

/* A reset that cannot be proved before its deadline would always fail, and the next rung follow. */
static int check_deadline(const struct hf_policy_mend *mend, struct hf_error *err)
{
	int64_t wait =
		mend->settle / HF_SECOND + (mend->words_len > 0 ? mend->diagnostic_seconds : 0);

	if (mend->deadline > wait)
		return 0;
	return hf_error_set(err, HF_E_INVALID,
			    "spec.mend.deadlineSeconds: Invalid value: %lld: must be more than "
			    "settleSeconds and diagnostic.timeoutSeconds together, which are %lld",
			    (long long)mend->deadline, (long long)wait);
}

static int read_mend(const struct spec *spec, struct hf_policy_mend *mend, struct hf_error *err)
{
	const struct mend *read = &spec->mend;
	bool both = !hf_field_has(read->present, MEND_RUNGS);
	int rc = 0;

	*mend = (struct hf_policy_mend){
		.allowed = hf_field_has(spec->present, SPEC_MEND),
		.hold = read->hold,
		.resets = both,
		.reboots = both,
		.watchdog = read->watchdog,
		.at_once = or_else(read->present, MEND_AT_ONCE, read->at_once, 1),
		.deadline = or_else(read->present, MEND_DEADLINE, read->deadline, 1800),
		.settle = span_or(read->present, MEND_SETTLE, read->settle, 10 * HF_SECOND),
		.windows_len = read->windows.len,
	};
	for (size_t i = 0; i < read->rungs.len && rc == 0; i++)
		rc = read_rung(read->rungs.items[i], i, mend, err);
	if (rc == 0)
		rc = read_diagnostic(&read->diagnostic, mend, err);
	if (rc == 0)
		rc = check_deadline(mend, err);
	if (rc == 0)
		rc = read_external(read, mend, err);
	if (rc == 0)
		rc = hf_windows_read(read->windows.items, read->windows.len, "spec.mend.windows",
				     mend->windows, err);
	return rc;
}

/* ---- reading the whole spec ------------------------------------------------------------------ */

static void fill_spec(const struct spec *read, struct hf_health_policy_spec *spec)
{
	const struct breaker *breaker = &read->breaker;
	bool own_breaker = hf_field_has(breaker->present, BREAKER_COUNT) ||
			   hf_field_has(breaker->present, BREAKER_PERCENT);

	*spec = (struct hf_health_policy_spec){
		.mode = hf_str_or(read->mode, "observe"),
		.paused = read->paused,
		.has_selector = hf_field_has(read->present, SPEC_SELECTOR),
		.has_exclude = hf_field_has(read->present, SPEC_EXCLUDE),
		.has_pod_selector = hf_field_has(read->drain.present, DRAIN_PODS),
		.breaker = {.count = or_else(breaker->present, BREAKER_COUNT, breaker->count, -1),
			    .percent = or_else(breaker->present, BREAKER_PERCENT, breaker->percent,
					       own_breaker ? -1 : 20)},
		.breaker_window =
			span_or(breaker->present, BREAKER_WINDOW, breaker->window, 5 * HF_MINUTE),
		.breaker_epoch = breaker->epoch,
		.quarantine_devices = hf_streq(read->quarantine, "Device"),
		.drain_evicts = !hf_streq(read->drain.mode, "complete"),
		.drain_grace = span_or(read->drain.present, DRAIN_GRACE, read->drain.grace,
				       30 * HF_SECOND),
		.drain_timeout = span_or(read->drain.present, DRAIN_TIMEOUT, read->drain.timeout,
					 10 * HF_MINUTE),
		.late_pods = read->drain.late_pods,
		.stale_after = span_or(read->present, SPEC_STALE, read->stale, 15 * HF_MINUTE),
		.taints_len = read->taints.len,
	};
	for (size_t i = 0; i < read->taints.len; i++)
		spec->taints[i] = read->taints.items[i];
	read_budget(&read->budget, spec);
}

static int check_words(const struct spec *read, struct hf_error *err)
{
	const char *mode = hf_str_or(read->mode, "observe");
	const char *drain = hf_str_or(read->drain.mode, "immediate");
	const char *quarantine = hf_str_or(read->quarantine, "Node");

	if (!hf_streq(mode, "observe") && !hf_streq(mode, "quarantine") &&
	    !hf_streq(mode, "remediate"))
		return hf_error_set(err, HF_E_INVALID,
				    "spec.mode: Unsupported value: \"%s\": supported values: "
				    "\"observe\", \"quarantine\", \"remediate\"",
				    mode);
	if (!hf_streq(drain, "immediate") && !hf_streq(drain, "complete"))
		return hf_error_set(err, HF_E_INVALID,
				    "spec.drain.mode: Unsupported value: \"%s\": supported values: "
				    "\"complete\", \"immediate\"",
				    drain);
	if (!hf_streq(quarantine, "Device") && !hf_streq(quarantine, "Node"))
		return hf_error_set(err, HF_E_INVALID,
				    "spec.quarantine: Unsupported value: \"%s\": supported values: "
				    "\"Device\", \"Node\"",
				    quarantine);
	return 0;
}

/* Refuses a topology key or taint key that no label or taint can have: such a policy would match
 * nothing. */
static int check_names(const struct spec *read, struct hf_error *err)
{
	const char *key = read->budget.domain.key;
	const char *problem = hf_str_is_empty(key) ? NULL : hf_qualified_name_problem(key);

	if (problem != NULL)
		return hf_error_set(err, HF_E_INVALID,
				    "spec.budget.perDomain.topologyKey: Invalid value: \"%s\": %s",
				    key, problem);
	for (size_t i = 0; i < read->taints.len; i++) {
		problem = hf_qualified_name_problem(read->taints.items[i]);
		if (problem != NULL)
			return hf_error_set(
				err, HF_E_INVALID,
				"spec.unavailableTaints[%zu]: Invalid value: \"%s\": %s", i,
				read->taints.items[i], problem);
	}
	return 0;
}

int hf_health_policy_read(struct hf_doc *doc, struct hf_arena *arena,
			  struct hf_health_policy_spec *ret_spec, struct hf_error *err)
{
	static const struct hf_fields_options strict = {.root = "spec", .strict = true};
	const struct hf_json *json = hf_json_get(hf_doc_json(doc), "spec");
	struct spec read = {.present = 0};
	int rc = 0;

	if (json != NULL)
		rc = hf_fields_read(&spec_table, json, &strict, arena, &read, err);
	if (rc == 0)
		rc = check_words(&read, err);
	if (rc == 0)
		rc = check_names(&read, err);
	if (rc != 0)
		return rc;
	fill_spec(&read, ret_spec);
	return read_mend(&read, &ret_spec->mend, err);
}

/* ---- reading the status ---------------------------------------------------------------------- */

struct recent {
	uint64_t present;
	const char *node, *job;
	hf_time at, off;
	bool done;
};
enum { RECENT_AT, RECENT_OFF };
static const struct hf_field recent_fields[] = {
	[RECENT_AT] = HF_FIELD_TIME("time", struct recent, at, 0),
	[RECENT_OFF] = HF_FIELD_TIME("takenOff", struct recent, off, 0),
	HF_FIELD_STRING("node", struct recent, node, 0, 0),
	HF_FIELD_STRING("job", struct recent, job, 0, 0),
	HF_FIELD_BOOL("done", struct recent, done, 0),
};
static const struct hf_field_table recent_table = HF_FIELD_TABLE(recent_fields, struct recent);

struct kept_breaker {
	uint64_t present;
	const char *state;
	int64_t epoch;
	hf_time opened, closed;
};
enum { KEPT_OPENED, KEPT_CLOSED };
static const struct hf_field kept_fields[] = {
	[KEPT_OPENED] = HF_FIELD_TIME("openedTime", struct kept_breaker, opened, 0),
	[KEPT_CLOSED] = HF_FIELD_TIME("closedTime", struct kept_breaker, closed, 0),
	HF_FIELD_STRING("state", struct kept_breaker, state, 0, 0),
	HF_FIELD_INT64("epoch", struct kept_breaker, epoch, 0, INT32_MAX, 0),
};
static const struct hf_field_table kept_table = HF_FIELD_TABLE(kept_fields, struct kept_breaker);

struct memory {
	uint64_t present;
	struct kept_breaker breaker;
	HF_LIST(struct recent) recent;
};
enum { MEMORY_BREAKER };
static const struct hf_field memory_fields[] = {
	[MEMORY_BREAKER] = HF_FIELD_OBJECT("breaker", struct memory, breaker, &kept_table, 0),
	HF_FIELD_OBJECTS("recent", struct memory, recent, &recent_table,
			 HF_HEALTH_POLICY_RECENT_MAX, 0),
};
static const struct hf_field_table memory_table = HF_FIELD_TABLE(memory_fields, struct memory);

struct whole {
	uint64_t present;
	struct memory status;
};
static const struct hf_field whole_fields[] = {
	HF_FIELD_OBJECT("status", struct whole, status, &memory_table, 0),
};
static const struct hf_field_table whole_table = HF_FIELD_TABLE(whole_fields, struct whole);

void hf_health_policy_read_memory(struct hf_doc *doc, struct hf_arena *arena,
				  struct hf_health_policy_memory *ret_memory)
{
	struct whole read = {.present = 0};
	const struct kept_breaker *b = &read.status.breaker;
	struct hf_policy_recent *recent;
	size_t n = 0;

	if (hf_fields_read_doc(&whole_table, doc, &lenient, arena, &read, NULL) < 0)
		read = (struct whole){.present = 0};
	recent = HF_ARENA_ARRAY(arena, struct hf_policy_recent, read.status.recent.len + 1);
	for (size_t i = 0; i < read.status.recent.len; i++) {
		const struct recent *r = &read.status.recent.items[i];

		if (hf_str_is_empty(r->node) || !hf_field_has(r->present, RECENT_AT))
			continue;
		recent[n++] = (struct hf_policy_recent){
			.node = r->node,
			.job = hf_str_or(r->job, ""),
			.at = r->at,
			.done = r->done,
			.off = hf_field_time(r->present, RECENT_OFF, r->off)};
	}
	*ret_memory = (struct hf_health_policy_memory){
		.breaker_open = hf_field_has(read.status.present, MEMORY_BREAKER) &&
				!hf_streq(b->state, "Closed"),
		.breaker_epoch = b->epoch,
		.breaker_opened_at = hf_field_time(b->present, KEPT_OPENED, b->opened),
		.breaker_closed_at = hf_field_time(b->present, KEPT_CLOSED, b->closed),
		.recent = {recent, n},
	};
}

/* ---- writing the status ---------------------------------------------------------------------- */

static const char *transition_time(const struct hf_json *before, const char *status, char text[])
{
	const struct hf_json *old = hf_json_item(hf_json_get(before, "conditions"), 0);
	const char *at = hf_json_path_str(old, "lastTransitionTime", NULL);

	return at != NULL && hf_streq(hf_json_path_str(old, "status", NULL), status) ? at : text;
}

static struct hf_json *accepted_conditions(const struct hf_health_policy_status *status,
					   const struct hf_json *before, hf_time now)
{
	struct hf_json *list = hf_json_array(), *condition = hf_json_object();
	const char *word = status->problem == NULL ? "True" : "False";
	char text[HF_TIME_TEXT_MAX];

	hf_time_format(now, text);
	hf_json_set_str(condition, "type", "Accepted");
	hf_json_set_str(condition, "status", word);
	hf_json_set_str(condition, "reason", status->problem == NULL ? "Valid" : "Invalid");
	hf_json_set_str(condition, "message", hf_str_or(status->problem, "the policy is in force"));
	hf_json_set_i64(condition, "observedGeneration", status->generation);
	hf_json_set_str(condition, "lastTransitionTime", transition_time(before, word, text));
	hf_json_append(list, condition);
	return list;
}

static struct hf_json *breaker_json(const struct hf_health_policy_status *status)
{
	const struct hf_health_policy_memory *memory = &status->memory;
	struct hf_json *breaker = hf_json_object();

	hf_json_set_str(breaker, "state", memory->breaker_open ? "Open" : "Closed");
	hf_json_set_i64(breaker, "epoch", memory->breaker_epoch);
	hf_write_micro_time(breaker, "openedTime", memory->breaker_opened_at);
	hf_write_micro_time(breaker, "closedTime", memory->breaker_closed_at);
	/* A merge patch removes a member that is null, so an absent message is written as null. */
	if (status->breaker_message == NULL)
		hf_json_set(breaker, "message", hf_json_null());
	else
		hf_json_set_str(breaker, "message", status->breaker_message);
	return breaker;
}

static struct hf_json *recent_json(const struct hf_health_policy_memory *memory)
{
	struct hf_json *list = hf_json_array();

	for (size_t i = 0; i < memory->recent.len; i++) {
		const struct hf_policy_recent *r = &memory->recent.items[i];
		struct hf_json *item = hf_json_object();

		hf_json_set_str(item, "node", r->node);
		hf_write_micro_time(item, "time", r->at);
		hf_write_text(item, "job", r->job);
		hf_json_set_bool(item, "done", r->done);
		hf_write_micro_time(item, "takenOff", r->off);
		hf_json_append(list, item);
	}
	return list;
}

static struct hf_json *nodes_json(const struct hf_health_policy_status *status)
{
	struct hf_json *list = hf_json_array();

	for (size_t i = 0; i < status->nodes.len && i < HF_HEALTH_POLICY_NODES_MAX; i++) {
		const struct hf_policy_node *n = &status->nodes.items[i];
		struct hf_json *item = hf_json_object();

		hf_json_set_str(item, "name", n->name);
		hf_write_text(item, "state", n->state);
		hf_write_text(item, "class", n->cls);
		hf_json_set_bool(item, "quarantined", n->quarantined);
		hf_json_set_str(item, "answer", n->answer);
		hf_write_text(item, "next", n->next);
		hf_write_text(item, "why", n->why);
		hf_json_set_i64(item, "pods", n->pods);
		hf_json_append(list, item);
	}
	return list;
}

static void set_left(struct hf_json *object, const char *key, int32_t left)
{
	/* A merge patch removes a member that is null, so an unknown number is written as null. */
	if (left < 0)
		hf_json_set(object, key, hf_json_null());
	else
		hf_json_set_i64(object, key, left);
}

struct hf_json *hf_health_policy_status_json(const struct hf_health_policy_status *status,
					     const struct hf_json *before, hf_time now)
{
	struct hf_json *json = hf_json_object(), *counts = hf_json_object();
	struct hf_json *budget = hf_json_object();
	size_t more = status->nodes.len > HF_HEALTH_POLICY_NODES_MAX
			      ? status->nodes.len - HF_HEALTH_POLICY_NODES_MAX
			      : 0;

	hf_json_set_i64(json, "observedGeneration", status->generation);
	hf_json_set_str(json, "mode", status->mode);
	hf_json_set(json, "conditions", accepted_conditions(status, before, now));
	hf_json_set(json, "breaker", breaker_json(status));
	hf_json_set_i64(counts, "selected", status->selected);
	hf_json_set_i64(counts, "unhealthy", status->unhealthy);
	hf_json_set_i64(counts, "quarantined", status->quarantined);
	hf_json_set_i64(counts, "unavailable", status->unavailable);
	hf_json_set_i64(counts, "silent", status->silent);
	hf_json_set(json, "counts", counts);
	set_left(budget, "unavailableLeft", status->unavailable_left);
	set_left(budget, "quarantinesLeft", status->quarantines_left);
	hf_json_set(json, "budget", budget);
	hf_json_set(json, "recent", recent_json(&status->memory));
	hf_json_set(json, "nodes", nodes_json(status));
	hf_json_set_i64(json, "moreNodes", (int64_t)more);
	return json;
}

struct hf_doc *hf_eviction(const char *ns, const char *name, const char *uid)
{
	struct hf_json *eviction = hf_json_object(), *meta = hf_json_object();
	struct hf_json *options = hf_json_object();

	hf_json_set_str(eviction, "apiVersion", "policy/v1");
	hf_json_set_str(eviction, "kind", "Eviction");
	hf_json_set_str(meta, "namespace", ns);
	hf_json_set_str(meta, "name", name);
	hf_json_set(eviction, "metadata", meta);
	hf_json_set_str(hf_json_ensure_object(options, "preconditions"), "uid", uid);
	hf_json_set(eviction, "deleteOptions", options);
	return hf_doc_from_json(eviction);
}
