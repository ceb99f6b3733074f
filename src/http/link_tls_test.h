/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_LINK_TLS_TEST_H
#define HF_HTTP_LINK_TLS_TEST_H

/* Shared by the two test servers for links: a socket on 127.0.0.1, and TLS. */

#include "harness/listen.h"
#include "harness/test.h"

#include "base/strbuf.h"

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static inline gnutls_datum_t hf_test_datum(const char *text)
{
	gnutls_datum_t datum = {(unsigned char *)(uintptr_t)text, (unsigned)strlen(text)};

	return datum;
}

static inline gnutls_certificate_credentials_t hf_test_credentials(const char *cert_pem,
								   const char *key_pem)
{
	const gnutls_datum_t cert = hf_test_datum(cert_pem), key = hf_test_datum(key_pem);
	gnutls_certificate_credentials_t credentials;

	assert_int_equal(gnutls_certificate_allocate_credentials(&credentials), 0);
	assert_int_equal(
		gnutls_certificate_set_x509_key_mem(credentials, &cert, &key, GNUTLS_X509_FMT_PEM),
		0);
	return credentials;
}

/* protocol: offered by ALPN; "": no ALPN. */
static inline gnutls_session_t hf_test_session(gnutls_certificate_credentials_t credentials, int fd,
					       const char *protocol, unsigned flags)
{
	const gnutls_datum_t alpn = hf_test_datum(protocol);
	gnutls_session_t tls;

	assert_int_equal(gnutls_init(&tls, GNUTLS_SERVER | flags), 0);
	assert_int_equal(gnutls_set_default_priority(tls), 0);
	assert_int_equal(gnutls_credentials_set(tls, GNUTLS_CRD_CERTIFICATE, credentials), 0);
	if (alpn.size > 0)
		assert_int_equal(gnutls_alpn_set_protocols(tls, &alpn, 1, 0), 0);
	gnutls_transport_set_int(tls, fd);
	return tls;
}

/* Sends as much of out as the socket takes. Returns false if the client is gone. */
static inline bool hf_test_flush(gnutls_session_t tls, struct hf_strbuf *out)
{
	while (out->len > 0) {
		ssize_t n = gnutls_record_send(tls, out->data, out->len);

		if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
			break;
		if (n < 0)
			return false;
		hf_strbuf_consume(out, (size_t)n);
	}
	return true;
}

#endif
