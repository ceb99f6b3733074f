/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/verbs.h"

#include "app/local_check.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tests the errors of run, up and down about a wrong command line. The tests in tests/clients show
 * what the verbs do. */

#define WORDS_MAX 8

static char dir[] = "/tmp/hf-verbs-XXXXXX";
static char *out, *err;

static int say(const char *const *words)
{
	static const struct hf_cli_verb *const verbs[] = {&hf_verb_run, &hf_verb_up, &hf_verb_down,
							  NULL};
	static const struct hf_cli_verb *const *const tables[] = {verbs, NULL};
	const char *argv[WORDS_MAX + 2] = {"holdfast"};
	struct hf_cli cli = {.check_here = hf_local_check};
	size_t out_len, err_len;
	int argc = 1, code;

	while (words[argc - 1] != NULL) {
		assert_true(argc <= WORDS_MAX);
		argv[argc] = words[argc - 1];
		argc++;
	}
	free(out);
	free(err);
	cli.out = open_memstream(&out, &out_len);
	cli.err = open_memstream(&err, &err_len);
	code = hf_cli_main(&cli, tables, argc, argv);
	free(cli.ns);
	assert_int_equal(fclose(cli.out), 0);
	assert_int_equal(fclose(cli.err), 0);
	return code;
}

static void put(const char *name, const char *text)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", dir, name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
	HF_AUTOFREE char *path = NULL;

	(void)state;
	if (mkdtemp(dir) == NULL || chdir(dir) != 0)
		return -1;
	path = hf_xasprintf("%s/state", dir);
	put("job.yaml",
	    "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec:\n"
	    "  pytorchReplicaSpecs:\n    Worker:\n      template:\n        spec:\n"
	    "          containers:\n          - {name: pytorch, image: x, command: [ls]}\n");
	put("named.yaml",
	    "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j, namespace: team}\nspec:\n"
	    "  pytorchReplicaSpecs:\n    Worker:\n      template:\n        spec:\n"
	    "          containers:\n          - {name: pytorch, image: x, command: [ls]}\n");
	put("bad.yaml", "kind: [\n");
	put("empty.yaml", "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\n"
			  "spec: {pytorchReplicaSpecs: {}}\n");
	return setenv("HOLDFAST_DIR", path, 1);
}

static int teardown(void **state)
{
	(void)state;
	free(out);
	free(err);
	(void)unlink("job.yaml");
	(void)unlink("named.yaml");
	(void)unlink("bad.yaml");
	(void)unlink("empty.yaml");
	return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1; /* nothing else was made */
}

static void a_wrong_command_line_is_code_2_and_nothing_is_made(void **state)
{
	static const struct {
		const char *words[WORDS_MAX];
		const char *text;
	} cases[] = {
		{{"run"}, "holdfast: "},
		{{"run", "job.yaml", "bad.yaml"}, "holdfast: "},
		{{"run", "nosuch.yaml"}, "nosuch.yaml"},
		{{"run", "bad.yaml"}, "bad.yaml: "},
		{{"run", "job.yaml", "--timeout", "soon"}, "--timeout: "},
		{{"run", "nosuch.yaml", "--max-pods", "many"}, "--max-pods: "},
		{{"run", "job.yaml", "--inject", "kill"}, "--inject: "},
		{{"run", "job.yaml", "--inject", "kill worker-7 at 1s"}, "worker-7"},
		{{"run", "job.yaml", "--ranks", "9"}, "--ranks: "},
		{{"run", "job.yaml", "--progress", "loud"}, "--progress takes auto or plain"},
		{{"run", "named.yaml", "-n", "other"},
		 "metadata.namespace is 'team', but --namespace is 'other'"},
		{{"run", "job.yaml", "--nosuch"}, "--nosuch"},
		{{"run", "empty.yaml"}, "the job has no replicas"},
		{{"run", "job.yaml", "--nproc", "2"}, "--nproc is for programs"},
		{{"run", "job.yaml", "--gpus", "0,x"},
		 "--gpus: GPUs are 'all', 'none' or a list of numbers such as 0,1, not '0,x'"},
		{{"run", "--nproc", "gpu", "--", "ls"}, "--nproc gpu: this machine has no GPU"},
		{{"run", "--nproc", "many", "--", "ls"},
		 "--nproc takes auto, gpu, cpu or a number: 'many'"},
		{{"run", "nosuch.py"}, "the script 'nosuch.py' cannot be read"},
		{{"run", "-f", "job.yaml", "-f", "named.yaml"}, "2 jobs are in the manifest"},
		{{"run", "job.yaml", "-e", "A B=1"}, "cannot name a variable"},
		{{"up", "here"}, "holdfast: "},
		{{"up", "--listen", "0.0.0.0:1"}, "127.0.0.1"},
		{{"up", "--listen", "127.0.0.1"}, "--listen takes ADDRESS:PORT"},
		{{"up", "--listen", "127.0.0.1:65536"}, "--listen"},
		{{"up", "--max-pods", "0"}, "--max-pods: "},
		{{"up", "--network", "none"}, "--network takes auto or host, not 'none'"},
		{{"up", "--gpus", "first"}, "--gpus: GPUs are"},
		{{"down", "now"}, "holdfast: "},
		{{"down", "--timeout", "x"}, "--timeout: "},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		int code = say(cases[i].words);
		if (code != HF_EXIT_USAGE || strstr(err, cases[i].text) == NULL || *out != '\0')
			fail_msg("case %zu: code %d, out '%s', err '%s'", i, code, out, err);
	}
	assert_int_not_equal(access("state", F_OK), 0);
}

