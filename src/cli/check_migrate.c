/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/check_internal.h"

#include "api/job.h"
#include "api/pod_rules.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/model/field.h"
#include "framework/framework.h"
#include "store/resource.h"

#include <string.h>

/* Rules of `holdfast check migrate`: the owners of what training-operator's manifests installed, jobs
 * that will behave differently, and the steps in their order. The guide is docs/how-to/migrate.md. */

#define ARENA_BYTES_MAX ((size_t)16 << 20)
#define DIFFERENCES "docs/reference/differences.md"

/* ---- owners ------------------------------------------------------------------------------------------ */

/* A label or an annotation by which a tool marks its objects. */
struct mark {
	const char *tool, *place, *key;
};

static const struct mark marks[] = {
	{"Helm release", "annotations", "meta.helm.sh/release-name"},
	{"Flux Kustomization", "labels", "kustomize.toolkit.fluxcd.io/name"},
	{"Flux HelmRelease", "labels", "helm.toolkit.fluxcd.io/name"},
	{"Argo CD application", "annotations", "argocd.argoproj.io/tracking-id"},
	{"Argo CD application", "labels", "argocd.argoproj.io/instance"},
};

static const struct mark *find_mark(const struct hf_json *object, const char **ret_owner)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(marks); i++) {
		*ret_owner =
			hf_json_path_str(object, "metadata", marks[i].place, marks[i].key, NULL);
		if (!hf_str_is_empty(*ret_owner))
			return &marks[i];
	}
	return NULL;
}

static bool is_job_crd(const struct hf_json *crd)
{
	return hf_streq(hf_json_path_str(crd, "spec", "group", NULL), hf_frameworks[0]->group);
}

/* Whether the tool that owns a CRD also owns one of Holdfast's own kinds: then it installs Holdfast. */
static bool installs_holdfast(const struct hf_check_facts *facts, const struct mark *mark,
			      const char *owner)
{
	const char *found;

	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_CRDS); i++) {
		const struct hf_json *crd = hf_check_item(facts, HF_CHECK_CRDS, i);

		if (hf_streq(hf_json_path_str(crd, "spec", "group", NULL),
			     hf_devicehealths.group) &&
		    find_mark(crd, &found) == mark && hf_streq(found, owner))
			return true;
	}
	return false;
}

void hf_check_owners(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	HF_AUTO_CHECK_NAMES names = HF_CHECK_NAMES_INIT;
	const char *owner = NULL, *first = NULL, *own = NULL;
	const struct mark *mark = NULL, *own_mark = NULL;

	if (!hf_check_known(facts, HF_CHECK_CRDS, "owners", lines))
		return;
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_CRDS); i++) {
		const struct hf_json *crd = hf_check_item(facts, HF_CHECK_CRDS, i);
		const struct mark *found = find_mark(crd, &owner);

		if (!is_job_crd(crd) || found == NULL)
			continue;
		if (installs_holdfast(facts, found, owner)) {
			own_mark = found;
			own = owner;
			continue;
		}
		if (mark == NULL) {
			mark = found;
			first = owner;
		}
		hf_check_name(&names, "%s", hf_check_name_of(crd));
	}
	if (mark == NULL && own_mark != NULL)
		hf_check_add(lines, HF_CHECK_OK, "owners", NULL,
			     "%s '%s', which installs Holdfast, owns the CRDs", own_mark->tool,
			     own);
	else if (mark == NULL)
		hf_check_add(lines, HF_CHECK_OK, "owners", NULL,
			     "no tool such as Helm, Flux or Argo CD owns the CRDs");
	else
		hf_check_add(
			lines, HF_CHECK_WARN, "owners",
			"tell the tool to leave the CRDs alone before you apply Holdfast's; it would put "
			"upstream's back",
			"%s '%s' owns %zu CRDs: %s", mark->tool, first, names.len,
			hf_check_names_end(&names));
}

/* ---- jobs -------------------------------------------------------------------------------------------- */

static const struct hf_json *run_policy_of(const struct hf_json *job)
{
	return hf_json_path(job, "spec", "runPolicy", NULL);
}

static const struct hf_framework *framework_of(const struct hf_json *job)
{
	return hf_framework_by_kind(hf_str_or(hf_json_path_str(job, "apiVersion", NULL), ""),
				    hf_str_or(hf_json_path_str(job, "kind", NULL), ""));
}

