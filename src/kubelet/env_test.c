/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/kubelet_internal.h"

#include "harness/json_text.h"
#include "harness/test.h"

#include "base/mem.h"
#include "base/str.h"
#include "store/backend.h"

#include <stdlib.h>
#include <string.h>

/* Tests of variables, and of pods that are refused because of them. A store of this test supplies
 * ConfigMaps and Secrets. */

struct shelf_call {
	hf_reply_fn fn;
	void *arg;
	struct hf_doc *doc;
	struct hf_task *task;
};

struct shelf {
	struct hf_store base;
	struct hf_call call;
	struct hf_loop *loop;
	struct hf_arena *arena;
	struct hf_kubelet_refs *refs;
	struct shelf_call calls[16];
	size_t n_calls;
	bool fetched;
};

static const struct {
	const char *plural, *name, *body;
} objects[] = {
	{"configmaps", "settings",
	 "{'kind':'ConfigMap','metadata':{'name':'settings','namespace':"
	 "'ns'},'data':{'LR':'0.1','odd.key':'x'},'binaryData':{'bin':'AAEC'}}"},
	{"secrets", "token",
	 "{'kind':'Secret','metadata':{'name':'token','namespace':'ns'},"
	 "'data':{'key':'c2VjcmV0','bad':'!!!'}}"},
};

static void answer(void *arg)
{
	struct shelf_call *call = arg;
	struct hf_reply reply = {.code = call->doc ? 0 : HF_E_NOT_FOUND,
				 .object = call->doc,
				 .message = call->doc ? "" : "configmaps \"gone\" not found"};

	call->fn(call->arg, &reply);
}

static struct hf_call *on_request(struct hf_store *store, const struct hf_request *request,
				  hf_reply_fn fn, void *arg)
{
	struct shelf *s = (struct shelf *)store;
	size_t n = s->n_calls++;

	assert_true(n < HF_ARRAY_LEN(s->calls));
	assert_int_equal(request->verb, HF_VERB_GET);
	assert_string_equal(request->ns, "ns");
	s->calls[n].fn = fn;
	s->calls[n].arg = arg;
	for (size_t i = 0; i < HF_ARRAY_LEN(objects); i++)
		if (hf_streq(objects[i].plural, request->resource->plural) &&
		    hf_streq(objects[i].name, request->name))
			s->calls[n].doc = hf_doc_from_json(json_of(objects[i].body));
	s->calls[n].task = hf_task_create(s->loop, answer, &s->calls[n]);
	hf_task_post(s->calls[n].task);
	return &s->call;
}

static void on_cancel(struct hf_call *call)
{
}

static const struct hf_store_ops ops = {
	.name = "shelf", .request = on_request, .cancel = on_cancel};

static int set_up(void **state)
{
	struct shelf *s = hf_xcalloc(1, sizeof(*s));

	s->base.ops = s->call.ops = &ops;
	s->loop = hf_loop_create_virtual(0);
	s->arena = hf_arena_create((size_t)16 << 20);
	s->refs = hf_kubelet_refs_create(&s->base, s->loop, "ns");
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct shelf *s = *state;

	s->refs = hf_kubelet_refs_destroy(s->refs);
	for (size_t i = 0; i < s->n_calls; i++) {
		(void)hf_doc_unref(s->calls[i].doc);
		(void)hf_task_destroy(s->calls[i].task);
	}
	s->loop = hf_loop_destroy(s->loop);
	s->arena = hf_arena_destroy(s->arena);
	free(s);
	return 0;
}

static void on_fetched(void *arg)
{
	((struct shelf *)arg)->fetched = true;
}

static const char pod_text[] =
	"{'metadata':{'name':'p','namespace':'ns','uid':'u-1','labels':{'app':'x','a/b':'y'},"
	"'annotations':{'note':'n'}},'spec':{'nodeName':'local','serviceAccountName':'sa',"
	"'containers':[{'name':'main','resources':{'limits':{'cpu':'1500m','memory':'64Mi'}}}]}}";

static const char *const base[] = {"PATH=/bin", "HOME=/root", NULL};

