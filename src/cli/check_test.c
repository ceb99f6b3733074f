/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

#include "cli/check_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/cli_world.h"
#include "harness/test.h"
#include "json/yaml.h"
#include "store/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The rules are given facts as YAML documents, and their lines are compared as text. */

#define NOW ((hf_time)1700000000 * HF_SECOND) /* 2023-11-14T22:13:20Z */

struct source_of {
	const char *kind;
	enum hf_check_source source;
};

static enum hf_check_source source_of(const char *kind)
{
	static const struct source_of rows[] = {
		{"CustomResourceDefinition", HF_CHECK_CRDS},
		{"Deployment", HF_CHECK_DEPLOYMENTS},
		{"Pod", HF_CHECK_PODS},
		{"Lease", HF_CHECK_LEASES},
		{"Node", HF_CHECK_NODES},
		{"ValidatingWebhookConfiguration", HF_CHECK_WEBHOOKS},
		{"MutatingWebhookConfiguration", HF_CHECK_WEBHOOKS},
		{"EndpointSlice", HF_CHECK_ENDPOINTS},
		{"ValidatingAdmissionPolicy", HF_CHECK_POLICIES},
		{"ValidatingAdmissionPolicyBinding", HF_CHECK_BINDINGS},
		{"ConfigMap", HF_CHECK_CONFIGMAPS},
		{"DeviceHealth", HF_CHECK_DEVICEHEALTHS},
		{"HealthPolicy", HF_CHECK_HEALTHPOLICIES},
		{"Remediation", HF_CHECK_REMEDIATIONS},
		{"DeviceRollout", HF_CHECK_ROLLOUTS},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++)
		if (hf_streq(rows[i].kind, kind))
			return rows[i].source;
	return HF_CHECK_JOBS;
}

static void read_facts(struct hf_check_facts *facts, const char *text)
{
	HF_AUTO_YAML yaml = NULL;
	struct hf_error err;

	hf_check_facts_init(facts);
	facts->now = NOW;
	facts->skew = 0;
	facts->ns = "default";
	facts->version = hf_xstrdup("v1.36.3");
	assert_ok(hf_yaml_parse(text, strlen(text), NULL, &yaml, &err), &err);
	for (size_t i = 0; i < hf_yaml_len(yaml); i++) {
		struct hf_json *doc = hf_yaml_doc(yaml, i);

		hf_check_list_add(&facts->lists[source_of(hf_json_path_str(doc, "kind", NULL))],
				  hf_doc_from_json(hf_json_share(doc)));
	}
}

static char *write_lines(const struct hf_check_lines *lines)
{
	static const char *const words[] = {"ok", "warn", "fail"};
	struct hf_strbuf text = HF_STRBUF_INIT(65536);

	for (size_t i = 0; i < lines->list.len; i++) {
		const struct hf_check_line *line = &lines->list.items[i];

		hf_strbuf_addf(&text, "%s %s: %s\n", words[line->result], line->check, line->found);
		if (line->action != NULL)
			hf_strbuf_addf(&text, "  -> %s\n", line->action);
	}
	return hf_strbuf_detach(&text);
}

static void assert_lines(const struct hf_check_facts *facts, hf_check_rule rule, const char *wanted)
{
	struct hf_check_lines lines;
	HF_AUTOFREE char *found = NULL;

	hf_check_lines_init(&lines);
	rule(facts, &lines);
	found = write_lines(&lines);
	assert_string_equal(found, wanted);
	hf_check_lines_release(&lines);
}

/* The lines of one rule about these objects. */
static void assert_rule(hf_check_rule rule, const char *objects, const char *wanted)
{
	struct hf_check_facts facts;

	read_facts(&facts, objects);
	assert_lines(&facts, rule, wanted);
	hf_check_facts_release(&facts);
}

#define OPERATOR                                                                                          \
	"---\nkind: Deployment\nmetadata: {name: holdfast-operator, namespace: holdfast-system, labels: " \
	"{app.kubernetes.io/name: holdfast, app.kubernetes.io/component: operator}}\n"
#define OLD_POD                                                                                    \
	"---\nkind: Pod\nmetadata: {name: training-operator-1, namespace: kubeflow, labels: "      \
	"{control-plane: kubeflow-training-operator}}\n"                                           \
	"status: {conditions: [{type: Ready, status: 'True'}]}\n"
#define OLD_DEPLOYMENT                                                                             \
	"---\nkind: Deployment\nmetadata: {name: training-operator, namespace: kubeflow}\n"

/* ---- the server -------------------------------------------------------------------------------------- */

static void assert_version(const char *version, const char *wanted)
{
	struct hf_check_facts facts;

	read_facts(&facts, "");
	free(facts.version);
	facts.version = version != NULL ? hf_xstrdup(version) : NULL;
	assert_lines(&facts, hf_check_api_server, wanted);
	hf_check_facts_release(&facts);
}

static void the_version_of_the_server_is_compared_with_the_tested_ones(void **state)
{
	assert_version("v1.36.3", "ok api-server: v1.36.3, a tested version\n");
	assert_version("v1.36.1-gke.100", "ok api-server: v1.36.1-gke.100, a tested version\n");
	assert_version("v1.35.4",
		       "ok api-server: v1.35.4; most tests of Holdfast ran on 1.36, some on this "
		       "version\n");
	assert_version("v1.37.2",
		       "ok api-server: v1.37.2; most tests of Holdfast ran on 1.36, some on this "
		       "version\n");
	assert_version("v1.33.9",
		       "warn api-server: v1.33.9 is older than the tested versions 1.34 to 1.37\n"
		       "  -> try Holdfast on a test cluster of this version first\n");
	assert_version("v1.29.9",
		       "fail api-server: v1.29.9; Holdfast needs Kubernetes 1.30 or later\n"
		       "  -> upgrade the cluster\n");
	assert_version("v1.40.0",
		       "warn api-server: v1.40.0 is newer than the tested versions 1.34 to 1.37\n"
		       "  -> try Holdfast on a test cluster of this version first\n");
	assert_version(
		"v1.36.0+holdfast.0.1.0",
		"ok api-server: v1.36.0+holdfast.0.1.0, a 'holdfast up' on one machine: nothing needs "
		"to be installed\n");
	assert_version("one", "warn api-server: reached; its version is unknown (one)\n");
	assert_version(
		NULL, "warn api-server: reached; its version is unknown (no answer to /version)\n");
}

