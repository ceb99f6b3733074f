/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/apiserver_internal.h"
#include "harness/test.h"

#include "base/strbuf.h"
#include "json/yaml.h"

#include <string.h>

/* Tests of tables. Input: objects. Output: the lines that kubectl prints; the test joins the cells
 * of a line by " | ". */

#define NOW "2026-01-01T01:00:00Z"

static struct hf_json *parse_yaml(const char *yaml)
{
	struct hf_yaml *parsed = NULL;
	struct hf_error err = {0};

	assert_ok(hf_yaml_parse(yaml, strlen(yaml), NULL, &parsed, &err), &err);
	struct hf_json *value = hf_json_ref(hf_yaml_doc(parsed, 0));
	hf_yaml_destroy(parsed);
	return value;
}

static struct hf_json *table_of(const struct hf_resource *resource, const char *yaml,
				enum apiserver_include include)
{
	HF_AUTO_JSON object = parse_yaml(yaml);
	struct hf_json *table = hf_apiserver_table(resource, true);
	hf_time now;

	assert_int_equal(hf_time_parse(NOW, &now, NULL), 0);
	hf_apiserver_table_add(table, resource, object, include, now);
	return table;
}

static void assert_row(const struct hf_resource *resource, const char *yaml, const char *wanted)
{
	HF_AUTO_JSON table = table_of(resource, yaml, APISERVER_INCLUDE_NONE);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(65536);
	const struct hf_json *cells =
		hf_json_get(hf_json_item(hf_json_get(table, "rows"), 0), "cells");

	for (size_t i = 0; i < hf_json_len(cells); i++) {
		const struct hf_json *cell = hf_json_item(cells, i);
		hf_strbuf_addstr(&sb, i > 0 ? " | " : "");
		if (hf_json_type(cell) == HF_JSON_STRING)
			hf_strbuf_addstr(&sb, hf_json_str(cell, ""));
		else
			hf_json_write(cell, HF_JSON_COMPACT, &sb);
	}
	assert_string_equal(sb.data, wanted);
	/* Every column has a cell. */
	assert_int_equal(hf_json_len(cells), hf_json_len(hf_json_get(table, "columnDefinitions")));
}

#define META "metadata: {name: p, creationTimestamp: '2026-01-01T00:00:00Z'}\n"
#define POD(spec, status) META "spec: " spec "\nstatus: " status "\n"
#define TAIL " | <none> | <none> | <none> | <none>"

static void the_status_of_a_pod_is_as_in_kubectl(void **state)
{
	static const struct {
		const char *yaml, *row;
	} cases[] = {
		{POD("{containers: [{name: c}]}", "{phase: Pending}"),
		 "p | 0/1 | Pending | 0 | 60m" TAIL},
		{POD("{nodeName: n1, containers: [{name: c}]}",
		     "{phase: Running, podIP: 10.0.0.1, containerStatuses: [{ready: true, restartCount: 0, "
		     "state: {running: {}}}]}"),
		 "p | 1/1 | Running | 0 | 60m | 10.0.0.1 | n1 | <none> | <none>"},
		{POD("{containers: [{name: c}]}",
		     "{phase: Succeeded, containerStatuses: [{ready: false, state: {terminated: {exitCode: "
		     "0, reason: Completed}}}]}"),
		 "p | 0/1 | Completed | 0 | 60m" TAIL},
		{POD("{containers: [{name: c}]}",
		     "{phase: Failed, containerStatuses: [{ready: false, state: {terminated: {exitCode: "
		     "3}}}]}"),
		 "p | 0/1 | ExitCode:3 | 0 | 60m" TAIL},
		{POD("{containers: [{name: c}]}",
		     "{phase: Failed, containerStatuses: [{ready: false, state: {terminated: {exitCode: "
		     "137, signal: 9}}}]}"),
		 "p | 0/1 | Signal:9 | 0 | 60m" TAIL},
		{POD("{containers: [{name: c}]}",
		     "{phase: Running, containerStatuses: [{ready: false, restartCount: 4, state: "
		     "{waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {finishedAt: "
		     "'2026-01-01T00:59:00Z'}}}]}"),
		 "p | 0/1 | CrashLoopBackOff | 4 (60s ago) | 60m" TAIL},
		{POD("{initContainers: [{name: i}, {name: k}], containers: [{name: c}]}",
		     "{phase: Pending, initContainerStatuses: [{state: {terminated: {exitCode: 0}}}, "
		     "{state: {running: {}}}]}"),
		 "p | 0/1 | Init:1/2 | 0 | 60m" TAIL},
		{POD("{initContainers: [{name: i}], containers: [{name: c}]}",
		     "{phase: Pending, initContainerStatuses: [{state: {terminated: {exitCode: 1, reason: "
		     "Error}}}]}"),
		 "p | 0/1 | Init:Error | 0 | 60m" TAIL},
		{POD("{containers: [{name: c}]}", "{phase: Failed, reason: Lost}"),
		 "p | 0/1 | Lost | 0 | 60m" TAIL},
		{"metadata: {name: p, creationTimestamp: '2026-01-01T00:00:00Z', deletionTimestamp: "
		 "'2026-01-01T00:30:00Z'}\nspec: {containers: [{name: c}]}\nstatus: {phase: Running}\n",
		 "p | 0/1 | Terminating | 0 | 60m" TAIL},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++)
		assert_row(&hf_pods, cases[i].yaml, cases[i].row);
}

