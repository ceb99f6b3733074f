/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Sends the traces of restarts to an OpenTelemetry collector. Inputs: reports of the operator.
 * Outputs: requests to the collector, and a counter of sent and dropped spans. Invariants: at most one
 * request is in flight, and at most HF_OTLP_SPANS_MAX spans are held. */
#include "app/otlp_exporter.h"

#include "app/recovery_trace.h"
#include "base/ascii.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "ctl/backoff.h"
#include "http/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TARGET "/v1/traces"
#define HEADERS_MAX 16
#define HEADERS_BYTES_MAX 8192
#define REQUEST_BYTES_MAX ((size_t)8 << 20)
#define REPLY_BYTES_MAX ((size_t)64 << 10)
#define TIMEOUT (10 * HF_SECOND)
#define RETRY_FIRST HF_SECOND
#define RETRY_MAX (30 * HF_SECOND)
#define RETRY_JITTER_PERCENT 50
#define HTTP_TOO_MANY_REQUESTS 429

struct hf_otlp_exporter {
	struct hf_otlp_options options; /* the texts are not kept */
	struct hf_http_client *client;
	struct hf_timer *timer;
	struct hf_family *spans_total;
	struct hf_rng rng;
	struct hf_backoff backoff;
	char *header_texts[HEADERS_MAX + 1]; /* "Name: value"; ends with NULL */
	struct hf_json *waiting;             /* array of spans for the next request */
	struct hf_json *sending; /* spans of the request; NULL: no request is due or in flight */
	bool in_flight;
	bool failing; /* a problem was reported, and no success since */
};

static void count_spans(struct hf_otlp_exporter *exporter, size_t n, const char *result)
{
	if (n > 0)
		hf_family_add(exporter->spans_total, (double)n, result, NULL);
}

static void report_problem(struct hf_otlp_exporter *exporter, const char *message)
{
	bool fails = message != NULL;

	if (fails != exporter->failing)
		exporter->options.problem(exporter->options.arg, message);
	exporter->failing = fails;
}

static void end_request(struct hf_otlp_exporter *exporter, const char *result)
{
	count_spans(exporter, hf_json_len(exporter->sending), result);
	exporter->sending = hf_json_unref(exporter->sending);
	hf_backoff_reset(&exporter->backoff);
	if (hf_json_len(exporter->waiting) > 0)
		hf_timer_arm(exporter->timer, HF_OTLP_DELAY);
}

/* The answers after which the specification of OTLP/HTTP allows a retry. */
static bool may_retry(const struct hf_http_result *result)
{
	return (result->code != 0 && !result->permanent) ||
	       result->status == HTTP_TOO_MANY_REQUESTS ||
	       (result->status >= 502 && result->status <= 504);
}

static void on_done(void *arg, const struct hf_http_result *result)
{
	struct hf_otlp_exporter *exporter = arg;
	char text[64];

	exporter->in_flight = false;
	if (result->code == 0 && result->status / 100 == 2) {
		report_problem(exporter, NULL);
		end_request(exporter, "sent");
		return;
	}
	snprintf(text, sizeof(text), "the collector answered with HTTP status %d", result->status);
	report_problem(exporter, result->code != 0 ? result->err->text : text);
	if (may_retry(result) && exporter->backoff.failures + 1 < HF_OTLP_TRIES_MAX)
		hf_timer_arm(exporter->timer, hf_backoff_next(&exporter->backoff, &exporter->rng));
	else
		end_request(exporter, "dropped");
}

static void send_request(struct hf_otlp_exporter *exporter)
{
	HF_AUTO_JSON body = hf_recovery_trace_request(hf_json_ref(exporter->sending));
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(REQUEST_BYTES_MAX);
	struct hf_http_request request = {
		.method = "POST",
		.target = TARGET,
		.headers = (const char *const *)exporter->header_texts,
		.response_bytes_max = REPLY_BYTES_MAX,
		.on_done = on_done,
		.arg = exporter,
	};
	struct hf_error err;
	int rc;

	hf_json_write(body, HF_JSON_COMPACT, &text);
	request.body = text.data;
	request.body_len = text.len;
	rc = hf_http_client_send(exporter->client, &request, NULL, &err);
	exporter->in_flight = rc == 0;
	if (rc != 0) {
		report_problem(exporter, err.text);
		end_request(exporter, "dropped");
	}
}

static void on_timer(void *arg)
{
	struct hf_otlp_exporter *exporter = arg;

	if (exporter->in_flight)
		return;
	if (exporter->sending == NULL) {
		exporter->sending = exporter->waiting;
		exporter->waiting = hf_json_array();
	}
	send_request(exporter);
}

