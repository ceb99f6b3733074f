/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/in_place.h"
#include "sim/seeds.h"
#include "sim/sim.h"

#include "base/str.h"
#include "framework/framework.h"
#include "harness/ledger_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Operators, people, trouble, and the runs of many seeds. */

/* --- the operators --------------------------------------------------------------------------------------------- */

static void on_death(void *arg)
{
	struct life *life = arg;

	if (life->client == NULL)
		return;
	ip_tell(life->w, "operator %s dies", life->identity);
	life->w->met->deaths++;
	life->op = hf_operator_destroy(life->op);
	life->manager = hf_manager_destroy(life->manager);
	life->client = hf_store_destroy(life->client);
	hf_timer_arm(life->birth, ip_span(life->w, 10 * HF_SECOND));
}

static void on_request(void *arg, const struct hf_request *request, struct hf_fault *fault)
{
	struct life *life = arg;
	struct world *w = life->w;

	w->met->requests++;
	if (w->calm || w->quiet)
		return;
	if (ip_chance(w, 15)) {
		fault->refuse = HF_E_UNAVAILABLE;
		fault->message = "refused by the simulator";
	} else if (ip_chance(w, 15)) {
		fault->lose_reply = true;
		w->met->lost++;
	} else if (ip_chance(w, 20)) {
		fault->delay_before = ip_span(w, 2 * HF_SECOND);
		fault->delay_after = ip_span(w, 2 * HF_SECOND);
	}
	if (hf_streq(request->resource->plural, "events") || !ip_chance(w, 8))
		return;
	/* The operator dies before the request arrives, or after it was done and before the reply
	 * arrives. */
	if (ip_chance(w, 500)) {
		fault->delay_before = HF_MINUTE;
		hf_timer_arm(life->death, 0);
	} else {
		fault->delay_after = HF_MINUTE;
		hf_timer_arm(life->death, HF_MS);
	}
}

static void on_relist(void *arg)
{
	struct life *life = arg;

	if (life->client != NULL)
		hf_memstore_client_break_watches(life->bare, HF_E_GONE, "events were lost");
}

static void on_event(void *arg, const struct hf_watch_options *options,
		     const struct hf_event *event, struct hf_event_fault *fault)
{
	struct life *life = arg;
	struct world *w = life->w;

	(void)options;
	(void)event;
	if (w->calm || w->quiet)
		return;
	if (ip_chance(w, 4)) {
		fault->drop = true;
		hf_timer_arm(life->relist, ip_span(w, 30 * HF_SECOND));
	} else if (ip_chance(w, 30)) {
		fault->delay = ip_span(w, 5 * HF_SECOND);
	}
	fault->duplicate = ip_chance(w, 20);
}

static void on_birth(void *arg)
{
	struct life *life = arg;
	struct world *w = life->w;
	static const struct hf_framework *const frameworks[] = {&hf_framework_pytorch, NULL};
	const struct hf_memstore_faults faults = {
		.request = on_request, .event = on_event, .arg = life};
	struct hf_error err = {0};
	int rc;

	life->client = life->bare = hf_memstore_client_create(w->memstore, &faults);
	if (w->narrow)
		life->client = sim_narrow_schema_create(life->client);
	const struct hf_operator_options options = {.loop = w->loop,
						    .store = life->client,
						    .frameworks = frameworks,
						    .watch_nodes = true,
						    .seed = hf_rng_next(&w->rng)};
	const struct hf_manager_options manager = {.op = options,
						   .elect = true,
						   .lease_ns = "default",
						   .lease_name = "leader",
						   .identity = life->identity};

	ip_tell(w, "operator %s starts", life->identity);
	if (w->n_lives == 1)
		rc = hf_operator_create(&options, &life->op, &err);
	else
		rc = hf_manager_create(&manager, &life->manager, &err);
	if (rc != 0)
		ip_fail_world(w, "operator: %s", err.text);
	else if (life->op != NULL)
		hf_operator_start(life->op);
	else
		hf_manager_start(life->manager);
}

/* --- people, and what breaks --------------------------------------------------------------------------------------- */

