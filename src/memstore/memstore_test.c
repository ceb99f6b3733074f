/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "contract/plane.h"

#include "base/mem.h"
#include "base/str.h"
#include "memstore/memstore_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tests of the store's own interface: controllers, rules, limits, time. */

static struct hf_request create_request(struct hf_doc *body)
{
	return (struct hf_request){
		.verb = HF_VERB_CREATE, .resource = &hf_configmaps, .ns = "default", .body = body};
}

static struct hf_doc *make_configmap(const char *name)
{
	return json_doc("{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'%s'}}", name);
}

/* --- observers --- */

struct observed {
	struct hf_memstore *memstore;
	char text[512];
	int resets;
	bool answer; /* the observer creates another object */
};

static void on_changed(void *arg, const struct hf_memstore_change *change)
{
	struct observed *o = arg;
	size_t len = strlen(o->text);
	struct hf_doc *any = change->after ? change->after : change->before;
	char how = !change->before ? '+' : !change->after ? '-' : '~';

	snprintf(o->text + len, sizeof(o->text) - len, "%s%c%s", len ? " " : "", how,
		 hf_doc_name(any));
	if (o->answer) {
		HF_AUTO_DOC body = make_configmap("answer");
		const struct hf_request request = create_request(body);
		HF_AUTO_RESULT result = {0};
		o->answer = false;
		hf_memstore_apply(o->memstore, &request, &result);
		assert_int_equal(result.code, 0);
	}
}

static void on_reset(void *arg)
{
	struct observed *o = arg;

	o->resets++;
}

static void observers_hear_of_commits_first(void **state)
{
	struct plane p;
	struct observed seen = {0};
	const struct hf_memstore_observer observer = {on_changed, on_reset, &seen};
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	seen.memstore = p.memstore;
	hf_memstore_observe(p.memstore, &observer);
	HF_AUTO_DOC body = make_configmap("a");
	const struct hf_request request = create_request(body);
	hf_store_request(p.w.store, &request, outcome_take, &o);
	assert_string_equal(seen.text, "");
	wait_for(&p.w, &o.calls, 1);
	assert_string_equal(seen.text, "+a");
	assert_int_equal(merge(&p.w, AT(&hf_configmaps, "default", "a"), &o, "{'data':{'k':'1'}}"),
			 0);
	assert_int_equal(erase(&p.w, &hf_configmaps, "default", "a", &o), 0);
	assert_string_equal(seen.text, "+a ~a -a");
	hf_memstore_unobserve(p.memstore, &observer);
	assert_int_equal(create_configmap(&p.w, "default", "b", &o), 0);
	assert_string_equal(seen.text, "+a ~a -a");
	plane_close(&p);
}

static void an_observer_may_write(void **state)
{
	struct plane p;
	struct observed seen = {.answer = true};
	const struct hf_memstore_observer observer = {on_changed, on_reset, &seen};
	AUTO_OUTCOME o = {0};
	AUTO_SEEN watched = {0};

	plane_open(&p, NULL, false);
	seen.memstore = p.memstore;
	hf_memstore_observe(p.memstore, &observer);
	seen_start(&p.w, &watched, &(struct hf_watch_options){.resource = &hf_configmaps});
	assert_int_equal(create_configmap(&p.w, "default", "a", &o), 0);
	wait_events(&p.w, &watched, 2);
	assert_string_equal(seen_text(&watched), "A:a A:answer");
	assert_string_equal(seen.text, "+a +answer");
	hf_memstore_unobserve(p.memstore, &observer);
	seen_release(&watched);
	plane_close(&p);
}