static void a_wrong_clock_is_named_with_its_seconds(void **state)
{
	struct hf_check_facts facts;

	read_facts(
		&facts,
		"kind: Node\nmetadata: {name: a}\nstatus: {conditions: [{type: Ready, status: 'True'}]}\n"
		"---\nkind: Node\nmetadata: {name: b}\nstatus: {conditions: [{type: Ready, status: "
		"'True'}]}\n"
		"---\nkind: Node\nmetadata: {name: silent}\nstatus: {conditions: [{type: Ready, status: "
		"Unknown}]}\n"
		"---\nkind: Lease\nmetadata: {name: a, namespace: kube-node-lease}\n"
		"spec: {renewTime: '2023-11-14T22:13:50Z'}\n"
		"---\nkind: Lease\nmetadata: {name: b, namespace: kube-node-lease}\n"
		"spec: {renewTime: '2023-11-14T22:13:10Z'}\n"
		"---\nkind: Lease\nmetadata: {name: silent, namespace: kube-node-lease}\n"
		"spec: {renewTime: '2023-11-14T21:13:10Z'}\n");
	facts.skew = -90 * HF_SECOND;
	assert_lines(
		&facts, hf_check_clocks,
		"warn clock: this machine's clock is 90 s behind the API server's: ages that commands "
		"print are wrong\n"
		"  -> correct the clock of this machine, for example by chrony\n"
		"warn node-clocks: by their Leases, the clocks of 1 of 2 ready nodes differ from the API "
		"server's: a (30 s ahead)\n"
		"  -> correct the clocks of these nodes, for example by chrony\n");
	facts.skew = 600 * HF_SECOND;
	facts.now -= 30 * HF_SECOND;
	facts.lists[HF_CHECK_LEASES].code = HF_E_FORBIDDEN;
	(void)snprintf(facts.lists[HF_CHECK_LEASES].why, sizeof(facts.lists[0].why),
		       "cannot read leases: no");
	assert_lines(
		&facts, hf_check_clocks,
		"fail clock: this machine's clock is 600 s ahead of the API server's: ages that commands "
		"print are wrong, and tokens may be refused\n"
		"  -> correct the clock of this machine, for example by chrony\n"
		"warn node-clocks: unknown: cannot read leases: no\n"
		"  -> run this command with an administrator's credentials\n");
	facts.skew = HF_SECOND;
	facts.lists[HF_CHECK_LEASES].code = 0;
	facts.lists[HF_CHECK_LEASES].n_items = 0;
	assert_lines(
		&facts, hf_check_clocks,
		"ok clock: this machine and the API server agree within 3 s\nok node-clocks: ready nodes: 0, all agree with the API server\n");
	facts.lists[HF_CHECK_LEASES].n_items = 3;
	hf_check_facts_release(&facts);
}

static void add_right(struct hf_check_facts *facts, enum hf_check_who who,
		      enum hf_check_answer answer, const char *verb)
{
	const struct hf_check_right right = {.who = who,
					     .answer = answer,
					     .verb = verb,
					     .group = "apps",
					     .resource = "deployments"};

	assert_true(HF_VEC_PUSH(&facts->rights, right));
}

static void missing_rights_are_named(void **state)
{
	struct hf_check_facts facts;

	read_facts(&facts, OPERATOR);
	add_right(&facts, HF_CHECK_INSTALLER, HF_CHECK_ALLOWED, "create");
	add_right(&facts, HF_CHECK_USER, HF_CHECK_DENIED, "get");
	add_right(&facts, HF_CHECK_USER, HF_CHECK_ALLOWED, "list");
	add_right(&facts, HF_CHECK_OPERATOR, HF_CHECK_UNKNOWN, "get");
	assert_lines(
		&facts, hf_check_rights,
		"ok rights-install: your account has all 1 rights to install Holdfast\n"
		"warn rights-jobs: your account lacks 1 of 2 rights to use jobs in your namespace: get "
		"deployments.apps\n"
		"  -> ask for a binding of ClusterRole edit, which Holdfast's roles extend\n"
		"warn rights-operator: unknown: the server did not say whether the operator's account "
		"has 1 of 1 rights of its manifests\n"
		"  -> run this command with an administrator's credentials\n");
	facts.rights.items[3].answer = HF_CHECK_DENIED;
	facts.as_operator = true;
	facts.rights.items[0].who = facts.rights.items[1].who = facts.rights.items[2].who =
		HF_CHECK_OPERATOR;
	assert_lines(
		&facts, hf_check_rights,
		"fail rights-operator: the operator's account lacks 2 of 4 rights of its manifests: get "
		"deployments.apps, get deployments.apps\n"
		"  -> apply the roles again: holdfast manifests --operator | kubectl apply -f -\n");
	hf_check_facts_release(&facts);
	assert_rule(hf_check_rights, "",
		    "ok rights-operator: not checked: the operator is not installed\n");
}

static bool wants(bool (*wants_rights)(const struct hf_check_facts *facts), const char *objects)
{
	struct hf_check_facts facts;
	bool answer;

	read_facts(&facts, objects);
	answer = wants_rights(&facts);
	hf_check_facts_release(&facts);
	return answer;
}

