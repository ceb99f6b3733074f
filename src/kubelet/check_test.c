/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/check.h"

#include "harness/json_text.h"
#include "harness/test.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* Tests which fields of a pod template are refused and which are ignored. */

static const struct hf_kubelet_check user = {.isolate = true, .root = false, .uid = 1000};

static struct hf_kubelet_findings *check(const char *text, const struct hf_kubelet_check *facts,
					 bool command_given)
{
	HF_AUTO_JSON spec = json_of(text);
	struct hf_kubelet_findings *findings = hf_xcalloc(1, sizeof(*findings));
	const struct hf_kubelet_check_input input = {
		.spec = spec, .path = "spec", .facts = facts, .command_given = command_given};

	hf_kubelet_check_template(&input, findings);
	return findings;
}

/* Asserts that the spec has exactly one finding, for this field, with a text that begins with the
 * field. */
static void assert_finding(const char *spec, bool refused, const char *field)
{
	HF_AUTOFREE struct hf_kubelet_findings *f = check(spec, &user, false);

	if (f->n != 1)
		fail_msg("%s: %zu findings, the first: %s", spec, f->n,
			 f->n ? f->items[0].text : "");
	assert_string_equal(f->items[0].field, field);
	assert_int_equal(f->items[0].refused, refused);
	assert_int_equal(f->n_refused, refused);
	assert_true(hf_str_has_prefix(f->items[0].text, field));
	assert_int_equal(f->items[0].text[strlen(field)], ' ');
}

