/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Joins the parts of an agent: intake, steps of the brain, journal, holders, ranks and publisher.
 * Input: callbacks of these parts and of timers.  Output: steps, and calls of agent_publish.c after each step.
 * Invariants: a plan is published after the journal has it; one step is made at a time (agent_phases.h).
 */
#include "agent/agent_internal.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOGGER "agent"
/* How long a step waits after evidence: the evidence of one event comes in several lines of the log, and one step
 * takes them all. */
#define URGENT_WAIT (20 * HF_MS)
#define STEP_GAP (100 * HF_MS)
#define NEWS_WAIT HF_SECOND
/* Least time between two questions to the kubelet about holders that evidence causes: a flood of evidence must not
 * flood the kubelet. */
#define SUSPECT_GAP HF_SECOND
#define COUNT_EVERY (30 * HF_SECOND)
/* If only measurements have changed, the journal is written within this time. */
#define JOURNAL_EVERY (5 * HF_MINUTE)
/* How long events for pods wait after the end of a container: kernel and driver report related faults within
 * moments. */
#define REPORT_AFTER HF_SECOND
/* From this time after the start an acknowledgement is taken although the probe has not read the PCI bus: a sysfs
 * that hangs is reported as off by then. */
#define BUS_WITHIN (35 * HF_SECOND)
/* How often the agent checks whether ranks advance. */
#define RANKS_EVERY (5 * HF_SECOND)
#define RANKS_ARENA_BYTES_MAX ((size_t)1 << 20)
/* Limit of the file /proc/PID/cgroup: the kernel writes a line for each control-group hierarchy. */
#define CGROUP_BYTES_MAX ((size_t)64 << 10)
#define EVENT_COMPONENT "holdfast-agent"
#define NOBODY_REPORTS "no training process reports steps to the agent"

/* ---- the journal ------------------------------------------------------------------------------ */

void hf_agent_move_journal(struct hf_agent *a, enum hf_agent_journal_event event)
{
	a->journal = hf_agent_next_journal(a->journal, event);
}

static void move_step(struct hf_agent *a, enum hf_agent_step_event event)
{
	a->step = hf_agent_next_step(a->step, event);
}

/* Begins to write the journal.  True: the write runs, and on_saved() follows. */
static bool save_journal(struct hf_agent *a)
{
	struct hf_journal journal = {.memory = a->memory,
				     .boot_at = a->boot_at,
				     .place = a->place,
				     .lost = a->place_lost,
				     .unasked = a->history == HF_HISTORY_ASKING};

	if (a->saver != NULL && !hf_saver_save(a->saver, &journal))
		return false;
	hf_agent_move_journal(a, HF_JOURNAL_TAKEN);
	return a->saver != NULL;
}

/* Keeps how far the kernel's log is read in what the memory knows.  The memory does not have lines that wait for a
 * step; if the agent is killed before that step, its successor reads these lines again. */
static void keep_place(struct hf_agent *a)
{
	if (a->kmsg == NULL)
		return;
	hf_kmsg_probe_place(a->kmsg, &a->place);
	a->place_lost = hf_agent_lost(a);
}

static void publish_plan(struct hf_agent *a);

static void on_saved(void *arg, int code, const char *message)
{
	struct hf_agent *a = arg;

	if (code == 0 && a->journal_failing)
		hf_log(HF_LOG_INFO, LOGGER, "The journal can be written again", NULL);
	/* The agent goes on without a journal: an agent that stops would see no faults at all. */
	if (code != 0 && !a->journal_failing)
		hf_log(HF_LOG_ERROR, LOGGER,
		       "The journal cannot be written: after a restart the agent may lack newer faults",
		       "error", message, NULL);
	a->journal_failing = code != 0;
	if (code != 0)
		hf_agent_move_journal(a, HF_JOURNAL_FAILED);
	if (a->journal == HF_JOURNAL_BEHIND)
		(void)save_journal(a);
	if (a->step != HF_STEP_IDLE)
		publish_plan(a);
}

static void on_journal_timer(void *arg)
{
	struct hf_agent *a = arg;

	if (a->journal != HF_JOURNAL_CLEAN)
		(void)save_journal(a);
	hf_timer_arm(a->journal_timer, JOURNAL_EVERY);
}

/* Begins without a journal of this boot: the former agent may have known faults of this boot. */
static void begin_in_doubt(struct hf_agent *a, bool asking)
{
	snprintf(a->memory.boot_id, sizeof(a->memory.boot_id), "%s", a->boot_id);
	a->memory.doubted = true;
	a->history = asking ? HF_HISTORY_ASKING : HF_HISTORY_KNOWN;
}