static void make_job(struct world *w)
{
	char text[2048];
	int workers = 1 + (int)ip_below(w, WORKERS_MAX - 1);

	snprintf(
		text, sizeof(text),
		"{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{'name':'ddp',"
		"'namespace':'default'},'spec':{'runPolicy':{'recovery':{'restartScope':'%s',"
		"'checkpoint':{'graceSeconds':%lld},"
		"'backoff':{'initialSeconds':1,'maxSeconds':20}}},'pytorchReplicaSpecs':{'Master':{"
		"'replicas':1,'restartPolicy':'OnFailure','template':{'spec':{"
		"'terminationGracePeriodSeconds':%d,'containers':[{'name':'pytorch','image':'i'}]"
		"}}},'Worker':{'replicas':%d,'restartPolicy':'OnFailure','template':{'spec':{"
		"'terminationGracePeriodSeconds':%d,'containers':[{'name':'pytorch','image':'i'}]"
		"}}}}}}",
		w->scope_job ? "Job" : "Replica", (long long)w->save_seconds, GRACE_SECONDS,
		workers, GRACE_SECONDS);
	w->jobs++;
	if (ip_create(w, &hf_pytorchjobs, "default", text) != 0)
		ip_fail_world(w, "the job cannot be made");
}

static struct pod *pick_pod(struct world *w)
{
	const char *key;
	void *value;
	struct pod *found = NULL;
	uint64_t n = 0;

	for (size_t it = 0; hf_map_next(w->pods, &it, &key, &value);) {
		struct pod *pod = value;

		if (pod->object && pod->container && ip_below(w, ++n) == 0)
			found = pod;
	}
	return found;
}

/* A rank fails. In half of the cases in scope Job, its peers fail because of it a little later. */
static void rank_fails(struct world *w)
{
	static const int codes[] = {1, 1, 2, 137, 143, 220};
	struct pod *pod = pick_pod(w);
	const char *key;
	void *value;

	if (pod == NULL || !pod->process || pod->stopping)
		return;
	w->faults++;
	w->met->faults++;
	if (w->scope_job && ip_chance(w, 500)) {
		for (size_t it = 0; hf_map_next(w->pods, &it, &key, &value);) {
			struct pod *peer = value;

			if (peer == pod || !peer->process ||
			    !hf_streq(peer->job_uid, pod->job_uid) || ip_chance(w, 300))
				continue;
			peer->soon_code = 1;
			hf_timer_arm(peer->ends_soon, ip_span(w, 40 * HF_MS));
		}
	}
	ip_program_ends(pod, codes[ip_below(w, HF_ARRAY_LEN(codes))]);
}

static void patch_job(struct world *w, const char *what, const char *text)
{
	ip_tell(w, "people: %s", what);
	w->met->people++;
	(void)ip_patch(w, &hf_pytorchjobs, "default", "ddp", NULL, text);
}

static void people_act(struct world *w)
{
	char text[256], at[HF_TIME_TEXT_MAX];
	struct pod *pod;

	if (ip_job_doc(w) == NULL) {
		make_job(w);
		return;
	}
	switch (ip_below(w, 9)) {
	case 0: patch_job(w, "suspend", "{'spec':{'runPolicy':{'suspend':true}}}"); break;
	case 1:
	case 2: patch_job(w, "resume", "{'spec':{'runPolicy':{'suspend':false}}}"); break;
	case 3:
		snprintf(text, sizeof(text),
			 "{'spec':{'pytorchReplicaSpecs':{'Worker':{'replicas':%d}}}}",
			 1 + (int)ip_below(w, WORKERS_MAX));
		patch_job(w, "scale", text);
		break;
	case 4:
		patch_job(w, "edit",
			  ip_chance(w, 300)
				  ? "{'spec':{'runPolicy':{'recovery':{'inPlace':'Never'}}}}"
				  : "{'spec':{'runPolicy':{'recovery':{'inPlace':'Auto'}}}}");
		break;
	case 5:
		hf_time_format(hf_loop_wall(w->loop), at);
		snprintf(text, sizeof(text),
			 "{'metadata':{'annotations':{'holdfast.dev/restart':'%s%s'}}}", at,
			 ip_chance(w, 400) ? " worker-0" : "");
		patch_job(w, "restart", text);
		break;
	case 6:
		if (!ip_chance(w, 200))
			break;
		ip_tell(w, "people: delete the job");
		(void)ip_delete_object(w, &hf_pytorchjobs, "default", "ddp", w->job_uid,
				       HF_GRACE_DEFAULT);
		break;
	default:
		pod = pick_pod(w);
		if (pod == NULL)
			break;
		ip_tell(w, "people: delete %s", pod->name);
		/* If the watch loses this delete, the pod looks as if it had vanished, which is
		 * charged. */
		w->faults++;
		pod->excused = true;
		(void)ip_delete_object(w, &hf_pods, "default", pod->name, pod->uid,
				       HF_GRACE_DEFAULT);
		break;
	}
}

