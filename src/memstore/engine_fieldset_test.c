/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "contract/contract.h"

#include "memstore/engine_internal.h"

#include <string.h>

static void assert_same_json(const struct hf_json *found, const char *wanted_text)
{
	HF_AUTO_DOC wanted = json_doc("%s", wanted_text);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);

	hf_json_write(found, HF_JSON_COMPACT, &text);
	if (!hf_json_equal(found, hf_doc_json(wanted)))
		fail_msg("%s is not %s", text.data, wanted_text);
}

static struct hf_json *fieldset_of(const char *text)
{
	HF_AUTO_DOC doc = json_doc("%s", text);

	return hf_fieldset_of(hf_doc_json(doc));
}

static void assert_fields(const char *value, const char *wire)
{
	HF_AUTO_JSON set = fieldset_of(value);
	HF_AUTO_JSON written = hf_fieldset_write(set);
	HF_AUTO_JSON again = hf_fieldset_read(written);

	assert_same_json(written, wire);
	assert_true(hf_json_equal(set, again));
}

static void sets_of_values_have_the_form_of_fields_v1(void **state)
{
	(void)state;
	assert_fields("{'spec':{'a':1,'b':{}}}", "{'f:spec':{'f:a':{},'f:b':{}}}");
	/* A list without keys is a single value, and so are some objects, such as nodeSelector. */
	assert_fields("{'args':['x','y'],'nodeSelector':{'a':'b'}}",
		      "{'f:args':{},'f:nodeSelector':{}}");
	assert_fields("{'containers':[{'name':'c','image':'i'}]}",
		      "{'f:containers':{'k:{\\\"name\\\":\\\"c\\\"}':{'.':{},'f:image':{},"
		      "'f:name':{}}}}");
	assert_fields("{'finalizers':['x/y']}", "{'f:finalizers':{'v:\\\"x/y\\\"':{}}}");
	/* A port without protocol has the key TCP. */
	assert_fields("{'ports':[{'containerPort':80}]}",
		      "{'f:ports':{'k:{\\\"containerPort\\\":80,\\\"protocol\\\":\\\"TCP\\\"}':{"
		      "'.':{},'f:containerPort':{}}}}");
}

static void nulls_are_ignored(void **state)
{
	(void)state;
	assert_fields("{'a':null,'b':1}", "{'f:b':{}}");
}

static void changed_and_removed_fields_are_separate(void **state)
{
	HF_AUTO_DOC old = json_doc("{'a':1,'b':2,'env':[{'name':'X','value':'1'},{'name':'Y'}]}");
	HF_AUTO_DOC new = json_doc("{'a':1,'b':3,'c':4,'env':[{'name':'X','value':'2'}]}");
	struct hf_fieldset_diff made = hf_fieldset_diff(hf_doc_json(old), hf_doc_json(new));
	HF_AUTO_JSON changed = hf_fieldset_write(made.changed);
	HF_AUTO_JSON removed = hf_fieldset_write(made.removed);

	(void)state;
	assert_same_json(
		changed,
		"{'f:b':{},'f:c':{},'f:env':{'k:{\\\"name\\\":\\\"X\\\"}':{'f:value':{}}}}");
	assert_same_json(removed, "{'f:env':{'k:{\\\"name\\\":\\\"Y\\\"}':{'.':{},'f:name':{}}}}");
	hf_fieldset_diff_release(&made);
}

static void lists_merge_by_their_keys(void **state)
{
	HF_AUTO_DOC live = json_doc("{'env':[{'name':'X','value':'1'},{'name':'Y','value':'1'}]}");
	HF_AUTO_DOC wish = json_doc("{'env':[{'name':'Y','value':'2'},{'name':'Z'}],'n':null}");
	HF_AUTO_JSON merged = hf_fieldset_merge(hf_doc_json(live), hf_doc_json(wish));

	(void)state;
	assert_same_json(
		merged, "{'env':[{'name':'X','value':'1'},{'name':'Y','value':'2'},{'name':'Z'}]}");
}

static void long_keys_are_not_truncated(void **state)
{
	char name[5001];

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	HF_AUTO_DOC live = json_doc("{'env':[{'name':'%s1'}],'labels':{'%s1':'1'}}", name, name);
	HF_AUTO_DOC wish = json_doc("{'env':[{'name':'%s2'}],'labels':{'%s2':'1'}}", name, name);
	HF_AUTO_JSON merged = hf_fieldset_merge(hf_doc_json(live), hf_doc_json(wish));
	HF_AUTO_JSON had = hf_fieldset_of(hf_doc_json(live));
	HF_AUTO_JSON wanted = hf_fieldset_of(hf_doc_json(wish));
	HF_AUTO_JSON both = hf_fieldset_both(had, wanted);

	assert_int_equal(hf_json_len(hf_json_get(hf_doc_json(wish), "env")), 1);
	assert_int_equal(hf_json_len(hf_json_get(merged, "env")), 2);
	assert_int_equal(hf_json_len(both), 0);
}

static void pruning_keeps_fields_that_are_still_owned(void **state)
{
	HF_AUTO_DOC value = json_doc("{'a':1,'env':[{'name':'X','value':'1'},{'name':'Y'}],"
				     "'labels':{'l':'1'}}");
	HF_AUTO_JSON gone = fieldset_of("{'a':1,'env':[{'name':'X','value':'1'},{'name':'Y'}],"
					"'labels':{'l':'1'}}");
	HF_AUTO_JSON kept = fieldset_of("{'env':[{'name':'X'}]}");
	HF_AUTO_JSON left = hf_fieldset_prune(hf_doc_json(value), gone, kept);

	(void)state;
	/* X keeps only its name, because `kept` contains that. Y and labels lose all fields and are
	 * removed. */
	assert_same_json(left, "{'env':[{'name':'X'}]}");
}

static void note_path(void *arg, const char *path)
{
	hf_strbuf_addf(arg, "%s\n", path);
}

static void paths_are_written_as_text(void **state)
{
	HF_AUTO_JSON set = fieldset_of("{'spec':{'containers':[{'name':'c'}]},'finalizers':['f']}");
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);

	(void)state;
	hf_fieldset_each(set, note_path, &text);
	assert_non_null(strstr(text.data, ".spec.containers[name=\"c\"].name\n"));
	assert_non_null(strstr(text.data, ".finalizers[=\"f\"]\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sets_of_values_have_the_form_of_fields_v1),
		cmocka_unit_test(nulls_are_ignored),
		cmocka_unit_test(changed_and_removed_fields_are_separate),
		cmocka_unit_test(lists_merge_by_their_keys),
		cmocka_unit_test(long_keys_are_not_truncated),
		cmocka_unit_test(pruning_keeps_fields_that_are_still_owned),
		cmocka_unit_test(paths_are_written_as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
