/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/job_pods.h"

#include <stdio.h>
#include <string.h>

/*
 * Acts and rollouts beside each kind of job. For each job: the pods of the node leave as one restart, the restart is charged to
 * infrastructure and not to backoffLimit, which is 0 here, and the job runs again.
 */

#define MEND                                                                                       \
	"{'mode':'remediate','mend':{},'drain':{'graceSeconds':10,'timeoutSeconds':600}," WIDE "}"
#define GANG ",'recovery':{'restartScope':'Job'}"
#define SAVE ",'recovery':{'restartScope':'Job','checkpoint':{'graceSeconds':60}}"
#define TEMPLATE(name, more)                                                                       \
	"'template':{'spec':{'containers':[{'name':'" name "','image':'i'" more "}]}}"
#define GPU ",'resources':{'limits':{'nvidia.com/gpu':'1'}}"
#define JOB(replicas, container, policy, restart, ranks)                                           \
	"'runPolicy':{'backoffLimit':0" policy "},'" replicas "':{'Worker':{'replicas':" ranks     \
	",'restartPolicy':'" restart "'," TEMPLATE(container, GPU) "}}"
#define PYTORCH(policy, restart, ranks)                                                            \
	JOB("pytorchReplicaSpecs", "pytorch", policy, restart, ranks)
/* The restart policies are those of the kind: Never. */
#define MPI                                                                                        \
	"'runPolicy':{'backoffLimit':0},'mpiReplicaSpecs':{'Launcher':{'replicas':1," TEMPLATE(    \
		"mpi", "") "},'Worker':{'replicas':4," TEMPLATE("mpi", GPU) "}}"

static void order(struct jp *jp, int node, const char *rung)
{
	jp->w->people_ask = true;
	ra_request(jp->a, node, 1, rung, "");
	jp_go(jp, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(jp->a, node), "Succeeded");
}

static const char *rollout_phase(struct jp *jp)
{
	return hf_json_path_str(rw_get(jp->w, &hf_devicerollouts, NULL, "r"), "status", "phase",
				NULL);
}

/* Gives node 3 a new driver. */
static void roll_out(struct jp *jp)
{
	rw_create(
		jp->w, &hf_devicerollouts, NULL,
		"{'apiVersion':'holdfast.dev/v1alpha1','kind':'DeviceRollout','metadata':{"
		"'name':'r'},'spec':{'change':{'nodeLabel':{'key':'example.com/driver','value':"
		"'two'}},'nodeSelector':{'matchLabels':{'kubernetes.io/hostname':'n003'}},'waves':"
		"['100%'],'soakSeconds':60,'emptySeconds':300}}");
	jp_go(jp, 15 * HF_MINUTE);
}

/* ---- MPIJob ---------------------------------------------------------------------------------------- */

/* mpirun ends with 1 when a worker goes, and the launcher's restart policy is Never. */
static void an_mpi_job_goes_on_after_a_reboot(void **state)
{
	struct jp *jp = jp_begin(*state, &hf_mpijobs, MEND);

	jp_create(jp, "MPIJob", MPI);
	order(jp, JP_NODE, "reboot");
	jp_expect_runs(jp, "1 (infrastructure)");
	assert_int_equal(jp_made(jp, "train-launcher"), 2);
	assert_int_equal(jp_made(jp, "train-worker-2"), 1);
}

static void an_mpi_job_goes_on_after_a_rollout(void **state)
{
	struct jp *jp = jp_begin(*state, &hf_mpijobs, MEND);

	jp_create(jp, "MPIJob", MPI);
	roll_out(jp);
	assert_string_equal(rollout_phase(jp), "Succeeded");
	jp_expect_runs(jp, "1 (infrastructure)");
	assert_int_equal(jp_made(jp, "train-worker-0"), 2);
}

