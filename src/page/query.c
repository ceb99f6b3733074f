/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Reads the parameters of the page's lists, each with its limit. */
#include "page/query.h"

#include "base/str.h"

#include <string.h>

#define TAIL_DEFAULT 200
#define TAIL_MAX 10000
/* A list by number ends at the largest job. */
#define START_MAX 1000000

static const struct {
	const char *name;
	enum hf_page_sort sort;
} sorts[] = {
	{"name", HF_PAGE_SORT_NAME},           {"age", HF_PAGE_SORT_AGE},
	{"restarts", HF_PAGE_SORT_RESTARTS},   {"state", HF_PAGE_SORT_STATE},
	{"straggler", HF_PAGE_SORT_STRAGGLER}, {"rank", HF_PAGE_SORT_RANK},
};

/* Windows of the recovery report, each with 60 to 84 buckets. */
static const struct {
	const char *name;
	hf_time window, bucket;
} windows[] = {
	{"1h", HF_HOUR, HF_MINUTE},
	{"24h", HF_DAY, 20 * HF_MINUTE},
	{"7d", 7 * HF_DAY, 2 * HF_HOUR},
};

/* States in the order of sort=state; states that are not listed come last. */
static const char *const states[] = {"holdfast.dev/Held", "Restarting", "Failed",   "Created",
				     "Suspended",         "Running",    "Succeeded"};

int hf_page_state_order(const char *state)
{
	int i = 0;

	while (i < (int)HF_ARRAY_LEN(states) && !hf_streq(state, states[i]))
		i++;
	return i;
}

struct reader {
	hf_page_param_fn param;
	void *arg;
	struct hf_error *err;
};

static int read_text(const struct reader *reader, const char *name, const char **ret_text)
{
	const char *text = reader->param(reader->arg, name);

	if (hf_str_is_empty(text)) {
		*ret_text = NULL;
		return 0;
	}
	if (strlen(text) > HF_PAGE_TEXT_MAX)
		return hf_error_set(reader->err, HF_E_BAD_REQUEST,
				    "parameter '%s' is longer than %d bytes", name,
				    HF_PAGE_TEXT_MAX);
	*ret_text = text;
	return 0;
}

/* Reads a number from 1; a number above `most` becomes `most`. */
static int read_number(const struct reader *reader, const char *name, int64_t most, int64_t *number)
{
	const char *text = reader->param(reader->arg, name);
	int64_t value;

	if (hf_str_is_empty(text))
		return 0;
	if (hf_str_to_i64(text, 1, INT64_MAX, &value, NULL) != 0)
		return hf_error_set(reader->err, HF_E_BAD_REQUEST,
				    "parameter '%s' must be a whole number from 1", name);
	*number = value < most ? value : most;
	return 0;
}

static int read_sort(const struct reader *reader, enum hf_page_sort *sort)
{
	const char *text = reader->param(reader->arg, "sort");

	if (hf_str_is_empty(text))
		return 0;
	for (size_t i = 0; i < HF_ARRAY_LEN(sorts); i++)
		if (hf_streq(text, sorts[i].name)) {
			*sort = sorts[i].sort;
			return 0;
		}
	return hf_error_set(
		reader->err, HF_E_BAD_REQUEST,
		"parameter 'sort' must be name, age, restarts or state; for ranks straggler or rank");
}

static int read_window(const struct reader *reader, struct hf_page_query *query)
{
	const char *text = hf_str_or(reader->param(reader->arg, "window"), "1h");

	for (size_t i = 0; i < HF_ARRAY_LEN(windows); i++)
		if (hf_streq(text, windows[i].name)) {
			query->window = windows[i].window;
			query->bucket = windows[i].bucket;
			return 0;
		}
	return hf_error_set(reader->err, HF_E_BAD_REQUEST,
			    "parameter 'window' must be 1h, 24h or 7d");
}

static int read_texts(const struct reader *reader, struct hf_page_query *query)
{
	const struct {
		const char *name;
		const char **text;
	} texts[] = {
		{"namespace", &query->ns}, {"kind", &query->kind}, {"state", &query->state},
		{"cause", &query->cause},  {"q", &query->q},       {"continue", &query->token},
		{"rank", &query->rank},
	};
	int rc = 0;

	for (size_t i = 0; i < HF_ARRAY_LEN(texts) && rc == 0; i++)
		rc = read_text(reader, texts[i].name, texts[i].text);
	return rc;
}

/* The continue token of a list by number is a number. Lists by key read the token themselves. */
static void read_start(struct hf_page_query *query)
{
	int64_t start;

	if (query->token != NULL && hf_str_to_i64(query->token, 0, START_MAX, &start, NULL) == 0)
		query->start = start;
}

int hf_page_query_read(hf_page_param_fn param, void *arg, struct hf_page_query *ret_query,
		       struct hf_error *err)
{
	const struct reader reader = {param, arg, err};
	struct hf_page_query query = {.limit = HF_PAGE_LIMIT_DEFAULT, .tail = TAIL_DEFAULT};
	int rc = read_texts(&reader, &query);

	if (rc == 0)
		rc = read_sort(&reader, &query.sort);
	if (rc == 0)
		rc = read_number(&reader, "limit", HF_PAGE_LIMIT_MAX, &query.limit);
	if (rc == 0)
		rc = read_number(&reader, "tail", TAIL_MAX, &query.tail);
	if (rc == 0)
		rc = read_window(&reader, &query);
	if (rc != 0)
		return rc;
	read_start(&query);
	query.once = hf_streq(param(arg, "once"), "1");
	*ret_query = query;
	return 0;
}
