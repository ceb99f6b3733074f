/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/verbs_internal.h"

#include "api/device_health.h"
#include "api/health_policy.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/remediation.h"
#include "cli/text.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/*
 * mend NODE: creates the Remediation for one act in the name of the user. The operator checks it, and acts.
 * Input: the Node, its DeviceHealth, the Remediations of the node. Output: one object.
 * --dry-run creates an object that does nothing, prints the operator's answer and deletes the object.
 * mend --cancel NAME: sets spec.cancel.
 */

#define ARENA_BYTES_MAX ((size_t)16 << 20)
#define TEXT_MAX ((size_t)4096)
#define NAMES_TRIED 4 /* another creator may take the same number */
#define ANSWER_SPAN (15 * HF_SECOND)
#define LOOK_SPAN (200 * HF_MS)
#define NONCE_BYTES (HF_REMEDIATION_NONCE_LEN / 2)

/* The kind of a user's own name. Kubernetes has it since 1.28. */
static const struct hf_resource self_reviews = {.group = "authentication.k8s.io",
						.version = "v1",
						.plural = "selfsubjectreviews",
						.singular = "selfsubjectreview",
						.kind = "SelfSubjectReview"};

struct mending {
	struct hf_cli *cli;
	struct hf_arena *arena;
	struct hf_doc *node;
	struct hf_device_health health;
	bool has_health, dry_run;
	struct hf_remediation_spec spec;
	char nonce[HF_REMEDIATION_NONCE_LEN + 1];
	bool chosen[HF_DEVICE_HEALTH_DEVICES_MAX]; /* devices of the act */
};

/* ---- what the cluster has ------------------------------------------------------------------------ */

static int read_node(struct mending *m, const char *name, struct hf_error *err)
{
	const struct hf_request node = {.verb = HF_VERB_GET, .resource = &hf_nodes, .name = name};
	const struct hf_request health = {
		.verb = HF_VERB_GET, .resource = &hf_devicehealths, .name = name};
	HF_AUTO_CLI_REPLY reply = {.object = NULL}, report = {.object = NULL};
	int rc = hf_cli_request(m->cli, &node, &reply, err);

	if (rc != 0)
		return rc;
	m->node = hf_steal(&reply.object);
	rc = hf_cli_request(m->cli, &health, &report, err);
	if (rc == 0) {
		hf_device_health_read(report.object, m->arena, &m->health);
		m->has_health = true;
	}
	return rc == HF_E_NOT_FOUND ? 0 : rc;
}

/* Without the kind on the server the field stays empty, and the admission policy decides. */
static void read_user(struct mending *m)
{
	struct hf_json *review = hf_json_object();
	HF_AUTO_CLI_REPLY reply = {.object = NULL};

	hf_json_set_str(review, "apiVersion", "authentication.k8s.io/v1");
	hf_json_set_str(review, "kind", "SelfSubjectReview");

	HF_AUTO_DOC body = hf_doc_from_json(review);
	const struct hf_request request = {
		.verb = HF_VERB_CREATE, .resource = &self_reviews, .body = body};

	if (hf_cli_request(m->cli, &request, &reply, NULL) == 0 && reply.object != NULL)
		m->spec.requested_by = hf_arena_strdup(
			m->arena, hf_str_or(hf_json_path_str(hf_doc_json(reply.object), "status",
							     "userInfo", "username", NULL),
					    ""));
}

/* Finds the highest number of an act on the node. */
static int read_last_attempt(struct mending *m, struct hf_error *err)
{
	const struct hf_request request = {.verb = HF_VERB_LIST, .resource = &hf_remediations};
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	int rc = hf_cli_request(m->cli, &request, &reply, err);

	m->spec.attempt = 0;
	for (size_t i = 0; rc == 0 && i < reply.n_items; i++) {
		const struct hf_json *spec = hf_json_get(hf_doc_json(reply.items[i]), "spec");
		int64_t attempt = hf_json_i64(hf_json_get(spec, "attempt"), 0);

		if (hf_streq(hf_json_path_str(spec, "node", NULL), m->spec.node) &&
		    attempt > m->spec.attempt && attempt < INT32_MAX)
			m->spec.attempt = (int32_t)attempt;
	}
	return rc;
}

