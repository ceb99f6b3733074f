/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/holders.h"

#include "base/str.h"
#include "harness/fake_store.h"
#include "harness/test.h"
#include "json/json.h"

#include <stdio.h>
#include <string.h>

struct world {
	struct hf_loop *loop;
	struct fake_store *store;
	struct hf_holders *holders;
	int ended, changed, asked;
};

static hf_time now_of(void *arg)
{
	const struct world *w = arg;

	return hf_loop_mono(w->loop);
}

static void on_ended(void *arg)
{
	struct world *w = arg;

	w->ended++;
}

static void on_ask(void *arg)
{
	struct world *w = arg;

	w->asked++;
}

static void on_changed(void *arg)
{
	struct world *w = arg;

	w->changed++;
}

static void on_problem(void *arg, int code, const char *message)
{
}

static struct hf_doc *pod(const char *name, const char *uid, int version, const char *status)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"d\",\"uid\":\"%s\","
		 "\"resourceVersion\":\"%d\"},\"status\":{%s}}",
		 name, uid, version, status);
	return hf_doc_from_text(text, strlen(text));
}

static int setup(void **state)
{
	static struct world w;
	struct hf_holders_options options = {.node = "n1",
					     .seed = 5,
					     .now = now_of,
					     .ended = on_ended,
					     .ask = on_ask,
					     .changed = on_changed,
					     .problem = on_problem,
					     .arg = &w};
	struct hf_doc *list[] = {pod("a", "uid-a", 1, "")};
	struct fake_call *call;

	memset(&w, 0, sizeof(w));
	w.loop = options.loop = hf_loop_create_virtual(0);
	w.store = fake_store_create();
	options.store = &w.store->base;
	w.holders = hf_holders_create(&options);
	hf_holders_start(w.holders);
	assert_true(hf_loop_run_until(w.loop, HF_SECOND));
	call = fake_next(w.store);
	assert_string_equal(call->request->field_selector, "spec.nodeName=n1");
	fake_answer_list(call, "2", "", list, 1);
	assert_true(hf_loop_run_until(w.loop, 2 * HF_SECOND));
	/* The pods of the first list from the API server are a reason to ask the kubelet too. */
	assert_int_equal(w.asked, 1);
	w.asked = 0;
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	hf_holders_destroy(w->holders);
	fake_store_destroy(w->store);
	hf_loop_destroy(w->loop);
	return 0;
}

static struct hf_holding holding(const char *name, const char *id)
{
	struct hf_holding h;

	memset(&h, 0, sizeof(h));
	snprintf(h.ns, sizeof(h.ns), "d");
	snprintf(h.pod, sizeof(h.pod), "%s", name);
	snprintf(h.container, sizeof(h.container), "c");
	snprintf(h.id, sizeof(h.id), "%s", id);
	return h;
}

/* The kubelet answers, with this list, a question that was sent now. */
static void kubelet_says(struct world *w, const struct hf_holding *items, size_t len)
{
	hf_holders_update(w->holders, &(struct hf_holdings){.items = items,
							    .len = len,
							    .asked_at = hf_loop_mono(w->loop),
							    .known = true});
}

static void a_uid_is_found_before_or_after_the_kubelet_names_the_pod(void **state)
{
	struct world *w = *state;
	const struct hf_holding two[] = {holding("a", "gpu-0"), holding("b", "gpu-1")};
	const struct hf_holder *items;
	uint64_t version;
	size_t len;

	kubelet_says(w, two, 2);
	items = hf_holders_list(w->holders, &len);
	assert_int_equal(len, 2);
	assert_string_equal(items[0].uid, "uid-a");
	assert_string_equal(items[1].uid, "");
	assert_null(hf_holders_pod(w->holders, &items[1]));
	version = hf_holders_version(w->holders);
	assert_true(hf_loop_run_until(w->loop, 3 * HF_SECOND));
	fake_event(fake_watch_live(w->store), HF_EVENT_ADDED, pod("b", "uid-b", 3, ""));
	/* The kubelet may have meant the former pod of this name, until the kubelet lists the name again. */
	assert_int_equal(w->asked, 1);
	assert_string_equal(hf_holders_list(w->holders, &len)[1].uid, "");
	kubelet_says(w, two, 2);
	items = hf_holders_list(w->holders, &len);
	assert_int_equal(len, 2);
	assert_string_equal(items[1].uid, "uid-b");
	assert_non_null(hf_holders_pod(w->holders, &items[1]));
	assert_int_equal(hf_holders_version(w->holders), version + 1);
}

