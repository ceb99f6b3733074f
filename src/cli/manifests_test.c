/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/cli.h"

#include "api/job.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/verbs_internal.h"
#include "framework/framework.h"
#include "harness/test.h"
#include "json/doc.h"
#include "json/patch.h"
#include "json/yaml.h"

#include <stdlib.h>
#include <string.h>

struct said {
	int code;
	char *out, *err;
};

static struct said run(const char *const *argv)
{
	static const struct hf_cli_verb *const *const tables[] = {hf_cli_verbs, NULL};
	struct said said = {.code = -1};
	struct hf_cli cli = {.ns = hf_xstrdup("default")};
	size_t out_len, err_len;
	int argc = 0;

	while (argv[argc] != NULL)
		argc++;
	cli.out = open_memstream(&said.out, &out_len);
	cli.err = open_memstream(&said.err, &err_len);
	assert_non_null(cli.out);
	assert_non_null(cli.err);
	said.code = hf_cli_main(&cli, tables, argc, argv);
	(void)fclose(cli.out);
	(void)fclose(cli.err);
	free(cli.ns);
	return said;
}
#define RUN(...) run((const char *const[]){"holdfast", "manifests", ##__VA_ARGS__, NULL})

static void said_release(struct said *said)
{
	free(said->out);
	free(said->err);
}
#define AUTO_SAID HF_CLEANUP(said_release) struct said

static size_t count(const char *text, const char *part)
{
	size_t n = 0;

	for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part))
		n++;
	return n;
}

static void each_kind_has_its_crd_and_the_operator_comes_with_it(void **state)
{
	AUTO_SAID said = RUN();

	assert_int_equal(said.code, HF_EXIT_OK);
	assert_int_equal(count(said.out, "kind: CustomResourceDefinition\n"), 10);
	assert_int_equal(count(said.out, "kind: Deployment\n"), 1);
	/* Without --policy only the policies that warn are printed: the CRDs already contain the
	 * rules that deny. */
	assert_int_equal(count(said.out, "kind: ValidatingAdmissionPolicy\n"), 2);
	for (size_t i = 0; hf_frameworks[i] != NULL; i++) {
		HF_AUTOFREE char *name = hf_xasprintf("name: %s.%s,", hf_frameworks[i]->plural,
						      hf_frameworks[i]->group);

		assert_int_equal(count(said.out, name), 1);
	}
}

static void a_gang_scheduler_brings_its_rights_and_its_flag(void **state)
{
	AUTO_SAID plain = RUN("--operator");
	AUTO_SAID said = RUN("--operator", "--gang-scheduler-name", "volcano", "-n", "mine");
	AUTO_SAID crds = RUN("--crds", "--gang-scheduler-name", "volcano");
	AUTO_SAID wrong = RUN("--operator", "--gang-scheduler-name", "a]");

	assert_int_equal(count(plain.out, "podgroups"), 0);
	assert_int_equal(count(plain.out, "args: [--leader-elect]\n"), 1);
	assert_int_equal(count(said.out, "[podgroups]"), 2);
	assert_int_equal(count(said.out, "args: [--leader-elect, --gang-scheduler-name=volcano]\n"),
			 1);
	assert_int_equal(count(said.out, "holdfast-system"), 0);
	assert_int_equal(count(crds.out, "[podgroups]"), 0);
	assert_int_equal(wrong.code, HF_EXIT_USAGE);
}

