/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* One transfer: its copies of the request, the curl easy handle, the response as it arrives, and
 * the calls to the user. Callbacks of curl and link_h2.c only fill the transfer and post its task;
 * on_deliver then calls the user. The owner of the transfer frees it. */
#include "http/client_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* TCP finds a dead server machine within a minute: by keepalive, or by data without an
 * acknowledgement. */
#define KEEPALIVE_IDLE_S 30
#define KEEPALIVE_INTERVAL_S 10
#define KEEPALIVE_PROBES 3
#define UNACKED_MS 60000

#define UPLOAD_BUFFER_BYTES 16384 /* the smallest value that curl accepts */

#define REQUEST_HEADERS_MAX 64 /* most headers that a caller of the client may set */

/* most bytes held for a stream */
#define INBOX_BYTES_MAX (HF_TRANSFER_WINDOW_BYTES + CURL_MAX_WRITE_SIZE)

/* --- phases --- */

static const uint8_t next_phase[HF_EXCHANGE_PHASES][HF_EXCHANGE_EVENTS] = {
	[HF_EXCHANGE_UNSENT] = {HF_EXCHANGE_SENT, HF_EXCHANGE_HEAD, HF_EXCHANGE_PHASES},
	[HF_EXCHANGE_SENT] = {HF_EXCHANGE_SENT, HF_EXCHANGE_HEAD, HF_EXCHANGE_PHASES},
	[HF_EXCHANGE_HEAD] = {HF_EXCHANGE_HEAD, HF_EXCHANGE_HEAD, HF_EXCHANGE_COMPLETE},
	[HF_EXCHANGE_COMPLETE] = {HF_EXCHANGE_COMPLETE, HF_EXCHANGE_COMPLETE, HF_EXCHANGE_COMPLETE},
};

static const uint8_t next_flow[HF_FLOWS][HF_FLOW_EVENTS] = {
	[HF_FLOW_OPEN] = {HF_FLOW_PAUSED, HF_FLOW_OPEN, HF_FLOW_FULL, HF_FLOW_OPEN},
	[HF_FLOW_FULL] = {HF_FLOW_BOTH, HF_FLOW_FULL, HF_FLOW_FULL, HF_FLOW_OPEN},
	[HF_FLOW_PAUSED] = {HF_FLOW_PAUSED, HF_FLOW_OPEN, HF_FLOW_BOTH, HF_FLOW_PAUSED},
	[HF_FLOW_BOTH] = {HF_FLOW_BOTH, HF_FLOW_FULL, HF_FLOW_BOTH, HF_FLOW_BOTH},
};

void hf_transfer_advance(struct hf_transfer *transfer, enum hf_transfer_event event)
{
	uint8_t next = next_phase[transfer->phase][event];

	hf_assert(next < HF_EXCHANGE_PHASES);
	transfer->phase = (enum hf_transfer_phase)next;
}

static bool has_head(const struct hf_transfer *transfer)
{
	return transfer->phase >= HF_EXCHANGE_HEAD;
}

static void move_flow(struct hf_transfer *transfer, enum hf_transfer_flow_event event)
{
	transfer->flow = (enum hf_transfer_flow)next_flow[transfer->flow][event];
}

static bool is_paused(const struct hf_transfer *transfer)
{
	return transfer->flow == HF_FLOW_PAUSED || transfer->flow == HF_FLOW_BOTH;
}

/* --- creating and freeing --- */

static char **copy_lines(const char *const *lines)
{
	size_t count = 0;

	while (lines && lines[count])
		count++;
	hf_assert(count <= REQUEST_HEADERS_MAX);
	char **copies = hf_xcalloc(count + 1, sizeof(*copies));
	for (size_t i = 0; i < count; i++) {
		copies[i] = hf_xstrdup(lines[i]);
		/* A line break in a value must not start another header. */
		for (char *c = copies[i]; *c; c++)
			*c = (unsigned char)*c < ' ' ? ' ' : *c;
	}
	return copies;
}

static void on_deliver(void *arg);
static void on_deadline(void *arg);
static void on_idle(void *arg);

