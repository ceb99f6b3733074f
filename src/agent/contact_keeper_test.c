/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/contact_keeper.h"
#include "base/fs.h"
#include "harness/fake_store.h"
#include "harness/test.h"
#include "health/contact.h"
#include "loop/loop.h"
#include "store/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOT "11111111-2222"

static struct {
	struct hf_loop *loop;
	struct fake_store *store;
	struct hf_contact_keeper *keeper;
	char dir[64], path[96];
	int troubles, mended;
} t;

/* The clock of the boot is ahead of the loop's clock, because the machine has slept for an hour. */
static hf_time boot_clock(void *arg)
{
	return hf_loop_mono(t.loop) + HF_HOUR;
}

static void on_trouble(void *arg, const char *message)
{
	if (message == NULL)
		t.mended++;
	else
		t.troubles++;
}

static int make(void **state)
{
	struct hf_contact_keeper_options options;

	memset(&t, 0, sizeof(t));
	t.loop = hf_loop_create_virtual(HF_DAY);
	t.store = fake_store_create();
	snprintf(t.dir, sizeof(t.dir), "/tmp/hf-contact-XXXXXX");
	assert_non_null(mkdtemp(t.dir));
	snprintf(t.path, sizeof(t.path), "%s/contact", t.dir);
	options = (struct hf_contact_keeper_options){.loop = t.loop,
						     .store = &t.store->base,
						     .node = "n1",
						     .boot_id = BOOT,
						     .path = t.path,
						     .clock = boot_clock,
						     .trouble = on_trouble};
	t.keeper = hf_contact_keeper_create(&options);
	return 0;
}

static int unmake(void **state)
{
	hf_contact_keeper_destroy(t.keeper);
	fake_store_destroy(t.store);
	hf_loop_destroy(t.loop);
	(void)unlink(t.path);
	(void)rmdir(t.dir);
	return 0;
}

/* Waits for the next read of the Lease; NULL: none within half a minute. */
static struct fake_call *look(hf_time *ret_asked_at)
{
	struct fake_call *call = NULL;

	hf_loop_run_until(t.loop, hf_loop_mono(t.loop));
	for (int i = 0; i < 300 && (call = fake_next(t.store)) == NULL; i++)
		hf_loop_run_until(t.loop, hf_loop_mono(t.loop) + HF_SECOND / 10);
	if (call == NULL)
		return NULL;
	assert_true(call->request->verb == HF_VERB_GET && call->request->resource == &hf_leases);
	assert_string_equal(call->request->ns, "kube-node-lease");
	assert_string_equal(call->request->name, "n1");
	*ret_asked_at = boot_clock(NULL);
	return call;
}

static void answer(struct fake_call *call, int renewal)
{
	static int written;
	char text[160];

	/* Each read returns a new resourceVersion. A new resourceVersion alone is no renewal. */
	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"resourceVersion\":\"%d\"},\"spec\":{\"renewTime\":"
		 "\"1970-01-01T00:00:%02d.000000Z\"}}",
		 ++written, renewal);
	fake_answer_object(call, hf_doc_from_text(text, strlen(text)));
}

/* When it was asked for. */
static hf_time see(int renewal)
{
	hf_time asked_at = 0;
	struct fake_call *call = look(&asked_at);

	assert_non_null(call);
	answer(call, renewal);
	return asked_at;
}

/* The time in the record file; NONE: the file cannot be read. */
static hf_time recorded(void)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
	struct hf_contact contact;

	if (hf_fs_read(t.path, &text, NULL) != 0)
		return HF_TIME_NONE;
	assert_true(hf_contact_parse(text.data, text.len, &contact));
	assert_string_equal(contact.boot_id, BOOT);
	return (hf_time)contact.at_ms * HF_MS;
}

static void assert_recorded(hf_time at)
{
	assert_true(recorded() == at / HF_MS * HF_MS);
}

static void nothing_is_read_unless_it_is_wanted(void **state)
{
	hf_time at;

	assert_null(look(&at));
	hf_contact_keeper_want(t.keeper, true);
	see(1);
	hf_contact_keeper_want(t.keeper, false);
	assert_null(look(&at));
}

