/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/connect.h"

#include "app/plane.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "harness/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Tests which server a verb uses, for each combination of flags, environment variables and files
 * in the user's folder. */

static char base[64];
static struct {
	char *ns;
	int rc;
	char *text; /* text of the error */
	bool connected;
} seen;

static int verb_probe(struct hf_cli *cli)
{
	seen.ns = hf_xstrdup(cli->ns);
	seen.connected = cli->store != NULL;
	return HF_EXIT_OK;
}

static int connect_seen(struct hf_cli *cli, struct hf_store **ret_store, struct hf_error *err)
{
	seen.rc = hf_connect(cli, ret_store, err);
	if (seen.rc != 0)
		seen.text = hf_xstrdup(err->text);
	return seen.rc;
}

static const struct hf_cli_verb probe = {.name = "probe",
					 .summary = "",
					 .usage = "",
					 .examples = "",
					 .connects = true,
					 .run = verb_probe};

static void forget(void)
{
	free(seen.ns);
	free(seen.text);
	memset(&seen, 0, sizeof(seen));
}

static int probe_with(const char *flag, const char *second)
{
	static const struct hf_cli_verb *const verbs[] = {&probe, NULL};
	static const struct hf_cli_verb *const *const tables[] = {verbs, NULL};
	const char *argv[] = {"holdfast", "probe", flag, second};
	char *out = NULL, *err = NULL;
	size_t out_len, err_len;
	struct hf_cli cli = {.connect = connect_seen, .ns = hf_xstrdup("default")};
	int rc;

	forget();
	cli.out = open_memstream(&out, &out_len);
	cli.err = open_memstream(&err, &err_len);
	rc = hf_cli_main(&cli, tables, flag == NULL ? 2 : second == NULL ? 3 : 4, argv);
	hf_disconnect(&cli);
	assert_int_equal(fclose(cli.out), 0);
	assert_int_equal(fclose(cli.err), 0);
	free(cli.ns);
	free(out);
	free(err);
	return rc;
}

/* Writes a kubeconfig with this namespace in its context. The tests send no request. */
static char *write_config(const char *name, const char *ns)
{
	char *path = hf_xasprintf("%s/%s", base, name);
	HF_AUTOFREE char *text =
		hf_xasprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n"
			     "- {name: c, context: {cluster: k, user: u, namespace: %s}}\n"
			     "- {name: d, context: {cluster: k, user: u, namespace: of-d}}\n"
			     "clusters:\n- {name: k, cluster: {server: 'http://127.0.0.1:1'}}\n"
			     "users:\n- {name: u, user: {}}\n",
			     ns);
	struct hf_error err;

	assert_ok(hf_fs_write_atomic(path, text, strlen(text), 0600, &err), &err);
	return path;
}

static int setup(void **state)
{
	(void)snprintf(base, sizeof(base), "/tmp/hf-connect-XXXXXX");
	assert_non_null(mkdtemp(base));
	assert_int_equal(setenv("HOLDFAST_DIR", base, 1), 0);
	assert_int_equal(unsetenv("KUBECONFIG"), 0);
	return 0;
}

static int teardown(void **state)
{
	struct hf_error err;

	forget();
	return hf_fs_remove_tree(base, &err);
}

static void without_any_server_that_is_said(void **state)
{
	assert_int_equal(probe_with(NULL, NULL), HF_EXIT_UNREACHABLE);
	assert_int_equal(seen.rc, HF_E_UNAVAILABLE);
	assert_non_null(strstr(seen.text, "start 'holdfast up', or name a cluster with"));
	assert_int_equal(probe_with("--local", NULL), HF_EXIT_UNREACHABLE);
	assert_string_equal(
		seen.text, "--local: 'holdfast up' is not running on this machine; start it first");
}

static void this_users_plane_is_the_last_resort(void **state)
{
	HF_AUTOFREE char *own = write_config("kubeconfig", "own");
	HF_AUTOFREE char *other = write_config("other", "of-environment");
	HF_AUTOFREE char *third = write_config("third", "of-flag");

	assert_int_equal(probe_with(NULL, NULL), 0);
	assert_true(seen.connected);
	assert_string_equal(seen.ns, "own");
	assert_int_equal(setenv("KUBECONFIG", other, 1), 0);
	assert_int_equal(probe_with(NULL, NULL), 0);
	assert_string_equal(seen.ns, "of-environment");
	assert_int_equal(probe_with("--kubeconfig", third), 0);
	assert_string_equal(seen.ns, "of-flag");
	assert_int_equal(probe_with("--local", NULL), 0);
	assert_string_equal(seen.ns, "own");
}