/* The GPU that fails costs the node its first rank, and the reboot costs it the second one. */
static void an_mpi_job_goes_on_when_its_node_is_rebooted_next(void **state)
{
	struct jp *jp = jp_begin(*state, &hf_mpijobs, MEND);

	jp_create(jp, "MPIJob", MPI);
	jp->w->sick[JP_NODE] = 1;
	rw_say(jp->w, JP_NODE, RW_REBOOT);
	jp_go(jp, 20 * HF_MINUTE);
	assert_string_equal(ra_phase(jp->a, JP_NODE), "Succeeded");
	jp_expect_runs(jp, "2 (1 infrastructure, 1 device)");
}

static void an_mpi_job_goes_on_after_two_resets(void **state)
{
	struct jp *jp = jp_begin(*state, &hf_mpijobs, MEND);

	jp_create(jp, "MPIJob", MPI);
	for (int node = JP_NODE; node <= JP_NODE + 1; node++) {
		rw_say(jp->w, node, RW_RESET);
		jp_go(jp, 10 * HF_MINUTE);
		assert_string_equal(ra_phase(jp->a, node), "Succeeded");
	}
	jp_expect_runs(jp, "2 (device)");
}

static const struct jp_run *first_run(const struct jp *jp, const char *pod)
{
	for (size_t i = 0; i < jp->len; i++)
		if (strcmp(jp->runs[i].pod, pod) == 0)
			return &jp->runs[i];
	fail_msg("no pod %s", pod);
	return NULL;
}

/* The evicted launcher saves at SIGTERM, by the programs in all workers. */
static void workers_stay_until_an_evicted_launcher_has_saved(void **state)
{
	struct jp *jp = jp_begin(*state, &hf_mpijobs, MEND);

	jp->exec = true;
	jp->stop_takes = 20;
	jp_create(jp, "MPIJob",
		  "'runPolicy':{'backoffLimit':0" SAVE
		  "},'mpiReplicaSpecs':{'Launcher':{'replicas':1," TEMPLATE(
			  "mpi", "") "},'Worker':{'replicas':4," TEMPLATE("mpi", GPU) "}}");
	order(jp, JP_NODE, "reboot");
	jp_expect_runs(jp, "1 (infrastructure)");
	assert_true(first_run(jp, "train-worker-2")->asked >=
		    first_run(jp, "train-launcher")->ends_at);
}

/* ---- restart policies -------------------------------------------------------------------------------- */

static void try_policy(struct rw *w, const char *spec)
{
	struct jp *jp = jp_begin(w, &hf_pytorchjobs, MEND);

	jp->crashes = true;
	jp_create(jp, "PyTorchJob", spec);
	order(jp, JP_NODE, "reboot");
	jp_expect_runs(jp, "1 (infrastructure)");
}

static void peers_that_crash_are_no_failure_under_exit_code(void **state)
{
	try_policy(*state, PYTORCH("", "ExitCode", "4"));
}

static void peers_that_crash_are_no_failure_under_never(void **state)
{
	try_policy(*state, PYTORCH("", "Never", "4"));
}

static void peers_that_crash_are_no_failure_of_a_gang(void **state)
{
	try_policy(*state, PYTORCH(GANG, "ExitCode", "4"));
}

/* Nodes are emptied one after the other. The ranks that the first eviction has moved crash of the second one. */
static void the_second_node_costs_no_failure_either(void **state)
{
	struct jp *jp = jp_begin(*state, &hf_pytorchjobs, MEND);

	jp_create(jp, "PyTorchJob", PYTORCH("", "ExitCode", "4"));
	order(jp, JP_NODE, "reboot");
	jp->crashes = true;
	order(jp, JP_NODE + 1, "reboot");
	jp_expect_runs(jp, "2 (infrastructure)");
}

static void an_elastic_job_goes_on(void **state)
{
	struct jp *jp = jp_begin(*state, &hf_pytorchjobs, MEND);

	jp_create(jp, "PyTorchJob",
		  "'elasticPolicy':{'minReplicas':1,'maxReplicas':4,'maxRestarts':0}," PYTORCH(
			  "", "OnFailure", "4"));
	order(jp, JP_NODE, "reboot");
	roll_out(jp);
	assert_string_equal(rollout_phase(jp), "Succeeded");
	jp_expect_runs(jp, "1 (infrastructure)");
}

