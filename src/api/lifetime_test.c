/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/lifetime.h"

#include "harness/json_text.h"
#include "harness/test.h"
#include "json/json.h"

static void owners_are_written_and_read(void **state)
{
	const struct hf_owner first = {"v1", "Node", "n1", "u1"}, next = {"v1", "Node", "n2", "u2"};
	HF_AUTO_JSON object = hf_json_object();
	struct hf_json *metadata = hf_json_ensure_object(object, "metadata");

	(void)state;
	assert_false(hf_is_owned_by(object, "u1"));
	hf_set_owner(metadata, &first);
	assert_true(hf_is_owned_by(object, "u1"));
	hf_set_owner(metadata, &next);
	assert_false(hf_is_owned_by(object, "u1"));
	assert_true(hf_is_owned_by(object, "u2"));
	assert_null(hf_find_controller(object));
	assert_false(hf_is_owned_by(NULL, "u2"));
}

static bool is_of_node(const char *text)
{
	HF_AUTO_DOC pod = json_doc_of(text);

	return hf_is_pod_of_node(hf_doc_json(pod));
}

static void only_the_controller_decides_if_a_pod_is_of_its_node(void **state)
{
	(void)state;
	assert_true(is_of_node("{'metadata':{'ownerReferences':[{'kind':'Job'},"
			       "{'kind':'DaemonSet','controller':true}]}}"));
	assert_true(
		is_of_node("{'metadata':{'ownerReferences':[{'kind':'Node','controller':true}]}}"));
	assert_true(is_of_node("{'metadata':{'annotations':{'kubernetes.io/config.mirror':'h'}}}"));
	assert_false(is_of_node("{'metadata':{'ownerReferences':[{'kind':'DaemonSet'}]}}"));
	assert_false(is_of_node("{}"));
}

static void expect_patch(const char *object, bool wanted, const char *patch)
{
	HF_AUTO_DOC doc = json_doc_of(object);
	HF_AUTO_DOC want = json_doc_of(patch);
	HF_AUTO_DOC got = hf_finalizer_patch(doc, "f", wanted);

	assert_true(hf_json_equal(hf_doc_json(got), hf_doc_json(want)));
}

static void a_finalizer_is_added_and_removed_beside_others(void **state)
{
	HF_AUTO_DOC with = json_doc_of("{'metadata':{'finalizers':['a','f']}}");

	(void)state;
	assert_true(hf_has_finalizer(hf_doc_json(with), "f"));
	assert_false(hf_has_finalizer(hf_doc_json(with), "g"));
	assert_false(hf_has_finalizer(NULL, "f"));
	expect_patch("{'metadata':{'resourceVersion':'7','finalizers':['f','a']}}", true,
		     "{'metadata':{'resourceVersion':'7','finalizers':['a','f']}}");
	expect_patch("{'metadata':{'resourceVersion':'7','finalizers':['f','a']}}", false,
		     "{'metadata':{'resourceVersion':'7','finalizers':['a']}}");
	/* A merge patch removes a member by null. */
	expect_patch("{'metadata':{'resourceVersion':'7','finalizers':['f']}}", false,
		     "{'metadata':{'resourceVersion':'7','finalizers':null}}");
}

static void the_end_of_a_pod_is_its_phase(void **state)
{
	HF_AUTO_DOC ended = json_doc_of("{'status':{'phase':'Failed'}}");
	HF_AUTO_DOC runs = json_doc_of("{'status':{'phase':'Running'}}");

	(void)state;
	assert_true(hf_has_pod_ended(hf_doc_json(ended)));
	assert_false(hf_has_pod_ended(hf_doc_json(runs)));
	assert_false(hf_has_pod_ended(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owners_are_written_and_read),
		cmocka_unit_test(only_the_controller_decides_if_a_pod_is_of_its_node),
		cmocka_unit_test(a_finalizer_is_added_and_removed_beside_others),
		cmocka_unit_test(the_end_of_a_pod_is_its_phase),
	};

	return cmocka_run_group_tests_name("lifetime", tests, NULL, NULL);
}
