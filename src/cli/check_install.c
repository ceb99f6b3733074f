/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/check_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/facts.h"
#include "framework/framework.h"

#include <string.h>

/* Rules of `holdfast check` about what is installed of Holdfast: CRDs and admission policies. */

#define APPLY_CRDS "holdfast manifests --crds | kubectl apply --server-side -f -"
/* Helm refuses to install over CRDs that kubectl has applied, so before an installation the check does
 * not print APPLY_CRDS. */
#define INSTALL                                                                                    \
	"install Holdfast (docs/how-to/install-operator.md); every way of installation brings "    \
	"the CRDs"

/* ---- CRDs -------------------------------------------------------------------------------------------- */

static const struct hf_json *find_version(const struct hf_json *crd, const char *name)
{
	const struct hf_json *list = hf_json_path(crd, "spec", "versions", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(list, i), "name", NULL), name) &&
		    hf_json_true(hf_json_get(hf_json_item(list, i), "served"), false))
			return hf_json_item(list, i);
	return NULL;
}

/* Adds what is wrong with a CRD. Returns false if nothing is wrong. */
static bool find_problem(const struct hf_json *crd, const char *plural, const char *version,
			 struct hf_check_names *wrong)
{
	const struct hf_json *stored = hf_json_path(crd, "status", "storedVersions", NULL);

	if (find_version(crd, version) == NULL) {
		hf_check_name(wrong, "%s does not serve version %s", plural, version);
		return true;
	}
	for (size_t i = 0; i < hf_json_len(stored); i++) {
		const char *other = hf_json_str(hf_json_item(stored, i), "");

		if (hf_streq(other, version))
			continue;
		hf_check_name(wrong, "%s may have objects stored as %s", plural, other);
		return true;
	}
	return false;
}

struct crds {
	struct hf_check_names missing, wrong, pending, narrow;
	size_t wide;
};
#define CRDS_INIT                                                                                  \
	{                                                                                          \
		.missing = HF_CHECK_NAMES_INIT, .wrong = HF_CHECK_NAMES_INIT,                      \
		.pending = HF_CHECK_NAMES_INIT, .narrow = HF_CHECK_NAMES_INIT                      \
	}

static void sort_crd(const struct hf_check_facts *facts, const char *plural, const char *group,
		     const char *version, struct crds *crds)
{
	const struct hf_json *crd = hf_check_find_crd(facts, plural, group);

	if (crd == NULL)
		hf_check_name(&crds->missing, "%s", plural);
	else if (find_problem(crd, plural, version, &crds->wrong))
		return;
	else if (!hf_condition_is_true(crd, "Established"))
		hf_check_name(&crds->pending, "%s", plural);
	else if (hf_streq(version, "v1") && hf_check_is_narrow(crd))
		hf_check_name(&crds->narrow, "%s", plural);
	else
		crds->wide++;
}

static void report_crds(struct crds *crds, bool installed, const char *what,
			struct hf_check_lines *lines)
{
	enum hf_check_result result = installed ? HF_CHECK_FAIL : HF_CHECK_WARN;

	if (crds->missing.len > 0)
		hf_check_add(lines, result, "crds", installed ? APPLY_CRDS : INSTALL,
			     "%s: %zu not installed: %s", what, crds->missing.len,
			     hf_check_names_end(&crds->missing));
	if (crds->narrow.len > 0)
		hf_check_add(
			lines, HF_CHECK_WARN, "crds",
			"holdfast manifests --crds | kubectl apply --server-side --force-conflicts -f -",
			"%s: %zu are upstream's (%s); with them, Holdfast keeps ledgers and its fields in "
			"annotations",
			what, crds->narrow.len, hf_check_names_end(&crds->narrow));
	if (crds->pending.len > 0)
		hf_check_add(
			lines, HF_CHECK_WARN, "crds",
			"check again in some seconds; 'kubectl describe crd NAME' says what is missing",
			"%s: not served yet: %s", what, hf_check_names_end(&crds->pending));
	if (crds->wide > 0)
		hf_check_add(lines, HF_CHECK_OK, "crds", NULL, "%s: %zu installed with all fields",
			     what, crds->wide);
}

static void release_crds(struct crds *crds)
{
	hf_check_names_release(&crds->missing);
	hf_check_names_release(&crds->wrong);
	hf_check_names_release(&crds->pending);
	hf_check_names_release(&crds->narrow);
}