static void a_job_shows_its_newest_condition_and_what_its_ledger_counts(void **state)
{
	assert_row(&hf_pytorchjobs, META, "p | null | 60m | null | null | null");
	assert_row(
		&hf_pytorchjobs,
		META
		"status: {conditions: [{type: Created}, {type: Running}], recovery: {"
		"generation: 3, summary: '3 (2 application, 1 device)', last: {cause: device}}}\n",
		"p | Running | 60m | 3 (2 application, 1 device) | device | 3");
}

static void other_kinds_have_their_columns_too(void **state)
{
	assert_row(&hf_services,
		   META
		   "spec: {type: ClusterIP, clusterIP: None, ports: [{port: 80, protocol: TCP}, "
		   "{port: 90}], selector: {a: b, c: d}}\n",
		   "p | ClusterIP | None | <none> | 80/TCP,90/TCP | 60m | a=b,c=d");
	assert_row(
		&hf_nodes,
		"metadata: {name: p, creationTimestamp: '2026-01-01T00:00:00Z', labels: "
		"{node-role.kubernetes.io/worker: ''}}\nspec: {unschedulable: true}\n"
		"status: {conditions: [{type: Ready, status: 'False'}], nodeInfo: {kubeletVersion: v1}}\n",
		"p | NotReady,SchedulingDisabled | worker | 60m | v1 | <none> | <none> | <unknown> | "
		"<unknown> | <unknown>");
	assert_row(&hf_configmaps, META "data: {a: b}\nbinaryData: {c: d}\n", "p | 2 | 60m");
	assert_row(&hf_secrets, META "type: Opaque\ndata: {a: b}\n", "p | Opaque | 1 | 60m");
	assert_row(&hf_namespaces, META "status: {phase: Active}\n", "p | Active | 60m");
	assert_row(&hf_leases, META "spec: {holderIdentity: h}\n", "p | h | 60m");
	assert_row(&hf_persistentvolumeclaims,
		   META "spec: {volumeName: v, storageClassName: fast}\nstatus: {phase: Bound, "
			"accessModes: [ReadWriteMany, ReadWriteOnce], capacity: {storage: 5Gi}}\n",
		   "p | Bound | v | 5Gi | RWO,RWX | fast | <unset> | 60m | Filesystem");
	assert_row(&hf_serviceaccounts, META, "p | 60m");
	assert_row(&hf_events,
		   META
		   "involvedObject: {kind: Pod, name: x}\ntype: Normal\nreason: R\nmessage: M\n"
		   "source: {component: s, host: h}\nfirstTimestamp: '2026-01-01T00:58:00Z'\n"
		   "lastTimestamp: '2026-01-01T00:59:50Z'\ncount: 3\n",
		   "10s | Normal | R | pod/x |  | s, h | M | 2m | 3 | p");
}

static void rows_of_incomplete_objects_are_printed(void **state)
{
	for (size_t i = 0; i < hf_resource_count(); i++) {
		HF_AUTO_JSON table =
			table_of(hf_resource_at(i)->resource, "{}", APISERVER_INCLUDE_NONE);
		const struct hf_json *row = hf_json_item(hf_json_get(table, "rows"), 0);
		assert_int_equal(hf_json_len(hf_json_get(row, "cells")),
				 hf_json_len(hf_json_get(table, "columnDefinitions")));
	}
}

static void a_scale_has_columns_of_its_own(void **state)
{
	assert_row(&hf_apiserver_scale, META "spec: {replicas: 3}\nstatus: {replicas: 2}\n",
		   "p | 3 | 2");
	assert_row(&hf_apiserver_scale, META, "p | null | null");
}

static void a_row_carries_as_much_of_its_object_as_asked(void **state)
{
	static const enum apiserver_include includes[] = {
		APISERVER_INCLUDE_NONE, APISERVER_INCLUDE_METADATA, APISERVER_INCLUDE_OBJECT};
	static const char *const kinds[] = {NULL, "PartialObjectMetadata", "Pod"};

	for (size_t i = 0; i < HF_ARRAY_LEN(includes); i++) {
		HF_AUTO_JSON table = table_of(&hf_pods, "kind: Pod\n" META, includes[i]);
		const struct hf_json *object =
			hf_json_get(hf_json_item(hf_json_get(table, "rows"), 0), "object");
		const char *kind = hf_json_path_str(object, "kind", NULL);
		if (kinds[i] == NULL)
			assert_null(object);
		else
			assert_string_equal(kind, kinds[i]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_status_of_a_pod_is_as_in_kubectl),
		cmocka_unit_test(a_job_shows_its_newest_condition_and_what_its_ledger_counts),
		cmocka_unit_test(other_kinds_have_their_columns_too),
		cmocka_unit_test(rows_of_incomplete_objects_are_printed),
		cmocka_unit_test(a_scale_has_columns_of_its_own),
		cmocka_unit_test(a_row_carries_as_much_of_its_object_as_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
