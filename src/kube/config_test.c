/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "kube/kube.h"

#include "base/fs.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Kubeconfig files as people have them, in a folder of the test's own. */

static char folder[] = "/tmp/holdfast-kubeconfig-XXXXXX";

static int setup(void **state)
{
	return mkdtemp(folder) == NULL;
}

static int teardown(void **state)
{
	return hf_fs_remove_tree(folder, NULL);
}

static char *write_file(const char *name, const char *text)
{
	char *path = hf_xasprintf("%s/%s", folder, name);
	struct hf_error err;

	assert_ok(hf_fs_write_atomic(path, text, strlen(text), 0600, &err), &err);
	return path;
}

static int read_config(const char *text, const char *context, struct hf_kube_config *ret_config,
		       struct hf_error *err)
{
	HF_AUTOFREE char *path = write_file("config", text);

	return hf_kube_config_read(path, context, ret_config, err);
}

#define CONTEXTS                                                                                   \
	"current-context: a\n"                                                                     \
	"contexts:\n"                                                                              \
	"- {name: a, context: {cluster: one, user: u}}\n"                                          \
	"- {name: b, context: {cluster: two, user: u, namespace: team}}\n"                         \
	"- {name: lost, context: {cluster: none, user: u}}\n"
#define CLUSTERS                                                                                    \
	"clusters:\n"                                                                               \
	"- {name: one, cluster: {server: 'https://one:1', certificate-authority-data: aGVsbG8=}}\n" \
	"- {name: two, cluster: {server: 'https://two:2', certificate-authority: ca.pem, "          \
	"insecure-skip-tls-verify: true}}\n"
#define USER(fields) "users: [{name: u, user: {" fields "}}]\n"

static void the_current_context_is_read_or_the_one_asked_for(void **state)
{
	HF_AUTOFREE char *ca = write_file("ca.pem", "from a file");
	struct hf_kube_config config;
	struct hf_error err;

	assert_ok(read_config(CONTEXTS CLUSTERS USER("token: secret"), NULL, &config, &err), &err);
	assert_string_equal(config.server, "https://one:1");
	assert_string_equal(config.ca_pem, "hello");
	assert_string_equal(config.token, "secret");
	assert_string_equal(config.ns, "default");
	assert_false(config.insecure);
	hf_kube_config_release(&config);

	assert_ok(read_config(CONTEXTS CLUSTERS USER("token: secret"), "b", &config, &err), &err);
	assert_string_equal(config.server, "https://two:2");
	assert_string_equal(config.ca_pem, "from a file");
	assert_string_equal(config.ns, "team");
	assert_true(config.insecure);
	hf_kube_config_release(&config);
}

static void a_token_may_be_in_a_file_beside(void **state)
{
	HF_AUTOFREE char *token = write_file("token", "from-file\n");
	struct hf_kube_config config;
	struct hf_error err;

	assert_ok(read_config(CONTEXTS CLUSTERS USER("tokenFile: token"), NULL, &config, &err),
		  &err);
	assert_string_equal(config.token, "from-file");
	hf_kube_config_release(&config);
}

static void what_is_wrong_is_named(void **state)
{
	static const struct {
		const char *text, *context;
		int code;
		const char *message;
	} cases[] = {
		{"{}", NULL, HF_E_INVALID, "names no current-context"},
		{CONTEXTS CLUSTERS USER("token: t"), "nope", HF_E_INVALID,
		 "contexts has no entry 'nope'"},
		{CONTEXTS CLUSTERS USER("token: t"), "lost", HF_E_INVALID,
		 "clusters has no entry 'none'"},
		{CONTEXTS CLUSTERS, NULL, HF_E_INVALID, "users has no entry 'u'"},
		{CONTEXTS CLUSTERS USER("exec: {command: x}"), NULL, HF_E_UNSUPPORTED, "'exec'"},
		{CONTEXTS CLUSTERS USER("username: x, password: p"), NULL, HF_E_UNSUPPORTED,
		 "'username'"},
		{CONTEXTS CLUSTERS USER("client-certificate-data: '!'"), NULL, HF_E_INVALID,
		 "client-certificate-data is not base64"},
		{"a: [", NULL, HF_E_BAD_REQUEST, "kubeconfig '"},
		{"a: 1\n---\nb: 2\n", NULL, HF_E_INVALID, "is not one document"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_kube_config config;
		struct hf_error err = {0};
		assert_code(read_config(cases[i].text, cases[i].context, &config, &err),
			    cases[i].code);
		if (strstr(err.text, cases[i].message) == NULL)
			fail_msg("'%s' lacks '%s'", err.text, cases[i].message);
	}
}

static void a_file_that_is_not_there_is_not_found(void **state)
{
	struct hf_kube_config config;

	assert_code(hf_kube_config_read("/nowhere/config", NULL, &config, NULL), HF_E_NOT_FOUND);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_current_context_is_read_or_the_one_asked_for),
		cmocka_unit_test(a_token_may_be_in_a_file_beside),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(a_file_that_is_not_there_is_not_found),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
