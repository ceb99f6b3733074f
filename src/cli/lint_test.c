/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

#include "base/mem.h"
#include "base/str.h"
#include "harness/cli_world.h"
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOB(metadata)                                                                              \
	"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: " metadata                       \
	"\nspec:\n  pytorchReplicaSpecs:\n    Master:\n      replicas: 1\n"                        \
	"      template:\n        spec:\n"                                                         \
	"          containers:\n          - {name: pytorch, image: x, command: [ls]}\n"

static char dir[64];

static int setup(void **state)
{
	struct cli_world *world = hf_xcalloc(1, sizeof(*world));

	cli_world_init(world);
	*state = world;
	(void)snprintf(dir, sizeof(dir), "/tmp/hf-lint-XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)unlink("good.yaml");
	(void)unlink("bad.yaml");
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rmdir(dir), 0);
	cli_world_release(*state);
	free(*state);
	return 0;
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* lint succeeds for a file with this text, and writes only `said`. */
static void expect_good(struct cli_world *w, const char *text, const char *said)
{
	put("good.yaml", text);
	cli_world_run(w, "lint", "good.yaml", NULL);
	assert_said(w, 0, said, "");
}

struct wrong {
	const char *text, *said;
};

/* lint fails for a file with each text, and its errors have `said`. */
static void expect_wrong(struct cli_world *w, const struct wrong *rows, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		put("bad.yaml", rows[i].text);
		cli_world_run(w, "lint", "bad.yaml", NULL);
		assert_int_equal(w->code, HF_EXIT_USAGE);
		assert_has(w->err, rows[i].said);
		assert_string_equal(w->out, "");
	}
}

static void a_good_file_is_called_fine(void **state)
{
	struct cli_world *w = *state;

	expect_good(w, JOB("{name: j}"), "good.yaml: PyTorchJob 'j' is valid\n");
}

#define RECOVERY_JOB(recovery)                                                                     \
	"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec:\n"              \
	"  runPolicy: {recovery: " recovery "}\n"                                                  \
	"  pytorchReplicaSpecs:\n    Worker:\n      template:\n        spec:\n"                    \
	"          containers:\n          - {name: pytorch, image: x, command: [ls]}\n"

/* Without reports of steps the limit would have no effect. */
static void a_job_that_reports_steps_is_advised_to_limit_restarts_without_progress(void **state)
{
	static const char *const reporting[] = {RECOVERY_JOB("{progressDeadlineSeconds: 600}"),
						RECOVERY_JOB("{checkpoint: {graceSeconds: 60}}")};
	static const char *const others[] = {
		RECOVERY_JOB("{progressDeadlineSeconds: 600, noProgressLimit: 3}"),
		RECOVERY_JOB("{progressDeadlineSeconds: 600, noProgressLimit: 0}"),
		RECOVERY_JOB("{checkpoint: {graceSeconds: 0}}")};
	struct cli_world *w = *state;

	for (size_t i = 0; i < HF_ARRAY_LEN(reporting); i++)
		expect_good(
			w, reporting[i],
			"good.yaml: PyTorchJob 'j' is valid\n"
			"good.yaml: advice: spec.runPolicy.recovery.noProgressLimit: not set: restarts "
			"that bring no new step go on without end; 3 ends the job after three of them "
			"in a row\n");
	for (size_t i = 0; i < HF_ARRAY_LEN(others); i++)
		expect_good(w, others[i], "good.yaml: PyTorchJob 'j' is valid\n");
}

static void one_bad_file_of_several_is_code_2_and_the_others_are_looked_at(void **state)
{
	struct cli_world *w = *state;

	put("good.yaml", JOB("{name: j}"));
	put("bad.yaml", JOB("{name: j, labels: {a: 1}}"));
	cli_world_run(w, "lint", "bad.yaml", "good.yaml", NULL);
	assert_said(
		w, HF_EXIT_USAGE, "good.yaml: PyTorchJob 'j' is valid\n",
		"holdfast: bad.yaml:3: metadata.labels: Invalid value: \"a\": must be a string\n");
}

