/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/check_internal.h"

#include "api/health_policy.h"
#include "base/str.h"
#include "cli/facts.h"
#include "cli/node_devices.h"
#include "cli/remediation.h"
#include "cli/rollout.h"
#include "core/model/names.h"

#include <string.h>

/* Rules of `holdfast check` about nodes, pods and acts: agents, drivers, images, Remediations, DeviceRollouts. */

/* ---- agents ------------------------------------------------------------------------------------------ */

/* True if the node has an accelerator of a maker that the agent knows. */
static bool has_accelerator(const struct hf_json *node)
{
	const struct hf_json *capacity = hf_json_path(node, "status", "capacity", NULL);
	struct hf_json *value;
	const char *key;

	for (void *it = NULL; (it = hf_json_next(capacity, it, &key, &value)) != NULL;)
		if ((hf_str_has_prefix(key, "nvidia.com/") || hf_str_has_prefix(key, "amd.com/")) &&
		    !hf_streq(hf_json_str(value, "0"), "0"))
			return true;
	return false;
}

void hf_check_agents(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	HF_AUTO_CHECK_NAMES silent = HF_CHECK_NAMES_INIT;
	size_t n = 0;

	if (!hf_check_known(facts, HF_CHECK_NODES, "agents", lines) ||
	    !hf_check_known(facts, HF_CHECK_DEVICEHEALTHS, "agents", lines))
		return;
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_NODES); i++) {
		const struct hf_json *node = hf_check_item(facts, HF_CHECK_NODES, i);
		const struct hf_json *health =
			hf_check_find(facts, HF_CHECK_DEVICEHEALTHS, hf_check_name_of(node));
		hf_time seen =
			hf_facts_time(hf_json_path_str(health, "status", "observedTime", NULL));

		if (!has_accelerator(node))
			continue;
		n++;
		if (health == NULL || seen == HF_TIME_NONE)
			hf_check_name(&silent, "%s (no report)", hf_check_name_of(node));
		else if (facts->now - seen > HF_CLI_AGENT_SILENT)
			hf_check_name(&silent, "%s (silent for %lld min)", hf_check_name_of(node),
				      (long long)((facts->now - seen) / HF_MINUTE));
	}
	if (silent.len > 0 && silent.len == n && hf_check_len(facts, HF_CHECK_DEVICEHEALTHS) == 0)
		hf_check_add(
			lines, HF_CHECK_WARN, "agents",
			"holdfast manifests --agent --image IMAGE | kubectl apply -f -",
			"no agent: nodes with accelerators: %zu; their device faults stay unseen",
			n);
	else if (silent.len > 0)
		hf_check_add(
			lines, HF_CHECK_WARN, "agents",
			"look at the agent's pods on these nodes (kubectl -n holdfast-agent get pods -o wide)",
			"%zu of %zu nodes with accelerators have no report of an agent of the last 15 "
			"minutes: %s",
			silent.len, n, hf_check_names_end(&silent));
	else if (n == 0)
		hf_check_add(lines, HF_CHECK_OK, "agents", NULL,
			     "no node has accelerators of NVIDIA or AMD, so no agent is needed");
	else
		hf_check_add(lines, HF_CHECK_OK, "agents", NULL,
			     "an agent reports for each node with accelerators (%zu)", n);
}

/* ---- drivers ------------------------------------------------------------------------------------------ */

/* The versions of the driver over the fleet, each with the number of its nodes. */
#define VERSIONS_MAX 8
struct versions {
	struct {
		const char *text;
		size_t nodes;
	} items[VERSIONS_MAX];
	size_t len;
	size_t others; /* nodes with versions beyond the list */
};

static void count_version(struct versions *versions, const char *text)
{
	for (size_t i = 0; i < versions->len; i++)
		if (hf_streq(versions->items[i].text, text)) {
			versions->items[i].nodes++;
			return;
		}
	if (versions->len == VERSIONS_MAX) {
		versions->others++;
		return;
	}
	versions->items[versions->len].text = text;
	versions->items[versions->len++].nodes = 1;
}

static void add_versions_line(const struct versions *versions, struct hf_check_lines *lines)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);

	for (size_t i = 0; i < versions->len; i++)
		hf_strbuf_addf(&text, "%s%s (%zu)", i > 0 ? ", " : "", versions->items[i].text,
			       versions->items[i].nodes);
	if (versions->others > 0)
		hf_strbuf_addf(&text, ", others (%zu)", versions->others);
	if (versions->len > 0)
		hf_check_add(lines, HF_CHECK_OK, "drivers", NULL,
			     "versions of the GPU driver, with numbers of nodes: %s", text.data);
}