static void a_word_that_is_older_than_a_pod_says_nothing_of_it(void **state)
{
	struct world *w = *state;
	struct fake_watch *watch = fake_watch_live(w->store);
	const struct hf_holding one = holding("a", "gpu-0"), other = holding("a", "gpu-1");
	struct hf_holdings stale = {
		.items = &one, .len = 1, .asked_at = 2 * HF_SECOND, .known = true};
	const struct hf_holder *items;
	size_t len;

	kubelet_says(w, &one, 1);
	assert_true(hf_loop_run_until(w->loop, 3 * HF_SECOND));
	fake_event(watch, HF_EVENT_DELETED, pod("a", "uid-a", 3, ""));
	fake_event(watch, HF_EVENT_ADDED, pod("a", "uid-new", 4, ""));
	assert_int_equal(w->asked, 1);
	fake_event(watch, HF_EVENT_MODIFIED, pod("a", "uid-new", 5, ""));
	hf_holders_update(w->holders, &stale);
	items = hf_holders_list(w->holders, &len);
	assert_int_equal(len, 1);
	assert_string_equal(items[0].uid, "uid-a");
	/* The question was sent before the pod existed, so the answer is about a former pod of the same name. */
	stale.items = &other;
	hf_holders_update(w->holders, &stale);
	items = hf_holders_list(w->holders, &len);
	assert_int_equal(len, 2);
	assert_true(items[0].until == 3 * HF_SECOND);
	assert_string_equal(items[1].uid, "");
	assert_true(hf_loop_run_until(w->loop, 4 * HF_SECOND));
	kubelet_says(w, &other, 1);
	items = hf_holders_list(w->holders, &len);
	assert_int_equal(len, 2);
	assert_string_equal(items[1].uid, "uid-new");
}

static void what_the_kubelet_no_longer_names_has_ended_unless_it_could_not_tell_all(void **state)
{
	struct world *w = *state;
	const struct hf_holding one = holding("a", "gpu-0");
	const struct hf_holder *items;
	size_t len;

	kubelet_says(w, &one, 1);
	hf_holders_update(w->holders, &(struct hf_holdings){.known = false});
	hf_holders_update(w->holders, &(struct hf_holdings){.asked_at = hf_loop_mono(w->loop),
							    .known = true,
							    .cut = true});
	items = hf_holders_list(w->holders, &len);
	assert_true(items[0].until == HF_TIME_NONE);
	kubelet_says(w, NULL, 0);
	items = hf_holders_list(w->holders, &len);
	assert_true(items[0].until == 2 * HF_SECOND);
	/* The pod holds the device again: that is another entry, and the end of the first holding stays. */
	kubelet_says(w, &one, 1);
	items = hf_holders_list(w->holders, &len);
	assert_int_equal(len, 2);
	assert_true(hf_loop_run_until(w->loop, 2 * HF_HOUR));
	items = hf_holders_list(w->holders, &len);
	assert_int_equal(len, 1);
	assert_true(items[0].until == HF_TIME_NONE);
}

/* Kubelets before 1.34 name a pod that has ended until it is deleted or another pod gets its device. */
static void a_pod_that_has_ended_holds_nothing_although_the_kubelet_names_it(void **state)
{
	static const char *const phases[] = {"\"phase\":\"Succeeded\"", "\"phase\":\"Failed\""};
	struct world *w = *state;
	const struct hf_holding two[] = {holding("a", "gpu-0"), holding("b", "gpu-1")};
	struct fake_watch *watch = fake_watch_live(w->store);
	const struct hf_holder *items;
	size_t len;

	kubelet_says(w, two, 1);
	fake_event(watch, HF_EVENT_MODIFIED, pod("a", "uid-a", 3, phases[0]));
	assert_int_equal(w->asked, 1);
	kubelet_says(w, two, 1);
	items = hf_holders_list(w->holders, &len);
	assert_int_equal(len, 1);
	assert_true(items[0].until == 2 * HF_SECOND);
	/* The agent has started after the end of the pod. */
	fake_event(watch, HF_EVENT_ADDED, pod("b", "uid-b", 4, phases[1]));
	kubelet_says(w, two, 2);
	(void)hf_holders_list(w->holders, &len);
	assert_int_equal(len, 1);
	/* Another pod has the name. */
	fake_event(watch, HF_EVENT_DELETED, pod("b", "uid-b", 5, phases[1]));
	fake_event(watch, HF_EVENT_ADDED, pod("b", "uid-new", 6, "\"phase\":\"Running\""));
	kubelet_says(w, two, 2);
	items = hf_holders_list(w->holders, &len);
	assert_int_equal(len, 2);
	assert_string_equal(items[1].uid, "uid-new");
	assert_true(items[1].until == HF_TIME_NONE);
}

