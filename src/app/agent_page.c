/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/agent_page.h"

#include "app/operator_flags.h"
#include "app/process_metrics.h"
#include "base/mem.h"
#include "base/str.h"
#include "http/server.h"

#include <stdlib.h>
#include <string.h>

struct hf_agent_page {
	struct hf_agent *agent;
	struct hf_metrics *metrics;
	struct hf_http_server *server; /* NULL: nowhere */
};

static const char text_type[] = "text/plain; charset=utf-8";

static void answer(struct hf_exchange *ex, int status, const char *text)
{
	hf_exchange_answer(ex, status, text_type, text, strlen(text));
}

static void answer_ready(const struct hf_agent_page *page, struct hf_exchange *ex)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(2 * HF_ERROR_TEXT_MAX);
	struct hf_error err = {0};

	if (hf_agent_ready(page->agent, &err) == 0) {
		answer(ex, 200, "ok\n");
		return;
	}
	hf_strbuf_addf(&text, "not ready: %s\n", err.text);
	answer(ex, 503, text.data);
}

static void answer_status(const struct hf_agent_page *page, struct hf_exchange *ex)
{
	HF_AUTO_JSON status = hf_agent_status(page->agent);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_AGENT_PAGE_BYTES_MAX);

	hf_json_write(status, HF_JSON_INDENTED, &text);
	hf_exchange_answer_take(ex, 200, "application/json", &text);
}

static void answer_metrics(const struct hf_agent_page *page, struct hf_exchange *ex)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_AGENT_PAGE_BYTES_MAX);

	hf_agent_update_metrics(page->agent);
	hf_process_metrics_update(page->metrics);
	hf_metrics_render(page->metrics, &text);
	hf_exchange_answer_take(ex, 200, "text/plain; version=0.0.4; charset=utf-8", &text);
}

static void answer_page(const struct hf_agent_page *page, struct hf_exchange *ex)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_AGENT_PAGE_BYTES_MAX);

	hf_agent_page(page->agent, &text);
	hf_exchange_answer_take(ex, 200, text_type, &text);
}

static void on_request(void *arg, struct hf_exchange *ex)
{
	const struct hf_agent_page *page = arg;
	const char *path = hf_exchange_path(ex), *method = hf_exchange_method(ex);

	if (!hf_streq(method, "GET") && !hf_streq(method, "HEAD"))
		answer(ex, 405, "only GET\n");
	else if (hf_streq(path, "/healthz") || hf_streq(path, "/livez"))
		answer(ex, 200, "ok\n");
	else if (hf_streq(path, "/readyz"))
		answer_ready(page, ex);
	else if (hf_streq(path, "/metrics"))
		answer_metrics(page, ex);
	else if (hf_streq(path, "/status"))
		answer_status(page, ex);
	else if (hf_streq(path, "/"))
		answer_page(page, ex);
	else
		answer(ex, 404, "there is /, /status, /metrics, /healthz and /readyz\n");
}

int hf_agent_page_create(struct hf_loop *loop, struct hf_agent *agent, struct hf_metrics *metrics,
			 const char *address, struct hf_agent_page **ret_page, struct hf_error *err)
{
	struct hf_agent_page *page = hf_xcalloc(1, sizeof(*page));
	struct hf_http_server_spec spec = {.handler = on_request, .arg = page};
	char host[HF_HOST_BYTES_MAX];
	int rc = 0;

	page->agent = agent;
	page->metrics = metrics;
	if (!hf_str_is_empty(address) && !hf_streq(address, "0")) {
		rc = hf_bind_address_parse(address, host, &spec.port, err);
		spec.address = host[0] == '\0' ? "::" : host;
		if (rc == 0)
			rc = hf_http_server_create(loop, &spec, &page->server, err);
		if (rc != 0 && host[0] == '\0') {
			/* Without IPv6. */
			spec.address = "0.0.0.0";
			rc = hf_http_server_create(loop, &spec, &page->server, err);
		}
	}
	if (rc != 0) {
		free(page);
		return hf_error_wrap(err, "cannot answer on '%s'", address);
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
