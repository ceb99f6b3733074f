/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/remediation.h"

#include "api/device_rollout.h"
#include "api/job.h"
#include "base/str.h"
#include "store/resource.h"

#include <inttypes.h>
#include <string.h>

/*
 * The acts and rollouts behind the restarts of a job: acts that answered a device failure of it, and those that evicted its pods.
 * Input: the records in the job's ledger, Remediations and DeviceRollouts. Output: a line for each.
 */

#define ARENA_BYTES_MAX ((size_t)16 << 20)
#define TEXT_MAX ((size_t)4096)
#define RECORD_ACTS (24 * HF_HOUR) /* an act that begins later answers another fault */
#define FAULT_BEFORE                                                                               \
	(10 * HF_MINUTE) /* the agent sees the fault before the operator detects the failure */

/* Times of the act are of the node's clock. */
#define CLOCKS_DIFFER HF_MINUTE

/* ---- acts ------------------------------------------------------------------------------------------- */

static void add_cause(const struct hf_remediation_spec *spec, struct hf_strbuf *text)
{
	if (spec->fault.cls == NULL)
		return;
	if (spec->fault.text != NULL && strstr(spec->fault.text, "Xid") != NULL)
		hf_strbuf_addf(text, " after Xid %" PRId64, spec->fault.code);
	else
		hf_strbuf_addf(text, " after %s %" PRId64, spec->fault.cls, spec->fault.code);
}

static void tell_act(const struct hf_remediation *r, hf_cli_mend_fn fn, void *arg)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);
	hf_time from = r->spec.fault.at != HF_TIME_NONE ? r->spec.fault.at : r->created_at;
	char span[HF_TIME_TEXT_MAX];

	hf_strbuf_addf(&text, "%s: %s of ", r->spec.node, r->spec.rung);
	hf_cli_remediation_devices(&r->spec, &text);
	add_cause(&r->spec, &text);
	if (hf_streq(r->status.phase, "Succeeded") && r->status.proof.at >= from) {
		hf_span_format(r->status.proof.at - from, span);
		hf_strbuf_addf(&text, ", back in %s", span);
	} else {
		hf_strbuf_addf(&text, ": %s%s%s", hf_str_or(r->status.phase, "Pending"),
			       r->status.message != NULL ? ", " : "",
			       hf_str_or(r->status.message, ""));
	}
	hf_strbuf_addf(&text, " (Remediation %s)", r->name);
	fn(arg, r->created_at, text.data);
}

/* A reset mends the devices that it names. An act may name a device by its UUID alone, and a record may name one as the
 * kubelet does, or none: then the act may be of the record's device. */
static bool may_mend(const struct hf_remediation *r, const char *device)
{
	bool is_address = !hf_str_is_empty(device) && strchr(device, ':') != NULL &&
			  device[strspn(device, "0123456789abcdefABCDEF:.")] == '\0';

	if (!is_address || !hf_streq(r->spec.rung, "reset-device"))
		return true;
	for (size_t i = 0; i < r->spec.devices.len; i++) {
		const char *id = r->spec.devices.items[i].id;

		if (hf_str_is_empty(id) || hf_streq(id, device))
			return true;
	}
	return false;
}

static bool read_record(const struct hf_json *record, const char *node, hf_time *ret_at)
{
	const char *at = hf_json_path_str(record, "detectedAt", NULL);

	return hf_streq(hf_json_path_str(record, "node", NULL), node) &&
	       hf_time_parse(hf_str_or(at, ""), ret_at, NULL) == 0;
}

static bool is_eviction(const struct hf_json *record)
{
	return hf_streq(hf_json_path_str(record, "reason", NULL), "EvictionByEvictionAPI");
}

/* The record is of a device failure, and an act on its node that may have mended it began within a day. */
static bool answers_record(const struct hf_remediation *r, const struct hf_json *record)
{
	hf_time at;

	return hf_streq(hf_json_path_str(record, "cause", NULL), "device") &&
	       may_mend(r, hf_json_path_str(record, "device", NULL)) &&
	       read_record(record, r->spec.node, &at) && r->created_at >= at - FAULT_BEFORE &&
	       r->created_at < at + RECORD_ACTS;
}

/* Returns the time after which the act evicts no pods. NONE: it has evicted none. */
static hf_time find_last_eviction(const struct hf_remediation *r)
{
	hf_time last = HF_TIME_NONE;

	if (hf_streq(hf_str_or(r->status.phase, "Pending"), "Pending"))
		return HF_TIME_NONE;
	if (r->status.act.started_at != HF_TIME_NONE)
		return hf_time_add(r->status.act.started_at, CLOCKS_DIFFER);
	if (!hf_streq(r->status.phase, "Failed") && !hf_streq(r->status.phase, "Cancelled"))
		return HF_TIME_NEVER;
	for (size_t i = 0; i < r->status.conditions.len; i++)
		if (r->status.conditions.items[i].since > last)
			last = r->status.conditions.items[i].since;
	return last;
}