static void a_part_is_printed_alone(void **state)
{
	AUTO_SAID crds = RUN("--crds");
	AUTO_SAID operator= RUN("--operator");
	AUTO_SAID policy = RUN("--policy", "--operator");

	assert_int_equal(count(crds.out, "kind: CustomResourceDefinition\n"), 10);
	assert_int_equal(count(crds.out, "kind: Deployment\n"), 0);
	assert_int_equal(count(operator.out, "kind: CustomResourceDefinition\n"), 0);
	assert_int_equal(count(operator.out, "kind: Deployment\n"), 1);
	assert_int_equal(count(policy.out, "name: devicehealths.holdfast.dev,"), 1);
	assert_int_equal(count(policy.out, "name: healthpolicies.holdfast.dev,"), 1);
	assert_int_equal(count(policy.out, "name: remediations.holdfast.dev,"), 1);
	assert_int_equal(count(policy.out, "name: devicerollouts.holdfast.dev,"), 1);
	assert_int_equal(count(policy.out, "kind: CustomResourceDefinition\n"), 4);
	assert_int_equal(count(policy.out, "kind: ValidatingAdmissionPolicy\n"), 8);
}

static void namespace_and_image_are_put_everywhere(void **state)
{
	AUTO_SAID plain = RUN("--operator");
	AUTO_SAID said =
		RUN("--operator", "-n", "kubeflow", "--image", "r.example:5000/h@sha256:0");

	assert_int_equal(said.code, HF_EXIT_OK);
	assert_true(count(plain.out, ": holdfast-system\n") >= 8);
	assert_int_equal(count(said.out, ": holdfast-system\n"), 0);
	assert_int_equal(count(said.out, ": kubeflow\n"), count(plain.out, ": holdfast-system\n"));
	assert_int_equal(count(plain.out, "image: holdfast:" HF_VERSION "\n"), 1);
	assert_int_equal(count(said.out, "image: r.example:5000/h@sha256:0\n"), 1);
	/* The marks themselves are not printed. */
	assert_int_equal(count(plain.out, "# --"), 0);
}

static void the_agent_comes_where_it_is_asked_for(void **state)
{
	AUTO_SAID all = RUN();
	AUTO_SAID agent = RUN("--agent", "-n", "watch", "--image", "r.example/h:2");
	AUTO_SAID both = RUN("--agent", "--operator", "-n", "one");

	assert_int_equal(count(all.out, "kind: DaemonSet\n"), 0);
	assert_int_equal(agent.code, HF_EXIT_OK);
	assert_int_equal(count(agent.out, "kind: DaemonSet\n"), 1);
	assert_int_equal(count(agent.out, "kind: Deployment\n"), 0);
	assert_int_equal(count(agent.out, "kind: ValidatingAdmissionPolicy\n"), 1);
	assert_int_equal(count(agent.out, "name: devicehealths.holdfast.dev,"), 1);
	assert_int_equal(count(agent.out, "name: healthpolicies.holdfast.dev,"), 0);
	assert_int_equal(count(agent.out, "image: r.example/h:2\n"), 1);
	assert_int_equal(count(agent.out, "namespace: watch\n"), 4);
	assert_int_equal(both.code, HF_EXIT_USAGE);
}

static void what_is_no_image_is_refused(void **state)
{
	static const char *const bad[] = {"", "a b", "a\nb: c", "a:", "{}", "-a", "\"a\""};

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		AUTO_SAID said = RUN("--image", bad[i]);

		assert_int_equal(said.code, HF_EXIT_USAGE);
		assert_string_equal(said.out, "");
	}
}

static void crds_and_policy_exclude_each_other(void **state)
{
	AUTO_SAID said = RUN("--crds", "--policy");

	assert_int_equal(said.code, HF_EXIT_USAGE);
	assert_non_null(strstr(said.err, "exclude each other"));
}

/* --- the schema and the code ---------------------------------------------------------------- */

/* Returns the document with this metadata.name, owned by `yaml`; NULL: no such document. */
static const struct hf_json *document(const struct hf_yaml *yaml, const char *name)
{
	for (size_t i = 0; i < hf_yaml_len(yaml); i++)
		if (hf_streq(hf_json_path_str(hf_yaml_doc(yaml, i), "metadata", "name", NULL),
			     name))
			return hf_yaml_doc(yaml, i);
	return NULL;
}

/* Checks that the schema has each member of the value. An open object without properties accepts
 * every member. */