/* Fetches the objects that the container names, then builds its environment. Returns the code. */
static int build(struct shelf *s, const char *container_text, const char *const **ret_env,
		 struct hf_error *err)
{
	struct hf_json *pod = json_of(pod_text), *container = json_of(container_text);
	struct hf_kubelet_env_input input = {.pod = pod,
					     .container = container,
					     .refs = s->refs,
					     .base = base,
					     .hostname = "p",
					     .pod_ip = "10.0.0.2",
					     .host_ip = "127.0.0.1"};
	int rc;

	hf_kubelet_env_add_refs(container, s->refs);
	hf_kubelet_refs_fetch(s->refs, on_fetched, s);
	hf_loop_run(s->loop);
	assert_true(s->fetched);
	rc = hf_kubelet_env_build(&input, s->arena, ret_env, err);
	(void)hf_json_unref(pod);
	(void)hf_json_unref(container);
	return rc;
}

static const char *env_of(const char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; env[i]; i++)
		if (strncmp(env[i], name, len) == 0 && env[i][len] == '=')
			return env[i] + len + 1;
	return NULL;
}

#define ENV(container)                                                                             \
	const char *const *env = NULL;                                                             \
	struct hf_error err;                                                                       \
	assert_ok(build(*state, container, &env, &err), &err)

static void a_container_begins_with_the_base_and_its_host_name(void **state)
{
	ENV("{'name':'main'}");
	assert_string_equal(env_of(env, "PATH"), "/bin");
	assert_string_equal(env_of(env, "HOME"), "/root");
	assert_string_equal(env_of(env, "HOSTNAME"), "p");
}

static void values_may_refer_to_those_before_and_override_the_base(void **state)
{
	ENV("{'env':[{'name':'A','value':'1'},{'name':'B','value':'$(A)2'},{'name':'C','value':"
	    "'$(D)$$(A)$'},{'name':'D','value':'late'},{'name':'HOME','value':'/h'},{'name':'A',"
	    "'value':'9'},{'name':'E','value':'$(A)'},{'name':'F','value':'$(PATH)'}]}");
	assert_string_equal(env_of(env, "B"), "12");
	assert_string_equal(env_of(env, "C"), "$(D)$(A)$");
	assert_string_equal(env_of(env, "HOME"), "/h");
	assert_string_equal(env_of(env, "E"), "9");
	/* $(PATH) is not expanded, as on a cluster, where the image sets PATH and not the pod. */
	assert_string_equal(env_of(env, "F"), "$(PATH)");
	{
		size_t n = 0;

		for (size_t i = 0; env[i]; i++)
			n += hf_str_has_prefix(env[i], "HOME=") + hf_str_has_prefix(env[i], "A=");
		assert_int_equal(n, 2);
	}
}

static void the_pods_own_fields_are_to_be_had(void **state)
{
	static const char *const rows[][2] = {
		{"metadata.name", "p"},
		{"metadata.namespace", "ns"},
		{"metadata.uid", "u-1"},
		{"metadata.labels['app']", "x"},
		{"metadata.labels['a/b']", "y"},
		{"metadata.labels['none']", ""},
		{"metadata.annotations['note']", "n"},
		{"spec.nodeName", "local"},
		{"spec.serviceAccountName", "sa"},
		{"status.podIP", "10.0.0.2"},
		{"status.hostIP", "127.0.0.1"},
		{"status.podIPs", "10.0.0.2"},
	};
	static const char *const wrong[] = {"spec.x", "metadata.labels", "metadata.labels['x",
					    "metadata.labels['x']y", ""};
	struct shelf *s = *state;
	struct hf_json *pod = json_of(pod_text);
	struct hf_kubelet_env_input input = {
		.pod = pod, .pod_ip = "10.0.0.2", .host_ip = "127.0.0.1"};
	struct hf_error err;

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++)
		assert_string_equal(hf_kubelet_env_field(&input, rows[i][0], s->arena, &err),
				    rows[i][1]);
	for (size_t i = 0; i < HF_ARRAY_LEN(wrong); i++)
		assert_null(hf_kubelet_env_field(&input, wrong[i], s->arena, &err));
	(void)hf_json_unref(pod);
}