/* A policy that may mend is in force, and the operator was installed without --mender. */
static void rights_for_acts_are_asked_if_an_object_needs_them(void **state)
{
	struct hf_check_facts facts;

	(void)state;
	assert_false(wants(hf_check_wants_acts, ""));
	assert_false(wants(hf_check_wants_acts, "kind: HealthPolicy\nspec: {mode: remediate}\n"));
	assert_false(wants(hf_check_wants_acts,
			   "kind: HealthPolicy\nspec: {mode: observe, mend: {}}\n"));
	assert_true(wants(hf_check_wants_acts,
			  "kind: HealthPolicy\nspec: {mode: remediate, mend: {}}\n"));
	assert_false(wants(hf_check_wants_acts, "kind: Remediation\nstatus: {phase: Failed}\n"));
	assert_true(wants(hf_check_wants_acts, "kind: Remediation\n"));
	assert_false(wants(hf_check_wants_rollouts,
			   "kind: DeviceRollout\nstatus: {phase: Succeeded}\n"));
	assert_true(wants(hf_check_wants_rollouts, "kind: DeviceRollout\n"));
	read_facts(&facts, OPERATOR);
	add_right(&facts, HF_CHECK_OPERATOR, HF_CHECK_ALLOWED, "get");
	add_right(&facts, HF_CHECK_MENDER, HF_CHECK_DENIED, "create");
	add_right(&facts, HF_CHECK_ROLLER, HF_CHECK_ALLOWED, "patch");
	assert_lines(
		&facts, hf_check_rights,
		"ok rights-operator: the operator's account has all 1 rights of its manifests\n"
		"warn rights-mend: the operator's account lacks 1 of 1 rights to mend nodes as "
		"HealthPolicies and Remediations ask: create deployments.apps\n"
		"  -> holdfast manifests --mender | kubectl apply -f -, or mender.enabled=true of "
		"the Helm chart\n"
		"ok rights-rollouts: the operator's account has all 1 rights to change nodes as "
		"DeviceRollouts ask\n");
	hf_check_facts_release(&facts);
}

/* ---- others ------------------------------------------------------------------------------------------ */

static void another_operator_is_found_by_its_pods(void **state)
{
	assert_rule(hf_check_operators, "", "ok operators: training-operator is not installed\n");
	assert_rule(hf_check_operators, OLD_DEPLOYMENT,
		    "ok operators: training-operator in namespace kubeflow is stopped\n");
	assert_rule(
		hf_check_operators, OLD_POD OLD_DEPLOYMENT,
		"warn operators: training-operator in namespace kubeflow runs the jobs (1 of 1 pods "
		"ready); Holdfast would replace it\n"
		"  -> holdfast check migrate\n");
	assert_rule(
		hf_check_operators, OLD_POD OPERATOR,
		"fail operators: training-operator (kubeflow) and Holdfast (holdfast-system) are both "
		"installed: while training-operator is ready (1 of 1 pods), Holdfast writes no job that "
		"both have\n"
		"  -> stop one of them, or give them different kinds (--enable-scheme) or namespaces "
		"(--namespace)\n");
	/* Holdfast under upstream's names, as in the kubeflow overlay, is not the other operator. */
	assert_rule(
		hf_check_operators,
		"kind: Deployment\nmetadata: {name: training-operator, namespace: kubeflow, labels: "
		"{app.kubernetes.io/name: holdfast, app.kubernetes.io/component: operator}}\n",
		"ok operators: training-operator is not installed\n");
}

static void an_unknown_leader_and_the_mpi_operator_are_reported(void **state)
{
	assert_rule(
		hf_check_operators,
		"kind: Lease\nmetadata: {name: 1ca428e5.training-operator.kubeflow.org, namespace: ml}\n"
		"spec: {holderIdentity: laptop_1, renewTime: '2023-11-14T22:13:10Z'}\n"
		"---\nkind: Pod\nmetadata: {name: mpi-1, namespace: mpi-operator, labels: {app: "
		"mpi-operator}}\n",
		"ok operators: training-operator is not installed\n"
		"warn operators: Lease ml/1ca428e5.training-operator.kubeflow.org is renewed by "
		"'laptop_1', and no pod of a known operator has this name\n"
		"  -> find out what runs there before you install Holdfast\n"
		"warn operators: mpi-operator runs in namespace mpi-operator (pods: 1); it owns the CRD of "
		"MPIJob v2beta1\n"
		"  -> leave MPIJob to mpi-operator: give Holdfast's operator --enable-scheme for each "
		"other kind\n");
	/* The Lease of a pod that is known, and a Lease that nothing renews. */
	assert_rule(
		hf_check_operators,
		"kind: Lease\nmetadata: {name: 1ca428e5.training-operator.kubeflow.org, namespace: "
		"kubeflow}\n"
		"spec: {holderIdentity: training-operator-1_ab, renewTime: "
		"'2023-11-14T22:13:10Z'}\n" OLD_POD
		"---\nkind: Lease\nmetadata: {name: 1ca428e5.training-operator.kubeflow.org, namespace: "
		"old}\n"
		"spec: {holderIdentity: gone_1, renewTime: '2023-11-14T22:03:10Z'}\n",
		"warn operators: training-operator in namespace kubeflow runs the jobs (1 of 1 pods "
		"ready); Holdfast would replace it\n"
		"  -> holdfast check migrate\n");
}

#define ELECTS(args)                                                                               \
	"kind: Deployment\nmetadata: {name: holdfast-operator, namespace: hs, labels: "            \
	"{app.kubernetes.io/name: holdfast, app.kubernetes.io/component: operator}}\n"             \
	"spec: {template: {spec: {containers: [{args: [" args "]}]}}}\n"
#define LEASE(ns, holder, time)                                                                      \
	"---\nkind: Lease\nmetadata: {name: 1ca428e5.training-operator.kubeflow.org, namespace: " ns \
	"}\nspec: {holderIdentity: '" holder "', renewTime: '2023-11-14T" time "Z'}\n"
#define OWN_POD                                                                                    \
	"---\nkind: Pod\nmetadata: {name: holdfast-operator-1, namespace: hs, labels: "            \
	"{app.kubernetes.io/name: holdfast, app.kubernetes.io/component: operator}}\n"
#define NO_OLD "ok operators: training-operator is not installed\n"
#define NOT_LEADING                                                                                \
	"fail operators: Holdfast's operator is installed in namespace hs and does not lead: its " \
	"Lease 1ca428e5.training-operator.kubeflow.org "
