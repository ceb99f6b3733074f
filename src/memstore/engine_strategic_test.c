/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "contract/contract.h"

#include "memstore/engine_internal.h"

#include <stdio.h>
#include <string.h>

static void check_strategic(const char *target_text, const char *patch_text,
			    const char *expected_text)
{
	HF_AUTO_DOC target = json_doc("%s", target_text);
	HF_AUTO_DOC patch = json_doc("%s", patch_text);
	HF_AUTO_DOC expected = json_doc("%s", expected_text);
	HF_AUTO_JSON keep = hf_doc_copy_json(target);
	struct hf_json *result = NULL;
	struct hf_error err = {0};
	struct hf_strbuf sb = HF_STRBUF_INIT(4096);

	assert_ok(hf_patch_strategic(hf_doc_json(target), hf_doc_json(patch), &result, &err), &err);
	hf_json_write(result, HF_JSON_COMPACT, &sb);
	/* Compares the order of list items, but not the order of keys. */
	if (!hf_json_equal(result, hf_doc_json(expected)))
		fail_msg("%s + %s is %s", target_text, patch_text, sb.data);
	assert_true(hf_json_equal(keep, hf_doc_json(target)));
	hf_strbuf_release(&sb);
	hf_json_unref(result);
}

static void maps_merge_and_null_removes(void **state)
{
	check_strategic("{'a':1,'b':{'c':2,'d':3}}", "{'b':{'c':null,'e':4}}",
			"{'a':1,'b':{'d':3,'e':4}}");
	check_strategic("{'a':1}", "{'b':{'c':null,'d':1}}", "{'a':1,'b':{'d':1}}");
	check_strategic("{'a':{'b':1}}", "{'a':2}", "{'a':2}");
	check_strategic("{'a':2}", "{'a':{'b':1}}", "{'a':{'b':1}}");
	check_strategic("{}", "{}", "{}");
}

static void lists_that_are_maps_merge_by_their_key(void **state)
{
	check_strategic("{'containers':[{'name':'a','image':'1'},{'name':'b','image':'1'}]}",
			"{'containers':[{'name':'b','image':'2'},{'name':'c','image':'1'}]}",
			"{'containers':[{'name':'a','image':'1'},{'name':'b','image':'2'},"
			"{'name':'c','image':'1'}]}");
	/* Lists inside the items of a list are merged too. */
	check_strategic("{'containers':[{'name':'a','env':[{'name':'X','value':'1'},"
			"{'name':'Y','value':'1'}]}]}",
			"{'containers':[{'name':'a','env':[{'name':'Y','value':'2'}]}]}",
			"{'containers':[{'name':'a','env':[{'name':'X','value':'1'},"
			"{'name':'Y','value':'2'}]}]}");
	check_strategic("{'conditions':[{'type':'Ready','status':'False','reason':'r'}]}",
			"{'conditions':[{'type':'Ready','status':'True','reason':null}]}",
			"{'conditions':[{'type':'Ready','status':'True'}]}");
	check_strategic("{'ownerReferences':[{'uid':'1','name':'a'}]}",
			"{'ownerReferences':[{'uid':'2','name':'b'}]}",
			"{'ownerReferences':[{'uid':'1','name':'a'},{'uid':'2','name':'b'}]}");
}

static void one_name_may_stand_for_two_lists(void **state)
{
	check_strategic("{'ports':[{'containerPort':80,'name':'a'}]}",
			"{'ports':[{'containerPort':80,'name':'b'},{'containerPort':81}]}",
			"{'ports':[{'containerPort':80,'name':'b'},{'containerPort':81}]}");
	check_strategic("{'ports':[{'port':80,'name':'a'}]}", "{'ports':[{'port':80,'name':'b'}]}",
			"{'ports':[{'port':80,'name':'b'}]}");
}

static void other_lists_are_replaced_whole(void **state)
{
	check_strategic("{'args':['a','b']}", "{'args':['c']}", "{'args':['c']}");
	check_strategic("{'tolerations':[{'key':'a'}]}", "{'tolerations':[{'key':'b'}]}",
			"{'tolerations':[{'key':'b'}]}");
}

static void finalizers_are_a_set(void **state)
{
	check_strategic("{'finalizers':['a','b']}", "{'finalizers':['b','c']}",
			"{'finalizers':['a','b','c']}");
	check_strategic("{'finalizers':['a','b','c']}",
			"{'$deleteFromPrimitiveList/finalizers':['b','x']}",
			"{'finalizers':['a','c']}");
	check_strategic("{}", "{'finalizers':['a']}", "{'finalizers':['a']}");
	check_strategic("{}", "{'$deleteFromPrimitiveList/finalizers':['b']}", "{}");
}

