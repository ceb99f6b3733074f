/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/operator_flags.h"

#include "harness/test.h"

#include "base/str.h"
#include "framework/framework.h"

#include <stdio.h>
#include <string.h>

static struct hf_operator_flags flags;
static struct hf_error err;
static struct hf_operator_env env;

#define ARGS_MAX 16

/* Reads the words as `holdfast operator` does. */
static int take(int argc, const char *const *argv)
{
	struct hf_flags reader = {.style = HF_FLAGS_GO,
				  .tables = {hf_operator_flag_table},
				  .argc = argc,
				  .argv = argv};
	struct hf_flag_item items[ARGS_MAX];
	size_t n = 0;
	int rc;

	while ((rc = hf_flags_next(&reader, &items[n], &err)) > 0) {
		assert_non_null(items[n].flag);
		n++;
	}
	return rc < 0 ? rc : hf_operator_flags_take(items, n, &env, &flags, &err);
}

/* Parses a text as a command line. Blanks separate the words. */
static int parse(const char *text)
{
	static char copy[512];
	const char *argv[ARGS_MAX];
	int argc = 0;

	assert_true(strlen(text) < sizeof(copy));
	memcpy(copy, text, strlen(text) + 1);
	for (char *at = copy; *at != '\0';) {
		size_t len = strcspn(at, " ");

		argv[argc++] = at;
		at += len;
		if (*at == ' ')
			*at++ = '\0';
	}
	hf_error_clear(&err);
	return take(argc, argv);
}

static int reset(void **state)
{
	env = (struct hf_operator_env){0};
	memset(&flags, 0, sizeof(flags));
	return 0;
}

static void test_defaults_are_the_go_operators(void **state)
{
	assert_ok(parse(""), &err);
	assert_string_equal(flags.metrics_address, ":8080");
	assert_string_equal(flags.health_address, ":8081");
	assert_string_equal(flags.lease_name, "1ca428e5.training-operator.kubeflow.org");
	assert_string_equal(flags.pod_ns, "kubeflow");
	assert_false(flags.leader_elect);
	assert_null(flags.ns);
	assert_null(flags.kubeconfig);
	assert_ptr_equal(flags.frameworks[0], hf_frameworks[0]);
	assert_false(flags.init_template_given);
	assert_int_equal(flags.log_level, HF_LOG_INFO);
	assert_int_equal(flags.encoder, HF_ENCODER_AUTO);
	assert_int_equal(flags.n_ignored, 0);
	assert_int_equal(flags.burst, 30);
}

static void test_one_dash_or_two_and_both_ways_to_give_a_value(void **state)
{
	assert_ok(parse("-kubeconfig a --namespace=b -metrics-bind-address=:1 "
			"--health-probe-bind-address 0 -pytorch-init-container-max-tries 7"),
		  &err);
	assert_string_equal(flags.kubeconfig, "a");
	assert_string_equal(flags.ns, "b");
	assert_string_equal(flags.metrics_address, ":1");
	assert_string_equal(flags.health_address, "0");
	assert_int_equal(flags.init_tries, 7);
}

static void test_switches_take_a_value_only_behind_an_equals_sign(void **state)
{
	assert_ok(parse("-leader-elect -zap-devel=false"), &err);
	assert_true(flags.leader_elect);
	assert_false(flags.devel);
	assert_ok(parse("--leader-elect=T --leader-elect=0"), &err);
	assert_false(flags.leader_elect);
	assert_code(parse("-leader-elect=yes"), HF_E_INVALID);
	assert_string_equal(err.text, "--leader-elect takes true or false, not 'yes'");
}

static void test_an_unknown_flag_is_refused_with_the_nearest_name(void **state)
{
	assert_code(parse("--leader-elect-id=x"), HF_E_INVALID);
	assert_string_equal(err.text, "unknown flag '--leader-elect-id': did you mean "
				      "'--leader-election-id'?");
	assert_code(parse("-enable-schema tfjob"), HF_E_INVALID);
	assert_string_equal(err.text,
			    "unknown flag '--enable-schema': did you mean '--enable-scheme'?");
	assert_code(parse("--colour"), HF_E_INVALID);
	assert_string_equal(err.text, "unknown flag '--colour'");
}

static void test_an_empty_name_is_none_and_two_dashes_end_the_flags(void **state)
{
	assert_ok(parse("--kubeconfig= -context= --config= --leader-elect --"), &err);
	assert_null(flags.kubeconfig);
	assert_null(flags.context);
	assert_string_equal(flags.config, "/etc/holdfast/operator.yaml");
	assert_false(flags.config_given);
	assert_true(flags.leader_elect);
}