/* ---- devices and rung ----------------------------------------------------------------------------- */

static bool is_out(const struct hf_device_report *device)
{
	/* As hf_health_is_out of health/types.h. */
	static const char *const states[] = {"Unhealthy", "Quarantined", "Remediating", "Failed"};

	for (size_t i = 0; i < HF_ARRAY_LEN(states); i++)
		if (hf_streq(device->state, states[i]))
			return true;
	return false;
}

/* The device is out of use, or a fault counts against it now. */
static bool is_ill(const struct hf_device_report *device)
{
	for (size_t i = 0; i < device->faults.len; i++)
		if (device->faults.items[i].acts)
			return true;
	return is_out(device);
}

/* nvidia-smi prints "00000000:1A:00.0" for the PCI address that the kernel and the report call "0000:1a:00.0". */
static bool is_same_address(const char *id, const char *word)
{
	return strchr(word, ':') != NULL &&
	       strcasecmp(id + strspn(id, "0"), word + strspn(word, "0")) == 0;
}

static bool is_named(const struct hf_device_report *device, const char *word)
{
	return !hf_str_is_empty(word) &&
	       (hf_streq(device->id, word) || hf_streq(device->uuid, word) ||
		is_same_address(hf_str_or(device->id, ""), word));
}

static int refuse_device(const struct mending *m, const char *word, struct hf_error *err)
{
	HF_AUTO_STRBUF known = HF_STRBUF_INIT(TEXT_MAX);

	for (size_t i = 0; i < m->health.devices.len; i++) {
		const struct hf_device_report *device = &m->health.devices.items[i];

		if (!hf_str_is_empty(device->uuid))
			hf_strbuf_addf(&known, "%s%s", known.len > 0 ? ", " : "", device->id);
	}
	if (!m->has_health)
		return hf_error_set(err, HF_E_NOT_FOUND,
				    "no agent reports the devices of node '%s': there is no "
				    "DeviceHealth of that name",
				    m->spec.node);
	return hf_error_set(err, HF_E_NOT_FOUND,
			    "node '%s' has no device '%s' with a UUID; its devices: %s",
			    m->spec.node, word, known.len > 0 ? known.data : "none");
}

static int choose_named(struct mending *m, const char *word, struct hf_error *err)
{
	for (size_t i = 0; i < m->health.devices.len && i < HF_DEVICE_HEALTH_DEVICES_MAX; i++) {
		const struct hf_device_report *device = &m->health.devices.items[i];

		if (!is_named(device, word) || hf_str_is_empty(device->uuid))
			continue;
		m->chosen[i] = true;
		return 0;
	}
	return refuse_device(m, word, err);
}

static int choose_devices(struct mending *m, struct hf_error *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < m->cli->n_flags; i++)
		if (hf_streq(m->cli->flags[i].flag->name, "device"))
			rc = choose_named(m, m->cli->flags[i].value, err);
	return rc;
}

static bool chose_any(const struct mending *m)
{
	for (size_t i = 0; i < HF_DEVICE_HEALTH_DEVICES_MAX; i++)
		if (m->chosen[i])
			return true;
	return false;
}

/* The rung that the failed devices need by the agent's report; chooses the devices for a reset. */
static const char *rung_of_faults(struct mending *m)
{
	bool resets = false, reboots = false;

	for (size_t i = 0; i < m->health.devices.len && i < HF_DEVICE_HEALTH_DEVICES_MAX; i++) {
		const struct hf_device_report *device = &m->health.devices.items[i];
		bool by_reset = is_out(device) && hf_streq(device->action, "reset-device") &&
				!hf_str_is_empty(device->uuid);

		reboots |= is_out(device) && hf_streq(device->action, "restart-node");
		resets |= by_reset;
		m->chosen[i] = by_reset;
	}
	return reboots ? "reboot" : resets ? "reset-device" : NULL;
}

