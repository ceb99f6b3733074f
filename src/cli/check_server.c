/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/check_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/facts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Rules of `holdfast check` about the API server: its version, the clocks, the rights of accounts. */

/* ValidatingAdmissionPolicy v1, which Holdfast's policies use, exists since 1.30. */
#define MINOR_MIN 30
/* The versions of the conformance run. Most parts ran on MINOR_TESTED_MOST, and some parts on the others; the README's
 * table names them. */
#define MINOR_TESTED_FIRST 34
#define MINOR_TESTED_MOST 36
#define MINOR_TESTED_LAST 37

/* The Date header counts whole seconds, and a request takes time. */
#define SKEW_OK (3 * HF_SECOND)
/* Tokens and certificates that begin in the future are refused; the API server allows no more. */
#define SKEW_FAIL (5 * HF_MINUTE)
/* A kubelet renews its Lease every 10 s, and a node counts as lost after 40 s. */
#define RENEWAL_LATE (40 * HF_SECOND)

/* Reads MAJOR and MINOR of "v1.36.3". Returns false for another form. */
static bool read_version(const char *text, int64_t *ret_major, int64_t *ret_minor)
{
	HF_AUTOFREE char *copy = hf_xstrdup(hf_str_or(text, ""));
	char *major = copy[0] == 'v' ? copy + 1 : copy;
	char *minor = strchr(major, '.');

	if (minor == NULL)
		return false;
	*minor++ = '\0';
	minor[strspn(minor, "0123456789")] = '\0';
	return hf_str_to_i64(major, 0, INT32_MAX, ret_major, NULL) == 0 &&
	       hf_str_to_i64(minor, 0, INT32_MAX, ret_minor, NULL) == 0;
}

void hf_check_api_server(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	static const char check[] = "api-server";
	int64_t major, minor;

	if (!read_version(facts->version, &major, &minor)) {
		hf_check_add(lines, HF_CHECK_WARN, check, NULL,
			     "reached; its version is unknown (%s)",
			     hf_str_or(facts->version, "no answer to /version"));
		return;
	}
	if (strstr(facts->version, "+holdfast") != NULL)
		hf_check_add(lines, HF_CHECK_OK, check, NULL,
			     "%s, a 'holdfast up' on one machine: nothing needs to be installed",
			     facts->version);
	else if (major != 1 || minor < MINOR_MIN)
		hf_check_add(lines, HF_CHECK_FAIL, check, "upgrade the cluster",
			     "%s; Holdfast needs Kubernetes 1.%d or later", facts->version,
			     MINOR_MIN);
	else if (minor < MINOR_TESTED_FIRST || minor > MINOR_TESTED_LAST)
		hf_check_add(lines, HF_CHECK_WARN, check,
			     "try Holdfast on a test cluster of this version first",
			     "%s is %s than the tested versions 1.%d to 1.%d", facts->version,
			     minor < MINOR_TESTED_FIRST ? "older" : "newer", MINOR_TESTED_FIRST,
			     MINOR_TESTED_LAST);
	else if (minor == MINOR_TESTED_MOST)
		hf_check_add(lines, HF_CHECK_OK, check, NULL, "%s, a tested version",
			     facts->version);
	else
		hf_check_add(lines, HF_CHECK_OK, check, NULL,
			     "%s; most tests of Holdfast ran on 1.%d, some on this version",
			     facts->version, MINOR_TESTED_MOST);
}

/* ---- clocks ------------------------------------------------------------------------------------------ */

static void check_own_clock(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	hf_time skew = facts->skew, size;

	if (skew == HF_TIME_NONE) {
		hf_check_add(lines, HF_CHECK_WARN, "clock", NULL,
			     "unknown: the API server sends no Date header");
		return;
	}
	size = skew < 0 ? -skew : skew;
	if (size <= SKEW_OK) {
		hf_check_add(lines, HF_CHECK_OK, "clock", NULL,
			     "this machine and the API server agree within %" PRId64 " s",
			     SKEW_OK / HF_SECOND);
		return;
	}
	hf_check_add(lines, size > SKEW_FAIL ? HF_CHECK_FAIL : HF_CHECK_WARN, "clock",
		     "correct the clock of this machine, for example by chrony",
		     "this machine's clock is %" PRId64
		     " s %s the API server's: ages that commands print "
		     "are wrong%s",
		     size / HF_SECOND, skew > 0 ? "ahead of" : "behind",
		     size > SKEW_FAIL ? ", and tokens may be refused" : "");
}