bool hf_agent_is_of_this_boot(const struct hf_agent *a)
{
	return hf_streq(a->memory.boot_id, a->boot_id);
}

static void load_journal(struct hf_agent *a, struct hf_kmsg_place *ret_place)
{
	struct hf_journal journal;
	struct hf_error err;
	int rc;

	hf_health_memory_init(&a->memory);
	a->boot_at = hf_loop_wall(a->options.loop) - hf_loop_mono(a->options.loop);
	if (a->saver == NULL) {
		begin_in_doubt(a, true);
		return;
	}
	rc = hf_journal_load(a->options.state_dir, a->arenas[a->arena], &journal, &err);
	if (rc != 0) {
		/* If the journal is damaged, it may have held a device out of service, so nothing becomes Healthy.
		 * If the journal could not be read at all, DeviceHealth decides. */
		begin_in_doubt(a, rc != HF_E_INVALID && rc != HF_E_TOO_LARGE);
		hf_log(rc == HF_E_NOT_FOUND ? HF_LOG_INFO : HF_LOG_WARN, LOGGER,
		       a->history != HF_HISTORY_ASKING
			       ? "The journal is damaged: no device becomes Healthy before the next boot or an acknowledgement"
		       : rc == HF_E_NOT_FOUND
			       ? "There is no journal yet: every device starts as Unknown"
			       : "The journal cannot be read: every device starts as Unknown",
		       "error", err.text, NULL);
		return;
	}
	a->memory = journal.memory;
	/* The former agent may have published faults of this boot that it could not write into the journal. */
	a->history = journal.unasked || !a->memory.doubted || !hf_agent_is_of_this_boot(a)
			     ? HF_HISTORY_ASKING
			     : HF_HISTORY_KNOWN;
	/* A journal of another boot gives only the faults that it remembers: a new boot reads the
	 * kernel's log from its begin. The next step ends the faults that a boot ends. */
	if (!hf_agent_is_of_this_boot(a))
		return;
	a->boot_at = journal.boot_at;
	a->lost_before = journal.lost;
	*ret_place = journal.place;
}

/* ---- a step ------------------------------------------------------------------------------------- */

void hf_agent_arm_step(struct hf_agent *a, hf_time wait)
{
	hf_time now = hf_intake_now(a->intake);
	hf_time due = now + (wait > 0 ? wait : 0);

	if (a->stepped_at != HF_TIME_NONE && due < a->stepped_at + STEP_GAP)
		due = a->stepped_at + STEP_GAP;
	if (hf_timer_armed(a->step_timer) && a->step_due <= due)
		return;
	a->step_due = due;
	hf_timer_arm(a->step_timer, due - now);
}

/* Asks the probes to look at their devices now. Each probe limits how often it looks. of_holders:
 * only the probes that find the holders of devices. */
void hf_agent_poke_probes(struct hf_agent *a, bool of_holders)
{
	for (size_t i = 0; i < a->probes_len; i++) {
		const struct hf_probe_ops *ops = a->probes[i]->ops;

		if (ops->poke != NULL && (!of_holders || ops->has_holders))
			ops->poke(a->probes[i]);
	}
}

/* Asks the kubelet for the holders of devices at once: the container that holds the faulty device may end before
 * the next regular question. */
static void ask_for_holders(struct hf_agent *a, hf_time now)
{
	if (a->life == HF_LIFE_STOPPED ||
	    (a->suspected_at != HF_TIME_NONE && now - a->suspected_at < SUSPECT_GAP))
		return;
	a->suspected_at = now;
	hf_agent_poke_probes(a, true);
}

static void take_holdings(struct hf_agent *a)
{
	struct hf_holdings told = hf_intake_holdings_get(a->intake);

	/* A newer answer with the same list counts too: pods that appeared since the last answer may now be named
	 * as holders. */
	if (hf_intake_holdings_version(a->intake) == a->holdings_seen &&
	    told.asked_at == a->holdings_at)
		return;
	a->holdings_seen = hf_intake_holdings_version(a->intake);
	a->holdings_at = told.asked_at;
	hf_holders_update(a->holders, &told);
	if (hf_holders_version(a->holders) == a->holders_seen)
		return;
	a->holders_seen = hf_holders_version(a->holders);
	a->stale |= HF_STALE_DEVICE | HF_STALE_PODS;
}

/* Publishes again after a change of the MIG instances: an instance's device may become known before or after its
 * holder. */
static void take_mig_instances(struct hf_agent *a)
{
	if (hf_intake_mig_instances_version(a->intake) == a->mig_instances_seen)
		return;
	a->mig_instances_seen = hf_intake_mig_instances_version(a->intake);
	a->stale |= HF_STALE_DEVICE | HF_STALE_PODS;
}