static void applied_changes_are_visible_at_once_and_reported_at_the_commit(void **state)
{
	struct plane p;
	struct observed seen = {0};
	const struct hf_memstore_observer observer = {on_changed, on_reset, &seen};
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	hf_memstore_observe(p.memstore, &observer);
	HF_AUTO_DOC body = make_configmap("a");
	const struct hf_request request = create_request(body);
	assert_int_equal(apply_now(&p, &request), 0);
	assert_non_null(hf_memstore_peek(p.memstore, &hf_configmaps, "default", "a"));
	assert_string_equal(seen.text, "");
	struct hf_error err = {0};
	assert_ok(hf_memstore_flush(p.memstore, &err), &err);
	assert_string_equal(seen.text, "+a");
	/* The flush has done the turn's work, so the next turn reports nothing. */
	settle(&p.w);
	assert_string_equal(seen.text, "+a");
	hf_memstore_unobserve(p.memstore, &observer);
	plane_close(&p);
}

struct names {
	char text[256];
};

static void add_name(void *arg, struct hf_doc *doc)
{
	struct names *n = arg;
	size_t len = strlen(n->text);

	snprintf(n->text + len, sizeof(n->text) - len, "%s%s/%s", len ? " " : "",
		 hf_doc_namespace(doc), hf_doc_name(doc));
}

static void each_walks_in_order(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};
	struct names all = {0}, one = {0}, none = {0};

	plane_open(&p, NULL, false);
	assert_int_equal(create_configmap(&p.w, "kube-system", "z", &o), 0);
	assert_int_equal(create_configmap(&p.w, "default", "c", &o), 0);
	assert_int_equal(create_configmap(&p.w, "default", "a", &o), 0);
	assert_int_equal(create_configmap(&p.w, "kube-public", "b", &o), 0);
	hf_memstore_each(p.memstore, &hf_configmaps, NULL, add_name, &all);
	assert_string_equal(all.text, "default/a default/c kube-public/b kube-system/z");
	hf_memstore_each(p.memstore, &hf_configmaps, "kube-public", add_name, &one);
	assert_string_equal(one.text, "kube-public/b");
	hf_memstore_each(p.memstore, &hf_secrets, NULL, add_name, &none);
	assert_string_equal(none.text, "");
	assert_int_equal(hf_memstore_count(p.memstore, &hf_configmaps), 4);
	plane_close(&p);
}

/* --- rules --- */

struct rules {
	int calls, code;
	const char *cause; /* field of the problem to report */
	bool warn, change;
	enum hf_verb verb;
	char name[64], validation[16];
	bool had_before, dry_run;
};

static int on_admit(void *arg, struct hf_admission *a, struct hf_error *err)
{
	struct rules *r = arg;

	r->calls++;
	r->verb = a->verb;
	r->had_before = a->before != NULL;
	r->dry_run = a->dry_run;
	snprintf(r->name, sizeof(r->name), "%s", a->name);
	snprintf(r->validation, sizeof(r->validation), "%s", a->field_validation);
	if (r->warn)
		hf_admission_warn(a, "spec.old is deprecated");
	if (r->change)
		hf_json_set_str(hf_json_ensure_object(a->object, "data"), "added", "yes");
	if (r->cause) {
		hf_admission_cause(a, "FieldValueRequired", r->cause, "Required value");
		hf_admission_cause(a, "FieldValueInvalid", "spec.other",
				   "Invalid value: 3: no more than 2");
		return HF_E_INVALID;
	}
	return r->code ? hf_error_set(err, r->code, "not today") : 0;
}

static void set_rules(struct plane *p, struct rules *r, bool on_delete)
{
	hf_memstore_set_rules(
		p->memstore, &hf_configmaps,
		&(struct hf_memstore_rules){.admit = on_admit, .arg = r, .on_delete = on_delete});
}

