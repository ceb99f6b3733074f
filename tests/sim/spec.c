/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/sim.h"

#include "framework/framework.h"
#include "store/resource.h"

/* Random jobs as people might write them, with small numbers, so that limits are reached. */

static uint64_t below(struct sim *sim, uint64_t bound)
{
	return sim_how(sim, bound);
}

static bool one_in(struct sim *sim, uint64_t n)
{
	return below(sim, n) == 0;
}

static struct hf_json *random_replica(struct sim *sim, const char *main, bool master,
				      int64_t replicas)
{
	static const char *const policies[] = {"OnFailure", "Always", "Never", "ExitCode"};
	struct hf_json *spec = hf_json_object(), *pod, *container;

	if (master || replicas != 1 || one_in(sim, 2))
		hf_json_set_i64(spec, "replicas", replicas);
	if (!one_in(sim, 5))
		hf_json_set_str(spec, "restartPolicy",
				policies[below(sim, HF_ARRAY_LEN(policies))]);
	pod = hf_json_ensure_object(hf_json_ensure_object(spec, "template"), "spec");
	if (one_in(sim, 2))
		hf_json_set_i64(pod, "terminationGracePeriodSeconds", (int64_t)below(sim, 20));
	container = hf_json_object();
	hf_json_set_str(container, "name", main);
	hf_json_set_str(container, "image", "train:1");
	/* All but what leads the others. */
	if (!master && sim->mood.weight[SIM_DEVICE_FAILED] > 0)
		hf_json_set_i64(hf_json_ensure_object(hf_json_ensure_object(container, "resources"),
						      "limits"),
				"example.com/gpu", 1);
	hf_json_append(hf_json_ensure_array(pod, "containers"), container);
	return spec;
}

static void random_rules(struct sim *sim, const char *main, struct hf_json *policy)
{
	static const char *const actions[] = {"FailJob", "Ignore", "Count", "RestartReplica",
					      "RestartJob"};
	static const int codes[] = {1, 2, 137, 143, 220};
	struct hf_json *rules =
		hf_json_ensure_array(hf_json_ensure_object(policy, "podFailurePolicy"), "rules");

	for (uint64_t n = 1 + below(sim, 3); n > 0; n--) {
		struct hf_json *rule = hf_json_object(), *on;

		hf_json_set_str(rule, "action", actions[below(sim, HF_ARRAY_LEN(actions))]);
		on = hf_json_ensure_object(rule, "onExitCodes");
		hf_json_set_str(on, "containerName", main);
		hf_json_set_str(on, "operator", "In");
		hf_json_append(hf_json_ensure_array(on, "values"),
			       hf_json_int(codes[below(sim, HF_ARRAY_LEN(codes))]));
		hf_json_append(rules, rule);
	}
}

static void random_recovery(struct sim *sim, struct hf_json *policy)
{
	struct hf_json *recovery = hf_json_ensure_object(policy, "recovery");

	if (one_in(sim, 2))
		hf_json_set_str(recovery, "restartScope", one_in(sim, 3) ? "Replica" : "Job");
	if (one_in(sim, 4))
		hf_json_set_i64(recovery, "infrastructureLimit", (int64_t)below(sim, 4));
	if (one_in(sim, 2)) {
		struct hf_json *backoff = hf_json_ensure_object(recovery, "backoff");

		hf_json_set_i64(backoff, "initialSeconds", 1 + (int64_t)below(sim, 10));
		hf_json_set_i64(backoff, "maxSeconds", 10 + (int64_t)below(sim, 50));
	}
	if (one_in(sim, 3))
		hf_json_set_i64(recovery, "settleSeconds", (int64_t)below(sim, 20));
	if (one_in(sim, 4))
		hf_json_set_i64(recovery, "restartGraceSeconds", (int64_t)below(sim, 10));
}

static void random_policy(struct sim *sim, const char *main, struct hf_json *spec)
{
	static const char *const clean[] = {"None", "Running", "All"};
	struct hf_json *policy = hf_json_ensure_object(spec, "runPolicy");

	if (!one_in(sim, 4))
		hf_json_set_str(policy, "cleanPodPolicy", clean[below(sim, HF_ARRAY_LEN(clean))]);
	if (one_in(sim, 16))
		hf_json_set_str(policy, "managedBy", "kueue.x-k8s.io/multikueue");
	if (one_in(sim, 2))
		hf_json_set_i64(policy, "backoffLimit", (int64_t)below(sim, 7));
	if (one_in(sim, 4))
		hf_json_set_i64(policy, "ttlSecondsAfterFinished", (int64_t)below(sim, 120));
	if (one_in(sim, 4))
		hf_json_set_i64(policy, "activeDeadlineSeconds", 30 + (int64_t)below(sim, 600));
	if (one_in(sim, 8))
		hf_json_set_bool(policy, "suspend", true);
	if (one_in(sim, 2))
		random_recovery(sim, policy);
	if (one_in(sim, 4))
		random_rules(sim, main, policy);
}