/* Publishes the plan of the last step, after the journal has it. */
static void publish_plan(struct hf_agent *a)
{
	hf_time wake_at = a->plan.wake_at;
	bool wanted = a->step == HF_STEP_QUEUED;

	move_step(a, HF_STEP_PUBLISHED);
	hf_agent_publish(a, &a->plan);
	if (wake_at != HF_TIME_NEVER)
		hf_agent_arm_step(a, wake_at - hf_intake_now(a->intake));
	if (wanted)
		hf_agent_arm_step(a, 0);
}

/* Whether a step may take an acknowledgement: the probe has read the PCI bus, or cannot read it.  Before that a
 * present device would look as if a person had taken it out. */
static bool may_take_acknowledgement(const struct hf_agent *a)
{
	const char *why;

	return hf_intake_looked_at(a->intake, HF_PROBE_DEVICES) != HF_TIME_NONE ||
	       hf_intake_state(a->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_BUSLOST, &why) ==
		       HF_INTAKE_OFF ||
	       hf_intake_now(a->intake) - a->started_at >= BUS_WITHIN;
}

/* Whether the plan must be in the journal before it is published: it comes from evidence, or changes what is
 * published. */
static bool is_weighty(const struct hf_health_input *input, const struct hf_health_plan *plan)
{
	return input->evidence_len > 0 || plan->moves_len > 0 || plan->events_len > 0 ||
	       plan->write_conditions || plan->write_devices;
}

static bool takes_device_out(const struct hf_health_plan *plan)
{
	for (size_t i = 0; i < plan->moves_len; i++)
		if (hf_health_is_out(plan->moves[i].to) && !hf_health_is_out(plan->moves[i].from))
			return true;
	return false;
}

static void make_step(struct hf_agent *a)
{
	struct hf_health_order orders[HF_HEALTH_DEVICES_MAX + 1];
	struct hf_arena *arena = a->arenas[1 - a->arena];
	struct hf_health_input input = {
		.now = hf_intake_now(a->intake),
		.boot_at = a->boot_at,
		.node = a->node,
		.doubted = a->history != HF_HISTORY_KNOWN,
	};
	struct hf_health_plan plan;
	struct hf_error err;

	move_step(a, HF_STEP_WANTED);
	if (a->step != HF_STEP_IDLE)
		return;
	hf_arena_reset(arena);
	snprintf(input.boot_id, sizeof(input.boot_id), "%s", a->boot_id);
	hf_intake_take(a->intake, &input);
	input.orders = orders;
	if (may_take_acknowledgement(a)) {
		input.orders_len = hf_acknowledgement_orders(
			&a->acknowledgement, &a->memory, hf_loop_wall(a->options.loop) - input.now,
			orders, HF_ARRAY_LEN(orders));
		a->acknowledgement.pending = false;
		a->urgent |= input.orders_len > 0;
	}
	if (hf_health_step(&a->memory, &input, &a->config, arena, &plan, &err) != 0) {
		hf_log(HF_LOG_ERROR, LOGGER,
		       "A step of the device brain failed, and its evidence is dropped", "error",
		       err.text, NULL);
		hf_intake_taken(a->intake);
		return;
	}
	if (input.evidence_len > 0)
		ask_for_holders(a, input.now);
	a->steps++;
	a->stepped_at = input.now;
	/* While the probe is still behind the kernel's log, the newest lines are not part of this step. */
	if (a->kmsg == NULL || hf_kmsg_probe_is_caught_up(a->kmsg))
		a->reaches = input.now;
	a->label = plan.label;
	a->memory = plan.memory;
	a->arena = 1 - a->arena;
	keep_place(a);
	hf_intake_taken(a->intake);
	take_holdings(a);
	take_mig_instances(a);
	hf_agent_log_detectors(a);
	if (plan.changed)
		hf_agent_move_journal(a, HF_JOURNAL_CHANGED);
	a->plan = plan;
	/* DeviceHealth is written at once if a device has failed, also right after another write. */
	a->urgent |= takes_device_out(&plan);
	move_step(a, HF_STEP_PLANNED);
	if (plan.changed && is_weighty(&input, &plan)) {
		if (save_journal(a))
			return;
		if (a->saver != NULL)
			hf_agent_move_journal(a, HF_JOURNAL_REFUSED);
	}
	publish_plan(a);
}

static void on_step_timer(void *arg)
{
	make_step(arg);
}

static void on_news(void *arg, bool urgent)
{
	hf_agent_arm_step(arg, urgent ? URGENT_WAIT : NEWS_WAIT);
}

/* ---- timers of counts and reports ----------------------------------------------------------------- */

