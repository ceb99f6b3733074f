/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/crashes.h"

#include "base/mem.h"
#include "base/str.h"
#include "sim/check.h"
#include "sim/nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEMPLATE "\"template\":{\"spec\":{\"containers\":[{\"name\":\"pytorch\",\"image\":\"x\"}]}}"
#define REPLICAS(type, n, policy)                                                                  \
	"\"" type "\":{\"replicas\":" n ",\"restartPolicy\":\"" policy "\"," TEMPLATE "}"
#define JOB(policy, replicas)                                                                      \
	"{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"metadata\":{\"name\":"      \
	"\"ant\",\"namespace\":\"default\"},\"spec\":{\"runPolicy\":{" policy                      \
	"},\"pytorchReplicaSpecs\":{" replicas "}}}"
#define TWO(policy) REPLICAS("Master", "1", policy) "," REPLICAS("Worker", "2", policy)
#define MPI_REPLICAS(type, n, policy)                                                              \
	"\"" type "\":{\"replicas\":" n ",\"restartPolicy\":\"" policy                             \
	"\",\"template\":{\"spec\":{\"containers\":[{\"name\":\"mpi\",\"image\":\"x\"}]}}}"
#define MPI_JOB(policy)                                                                            \
	"{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"MPIJob\",\"metadata\":{\"name\":"          \
	"\"ant\",\"namespace\":\"default\"},\"spec\":{\"mpiReplicaSpecs\":{" MPI_REPLICAS(         \
		"Launcher", "1", policy) "," MPI_REPLICAS("Worker", "2", policy) "}}}"
#define GANG "\"recovery\":{\"restartScope\":\"Job\"}"
#define RULE(action)                                                                               \
	"\"podFailurePolicy\":{\"rules\":[{\"action\":\"" action                                   \
	"\",\"onExitCodes\":{\"containerName\":\"pytorch\",\"operator\":\"In\",\"values\":[220]}}]}"
#define POLICY(text) "{\"spec\":{\"runPolicy\":{" text "}}}"
#define WORKERS(n) "{\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{\"replicas\":" n "}}}}"
#define S HF_SECOND
#define MUTE_SPAN (4 * HF_MINUTE)
/* long enough for Unknown; the node is back before it counts as lost */
#define CUT_SPAN (80 * HF_SECOND)
/* until the first node is back; by then the evidence of lost nodes is complete */
#define ZONE_SPAN (130 * HF_SECOND)
#define ZONE_APART (10 * HF_SECOND)

