/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of certificates with GnuTLS. client_test.c checks them with OpenSSL too, through curl. */
#include "harness/test.h"
#include "http/certificate.h"

#include "base/mem.h"
#include "base/str.h"

#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const server_names[] = {"localhost", "127.0.0.1", "::1", NULL};

static hf_time wall_now(void)
{
	return (hf_time)time(NULL) * HF_SECOND;
}

static struct hf_certificate make_ca(void)
{
	struct hf_certificate_spec spec = {
		.common_name = "test CA", .now = wall_now(), .valid_for = HF_DAY};
	struct hf_certificate ca;
	struct hf_error err = {0};

	assert_ok(hf_certificate_make_ca(&spec, &ca, &err), &err);
	return ca;
}

static gnutls_x509_crt_t parse_certificate(const char *pem)
{
	gnutls_datum_t text = {.data = (unsigned char *)(uintptr_t)pem,
			       .size = (unsigned)strlen(pem)};
	gnutls_x509_crt_t crt;

	assert_int_equal(gnutls_x509_crt_init(&crt), 0);
	assert_int_equal(gnutls_x509_crt_import(crt, &text, GNUTLS_X509_FMT_PEM), 0);
	return crt;
}

static void a_server_certificate_is_good_for_its_names_only(void **state)
{
	struct hf_certificate ca = make_ca(), server;
	struct hf_certificate_spec spec = {
		.names = server_names, .now = wall_now(), .valid_for = HF_HOUR};
	struct hf_error err = {0};
	unsigned verdict = 1;

	assert_ok(hf_certificate_make_server(&ca, &spec, &server, &err), &err);
	gnutls_x509_crt_t crt = parse_certificate(server.cert_pem),
			  issuer = parse_certificate(ca.cert_pem);
	assert_true(gnutls_x509_crt_check_hostname(crt, "localhost"));
	assert_true(gnutls_x509_crt_check_hostname(crt, "127.0.0.1"));
	assert_true(gnutls_x509_crt_check_hostname(crt, "::1"));
	assert_false(gnutls_x509_crt_check_hostname(crt, "example.org"));
	assert_int_equal(gnutls_x509_crt_verify(crt, &issuer, 1, 0, &verdict), 0);
	assert_int_equal(verdict, 0);
	assert_int_equal(gnutls_x509_crt_get_ca_status(crt, NULL), 0);
	assert_true(gnutls_x509_crt_get_ca_status(issuer, NULL) > 0);
	assert_ok(hf_certificate_check(server.cert_pem, server.key_pem, &err), &err);
	gnutls_x509_crt_deinit(crt);
	gnutls_x509_crt_deinit(issuer);
	hf_certificate_release(&server);
	hf_certificate_release(&ca);
}

static void a_client_certificate_names_user_and_groups(void **state)
{
	static const char *const groups[] = {"system:masters", "team", NULL};
	struct hf_certificate ca = make_ca(), client;
	struct hf_certificate_spec spec = {.common_name = "admin",
					   .organizations = groups,
					   .now = wall_now(),
					   .valid_for = HF_HOUR};
	struct hf_error err = {0};
	char text[128];
	size_t size = sizeof(text);

	assert_ok(hf_certificate_make_client(&ca, &spec, &client, &err), &err);
	gnutls_x509_crt_t crt = parse_certificate(client.cert_pem);
	assert_int_equal(
		gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0, text, &size),
		0);
	assert_string_equal(text, "admin");
	size = sizeof(text);
	assert_int_equal(gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_ORGANIZATION_NAME, 1, 0,
						       text, &size),
			 0);
	assert_true(strcmp(text, "team") == 0 || strcmp(text, "system:masters") == 0);
	size = sizeof(text);
	assert_int_equal(gnutls_x509_crt_get_key_purpose_oid(crt, 0, text, &size, NULL), 0);
	assert_string_equal(text, GNUTLS_KP_TLS_WWW_CLIENT);
	gnutls_x509_crt_deinit(crt);
	hf_certificate_release(&client);
	hf_certificate_release(&ca);
}

