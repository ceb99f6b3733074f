/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The document and the files of www/. The document has the first rows of the table of jobs, so that it shows something
 * before a script has run, and without one.
 */
#include "page/page_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "page/assets.h"

#include <string.h>

#define INDEX_BYTES_MAX ((size_t)1 << 20)

/* Appends text with the characters escaped that HTML gives a meaning. */
static void add_escaped(struct hf_strbuf *sb, const char *text)
{
	for (; *text != '\0'; text++) {
		switch (*text) {
		case '&': hf_strbuf_addstr(sb, "&amp;"); break;
		case '<': hf_strbuf_addstr(sb, "&lt;"); break;
		case '>': hf_strbuf_addstr(sb, "&gt;"); break;
		case '"': hf_strbuf_addstr(sb, "&quot;"); break;
		case '\'': hf_strbuf_addstr(sb, "&#39;"); break;
		default: hf_strbuf_addch(sb, *text); break;
		}
	}
}

static void add_cell(struct hf_strbuf *sb, const char *text)
{
	hf_strbuf_addstr(sb, "<td>");
	add_escaped(sb, text);
	hf_strbuf_addstr(sb, "</td>");
}

static const char *text_of(const struct hf_json *job, const char *key)
{
	return hf_str_or(hf_json_path_str(job, key, NULL), "");
}

static long long number_of(const struct hf_json *job, const char *key)
{
	return (long long)hf_json_i64(hf_json_get(job, key), 0);
}

static long long sum_restarts(const struct hf_json *job)
{
	const struct hf_json *restarts = hf_json_get(job, "restarts");
	struct hf_json *value;
	long long sum = 0;
	const char *key;

	for (void *it = NULL; (it = hf_json_next(restarts, it, &key, &value)) != NULL;)
		sum += (long long)hf_json_i64(value, 0);
	return sum;
}

/* Names of namespaces, kinds and jobs need no escaping in a path. */
static void add_row(struct hf_strbuf *sb, const struct hf_json *job)
{
	hf_strbuf_addf(sb, "<tr><th scope=\"row\"><a href=\"/j/%s/%s/%s\">%s</a></th>",
		       text_of(job, "namespace"), text_of(job, "kind"), text_of(job, "name"),
		       text_of(job, "name"));
	add_cell(sb, text_of(job, "namespace"));
	add_cell(sb, text_of(job, "kind"));
	add_cell(sb, text_of(job, "state"));
	hf_strbuf_addf(sb, "<td>%lld/%lld</td><td>%lld</td>", number_of(job, "ready"),
		       number_of(job, "ranks"), sum_restarts(job));
	add_cell(sb, text_of(job, "sentence"));
	hf_strbuf_addstr(sb, "</tr>\n");
}

static void add_rows(const struct hf_page *page, const struct hf_page_session *session,
		     struct hf_strbuf *sb)
{
	const struct hf_page_query query = {.sort = HF_PAGE_SORT_AGE,
					    .limit = HF_PAGE_LIMIT_DEFAULT};
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_PAGE_ANSWER_BYTES_MAX);
	HF_AUTO_JSON list = NULL;
	const struct hf_json *items;

	hf_page_jobs_list(page->jobs, session, &query, &text);
	if (text.full || hf_json_parse(text.data, text.len, NULL, &list, NULL) != 0)
		return;
	items = hf_json_get(list, "items");
	for (size_t i = 0; i < hf_json_len(items); i++)
		add_row(sb, hf_json_item(items, i));
}

void hf_page_index(struct hf_page *page, struct hf_exchange *ex,
		   const struct hf_page_session *session)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(INDEX_BYTES_MAX);

	hf_strbuf_add(&sb, hf_page_index_head.bytes, hf_page_index_head.len);
	if (session != NULL && hf_streq(hf_exchange_path(ex), "/"))
		add_rows(page, session, &sb);
	hf_strbuf_add(&sb, hf_page_index_tail.bytes, hf_page_index_tail.len);
	hf_page_answer_text(page, ex, "text/html; charset=utf-8", &sb);
}

static bool wants_gzip(const struct hf_exchange *ex)
{
	const char *accepted = hf_exchange_header(ex, "Accept-Encoding");
	const char *at = accepted == NULL ? NULL : strstr(accepted, "gzip");

	/* "gzip;q=0" refuses it. */
	return at != NULL && !hf_str_has_prefix(at, "gzip;q=0");
}

void hf_page_asset(struct hf_page *page, struct hf_exchange *ex)
{
	const struct hf_page_asset *asset = hf_page_assets;
	bool packed = wants_gzip(ex);

	while (asset->path != NULL && !hf_streq(asset->path, hf_exchange_path(ex)))
		asset++;
	if (asset->path == NULL) {
		hf_page_answer_error(page, ex, 404,
				     "no such file: the page may be of another version");
		return;
	}
	hf_page_add_headers(ex);
	hf_exchange_add_header(ex, "Cache-Control", "public, max-age=31536000, immutable");
	hf_exchange_add_header(ex, "Vary", "Accept-Encoding");
	if (packed)
		hf_exchange_add_header(ex, "Content-Encoding", "gzip");
	hf_page_count(page, HF_PAGE_ASSET, 200);
	hf_exchange_respond(ex, 200, asset->type, packed ? asset->packed : asset->bytes,
			    packed ? asset->packed_len : asset->len);
}