void hf_otlp_add(struct hf_otlp_exporter *exporter, const struct hf_operator_recovery *recovery)
{
	size_t before = hf_json_len(exporter->waiting);
	size_t held = before + hf_json_len(exporter->sending);

	hf_recovery_trace_add(recovery, exporter->waiting);
	if (hf_json_len(exporter->waiting) - before + held > HF_OTLP_SPANS_MAX) {
		count_spans(exporter, hf_json_len(exporter->waiting) - before, "dropped");
		while (hf_json_len(exporter->waiting) > before)
			hf_json_remove_item(exporter->waiting, hf_json_len(exporter->waiting) - 1);
	}
	if (exporter->sending == NULL && hf_json_len(exporter->waiting) > 0 &&
	    !hf_timer_armed(exporter->timer))
		hf_timer_arm(exporter->timer, HF_OTLP_DELAY);
}

/* --- headers ------------------------------------------------------------------------------------- */

/* Decodes %XX in place. False: a '%' without two hexadecimal digits. */
static bool decode_percent(char *text)
{
	char *to = text;
	int byte;

	for (; *text != '\0'; text++, to++) {
		*to = *text;
		if (*text != '%')
			continue;
		byte = hf_ascii_hex_byte(text + 1);
		if (byte < 0)
			return false;
		*to = (char)byte;
		text += 2;
	}
	*to = '\0';
	return true;
}

static int parse_headers(struct hf_otlp_exporter *exporter, const char *headers,
			 struct hf_error *err)
{
	HF_AUTOFREE char *copy = NULL;
	char *rest, *item, *value;
	size_t n = 0;

	if (hf_str_is_empty(headers))
		return 0;
	if (strlen(headers) > HEADERS_BYTES_MAX)
		return hf_error_set(err, HF_E_INVALID, "the headers have more than %d bytes",
				    HEADERS_BYTES_MAX);
	copy = hf_xstrdup(headers);
	for (rest = copy; (item = strsep(&rest, ",")) != NULL;) {
		value = strchr(item, '=');
		/* The text is not shown: a header may hold a password. */
		if (value == NULL || value == item)
			return hf_error_set(err, HF_E_INVALID,
					    "header %zu is not of the form NAME=VALUE", n + 1);
		*value++ = '\0';
		if (!decode_percent(value))
			return hf_error_set(err, HF_E_INVALID,
					    "the value of header '%s' has a '%%' without two "
					    "hexadecimal digits",
					    item);
		if (n == HEADERS_MAX)
			return hf_error_set(err, HF_E_INVALID, "there are more than %d headers",
					    HEADERS_MAX);
		exporter->header_texts[n++] =
			hf_xasprintf("%s: %s", item + strspn(item, " "), value);
	}
	return 0;
}

/* --- life ---------------------------------------------------------------------------------------- */

int hf_otlp_create(const struct hf_otlp_options *options, struct hf_otlp_exporter **ret_exporter,
		   struct hf_error *err)
{
	const struct hf_metric_options spans = {
		.name = "holdfast_trace_spans_total",
		.help = "Spans of traces of restarts, by what became of them: sent or dropped.",
		.type = HF_METRIC_COUNTER,
		.labels = {"result"},
	};
	const struct hf_http_client_spec client = {
		.base_url = options->endpoint, .in_flight_max = 1, .timeout = TIMEOUT};
	struct hf_otlp_exporter *exporter = hf_xcalloc(1, sizeof(*exporter));
	int rc;

	exporter->options = *options;
	exporter->options.endpoint = exporter->options.headers = NULL;
	exporter->backoff =
		(struct hf_backoff)HF_BACKOFF_INIT(RETRY_FIRST, RETRY_MAX, RETRY_JITTER_PERCENT);
	hf_rng_init(&exporter->rng, options->seed);
	exporter->waiting = hf_json_array();
	exporter->timer = hf_timer_create(options->loop, on_timer, exporter);
	exporter->spans_total = hf_metrics_family(options->metrics, &spans);
	rc = parse_headers(exporter, options->headers, err);
	if (rc == 0)
		rc = hf_http_client_create(options->loop, &client, &exporter->client, err);
	if (rc != 0) {
		hf_otlp_destroy(exporter);
		return rc;
	}
	*ret_exporter = exporter;
	return 0;
}

struct hf_otlp_exporter *hf_otlp_destroy(struct hf_otlp_exporter *exporter)
{
	if (exporter == NULL)
		return NULL;
	hf_http_client_destroy(exporter->client);
	hf_timer_destroy(exporter->timer);
	hf_json_unref(exporter->waiting);
	hf_json_unref(exporter->sending);
	for (size_t i = 0; i < HEADERS_MAX; i++)
		free(exporter->header_texts[i]);
	free(exporter);
	return NULL;
}
