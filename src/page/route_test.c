/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "page/route.h"

#include "harness/test.h"

#include <string.h>

static struct hf_page_place place_of(const char *path)
{
	struct hf_page_place place;

	hf_page_route(path, &place);
	return place;
}

static void each_path_has_its_route(void **state)
{
	static const struct {
		const char *path;
		enum hf_page_route route;
	} cases[] = {
		{"/", HF_PAGE_INDEX},
		{"/nodes", HF_PAGE_INDEX},
		{"/recovery", HF_PAGE_INDEX},
		{"/j/team-a/PyTorchJob/ddp", HF_PAGE_INDEX},
		{"/n/gpu-7.example", HF_PAGE_INDEX},
		{"/assets/page.js", HF_PAGE_ASSET},
		{"/api/v1/session", HF_PAGE_SESSION},
		{"/api/v1/login", HF_PAGE_LOGIN},
		{"/api/v1/jobs", HF_PAGE_JOBS},
		{"/api/v1/jobs/a/b/c", HF_PAGE_JOB},
		{"/api/v1/jobs/a/b/c/yaml", HF_PAGE_JOB_YAML},
		{"/api/v1/jobs/a/b/c/ranks", HF_PAGE_JOB_RANKS},
		{"/api/v1/jobs/a/b/c/log", HF_PAGE_JOB_LOG},
		{"/api/v1/jobs/a/b/c/action", HF_PAGE_JOB_ACTION},
		{"/api/v1/nodes", HF_PAGE_NODES},
		{"/api/v1/nodes/gpu-7", HF_PAGE_NODE},
		{"/api/v1/recovery", HF_PAGE_RECOVERY},
		{"/api/v1/events", HF_PAGE_EVENTS},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++)
		assert_int_equal(place_of(cases[i].path).route, cases[i].route);
}

static void a_job_has_namespace_kind_and_name(void **state)
{
	struct hf_page_place place = place_of("/api/v1/jobs/team-a/pytorchjobs/ddp.1/log");

	assert_string_equal(place.ns, "team-a");
	assert_string_equal(place.kind, "pytorchjobs");
	assert_string_equal(place.name, "ddp.1");
}

static void names_that_kubernetes_refuses_have_no_route(void **state)
{
	static const char *const paths[] = {
		"/api/v1/jobs/a/b/../yaml",
		"/api/v1/jobs/a/b/C",
		"/api/v1/jobs/a//c",
		"/api/v1/jobs/a/b/c/yaml/",
		"/api/v1/jobs/a/b/c/other",
		"/api/v1/jobs/a/b",
		"/api/v1/jobs/a.b/k/c",
		"/api/v1/jobs/a/k-k/c",
		"/api/v1/nodes/",
		"/api/v1/nodes/a/b",
		"/j/a/b/c/d",
		"/n/",
		"/api/v1/nodes/\x01",
		"/nodes/",
		"//",
		"/api/v2/jobs",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(paths); i++)
		assert_int_equal(place_of(paths[i]).route, HF_PAGE_NOTHING);
}

static void names_longer_than_their_limit_have_no_route(void **state)
{
	char path[1024] = "/api/v1/nodes/";
	size_t prefix = strlen(path);

	memset(path + prefix, 'a', HF_PAGE_NAME_MAX - 1);
	path[prefix + HF_PAGE_NAME_MAX - 1] = '\0';
	assert_int_equal(place_of(path).route, HF_PAGE_NODE);
	memset(path + prefix, 'a', HF_PAGE_NAME_MAX);
	path[prefix + HF_PAGE_NAME_MAX] = '\0';
	assert_int_equal(place_of(path).route, HF_PAGE_NOTHING);
}

static void only_changes_are_posts(void **state)
{
	assert_true(hf_page_route_is_post(HF_PAGE_LOGIN));
	assert_true(hf_page_route_is_post(HF_PAGE_LOGOUT));
	assert_true(hf_page_route_is_post(HF_PAGE_JOB_ACTION));
	assert_false(hf_page_route_is_post(HF_PAGE_JOB));
	assert_false(hf_page_route_is_post(HF_PAGE_EVENTS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_path_has_its_route),
		cmocka_unit_test(a_job_has_namespace_kind_and_name),
		cmocka_unit_test(names_that_kubernetes_refuses_have_no_route),
		cmocka_unit_test(names_longer_than_their_limit_have_no_route),
		cmocka_unit_test(only_changes_are_posts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
