/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of kubeconfig loading: merging, fields, errors with file and field, service accounts, token
 * files. The files lie in a temporary folder. */
#include "harness/test.h"
#include "kube/config_internal.h"
#include "kube/pem_test.h"

#include "base/base64.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "http/certificate.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/holdfast-kubeconfig-XXXXXX";

static int set_up(void **state)
{
	return mkdtemp(folder) == NULL;
}

static int tear_down(void **state)
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
	"- {name: lost, context: {cluster: none, user: u}}\n"                                      \
	"- {name: c, context: {cluster: open, user: u}}\n"
#define CLUSTERS                                                                                      \
	"clusters:\n"                                                                                 \
	"- {name: one, cluster: {server: 'https://one:1', certificate-authority-data: " PEM_CERT_DATA \
	"}}\n"                                                                                        \
	"- {name: two, cluster: {server: 'https://two:2', certificate-authority: ca.pem}}\n"          \
	"- {name: open, cluster: {server: 'https://three:3', insecure-skip-tls-verify: true}}\n"
#define USER(fields) "users: [{name: u, user: {" fields "}}]\n"

static void the_current_context_is_read_or_the_one_asked_for(void **state)
{
	HF_AUTOFREE char *ca = write_file("ca.pem", "of a file\n" PEM_CERT);
	struct hf_kube_config config;
	struct hf_error err;

	assert_ok(read_config(CONTEXTS CLUSTERS USER("token: secret"), NULL, &config, &err), &err);
	assert_string_equal(config.server, "https://one:1");
	assert_string_equal(config.ca_pem, PEM_CERT);
	assert_string_equal(config.token, "secret");
	assert_string_equal(config.ns, "default");
	assert_false(config.insecure);
	hf_kube_config_release(&config);

	assert_ok(read_config(CONTEXTS CLUSTERS USER("token: secret"), "b", &config, &err), &err);
	assert_string_equal(config.server, "https://two:2");
	assert_string_equal(config.ca_pem, "of a file\n" PEM_CERT);
	assert_string_equal(config.ns, "team");
	assert_null(config.warning);
	hf_kube_config_release(&config);
}