static bool has_condition(const struct hf_json *job, const char *type)
{
	const struct hf_json *list = hf_json_path(job, "status", "conditions", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(list, i), "type", NULL), type) &&
		    hf_streq(hf_json_path_str(hf_json_item(list, i), "status", NULL), "True"))
			return true;
	return false;
}

static bool is_ended(const struct hf_json *job)
{
	return has_condition(job, "Succeeded") || has_condition(job, "Failed");
}

static bool limits_restarts(const struct hf_json *job)
{
	return !is_ended(job) && hf_json_get(run_policy_of(job), "backoffLimit") != NULL;
}

static bool has_deadline(const struct hf_json *job)
{
	return !is_ended(job) && hf_json_get(run_policy_of(job), "activeDeadlineSeconds") != NULL;
}

static bool is_deleted_at_once(const struct hf_json *job)
{
	return is_ended(job) && hf_json_true(hf_json_get(run_policy_of(job), "suspend"), false) &&
	       hf_json_get(run_policy_of(job), "ttlSecondsAfterFinished") != NULL;
}

static bool is_jax_of_others(const struct hf_json *job)
{
	return hf_streq(hf_json_path_str(job, "kind", NULL), "JAXJob") &&
	       hf_streq(hf_json_path_str(run_policy_of(job), "managedBy", NULL),
			"kueue.x-k8s.io/multikueue");
}

static bool keeps_rendezvous(const struct hf_json *job)
{
	return !is_ended(job) &&
	       !hf_str_is_empty(hf_json_path_str(job, "spec", "elasticPolicy", "rdzvId", NULL));
}

/* True if a container port of the job has no name. */
static bool has_nameless_port(const struct hf_json *job)
{
	const struct hf_framework *framework = framework_of(job);
	const struct hf_json *replicas =
		framework != NULL ? hf_json_path(job, "spec", framework->replicas_key, NULL) : NULL;
	struct hf_json *value;
	const char *key;

	for (void *it = NULL; (it = hf_json_next(replicas, it, &key, &value)) != NULL;) {
		const struct hf_json *list =
			hf_json_path(value, "template", "spec", "containers", NULL);

		for (size_t i = 0; i < hf_json_len(list); i++) {
			const struct hf_json *ports = hf_json_get(hf_json_item(list, i), "ports");

			for (size_t k = 0; k < hf_json_len(ports); k++)
				if (hf_str_is_empty(
					    hf_json_path_str(hf_json_item(ports, k), "name", NULL)))
					return !is_ended(job);
		}
	}
	return false;
}

/* A difference between the two operators that a job's manifest shows: a row of differences.md. */
struct difference {
	const char *row, *text;
	bool (*applies)(const struct hf_json *job);
};

static const struct difference differences[] = {
	{"D27", "backoffLimit counts incidents of the application, and also replaced pods",
	 limits_restarts},
	{"D28", "activeDeadlineSeconds adds up the active times, and ends a job by itself",
	 has_deadline},
	{"D33", "ttlSecondsAfterFinished deletes jobs that have ended and are suspended",
	 is_deleted_at_once},
	{"D32", "managedBy is heeded, so JAXJobs of MultiKueue are left alone", is_jax_of_others},
	{"D41", "after a suspension, ranks meet under rdzvId with a number (run-2)",
	 keeps_rendezvous},
	{"D40",
	 "a container port without a name gets the name port-NUMBER, and its Service is created",
	 has_nameless_port},
};

static void report_differences(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	for (size_t d = 0; d < HF_ARRAY_LEN(differences); d++) {
		HF_AUTO_CHECK_NAMES names = HF_CHECK_NAMES_INIT;
		HF_AUTOFREE char *action =
			hf_xasprintf("read row %s of " DIFFERENCES, differences[d].row);

		for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_JOBS); i++) {
			const struct hf_json *job = hf_check_item(facts, HF_CHECK_JOBS, i);

			if (differences[d].applies(job))
				hf_check_name(&names, "%s/%s", hf_check_ns_of(job),
					      hf_check_name_of(job));
		}
		if (names.len > 0)
			hf_check_add(lines, HF_CHECK_WARN, "jobs", action, "%s: %s",
				     differences[d].text, hf_check_names_end(&names));
	}
}

/* The rules of `lint`. Returns false if the job breaks one; then the text says which. */
static bool passes_lint(struct hf_doc *doc, struct hf_strbuf *text)
{
	const struct hf_json *job = hf_doc_json(doc);
	const struct hf_framework *framework = framework_of(job);
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	struct hf_field_errors errors;

	if (framework == NULL)
		return true;
	hf_field_errors_init(&errors, arena);
	hf_job_check(doc, NULL, framework, &errors);
	if (errors.len > 0)
		hf_field_error_write(&errors.items[0], text);
	return errors.len == 0;
}

