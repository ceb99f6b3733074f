/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

#include "base/mem.h"
#include "base/str.h"
#include "harness/cli_world.h"
#include "harness/test.h"
#include "store/resource.h"

#include <string.h>

/* What users see of an operator that does not lead. The clock of the test stands at 22:13:20. */

#define NAME "1ca428e5.training-operator.kubeflow.org"
#define STALE                                                                                      \
	"no operator leads: Lease training/" NAME                                                  \
	" was last renewed by 'op-1_ab' at 2023-11-14T22:10:00Z, 3m20s ago"
#define LOOK                                                                                          \
	"nothing is decided until an operator leads: look at its pods with 'kubectl -n training get " \
	"pods', and run 'holdfast check'"

static int set_up(void **state)
{
	int rc = cli_world_setup(state);

	cli_world_put(*state, "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'old'}}");
	cli_world_put(*state,
		      "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'training'}}");
	return rc;
}

static void put_lease(struct cli_world *w, const char *ns, const char *holder, const char *time)
{
	HF_AUTOFREE char *lease = hf_xasprintf(
		"{'apiVersion':'coordination.k8s.io/v1','kind':'Lease','metadata':{'name':'" NAME
		"','namespace':'%s'},'spec':{'holderIdentity':'%s','renewTime':'2023-11-14T%sZ'}}",
		ns, holder, time);

	cli_world_put(w, lease);
}

static void stop(struct cli_world *w)
{
	hf_loop_stop(w->loop);
}

static void nothing_is_said_while_an_operator_leads(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	/* An old Lease of an operator that was removed, and the Lease of an operator that leads. */
	put_lease(w, "old", "op-0_xy", "21:00:00.000000");
	put_lease(w, "training", "op-1_ab", "22:12:20.000000");
	cli_world_run(w, "get", "jobs", NULL);
	assert_string_equal(w->err, "");
	cli_world_run(w, "why", "a", NULL);
	assert_null(strstr(w->out, "leads"));
	cli_world_run(w, "describe", "a", NULL);
	assert_null(strstr(w->out, "Operator:"));
}

static void a_lease_that_nothing_renews_is_told_with_its_holder_and_time(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	put_lease(w, "old", "op-0_xy", "21:00:00.000000");
	put_lease(w, "training", "op-1_ab", "22:10:00.000000");
	cli_world_run(w, "get", "jobs", NULL);
	assert_int_equal(w->code, 0);
	assert_string_equal(w->err, "holdfast: warning: " STALE "; " LOOK "\n");
	cli_world_run(w, "why", "a", NULL);
	assert_int_equal(w->code, 0);
	assert_has(w->out, " now       blocked   " STALE "\n now       next      " LOOK "\n");
	cli_world_run(w, "why", "a", "-o", "json", NULL);
	assert_has(w->out, "\"text\": \"" STALE "\"");
	cli_world_run(w, "describe", "a", NULL);
	assert_has(w->out, "Operator:      " STALE "\n");
	/* Programs read the output of the other formats, and pods need no operator. */
	cli_world_run(w, "get", "jobs", "-o", "name", NULL);
	assert_string_equal(w->err, "");
	cli_world_pod(w, "a", "master-0", "Running");
	cli_world_run(w, "get", "pods", NULL);
	assert_string_equal(w->err, "");
}

static void a_lease_that_was_given_up_has_no_holder(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	put_lease(w, "training", "", "22:13:10.000000");
	cli_world_run(w, "get", "jobs", NULL);
	assert_has(w->err, NAME
		   " was given up at 2023-11-14T22:13:10Z, 10s ago, and nothing has taken it; ");
}

static void a_lease_with_any_content_is_read(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	put_lease(w, "default", "\\u001b[31mx", "22:10:00.000000");
	cli_world_run(w, "get", "jobs", NULL);
	assert_has(w->err, "was last renewed by '?[31mx'");
	cli_world_patch(w, &hf_leases, NAME, "{'spec':null}");
	cli_world_run(w, "get", "jobs", NULL);
	assert_has(w->err, "Lease default/" NAME " was never renewed; ");
}

static void jobs_that_need_no_operator_are_not_blocked(void **state)
{
	struct cli_world *w = *state;

	put_lease(w, "training", "op-1_ab", "22:10:00.000000");
	cli_world_job(w, "done", 1, "Succeeded");
	cli_world_job(w, "lost", 1, "Failed");
	cli_world_put(
		w,
		"{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{'name':'away'},"
		"'spec':{'runPolicy':{'managedBy':'kueue.x-k8s.io/multikueue'},"
		"'pytorchReplicaSpecs':{'Master':{'replicas':1,'template':{'spec':{'containers':["
		"{'name':'pytorch','image':'i'}]}}}}}}");
	cli_world_run(w, "get", "jobs", NULL);
	assert_int_equal(w->code, 0);
	assert_string_equal(w->err, "");
}

/* Without any Lease, an operator may lead without an election. Its jobs have a status. */
static void without_a_lease_only_a_job_without_a_status_tells(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_put(
		w,
		"{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{'name':'new'},"
		"'spec':{'pytorchReplicaSpecs':{'Master':{'replicas':1,'template':{'spec':{'containers':["
		"{'name':'pytorch','image':'i'}]}}}}}}");
	cli_world_run(w, "get", "jobs", NULL);
	assert_string_equal(w->err, "");
	/* An operator needs seconds, not minutes. */
	cli_world_later(w, 2 * HF_MINUTE, stop);
	hf_loop_run(w->loop);
	cli_world_run(w, "get", "jobs", NULL);
	assert_string_equal(
		w->err,
		"holdfast: warning: no operator leads: there is no Lease " NAME
		", and nothing has written a status for job 'new'; nothing is decided until an "
		"operator runs: run 'holdfast check', and install one "
		"(docs/how-to/install-operator.md)\n");
	cli_world_run(w, "why", "a", NULL);
	assert_null(strstr(w->out, "leads"));
}

#define CLI_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, cli_world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLI_TEST(nothing_is_said_while_an_operator_leads),
		CLI_TEST(a_lease_that_nothing_renews_is_told_with_its_holder_and_time),
		CLI_TEST(a_lease_that_was_given_up_has_no_holder),
		CLI_TEST(a_lease_with_any_content_is_read),
		CLI_TEST(jobs_that_need_no_operator_are_not_blocked),
		CLI_TEST(without_a_lease_only_a_job_without_a_status_tells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
