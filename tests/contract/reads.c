/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Contract tests of reading: rules 12 to 16 of src/store/CONTRACT.md. */
#include "contract/contract.h"

#include <stdio.h>
#include <string.h>

static void a_read_sees_what_was_acknowledged_before(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	const struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_configmaps, .ns = ns, .name = "c"};

	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	/* Read through another client, too. */
	outcome_release(&o);
	hf_store_request(w->other, &request, outcome_take, &o);
	wait_for(w, &o.calls, 1);
	assert_int_equal(o.code, 0);
	assert_string_equal(text_at(&o, "data.k"), "v");
	assert_int_equal(list(w, &hf_configmaps, ns, &o), 0);
	size_t found = 0;
	for (size_t i = 0; i < o.n_items; i++)
		found += strcmp(hf_doc_name(o.items[i]), "c") == 0;
	assert_int_equal(found, 1);
}

static void an_object_that_is_not_there_is_not_found(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(get(w, &hf_configmaps, ns, "nobody", &o), HF_E_NOT_FOUND);
	assert_string_equal(o.message, "configmaps \"nobody\" not found");
	assert_int_equal(merge(w, AT(&hf_configmaps, ns, "nobody"), &o, "{'data':{}}"),
			 HF_E_NOT_FOUND);
	assert_int_equal(erase(w, &hf_configmaps, ns, "nobody", &o), HF_E_NOT_FOUND);
}

static void make_three_pods(struct world *w, const char *ns)
{
	AUTO_OUTCOME o = {0};

	for (int i = 0; i < 3; i++)
		assert_int_equal(create(w, &hf_pods, ns, &o,
					"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p%d',"
					"'labels':{'i':'%d','all':'yes'}},'spec':{"
					"'schedulerName':'nobody',"
					"'containers':[{'name':'c','image':'i'}]}}",
					i, i),
				 0);
}

static int select_labels(struct world *w, const char *ns, const char *selector, struct outcome *o)
{
	return ask(w,
		   &(struct hf_request){.verb = HF_VERB_LIST,
					.resource = &hf_pods,
					.ns = ns,
					.label_selector = selector},
		   o);
}

static void label_selectors_choose(struct world *w)
{
	const struct {
		const char *selector;
		size_t n;
	} cases[] = {
		{"i=1", 1},
		{"i==1", 1},
		{"i!=1", 2},
		{"i in (0,2)", 2},
		{"i notin (0)", 2},
		{"all", 3},
		{"!all", 0},
		{"i=1,all=yes", 1},
		{"i=1,i=2", 0},
		{"none notin (x)", 3},
		{"", 3},
		{"i>0", 2},
	};
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	make_three_pods(w, ns);
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		assert_int_equal(select_labels(w, ns, cases[i].selector, &o), 0);
		if (o.n_items != cases[i].n)
			fail_msg("'%s' chose %zu, not %zu", cases[i].selector, o.n_items,
				 cases[i].n);
	}
}

static void field_selectors_choose(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	struct hf_request request = {.verb = HF_VERB_LIST, .resource = &hf_pods, .ns = ns};

	make_three_pods(w, ns);
	bind_pod(w, ns, "p2", "node-a");
	request.field_selector = "metadata.name=p1";
	assert_int_equal(ask(w, &request, &o), 0);
	assert_int_equal(o.n_items, 1);
	assert_string_equal(hf_doc_name(o.items[0]), "p1");
	request.field_selector = "spec.nodeName=node-a";
	assert_int_equal(ask(w, &request, &o), 0);
	assert_int_equal(o.n_items, 1);
	request.field_selector = "spec.nodeName=,metadata.name!=p0";
	assert_int_equal(ask(w, &request, &o), 0);
	assert_int_equal(o.n_items, 1);
	request.field_selector = "status.phase=Pending";
	request.label_selector = "i=0";
	assert_int_equal(ask(w, &request, &o), 0);
	assert_int_equal(o.n_items, 1);
}

static void a_list_of_all_namespaces_has_them_all(struct world *w)
{
	AUTO_OUTCOME o = {0};
	char first[64];
	static int round;
	char label[64];

	snprintf(label, sizeof(label), "round-%d", ++round);
	snprintf(first, sizeof(first), "%s", fresh_namespace(w));
	const char *second = fresh_namespace(w);
	const char *both[] = {first, second};
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(create(w, &hf_configmaps, both[i], &o,
					"{'apiVersion':'v1','kind':'ConfigMap','metadata':{"
					"'name':'same','labels':{'mark':'%s-%s'}}}",
					label, first),
				 0);
	char selector[160];
	snprintf(selector, sizeof(selector), "mark=%s-%s", label, first);
	assert_int_equal(ask(w,
			     &(struct hf_request){.verb = HF_VERB_LIST,
						  .resource = &hf_configmaps,
						  .label_selector = selector},
			     &o),
			 0);
	assert_int_equal(o.n_items, 2);
}

static void make_configmaps(struct world *w, const char *ns, int n)
{
	AUTO_OUTCOME o = {0};
	char name[16];

	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "c%02d", i);
		assert_int_equal(create(w, &hf_configmaps, ns, &o,
					"{'apiVersion':'v1','kind':'ConfigMap','metadata':{"
					"'name':'%s','labels':{'page':'yes'}}}",
					name),
				 0);
	}
}