struct hf_transfer *hf_transfer_create(struct hf_http_client *client,
				       const struct hf_transfer_owner *owner,
				       const struct hf_http_request *request)
{
	struct hf_transfer *transfer = hf_xcalloc(1, sizeof(*transfer));
	size_t method_size = strlen(request->method) + 1, target_size = strlen(request->target) + 1;
	const char *type = hf_str_or(request->content_type, "application/json");
	size_t bytes_max = request->response_bytes_max;

	transfer->client = client;
	transfer->owner = owner;
	transfer->request = *request;
	transfer->text = hf_xmalloc(method_size + target_size + strlen(type) + 1);
	transfer->request.method = memcpy(transfer->text, request->method, method_size);
	transfer->request.target =
		memcpy(transfer->text + method_size, request->target, target_size);
	transfer->request.content_type =
		memcpy(transfer->text + method_size + target_size, type, strlen(type) + 1);
	transfer->headers = copy_lines(request->headers);
	transfer->request.headers = NULL;
	if (request->body_len > 0) {
		transfer->body = hf_xmalloc(request->body_len);
		memcpy(transfer->body, request->body, request->body_len);
	}
	transfer->request.body = transfer->body;
	if (!request->stream && bytes_max == 0)
		bytes_max = HF_HTTP_RESPONSE_BYTES_MAX;
	hf_strbuf_init(&transfer->inbox, request->stream ? INBOX_BYTES_MAX : bytes_max);
	hf_strbuf_init(&transfer->head, HF_HTTP_RESPONSE_HEAD_BYTES_MAX);
	transfer->deliver = hf_task_create(client->loop, on_deliver, transfer);
	transfer->deadline = hf_timer_create(client->loop, on_deadline, transfer);
	transfer->idle = hf_timer_create(client->loop, on_idle, transfer);
	return transfer;
}

struct hf_http_ca *hf_http_ca_unref(struct hf_http_ca *ca)
{
	if (ca && --ca->refs == 0)
		free(ca);
	return NULL;
}

void hf_transfer_free(struct hf_transfer *transfer)
{
	if (transfer->dead)
		*transfer->dead = true;
	hf_task_destroy(transfer->deliver);
	hf_timer_destroy(transfer->deadline);
	hf_timer_destroy(transfer->idle);
	if (transfer->easy)
		curl_easy_cleanup(transfer->easy);
	hf_http_ca_unref(transfer->ca);
	curl_slist_free_all(transfer->lines);
	for (char **line = transfer->headers; *line; line++)
		free(*line);
	free(transfer->headers);
	free(transfer->body);
	free(transfer->text);
	hf_strbuf_release(&transfer->head);
	hf_strbuf_release(&transfer->inbox);
	free(transfer);
}

/* --- callbacks of curl --- */

static void arm_idle(struct hf_transfer *transfer)
{
	if (transfer->request.idle_timeout > 0 && !is_paused(transfer))
		hf_timer_arm(transfer->idle, transfer->request.idle_timeout);
}

static void note_byte_received(struct hf_transfer *transfer)
{
	if (transfer->pool)
		transfer->pool->last_byte_at = hf_loop_mono(transfer->client->loop);
}

/* take_whole and take_piece return false, with err set, beyond the limit. */
static bool take_whole(struct hf_transfer *transfer, const void *bytes, size_t len)
{
	hf_strbuf_add(&transfer->inbox, bytes, len);
	return hf_strbuf_ok(&transfer->inbox, "the response body", &transfer->err) == 0;
}

static bool take_piece(struct hf_transfer *transfer, const void *bytes, size_t len)
{
	transfer->received += len;
	if (transfer->request.response_bytes_max > 0 &&
	    transfer->received > transfer->request.response_bytes_max) {
		hf_error_set(&transfer->err, HF_E_TOO_LARGE, "the stream is longer than %zu bytes",
			     transfer->request.response_bytes_max);
		return false;
	}
	hf_strbuf_add(&transfer->inbox, bytes, len);
	hf_assert(!transfer->inbox.full);
	arm_idle(transfer);
	hf_task_post(transfer->deliver);
	return true;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
	struct hf_transfer *transfer = arg;
	size_t len = size * count;

	note_byte_received(transfer);
	if (!transfer->request.stream)
		return take_whole(transfer, bytes, len) ? len : CURL_WRITEFUNC_ERROR;
	if (is_paused(transfer) || transfer->inbox.len > HF_TRANSFER_INBOX_BYTES_MAX) {
		move_flow(transfer, HF_FLOW_FILL);
		return CURL_WRITEFUNC_PAUSE;
	}
	return take_piece(transfer, bytes, len) ? len : CURL_WRITEFUNC_ERROR;
}