static void exec_is_killed(struct world *w)
{
	struct pod *pod = pick_pod(w);

	if (pod == NULL)
		return;
	ip_tell(w, "world: exec of %s is killed", pod->name);
	w->faults++;
	w->met->execs_killed++;
	ip_container_ends(pod, 137);
}

static void on_deed(void *arg)
{
	struct world *w = arg;

	if (w->calm)
		return;
	hf_timer_arm(w->deeds, w->quiet ? 3 * HF_MINUTE : ip_span(w, 40 * HF_SECOND));
	if (w->quiet) {
		rank_fails(w);
		return;
	}
	switch (ip_below(w, 12)) {
	case 0:
	case 1:
	case 2:
	case 3: rank_fails(w); break;
	case 4: exec_is_killed(w); break;
	case 5:
	case 6:
		ip_agent_dies(&w->nodes[ip_below(w, NODES)],
			      ip_chance(w, 200) ? 20 * HF_MINUTE : ip_span(w, 3 * HF_MINUTE));
		break;
	case 7: ip_node_goes(&w->nodes[ip_below(w, NODES)], ip_chance(w, 500)); break;
	case 8:
	case 9: hf_timer_arm(w->lives[ip_below(w, (uint64_t)w->n_lives)].death, HF_MS); break;
	default: people_act(w); break;
	}
}

/* --- a run ------------------------------------------------------------------------------------------------------------ */

static void must_create(struct world *w, const struct hf_resource *resource, const char *ns,
			const char *text)
{
	int rc = ip_create(w, resource, ns, text);

	hf_assert(rc == 0);
}

static void make_nodes(struct world *w)
{
	must_create(w, &hf_namespaces, NULL,
		    "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'kube-node-lease'}}");
	for (int i = 0; i < NODES; i++) {
		struct node *node = &w->nodes[i];
		char text[512], at[HF_TIME_TEXT_MAX];

		*node = (struct node){.w = w, .power = true, .link = true, .agent = true};
		snprintf(node->name, sizeof(node->name), "n%d", i);
		snprintf(text, sizeof(text),
			 "{'apiVersion':'v1','kind':'Node','metadata':{'name':'%s'}}", node->name);
		must_create(w, &hf_nodes, NULL, text);
		snprintf(text, sizeof(text),
			 "{'apiVersion':'coordination.k8s.io/v1','kind':'Lease','metadata':{'name':"
			 "'%s','namespace':'kube-node-lease'},'spec':{'holderIdentity':'%s',"
			 "'renewTime':'%s'}}",
			 node->name, node->name, ip_format_time(w, at));
		must_create(w, &hf_leases, "kube-node-lease", text);
		ip_set_ready(node, "True");
		node->write = hf_timer_create(w->loop, ip_on_write, node);
		node->read = hf_timer_create(w->loop, ip_on_read, node);
		node->repeat = hf_timer_create(w->loop, ip_on_repeat, node);
		node->beat = hf_timer_create(w->loop, ip_on_beat, node);
		node->lease = hf_timer_create(w->loop, ip_on_lease, node);
		node->lost = hf_timer_create(w->loop, ip_on_lost, node);
		node->back = hf_timer_create(w->loop, ip_on_back, node);
		node->agent_back = hf_timer_create(w->loop, ip_on_agent_back, node);
		hf_timer_arm(node->lease, ip_span(w, 10 * HF_SECOND));
		hf_timer_arm(node->repeat, ip_span(w, REPEAT));
		hf_timer_arm(node->write, HF_MS);
	}
}

static void run_until(struct world *w, hf_time until)
{
	while (!w->failed && ip_now(w) < until) {
		hf_time next = ip_now(w) + HF_SECOND;

		hf_loop_run_until(w->loop, next < until ? next : until);
		ip_check_barrier(w);
	}
}

static void begin_calm(struct world *w)
{
	ip_tell(w, "--- calm");
	w->calm = true;
	for (int i = 0; i < NODES; i++) {
		struct node *node = &w->nodes[i];

		if (!node->power || !node->link)
			hf_timer_arm(node->back, HF_SECOND);
		if (!node->agent)
			hf_timer_arm(node->agent_back, 3 * HF_SECOND);
	}
	if (ip_job_doc(w) == NULL)
		make_job(w);
	patch_job(w, "resume", "{'spec':{'runPolicy':{'suspend':false}}}");
}

