/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/facts_internal.h"
#include "operator/facts_test.h"

/* Tests what a step asks for: reads of Leases, of nodes that seem to be gone, and of claims. */

static const struct hf_ask lease_of_a[] = {{HF_ASK_LEASE, "a"}};

static void ask_for(struct bench *bench, const struct hf_ask *asks, size_t n)
{
	brain.once = false;
	brain.plan = (struct hf_plan){.wake_at = HF_TIME_NEVER, .asks = asks, .asks_len = n};
	step_again(bench);
}

/* A Lease with new metadata at each read.  Only a change of renewTime is a sign of life. The Lease
 * counts as unchanged from the arrival of the first answer. */
static struct hf_doc *lease_doc(int renewal)
{
	static int version;
	char text[TEXT_MAX];

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"a\",\"uid\":\"lease\",\"resourceVersion\":\"%d\"},"
		 "\"spec\":{\"renewTime\":\"1970-01-01T00:00:%02d.000000Z\"}}",
		 ++version, renewal);
	return hf_doc_from_text(text, strlen(text));
}

static void answer_lease(struct bench *bench, int renewal)
{
	struct fake_call *call = expect(bench, HF_VERB_GET, "leases");

	assert_string_equal(call->request->ns, "kube-node-lease");
	assert_string_equal(call->request->name, "a");
	fake_answer_object(call, lease_doc(renewal));
	turn_for(bench, 300 * HF_MS);
}

static void test_a_lease_is_read_every_two_seconds_while_a_plan_asks(void **state)
{
	struct bench *bench = *state;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	ask_for(bench, lease_of_a, 1);
	hf_time asked = brain.now;

	answer_lease(bench, 50);
	assert_int_equal(brain.nodes[0].lease_since, asked);
	assert_int_equal(brain.nodes[0].lease_read_at, asked);
	assert_int_equal(brain.nodes[0].renewed_at, HF_TIME_NONE);
	assert_int_equal(brain.nodes[0].renew_time, 50 * HF_SECOND);
	for (int i = 0; i < 3; i++) {
		assert_null(next(bench));
		turn_for(bench, HF_ASKS_INTERVAL - 300 * HF_MS);
		answer_lease(bench, 50);
	}
	/* It stands still from the first answer to the last question. */
	assert_int_equal(brain.nodes[0].lease_since, asked);
	assert_int_equal(brain.nodes[0].lease_read_at, asked + 3 * HF_ASKS_INTERVAL);
	ask_for(bench, NULL, 0);
	turn_for(bench, HF_MINUTE);
	assert_null(next(bench));
	/* The job stops asking and asks again, so silence is measured anew. */
	step_again(bench);
	assert_int_equal(brain.nodes[0].lease_since, HF_TIME_NONE);
	assert_int_equal(brain.nodes[0].lease_read_at, HF_TIME_NONE);
}

static void test_a_renewal_is_no_older_than_the_reading_before_it(void **state)
{
	struct bench *bench = *state;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	ask_for(bench, lease_of_a, 1);
	hf_time asked = brain.now;

	answer_lease(bench, 50);
	turn_for(bench, HF_ASKS_INTERVAL - 300 * HF_MS);
	answer_lease(bench, 51);
	assert_int_equal(brain.nodes[0].renewed_at, asked);
	assert_int_equal(brain.nodes[0].lease_since, asked + HF_ASKS_INTERVAL);
	/* The first read after a pause cannot tell when the Lease was last renewed. */
	turn_for(bench, HF_ASKS_INTERVAL - 300 * HF_MS);
	answer_lease(bench, 51);
	assert_int_equal(brain.nodes[0].renewed_at, asked);
}

static void test_a_missing_lease_is_read_and_says_nothing(void **state)
{
	struct bench *bench = *state;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	ask_for(bench, lease_of_a, 1);
	hf_time asked = brain.now;

	fake_refuse(expect(bench, HF_VERB_GET, "leases"), HF_E_NOT_FOUND);
	turn_for(bench, HF_SECOND);
	assert_int_equal(brain.nodes[0].lease_read_at, asked);
	assert_int_equal(brain.nodes[0].lease_since, HF_TIME_NONE);
	assert_int_equal(brain.nodes[0].renew_time, HF_TIME_NONE);
	/* A Lease without renewTime does not count as a renewal either. */
	turn_for(bench, HF_SECOND);
	fake_answer_object(expect(bench, HF_VERB_GET, "leases"), fake_object("a", "l", "5", ""));
	turn_for(bench, HF_SECOND);
	assert_true(brain.nodes[0].lease_read_at > asked);
	assert_int_equal(brain.nodes[0].lease_since, HF_TIME_NONE);
	assert_int_equal(brain.nodes[0].renewed_at, HF_TIME_NONE);
}

