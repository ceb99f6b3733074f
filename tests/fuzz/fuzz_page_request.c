/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Input: four lines: the target of a request, a header Cookie, a header Host, a header Origin. The page's readers of
 * requests accept only what is within their limits, whatever the bytes.
 */
#include "base/mem.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "http/target.h"
#include "page/origin.h"
#include "page/query.h"
#include "page/ring.h"
#include "page/route.h"
#include "page/sessions.h"

#include <stdlib.h>
#include <string.h>

static const char *find_param(void *arg, const char *name)
{
	const struct hf_target *target = arg;

	for (size_t i = 0; i < target->query_count; i++)
		if (strcmp(target->query[i].name, name) == 0)
			return target->query[i].value;
	return NULL;
}

static void check_query(const struct hf_target *target)
{
	struct hf_page_query query;
	struct hf_error err = {0};

	if (hf_page_query_read(find_param, (void *)(uintptr_t)target, &query, &err) != 0) {
		hf_assert(err.text[0] != '\0');
		return;
	}
	hf_assert(query.limit >= 1 && query.limit <= HF_PAGE_LIMIT_MAX);
	hf_assert(query.start >= 0 && query.tail >= 1 && query.bucket > 0);
	hf_assert(query.window / query.bucket <= 100);
	hf_assert(query.q == NULL || strlen(query.q) <= HF_PAGE_TEXT_MAX);
}

static void check_route(const char *path)
{
	struct hf_page_place place;

	hf_page_route(path, &place);
	if (place.route >= HF_PAGE_JOB && place.route <= HF_PAGE_JOB_ACTION) {
		hf_assert(hf_dns1123_label_problem(place.ns) == NULL);
		hf_assert(hf_dns1123_subdomain_problem(place.name) == NULL);
	}
	if (place.route == HF_PAGE_NODE)
		hf_assert(hf_dns1123_subdomain_problem(place.name) == NULL);
}

/* Cuts the next line off. */
static char *take_line(char **at)
{
	char *line = *at, *end = line + strcspn(line, "\n");

	*at = *end == '\0' ? end : end + 1;
	*end = '\0';
	return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct hf_page_hosts hosts = {.names = {"page.example"}, .loopback = true};
	static struct hf_page_sessions *sessions;
	static struct hf_page_ring *ring;
	HF_AUTOFREE char *text = hf_xstrndup((const char *)data, size);
	char *at = text;
	const char *raw = take_line(&at), *cookie = take_line(&at), *host = take_line(&at),
		   *origin = take_line(&at);
	struct hf_target target;
	uint64_t number;

	if (sessions == NULL) {
		sessions = hf_page_sessions_create(8082);
		ring = hf_page_ring_create(1);
	}
	if (hf_target_parse(raw, &target, NULL) == 0) {
		check_route(target.path);
		check_query(&target);
		hf_target_release(&target);
	}
	hf_assert(hf_page_sessions_find(sessions, cookie, 0) == NULL);
	if (hf_page_ring_parse(ring, cookie, &number)) {
		char version[HF_PAGE_VERSION_MAX];

		hf_page_ring_version(ring, number, version);
		hf_assert(strcmp(version, cookie) == 0);
	}
	/* An origin that is accepted is one of the two texts that name the host. */
	if (hf_page_host_ok(&hosts, host) && hf_page_origin_ok(origin, NULL, host))
		hf_assert(strlen(origin) == strlen(host) + strlen("http://") ||
			  strlen(origin) == strlen(host) + strlen("https://"));
	return 0;
}
