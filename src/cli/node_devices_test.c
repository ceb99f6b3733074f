/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/node_devices.h"

#include "base/str.h"
#include "harness/cli_world.h"
#include "harness/test.h"
#include "json/doc.h"

#include <stdio.h>
#include <string.h>

static void put_node(struct cli_world *w, const char *name)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "{'apiVersion':'v1','kind':'Node','metadata':{'name':'%s'},'status':{"
		 "'conditions':[{'type':'Ready','status':'True'}]}}",
		 name);
	cli_world_put(w, text);
}

static void put_health(struct cli_world *w, const char *name, const char *status)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "{'apiVersion':'holdfast.dev/v1alpha1','kind':'DeviceHealth','metadata':{'name':"
		 "'%s'},'status':{%s}}",
		 name, status);
	cli_world_put(w, text);
}

static void wide_nodes_have_what_their_agents_report(void **state)
{
	struct cli_world *w = *state;

	for (int i = 1; i <= 5; i++) {
		char name[8];

		snprintf(name, sizeof(name), "n%d", i);
		put_node(w, name);
	}
	put_health(w, "n1",
		   "'observedTime':'2023-11-14T22:13:00Z','state':'Healthy','driverVersion':"
		   "'570.86.15','libraryVersion':'570.86.15','moduleVersion':'570.86.15',"
		   "'firmwareVersion':'570.86.15','detectors':[{'name':'plugin','state':'On'}]");
	put_health(w, "n2",
		   "'observedTime':'2023-11-14T22:13:00Z','state':'Degraded','libraryVersion':"
		   "'575.57.08','moduleVersion':'570.86.15','detectors':[{'name':'plugin',"
		   "'state':'On'}],'devices':[{'id':'node','faults':[{'detector':'plugin',"
		   "'code':2,'active':true}]}]");
	put_health(w, "n3",
		   "'observedTime':'2023-11-14T21:13:00Z','state':'Healthy','driverVersion':"
		   "'570.86.15','firmwareVersion':'570.86.16','detectors':[{'name':'plugin',"
		   "'state':'Off'}]");
	put_health(w, "n4",
		   "'observedTime':'2023-11-14T22:13:00Z','state':'Healthy','devices':[{'id':"
		   "'node','faults':[{'detector':'plugin','code':1,'active':true}]}]");
	cli_world_run(w, "get", "nodes", "-o", "wide", NULL);
	assert_said(
		w, 0,
		"NAME   STATUS   AGE   CPU   MEMORY   DEVICES                DRIVER                  "
		"              PLUGIN\n"
		"n1     Ready    0s    -     -        Healthy                570.86.15               "
		"              ok\n"
		"n2     Ready    0s    -     -        Degraded               library 575.57.08, "
		"module 570.86.15   resource is gone\n"
		"n3     Ready    0s    -     -        Healthy (old report)   570.86.15, firmware "
		"570.86.16         <unseen>\n"
		"n4     Ready    0s    -     -        Healthy                <none>                  "
		"              kubelet does not answer\n"
		"n5     Ready    0s    -     -        <none>                 <none>                  "
		"              <none>\n",
		"");
	/* The plain table needs no DeviceHealth. */
	cli_world_run(w, "get", "nodes", "n1", NULL);
	assert_said(w, 0, "NAME   STATUS   AGE\nn1     Ready    0s\n", "");
}

static void put_plugin(struct cli_world *w, const char *name, const char *labels, const char *owner,
		       const char *node, const char *containers)
{
	char text[1024];

	snprintf(
		text, sizeof(text),
		"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','labels':{%s},"
		"'ownerReferences':[{'apiVersion':'apps/v1','kind':'%s','name':'plugin','uid':'1',"
		"'controller':true}]},'spec':{'nodeName':'%s','containers':[{'name':'a','image':'i'},{'name':'b','image':'i'}]},"
		"'status':{'containerStatuses':[%s]}}",
		name, labels, owner, node, containers);
	cli_world_put(w, text);
}

#define ENDED(count, time)                                                                         \
	"{'name':'a','restartCount':" #count ",'lastState':{'terminated':{'finishedAt':'" time     \
	"'}}}"