static void assert_has_place(const struct hf_json *schema, const struct hf_json *value,
			     const char *path)
{
	const struct hf_json *any = hf_json_get(schema, "additionalProperties");
	const struct hf_json *properties = hf_json_get(schema, "properties");
	struct hf_json *member;
	const char *key;

	for (size_t i = 0; hf_json_type(value) == HF_JSON_ARRAY && i < hf_json_len(value); i++)
		assert_has_place(hf_json_get(schema, "items"), hf_json_item(value, i), path);
	if (hf_json_type(value) != HF_JSON_OBJECT ||
	    (properties == NULL && any == NULL &&
	     hf_json_true(hf_json_get(schema, "x-kubernetes-preserve-unknown-fields"), false)))
		return;
	for (void *it = NULL; (it = hf_json_next(value, it, &key, &member)) != NULL;) {
		HF_AUTOFREE char *here = hf_xasprintf("%s.%s", path, key);
		const struct hf_json *place = any != NULL ? any : hf_json_get(properties, key);

		if (place == NULL)
			fail_msg("%s is written and not in the CRD", here);
		assert_has_place(place, member, here);
	}
}

/* A record that has every field. */
static const struct hf_record full_record = {
	.generation = 1,
	.incident = 1,
	.cause = HF_CLASS_DEVICE,
	.reason = "r",
	.message = "m",
	.scope = "Job",
	.replica = "worker-1",
	.pod = "p",
	.node = "n",
	.device = "d",
	.exit_code = {.set = true, .value = 1},
	.signal = {.set = true, .value = 9},
	.rule = "r",
	.detected_at = HF_SECOND,
	.decided_at = HF_SECOND,
	.running_at = HF_SECOND,
	.in_place = true,
	.ended_at = HF_SECOND,
	.down_at = HF_SECOND,
	.step = 1,
	.saved_step = 1,
};

static const struct hf_role_ledger full_role = {.attempts = "0:1",
						.created = "0",
						.succeeded = "0",
						.seen = "0:1",
						.init_seen = "0:1",
						.trained = "0",
						.covered = "0",
						.hold = "0",
						.in_place = "0:1",
						.in_place_since = "0:1"};

static const struct hf_condition full_condition = {.type = "Running",
						   .status = "True",
						   .reason = "r",
						   .message = "m",
						   .last_update = HF_SECOND,
						   .last_transition = HF_SECOND,
						   .stored = -1};

/* A status that has every field. */
static struct hf_json *full_status(const struct hf_framework *framework)
{
	struct hf_status status = {
		.conditions = &full_condition,
		.conditions_len = 1,
		.start_time = HF_SECOND,
		.completion_time = HF_SECOND,
		.last_reconcile_time = HF_SECOND,
		.ledger = {.present = true,
			   .schema = HF_LEDGER_SCHEMA,
			   .generation = 1,
			   .since = HF_SECOND,
			   .incident = {.id = 1,
					.opened_at = HF_SECOND,
					.cause = HF_CLASS_DEVICE,
					.charged = HF_BUDGET_DEVICE},
			   .not_before = HF_SECOND,
			   .active_seconds = 1,
			   .restarts = {1, 1, 1},
			   .streak = {1, 1, 1},
			   .records = {full_record, full_record},
			   .records_len = 2,
			   .downtime_seconds = 1,
			   .productive_seconds = 1,
			   .in_place_base = 1,
			   .in_place_incident = 1,
			   .in_place_at = HF_SECOND,
			   .in_place_streak = 1,
			   .best_step = 1,
			   .no_progress_streak = 1,
			   .restart_handled = "r",
			   .verdict = {.reason = "r", .message = "m", .at = HF_SECOND}},
	};

	for (int role = 0; role < framework->roles_len; role++) {
		status.replicas[role] = (struct hf_replica_status){
			.present = true, .active = 1, .succeeded = 1, .failed = 1, .selector = "s"};
		status.ledger.roles[role] = full_role;
	}
	return hf_status_write(&status, framework, NULL);
}