static void a_lease_that_is_seen_for_the_first_time_is_of_no_known_age(void **state)
{
	hf_contact_keeper_want(t.keeper, true);
	for (int i = 0; i < 30; i++)
		see(7);
	assert_true(recorded() == HF_TIME_NONE);
}

static void contact_is_when_the_older_lease_was_asked_for(void **state)
{
	hf_time older, newer;

	hf_contact_keeper_want(t.keeper, true);
	see(7);
	older = see(7);
	newer = see(8);
	assert_true(newer > older);
	assert_recorded(older);
	/* The same again is no contact. */
	newer = see(8);
	see(8);
	assert_recorded(older);
	newer = see(8);
	see(9);
	assert_recorded(newer);
}

static void the_lease_is_read_often_until_the_first_contact(void **state)
{
	hf_time a, b;

	hf_contact_keeper_want(t.keeper, true);
	a = see(7);
	b = see(7);
	assert_true(b - a <= HF_CONTACT_KEEPER_FIRST_LOOK_EVERY + HF_SECOND / 10);
	see(8);
	a = see(8);
	b = see(8);
	assert_true(b - a >= HF_CONTACT_KEEPER_LOOK_EVERY);
}

static void what_is_refused_or_never_answered_is_no_contact(void **state)
{
	hf_time older, at;

	hf_contact_keeper_want(t.keeper, true);
	older = see(7);
	for (int i = 0; i < 20; i++)
		fake_refuse(look(&at), i % 2 ? HF_E_UNAVAILABLE : HF_E_NOT_FOUND);
	assert_true(recorded() == HF_TIME_NONE);
	/* The kubelet has renewed the Lease at some time since the last read: the record has the earliest possible
	 * time. */
	see(8);
	assert_recorded(older);
}

static void whoever_was_not_looking_knows_nothing_of_the_time_between(void **state)
{
	hf_time older, first;

	hf_contact_keeper_want(t.keeper, true);
	older = see(7);
	see(8);
	hf_contact_keeper_want(t.keeper, false);
	hf_loop_run_until(t.loop, hf_loop_mono(t.loop) + HF_HOUR);
	hf_contact_keeper_want(t.keeper, true);
	first = see(9);
	assert_recorded(older);
	see(10);
	assert_recorded(first);
}

static void every_user_may_read_the_record(void **state)
{
	struct stat st;

	hf_contact_keeper_want(t.keeper, true);
	see(7);
	see(8);
	assert_int_equal(stat(t.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
}

static void a_record_that_cannot_be_written_is_told_once(void **state)
{
	hf_contact_keeper_want(t.keeper, true);
	assert_int_equal(rmdir(t.dir), 0);
	for (int i = 0; i < 4; i++)
		see(i);
	assert_int_equal(t.troubles, 1);
	assert_int_equal(mkdir(t.dir, 0700), 0);
	see(5);
	see(6);
	assert_int_equal(t.troubles, 1);
	assert_int_equal(t.mended, 1);
	assert_true(recorded() != HF_TIME_NONE);
}

static void a_look_under_way_is_dropped_with_it(void **state)
{
	hf_time at;
	struct fake_call *call;

	hf_contact_keeper_want(t.keeper, true);
	call = look(&at);
	hf_contact_keeper_want(t.keeper, false);
	assert_true(call->canceled);
}

#define T(name) cmocka_unit_test_setup_teardown(name, make, unmake)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(nothing_is_read_unless_it_is_wanted),
		T(a_lease_that_is_seen_for_the_first_time_is_of_no_known_age),
		T(contact_is_when_the_older_lease_was_asked_for),
		T(the_lease_is_read_often_until_the_first_contact),
		T(what_is_refused_or_never_answered_is_no_contact),
		T(whoever_was_not_looking_knows_nothing_of_the_time_between),
		T(every_user_may_read_the_record),
		T(a_record_that_cannot_be_written_is_told_once),
		T(a_look_under_way_is_dropped_with_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