/* Adds what only TFJobs have: a chief in place of the master, parameter servers, an evaluator. */
static void random_tensorflow(struct sim *sim, const char *main, struct hf_json *replicas)
{
	struct hf_json *master = hf_json_get(replicas, "Master");

	if (master != NULL && one_in(sim, 2)) {
		hf_json_set(replicas, "Chief", hf_json_copy(master));
		hf_json_remove(replicas, "Master");
	}
	if (one_in(sim, 2))
		hf_json_set(replicas, "PS",
			    random_replica(sim, main, false, 1 + (int64_t)below(sim, 2)));
	if (one_in(sim, 4))
		hf_json_set(replicas, "Evaluator", random_replica(sim, main, true, 1));
}

/* Some jobs are elastic: they may run with fewer workers. */
static void random_elastic(struct sim *sim, struct hf_json *spec, int64_t workers)
{
	struct hf_json *elastic;

	if (workers < 2 || !one_in(sim, 4))
		return;
	elastic = hf_json_ensure_object(spec, "elasticPolicy");
	hf_json_set_i64(elastic, "minReplicas", 1 + (int64_t)below(sim, (uint64_t)workers));
	hf_json_set_i64(elastic, "maxReplicas", SIM_PODS_MAX);
}

/* --- rare settings, in one world of eight --- */

static void random_conditions(struct sim *sim, const struct sim_kind *kind, struct hf_json *spec,
			      struct hf_json *policy)
{
	static const char *const actions[] = {"FailJob", "Ignore", "Count", "RestartReplica",
					      "RestartJob"};
	static const char *const reasons[] = {"Evicted", "OOMKilled", "NodeShutdown"};
	struct hf_json *rule = hf_json_object(), *on;

	hf_json_set_str(rule, "action", actions[below(sim, HF_ARRAY_LEN(actions))]);
	switch (below(sim, 3)) {
	case 0:
		on = hf_json_object();
		hf_json_set_str(on, "type", "DisruptionTarget");
		hf_json_append(hf_json_ensure_array(rule, "onPodConditions"), on);
		break;
	case 1:
		hf_json_append(hf_json_ensure_array(rule, "onPodReasons"),
			       hf_json_string(reasons[below(sim, HF_ARRAY_LEN(reasons))]));
		break;
	default: hf_json_append(hf_json_ensure_array(rule, "onDevice"), hf_json_string("reboot"));
	}
	if (one_in(sim, 3) &&
	    hf_json_path(spec, kind->framework->replicas_key, "Worker", NULL) != NULL)
		hf_json_append(hf_json_ensure_array(rule, "replicaTypes"),
			       hf_json_string("Worker"));
	hf_json_append(
		hf_json_ensure_array(hf_json_ensure_object(policy, "podFailurePolicy"), "rules"),
		rule);
}

static void random_rarities(struct sim *sim, const struct sim_kind *kind, struct hf_json *spec)
{
	static const char *const modes[] = {"Presumed", "Proven", "Never"};
	static const char *const unhealthy[] = {"Ignore", "Restart", "Fail"};
	struct hf_json *policy = hf_json_ensure_object(spec, "runPolicy");
	struct hf_json *recovery = hf_json_ensure_object(policy, "recovery");

	if (one_in(sim, 2))
		hf_json_set_str(hf_json_ensure_object(recovery, "nodeLost"), "forceDelete",
				modes[below(sim, HF_ARRAY_LEN(modes))]);
	if (one_in(sim, 3))
		hf_json_set_i64(hf_json_ensure_object(recovery, "nodeLost"), "afterSeconds",
				60 + (int64_t)below(sim, 60));
	if (one_in(sim, 2))
		hf_json_set_str(hf_json_ensure_object(recovery, "device"), "onUnhealthy",
				unhealthy[below(sim, HF_ARRAY_LEN(unhealthy))]);
	if (one_in(sim, 4))
		hf_json_set_bool(hf_json_ensure_object(recovery, "device"), "avoid", false);
	if (one_in(sim, 3))
		hf_json_set_i64(recovery, "deviceLimit", (int64_t)below(sim, 3));
	if (one_in(sim, 4))
		hf_json_set_i64(recovery, "replaceDelaySeconds", 2 + (int64_t)below(sim, 5));
	if (one_in(sim, 4))
		hf_json_set_i64(recovery, "incidentSeconds", (int64_t)below(sim, 300));
	if (one_in(sim, 3))
		random_conditions(sim, kind, spec, policy);
}

