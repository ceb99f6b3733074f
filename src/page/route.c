/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Finds the route of a path by two tables: fixed paths, and paths of one job. */
#include "page/route.h"

#include "base/ascii.h"
#include "base/str.h"

#include <string.h>

#define JOB_PREFIX "/api/v1/jobs/"
#define NODE_PREFIX "/api/v1/nodes/"

static const struct {
	const char *path;
	enum hf_page_route route;
} fixed[] = {
	{"/", HF_PAGE_INDEX},
	{"/nodes", HF_PAGE_INDEX},
	{"/recovery", HF_PAGE_INDEX},
	{"/login", HF_PAGE_INDEX},
	{"/healthz", HF_PAGE_HEALTH},
	{"/api/v1/session", HF_PAGE_SESSION},
	{"/api/v1/login", HF_PAGE_LOGIN},
	{"/api/v1/logout", HF_PAGE_LOGOUT},
	{"/api/v1/jobs", HF_PAGE_JOBS},
	{"/api/v1/nodes", HF_PAGE_NODES},
	{"/api/v1/recovery", HF_PAGE_RECOVERY},
	{"/api/v1/events", HF_PAGE_EVENTS},
};

/* What may follow the name of a job. */
static const struct {
	const char *word;
	enum hf_page_route route;
} parts[] = {
	{"", HF_PAGE_JOB},        {"yaml", HF_PAGE_JOB_YAML},     {"ranks", HF_PAGE_JOB_RANKS},
	{"log", HF_PAGE_JOB_LOG}, {"action", HF_PAGE_JOB_ACTION},
};

/* Copies the segment at *at and moves *at behind its '/'. False: the segment is empty or too long. */
static bool take_segment(const char **at, char *ret_text, size_t size)
{
	size_t len = strcspn(*at, "/");

	if (len == 0 || len >= size)
		return false;
	memcpy(ret_text, *at, len);
	ret_text[len] = '\0';
	*at += len;
	if (**at == '/')
		(*at)++;
	return true;
}

static bool is_kind(const char *text)
{
	for (; *text != '\0'; text++)
		if (!hf_ascii_is_alnum(*text))
			return false;
	return true;
}

static bool take_job(const char **at, struct hf_page_place *place)
{
	return take_segment(at, place->ns, sizeof(place->ns)) &&
	       take_segment(at, place->kind, sizeof(place->kind)) &&
	       take_segment(at, place->name, sizeof(place->name)) &&
	       hf_dns1123_label_problem(place->ns) == NULL && is_kind(place->kind) &&
	       hf_dns1123_subdomain_problem(place->name) == NULL;
}

static bool take_node(const char *at, struct hf_page_place *place)
{
	return take_segment(&at, place->name, sizeof(place->name)) && *at == '\0' &&
	       hf_dns1123_subdomain_problem(place->name) == NULL;
}

static enum hf_page_route find_route(const char *path, struct hf_page_place *place)
{
	const char *at;

	for (size_t i = 0; i < HF_ARRAY_LEN(fixed); i++)
		if (hf_streq(path, fixed[i].path))
			return fixed[i].route;
	if (hf_str_has_prefix(path, "/assets/"))
		return HF_PAGE_ASSET;
	if (hf_str_has_prefix(path, "/j/")) {
		at = path + strlen("/j/");
		return take_job(&at, place) && *at == '\0' ? HF_PAGE_INDEX : HF_PAGE_NOTHING;
	}
	if (hf_str_has_prefix(path, "/n/"))
		return take_node(path + strlen("/n/"), place) ? HF_PAGE_INDEX : HF_PAGE_NOTHING;
	if (hf_str_has_prefix(path, NODE_PREFIX))
		return take_node(path + strlen(NODE_PREFIX), place) ? HF_PAGE_NODE
								    : HF_PAGE_NOTHING;
	at = path + strlen(JOB_PREFIX);
	if (!hf_str_has_prefix(path, JOB_PREFIX) || !take_job(&at, place))
		return HF_PAGE_NOTHING;
	for (size_t i = 0; i < HF_ARRAY_LEN(parts); i++)
		if (hf_streq(at, parts[i].word))
			return parts[i].route;
	return HF_PAGE_NOTHING;
}

void hf_page_route(const char *path, struct hf_page_place *ret_place)
{
	*ret_place = (struct hf_page_place){.route = HF_PAGE_NOTHING};
	ret_place->route = find_route(path, ret_place);
}

bool hf_page_route_is_post(enum hf_page_route route)
{
	return route == HF_PAGE_LOGIN || route == HF_PAGE_LOGOUT || route == HF_PAGE_JOB_ACTION;
}