static const struct sim_script scripts[] = {
	{"success", JOB("", TWO("OnFailure")), {{0}}, {{0}}, .result = "Succeeded 0/0"},
	{"retried",
	 JOB("", TWO("ExitCode")),
	 {{"ant-worker-1", 0, 5 * S, 137, SIM_EXITED}},
	 {{0}},
	 .result = "Succeeded 1/0"},
	{"not-retried",
	 JOB("", TWO("ExitCode")),
	 {{"ant-worker-1", 0, 5 * S, 2, SIM_EXITED}},
	 {{0}},
	 .result = "Failed 0/0"},
	{"in-place",
	 JOB("", TWO("OnFailure")),
	 {{"ant-worker-0", 0, 5 * S, 1, SIM_EXITED}, {"ant-worker-0", 1, 5 * S, 1, SIM_EXITED}},
	 {{0}},
	 .result = "Succeeded 2/0"},
	{"crashes-at-once",
	 JOB("\"backoffLimit\":1", TWO("OnFailure")),
	 {{"ant-worker-0", 0, S / 10, 7, SIM_EXITED},
	  {"ant-worker-0", 1, S / 10, 7, SIM_EXITED},
	  {"ant-worker-0", 2, S / 10, 7, SIM_EXITED}},
	 {{0}},
	 .result = "Failed 2/0"},
	{"gang",
	 JOB(GANG, TWO("OnFailure")),
	 {{"ant-worker-1", 0, 5 * S, 137, SIM_EXITED}},
	 {{0}},
	 .result = "Succeeded 1/0"},
	/* The ranks run for longer than a new operator keeps names empty, so that all first pods are
	 * of generation 1. */
	{"gang-of-failures",
	 JOB(GANG, TWO("OnFailure")),
	 {{"ant-worker-0", 0, 10 * S, 137, SIM_EXITED},
	  {"ant-worker-1", 0, 10 * S, 1, SIM_EXITED},
	  {"ant-master-0", 0, 11 * S, 1, SIM_EXITED}},
	 {{0}},
	 .result = "Succeeded 1/0"},
	{"limit",
	 JOB("\"backoffLimit\":1", TWO("ExitCode")),
	 {{"ant-worker-0", 0, 5 * S, 137, SIM_EXITED}, {"ant-worker-0", 1, 5 * S, 137, SIM_EXITED}},
	 {{0}},
	 .result = "Failed 2/0"},
	{"never",
	 JOB("", TWO("Never")),
	 {{"ant-master-0", 0, 5 * S, 1, SIM_EXITED}},
	 {{0}},
	 .result = "Failed 0/0"},
	{"preempted",
	 JOB("", TWO("Never")),
	 {{"ant-worker-0", 0, 5 * S, 0, SIM_PREEMPTED}},
	 {{0}},
	 .result = "Succeeded 0/1"},
	{"evicted",
	 JOB("", TWO("ExitCode")),
	 {{"ant-worker-0", 0, 5 * S, 0, SIM_EVICTED_NODE}},
	 {{0}},
	 .result = "Succeeded 0/1"},
	{"out-of-memory",
	 JOB("", TWO("ExitCode")),
	 {{"ant-worker-0", 0, 5 * S, 137, SIM_OOM_KILLED}},
	 {{0}},
	 .result = "Succeeded 1/0"},
	{"infrastructure-limit",
	 JOB("\"recovery\":{\"infrastructureLimit\":0}", TWO("Never")),
	 {{"ant-worker-0", 0, 5 * S, 0, SIM_EVICTED_NODE}},
	 {{0}},
	 .result = "Failed 0/1"},
	{"suspended",
	 JOB("", TWO("OnFailure")),
	 {{0}},
	 {{.at = 10 * S, .patch = POLICY("\"suspend\":true")},
	  {.at = 90 * S, .patch = POLICY("\"suspend\":false")}},
	 .result = "Succeeded 0/0"},
	{"suspended-within-deadline",
	 JOB("\"activeDeadlineSeconds\":145", TWO("OnFailure")),
	 {{"ant-master-0", 0, 300 * S, 0, SIM_EXITED},
	  {"ant-worker-0", 0, 300 * S, 0, SIM_EXITED},
	  {"ant-worker-1", 0, 300 * S, 0, SIM_EXITED}},
	 {{.at = 60 * S, .patch = POLICY("\"suspend\":true")},
	  {.at = 95 * S, .patch = POLICY("\"suspend\":false")}},
	 .result = "Succeeded 0/0"},
	{"suspended-and-over",
	 JOB("\"activeDeadlineSeconds\":80", TWO("OnFailure")),
	 {{"ant-master-0", 0, 300 * S, 0, SIM_EXITED},
	  {"ant-worker-0", 0, 300 * S, 0, SIM_EXITED},
	  {"ant-worker-1", 0, 300 * S, 0, SIM_EXITED}},
	 {{.at = 60 * S, .patch = POLICY("\"suspend\":true")},
	  {.at = 95 * S, .patch = POLICY("\"suspend\":false")}},
	 .result = "Failed 0/0"},
	{"limit-and-suspended",
	 JOB("\"backoffLimit\":0", TWO("ExitCode")),
	 {{"ant-worker-0", 0, 5 * S, 137, SIM_EXITED}},
	 {{.at = 16300 * HF_MS, .patch = POLICY("\"suspend\":true")},
	  {.at = 150 * S, .patch = POLICY("\"suspend\":false")}},
	 .result = "Failed 1/0",
	 .other = "Succeeded 0/0"},
	{"suspended-with-ttl",
	 JOB("\"ttlSecondsAfterFinished\":5", TWO("OnFailure")),
	 {{0}},
	 {{.at = 10 * S, .patch = POLICY("\"suspend\":true")},
	  {.at = 90 * S, .patch = POLICY("\"suspend\":false")}},
	 .result = "gone"},
	{"scaled-down",
	 JOB("", TWO("OnFailure")),
	 {{0}},
	 {{.at = 10 * S, .patch = WORKERS("1")}},
	 .result = "Succeeded 0/0"},
	{"scaled-up",
	 JOB("", TWO("OnFailure")),
	 {{0}},
	 {{.at = 10 * S, .patch = WORKERS("4")}},
	 .result = "Succeeded 0/0"},
	{"deleted", JOB("", TWO("OnFailure")), {{0}}, {{.at = 10 * S}}, .result = "gone"},
	{"restarted",
	 JOB("", TWO("OnFailure")),
	 {{0}},
	 {{.at = 10 * S,
	   .patch = "{\"metadata\":{\"annotations\":{\"holdfast.dev/restart\":"
		    "\"2023-11-14T22:13:30Z\"}}}"}},
	 .result = "Succeeded 0/0"},
	{"deadline",
	 JOB("\"activeDeadlineSeconds\":15,\"cleanPodPolicy\":\"All\"", TWO("OnFailure")),
	 {{0}},
	 {{0}},
	 .result = "Failed 0/0"},
	{"rule-fails",
	 JOB(RULE("FailJob"), TWO("OnFailure")),
	 {{"ant-worker-0", 0, 5 * S, 220, SIM_EXITED}},
	 {{0}},
	 .result = "Failed 0/0"},
	{"rule-restarts",
	 JOB(RULE("RestartJob"), TWO("OnFailure")),
	 {{"ant-worker-0", 0, 5 * S, 220, SIM_EXITED}},
	 {{0}},
	 .result = "Succeeded 1/0"},
	{"node-off",
	 JOB("", TWO("OnFailure")),
	 {{"ant-master-0", 0, 300 * S, 0, SIM_EXITED}},
	 {{.at = 10 * S, .off = "ant-worker-0"}},
	 .result = "Succeeded 0/1"},
	{"node-off-and-made-again",
	 JOB("", TWO("OnFailure")),
	 {{0}},
	 {{.at = 10 * S, .off = "ant-worker-0"}, {.at = 12 * S}, {.at = 20 * S, .patch = ""}},
	 .result = "Succeeded 0/0"},
	{"node-off-and-a-peer-fails",
	 JOB("\"backoffLimit\":0,\"recovery\":{\"infrastructureLimit\":1}", TWO("ExitCode")),
	 {{"ant-master-0", 0, 300 * S, 0, SIM_EXITED},
	  {"ant-worker-1", 0, 80 * S, 137, SIM_EXITED},
	  {"ant-worker-1", 1, 4 * S, 137, SIM_EXITED},
	  {"ant-worker-1", 2, 4 * S, 1, SIM_EXITED}},
	 {{.at = 10 * S, .off = "ant-worker-0"}},
	 .result = "Succeeded 0/1"},
	{"fails-while-unknown",
	 JOB("", TWO("ExitCode")),
	 {{"ant-master-0", 0, 300 * S, 0, SIM_EXITED},
	  {"ant-worker-0", 0, 70 * S, 137, SIM_EXITED}},
	 {{.at = 30 * S, .cut = "ant-worker-0"}},
	 .result = "Succeeded 1/0"},
	{"peer-fails-while-unknown",
	 JOB("", TWO("ExitCode")),
	 {{"ant-master-0", 0, 300 * S, 0, SIM_EXITED},
	  {"ant-worker-0", 0, 200 * S, 0, SIM_EXITED},
	  {"ant-worker-1", 0, 70 * S, 137, SIM_EXITED}},
	 {{.at = 10 * S, .cut = "ant-worker-0"}},
	 .result = "Succeeded 1/0"},
	{"peer-fails-before-a-node-dies",
	 JOB("", TWO("ExitCode")),
	 {{"ant-master-0", 0, 400 * S, 0, SIM_EXITED}, {"ant-worker-1", 0, 5 * S, 137, SIM_EXITED}},
	 {{.at = 40 * S, .off = "ant-worker-0"}},
	 .result = "Succeeded 1/1"},
	{"zone-heals",
	 JOB("", TWO("OnFailure")),
	 {{"ant-master-0", 0, 400 * S, 0, SIM_EXITED},
	  {"ant-worker-0", 0, 400 * S, 0, SIM_EXITED},
	  {"ant-worker-1", 0, 400 * S, 0, SIM_EXITED}},
	 {{.at = 10 * S, .zone = "ant-worker-0"}},
	 .result = "Succeeded 0/0",
	 .zones = 1},
	{"zone-heals-gang",
	 JOB(GANG, TWO("OnFailure")),
	 {{"ant-master-0", 0, 400 * S, 0, SIM_EXITED},
	  {"ant-worker-0", 0, 400 * S, 0, SIM_EXITED},
	  {"ant-worker-1", 0, 400 * S, 0, SIM_EXITED}},
	 {{.at = 10 * S, .zone = "ant-worker-0"}},
	 .result = "Succeeded 0/0",
	 .zones = 1},
	{"small-zones-heal",
	 JOB("", TWO("OnFailure")),
	 {{"ant-master-0", 0, 400 * S, 0, SIM_EXITED},
	  {"ant-worker-0", 0, 400 * S, 0, SIM_EXITED},
	  {"ant-worker-1", 0, 400 * S, 0, SIM_EXITED}},
	 {{.at = 10 * S, .all = "ant-worker-0"}},
	 .result = "Succeeded 0/0",
	 .zones = 3,
	 .nodes = 6},
	{"mpi", MPI_JOB("ExitCode"), {{0}}, {{0}}, .result = "Succeeded 0/0", .mpi = true},
	{"mpi-worker-fails",
	 MPI_JOB("ExitCode"),
	 {{"ant-worker-1", 0, 5 * S, 137, SIM_EXITED}},
	 {{0}},
	 .result = "Succeeded 1/0",
	 .mpi = true},
	{"mpi-launcher-fails",
	 MPI_JOB("ExitCode"),
	 {{"ant-launcher", 0, 5 * S, 137, SIM_EXITED}},
	 {{0}},
	 .result = "Succeeded 1/0",
	 .mpi = true},
	{"device-fails",
	 JOB("", TWO("OnFailure")),
	 {{0}},
	 {{.at = 10 * S, .sick = "ant-worker-0"}},
	 .result = "Succeeded 0/0/1",
	 .devices = true},
	{"device-fails-gang",
	 JOB(GANG, TWO("OnFailure")),
	 {{0}},
	 {{.at = 10 * S, .sick = "ant-worker-1"}},
	 .result = "Succeeded 0/0/1",
	 .devices = true},
	{"stands-still",
	 JOB("\"recovery\":{\"progressDeadlineSeconds\":60}", TWO("OnFailure")),
	 {{0}},
	 {{.at = 15 * S, .hangs = "ant-worker-1"}},
	 .result = "Succeeded 1/0",
	 .devices = true,
	 .trains = true},
	{"kubelet-silent-rank-trains",
	 JOB("", TWO("OnFailure")),
	 {{"ant-worker-0", 0, 200 * S, 0, SIM_EXITED}, {"ant-master-0", 0, 200 * S, 0, SIM_EXITED}},
	 {{.at = 15 * S, .mute = "ant-worker-0"}},
	 .result = "Succeeded 0/0",
	 .devices = true,
	 .trains = true},
	{"self-fence",
	 JOB("\"recovery\":{\"nodeLost\":{\"selfFence\":true,\"afterSeconds\":120,"
	     "\"forceDelete\":\"Proven\"}}",
	     TWO("OnFailure")),
	 {{"ant-worker-0", 0, 600 * S, 0, SIM_EXITED}, {"ant-master-0", 0, 300 * S, 0, SIM_EXITED}},
	 {{.at = 30 * S, .mute = "ant-worker-0"}},
	 .result = "Succeeded 0/1",
	 .devices = true,
	 .trains = true,
	 .fences = true},
	{"self-fence-for-ever",
	 JOB("\"recovery\":{\"nodeLost\":{\"selfFence\":true,\"forceDelete\":\"Proven\"}}",
	     TWO("OnFailure")),
	 {{"ant-master-0", 0, 300 * S, 0, SIM_EXITED}},
	 {{.at = 30 * S, .off = "ant-worker-0"}},
	 .result = "Succeeded 0/1",
	 .devices = true,
	 .trains = true,
	 .fences = true},
};

