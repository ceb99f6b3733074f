/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of credentials: token files that rotate and credential plugins. */
#include "harness/kube_bench.h"

#include "base/fs.h"
#include "base/str.h"
#include "http/certificate.h"
#include "kube/config_internal.h"
#include "kube/kube_internal.h"

#include <sys/stat.h>
#include <time.h>

/* Makes credentials older: files, failures and plugin output seem to date from `span` earlier. */
static void age_credentials(struct bench *bench, hf_time span)
{
	struct hf_kube_credentials *c = ((struct hf_kube *)bench->store)->credentials;

	c->files_read_at -= span;
	c->failed_at -= span;
	c->use_until -= span;
}

static char folder[] = "/tmp/holdfast-signin-XXXXXX";

static int make_folder(void **state)
{
	return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
	return hf_fs_remove_tree(folder, NULL);
}

static char *write_file(const char *name, const char *text, mode_t mode)
{
	char *path = hf_xasprintf("%s/%s", folder, name);
	struct hf_error err;

	assert_ok(hf_fs_write_atomic(path, text, strlen(text), mode, &err), &err);
	return path;
}

static char **list_of(const char *first, const char *second)
{
	char **list = hf_xcalloc(3, sizeof(*list));

	list[0] = first != NULL ? hf_xstrdup(first) : NULL;
	list[1] = second != NULL ? hf_xstrdup(second) : NULL;
	return list;
}

/* Installs this shell script as the plugin; each run appends a line to the file "runs". */
static void use_plugin(struct bench *bench, const char *script)
{
	struct hf_kube_exec *exec = hf_xcalloc(1, sizeof(*exec));
	HF_AUTOFREE char *text =
		hf_xasprintf("#!/bin/sh\ncd '%s'\necho x >> runs\n%s\n", folder, script);
	HF_AUTOFREE char *count_runs = write_file("runs", "", 0600);
	HF_AUTOFREE char *path = write_file("plugin", text, 0700);

	exec->argv = list_of(path, "argument");
	exec->env = list_of("OWN=mine", NULL);
	exec->api_version = hf_xstrdup("client.authentication.k8s.io/v1");
	exec->install_hint = hf_xstrdup("apt install it");
	exec->info = hf_xstrdup("{\"told\":1}");
	bench->config.exec = hf_kube_exec_free(bench->config.exec);
	bench->config.exec = exec;
}

static size_t count_runs(void)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/runs", folder);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1024);

	assert_int_equal(hf_fs_read(path, &sb, NULL), 0);
	return sb.len / 2;
}

#define CREDENTIAL(status)                                                                         \
	"echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","   \
	"\"status\":{" status "}}'"

#define OK(token)                                                                                  \
	{                                                                                          \
		"200 OK", POD, WHOLE, "Authorization: Bearer " token "\r\n"                        \
	}

static void a_token_is_sent_and_without_one_there_is_no_header(void **state)
{
	static const struct step with[] = {OK("secret"), DONE};
	static const struct step without[] = {{"200 OK", POD, WHOLE, NULL}, DONE};
	struct bench *bench = *state;

	play_steps(bench, without);
	assert_int_equal(get_pod(bench), 0);
	assert_null(strstr(bench->last_head, "Authorization"));
	bench->config.token = hf_xstrdup("secret");
	play_steps(bench, with);
	assert_int_equal(get_pod(bench), 0);
}

static void a_fixed_token_that_is_refused_is_reported(void **state)
{
	static const struct step steps[] = {
		{"401 Unauthorized",
		 "{\"kind\":\"Status\",\"reason\":\"Unauthorized\",\"message\":\"Unauthorized\"}",
		 WHOLE, NULL},
		DONE};
	struct bench *bench = *state;

	bench->config.token = hf_xstrdup("secret");
	play_steps(bench, steps);
	assert_int_equal(get_pod(bench), HF_E_UNAUTHORIZED);
	assert_int_equal(bench->server.requests, 1);
}