static void test_every_flag_of_the_go_operator_is_taken(void **state)
{
	static const char *const names[] = {
		"metrics-bind-address=:1",
		"health-probe-bind-address=:2",
		"leader-elect",
		"leader-election-id=x",
		"enable-scheme=pytorchjob",
		"gang-scheduler-name=",
		"namespace=n",
		"controller-threads=8",
		"kube-api-qps=20",
		"kube-api-burst=30",
		"pytorch-init-container-image=alpine:3.10",
		"pytorch-init-container-template-file=/x",
		"pytorch-init-container-max-tries=100",
		"mpi-kubectl-delivery-image=i",
		"webhook-server-port=9443",
		"webhook-service-name=s",
		"webhook-secret-name=s",
		"zap-devel",
		"zap-encoder=json",
		"zap-log-level=info",
		"zap-stacktrace-level=panic",
		"zap-time-encoding=iso8601",
		"kubeconfig=k",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++) {
		char text[128];

		snprintf(text, sizeof(text), "-%s", names[i]);
		assert_ok(parse(text), &err);
	}
}

static void test_flags_without_effect_say_why_and_once(void **state)
{
	assert_ok(parse("--webhook-server-port=9443 --controller-threads=4 --controller-threads=8"),
		  &err);
	assert_int_equal(flags.n_ignored, 2);
	assert_string_equal(flags.ignored[0].name, "webhook-server-port");
	assert_string_equal(flags.ignored[0].why,
			    "Holdfast has no webhook: rules in the CRDs validate jobs");
	assert_string_equal(flags.ignored[1].name, "controller-threads");
	assert_ok(parse("--kube-api-burst=50"), &err);
	assert_int_equal(flags.n_ignored, 1);
	assert_ok(parse("--kube-api-burst=50 --kube-api-qps=20"), &err);
	assert_int_equal(flags.n_ignored, 0);
	assert_int_equal(flags.burst, 50);
}

static void test_kinds_are_named_in_any_case_and_add_up(void **state)
{
	assert_ok(parse("--enable-scheme=PYTORCHJOB --enable-scheme=pytorchjob"), &err);
	assert_ptr_equal(flags.frameworks[0], &hf_framework_pytorch);
	assert_null(flags.frameworks[1]);
	assert_code(parse("--enable-scheme=sparkjob"), HF_E_INVALID);
	assert_string_equal(err.text, "--enable-scheme: unknown kind of job 'sparkjob'");
}

static void test_kinds_that_are_not_built_are_named(void **state)
{
	static const char *const kinds[] = {"tfjob", "mpijob", "xgboostjob", "paddlejob", "jaxjob"};

	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++) {
		char text[64];

		if (hf_framework_by_name(kinds[i]) != NULL)
			continue;
		snprintf(text, sizeof(text), "--enable-scheme=%s", kinds[i]);
		assert_code(parse(text), HF_E_INVALID);
		assert_non_null(strstr(err.text, "is not built into this version of Holdfast"));
	}
}

static void test_a_gang_scheduler_is_one_unless_it_is_none(void **state)
{
	assert_ok(parse("--gang-scheduler-name=volcano"), &err);
	assert_string_equal(flags.gang_scheduler, "volcano");
	assert_ok(parse("--gang-scheduler-name=None"), &err);
	assert_null(flags.gang_scheduler);
	assert_ok(parse("--gang-scheduler-name="), &err);
	assert_null(flags.gang_scheduler);
}

static void test_the_environment_counts_where_a_flag_is_missing(void **state)
{
	env = (struct hf_operator_env){.kubeflow_namespace = "team",
				       .my_pod_namespace = "ops",
				       .custom_cluster_domain = "c.local"};
	assert_ok(parse(""), &err);
	assert_string_equal(flags.ns, "team");
	assert_string_equal(flags.pod_ns, "ops");
	assert_string_equal(flags.cluster_domain, "c.local");
	assert_ok(parse("--namespace=other"), &err);
	assert_string_equal(flags.ns, "other");
	assert_ok(parse("--namespace="), &err);
	assert_null(flags.ns);
}

static void test_zaps_flags_set_the_log(void **state)
{
	assert_ok(parse("--zap-devel"), &err);
	assert_int_equal(flags.log_level, HF_LOG_DEBUG);
	assert_int_equal(flags.encoder, HF_ENCODER_CONSOLE);
	assert_ok(parse("--zap-devel --zap-log-level=error --zap-encoder=json"), &err);
	assert_int_equal(flags.log_level, HF_LOG_ERROR);
	assert_int_equal(flags.encoder, HF_ENCODER_JSON);
	assert_ok(parse("--zap-log-level=3"), &err);
	assert_int_equal(flags.log_level, HF_LOG_DEBUG);
	assert_code(parse("--zap-log-level=loud"), HF_E_INVALID);
	assert_code(parse("--zap-log-level=0"), HF_E_INVALID);
	assert_code(parse("--zap-encoder=xml"), HF_E_INVALID);
}