/* --- in the world ---------------------------------------------------------------------------- */

struct sim_script_state {
	struct hf_timer *timers[SIM_SCRIPT_PARTS_MAX], *birth;
	struct deed_arg {
		struct sim *sim;
		const struct sim_script_deed *deed;
	} args[SIM_SCRIPT_PARTS_MAX];
};

static void make_job(void *arg)
{
	struct sim *sim = arg;
	struct hf_json *job = NULL;
	struct hf_error err;
	int rc = hf_json_parse(sim->script->job, strlen(sim->script->job), NULL, &job, &err);

	hf_assert(rc == 0);
	if (sim->narrow_schema)
		sim_narrow_schema_job(job);
	HF_AUTO_DOC body = hf_doc_from_json(job);
	const struct hf_request request = {.verb = HF_VERB_CREATE,
					   .resource = sim_kind_of(sim, "ant")->resource,
					   .ns = "default",
					   .body = body};

	sim_apply(sim, &request);
}

static struct sim_node *node_of(struct sim *sim, const char *pod)
{
	struct hf_doc *doc = hf_memstore_peek(sim->memstore, &hf_pods, "default", pod);
	const char *name =
		doc == NULL ? NULL : hf_json_path_str(hf_doc_json(doc), "spec", "nodeName", NULL);

