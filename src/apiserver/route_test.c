/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/apiserver_internal.h"
#include "harness/test.h"

#include "base/str.h"

#include <stdlib.h>

static void paths_lead_to_kinds_objects_and_parts_of_them(void **state)
{
	static const struct {
		const char *path;
		const struct hf_resource *resource;
		const char *ns, *name, *sub;
	} cases[] = {
		{"/api/v1/pods", &hf_pods, NULL, NULL, NULL},
		{"/api/v1/namespaces/d/pods", &hf_pods, "d", NULL, NULL},
		{"/api/v1/namespaces/d/pods/p", &hf_pods, "d", "p", NULL},
		{"/api/v1/namespaces/d/pods/p/log", &hf_pods, "d", "p", "log"},
		{"/api/v1/namespaces/d/pods/", &hf_pods, "d", NULL, NULL},
		{"/api/v1/nodes/n/status", &hf_nodes, NULL, "n", "status"},
		{"/api/v1/namespaces", &hf_namespaces, NULL, NULL, NULL},
		{"/api/v1/namespaces/d", &hf_namespaces, NULL, "d", NULL},
		{"/api/v1/namespaces/d/finalize", &hf_namespaces, NULL, "d", "finalize"},
		{"/apis/kubeflow.org/v1/namespaces/d/pytorchjobs/j/scale", &hf_pytorchjobs, "d",
		 "j", "scale"},
		{"/apis/coordination.k8s.io/v1/leases", &hf_leases, NULL, NULL, NULL},
		{"/apis/holdfast.dev/v1alpha1/devicehealths/n/status", &hf_devicehealths, NULL, "n",
		 "status"},
		/* No such resource. */
		{"/apis/holdfast.dev/v1/devicehealths", NULL, NULL, NULL, NULL},
		{"/apis/kubeflow.org", NULL, NULL, NULL, NULL},
		{"/", NULL, NULL, NULL, NULL},
		{"/api", NULL, NULL, NULL, NULL},
		{"/api/v2/pods", NULL, NULL, NULL, NULL},
		{"/api/v1/deployments", NULL, NULL, NULL, NULL},
		{"/apis/kubeflow.org/v1/pods", NULL, NULL, NULL, NULL},
		{"/apis/kubeflow.org/v2/pytorchjobs", NULL, NULL, NULL, NULL},
		{"/api/v1/pods/p", NULL, NULL, NULL, NULL},
		{"/api/v1/namespaces/d/nodes/n", NULL, NULL, NULL, NULL},
		{"/api/v1//pods", NULL, NULL, NULL, NULL},
		{"/api/v1/namespaces//pods", NULL, NULL, NULL, NULL},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct apiserver_route route;
		hf_apiserver_route(cases[i].path, &route);
		if (route.resource != cases[i].resource ||
		    (route.resource != NULL &&
		     (!hf_streq(route.ns, cases[i].ns) || !hf_streq(route.name, cases[i].name) ||
		      !hf_streq(route.sub, cases[i].sub))))
			fail_msg("%s", cases[i].path);
		free(route.text);
	}
}

static void text_after_a_subresource_is_reported(void **state)
{
	struct apiserver_route route;

	hf_apiserver_route("/api/v1/namespaces/d/pods/p/proxy/x/y", &route);
	assert_string_equal(route.sub, "proxy");
	assert_true(route.too_long);
	free(route.text);
}

static void the_first_supported_form_is_used(void **state)
{
	static const struct {
		const char *accept;
		enum apiserver_form form;
	} cases[] = {
		{NULL, APISERVER_FORM_JSON},
		{"", APISERVER_FORM_JSON},
		{"*/*", APISERVER_FORM_JSON},
		{"application/json", APISERVER_FORM_JSON},
		{"application/json; charset=utf-8", APISERVER_FORM_JSON},
		{"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;"
		 "g=meta.k8s.io,application/json",
		 APISERVER_FORM_TABLE},
		{"application/json;as=Table;v=v1beta1;g=meta.k8s.io, application/json",
		 APISERVER_FORM_JSON},
		{"application/vnd.kubernetes.protobuf, application/json", APISERVER_FORM_JSON},
		{"application/vnd.kubernetes.protobuf", APISERVER_FORM_UNACCEPTABLE},
		{"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
		 APISERVER_FORM_METADATA},
		{"text/html", APISERVER_FORM_UNACCEPTABLE},
		{"application/jsonx", APISERVER_FORM_UNACCEPTABLE},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++)
		if (hf_apiserver_form(cases[i].accept) != cases[i].form)
			fail_msg("%s: %d", cases[i].accept,
				 (int)hf_apiserver_form(cases[i].accept));
}

static void media_types_are_compared_without_their_parameters(void **state)
{
	assert_true(hf_apiserver_media_is("application/json", "application/json"));
	assert_true(hf_apiserver_media_is("Application/JSON; charset=utf-8", "application/json"));
	assert_false(hf_apiserver_media_is("application/json-patch+json", "application/json"));
	assert_false(hf_apiserver_media_is(NULL, "application/json"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_lead_to_kinds_objects_and_parts_of_them),
		cmocka_unit_test(text_after_a_subresource_is_reported),
		cmocka_unit_test(the_first_supported_form_is_used),
		cmocka_unit_test(media_types_are_compared_without_their_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