static void test_a_reading_that_fails_is_tried_less_and_less_often(void **state)
{
	struct bench *bench = *state;
	hf_time wait = HF_ASKS_INTERVAL;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	ask_for(bench, lease_of_a, 1);
	answer_lease(bench, 50);
	hf_time since = brain.nodes[0].lease_since;
	turn_for(bench, HF_ASKS_INTERVAL - 300 * HF_MS);
	for (int i = 0; i < 6; i++) {
		fake_refuse(expect(bench, HF_VERB_GET, "leases"), HF_E_FORBIDDEN);
		turn_for(bench, wait - HF_MS);
		assert_null(next(bench));
		turn_for(bench, HF_MS);
		wait = 2 * wait < HF_ASKS_RETRY_MAX ? 2 * wait : HF_ASKS_RETRY_MAX;
	}
	assert_non_null(strstr(bench->problem, "lease/a: "));
	assert_int_equal(brain.nodes[0].lease_read_at, since);
	/* During the outage no kubelet could renew its Lease, so silence is measured from here. */
	answer_lease(bench, 50);
	assert_true(brain.nodes[0].lease_since > since + HF_MINUTE);
}

/* An event of the watch shows the taint out-of-service on the node, which no live read has confirmed. */
static void assert_taint_unconfirmed(struct bench *bench, int version)
{
	fake_event(watch_of(bench, "nodes"), HF_EVENT_ADDED,
		   node_doc("a", version, "True",
			    "\"taints\":[{\"key\":\"node.kubernetes.io/out-of-service\","
			    "\"effect\":\"NoExecute\"}]"));
	turn_for(bench, 100 * HF_MS);
	assert_true(brain.nodes[0].out_of_service);
	assert_int_equal(brain.nodes[0].confirmed_at, HF_TIME_NONE);
}

static void test_a_node_that_seems_gone_is_read_live(void **state)
{
	static const struct hf_ask asks[] = {{HF_ASK_NODE, "a"}};
	struct bench *bench = *state;

	start_on_a(bench, NULL);
	ask_for(bench, asks, 1);
	hf_time asked = brain.now;

	fake_refuse(expect(bench, HF_VERB_GET, "nodes"), HF_E_NOT_FOUND);
	turn_for(bench, 300 * HF_MS);
	assert_int_equal(brain.nodes[0].confirmed_at, asked);
	/* A new node has taken the name since, so the earlier read says nothing about this node. */
	assert_taint_unconfirmed(bench, 155);
	fake_event(watch_of(bench, "nodes"), HF_EVENT_DELETED, node_doc("a", 156, "True", ""));
	turn_for(bench, 100 * HF_MS);
	/* The node exists after all: the watch was late. */
	turn_for(bench, HF_ASKS_INTERVAL);
	fake_answer_object(expect(bench, HF_VERB_GET, "nodes"), node_doc("a", 160, "True", ""));
	turn_for(bench, 300 * HF_MS);
	assert_int_equal(brain.nodes[0].ready, HF_NODE_READY);
	assert_true(brain.nodes[0].confirmed_at > asked);
	/* A watch that began anew repeats an old event: the read found no such taint. */
	assert_taint_unconfirmed(bench, 161);
}

/* The answer may be as old as the request. */
static void test_a_slow_reading_proves_nothing_of_the_time_it_took(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	ask_for(bench, lease_of_a, 1);
	hf_time asked = brain.now;

	call = expect(bench, HF_VERB_GET, "leases");
	turn_for(bench, 5 * HF_SECOND);
	fake_answer_object(call, lease_doc(50));
	turn_for(bench, 300 * HF_MS);
	assert_int_equal(brain.nodes[0].lease_read_at, asked);
	assert_int_equal(brain.nodes[0].lease_since, asked + 5 * HF_SECOND);
}

static struct hf_doc *claim_doc(const char *name, const char *mode)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"%s\",\"uid\":\"c\",\"resourceVersion\":\"1\"},"
		 "\"spec\":{\"accessModes\":[\"%s\"]}}",
		 name, mode);
	return hf_doc_from_text(text, strlen(text));
}