static void check_end(struct world *w)
{
	struct hf_doc *doc = ip_job_doc(w);
	const struct hf_json *job = hf_doc_json(doc);
	HF_AUTO_JSON ledger = ip_ledger(doc);
	int64_t workers = hf_json_i64(
		hf_json_path(job, "spec", "pytorchReplicaSpecs", "Worker", "replicas", NULL), 0);
	int64_t running = 0;
	const char *key;
	void *value;

	if (ip_is_held(ledger))
		ip_fail_world(w, "ranks are still held at the end");
	if (!hf_streq(hf_json_path_str(ledger, "phase", NULL), "Running"))
		ip_fail_world(w, "the job is %s at the end",
			      hf_str_or(hf_json_path_str(ledger, "phase", NULL), "?"));
	for (size_t it = 0; hf_map_next(w->pods, &it, &key, &value);) {
		const struct pod *pod = value;
		int64_t attempt;

		if (!pod->process)
			continue;
		if (!hf_streq(pod->job_uid, hf_doc_uid(doc))) {
			ip_fail_world(w, "%s of an earlier job runs at the end", pod->name);
			continue;
		}
		attempt = ledger_text_number(
			hf_json_path_str(ledger, "replicas", ip_type_of(pod), "attempts", NULL),
			ip_index_of(pod));
		if (pod->g != hf_json_i64(hf_json_get(ledger, "generation"), 0) ||
		    pod->a != attempt)
			ip_fail_world(w, "%s runs %lld.%lld at the end", pod->name,
				      (long long)pod->g, (long long)pod->a);
		running++;
	}
	if (running != workers + 1)
		ip_fail_world(w, "%lld of %lld ranks run at the end", (long long)running,
			      (long long)workers + 1);
	/* With scope Replica a rank that started before another rank's incident may belong to that
	 * incident, so only scope Job is compared. */
	if (w->quiet && w->scope_job && ip_sum_restarts(ledger) != w->faults)
		ip_fail_world(w, "%lld units are charged for %lld faults",
			      (long long)ip_sum_restarts(ledger), (long long)w->faults);
	w->met->charged += (unsigned long long)ip_sum_restarts(ledger);
}

static void fill_random(void *arg, void *bytes, size_t len)
{
	unsigned char *at = bytes;

	for (size_t i = 0; i < len; i++)
		at[i] = (unsigned char)hf_rng_next(arg);
}

static void world_begin(struct world *w, uint64_t seed, bool aloud, struct met *met)
{
	const struct hf_memstore_options options = {
		.event_ttl = HF_HOUR, .random = fill_random, .random_arg = &w->engine_rng};
	struct hf_error err = {0};

	*w = (struct world){.aloud = aloud, .met = met};
	hf_rng_init(&w->rng, seed);
	hf_rng_init(&w->engine_rng, ~seed);
	w->scope_job = ip_below(w, 3) != 0;
	w->narrow = seed % 5 == 4;
	w->quiet = ip_below(w, 6) == 0;
	w->save_seconds = ip_below(w, 2) == 0 ? 0 : 10 + (int64_t)ip_below(w, 30);
	w->n_lives = ip_below(w, 4) == 0 ? 2 : 1;
	w->loop = hf_loop_create_virtual(WALL_START);
	if (hf_memstore_create(w->loop, &options, &w->memstore, &err) != 0)
		ip_fail_world(w, "%s", err.text);
	w->gc = hf_gc_create(w->memstore, NULL);
	w->pods = hf_map_create(PODS_MAX, 0, ip_pod_free);
	w->observer = (struct hf_memstore_observer){
		.changed = ip_on_change, .reset = ip_on_reset, .arg = w};
	hf_memstore_observe(w->memstore, &w->observer);
	w->deeds = hf_timer_create(w->loop, on_deed, w);
	make_nodes(w);
	for (int i = 0; i < w->n_lives; i++) {
		struct life *life = &w->lives[i];

		*life = (struct life){.w = w};
		snprintf(life->identity, sizeof(life->identity), "op-%d", i);
		life->death = hf_timer_create(w->loop, on_death, life);
		life->birth = hf_timer_create(w->loop, on_birth, life);
		life->relist = hf_timer_create(w->loop, on_relist, life);
		on_birth(life);
	}
	make_job(w);
	hf_timer_arm(w->deeds, 30 * HF_SECOND);
}