static void skipping_verification_needs_the_field_and_gives_a_warning(void **state)
{
	struct hf_kube_config config;
	struct hf_error err;

	assert_ok(read_config(CONTEXTS CLUSTERS USER("token: t"), "c", &config, &err), &err);
	assert_true(config.insecure);
	assert_non_null(strstr(config.warning, "insecure-skip-tls-verify"));
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

#define V1 "apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never"
#define CLUSTER(fields) CONTEXTS "clusters: [{name: one, cluster: {" fields "}}]\n" USER("token: t")

static void a_wrong_value_is_reported_with_its_file_and_field(void **state)
{
	static const struct {
		const char *text, *context;
		int code;
		const char *message;
	} cases[] = {
		{"{}", NULL, HF_E_INVALID, "config' names no current-context"},
		{"", NULL, HF_E_INVALID, "config' names no current-context"},
		{CONTEXTS CLUSTERS USER("token: t"), "nope", HF_E_INVALID,
		 "config': contexts has no entry 'nope'"},
		{CONTEXTS CLUSTERS USER("token: t"), "lost", HF_E_INVALID,
		 "config': clusters has no entry 'none'"},
		{CONTEXTS CLUSTERS, NULL, HF_E_INVALID, "users has no entry 'u'"},
		{CONTEXTS CLUSTERS USER("username: x, password: p"), NULL, HF_E_UNSUPPORTED,
		 "users[u].user.username: passwords"},
		{CONTEXTS CLUSTERS USER("password: p"), NULL, HF_E_UNSUPPORTED,
		 "users[u].user.password: passwords"},
		{CONTEXTS CLUSTERS USER("as: root"), NULL, HF_E_UNSUPPORTED,
		 "users[u].user.as: impersonation"},
		{CONTEXTS CLUSTERS USER("auth-provider: {name: gcp}"), NULL, HF_E_UNSUPPORTED,
		 "users[u].user.auth-provider 'gcp'"},
		{CONTEXTS CLUSTERS USER("client-certificate-data: '!'"), NULL, HF_E_INVALID,
		 "users[u].user.client-certificate-data: is not base64"},
		{CONTEXTS CLUSTERS USER("client-certificate-data: aGk="), NULL, HF_E_INVALID,
		 "users[u].user.client-key: is missing"},
		{CONTEXTS CLUSTERS USER("client-key-data: aGk="), NULL, HF_E_INVALID,
		 "users[u].user.client-certificate: is missing"},
		{CONTEXTS CLUSTERS USER("client-key: nowhere"), NULL, HF_E_NOT_FOUND,
		 "users[u].user.client-key"},
		{CONTEXTS CLUSTERS USER("tokenFile: nowhere"), NULL, HF_E_NOT_FOUND,
		 "users[u].user.tokenFile"},
		{CONTEXTS CLUSTERS USER("token: \"a\\r\\nX-Evil: 1\""), NULL, HF_E_INVALID,
		 "users[u].user.token: has a blank or a control character at byte 1"},
		{CONTEXTS CLUSTERS USER("token: 5"), NULL, HF_E_INVALID,
		 "users[u].user.token must be a string, is a"},
		{CONTEXTS CLUSTERS "users: [{name: u, user: [1]}]", NULL, HF_E_INVALID,
		 "users[u].user must be an object, is a"},
		{CONTEXTS "clusters: 7", NULL, HF_E_INVALID, "clusters must be a list"},
		{CONTEXTS CLUSTERS "users: [{name: u, user: {}}, {name: u, user: {}}]", NULL,
		 HF_E_INVALID, "users has two entries 'u'"},
		{CLUSTER("server: ''"), NULL, HF_E_INVALID, "clusters[one].cluster.server: is mis"},
		{CLUSTER("server: 'h:1'"), NULL, HF_E_INVALID,
		 "clusters[one].cluster.server: must"},
		{CLUSTER("server: 'https://h', proxy-url: 'ftp://p'"), NULL, HF_E_INVALID,
		 "clusters[one].cluster.proxy-url: must be"},
		{CLUSTER("server: 'https://h', insecure-skip-tls-verify: 'yes'"), NULL,
		 HF_E_INVALID, "insecure-skip-tls-verify must be a boolean"},
		{CLUSTER("server: 'https://h', insecure-skip-tls-verify: true, "
			 "certificate-authority-data: aGk="),
		 NULL, HF_E_INVALID, "insecure-skip-tls-verify: cannot be used with "},
		{CLUSTER("server: 'https://h', certificate-authority-data: Z2FyYmFnZQ=="), NULL,
		 HF_E_INVALID,
		 "clusters[one].cluster.certificate-authority-data: holds no certificate in PEM"},
		{"kind: Pod", NULL, HF_E_INVALID, "kind is 'Pod'"},
		{"[1]", NULL, HF_E_INVALID, "must be an object"},
		{"a: [", NULL, HF_E_BAD_REQUEST, "kubeconfig '"},
		{"a: 1\n---\nb: 2\n", NULL, HF_E_INVALID, "has more than one YAML document"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_kube_config config;
		struct hf_error err = {0};
		int rc = read_config(cases[i].text, cases[i].context, &config, &err);
		if (rc != cases[i].code || strstr(err.text, cases[i].message) == NULL)
			fail_msg("%s: %s '%s' lacks '%s'", cases[i].text, hf_code_name(rc),
				 err.text, cases[i].message);
		assert_non_null(strstr(err.text, folder));
	}
}

static void a_plugin_is_checked_before_it_is_ever_run(void **state)
{
	static const struct {
		const char *exec;
		int code;
		const char *message;
	} cases[] = {
		{"{" V1 "}", HF_E_INVALID, "exec.command: is missing"},
		{"{command: x}", HF_E_INVALID, "exec.apiVersion: must be"},
		{"{command: x, apiVersion: client.authentication.k8s.io/v1alpha1}",
		 HF_E_UNSUPPORTED, "exec.apiVersion: must be"},
		{"{command: x, apiVersion: client.authentication.k8s.io/v1}", HF_E_INVALID,
		 "exec.interactiveMode: must be"},
		{"{command: x, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Always}",
		 HF_E_UNSUPPORTED, "exec.interactiveMode: is Always"},
		{"{command: x, args: y, " V1 "}", HF_E_INVALID, "exec.args: must be a list"},
		{"{command: x, args: [5], " V1 "}", HF_E_INVALID, "exec.args: must be a list of"},
		{"{command: x, env: [{value: a}], " V1 "}", HF_E_INVALID, "exec.env: each item"},
		{"{command: x, env: [{name: 'a=b'}], " V1 "}", HF_E_INVALID, "exec.env: each"},
		{"{command: x, provideClusterInfo: 3, " V1 "}", HF_E_INVALID,
		 "exec.provideClusterInfo must be a boolean"},
		{"7", HF_E_INVALID, "users[u].user.exec must be an object"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTOFREE char *text = hf_xasprintf("%s%s", CONTEXTS CLUSTERS,
						      "users: [{name: u, user: {exec: EXEC}}]\n");
		HF_AUTOFREE char *whole = hf_xasprintf(
			"%.*s%s}}]\n", (int)(strstr(text, "EXEC") - text), text, cases[i].exec);
		struct hf_kube_config config;
		struct hf_error err = {0};
		int rc = read_config(whole, NULL, &config, &err);
		if (rc != cases[i].code || strstr(err.text, cases[i].message) == NULL)
			fail_msg("%s: %s '%s' lacks '%s'", cases[i].exec, hf_code_name(rc),
				 err.text, cases[i].message);
	}
}

static void a_plugin_gets_the_fields_of_the_file(void **state)
{
	static const char text[] = CONTEXTS
		"clusters: [{name: one, cluster: {server: 'https://one:1', tls-server-name: inner,\n"
		" certificate-authority-data: " PEM_CERT_DATA
		", extensions: [{name: other, extension: 1},\n"
		" {name: client.authentication.k8s.io/exec, extension: {audience: x}}]}}]\n"
		"users: [{name: u, user: {exec: {command: bin/get, args: [a, 'b c'],\n"
		" apiVersion: client.authentication.k8s.io/v1, interactiveMode: IfAvailable,\n"
		" env: [{name: A, value: '1'}, {name: B}], provideClusterInfo: true,\n"
		" installHint: apt install it}}}]\n";
	struct hf_kube_config config;
	struct hf_error err;
	HF_AUTOFREE char *command = hf_xasprintf("%s/bin/get", folder);

	assert_ok(read_config(text, NULL, &config, &err), &err);
	assert_non_null(config.exec);
	assert_string_equal(config.exec->argv[0], command);
	assert_string_equal(config.exec->argv[1], "a");
	assert_string_equal(config.exec->argv[2], "b c");
	assert_null(config.exec->argv[3]);
	assert_string_equal(config.exec->env[0], "A=1");
	assert_string_equal(config.exec->env[1], "B=");
	assert_null(config.exec->env[2]);
	assert_string_equal(config.exec->install_hint, "apt install it");
	assert_string_equal(
		config.exec->info,
		"{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
		"\"spec\":{\"cluster\":{\"server\":\"https://one:1\","
		"\"tls-server-name\":\"inner\",\"certificate-authority-data\":\"" PEM_CERT_DATA
		"\","
		"\"config\":{\"audience\":\"x\"}},\"interactive\":false}}");
	hf_kube_config_release(&config);

	/* A command without '/' stays as it is, for the search in PATH. Without provideClusterInfo
	 * the plugin gets no data of the cluster. */
	assert_ok(read_config(CONTEXTS CLUSTERS USER("exec: {command: get, apiVersion: "
						     "client.authentication.k8s.io/v1beta1}"),
			      NULL, &config, &err),
		  &err);
	assert_string_equal(config.exec->argv[0], "get");
	assert_null(strstr(config.exec->info, "cluster"));
	hf_kube_config_release(&config);

	/* If the user has a token, the field exec is ignored. */
	assert_ok(read_config(CONTEXTS CLUSTERS USER("token: t, exec: {}"), NULL, &config, &err),
		  &err);
	assert_null(config.exec);
	hf_kube_config_release(&config);
}

static char *data_of(const char *pem)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 16);

	hf_base64_encode(pem, strlen(pem), &sb);
	return hf_strbuf_detach(&sb);
}

static void assert_client_refused(const char *fields, const char *message)
{
	HF_AUTOFREE char *text =
		hf_xasprintf("%susers: [{name: u, user: {%s}}]\n", CONTEXTS CLUSTERS, fields);
	struct hf_kube_config config;
	struct hf_error err;

	assert_code(read_config(text, NULL, &config, &err), HF_E_INVALID);
	if (strstr(err.text, "config': users[u].user.") == NULL ||
	    strstr(err.text, message) == NULL)
		fail_msg("'%s' lacks '%s'", err.text, message);
}

static void a_certificate_that_cannot_be_used_is_refused_with_its_file_and_field(void **state)
{
	const struct hf_certificate_spec spec = {
		.common_name = "a", .now = 1000000 * HF_SECOND, .valid_for = HF_HOUR};
	struct hf_certificate one, two;
	struct hf_kube_config config;
	struct hf_error err;

	assert_ok(hf_certificate_make_ca(&spec, &one, &err), &err);
	assert_ok(hf_certificate_make_ca(&spec, &two, &err), &err);
	HF_AUTOFREE char *file = write_file("client.pem", one.cert_pem);
	HF_AUTOFREE char *bad = write_file("bad.pem", "garbage");
	HF_AUTOFREE char *cert = data_of(one.cert_pem), *key = data_of(one.key_pem);
	HF_AUTOFREE char *other = data_of(two.key_pem);
	HF_AUTOFREE char *good = hf_xasprintf(
		"%susers: [{name: u, user: {client-certificate: client.pem, client-key-data: %s}}]",
		CONTEXTS CLUSTERS, key);
	HF_AUTOFREE char *no_key =
		hf_xasprintf("client-certificate-data: %s, client-key-data: Z2FyYmFnZQ==", cert);
	HF_AUTOFREE char *not_its =
		hf_xasprintf("client-certificate-data: %s, client-key-data: %s", cert, other);
	HF_AUTOFREE char *bad_file =
		hf_xasprintf("client-certificate: bad.pem, client-key-data: %s", key);

	assert_ok(read_config(good, NULL, &config, &err), &err);
	hf_kube_config_release(&config);
	assert_client_refused("client-certificate-data: Z2FyYmFnZQ==, client-key-data: aGk=",
			      "client-certificate-data: holds no certificate in PEM");
	assert_client_refused(no_key, "client-key-data: holds no private key that can be used: ");
	assert_client_refused(not_its, "client-key-data: belongs to another certificate");
	assert_client_refused(bad_file, "/bad.pem': holds no certificate in PEM");
	hf_certificate_release(&one);
	hf_certificate_release(&two);
}

static void the_first_file_with_an_entry_supplies_all_of_it(void **state)
{
	HF_AUTOFREE char *one =
		write_file("one", "contexts: [{name: a, context: {cluster: one, user: u}}]\n"
				  "users: [{name: u, user: {token: first}}]\n");
	HF_AUTOFREE char *sub = hf_xasprintf("%s/sub", folder);
	struct hf_error err;

	assert_ok(hf_fs_mkdirs(sub, 0700, &err), &err);
	HF_AUTOFREE char *ca = write_file("sub/ca.pem", "of sub\n" PEM_CERT);
	HF_AUTOFREE char *two = write_file(
		"sub/two",
		"current-context: a\n"
		"contexts: [{name: a, context: {cluster: one, user: v, namespace: second}},\n"
		" {name: b, context: {cluster: one, user: v}}]\n"
		"clusters: [{name: one, cluster: {server: 'https://one:1',\n"
		" certificate-authority: ca.pem}}]\n"
		"users: [{name: u, user: {token: second, as: root}},\n"
		" {name: v, user: {token: other}}]\n");
	HF_AUTOFREE char *three = write_file("three", "current-context: b\n");
	HF_AUTOFREE char *paths = hf_xasprintf(":%s/missing:%s::%s:%s", folder, one, two, three);
	struct hf_kube_load load = {.paths = paths};
	struct hf_kube_config config;

	assert_ok(hf_kube_config_load(&load, &config, &err), &err);
	/* the token of the first user u, not of the second */
	assert_string_equal(config.token, "first");
	/* the namespace of the first context a, not of the second */
	assert_string_equal(config.ns, "default");
	/* a relative path starts at the folder of its kubeconfig */
	assert_string_equal(config.ca_pem, "of sub\n" PEM_CERT);
	hf_kube_config_release(&config);

	load.context = "b";
	assert_ok(hf_kube_config_load(&load, &config, &err), &err);
	assert_string_equal(config.token, "other");
	hf_kube_config_release(&config);

	load.user = "u";
	load.cluster = "nope";
	assert_code(hf_kube_config_load(&load, &config, &err), HF_E_INVALID);
	assert_non_null(strstr(err.text, "clusters has no entry 'nope'"));
	load.cluster = "one";
	assert_ok(hf_kube_config_load(&load, &config, &err), &err);
	assert_string_equal(config.token, "first");
	hf_kube_config_release(&config);

	/* With cluster and user named, no context is needed. */
	load = (struct hf_kube_load){.paths = one, .cluster = "one", .user = "u"};
	assert_code(hf_kube_config_load(&load, &config, &err), HF_E_INVALID);
	load = (struct hf_kube_load){.paths = "/nowhere/a:/nowhere/b"};
	assert_code(hf_kube_config_load(&load, &config, &err), HF_E_NOT_FOUND);
	assert_non_null(strstr(err.text, "/nowhere/a:/nowhere/b"));
}

static void credentials_do_not_leave_the_machine_without_tls(void **state)
{
	static const struct {
		const char *server;
		bool sent;
	} cases[] = {
		{"https://far:1", true},
		{"http://far:1", false},
		{"http://127.0.0.1:1", true},
		{"http://[::1]:1", true},
		{"http://localhost", true},
		{"http://127.0.0.1.evil:1", false},
		{"http://127.0.0.1:1@evil", false},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTOFREE char *text = hf_xasprintf(
			"current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
			"clusters: [{name: c, cluster: {server: '%s'}}]\n" USER("token: t"),
			cases[i].server);
		struct hf_kube_config config;
		struct hf_error err;
		assert_ok(read_config(text, NULL, &config, &err), &err);
		if (hf_str_is_empty(config.token) == cases[i].sent)
			fail_msg("%s", cases[i].server);
		assert_true(hf_str_is_empty(config.warning) == cases[i].sent);
		hf_kube_config_release(&config);
	}
}

static void a_pod_finds_its_server_token_and_namespace(void **state)
{
	HF_AUTOFREE char *token = write_file("token", " in-cluster\n");
	HF_AUTOFREE char *ca = write_file("ca.crt", PEM_CERT);
	HF_AUTOFREE char *ns = write_file("namespace", "training\n");
	struct hf_kube_config config;
	struct hf_error err;

	unsetenv("KUBERNETES_SERVICE_HOST");
	assert_false(hf_kube_in_cluster(folder));
	assert_code(hf_kube_config_in_cluster(folder, &config, &err), HF_E_NOT_FOUND);
	setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
	setenv("KUBERNETES_SERVICE_PORT", "443", 1);
	assert_true(hf_kube_in_cluster(folder));
	assert_false(hf_kube_in_cluster("/nowhere"));
	assert_ok(hf_kube_config_in_cluster(folder, &config, &err), &err);
	assert_string_equal(config.server, "https://10.0.0.1:443");
	assert_string_equal(config.token, "in-cluster");
	assert_string_equal(config.token_file, token);
	assert_string_equal(config.ca_pem, PEM_CERT);
	assert_string_equal(config.ns, "training");
	hf_kube_config_release(&config);

	setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
	setenv("POD_NAMESPACE", "mine", 1);
	assert_ok(hf_kube_config_in_cluster(folder, &config, &err), &err);
	assert_string_equal(config.server, "https://[fd00::1]:443");
	assert_string_equal(config.ns, "mine");
	hf_kube_config_release(&config);
	unsetenv("POD_NAMESPACE");

	HF_AUTOFREE char *bad_ca = write_file("ca.crt", "garbage");
	assert_code(hf_kube_config_in_cluster(folder, &config, &err), HF_E_INVALID);
	assert_non_null(strstr(err.text, "/ca.crt': holds no certificate in PEM"));
	HF_AUTOFREE char *good_ca = write_file("ca.crt", PEM_CERT);

	setenv("KUBERNETES_SERVICE_PORT", "https", 1);
	assert_code(hf_kube_config_in_cluster(folder, &config, &err), HF_E_INVALID);
	assert_non_null(strstr(err.text, "KUBERNETES_SERVICE_PORT"));
	setenv("KUBERNETES_SERVICE_PORT", "443", 1);
	assert_code(hf_kube_config_in_cluster("/nowhere", &config, &err), HF_E_NOT_FOUND);
	unsetenv("KUBERNETES_SERVICE_HOST");
	unsetenv("KUBERNETES_SERVICE_PORT");
}

static void a_controller_searches_its_configuration_in_order(void **state)
{
	HF_AUTOFREE char *dir = hf_xasprintf("%s/.kube", folder);
	struct hf_kube_load none = {.paths = NULL}, given = {.required = true};
	struct hf_kube_config config;
	struct hf_error err;

	assert_ok(hf_fs_mkdirs(dir, 0700, &err), &err);
	unsetenv("KUBECONFIG");
	setenv("HOME", folder, 1);
	assert_code(hf_kube_config_find(&none, &config, &err), HF_E_NOT_FOUND);
	assert_non_null(strstr(err.text, "KUBECONFIG"));
	HF_AUTOFREE char *home =
		write_file(".kube/config", CONTEXTS CLUSTERS USER("token: of-home"));
	assert_ok(hf_kube_config_find(&none, &config, &err), &err);
	assert_string_equal(config.token, "of-home");
	hf_kube_config_release(&config);
	HF_AUTOFREE char *env = write_file("env", CONTEXTS CLUSTERS USER("token: of-env"));
	setenv("KUBECONFIG", env, 1);
	assert_ok(hf_kube_config_find(&none, &config, &err), &err);
	assert_string_equal(config.token, "of-env");
	hf_kube_config_release(&config);
	given.paths = home;
	assert_ok(hf_kube_config_find(&given, &config, &err), &err);
	assert_string_equal(config.token, "of-home");
	hf_kube_config_release(&config);
	unsetenv("KUBECONFIG");
}

static void a_token_file_must_hold_a_token(void **state)
{
	HF_AUTOFREE char *empty = write_file("blank", " \n\t\n");
	HF_AUTOFREE char *good = write_file("good", "\n a.b.c \r\n");
	HF_AUTOFREE char *token = NULL;
	struct hf_error err;

	assert_code(hf_kube_token_read(empty, &token, &err), HF_E_INVALID);
	assert_non_null(strstr(err.text, empty));
	assert_ok(hf_kube_token_read(good, &token, &err), &err);
	assert_string_equal(token, "a.b.c");
	/* A FIFO without a writer: opening it for reading would block for ever. */
	assert_int_equal(unlink(empty), 0);
	assert_int_equal(mkfifo(empty, 0600), 0);
	assert_code(hf_kube_token_read(empty, &token, &err), HF_E_INVALID);
	assert_int_equal(unlink(empty), 0);
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
		cmocka_unit_test(skipping_verification_needs_the_field_and_gives_a_warning),
		cmocka_unit_test(a_token_may_be_in_a_file_beside),
		cmocka_unit_test(a_wrong_value_is_reported_with_its_file_and_field),
		cmocka_unit_test(a_plugin_is_checked_before_it_is_ever_run),
		cmocka_unit_test(a_plugin_gets_the_fields_of_the_file),
		cmocka_unit_test(
			a_certificate_that_cannot_be_used_is_refused_with_its_file_and_field),
		cmocka_unit_test(the_first_file_with_an_entry_supplies_all_of_it),
		cmocka_unit_test(credentials_do_not_leave_the_machine_without_tls),
		cmocka_unit_test(a_pod_finds_its_server_token_and_namespace),
		cmocka_unit_test(a_controller_searches_its_configuration_in_order),
		cmocka_unit_test(a_token_file_must_hold_a_token),
		cmocka_unit_test(a_file_that_is_not_there_is_not_found),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