static void all_that_is_written_into_status_has_its_place_in_the_crds(void **state)
{
	AUTO_SAID said = RUN("--crds");
	HF_AUTO_YAML yaml = NULL;
	struct hf_error err;

	assert_int_equal(hf_yaml_parse(said.out, strlen(said.out), NULL, &yaml, &err), 0);
	for (size_t i = 0; hf_frameworks[i] != NULL; i++) {
		HF_AUTOFREE char *name =
			hf_xasprintf("%s.%s", hf_frameworks[i]->plural, hf_frameworks[i]->group);
		const struct hf_json *crd = document(yaml, name);
		HF_AUTO_JSON status = full_status(hf_frameworks[i]);
		const struct hf_json *version =
			hf_json_item(hf_json_path(crd, "spec", "versions", NULL), 0);

		assert_non_null(version);
		assert_has_place(hf_json_path(version, "schema", "openAPIV3Schema", "properties",
					      "status", NULL),
				 status, "status");
	}
}

static void the_mender_is_printed_only_when_asked_for(void **state)
{
	AUTO_SAID all = RUN();
	AUTO_SAID mender = RUN("--mender", "-n", "mine");
	AUTO_SAID both = RUN("--mender", "--agent", "-n", "mine");

	assert_int_equal(count(all.out, "holdfast-mend"), 0);
	assert_int_equal(mender.code, HF_EXIT_OK);
	assert_int_equal(count(mender.out, "kind: ValidatingAdmissionPolicy\n"), 3);
	assert_int_equal(count(mender.out, "kind: Namespace\n"), 1);
	/* -n changes the operator's namespace; the actor's namespace is fixed. */
	assert_int_equal(count(mender.out, "    namespace: mine\n"), 2);
	assert_int_equal(count(mender.out, "  name: holdfast-mend\n"), 1);
	assert_int_equal(count(mender.out, "holdfast-system"), 0);
	assert_int_equal(both.code, HF_EXIT_USAGE);
}

static void rollouts_are_printed_only_when_asked_for(void **state)
{
	AUTO_SAID all = RUN();
	AUTO_SAID rollouts = RUN("--rollouts", "-n", "mine");
	AUTO_SAID both = RUN("--rollouts", "--mender");

	assert_int_equal(count(all.out, "holdfast-rollout"), 0);
	assert_int_equal(rollouts.code, HF_EXIT_OK);
	/* The Leases of nodes are in the namespace of actors, which has its policies. */
	assert_int_equal(count(rollouts.out, "kind: ValidatingAdmissionPolicy\n"), 4);
	assert_int_equal(count(rollouts.out, "  name: holdfast-mend\n"), 1);
	assert_int_equal(count(rollouts.out, "    namespace: mine\n"), 2);
	assert_int_equal(count(rollouts.out, "name: holdfast-mend-operator"), 0);
	assert_int_equal(both.code, HF_EXIT_OK);
	assert_int_equal(count(both.out, "kind: Namespace\n"), 1);
	assert_int_equal(count(both.out, "kind: ValidatingAdmissionPolicy\n"), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_has_its_crd_and_the_operator_comes_with_it),
		cmocka_unit_test(a_gang_scheduler_brings_its_rights_and_its_flag),
		cmocka_unit_test(a_part_is_printed_alone),
		cmocka_unit_test(the_mender_is_printed_only_when_asked_for),
		cmocka_unit_test(rollouts_are_printed_only_when_asked_for),
		cmocka_unit_test(namespace_and_image_are_put_everywhere),
		cmocka_unit_test(the_agent_comes_where_it_is_asked_for),
		cmocka_unit_test(what_is_no_image_is_refused),
		cmocka_unit_test(crds_and_policy_exclude_each_other),
		cmocka_unit_test(all_that_is_written_into_status_has_its_place_in_the_crds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