static void test_a_claim_is_of_one_namespace_and_one_pod_alone_is_exclusive(void **state)
{
	static const struct hf_ask asks[] = {{HF_ASK_CLAIM, "data"}};
	static const char other[] =
		"{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"metadata\":{"
		"\"name\":\"ddp\",\"namespace\":\"other\",\"uid\":\"u-2\","
		"\"resourceVersion\":\"90\"},\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{"
		"\"replicas\":1}}}}";
	struct bench *bench = *state;
	struct fake_call *call;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	ask_for(bench, asks, 1);
	call = expect(bench, HF_VERB_GET, "persistentvolumeclaims");
	assert_string_equal(call->request->ns, "n");
	fake_answer_object(call, claim_doc("data", "ReadWriteOncePod"));
	turn_for(bench, HF_SECOND);
	assert_true(brain.claims[0].exclusive);
	fake_event(watch_of(bench, "pytorchjobs"), HF_EVENT_ADDED,
		   hf_doc_from_text(other, sizeof(other) - 1));
	turn_for(bench, HF_SECOND);
	call = expect(bench, HF_VERB_GET, "persistentvolumeclaims");
	assert_string_equal(call->request->ns, "other");
	assert_string_equal(call->request->name, "data");
	fake_refuse(call, HF_E_NOT_FOUND);
}

static void test_a_claim_is_read_once_for_all_jobs_that_ask(void **state)
{
	static const struct hf_ask asks[] = {{HF_ASK_CLAIM, "data"}, {HF_ASK_CLAIM, "gone"}};
	struct bench *bench = *state;
	struct fake_call *call;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	ask_for(bench, asks, 2);
	call = expect(bench, HF_VERB_GET, "persistentvolumeclaims");
	assert_string_equal(call->request->ns, "n");
	assert_string_equal(call->request->name, "data");
	fake_answer_object(call, claim_doc("data", "ReadWriteMany"));
	fake_refuse(expect(bench, HF_VERB_GET, "persistentvolumeclaims"), HF_E_NOT_FOUND);
	turn_for(bench, HF_MINUTE);
	assert_null(next(bench));
	assert_int_equal(brain.n_claims, 2);
	assert_string_equal(brain.claim_names[0], "data");
	assert_false(brain.claims[0].exclusive);
	assert_true(brain.claims[1].exclusive);
}

static void test_readings_are_few_at_once_and_so_many_a_second(void **state)
{
	enum { MANY = 400 };
	static char names[MANY][16];
	static struct hf_ask asks[MANY];
	struct bench *bench = *state;
	struct fake_call *calls[HF_ASKS_IN_FLIGHT_MAX], *call;
	size_t n = 0;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	for (size_t i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "n-%03zu", i);
		asks[i] = (struct hf_ask){HF_ASK_LEASE, names[i]};
	}
	ask_for(bench, asks, MANY);
	while ((call = next(bench)) != NULL)
		calls[n++] = call;
	assert_int_equal(n, HF_ASKS_IN_FLIGHT_MAX);
	for (size_t i = 0; i < n; i++)
		fake_answer_object(calls[i], fake_object("x", "x", "1", ""));
	/* If reads are answered at once, 50 reads go at once and the others at 200 a second. */
	n = HF_ASKS_IN_FLIGHT_MAX;
	while ((call = next(bench)) != NULL) {
		fake_answer_object(call, fake_object("x", "x", "1", ""));
		n++;
	}
	assert_in_range(n, 49, 51);
	for (int i = 0; i < 100; i++) {
		turn_for(bench, 10 * HF_MS);
		while ((call = next(bench)) != NULL) {
			fake_answer_object(call, fake_object("x", "x", "1", ""));
			n++;
		}
	}
	assert_in_range(n, 240, 255);
	/* When jobs stop asking, no entry is left behind. */
	ask_for(bench, NULL, 0);
	turn_for(bench, HF_MINUTE);
	assert_null(next(bench));
}

static void test_a_stopping_operator_asks_no_more(void **state)
{
	struct bench *bench = *state;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	ask_for(bench, lease_of_a, 1);
	answer_lease(bench, 50);
	hf_operator_stop(bench->op, NULL, NULL);
	turn_for(bench, HF_MINUTE);
	assert_null(next(bench));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		N(test_a_lease_is_read_every_two_seconds_while_a_plan_asks),
		N(test_a_renewal_is_no_older_than_the_reading_before_it),
		N(test_a_missing_lease_is_read_and_says_nothing),
		N(test_a_reading_that_fails_is_tried_less_and_less_often),
		N(test_a_node_that_seems_gone_is_read_live),
		N(test_a_claim_is_read_once_for_all_jobs_that_ask),
		N(test_readings_are_few_at_once_and_so_many_a_second),
		N(test_a_stopping_operator_asks_no_more),
		N(test_a_slow_reading_proves_nothing_of_the_time_it_took),
		N(test_a_claim_is_of_one_namespace_and_one_pod_alone_is_exclusive),
	};

	return cmocka_run_group_tests_name("asks", tests, NULL, NULL);
}
