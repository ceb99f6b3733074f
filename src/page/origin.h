/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_ORIGIN_H
#define HF_PAGE_ORIGIN_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * Which Host and Origin headers the page accepts. Pure.
 *
 * A page of another site can make a browser send requests to this server, and by DNS rebinding under the
 * other site's own name. So the name in Host must be one that the administrator gave, or an address of this
 * machine's loopback; and a request that changes something must come from a document of the same Host.
 */

#define HF_PAGE_HOSTS_MAX 16

struct hf_page_hosts {
	/* names that the page is served under, without port; the list ends with NULL.  localhost, 127.0.0.1 and
	 * [::1] stand for one another */
	const char *names[HF_PAGE_HOSTS_MAX + 1];
	/* the page listens on loopback only: then localhost, 127.0.0.1 and [::1] are accepted */
	bool loopback;
};

/* True if the name before the port is accepted. host: the header; NULL: absent, refused. */
bool hf_page_host_ok(const struct hf_page_hosts *hosts, const char *host);
/* True if the request may change something. origin "http://HOST" or "https://HOST" must name the same
 * host and port as `host`. Without an Origin (a client that is no browser), site must not say that the request
 * comes from another site. site: header Sec-Fetch-Site, or NULL. */
bool hf_page_origin_ok(const char *origin, const char *site, const char *host);

/* True for an address to listen on that only this machine reaches: localhost, 127.0.0.1 and ::1. */
bool hf_page_is_loopback(const char *address);

HF_END_DECLS

#endif