static void world_end(struct world *w)
{
	for (int i = 0; i < w->n_lives; i++) {
		struct life *life = &w->lives[i];

		life->op = hf_operator_destroy(life->op);
		life->manager = hf_manager_destroy(life->manager);
		life->client = hf_store_destroy(life->client);
		hf_timer_destroy(life->death);
		hf_timer_destroy(life->birth);
		hf_timer_destroy(life->relist);
	}
	for (int i = 0; i < NODES; i++) {
		struct node *node = &w->nodes[i];
		struct hf_timer *timers[] = {node->write, node->read,      node->repeat,
					     node->beat,  node->lease,     node->lost,
					     node->back,  node->agent_back};

		for (size_t t = 0; t < HF_ARRAY_LEN(timers); t++)
			hf_timer_destroy(timers[t]);
		hf_doc_unref(node->job);
	}
	hf_timer_destroy(w->deeds);
	hf_memstore_unobserve(w->memstore, &w->observer);
	hf_map_destroy(w->pods);
	hf_gc_destroy(w->gc);
	hf_memstore_destroy(w->memstore);
	hf_loop_destroy(w->loop);
}

static bool run_seed(uint64_t seed, bool aloud, struct met *met)
{
	struct world w;
	bool failed;

	world_begin(&w, seed, aloud, met);
	run_until(&w, TROUBLE);
	if (!w.failed)
		begin_calm(&w);
	run_until(&w, TROUBLE + CALM);
	if (!w.failed)
		check_end(&w);
	met->seeds++;
	failed = w.failed;
	if (failed)
		printf("seed %llu: %s\n  again: in_place --seed %llu --verbose\n",
		       (unsigned long long)seed, w.failure, (unsigned long long)seed);
	world_end(&w);
	return failed;
}

/* --- the writes of one restart ------------------------------------------------------------------------------------------ */

static bool count_writes(struct met *met)
{
	struct world w;
	struct pod *pod;
	bool failed = false;
	unsigned long long writes;

	world_begin(&w, 1, false, met);
	w.quiet = true;
	hf_timer_disarm(w.deeds);
	(void)ip_patch(&w, &hf_pytorchjobs, "default", "ddp", NULL,
		       "{'spec':{'runPolicy':{'recovery':{'restartScope':'Job'}},"
		       "'pytorchReplicaSpecs':{'Worker':{'replicas':6}}}}");
	run_until(&w, 3 * HF_MINUTE);
	for (int n = 0; n < 3 && !w.failed; n++) {
		pod = pick_pod(&w);
		w.faults++;
		w.agent_writes = w.job_writes = 0;
		ip_program_ends(pod, 1);
		for (int s = 0; s < 60 && w.running_in != n + 2; s++)
			run_until(&w, ip_now(&w) + HF_SECOND);
		writes = w.agent_writes + w.job_writes;
		run_until(&w, ip_now(&w) + 30 * HF_SECOND);
		printf("restart %d of 7 ranks on %d nodes: %llu writes, %llu of them of the "
		       "operator\n",
		       n + 1, NODES, writes, w.job_writes);
		if (writes > NODES + 4 || w.job_writes > 3 || w.hold_since != 0 ||
		    w.generation != n + 2)
			failed = true;
	}
	if (w.failed)
		printf("%s\n", w.failure);
	failed |= w.failed;
	world_end(&w);
	return failed;
}

/* --- saves before a planned end ------------------------------------------------------------------------------------------- */

static size_t count_objects(const struct world *w)
{
	const char *key;
	void *value;
	size_t count = 0;

	for (size_t it = 0; hf_map_next(w->pods, &it, &key, &value);)
		count += ((const struct pod *)value)->object;
	return count;
}

/* How long seven ranks take to go when people suspend the job; NONE: they stay. */
static hf_time time_suspend(struct world *w)
{
	hf_time from;

	(void)ip_patch(w, &hf_pytorchjobs, "default", "ddp", NULL,
		       "{'spec':{'runPolicy':{'recovery':{'checkpoint':{'graceSeconds':20}}},"
		       "'pytorchReplicaSpecs':{'Worker':{'replicas':6}}}}");
	run_until(w, 3 * HF_MINUTE);
	from = ip_now(w);
	(void)ip_patch(w, &hf_pytorchjobs, "default", "ddp", NULL,
		       "{'spec':{'runPolicy':{'suspend':true}}}");
	while (count_objects(w) > 0 && ip_now(w) < from + 2 * HF_MINUTE)
		run_until(w, ip_now(w) + HF_SECOND / 4);
	return count_objects(w) > 0 ? HF_TIME_NONE : ip_now(w) - from;
}