static void a_token_file_is_read_again_when_its_token_is_refused(void **state)
{
	static const struct step rotated[] = {
		{"401 Unauthorized", "", WHOLE, "Bearer old\r\n"}, OK("new"), OK("new"), DONE};
	static const struct step refused[] = {{"401 Unauthorized", "", WHOLE, "Bearer new\r\n"},
					      DONE};
	struct bench *bench = *state;
	HF_AUTOFREE char *path = write_file("token", "new\n", 0600);

	bench->config.token = hf_xstrdup("old");
	bench->config.token_file = hf_xstrdup(path);
	play_steps(bench, rotated);
	/* A 401 means that the server did nothing. So with a new token a write is sent again
	 * too. */
	assert_int_equal(create_pod(bench), 0);
	assert_int_equal(get_pod(bench), 0);
	assert_int_equal(bench->server.requests, 3);

	/* The token file is unchanged or missing, so a retry could not succeed: the 401 is reported
	 * after one request. */
	change_steps(bench, refused);
	assert_int_equal(get_pod(bench), HF_E_UNAUTHORIZED);
	assert_int_equal(unlink(path), 0);
	change_steps(bench, refused);
	assert_int_equal(get_pod(bench), HF_E_UNAUTHORIZED);
	assert_int_equal(bench->server.requests, 1);
}

static void make_token_unreadable(const char *path, int how)
{
	if (how != 3)
		assert_int_equal(how == 2 ? rmdir(path) : unlink(path), 0);
	if (how == 0)
		free(write_file("token", "\n", 0600));
	else if (how == 1)
		assert_int_equal(mkdir(path, 0700), 0);
	else if (how == 2)
		assert_int_equal(mkfifo(path, 0600), 0);
	else
		assert_int_equal(unlink(path), 0);
}

static void a_token_file_that_cannot_be_read_is_named_and_taken_when_it_is_back(void **state)
{
	static const struct step with_old[] = {
		OK("old"), {"401 Unauthorized", "", WHOLE, "old\r\n"}, DONE};
	static const struct step with_new[] = {OK("new"), DONE};
	static const char *const words[] = {"holds no token", "is no regular file",
					    "is no regular file", "No such file"};
	struct bench *bench = *state;
	HF_AUTOFREE char *path = write_file("token", "old\n", 0600);

	bench->config.token = hf_xstrdup("old");
	bench->config.token_file = hf_xstrdup(path);
	play_steps(bench, with_old);
	for (int i = 0; i < 4; i++) {
		make_token_unreadable(path, i);
		change_steps(bench, with_old);
		age_credentials(bench, HF_MINUTE);
		assert_int_equal(get_pod(bench), 0);
		assert_int_equal(get_pod(bench), HF_E_UNAUTHORIZED);
		if (!strstr(bench->message, path) || !strstr(bench->message, words[i]))
			fail_msg("%s", bench->message);
	}
	free(write_file("token", "new\n", 0600));
	change_steps(bench, with_new);
	age_credentials(bench, HF_MINUTE);
	assert_int_equal(get_pod(bench), 0);
}

static void a_token_file_is_read_again_when_a_minute_old(void **state)
{
	static const struct step steps[] = {OK("first"), OK("second"), OK("second"), DONE};
	struct bench *bench = *state;
	HF_AUTOFREE char *path = write_file("token", "second\n", 0600);

	bench->config.token = hf_xstrdup("first");
	bench->config.token_file = hf_xstrdup(path);
	play_steps(bench, steps);
	assert_int_equal(get_pod(bench), 0);
	age_credentials(bench, HF_MINUTE);
	assert_int_equal(get_pod(bench), 0);
	/* While the token file is missing, as during a rotation, the last token stays in use. */
	assert_int_equal(unlink(path), 0);
	age_credentials(bench, HF_MINUTE);
	assert_int_equal(get_pod(bench), 0);
	assert_int_equal(bench->server.requests, 3);
}

static void a_failed_plugin_is_run_again_after_a_growing_while(void **state)
{
	static const struct step steps[] = {OK("made"), DONE};
	struct bench *bench = *state;

	use_plugin(bench,
		   "test $(wc -l < runs) -ge 3 || exit 1\n" CREDENTIAL("\"token\":\"made\""));
	play_steps(bench, steps);
	assert_int_equal(get_pod(bench), HF_E_UNAUTHORIZED);
	age_credentials(bench, HF_SECOND);
	assert_int_equal(get_pod(bench), HF_E_UNAUTHORIZED);
	assert_int_equal(count_runs(), 2);
	/* the second failure is followed by a delay of two seconds */
	age_credentials(bench, HF_SECOND);
	assert_int_equal(get_pod(bench), HF_E_UNAUTHORIZED);
	assert_int_equal(count_runs(), 2);
	age_credentials(bench, HF_SECOND);
	assert_int_equal(get_pod(bench), 0);
	assert_int_equal(count_runs(), 3);
}