static void a_server_that_has_ended_is_not_called(void **state)
{
	HF_AUTOFREE char *own = write_config("kubeconfig", "own");
	HF_AUTOFREE char *lock = hf_xasprintf("%s/up.pid", base);
	HF_AUTOFREE char *wanted = hf_xasprintf(
		"no server runs: '%s' is of a 'holdfast up' that has ended; start it again", own);
	HF_AUTO_FD fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(probe_with(NULL, NULL), HF_EXIT_UNREACHABLE);
	assert_string_equal(seen.text, wanted);
	assert_int_equal(probe_with("--local", NULL), HF_EXIT_UNREACHABLE);
	assert_string_equal(seen.text, wanted);
	assert_int_equal(setenv("KUBECONFIG", own, 1), 0);
	assert_int_equal(probe_with(NULL, NULL), HF_EXIT_UNREACHABLE);
	assert_string_equal(seen.text, wanted);
	/* An `up` holds this lock as long as it runs. */
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(probe_with(NULL, NULL), 0);
	assert_true(seen.connected);
}

static void a_context_can_be_named(void **state)
{
	HF_AUTOFREE char *own = write_config("kubeconfig", "own");

	assert_int_equal(probe_with("--context", "d"), 0);
	assert_string_equal(seen.ns, "of-d");
	assert_int_equal(probe_with("--context", "nope"), HF_EXIT_UNREACHABLE);
	assert_non_null(strstr(seen.text, "nope"));
	assert_null(seen.ns);
}

static void a_namespace_given_is_kept(void **state)
{
	HF_AUTOFREE char *own = write_config("kubeconfig", "own");

	assert_int_equal(probe_with("-n", "mine"), 0);
	assert_string_equal(seen.ns, "mine");
}

static void a_file_that_is_named_must_be_there(void **state)
{
	HF_AUTOFREE char *own = write_config("kubeconfig", "own");

	assert_int_equal(probe_with("--kubeconfig", "/nonexistent/file"), HF_EXIT_UNREACHABLE);
	assert_non_null(strstr(seen.text, "/nonexistent/file"));
}

static void the_folder_comes_from_the_environment(void **state)
{
	HF_AUTOFREE char *dir = NULL;
	HF_AUTOFREE char *of_state = NULL;
	HF_AUTOFREE char *of_home = NULL;
	char *none = NULL;
	struct hf_error err;

	assert_ok(hf_plane_default_dir(&dir, &err), &err);
	assert_string_equal(dir, base);
	assert_int_equal(setenv("HOLDFAST_DIR", "relative", 1), 0);
	assert_code(hf_plane_default_dir(&none, &err), HF_E_INVALID);
	assert_int_equal(unsetenv("HOLDFAST_DIR"), 0);
	assert_int_equal(setenv("XDG_STATE_HOME", "/s", 1), 0);
	assert_ok(hf_plane_default_dir(&of_state, &err), &err);
	assert_string_equal(of_state, "/s/holdfast");
	assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
	assert_int_equal(setenv("HOME", "/h", 1), 0);
	assert_ok(hf_plane_default_dir(&of_home, &err), &err);
	assert_string_equal(of_home, "/h/.local/state/holdfast");
	assert_int_equal(unsetenv("HOME"), 0);
	assert_code(hf_plane_default_dir(&none, &err), HF_E_INVALID);
	assert_null(none);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(without_any_server_that_is_said),
		UNIT(this_users_plane_is_the_last_resort),
		UNIT(a_server_that_has_ended_is_not_called),
		UNIT(a_context_can_be_named),
		UNIT(a_namespace_given_is_kept),
		UNIT(a_file_that_is_named_must_be_there),
		UNIT(the_folder_comes_from_the_environment),
	};

	return cmocka_run_group_tests_name("connect", tests, NULL, NULL);
}