#define LOOK "  -> look at its pods: kubectl -n hs describe deployment holdfast-operator\n"

static void an_operator_that_does_not_lead_fails(void **state)
{
	assert_rule(hf_check_operators,
		    ELECTS("--leader-elect")
			    OWN_POD LEASE("hs", "holdfast-operator-1_a", "22:13:18"),
		    NO_OLD);
	/* The Lease of another namespace is that of another operator. */
	assert_rule(hf_check_operators,
		    ELECTS("--leader-elect")
			    OWN_POD LEASE("ml", "holdfast-operator-1_a", "22:13:18"),
		    NO_OLD NOT_LEADING "was never renewed\n" LOOK);
	assert_rule(hf_check_operators, ELECTS("--leader-elect") LEASE("hs", "x_1", "22:12:19"),
		    NO_OLD NOT_LEADING "was last renewed at 2023-11-14T22:12:19Z\n" LOOK);
	assert_rule(hf_check_operators, ELECTS("--leader-elect") LEASE("hs", "", "22:13:18"),
		    NO_OLD NOT_LEADING "was given up at 2023-11-14T22:13:18Z\n" LOOK);
	/* It leads without an election, or by another Lease. */
	assert_rule(hf_check_operators, ELECTS(""), NO_OLD);
	assert_rule(hf_check_operators, ELECTS("--leader-elect, --leader-election-id=mine"),
		    NO_OLD);
}

#define WEBHOOK(name, policy)                                                                      \
	"---\nkind: ValidatingWebhookConfiguration\nmetadata: {name: " name "}\n"                  \
	"webhooks: [{failurePolicy: " policy                                                       \
	", clientConfig: {service: {name: w, namespace: s}}, "                                     \
	"rules: [{apiGroups: [kubeflow.org], resources: [tfjobs, pytorchjobs]}]}]\n"
#define ENDPOINT(ready)                                                                            \
	"---\nkind: EndpointSlice\nmetadata: {name: w-1, namespace: s, labels: "                   \
	"{kubernetes.io/service-name: w}}\n"                                                       \
	"endpoints: [{conditions: {ready: " ready "}}]\n"

static void a_webhook_without_a_server_fails(void **state)
{
	assert_rule(
		hf_check_webhooks, WEBHOOK("a", "Fail"),
		"fail webhooks: ValidatingWebhookConfiguration 'a' refuses every write of tfjobs: its "
		"Service s/w has no ready endpoint\n"
		"  -> start the server of the webhook, or delete its configuration if it is a leftover\n");
	assert_rule(
		hf_check_webhooks, WEBHOOK("a", "Fail") ENDPOINT("false"),
		"fail webhooks: ValidatingWebhookConfiguration 'a' refuses every write of tfjobs: its "
		"Service s/w has no ready endpoint\n"
		"  -> start the server of the webhook, or delete its configuration if it is a leftover\n");
	assert_rule(
		hf_check_webhooks, WEBHOOK("a", "Fail") ENDPOINT("true"),
		"ok webhooks: webhooks that can refuse jobs or what they need: 1, each with a server\n");
	assert_rule(hf_check_webhooks, WEBHOOK("a", "Ignore"),
		    "ok webhooks: none can refuse jobs or what they need\n");
	/* A webhook for everything sees the pods too; one for other objects does not matter. */
	assert_rule(
		hf_check_webhooks,
		"kind: MutatingWebhookConfiguration\nmetadata: {name: all}\n"
		"webhooks: [{clientConfig: {service: {name: w, namespace: s}}, rules: [{apiGroups: ['', apps], "
		"resources: ['*/*']}]}, {clientConfig: {service: {name: x, namespace: s}}, rules: "
		"[{apiGroups: [apps], resources: [deployments]}]}]\n",
		"fail webhooks: MutatingWebhookConfiguration 'all' refuses every write of pods: its Service s/w "
		"has no ready endpoint\n"
		"  -> start the server of the webhook, or delete its configuration if it is a leftover\n");
	assert_rule(
		hf_check_webhooks,
		WEBHOOK("validator.training-operator.kubeflow.org", "Fail") ENDPOINT("true")
			OPERATOR,
		"warn webhooks: the webhook of training-operator is left over; the CRDs check what it "
		"checked\n"
		"  -> kubectl delete validatingwebhookconfiguration "
		"validator.training-operator.kubeflow.org\n");
}

#define KUEUE_CRD                                                                                  \
	"---\nkind: CustomResourceDefinition\nmetadata: {name: workloads.kueue.x-k8s.io}\n"
#define KUEUE_POD(ready)                                                                           \
	"---\nkind: Pod\nmetadata: {name: kueue-1, labels: {app.kubernetes.io/name: kueue}}\n"     \
	"spec: {containers: [{image: 'registry.k8s.io/kueue/kueue:v0.15.0'}]}\n"                   \
	"status: {conditions: [{type: Ready, status: '" ready "'}]}\n"
#define KUEUE_CONFIG(kinds)                                                                        \
	"---\nkind: ConfigMap\nmetadata: {name: kueue-manager-config}\n"                           \
	"data: {controller_manager_config.yaml: 'integrations: {frameworks: [" kinds "]}'}\n"

