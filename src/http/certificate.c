/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Makes a CA and the certificates it signs, and checks certificates and keys, with GnuTLS. Input
 * and output are PEM texts. */
#include "http/certificate.h"

#include "base/mem.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 32
#define ORGANIZATIONS_MAX 16
#define SERIAL_BYTES 16 /* bytes; RFC 5280 allows serial numbers of up to 20 bytes */

void hf_certificate_release(struct hf_certificate *certificate)
{
	if (certificate->key_pem)
		explicit_bzero(certificate->key_pem, strlen(certificate->key_pem));
	free(certificate->key_pem);
	free(certificate->cert_pem);
	*certificate = (struct hf_certificate){0};
}

static int tls_error(struct hf_error *err, int code, int rc, const char *what)
{
	return hf_error_set(err, code, "cannot %s: %s", what, gnutls_strerror(rc));
}

static gnutls_datum_t to_datum(const char *text)
{
	return (gnutls_datum_t){.data = (unsigned char *)(uintptr_t)text,
				.size = (unsigned)strlen(text)};
}

/* A certificate and its key in GnuTLS' form, while this file makes or loads them. */
struct draft {
	gnutls_x509_crt_t crt;
	gnutls_x509_privkey_t key;
};

static void draft_release(struct draft *draft)
{
	if (draft->crt)
		gnutls_x509_crt_deinit(draft->crt);
	if (draft->key)
		gnutls_x509_privkey_deinit(draft->key);
}

/* Runs `call` unless an earlier call of the row has failed (rc < 0). */
#define TRY(rc, call) ((rc) < 0 ? (rc) : ((rc) = (call)))

static int set_names(gnutls_x509_crt_t crt, const char *const *names)
{
	int rc = 0;

	for (size_t i = 0; names[i] && rc >= 0; i++) {
		struct in6_addr ip; /* large enough for both address families */

		hf_assert(i < NAMES_MAX);
		if (inet_pton(AF_INET, names[i], &ip) == 1)
			rc = gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, &ip, 4,
								  GNUTLS_FSAN_APPEND);
		else if (inet_pton(AF_INET6, names[i], &ip) == 1)
			rc = gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, &ip,
								  16, GNUTLS_FSAN_APPEND);
		else
			rc = gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, names[i],
								  (unsigned)strlen(names[i]),
								  GNUTLS_FSAN_APPEND);
	}
	return rc;
}

static int set_subject(gnutls_x509_crt_t crt, const struct hf_certificate_spec *spec)
{
	const char *common_name = spec->common_name ? spec->common_name : spec->names[0];
	int rc = gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, common_name,
					       (unsigned)strlen(common_name));

	for (size_t i = 0; spec->organizations && spec->organizations[i]; i++) {
		const char *name = spec->organizations[i];

		hf_assert(i < ORGANIZATIONS_MAX);
		TRY(rc, gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_ORGANIZATION_NAME, 0,
						      name, (unsigned)strlen(name)));
	}
	return rc;
}

