/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/run_env.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct hf_flag flag_env = {"env", 'e', "V", "", NULL};
static const struct hf_flag flag_file = {"env-file", 0, "F", "", NULL};
static const struct hf_flag flag_pass = {"pass-env", 0, "L", "", NULL};

static char *const shell[] = {
	(char *)(uintptr_t) "PATH=/bin",    (char *)(uintptr_t) "HF_HOME=/h",
	(char *)(uintptr_t) "HF_TOKEN=t",   (char *)(uintptr_t) "WANDB_MODE=off",
	(char *)(uintptr_t) "EMPTY=",       (char *)(uintptr_t) "no equals",
	(char *)(uintptr_t) "LD_PRELOAD=x", NULL};

struct fixture {
	struct hf_cli cli;
	char *text;
	size_t len;
	struct hf_run_env env;
};

static void setup(struct fixture *f)
{
	*f = (struct fixture){.cli = {.utf8 = true}};
	f->cli.err = open_memstream(&f->text, &f->len);
}

static void give(struct fixture *f, const struct hf_flag *flag, const char *value)
{
	f->cli.flags[f->cli.n_flags++] = (struct hf_flag_item){.flag = flag, .value = value};
}

static void teardown(struct fixture *f)
{
	hf_run_env_release(&f->env);
	assert_int_equal(fclose(f->cli.err), 0);
	free(f->text);
}

/* The variables, joined by blanks. */
static void assert_all(struct fixture *f, const char *wanted)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(4096);

	for (size_t i = 0; i < f->env.n_all; i++)
		hf_strbuf_addf(&sb, "%s%s", i > 0 ? " " : "", f->env.all[i]);
	assert_string_equal(sb.data, wanted);
	assert_null(f->env.all[f->env.n_all]);
}

static void a_program_gets_the_shell_s_variables(void **state)
{
	struct fixture f;

	setup(&f);
	assert_int_equal(hf_run_env_read(&f.cli, true, shell, &f.env), 0);
	assert_all(&f, "HF_HOME=/h HF_TOKEN=t WANDB_MODE=off EMPTY=");
	assert_int_equal(f.env.n_passed, 4);
	teardown(&f);
}

static void a_manifest_gets_only_what_is_named(void **state)
{
	struct fixture f;

	setup(&f);
	assert_int_equal(hf_run_env_read(&f.cli, false, shell, &f.env), 0);
	assert_all(&f, "");
	hf_run_env_release(&f.env);
	give(&f, &flag_pass, "HF_*,EMPTY");
	give(&f, &flag_pass, "PATH,W*_*O*");
	assert_int_equal(hf_run_env_read(&f.cli, false, shell, &f.env), 0);
	assert_all(&f, "HF_HOME=/h HF_TOKEN=t WANDB_MODE=off EMPTY=");
	teardown(&f);
}

static void the_command_line_wins(void **state)
{
	struct fixture f;

	setup(&f);
	give(&f, &flag_pass, "HF_HOME");
	give(&f, &flag_env, "HF_HOME=/mine");
	give(&f, &flag_env, "A=b=c d");
	assert_int_equal(hf_run_env_read(&f.cli, false, shell, &f.env), 0);
	assert_all(&f, "HF_HOME=/mine A=b=c d");
	assert_int_equal(f.env.n_given, 2);
	hf_run_env_add(&f.env, "A", "2");
	assert_true(hf_run_env_has(&f.env, "A"));
	assert_false(hf_run_env_has(&f.env, "HF"));
	teardown(&f);
}

static void assert_file(const char *text, size_t len, const char *wanted, const char *complaint)
{
	char path[] = "/tmp/hf-env-XXXXXX";
	int fd = mkstemp(path);
	struct fixture f;

	assert_int_equal(hf_fs_write_all(fd, text, len), 0);
	(void)close(fd);
	setup(&f);
	give(&f, &flag_file, path);
	f.cli.verb = NULL;
	if (complaint == NULL) {
		assert_int_equal(hf_run_env_read(&f.cli, false, shell, &f.env), 0);
		assert_all(&f, wanted);
	} else {
		assert_int_equal(hf_run_env_read(&f.cli, false, shell, &f.env), HF_EXIT_USAGE);
		assert_int_equal(fflush(f.cli.err), 0);
		assert_non_null(strstr(f.text, complaint));
	}
	(void)unlink(path);
	teardown(&f);
}

static void an_env_file_has_a_variable_in_each_line(void **state)
{
	static const char text[] =
		"\xef\xbb\xbf# comment\n\nA=1\r\n  export B='two words' \nC=x # y\nD=\"q\"\nE=";

	assert_file(text, sizeof(text) - 1, "A=1 B=two words C=x D=q E=", NULL);
	assert_file("A=1\nC=\"x\n", 9, NULL,
		    ":2: the value begins with a quote that is not closed");
	assert_file("", 0, "", NULL);
	assert_file("A=1\n1B=2\n", 9, NULL, ":2: '1B' cannot name a variable; write NAME=VALUE");
	assert_file("=x", 2, NULL, ":1: '' cannot name a variable");
	assert_file("HF_NOT_SET_ANYWHERE", 19, NULL, ":1: 'HF_NOT_SET_ANYWHERE' has no value here");
	assert_file("A=\0", 3, NULL, "is not a text file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_gets_the_shell_s_variables),
		cmocka_unit_test(a_manifest_gets_only_what_is_named),
		cmocka_unit_test(the_command_line_wins),
		cmocka_unit_test(an_env_file_has_a_variable_in_each_line),
	};

	return cmocka_run_group_tests_name("run_env", tests, NULL, NULL);
}