static void on_count_timer(void *arg)
{
	struct hf_agent *a = arg;
	struct hf_health_sample sample =
		hf_intake_sample_of(HF_HEALTH_BY_KUBELET, HF_HEALTH_COUNT, "");
	int known = 0;

	sample.count.pci = hf_intake_counted(a->intake, HF_COUNT_PCI);
	sample.count.nvml = hf_intake_counted(a->intake, HF_COUNT_NVML);
	sample.count.allocatable = hf_intake_counted(a->intake, HF_COUNT_ALLOCATABLE);
	sample.count.bus = hf_intake_counted(a->intake, HF_COUNT_BUS);
	known = (sample.count.pci >= 0) + (sample.count.nvml >= 0) +
		(sample.count.allocatable >= 0);
	/* A comparison needs two of the three counts, or the count of sysfs and the number of GPUs that the memory
	 * knows. */
	known += sample.count.pci >= 0 && (a->memory.gpus > 0 || a->memory.gpus_before > 0);
	if (known >= 2) {
		(void)hf_intake_sample(a->intake, &sample);
		hf_intake_heard(a->intake, HF_HEALTH_BY_STEP, HF_HEALTH_COUNT);
	} else {
		hf_intake_off(a->intake, HF_HEALTH_BY_STEP, HF_HEALTH_COUNT,
			      "fewer than two of sysfs, NVML and the kubelet count devices");
	}
	hf_timer_arm(a->count_timer, COUNT_EVERY);
}

static void on_report_timer(void *arg)
{
	struct hf_agent *a = arg;

	a->stale |= HF_STALE_DEVICE;
	hf_agent_arm_step(a, 0);
}

/* ---- training processes --------------------------------------------------------------------------- */

static void on_ranks_timer(void *arg)
{
	struct hf_agent *a = arg;
	hf_time now = hf_intake_now(a->intake);
	bool news = hf_fences_look(a->fences, hf_agent_pod_name, a, now);
	bool fenced = hf_fences_wanted(a->fences, now);

	if (hf_ranks_look(a->ranks, hf_agent_pod_name, a, now) || news) {
		a->stale |= HF_STALE_DEVICE;
		hf_agent_arm_step(a, 0);
	}
	hf_kubelet_silence_want(a->kubelet_silence, hf_ranks_alive(a->ranks, now));
	if (a->contact_keeper != NULL)
		hf_contact_keeper_want(a->contact_keeper, fenced);
	if (hf_ranks_owes(a->ranks) || fenced)
		hf_timer_arm(a->ranks_timer, RANKS_EVERY);
}

void hf_agent_heard(struct hf_agent *a, const char *pod_uid, const struct hf_beat *beat)
{
	hf_time now = hf_intake_now(a->intake);

	hf_ranks_heard(a->ranks, pod_uid, beat, now);
	if (beat->fence_s > 0) {
		hf_fences_heard(a->fences, pod_uid, beat->fence_s, now);
		/* `holdfast exec` may wait for a contact before it starts its command. */
		if (a->contact_keeper != NULL)
			hf_contact_keeper_want(a->contact_keeper, true);
	}
	if (hf_ranks_count(a->ranks) > 0)
		hf_intake_heard(a->intake, HF_HEALTH_BY_REPORTS, HF_HEALTH_STRAGGLER);
	else if (beat->fence_s == 0)
		return;
	if (!hf_timer_armed(a->ranks_timer))
		hf_timer_arm(a->ranks_timer, NEWS_WAIT);
}

static void on_heard(void *arg, const char *pod_uid, const struct hf_beat *beat)
{
	hf_agent_heard(arg, pod_uid, beat);
}

/* The kubelet is silent while the API server answers this agent: publishes the ranks in DeviceHealth again, so
 * that the operator sees that they live. */
static void on_kubelet_silent(void *arg)
{
	struct hf_agent *a = arg;

	a->stale |= HF_STALE_DEVICE;
	hf_agent_arm_step(a, 0);
}

static bool identify_pod(void *arg, pid_t pid, char ret_uid[HF_REPORT_POD_UID_MAX])
{
	const struct hf_agent *a = arg;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(CGROUP_BYTES_MAX);
	HF_AUTOFREE char *path =
		hf_xasprintf("%s/%d/cgroup", hf_str_or(a->options.proc, "/proc"), (int)pid);

	return hf_fs_read(path, &text, NULL) == 0 &&
	       hf_report_socket_pod_of_cgroup(text.data, text.len, ret_uid);
}