static void a_plugin_is_run_once_and_its_answer_kept(void **state)
{
	static const struct step steps[] = {OK("made"), OK("made"), DONE};
	struct bench *bench = *state;

	use_plugin(bench, CREDENTIAL("\"token\":\"made\""));
	play_steps(bench, steps);
	assert_int_equal(get_pod(bench), 0);
	assert_int_equal(get_pod(bench), 0);
	assert_int_equal(count_runs(), 1);
}

static void requests_that_come_while_it_runs_wait_for_it(void **state)
{
	static const struct step steps[] = {OK("made"), OK("made"), OK("made"), DONE};
	struct bench *bench = *state;

	use_plugin(bench, CREDENTIAL("\"token\":\"made\""));
	play_steps(bench, steps);
	(void)begin_get(bench);
	(void)begin_get(bench);
	struct hf_call *canceled = begin_get(bench);
	hf_call_cancel(canceled);
	(void)begin_get(bench);
	while (bench->replies < 3)
		hf_test_loop_run(&bench->t);
	assert_int_equal(bench->code, 0);
	assert_int_equal(count_runs(), 1);
	assert_int_equal(bench->server.requests, 3);
}

static void a_plugin_is_told_its_arguments_and_environment(void **state)
{
	static const struct step steps[] = {OK("argument-mine-plain-told"), DONE};
	struct bench *bench = *state;

	setenv("OWN", "of the parent", 1);
	setenv("INHERITED", "plain", 1);
	use_plugin(bench, "case \"$KUBERNETES_EXEC_INFO\" in *told*) t=told;; esac\n"
			  "read x && t=stdin\n"
			  "printf '{\"kind\":\"ExecCredential\",\"apiVersion\":"
			  "\"client.authentication.k8s.io/v1\",\"status\":{\"token\":\"%s\"}}' "
			  "\"$1-$OWN-$INHERITED-$t\"");
	play_steps(bench, steps);
	assert_int_equal(get_pod(bench), 0);
	unsetenv("OWN");
	unsetenv("INHERITED");
}

static void a_plugin_is_run_again_when_its_token_is_refused(void **state)
{
	static const struct step steps[] = {
		OK("made-1"), {"401 Unauthorized", "", WHOLE, NULL}, OK("made-2"), DONE};
	static const struct step refused[] = {{"401 Unauthorized", "", WHOLE, "made-2"},
					      {"401 Unauthorized", "", WHOLE, "made-3"},
					      DONE};
	struct bench *bench = *state;

	use_plugin(bench, "n=$(wc -l < runs)\n" CREDENTIAL("\"token\":\"made-'$n'\""));
	play_steps(bench, steps);
	assert_int_equal(get_pod(bench), 0);
	assert_int_equal(create_pod(bench), 0);
	assert_int_equal(count_runs(), 2);
	/* Each 401 runs the plugin once more. If the second try of a request also gets a 401, the
	 * request fails with it. */
	change_steps(bench, refused);
	assert_int_equal(get_pod(bench), HF_E_UNAUTHORIZED);
	assert_int_equal(count_runs(), 3);
	assert_int_equal(bench->server.requests, 2);
}

static void an_answer_that_ends_soon_is_fetched_anew(void **state)
{
	static const struct step steps[] = {OK("made-1"), OK("made-2"), DONE};
	struct bench *bench = *state;
	char end[HF_TIME_TEXT_MAX];

	hf_time_format((hf_time)(time(NULL) + 5) * HF_SECOND, end);
	HF_AUTOFREE char *script =
		hf_xasprintf("n=$(wc -l < runs)\n" CREDENTIAL(
				     "\"token\":\"made-'$n'\",\"expirationTimestamp\":\"%s\""),
			     end);
	use_plugin(bench, script);
	play_steps(bench, steps);
	assert_int_equal(get_pod(bench), 0);
	age_credentials(bench, HF_SECOND);
	assert_int_equal(get_pod(bench), 0);
	assert_int_equal(count_runs(), 2);
}

/* A plugin with a cache returns the same credentials again until they expire. It must not run for
 * each request. */