static void kueue_is_asked_which_kinds_it_queues(void **state)
{
	assert_rule(hf_check_kueue, "", "ok kueue: not installed\n");
	assert_rule(
		hf_check_kueue, KUEUE_CRD,
		"warn kueue: its CRDs are installed, but no pod with label app.kubernetes.io/name=kueue "
		"exists\n"
		"  -> look at Kueue's Deployment; jobs with a queue stay suspended without it\n");
	assert_rule(
		hf_check_kueue, KUEUE_CRD KUEUE_POD("False"),
		"warn kueue: Kueue is installed, but none of its pods is ready\n"
		"  -> look at Kueue's Deployment; jobs with a queue stay suspended without it\n");
	assert_rule(
		hf_check_kueue, KUEUE_CRD KUEUE_POD("True"),
		"warn kueue: Kueue v0.15.0 runs; which kinds it queues is unknown, because ConfigMap "
		"kueue-manager-config cannot be read\n");
	assert_rule(
		hf_check_kueue, KUEUE_CRD KUEUE_POD("True") KUEUE_CONFIG("batch/job"),
		"warn kueue: Kueue v0.15.0 runs, but queues no kind of kubeflow.org\n"
		"  -> add kubeflow.org/pytorchjob and other kinds to integrations.frameworks in ConfigMap "
		"kueue-manager-config\n");
	assert_rule(
		hf_check_kueue, KUEUE_CRD KUEUE_POD("True") KUEUE_CONFIG("kubeflow.org/tfjob"),
		"warn kueue: Kueue v0.15.0 queues TFJob, but has no webhook: new jobs do not wait for it\n"
		"  -> install Kueue's webhooks, or create jobs with runPolicy.suspend: true\n");
	assert_rule(
		hf_check_kueue,
		KUEUE_CRD KUEUE_POD("True") KUEUE_CONFIG(
			"batch/job, kubeflow.org/tfjob, kubeflow.org/mpijob") "---\nkind: MutatingWebhookConfiguration\nmetadata: {name: kueue-mutating-webhook-configuration}\n",
		"ok kueue: Kueue v0.15.0 queues TFJob, MPIJob\n");
}

static void a_gang_scheduler_needs_its_crd(void **state)
{
#define GANG_OPERATOR(args)                                                                        \
	OPERATOR "spec: {template: {spec: {containers: [{args: [" args "]}]}}}\n"
	static const char volcano[] =
		"---\nkind: CustomResourceDefinition\nmetadata: {name: podgroups.scheduling.volcano.sh}\n";
	HF_AUTOFREE char *both =
		hf_xasprintf("%s%s", volcano, GANG_OPERATOR("--gang-scheduler-name, volcano"));

	assert_rule(hf_check_gang, OPERATOR, "ok gang-scheduler: not installed, not used\n");
	assert_rule(
		hf_check_gang, volcano,
		"ok gang-scheduler: podgroups.scheduling.volcano.sh exists, and the operator does not use "
		"it (--gang-scheduler-name)\n");
	assert_rule(
		hf_check_gang, both,
		"ok gang-scheduler: the operator uses volcano, and CRD podgroups.scheduling.volcano.sh "
		"exists\n");
	assert_rule(
		hf_check_gang, GANG_OPERATOR("--gang-scheduler-name=scheduler-plugins-scheduler"),
		"fail gang-scheduler: the operator has --gang-scheduler-name scheduler-plugins-scheduler, "
		"but CRD podgroups.scheduling.x-k8s.io is missing: jobs wait\n"
		"  -> install the gang scheduler, or remove the flag from the operator\n");
}

/* ---- what is installed ------------------------------------------------------------------------------- */

#define CRD(name, version, more)                                                                   \
	"---\nkind: CustomResourceDefinition\nmetadata: {name: " name "}\n"                        \
	"spec: {group: kubeflow.org, versions: [{name: " version ", served: true, schema: "        \
	"{openAPIV3Schema: {properties: {status: {properties: {" more "}}}}}}]}\n"                 \
	"status: {storedVersions: [" version                                                       \
	"], conditions: [{type: Established, status: 'True'}]}\n"
#define WIDE(name) CRD(name ".kubeflow.org", "v1", "recovery: {properties: {generation: {}}}")
#define NARROW(name) CRD(name ".kubeflow.org", "v1", "conditions: {}")
#define OWN(name) CRD(name ".holdfast.dev", "v1alpha1", "")
#define ALL_WIDE                                                                                   \
	WIDE("pytorchjobs")                                                                        \
	WIDE("tfjobs") WIDE("mpijobs") WIDE("xgboostjobs") WIDE("paddlejobs") WIDE("jaxjobs")
#define ALL_OWN OWN("devicehealths") OWN("devicerollouts") OWN("healthpolicies") OWN("remediations")

static void crds_are_wide_narrow_missing_or_of_another_version(void **state)
{
	assert_rule(hf_check_crds, ALL_WIDE ALL_OWN OPERATOR,
		    "ok crds: job kinds: 6 installed with all fields\n"
		    "ok crds: kinds of holdfast.dev: 4 installed with all fields\n");
	assert_rule(
		hf_check_crds,
		NARROW("pytorchjobs") NARROW("tfjobs") NARROW("xgboostjobs") NARROW("paddlejobs")
			NARROW("jaxjobs") CRD("mpijobs.kubeflow.org", "v2beta1", ""),
		"warn crds: job kinds: 5 are upstream's (tfjobs, pytorchjobs, xgboostjobs, paddlejobs and 1 more); with them, Holdfast keeps ledgers and its fields in annotations\n"
		"  -> holdfast manifests --crds | kubectl apply --server-side --force-conflicts -f -\n"
		"warn crds: kinds of holdfast.dev: 4 not installed: devicehealths, devicerollouts, "
		"healthpolicies, remediations\n"
		"  -> install Holdfast (docs/how-to/install-operator.md); every way of installation brings "
		"the CRDs\n"
		"fail crds: mpijobs does not serve version v1\n"
		"  -> leave these kinds to their operator: give Holdfast's operator --enable-scheme for "
		"each other kind\n");
	assert_rule(
		hf_check_crds, ALL_OWN OPERATOR WIDE("tfjobs"),
		"fail crds: job kinds: 5 not installed: pytorchjobs, mpijobs, xgboostjobs, paddlejobs and "
		"1 more\n"
		"  -> holdfast manifests --crds | kubectl apply --server-side -f -\n"
		"ok crds: job kinds: 1 installed with all fields\n"
		"ok crds: kinds of holdfast.dev: 4 installed with all fields\n");
}

#define POLICY(name) "---\nkind: ValidatingAdmissionPolicy\nmetadata: {name: " name "}\n"
#define BINDING(name)                                                                              \
	"---\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: " name "}\n"                \
	"spec: {policyName: " name ", validationActions: [Deny]}\n"