static void on_reports_trouble(void *arg, const char *why)
{
	struct hf_agent *a = arg;

	if (why != NULL)
		hf_log(HF_LOG_ERROR, LOGGER,
		       "Training processes cannot report: ranks that fence themselves may end",
		       "error", why, NULL);
	else
		hf_log(HF_LOG_INFO, LOGGER, "Training processes can report again", NULL);
	hf_intake_off(a->intake, HF_HEALTH_BY_REPORTS, HF_HEALTH_STRAGGLER,
		      why != NULL ? why : NOBODY_REPORTS);
}

static void listen_to_ranks(struct hf_agent *a)
{
	const struct hf_report_socket_options options = {.loop = a->options.loop,
							 .path = a->options.report_socket,
							 .mode = 0666,
							 .identify = identify_pod,
							 .heard = on_heard,
							 .trouble = on_reports_trouble,
							 .arg = a,
							 .metrics = a->options.metrics};
	struct hf_error err;

	hf_intake_off(a->intake, HF_HEALTH_BY_REPORTS, HF_HEALTH_STRAGGLER,
		      options.path == NULL ? "the socket for reports is turned off"
					   : NOBODY_REPORTS);
	if (options.path != NULL && hf_report_socket_create(&options, &a->report_socket, &err) != 0)
		on_reports_trouble(a, err.text);
}

/* ---- processes under exec --------------------------------------------------------------------------- */

static bool find_rank(void *arg, const char *uid, struct hf_pod_name *ret_name,
		      const struct hf_pod_rank **ret_rank)
{
	const struct hf_agent *a = arg;

	return hf_holders_rank(a->holders, uid, ret_name, ret_rank);
}

static void send_target(void *arg, struct hf_exec_peer *peer,
			const struct hf_process_target *target)
{
	const struct hf_agent *a = arg;

	if (a->exec_socket != NULL)
		hf_exec_socket_send(peer, target);
	else if (a->options.send_target != NULL)
		a->options.send_target(a->options.send_arg, peer, target);
}

static void on_processes(void *arg, bool urgent)
{
	struct hf_agent *a = arg;

	if (a->life != HF_LIFE_RUNNING)
		return;
	if (urgent) {
		hf_agent_publish_processes(a);
		return;
	}
	a->stale |= HF_STALE_DEVICE;
	hf_agent_arm_step(a, 0);
}

static void on_job_problem(void *arg, const char *job, int code, const char *message)
{
	struct hf_agent *a = arg;

	/* Each watch of a job tries again without end, so the agent logs only the first problem of any job. */
	if (a->job_problem_told)
		return;
	a->job_problem_told = true;
	hf_log(HF_LOG_WARN, LOGGER, "A job cannot be watched: its ranks do not restart in place",
	       "job", job, "code", hf_code_name(code), "error", message, NULL);
}

bool hf_agent_exec_opened(struct hf_agent *a, struct hf_exec_peer *peer, const char *pod_uid)
{
	return hf_processes_opened(a->processes, peer, pod_uid);
}

void hf_agent_exec_told(struct hf_agent *a, struct hf_exec_peer *peer,
			const struct hf_process_state *state)
{
	hf_processes_told(a->processes, peer, state);
}

/* Any process of the pod may send one: limits of the socket and of the recorder apply. */
void hf_agent_exec_noted(struct hf_agent *a, const char *pod_uid, const char *words)
{
	struct hf_pod_name pod;

	if (hf_agent_pod_name(a, pod_uid, &pod))
		hf_agent_record_log_rule(a, &pod, words);
}

void hf_agent_exec_closed(struct hf_agent *a, struct hf_exec_peer *peer)
{
	hf_processes_closed(a->processes, peer);
}

static bool on_exec_opened(void *arg, struct hf_exec_peer *peer, const char *pod_uid)
{
	return hf_agent_exec_opened(arg, peer, pod_uid);
}

static void on_exec_told(void *arg, struct hf_exec_peer *peer, const struct hf_process_state *state)
{
	hf_agent_exec_told(arg, peer, state);
}

static void on_exec_noted(void *arg, const char *pod_uid, const char *words)
{
	hf_agent_exec_noted(arg, pod_uid, words);
}

static void on_exec_closed(void *arg, struct hf_exec_peer *peer)
{
	hf_agent_exec_closed(arg, peer);
}

static void on_exec_trouble(void *arg HF_UNUSED, const char *why)
{
	if (why != NULL)
		hf_log(HF_LOG_ERROR, LOGGER,
		       "holdfast exec cannot connect: ranks do not restart in place", "error", why,
		       NULL);
	else
		hf_log(HF_LOG_INFO, LOGGER, "holdfast exec can connect again", NULL);
}