static void rules_may_change_an_object_and_warn(void **state)
{
	struct plane p;
	struct rules r = {.warn = true, .change = true};
	HF_AUTO_RESULT result = {0};
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	set_rules(&p, &r, false);
	HF_AUTO_DOC body = make_configmap("c");
	struct hf_request request = create_request(body);
	request.field_validation = "Strict";
	hf_memstore_apply(p.memstore, &request, &result);
	assert_int_equal(result.code, 0);
	assert_int_equal(result.n_warnings, 1);
	assert_string_equal(result.warnings[0], "spec.old is deprecated");
	assert_string_equal(hf_json_path_str(hf_doc_json(result.object), "data", "added", NULL),
			    "yes");
	assert_int_equal(r.verb, HF_VERB_CREATE);
	assert_string_equal(r.name, "c");
	assert_string_equal(r.validation, "Strict");
	assert_false(r.had_before);
	/* The caller's body has not changed. */
	assert_null(hf_json_get(hf_doc_json(body), "data"));
	/* The rule for an update gets the stored object in `before`. */
	assert_int_equal(merge(&p.w, AT(&hf_configmaps, "default", "c"), &o, "{'data':{'k':'1'}}"),
			 0);
	assert_int_equal(r.verb, HF_VERB_UPDATE);
	assert_true(r.had_before);
	assert_string_equal(r.validation, "Warn");
	/* Writes without a change and deletions do not call the rule. */
	r.calls = 0;
	assert_int_equal(merge(&p.w, AT(&hf_configmaps, "default", "c"), &o, "{'data':{'k':'1'}}"),
			 0);
	assert_int_equal(erase(&p.w, &hf_configmaps, "default", "c", &o), 0);
	assert_int_equal(r.calls, 0);
	plane_close(&p);
}

static void rules_refuse_with_a_cause_per_field(void **state)
{
	struct plane p;
	struct rules r = {.cause = "spec.image"};
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	set_rules(&p, &r, false);
	assert_int_equal(create_configmap(&p.w, "default", "c", &o), HF_E_INVALID);
	assert_string_equal(o.message,
			    "ConfigMap \"c\" is invalid: [spec.image: Required value, spec.other: "
			    "Invalid value: 3: no more than 2]");
	assert_string_equal(text_at(&o, "details.causes.0.field"), "spec.image");
	assert_string_equal(text_at(&o, "details.causes.1.reason"), "FieldValueInvalid");
	assert_int_equal(number_at(&o, "code"), 422);
	r.cause = NULL;
	r.code = HF_E_FORBIDDEN;
	assert_int_equal(create_configmap(&p.w, "default", "c", &o), HF_E_FORBIDDEN);
	assert_string_equal(o.message, "configmaps \"c\" is forbidden: not today");
	r.code = HF_E_BAD_REQUEST;
	assert_int_equal(create_configmap(&p.w, "default", "c", &o), HF_E_BAD_REQUEST);
	assert_string_equal(o.message, "not today");
	assert_int_equal(hf_memstore_count(p.memstore, &hf_configmaps), 0);
	plane_close(&p);
}

static void rules_may_check_deletes(void **state)
{
	struct plane p;
	struct rules r = {0};
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	set_rules(&p, &r, true);
	assert_int_equal(create_configmap(&p.w, "default", "c", &o), 0);
	r.code = HF_E_FORBIDDEN;
	assert_int_equal(erase(&p.w, &hf_configmaps, "default", "c", &o), HF_E_FORBIDDEN);
	assert_int_equal(r.verb, HF_VERB_DELETE);
	assert_int_equal(hf_memstore_count(p.memstore, &hf_configmaps), 1);
	plane_close(&p);
}

/* --- limits --- */

