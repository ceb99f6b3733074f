/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The queue of a client's transfers, the limits on them, and the client's lifetime. Requests of
 * users go into a pool (pool.c), or wait. Invariant: when a transfer leaves, the oldest waiting one
 * starts in its place, unless its deadline has passed. */
#include "http/client_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* --- transfers: a list in the order of sending; some of them wait --- */

static void list_add(struct hf_http_client *client, struct hf_transfer *transfer)
{
	transfer->prev = client->last;
	if (client->last)
		client->last->next = transfer;
	else
		client->first = transfer;
	client->last = transfer;
}

static struct hf_transfer *next_queued_from(struct hf_transfer *transfer)
{
	while (transfer && transfer->state != HF_TRANSFER_QUEUED)
		transfer = transfer->next;
	return transfer;
}

static void list_remove(struct hf_http_client *client, struct hf_transfer *transfer)
{
	hf_assert(client->next_queued != transfer);
	if (transfer->prev)
		transfer->prev->next = transfer->next;
	else
		client->first = transfer->next;
	if (transfer->next)
		transfer->next->prev = transfer->prev;
	else
		client->last = transfer->prev;
	transfer->prev = transfer->next = NULL;
}

static void start_transfer(struct hf_transfer *transfer)
{
	struct hf_http_client *client = transfer->client;
	bool stream = transfer->request.stream;

	transfer->state = HF_TRANSFER_RUNNING;
	hf_transfer_begin(transfer);
	if (stream)
		client->streams++;
	else
		client->in_flight++;
	if (stream && !client->streamed)
		client->streamed = hf_http_pool_create(client);
	transfer->started_at = hf_loop_mono(client->loop);
	hf_http_pool_add(stream ? client->streamed : client->pool, transfer);
}

static void start_waiting(struct hf_http_client *client)
{
	while (client->next_queued && client->in_flight < client->spec.in_flight_max) {
		struct hf_transfer *transfer = client->next_queued;

		/* After a suspension of this process, responses may be read before overdue timers
		 * run. If this transfer's deadline has passed, its timer will end it unsent and
		 * then call this function again. */
		if (hf_timer_due(transfer->deadline) <= hf_loop_mono(client->loop))
			break;
		client->next_queued = next_queued_from(transfer->next);
		client->queued--;
		start_transfer(transfer);
	}
}

/* Takes the transfer from curl, from its link or from the queue. Then starts waiting transfers in
 * its place. */
static void remove_transfer(struct hf_transfer *transfer)
{
	struct hf_http_client *client = transfer->client;

	if (transfer->state == HF_TRANSFER_QUEUED) {
		if (client->next_queued == transfer)
			client->next_queued = next_queued_from(transfer->next);
		client->queued--;
	} else if (transfer->state == HF_TRANSFER_RUNNING) {
		hf_http_pool_remove(transfer);
		if (transfer->request.stream)
			client->streams--;
		else
			client->in_flight--;
	}
	transfer->state = HF_TRANSFER_DONE;
	start_waiting(client);
}

/* Called when a running transfer has timed out. Retires the transfer's pool if the server sent no
 * byte for silence_max. */
static void retire_if_silent(struct hf_transfer *transfer)
{
	struct hf_http_client *client = transfer->client;
	struct hf_http_pool *pool = transfer->pool;
	struct hf_http_pool **place = transfer->request.stream ? &client->streamed : &client->pool;
	hf_time since;

	if (transfer->state != HF_TRANSFER_RUNNING || pool != *place)
		return;
	since = pool->last_byte_at > transfer->started_at ? pool->last_byte_at
							  : transfer->started_at;
	if (hf_loop_mono(client->loop) - since < client->spec.silence_max)
		return;
	pool->next = client->retired;
	client->retired = pool;
	*place = hf_http_pool_create(client);
}

static const struct hf_transfer_owner queue_owner = {
	.leave = remove_transfer,
	.timed_out = retire_if_silent,
	.release = hf_transfer_cancel,
};

int hf_http_client_send(struct hf_http_client *client, const struct hf_http_request *request,
			struct hf_transfer **ret_transfer, struct hf_error *err)
{
	bool wait = !request->stream && client->in_flight >= client->spec.in_flight_max;

