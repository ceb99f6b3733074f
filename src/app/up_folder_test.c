/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/up_folder.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "harness/test.h"
#include "http/certificate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOW ((hf_time)1700000000 * HF_SECOND)

static char base[64];

static int setup(void **state)
{
	char *dir;

	(void)snprintf(base, sizeof(base), "/tmp/hf-home-XXXXXX");
	assert_non_null(mkdtemp(base));
	dir = hf_xasprintf("%s/deep/plane", base);
	*state = dir;
	return 0;
}

static int teardown(void **state)
{
	struct hf_error err;

	assert_ok(hf_fs_remove_tree(base, &err), &err);
	free(*state);
	return 0;
}

static void open_at(const char *dir, hf_time now, struct hf_up_folder *home)
{
	struct hf_error err;

	assert_ok(hf_up_folder_open(dir, now, home, &err), &err);
}

static unsigned mode_of(const char *dir, const char *name)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", dir, name);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 0777;
}

static void the_first_start_makes_what_clients_need(void **state)
{
	const char *dir = *state;
	struct hf_up_folder home;
	hf_time expiry;
	struct hf_error err;

	open_at(dir, NOW, &home);
	assert_int_equal(strlen(home.token), 64);
	assert_ok(hf_certificate_check(home.cert_pem, home.key_pem, &err), &err);
	assert_ok(hf_certificate_expiry(home.cert_pem, &expiry, &err), &err);
	assert_int_equal(expiry, NOW + 730 * HF_DAY);
	assert_int_equal(mode_of(dir, "."), 0700);
	assert_int_equal(mode_of(dir, "token"), 0600);
	assert_int_equal(mode_of(dir, "server-key.pem"), 0600);
	assert_int_equal(mode_of(dir, "up.pid"), 0600);
	hf_up_folder_release(&home);
}

static void the_next_start_finds_the_same(void **state)
{
	struct hf_up_folder first, second;

	open_at(*state, NOW, &first);
	HF_AUTOFREE char *token = hf_xstrdup(first.token);
	HF_AUTOFREE char *cert = hf_xstrdup(first.cert_pem);
	HF_AUTOFREE char *ca = hf_xstrdup(first.ca_pem);
	hf_up_folder_release(&first);
	open_at(*state, NOW + 600 * HF_DAY, &second);
	assert_string_equal(second.token, token);
	assert_string_equal(second.cert_pem, cert);
	assert_string_equal(second.ca_pem, ca);
	hf_up_folder_release(&second);
}

static void certificates_are_made_anew_before_they_end(void **state)
{
	struct hf_up_folder first, second;
	hf_time expiry;
	struct hf_error err;

	open_at(*state, NOW, &first);
	HF_AUTOFREE char *cert = hf_xstrdup(first.cert_pem);
	HF_AUTOFREE char *token = hf_xstrdup(first.token);
	hf_up_folder_release(&first);
	open_at(*state, NOW + 671 * HF_DAY, &second);
	assert_string_not_equal(second.cert_pem, cert);
	assert_string_equal(second.token, token);
	assert_ok(hf_certificate_expiry(second.cert_pem, &expiry, &err), &err);
	assert_int_equal(expiry, NOW + 1401 * HF_DAY);
	hf_up_folder_release(&second);
}

static void spoil(const char *dir, const char *name, const char *text)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", dir, name);
	struct hf_error err;

	assert_ok(hf_fs_write_atomic(path, text, strlen(text), 0600, &err), &err);
}

static void spoiled_files_are_made_anew(void **state)
{
	static const char *const names[] = {"ca.pem", "server.pem", "server-key.pem"};
	struct hf_up_folder home;
	struct hf_error err;

	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++) {
		open_at(*state, NOW, &home);
		hf_up_folder_release(&home);
		spoil(*state, names[i], "not a certificate");
		spoil(*state, "token", "short");
		open_at(*state, NOW, &home);
		assert_ok(hf_certificate_check(home.cert_pem, home.key_pem, &err), &err);
		assert_int_equal(strlen(home.token), 64);
		hf_up_folder_release(&home);
	}
}

