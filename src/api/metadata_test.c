/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/metadata.h"

#include "harness/json_text.h"
#include "harness/test.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "json/json.h"

#include <string.h>

static void on_problem(void *arg, const char *reason, const char *field, const char *text)
{
	hf_strbuf_addf(arg, "%s %s: %s\n", reason, field, text);
}

static void check(const char *meta_text, const char *before_text, const char *wanted)
{
	HF_AUTO_STRBUF said = HF_STRBUF_INIT(4096);
	HF_AUTO_JSON meta = json_of(meta_text);
	HF_AUTO_JSON before = before_text != NULL ? json_of(before_text) : NULL;

	hf_metadata_check(meta, before, on_problem, &said);
	if (wanted[0] == '\0' ? said.len > 0 : strstr(said.data, wanted) == NULL)
		fail_msg("%s: wanted '%s', got '%s'", meta_text, wanted, said.data);
}

static void what_is_well_is_not_mentioned(void **state)
{
	(void)state;
	check("{'name':'a','labels':{'app.example/x':'Y_1',"
	      "'b':''},'annotations':{'A.Example/x':'any text'},"
	      "'finalizers':['example.com/f'],'ownerReferences':[{'apiVersion':'v1','kind':'Pod',"
	      "'name':'p','uid':'1','controller':true}]}",
	      NULL, "");
	check("{}", NULL, "");
}

static void problems_have_a_reason_and_their_field(void **state)
{
	(void)state;
	check("{'labels':{'a b':'c'}}", NULL,
	      "FieldValueInvalid metadata.labels: Invalid value: \"a b\"");
	check("{'labels':{'a':1}}", NULL,
	      "metadata.labels: Invalid value: \"a\": must be a string");
	check("{'annotations':{'x':1}}", NULL,
	      "metadata.annotations: Invalid value: \"x\": must be a string");
	check("{'finalizers':['ab c']}", NULL, "metadata.finalizers: Invalid value: \"ab c\"");
	check("{'finalizers':[5]}", NULL, "metadata.finalizers: Invalid value: \"\"");
	check("{'finalizers':5}", NULL, "metadata.finalizers: Invalid value: must be an array");
	check("{'ownerReferences':[{'kind':'Pod'}]}", NULL, "metadata.ownerReferences[0].uid: ");
}

static void what_was_stored_is_not_judged_again(void **state)
{
	HF_AUTO_JSON meta = json_of("{'labels':{'a b':'c'}}");
	HF_AUTO_STRBUF said = HF_STRBUF_INIT(4096);

	(void)state;
	hf_metadata_check(meta, meta, on_problem, &said);
	assert_int_equal(said.len, 0);
}

static void nothing_new_holds_what_is_being_deleted(void **state)
{
	(void)state;
	check("{'finalizers':['a','b']}",
	      "{'deletionTimestamp':'2026-01-02T03:04:05Z','finalizers':['a']}",
	      "FieldValueForbidden metadata.finalizers: Forbidden");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_well_is_not_mentioned),
		cmocka_unit_test(problems_have_a_reason_and_their_field),
		cmocka_unit_test(what_was_stored_is_not_judged_again),
		cmocka_unit_test(nothing_new_holds_what_is_being_deleted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