static int choose_rung(struct mending *m, struct hf_error *err)
{
	const char *rung = hf_cli_flag(m->cli, "rung");
	int rc = choose_devices(m, err);

	if (rc != 0)
		return rc;
	if (rung == NULL)
		rung = chose_any(m) ? "reset-device" : rung_of_faults(m);
	if (rung == NULL)
		return hf_error_set(
			err, HF_E_INVALID,
			"by its agent's report no device of node '%s' needs a reset or a "
			"reboot; to act all the same, give --device or --rung, and "
			"--although-well if nothing has a fault",
			m->spec.node);
	if (hf_streq(rung, "reset-device") && !chose_any(m))
		(void)rung_of_faults(m);
	if (hf_streq(rung, "reset-device") && !chose_any(m))
		return hf_error_set(
			err, HF_E_INVALID,
			"a reset needs a device: no failed device of node '%s' needs one, "
			"so give --device",
			m->spec.node);
	m->spec.rung = rung;
	return 0;
}

/* ---- the spec ------------------------------------------------------------------------------------- */

/* Takes the newest active fault of the device into the spec, unless the spec has a newer fault. */
static void take_fault(struct mending *m, const struct hf_device_report *device)
{
	for (size_t i = 0; i < device->faults.len; i++) {
		const struct hf_device_fault *fault = &device->faults.items[i];

		if (!fault->acts || fault->cls == NULL ||
		    (m->spec.fault.cls != NULL && fault->last <= m->spec.fault.at))
			continue;
		m->spec.fault.cls = fault->cls;
		m->spec.fault.code = fault->code;
		m->spec.fault.at = fault->last;
		m->spec.fault.text = hf_str_or(fault->line, fault->detector);
	}
}

static int fill_devices(struct mending *m, struct hf_error *err)
{
	bool resets =
		hf_streq(m->spec.rung, "reset-device") || hf_streq(m->spec.rung, "restart-process");
	bool all = !chose_any(m);

	m->spec.devices.items = HF_ARENA_ARRAY(m->arena, struct hf_remediation_device,
					       HF_DEVICE_HEALTH_DEVICES_MAX);
	for (size_t i = 0; i < m->health.devices.len && i < HF_DEVICE_HEALTH_DEVICES_MAX; i++) {
		const struct hf_device_report *device = &m->health.devices.items[i];

		if (is_ill(device) && (all || m->chosen[i] || !resets))
			take_fault(m, device);
		if (resets && m->chosen[i])
			m->spec.devices.items[m->spec.devices.len++] =
				(struct hf_remediation_device){.id = device->id,
							       .uuid = device->uuid};
	}
	if (m->spec.devices.len > HF_REMEDIATION_DEVICES_MAX)
		return hf_error_set(err, HF_E_INVALID,
				    "an act resets at most %d devices, not %zu: give --device",
				    HF_REMEDIATION_DEVICES_MAX, m->spec.devices.len);
	return 0;
}

/* A person may mean another node. */
static int refuse_well(const struct mending *m, struct hf_error *err)
{
	if (m->spec.fault.cls != NULL || hf_cli_has(m->cli, "although-well"))
		return 0;
	return hf_error_set(err, HF_E_CONFLICT,
			    m->has_health
				    ? "by its agent's report nothing that this act would mend on "
				      "node '%s' has a fault; --although-well acts all the same"
				    : "no agent reports the devices of node '%s'; "
				      "--although-well acts all the same",
			    m->spec.node);
}

static int make_nonce(struct mending *m, struct hf_error *err)
{
	unsigned char bytes[NONCE_BYTES];
	int rc = hf_random_bytes(bytes, sizeof(bytes), err);

	for (size_t i = 0; rc == 0 && i < sizeof(bytes); i++)
		snprintf(m->nonce + 2 * i, 3, "%02x", bytes[i]);
	m->spec.nonce = m->nonce;
	return rc;
}

static int fill_spec(struct mending *m, struct hf_error *err)
{
	const struct hf_json *node = hf_doc_json(m->node);
	int rc = choose_rung(m, err);

	if (rc == 0)
		rc = fill_devices(m, err);
	if (rc == 0)
		rc = refuse_well(m, err);
	if (rc == 0)
		rc = make_nonce(m, err);
	if (rc != 0)
		return rc;
	/* In another boot the reason for the act may be gone. */
	m->spec.boot_id = hf_json_path_str(node, "status", "nodeInfo", "bootID", NULL);
	m->spec.policy = hf_cli_flag(m->cli, "policy");
	m->spec.deadline_seconds = HF_REMEDIATION_DEADLINE_DEFAULT;
	m->spec.dry_run = m->dry_run;
	read_user(m);
	return 0;
}

