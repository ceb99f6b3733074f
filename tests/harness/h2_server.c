/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The HTTP/2 test server of link_test.h, with nghttp2 and GnuTLS. */
#include "http/link_test.h"
#include "http/link_tls_test.h"

#include <unistd.h>

void hf_h2_peer_close(struct hf_h2_peer *peer)
{
	if (peer->fd < 0)
		return;
	peer->io = hf_io_destroy(peer->io);
	close(peer->fd);
	peer->fd = -1;
}

void hf_h2_peer_send(struct hf_h2_peer *peer)
{
	const uint8_t *bytes;
	ssize_t n;

	if (peer->fd < 0)
		return;
	while ((n = nghttp2_session_mem_send(peer->h2, &bytes)) > 0)
		hf_strbuf_add(&peer->out, bytes, (size_t)n);
	assert_true(n == 0 && !peer->out.full);
	if (!hf_test_flush(peer->tls, &peer->out)) {
		hf_h2_peer_close(peer);
		return;
	}
	hf_io_want(peer->io, HF_IO_READ | (peer->out.len > 0 ? (unsigned)HF_IO_WRITE : 0u));
}

/* --- callbacks of nghttp2 --- */

static int hf_h2_on_begin(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
	struct hf_h2_peer *peer = arg;

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	struct hf_h2_exchange *ex = hf_xcalloc(1, sizeof(*ex));

	ex->peer = peer;
	ex->id = frame->hd.stream_id;
	hf_strbuf_init(&ex->body, HF_H2_SERVER_BODY_MAX);
	hf_strbuf_init(&ex->answer, HF_H2_SERVER_BODY_MAX);
	ex->next = peer->server->exchanges;
	peer->server->exchanges = ex;
	nghttp2_session_set_stream_user_data(h2, ex->id, ex);
	return 0;
}

static int hf_h2_on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name,
			   size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
			   void *arg)
{
	struct hf_h2_exchange *ex = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
	size_t at = strlen(ex->head);

	snprintf(ex->head + at, sizeof(ex->head) - at, "%s: %s\n", name, value);
	return 0;
}

static int hf_h2_on_data(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *bytes,
			 size_t len, void *arg)
{
	struct hf_h2_exchange *ex = nghttp2_session_get_stream_user_data(h2, id);

	hf_strbuf_add(&ex->body, bytes, len);
	return 0;
}

static int hf_h2_on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
	struct hf_h2_peer *peer = arg;

	if ((frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) ||
	    !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	struct hf_h2_exchange *ex = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);

	ex->whole = true;
	peer->server->requests++;
	peer->server->serve(peer->server->arg, ex);
	return 0;
}

static int hf_h2_on_close(nghttp2_session *h2, int32_t id, uint32_t code, void *arg)
{
	struct hf_h2_peer *peer = arg;
	struct hf_h2_exchange *ex = nghttp2_session_get_stream_user_data(h2, id);

	ex->closed = true;
	ex->closed_code = code;
	hf_loop_stop(peer->server->loop);
	return 0;
}

/* --- responses, sent at the test's command --- */

static ssize_t hf_h2_on_wanted(nghttp2_session *h2, int32_t id, uint8_t *buffer, size_t size,
			       uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct hf_h2_exchange *ex = source->ptr;
	size_t len = ex->answer.len < size ? ex->answer.len : size;

	if (len == 0 && !ex->last)
		return NGHTTP2_ERR_DEFERRED;
	memcpy(buffer, ex->answer.data, len);
	hf_strbuf_consume(&ex->answer, len);
	ex->sent_bytes += len;
	if (ex->answer.len == 0 && ex->last)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)len;
}

static nghttp2_nv hf_h2_field(const char *name, const char *value)
{
	return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
			    .value = (uint8_t *)(uintptr_t)value,
			    .namelen = strlen(name),
			    .valuelen = strlen(value)};
}

void hf_h2_begin(struct hf_h2_exchange *ex, const char *status)
{
	const nghttp2_data_provider body = {.source.ptr = ex, .read_callback = hf_h2_on_wanted};
	const nghttp2_nv fields[] = {
		hf_h2_field(":status", status),
		hf_h2_field("content-type", "text/plain"),
		hf_h2_field("retry-after", "7"),
	};

	assert_int_equal(nghttp2_submit_response(ex->peer->h2, ex->id, fields, 3, &body), 0);
}

void hf_h2_say(struct hf_h2_exchange *ex, const char *bytes, size_t len, bool last)
{
	hf_strbuf_add(&ex->answer, bytes, len);
	ex->last = last;
	(void)nghttp2_session_resume_data(ex->peer->h2, ex->id);
}

