/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Chooses the proxy for a server from HTTPS_PROXY, HTTP_PROXY and NO_PROXY, by the rules of Go's
 * clients. curl reads the same variables by other rules: it uses a proxy for localhost and knows no
 * ports in NO_PROXY. So curl gets the chosen URL and never reads the variables. */
#include "kube/config_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool hf_kube_url_host(const char *url, char *ret_host, size_t host_size, char ret_port[8])
{
	const char *start = strstr(url, "://"), *end, *colon, *at;
	size_t len;

	if (start == NULL)
		return false;
	start += 3;
	end = start + strcspn(start, "/?#");
	at = memchr(start, '@', (size_t)(end - start));
	if (at != NULL)
		start = at + 1;
	if (*start == '[') {
		const char *close = memchr(start, ']', (size_t)(end - start));
		if (close == NULL)
			return false;
		colon = close + 1;
		start++;
		len = (size_t)(close - start);
	} else {
		colon = start + strcspn(start, ":/?#");
		len = (size_t)(colon - start);
	}
	if (len == 0 || len >= host_size)
		return false;
	memcpy(ret_host, start, len);
	ret_host[len] = '\0';
	hf_str_lower(ret_host);
	if (colon < end && *colon == ':' && end - colon > 1 && end - colon <= 6) {
		memcpy(ret_port, colon + 1, (size_t)(end - colon - 1));
		ret_port[end - colon - 1] = '\0';
	} else {
		(void)snprintf(ret_port, 8, "%s", hf_str_has_prefix(url, "https:") ? "443" : "80");
	}
	return true;
}

struct address {
	unsigned char bytes[16];
	int family; /* address family; 0: the text is not an IP address */
};

static struct address parse_address(const char *text)
{
	struct address a = {.family = 0};

	if (inet_pton(AF_INET, text, a.bytes) == 1)
		a.family = AF_INET;
	else if (inet_pton(AF_INET6, text, a.bytes) == 1)
		a.family = AF_INET6;
	return a;
}

static bool is_loopback(const struct address *a)
{
	static const unsigned char v6[16] = {[15] = 1};

	if (a->family == AF_INET)
		return a->bytes[0] == 127;
	return a->family == AF_INET6 && memcmp(a->bytes, v6, sizeof(v6)) == 0;
}

bool hf_kube_host_is_loopback(const char *host)
{
	struct address a = parse_address(host);

	return hf_streq(host, "localhost") || is_loopback(&a);
}

/* True if the address begins with the first bits of the network, as in "10.0.0.0/8". */
static bool matches_cidr(const char *net, const char *bits_text, const struct address *a)
{
	struct address n = parse_address(net);
	int64_t bits;

	if (n.family == 0 || n.family != a->family ||
	    hf_str_to_i64(bits_text, 0, n.family == AF_INET ? 32 : 128, &bits, NULL) != 0)
		return false;
	for (int64_t i = 0; i < bits; i++) {
		unsigned char mask = (unsigned char)(0x80u >> (i % 8));
		if ((n.bytes[i / 8] & mask) != (a->bytes[i / 8] & mask))
			return false;
	}
	return true;
}

/* True if the host matches a pattern of NO_PROXY: "foo.com" matches foo.com and its subdomains;
 * ".foo.com" and "*.foo.com" match subdomains only. */
static bool matches_domain(const char *domain, const char *host)
{
	size_t len, host_len = strlen(host);

	if (hf_str_has_prefix(domain, "*."))
		domain++;
	if (domain[0] != '.' && hf_streq(domain, host))
		return true;
	if (domain[0] == '.')
		domain++;
	len = strlen(domain);
	return len > 0 && host_len > len + 1 && host[host_len - len - 1] == '.' &&
	       hf_streq(host + host_len - len, domain);
}

/* Splits an item of NO_PROXY, "host:port" or "[v6]:port". A text with several colons and no
 * bracket is an IPv6 address without a port. */
static char *cut_port(char *item, const char **ret_port)
{
	char *colon = strrchr(item, ':');

	*ret_port = "";
	if (item[0] == '[') {
		char *close = strchr(item, ']');
		if (close == NULL)
			return item;
		*close = '\0';
		if (close[1] == ':')
			*ret_port = close + 2;
		return item + 1;
	}
	if (colon != NULL && strchr(item, ':') == colon) {
		*colon = '\0';
		*ret_port = colon + 1;
	}
	return item;
}

static bool matches_item(char *item, const char *host, const char *port, const struct address *a)
{
	const char *item_port;
	char *slash = strchr(item, '/');
	struct address n;

	if (hf_streq(item, "*"))
		return true;
	if (slash != NULL) {
		*slash = '\0';
		return a->family != 0 && matches_cidr(item, slash + 1, a);
	}
	item = cut_port(item, &item_port);
	if (item_port[0] != '\0' && !hf_streq(item_port, port))
		return false;
	n = parse_address(item);
	if (n.family != 0)
		return n.family == a->family && memcmp(n.bytes, a->bytes, sizeof(n.bytes)) == 0;
	return a->family == 0 && matches_domain(item, host);
}

static bool is_exempt(const char *no_proxy, const char *host, const char *port)
{
	HF_AUTOFREE char *list = hf_xstrdup(hf_str_or(no_proxy, ""));
	struct address a = parse_address(host);
	char *rest = list;

	if (hf_kube_host_is_loopback(host))
		return true;
	hf_str_lower(list);
	for (char *item; (item = strsep(&rest, ",")) != NULL;) {
		item += strspn(item, " \t");
		item[strcspn(item, " \t")] = '\0';
		if (item[0] != '\0' && matches_item(item, host, port, &a))
			return true;
	}
	return false;
}

char *hf_kube_proxy_choose(const char *server, const struct hf_kube_proxy_env *env)
{
	const char *proxy = hf_str_has_prefix(server, "https:") ? env->https : env->http;
	char host[256], port[8];

	if (hf_str_is_empty(proxy) || !hf_kube_url_host(server, host, sizeof(host), port) ||
	    is_exempt(env->no_proxy, host, port))
		return NULL;
	/* A proxy given as "host:3128", without a scheme, is an http proxy. */
	if (strstr(proxy, "://") == NULL)
		return hf_xasprintf("http://%s", proxy);
	return hf_xstrdup(proxy);
}

char *hf_kube_proxy_url(const char *url)
{
	static const char *const schemes[] = {"http://", "https://", "socks5h://"};
	char host[256], port[8];

	if (!hf_kube_url_host(url, host, sizeof(host), port))
		return NULL;
	if (hf_str_has_prefix(url, "socks5://"))
		return hf_xasprintf("socks5h://%s", url + strlen("socks5://"));
	for (size_t i = 0; i < HF_ARRAY_LEN(schemes); i++)
		if (hf_str_has_prefix(url, schemes[i]))
			return hf_xstrdup(url);
	return NULL;
}