static void the_other_kinds_go_on(void **state)
{
	static const struct {
		const struct hf_resource *resource;
		const char *kind, *spec;
	} kinds[] = {
		{&hf_tfjobs, "TFJob", JOB("tfReplicaSpecs", "tensorflow", "", "ExitCode", "4")},
		{&hf_jaxjobs, "JAXJob", JOB("jaxReplicaSpecs", "jax", "", "OnFailure", "4")},
		{&hf_paddlejobs, "PaddleJob",
		 JOB("paddleReplicaSpecs", "paddle", "", "ExitCode", "4")},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++) {
		struct jp *jp;

		if (i > 0)
			rw_setup(state);
		jp = jp_begin(*state, kinds[i].resource, MEND);
		jp->crashes = true;
		jp_create(jp, kinds[i].kind, kinds[i].spec);
		order(jp, JP_NODE, "reboot");
		jp_expect_runs(jp, "1 (infrastructure)");
		if (i + 1 < HF_ARRAY_LEN(kinds))
			rw_teardown(state);
	}
}

/* A rule for evictions says that the job may not be moved. */
#define FAIL_RULE                                                                                  \
	",'podFailurePolicy':{'rules':[{'action':'Ignore','replicaTypes':['Worker'],"              \
	"'onPodConditions':[{'type':'Other'}]},{'action':'FailJob','onPodConditions':[{'type':"    \
	"'DisruptionTarget'}]}]}"

static void a_job_whose_rule_fails_it_stays(void **state)
{
	struct jp *jp = jp_begin(*state, &hf_pytorchjobs, MEND);

	jp_create(jp, "PyTorchJob", PYTORCH(FAIL_RULE, "OnFailure", "2"));
	jp->w->people_ask = true;
	ra_request(jp->a, JP_NODE, 1, "reboot", "");
	jp_go(jp, HF_MINUTE);
	rw_expect_message(jp->w, "n003-1",
			  "one more eviction would fail its job (runPolicy.podFailurePolicy)");
	jp_go(jp, 2 * HF_HOUR);
	assert_int_equal(jp->a->acts, 0);
	jp_expect_runs(jp, "0");
}

static void a_rollout_leaves_a_job_whose_rule_fails_it(void **state)
{
	struct jp *jp = jp_begin(*state, &hf_pytorchjobs, MEND);

	jp_create(jp, "PyTorchJob", PYTORCH(FAIL_RULE, "OnFailure", "2"));
	roll_out(jp);
	jp_expect_runs(jp, "0");
	assert_int_equal(jp_made(jp, "train-worker-0"), 1);
}

/* ---- restarts in place --------------------------------------------------------------------------------- */

static struct jp *begin_exec(struct rw *w)
{
	struct jp *jp = jp_begin(w, &hf_pytorchjobs, MEND);

	jp->exec = true;
	jp_create(jp, "PyTorchJob", PYTORCH(SAVE, "OnFailure", "4"));
	return jp;
}

/* The peers save and stay in their pods. */
static void peers_under_exec_save_and_stay_at_a_reboot(void **state)
{
	struct jp *jp = begin_exec(*state);

	order(jp, JP_NODE, "reboot");
	jp_expect_runs(jp, "1 (infrastructure)");
	assert_int_equal(jp->saves, 2);
	assert_int_equal(jp_made(jp, "train-worker-1"), 2);
	assert_int_equal(jp_made(jp, "train-worker-2"), 1);
}

static void peers_under_exec_save_and_stay_at_a_reset(void **state)
{
	struct jp *jp = begin_exec(*state);

	order(jp, JP_NODE, "reset-device");
	jp_expect_runs(jp, "1 (infrastructure)");
	assert_int_equal(jp->saves, 3);
	assert_int_equal(jp_made(jp, "train-worker-0"), 2);
	assert_int_equal(jp_made(jp, "train-worker-1"), 1);
}

