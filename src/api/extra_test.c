/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/extra.h"

#include "harness/test.h"

#include "base/strbuf.h"

#include <string.h>

static struct hf_arena *arena;
static struct hf_extras extras;

static int setup(void **state)
{
	(void)state;
	arena = hf_arena_create(1 << 20);
	extras = (struct hf_extras){.arena = arena};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	hf_arena_destroy(arena);
	return 0;
}

static struct hf_extra role(void)
{
	struct hf_extra role = *hf_extras_add(&extras, HF_EXTRA_ROLE, "r");

	hf_extra_label(&extras, &role, "app", "pi");
	hf_extra_set(&extras, &role, "rules/[0]/verbs/[0]", "get");
	hf_extra_set(&extras, &role, "rules/[0]/verbs/[1]", "list");
	hf_extra_set(&extras, &role, "rules/[0]/apiGroups/[0]", "");
	hf_extra_set(&extras, &role, "rules/[1]/verbs/[0]", "create");
	return role;
}

static void assert_text(struct hf_json *json, const char *text)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(4096);
	HF_AUTO_JSON owned = json;

	hf_json_write(owned, HF_JSON_COMPACT, &sb);
	assert_string_equal(sb.data, text);
}

static struct hf_doc *doc(const char *text)
{
	return hf_doc_from_text(text, strlen(text));
}

#define RULES "[{\"verbs\":[\"get\",\"list\"],\"apiGroups\":[\"\"]},{\"verbs\":[\"create\"]}]"
#define OBJECT(owners, rules)                                                                      \
	"{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"Role\",\"metadata\":{"        \
	"\"name\":\"r\",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"5\""               \
	",\"ownerReferences\":[" owners "]},\"rules\":" rules "}"
#define OURS                                                                                       \
	"{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"MPIJob\",\"name\":\"pi\",\"uid\":\"j\","   \
	"\"controller\":true}"

static void leaves_become_an_object(void **state)
{
	struct hf_extra extra = role();

	(void)state;
	assert_text(hf_extra_write(&extra), "{\"apiVersion\":\"rbac.authorization.k8s.io/v1\","
					    "\"kind\":\"Role\",\"metadata\":{\"name\":\"r\","
					    "\"labels\":{\"app\":\"pi\"}},\"rules\":" RULES "}");
}

static void a_change_replaces_what_is_under_the_root_of_that_object_alone(void **state)
{
	struct hf_extra extra = role();

	(void)state;
	assert_text(hf_extra_patch(&extra, "u"),
		    "[{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":\"u\"},"
		    "{\"op\":\"add\",\"path\":\"/rules\",\"value\":" RULES "}]");
}

static void what_was_written_is_read_as_the_same(void **state)
{
	HF_AUTO_DOC same = doc(OBJECT(OURS, RULES));
	HF_AUTO_DOC other = doc(OBJECT(OURS, "[{\"verbs\":[\"get\",\"list\",3],\"apiGroups\":["
					     "\"\"]},{\"verbs\":[\"create\"]}]"));
	struct hf_extra extra = role();
	struct hf_extra_seen seen;

	(void)state;
	assert_string_equal(hf_extra_read(same, HF_EXTRA_ROLE, "j", arena, &seen), "j");
	assert_true(seen.owned);
	assert_false(seen.terminating);
	assert_string_equal(seen.name, "r");
	assert_string_equal(seen.uid, "u");
	assert_true(seen.digest == hf_extra_digest(&extra));
	hf_extra_read(other, HF_EXTRA_ROLE, "j", arena, &seen);
	assert_false(seen.digest == hf_extra_digest(&extra));
}

static void what_nobody_controls_is_not_looked_into(void **state)
{
	HF_AUTO_DOC mine = doc(OBJECT("", RULES));
	struct hf_extra_seen seen;

	(void)state;
	assert_null(hf_extra_read(mine, HF_EXTRA_ROLE, NULL, arena, &seen));
	assert_false(seen.owned);
	assert_true(seen.digest == 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(leaves_become_an_object),
		T(a_change_replaces_what_is_under_the_root_of_that_object_alone),
		T(what_was_written_is_read_as_the_same),
		T(what_nobody_controls_is_not_looked_into),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
