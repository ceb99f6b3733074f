/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Decides whether a client may use links, from its URL, proxy and unix path, and fills in the
 * address. Links need an IP address or a unix socket: they resolve no names. */
#include "http/client_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

static bool set_ip(struct hf_link_target *target, const char *host, unsigned port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&target->address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&target->address;

	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		target->len = sizeof(*v4);
		return true;
	}
	if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)port);
		target->len = sizeof(*v6);
		return true;
	}
	return false;
}

static bool set_unix(struct hf_link_target *target, const char *path)
{
	struct sockaddr_un *address = (struct sockaddr_un *)&target->address;

	if (strlen(path) >= sizeof(address->sun_path))
		return false;
	address->sun_family = AF_UNIX;
	memcpy(address->sun_path, path, strlen(path) + 1);
	target->len = sizeof(*address);
	return true;
}

void hf_link_target_init(struct hf_link_target *target, const struct hf_http_client_spec *spec,
			 const struct hf_link_url *url)
{
	bool tls = hf_streq(url->scheme, "https"), v6 = url->host[0] == '[';
	unsigned port = (unsigned)strtoul(url->port, NULL, 10), usual = tls ? 443 : 80;
	HF_AUTOFREE char *host = hf_xstrndup(url->host + v6, strlen(url->host) - 2u * v6);

	if (!(tls ? !spec->unix_path && hf_streq(spec->proxy_url, "") : spec->http2_plain))
		return;
	if (!(spec->unix_path ? set_unix(target, spec->unix_path) : set_ip(target, host, port))) {
		target->address.ss_family = AF_UNSPEC;
		return;
	}
	target->tls = tls;
	target->scheme = hf_xstrdup(url->scheme);
	target->name = hf_xstrdup(hf_str_or(spec->tls_server_name, host));
	target->authority =
		port == usual ? hf_xstrdup(url->host) : hf_xasprintf("%s:%u", url->host, port);
	target->path = hf_xstrndup(url->path, url->path_len);
}

void hf_link_target_release(struct hf_link_target *target)
{
	free(target->scheme);
	free(target->name);
	free(target->authority);
	free(target->path);
}
