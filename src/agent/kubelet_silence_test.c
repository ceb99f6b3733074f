/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/kubelet_silence.h"
#include "base/str.h"
#include "harness/fake_store.h"
#include "harness/test.h"
#include "loop/loop.h"
#include "store/resource.h"

#include <stdio.h>
#include <string.h>

static struct {
	struct hf_loop *loop;
	struct fake_store *store;
	struct hf_kubelet_silence *silence;
	int still;
} t;

static void on_still(void *arg)
{
	t.still++;
}

static int make(void **state)
{
	struct hf_kubelet_silence_options options;

	memset(&t, 0, sizeof(t));
	t.loop = hf_loop_create_virtual(HF_DAY);
	t.store = fake_store_create();
	options = (struct hf_kubelet_silence_options){
		.loop = t.loop, .store = &t.store->base, .node = "n1", .still = on_still};
	t.silence = hf_kubelet_silence_create(&options);
	return 0;
}

static int unmake(void **state)
{
	hf_kubelet_silence_destroy(t.silence);
	fake_store_destroy(t.store);
	hf_loop_destroy(t.loop);
	return 0;
}

/* Makes the next read, and answers with this renewal; 0: expects that no read comes; -1: the API server refuses. */
static bool look(int renewal)
{
	static int written;
	struct fake_call *call;
	char text[160];

	hf_loop_run_until(t.loop, hf_loop_mono(t.loop) + HF_KUBELET_SILENCE_LOOK_EVERY);
	call = fake_next(t.store);
	if (call == NULL)
		return false;
	assert_true(call->request->verb == HF_VERB_GET && call->request->resource == &hf_leases);
	assert_string_equal(call->request->ns, "kube-node-lease");
	assert_string_equal(call->request->name, "n1");
	if (renewal < 0) {
		fake_refuse(call, HF_E_UNAVAILABLE);
	} else {
		/* Each read returns a new resourceVersion. A new resourceVersion alone is no
		 * renewal. */
		snprintf(text, sizeof(text),
			 "{\"metadata\":{\"resourceVersion\":\"%d\"},\"spec\":{\"renewTime\":"
			 "\"1970-01-01T00:00:%02d.000000Z\"}}",
			 ++written, renewal);
		fake_answer_object(call, hf_doc_from_text(text, strlen(text)));
	}
	return true;
}

static void nothing_is_read_unless_it_is_wanted(void **state)
{
	assert_false(look(1));
	hf_kubelet_silence_want(t.silence, true);
	assert_true(look(1));
	hf_kubelet_silence_want(t.silence, false);
	assert_false(look(1));
}

static void a_lease_that_moves_is_no_silence(void **state)
{
	hf_kubelet_silence_want(t.silence, true);
	for (int i = 1; i < 20; i++)
		assert_true(look(i));
	assert_int_equal(t.still, 0);
}

static void a_lease_that_stands_still_is_told_at_each_look(void **state)
{
	hf_kubelet_silence_want(t.silence, true);
	for (int i = 0; i < 3; i++)
		assert_true(look(7));
	assert_int_equal(t.still, 0);
	for (int i = 0; i < 3; i++)
		assert_true(look(7));
	assert_int_equal(t.still, 3);
	assert_true(look(8));
	assert_true(look(8));
	assert_int_equal(t.still, 3);
}

static void an_agent_that_is_cut_off_itself_concludes_nothing(void **state)
{
	hf_kubelet_silence_want(t.silence, true);
	assert_true(look(7));
	for (int i = 0; i < 10; i++)
		assert_true(look(-1));
	assert_int_equal(t.still, 0);
}

static void a_look_under_way_is_dropped_with_it(void **state)
{
	hf_kubelet_silence_want(t.silence, true);
	hf_loop_run_until(t.loop, hf_loop_mono(t.loop) + HF_KUBELET_SILENCE_LOOK_EVERY);
	hf_kubelet_silence_want(t.silence, false);
	assert_true(fake_next(t.store)->canceled);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_read_unless_it_is_wanted, make, unmake),
		cmocka_unit_test_setup_teardown(a_lease_that_moves_is_no_silence, make, unmake),
		cmocka_unit_test_setup_teardown(a_lease_that_stands_still_is_told_at_each_look,
						make, unmake),
		cmocka_unit_test_setup_teardown(an_agent_that_is_cut_off_itself_concludes_nothing,
						make, unmake),
		cmocka_unit_test_setup_teardown(a_look_under_way_is_dropped_with_it, make, unmake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