void hf_check_crds(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	static const char *const own[] = {"devicehealths", "devicerollouts", "healthpolicies",
					  "remediations"};
	struct crds jobs = CRDS_INIT, others = CRDS_INIT;
	bool installed = hf_check_operator(facts) != NULL;

	if (!hf_check_known(facts, HF_CHECK_CRDS, "crds", lines))
		return;
	for (size_t i = 0; hf_frameworks[i] != NULL; i++)
		sort_crd(facts, hf_frameworks[i]->plural, hf_frameworks[i]->group,
			 hf_frameworks[i]->version, &jobs);
	for (size_t i = 0; i < HF_ARRAY_LEN(own); i++)
		sort_crd(facts, own[i], "holdfast.dev", "v1alpha1", &others);
	report_crds(&jobs, installed, "job kinds", lines);
	report_crds(&others, installed, "kinds of holdfast.dev", lines);
	if (jobs.wrong.len > 0)
		hf_check_add(
			lines, HF_CHECK_FAIL, "crds",
			"leave these kinds to their operator: give Holdfast's operator --enable-scheme for "
			"each other kind",
			"%s", hf_check_names_end(&jobs.wrong));
	if (others.wrong.len > 0)
		hf_check_add(lines, HF_CHECK_FAIL, "crds", APPLY_CRDS, "%s",
			     hf_check_names_end(&others.wrong));
	release_crds(&jobs);
	release_crds(&others);
}

/* ---- policies ------------------------------------------------------------------------------------------ */

/* True if a binding puts the policy in force. */
static bool is_bound(const struct hf_check_facts *facts, const char *policy)
{
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_BINDINGS); i++) {
		const struct hf_json *spec =
			hf_json_get(hf_check_item(facts, HF_CHECK_BINDINGS, i), "spec");

		if (hf_streq(hf_json_path_str(spec, "policyName", NULL), policy) &&
		    hf_json_len(hf_json_get(spec, "validationActions")) > 0)
			return true;
	}
	return false;
}

/* The job kinds with upstream's CRD and without a policy in force: nothing checks their jobs. */
static void check_unguarded(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	HF_AUTO_CHECK_NAMES names = HF_CHECK_NAMES_INIT;

	for (size_t i = 0; hf_frameworks[i] != NULL; i++) {
		HF_AUTOFREE char *name = hf_xasprintf("holdfast-%s", hf_frameworks[i]->plural);
		const struct hf_json *crd =
			hf_check_find_crd(facts, hf_frameworks[i]->plural, hf_frameworks[i]->group);

		if (crd != NULL && hf_check_is_narrow(crd) && !is_bound(facts, name))
			hf_check_name(&names, "%s", hf_frameworks[i]->plural);
	}
	if (names.len > 0)
		hf_check_add(
			lines, HF_CHECK_WARN, "policies",
			"holdfast manifests --policy | kubectl apply -f -, or install Holdfast's CRDs",
			"no rule checks new %s: their CRDs are upstream's, and no policy of Holdfast is in "
			"force",
			hf_check_names_end(&names));
}

static bool has_agent(const struct hf_check_facts *facts)
{
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_PODS); i++) {
		const struct hf_json *pod = hf_check_item(facts, HF_CHECK_PODS, i);

		if (hf_streq(hf_check_label(pod, HF_CHECK_LABEL_NAME), "holdfast") &&
		    hf_streq(hf_check_label(pod, HF_CHECK_LABEL_COMPONENT), "agent"))
			return true;
	}
	return false;
}

void hf_check_policies(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	HF_AUTO_CHECK_NAMES idle = HF_CHECK_NAMES_INIT;
	size_t before = lines->list.len, n = 0;

	if (!hf_check_known(facts, HF_CHECK_POLICIES, "policies", lines) ||
	    !hf_check_known(facts, HF_CHECK_BINDINGS, "policies", lines))
		return;
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_POLICIES); i++) {
		const char *name = hf_check_name_of(hf_check_item(facts, HF_CHECK_POLICIES, i));

		if (!hf_str_has_prefix(name, "holdfast-"))
			continue;
		n++;
		if (!is_bound(facts, name))
			hf_check_name(&idle, "%s", name);
	}
	if (idle.len > 0)
		hf_check_add(lines, HF_CHECK_FAIL, "policies", "apply the manifests again",
			     "not in force, because no binding names them: %s",
			     hf_check_names_end(&idle));
	if (has_agent(facts) && !is_bound(facts, "holdfast-agent"))
		hf_check_add(
			lines, HF_CHECK_FAIL, "policies",
			"holdfast manifests --agent | kubectl apply -f -",
			"policy holdfast-agent is not in force: the token of an agent can write for every "
			"node");
	/* As long as training-operator's webhook is there, it checks the jobs. */
	if (facts->lists[HF_CHECK_CRDS].code == 0 && !hf_check_has_old_webhook(facts))
		check_unguarded(facts, lines);
	if (lines->list.len == before && n == 0)
		hf_check_add(lines, HF_CHECK_OK, "policies", NULL,
			     "none of Holdfast is installed, and none is needed");
	else if (lines->list.len == before)
		hf_check_add(lines, HF_CHECK_OK, "policies", NULL,
			     "admission policies of Holdfast: %zu, all in force", n);
}