static void without_a_folder_to_work_in_nothing_begins(void **state)
{
	static const char *const words[][WORDS_MAX] = {
		{"run", "job.yaml"}, {"up"}, {"down"}, {"up", "--detach"}};
	HF_AUTOFREE char *before = hf_xstrdup(getenv("HOLDFAST_DIR"));

	(void)state;
	assert_int_equal(setenv("HOLDFAST_DIR", "relative", 1), 0);
	for (size_t i = 0; i < HF_ARRAY_LEN(words); i++) {
		assert_int_equal(say(words[i]), HF_EXIT_USAGE);
		assert_non_null(strstr(err, "HOLDFAST_DIR must be an absolute path"));
	}
	assert_int_equal(setenv("HOLDFAST_DIR", before, 1), 0);
}

static void a_folder_that_cannot_be_is_code_125_in_one_line(void **state)
{
	/* `run` is not in the list, because it would go on in /tmp (tests/clients/run_test.sh). */
	static const char *const words[][WORDS_MAX] = {{"up", "--listen", "127.0.0.1:0"}};
	HF_AUTOFREE char *before = hf_xstrdup(getenv("HOLDFAST_DIR"));

	(void)state;
	assert_int_equal(setenv("HOLDFAST_DIR", "/proc/nowhere", 1), 0);
	for (size_t i = 0; i < HF_ARRAY_LEN(words); i++) {
		assert_int_equal(say(words[i]), HF_EXIT_INTERNAL);
		assert_ptr_equal(strchr(err, '\n'), err + strlen(err) - 1);
		assert_non_null(strstr(err, "/proc/nowhere"));
	}
	assert_int_equal(setenv("HOLDFAST_DIR", before, 1), 0);
}

static void down_of_what_is_not_up_is_fine(void **state)
{
	static const char *const words[WORDS_MAX] = {"down"};

	(void)state;
	assert_int_equal(say(words), HF_EXIT_OK);
	assert_string_equal(out, "'holdfast up' was not running; no pods of it are left\n");
	assert_string_equal(err, "");
	assert_int_not_equal(access("state", F_OK), 0);
}

static void help_shows_each_verb_with_examples(void **state)
{
	static const char *const words[][WORDS_MAX] = {
		{"run", "--help"}, {"up", "-h"}, {"down", "--help"}};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(words); i++) {
		assert_int_equal(say(words[i]), HF_EXIT_OK);
		assert_non_null(strstr(out, "Examples:\n  holdfast "));
		assert_string_equal(err, "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_command_line_is_code_2_and_nothing_is_made),
		cmocka_unit_test(without_a_folder_to_work_in_nothing_begins),
		cmocka_unit_test(a_folder_that_cannot_be_is_code_125_in_one_line),
		cmocka_unit_test(down_of_what_is_not_up_is_fine),
		cmocka_unit_test(help_shows_each_verb_with_examples),
	};

	return cmocka_run_group_tests_name("verbs", tests, setup, teardown);
}