	return name == NULL ? NULL : sim_node_get(sim, name);
}

/* Returns the pod whose machine the deed concerns; NULL: the deed concerns the job. */
static const char *pod_of(const struct sim_script_deed *deed)
{
	return hf_str_or(hf_str_or(deed->off, deed->sick),
			 hf_str_or(hf_str_or(deed->hangs, deed->mute),
				   hf_str_or(hf_str_or(deed->zone, deed->all), deed->cut)));
}

/* True if other machines go together with this one: all, or those of its zone. */
static bool is_of_many(const struct sim_script_deed *deed)
{
	return deed->zone != NULL || deed->all != NULL;
}

/* Returns false if the deed concerns the job. */
static bool happens_to_node(struct sim *sim, const struct sim_script_deed *deed)
{
	const char *pod = pod_of(deed);
	struct sim_node *node = pod == NULL ? NULL : node_of(sim, pod);
	struct hf_doc *doc =
		pod == NULL ? NULL : hf_memstore_peek(sim->memstore, &hf_pods, "default", pod);

	if (node != NULL && deed->off != NULL)
		sim_node_off_for_ever(node);
	else if (node != NULL && deed->sick != NULL)
		sim_device_fails(node);
	else if (node != NULL && deed->mute != NULL)
		sim_node_mute(node, MUTE_SPAN);
	else if (node != NULL && deed->cut != NULL)
		sim_node_cut(node, CUT_SPAN);
	else if (node != NULL && is_of_many(deed))
		sim_nodes_cut(node, deed->all != NULL, ZONE_SPAN, ZONE_APART);
	else if (doc != NULL && deed->hangs != NULL)
		sim_training_hangs(sim, hf_doc_uid(doc));
	return pod != NULL;
}