/* ---- the create ------------------------------------------------------------------------------------ */

static int create_object(struct mending *m, char ret_name[HF_REMEDIATION_NAME_MAX],
			 struct hf_error *err)
{
	int rc = HF_E_EXISTS;

	for (int i = 0; rc == HF_E_EXISTS && i < NAMES_TRIED; i++) {
		HF_AUTO_CLI_REPLY reply = {.object = NULL};
		HF_AUTO_DOC body = NULL;
		struct hf_request request = {.verb = HF_VERB_CREATE, .resource = &hf_remediations};

		rc = read_last_attempt(m, err);
		if (rc != 0)
			return rc;
		m->spec.attempt++;
		hf_remediation_name(m->spec.node, m->spec.attempt, ret_name);
		body = hf_doc_from_json(hf_remediation_object(&m->spec));
		request.body = body;
		rc = hf_cli_request(m->cli, &request, &reply, err);
	}
	return rc;
}

static void print_act(const struct mending *m, const char *before)
{
	HF_AUTO_STRBUF devices = HF_STRBUF_INIT(TEXT_MAX);

	if (m->spec.devices.len > 0) {
		hf_strbuf_addstr(&devices, " of ");
		hf_cli_remediation_devices(&m->spec, &devices);
	}
	fputs(before, m->cli->out);
	hf_text_print_safe(m->cli->out, m->spec.rung);
	hf_text_print_safe(m->cli->out, devices.data);
	fputs(" on node ", m->cli->out);
	hf_text_print_safe(m->cli->out, m->spec.node);
	fputc('\n', m->cli->out);
}

/* ---- the dry run ----------------------------------------------------------------------------------- */

/* The pods that have to leave before a reset, by the agent's report. */
static void print_holders(const struct mending *m)
{
	for (size_t i = 0; i < m->health.devices.len && i < HF_DEVICE_HEALTH_DEVICES_MAX; i++) {
		const struct hf_device_report *device = &m->health.devices.items[i];

		for (size_t k = 0; m->chosen[i] && k < device->holders.len; k++) {
			const struct hf_device_holder *holder = &device->holders.items[k];

			if (holder->until != HF_TIME_NONE)
				continue;
			fputs("  pod that would leave:  ", m->cli->out);
			hf_text_print_safe(m->cli->out, hf_str_or(holder->ns, "?"));
			fputc('/', m->cli->out);
			hf_text_print_safe(m->cli->out, hf_str_or(holder->pod, "?"));
			fputs(", which holds ", m->cli->out);
			hf_text_print_safe(m->cli->out, hf_str_or(device->id, "?"));
			fputc('\n', m->cli->out);
		}
	}
}

static void print_plan(const struct mending *m)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	struct hf_node_marks marks;

	hf_node_marks_read(m->node, arena, &marks);
	print_act(m, "would do: ");
	if (m->spec.fault.cls != NULL) {
		fputs("  fault:                 ", m->cli->out);
		hf_text_print_safe(m->cli->out, m->spec.fault.cls);
		fputs(m->spec.fault.text != NULL ? ", " : "", m->cli->out);
		hf_text_print_safe(m->cli->out, hf_str_or(m->spec.fault.text, ""));
		fputc('\n', m->cli->out);
	}
	print_holders(m);
	if (hf_remediation_disturbs_work(m->spec.rung) && !hf_node_has_quarantine_taint(&marks))
		fputs("  taint that would be put on the node: " HF_QUARANTINE_TAINT "\n",
		      m->cli->out);
}

struct answer {
	struct hf_cli *cli;
	bool over;
};

static void end_pause(void *arg)
{
	struct answer *answer = arg;

	answer->over = true;
	hf_loop_stop(answer->cli->loop);
}