static void each_field_has_its_verdict(void **state)
{
	static const struct {
		const char *container; /* what is added to a container */
		bool refused;
		const char *field;
	} rows[] = {
		{"'livenessProbe':{'grpc':{'port':1}},'startupProbe':{'exec':{}}", false,
		 "livenessProbe.grpc"},
		{"'readinessProbe':{'httpGet':{'port':1,'scheme':'HTTPS'}}", false,
		 "readinessProbe.httpGet.scheme"},
		{"'lifecycle':{'preStop':{'tcpSocket':{}},'postStart':{'exec':{}}}", false,
		 "lifecycle.preStop.tcpSocket"},
		{"'tty':true", false, "tty"},
		{"'stdin':true", false, "stdin"},
		{"'restartPolicy':'Always'", true, "restartPolicy"},
		{"'volumeDevices':[{}]", true, "volumeDevices"},
		{"'resources':{'claims':[{'name':'x'}]}", true, "resources.claims"},
		{"'volumeMounts':[{'subPathExpr':'x'}]", true, "volumeMounts[0].subPathExpr"},
		{"'volumeMounts':[{'mountPropagation':'Bidirectional'}]", true,
		 "volumeMounts[0].mountPropagation"},
		{"'securityContext':{'seccompProfile':{'type':'Localhost'}}", true,
		 "securityContext.seccompProfile"},
		{"'securityContext':{'runAsUser':5}", true, "securityContext.runAsUser"},
		{"'securityContext':{'runAsNonRoot':true,'runAsUser':'x'}", true,
		 "securityContext.runAsUser"},
		{"'securityContext':{'privileged':true}", true, "securityContext.privileged"},
		{"'securityContext':{'capabilities':{'add':['NET_ADMIN']}}", true,
		 "securityContext.capabilities.add"},
		{"'securityContext':{'procMount':'Unmasked'}", true, "securityContext.procMount"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		HF_AUTOFREE char *spec =
			hf_xasprintf("{'containers':[{'command':['x']},{'command':['x'],%s}]}",
				     rows[i].container);
		HF_AUTOFREE char *field = hf_xasprintf("spec.containers[1].%s", rows[i].field);

		assert_finding(spec, rows[i].refused, field);
	}
}

static void pods_and_volumes_have_their_verdicts(void **state)
{
	static const struct {
		const char *spec;
		bool refused;
		const char *field;
	} rows[] = {
		{"{'runtimeClassName':'x'}", true, "spec.runtimeClassName"},
		{"{'resourceClaims':[{'name':'gpu'}]}", true, "spec.resourceClaims"},
		{"{'shareProcessNamespace':true}", true, "spec.shareProcessNamespace"},
		{"{'hostUsers':false}", true, "spec.hostUsers"},
		{"{'dnsConfig':{'nameservers':['1.1.1.1']}}", false, "spec.dnsConfig"},
		{"{'securityContext':{'sysctls':[{}]}}", true, "spec.securityContext.sysctls"},
		{"{'os':{'name':'windows'}}", true, "spec.os.name"},
		{"{'securityContext':{'supplementalGroups':[1]}}", true,
		 "spec.securityContext.supplementalGroups"},
		{"{'volumes':[{'name':'a','emptyDir':{}},{'name':'b','nfs':{'server':'s'}}]}", true,
		 "spec.volumes[1].nfs"},
		{"{'volumes':[{'name':'a','csi':{'driver':'d'}}]}", true, "spec.volumes[0].csi"},
		{"{'volumes':[{'name':'a','emptyDir':{'medium':'HugePages'}}]}", true,
		 "spec.volumes[0].emptyDir.medium"},
		{"{'volumes':[{'name':'a','projected':{'sources':[{'secret':{'name':'s'}},"
		 "{'serviceAccountToken':{}}]}}]}",
		 true, "spec.volumes[0].projected.sources[1].serviceAccountToken"},
		{"{'initContainers':[{'command':['x'],'restartPolicy':'Always'},{'command':['x'],"
		 "'restartPolicy':'Never'}]}",
		 true, "spec.initContainers[1].restartPolicy"},
		{"{'initContainers':[{'name':'i'}]}", true, "spec.initContainers[0].command"},
		{"{'volumes':[{'name':'m','emptyDir':{'medium':'Memory'}}],'containers':[{"
		 "'command':['x'],'volumeMounts':[{'name':'m','subPath':'x'}]}]}",
		 true, "spec.containers[0].volumeMounts[0].subPath"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++)
		assert_finding(rows[i].spec, rows[i].refused, rows[i].field);
}

static void a_plain_pod_has_no_findings(void **state)
{
	HF_AUTOFREE struct hf_kubelet_findings *f = check(
		"{'dnsPolicy':'ClusterFirst','hostUsers':true,'tolerations':[{}],"
		"'os':{'name':'linux'},'hostPID':true,'volumes':[{'name':'v','emptyDir':{}},"
		"{'name':'w'},{'name':'h','hostPath':{'path':'/'}}],'containers':[{'name':'main',"
		"'image':'x','command':['a'],'ports':[{}],'stdin':false,'securityContext':{"
		"'runAsUser':1000,'allowPrivilegeEscalation':false,'capabilities':{'drop':['ALL']},"
		"'seccompProfile':{'type':'RuntimeDefault'}},'volumeMounts':[{'name':'v',"
		"'mountPath':'/x','subPath':'y'}]}]}",
		&user, false);

	if (f->n)
		fail_msg("%s", f->items[0].text);
}

static void the_first_container_needs_no_command_if_the_operator_sets_it(void **state)
{
	static const char spec[] = "{'containers':[{'name':'a'},{'name':'b'}]}";
	HF_AUTOFREE struct hf_kubelet_findings *alone = check(spec, &user, false);
	HF_AUTOFREE struct hf_kubelet_findings *given = check(spec, &user, true);

	assert_int_equal(alone->n, 2);
	assert_true(
		hf_str_has_prefix(alone->items[0].text, "spec.containers[0].command is needed"));
	assert_int_equal(given->n, 1);
	assert_string_equal(given->items[0].field, "spec.containers[1].command");
}

static void an_ignored_field_is_reported_once(void **state)
{
	HF_AUTOFREE struct hf_kubelet_findings *f =
		check("{'containers':[{'command':['x'],'tty':true},{'command':['x'],'tty':true,"
		      "'volumeDevices':[{}]}]}",
		      &user, false);

	assert_int_equal(f->n, 2);
	assert_string_equal(f->items[0].field, "spec.containers[0].tty");
	assert_ptr_equal(hf_kubelet_first_refusal(f), &f->items[1]);
}

static void without_a_machine_only_the_template_counts(void **state)
{
	HF_AUTOFREE struct hf_kubelet_findings *f =
		check("{'securityContext':{'runAsUser':5,'supplementalGroups':[1]},'containers':[{"
		      "'command':['x'],'securityContext':{'privileged':true,'runAsNonRoot':true,"
		      "'readOnlyRootFilesystem':true}}]}",
		      NULL, false);

	assert_int_equal(f->n, 0);
}

/* The input is hostile: more problems than findings fit, long paths, and values of wrong types. */
static void findings_have_a_limit_and_wrong_types_are_passed_over(void **state)
{
	static const char *const odd[] = {
		"{'containers':'x','volumes':{'a':1},'initContainers':5}",
		"{'containers':[1,null,'x'],'volumes':[null,'a',[]],'securityContext':[]}",
		"{'volumes':[{'name':5,'projected':{'sources':{'a':1}}}],'os':'x'}",
		"[]",
	};
	HF_AUTO_STRBUF many = HF_STRBUF_INIT(65536);
	HF_AUTOFREE struct hf_kubelet_findings *f = NULL;

	for (size_t i = 0; i < HF_ARRAY_LEN(odd); i++) {
		HF_AUTOFREE struct hf_kubelet_findings *one = check(odd[i], &user, false);

		assert_true(one->n <= HF_KUBELET_FINDINGS_MAX);
	}
	hf_strbuf_addstr(&many, "{'containers':[");
	for (int i = 0; i < 60; i++)
		hf_strbuf_addf(&many, "%s{'name':'c'}", i ? "," : "");
	hf_strbuf_addstr(&many, "]}");
	f = check(many.data, &user, false);
	assert_int_equal(f->n, HF_KUBELET_FINDINGS_MAX);
	assert_int_equal(f->n_refused, 60);
}

static void non_root_is_checked_against_the_user_of_the_process(void **state)
{
	static const struct {
		const char *pod, *container;
		bool root, good;
	} rows[] = {
		{"{'runAsNonRoot':true}", "{}", true, false},
		{"{'runAsNonRoot':true}", "{}", false, true},
		{"{'runAsNonRoot':true}", "{'runAsUser':7}", true, true},
		{"{'runAsNonRoot':true,'runAsUser':7}", "{'runAsUser':0}", true, false},
		{"{'runAsUser':7}", "{}", true, true},
		{"{'runAsUser':7}", "{}", false, false},
		{"{'runAsUser':1000}", "{}", false, true},
		{"{'runAsGroup':7}", "{}", false, false},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		const struct hf_kubelet_check facts = {
			.isolate = true, .root = rows[i].root, .uid = rows[i].root ? 0 : 1000};
		HF_AUTOFREE char *spec =
			hf_xasprintf("{'securityContext':%s,'containers':[{'command':['x'],"
				     "'securityContext':%s}]}",
				     rows[i].pod, rows[i].container);
		HF_AUTOFREE struct hf_kubelet_findings *f = check(spec, &facts, false);

		if ((f->n_refused == 0) != rows[i].good)
			fail_msg("row %zu: %s", i, f->n ? f->items[0].text : "accepted");
	}
}

static void without_namespaces_a_volume_must_be_in_place(void **state)
{
	static const struct {
		const char *mount, *volume;
		bool good;
	} rows[] = {
		{"'mountPath':'/data'", "'hostPath':{'path':'/data'}", true},
		{"'mountPath':'/data'", "'hostPath':{'path':'/other'}", false},
		{"'mountPath':'/data','subPath':'a'", "'hostPath':{'path':'/data'}", false},
		{"'mountPath':'/data'", "'emptyDir':{}", false},
		{"'mountPath':'/dev/shm'", "'emptyDir':{}", true},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		const struct hf_kubelet_check facts = {.root = true, .why = "no rights"};
		HF_AUTOFREE char *spec = hf_xasprintf(
			"{'volumes':[{'name':'v',%s}],'containers':[{'command':['x'],'volumeMounts':"
			"[{'name':'v',%s}]}]}",
			rows[i].volume, rows[i].mount);
		HF_AUTOFREE struct hf_kubelet_findings *f = check(spec, &facts, false);

		if ((f->n_refused == 0) != rows[i].good)
			fail_msg("row %zu: %s", i, f->n ? f->items[0].text : "accepted");
		if (!rows[i].good)
			assert_non_null(strstr(f->items[0].text,
					       "volumeMounts[0].mountPath is not "
					       "supported: pods have no mount namespaces "
					       "on this machine (no rights); "));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_has_its_verdict),
		cmocka_unit_test(pods_and_volumes_have_their_verdicts),
		cmocka_unit_test(a_plain_pod_has_no_findings),
		cmocka_unit_test(the_first_container_needs_no_command_if_the_operator_sets_it),
		cmocka_unit_test(an_ignored_field_is_reported_once),
		cmocka_unit_test(without_a_machine_only_the_template_counts),
		cmocka_unit_test(findings_have_a_limit_and_wrong_types_are_passed_over),
		cmocka_unit_test(non_root_is_checked_against_the_user_of_the_process),
		cmocka_unit_test(without_namespaces_a_volume_must_be_in_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