void hf_check_drivers(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	HF_AUTO_CHECK_NAMES mixed = HF_CHECK_NAMES_INIT;
	struct versions versions = {.len = 0};

	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_DEVICEHEALTHS); i++) {
		const struct hf_json *health = hf_check_item(facts, HF_CHECK_DEVICEHEALTHS, i);
		const char *version = hf_json_path_str(health, "status", "driverVersion", NULL);
		HF_AUTO_STRBUF text = HF_STRBUF_INIT(512);

		if (hf_driver_versions(health, &text))
			hf_check_name(&mixed, "%s (%s)", hf_check_name_of(health), text.data);
		if (!hf_str_is_empty(version))
			count_version(&versions, version);
	}
	if (mixed.len > 0)
		hf_check_add(
			lines, HF_CHECK_WARN, "drivers",
			"restart the node, or reload the driver on it: an update left parts of two versions",
			"parts of the GPU driver have different versions on: %s",
			hf_check_names_end(&mixed));
	add_versions_line(&versions, lines);
}

/* ---- images ------------------------------------------------------------------------------------------ */

static bool is_pull_error(const char *reason)
{
	static const char *const reasons[] = {"ErrImagePull", "ImagePullBackOff",
					      "InvalidImageName", "ErrImageNeverPull",
					      "RegistryUnavailable"};

	for (size_t i = 0; i < HF_ARRAY_LEN(reasons); i++)
		if (hf_streq(reason, reasons[i]))
			return true;
	return false;
}

/* The first container of the pod whose image cannot be pulled; NULL: none. */
static const struct hf_json *find_unpulled(const struct hf_json *pod)
{
	static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};

	for (size_t l = 0; l < HF_ARRAY_LEN(lists); l++) {
		const struct hf_json *list = hf_json_path(pod, "status", lists[l], NULL);

		for (size_t i = 0; i < hf_json_len(list); i++)
			if (is_pull_error(hf_json_path_str(hf_json_item(list, i), "state",
							   "waiting", "reason", NULL)))
				return hf_json_item(list, i);
	}
	return NULL;
}

static void add_image_line(enum hf_check_result result, const char *what, const char *image,
			   struct hf_check_names *names, struct hf_check_lines *lines)
{
	if (names->len > 0)
		hf_check_add(
			lines, result, "images",
			"correct the image's name, its registry's credentials (imagePullSecrets), or push the "
			"image",
			"%s that cannot pull an image: %s; the first image: %s", what,
			hf_check_names_end(names), image);
}

void hf_check_images(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	HF_AUTO_CHECK_NAMES own = HF_CHECK_NAMES_INIT;
	HF_AUTO_CHECK_NAMES jobs = HF_CHECK_NAMES_INIT;
	const char *own_image = "", *job_image = "";

	if (!hf_check_known(facts, HF_CHECK_PODS, "images", lines))
		return;
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_PODS); i++) {
		const struct hf_json *pod = hf_check_item(facts, HF_CHECK_PODS, i);
		const struct hf_json *container = find_unpulled(pod);
		const char *image = hf_str_or(hf_json_path_str(container, "image", NULL), "");
		bool ours = hf_streq(hf_check_label(pod, HF_CHECK_LABEL_NAME), "holdfast");

		if (container == NULL || (!ours && *hf_check_label(pod, HF_LABEL_JOB_NAME) == '\0'))
			continue;
		if (ours && own.len == 0)
			own_image = image;
		else if (!ours && jobs.len == 0)
			job_image = image;
		hf_check_name(ours ? &own : &jobs, "%s/%s", hf_check_ns_of(pod),
			      hf_check_name_of(pod));
	}
	add_image_line(HF_CHECK_FAIL, "pods of Holdfast", own_image, &own, lines);
	add_image_line(HF_CHECK_WARN, "pods of jobs", job_image, &jobs, lines);
	if (own.len == 0 && jobs.len == 0)
		hf_check_add(lines, HF_CHECK_OK, "images", NULL,
			     "no pod of Holdfast or of a job waits for an image");
}

/* ---- Remediations and taints ----------------------------------------------------------------------------- */

#define ACT_LATE (24 * HF_HOUR)

/* The nodes with Holdfast's taint that no operator will remove. */
static void check_taints(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	HF_AUTO_CHECK_NAMES names = HF_CHECK_NAMES_INIT;

	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_NODES); i++) {
		const struct hf_json *node = hf_check_item(facts, HF_CHECK_NODES, i);
		const struct hf_json *taints = hf_json_path(node, "spec", "taints", NULL);

		for (size_t k = 0; k < hf_json_len(taints); k++)
			if (hf_streq(hf_json_path_str(hf_json_item(taints, k), "key", NULL),
				     HF_QUARANTINE_TAINT))
				hf_check_name(&names, "%s", hf_check_name_of(node));
	}
	if (names.len > 0)
		hf_check_add(
			lines, HF_CHECK_WARN, "remediations",
			"kubectl taint node NODE " HF_QUARANTINE_TAINT
			"-, after a look at the node",
			"nodes with Holdfast's quarantine taint, and no operator that would remove it: %s",
			hf_check_names_end(&names));
}