/* Reads all pages from o->token on; appends the names to `all`, separated by blanks. */
static int read_pages(struct world *w, const char *ns, struct outcome *o, char all[1024])
{
	struct hf_request request = {.verb = HF_VERB_LIST,
				     .resource = &hf_configmaps,
				     .ns = ns,
				     .limit = 3,
				     .label_selector = "page=yes"};
	char token[256] = "";
	int pages = 0;

	snprintf(token, sizeof(token), "%s", o->token);
	do {
		request.continue_token = *token ? token : NULL;
		assert_int_equal(ask(w, &request, o), 0);
		for (size_t i = 0; i < o->n_items; i++) {
			size_t len = strlen(all);
			snprintf(all + len, 1024 - len, "%s%s", len ? " " : "",
				 hf_doc_name(o->items[i]));
		}
		assert_true(o->n_items <= 3);
		snprintf(token, sizeof(token), "%s", o->token);
		pages++;
	} while (*token);
	return pages;
}

static void pages_together_are_the_list(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	char all[1024] = "";

	make_configmaps(w, ns, 8);
	assert_int_equal(read_pages(w, ns, &o, all), 3);
	assert_string_equal(all, "c00 c01 c02 c03 c04 c05 c06 c07");
}

static void pages_are_one_moment(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	AUTO_OUTCOME other = {0};
	char all[1024] = "", version[32];
	struct hf_request request = {.verb = HF_VERB_LIST,
				     .resource = &hf_configmaps,
				     .ns = ns,
				     .limit = 3,
				     .label_selector = "page=yes"};

	make_configmaps(w, ns, 7);
	assert_int_equal(ask(w, &request, &o), 0);
	assert_int_equal(o.n_items, 3);
	snprintf(version, sizeof(version), "%s", o.version);
	/* After the first page: delete, create and change an object. */
	assert_int_equal(erase(w, &hf_configmaps, ns, "c05", &other), 0);
	assert_int_equal(create(w, &hf_configmaps, ns, &other,
				"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'c04a',"
				"'labels':{'page':'yes'}}}"),
			 0);
	assert_int_equal(merge(w, AT(&hf_configmaps, ns, "c06"), &other,
			       "{'metadata':{'labels':{'page':'no'}}}"),
			 0);
	read_pages(w, ns, &o, all);
	assert_string_equal(all, "c03 c04 c05 c06");
	assert_string_equal(o.version, version);
}

static void a_malformed_continue_token_is_refused(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(ask(w,
			     &(struct hf_request){.verb = HF_VERB_LIST,
						  .resource = &hf_configmaps,
						  .ns = ns,
						  .limit = 1,
						  .continue_token = "nonsense"},
			     &o),
			 HF_E_BAD_REQUEST);
}

static void an_expired_continue_token_is_gone(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	char token[256];
	struct hf_request request = {
		.verb = HF_VERB_LIST, .resource = &hf_configmaps, .ns = ns, .limit = 1};

	if (!w->forget)
		return;
	make_configmaps(w, ns, 3);
	assert_int_equal(ask(w, &request, &o), 0);
	snprintf(token, sizeof(token), "%s", o.token);
	w->forget(w, ns);
	request.continue_token = token;
	assert_int_equal(ask(w, &request, &o), HF_E_GONE);
}

static void the_remaining_count_is_right_or_unknown(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	struct hf_request request = {
		.verb = HF_VERB_LIST, .resource = &hf_pods, .ns = ns, .limit = 2};

	make_three_pods(w, ns);
	assert_int_equal(ask(w, &request, &o), 0);
	assert_true(o.remaining == 1 || o.remaining == -1);
	request.label_selector = "all";
	assert_int_equal(ask(w, &request, &o), 0);
	assert_true(o.remaining == 1 || o.remaining == -1);
}

static void a_list_that_may_be_old_is_answered(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	make_three_pods(w, ns);
	assert_int_equal(ask(w,
			     &(struct hf_request){.verb = HF_VERB_LIST,
						  .resource = &hf_pods,
						  .ns = ns,
						  .resource_version = "0"},
			     &o),
			 0);
	assert_true(o.n_items <= 3);
	assert_true(strlen(o.version) > 0);
}

const struct contract_test contract_reads[] = {
	{"12: a read sees what was acknowledged before", a_read_sees_what_was_acknowledged_before},
	{"12: an object that is not there is not found", an_object_that_is_not_there_is_not_found},
	{"13: a list that may be old is answered", a_list_that_may_be_old_is_answered},
	{"14: label selectors choose", label_selectors_choose},
	{"14: field selectors choose", field_selectors_choose},
	{"14: a list of all namespaces has them all", a_list_of_all_namespaces_has_them_all},
	{"15: pages together are the list", pages_together_are_the_list},
	{"15: pages are one moment", pages_are_one_moment},
	{"15: a malformed continue token is refused", a_malformed_continue_token_is_refused},
	{"15: an expired continue token is gone", an_expired_continue_token_is_gone},
	{"16: the remaining count is right or unknown", the_remaining_count_is_right_or_unknown},
	{NULL, NULL},
};
