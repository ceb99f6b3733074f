/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/check_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/facts.h"
#include "cli/leader.h"
#include "core/model/names.h"
#include "framework/framework.h"
#include "json/yaml.h"

#include <string.h>

/* Rules of `holdfast check` about software of others: operators of the same kinds, webhooks, Kueue and
 * gang schedulers. */

/* ---- operators --------------------------------------------------------------------------------------- */

static size_t count_pods(const struct hf_check_facts *facts, const char *key, const char *value,
			 const char **ret_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_PODS); i++) {
		const struct hf_json *pod = hf_check_item(facts, HF_CHECK_PODS, i);

		if (!hf_streq(hf_check_label(pod, key), value))
			continue;
		n++;
		*ret_ns = hf_check_ns_of(pod);
	}
	return n;
}

static void check_old_operator(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	const struct hf_json *ours = hf_check_operator(facts);
	const char *ns = hf_check_old_ns(facts);
	size_t ready, n = hf_check_count_old(facts, &ready);

	if (ns == NULL)
		hf_check_add(lines, HF_CHECK_OK, "operators", NULL,
			     "training-operator is not installed");
	else if (n == 0)
		hf_check_add(lines, HF_CHECK_OK, "operators", NULL,
			     "training-operator in namespace %s is stopped", ns);
	else if (ours != NULL)
		hf_check_add(
			lines, HF_CHECK_FAIL, "operators",
			"stop one of them, or give them different kinds (--enable-scheme) or namespaces "
			"(--namespace)",
			"training-operator (%s) and Holdfast (%s) are both installed: while training-operator is "
			"ready (%zu of %zu pods), Holdfast writes no job that both have",
			ns, hf_check_ns_of(ours), ready, n);
	else if (facts->migrate)
		hf_check_add(
			lines, HF_CHECK_OK, "operators", NULL,
			"training-operator in namespace %s runs the jobs (%zu of %zu pods ready)",
			ns, ready, n);
	else
		hf_check_add(
			lines, HF_CHECK_WARN, "operators", "holdfast check migrate",
			"training-operator in namespace %s runs the jobs (%zu of %zu pods ready); "
			"Holdfast would replace it",
			ns, ready, n);
}

/* A Lease of leader election that is renewed by a process without a known pod: an operator outside the
 * cluster, or one with other labels. */
static void check_leader(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_LEASES); i++) {
		const struct hf_json *lease = hf_check_item(facts, HF_CHECK_LEASES, i);
		struct hf_leader leader;
		bool known = false;

		hf_leader_read(lease, facts->now, &leader);
		if (!hf_streq(hf_check_name_of(lease), HF_LEADER_LEASE) || !leader.leads)
			continue;
		for (size_t p = 0; p < hf_check_len(facts, HF_CHECK_PODS); p++)
			known |= hf_str_has_prefix(
				leader.holder,
				hf_check_name_of(hf_check_item(facts, HF_CHECK_PODS, p)));
		if (!known)
			hf_check_add(
				lines, HF_CHECK_WARN, "operators",
				"find out what runs there before you install Holdfast",
				"Lease %s/%s is renewed by '%s', and no pod of a known operator has "
				"this name",
				leader.ns, HF_LEADER_LEASE, leader.holder);
	}
}

/* The operator elects a leader with the Lease of the default name. */
static bool uses_election(const struct hf_json *deployment)
{
	const struct hf_json *containers =
		hf_json_path(deployment, "spec", "template", "spec", "containers", NULL);
	const struct hf_json *args = hf_json_get(hf_json_item(containers, 0), "args");
	bool found = false;

	for (size_t i = 0; i < hf_json_len(args); i++) {
		const char *arg = hf_json_str(hf_json_item(args, i), "");

		if (hf_str_has_prefix(arg, "--leader-election-"))
			return false;
		found |= hf_streq(arg, "--leader-elect");
	}
	return found;
}

/* Holdfast's operator is installed, and no pod of it leads. */
static void check_own_leader(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	const struct hf_json *ours = hf_check_operator(facts);
	struct hf_leader leader, found = {.holder = "", .renewed_at = HF_TIME_NONE};
	char at[HF_TIME_TEXT_MAX];
	HF_AUTOFREE char *action = NULL;

	if (ours == NULL || !uses_election(ours) || facts->lists[HF_CHECK_LEASES].code != 0)
		return;
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_LEASES); i++) {
		const struct hf_json *lease = hf_check_item(facts, HF_CHECK_LEASES, i);

		hf_leader_read(lease, facts->now, &leader);
		if (hf_streq(hf_check_name_of(lease), HF_LEADER_LEASE) &&
		    hf_streq(leader.ns, hf_check_ns_of(ours)))
			found = leader;
	}
	if (found.leads)
		return;
	action = hf_xasprintf("look at its pods: kubectl -n %s describe deployment %s",
			      hf_check_ns_of(ours), hf_check_name_of(ours));
	hf_check_add(
		lines, HF_CHECK_FAIL, "operators", action,
		"Holdfast's operator is installed in namespace %s and does not lead: its Lease %s "
		"%s%s",
		hf_check_ns_of(ours), HF_LEADER_LEASE,
		found.renewed_at == HF_TIME_NONE ? "was never renewed"
		: *found.holder == '\0'          ? "was given up at "
						 : "was last renewed at ",
		hf_facts_time_text(found.renewed_at, at));
}