static void limits_are_to_be_had_in_the_unit_asked_for(void **state)
{
	ENV("{'env':[{'name':'CPU','valueFrom':{'resourceFieldRef':{'containerName':'main',"
	    "'resource':'limits.cpu'}}},{'name':'MEM','valueFrom':{'resourceFieldRef':{"
	    "'containerName':'main','resource':'limits.memory','divisor':'1Mi'}}},{'name':'MILLI',"
	    "'valueFrom':{'resourceFieldRef':{'containerName':'main','resource':'limits.cpu',"
	    "'divisor':'1m'}}}]}");
	assert_string_equal(env_of(env, "CPU"), "2");
	assert_string_equal(env_of(env, "MEM"), "64");
	assert_string_equal(env_of(env, "MILLI"), "1500");
	assert_code(build(*state,
			  "{'env':[{'name':'X','valueFrom':{'resourceFieldRef':{'resource':"
			  "'requests.cpu'}}}]}",
			  &env, &err),
		    HF_E_INVALID);
}

static void config_maps_and_secrets_give_values(void **state)
{
	ENV("{'envFrom':[{'prefix':'P_','configMapRef':{'name':'settings'}}],'env':[{'name':'RATE',"
	    "'valueFrom':{'configMapKeyRef':{'name':'settings','key':'LR'}}},{'name':'TOKEN',"
	    "'valueFrom':{'secretKeyRef':{'name':'token','key':'key'}}},{'name':'BOTH','value':"
	    "'$(P_LR)/$(TOKEN)'},{'name':'NONE','valueFrom':{'secretKeyRef':{'name':'token','key':"
	    "'absent','optional':true}}}]}");
	assert_string_equal(env_of(env, "RATE"), "0.1");
	assert_string_equal(env_of(env, "TOKEN"), "secret");
	assert_string_equal(env_of(env, "BOTH"), "0.1/secret");
	assert_string_equal(env_of(env, "P_odd.key"), "x");
	assert_null(env_of(env, "NONE"));
}

static void what_is_not_there_is_told_in_upstreams_words(void **state)
{
	static const char *const rows[][2] = {
		{"{'env':[{'name':'X','valueFrom':{'configMapKeyRef':{'name':'settings','key':'nope'}}}]}",
		 "couldn't find key nope in ConfigMap ns/settings"},
		{"{'env':[{'name':'X','valueFrom':{'configMapKeyRef':{'name':'gone','key':'x'}}}]}",
		 "configmaps \"gone\" not found"},
		{"{'envFrom':[{'configMapRef':{'name':'gone'}}]}", "configmaps \"gone\" not found"},
		{"{'env':[{'name':'X','valueFrom':{'fieldRef':{'fieldPath':'spec.host'}}}]}",
		 "fieldPath 'spec.host' is not supported"},
		{"{'env':[{'name':'X','valueFrom':{'fileKeyRef':{}}}]}",
		 "this kind of valueFrom is not supported"},
		{"{'env':[{'name':'A=B','value':'x'}]}", "env: 'A=B' cannot name a variable"},
		{"{'env':[{'name':'X','valueFrom':{'secretKeyRef':{'name':'token','key':'bad'}}}]}",
		 "couldn't find key bad in Secret ns/token"},
	};
	const char *const *env;
	struct hf_error err;

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		tear_down(state);
		set_up(state);
		assert_true(build(*state, rows[i][0], &env, &err) < 0);
		assert_string_equal(err.text, rows[i][1]);
	}
	tear_down(state);
	set_up(state);
	assert_ok(build(*state,
			"{'envFrom':[{'configMapRef':{'name':'gone','optional':true}}],'env':["
			"{'name':'X','valueFrom':{'configMapKeyRef':{'name':'gone','key':'x',"
			"'optional':true}}}]}",
			&env, &err),
		  &err);
	assert_null(env_of(env, "X"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(a_container_begins_with_the_base_and_its_host_name),
		T(values_may_refer_to_those_before_and_override_the_base),
		T(the_pods_own_fields_are_to_be_had),
		T(limits_are_to_be_had_in_the_unit_asked_for),
		T(config_maps_and_secrets_give_values),
		T(what_is_not_there_is_told_in_upstreams_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