#define AGENT                                                                                      \
	"---\nkind: Pod\nmetadata: {name: agent-1, namespace: holdfast-agent, labels: "            \
	"{app.kubernetes.io/name: holdfast, app.kubernetes.io/component: agent}}\n"

static void policies_count_only_with_a_binding(void **state)
{
	assert_rule(hf_check_policies, ALL_WIDE,
		    "ok policies: none of Holdfast is installed, and none is needed\n");
	/* The webhook of training-operator checks the jobs. */
	assert_rule(hf_check_policies,
		    NARROW("tfjobs") WEBHOOK("validator.training-operator.kubeflow.org", "Fail"),
		    "ok policies: none of Holdfast is installed, and none is needed\n");
	assert_rule(hf_check_policies, POLICY("holdfast-agent") BINDING("holdfast-agent") AGENT,
		    "ok policies: admission policies of Holdfast: 1, all in force\n");
	assert_rule(
		hf_check_policies, POLICY("holdfast-agent") POLICY("of-others") AGENT,
		"fail policies: not in force, because no binding names them: holdfast-agent\n"
		"  -> apply the manifests again\n"
		"fail policies: policy holdfast-agent is not in force: the token of an agent can write for "
		"every node\n"
		"  -> holdfast manifests --agent | kubectl apply -f -\n");
	assert_rule(
		hf_check_policies,
		NARROW("tfjobs") NARROW("jaxjobs") POLICY("holdfast-jaxjobs")
			BINDING("holdfast-jaxjobs"),
		"warn policies: no rule checks new tfjobs: their CRDs are upstream's, and no policy of "
		"Holdfast is in force\n"
		"  -> holdfast manifests --policy | kubectl apply -f -, or install Holdfast's CRDs\n");
}

/* ---- nodes, pods, acts --------------------------------------------------------------------------------- */

#define GPU_NODE(name)                                                                             \
	"---\nkind: Node\nmetadata: {name: " name "}\nstatus: {capacity: {nvidia.com/gpu: '8'}}\n"
#define HEALTH(name, time)                                                                         \
	"---\nkind: DeviceHealth\nmetadata: {name: " name "}\nstatus: {observedTime: '" time "'}\n"

static void each_node_with_accelerators_needs_a_report(void **state)
{
	assert_rule(
		hf_check_agents,
		"kind: Node\nmetadata: {name: cpu}\nstatus: {capacity: {cpu: '8', nvidia.com/gpu: '0'}}\n",
		"ok agents: no node has accelerators of NVIDIA or AMD, so no agent is needed\n");
	assert_rule(
		hf_check_agents, GPU_NODE("a") GPU_NODE("b"),
		"warn agents: no agent: nodes with accelerators: 2; their device faults stay unseen\n"
		"  -> holdfast manifests --agent --image IMAGE | kubectl apply -f -\n");
	assert_rule(
		hf_check_agents,
		GPU_NODE("a") GPU_NODE("b") GPU_NODE("c") HEALTH("a", "2023-11-14T22:00:00Z")
			HEALTH("b", "2023-11-14T21:13:20Z"),
		"warn agents: 2 of 3 nodes with accelerators have no report of an agent of the last 15 "
		"minutes: b (silent for 60 min), c (no report)\n"
		"  -> look at the agent's pods on these nodes (kubectl -n holdfast-agent get pods -o "
		"wide)\n");
	assert_rule(hf_check_agents, GPU_NODE("a") HEALTH("a", "2023-11-14T22:13:00Z"),
		    "ok agents: an agent reports for each node with accelerators (1)\n");
}

static void images_that_cannot_be_pulled_are_named(void **state)
{
	assert_rule(hf_check_images, AGENT,
		    "ok images: no pod of Holdfast or of a job waits for an image\n");
	assert_rule(
		hf_check_images,
		AGENT
		"status: {containerStatuses: [{image: 'holdfast:2', state: {waiting: {reason: "
		"ImagePullBackOff}}}]}\n"
		"---\nkind: Pod\nmetadata: {name: a-worker-0, namespace: team, labels: "
		"{training.kubeflow.org/job-name: a}}\n"
		"status: {initContainerStatuses: [{image: x, state: {running: {}}}], containerStatuses: "
		"[{image: 'nowhere/x:1', state: {waiting: {reason: ErrImagePull}}}]}\n"
		"---\nkind: Pod\nmetadata: {name: kueue-1, labels: {app.kubernetes.io/name: kueue}}\n"
		"status: {containerStatuses: [{image: kueue, state: {waiting: {reason: ErrImagePull}}}]}\n",
		"fail images: pods of Holdfast that cannot pull an image: holdfast-agent/agent-1; the first image: "
		"holdfast:2\n"
		"  -> correct the image's name, its registry's credentials (imagePullSecrets), or push the "
		"image\n"
		"warn images: pods of jobs that cannot pull an image: team/a-worker-0; the first image: "
		"nowhere/x:1\n"
		"  -> correct the image's name, its registry's credentials (imagePullSecrets), or push the "
		"image\n");
}

#define ACT(name, phase, made, more)                                                               \
	"---\nkind: Remediation\nmetadata: {name: " name ", creationTimestamp: '" made "'" more    \
	"}\nstatus: {phase: " phase "}\n"

static void leftovers_of_acts_are_reported(void **state)
{
	assert_rule(hf_check_remediations,
		    ACT("a", "Succeeded", "2023-11-01T00:00:00Z", "")
			    ACT("b", "Draining", "2023-11-14T22:00:00Z", "") OPERATOR,
		    "ok remediations: acts on nodes: 2, not at an end: 1\n");
	assert_rule(
		hf_check_remediations, ACT("b", "Draining", "2023-11-12T22:00:00Z", "") OPERATOR,
		"warn remediations: acts on nodes that do not come to an end: b (Draining)\n"
		"  -> 'holdfast describe remediation/NAME' says what it waits for; 'kubectl delete "
		"remediation NAME' withdraws it\n");
	assert_rule(
		hf_check_remediations,
		ACT("c", "Succeeded", "2023-11-14T22:00:00Z",
		    ", deletionTimestamp: '2023-11-14T22:10:00Z'") "---\nkind: Node\nmetadata: {name: frail}\n"
								   "spec: {taints: [{key: "
								   "holdfast.dev/device}]}\n",
		"warn remediations: acts on nodes that do not come to an end: c (being deleted, its finalizer "
		"waits for an operator)\n"
		"  -> install the operator with --mender, or delete them and their finalizers\n"
		"warn remediations: nodes with Holdfast's quarantine taint, and no operator that would remove it: frail\n"
		"  -> kubectl taint node NODE holdfast.dev/device-, after a look at the node\n");
}

