/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_CERTIFICATE_H
#define HF_HTTP_CERTIFICATE_H

#include "base/error.h"
#include "base/time.h"

#include <stddef.h>

/* Certificates for a server on this machine: a CA of its own, and server and client certificates
 * that the CA signs. All are PEM texts; keys are ECDSA on P-256, signatures use SHA-256. Keys and
 * serial numbers come from the kernel's random source, so a simulation must not use this header.
 * Lists of strings end with NULL. */
struct hf_certificate {
	char *cert_pem;
	char *key_pem; /* PKCS #8, not encrypted; keep it in files of mode 0600 */
};

/* overwrites the key before freeing it */
void hf_certificate_release(struct hf_certificate *certificate);

struct hf_certificate_spec {
	/* common name of the certificate; NULL: the first of `names` */
	const char *common_name;
	const char *const *names;         /* for servers: host names and IP addresses; at most 32 */
	const char *const *organizations; /* for clients: the user's Kubernetes groups; may be
	                                   * NULL; at most 16 */
	hf_time now;                      /* the certificate is valid from one hour before `now`,
	                                   * because clocks differ */
	hf_time valid_for;
};

/* Makes a self-signed CA; needs a common name. */
int hf_certificate_make_ca(const struct hf_certificate_spec *spec, struct hf_certificate *ret_ca,
			   struct hf_error *err) HF_MUST_CHECK;
/* Makes a server certificate signed by the CA; needs names. HF_E_INVALID: the CA cannot be read, or
 * the common name equals the CA's. */
int hf_certificate_make_server(const struct hf_certificate *ca,
			       const struct hf_certificate_spec *spec,
			       struct hf_certificate *ret_certificate, struct hf_error *err)
	HF_MUST_CHECK;
/* Makes a client certificate signed by the CA; the common name is the user's name. */
int hf_certificate_make_client(const struct hf_certificate *ca,
			       const struct hf_certificate_spec *spec,
			       struct hf_certificate *ret_certificate, struct hf_error *err)
	HF_MUST_CHECK;

/* HF_E_INVALID unless both texts are given, can be read and belong together. */
int hf_certificate_check(const char *cert_pem, const char *key_pem, struct hf_error *err)
	HF_MUST_CHECK;

/* Check certificates or a key that a user supplies, each alone. HF_E_INVALID: the text cannot be
 * read. Keys with a passphrase, or on a curve that Go does not accept either, count as unreadable.
 * check_certs needs at least one certificate and reads all of them. */
int hf_certificate_check_certs(const char *certs_pem, struct hf_error *err) HF_MUST_CHECK;
int hf_certificate_check_key(const char *key_pem, struct hf_error *err) HF_MUST_CHECK;
/* Checks that the key belongs to the certificate. Both must have passed hf_certificate_check_certs
 * and hf_certificate_check_key. */
int hf_certificate_check_pair(const char *cert_pem, const char *key_pem, struct hf_error *err)
	HF_MUST_CHECK;

/* Expiry time of the first certificate in a PEM text. */
int hf_certificate_expiry(const char *cert_pem, hf_time *ret_expiry, struct hf_error *err)
	HF_MUST_CHECK;

#endif