static void listen_to_exec(struct hf_agent *a)
{
	const struct hf_exec_socket_options options = {.loop = a->options.loop,
						       .path = a->exec_path,
						       .mode = 0666,
						       .identify = identify_pod,
						       .opened = on_exec_opened,
						       .told = on_exec_told,
						       .noted = on_exec_noted,
						       .closed = on_exec_closed,
						       .trouble = on_exec_trouble,
						       .arg = a,
						       .metrics = a->options.metrics};
	struct hf_error err;

	hf_processes_start(a->processes);
	if (options.path != NULL && hf_exec_socket_create(&options, &a->exec_socket, &err) != 0)
		on_exec_trouble(a, err.text);
}

/* ---- the node health check --------------------------------------------------------------------------- */

static struct hf_report report_now(void *arg)
{
	return hf_agent_report(arg);
}

static void on_check_trouble(void *arg HF_UNUSED, const char *why)
{
	hf_log(why != NULL ? HF_LOG_ERROR : HF_LOG_INFO, LOGGER, "Socket of the node health check",
	       "error", why != NULL ? why : "none", NULL);
}

static void listen_to_launchers(struct hf_agent *a)
{
	const struct hf_node_check_options options = {.loop = a->options.loop,
						      .path = a->check_path,
						      .mode = 0666,
						      .identify = identify_pod,
						      .report = report_now,
						      .trouble = on_check_trouble,
						      .arg = a};
	struct hf_error err;

	if (options.path != NULL && hf_node_check_create(&options, &a->node_check, &err) != 0)
		on_check_trouble(a, err.text);
}

static void on_ask(void *arg)
{
	hf_agent_poke_probes(arg, true);
}

static void on_container_ended(void *arg)
{
	struct hf_agent *a = arg;

	hf_agent_poke_probes(a, false);
	if (!hf_timer_armed(a->report_timer))
		hf_timer_arm(a->report_timer, REPORT_AFTER);
}

static void on_pods_changed(void *arg)
{
	struct hf_agent *a = arg;

	a->stale |= HF_STALE_PODS;
	hf_processes_pods_changed(a->processes);
	if (a->life != HF_LIFE_CREATED)
		hf_agent_arm_step(a, NEWS_WAIT);
}

static void on_pods_problem(void *arg, int code, const char *message)
{
	hf_log(HF_LOG_WARN, LOGGER, "The node's pods cannot be watched", "code", hf_code_name(code),
	       "error", message, NULL);
}

static void on_trouble(void *arg, const char *what, int code, const char *message)
{
	if (code == 0)
		hf_log(HF_LOG_INFO, LOGGER, "Written again", "object", what, NULL);
	else
		hf_log(HF_LOG_WARN, LOGGER, "Cannot write", "object", what, "code",
		       hf_code_name(code), "error", message, NULL);
}

static void on_contact_trouble(void *arg HF_UNUSED, const char *message)
{
	if (message == NULL)
		hf_log(HF_LOG_INFO, LOGGER, "The contact file can be written again", NULL);
	else
		hf_log(HF_LOG_ERROR, LOGGER,
		       "The contact file cannot be written: ranks that fence themselves will end",
		       "error", message, NULL);
}

static hf_time read_step_clock(void *arg)
{
	const struct hf_agent *a = arg;

	return hf_intake_now(a->intake);
}

/* ---- life ----------------------------------------------------------------------------------------- */

/* Whether the device was present in this boot: if it is gone now, a probe must report its absence. */
static bool was_present(const struct hf_agent *a, const struct hf_health_device *d)
{
	return (d->kind == HF_HEALTH_GPU || d->kind == HF_HEALTH_PORT) && d->seen &&
	       hf_agent_is_of_this_boot(a);
}

/* Creates the intake of the probes, with the devices that the journal knows. */
static void create_intake(struct hf_agent *a)
{
	const struct hf_intake_options intake = {.loop = a->options.loop,
						 .boot_at = a->boot_at,
						 .metrics = a->options.metrics,
						 .news = on_news,
						 .arg = a};

	a->intake = hf_intake_create(&intake);
	for (size_t i = 0; i < a->memory.devices_len; i++) {
		const struct hf_health_device *d = &a->memory.devices[i];

		if (was_present(a, d))
			hf_intake_remember(a->intake, d->id,
					   d->kind == HF_HEALTH_PORT ? d->alias : "");
		/* A known UUID shows that the GPU had its driver, because only the driver reports
		 * UUIDs. */
		if (d->kind == HF_HEALTH_GPU && d->uuid[0] != '\0')
			hf_intake_driven(a->intake, d->id);
	}
}