#define VERSIONS(name, versions)                                                                   \
	"---\nkind: DeviceHealth\nmetadata: {name: " name "}\nstatus: {" versions "}\n"

static void versions_of_drivers_are_counted_and_mixed_ones_named(void **state)
{
	assert_rule(hf_check_drivers, VERSIONS("a", ""), "");
	assert_rule(hf_check_drivers,
		    VERSIONS("a", "driverVersion: 570.86.15, libraryVersion: 570.86.15")
			    VERSIONS("b", "driverVersion: 570.86.15")
				    VERSIONS("c", "driverVersion: 575.57.08"),
		    "ok drivers: versions of the GPU driver, with numbers of nodes: 570.86.15 (2), "
		    "575.57.08 (1)\n");
	assert_rule(
		hf_check_drivers,
		VERSIONS("a", "libraryVersion: 575.57.08, moduleVersion: 570.86.15"),
		"warn drivers: parts of the GPU driver have different versions on: a (library 575.57.08, "
		"module 570.86.15)\n"
		"  -> restart the node, or reload the driver on it: an update left parts of two "
		"versions\n");
}

#define ROLLOUT(name, status) "---\nkind: DeviceRollout\nmetadata: {name: " name "}\n" status

static void halted_and_unseen_rollouts_are_named(void **state)
{
	assert_rule(hf_check_rollouts, OPERATOR, "ok rollouts: no rollouts of drivers\n");
	assert_rule(hf_check_rollouts,
		    ROLLOUT("a", "status: {phase: Rolling}\n")
			    ROLLOUT("b", "status: {phase: Succeeded}\n"),
		    "ok rollouts: rollouts of drivers: 2, not at an end: 1\n");
	assert_rule(hf_check_rollouts, ROLLOUT("a", "status: {phase: Halted}\n") ROLLOUT("b", ""),
		    "warn rollouts: rollouts of drivers that halted: a\n"
		    "  -> 'holdfast why rollout/NAME' says what differed and on which node\n"
		    "warn rollouts: rollouts of drivers that no operator has seen: b\n"
		    "  -> install the operator with --rollouts, and look at its log\n");
}

/* ---- migrate ------------------------------------------------------------------------------------------- */

static void the_owner_of_the_crds_is_found(void **state)
{
	assert_rule(hf_check_owners, NARROW("tfjobs"),
		    "ok owners: no tool such as Helm, Flux or Argo CD owns the CRDs\n");
	assert_rule(
		hf_check_owners,
		"kind: CustomResourceDefinition\nmetadata: {name: tfjobs.kubeflow.org, annotations: "
		"{meta.helm.sh/release-name: kf}}\nspec: {group: kubeflow.org}\n"
		"---\nkind: CustomResourceDefinition\nmetadata: {name: workloads.kueue.x-k8s.io, "
		"annotations: {meta.helm.sh/release-name: kueue}}\nspec: {group: kueue.x-k8s.io}\n",
		"warn owners: Helm release 'kf' owns 1 CRDs: tfjobs.kubeflow.org\n"
		"  -> tell the tool to leave the CRDs alone before you apply Holdfast's; it would put "
		"upstream's back\n");
	/* Holdfast's chart brings all CRDs. */
	assert_rule(
		hf_check_owners,
		"kind: CustomResourceDefinition\nmetadata: {name: tfjobs.kubeflow.org, annotations: "
		"{meta.helm.sh/release-name: hf}}\nspec: {group: kubeflow.org}\n"
		"---\nkind: CustomResourceDefinition\nmetadata: {name: remediations.holdfast.dev, "
		"annotations: {meta.helm.sh/release-name: hf}}\nspec: {group: holdfast.dev}\n",
		"ok owners: Helm release 'hf', which installs Holdfast, owns the CRDs\n");
}

#define JOB(name, run, more)                                                                       \
	"---\napiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: " name               \
	", namespace: team}\nspec: {runPolicy: {" run                                              \
	"}, pytorchReplicaSpecs: {Worker: {replicas: 1, "                                          \
	"template: {spec: {containers: [{name: pytorch, image: x" more "}]}}}}}\n"

static void jobs_that_will_behave_differently_are_named(void **state)
{
	assert_rule(
		hf_check_jobs,
		JOB("plain", "", "") "status: {conditions: [{type: Running, status: 'True'}]}\n" JOB(
			"limited", "backoffLimit: 3", "")
			JOB("ended", "suspend: true, ttlSecondsAfterFinished: 60, backoffLimit: 3",
			    "") "status: {conditions: [{type: Failed, status: 'True'}]}\n",
		"ok jobs: 3 exist, 1 of them running, 1 ended; their pods stay as they are\nwarn jobs: backoffLimit counts incidents of the application, and also replaced "
		"pods: team/limited\n"
		"  -> read row D27 of docs/reference/differences.md\nwarn jobs: ttlSecondsAfterFinished deletes jobs that have ended and are suspended: team/ended\n"
		"  -> read row D33 of docs/reference/differences.md\n");
	assert_rule(
		hf_check_jobs,
		JOB("ports", "activeDeadlineSeconds: 60",
		    ", ports: [{containerPort: 80}]") "---\napiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: bad, "
						      "namespace: team}\nspec: {pytorchReplicaSpecs: {Worker: {replicas: -1, template: "
						      "{spec: {containers: [{name: pytorch, image: x}]}}}}}\n",
		"ok jobs: 2 exist, 0 of them running, 0 ended; their pods stay as they are\nwarn jobs: jobs that break a rule of Holdfast's CRDs: team/bad; the first: "
		"spec.pytorchReplicaSpecs[Worker].replicas: Forbidden: must be at least 1\n"
		"  -> correct their manifests; Holdfast holds such a job with event FailedValidation\nwarn jobs: activeDeadlineSeconds adds up the active times, and ends a job by "
		"itself: team/ports\n"
		"  -> read row D28 of docs/reference/differences.md\nwarn jobs: a container port without a name gets the name port-NUMBER, and its "
		"Service is created: team/ports\n"
		"  -> read row D40 of docs/reference/differences.md\n");
}