	hf_assert(request->method && request->target && request->on_done);
	hf_assert(request->target[0] == '/' && (!request->stream || request->on_data));
	if (request->stream && client->streams >= client->spec.streams_max)
		return hf_error_set(err, HF_E_TOO_MANY, "%u streams are open to this server",
				    client->streams);
	if (wait && client->queued >= client->spec.queue_max)
		return hf_error_set(err, HF_E_TOO_MANY, "%u requests wait for this server",
				    client->queued);
	struct hf_transfer *transfer = hf_transfer_create(client, &queue_owner, request);
	hf_time timeout = request->timeout;
	if (timeout == 0)
		timeout = request->stream ? HF_TIME_NEVER : client->spec.timeout;
	hf_timer_arm(transfer->deadline, timeout);
	list_add(client, transfer);
	if (wait) {
		client->queued++;
		if (!client->next_queued)
			client->next_queued = transfer;
	} else {
		start_transfer(transfer);
	}
	if (ret_transfer)
		*ret_transfer = transfer;
	return 0;
}

void hf_transfer_cancel(struct hf_transfer *transfer)
{
	if (transfer->state != HF_TRANSFER_DONE)
		remove_transfer(transfer);
	list_remove(transfer->client, transfer);
	hf_transfer_free(transfer);
}

/* --- lifetime of the client --- */

/* New requests must not use connections made with the old CAs or certificates. */
static void renew_links(struct hf_http_client *client)
{
	client->generation++;
	if (client->link_off_until != HF_TIME_NEVER)
		client->link_off_until = 0;
}

static char *dup_or_null(const char *text)
{
	return text ? hf_xstrdup(text) : NULL;
}

static void fill_spec(struct hf_http_client_spec *spec)
{
	spec->unix_path = dup_or_null(spec->unix_path);
	spec->cert_pem = dup_or_null(spec->cert_pem);
	spec->key_pem = dup_or_null(spec->key_pem);
	spec->proxy_url = dup_or_null(spec->proxy_url);
	spec->base_url = spec->tls_server_name = NULL; /* base_url is now in prefix and
	                                                * connect_to */
	spec->ca_pem = NULL;                           /* the CAs are kept in client->ca */
	if (spec->in_flight_max == 0)
		spec->in_flight_max = HF_HTTP_IN_FLIGHT_MAX;
	if (spec->streams_max == 0)
		spec->streams_max = HF_HTTP_STREAMS_MAX;
	if (spec->queue_max == 0)
		spec->queue_max = HF_HTTP_QUEUE_MAX;
	if (spec->timeout == 0)
		spec->timeout = HF_HTTP_TIMEOUT;
	if (spec->connect_timeout == 0)
		spec->connect_timeout = HF_HTTP_CONNECT_TIMEOUT;
	if (spec->silence_max == 0)
		spec->silence_max = HF_HTTP_SILENCE_MAX;
}

struct url_parts {
	CURLU *url;
	char *scheme, *host, *port, *path, *extra;
};

static void url_parts_release(struct url_parts *parts)
{
	curl_free(parts->scheme);
	curl_free(parts->host);
	curl_free(parts->port);
	curl_free(parts->path);
	curl_free(parts->extra);
	curl_url_cleanup(parts->url);
}

