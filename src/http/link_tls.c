/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* TLS of a link, with GnuTLS. GnuTLS reads a record's head and body separately and writes each
 * record at once. Buffers between GnuTLS and the kernel make this one read and one write per turn
 * of the loop. */
#include "http/link_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_BYTES ((size_t)16384) /* bytes of the largest TLS record */
/* Most bytes that the client accepts during a handshake; the certificates of a server take some
 * kilobytes. */
#define HANDSHAKE_BYTES_MAX ((size_t)512 * 1024)
/* Most bytes without data for the caller (session tickets, empty records) that one call handles.
 * Then timers and other fds get their turn. */
#define NO_DATA_BYTES_MAX ((size_t)256 * 1024)

/* The TLS session of a link, and the buffer `in` for bytes from the kernel. */
struct hf_link_tls {
	gnutls_session_t session;
	gnutls_certificate_credentials_t credentials;
	int fd;
	/* Where GnuTLS' bytes for the server go; NULL outside of calls that may write. */
	struct hf_strbuf *out;
	size_t at, len; /* range of the unread bytes in the buffer `in` */
	/* True: the last read did not fill the buffer, so the kernel has no more bytes. */
	bool drained;
	bool eof;
	size_t receive_left; /* how many more bytes the present call may receive */
	char in[HF_LINK_READ_BYTES];
};

static ssize_t on_pull(gnutls_transport_ptr_t arg, void *bytes, size_t size)
{
	struct hf_link_tls *tls = arg;
	size_t len = tls->len - tls->at < size ? tls->len - tls->at : size;

	if (len == 0 && !tls->eof) {
		gnutls_transport_set_errno(tls->session, EAGAIN);
		return -1;
	}
	memcpy(bytes, tls->in + tls->at, len);
	tls->at += len;
	return (ssize_t)len;
}

static ssize_t on_push(gnutls_transport_ptr_t arg, const void *bytes, size_t len)
{
	struct hf_link_tls *tls = arg;

	/* GnuTLS sends an alert while it reads. It is dropped, because the connection ends
	 * anyway. */
	if (!tls->out) {
		gnutls_transport_set_errno(tls->session, EPIPE);
		return -1;
	}
	hf_strbuf_add(tls->out, bytes, len);
	return (ssize_t)len;
}

static int on_pull_timeout(gnutls_transport_ptr_t arg, HF_UNUSED unsigned ms)
{
	const struct hf_link_tls *tls = arg;

	return tls->at < tls->len || tls->eof ? 1 : 0;
}

/* Reads bytes from the kernel into the empty buffer. Returns false if no bytes came. A socket error
 * counts as the end of the connection. */