static void create_parts(struct hf_agent *a, const struct hf_kmsg_place *place)
{
	const struct hf_agent_options *o = &a->options;
	const struct hf_kmsg_options kmsg = {.path = o->kmsg,
					     .sys_root = o->sys,
					     .trust_user = o->kmsg_trust_user,
					     .place = *place};
	const struct hf_holders_options holders = {.loop = o->loop,
						   .store = o->store,
						   .node = a->node,
						   .seed = o->seed,
						   .now = read_step_clock,
						   .ended = on_container_ended,
						   .ask = on_ask,
						   .changed = on_pods_changed,
						   .problem = on_pods_problem,
						   .arg = a};
	const struct hf_publisher_options publisher = {.loop = o->loop,
						       .store = o->store,
						       .node = a->node,
						       .seed = o->seed,
						       .metrics = o->metrics,
						       .trouble = on_trouble,
						       .seen = hf_agent_health_seen,
						       .arg = a};
	const struct hf_recorder_options recorder = {
		.loop = o->loop, .store = o->store, .component = EVENT_COMPONENT, .seed = o->seed};
	const struct hf_kubelet_silence_options silence = {.loop = o->loop,
							   .store = o->store,
							   .node = a->node,
							   .still = on_kubelet_silent,
							   .arg = a};
	const struct hf_contact_keeper_options keeper = {.loop = o->loop,
							 .store = o->store,
							 .node = a->node,
							 .boot_id = a->boot_id,
							 .path = o->contact,
							 .clock = o->boot_clock,
							 .trouble = on_contact_trouble,
							 .arg = o->loop};

	const struct hf_processes_options processes = {.loop = o->loop,
						       .store = o->store,
						       .seed = o->seed,
						       .now = read_step_clock,
						       .pod = find_rank,
						       .send = send_target,
						       .news = on_processes,
						       .problem = on_job_problem,
						       .arg = a};

	a->processes = hf_processes_create(&processes);
	a->ranks = hf_ranks_create();
	a->fences = hf_fences_create();
	if (o->contact != NULL)
		a->contact_keeper = hf_contact_keeper_create(&keeper);
	a->ranks_arena = hf_arena_create(RANKS_ARENA_BYTES_MAX);
	a->ranks_timer = hf_timer_create(o->loop, on_ranks_timer, a);
	a->kubelet_silence = hf_kubelet_silence_create(&silence);
	create_intake(a);
	a->holders = hf_holders_create(&holders);
	a->publisher = hf_publisher_create(&publisher);
	hf_agent_create_watch(a);
	a->recorder = hf_recorder_create(&recorder);
	if (o->kmsg != NULL) {
		a->kmsg = hf_kmsg_probe_create(a->intake, &kmsg);
		hf_agent_add_probe(a, a->kmsg);
	}
}

int hf_agent_create(const struct hf_agent_options *options, struct hf_agent **ret_agent,
		    struct hf_error *err)
{
	struct hf_kmsg_place place = {0};
	struct hf_agent *a;

	if (hf_str_is_empty(options->node) || hf_str_is_empty(options->boot_id) ||
	    strlen(options->boot_id) >= HF_HEALTH_BOOT_MAX)
		return hf_error_set(err, HF_E_INVALID,
				    "an agent needs the node's name and a boot ID");
	a = hf_xcalloc(1, sizeof(*a));
	a->options = *options;
	a->node = hf_xstrdup(options->node);
	a->boot_id = hf_xstrdup(options->boot_id);
	if (options->exec_socket != NULL)
		a->exec_path = hf_xstrdup(options->exec_socket);
	if (options->check_socket != NULL)
		a->check_path = hf_xstrdup(options->check_socket);
	a->options.exec_socket = a->options.check_socket = NULL;
	a->config = hf_health_config_default;
	if (options->rules != NULL)
		a->config.rules = options->rules;
	a->arenas[0] = hf_arena_create(HF_AGENT_ARENA_BYTES_MAX);
	a->arenas[1] = hf_arena_create(HF_AGENT_ARENA_BYTES_MAX);
	a->stepped_at = a->reaches = a->suspected_at = HF_TIME_NONE;
	a->label = "unknown";
	a->step_timer = hf_timer_create(options->loop, on_step_timer, a);
	a->count_timer = hf_timer_create(options->loop, on_count_timer, a);
	a->journal_timer = hf_timer_create(options->loop, on_journal_timer, a);
	a->report_timer = hf_timer_create(options->loop, on_report_timer, a);
	a->acknowledgement_timer = hf_timer_create(options->loop, hf_agent_ask_acknowledgement, a);
	a->request_timer = hf_timer_create(options->loop, hf_agent_answer_request, a);
	if (options->state_dir != NULL)
		a->saver = hf_saver_create(&(struct hf_saver_options){.loop = options->loop,
								      .dir = options->state_dir,
								      .saved = on_saved,
								      .arg = a});
	load_journal(a, &place);
	a->options.state_dir = NULL;
	create_parts(a, &place);
	a->lost_told = a->place_lost = a->lost_before;
	a->place = place;
	*ret_agent = a;
	return 0;
}