static void the_pod_of_a_daemonset_is_known_as_such(void **state)
{
	static const char text[] =
		"{\"metadata\":{\"name\":\"b\",\"namespace\":\"d\",\"uid\":\"uid-b\","
		"\"resourceVersion\":\"3\",\"ownerReferences\":[{\"kind\":\"DaemonSet\",\"name\":"
		"\"m\",\"uid\":\"u\",\"controller\":true}]}}";
	struct world *w = *state;
	const struct hf_holding two[] = {holding("a", "gpu-0"), holding("b", "gpu-0")};
	const struct hf_holder *items;
	size_t len;

	fake_event(fake_watch_live(w->store), HF_EVENT_ADDED, hf_doc_from_text(text, strlen(text)));
	kubelet_says(w, two, 2);
	items = hf_holders_list(w->holders, &len);
	assert_int_equal(len, 2);
	assert_false(items[0].of_node);
	assert_true(items[1].of_node);
}

static void the_end_of_a_container_counts_where_the_pod_holds_something(void **state)
{
	static const char over[] = "\"containerStatuses\":[{\"restartCount\":0,\"state\":"
				   "{\"terminated\":{\"exitCode\":1}}}]";
	static const char again[] = "\"containerStatuses\":[{\"restartCount\":2,\"state\":"
				    "{\"running\":{}}}]";
	struct world *w = *state;
	const struct hf_holding one = holding("a", "gpu-0");
	struct fake_watch *watch = fake_watch_live(w->store);

	fake_event(watch, HF_EVENT_ADDED, pod("b", "uid-b", 3, ""));
	fake_event(watch, HF_EVENT_MODIFIED, pod("b", "uid-b", 4, over));
	assert_int_equal(w->ended, 0);
	kubelet_says(w, &one, 1);
	fake_event(watch, HF_EVENT_MODIFIED, pod("a", "uid-a", 5, "\"phase\":\"Running\""));
	assert_int_equal(w->ended, 0);
	fake_event(watch, HF_EVENT_MODIFIED, pod("a", "uid-a", 6, over));
	assert_int_equal(w->ended, 1);
	fake_event(watch, HF_EVENT_MODIFIED, pod("a", "uid-a", 7, again));
	assert_int_equal(w->ended, 2);
	fake_event(watch, HF_EVENT_DELETED, pod("a", "uid-a", 8, again));
	assert_int_equal(w->ended, 3);
}

static void the_kubelet_is_asked_when_a_pod_comes_and_when_its_containers_begin_or_end(void **state)
{
	static const struct {
		const char *status;
		bool asks;
	} steps[] = {
		{"\"phase\":\"Pending\"", false},
		/* The kubelet has accepted the pod, so it has chosen the pod's devices. */
		{"\"containerStatuses\":[{\"restartCount\":0,\"state\":{\"waiting\":{}}}]", true},
		{"\"containerStatuses\":[{\"restartCount\":0,\"state\":{\"running\":{}}}]", true},
		{"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],\"containerStatuses\":"
		 "[{\"restartCount\":0,\"ready\":true,\"state\":{\"running\":{}}}]",
		 false},
		{"\"containerStatuses\":[{\"restartCount\":0,\"state\":{\"terminated\":{}}}]",
		 true},
		{"\"containerStatuses\":[{\"restartCount\":1,\"state\":{\"waiting\":{}}}]", false},
		{"\"containerStatuses\":[{\"restartCount\":1,\"state\":{\"running\":{}}}]", true},
		{"\"containerStatuses\":[{\"restartCount\":1,\"state\":{\"running\":{}}}],"
		 "\"initContainerStatuses\":[7,{\"state\":3}]",
		 true},
		{"\"containerStatuses\":{},\"initContainerStatuses\":\"x\"", false},
	};
	struct world *w = *state;
	struct fake_watch *watch = fake_watch_live(w->store);
	int asked = 1;

	fake_event(watch, HF_EVENT_ADDED, pod("b", "uid-b", 3, ""));
	assert_int_equal(w->asked, asked);
	for (size_t i = 0; i < HF_ARRAY_LEN(steps); i++) {
		fake_event(watch, HF_EVENT_MODIFIED,
			   pod("b", "uid-b", 4 + (int)i, steps[i].status));
		asked += steps[i].asks;
		if (w->asked != asked)
			fail_msg("%s: asked %d times, not %d", steps[i].status, w->asked, asked);
	}
	assert_int_equal(w->ended, 0);
}

