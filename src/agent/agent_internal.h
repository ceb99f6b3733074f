/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_AGENT_INTERNAL_H
#define HF_AGENT_AGENT_INTERNAL_H

#include "agent/acknowledgement.h"
#include "agent/agent.h"
#include "agent/agent_phases.h"
#include "agent/contact_keeper.h"
#include "agent/exec_socket.h"
#include "agent/fences.h"
#include "agent/health_watch.h"
#include "agent/holders.h"
#include "agent/kubelet_silence.h"
#include "agent/node_check.h"
#include "agent/previous_health.h"
#include "agent/processes.h"
#include "agent/publisher.h"
#include "agent/ranks.h"
#include "agent/report.h"
#include "agent/report_request.h"
#include "agent/report_socket.h"
#include "agent/saver.h"
#include "ctl/recorder.h"

/* The agent's state, which agent.c, agent_publish.c and status_page.c share. */

/* Limit of an arena: a device takes ten KiB, and the evidence of a flood and the plan come on top. */
#define HF_AGENT_ARENA_BYTES_MAX ((size_t)64 << 20)

struct hf_agent {
	struct hf_agent_options options;
	char *node, *boot_id;
	/* writes the journal; NULL: no journal is kept, so a restart of the agent forgets all
	 * faults */
	struct hf_saver *saver;
	struct hf_health_config config;
	struct hf_intake *intake;
	struct hf_probe *probes[HF_AGENT_PROBES_MAX], *kmsg;
	size_t probes_len;
	struct hf_holders *holders;
	struct hf_publisher *publisher;
	struct hf_recorder *recorder;
	struct hf_ranks *ranks;
	struct hf_fences *fences;
	/* writes the record of the last contact; NULL: the agent has no folder for that record */
	struct hf_contact_keeper *contact_keeper;
	struct hf_report_socket *report_socket;
	struct hf_processes *processes;
	/* path of the socket to which `holdfast exec` connects; NULL: no socket, so no restarts in
	 * place */
	char *exec_path;
	struct hf_exec_socket *exec_socket;
	char *check_path; /* NULL: no node health check */
	struct hf_node_check *node_check;
	bool job_problem_told;
	struct hf_kubelet_silence *kubelet_silence;
	struct hf_arena *ranks_arena; /* this arena holds the list of ranks of the last report */
	struct hf_timer *ranks_timer;

	/* one arena holds the memory of the brain, the other the next step */
	struct hf_arena *arenas[2];
	int arena;
	struct hf_health_memory memory;
	hf_time boot_at;
	/* lost records of the kernel's log in this boot before the agent started, by the journal */
	uint64_t lost_before;
	/* Where the kernel's log was read to in the last step, for the journal. */
	struct hf_kmsg_place place;
	uint64_t place_lost;
	const char *label;

	struct hf_timer *step_timer, *count_timer, *journal_timer, *report_timer;
	hf_time stepped_at, step_due;
	/* when the kubelet was asked for the list of holders that the agent took last */
	hf_time holdings_at;
	hf_time suspected_at; /* when evidence last made the agent ask the kubelet for holders */
	hf_time reaches;      /* all reports up to this time are part of a step */
	uint64_t steps, states_seen, mig_instances_seen, holdings_seen, holders_seen, lost_told;
	/* hash of the last logged list of detectors that are off; 0: nothing logged */
	uint64_t off_told[HF_HEALTH_SOURCES];
	enum hf_agent_life life;
	enum hf_agent_history history;
	enum hf_agent_journal journal;
	bool journal_failing; /* the last write of the journal failed; the log has each change */
	enum hf_agent_step step;
	/* The plan of the last step, in the arena of the memory. */
	struct hf_health_plan plan;
	/* bits of enum hf_agent_stale: the objects that have to be published again */
	unsigned stale;
	hf_time started_at;
	struct hf_timer *acknowledgement_timer;
	struct hf_acknowledgement acknowledgement;
	struct hf_health_watch *health_watch;
	struct hf_timer *request_timer;
	struct hf_report_request request;
	/* the operator waits for the next report: it is written without the gap between writes */
	bool urgent;
};

/* How often the agent reads DeviceHealth for an acknowledgement: an acknowledgement takes effect within this time. */
#define HF_AGENT_ACKNOWLEDGEMENT_EVERY (30 * HF_SECOND)

/* agent.c */
/* Makes a step after this time, or earlier if one is due earlier. */
void hf_agent_arm_step(struct hf_agent *agent, hf_time wait);
/* Asks the probes to look at their devices now. Each probe limits how often it looks. of_holders: only the probes that
 * find the holders of devices. */
void hf_agent_poke_probes(struct hf_agent *agent, bool of_holders);
void hf_agent_move_journal(struct hf_agent *agent, enum hf_agent_journal_event event);
/* Whether what the memory knows is of the present boot. */
bool hf_agent_is_of_this_boot(const struct hf_agent *agent);

/* agent_requests.c */
void hf_agent_create_watch(struct hf_agent *agent);
/* Types of callbacks, with the agent as arg: DeviceHealth was seen (NULL: there is none), and two timers. */
void hf_agent_health_seen(void *arg, struct hf_doc *health);
void hf_agent_ask_acknowledgement(void *arg);
void hf_agent_answer_request(void *arg);

/* agent_publish.c */
/* The number of records of the kernel's log that were lost in this boot. */
uint64_t hf_agent_lost(const struct hf_agent *agent);
/* A function of type hf_ranks_pod_fn, with the agent as arg: finds the pod of a UID. */
bool hf_agent_pod_name(void *arg, const char *uid, struct hf_pod_name *ret_name);
/* Logs the detectors that are off, if the list has changed since the last log. */
void hf_agent_log_detectors(struct hf_agent *agent);
/* Publishes the plan of a step and the objects in a->stale. */
void hf_agent_publish(struct hf_agent *agent, const struct hf_health_plan *plan);
/* Records an event of the pod: a log rule of `holdfast exec` with action Event is broken, or off. */
void hf_agent_record_log_rule(struct hf_agent *agent, const struct hf_pod_name *pod,
			      const char *message);
/* Publishes the list of processes under `holdfast exec` at once. */
void hf_agent_publish_processes(struct hf_agent *agent);
/* Counts the changes of devices' states in this plan, for the metrics. */
void hf_agent_count_moves(struct hf_agent *agent, const struct hf_health_plan *plan);
/* Returns what the agent knows now, as input for the patches of report.h. */
struct hf_report hf_agent_report(struct hf_agent *agent);

#endif