static void a_plugin_that_has_nothing_fresher_is_not_run_for_each_request(void **state)
{
	static const struct step good[] = {OK("old"), OK("old"), OK("old"), DONE};
	static const struct step refused[] = {
		{"401 Unauthorized", "", WHOLE, NULL}, {"401 Unauthorized", "", WHOLE, NULL}, DONE};
	struct bench *bench = *state;

	use_plugin(bench, CREDENTIAL("\"token\":\"old\",\"expirationTimestamp\":"
				     "\"1994-11-06T08:49:37Z\""));
	play_steps(bench, good);
	for (int i = 0; i < 3; i++)
		assert_int_equal(get_pod(bench), 0);
	assert_int_equal(count_runs(), 1);
	change_steps(bench, refused);
	assert_int_equal(get_pod(bench), HF_E_UNAUTHORIZED);
	assert_non_null(strstr(bench->message,
			       "plugin' returned credentials that expired at 1994-11-06T08:49:37"));
}

static void a_failed_plugin_is_reported_with_its_stderr_and_not_run_again_at_once(void **state)
{
	static const struct step steps[] = {DONE};
	struct bench *bench = *state;

	bench->config.path = hf_xstrdup("/some/config");
	use_plugin(bench, "printf 'not logged \\033[1min\\nmore\\n' >&2; exit 3");
	play_steps(bench, steps);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(get_pod(bench), HF_E_UNAUTHORIZED);
		assert_non_null(strstr(bench->message, "kubeconfig '/some/config'"));
		assert_non_null(strstr(bench->message, "plugin': exit code 3: not logged  [1min"));
		assert_null(strstr(bench->message, "more"));
	}
	assert_int_equal(count_runs(), 1);
	assert_int_equal(bench->server.requests, 0);
}

static void a_missing_plugin_is_reported_with_its_install_hint(void **state)
{
	static const struct step steps[] = {DONE};
	struct bench *bench = *state;

	use_plugin(bench, "");
	free(bench->config.exec->argv[0]);
	bench->config.exec->argv[0] = hf_xstrdup("no-such-credential-plugin");
	play_steps(bench, steps);
	assert_int_equal(get_pod(bench), HF_E_UNAUTHORIZED);
	assert_non_null(strstr(bench->message, "no-such-credential-plugin"));
	assert_non_null(strstr(bench->message, "(apt install it)"));
}

static void an_answer_past_its_limit_is_refused(void **state)
{
	static const struct step steps[] = {DONE};
	struct bench *bench = *state;

	use_plugin(bench, "exec head -c 2000000 /dev/zero");
	play_steps(bench, steps);
	assert_int_equal(get_pod(bench), HF_E_UNAUTHORIZED);
	assert_non_null(strstr(bench->message, "1048576"));
}

static void a_request_does_not_wait_for_a_plugin_past_its_time(void **state)
{
	static const struct step steps[] = {DONE};
	struct bench *bench = *state;

	use_plugin(bench, "exec sleep 100");
	play_steps(bench, steps);
	bench->timeout = 50 * HF_MS;
	assert_int_equal(get_pod(bench), HF_E_UNAVAILABLE);
	assert_non_null(strstr(bench->message, "plugin has not answered"));
	/* Destroying the store kills the running plugin. */
	bench->timeout = 0;
	(void)begin_get(bench);
	bench->store = hf_store_destroy(bench->store);
	assert_int_equal(bench->code, HF_E_CANCELED);
}

static void a_malformed_plugin_answer_is_refused(void **state)
{
#define V1 "\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\""
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"", NULL},
		{"token", NULL},
		{"[]", "kind"},
		{"{}", "kind"},
		{"{\"kind\":\"ExecCredential\"}", "apiVersion is ''"},
		{"{\"kind\":\"ExecCredential\",\"apiVersion\":"
		 "\"client.authentication.k8s.io/v1beta1\",\"status\":{\"token\":\"x\"}}",
		 "apiVersion is 'client.authentication.k8s.io/v1beta1'"},
		{"{" V1 "}", "status is missing"},
		{"{" V1 ",\"status\":{}}", "neither a token nor"},
		{"{" V1 ",\"status\":{\"token\":5}}", "neither a token nor"},
		{"{" V1 ",\"status\":{\"clientKeyData\":\"k\"}}", "only one of"},
		{"{" V1 ",\"status\":{\"clientCertificateData\":\"c\",\"token\":\"t\"}}",
		 "only one of"},
		{"{" V1 ",\"status\":{\"clientCertificateData\":\"x\",\"clientKeyData\":\"y\"}}",
		 "status.clientCertificateData: holds no certificate"},
		{"{" V1 ",\"status\":{\"token\":\"a\\r\\nX-Evil: 1\"}}",
		 "status.token: has a blank"},
		{"{" V1 ",\"status\":{\"token\":\"t\",\"expirationTimestamp\":\"soon\"}}",
		 "status.expirationTimestamp"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_kube_exec_answer answer;
		struct hf_error err;
		int rc = hf_kube_exec_answer_read(cases[i].text, strlen(cases[i].text),
						  "client.authentication.k8s.io/v1", &answer, &err);
		if (rc == 0 ||
		    (cases[i].message != NULL && strstr(err.text, cases[i].message) == NULL))
			fail_msg("%s: '%s'", cases[i].text, err.text);
	}
}