static void directives_delete_and_replace(void **state)
{
	check_strategic("{'containers':[{'name':'a'},{'name':'b'}]}",
			"{'containers':[{'name':'a','$patch':'delete'}]}",
			"{'containers':[{'name':'b'}]}");
	check_strategic("{'containers':[{'name':'a'}]}",
			"{'containers':[{'name':'x','$patch':'delete'}]}",
			"{'containers':[{'name':'a'}]}");
	check_strategic("{'containers':[{'name':'a'},{'name':'b'}]}",
			"{'containers':[{'$patch':'replace'},{'name':'c'}]}",
			"{'containers':[{'name':'c'}]}");
	check_strategic("{'a':{'b':1,'c':2}}", "{'a':{'$patch':'replace','d':3}}", "{'a':{'d':3}}");
	check_strategic("{'a':{'b':1,'c':2}}", "{'a':{'$patch':'delete'}}", "{'a':{}}");
	check_strategic("{'a':{'b':1}}", "{'a':{'$patch':'merge','c':2}}", "{'a':{'b':1,'c':2}}");
	check_strategic("{'volumes':[{'name':'v','emptyDir':{}}]}",
			"{'volumes':[{'name':'v','hostPath':{'path':'/x'},"
			"'$retainKeys':['name','hostPath']}]}",
			"{'volumes':[{'name':'v','hostPath':{'path':'/x'}}]}");
}

static void set_element_order_orders_items(void **state)
{
	check_strategic("{'containers':[{'name':'a'},{'name':'b'}]}",
			"{'$setElementOrder/containers':[{'name':'b'},{'name':'a'}],"
			"'containers':[{'name':'a','x':1}]}",
			"{'containers':[{'name':'b'},{'name':'a','x':1}]}");
	/* Items that the client does not name keep their relative places. */
	check_strategic(
		"{'containers':[{'name':'s'},{'name':'a'},{'name':'t'},{'name':'b'}]}",
		"{'$setElementOrder/containers':[{'name':'a'},{'name':'b'},{'name':'n'}],"
		"'containers':[{'name':'n'}]}",
		"{'containers':[{'name':'s'},{'name':'a'},{'name':'t'},{'name':'b'},{'name':'n'}]}");
	check_strategic("{'finalizers':['a','b']}",
			"{'$setElementOrder/finalizers':['c','b','a'],'finalizers':['c']}",
			"{'finalizers':['c','b','a']}");
	/* "$setElementOrder" is ignored for a list that is absent, or that is not a map. */
	check_strategic("{'a':1}", "{'$setElementOrder/containers':[{'name':'b'}]}", "{'a':1}");
	check_strategic("{'args':['a']}", "{'$setElementOrder/args':['b']}", "{'args':['a']}");
}

static void a_pod_that_is_applied_again_does_not_change(void **state)
{
	/* The patch of kubectl apply if only an annotation is new. */
	check_strategic("{'spec':{'containers':[{'name':'c','image':'i','volumeMounts':["
			"{'mountPath':'/token','name':'server'}]}],'volumes':[{'name':'server'}]}}",
			"{'metadata':{'annotations':{'a':'b'}},'spec':{"
			"'$setElementOrder/containers':[{'name':'c'}],"
			"'containers':[{'name':'c','$setElementOrder/volumeMounts':[]}]}}",
			"{'metadata':{'annotations':{'a':'b'}},'spec':{'containers':[{'name':'c',"
			"'image':'i','volumeMounts':[{'mountPath':'/token','name':'server'}]}],"
			"'volumes':[{'name':'server'}]}}");
}

static void patches_without_their_key_are_refused(void **state)
{
	static const char *const bad[] = {
		"{'containers':[{'image':'x'}]}",
		"{'containers':[{'name':'a'},{'image':'x'}]}",
		"{'containers':['a']}",
		"{'a':{'$patch':'explode'}}",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		HF_AUTO_DOC target = json_doc("{'containers':[{'name':'a'}],'a':{}}");
		HF_AUTO_DOC patch = json_doc("%s", bad[i]);
		struct hf_json *result = NULL;
		struct hf_error err = {0};
		if (hf_patch_strategic(hf_doc_json(target), hf_doc_json(patch), &result, &err) == 0)
			fail_msg("%s was let through", bad[i]);
		assert_null(result);
		assert_true(strlen(err.text) > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_merge_and_null_removes),
		cmocka_unit_test(lists_that_are_maps_merge_by_their_key),
		cmocka_unit_test(one_name_may_stand_for_two_lists),
		cmocka_unit_test(other_lists_are_replaced_whole),
		cmocka_unit_test(finalizers_are_a_set),
		cmocka_unit_test(directives_delete_and_replace),
		cmocka_unit_test(set_element_order_orders_items),
		cmocka_unit_test(a_pod_that_is_applied_again_does_not_change),
		cmocka_unit_test(patches_without_their_key_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