static void assert_done(const char *objects, const char *wanted)
{
	struct hf_check_step steps[HF_CHECK_STEPS];
	struct hf_check_facts facts;
	char done[HF_CHECK_STEPS + 1] = "";

	read_facts(&facts, objects);
	hf_check_plan(&facts, steps);
	for (size_t i = 0; i < HF_CHECK_STEPS; i++) {
		done[i] = steps[i].done ? 'x' : '.';
		free(steps[i].command);
	}
	assert_string_equal(done, wanted);
	hf_check_facts_release(&facts);
}

static void the_steps_know_which_are_done(void **state)
{
	assert_done(NARROW("tfjobs") OLD_POD OLD_DEPLOYMENT WEBHOOK(
			    "validator.training-operator.kubeflow.org", "Fail"),
		    "......");
	assert_done(ALL_WIDE OLD_POD OLD_DEPLOYMENT, "xx....");
	assert_done(ALL_WIDE OLD_DEPLOYMENT, "xxx...");
	assert_done(ALL_WIDE OLD_DEPLOYMENT OPERATOR, "xxxx..");
	assert_done(ALL_WIDE OPERATOR, "xxxx.x");
}

/* ---- the verb ------------------------------------------------------------------------------------------ */

static void the_verb_prints_each_check_and_counts_them(void **state)
{
	struct cli_world *w = *state;

	cli_world_version(w, "v1.36.3");
	cli_world_run(w, "check", NULL);
	assert_int_equal(w->code, 0);
	assert_has(w->out, "ok    api-server       v1.36.3, a tested version\n");
	assert_has(w->out, "ok    kueue            not installed\n");
	assert_has(
		w->out,
		"\n                       -> install Holdfast (docs/how-to/install-operator.md)");
	assert_has(w->out, " warn, 0 fail\n");
	cli_world_run(w, "check", "migrate", "-o", "json", NULL);
	assert_int_equal(w->code, 0);
	assert_has(w->out, "\"check\": \"jobs\"");
	assert_has(w->out, "\"command\": \"holdfast get -A\"");
	assert_has(w->out, "\"failed\": 0");
}

static void a_failed_check_gives_exit_code_1(void **state)
{
	struct cli_world *w = *state;

	cli_world_version(w, "v1.36.3");
	cli_world_put(
		w,
		"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'o','labels':"
		"{'app.kubernetes.io/name':'holdfast'}},'spec':{'containers':[{'name':'c','image':'x'}]},"
		"'status':{'phase':'Pending','containerStatuses':[{'name':'c','image':'x','imageID':'',"
		"'ready':false,'restartCount':0,'state':{'waiting':{'reason':'ErrImagePull'}}}]}}");
	cli_world_run(w, "check", NULL);
	assert_int_equal(w->code, 1);
	assert_has(w->out,
		   "fail  images           pods of Holdfast that cannot pull an image: default/o");
	assert_has(w->out, " warn, 1 fail\n");
}

static void a_wrong_command_line_and_a_lost_server_have_their_own_codes(void **state)
{
	struct cli_world *w = *state;

	cli_world_run(w, "check", "-o", "yaml", NULL);
	assert_int_equal(w->code, 2);
	cli_world_run(w, "check", "all", NULL);
	assert_int_equal(w->code, 2);
	/* A server without /version is no API server, and not an empty cluster. */
	cli_world_run(w, "check", NULL);
	assert_int_equal(w->code, 3);
	assert_has(
		w->err,
		"the server is no Kubernetes API server, for it has no /version: correct 'server'");
	w->connect_code = HF_E_UNAVAILABLE;
	cli_world_run(w, "check", NULL);
	assert_int_equal(w->code, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_version_of_the_server_is_compared_with_the_tested_ones),
		cmocka_unit_test(a_wrong_clock_is_named_with_its_seconds),
		cmocka_unit_test(missing_rights_are_named),
		cmocka_unit_test(rights_for_acts_are_asked_if_an_object_needs_them),
		cmocka_unit_test(another_operator_is_found_by_its_pods),
		cmocka_unit_test(an_unknown_leader_and_the_mpi_operator_are_reported),
		cmocka_unit_test(an_operator_that_does_not_lead_fails),
		cmocka_unit_test(a_webhook_without_a_server_fails),
		cmocka_unit_test(kueue_is_asked_which_kinds_it_queues),
		cmocka_unit_test(a_gang_scheduler_needs_its_crd),
		cmocka_unit_test(crds_are_wide_narrow_missing_or_of_another_version),
		cmocka_unit_test(policies_count_only_with_a_binding),
		cmocka_unit_test(each_node_with_accelerators_needs_a_report),
		cmocka_unit_test(images_that_cannot_be_pulled_are_named),
		cmocka_unit_test(leftovers_of_acts_are_reported),
		cmocka_unit_test(versions_of_drivers_are_counted_and_mixed_ones_named),
		cmocka_unit_test(halted_and_unseen_rollouts_are_named),
		cmocka_unit_test(the_owner_of_the_crds_is_found),
		cmocka_unit_test(jobs_that_will_behave_differently_are_named),
		cmocka_unit_test(the_steps_know_which_are_done),
		cmocka_unit_test_setup_teardown(the_verb_prints_each_check_and_counts_them,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(a_failed_check_gives_exit_code_1, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(
			a_wrong_command_line_and_a_lost_server_have_their_own_codes,
			cli_world_setup, cli_world_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
