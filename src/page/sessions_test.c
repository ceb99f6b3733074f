/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "page/sessions.h"

#include "base/mem.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

static struct hf_page_session *add(struct hf_page_sessions *sessions, unsigned number, hf_time now)
{
	char key[HF_PAGE_KEY_TEXT];

	snprintf(key, sizeof(key), "%0*x", HF_PAGE_KEY_DIGITS, number);
	return hf_page_sessions_add(sessions, key, "ada", now);
}

static char *cookie_of(const struct hf_page_session *session)
{
	return hf_xasprintf("theme=dark; " HF_PAGE_COOKIE "8082=%s; other=1", session->key);
}

static void a_session_is_found_by_its_cookie(void **state)
{
	struct hf_page_sessions *sessions = hf_page_sessions_create(8082);
	struct hf_page_session *session = add(sessions, 1, 0);
	HF_AUTOFREE char *cookie = cookie_of(session);

	assert_ptr_equal(hf_page_sessions_find(sessions, cookie, HF_SECOND), session);
	assert_null(hf_page_sessions_find(sessions, NULL, HF_SECOND));
	assert_null(hf_page_sessions_find(sessions, HF_PAGE_COOKIE "8082=", HF_SECOND));
	assert_null(hf_page_sessions_find(sessions, HF_PAGE_COOKIE "8082=1234", HF_SECOND));
	cookie[strlen("theme=dark; " HF_PAGE_COOKIE "8082=")] ^= 1;
	assert_null(hf_page_sessions_find(sessions, cookie, HF_SECOND));
	hf_page_sessions_destroy(sessions);
}

static void a_session_ends_after_its_life_and_when_it_is_closed(void **state)
{
	struct hf_page_sessions *sessions = hf_page_sessions_create(8082);
	struct hf_page_session *session = hf_page_session_ref(add(sessions, 1, 0));
	HF_AUTOFREE char *cookie = cookie_of(session);

	assert_non_null(hf_page_sessions_find(sessions, cookie, HF_PAGE_SESSION_LIFE - 1));
	assert_null(hf_page_sessions_find(sessions, cookie, HF_PAGE_SESSION_LIFE));
	assert_true(session->closed);
	hf_page_session_unref(session);
	session = hf_page_session_ref(add(sessions, 2, 0));
	hf_page_sessions_close(sessions, session);
	hf_page_sessions_close(sessions, session);
	assert_int_equal(hf_page_sessions_len(sessions), 0);
	hf_page_session_unref(session);
	hf_page_sessions_destroy(sessions);
}

static void a_full_table_drops_the_session_that_was_not_used_for_longest(void **state)
{
	struct hf_page_sessions *sessions = hf_page_sessions_create(8082);
	struct hf_page_session *first = add(sessions, 0, 0), *second = add(sessions, 1, 1);
	HF_AUTOFREE char *cookie = cookie_of(first);
	HF_AUTOFREE char *lost = cookie_of(second);

	for (unsigned i = 2; i < HF_PAGE_SESSIONS_MAX; i++)
		add(sessions, i, 2);
	assert_non_null(hf_page_sessions_find(sessions, cookie, 3));
	add(sessions, HF_PAGE_SESSIONS_MAX, 4);
	assert_int_equal(hf_page_sessions_len(sessions), HF_PAGE_SESSIONS_MAX);
	assert_non_null(hf_page_sessions_find(sessions, cookie, 5));
	assert_null(hf_page_sessions_find(sessions, lost, 5));
	hf_page_sessions_destroy(sessions);
}

static void rights_are_by_kind_and_namespace(void **state)
{
	struct hf_page_sessions *sessions = hf_page_sessions_create(8082);
	struct hf_page_session *session = add(sessions, 1, 0);

	assert_false(hf_page_session_may(session, "pytorchjobs", "team-a"));
	hf_page_session_grant(session, "pytorchjobs", "team-a")->right = HF_PAGE_RIGHT_ALLOWED;
	assert_true(hf_page_session_may(session, "pytorchjobs", "team-a"));
	assert_false(hf_page_session_may(session, "pytorchjobs", "team-b"));
	assert_false(hf_page_session_may(session, "tfjobs", "team-a"));
	assert_false(hf_page_session_may(session, "pytorchjobs", ""));
	hf_page_session_grant(session, "tfjobs", "")->right = HF_PAGE_RIGHT_ALLOWED;
	assert_true(hf_page_session_may(session, "tfjobs", "team-b"));
	hf_page_session_grant(session, "tfjobs", "")->right = HF_PAGE_RIGHT_DENIED;
	assert_false(hf_page_session_may(session, "tfjobs", "team-b"));
	session->all = true;
	assert_true(hf_page_session_may(session, "tfjobs", "team-b"));
	hf_page_sessions_destroy(sessions);
}

static void a_session_has_a_limit_of_rights(void **state)
{
	struct hf_page_sessions *sessions = hf_page_sessions_create(8082);
	struct hf_page_session *session = add(sessions, 1, 0);

	for (int i = 0; i < HF_PAGE_RIGHTS_MAX; i++) {
		HF_AUTOFREE char *ns = hf_xasprintf("ns-%d", i);

		assert_non_null(hf_page_session_grant(session, "pytorchjobs", ns));
	}
	assert_null(hf_page_session_grant(session, "pytorchjobs", "one-more"));
	hf_page_sessions_destroy(sessions);
}

static void a_cookie_is_read_from_anywhere_in_the_header(void **state)
{
	char value[8];

	assert_true(hf_page_cookie("a=1; b=22; c=", "b", value, sizeof(value)));
	assert_string_equal(value, "22");
	assert_true(hf_page_cookie("a=1; b=22; c=", "c", value, sizeof(value)));
	assert_string_equal(value, "");
	assert_false(hf_page_cookie("ab=1", "b", value, sizeof(value)));
	assert_false(hf_page_cookie("b=12345678", "b", value, sizeof(value)));
	assert_false(hf_page_cookie(";;; ;b", "b", value, sizeof(value)));
	assert_false(hf_page_cookie("", "b", value, sizeof(value)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_session_is_found_by_its_cookie),
		cmocka_unit_test(a_session_ends_after_its_life_and_when_it_is_closed),
		cmocka_unit_test(a_full_table_drops_the_session_that_was_not_used_for_longest),
		cmocka_unit_test(rights_are_by_kind_and_namespace),
		cmocka_unit_test(a_session_has_a_limit_of_rights),
		cmocka_unit_test(a_cookie_is_read_from_anywhere_in_the_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
