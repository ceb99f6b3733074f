/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "page/origin.h"

#include "harness/test.h"

static void names_of_loopback_are_accepted_on_loopback_only(void **state)
{
	const struct hf_page_hosts local = {.loopback = true}, other = {.loopback = false};
	static const char *const hosts[] = {"localhost:8080", "127.0.0.1", "127.0.0.1:41234",
					    "[::1]:80", "LOCALHOST:1"};

	for (size_t i = 0; i < HF_ARRAY_LEN(hosts); i++) {
		assert_true(hf_page_host_ok(&local, hosts[i]));
		assert_false(hf_page_host_ok(&other, hosts[i]));
	}
}

static void given_names_are_accepted_with_any_port(void **state)
{
	const struct hf_page_hosts hosts = {.names = {"holdfast.example.com", "page"}};
	const struct hf_page_hosts forwarded = {.names = {"localhost"}};

	assert_true(hf_page_host_ok(&hosts, "holdfast.example.com"));
	assert_true(hf_page_host_ok(&hosts, "Holdfast.example.com:443"));
	assert_true(hf_page_host_ok(&hosts, "page:8082"));
	assert_true(hf_page_host_ok(&forwarded, "localhost:8082"));
	assert_true(hf_page_host_ok(&forwarded, "127.0.0.1:8082"));
	assert_false(hf_page_host_ok(&forwarded, "127.0.0.2:8082"));
	assert_false(hf_page_host_ok(&hosts, "127.0.0.1:8082"));
}

static void other_names_are_refused(void **state)
{
	const struct hf_page_hosts hosts = {.names = {"page.example"}, .loopback = true};
	static const char *const bad[] = {
		"evil.example",
		"localhost.evil.example",
		"127.0.0.1.evil.example",
		"page.example.evil",
		"page.exampl",
		"",
		":80",
		"localhost:",
		"localhost:x",
		"localhost:99999",
		"[::1",
		"[::1]x",
		"127.0.0.2",
		"localhost:80:80",
		"page.example/",
	};

	assert_false(hf_page_host_ok(&hosts, NULL));
	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++)
		assert_false(hf_page_host_ok(&hosts, bad[i]));
}

static void a_change_must_come_from_the_same_host(void **state)
{
	assert_true(hf_page_origin_ok("http://localhost:8080", "same-origin", "localhost:8080"));
	assert_true(hf_page_origin_ok("https://page.example", NULL, "page.example"));
	assert_true(hf_page_origin_ok(NULL, NULL, "page.example")); /* no browser */
	assert_true(hf_page_origin_ok(NULL, "none", "page.example"));
	assert_false(hf_page_origin_ok("http://evil.example", NULL, "page.example"));
	assert_false(hf_page_origin_ok("http://localhost:9090", NULL, "localhost:8080"));
	assert_false(hf_page_origin_ok("null", NULL, "page.example"));
	assert_false(hf_page_origin_ok("http://page.example", "cross-site", "page.example"));
	assert_false(hf_page_origin_ok(NULL, "same-site", "page.example"));
	assert_false(hf_page_origin_ok("http://page.example", NULL, NULL));
}

static void addresses_of_loopback_are_known(void **state)
{
	static const char *const others[] = {"",      "0.0.0.0",  "::", "127.0.0.1.evil.example",
					     "[::1]", "192.0.2.1"};

	assert_true(hf_page_is_loopback("localhost"));
	assert_true(hf_page_is_loopback("127.0.0.1"));
	assert_true(hf_page_is_loopback("::1"));
	for (size_t i = 0; i < HF_ARRAY_LEN(others); i++)
		assert_false(hf_page_is_loopback(others[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_loopback_are_accepted_on_loopback_only),
		cmocka_unit_test(given_names_are_accepted_with_any_port),
		cmocka_unit_test(other_names_are_refused),
		cmocka_unit_test(a_change_must_come_from_the_same_host),
		cmocka_unit_test(addresses_of_loopback_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