static void do_deed(void *arg)
{
	const struct deed_arg *deed = arg;
	struct sim *sim = deed->sim;
	struct hf_doc *job = sim_job_peek(sim, "ant");
	const struct hf_resource *resource = sim_kind_of(sim, "ant")->resource;
	const struct hf_request remove = {.verb = HF_VERB_DELETE,
					  .resource = resource,
					  .ns = "default",
					  .name = "ant",
					  .propagation = HF_PROPAGATE_BACKGROUND};

	sim_tell(sim, "person: %s", hf_str_or(deed->deed->patch, "acts"));
	if (happens_to_node(sim, deed->deed))
		return;
	if (hf_streq(deed->deed->patch, "")) {
		make_job(sim);
		return;
	}
	if (job != NULL)
		sim_check_touched(sim, job);
	if (deed->deed->patch == NULL)
		sim_apply(sim, &remove);
	else
		sim_patch(sim, resource, "default", "ant", NULL, deed->deed->patch);
}

void sim_script_begin(struct sim *sim)
{
	struct sim_script_state *state = hf_xcalloc(1, sizeof(*state));

	sim->script_state = state;
	state->birth = hf_timer_create(sim->loop, make_job, sim);
	hf_timer_arm(state->birth, 0);
	for (size_t i = 0; i < SIM_SCRIPT_PARTS_MAX; i++) {
		state->args[i] = (struct deed_arg){sim, &sim->script->deeds[i]};
		state->timers[i] = hf_timer_create(sim->loop, do_deed, &state->args[i]);
		if (sim->script->deeds[i].at > 0)
			hf_timer_arm(state->timers[i], sim->script->deeds[i].at);
	}
}

void sim_script_end(struct sim *sim)
{
	struct sim_script_state *state = sim->script_state;

	for (size_t i = 0; i < SIM_SCRIPT_PARTS_MAX; i++)
		hf_timer_destroy(state->timers[i]);
	hf_timer_destroy(state->birth);
	free(state);
}

const struct sim_script_end *sim_script_of(struct sim *sim, const char *pod, int start)
{
	for (size_t i = 0; i < SIM_SCRIPT_PARTS_MAX; i++) {
		const struct sim_script_end *end = &sim->script->ends[i];

		if (hf_streq(end->pod, pod) && end->start == start)
			return end;
	}
	return NULL;
}

