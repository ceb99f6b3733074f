/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Answers /healthz and /readyz on one address, and /metrics on another. */
#include "app/probes.h"

#include "app/plain_http.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>

struct hf_probes {
	struct hf_probes_options options;
	struct hf_http_server *health, *metrics; /* NULL: off */
};

static void on_health(void *arg, struct hf_exchange *ex)
{
	const struct hf_probes *probes = arg;
	const char *path = hf_exchange_path(ex);
	struct hf_error err = {0};

	if (!hf_plain_begin(ex))
		return;
	if (hf_streq(path, "/healthz") || hf_streq(path, "/livez"))
		hf_plain_answer(ex, 200, "ok\n");
	else if (hf_streq(path, "/readyz"))
		hf_plain_answer_ready(ex, probes->options.ready(probes->options.arg, &err), &err);
	else
		hf_plain_answer(ex, 404, "there is /healthz and /readyz\n");
}

static void on_metrics(void *arg, struct hf_exchange *ex)
{
	const struct hf_probes *probes = arg;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_METRICS_BYTES_MAX);

	if (!hf_plain_begin(ex))
		return;
	if (!hf_streq(hf_exchange_path(ex), "/metrics")) {
		hf_plain_answer(ex, 404, "there is /metrics\n");
		return;
	}
	probes->options.metrics(probes->options.arg, &text);
	hf_plain_answer_take(ex, HF_PLAIN_METRICS, &text);
}

int hf_probes_create(const struct hf_probes_options *options, struct hf_probes **ret_probes,
		     struct hf_error *err)
{
	struct hf_probes *probes = hf_xcalloc(1, sizeof(*probes));
	int rc;

	probes->options = *options;
	rc = hf_plain_listen(options->loop, options->health_address, on_health, probes,
			     &probes->health, err);
	if (rc == 0)
		rc = hf_plain_listen(options->loop, options->metrics_address, on_metrics, probes,
				     &probes->metrics, err);
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