static bool fill_input(struct hf_link_tls *tls)
{
	ssize_t len;

	/* GnuTLS also returns AGAIN after a record without data, such as a session ticket. */
	if (tls->at < tls->len)
		return true;
	if (tls->eof || tls->drained || tls->receive_left == 0)
		return false;
	do {
		len = recv(tls->fd, tls->in, sizeof(tls->in), 0);
	} while (len < 0 && errno == EINTR);
	tls->at = 0;
	tls->len = len > 0 ? (size_t)len : 0;
	tls->receive_left -= tls->len < tls->receive_left ? tls->len : tls->receive_left;
	tls->drained = tls->len < sizeof(tls->in);
	tls->eof = len == 0 || (len < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
	return tls->len > 0 || tls->eof;
}

static gnutls_datum_t to_datum(const char *text)
{
	return (gnutls_datum_t){.data = (unsigned char *)(uintptr_t)text,
				.size = (unsigned)strlen(text)};
}

static int set_credentials(struct hf_link_tls *tls, const struct hf_http_client *client)
{
	gnutls_datum_t ca, cert, key;
	int rc = gnutls_certificate_allocate_credentials(&tls->credentials);

	if (rc < 0)
		return rc;
	if (client->ca) {
		ca = to_datum(client->ca->pem);
		rc = gnutls_certificate_set_x509_trust_mem(tls->credentials, &ca,
							   GNUTLS_X509_FMT_PEM);
	} else if (!client->spec.insecure) {
		rc = gnutls_certificate_set_x509_system_trust(tls->credentials);
	}
	if (rc < 0 || !client->spec.cert_pem)
		return rc;
	cert = to_datum(client->spec.cert_pem);
	key = to_datum(client->spec.key_pem);
	return gnutls_certificate_set_x509_key_mem(tls->credentials, &cert, &key,
						   GNUTLS_X509_FMT_PEM);
}

static int set_names(struct hf_link_tls *tls, const struct hf_http_client *client)
{
	const char *name = client->target.name;
	struct in6_addr ip;
	bool is_ip = inet_pton(AF_INET, name, &ip) == 1 || inet_pton(AF_INET6, name, &ip) == 1;
	const gnutls_datum_t protocols[] = {to_datum("h2"), to_datum("http/1.1")};
	int rc = gnutls_alpn_set_protocols(tls->session, protocols, 2, 0);

	if (rc == 0 && !is_ip)
		rc = gnutls_server_name_set(tls->session, GNUTLS_NAME_DNS, name, strlen(name));
	if (!client->spec.insecure)
		gnutls_session_set_verify_cert(tls->session, name, 0);
	return rc;
}

struct hf_link_tls *hf_link_tls_create(const struct hf_http_client *client)
{
	/* GNUTLS_FORCE_CLIENT_CERT: a server may trust this client's CA and still list other CAs.
	 * The client then sends its certificate anyway, as OpenSSL does. */
	const unsigned flags = GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL |
			       GNUTLS_NO_TICKETS | GNUTLS_FORCE_CLIENT_CERT;
	struct hf_link_tls *tls = hf_xcalloc(1, sizeof(*tls));
	int rc = gnutls_init(&tls->session, flags);

	tls->receive_left = HANDSHAKE_BYTES_MAX;

	if (rc == 0)
		rc = set_credentials(tls, client);
	if (rc >= 0)
		rc = gnutls_set_default_priority(tls->session);
	if (rc >= 0)
		rc = gnutls_credentials_set(tls->session, GNUTLS_CRD_CERTIFICATE, tls->credentials);
	if (rc >= 0)
		rc = set_names(tls, client);
	if (rc < 0)
		return hf_link_tls_destroy(tls);
	gnutls_transport_set_ptr(tls->session, tls);
	gnutls_transport_set_pull_function(tls->session, on_pull);
	gnutls_transport_set_push_function(tls->session, on_push);
	gnutls_transport_set_pull_timeout_function(tls->session, on_pull_timeout);
	return tls;
}

struct hf_link_tls *hf_link_tls_destroy(struct hf_link_tls *tls)
{
	if (!tls)
		return NULL;
	if (tls->session)
		gnutls_deinit(tls->session);
	if (tls->credentials)
		gnutls_certificate_free_credentials(tls->credentials);
	free(tls);
	return NULL;
}

enum hf_link_tls_end hf_link_tls_handshake(struct hf_link_tls *tls, int fd, struct hf_strbuf *out)
{
	gnutls_datum_t protocol;
	int rc;

	tls->fd = fd;
	tls->out = out;
	tls->drained = false;
	do {
		rc = gnutls_handshake(tls->session);
	} while ((rc == GNUTLS_E_AGAIN && fill_input(tls)) ||
		 (rc < 0 && rc != GNUTLS_E_AGAIN && !gnutls_error_is_fatal(rc)));
	tls->out = NULL;
	if (rc == GNUTLS_E_AGAIN && tls->receive_left > 0)
		return HF_LINK_TLS_MORE;
	if (rc < 0)
		return HF_LINK_TLS_FAILED;
	if (gnutls_alpn_get_selected_protocol(tls->session, &protocol) < 0 || protocol.size != 2 ||
	    memcmp(protocol.data, "h2", 2) != 0)
		return HF_LINK_TLS_OTHER;
	return HF_LINK_TLS_OPEN;
}

bool hf_link_tls_write(struct hf_link_tls *tls, struct hf_strbuf *frames, struct hf_strbuf *out)
{
	size_t at = 0;
	ssize_t rc = 0;

	tls->out = out;
	while (at < frames->len && rc >= 0) {
		size_t left = frames->len - at;

		rc = gnutls_record_send(tls->session, frames->data + at,
					left < RECORD_BYTES ? left : RECORD_BYTES);
		if (rc > 0)
			at += (size_t)rc;
		else if (rc == GNUTLS_E_INTERRUPTED)
			rc = 0;
	}
	tls->out = NULL;
	hf_strbuf_clear(frames);
	return rc >= 0 && !out->full;
}

ssize_t hf_link_tls_read(struct hf_link_tls *tls, void *bytes, size_t size, struct hf_error *err)
{
	ssize_t rc;

	tls->receive_left = NO_DATA_BYTES_MAX;
	do {
		rc = gnutls_record_recv(tls->session, bytes, size);
	} while ((rc == GNUTLS_E_AGAIN && fill_input(tls)) ||
		 (rc < 0 && rc != GNUTLS_E_AGAIN && !gnutls_error_is_fatal((int)rc)));
	if (rc > 0)
		return rc;
	if (rc == GNUTLS_E_AGAIN) {
		tls->drained = false; /* the loop's watch of the fd reports when more bytes come */
		return 0;
	}
	return hf_error_set(err, HF_E_UNAVAILABLE, "%s",
			    rc == 0 || rc == GNUTLS_E_PREMATURE_TERMINATION
				    ? "the server closed the connection"
				    : gnutls_strerror((int)rc));
}