/* All ranks answer; none answers; the agent of one node is dead. */
static bool check_saves(struct met *met)
{
	static const struct {
		const char *what;
		bool never, dead;
		unsigned long long saves; /* at least */
		hf_time least, most;
	} cases[] = {
		{"all ranks save", false, false, 7, 0, 15 * HF_SECOND},
		{"no rank answers", true, false, 0, 20 * HF_SECOND, 32 * HF_SECOND},
		{"an agent is dead", false, true, 1, 0, 32 * HF_SECOND},
	};
	bool failed = false;

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		unsigned long long before = met->saves;
		struct world w;
		hf_time took;

		world_begin(&w, 1, false, met);
		w.quiet = true;
		hf_timer_disarm(w.deeds);
		w.never_saves = cases[i].never;
		run_until(&w, HF_MINUTE);
		if (cases[i].dead)
			ip_agent_dies(&w.nodes[0], HF_HOUR);
		took = time_suspend(&w);
		printf("suspend, %s: %llu saves, the pods are gone after %lld ms\n", cases[i].what,
		       met->saves - before, (long long)(took / HF_MS));
		if (w.failed)
			printf("%s\n", w.failure);
		failed |= w.failed || took == HF_TIME_NONE || took < cases[i].least ||
			  took > cases[i].most || met->saves - before < cases[i].saves;
		world_end(&w);
	}
	return failed;
}

/* True if the seeds met each kind of trouble. Else their success would prove nothing. */
static bool is_met(const struct met *met)
{
	return met->seeds < 100 ||
	       (met->in_place > 0 && met->moved > 0 && met->recreated > 0 && met->barriers > 0 &&
		met->deaths > 0 && met->node_losses > 0 && met->agent_deaths > 0 &&
		met->execs_killed > 0 && met->saves > 0 && met->unsaved > 0 && met->timeouts > 0 &&
		met->people > 0 && met->lost > 0);
}

struct corpus {
	struct met *met;
	int failures;
};

static void run_corpus_seed(void *arg, uint64_t seed, unsigned world)
{
	struct corpus *corpus = arg;

	(void)world;
	corpus->failures += run_seed(seed, false, corpus->met);
}

static int run_corpus(const char *path, struct met *met)
{
	struct corpus corpus = {.met = met};

	if (seeds_read_corpus(path, run_corpus_seed, &corpus))
		return corpus.failures;
	printf("cannot read '%s'\n", path);
	return 1;
}

struct args {
	uint64_t start, seeds, only;
	const char *corpus;
	bool aloud, go_on;
};

static bool read_args(int argc, char **argv, struct args *args)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "0";

		if (hf_streq(argv[i], "--verbose"))
			args->aloud = true;
		else if (hf_streq(argv[i], "--go-on"))
			args->go_on = true;
		else if (hf_streq(argv[i], "--corpus"))
			args->corpus = value, i++;
		else if (hf_streq(argv[i], "--seed"))
			args->only = strtoull(value, NULL, 10), i++;
		else if (hf_streq(argv[i], "--seeds"))
			args->seeds = strtoull(value, NULL, 10), i++;
		else if (hf_streq(argv[i], "--start"))
			args->start = strtoull(value, NULL, 10), i++;
		else
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct args args = {.start = 1, .seeds = 200};
	struct met met = {0};
	int failures = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!read_args(argc, argv, &args))
		return 2;
	if (args.only != 0)
		return run_seed(args.only, args.aloud, &met);
	failures += count_writes(&met) + check_saves(&met);
	if (args.corpus != NULL)
		failures += run_corpus(args.corpus, &met);
	for (uint64_t n = 0; n < args.seeds && (args.go_on || failures == 0); n++)
		failures += run_seed(args.start + n, false, &met);
	printf("%llu seeds, %llu charged of %llu faults: %llu restarts in place, %llu pods moved at "
	       "the barrier, %llu re-creations, %llu barriers, %llu time-outs of exec, %llu deaths "
	       "of operators, %llu of agents, %llu of execs, %llu lost nodes, %llu deeds of people, "
	       "%llu saves, %llu requests to save without an answer, %llu lost replies, %llu "
	       "requests\n",
	       met.seeds, met.charged, met.faults, met.in_place, met.moved, met.recreated,
	       met.barriers, met.timeouts, met.deaths, met.agent_deaths, met.execs_killed,
	       met.node_losses, met.people, met.saves, met.unsaved, met.lost, met.requests);
	if (failures == 0 && !is_met(&met)) {
		printf("not everything was met\n");
		return 1;
	}
	return failures != 0;
}