/* Where ranks tell of their steps. */
static void random_progress(struct sim *sim, struct hf_json *spec)
{
	struct hf_json *policy = hf_json_ensure_object(spec, "runPolicy");

	if (!one_in(sim, 4))
		hf_json_set_i64(hf_json_ensure_object(policy, "recovery"),
				"progressDeadlineSeconds", 60 + (int64_t)below(sim, 240));
}

/* Some jobs ask that ranks end themselves when their node loses contact. */
static void random_fence(struct sim *sim, struct hf_json *spec)
{
	struct hf_json *policy = hf_json_ensure_object(spec, "runPolicy"), *lost;

	if (one_in(sim, 4))
		return;
	lost = hf_json_ensure_object(hf_json_ensure_object(policy, "recovery"), "nodeLost");
	hf_json_set_bool(lost, "selfFence", true);
	hf_json_set_i64(lost, "afterSeconds", 40 + (int64_t)below(sim, 100));
}

static void random_of_world(struct sim *sim, const struct sim_kind *kind, struct hf_json *spec)
{
	if (sim->mood.rare)
		random_rarities(sim, kind, spec);
	if (sim->mood.trains)
		random_progress(sim, spec);
	if (sim->mood.fences)
		random_fence(sim, spec);
}

/* --- second containers, and what the end of a job leaves -------------------------------------- */

/* Adds a second container (a proxy), which may outlive the training container. */
static void add_sidecars(struct hf_rng *rng, struct hf_json *replicas)
{
	struct hf_json *value;
	const char *key;

	for (void *it = NULL; (it = hf_json_next(replicas, it, &key, &value)) != NULL;) {
		struct hf_json *container, *pod;

		if (hf_rng_below(rng, 6) != 0)
			continue;
		container = hf_json_object();
		hf_json_set_str(container, "name", "proxy");
		hf_json_set_str(container, "image", "proxy:1");
		pod = hf_json_ensure_object(hf_json_ensure_object(value, "template"), "spec");
		hf_json_append(hf_json_ensure_array(pod, "containers"), container);
	}
}

static void add_endings(struct sim *sim, struct hf_json *spec, struct hf_json *replicas)
{
	struct hf_rng *rng = &sim->beside;
	struct hf_json *recovery;

	if (!sim->mood.plugins && !sim->mood.fences)
		add_sidecars(rng, replicas);
	if (hf_rng_below(rng, 3) == 0)
		return;
	recovery = hf_json_ensure_object(hf_json_ensure_object(spec, "runPolicy"), "recovery");
	if (hf_rng_below(rng, 2) == 0)
		hf_json_set_i64(recovery, "sidecarGraceSeconds", (int64_t)hf_rng_below(rng, 120));
	if (hf_rng_below(rng, 6) == 0)
		hf_json_set_str(recovery, "podsAfterEnd",
				hf_rng_below(rng, 4) == 0 ? "Stop" : "Keep");
}

struct hf_json *sim_random_job(struct sim *sim, const char *name)
{
	const struct sim_kind *kind = sim_kind_of(sim, name);
	const char *main = kind->framework->container_name;
	bool jax = kind->resource == &hf_jaxjobs, mpi = kind->resource == &hf_mpijobs;
	struct hf_json *job = hf_json_object(), *meta, *spec, *replicas;
	bool master = (!one_in(sim, 4) || kind->resource == &hf_xgboostjobs || mpi) && !jax;
	/* Most faults need few ranks, and a small job is simulated fast. */
	int64_t workers = (int64_t)below(sim, one_in(sim, 3) ? SIM_PODS_MAX - 4 : 4);

	hf_json_set_str(job, "apiVersion", kind->framework->api_version);
	hf_json_set_str(job, "kind", kind->framework->kind);
	meta = hf_json_ensure_object(job, "metadata");
	hf_json_set_str(meta, "name", name);
	hf_json_set_str(meta, "namespace", "default");
	spec = hf_json_ensure_object(job, "spec");
	replicas = hf_json_ensure_object(spec, kind->framework->replicas_key);
	if (master)
		hf_json_set(replicas, mpi ? "Launcher" : "Master",
			    random_replica(sim, main, true, 1));
	if (!master || workers > 0)
		hf_json_set(replicas, "Worker",
			    random_replica(sim, main, false, workers > 0 ? workers : 1));
	if (!one_in(sim, 5))
		random_policy(sim, main, spec);
	if (kind->resource == &hf_tfjobs)
		random_tensorflow(sim, main, replicas);
	if (kind->resource == &hf_pytorchjobs)
		random_elastic(sim, spec, workers);
	random_of_world(sim, kind, spec);
	add_endings(sim, spec, replicas);
	if (sim->narrow_schema)
		sim_narrow_schema_job(job);
	return job;
}
