/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Keeps the last bytes of each pod's log. Input: the bytes as they come. */
#include "app/log_tail.h"

#include "base/map.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct tail {
	/* The end of the log. It grows to twice the limit before its oldest half is dropped, so
	 * that the bytes are not moved at each call. */
	struct hf_strbuf text;
	/* a container has started since these bytes came: the next bytes replace them */
	bool stale;
};

struct hf_log_tails {
	struct hf_map *pods; /* name → struct tail */
};

static void free_tail(void *value)
{
	struct tail *tail = value;

	hf_strbuf_release(&tail->text);
	free(tail);
}

struct hf_log_tails *hf_log_tails_create(void)
{
	struct hf_log_tails *tails = hf_xcalloc(1, sizeof(*tails));

	tails->pods = hf_map_create(HF_LOG_TAIL_PODS_MAX, 0, free_tail);
	return tails;
}

struct hf_log_tails *hf_log_tails_destroy(struct hf_log_tails *tails)
{
	if (tails == NULL)
		return NULL;
	hf_map_destroy(tails->pods);
	free(tails);
	return NULL;
}

static struct tail *find_tail(struct hf_log_tails *tails, const char *pod)
{
	struct tail *tail = hf_map_get(tails->pods, pod);

	if (tail != NULL)
		return tail;
	tail = hf_xcalloc(1, sizeof(*tail));
	hf_strbuf_init(&tail->text, 2 * HF_LOG_TAIL_BYTES_MAX);
	if (!hf_map_put(tails->pods, pod, tail)) {
		free_tail(tail);
		return NULL;
	}
	return tail;
}

void hf_log_tails_begin(struct hf_log_tails *tails, const char *pod)
{
	struct tail *tail = find_tail(tails, pod);

	if (tail != NULL)
		tail->stale = true;
}

/* Drops the oldest bytes, so that len more fit. */
static void make_room(struct hf_strbuf *text, size_t len)
{
	size_t keep = HF_LOG_TAIL_BYTES_MAX > len ? HF_LOG_TAIL_BYTES_MAX - len : 0;

	if (text->len + len <= 2 * HF_LOG_TAIL_BYTES_MAX)
		return;
	if (keep < text->len)
		memmove(text->data, text->data + text->len - keep, keep);
	hf_strbuf_truncate(text, keep < text->len ? keep : text->len);
}

void hf_log_tails_add(struct hf_log_tails *tails, const char *pod, const char *bytes, size_t len)
{
	struct tail *tail = find_tail(tails, pod);

	if (tail == NULL || len == 0)
		return;
	if (tail->stale)
		hf_strbuf_clear(&tail->text);
	tail->stale = false;
	if (len > HF_LOG_TAIL_BYTES_MAX) {
		bytes += len - HF_LOG_TAIL_BYTES_MAX;
		len = HF_LOG_TAIL_BYTES_MAX;
	}
	make_room(&tail->text, len);
	hf_strbuf_add(&tail->text, bytes, len);
}

const struct hf_strbuf *hf_log_tails_get(struct hf_log_tails *tails, const char *pod)
{
	struct tail *tail = hf_map_get(tails->pods, pod);

	return tail != NULL && tail->text.len > 0 ? &tail->text : NULL;
}
