/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy_actor.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/json_text.h"
#include "store/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Rung external: the object for another controller, from the template of the policy to its deletion.
 *
 * The embedded store knows no kinds of fix.example, so a store in front of it keeps the template and one object.
 * The node of each test is n003.
 */

#define NODE 3
#define NAME "n003"
#define ACT NAME "-1"
#define CALLS_MAX 16
#define MEND                                                                                       \
	"'mend':{'rungs':['external'],'external':{'template':{'apiVersion':'fix.example/v1',"      \
	"'kind':'FixTemplate','name':'t'}}}"
#define POLICY "{'mode':'remediate'," MEND "," WIDE "}"

/* What the cluster has of these kinds. */
struct fixes {
	struct hf_loop *loop;
	struct hf_doc *template, *object;
	unsigned creates, deletes;
	struct ra *actors;
};

struct fix_call;

struct fix_store {
	struct hf_store base; /* first */
	struct fixes *fixes;
	struct hf_store *inner;
	struct fix_call *calls[CALLS_MAX];
};

struct fix_call {
	struct hf_call base; /* first */
	struct fix_store *store;
	struct hf_timer *timer;
	enum hf_verb verb;
	bool is_template;
	char name[64], uid[64];
	struct hf_doc *body;
	hf_reply_fn done;
	void *arg;
};

static const struct hf_store_ops ops;

static void free_call(struct fix_call *call)
{
	for (size_t i = 0; i < CALLS_MAX; i++)
		if (call->store->calls[i] == call)
			call->store->calls[i] = NULL;
	hf_timer_destroy(call->timer);
	hf_doc_unref(call->body);
	free(call);
}

static struct hf_doc *make_object(struct fixes *fixes, struct hf_doc *body)
{
	struct hf_json *json = hf_doc_copy_json(body);
	char uid[16];

	snprintf(uid, sizeof(uid), "fix-%u", ++fixes->creates);
	hf_json_set_str(hf_json_ensure_object(json, "metadata"), "uid", uid);
	hf_json_set_str(hf_json_ensure_object(json, "metadata"), "resourceVersion", "1");
	return hf_doc_from_json(json);
}

/* Performs the request. Returns a code of HF_E_*. */
static int perform(struct fixes *fixes, struct fix_call *call, struct hf_doc **ret_doc)
{
	if (call->verb == HF_VERB_CREATE) {
		if (fixes->object != NULL)
			return HF_E_EXISTS;
		fixes->object = make_object(fixes, call->body);
	} else if (call->verb == HF_VERB_DELETE && fixes->object != NULL) {
		assert_string_equal(call->uid, hf_doc_uid(fixes->object));
		fixes->deletes++;
		hf_doc_unref(hf_steal(&fixes->object));
		return 0;
	}
	*ret_doc = call->is_template ? fixes->template : fixes->object;
	if (*ret_doc != NULL && call->verb == HF_VERB_GET &&
	    !hf_streq(call->name, hf_doc_name(*ret_doc)))
		*ret_doc = NULL;
	return *ret_doc == NULL ? HF_E_NOT_FOUND : 0;
}

static void on_due(void *arg)
{
	struct fix_call *call = arg;
	struct hf_doc *doc = NULL;
	int code = perform(call->store->fixes, call, &doc);
	const struct hf_reply reply = {.code = code,
				       .message = "",
				       .object = code == 0 ? doc : NULL,
				       .resource_version = "",
				       .continue_token = "",
				       .server_time = HF_TIME_NONE};
	hf_reply_fn done = call->done;
	void *done_arg = call->arg;

	free_call(call);
	done(done_arg, &reply);
}

static struct hf_call *request(struct hf_store *base, const struct hf_request *r, hf_reply_fn done,
			       void *arg)
{
	struct fix_store *store = (struct fix_store *)base;
	struct fix_call *call;
	size_t at = 0;

	if (!hf_streq(r->resource->group, "fix.example"))
		return hf_store_request(store->inner, r, done, arg);
	while (at < CALLS_MAX && store->calls[at] != NULL)
		at++;
	hf_assert(at < CALLS_MAX);
	call = store->calls[at] = hf_xcalloc(1, sizeof(*call));
	call->base.ops = &ops;
	call->store = store;
	call->verb = r->verb;
	call->is_template = hf_streq(r->resource->plural, "fixtemplates");
	call->body = r->body == NULL ? NULL : hf_doc_ref(r->body);
	call->done = done;
	call->arg = arg;
	snprintf(call->name, sizeof(call->name), "%s", hf_str_or(r->name, ""));
	snprintf(call->uid, sizeof(call->uid), "%s", hf_str_or(r->precondition_uid, ""));
	call->timer = hf_timer_create(store->fixes->loop, on_due, call);
	hf_timer_arm(call->timer, HF_MS);
	return &call->base;
}

static void cancel(struct hf_call *call)
{
	free_call((struct fix_call *)call);
}

static struct hf_watch *watch(struct hf_store *base, const struct hf_watch_options *options,
			      hf_event_fn fn, void *arg)
{
	return hf_store_watch(((struct fix_store *)base)->inner, options, fn, arg);
}

static void destroy(struct hf_store *base)
{
	struct fix_store *store = (struct fix_store *)base;

	for (size_t i = 0; i < CALLS_MAX; i++)
		if (store->calls[i] != NULL)
			free_call(store->calls[i]);
	hf_store_destroy(store->inner);
	free(store);
}

static const struct hf_store_ops ops = {
	.name = "fixes", .request = request, .cancel = cancel, .watch = watch, .destroy = destroy};