static void limits_are_kept(void **state)
{
	const struct hf_memstore_options options = {
		.object_bytes_max = 4096, .objects_max = 5, .bytes_max = 8192};
	struct plane p;
	AUTO_OUTCOME o = {0};
	char big[5000], half[2500];

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	memset(half, 'x', sizeof(half) - 1);
	half[sizeof(half) - 1] = '\0';
	plane_open(&p, &options, false);
	/* The limit of one object. */
	assert_int_equal(create(&p.w, &hf_configmaps, "default", &o,
				"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'c'},"
				"'data':{'k':'%s'}}",
				big),
			 HF_E_TOO_LARGE);
	assert_int_equal(create_configmap(&p.w, "default", "c0", &o), 0);
	assert_int_equal(
		merge(&p.w, AT(&hf_configmaps, "default", "c0"), &o, "{'data':{'k':'%s'}}", big),
		HF_E_TOO_LARGE);
	/* The limit of all objects together. */
	assert_int_equal(
		merge(&p.w, AT(&hf_configmaps, "default", "c0"), &o, "{'data':{'k':'%s'}}", half),
		0);
	assert_int_equal(create(&p.w, &hf_secrets, "default", &o,
				"{'apiVersion':'v1','kind':'Secret','metadata':{'name':'s'},"
				"'data':{'k':'%s'}}",
				half),
			 0);
	assert_int_equal(create(&p.w, &hf_secrets, "default", &o,
				"{'apiVersion':'v1','kind':'Secret','metadata':{'name':'t'},"
				"'data':{'k':'%s'}}",
				half),
			 HF_E_TOO_LARGE);
	/* A full store accepts writes that make an object smaller. */
	assert_int_equal(
		merge(&p.w, AT(&hf_configmaps, "default", "c0"), &o, "{'data':{'k':'small'}}"), 0);
	/* The limit of one kind. */
	for (int i = 1; i < 5; i++) {
		char name[8];
		snprintf(name, sizeof(name), "c%d", i);
		assert_int_equal(create_configmap(&p.w, "default", name, &o), 0);
	}
	assert_int_equal(create_configmap(&p.w, "default", "c5", &o), HF_E_TOO_LARGE);
	assert_int_equal(number_at(&o, "code"), 413);
	assert_int_equal(erase(&p.w, &hf_configmaps, "default", "c0", &o), 0);
	assert_int_equal(create_configmap(&p.w, "default", "c5", &o), 0);
	plane_close(&p);
}

static void bytes_are_counted_as_they_would_be_written(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};
	size_t before, len;

	plane_open(&p, NULL, false);
	before = hf_memstore_bytes(p.memstore);
	assert_int_equal(create_pod(&p.w, "default", "p", &o), 0);
	hf_doc_text(o.object, &len);
	size_t counted = hf_memstore_bytes(p.memstore) - before;
	/* The counted size is an upper bound: it has one comma too many for each container. It
	 * leaves out the resourceVersion, which is set last. */
	assert_true(counted + 40 >= len && counted < len + len / 10);
	assert_int_equal(erase(&p.w, &hf_pods, "default", "p", &o), 0);
	assert_int_equal(hf_memstore_bytes(p.memstore), before);
	plane_close(&p);
}

/* --- time --- */

static int create_event(struct plane *p, const char *name)
{
	AUTO_OUTCOME o = {0};

	return create(&p->w, &hf_events, "default", &o,
		      "{'apiVersion':'v1','kind':'Event','metadata':{'name':'%s'},"
		      "'involvedObject':{'kind':'Pod','name':'x','namespace':'default'},"
		      "'count':1}",
		      name);
}

static void events_expire_after_their_last_write(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};
	AUTO_SEEN seen = {0};

	plane_open(&p, NULL, false);
	assert_int_equal(create_event(&p, "old"), 0);
	p.w.pass(&p.w, 30 * HF_MINUTE);
	assert_int_equal(create_event(&p, "young"), 0);
	assert_int_equal(create_configmap(&p.w, "default", "kept", &o), 0);
	p.w.pass(&p.w, 10 * HF_MINUTE);
	/* A new write restarts the time. */
	assert_int_equal(merge(&p.w, AT(&hf_events, "default", "old"), &o, "{'count':2}"), 0);
	seen_start(&p.w, &seen,
		   &(struct hf_watch_options){.resource = &hf_events,
					      .resource_version =
						      text_at(&o, "metadata.resourceVersion")});
	p.w.pass(&p.w, 49 * HF_MINUTE);
	assert_int_equal(hf_memstore_count(p.memstore, &hf_events), 2);
	p.w.pass(&p.w, 2 * HF_MINUTE);
	assert_int_equal(hf_memstore_count(p.memstore, &hf_events), 1);
	assert_string_equal(seen_text(&seen), "D:young");
	p.w.pass(&p.w, 15 * HF_MINUTE);
	assert_int_equal(hf_memstore_count(p.memstore, &hf_events), 0);
	assert_int_equal(hf_memstore_count(p.memstore, &hf_configmaps), 1);
	seen_release(&seen);
	plane_close(&p);
}