void hf_check_operators(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	const char *ns = "";
	size_t n;

	if (!hf_check_known(facts, HF_CHECK_DEPLOYMENTS, "operators", lines) ||
	    !hf_check_known(facts, HF_CHECK_PODS, "operators", lines))
		return;
	check_old_operator(facts, lines);
	check_leader(facts, lines);
	check_own_leader(facts, lines);
	n = count_pods(facts, "app", "mpi-operator", &ns);
	if (n > 0)
		hf_check_add(
			lines, HF_CHECK_WARN, "operators",
			"leave MPIJob to mpi-operator: give Holdfast's operator --enable-scheme for each "
			"other kind",
			"mpi-operator runs in namespace %s (pods: %zu); it owns the CRD of MPIJob v2beta1",
			ns, n);
}

/* ---- webhooks ---------------------------------------------------------------------------------------- */

static bool has_word(const struct hf_json *list, const char *word)
{
	for (size_t i = 0; i < hf_json_len(list); i++) {
		const char *item = hf_json_str(hf_json_item(list, i), "");

		if (hf_streq(item, "*") || hf_streq(item, "*/*") || hf_streq(item, word))
			return true;
	}
	return false;
}

/* A resource that must be writable for jobs to run. */
struct written {
	const char *group, *resource;
};

/* Returns a resource that jobs need and whose writes this webhook checks. NULL: there is no such resource. */
static const char *resource_of(const struct hf_json *webhook)
{
	static const struct written needed[] = {
		{"", "pods"},
		{"", "services"},
		{"holdfast.dev", "devicehealths"},
		{"holdfast.dev", "remediations"},
	};
	const struct hf_json *rules = hf_json_get(webhook, "rules");

	for (size_t i = 0; i < hf_json_len(rules); i++) {
		const struct hf_json *groups = hf_json_get(hf_json_item(rules, i), "apiGroups");
		const struct hf_json *resources = hf_json_get(hf_json_item(rules, i), "resources");

		for (size_t k = 0; hf_frameworks[k] != NULL; k++)
			if (has_word(groups, hf_frameworks[k]->group) &&
			    has_word(resources, hf_frameworks[k]->plural))
				return hf_frameworks[k]->plural;
		for (size_t k = 0; k < HF_ARRAY_LEN(needed); k++)
			if (has_word(groups, needed[k].group) &&
			    has_word(resources, needed[k].resource))
				return needed[k].resource;
	}
	return NULL;
}

static bool has_ready_endpoint(const struct hf_json *slice)
{
	const struct hf_json *list = hf_json_get(slice, "endpoints");

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_json_true(hf_json_path(hf_json_item(list, i), "conditions", "ready", NULL),
				 true))
			return true;
	return false;
}

static bool is_served(const struct hf_check_facts *facts, const char *ns, const char *service)
{
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_ENDPOINTS); i++) {
		const struct hf_json *slice = hf_check_item(facts, HF_CHECK_ENDPOINTS, i);

		if (hf_streq(hf_check_ns_of(slice), ns) &&
		    hf_streq(hf_check_label(slice, "kubernetes.io/service-name"), service) &&
		    has_ready_endpoint(slice))
			return true;
	}
	return false;
}

/* Counts the webhooks of one configuration that refuse writes if their server is away. Adds a line if
 * a Service has no server. */
static size_t check_configuration(const struct hf_check_facts *facts,
				  const struct hf_json *configuration, struct hf_check_lines *lines)
{
	const struct hf_json *list = hf_json_get(configuration, "webhooks");
	const char *dead = NULL, *resource = NULL, *ns = NULL;
	size_t n = 0;

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *webhook = hf_json_item(list, i);
		const struct hf_json *service =
			hf_json_path(webhook, "clientConfig", "service", NULL);
		const char *name = hf_json_path_str(service, "name", NULL);

		if (hf_streq(hf_json_path_str(webhook, "failurePolicy", NULL), "Ignore") ||
		    resource_of(webhook) == NULL)
			continue;
		n++;
		if (dead != NULL || name == NULL || facts->lists[HF_CHECK_ENDPOINTS].code != 0 ||
		    is_served(facts, hf_str_or(hf_json_path_str(service, "namespace", NULL), ""),
			      name))
			continue;
		dead = name;
		ns = hf_str_or(hf_json_path_str(service, "namespace", NULL), "");
		resource = resource_of(webhook);
	}
	if (dead != NULL)
		hf_check_add(
			lines, HF_CHECK_FAIL, "webhooks",
			"start the server of the webhook, or delete its configuration if it is a leftover",
			"%s '%s' refuses every write of %s: its Service %s/%s has no ready endpoint",
			hf_str_or(hf_json_path_str(configuration, "kind", NULL), "webhook"),
			hf_check_name_of(configuration), resource, ns, dead);
	return n;
}