static void one_at_a_time_works_in_a_folder(void **state)
{
	struct hf_up_folder home, second = {.lock = -7};
	HF_AUTOFREE char *wanted = NULL;
	bool running = false;
	pid_t pid = -1;
	struct hf_error err;

	assert_ok(hf_up_folder_is_locked(*state, &running, &pid, &err), &err);
	assert_false(running);
	open_at(*state, NOW, &home);
	assert_code(hf_up_folder_open(*state, NOW, &second, &err), HF_E_CONFLICT);
	assert_non_null(strstr(err.text, "another 'holdfast up' is just starting"));
	assert_int_equal(second.lock, -7);
	assert_ok(hf_up_folder_is_locked(*state, &running, &pid, &err), &err);
	assert_true(running);
	assert_int_equal(pid, 0); /* hf_up_folder_announce was not called yet */
	assert_ok(hf_up_folder_announce(&home, &err), &err);
	assert_ok(hf_up_folder_is_locked(*state, &running, &pid, &err), &err);
	assert_int_equal(pid, getpid());
	assert_code(hf_up_folder_open(*state, NOW, &second, &err), HF_E_CONFLICT);
	wanted = hf_xasprintf("is already running in '%s' (process %d)", (const char *)*state,
			      (int)getpid());
	assert_non_null(strstr(err.text, wanted));
	hf_up_folder_release(&home);
	assert_ok(hf_up_folder_is_locked(*state, &running, &pid, &err), &err);
	assert_false(running);
	assert_int_equal(pid, 0);
	open_at(*state, NOW, &home);
	hf_up_folder_release(&home);
}

static void the_kubeconfig_names_the_address_and_the_authority(void **state)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(65536);
	struct hf_up_folder home;
	struct hf_error err;

	open_at(*state, NOW, &home);
	assert_ok(hf_up_folder_write_kubeconfig(&home, "127.0.0.1", 7443, &err), &err);
	assert_ok(hf_fs_read(home.kubeconfig, &text, &err), &err);
	assert_non_null(strstr(text.data, "    server: https://127.0.0.1:7443\n"));
	assert_non_null(strstr(text.data, home.token));
	/* Every PEM file begins with these bytes. */
	assert_non_null(strstr(text.data, "certificate-authority-data: LS0tLS1CRUdJTi"));
	assert_int_equal(mode_of(*state, "kubeconfig"), 0600);
	assert_ok(hf_up_folder_write_kubeconfig(&home, "::1", 1, &err), &err);
	hf_strbuf_clear(&text);
	assert_ok(hf_fs_read(home.kubeconfig, &text, &err), &err);
	assert_non_null(strstr(text.data, "    server: https://[::1]:1\n"));
	hf_up_folder_release(&home);
}

static void a_folder_that_cannot_be_made_is_told(void **state)
{
	HF_AUTOFREE char *file = hf_xasprintf("%s/file", base);
	HF_AUTOFREE char *below = hf_xasprintf("%s/file/plane", base);
	struct hf_up_folder home = {.lock = -7};
	struct hf_error err = {.code = 0};
	bool running = true;
	pid_t pid;

	spoil(base, "file", "x");
	assert_int_not_equal(hf_up_folder_open(below, NOW, &home, &err), 0);
	assert_non_null(strstr(err.text, file));
	assert_int_equal(home.lock, -7);
	assert_ok(hf_up_folder_is_locked(below, &running, &pid, &err), &err);
	assert_false(running);
}

static void a_data_folder_is_absolute_and_not_empty(void **state)
{
	HF_AUTOFREE char *dir = NULL;
	HF_AUTOFREE char *relative = NULL;
	char *none = NULL;
	struct hf_error err;

	assert_ok(hf_up_folder_path("/a/b", &dir, &err), &err);
	assert_string_equal(dir, "/a/b");
	assert_int_equal(chdir(base), 0);
	assert_ok(hf_up_folder_path("x", &relative, &err), &err);
	assert_true(relative[0] == '/' && hf_str_has_prefix(strrchr(relative, '/'), "/x"));
	assert_int_equal(chdir("/"), 0);
	assert_code(hf_up_folder_path("", &none, &err), HF_E_INVALID);
	assert_null(none);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(the_first_start_makes_what_clients_need),
		UNIT(the_next_start_finds_the_same),
		UNIT(certificates_are_made_anew_before_they_end),
		UNIT(spoiled_files_are_made_anew),
		UNIT(one_at_a_time_works_in_a_folder),
		UNIT(the_kubeconfig_names_the_address_and_the_authority),
		UNIT(a_folder_that_cannot_be_made_is_told),
		UNIT(a_data_folder_is_absolute_and_not_empty),
	};

	return cmocka_run_group_tests_name("home", tests, NULL, NULL);
}
