/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "page/origin.h"

#include "base/str.h"

#include <string.h>

/* Returns the bytes of the name in "name:port", "[::1]:port" or "name". 0: malformed. */
static size_t name_len(const char *host)
{
	const char *end;
	size_t len;

	if (host[0] == '[') {
		end = strchr(host, ']');
		len = end == NULL ? 0 : (size_t)(end - host) + 1;
	} else {
		len = strcspn(host, ":");
	}
	if (len == 0 || (host[len] != '\0' && host[len] != ':'))
		return 0;
	return host[len] == '\0' ||
			       hf_str_to_i64(&host[len + 1], 1, 65535, &(int64_t){0}, NULL) == 0
		       ? len
		       : 0;
}

static bool is_name(const char *host, size_t len, const char *name)
{
	return strlen(name) == len && strncasecmp(host, name, len) == 0;
}

/* The names of loopback in a Host header. kubectl port-forward prints an address, so people open that too. */
static bool is_loopback_name(const char *host, size_t len)
{
	static const char *const local[] = {"localhost", "127.0.0.1", "[::1]"};

	for (size_t i = 0; i < HF_ARRAY_LEN(local); i++)
		if (is_name(host, len, local[i]))
			return true;
	return false;
}

static bool accepts_loopback(const struct hf_page_hosts *hosts)
{
	for (size_t i = 0; hosts->names[i] != NULL; i++)
		if (is_loopback_name(hosts->names[i], strlen(hosts->names[i])))
			return true;
	return hosts->loopback;
}

bool hf_page_host_ok(const struct hf_page_hosts *hosts, const char *host)
{
	size_t len = host == NULL ? 0 : name_len(host);

	if (len == 0)
		return false;
	if (is_loopback_name(host, len))
		return accepts_loopback(hosts);
	for (size_t i = 0; hosts->names[i] != NULL; i++)
		if (is_name(host, len, hosts->names[i]))
			return true;
	return false;
}

bool hf_page_is_loopback(const char *address)
{
	return hf_streq(address, "localhost") || hf_streq(address, "127.0.0.1") ||
	       hf_streq(address, "::1");
}

bool hf_page_origin_ok(const char *origin, const char *site, const char *host)
{
	static const char *const schemes[] = {"http://", "https://"};

	if (host == NULL)
		return false;
	if (site != NULL && !hf_streq(site, "same-origin") && !hf_streq(site, "none"))
		return false;
	if (origin == NULL)
		return true;
	for (size_t i = 0; i < HF_ARRAY_LEN(schemes); i++)
		if (hf_str_has_prefix(origin, schemes[i]) &&
		    hf_str_case_eq(origin + strlen(schemes[i]), host))
			return true;
	return false;
}
