/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_CERTIFICATE_H
#define HF_HTTP_CERTIFICATE_H

#include "base/error.h"
#include "base/time.h"

#include <stddef.h>

/*
 * Certificates for a server on this machine: a CA of its own and what it signs,
 * as PEM texts.  ECDSA on P-256, SHA-256; serials and keys from the kernel's
 * randomness, so none of this belongs in a simulation.  Lists are NULL-terminated.
 */
struct hf_certificate {
	char *cert_pem;
	char *key_pem; /* PKCS #8; for files of mode 0600 */
};

void hf_certificate_release(struct hf_certificate *certificate); /* wipes the key */

struct hf_certificate_spec {
	const char *common_name;          /* NULL: the first of names */
	const char *const *names;         /* servers: host names and IP addresses; at most 32 */
	const char *const *organizations; /* clients: Kubernetes' groups; may be NULL; at most 16 */
	hf_time now;                      /* valid from an hour before (clocks differ) */
	hf_time valid_for;
};

/* A self-signed CA; needs a common name. */
int hf_certificate_make_ca(const struct hf_certificate_spec *spec, struct hf_certificate *ret_ca,
			   struct hf_error *err) HF_MUST_CHECK;
/* For a server, signed by the CA; needs names.  HF_E_INVALID for a CA that cannot be read, or
 * a common name that is the CA's own. */
int hf_certificate_make_server(const struct hf_certificate *ca,
			       const struct hf_certificate_spec *spec,
			       struct hf_certificate *ret_certificate, struct hf_error *err)
	HF_MUST_CHECK;
/* For a client, signed by the CA; the common name is the user. */
int hf_certificate_make_client(const struct hf_certificate *ca,
			       const struct hf_certificate_spec *spec,
			       struct hf_certificate *ret_certificate, struct hf_error *err)
	HF_MUST_CHECK;

/* HF_E_INVALID unless both are there, can be read and belong together. */
int hf_certificate_check(const char *cert_pem, const char *key_pem, struct hf_error *err)
	HF_MUST_CHECK;

/* What somebody hands over, part by part: HF_E_INVALID for what cannot be read (also keys that have a
 * passphrase or a curve that Go would not take either).  Certificates: one at least, and all of them. */
int hf_certificate_check_certs(const char *certs_pem, struct hf_error *err) HF_MUST_CHECK;
int hf_certificate_check_key(const char *key_pem, struct hf_error *err) HF_MUST_CHECK;
/* Of two that passed. */
int hf_certificate_check_pair(const char *cert_pem, const char *key_pem, struct hf_error *err)
	HF_MUST_CHECK;

/* When the first certificate of a PEM text ends: time to make a new one. */
int hf_certificate_expiry(const char *cert_pem, hf_time *ret_expiry, struct hf_error *err)
	HF_MUST_CHECK;

#endif