#define HASH "0123456789abcdef0123456789abcdef"

static struct hf_doc *static_pod(const char *name, const char *uid, int version,
				 const char *annotations)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"d\",\"uid\":\"%s\","
		 "\"resourceVersion\":\"%d\",\"annotations\":%s}}",
		 name, uid, version, annotations);
	return hf_doc_from_text(text, strlen(text));
}

#define MIRRORS(hash)                                                                              \
	"{\"kubernetes.io/config.hash\":\"" hash "\",\"kubernetes.io/config.mirror\":\"" hash "\"}"

static void a_static_pods_processes_are_known_by_the_uid_that_its_kubelet_made(void **state)
{
	struct world *w = *state;
	struct fake_watch *watch = fake_watch_live(w->store);
	struct hf_pod_name name;

	assert_false(hf_holders_name(w->holders, HASH, &name));
	fake_event(watch, HF_EVENT_ADDED, static_pod("s-n1", "uid-s", 3, MIRRORS(HASH)));
	assert_true(hf_holders_name(w->holders, HASH, &name));
	assert_string_equal(name.ns, "d");
	assert_string_equal(name.name, "s-n1");
	assert_string_equal(name.uid, "uid-s");
	assert_true(hf_holders_name(w->holders, "uid-s", &name));
	/* Somebody else says the same, later. */
	assert_true(hf_loop_run_until(w->loop, 3 * HF_SECOND));
	fake_event(watch, HF_EVENT_ADDED, static_pod("a-0", "uid-x", 4, MIRRORS(HASH)));
	fake_event(watch, HF_EVENT_MODIFIED, static_pod("s-n1", "uid-s", 5, MIRRORS(HASH)));
	assert_true(hf_holders_name(w->holders, HASH, &name));
	assert_string_equal(name.name, "s-n1");
	/* A pod with this UID goes before a pod with an annotation that names the UID. */
	assert_true(hf_loop_run_until(w->loop, 4 * HF_SECOND));
	fake_event(watch, HF_EVENT_ADDED, pod("t", HASH, 6, ""));
	assert_true(hf_holders_name(w->holders, HASH, &name));
	assert_string_equal(name.name, "t");
}

static void what_is_no_mirror_of_a_static_pod_has_its_own_uid_alone(void **state)
{
	static const char *const annotations[] = {
		"{\"kubernetes.io/config.hash\":\"" HASH "\"}",
		"{\"kubernetes.io/config.mirror\":\"" HASH "\"}",
		"{\"kubernetes.io/config.hash\":\"" HASH "\",\"kubernetes.io/config.mirror\":\"\"}",
		MIRRORS("0123456789abcdef0123456789abcde"),
		MIRRORS(HASH "0"),
		MIRRORS("0123456789ABCDEF0123456789ABCDEF"),
		MIRRORS("01234567-89ab-cdef-0123-456789abcdef"),
		MIRRORS("uid-a"),
		MIRRORS(""),
		"{\"kubernetes.io/config.hash\":7,\"kubernetes.io/config.mirror\":[]}",
		"\"kubernetes.io/config.hash\"",
	};
	struct world *w = *state;
	struct fake_watch *watch = fake_watch_live(w->store);
	struct hf_pod_name name;

	fake_event(watch, HF_EVENT_ADDED, static_pod("s-n1", "uid-s", 3, "{}"));
	for (size_t i = 0; i < HF_ARRAY_LEN(annotations); i++) {
		fake_event(watch, HF_EVENT_MODIFIED,
			   static_pod("s-n1", "uid-s", 4 + (int)i, annotations[i]));
		if (hf_holders_name(w->holders, HASH, &name) ||
		    hf_holders_name(w->holders, "", &name) ||
		    hf_holders_name(w->holders, "01234567-89ab-cdef-0123-456789abcdef", &name))
			fail_msg("%s names it", annotations[i]);
		assert_true(hf_holders_name(w->holders, "uid-a", &name));
		assert_string_equal(name.name, "a");
	}
}