static int set_basics(struct draft *draft, const struct hf_certificate_spec *spec)
{
	unsigned char serial[SERIAL_BYTES], key_id[20];
	size_t key_id_size = sizeof(key_id);
	int rc = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));

	serial[0] = (serial[0] & 0x7f) | 1; /* a positive number of full length */
	TRY(rc, gnutls_x509_crt_init(&draft->crt));
	TRY(rc, gnutls_x509_privkey_init(&draft->key));
	TRY(rc, gnutls_x509_privkey_generate(draft->key, GNUTLS_PK_ECDSA,
					     GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
	TRY(rc, gnutls_x509_crt_set_version(draft->crt, 3));
	TRY(rc, gnutls_x509_crt_set_key(draft->crt, draft->key));
	TRY(rc, gnutls_x509_crt_set_serial(draft->crt, serial, sizeof(serial)));
	TRY(rc, gnutls_x509_crt_set_activation_time(draft->crt,
						    (time_t)((spec->now - HF_HOUR) / HF_SECOND)));
	TRY(rc, gnutls_x509_crt_set_expiration_time(
			draft->crt, (time_t)(hf_time_add(spec->now, spec->valid_for) / HF_SECOND)));
	TRY(rc, gnutls_x509_crt_get_key_id(draft->crt, 0, key_id, &key_id_size));
	TRY(rc, gnutls_x509_crt_set_subject_key_id(draft->crt, key_id, key_id_size));
	if (rc < 0)
		return rc;
	return set_subject(draft->crt, spec);
}

static char *take_pem(gnutls_datum_t *pem)
{
	char *text = hf_xstrndup((const char *)pem->data, pem->size);

	explicit_bzero(pem->data, pem->size);
	gnutls_free(pem->data);
	return text;
}

static int export_pem(struct draft *draft, struct hf_certificate *ret)
{
	gnutls_datum_t cert = {0}, key = {0};
	int rc = gnutls_x509_crt_export2(draft->crt, GNUTLS_X509_FMT_PEM, &cert);

	if (rc < 0)
		return rc;
	rc = gnutls_x509_privkey_export2_pkcs8(draft->key, GNUTLS_X509_FMT_PEM, NULL,
					       GNUTLS_PKCS_PLAIN, &key);
	if (rc < 0) {
		gnutls_free(cert.data);
		return rc;
	}
	ret->cert_pem = take_pem(&cert);
	ret->key_pem = take_pem(&key);
	return 0;
}

int hf_certificate_make_ca(const struct hf_certificate_spec *spec, struct hf_certificate *ret_ca,
			   struct hf_error *err)
{
	struct draft draft = {0};

	hf_assert(spec->common_name);
	int rc = set_basics(&draft, spec);
	TRY(rc, gnutls_x509_crt_set_basic_constraints(draft.crt, 1, -1));
	TRY(rc, gnutls_x509_crt_set_key_usage(draft.crt,
					      GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN));
	TRY(rc, gnutls_x509_crt_sign2(draft.crt, draft.crt, draft.key, GNUTLS_DIG_SHA256, 0));
	TRY(rc, export_pem(&draft, ret_ca));
	draft_release(&draft);
	return rc < 0 ? tls_error(err, HF_E_INTERNAL, rc, "make a CA") : 0;
}

static int load_ca(const struct hf_certificate *ca, struct draft *ret_loaded)
{
	gnutls_datum_t cert = to_datum(ca->cert_pem), key = to_datum(ca->key_pem);
	int rc = gnutls_x509_crt_init(&ret_loaded->crt);

	TRY(rc, gnutls_x509_privkey_init(&ret_loaded->key));
	TRY(rc, gnutls_x509_crt_import(ret_loaded->crt, &cert, GNUTLS_X509_FMT_PEM));
	TRY(rc, gnutls_x509_privkey_import2(ret_loaded->key, &key, GNUTLS_X509_FMT_PEM, NULL, 0));
	return rc;
}

/* True if both certificates have the same name. A verifier takes a certificate that has its
 * issuer's name for self-signed, and refuses it. */
static bool names_its_issuer(const struct draft *leaf, const struct draft *issuer)
{
	gnutls_datum_t leaf_name = {0}, issuer_name = {0};
	bool same = gnutls_x509_crt_get_dn2(leaf->crt, &leaf_name) == 0 &&
		    gnutls_x509_crt_get_dn2(issuer->crt, &issuer_name) == 0 &&
		    leaf_name.size == issuer_name.size &&
		    memcmp(leaf_name.data, issuer_name.data, leaf_name.size) == 0;

	gnutls_free(leaf_name.data);
	gnutls_free(issuer_name.data);
	return same;
}

static int make_leaf(const struct hf_certificate *ca, const struct hf_certificate_spec *spec,
		     const char *purpose, struct hf_certificate *ret, struct hf_error *err)
{
	struct draft issuer = {0}, draft = {0};
	int rc = load_ca(ca, &issuer);

	if (rc < 0) {
		draft_release(&issuer);
		return tls_error(err, HF_E_INVALID, rc, "read the CA");
	}
	rc = set_basics(&draft, spec);
	if (rc >= 0 && names_its_issuer(&draft, &issuer)) {
		draft_release(&issuer);
		draft_release(&draft);
		return hf_error_set(err, HF_E_INVALID,
				    "a certificate cannot have the same name as its CA");
	}
	TRY(rc, gnutls_x509_crt_set_basic_constraints(draft.crt, 0, -1));
	TRY(rc, gnutls_x509_crt_set_key_usage(draft.crt, GNUTLS_KEY_DIGITAL_SIGNATURE));
	TRY(rc, gnutls_x509_crt_set_key_purpose_oid(draft.crt, purpose, 0));
	if (spec->names)
		TRY(rc, set_names(draft.crt, spec->names));
	TRY(rc, gnutls_x509_crt_sign2(draft.crt, issuer.crt, issuer.key, GNUTLS_DIG_SHA256, 0));
	TRY(rc, export_pem(&draft, ret));
	draft_release(&issuer);
	draft_release(&draft);
	return rc < 0 ? tls_error(err, HF_E_INTERNAL, rc, "make a certificate") : 0;
}

int hf_certificate_make_server(const struct hf_certificate *ca,
			       const struct hf_certificate_spec *spec,
			       struct hf_certificate *ret_certificate, struct hf_error *err)
{
	hf_assert(spec->names && spec->names[0]);
	return make_leaf(ca, spec, GNUTLS_KP_TLS_WWW_SERVER, ret_certificate, err);
}

int hf_certificate_make_client(const struct hf_certificate *ca,
			       const struct hf_certificate_spec *spec,
			       struct hf_certificate *ret_certificate, struct hf_error *err)
{
	hf_assert(spec->common_name);
	return make_leaf(ca, spec, GNUTLS_KP_TLS_WWW_CLIENT, ret_certificate, err);
}

/* Returns 0 or more if key and certificate match, else GnuTLS' error code. */
static int try_pair(const char *cert_pem, const char *key_pem)
{
	gnutls_certificate_credentials_t credentials;
	gnutls_datum_t cert = to_datum(cert_pem), key = to_datum(key_pem);
	int rc = gnutls_certificate_allocate_credentials(&credentials);

	if (rc < 0)
		return rc;
	rc = gnutls_certificate_set_x509_key_mem(credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
	gnutls_certificate_free_credentials(credentials);
	return rc;
}

int hf_certificate_check(const char *cert_pem, const char *key_pem, struct hf_error *err)
{
	if (hf_str_is_empty(cert_pem) || hf_str_is_empty(key_pem))
		return hf_error_set(err, HF_E_INVALID,
				    "certificate and key must be given together");
	int rc = try_pair(cert_pem, key_pem);
	return rc < 0 ? tls_error(err, HF_E_INVALID, rc, "use the certificate with its key") : 0;
}

/* Imports each certificate by itself: GnuTLS' import of lists leaks memory if one of them is
 * bad. */
int hf_certificate_check_certs(const char *certs_pem, struct hf_error *err)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----";
	const char *at = strstr(certs_pem, begin), *next;

	if (at == NULL)
		return hf_error_set(err, HF_E_INVALID, "holds no certificate in PEM");
	for (unsigned n = 1; at != NULL; at = next, n++) {
		gnutls_x509_crt_t crt;
		int rc = gnutls_x509_crt_init(&crt);

		if (rc < 0)
			return tls_error(err, HF_E_INTERNAL, rc, "read a certificate");
		next = strstr(at + 1, begin);
		gnutls_datum_t pem = to_datum(at);
		if (next != NULL)
			pem.size = (unsigned)(next - at);
		rc = gnutls_x509_crt_import(crt, &pem, GNUTLS_X509_FMT_PEM);
		gnutls_x509_crt_deinit(crt);
		if (rc < 0)
			return hf_error_set(err, HF_E_INVALID, "certificate %u cannot be read: %s",
					    n, gnutls_strerror(rc));
	}
	return 0;
}

int hf_certificate_check_key(const char *key_pem, struct hf_error *err)
{
	gnutls_datum_t pem = to_datum(key_pem);
	gnutls_x509_privkey_t key;
	int rc = gnutls_x509_privkey_init(&key);

	if (rc < 0)
		return tls_error(err, HF_E_INTERNAL, rc, "read a key");
	rc = gnutls_x509_privkey_import2(key, &pem, GNUTLS_X509_FMT_PEM, NULL, 0);
	gnutls_x509_privkey_deinit(key);
	return rc < 0 ? hf_error_set(err, HF_E_INVALID, "holds no private key that can be used: %s",
				     gnutls_strerror(rc))
		      : 0;
}

int hf_certificate_check_pair(const char *cert_pem, const char *key_pem, struct hf_error *err)
{
	if (try_pair(cert_pem, key_pem) != GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
		return 0;
	return hf_error_set(err, HF_E_INVALID, "belongs to another certificate");
}

int hf_certificate_expiry(const char *cert_pem, hf_time *ret_expiry, struct hf_error *err)
{
	gnutls_datum_t pem = to_datum(cert_pem);
	gnutls_x509_crt_t crt;
	int rc = gnutls_x509_crt_init(&crt);

	if (rc < 0)
		return tls_error(err, HF_E_INTERNAL, rc, "read a certificate");
	rc = gnutls_x509_crt_import(crt, &pem, GNUTLS_X509_FMT_PEM);
	time_t expiry = rc < 0 ? -1 : gnutls_x509_crt_get_expiration_time(crt);
	gnutls_x509_crt_deinit(crt);
	if (rc < 0)
		return tls_error(err, HF_E_INVALID, rc, "read a certificate");
	if (expiry < 0 || expiry >= HF_TIME_NEVER / HF_SECOND)
		*ret_expiry = HF_TIME_NEVER;
	else
		*ret_expiry = (hf_time)expiry * HF_SECOND;
	return 0;
}
