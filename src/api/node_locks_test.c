/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/node_locks.h"

#include "harness/json_text.h"
#include "harness/test.h"
#include "json/json.h"

#include <stdio.h>

static const char *find(const char *text)
{
	HF_AUTO_DOC doc = json_doc_of(text);
	static char type[64];
	const char *found = hf_node_find_maintenance(hf_doc_json(doc));

	snprintf(type, sizeof(type), "%s", found == NULL ? "none" : found);
	return type;
}

static void conditions_of_other_tools_are_found(void **state)
{
	(void)state;
	assert_string_equal(find("{}"), "none");
	assert_string_equal(
		find("{'status':{'conditions':[{'type':'DrainInProgress','status':'True'}]}}"),
		"DrainInProgress");
	assert_string_equal(find("{'status':{'conditions':[{'type':'a.b/MaintenanceInProgress',"
				 "'status':'True'}]}}"),
			    "a.b/MaintenanceInProgress");
	assert_string_equal(find("{'status':{'conditions':[{'type':'a.b/MaintenanceInProgress',"
				 "'status':'False'}]}}"),
			    "none");
	assert_string_equal(find("{'status':{'conditions':[{'type':'NoDrainInProgress',"
				 "'status':'True'}]}}"),
			    "none");
	/* Holdfast's own condition is no lock of others. */
	assert_string_equal(find("{'status':{'conditions':[{'type':"
				 "'holdfast.dev/MaintenanceInProgress','status':'True'}]}}"),
			    "none");
}

static void the_own_condition_is_written_and_read(void **state)
{
	HF_AUTO_DOC node = json_doc_of("{'metadata':{'name':'n1','resourceVersion':'7'}}");
	HF_AUTO_DOC on = hf_node_maintenance_patch(node, true, "Rollout", "r", HF_SECOND);
	HF_AUTO_DOC off = hf_node_maintenance_patch(node, false, "Ended", "r", HF_SECOND);

	(void)state;
	assert_string_equal(hf_doc_resource_version(on), "7");
	assert_true(hf_node_is_in_maintenance(hf_doc_json(on)));
	assert_false(hf_node_is_in_maintenance(hf_doc_json(off)));
	assert_false(hf_node_is_in_maintenance(NULL));
	assert_string_equal(hf_node_maintenance_message(hf_doc_json(on)), "r");
	assert_null(hf_node_maintenance_message(hf_doc_json(off)));
	assert_null(hf_node_maintenance_message(NULL));
	assert_null(hf_node_find_maintenance(hf_doc_json(on)));
}

static void a_lock_of_kured_is_read(void **state)
{
	HF_AUTO_DOC one = json_doc_of("{'metadata':{'annotations':{'weave.works/kured-node-lock':"
				      "'{\\'nodeID\\':\\'n1\\'}'}}}");
	HF_AUTO_DOC bad =
		json_doc_of("{'metadata':{'annotations':{'weave.works/kured-node-lock':'{'}}}");

	(void)state;
	assert_true(hf_node_has_kured_lock(hf_doc_json(one), "n1"));
	assert_false(hf_node_has_kured_lock(hf_doc_json(one), "n2"));
	assert_true(hf_node_has_kured_lock(hf_doc_json(bad), "n2"));
	assert_false(hf_node_has_kured_lock(NULL, "n1"));
}

static void the_lock_of_a_node_has_its_tool(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create((size_t)1 << 16);
	HF_AUTO_DOC node = json_doc_of(
		"{'status':{'conditions':[{'type':'a.b/DrainInProgress','status':'True'}]}}");
	HF_AUTO_DOC kured = json_doc_of("{'metadata':{'annotations':{'weave.works/kured-node-lock':"
					"'{\\'nodeID\\':\\'n1\\'}'}}}");
	const struct hf_json *json = hf_doc_json(node), *lock = hf_doc_json(kured);

	(void)state;
	assert_null(hf_node_find_lock(NULL, "n2", lock, false, arena));
	assert_string_equal(hf_node_find_lock(json, "n1", lock, true, arena), "kured");
	assert_string_equal(hf_node_find_lock(json, "n2", lock, true, arena), "NodeMaintenance");
	assert_string_equal(hf_node_find_lock(json, "n2", NULL, false, arena),
			    "the tool that set condition a.b/DrainInProgress");
}

static void a_lease_replaces_the_former_holder(void **state)
{
	const struct hf_owner owner = {"g/v1", "Kind", "o", "u2"};
	HF_AUTO_DOC old =
		json_doc_of("{'metadata':{'resourceVersion':'7','ownerReferences':[{'uid':'u1'}]},"
			    "'spec':{'holderIdentity':'x','leaseTransitions':3}}");
	HF_AUTO_DOC lease = hf_node_lease(old, "n1", "kinds/o", &owner, HF_SECOND);
	HF_AUTO_DOC fresh = hf_node_lease(NULL, "n1", "kinds/o", &owner, HF_SECOND);
	const struct hf_json *spec = hf_json_get(hf_doc_json(lease), "spec");

	(void)state;
	assert_string_equal(hf_doc_name(lease), "holdfast-mend-n1");
	assert_string_equal(hf_doc_namespace(lease), "holdfast-mend");
	assert_string_equal(hf_doc_resource_version(lease), "7");
	assert_string_equal(hf_json_path_str(spec, "holderIdentity", NULL), "kinds/o");
	assert_int_equal(hf_json_i64(hf_json_get(spec, "leaseTransitions"), 0), 3);
	assert_false(hf_is_owned_by(hf_doc_json(lease), "u1"));
	assert_true(hf_is_owned_by(hf_doc_json(lease), "u2"));
	assert_true(hf_is_owned_by(hf_doc_json(fresh), "u2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conditions_of_other_tools_are_found),
		cmocka_unit_test(the_own_condition_is_written_and_read),
		cmocka_unit_test(a_lock_of_kured_is_read),
		cmocka_unit_test(the_lock_of_a_node_has_its_tool),
		cmocka_unit_test(a_lease_replaces_the_former_holder),
	};

	return cmocka_run_group_tests_name("node_locks", tests, NULL, NULL);
}