static size_t trim_end(const char *text, size_t len)
{
	while (len > 0 && strchr(" \t\r\n", text[len - 1]))
		len--;
	return len;
}

/* Takes one line of the head, or of the trailers after the body. */
static size_t on_header(char *bytes, size_t size, size_t count, void *arg)
{
	struct hf_transfer *transfer = arg;
	size_t whole = size * count, len = trim_end(bytes, whole);
	const char *colon = memchr(bytes, ':', len);

	note_byte_received(transfer);
	if (len > 5 && memcmp(bytes, "HTTP/", 5) == 0 && !has_head(transfer)) {
		/* The head of the final response replaces that of an informational one. */
		const char *blank = memchr(bytes, ' ', len);
		transfer->status = blank ? (int)strtol(blank + 1, NULL, 10) : 0;
		hf_strbuf_clear(&transfer->head);
	} else if (len == 0 && transfer->status >= 200 && !has_head(transfer)) {
		hf_transfer_advance(transfer, HF_EXCHANGE_HEAD_TAKEN);
		arm_idle(transfer);
		if (transfer->request.stream)
			hf_task_post(transfer->deliver);
	} else if (colon) {
		const char *value = colon + 1;
		while (value < bytes + len && (*value == ' ' || *value == '\t'))
			value++;
		hf_strbuf_add(&transfer->head, bytes, (size_t)(colon - bytes));
		hf_strbuf_addch(&transfer->head, '\0');
		hf_strbuf_add(&transfer->head, value, (size_t)(bytes + len - value));
		hf_strbuf_addch(&transfer->head, '\0');
		if (hf_strbuf_ok(&transfer->head, "the response head", &transfer->err) < 0)
			return 0;
	}
	return whole;
}

void hf_http_set_keepalive(int fd)
{
	int on = 1, idle = KEEPALIVE_IDLE_S, interval = KEEPALIVE_INTERVAL_S,
	    probes = KEEPALIVE_PROBES;
	int unacked_ms = UNACKED_MS;

	/* The calls fail on a unix socket, which needs no keepalive. */
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms, sizeof(unacked_ms));
}

static int on_socket_made(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	hf_http_set_keepalive(fd);
	return CURL_SOCKOPT_OK;
}

/* --- the easy handle --- */

/* Sets an option that all supported versions of curl know. */
#define SET(easy, option, value)                                                                   \
	do {                                                                                       \
		CURLcode set_rc_ = curl_easy_setopt((easy), (option), (value));                    \
		hf_assert(set_rc_ == CURLE_OK);                                                    \
	} while (0)

static void set_blob(CURL *easy, CURLoption option, const char *pem)
{
	/* A copy, because the client certificate may be replaced while this transfer runs. */
	struct curl_blob blob = {
		.data = (void *)(uintptr_t)pem, .len = strlen(pem), .flags = CURL_BLOB_COPY};

	SET(easy, option, &blob);
}

