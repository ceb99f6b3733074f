/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/probes.h"

#include "app/operator_flags.h"
#include "base/mem.h"
#include "base/str.h"
#include "http/server.h"

#include <stdlib.h>
#include <string.h>

struct hf_probes {
	struct hf_probes_options options;
	struct hf_http_server *health, *metrics; /* NULL: nowhere */
};

static const char text_type[] = "text/plain; charset=utf-8";

static void answer(struct hf_exchange *ex, int status, const char *text)
{
	hf_exchange_answer(ex, status, text_type, text, strlen(text));
}

static bool is_read(const struct hf_exchange *ex)
{
	const char *method = hf_exchange_method(ex);

	return hf_streq(method, "GET") || hf_streq(method, "HEAD");
}

static void on_health(void *arg, struct hf_exchange *ex)
{
	const struct hf_probes *probes = arg;
	const char *path = hf_exchange_path(ex);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(2 * HF_ERROR_TEXT_MAX);
	struct hf_error err = {0};

	if (!is_read(ex)) {
		answer(ex, 405, "only GET\n");
	} else if (hf_streq(path, "/healthz") || hf_streq(path, "/livez")) {
		answer(ex, 200, "ok\n");
	} else if (!hf_streq(path, "/readyz")) {
		answer(ex, 404, "there is /healthz and /readyz\n");
	} else if (probes->options.ready(probes->options.arg, &err) == 0) {
		hf_strbuf_addf(&text, "ok%s%s\n", err.text[0] != '\0' ? "; " : "", err.text);
		answer(ex, 200, text.data);
	} else {
		hf_strbuf_addf(&text, "not ready: %s\n", err.text);
		answer(ex, 503, text.data);
	}
}

static void on_metrics(void *arg, struct hf_exchange *ex)
{
	const struct hf_probes *probes = arg;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_METRICS_BYTES_MAX);

	if (!is_read(ex)) {
		answer(ex, 405, "only GET\n");
	} else if (!hf_streq(hf_exchange_path(ex), "/metrics")) {
		answer(ex, 404, "there is /metrics\n");
	} else {
		probes->options.metrics(probes->options.arg, &text);
		if (text.full)
			answer(ex, 500, "too many metrics\n");
		else
			hf_exchange_answer_take(ex, 200, "text/plain; version=0.0.4; charset=utf-8",
						&text);
	}
}

static int listen_on(struct hf_probes *probes, const char *address, hf_exchange_fn handler,
		     struct hf_http_server **ret_server, struct hf_error *err)
{
	struct hf_http_server_spec spec = {.handler = handler, .arg = probes};
	char host[HF_HOST_BYTES_MAX];
	int rc;

	if (hf_str_is_empty(address) || hf_streq(address, "0"))
		return 0;
	rc = hf_bind_address_parse(address, host, &spec.port, err);
	if (rc != 0)
		return rc;
	spec.address = hf_streq(host, "localhost") ? "127.0.0.1" : host;
	if (host[0] == '\0') {
		/* All of IPv6 is all of IPv4 too, where there is IPv6. */
		spec.address = "::";
		rc = hf_http_server_create(probes->options.loop, &spec, ret_server, err);
		if (rc == 0)
			return 0;
		spec.address = "0.0.0.0";
	}
	rc = hf_http_server_create(probes->options.loop, &spec, ret_server, err);
	return rc == 0 ? 0 : hf_error_wrap(err, "cannot answer on '%s'", address);
}

int hf_probes_create(const struct hf_probes_options *options, struct hf_probes **ret_probes,
		     struct hf_error *err)
{
	struct hf_probes *probes = hf_xcalloc(1, sizeof(*probes));
	int rc;

	probes->options = *options;
	rc = listen_on(probes, options->health_address, on_health, &probes->health, err);
	if (rc == 0)
		rc = listen_on(probes, options->metrics_address, on_metrics, &probes->metrics, err);
	if (rc != 0) {
		hf_probes_destroy(probes);
		return rc;
	}
	*ret_probes = probes;
	return 0;
}

struct hf_probes *hf_probes_destroy(struct hf_probes *probes)
{
	if (probes == NULL)
		return NULL;
	hf_http_server_destroy(probes->health);
	hf_http_server_destroy(probes->metrics);
	free(probes);
	return NULL;
}

uint16_t hf_probes_health_port(const struct hf_probes *probes)
{
	return probes->health == NULL ? 0 : hf_http_server_port(probes->health);
}

uint16_t hf_probes_metrics_port(const struct hf_probes *probes)
{
	return probes->metrics == NULL ? 0 : hf_http_server_port(probes->metrics);
}