static void peers_under_exec_save_and_stay_at_a_rollout(void **state)
{
	struct jp *jp = begin_exec(*state);

	roll_out(jp);
	assert_string_equal(rollout_phase(jp), "Succeeded");
	jp_expect_runs(jp, "1 (infrastructure)");
	assert_int_equal(jp->saves, 2);
	assert_int_equal(jp_made(jp, "train-worker-2"), 1);
}

/* The failed device costs rank 0 its pod. Rank 1 restarts in place on the same node, and leaves it before the reboot. */
static void a_rank_in_place_leaves_before_the_reboot(void **state)
{
	struct jp *jp = begin_exec(*state);

	jp->w->sick[JP_NODE] = 1;
	rw_say(jp->w, JP_NODE, RW_REBOOT);
	jp_go(jp, 20 * HF_MINUTE);
	assert_string_equal(ra_phase(jp->a, JP_NODE), "Succeeded");
	jp_expect_runs(jp, "2 (1 infrastructure, 1 device)");
	assert_int_equal(jp_made(jp, "train-worker-0"), 2);
	assert_int_equal(jp_made(jp, "train-worker-1"), 2);
}

/* ---- jobs of Kueue --------------------------------------------------------------------------------------- */

/* Kueue preempts the job while its pods leave the node, and admits it again later. */
static void a_job_that_kueue_preempts_meanwhile_comes_back(void **state)
{
	struct jp *jp = begin_exec(*state);

	jp->stop_takes = 20;
	jp->w->people_ask = true;
	jp_patch(jp, "{'metadata':{'labels':{'kueue.x-k8s.io/queue-name':'q'}}}");
	ra_request(jp->a, JP_NODE, 1, "reboot", "");
	jp_go(jp, 8 * HF_SECOND);
	assert_true(jp_is_true(jp, "Restarting"));
	jp_patch(jp, "{'spec':{'runPolicy':{'suspend':true}}}");
	jp_go(jp, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(jp->a, JP_NODE), "Succeeded");
	assert_true(jp_is_true(jp, "Suspended"));
	jp_patch(jp, "{'spec':{'runPolicy':{'suspend':false}}}");
	jp_go(jp, HF_MINUTE);
	jp_expect_runs(jp, "1 (infrastructure)");
}

/* Kueue admits a job while the node is about to be rebooted. */
static void a_job_that_is_admitted_meanwhile_goes_elsewhere(void **state)
{
	struct jp *jp = jp_begin(*state, &hf_pytorchjobs, MEND);

	jp_create(jp, "PyTorchJob", PYTORCH(",'suspend':true", "OnFailure", "4"));
	jp->w->people_ask = true;
	ra_request(jp->a, JP_NODE, 1, "reboot", "");
	jp_go(jp, 2 * HF_SECOND);
	jp_patch(jp, "{'spec':{'runPolicy':{'suspend':false}}}");
	jp_go(jp, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(jp->a, JP_NODE), "Succeeded");
	jp_expect_runs(jp, "0");
	assert_int_equal(jp_node_of(jp, "train-worker-0"), JP_NODE + 1);
}

/* Kueue's topology, or a person, has bound the ranks to the node: they wait for it. */
static struct jp *begin_pinned(struct rw *w)
{
	struct jp *jp = jp_begin(w, &hf_pytorchjobs, MEND);

	jp_create(jp, "PyTorchJob",
		  "'runPolicy':{'backoffLimit':0},'pytorchReplicaSpecs':{'Worker':{'replicas':2,"
		  "'restartPolicy':'OnFailure','template':{'spec':{'nodeSelector':{"
		  "'kubernetes.io/hostname':'n003'},'containers':[{'name':'pytorch','image':'i'" GPU
		  "}]}}}}");
	return jp;
}

static void ranks_that_are_bound_to_the_node_come_back_after_a_reboot(void **state)
{
	struct jp *jp = begin_pinned(*state);

	order(jp, JP_NODE, "reboot");
	jp_expect_runs(jp, "1 (infrastructure)");
	assert_int_equal(jp_node_of(jp, "train-worker-0"), JP_NODE);
}