void hf_h2_answer(struct hf_h2_exchange *ex, const char *status, const char *text)
{
	hf_h2_begin(ex, status);
	hf_h2_say(ex, text, strlen(text), true);
}

/* --- connections --- */

static void hf_h2_start(struct hf_h2_peer *peer)
{
	nghttp2_session_callbacks *callbacks;
	unsigned count = 0;

	peer->handshake_done = true;
	/* OpenSSL's servers send session tickets too, even if the client did not ask for any. */
	(void)gnutls_session_ticket_send(peer->tls, 2, 0);
	(void)gnutls_certificate_get_peers(peer->tls, &count);
	peer->certificates = count;
	assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, hf_h2_on_begin);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, hf_h2_on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, hf_h2_on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, hf_h2_on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, hf_h2_on_close);
	assert_int_equal(nghttp2_session_server_new(&peer->h2, callbacks, peer), 0);
	nghttp2_session_callbacks_del(callbacks);
	assert_int_equal(nghttp2_submit_settings(peer->h2, 0, NULL, 0), 0);
}

static void hf_h2_on_io(void *arg, unsigned events)
{
	struct hf_h2_peer *peer = arg;
	char bytes[16384];
	ssize_t n = 0;

	if (!peer->handshake_done) {
		int rc = gnutls_handshake(peer->tls);

		if (rc < 0 && gnutls_error_is_fatal(rc))
			hf_h2_peer_close(peer);
		if (rc < 0)
			return;
		hf_h2_start(peer);
	}
	while (peer->fd >= 0 && (n = gnutls_record_recv(peer->tls, bytes, sizeof(bytes))) > 0)
		assert_int_equal(
			nghttp2_session_mem_recv(peer->h2, (const uint8_t *)bytes, (size_t)n), n);
	if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
		hf_h2_peer_send(peer);
	else
		hf_h2_peer_close(peer);
}

static void hf_h2_on_accept(void *arg, unsigned events)
{
	struct hf_h2_server *server = arg;
	struct hf_h2_peer *peer = hf_xcalloc(1, sizeof(*peer));
	struct hf_error err = {0};

	peer->server = server;
	peer->next = server->peers;
	server->peers = peer;
	server->accepted++;
	hf_strbuf_init(&peer->out, 2 * HF_H2_SERVER_BODY_MAX);
	peer->fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(peer->fd >= 0);
	peer->tls = hf_test_session(server->credentials, peer->fd, "h2", GNUTLS_NONBLOCK);
	gnutls_certificate_server_set_request(peer->tls, GNUTLS_CERT_REQUEST);
	assert_int_equal(gnutls_session_ticket_enable_server(peer->tls, &server->ticket_key), 0);
	assert_ok(hf_io_create(server->loop, peer->fd, hf_h2_on_io, peer, &peer->io, &err), &err);
	hf_io_want(peer->io, HF_IO_READ);
}

/* --- start and stop --- */

void hf_h2_server_start(struct hf_h2_server *server, const char *cert_pem, const char *key_pem,
			const char *client_ca_pem)
{
	const gnutls_datum_t ca = hf_test_datum(client_ca_pem);
	struct hf_error err = {0};

	assert_int_equal(gnutls_session_ticket_key_generate(&server->ticket_key), 0);
	server->credentials = hf_test_credentials(cert_pem, key_pem);
	assert_int_equal(gnutls_certificate_set_x509_trust_mem(server->credentials, &ca,
							       GNUTLS_X509_FMT_PEM),
			 1);
	server->fd = hf_test_listen(&server->port);
	assert_ok(
		hf_io_create(server->loop, server->fd, hf_h2_on_accept, server, &server->io, &err),
		&err);
	hf_io_want(server->io, HF_IO_READ);
}

void hf_h2_server_close(struct hf_h2_server *server)
{
	server->io = hf_io_destroy(server->io);
	if (server->fd >= 0)
		close(server->fd);
	server->fd = -1;
}

void hf_h2_server_stop(struct hf_h2_server *server)
{
	hf_h2_server_close(server);
	while (server->exchanges) {
		struct hf_h2_exchange *ex = server->exchanges;

		server->exchanges = ex->next;
		hf_strbuf_release(&ex->body);
		hf_strbuf_release(&ex->answer);
		free(ex);
	}
	while (server->peers) {
		struct hf_h2_peer *peer = server->peers;

		server->peers = peer->next;
		hf_h2_peer_close(peer);
		nghttp2_session_del(peer->h2);
		gnutls_deinit(peer->tls);
		hf_strbuf_release(&peer->out);
		free(peer);
	}
	gnutls_certificate_free_credentials(server->credentials);
	gnutls_free(server->ticket_key.data);
}