/* The pod of the record was evicted while the act emptied its node. */
static bool evicted_for_act(const struct hf_remediation *r, const struct hf_json *record)
{
	hf_time at;

	return is_eviction(record) && read_record(record, r->spec.node, &at) &&
	       r->created_at != HF_TIME_NONE && at >= r->created_at && at <= find_last_eviction(r);
}

/* Returns the time after which the rollout evicts no pods of the node. NONE: it has evicted none. */
static hf_time find_end_of_emptying(const struct hf_rollout_node *entry)
{
	if (entry->changed_at != HF_TIME_NONE)
		return entry->changed_at;
	if (hf_streq(entry->phase, "Waiting") || hf_streq(entry->phase, "Locked"))
		return HF_TIME_NONE;
	return hf_streq(entry->phase, "Cordoned") || hf_streq(entry->phase, "Emptying") ||
			       hf_streq(entry->phase, "Baseline") ||
			       hf_streq(entry->phase, "Changing")
		       ? HF_TIME_NEVER
		       : entry->since;
}

/* The pod of the record was evicted while the rollout emptied its node. */
static bool evicted_for_rollout(const struct hf_rollout *rollout,
				const struct hf_rollout_node *entry, const struct hf_json *record)
{
	hf_time at;

	return is_eviction(record) && read_record(record, entry->name, &at) &&
	       rollout->created_at != HF_TIME_NONE && at >= rollout->created_at &&
	       at <= find_end_of_emptying(entry);
}

/* ---- the records ----------------------------------------------------------------------------------- */

/* The records of the ledger, newest first. NULL: there are no more. */
static const struct hf_json *find_record(const struct hf_json *recovery, size_t i)
{
	return i == 0 ? hf_json_get(recovery, "last")
		      : hf_json_item(hf_json_get(recovery, "history"), i - 1);
}

static size_t count_records(const struct hf_json *recovery)
{
	return 1 + hf_json_len(hf_json_get(recovery, "history"));
}

static void tell_acts(struct hf_cli *cli, const struct hf_json *recovery, hf_cli_mend_fn fn,
		      void *arg)
{
	const struct hf_request request = {.verb = HF_VERB_LIST, .resource = &hf_remediations};
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	struct hf_remediation r;

	if (hf_cli_request(cli, &request, &reply, NULL) != 0)
		return;
	for (size_t i = 0; i < reply.n_items; i++) {
		bool told = false;

		hf_arena_reset(arena);
		if (hf_remediation_read(reply.items[i], arena, &r, NULL) != 0 || r.spec.dry_run)
			continue;
		for (size_t k = 0; k < count_records(recovery); k++)
			told |= answers_record(&r, find_record(recovery, k)) ||
				evicted_for_act(&r, find_record(recovery, k));
		if (told)
			tell_act(&r, fn, arg);
	}
}

static void tell_rollout(const struct hf_rollout *rollout, const struct hf_json *recovery,
			 hf_cli_mend_fn fn, void *arg)
{
	for (size_t i = 0; i < rollout->status.nodes.len; i++) {
		const struct hf_rollout_node *entry = &rollout->status.nodes.items[i];
		HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);
		const struct hf_json *record = NULL;
		hf_time at = HF_TIME_NONE;

		for (size_t k = 0; k < count_records(recovery) && record == NULL; k++)
			if (evicted_for_rollout(rollout, entry, find_record(recovery, k)))
				record = find_record(recovery, k);
		if (record == NULL)
			continue;
		(void)read_record(record, entry->name, &at);
		hf_strbuf_addf(&text, "%s: emptied for DeviceRollout %s, now %s", entry->name,
			       rollout->name, entry->phase);
		fn(arg, at, text.data);
	}
}

static void tell_rollouts(struct hf_cli *cli, const struct hf_json *recovery, hf_cli_mend_fn fn,
			  void *arg)
{
	const struct hf_request request = {.verb = HF_VERB_LIST, .resource = &hf_devicerollouts};
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	struct hf_rollout rollout;

	if (hf_cli_request(cli, &request, &reply, NULL) != 0)
		return;
	for (size_t i = 0; i < reply.n_items; i++) {
		hf_arena_reset(arena);
		if (hf_rollout_read(reply.items[i], arena, &rollout, NULL) == 0)
			tell_rollout(&rollout, recovery, fn, arg);
	}
}

/* Most jobs have no such record: nothing is asked for them. */
void hf_cli_mend_of_job(struct hf_cli *cli, struct hf_doc *job, hf_cli_mend_fn fn, void *arg)
{
	HF_AUTO_JSON recovery = hf_job_recovery(hf_doc_json(job));
	bool device = false, evicted = false;

	for (size_t i = 0; i < count_records(recovery); i++) {
		const struct hf_json *record = find_record(recovery, i);

		device |= hf_streq(hf_json_path_str(record, "cause", NULL), "device");
		evicted |= is_eviction(record);
	}
	if (device || evicted)
		tell_acts(cli, recovery, fn, arg);
	if (evicted)
		tell_rollouts(cli, recovery, fn, arg);
}
