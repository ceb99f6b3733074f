/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/extra_object.h"

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

static void an_object_without_a_controller_is_not_looked_into(void **state)
{
	HF_AUTO_DOC mine = doc(OBJECT("", RULES));
	struct hf_extra_seen seen;

	(void)state;
	assert_null(hf_extra_read(mine, HF_EXTRA_ROLE, NULL, arena, &seen));
	assert_false(seen.owned);
	assert_true(seen.digest == 0);
}

/* ---- values of other types ------------------------------------------------------------------- */

#define METRICS "[{\"type\":\"Pods\",\"pods\":{\"a/b\":{\"[0]\":true,\"~\":1.5}}}]"
#define GROUP(spec)                                                                                \
	"{\"apiVersion\":\"scheduling.volcano.sh/v1beta1\",\"kind\":\"PodGroup\",\"metadata\":{"   \
	"\"name\":\"r\",\"ownerReferences\":[" OURS "]},\"spec\":" spec "}"

static struct hf_extra group(void)
{
	struct hf_extra group = *hf_extras_add(&extras, HF_EXTRA_VOLCANO_GROUP, "r");

	hf_extra_set_number(&extras, &group, "spec/minMember", 2);
	hf_extra_set_object(&extras, &group, "spec/minResources");
	hf_extra_set(&extras, &group,
		     hf_arena_printf(arena, "spec/minResources/%s", hf_leaf_key(arena, "[a/b~c]")),
		     "1");
	hf_extra_set(&extras, &group, "spec/queue", "q");
	return group;
}

static void numbers_objects_and_any_keys_are_written_and_read(void **state)
{
	HF_AUTO_DOC same = doc(GROUP("{\"minResources\":{\"[a/b~c]\":\"1\"},\"minMember\":2,"
				     "\"queue\":\"other\",\"more\":1}"));
	HF_AUTO_DOC text = doc(GROUP("{\"minResources\":{\"[a/b~c]\":\"1\"},\"minMember\":\"2\"}"));
	struct hf_extra extra = group();
	struct hf_extra_seen seen;

	(void)state;
	assert_text(hf_extra_write(&extra),
		    "{\"apiVersion\":\"scheduling.volcano.sh/v1beta1\",\"kind\":\"PodGroup\","
		    "\"metadata\":{\"name\":\"r\"},\"spec\":{\"minMember\":2,\"minResources\":{"
		    "\"[a/b~c]\":\"1\"},\"queue\":\"q\"}}");
	hf_extra_read(same, HF_EXTRA_VOLCANO_GROUP, "j", arena, &seen);
	assert_true(seen.digest == hf_extra_digest(&extra));
	hf_extra_read(text, HF_EXTRA_VOLCANO_GROUP, "j", arena, &seen);
	assert_false(seen.digest == hf_extra_digest(&extra));
}

static void a_member_that_is_not_wanted_becomes_null(void **state)
{
	struct hf_extra extra = group();

	(void)state;
	assert_text(
		hf_extra_patch(&extra, "u"),
		"[{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":\"u\"},"
		"{\"op\":\"add\",\"path\":\"/spec/minMember\",\"value\":2},"
		"{\"op\":\"add\",\"path\":\"/spec/minResources\",\"value\":{\"[a/b~c]\":\"1\"}},"
		"{\"op\":\"add\",\"path\":\"/spec/priorityClassName\",\"value\":null}]");
}

static void json_is_handed_on_and_known_again(void **state)
{
	HF_AUTO_DOC metrics = doc(METRICS);
	HF_AUTO_DOC same = doc("{\"metadata\":{\"name\":\"r\",\"ownerReferences\":[" OURS
			       "]},\"spec\":{\"behavior\":{},\"metrics\":" METRICS "}}");
	struct hf_extra extra = *hf_extras_add(&extras, HF_EXTRA_AUTOSCALER, "r");
	struct hf_extra_seen seen;

	(void)state;
	hf_extra_set_json(&extras, &extra, HF_AUTOSCALER_METRICS, METRICS,
			  hf_extra_value_digest(HF_AUTOSCALER_METRICS, hf_doc_json(metrics)));
	assert_text(hf_json_copy(hf_json_path(hf_doc_json(same), "spec", "metrics", NULL)),
		    METRICS);
	hf_extra_read(same, HF_EXTRA_AUTOSCALER, "j", arena, &seen);
	assert_true(seen.digest == hf_extra_digest(&extra));
	assert_true(seen.ready);
}

static void volcano_lets_in_by_the_phase(void **state)
{
	static const struct {
		const char *status;
		bool ready;
	} rows[] = {{"", false},
		    {",\"status\":{}", false},
		    {",\"status\":{\"phase\":\"Pending\"}", false},
		    {",\"status\":{\"phase\":\"Inqueue\"}", true},
		    {",\"status\":{\"phase\":\"Running\"}", true},
		    {",\"status\":{\"phase\":\"Unknown\"}", true}};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		const char *text =
			hf_arena_printf(arena, "{\"metadata\":{\"name\":\"r\"}%s}", rows[i].status);
		HF_AUTO_DOC made = doc(text);
		struct hf_extra_seen seen;

		hf_extra_read(made, HF_EXTRA_VOLCANO_GROUP, "j", arena, &seen);
		assert_int_equal(seen.ready, rows[i].ready);
		hf_extra_read(made, HF_EXTRA_POD_GROUP, "j", arena, &seen);
		assert_true(seen.ready);
	}
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(leaves_become_an_object),
		T(a_change_replaces_what_is_under_the_root_of_that_object_alone),
		T(what_was_written_is_read_as_the_same),
		T(an_object_without_a_controller_is_not_looked_into),
		T(numbers_objects_and_any_keys_are_written_and_read),
		T(a_member_that_is_not_wanted_becomes_null),
		T(json_is_handed_on_and_known_again),
		T(volcano_lets_in_by_the_phase),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