struct hf_intake *hf_agent_intake(struct hf_agent *a)
{
	return a->intake;
}

void hf_agent_add_probe(struct hf_agent *a, struct hf_probe *probe)
{
	hf_assert(a->probes_len < HF_AGENT_PROBES_MAX && a->life == HF_LIFE_CREATED);
	a->probes[a->probes_len++] = probe;
}

bool hf_agent_misses_resource(const struct hf_agent *a)
{
	const struct hf_health_device *node = hf_health_memory_find(&a->memory, "");

	if (node == NULL || !hf_agent_is_of_this_boot(a))
		return false;
	for (size_t i = 0; i < node->faults_len; i++)
		if (node->faults[i].open && node->faults[i].detector == HF_HEALTH_PLUGIN &&
		    node->faults[i].code == HF_HEALTH_CODE_RESOURCE_GONE)
			return true;
	return false;
}

void hf_agent_start(struct hf_agent *a)
{
	a->life = HF_LIFE_RUNNING;
	a->started_at = hf_intake_now(a->intake);
	hf_holders_start(a->holders);
	hf_health_watch_start(a->health_watch);
	for (size_t i = 0; i < a->probes_len; i++)
		a->probes[i]->ops->start(a->probes[i]);
	if (a->kmsg == NULL)
		hf_kmsg_off(a->intake, "the kernel's log is turned off");
	listen_to_ranks(a);
	listen_to_exec(a);
	listen_to_launchers(a);
	if (a->history == HF_HISTORY_ASKING)
		hf_publisher_ask(a->publisher);
	hf_timer_arm(a->count_timer, COUNT_EVERY);
	hf_timer_arm(a->journal_timer, JOURNAL_EVERY);
	hf_agent_arm_step(a, NEWS_WAIT);
}

static void settle_saver(struct hf_agent *a)
{
	if (a->saver != NULL)
		hf_saver_settle(a->saver);
}

void hf_agent_stop(struct hf_agent *a)
{
	if (a->life != HF_LIFE_RUNNING)
		return;
	a->life = HF_LIFE_STOPPED;
	settle_saver(a);
	if (!hf_intake_is_empty(a->intake))
		make_step(a);
	settle_saver(a);
	if (save_journal(a))
		settle_saver(a);
}

struct hf_agent *hf_agent_destroy(struct hf_agent *a)
{
	if (a == NULL)
		return NULL;
	for (size_t i = 0; i < a->probes_len; i++)
		a->probes[i]->ops->destroy(a->probes[i]);
	hf_report_socket_destroy(a->report_socket);
	hf_exec_socket_destroy(a->exec_socket);
	hf_node_check_destroy(a->node_check);
	hf_processes_destroy(a->processes);
	hf_kubelet_silence_destroy(a->kubelet_silence);
	hf_timer_destroy(a->ranks_timer);
	hf_contact_keeper_destroy(a->contact_keeper);
	hf_fences_destroy(a->fences);
	hf_ranks_destroy(a->ranks);
	hf_arena_destroy(a->ranks_arena);
	hf_saver_destroy(a->saver);
	hf_timer_destroy(a->step_timer);
	hf_timer_destroy(a->count_timer);
	hf_timer_destroy(a->journal_timer);
	hf_timer_destroy(a->report_timer);
	hf_timer_destroy(a->acknowledgement_timer);
	hf_timer_destroy(a->request_timer);
	hf_health_watch_destroy(a->health_watch);
	hf_recorder_destroy(a->recorder);
	hf_publisher_destroy(a->publisher);
	hf_holders_destroy(a->holders);
	hf_intake_destroy(a->intake);
	hf_arena_destroy(a->arenas[0]);
	hf_arena_destroy(a->arenas[1]);
	free(a->node);
	free(a->boot_id);
	free(a->exec_path);
	free(a->check_path);
	free(a);
	return NULL;
}

int hf_agent_ready(const struct hf_agent *a, struct hf_error *err)
{
	if (a->steps == 0)
		return hf_error_set(err, HF_E_UNAVAILABLE, "the device brain has made no step yet");
	if (!hf_publisher_has_written(a->publisher)) {
		const char *why = hf_publisher_why(a->publisher);

		return hf_error_set(err, HF_E_UNAVAILABLE,
				    "the node's objects have not been written yet%s%s",
				    why != NULL ? ": " : "", hf_str_or(why, ""));
	}
	return 0;
}
