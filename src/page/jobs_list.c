/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Lists of jobs: filters, order, pages. A page begins behind the last row of the page before, also if rows have changed since. */
#include "page/jobs_internal.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"
#include "page/json_out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Limit of the namespaces in the answer; a filter may have any namespace. */
#define NAMESPACES_MAX 500

/* The part of a row that decides about its place in a list. */
struct place {
	int64_t number; /* the smaller, the earlier */
	const char *ns, *plural, *name;
	const struct hf_page_row *row;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *left = a, *right = b;
	int order;

	if (left->number != right->number)
		return left->number < right->number ? -1 : 1;
	order = strcmp(left->name, right->name);
	if (order == 0)
		order = strcmp(left->ns, right->ns);
	return order != 0 ? order : strcmp(left->plural, right->plural);
}

static int64_t order_number(const struct hf_page_row *row, enum hf_page_sort sort)
{
	switch (sort) {
	case HF_PAGE_SORT_AGE: return row->created == HF_TIME_NONE ? INT64_MAX : -row->created;
	case HF_PAGE_SORT_RESTARTS: return -row->restarts;
	case HF_PAGE_SORT_STATE: return hf_page_state_order(row->state);
	case HF_PAGE_SORT_NAME:
	case HF_PAGE_SORT_STRAGGLER:
	case HF_PAGE_SORT_RANK: break;
	}
	return 0;
}

/* True if the text has the word; upper and lower case of ASCII letters are equal. */
static bool has_word(const char *text, const char *word)
{
	for (; *text != '\0'; text++) {
		size_t i = 0;

		while (word[i] != '\0' && hf_ascii_to_lower(text[i]) == hf_ascii_to_lower(word[i]))
			i++;
		if (word[i] == '\0')
			return true;
	}
	return false;
}

/* The row passes all filters but that of the state, for which the list counts all states. */
static bool is_wanted(const struct hf_page_row *row, const struct hf_page_query *query,
		      const struct hf_framework *framework)
{
	if ((query->ns != NULL && !hf_streq(row->ns, query->ns)) ||
	    (query->kind != NULL && row->framework != framework) ||
	    (query->cause != NULL && !hf_streq(row->cause, query->cause)))
		return false;
	return query->q == NULL || has_word(row->name, query->q) || has_word(row->ns, query->q) ||
	       (row->sentence != NULL && has_word(row->sentence, query->q));
}

struct listing {
	struct hf_page_jobs *jobs;
	const struct hf_page_session *session;
	const struct hf_page_query *query;
	struct place *places;
	size_t len;
	struct hf_json *states, *namespaces, *kinds;
};

static void collect_rows(struct listing *listing)
{
	const struct hf_framework *framework =
		listing->query->kind == NULL ? NULL : hf_framework_by_name(listing->query->kind);
	struct hf_map *seen = hf_map_create(HF_PAGE_ROWS_MAX, listing->jobs->options.seed, NULL);
	const struct hf_page_row *row;

	for (size_t it = 0; (row = hf_page_jobs_next(listing->jobs, &it)) != NULL;) {
		if (!hf_page_session_may(listing->session, row->framework->plural, row->ns))
			continue;
		if (!hf_map_has(seen, row->ns) && hf_map_put(seen, row->ns, listing) &&
		    hf_json_len(listing->namespaces) < NAMESPACES_MAX)
			hf_json_append(listing->namespaces, hf_json_string(row->ns));
		if (!hf_map_has(seen, row->framework->kind) &&
		    hf_map_put(seen, row->framework->kind, listing))
			hf_json_append(listing->kinds, hf_json_string(row->framework->kind));
		if (!is_wanted(row, listing->query, framework))
			continue;
		hf_page_count_up(listing->states, row->state);
		if (listing->query->state != NULL && !hf_streq(row->state, listing->query->state))
			continue;
		listing->places[listing->len++] =
			(struct place){.number = order_number(row, listing->query->sort),
				       .ns = row->ns,
				       .plural = row->framework->plural,
				       .name = row->name,
				       .row = row};
	}
	hf_map_destroy(seen);
}

/* A token is "NUMBER/plural/ns/name" of the last row of a page. False: malformed. */
static bool parse_token(char *token, struct place *ret_place)
{
	char *parts[4];
	int64_t number;

	for (size_t i = 0; i < HF_ARRAY_LEN(parts); i++) {
		parts[i] = token;
		token = token == NULL ? NULL : strchr(token, '/');
		if (token != NULL)
			*token++ = '\0';
	}
	if (parts[3] == NULL || hf_str_to_i64(parts[0], INT64_MIN, INT64_MAX, &number, NULL) != 0)
		return false;
	*ret_place = (struct place){
		.number = number, .plural = parts[1], .ns = parts[2], .name = parts[3]};
	return true;
}