void hf_check_webhooks(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	size_t n = 0, before = lines->list.len;
	const struct hf_json *ours = hf_check_operator(facts);

	if (!hf_check_known(facts, HF_CHECK_WEBHOOKS, "webhooks", lines))
		return;
	(void)hf_check_known(facts, HF_CHECK_ENDPOINTS, "webhooks", lines);
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_WEBHOOKS); i++) {
		const struct hf_json *item = hf_check_item(facts, HF_CHECK_WEBHOOKS, i);

		n += check_configuration(facts, item, lines);
		if (hf_check_is_old_webhook(item) && ours != NULL)
			hf_check_add(
				lines, HF_CHECK_WARN, "webhooks",
				"kubectl delete validatingwebhookconfiguration "
				"validator.training-operator.kubeflow.org",
				"the webhook of training-operator is left over; the CRDs check what it "
				"checked");
	}
	if (lines->list.len == before && n == 0)
		hf_check_add(lines, HF_CHECK_OK, "webhooks", NULL,
			     "none can refuse jobs or what they need");
	else if (lines->list.len == before)
		hf_check_add(
			lines, HF_CHECK_OK, "webhooks", NULL,
			"webhooks that can refuse jobs or what they need: %zu, each with a server",
			n);
}

/* ---- Kueue ------------------------------------------------------------------------------------------- */

/* The kinds of jobs that Kueue queues, by its configuration; returns their number, or -1 if the
 * configuration cannot be read. */
static int count_integrations(const struct hf_json *configmap, struct hf_check_names *names)
{
	const char *text =
		hf_json_path_str(configmap, "data", "controller_manager_config.yaml", NULL);
	HF_AUTO_YAML yaml = NULL;
	const struct hf_json *list;

	if (text == NULL || hf_yaml_parse(text, strlen(text), NULL, &yaml, NULL) != 0 ||
	    hf_yaml_len(yaml) == 0)
		return -1;
	list = hf_json_path(hf_yaml_doc(yaml, 0), "integrations", "frameworks", NULL);
	for (size_t i = 0; i < hf_json_len(list); i++) {
		const char *item = hf_json_str(hf_json_item(list, i), "");

		for (size_t k = 0; hf_frameworks[k] != NULL; k++)
			if (hf_str_has_prefix(item, "kubeflow.org/") &&
			    hf_streq(item + strlen("kubeflow.org/"), hf_frameworks[k]->singular))
				hf_check_name(names, "%s", hf_frameworks[k]->kind);
	}
	return (int)names->len;
}

/* The tag of an image: "v0.15.0" of "registry.k8s.io/kueue/kueue:v0.15.0". */
static const char *tag_of(const struct hf_json *pod)
{
	const char *image = hf_str_or(
		hf_json_path_str(hf_json_item(hf_json_path(pod, "spec", "containers", NULL), 0),
				 "image", NULL),
		"");
	const char *colon = strrchr(image, ':');

	return colon != NULL && strchr(colon, '/') == NULL ? colon + 1 : "of an unknown version";
}

static const struct hf_json *find_kueue_pod(const struct hf_check_facts *facts, size_t *ret_ready)
{
	const struct hf_json *found = NULL;

	*ret_ready = 0;
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_PODS); i++) {
		const struct hf_json *pod = hf_check_item(facts, HF_CHECK_PODS, i);

		if (!hf_streq(hf_check_label(pod, HF_CHECK_LABEL_NAME), "kueue"))
			continue;
		found = pod;
		*ret_ready += hf_condition_is_true(pod, "Ready");
	}
	return found;
}

/* True if a webhook of Kueue sees new jobs, or if that is unknown. */
static bool has_kueue_webhook(const struct hf_check_facts *facts)
{
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_WEBHOOKS); i++) {
		const struct hf_json *item = hf_check_item(facts, HF_CHECK_WEBHOOKS, i);

		if (hf_streq(hf_json_path_str(item, "kind", NULL),
			     "MutatingWebhookConfiguration") &&
		    hf_str_has_prefix(hf_check_name_of(item), "kueue-"))
			return true;
	}
	return facts->lists[HF_CHECK_WEBHOOKS].code != 0;
}

