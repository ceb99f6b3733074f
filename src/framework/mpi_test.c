/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "framework/framework.h"
#include "framework/mpi_wire_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

#include "base/str.h"

/* Complete plans are in tests/golden; these tests show how a job changes over time. */

static struct brain b;

static void the_launcher_decides_and_has_no_number(void **state)
{
	(void)state;
	brain_init(&b, &hf_framework_mpi, 1, 2);
	brain_step(&b);
	assert_string_equal(
		brain_edit(&b, "demo-launcher", HF_EDIT_LABEL, "training.kubeflow.org/job-role"),
		"master");
	assert_null(brain_edit(&b, "demo-launcher", HF_EDIT_LABEL,
			       "training.kubeflow.org/replica-index"));
	assert_string_equal(brain_edit(&b, "demo-worker-1", HF_EDIT_LABEL,
				       "training.kubeflow.org/replica-index"),
			    "1");
	brain_run_up(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	brain_exit(&b, "demo-worker-0", 0);
	brain_exit(&b, "demo-worker-1", 0);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	brain_exit(&b, "demo-launcher", 0);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_SUCCEEDED);
	assert_string_equal(hf_status_condition(&b.view.status, HF_COND_SUCCEEDED)->message,
			    "MPIJob demo is successfully completed.");
	brain_release(&b);
}

static void a_restart_names_the_launcher_with_and_without_number(void **state)
{
	static const char *const requests[] = {"2026-01-01T00:00:00Z launcher",
					       "2026-01-01T00:00:01Z launcher-0"};

	(void)state;
	brain_init(&b, &hf_framework_mpi, 1, 1);
	brain_run_up(&b);
	for (size_t i = 0; i < HF_ARRAY_LEN(requests); i++) {
		b.view.restart = requests[i];
		brain_step(&b);
		assert_true(brain_deletes(&b, "demo-launcher"));
		assert_false(brain_deletes(&b, "demo-worker-0"));
		brain_quiet(&b);
		brain_terminating_gone(&b);
		brain_after(&b, 700);
		brain_run_up(&b);
	}
	brain_release(&b);
}

static void hosts_follow_workers_that_come_and_go(void **state)
{
	(void)state;
	brain_init(&b, &hf_framework_mpi, 1, 2);
	brain_run_up(&b);
	assert_non_null(brain_extra(&b, "demo-config"));
	b.view.replicas = b.replicas;
	b.replicas[1].replicas = HF_SOME_INT(3);
	brain_step(&b);
	/* The plan adds the new host to the ConfigMap, and the right to exec into its pod to the
	 * Role, before it creates the pod. */
	assert_int_equal(brain_count(&b, HF_ACTION_UPDATE_EXTRA), 2);
	assert_true(brain_creates(&b, "demo-worker-2"));
	brain_run_up(&b);
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_release(&b);
}

static void the_texts_are_upstreams(void **state)
{
	struct hf_arena *arena = hf_arena_create(1 << 16);
	const char *workers[] = {"p-worker-2", "p-worker-10", "p-worker-0"};

	(void)state;
	assert_string_equal(hf_mpi_hostfile(arena, "p", 2, 3, false),
			    "p-worker-0 slots=3\np-worker-1 slots=3\n");
	assert_string_equal(hf_mpi_hostfile(arena, "p", 0, 1, true), "p-launcher slots=1\n");
	assert_string_equal(hf_mpi_kubexec(arena, "main"),
			    "#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n"
			    "/opt/kube/kubectl exec ${POD_NAME} --container main -- /bin/sh -c "
			    "\"$*\"");
	/* Host names are sorted as texts, so worker 10 stands before worker 2. */
	assert_string_equal(hf_mpi_discover_hosts(arena, "p", workers, 3, 1, false),
			    "#!/bin/sh\necho p-worker-0:1\necho p-worker-10:1\necho p-worker-2:1");
	assert_string_equal(hf_mpi_discover_hosts(arena, "p", workers, 1, 2, true),
			    "#!/bin/sh\necho p-launcher:2\n\necho p-worker-0:2");
	hf_arena_destroy(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_launcher_decides_and_has_no_number),
		cmocka_unit_test(a_restart_names_the_launcher_with_and_without_number),
		cmocka_unit_test(hosts_follow_workers_that_come_and_go),
		cmocka_unit_test(the_texts_are_upstreams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