static void validity_is_as_asked_and_serials_differ(void **state)
{
	struct hf_certificate_spec spec = {
		.common_name = "one", .now = 1000000 * HF_SECOND, .valid_for = 500 * HF_SECOND};
	struct hf_certificate one, two;
	struct hf_error err = {0};
	hf_time expiry = 0;
	unsigned char serials[2][32];
	size_t sizes[2] = {32, 32};

	assert_ok(hf_certificate_make_ca(&spec, &one, &err), &err);
	assert_ok(hf_certificate_make_ca(&spec, &two, &err), &err);
	assert_ok(hf_certificate_expiry(one.cert_pem, &expiry, &err), &err);
	assert_int_equal(expiry, 1000500 * HF_SECOND);
	gnutls_x509_crt_t a = parse_certificate(one.cert_pem), b = parse_certificate(two.cert_pem);
	assert_int_equal(gnutls_x509_crt_get_activation_time(a), 1000000 - 3600);
	assert_int_equal(gnutls_x509_crt_get_serial(a, serials[0], &sizes[0]), 0);
	assert_int_equal(gnutls_x509_crt_get_serial(b, serials[1], &sizes[1]), 0);
	assert_int_equal(sizes[0], 16);
	assert_true(memcmp(serials[0], serials[1], 16) != 0);
	gnutls_x509_crt_deinit(a);
	gnutls_x509_crt_deinit(b);
	hf_certificate_release(&one);
	hf_certificate_release(&two);
}

static void a_mismatch_of_certificate_and_key_is_found(void **state)
{
	struct hf_certificate one = make_ca(), two = make_ca(), made = {0};
	struct hf_certificate broken = {.cert_pem = one.cert_pem, .key_pem = (char[]){"no key"}};
	struct hf_certificate_spec spec = {
		.names = server_names, .now = wall_now(), .valid_for = HF_DAY};
	struct hf_error err = {0};
	hf_time expiry;

	assert_code(hf_certificate_check(one.cert_pem, two.key_pem, &err), HF_E_INVALID);
	assert_code(hf_certificate_check(one.cert_pem, NULL, &err), HF_E_INVALID);
	assert_code(hf_certificate_check("", one.key_pem, &err), HF_E_INVALID);
	assert_code(hf_certificate_check("rubbish", "rubbish", &err), HF_E_INVALID);
	assert_code(hf_certificate_expiry("rubbish", &expiry, &err), HF_E_INVALID);
	assert_code(hf_certificate_make_server(&broken, &spec, &made, &err), HF_E_INVALID);
	assert_null(made.cert_pem);
	/* The name of the CA: a verifier would take the certificate for self-signed. */
	spec.common_name = "test CA";
	assert_code(hf_certificate_make_server(&one, &spec, &made, &err), HF_E_INVALID);
	assert_null(made.cert_pem);
	hf_certificate_release(&one);
	hf_certificate_release(&two);
}

static void supplied_certificates_and_keys_are_checked_separately(void **state)
{
	struct hf_certificate one = make_ca(), two = make_ca();
	HF_AUTOFREE char *both =
		hf_xasprintf("what it is for\n%s\n%s%s", one.cert_pem, two.cert_pem, one.key_pem);
	HF_AUTOFREE char *one_bad = hf_xasprintf("%s-----BEGIN CERTIFICATE-----\nZ2FyYmFnZQ==\n"
						 "-----END CERTIFICATE-----\n",
						 one.cert_pem);
	struct hf_error err = {0};

	assert_ok(hf_certificate_check_certs(one.cert_pem, &err), &err);
	assert_ok(hf_certificate_check_certs(both, &err), &err);
	assert_ok(hf_certificate_check_key(one.key_pem, &err), &err);
	assert_ok(hf_certificate_check_key(both, &err), &err);
	assert_ok(hf_certificate_check_pair(both, both, &err), &err);
	assert_code(hf_certificate_check_certs("garbage", &err), HF_E_INVALID);
	assert_code(hf_certificate_check_certs("", &err), HF_E_INVALID);
	assert_code(hf_certificate_check_certs(one.key_pem, &err), HF_E_INVALID);
	assert_string_equal(err.text, "holds no certificate in PEM");
	assert_code(hf_certificate_check_certs(one_bad, &err), HF_E_INVALID);
	assert_true(hf_str_has_prefix(err.text, "certificate 2 cannot be read: "));
	assert_code(hf_certificate_check_certs("-----BEGIN CERTIFICATE-----", &err), HF_E_INVALID);
	assert_code(hf_certificate_check_key("garbage", &err), HF_E_INVALID);
	assert_code(hf_certificate_check_key(one.cert_pem, &err), HF_E_INVALID);
	assert_code(hf_certificate_check_pair(one.cert_pem, two.key_pem, &err), HF_E_INVALID);
	hf_certificate_release(&one);
	hf_certificate_release(&two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_certificate_is_good_for_its_names_only),
		cmocka_unit_test(a_client_certificate_names_user_and_groups),
		cmocka_unit_test(validity_is_as_asked_and_serials_differ),
		cmocka_unit_test(a_mismatch_of_certificate_and_key_is_found),
		cmocka_unit_test(supplied_certificates_and_keys_are_checked_separately),
	};
	return cmocka_run_group_tests_name("certificate", tests, NULL, NULL);
}