void hf_check_kueue(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	HF_AUTO_CHECK_NAMES kinds = HF_CHECK_NAMES_INIT;
	const struct hf_json *pod, *configmap;
	size_t ready;
	int n;

	if (!hf_check_known(facts, HF_CHECK_CRDS, "kueue", lines) ||
	    !hf_check_known(facts, HF_CHECK_PODS, "kueue", lines))
		return;
	if (hf_check_find(facts, HF_CHECK_CRDS, "workloads.kueue.x-k8s.io") == NULL) {
		hf_check_add(lines, HF_CHECK_OK, "kueue", NULL, "not installed");
		return;
	}
	pod = find_kueue_pod(facts, &ready);
	configmap = hf_check_find(facts, HF_CHECK_CONFIGMAPS, "kueue-manager-config");
	n = count_integrations(configmap, &kinds);
	if (pod == NULL || ready == 0)
		hf_check_add(
			lines, HF_CHECK_WARN, "kueue",
			"look at Kueue's Deployment; jobs with a queue stay suspended without it",
			pod == NULL ? "its CRDs are installed, but no pod with label "
				      "app.kubernetes.io/name=kueue exists"
				    : "Kueue is installed, but none of its pods is ready");
	else if (n < 0)
		hf_check_add(lines, HF_CHECK_WARN, "kueue", NULL,
			     "Kueue %s runs; which kinds it queues is unknown, because ConfigMap "
			     "kueue-manager-config cannot be read",
			     tag_of(pod));
	else if (n == 0)
		hf_check_add(
			lines, HF_CHECK_WARN, "kueue",
			"add kubeflow.org/pytorchjob and other kinds to integrations.frameworks in ConfigMap "
			"kueue-manager-config",
			"Kueue %s runs, but queues no kind of kubeflow.org", tag_of(pod));
	else if (!has_kueue_webhook(facts))
		hf_check_add(
			lines, HF_CHECK_WARN, "kueue",
			"install Kueue's webhooks, or create jobs with runPolicy.suspend: true",
			"Kueue %s queues %s, but has no webhook: new jobs do not wait for it",
			tag_of(pod), hf_check_names_end(&kinds));
	else
		hf_check_add(lines, HF_CHECK_OK, "kueue", NULL, "Kueue %s queues %s", tag_of(pod),
			     hf_check_names_end(&kinds));
}

/* ---- gang schedulers ------------------------------------------------------------------------------------ */

#define GANG_FLAG "--gang-scheduler-name"

/* The gang scheduler that the operator's flags name; "": none. */
static const char *gang_of(const struct hf_json *deployment)
{
	const struct hf_json *args =
		hf_json_get(hf_json_item(hf_json_path(deployment, "spec", "template", "spec",
						      "containers", NULL),
					 0),
			    "args");

	for (size_t i = 0; i < hf_json_len(args); i++) {
		const char *word = hf_json_str(hf_json_item(args, i), "");

		if (hf_streq(word, GANG_FLAG))
			return hf_json_str(hf_json_item(args, i + 1), "");
		if (hf_str_has_prefix(word, GANG_FLAG "="))
			return word + strlen(GANG_FLAG "=");
	}
	return "";
}

void hf_check_gang(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	static const char *const crds[] = {"podgroups.scheduling.x-k8s.io",
					   "podgroups.scheduling.volcano.sh"};
	const char *gang = gang_of(hf_check_operator(facts));
	const char *needed = crds[hf_streq(gang, "volcano")];
	HF_AUTO_CHECK_NAMES present = HF_CHECK_NAMES_INIT;

	if (!hf_check_known(facts, HF_CHECK_CRDS, "gang-scheduler", lines))
		return;
	for (size_t i = 0; i < HF_ARRAY_LEN(crds); i++)
		if (hf_check_find(facts, HF_CHECK_CRDS, crds[i]) != NULL)
			hf_check_name(&present, "%s", crds[i]);
	if (*gang != '\0' && hf_check_find(facts, HF_CHECK_CRDS, needed) == NULL)
		hf_check_add(lines, HF_CHECK_FAIL, "gang-scheduler",
			     "install the gang scheduler, or remove the flag from the operator",
			     "the operator has " GANG_FLAG " %s, but CRD %s is missing: jobs wait",
			     gang, needed);
	else if (*gang != '\0')
		hf_check_add(lines, HF_CHECK_OK, "gang-scheduler", NULL,
			     "the operator uses %s, and CRD %s exists", gang, needed);
	else if (present.len > 0)
		hf_check_add(lines, HF_CHECK_OK, "gang-scheduler", NULL,
			     "%s exists, and the operator does not use it (" GANG_FLAG ")",
			     hf_check_names_end(&present));
	else
		hf_check_add(lines, HF_CHECK_OK, "gang-scheduler", NULL, "not installed, not used");
}