static void test_values_that_are_none_are_refused(void **state)
{
	static const char *const bad[] = {
		"--kube-api-qps=-1",
		"--kube-api-qps=many",
		"--kube-api-qps=inf",
		"--kube-api-burst=2.5",
		"--kube-api-burst=-3",
		"--pytorch-init-container-max-tries=x",
		"--namespace=A",
		"--leader-election-id=no/slash",
		"--metrics-bind-address=x",
		"--health-probe-bind-address=:99999",
		"--kubeconfig",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++)
		assert_code(parse(bad[i]), HF_E_INVALID);
}

static void assert_refused(const char *text, const char *why)
{
	assert_code(parse(text), HF_E_INVALID);
	if (!hf_str_has_prefix(err.text, why))
		fail_msg("'%s' does not begin with '%s'", err.text, why);
}

static void test_a_bad_name_is_refused_by_the_flag_that_gave_it(void **state)
{
	assert_refused("--namespace=Bad", "--namespace 'Bad': ");
	assert_refused("--leader-election-namespace=Bad/NS",
		       "--leader-election-namespace 'Bad/NS': ");
	assert_refused("--leader-election-id=no/slash", "--leader-election-id 'no/slash': ");
	assert_refused("--gang-scheduler-name=bad\tname", "--gang-scheduler-name 'bad\tname': ");
	assert_ok(parse("--gang-scheduler-name=my.Scheduler_2"), &err);
}

static void test_a_bad_name_is_refused_by_the_variable_that_gave_it(void **state)
{
	env = (struct hf_operator_env){.kubeflow_namespace = "a b"};
	assert_refused("", "KUBEFLOW_NAMESPACE 'a b': ");
	assert_refused("--namespace=B", "--namespace 'B': ");
	assert_ok(parse("--namespace=b"), &err);
	env = (struct hf_operator_env){.my_pod_namespace = "Bad NS"};
	assert_refused("-leader-elect", "MY_POD_NAMESPACE 'Bad NS': ");
	assert_refused("-leader-elect --leader-election-namespace=b",
		       "MY_POD_NAMESPACE 'Bad NS': ");
}

static void test_a_cluster_domain_is_one(void **state)
{
	static const char *const good[] = {"cluster.local", "cluster.local.", "Corp.Example", "c"};
	static const char *const bad[] = {"a b", "cluster.local\n", " c", ".", ".c", "c..", "a_b"};

	for (size_t i = 0; i < HF_ARRAY_LEN(good); i++) {
		env.custom_cluster_domain = good[i];
		assert_ok(parse(""), &err);
		assert_string_equal(flags.cluster_domain, good[i]);
	}
	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		env.custom_cluster_domain = bad[i];
		assert_refused("", "CUSTOM_CLUSTER_DOMAIN '");
	}
}

static void test_addresses_have_a_host_or_none(void **state)
{
	char host[HF_HOST_BYTES_MAX];
	uint16_t port;

	assert_ok(hf_bind_address_parse(":8080", host, &port, &err), &err);
	assert_string_equal(host, "");
	assert_int_equal(port, 8080);
	assert_ok(hf_bind_address_parse("[::1]:0", host, &port, &err), &err);
	assert_string_equal(host, "::1");
	assert_int_equal(port, 0);
	assert_ok(hf_bind_address_parse("127.0.0.1:1", host, &port, &err), &err);
	assert_string_equal(host, "127.0.0.1");
	assert_code(hf_bind_address_parse("8080", host, &port, &err), HF_E_INVALID);
}

#define T(name) cmocka_unit_test_setup(name, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_defaults_are_the_go_operators),
		T(test_one_dash_or_two_and_both_ways_to_give_a_value),
		T(test_switches_take_a_value_only_behind_an_equals_sign),
		T(test_an_unknown_flag_is_refused_with_the_nearest_name),
		T(test_an_empty_name_is_none_and_two_dashes_end_the_flags),
		T(test_every_flag_of_the_go_operator_is_taken),
		T(test_flags_without_effect_say_why_and_once),
		T(test_kinds_are_named_in_any_case_and_add_up),
		T(test_kinds_that_are_not_built_are_named),
		T(test_a_gang_scheduler_is_one_unless_it_is_none),
		T(test_the_environment_counts_where_a_flag_is_missing),
		T(test_zaps_flags_set_the_log),
		T(test_values_that_are_none_are_refused),
		T(test_a_bad_name_is_refused_by_the_flag_that_gave_it),
		T(test_a_bad_name_is_refused_by_the_variable_that_gave_it),
		T(test_a_cluster_domain_is_one),
		T(test_addresses_have_a_host_or_none),
	};

	return cmocka_run_group_tests_name("operator_flags", tests, NULL, NULL);
}