static bool split_url(const char *base_url, struct url_parts *parts)
{
	CURLU *url = parts->url;

	return curl_url_set(url, CURLUPART_URL, base_url, 0) == CURLUE_OK &&
	       curl_url_get(url, CURLUPART_SCHEME, &parts->scheme, 0) == CURLUE_OK &&
	       (hf_streq(parts->scheme, "https") || hf_streq(parts->scheme, "http")) &&
	       curl_url_get(url, CURLUPART_HOST, &parts->host, 0) == CURLUE_OK &&
	       curl_url_get(url, CURLUPART_PORT, &parts->port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
	       curl_url_get(url, CURLUPART_PATH, &parts->path, 0) == CURLUE_OK &&
	       curl_url_get(url, CURLUPART_QUERY, &parts->extra, 0) != CURLUE_OK &&
	       curl_url_get(url, CURLUPART_FRAGMENT, &parts->extra, 0) != CURLUE_OK &&
	       curl_url_get(url, CURLUPART_USER, &parts->extra, 0) != CURLUE_OK;
}

/* Sets the address of requests. With tls_server_name the URL contains that name, because curl
 * sends and verifies the URL's host. The connection goes to the real host, and so does the Host
 * header. */
static int set_base(struct hf_http_client *client, const struct hf_http_client_spec *spec,
		    struct hf_error *err)
{
	struct url_parts parts = {.url = curl_url()};

	if (!split_url(spec->base_url, &parts)) {
		url_parts_release(&parts);
		return hf_error_set(err, HF_E_INVALID, "'%s' is not the URL of a server",
				    spec->base_url);
	}
	const char *name = hf_str_or(spec->tls_server_name, parts.host);
	size_t path_len = strlen(parts.path);
	while (path_len > 0 && parts.path[path_len - 1] == '/')
		path_len--;
	client->prefix = hf_xasprintf("%s://%s:%s%.*s", parts.scheme, name, parts.port,
				      (int)path_len, parts.path);
	if (!hf_streq(name, parts.host)) {
		HF_AUTOFREE char *to =
			hf_xasprintf("%s:%s:%s:%s", name, parts.port, parts.host, parts.port);
		client->connect_to = curl_slist_append(NULL, to);
		client->host_line = hf_xasprintf("Host: %s:%s", parts.host, parts.port);
	}
	const struct hf_link_url url = {parts.scheme, parts.host, parts.port, parts.path, path_len};
	hf_link_target_init(&client->target, spec, &url);
	url_parts_release(&parts);
	return 0;
}

int hf_http_client_create(struct hf_loop *loop, const struct hf_http_client_spec *spec,
			  struct hf_http_client **ret_client, struct hf_error *err)
{
	hf_assert(spec->base_url);
	if (!hf_loop_is_real(loop))
		return hf_error_set(err, HF_E_UNSUPPORTED, "a virtual loop has no network");
	if (!spec->cert_pem != !spec->key_pem)
		return hf_error_set(err, HF_E_INVALID,
				    "certificate and key must be given together");
	struct hf_http_client *client = hf_xcalloc(1, sizeof(*client));
	int rc = set_base(client, spec, err);
	if (rc < 0) {
		free(client);
		return rc;
	}
	client->loop = loop;
	client->spec = *spec;
	fill_spec(&client->spec);
	hf_http_client_set_ca(client, spec->ca_pem);
	/* curl counts the calls of curl_global_init; destroy undoes this one. */
	CURLcode init = curl_global_init(CURL_GLOBAL_DEFAULT);
	hf_assert(init == CURLE_OK);
	client->pool = hf_http_pool_create(client);
	*ret_client = client;
	return 0;
}

struct hf_http_client *hf_http_client_destroy(struct hf_http_client *client)
{
	if (!client)
		return NULL;
	/* No waiting transfer may start while all transfers are removed. */
	client->next_queued = NULL;
	while (client->first) {
		struct hf_transfer *transfer = client->first;

		if (transfer->state == HF_TRANSFER_RUNNING)
			hf_http_pool_remove(transfer);
		list_remove(client, transfer);
		hf_transfer_free(transfer);
	}
	while (client->retired)
		hf_http_pool_destroy(client->retired);
	hf_http_pool_destroy(client->pool);
	hf_http_pool_destroy(client->streamed);
	curl_global_cleanup();
	curl_slist_free_all(client->connect_to);
	hf_http_client_set_cert(client, NULL, NULL);
	hf_http_client_set_bearer(client, NULL);
	hf_http_client_set_ca(client, NULL);
	free((char *)(uintptr_t)client->spec.unix_path);
	free((char *)(uintptr_t)client->spec.proxy_url);
	hf_link_target_release(&client->target);
	free(client->host_line);
	free(client->prefix);
	free(client);
	return NULL;
}

static void wipe_text(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

void hf_http_client_set_bearer(struct hf_http_client *client, const char *token)
{
	static const char prefix[] = "Authorization: Bearer ";

	wipe_text(client->bearer_line);
	client->bearer_line = NULL;
	if (hf_str_is_empty(token))
		return;
	char *at = hf_xmalloc(sizeof(prefix) + strlen(token));
	client->bearer_line = at;
	memcpy(at, prefix, sizeof(prefix) - 1);
	at += sizeof(prefix) - 1;
	for (; *token; token++) {
		if ((unsigned char)*token > ' ')
			*at++ = *token;
	}
	*at = '\0';
}

void hf_http_client_set_cert(struct hf_http_client *client, const char *cert_pem,
			     const char *key_pem)
{
	hf_assert(!cert_pem == !key_pem);
	renew_links(client);
	free((char *)(uintptr_t)client->spec.cert_pem);
	wipe_text((char *)(uintptr_t)client->spec.key_pem);
	client->spec.cert_pem = dup_or_null(cert_pem);
	client->spec.key_pem = dup_or_null(key_pem);
}

void hf_http_client_set_ca(struct hf_http_client *client, const char *ca_pem)
{
	renew_links(client);
	client->ca = hf_http_ca_unref(client->ca);
	if (!ca_pem)
		return;
	size_t len = strlen(ca_pem);

	client->ca = hf_xmalloc(sizeof(*client->ca) + len + 1);
	client->ca->refs = 1;
	client->ca->len = len;
	memcpy(client->ca->pem, ca_pem, len + 1);
}

void hf_url_escape(struct hf_strbuf *sb, const char *text)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

	for (; *text; text++) {
		if (strchr(plain, *text))
			hf_strbuf_addch(sb, *text);
		else
			hf_strbuf_addf(sb, "%%%02X", (unsigned char)*text);
	}
}