static void pause_for(struct hf_cli *cli, hf_time span)
{
	struct answer answer = {.cli = cli};
	struct hf_timer *timer = hf_timer_create(cli->loop, end_pause, &answer);

	hf_timer_arm(timer, span);
	hf_cli_run_until(cli, &answer.over);
	hf_timer_destroy(timer);
}

/* Waits until the operator has ended the dry run. Returns an exit code. */
static int print_answer(const struct mending *m, const char *name)
{
	const struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_remediations, .name = name};
	hf_time until = hf_loop_mono(m->cli->loop) + ANSWER_SPAN;
	struct hf_error err;

	for (;;) {
		HF_AUTO_CLI_REPLY reply = {.object = NULL};
		const struct hf_json *status;
		const char *phase;

		if (hf_cli_request(m->cli, &request, &reply, &err) != 0)
			return hf_cli_fail(m->cli, &err);
		status = hf_json_get(hf_doc_json(reply.object), "status");
		phase = hf_str_or(hf_json_path_str(status, "phase", NULL), "");
		if (hf_cli_remediation_has_ended(phase)) {
			fputs("operator: ", m->cli->out);
			hf_text_print_safe(
				m->cli->out,
				hf_str_or(hf_json_path_str(status, "message", NULL), phase));
			fputc('\n', m->cli->out);
			return hf_streq(phase, "Succeeded") ? HF_EXIT_OK : HF_EXIT_FAILED;
		}
		if (hf_loop_mono(m->cli->loop) >= until)
			break;
		pause_for(m->cli, LOOK_SPAN);
	}
	(void)hf_error_set(
		&err, HF_E_TIMEOUT,
		"no operator has answered within %d s: is one running that is not limited to "
		"a namespace, with the rights of 'holdfast manifests --mender'?",
		(int)(ANSWER_SPAN / HF_SECOND));
	return hf_cli_fail(m->cli, &err);
}

static int run_dry(struct mending *m, const char *name)
{
	const struct hf_request removal = {.verb = HF_VERB_DELETE,
					   .resource = &hf_remediations,
					   .name = name,
					   .grace_seconds = HF_GRACE_DEFAULT};
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	struct hf_error err;
	int rc;

	print_plan(m);
	rc = print_answer(m, name);
	/* A user without the right to delete leaves a finished object, which does nothing. */
	(void)!hf_cli_request(m->cli, &removal, &reply, &err);
	return rc;
}

/* ---- the verb -------------------------------------------------------------------------------------- */

static int mend_node(struct mending *m, const char *word)
{
	const char *named = hf_cli_node_named(word), *node = named != NULL ? named : word;
	char name[HF_REMEDIATION_NAME_MAX];
	struct hf_error err;

	if (*node == '\0' || strlen(node) > HF_REMEDIATION_NODE_MAX)
		return hf_cli_usage(m->cli, "the name of a node has 1 to %d characters",
				    HF_REMEDIATION_NODE_MAX);
	m->spec.node = node;
	if (read_node(m, node, &err) != 0 || fill_spec(m, &err) != 0 ||
	    create_object(m, name, &err) != 0)
		return hf_cli_fail(m->cli, &err);
	if (m->dry_run)
		return run_dry(m, name);
	fprintf(m->cli->out, "remediation/%s created: ", name);
	print_act(m, "");
	fprintf(m->cli->out,
		"  holdfast describe remediation/%s   what happens\n"
		"  holdfast mend --cancel %s   stops it before the act\n",
		name, name);
	return HF_EXIT_OK;
}