/* --- namespaces --- */

static void the_initial_namespaces_cannot_be_deleted(void **state)
{
	static const char *const names[] = {"default", "kube-system", "kube-public"};
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++) {
		assert_int_equal(get(&p.w, &hf_namespaces, NULL, names[i], &o), 0);
		assert_string_equal(text_at(&o, "status.phase"), "Active");
		assert_int_equal(erase(&p.w, &hf_namespaces, NULL, names[i], &o), HF_E_FORBIDDEN);
	}
	plane_close(&p);
}

static void a_namespace_being_deleted_takes_no_new_objects(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	assert_int_equal(create(&p.w, &hf_namespaces, NULL, &o,
				"{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'n'}}"),
			 0);
	assert_string_equal(text_at(&o, "spec.finalizers.0"), "kubernetes");
	assert_int_equal(create_configmap(&p.w, "n", "c", &o), 0);
	/* No garbage collector runs here, so the namespace stays. */
	assert_int_equal(erase(&p.w, &hf_namespaces, NULL, "n", &o), 0);
	assert_string_equal(text_at(&o, "status.phase"), "Terminating");
	assert_int_equal(create_configmap(&p.w, "n", "d", &o), HF_E_FORBIDDEN);
	assert_non_null(strstr(o.message, "because it is being terminated"));
	assert_int_equal(merge(&p.w, AT(&hf_configmaps, "n", "c"), &o, "{'data':{'k':'2'}}"), 0);
	/* A plain patch cannot remove spec.finalizers. */
	assert_int_equal(
		merge(&p.w, AT(&hf_namespaces, NULL, "n"), &o, "{'spec':{'finalizers':null}}"), 0);
	assert_int_equal(get(&p.w, &hf_namespaces, NULL, "n", &o), 0);
	plane_close(&p);
}

/* --- binding --- */

static int bind_to(struct plane *p, const char *body, struct outcome *o)
{
	HF_AUTO_DOC doc = json_doc("%s", body);

	return ask(&p->w,
		   &(struct hf_request){.verb = HF_VERB_CREATE,
					.resource = &hf_pods,
					.ns = "default",
					.name = "p",
					.subresource = "binding",
					.body = doc},
		   o);
}

static void a_pod_is_bound_once(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};
	const char *good = "{'kind':'Binding','target':{'kind':'Node','name':'a'}}";

	plane_open(&p, NULL, false);
	assert_int_equal(bind_to(&p, good, &o), HF_E_NOT_FOUND);
	assert_int_equal(create_pod(&p.w, "default", "p", &o), 0);
	assert_int_equal(bind_to(&p, "{'kind':'Binding','target':{}}", &o), HF_E_INVALID);
	assert_int_equal(bind_to(&p, "{'metadata':{'uid':'other'},'target':{'name':'a'}}", &o),
			 HF_E_CONFLICT);
	assert_int_equal(bind_to(&p, good, &o), 0);
	assert_string_equal(text_at(&o, "status"), "Success");
	assert_int_equal(bind_to(&p, good, &o), HF_E_CONFLICT);
	assert_int_equal(get(&p.w, &hf_pods, "default", "p", &o), 0);
	assert_string_equal(text_at(&o, "spec.nodeName"), "a");
	assert_string_equal(text_at(&o, "status.conditions.0.type"), "PodScheduled");
	assert_string_equal(text_at(&o, "status.conditions.0.status"), "True");
	plane_close(&p);
}