static void wide_nodes_have_the_restarts_of_their_plugins(void **state)
{
	struct cli_world *w = *state;

	for (int i = 1; i <= 5; i++) {
		char name[8];

		snprintf(name, sizeof(name), "n%d", i);
		put_node(w, name);
		put_health(w, name,
			   "'state':'Healthy','detectors':[{'name':'plugin','state':'On'}]");
	}
	/* Two containers, and two pods of plugins, count together. */
	put_plugin(w, "p1", "'app':'nvidia-device-plugin-daemonset'", "DaemonSet", "n1",
		   ENDED(2, "2023-11-14T22:03:20Z") ",{'name':'b','restartCount':1}");
	put_plugin(w, "p1b", "'name':'nvidia-device-plugin-ds'", "DaemonSet", "n1",
		   ENDED(4, "2023-11-14T21:13:20Z"));
	/* A pod with two of the labels counts once. */
	put_plugin(w, "p2", "'name':'amdgpu-dp-ds','app.kubernetes.io/name':'device-plugin'",
		   "DaemonSet", "n2", ENDED(1, "not a time"));
	put_plugin(w, "p3", "'k8s-app':'nvidia-gpu-device-plugin'", "DaemonSet", "n3",
		   "{'name':'a','restartCount':0}");
	/* no plugin: a pod of a Deployment, and a plugin of other hardware */
	put_plugin(w, "p4", "'app':'nvidia-device-plugin'", "ReplicaSet", "n4",
		   ENDED(7, "2023-11-14T22:03:20Z"));
	put_plugin(w, "p5", "'app':'sriov-device-plugin'", "DaemonSet", "n5",
		   ENDED(7, "2023-11-14T22:03:20Z"));
	cli_world_run(w, "get", "nodes", "-o", "wide", NULL);
	assert_said(
		w, 0,
		"NAME   STATUS   AGE   CPU   MEMORY   DEVICES                DRIVER   PLUGIN\n"
		"n1     Ready    0s    -     -        Healthy (old report)   <none>   ok, 7 restarts, "
		"last 10m ago\n"
		"n2     Ready    0s    -     -        Healthy (old report)   <none>   ok, 1 restart\n"
		"n3     Ready    0s    -     -        Healthy (old report)   <none>   ok\n"
		"n4     Ready    0s    -     -        Healthy (old report)   <none>   ok\n"
		"n5     Ready    0s    -     -        Healthy (old report)   <none>   ok\n",
		"");
}

static void versions_that_differ_are_named_with_their_part(void **state)
{
	static const struct {
		const char *status, *said;
		bool differ;
	} rows[] = {
		{"", "", false},
		{"'driverVersion':'1'", "1", false},
		{"'driverVersion':'1','libraryVersion':'1','moduleVersion':'1'", "1", false},
		{"'driverVersion':'1','moduleVersion':'2'", "1, module 2", true},
		{"'moduleVersion':'2'", "module 2", false},
		{"'libraryVersion':'1','firmwareVersion':'2'", "library 1, firmware 2", true},
		{"'driverVersion':7,'moduleVersion':'2'", "module 2", false},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		HF_AUTO_STRBUF text = HF_STRBUF_INIT(256);
		char json[256];
		HF_AUTO_DOC doc = NULL;

		snprintf(json, sizeof(json), "{'status':{%s}}", rows[i].status);
		for (char *at = json; *at != '\0'; at++)
			*at = *at == '\'' ? '"' : *at;
		doc = hf_doc_from_text(json, strlen(json));
		assert_int_equal(hf_driver_versions(hf_doc_json(doc), &text), rows[i].differ);
		assert_string_equal(text.len > 0 ? text.data : "", rows[i].said);
	}
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, cli_world_setup, cli_world_teardown)
	const struct CMUnitTest tests[] = {
		TEST(wide_nodes_have_what_their_agents_report),
		TEST(wide_nodes_have_the_restarts_of_their_plugins),
		TEST(versions_that_differ_are_named_with_their_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