static int cancel_one(struct hf_cli *cli, const char *word)
{
	const char *name = hf_str_or(hf_cli_remediation_named(word), word);
	struct hf_json *patch = hf_json_object();
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	struct hf_error err;
	const char *phase;

	hf_json_set_bool(hf_json_ensure_object(patch, "spec"), "cancel", true);

	HF_AUTO_DOC body = hf_doc_from_json(patch);
	const struct hf_request request = {.verb = HF_VERB_PATCH,
					   .resource = &hf_remediations,
					   .name = name,
					   .body = body,
					   .patch_type = HF_PATCH_MERGE};

	if (hf_cli_request(cli, &request, &reply, &err) != 0)
		return hf_cli_fail(cli, &err);
	phase = hf_str_or(hf_json_path_str(hf_doc_json(reply.object), "status", "phase", NULL),
			  "Pending");
	if (hf_streq(phase, "Pending") || hf_streq(phase, "Draining") ||
	    hf_streq(phase, "Approved")) {
		fprintf(cli->out, "remediation/%s is cancelled unless its act begins now\n", name);
		return HF_EXIT_OK;
	}
	fprintf(cli->err, "holdfast: remediation/%s is %s: too late to cancel\n", name, phase);
	return HF_EXIT_FAILED;
}

static const char *const rungs[] = {"restart-process", "reset-device", "restart-plugin",
				    "reboot",          "external",     "person"};

/* Lists all rungs, and suggests none: the name that is most similar to "reset" is "reboot". */
static int refuse_rung(const struct hf_cli *cli, const char *word)
{
	HF_AUTO_STRBUF known = HF_STRBUF_INIT(TEXT_MAX);

	for (size_t i = 0; i < HF_ARRAY_LEN(rungs); i++)
		hf_strbuf_addf(&known, "%s%s", i > 0 ? ", " : "", rungs[i]);
	return hf_cli_usage(cli, "unknown rung '%s'; the rungs are %s", word, known.data);
}

static int check_words(const struct hf_cli *cli)
{
	/* Flags of an order. With --dry-run a person expects that nothing is cancelled. */
	static const char *const of_acts[] = {"device", "rung", "policy", "although-well",
					      "dry-run"};
	const char *rung = hf_cli_flag(cli, "rung");

	if (hf_cli_has(cli, "cancel") == (cli->n_args == 1))
		return hf_cli_usage(cli, "give NODE, or --cancel NAME");
	for (size_t i = 0; hf_cli_has(cli, "cancel") && i < HF_ARRAY_LEN(of_acts); i++)
		if (hf_cli_has(cli, of_acts[i]))
			return hf_cli_usage(cli, "--cancel takes no --%s", of_acts[i]);
	for (size_t i = 0; rung != NULL && i < HF_ARRAY_LEN(rungs); i++)
		if (hf_streq(rung, rungs[i]))
			return 0;
	return rung == NULL ? 0 : refuse_rung(cli, rung);
}

static int verb_mend(struct hf_cli *cli)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	struct mending m = {.cli = cli, .arena = arena, .dry_run = hf_cli_has(cli, "dry-run")};
	int rc = check_words(cli);

	if (rc == 0)
		rc = hf_cli_has(cli, "cancel") ? cancel_one(cli, hf_cli_flag(cli, "cancel"))
					       : mend_node(&m, cli->args[0]);
	hf_doc_unref(m.node);
	return rc;
}

static const struct hf_flag mend_flags[] = {
	{"device", 0, "ID", "act on this device: its PCI address or UUID; may be given again",
	 NULL},
	{"rung", 0, "RUNG", "what is done: reset-device, reboot, …", "what the node's faults need"},
	{"policy", 0, "NAME", "the HealthPolicy whose limits and windows count", "none"},
	{"although-well", 0, NULL, "act even if the agent reports no fault", NULL},
	{"dry-run", 0, NULL, "print what would be done and what stands in its way", NULL},
	{"cancel", 0, "NAME", "stop this Remediation before its act begins", NULL},
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_mend = {
	.name = "mend",
	.connects = true,
	.takes_kind = true,
	.summary = "Reset a device or reboot a node, in order and with a proof",
	.usage = "NODE | --cancel NAME",
	.note = "The operator empties the node, acts once, waits for the proof, and puts everything back.",
	.group = HF_CLI_ACT,
	.examples = "  holdfast mend gpu-7 --dry-run\n"
		    "  holdfast mend gpu-7 --device 0000:1a:00.0\n"
		    "  holdfast mend gpu-7 --rung reboot\n"
		    "  holdfast mend --cancel gpu-7-3\n",
	.flags = mend_flags,
	.words = HF_CLI_WORDS_MEND,
	.args_max = 1,
	.run = verb_mend,
};