/* Adds the name of a Remediation that does not come to an end. Returns true if it is not at an end. */
static bool find_stuck(const struct hf_check_facts *facts, const struct hf_json *item,
		       bool installed, struct hf_check_names *stuck)
{
	const char *phase = hf_json_path_str(item, "status", "phase", NULL);
	hf_time made = hf_facts_time(hf_json_path_str(item, "metadata", "creationTimestamp", NULL));
	hf_time deleted =
		hf_facts_time(hf_json_path_str(item, "metadata", "deletionTimestamp", NULL));
	bool ended = hf_cli_remediation_has_ended(phase);
	bool late = made != HF_TIME_NONE && facts->now - made > ACT_LATE;

	if (deleted != HF_TIME_NONE && !installed)
		hf_check_name(stuck, "%s (being deleted, its finalizer waits for an operator)",
			      hf_check_name_of(item));
	else if (!ended && (!installed || late))
		hf_check_name(stuck, "%s (%s)", hf_check_name_of(item),
			      hf_str_or(phase, "not begun"));
	return !ended;
}

bool hf_check_wants_acts(const struct hf_check_facts *facts)
{
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_HEALTHPOLICIES); i++) {
		const struct hf_json *spec =
			hf_json_get(hf_check_item(facts, HF_CHECK_HEALTHPOLICIES, i), "spec");

		if (hf_streq(hf_json_path_str(spec, "mode", NULL), "remediate") &&
		    hf_json_get(spec, "mend") != NULL)
			return true;
	}
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_REMEDIATIONS); i++)
		if (!hf_cli_remediation_has_ended(
			    hf_json_path_str(hf_check_item(facts, HF_CHECK_REMEDIATIONS, i),
					     "status", "phase", NULL)))
			return true;
	return false;
}

void hf_check_remediations(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	HF_AUTO_CHECK_NAMES stuck = HF_CHECK_NAMES_INIT;
	size_t before = lines->list.len, open = 0;
	bool installed = hf_check_operator(facts) != NULL;

	if (!hf_check_known(facts, HF_CHECK_REMEDIATIONS, "remediations", lines))
		return;
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_REMEDIATIONS); i++) {
		const struct hf_json *item = hf_check_item(facts, HF_CHECK_REMEDIATIONS, i);

		open += find_stuck(facts, item, installed, &stuck);
	}
	if (stuck.len > 0)
		hf_check_add(
			lines, HF_CHECK_WARN, "remediations",
			installed
				? "'holdfast describe remediation/NAME' says what it waits for; 'kubectl delete "
				  "remediation NAME' withdraws it"
				: "install the operator with --mender, or delete them and their finalizers",
			"acts on nodes that do not come to an end: %s", hf_check_names_end(&stuck));
	if (!installed && facts->lists[HF_CHECK_DEPLOYMENTS].code == 0)
		check_taints(facts, lines);
	if (lines->list.len == before && hf_check_len(facts, HF_CHECK_REMEDIATIONS) == 0)
		hf_check_add(lines, HF_CHECK_OK, "remediations", NULL, "no acts on nodes");
	else if (lines->list.len == before)
		hf_check_add(lines, HF_CHECK_OK, "remediations", NULL,
			     "acts on nodes: %zu, not at an end: %zu",
			     hf_check_len(facts, HF_CHECK_REMEDIATIONS), open);
}

/* ---- DeviceRollouts ------------------------------------------------------------------------------------- */

bool hf_check_wants_rollouts(const struct hf_check_facts *facts)
{
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_ROLLOUTS); i++)
		if (!hf_cli_rollout_has_ended(hf_json_path_str(
			    hf_check_item(facts, HF_CHECK_ROLLOUTS, i), "status", "phase", NULL)))
			return true;
	return false;
}

void hf_check_rollouts(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	HF_AUTO_CHECK_NAMES halted = HF_CHECK_NAMES_INIT;
	HF_AUTO_CHECK_NAMES unseen = HF_CHECK_NAMES_INIT;
	size_t open = 0, n = hf_check_len(facts, HF_CHECK_ROLLOUTS);

	if (!hf_check_known(facts, HF_CHECK_ROLLOUTS, "rollouts", lines))
		return;
	for (size_t i = 0; i < n; i++) {
		const struct hf_json *item = hf_check_item(facts, HF_CHECK_ROLLOUTS, i);
		const char *phase = hf_json_path_str(item, "status", "phase", NULL);

		open += !hf_cli_rollout_has_ended(phase);
		if (hf_streq(phase, "Halted"))
			hf_check_name(&halted, "%s", hf_check_name_of(item));
		else if (phase == NULL)
			hf_check_name(&unseen, "%s", hf_check_name_of(item));
	}
	if (halted.len > 0)
		hf_check_add(lines, HF_CHECK_WARN, "rollouts",
			     "'holdfast why rollout/NAME' says what differed and on which node",
			     "rollouts of drivers that halted: %s", hf_check_names_end(&halted));
	if (unseen.len > 0)
		hf_check_add(lines, HF_CHECK_WARN, "rollouts",
			     "install the operator with --rollouts, and look at its log",
			     "rollouts of drivers that no operator has seen: %s",
			     hf_check_names_end(&unseen));
	if (halted.len + unseen.len == 0 && n == 0)
		hf_check_add(lines, HF_CHECK_OK, "rollouts", NULL, "no rollouts of drivers");
	else if (halted.len + unseen.len == 0)
		hf_check_add(lines, HF_CHECK_OK, "rollouts", NULL,
			     "rollouts of drivers: %zu, not at an end: %zu", n, open);
}
