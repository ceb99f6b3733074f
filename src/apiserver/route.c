/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/apiserver_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

/*
 * Parses the paths of resources into kind, namespace, name and subresource, and Accept headers into
 * the form of the response. Pure functions.
 */

/* ---- paths -------------------------------------------------------------------------------- */

/* Returns the next segment of the path and moves *rest behind it; NULL at the end, and for an empty
 * segment. */
static char *next_segment(char **rest)
{
	char *segment = *rest, *slash;

	if (segment == NULL || *segment == '\0')
		return NULL;
	slash = strchr(segment, '/');
	if (slash == segment)
		return NULL;
	if (slash != NULL)
		*slash++ = '\0';
	*rest = slash;
	return segment;
}

static bool is_namespace_subresource(const char *segment)
{
	return hf_streq(segment, "status") || hf_streq(segment, "finalize");
}

/* Parses the part of a path behind "namespaces/": the namespace itself, a subresource of it, or a
 * kind inside it. Returns the plural name of the kind. */
static const char *route_namespace(char **rest, struct apiserver_route *route)
{
	const char *name = next_segment(rest), *plural;

	if (name == NULL || *rest == NULL || **rest == '\0') {
		route->name = name;
		return "namespaces";
	}
	plural = next_segment(rest);
	if (plural != NULL && is_namespace_subresource(plural)) {
		route->name = name;
		route->sub = plural;
		route->too_long = *rest != NULL;
		return "namespaces";
	}
	route->ns = name;
	return plural;
}

static const char *route_group(char **rest)
{
	const char *first = next_segment(rest), *group, *version;

	if (hf_streq(first, "api"))
		return hf_streq(next_segment(rest), "v1") ? "" : NULL;
	if (!hf_streq(first, "apis"))
		return NULL;
	group = next_segment(rest);
	version = next_segment(rest);
	/* The version in the path must be the group's only version: no API group of the plane has
	 * two. */
	return version != NULL && hf_streq(version, hf_resource_group_version(group)) ? group
										      : NULL;
}

/* Parses the part of a path behind the plural: a name and a subresource. */
static bool route_name(char *rest, struct apiserver_route *route)
{
	if (rest == NULL || *rest == '\0')
		return true;
	route->name = next_segment(&rest);
	route->sub = next_segment(&rest);
	route->too_long = rest != NULL && *rest != '\0';
	return route->name != NULL;
}

/* False if the path has a namespace before a cluster-wide kind, or names an object of a namespaced
 * kind without its namespace. */
static bool is_valid_scope(const struct apiserver_route *route)
{
	if (!route->resource->namespaced)
		return route->ns == NULL;
	return route->ns != NULL || route->name == NULL;
}

void hf_apiserver_route(const char *path, struct apiserver_route *ret_route)
{
	struct apiserver_route route = {.text = hf_xstrdup(*path == '/' ? path + 1 : path)};
	char *rest = route.text;
	const char *group = route_group(&rest);
	const char *plural = group != NULL ? next_segment(&rest) : NULL;

	if (hf_streq(plural, "namespaces"))
		plural = route_namespace(&rest, &route);
	if (plural != NULL)
		route.resource = hf_resource_by_plural(group, plural);
	if (route.resource != NULL && route.name == NULL && !route_name(rest, &route))
		route.resource = NULL;
	if (route.resource != NULL && !is_valid_scope(&route))
		route.resource = NULL;
	*ret_route = route;
}

/* ---- media types -------------------------------------------------------------------------- */

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

/* True if the element of the Accept header between s and end has the parameter `param`. */
static bool has_param(const char *s, const char *end, const char *param)
{
	size_t len = strlen(param);

	for (s = memchr(s, ';', (size_t)(end - s)); s != NULL;
	     s = memchr(s, ';', (size_t)(end - s))) {
		s = skip_blanks(s + 1);
		if ((size_t)(end - s) >= len && strncmp(s, param, len) == 0 &&
		    (s + len == end || strchr("; \t", s[len]) != NULL))
			return true;
	}
	return false;
}

static bool has_type(const char *s, const char *end, const char *type)
{
	size_t len = strcspn(s, ";, \t");

	if (s + len > end)
		len = (size_t)(end - s);
	return len == strlen(type) && strncasecmp(s, type, len) == 0;
}

static enum apiserver_form form_of(const char *s, const char *end)
{
	bool any = has_type(s, end, "*/*") || has_type(s, end, "application/*");

	if (!any && !has_type(s, end, "application/json"))
		return APISERVER_FORM_UNACCEPTABLE;
	if (has_param(s, end, "as=Table"))
		return has_param(s, end, "v=v1") && has_param(s, end, "g=meta.k8s.io")
			       ? APISERVER_FORM_TABLE
			       : APISERVER_FORM_UNACCEPTABLE;
	if (has_param(s, end, "as=PartialObjectMetadata") ||
	    has_param(s, end, "as=PartialObjectMetadataList"))
		return has_param(s, end, "v=v1") && has_param(s, end, "g=meta.k8s.io")
			       ? APISERVER_FORM_METADATA
			       : APISERVER_FORM_UNACCEPTABLE;
	return APISERVER_FORM_JSON;
}

/* The first supported element decides. Weights (q=) are ignored, as upstream does: clients list
 * their favourite first. */
enum apiserver_form hf_apiserver_form(const char *accept)
{
	if (hf_str_is_empty(accept))
		return APISERVER_FORM_JSON;
	for (const char *s = accept;; s++) {
		const char *end;
		enum apiserver_form form;
		s = skip_blanks(s);
		end = s + strcspn(s, ",");
		form = form_of(s, end);
		if (form != APISERVER_FORM_UNACCEPTABLE)
			return form;
		if (*end == '\0')
			return APISERVER_FORM_UNACCEPTABLE;
		s = end;
	}
}

bool hf_apiserver_media_is(const char *header, const char *type)
{
	return header != NULL && has_type(header, header + strlen(header), type);
}
