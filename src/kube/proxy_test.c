/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of the choice of a proxy: variables, NO_PROXY patterns, proxy URLs, hosts and ports of
 * URLs. */
#include "harness/test.h"
#include "kube/config_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

static bool through_proxy(const char *server, const char *no_proxy)
{
	const struct hf_kube_proxy_env env = {
		.http = "http://p:1", .https = "http://p:2", .no_proxy = no_proxy};
	HF_AUTOFREE char *url = hf_kube_proxy_choose(server, &env);

	return url != NULL;
}

static void the_scheme_of_the_server_chooses_the_variable(void **state)
{
	const struct hf_kube_proxy_env env = {.http = "http://p:1", .https = "p:2"};
	const struct hf_kube_proxy_env none = {.http = "http://p:1", .https = ""};
	HF_AUTOFREE char *plain = hf_kube_proxy_choose("http://far", &env);
	HF_AUTOFREE char *tls = hf_kube_proxy_choose("https://far", &env);

	assert_string_equal(plain, "http://p:1");
	assert_string_equal(tls, "http://p:2"); /* a proxy without a scheme is an http proxy */
	assert_null(hf_kube_proxy_choose("https://far", &none));
}

static void this_machine_is_never_reached_through_a_proxy(void **state)
{
	static const char *const servers[] = {"https://localhost:6443", "https://127.0.0.1",
					      "https://127.9.9.9:1", "https://[::1]:6443"};

	for (size_t i = 0; i < HF_ARRAY_LEN(servers); i++)
		assert_false(through_proxy(servers[i], ""));
	assert_true(through_proxy("https://localhost.example:6443", ""));
}

static void no_proxy_reads_as_in_go(void **state)
{
	static const struct {
		const char *server, *no_proxy;
		bool through;
	} cases[] = {
		{"https://api.example.com", "", true},
		{"https://api.example.com", "*", false},
		{"https://api.example.com", "example.com", false},
		{"https://example.com", "example.com", false},
		{"https://badexample.com", "example.com", true},
		{"https://api.example.com", ".example.com", false},
		{"https://example.com", ".example.com", true},
		{"https://api.example.com", "*.example.com", false},
		{"https://example.com", "*.example.com", true},
		{"https://API.Example.com", "a, EXAMPLE.com ,b", false},
		{"https://api.example.com:6443", "example.com:6443", false},
		{"https://api.example.com:6443", "example.com:443", true},
		{"https://api.example.com", "example.com:443", false},
		{"https://10.1.2.3", "10.1.2.3", false},
		{"https://10.1.2.3:6443", "10.1.2.3:6443", false},
		{"https://10.1.2.3:6443", "10.1.2.3:1", true},
		{"https://10.1.2.3", "10.0.0.0/8", false},
		{"https://10.1.2.3", "10.1.2.0/24", false},
		{"https://10.1.3.3", "10.1.2.0/24", true},
		{"https://10.1.2.3", "10.1.2.2/31", false},
		{"https://10.1.2.4", "10.1.2.2/31", true},
		{"https://10.1.2.3", "10.0.0.0/33", true},
		{"https://10.1.2.3", "0.0.0.0/0", false},
		{"https://10.1.2.3", "1.2.3", true}, /* an address never matches a domain pattern */
		{"https://[fd00::1]:1", "fd00::1", false},
		{"https://[fd00::1]:1", "[fd00::1]:1", false},
		{"https://[fd00::1]:1", "[fd00::1]:2", true},
		{"https://[fd00::1]:1", "fd00::/8", false},
		{"https://[fd00::1]:1", "10.0.0.0/8,fe80::/10", true},
		{"https://api.example.com", ",, ,", true},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++)
		if (through_proxy(cases[i].server, cases[i].no_proxy) != cases[i].through)
			fail_msg("%s, NO_PROXY=%s", cases[i].server, cases[i].no_proxy);
}

static void only_proxies_that_curl_and_go_both_know_are_taken(void **state)
{
	static const struct {
		const char *url, *given;
	} cases[] = {
		{"http://p:3128", "http://p:3128"},
		{"https://u:x@p:3128", "https://u:x@p:3128"},
		{"socks5://p:1080", "socks5h://p:1080"},
		{"socks5h://p", "socks5h://p"},
		{"socks4://p", NULL},
		{"ftp://p", NULL},
		{"p:3128", NULL},
		{"http://", NULL},
		{"", NULL},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTOFREE char *url = hf_kube_proxy_url(cases[i].url);
		if (!hf_streq(url, cases[i].given))
			fail_msg("%s: %s", cases[i].url, hf_str_or(url, "none"));
	}
}

static void hosts_and_ports_are_cut_out_of_urls(void **state)
{
	static const struct {
		const char *url, *host, *port;
	} cases[] = {
		{"https://a.B:6443/x", "a.b", "6443"},
		{"https://a", "a", "443"},
		{"http://a/p:7", "a", "80"},
		{"https://[::1]:7", "::1", "7"},
		{"https://[::1]", "::1", "443"},
		{"https://u:p@h:1/", "h", "1"},
		{"https://h?q", "h", "443"},
		{"https://h:123456789", "h", "443"},
		{"https://", NULL, NULL},
		{"h:1", NULL, NULL},
		{"https://[::1", NULL, NULL},
	};
	char host[16], port[8];

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		bool has = hf_kube_url_host(cases[i].url, host, sizeof(host), port);
		if (has != (cases[i].host != NULL) ||
		    (has && (!hf_streq(host, cases[i].host) || !hf_streq(port, cases[i].port))))
			fail_msg("%s: %s %s", cases[i].url, host, port);
	}
	assert_false(
		hf_kube_url_host("https://a-host-name-that-is-too-long", host, sizeof(host), port));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_scheme_of_the_server_chooses_the_variable),
		cmocka_unit_test(this_machine_is_never_reached_through_a_proxy),
		cmocka_unit_test(no_proxy_reads_as_in_go),
		cmocka_unit_test(only_proxies_that_curl_and_go_both_know_are_taken),
		cmocka_unit_test(hosts_and_ports_are_cut_out_of_urls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