static char *on_one_line(const char *pem)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(8192);

	for (; *pem != '\0'; pem++)
		hf_strbuf_addf(&sb, *pem == '\n' ? "\\n" : "%c", *pem);
	return hf_strbuf_detach(&sb);
}

static int read_pair(const char *cert_pem, const char *key_pem, struct hf_kube_exec_answer *answer,
		     struct hf_error *err)
{
	HF_AUTOFREE char *cert = on_one_line(cert_pem), *key = on_one_line(key_pem);
	HF_AUTOFREE char *text =
		hf_xasprintf("{" V1 ",\"status\":{\"clientCertificateData\":\"%s\","
			     "\"clientKeyData\":\"%s\",\"expirationTimestamp\":"
			     "\"1994-11-06T08:49:37Z\"}}",
			     cert, key);

	return hf_kube_exec_answer_read(text, strlen(text), "client.authentication.k8s.io/v1",
					answer, err);
}

static void a_plugin_may_answer_with_a_certificate(void **state)
{
	const struct hf_certificate_spec spec = {
		.common_name = "a", .now = 1000000 * HF_SECOND, .valid_for = HF_HOUR};
	struct hf_certificate one, two;
	struct hf_kube_exec_answer answer;
	struct hf_error err;

	assert_ok(hf_certificate_make_ca(&spec, &one, &err), &err);
	assert_ok(hf_certificate_make_ca(&spec, &two, &err), &err);
	assert_ok(read_pair(one.cert_pem, one.key_pem, &answer, &err), &err);
	assert_string_equal(answer.token, "");
	assert_string_equal(answer.cert_pem, one.cert_pem);
	assert_string_equal(answer.key_pem, one.key_pem);
	assert_true(answer.expires == 784111777 * HF_SECOND);
	hf_kube_exec_answer_release(&answer);
	assert_code(read_pair(one.cert_pem, two.key_pem, &answer, &err), HF_E_INVALID);
	assert_string_equal(err.text, "status.clientKeyData: belongs to another certificate");
	hf_certificate_release(&one);
	hf_certificate_release(&two);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		UNIT(a_token_is_sent_and_without_one_there_is_no_header),
		UNIT(a_fixed_token_that_is_refused_is_reported),
		UNIT(a_token_file_is_read_again_when_its_token_is_refused),
		UNIT(a_token_file_that_cannot_be_read_is_named_and_taken_when_it_is_back),
		UNIT(a_token_file_is_read_again_when_a_minute_old),
		UNIT(a_failed_plugin_is_run_again_after_a_growing_while),
		UNIT(a_plugin_is_run_once_and_its_answer_kept),
		UNIT(requests_that_come_while_it_runs_wait_for_it),
		UNIT(a_plugin_is_told_its_arguments_and_environment),
		UNIT(a_plugin_is_run_again_when_its_token_is_refused),
		UNIT(an_answer_that_ends_soon_is_fetched_anew),
		UNIT(a_plugin_that_has_nothing_fresher_is_not_run_for_each_request),
		UNIT(a_failed_plugin_is_reported_with_its_stderr_and_not_run_again_at_once),
		UNIT(a_missing_plugin_is_reported_with_its_install_hint),
		UNIT(an_answer_past_its_limit_is_refused),
		UNIT(a_request_does_not_wait_for_a_plugin_past_its_time),
		cmocka_unit_test(a_malformed_plugin_answer_is_refused),
		cmocka_unit_test(a_plugin_may_answer_with_a_certificate),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