static void gated_and_deleted_pods_are_not_bound(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};
	const char *good = "{'kind':'Binding','target':{'kind':'Node','name':'a'}}";

	plane_open(&p, NULL, false);
	assert_int_equal(create(&p.w, &hf_pods, "default", &o,
				"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p',"
				"'finalizers':['example.com/a']},'spec':{"
				"'schedulingGates':[{'name':'example.com/wait'}],"
				"'containers':[{'name':'c','image':'i'}]}}"),
			 0);
	assert_string_equal(text_at(&o, "status.conditions.0.reason"), "SchedulingGated");
	assert_int_equal(bind_to(&p, good, &o), HF_E_CONFLICT);
	/* Gates can only be removed. While a pod has gates, its node selector may change. */
	assert_int_equal(merge(&p.w, AT(&hf_pods, "default", "p"), &o,
			       "{'spec':{'nodeSelector':{'a':'b'}}}"),
			 0);
	assert_int_equal(merge(&p.w, AT(&hf_pods, "default", "p"), &o,
			       "{'spec':{'schedulingGates':[{'name':'other'}]}}"),
			 HF_E_INVALID);
	assert_int_equal(
		merge(&p.w, AT(&hf_pods, "default", "p"), &o, "{'spec':{'schedulingGates':null}}"),
		0);
	assert_int_equal(
		merge(&p.w, AT(&hf_pods, "default", "p"), &o, "{'spec':{'nodeSelector':null}}"),
		HF_E_INVALID);
	assert_int_equal(erase(&p.w, &hf_pods, "default", "p", &o), 0);
	assert_int_equal(bind_to(&p, good, &o), HF_E_CONFLICT);
	assert_non_null(strstr(o.message, "is being deleted"));
	plane_close(&p);
}

static void scale_refuses_what_it_cannot_do(void **state)
{
	static const char *const bad[] = {"{'spec':{'replicas':-1}}", "{'spec':{'replicas':'x'}}",
					  "{'spec':{'replicas':3000000000}}",
					  "{'spec':{'replicas':null}}"};
	struct plane p;
	AUTO_OUTCOME o = {0};
	struct hf_request request = {.verb = HF_VERB_PATCH,
				     .resource = &hf_pytorchjobs,
				     .ns = "default",
				     .name = "j",
				     .subresource = "scale"};

	plane_open(&p, NULL, false);
	assert_int_equal(create_job(&p.w, "default", "j", &o), 0);
	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		HF_AUTO_DOC body = json_doc("%s", bad[i]);
		request.body = body;
		assert_int_equal(ask(&p.w, &request, &o), HF_E_INVALID);
	}
	HF_AUTO_DOC stale = json_doc("{'metadata':{'resourceVersion':'1'},"
				     "'spec':{'replicas':3}}");
	request.body = stale;
	assert_int_equal(ask(&p.w, &request, &o), HF_E_CONFLICT);
	HF_AUTO_DOC three = json_doc("{'spec':{'replicas':3}}");
	request.body = three;
	request.resource = &hf_tfjobs;
	assert_int_equal(ask(&p.w, &request, &o), HF_E_NOT_FOUND);
	request.resource = &hf_pytorchjobs;
	/* A job without workers cannot be scaled. */
	assert_int_equal(create(&p.w, &hf_pytorchjobs, "default", &o,
				"{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{"
				"'name':'m'},'spec':{'pytorchReplicaSpecs':{'Master':{"
				"'replicas':1}}}}"),
			 0);
	request.name = "m";
	assert_int_equal(ask(&p.w, &request, &o), HF_E_INVALID);
	plane_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(observers_hear_of_commits_first),
		cmocka_unit_test(an_observer_may_write),
		cmocka_unit_test(applied_changes_are_visible_at_once_and_reported_at_the_commit),
		cmocka_unit_test(each_walks_in_order),
		cmocka_unit_test(rules_may_change_an_object_and_warn),
		cmocka_unit_test(rules_refuse_with_a_cause_per_field),
		cmocka_unit_test(rules_may_check_deletes),
		cmocka_unit_test(limits_are_kept),
		cmocka_unit_test(bytes_are_counted_as_they_would_be_written),
		cmocka_unit_test(events_expire_after_their_last_write),
		cmocka_unit_test(the_initial_namespaces_cannot_be_deleted),
		cmocka_unit_test(a_namespace_being_deleted_takes_no_new_objects),
		cmocka_unit_test(a_pod_is_bound_once),
		cmocka_unit_test(gated_and_deleted_pods_are_not_bound),
		cmocka_unit_test(scale_refuses_what_it_cannot_do),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