static void ranks_that_are_bound_to_the_node_come_back_after_a_rollout(void **state)
{
	struct jp *jp = begin_pinned(*state);

	roll_out(jp);
	assert_string_equal(rollout_phase(jp), "Succeeded");
	jp_expect_runs(jp, "1 (infrastructure)");
}

/* ---- the end of pods --------------------------------------------------------------------------------------- */

/* The kubelet unmounts volumes after the containers have ended. If the node were rebooted then, the pod's name would be taken until
 * the node is back, and so would be its rank. */
static void a_reboot_waits_until_the_kubelet_has_removed_the_pods(void **state)
{
	struct jp *jp = jp_begin(*state, &hf_pytorchjobs, MEND);

	jp->unmount_takes = 20;
	jp_create(jp, "PyTorchJob", PYTORCH("", "OnFailure", "4"));
	jp->w->people_ask = true;
	ra_request(jp->a, JP_NODE, 1, "reboot", "");
	jp_go(jp, 50 * HF_SECOND);
	assert_int_equal(jp->a->acts, 1);
	jp_expect_runs(jp, "1 (infrastructure)");
	jp_go(jp, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(jp->a, JP_NODE), "Succeeded");
}

/* A pod with a finalizer stays although its kubelet has done its work. */
static void a_finalizer_keeps_no_reboot_back(void **state)
{
	struct jp *jp = jp_begin(*state, &hf_pytorchjobs, MEND);

	jp->w->people_ask = true;
	rw_pod(jp->w, "p0", JP_NODE, "Job");
	rw_patch_in(jp->w, &hf_pods, JP_NS, "p0", NULL,
		    "{'metadata':{'finalizers':['batch.kubernetes.io/job-tracking']}}");
	jp->w->holder[JP_NODE] = NULL;
	rw_patch_in(jp->w, &hf_pods, JP_NS, "p0", "status", "{'status':{'phase':'Succeeded'}}");
	(void)rw_remove(jp->w, &hf_pods, JP_NS, "p0", HF_GRACE_DEFAULT);
	ra_request(jp->a, JP_NODE, 1, "reboot", "");
	jp_go(jp, 20 * HF_SECOND);
	assert_int_equal(jp->a->acts, 1);
}

int main(int argc, char **argv)
{
#define T(test) cmocka_unit_test_setup_teardown(test, rw_setup, rw_teardown)
	const struct CMUnitTest tests[] = {
		T(an_mpi_job_goes_on_after_a_reboot),
		T(an_mpi_job_goes_on_after_a_rollout),
		T(an_mpi_job_goes_on_when_its_node_is_rebooted_next),
		T(an_mpi_job_goes_on_after_two_resets),
		T(workers_stay_until_an_evicted_launcher_has_saved),
		T(peers_that_crash_are_no_failure_under_exit_code),
		T(peers_that_crash_are_no_failure_under_never),
		T(peers_that_crash_are_no_failure_of_a_gang),
		T(the_second_node_costs_no_failure_either),
		T(an_elastic_job_goes_on),
		T(the_other_kinds_go_on),
		T(a_job_whose_rule_fails_it_stays),
		T(a_rollout_leaves_a_job_whose_rule_fails_it),
		T(peers_under_exec_save_and_stay_at_a_reboot),
		T(peers_under_exec_save_and_stay_at_a_reset),
		T(peers_under_exec_save_and_stay_at_a_rollout),
		T(a_rank_in_place_leaves_before_the_reboot),
		T(a_job_that_kueue_preempts_meanwhile_comes_back),
		T(a_job_that_is_admitted_meanwhile_goes_elsewhere),
		T(ranks_that_are_bound_to_the_node_come_back_after_a_reboot),
		T(ranks_that_are_bound_to_the_node_come_back_after_a_rollout),
		T(a_reboot_waits_until_the_kubelet_has_removed_the_pods),
		T(a_finalizer_keeps_no_reboot_back),
	};

	rw_choose_tests(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
