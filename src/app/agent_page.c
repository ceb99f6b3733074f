/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Answers HTTP requests to an agent: its state as text and as JSON, its metrics and its health. */
#include "app/agent_page.h"

#include "app/plain_http.h"
#include "app/process_metrics.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>

struct hf_agent_page {
	struct hf_agent *agent;
	struct hf_metrics *metrics;
	struct hf_http_server *server; /* NULL: HTTP is off */
};

static void answer_status(const struct hf_agent_page *page, struct hf_exchange *ex)
{
	HF_AUTO_JSON status = hf_agent_status(page->agent);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_AGENT_PAGE_BYTES_MAX);

	hf_json_write(status, HF_JSON_INDENTED, &text);
	hf_plain_answer_take(ex, "application/json", &text);
}

static void answer_metrics(const struct hf_agent_page *page, struct hf_exchange *ex)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_AGENT_PAGE_BYTES_MAX);

	hf_agent_update_metrics(page->agent);
	hf_process_metrics_update(page->metrics);
	hf_metrics_render(page->metrics, &text);
	hf_plain_answer_take(ex, HF_PLAIN_METRICS, &text);
}

static void answer_page(const struct hf_agent_page *page, struct hf_exchange *ex)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_AGENT_PAGE_BYTES_MAX);

	hf_agent_page(page->agent, &text);
	hf_plain_answer_take(ex, HF_PLAIN_TEXT, &text);
}

static void on_request(void *arg, struct hf_exchange *ex)
{
	const struct hf_agent_page *page = arg;
	const char *path = hf_exchange_path(ex);
	struct hf_error err = {0};

	if (!hf_plain_begin(ex))
		return;
	if (hf_streq(path, "/healthz") || hf_streq(path, "/livez"))
		hf_plain_answer(ex, 200, "ok\n");
	else if (hf_streq(path, "/readyz"))
		hf_plain_answer_ready(ex, hf_agent_ready(page->agent, &err), &err);
	else if (hf_streq(path, "/metrics"))
		answer_metrics(page, ex);
	else if (hf_streq(path, "/status"))
		answer_status(page, ex);
	else if (hf_streq(path, "/"))
		answer_page(page, ex);
	else
		hf_plain_answer(ex, 404, "known paths: /, /status, /metrics, /healthz, /readyz\n");
}

int hf_agent_page_create(struct hf_loop *loop, struct hf_agent *agent, struct hf_metrics *metrics,
			 const char *address, struct hf_agent_page **ret_page, struct hf_error *err)
{
	struct hf_agent_page *page = hf_xcalloc(1, sizeof(*page));
	int rc;

	page->agent = agent;
	page->metrics = metrics;
	rc = hf_plain_listen(loop, address, on_request, page, &page->server, err);
	if (rc != 0) {
		free(page);
		return rc;
	}
	*ret_page = page;
	return 0;
}

struct hf_agent_page *hf_agent_page_destroy(struct hf_agent_page *page)
{
	if (page == NULL)
		return NULL;
	hf_http_server_destroy(page->server);
	free(page);
	return NULL;
}

uint16_t hf_agent_page_port(const struct hf_agent_page *page)
{
	return page->server == NULL ? 0 : hf_http_server_port(page->server);
}