/* The first row of the page. A token that cannot be read begins from the start. */
static size_t find_start(const struct listing *listing)
{
	HF_AUTOFREE char *token =
		listing->query->token == NULL ? NULL : hf_xstrdup(listing->query->token);
	size_t start = 0, end = listing->len;
	struct place last;

	if (token == NULL || !parse_token(token, &last))
		return 0;
	while (start < end) {
		size_t middle = start + (end - start) / 2;

		if (compare_places(&listing->places[middle], &last) <= 0)
			start = middle + 1;
		else
			end = middle;
	}
	return start;
}

static void set_token(struct hf_json *head, const struct listing *listing, size_t end)
{
	const struct place *last =
		end == 0 || end >= listing->len ? NULL : &listing->places[end - 1];
	HF_AUTOFREE char *token = last == NULL ? NULL
					       : hf_xasprintf("%" PRId64 "/%s/%s/%s", last->number,
							      last->plural, last->ns, last->name);

	hf_page_set_text(head, "continue", token);
}

static void write_list(const struct listing *listing, struct hf_json *head, struct hf_strbuf *sb)
{
	size_t start = find_start(listing);
	size_t limit = (size_t)listing->query->limit;
	size_t end = listing->len - start < limit ? listing->len : start + limit;

	set_token(head, listing, end);
	hf_json_write(head, HF_JSON_COMPACT, sb);
	hf_strbuf_truncate(sb, sb->len - 1); /* the last brace, which comes behind the items */
	hf_strbuf_addstr(sb, ",\"items\":[");
	for (size_t i = start; i < end; i++) {
		const struct hf_page_row *row = listing->places[i].row;

		if (i > start)
			hf_strbuf_addch(sb, ',');
		hf_strbuf_add(sb, row->text->bytes, row->text->len);
		/* Steps mark no row, because a large fleet would fill the ring. A row that is looked at is made anew. */
		if (!row->finished)
			hf_page_jobs_touch(listing->jobs, row->key);
	}
	hf_strbuf_addstr(sb, "]}");
}

static bool may_list_a_kind(const struct hf_page_session *session)
{
	for (size_t i = 0; hf_frameworks[i] != NULL; i++)
		if (hf_page_session_may(session, hf_frameworks[i]->plural, ""))
			return true;
	return false;
}

/* An empty list may mean that there is no job, or that the user has no right. */
static void set_hint(struct hf_json *head, const struct listing *listing)
{
	const struct hf_page_session *session = listing->session;
	HF_AUTOFREE char *hint =
		hf_json_len(listing->namespaces) > 0 || may_list_a_kind(session)
			? NULL
			: hf_xasprintf("User '%s' may not list jobs in any namespace that has "
				       "jobs. An administrator can allow it with a Role.",
				       session->user);

	hf_page_set_text(head, "hint", hint);
}

void hf_page_jobs_list(struct hf_page_jobs *jobs, const struct hf_page_session *session,
		       const struct hf_page_query *query, struct hf_strbuf *sb)
{
	HF_AUTOFREE struct place *places = hf_xcalloc(hf_map_len(jobs->rows) + 1, sizeof(*places));
	HF_AUTO_JSON head = hf_json_object();
	char version[HF_PAGE_VERSION_MAX];
	struct listing listing = {
		.jobs = jobs, .session = session, .query = query, .places = places};

	hf_page_ring_version(jobs->options.ring, hf_page_ring_newest(jobs->options.ring), version);
	hf_json_set_str(head, "resourceVersion", version);
	hf_json_set_i64(head, "total", 0);
	listing.states = hf_json_ensure_object(head, "states");
	listing.namespaces = hf_json_ensure_array(head, "namespaces");
	listing.kinds = hf_json_ensure_array(head, "kinds");
	collect_rows(&listing);
	qsort(places, listing.len, sizeof(*places), compare_places);
	hf_json_set_i64(head, "total", (int64_t)listing.len);
	set_hint(head, &listing);
	write_list(&listing, head, sb);
}

struct hf_json *hf_page_jobs_count(const struct hf_page_jobs *jobs,
				   const struct hf_page_session *session, int64_t *ret_total)
{
	struct hf_json *states = hf_json_object();
	const struct hf_page_row *row;

	*ret_total = 0;
	for (size_t it = 0; (row = hf_page_jobs_next(jobs, &it)) != NULL;) {
		if (!hf_page_session_may(session, row->framework->plural, row->ns))
			continue;
		hf_page_count_up(states, row->state);
		(*ret_total)++;
	}
	return states;
}