static void check_node_clocks(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	HF_AUTO_CHECK_NAMES wrong = HF_CHECK_NAMES_INIT;
	size_t n = 0;

	if (!hf_check_known(facts, HF_CHECK_LEASES, "node-clocks", lines) ||
	    !hf_check_known(facts, HF_CHECK_NODES, "node-clocks", lines))
		return;
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_LEASES); i++) {
		const struct hf_json *lease = hf_check_item(facts, HF_CHECK_LEASES, i);
		const struct hf_json *node =
			hf_check_find(facts, HF_CHECK_NODES, hf_check_name_of(lease));
		hf_time renewed = hf_facts_time(hf_json_path_str(lease, "spec", "renewTime", NULL));
		hf_time age;

		/* The Lease of a node that is not Ready is old because its kubelet is silent. */
		if (!hf_streq(hf_check_ns_of(lease), HF_CHECK_NODE_LEASES_NS) || node == NULL ||
		    renewed == HF_TIME_NONE || !hf_condition_is_true(node, "Ready"))
			continue;
		n++;
		age = facts->now - renewed;
		if (age < -SKEW_OK)
			hf_check_name(&wrong, "%s (%" PRId64 " s ahead)", hf_check_name_of(lease),
				      -age / HF_SECOND);
		else if (age > RENEWAL_LATE)
			hf_check_name(&wrong, "%s (%" PRId64 " s behind)", hf_check_name_of(lease),
				      age / HF_SECOND);
	}
	if (wrong.len > 0)
		hf_check_add(
			lines, HF_CHECK_WARN, "node-clocks",
			"correct the clocks of these nodes, for example by chrony",
			"by their Leases, the clocks of %zu of %zu ready nodes differ from the API "
			"server's: %s",
			wrong.len, n, hf_check_names_end(&wrong));
	else
		hf_check_add(lines, HF_CHECK_OK, "node-clocks", NULL,
			     "ready nodes: %zu, all agree with the API server", n);
}

void hf_check_clocks(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	check_own_clock(facts, lines);
	check_node_clocks(facts, lines);
}

/* ---- rights ------------------------------------------------------------------------------------------ */

struct answers {
	size_t asked, unknown;
	struct hf_check_names denied;
};

static void count_answers(const struct hf_check_facts *facts, enum hf_check_who who,
			  struct answers *answers)
{
	for (size_t i = 0; i < facts->rights.len; i++) {
		const struct hf_check_right *right = &facts->rights.items[i];

		if (right->who != who)
			continue;
		answers->asked++;
		answers->unknown += right->answer == HF_CHECK_UNKNOWN;
		if (right->answer == HF_CHECK_DENIED)
			hf_check_name(&answers->denied, "%s %s%s%s%s%s", right->verb,
				      right->resource, *right->group != '\0' ? "." : "",
				      right->group, right->ns != NULL ? " in " : "",
				      hf_str_or(right->ns, ""));
	}
}

/* The texts of the rights of one account. */
struct texts {
	const char *check, *whose, *purpose, *action;
	enum hf_check_result result; /* of a missing right */
};

static void report_rights(const struct hf_check_facts *facts, enum hf_check_who who,
			  const struct texts *texts, struct hf_check_lines *lines)
{
	struct answers answers = {.denied = HF_CHECK_NAMES_INIT};

	count_answers(facts, who, &answers);
	if (answers.denied.len > 0)
		hf_check_add(lines, texts->result, texts->check, texts->action,
			     "%s lacks %zu of %zu rights %s: %s", texts->whose, answers.denied.len,
			     answers.asked, texts->purpose, hf_check_names_end(&answers.denied));
	else if (answers.unknown > 0)
		hf_check_add(lines, HF_CHECK_WARN, texts->check,
			     "run this command with an administrator's credentials",
			     "unknown: the server did not say whether %s has %zu of %zu rights %s",
			     texts->whose, answers.unknown, answers.asked, texts->purpose);
	else if (answers.asked > 0)
		hf_check_add(lines, HF_CHECK_OK, texts->check, NULL, "%s has all %zu rights %s",
			     texts->whose, answers.asked, texts->purpose);
	hf_check_names_release(&answers.denied);
}

void hf_check_rights(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	static const struct texts installer = {
		"rights-install", "your account", "to install Holdfast",
		"ask an administrator of the cluster to install it", HF_CHECK_WARN};
	static const struct texts user = {
		"rights-jobs", "your account", "to use jobs in your namespace",
		"ask for a binding of ClusterRole edit, which Holdfast's roles extend",
		HF_CHECK_WARN};
	static const struct texts account = {
		"rights-operator", "the operator's account", "of its manifests",
		"apply the roles again: holdfast manifests --operator | kubectl apply -f -",
		HF_CHECK_FAIL};

	/* Only warnings: a person may have taken these rights away to stop all acts or rollouts. */
	static const struct texts acts = {
		"rights-mend", "the operator's account",
		"to mend nodes as HealthPolicies and Remediations ask",
		"holdfast manifests --mender | kubectl apply -f -, or mender.enabled=true of the "
		"Helm chart",
		HF_CHECK_WARN};
	static const struct texts rollouts = {
		"rights-rollouts", "the operator's account",
		"to change nodes as DeviceRollouts ask",
		"holdfast manifests --rollouts | kubectl apply -f -, or rollouts.enabled=true of the "
		"Helm chart",
		HF_CHECK_WARN};

	if (!facts->as_operator) {
		report_rights(facts, HF_CHECK_INSTALLER, &installer, lines);
		report_rights(facts, HF_CHECK_USER, &user, lines);
		if (hf_check_known(facts, HF_CHECK_DEPLOYMENTS, "rights-operator", lines) &&
		    hf_check_operator(facts) == NULL)
			hf_check_add(lines, HF_CHECK_OK, "rights-operator", NULL,
				     "not checked: the operator is not installed");
	}
	report_rights(facts, HF_CHECK_OPERATOR, &account, lines);
	report_rights(facts, HF_CHECK_MENDER, &acts, lines);
	report_rights(facts, HF_CHECK_ROLLER, &rollouts, lines);
}