void sim_script_request(struct sim_life *life, struct hf_fault *fault)
{
	struct sim *sim = life->sim;

	if (sim->requests != sim->crash_at || sim->crash == SIM_CRASH_NEVER)
		return;
	if (sim->crash == SIM_CRASH_UNSENT)
		fault->delay_before = HF_MINUTE;
	else if (sim->crash == SIM_CRASH_UNANSWERED)
		fault->delay_after = HF_MINUTE;
	sim_crash_in(life, sim->crash == SIM_CRASH_UNSENT ? 0 : HF_US);
}

void sim_script_result(struct sim *sim, char result[256])
{
	struct hf_doc *job = sim_job_peek(sim, "ant");
	char device[32] = "";
	int64_t devices;

	if (job == NULL) {
		snprintf(result, 256, "gone");
		return;
	}
	HF_AUTO_JSON status = sim_status(job);

	devices = sim_ledger_int(status, "restarts", "device");
	if (devices > 0)
		snprintf(device, sizeof(device), "/%lld", (long long)devices);
	snprintf(result, 256, "%s %lld/%lld%s", hf_str_or(sim_terminal_of(status), "unfinished"),
		 (long long)sim_ledger_int(status, "restarts", "application"),
		 (long long)sim_ledger_int(status, "restarts", "infrastructure"), device);
}

/* --- all points ------------------------------------------------------------------------------ */

static bool run_point(const struct sim_script *script, unsigned long long at, enum sim_crash crash,
		      bool narrow_schema, bool aloud, unsigned long long *ret_requests)
{
	const struct sim_options options = {.seed = 1,
					    .script = script,
					    .crash_at = at,
					    .crash = crash,
					    .narrow_schema = narrow_schema,
					    .aloud = aloud};
	struct sim_summary summary = {0};
	struct sim_outcome outcome;
	bool good;

	sim_run(&options, &summary, &outcome);
	sim_ids_release(&outcome.happened);
	good = !outcome.failed && (hf_streq(outcome.result, script->result) ||
				   (crash != SIM_CRASH_NEVER && script->other != NULL &&
				    hf_streq(outcome.result, script->other)));
	if (!good && aloud)
		printf("%s, dies at request %llu (%d): %s; expected %s; %s\n", script->name, at,
		       (int)crash, outcome.result, script->result, outcome.failure);
	*ret_requests = summary.requests;
	return good;
}

static bool run_script(const struct sim_script *script, unsigned each, bool narrow_schema,
		       bool verbose, unsigned long long *points)
{
	unsigned long long n = 0, unused;

	if (!run_point(script, 0, SIM_CRASH_NEVER, narrow_schema, verbose, &n))
		return run_point(script, 0, SIM_CRASH_NEVER, narrow_schema, true, &n);
	for (unsigned long long at = 1; at <= n; at++)
		for (enum sim_crash crash = SIM_CRASH_UNSENT; crash <= SIM_CRASH_ANSWERED;
		     crash++) {
			if ((at * 3 + crash) % each != 0)
				continue;
			++*points;
			if (!run_point(script, at, crash, narrow_schema, false, &unused))
				return run_point(script, at, crash, narrow_schema, true, &unused);
		}
	return true;
}

static void tell_names(const char *wrong)
{
	fprintf(stderr, "no scenario has the name '%s'; the names are:\n", wrong);
	for (size_t i = 0; i < HF_ARRAY_LEN(scripts); i++)
		fprintf(stderr, "  %s\n", scripts[i].name);
}

int sim_crash_points(const char *only, unsigned each, bool narrow_schema, bool verbose)
{
	unsigned long long points = 0, scenarios = 0;
	bool good = true;

	for (size_t i = 0; good && i < HF_ARRAY_LEN(scripts); i++) {
		if (only != NULL && !hf_streq(only, scripts[i].name))
			continue;
		good = run_script(&scripts[i], each, narrow_schema, verbose, &points);
		scenarios++;
	}
	if (scenarios == 0) {
		tell_names(only);
		return 2;
	}
	printf("%llu scenarios, %llu crash points: %s\n", scenarios, points,
	       !good         ? "at least one scenario did not end as expected"
	       : points == 0 ? "nothing is known"
			     : "all scenarios ended as expected");
	return good && points > 0 ? 0 : 1;
}