static void set_tls(CURL *easy, struct hf_transfer *transfer)
{
	const struct hf_http_client_spec *spec = &transfer->client->spec;
	struct hf_http_ca *ca = transfer->ca;

	if (ca) {
		struct curl_blob blob = {
			.data = ca->pem, .len = ca->len, .flags = CURL_BLOB_NOCOPY};

		SET(easy, CURLOPT_CAINFO_BLOB, &blob);
		/* Otherwise curl would trust the system's CAs too. */
		SET(easy, CURLOPT_CAPATH, NULL);
	}
	if (spec->cert_pem) {
		set_blob(easy, CURLOPT_SSLCERT_BLOB, spec->cert_pem);
		set_blob(easy, CURLOPT_SSLKEY_BLOB, spec->key_pem);
	}
	if (spec->insecure) {
		SET(easy, CURLOPT_SSL_VERIFYPEER, 0L);
		SET(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
}

/* 16 kB are enough to send from; the default is 64 kB. The receive buffer must keep its default:
 * with 4 kB, libcurl 7.88 over HTTP/2 forgets the rest of a larger response, and the request times
 * out. */
static void set_buffers(CURL *easy)
{
	SET(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BUFFER_BYTES);
}

static void set_connection(CURL *easy, struct hf_transfer *transfer)
{
	const struct hf_http_client *client = transfer->client;
	const struct hf_http_client_spec *spec = &client->spec;

	SET(easy, CURLOPT_NOSIGNAL, 1L);
	SET(easy, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
	SET(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(spec->connect_timeout / HF_MS));
	SET(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	if (spec->unix_path)
		SET(easy, CURLOPT_UNIX_SOCKET_PATH, spec->unix_path);
	if (spec->unix_path || spec->proxy_url)
		SET(easy, CURLOPT_PROXY, spec->unix_path ? "" : spec->proxy_url);
	if (client->connect_to)
		SET(easy, CURLOPT_CONNECT_TO, client->connect_to);
	if (spec->http2_plain) {
		SET(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
		SET(easy, CURLOPT_FRESH_CONNECT, 1L);
		SET(easy, CURLOPT_FORBID_REUSE, 1L);
	} else {
		SET(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
		/* Wait for the first connection, which may carry all requests, instead of opening
		 * more. */
		SET(easy, CURLOPT_PIPEWAIT, hf_str_has_prefix(client->prefix, "https:") ? 1L : 0L);
	}
	set_tls(easy, transfer);
}

static void set_method(CURL *easy, const struct hf_transfer *transfer)
{
	const struct hf_http_request *request = &transfer->request;
	bool post = strcmp(request->method, "POST") == 0;

	if (strcmp(request->method, "HEAD") == 0)
		SET(easy, CURLOPT_NOBODY, 1L);
	else if (strcmp(request->method, "GET") != 0 || request->body_len > 0)
		SET(easy, CURLOPT_CUSTOMREQUEST, request->method);
	if (request->body_len > 0 || post) {
		SET(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_len);
		SET(easy, CURLOPT_POSTFIELDS, transfer->body ? transfer->body : "");
	}
}

static void add_line(struct hf_transfer *transfer, const char *line)
{
	struct curl_slist *lines =
		line ? curl_slist_append(transfer->lines, line) : transfer->lines;

	hf_assert(lines || !line);
	transfer->lines = lines;
}

static void set_headers(CURL *easy, struct hf_transfer *transfer)
{
	const struct hf_http_client *client = transfer->client;

	add_line(transfer, client->host_line);
	add_line(transfer, client->bearer_line);
	/* Turns "Expect: 100-continue" off: waiting for the server's 100 would cost a round
	 * trip. */
	add_line(transfer, "Expect:");
	if (transfer->request.body_len > 0) {
		char *type = hf_xasprintf("Content-Type: %s", transfer->request.content_type);
		add_line(transfer, type);
		free(type);
	} else {
		add_line(transfer, "Content-Type:");
	}
	for (char **line = transfer->headers; *line; line++)
		add_line(transfer, *line);
	SET(easy, CURLOPT_HTTPHEADER, transfer->lines);
	SET(easy, CURLOPT_USERAGENT, "holdfast/" HF_VERSION);
	if (transfer->request.gzip)
		SET(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
}

/* Sets curl's own timeout. The loop's timer normally ends a transfer. After a suspension of this
 * process curl may see its sockets before that timer runs; curl checks its own clock before it
 * sends. */
static void set_deadline(CURL *easy, const struct hf_transfer *transfer)
{
	hf_time due = hf_timer_due(transfer->deadline);
	hf_time left = due - hf_loop_mono(transfer->client->loop);

	if (due == HF_TIME_NEVER)
		return;
	SET(easy, CURLOPT_TIMEOUT_MS, (long)(left > 0 ? left / HF_MS : 0) + 1);
}

void hf_transfer_begin(struct hf_transfer *transfer)
{
	struct hf_http_ca *ca = transfer->client->ca;

	transfer->ca = ca;
	if (ca)
		ca->refs++;
	arm_idle(transfer);
}

void hf_transfer_prepare(struct hf_transfer *transfer)
{
	CURL *easy = curl_easy_init();

	hf_assert(easy);
	transfer->easy = easy;
	transfer->carrier = HF_CARRIER_CURL;
	HF_AUTOFREE char *url =
		hf_xasprintf("%s%s", transfer->client->prefix, transfer->request.target);
	SET(easy, CURLOPT_URL, url);
	SET(easy, CURLOPT_PATH_AS_IS, 1L);
	SET(easy, CURLOPT_PRIVATE, transfer);
	SET(easy, CURLOPT_ERRORBUFFER, transfer->error_text);
	SET(easy, CURLOPT_WRITEFUNCTION, on_body);
	SET(easy, CURLOPT_WRITEDATA, transfer);
	SET(easy, CURLOPT_HEADERFUNCTION, on_header);
	SET(easy, CURLOPT_HEADERDATA, transfer);
	set_buffers(easy);
	set_connection(easy, transfer);
	set_method(easy, transfer);
	set_headers(easy, transfer);
	set_deadline(easy, transfer);
}

/* --- the end of a transfer --- */

/* True if the server may have seen the request: curl was ready to send it. */
static bool was_sent(const struct hf_transfer *transfer)
{
	curl_off_t ready = 0;

	if (transfer->status != 0 || transfer->phase >= HF_EXCHANGE_SENT)
		return true;
	return transfer->easy &&
	       curl_easy_getinfo(transfer->easy, CURLINFO_PRETRANSFER_TIME_T, &ready) == CURLE_OK &&
	       ready > 0;
}

static void end_transfer(struct hf_transfer *transfer)
{
	transfer->owner->leave(transfer);
	hf_timer_disarm(transfer->deadline);
	hf_timer_disarm(transfer->idle);
	hf_task_post(transfer->deliver);
}

static void fail_transfer(struct hf_transfer *transfer, int code, const char *what)
{
	hf_assert(transfer->state != HF_TRANSFER_DONE && code < 0);
	if (transfer->err.code == 0) /* a callback may have set a more exact error already */
		hf_error_set(&transfer->err, code, "%s", what);
	hf_error_wrap(&transfer->err, "%s '%s'", transfer->request.method,
		      transfer->request.target);
	end_transfer(transfer);
}

static enum hf_transfer_retry rate_retry(CURLcode result)
{
	switch (result) {
	case CURLE_HTTP2:
	case CURLE_HTTP2_STREAM: return HF_RETRY_NOW;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR: return HF_RETRY_NEVER;
	default: return HF_RETRY_LATER;
	}
}

/* True if the proxy cannot be reached. curl's own text reads as if the server could not be reached,
 * so the user would look at the wrong host. (After a timeout it is not known whether the proxy or
 * the server was silent.) */
static bool proxy_unreached(const struct hf_transfer *transfer, CURLcode result)
{
	const struct hf_http_client_spec *spec = &transfer->client->spec;

	return result == CURLE_COULDNT_CONNECT && !spec->unix_path &&
	       !hf_str_is_empty(spec->proxy_url);
}

void hf_transfer_take_curl_result(struct hf_transfer *transfer, CURLcode result)
{
	const char *text =
		transfer->error_text[0] ? transfer->error_text : curl_easy_strerror(result);
	int code = was_sent(transfer) ? HF_E_TIMEOUT : HF_E_UNAVAILABLE;

	/* curl's clock may reach the deadline slightly before the loop's timer. */
	if (result == CURLE_OPERATION_TIMEDOUT &&
	    hf_timer_due(transfer->deadline) <= hf_loop_mono(transfer->client->loop) + 2 * HF_MS) {
		on_deadline(transfer);
		return;
	}
	if (transfer->request.stream && has_head(transfer))
		code = HF_E_UNAVAILABLE;
	transfer->retry = rate_retry(result);
	if (result == CURLE_URL_MALFORMAT || result == CURLE_UNSUPPORTED_PROTOCOL)
		code = HF_E_BAD_REQUEST;
	if (transfer->err.code == 0 && proxy_unreached(transfer, result))
		(void)hf_error_set(&transfer->err, code, "the proxy cannot be reached: %s", text);
	if (result != CURLE_OK) {
		fail_transfer(transfer, code, text);
		return;
	}
	/* curl accepts an incomplete head as if it were complete. */
	if (!has_head(transfer)) {
		fail_transfer(transfer, code, "the connection was closed inside the head");
		return;
	}
	end_transfer(transfer);
}

/* Fails a request that was sent and got no response in time. */
static void fail_sent(struct hf_transfer *transfer)
{
	size_t len = transfer->request.body_len;

	if (transfer->carrier == HF_CARRIER_LINK && transfer->body_sent < len)
		hf_error_set(&transfer->err, HF_E_TIMEOUT,
			     "no response in time; the server took %zu of the request's %zu bytes",
			     transfer->body_sent, len);
	fail_transfer(transfer, HF_E_TIMEOUT, "no response in time");
}

static const char *unsent_reason(const struct hf_transfer *transfer)
{
	return transfer->link && transfer->stream_id > 0
		       ? "not sent in time: the server allows no more requests on its connection"
		       : "not connected in time";
}

static void on_deadline(void *arg)
{
	struct hf_transfer *transfer = arg;

	transfer->owner->timed_out(transfer);
	if (transfer->state == HF_TRANSFER_QUEUED)
		fail_transfer(transfer, HF_E_UNAVAILABLE,
			      "not sent in time: too many other requests are in flight");
	else if (was_sent(transfer))
		fail_sent(transfer);
	else
		fail_transfer(transfer, HF_E_UNAVAILABLE, unsent_reason(transfer));
}

static void on_idle(void *arg)
{
	struct hf_transfer *transfer = arg;

	transfer->owner->timed_out(transfer);
	if (was_sent(transfer))
		fail_transfer(transfer, HF_E_TIMEOUT,
			      "no byte of the stream came within its idle timeout");
	else
		fail_transfer(transfer, HF_E_UNAVAILABLE, unsent_reason(transfer));
}

/* --- what a link delivers --- */

bool hf_transfer_is_due(const struct hf_transfer *transfer)
{
	return hf_timer_due(transfer->deadline) <= hf_loop_mono(transfer->client->loop);
}

void hf_transfer_take_field(struct hf_transfer *transfer, const char *name, const char *value)
{
	if (hf_streq(name, ":status")) {
		/* The head of the final response replaces that of an informational one. */
		transfer->status = (int)strtol(value, NULL, 10);
		hf_strbuf_clear(&transfer->head);
		return;
	}
	hf_strbuf_add(&transfer->head, name, strlen(name) + 1);
	hf_strbuf_add(&transfer->head, value, strlen(value) + 1);
	if (hf_strbuf_ok(&transfer->head, "the response head", &transfer->err) < 0)
		fail_transfer(transfer, HF_E_TOO_LARGE, "");
}

void hf_transfer_take_head(struct hf_transfer *transfer)
{
	if (transfer->status < 100) {
		hf_transfer_break_off(transfer, true, false,
				      "the response's status is not an HTTP status");
		return;
	}
	if (has_head(transfer) || transfer->status < 200)
		return;
	hf_transfer_advance(transfer, HF_EXCHANGE_HEAD_TAKEN);
	arm_idle(transfer);
	if (transfer->request.stream)
		hf_task_post(transfer->deliver);
}

void hf_transfer_take_body(struct hf_transfer *transfer, const void *bytes, size_t len)
{
	bool taken = transfer->request.stream ? take_piece(transfer, bytes, len)
					      : take_whole(transfer, bytes, len);

	if (!taken)
		fail_transfer(transfer, HF_E_TOO_LARGE, "");
}

void hf_transfer_take_end(struct hf_transfer *transfer)
{
	if (!has_head(transfer)) {
		hf_transfer_break_off(transfer, true, false, "the response ended inside its head");
		return;
	}
	hf_transfer_advance(transfer, HF_EXCHANGE_ALL_TAKEN);
	end_transfer(transfer);
}

void hf_transfer_break_off(struct hf_transfer *transfer, bool seen, bool retry_now,
			   const char *what)
{
	int code = seen ? HF_E_TIMEOUT : HF_E_UNAVAILABLE;

	if (transfer->request.stream && has_head(transfer))
		code = HF_E_UNAVAILABLE;
	transfer->retry = retry_now ? HF_RETRY_NOW : HF_RETRY_LATER;
	fail_transfer(transfer, code, what);
}

/* --- calling the user --- */

static void deliver_data(struct hf_transfer *transfer, const bool *dead)
{
	while (transfer->inbox.len > 0 && !is_paused(transfer)) {
		/* Take the bytes out of the transfer: on_data may cancel it, or make curl write
		 * more. */
		HF_AUTO_STRBUF bytes = transfer->inbox;

		hf_strbuf_init(&transfer->inbox, bytes.bytes_max);
		transfer->request.on_data(transfer->request.arg, transfer, bytes.data, bytes.len);
		if (*dead)
			return;
		if (transfer->consumed)
			transfer->consumed(transfer);
	}
}

/* curl may write to the inbox at once, which posts the task again. */
static void resume_curl(struct hf_transfer *transfer)
{
	if (transfer->flow != HF_FLOW_FULL || transfer->state != HF_TRANSFER_RUNNING)
		return;
	move_flow(transfer, HF_FLOW_DRAIN);
	CURLcode rc = curl_easy_pause(transfer->easy, CURLPAUSE_CONT);
	if (rc != CURLE_OK)
		fail_transfer(transfer, HF_E_UNAVAILABLE, curl_easy_strerror(rc));
}

static void deliver_done(struct hf_transfer *transfer)
{
	bool *dead = transfer->dead;
	struct hf_http_result result = {
		.code = transfer->err.code,
		.err = &transfer->err,
		.retry_now = transfer->retry == HF_RETRY_NOW,
		.permanent = transfer->retry == HF_RETRY_NEVER,
		.status = transfer->status,
		.body = transfer->inbox.data,
		.body_len = transfer->inbox.len,
		.transfer = transfer,
	};

	transfer->request.on_done(transfer->request.arg, &result);
	if (!*dead)
		transfer->owner->release(transfer);
}

static void deliver_stream(struct hf_transfer *transfer, const bool *dead)
{
	void (*on_head)(void *arg, struct hf_transfer *transfer, int status) =
		transfer->request.on_head;

	if (has_head(transfer) && on_head) {
		transfer->request.on_head = NULL; /* on_head is called only once */
		on_head(transfer->request.arg, transfer, transfer->status);
	}
	if (!*dead)
		deliver_data(transfer, dead);
	if (!*dead)
		resume_curl(transfer);
}

static void on_deliver(void *arg)
{
	struct hf_transfer *transfer = arg;
	bool dead = false;

	transfer->dead = &dead;
	if (transfer->request.stream)
		deliver_stream(transfer, &dead);
	if (dead)
		return;
	if (transfer->state == HF_TRANSFER_DONE && !is_paused(transfer))
		deliver_done(transfer); /* calls on_done and frees the transfer */
	else
		transfer->dead = NULL;
}

void hf_transfer_pause(struct hf_transfer *transfer)
{
	hf_assert(transfer->request.stream);
	move_flow(transfer, HF_FLOW_PAUSE);
	hf_timer_disarm(transfer->idle);
}

void hf_transfer_resume(struct hf_transfer *transfer)
{
	if (!is_paused(transfer))
		return;
	move_flow(transfer, HF_FLOW_RESUME);
	if (transfer->state == HF_TRANSFER_RUNNING)
		arm_idle(transfer);
	hf_task_post(transfer->deliver);
}

const char *hf_transfer_header(const struct hf_transfer *transfer, const char *name)
{
	return hf_transfer_header_at(transfer, name, 0);
}

const char *hf_transfer_header_at(const struct hf_transfer *transfer, const char *name, size_t i)
{
	const char *end = transfer->head.data + transfer->head.len;

	for (const char *at = transfer->head.data; at < end;) {
		const char *value = at + strlen(at) + 1;

		if (hf_str_case_eq(at, name) && i-- == 0)
			return value;
		at = value + strlen(value) + 1;
	}
	return NULL;
}