static void report_broken_rules(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	HF_AUTO_CHECK_NAMES names = HF_CHECK_NAMES_INIT;
	HF_AUTO_STRBUF first = HF_STRBUF_INIT(2048);
	const struct hf_check_list *list = &facts->lists[HF_CHECK_JOBS];

	for (size_t i = 0; i < list->n_items; i++) {
		HF_AUTO_STRBUF text = HF_STRBUF_INIT(2048);
		const struct hf_json *job = hf_doc_json(list->items[i]);

		if (is_ended(job) || passes_lint(list->items[i], &text))
			continue;
		if (names.len == 0)
			hf_strbuf_addstr(&first, text.data);
		hf_check_name(&names, "%s/%s", hf_check_ns_of(job), hf_check_name_of(job));
	}
	if (names.len > 0)
		hf_check_add(
			lines, HF_CHECK_WARN, "jobs",
			"correct their manifests; Holdfast holds such a job with event FailedValidation",
			"jobs that break a rule of Holdfast's CRDs: %s; the first: %s",
			hf_check_names_end(&names), first.data);
}

void hf_check_jobs(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	size_t running = 0, ended = 0;

	if (!hf_check_known(facts, HF_CHECK_JOBS, "jobs", lines))
		return;
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_JOBS); i++) {
		const struct hf_json *job = hf_check_item(facts, HF_CHECK_JOBS, i);

		ended += is_ended(job);
		running += has_condition(job, "Running");
	}
	hf_check_add(lines, HF_CHECK_OK, "jobs", NULL,
		     "%zu exist, %zu of them running, %zu ended; their pods stay as they are",
		     hf_check_len(facts, HF_CHECK_JOBS), running, ended);
	report_broken_rules(facts, lines);
	report_differences(facts, lines);
}

/* ---- steps ------------------------------------------------------------------------------------------- */

static bool crds_are_wide(const struct hf_check_facts *facts)
{
	for (size_t i = 0; hf_frameworks[i] != NULL; i++) {
		const struct hf_json *crd =
			hf_check_find_crd(facts, hf_frameworks[i]->plural, hf_frameworks[i]->group);

		if (crd == NULL || hf_check_is_narrow(crd))
			return false;
	}
	return true;
}

void hf_check_plan(const struct hf_check_facts *facts,
		   struct hf_check_step ret_steps[HF_CHECK_STEPS])
{
	const char *old_ns = hf_check_old_ns(facts);
	const char *ns = hf_str_or(old_ns, "kubeflow");
	const struct hf_json *ours = hf_check_operator(facts);
	size_t ready, n = hf_check_count_old(facts, &ready);
	bool stopped = facts->lists[HF_CHECK_PODS].code == 0 && n == 0;
	struct hf_check_step *step = ret_steps;

	*step++ = (struct hf_check_step){
		.title = "install the CRDs",
		.command = hf_xstrdup("holdfast manifests --crds | kubectl apply --server-side "
				      "--force-conflicts -f -"),
		.done = crds_are_wide(facts)};
	*step++ = (struct hf_check_step){
		.title = "delete the webhook before its server",
		.command = hf_xstrdup("kubectl delete validatingwebhookconfiguration "
				      "validator.training-operator.kubeflow.org"),
		.done = facts->lists[HF_CHECK_WEBHOOKS].code == 0 &&
			!hf_check_has_old_webhook(facts)};
	*step++ = (struct hf_check_step){
		.title = "stop the old operator; pods keep running",
		.command = hf_xasprintf(
			"kubectl -n %s scale deployment training-operator --replicas=0", ns),
		.done = stopped};
	*step++ = (struct hf_check_step){
		.title = "install Holdfast",
		.command = hf_xstrdup(
			"holdfast manifests --operator --image IMAGE | kubectl apply -f -"),
		.done = ours != NULL};
	*step++ = (struct hf_check_step){.title = "look at the jobs",
					 .command = hf_xstrdup("holdfast get -A"),
					 .done = false};
	*step = (struct hf_check_step){
		.title = "when all is well, delete the old operator",
		.command = hf_xasprintf("kubectl -n %s delete deployment,service training-operator",
					ns),
		.done = old_ns == NULL && facts->lists[HF_CHECK_DEPLOYMENTS].code == 0};
}