/* A person deletes the mirror: the kubelet creates another mirror, and the static pod runs on. */
static void a_static_pod_holds_on_when_its_mirror_is_made_anew(void **state)
{
	struct world *w = *state;
	struct fake_watch *watch = fake_watch_live(w->store);
	const struct hf_holding one = holding("s-n1", "gpu-0");
	const struct hf_holder *items;
	size_t len;

	fake_event(watch, HF_EVENT_ADDED, static_pod("s-n1", "uid-s", 3, MIRRORS(HASH)));
	kubelet_says(w, &one, 1);
	assert_true(hf_loop_run_until(w->loop, 3 * HF_SECOND));
	fake_event(watch, HF_EVENT_DELETED, static_pod("s-n1", "uid-s", 4, MIRRORS(HASH)));
	fake_event(watch, HF_EVENT_ADDED, static_pod("s-n1", "uid-t", 5, MIRRORS(HASH)));
	assert_true(hf_loop_run_until(w->loop, 4 * HF_SECOND));
	kubelet_says(w, &one, 1);
	items = hf_holders_list(w->holders, &len);
	assert_int_equal(len, 1);
	assert_string_equal(items[0].uid, "uid-t");
	assert_true(items[0].until == HF_TIME_NONE);
	/* The static pod's manifest has changed: that is another static pod, with another hash. */
	fake_event(watch, HF_EVENT_DELETED, static_pod("s-n1", "uid-t", 6, MIRRORS(HASH)));
	fake_event(watch, HF_EVENT_ADDED,
		   static_pod("s-n1", "uid-u", 7, MIRRORS("ffffffffffffffffffffffffffffffff")));
	kubelet_says(w, &one, 1);
	items = hf_holders_list(w->holders, &len);
	assert_int_equal(len, 2);
	assert_true(items[0].until == 4 * HF_SECOND);
	assert_string_equal(items[1].uid, "uid-u");
}

static void our_condition_is_read_whatever_stands_beside_it(void **state)
{
	struct world *w = *state;
	const struct hf_holding one = holding("a", "gpu-0");
	const struct hf_holder *items;
	const struct hf_holder_pod *seen;
	size_t len;

	kubelet_says(w, &one, 1);
	items = hf_holders_list(w->holders, &len);
	seen = hf_holders_pod(w->holders, &items[0]);
	assert_int_equal(seen->condition, HF_POD_NO_CONDITION);
	fake_event(fake_watch_live(w->store), HF_EVENT_MODIFIED,
		   pod("a", "uid-a", 5,
		       "\"conditions\":[7,{\"type\":\"Ready\",\"status\":\"True\"},"
		       "{\"type\":\"holdfast.dev/DeviceHealthy\",\"status\":\"False\","
		       "\"reason\":\"GpuReset\",\"message\":\"m\"}]"));
	seen = hf_holders_pod(w->holders, &items[0]);
	assert_int_equal(seen->condition, HF_POD_SICK);
	assert_string_equal(seen->reason, "GpuReset");
}

/* A training job holds its device for days, while thousands of short jobs come and go. */
static void a_holder_that_still_holds_is_the_last_to_make_room(void **state)
{
	struct world *w = *state;
	struct hf_holding two[] = {holding("a", "gpu-0"), holding("b", "gpu-1")};
	const struct hf_holder *items;
	size_t len;

	for (int i = 0; i <= 2 * HF_HOLDINGS_MAX; i++) {
		snprintf(two[1].pod, sizeof(two[1].pod), "b-%04d", i);
		kubelet_says(w, two, 2);
	}
	items = hf_holders_list(w->holders, &len);
	assert_int_equal(len, 2 * HF_HOLDINGS_MAX);
	assert_string_equal(items[0].holding.pod, "a");
	assert_true(items[0].until == HF_TIME_NONE);
	assert_string_equal(items[1].holding.pod, "b-0002");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_uid_is_found_before_or_after_the_kubelet_names_the_pod),
		TEST(a_word_that_is_older_than_a_pod_says_nothing_of_it),
		TEST(what_the_kubelet_no_longer_names_has_ended_unless_it_could_not_tell_all),
		TEST(a_pod_that_has_ended_holds_nothing_although_the_kubelet_names_it),
		TEST(the_pod_of_a_daemonset_is_known_as_such),
		TEST(the_end_of_a_container_counts_where_the_pod_holds_something),
		TEST(the_kubelet_is_asked_when_a_pod_comes_and_when_its_containers_begin_or_end),
		TEST(a_static_pods_processes_are_known_by_the_uid_that_its_kubelet_made),
		TEST(what_is_no_mirror_of_a_static_pod_has_its_own_uid_alone),
		TEST(a_static_pod_holds_on_when_its_mirror_is_made_anew),
		TEST(a_holder_that_still_holds_is_the_last_to_make_room),
		TEST(our_condition_is_read_whatever_stands_beside_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