static struct hf_store *wrap(void *arg, struct hf_store *inner)
{
	struct fix_store *store = hf_xcalloc(1, sizeof(*store));

	store->base.ops = &ops;
	store->fixes = arg;
	store->inner = inner;
	return &store->base;
}

static void end(void *arg)
{
	struct fixes *fixes = arg;

	hf_doc_unref(fixes->template);
	hf_doc_unref(fixes->object);
	free(fixes);
}

/* ---- what is left of the object ------------------------------------------------------------------- */

static const char *phase_of(struct rw *w)
{
	return hf_str_or(
		hf_json_path_str(rw_get(w, &hf_remediations, NULL, ACT), "status", "phase", NULL),
		"");
}

/* The object exists, and the act waits for its proof. */
static struct fixes *begin(struct rw *w)
{
	struct fixes *fixes = hf_xcalloc(1, sizeof(*fixes));

	fixes->actors = ra_create(w);
	fixes->actors->at_once = 1;
	fixes->loop = w->loop;
	fixes->template = json_doc_of(
		"{'apiVersion':'fix.example/v1','kind':'FixTemplate','metadata':{'name':'t','uid':'u',"
		"'resourceVersion':'1'},'spec':{'template':{'spec':{'how':'power'}}}}");
	rw_at_end(w, end, fixes);
	w->wrap_arg = fixes;
	w->wrap = wrap;
	rw_begin(w, 10, POLICY);
	rw_say(w, NODE, RW_RESET);
	rw_run(w, HF_MINUTE);
	assert_non_null(fixes->object);
	assert_string_equal(hf_doc_name(fixes->object), NAME);
	assert_string_equal(phase_of(w), "Verifying");
	return fixes;
}

static void the_object_goes_with_the_proof(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = begin(w);

	rw_say(w, NODE, RW_WELL);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(phase_of(w), "Succeeded");
	assert_null(fixes->object);
	assert_int_equal(fixes->creates, 1);
	assert_int_equal(fixes->deletes, 1);
	assert_null(hf_json_path(rw_get(w, &hf_remediations, NULL, ACT), "status", "saved",
				 "external", NULL));
}

/* The other controller works on the node as long as the object exists, so it goes whatever becomes of the policy. */
static void the_object_goes_although_the_policy_has_changed(void **state)
{
	static const char *const patches[] = {
		NULL, "{'spec':{'mend':null}}",
		"{'spec':{'mend':{'external':{'template':{'apiVersion':'other.example/v2','kind':"
		"'PowerTemplate','name':'p','namespace':'default'}}}}}",
		"{'spec':{'mend':{'rungs':['no-rung']}}}"};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(patches); i++) {
		struct fixes *fixes;
		struct rw *w;

		rw_setup((void **)&w);
		fixes = begin(w);
		if (patches[i] == NULL)
			rw_delete(w, &hf_healthpolicies, "p");
		else
			rw_patch(w, &hf_healthpolicies, "p", patches[i]);
		rw_run(w, HF_MINUTE);
		rw_say(w, NODE, RW_WELL);
		rw_run(w, 10 * HF_MINUTE);
		assert_string_equal(phase_of(w), "Succeeded");
		if (fixes->object != NULL)
			fail_msg("%zu: the object is left", i);
		assert_int_equal(fixes->creates, 1);
		rw_teardown((void **)&w);
	}
}

/* The other controller has replaced the machine. The next Node may have the same name, and is well. */
static void the_object_goes_with_the_node(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = begin(w);

	rw_delete(w, &hf_nodes, NAME);
	rw_run(w, HF_MINUTE);
	assert_string_equal(phase_of(w), "Succeeded");
	assert_null(fixes->object);
	assert_int_equal(fixes->creates, 1);
}

/* The times of an act without an actor are the operator's, whatever the clock of the node says. */
static void a_fault_from_before_the_act_is_mended(void **state)
{
	static const hf_time clocks[] = {-HF_HOUR, HF_HOUR};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(clocks); i++) {
		char at[HF_TIME_TEXT_MAX], more[128];
		struct fixes *fixes;
		struct rw *w;

		rw_setup((void **)&w);
		w->clock[NODE] = clocks[i];
		fixes = begin(w);
		rw_say(w, NODE, RW_WELL);
		rw_run(w, 10 * HF_MINUTE);
		assert_string_equal(phase_of(w), "Succeeded");
		rw_patch(w, &hf_healthpolicies, "p", "{'spec':{'mode':'observe'}}");
		/* Half an hour ago; the act is eleven minutes old. */
		hf_time_format_micro(hf_loop_wall(w->loop) - HF_HOUR / 2, at);
		snprintf(more, sizeof(more), ",'fault':{'class':'reboot','time':'%s'}", at);
		rw_say(w, NODE, RW_REBOOT);
		w->people_ask = true;
		ra_request(fixes->actors, NODE, 2, "reboot", more);
		rw_run(w, HF_MINUTE);
		assert_non_null(strstr(
			hf_str_or(hf_json_path_str(rw_get(w, &hf_remediations, NULL, NAME "-2"),
						   "status", "message", NULL),
				  ""),
			"the fault is older than the last act"));
		rw_teardown((void **)&w);
	}
}

int main(int argc, char **argv)
{
#define T(test) cmocka_unit_test_setup_teardown(test, rw_setup, rw_teardown)
	const struct CMUnitTest tests[] = {
		T(the_object_goes_with_the_proof),
		cmocka_unit_test(the_object_goes_although_the_policy_has_changed),
		T(the_object_goes_with_the_node),
		cmocka_unit_test(a_fault_from_before_the_act_is_mended),
	};

	/* One test alone, by a pattern. */
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