static void no_server_is_needed(void **state)
{
	struct cli_world *w = *state;

	w->connect_code = HF_E_UNAVAILABLE;
	put("good.yaml", JOB("{name: j, namespace: nowhere}"));
	cli_world_run(w, "lint", "good.yaml", NULL);
	assert_int_equal(w->code, 0);
}

static void what_is_not_there_is_told_with_its_name(void **state)
{
	struct cli_world *w = *state;

	cli_world_run(w, "lint", "nosuch.yaml", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
	assert_has(w->err, "nosuch.yaml");
	cli_world_run(w, "lint", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
}

#define POD_JOB(container)                                                                         \
	"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec:\n"              \
	"  pytorchReplicaSpecs:\n    Worker:\n      template:\n        spec:\n"                    \
	"          containers:\n          - " container "\n"

static void a_container_without_a_command_is_warned_of(void **state)
{
	struct cli_world *w = *state;

	put("good.yaml", POD_JOB("{name: pytorch, image: x, args: [a]}"));
	cli_world_run(w, "lint", "good.yaml", NULL);
	assert_said(
		w, 0, "good.yaml: PyTorchJob 'j' is valid\n",
		"holdfast: good.yaml:10: warning: "
		"spec.pytorchReplicaSpecs[Worker].template.spec.containers[0].command: not set: "
		"a cluster runs the image's command, but 'holdfast run' pulls no image and "
		"cannot start the container\n");
}

static void what_would_keep_every_pod_from_being_made_is_refused(void **state)
{
	static const char *const containers[] = {
		"{name: pytorch, image: x, command: [ls], env: [{name: A=B}]}",
		"{name: pytorch, image: x, command: [ls], env: [{name: STEPS, value: 300}]}",
		"{name: pytorch, image: x, command: ls}",
		"{name: pytorch, image: x, command: [ls], resources: {limits: {memory: 1GB}}}",
		"{name: pytorch, image: x, command: [ls], resources: {limits: {memory: -1Gi}}}",
		"{name: pytorch, image: x, command: [ls], volumeMounts: [{name: v, mountPath: /v}]}",
	};
	static const char *const fields[] = {
		"spec.containers[0].env[0].name", "spec.containers[0].env[0].value",
		"spec.containers[0].command",     "spec.containers[0].resources.limits.memory",
		"resources.limits[memory]",       "spec.containers[0].volumeMounts[0].name",
	};
	struct cli_world *w = *state;

	for (size_t i = 0; i < HF_ARRAY_LEN(containers); i++) {
		HF_AUTOFREE char *text = hf_xasprintf(POD_JOB("%s"), containers[i]);
		put("bad.yaml", text);
		cli_world_run(w, "lint", "bad.yaml", NULL);
		assert_int_equal(w->code, HF_EXIT_USAGE);
		assert_string_equal(w->out, "");
		assert_has(w->err, "bad.yaml:10: spec.pytorchReplicaSpecs");
		assert_has(w->err, fields[i]);
	}
}

static void a_job_without_replicas_is_warned_of(void **state)
{
	struct cli_world *w = *state;

	put("bad.yaml", "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\n"
			"spec: {pytorchReplicaSpecs: {}}\n");
	cli_world_run(w, "lint", "bad.yaml", NULL);
	assert_said(w, 0, "bad.yaml: PyTorchJob 'j' is valid\n",
		    "holdfast: bad.yaml: warning: spec.pytorchReplicaSpecs: is empty: a job "
		    "without replicas never ends; add a replica type\n");
}

static void a_folder_is_checked_by_its_manifests(void **state)
{
	struct cli_world *w = *state;

	put("good.yaml", JOB("{name: j}"));
	put("bad.yaml", JOB("{name: j, labels: {a: 1}}"));
	put("notes.txt", "no manifest");
	cli_world_run(w, "lint", ".", NULL);
	assert_int_equal(unlink("notes.txt"), 0);
	assert_said(
		w, HF_EXIT_USAGE, "./good.yaml: PyTorchJob 'j' is valid\n",
		"holdfast: ./bad.yaml:3: metadata.labels: Invalid value: \"a\": must be a string\n");
}

static void files_of_other_programs_in_a_folder_are_passed(void **state)
{
	static const char *const names[] = {"ds.json", "lines.json", "list.json", "void.yaml",
					    "kind.yaml"};
	struct cli_world *w = *state;

	put("good.yaml", JOB("{name: j}"));
	put("ds.json", "{\"train_batch_size\": 8, \"spec\": {}}");
	put("lines.json", "{\"step\": 1}\n{\"step\": 2}\n");
	put("list.json", "[1, 2]");
	put("void.yaml", "");
	cli_world_run(w, "lint", ".", NULL);
	assert_said(w, 0,
		    "./ds.json: is not a Kubernetes object, so it is not checked\n"
		    "./good.yaml: PyTorchJob 'j' is valid\n"
		    "./lines.json: is neither YAML nor JSON, so it is not checked\n"
		    "./list.json: is not a Kubernetes object, so it is not checked\n"
		    "./void.yaml: has no document, so it is not checked\n",
		    "");
	/* A file that the user names, and a manifest with a mistake. */
	cli_world_run(w, "lint", "ds.json", NULL);
	assert_said(
		w, HF_EXIT_USAGE, "",
		"holdfast: ds.json:1: not a Kubernetes object: apiVersion or kind is missing\n");
	put("kind.yaml", "kind: PyTorchJob\nmetadata: {name: j}\n");
	cli_world_run(w, "lint", ".", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++)
		assert_int_equal(unlink(names[i]), 0);
}

static void other_kinds_are_named_and_a_job_is_needed(void **state)
{
	struct cli_world *w = *state;

	put("good.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n---\n"
			 "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}\n");
	cli_world_run(w, "lint", "good.yaml", NULL);
	assert_said(
		w, HF_EXIT_USAGE,
		"good.yaml: ConfigMap 'c' is not a training job, so it is not checked\n"
		"good.yaml: Deployment 'd' is of a kind that Holdfast does not know, so it is not "
		"checked\n",
		"holdfast: no training job, HealthPolicy or DeviceRollout was found, so nothing was checked\n"
		"See 'holdfast lint --help'.\n");
}

#define ROLLOUT(metadata, spec)                                                                    \
	"apiVersion: holdfast.dev/v1alpha1\nkind: DeviceRollout\nmetadata: " metadata              \
	"\nspec:\n  change:\n    daemonSet: {namespace: gpu, name: driver}\n" spec

static void a_rollout_is_checked(void **state)
{
	struct cli_world *w = *state;

	expect_good(
		w,
		ROLLOUT("{name: r}",
			"  waves: ['1', '50%', '100%']\n  proof: {driverVersion: '570.86.15'}\n"),
		"good.yaml: DeviceRollout 'r' is valid\n");
	expect_good(w,
		    ROLLOUT("{name: r}",
			    "  proof:\n    canary:\n      slowerPercent: 10\n      template:\n"
			    "        apiVersion: batch/v1\n        kind: Job\n"
			    "        metadata: {namespace: a}\n"
			    "        spec: {template: {spec: {containers: []}}}\n"),
		    "good.yaml: DeviceRollout 'r' is valid\n");
}

static void a_wrong_rollout_names_the_line_and_the_field(void **state)
{
	static const struct wrong rows[] = {
		{ROLLOUT("{name: r}", "  waves:\n  - '1'\n  - '150%'\n"),
		 "bad.yaml:9: spec.waves[1]: Invalid value: "},
		{ROLLOUT("{name: r}", "  wavs: ['1']\n"), "bad.yaml:7: spec.wavs: "},
		{ROLLOUT("{name: r}", "  nodeSelector: {matchLabels: {a: b c}}\n"),
		 "bad.yaml:7: spec.nodeSelector: "},
		{ROLLOUT("{name: r, namespace: x}", ""),
		 "bad.yaml:3: metadata.namespace: Forbidden: not allowed on this type"},
		{ROLLOUT("{name: R_}", ""),
		 "bad.yaml:3: metadata.name: a lowercase RFC 1123 subdomain"},
		{ROLLOUT("{name: r}", "  proof: {canary: {}}\n"),
		 "bad.yaml:7: spec.proof.canary.template: Required value"},
		{ROLLOUT("{name: r}",
			 "  proof:\n    canary:\n      template:\n        apiVersion: batch/v1\n"
			 "        kind: CronJob\n"),
		 "bad.yaml:11: spec.proof.canary.template.kind: Unsupported value: "},
		{ROLLOUT("{name: r}",
			 "  proof:\n    canary:\n      template:\n        apiVersion: batch/v1\n"
			 "        kind: Job\n        metadata: {name: n, namespace: a}\n"),
		 "bad.yaml:12: spec.proof.canary.template.metadata.name: Forbidden: "},
		{"apiVersion: holdfast.dev/v1alpha1\nkind: DeviceRollout\n",
		 "bad.yaml:1: metadata: Required value: name is missing"},
	};

	expect_wrong(*state, rows, HF_ARRAY_LEN(rows));
}

#define POLICY(spec)                                                                               \
	"apiVersion: holdfast.dev/v1alpha1\nkind: HealthPolicy\nmetadata: {name: gpus}\nspec:\n" spec

static void a_policy_is_checked(void **state)
{
	struct cli_world *w = *state;

	expect_good(w,
		    POLICY("  mode: remediate\n  mend:\n    windows:\n"
			   "    - {days: [Saturday, Sunday], start: '01:00', end: '05:00'}\n"),
		    "good.yaml: HealthPolicy 'gpus' is valid\n");
}

static void a_wrong_policy_names_the_line_and_the_field(void **state)
{
	static const struct wrong rows[] = {
		{POLICY("  mend:\n    windows:\n    - {start: '01:00', end: '01:00'}\n"),
		 "bad.yaml:7: spec.mend.windows[0].end: Invalid value: "},
		{POLICY("  mend:\n    rungs: [restart]\n"),
		 "bad.yaml:6: spec.mend.rungs[0]: Unsupported value: "},
		{POLICY("  mend: {rungs: [external]}\n"),
		 "bad.yaml:5: spec.mend.external: Required value: "},
		{POLICY("  selector: {matchLabels: {a: b c}}\n"), "bad.yaml:5: spec.selector: "},
		{POLICY("  selector:\n    matchLabel: {a: b}\n"),
		 "bad.yaml:6: spec.selector.matchLabel: unknown field"},
		{POLICY("  exclude: {matchLabels: {a: b c}}\n"), "bad.yaml:5: spec.exclude: "},
		{POLICY("  drain:\n    podSelector: {matchLabels: {a: b c}}\n"),
		 "bad.yaml:6: spec.drain.podSelector: "},
		{POLICY("  budget: {maxUnavailable: {percent: 101}}\n"),
		 "bad.yaml:5: spec.budget.maxUnavailable.percent: Invalid value: "},
	};

	expect_wrong(*state, rows, HF_ARRAY_LEN(rows));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_container_without_a_command_is_warned_of, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			what_would_keep_every_pod_from_being_made_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_job_without_replicas_is_warned_of, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_good_file_is_called_fine, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_job_that_reports_steps_is_advised_to_limit_restarts_without_progress,
			setup, teardown),
		cmocka_unit_test_setup_teardown(
			one_bad_file_of_several_is_code_2_and_the_others_are_looked_at, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_folder_is_checked_by_its_manifests, setup,
						teardown),
		cmocka_unit_test_setup_teardown(files_of_other_programs_in_a_folder_are_passed,
						setup, teardown),
		cmocka_unit_test_setup_teardown(other_kinds_are_named_and_a_job_is_needed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_rollout_is_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(a_wrong_rollout_names_the_line_and_the_field, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_policy_is_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(a_wrong_policy_names_the_line_and_the_field, setup,
						teardown),
		cmocka_unit_test_setup_teardown(no_server_is_needed, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_not_there_is_told_with_its_name, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("lint", tests, NULL, NULL);
}
