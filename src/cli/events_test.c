/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/str.h"

#include "base/mem.h"
#include "harness/cli_world.h"
#include "harness/test.h"
#include "store/resource.h"

#include <string.h>

static void event(struct cli_world *w, const char *ns, const char *about, const char *reason,
		  const char *when)
{
	HF_AUTOFREE char *text = hf_xasprintf(
		"{'apiVersion':'v1','kind':'Event','metadata':{'name':'%s','namespace':'%s'},"
		"'involvedObject':%s,'type':'Normal','reason':'%s','message':'m','count':2,"
		"'lastTimestamp':'%s'}",
		reason, ns, about, reason, when);

	for (char *c = text; *c != '\0'; c++)
		if (*c >= 'A' && *c <= 'Z' && c > text && c[-1] == '\'' &&
		    hf_str_has_prefix(c - 8, "name':'"))
			*c = (char)(*c - 'A' + 'a');
	cli_world_put(w, text);
}

static void events_come_oldest_first_and_in_the_order_made_within_a_second(void **state)
{
	struct cli_world *w = *state;

	event(w, "default", "{'kind':'Pod','name':'a-1','namespace':'default'}", "third",
	      "2023-11-14T22:13:05Z");
	event(w, "default", "{'kind':'Pod','name':'a-1','namespace':'default'}", "second",
	      "2023-11-14T22:13:04Z");
	event(w, "default", "{'kind':'Pod','name':'a-1','namespace':'default'}", "first",
	      "2023-11-14T22:12:04Z");
	event(w, "default", "{'kind':'Pod','name':'a-1','namespace':'default'}", "also-third",
	      "2023-11-14T22:13:05Z");
	cli_world_run(w, "events", NULL);
	assert_said(w, 0,
		    "LAST SEEN   TYPE     REASON       OBJECT    COUNT   MESSAGE\n"
		    "76s         Normal   first        Pod/a-1   2       m\n"
		    "16s         Normal   second       Pod/a-1   2       m\n"
		    "15s         Normal   third        Pod/a-1   2       m\n"
		    "15s         Normal   also-third   Pod/a-1   2       m\n",
		    "");
}

static void events_of_a_job_are_its_own_and_its_pods(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	event(w, "default", "{'kind':'Pod','name':'a-master-0','namespace':'default'}", "of-pod",
	      "2023-11-14T22:13:05Z");
	event(w, "default", "{'kind':'Service','name':'a-master-0','namespace':'default'}",
	      "of-service", "2023-11-14T22:13:06Z");
	event(w, "default", "{'kind':'Pod','name':'b-master-0','namespace':'default'}", "of-other",
	      "2023-11-14T22:13:07Z");
	event(w, "default", "{'kind':'PyTorchJob','name':'a','namespace':'default','uid':'before'}",
	      "of-the-one-before", "2023-11-14T22:13:07Z");
	cli_world_run(w, "events", "a", NULL);
	assert_has(w->out, "of-pod");
	assert_has(w->out, "of-service");
	assert_null(strstr(w->out, "of-other"));
	assert_null(strstr(w->out, "of-the-one-before"));
	cli_world_run(w, "events", "nosuch", NULL);
	assert_said(w, 1, "", "holdfast: no job 'nosuch' in namespace 'default'\n");
}

static void of_all_namespaces_each_names_its_own(void **state)
{
	struct cli_world *w = *state;

	event(w, "kube-system", "{'kind':'Pod','name':'p','namespace':'kube-system'}", "there",
	      "2023-11-14T22:13:05Z");
	cli_world_run(w, "events", NULL);
	assert_said(w, 0, "", "No events found; the server keeps events for a limited time\n");
	cli_world_run(w, "events", "-A", NULL);
	assert_has(w->out, "NAMESPACE     LAST SEEN");
	assert_has(w->out, "kube-system   15s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			events_come_oldest_first_and_in_the_order_made_within_a_second,
			cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(events_of_a_job_are_its_own_and_its_pods,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(of_all_namespaces_each_names_its_own,
						cli_world_setup, cli_world_teardown),
	};

	return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
