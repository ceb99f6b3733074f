/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_AGENT_H
#define HF_AGENT_AGENT_H

#include "agent/journal.h"
#include "ctl/metrics.h"
#include "health/beat.h"
#include "health/process_line.h"
#include "health/rules.h"
#include "probes/probe.h"
#include "store/store.h"

HF_BEGIN_DECLS

/*
 * The agent of a node: probes → intake → step of the brain → journal → objects.
 *
 * A step follows evidence within 20 ms (but 100 ms after the step before), and other news within a second.  A step's
 * changes are in the journal before any of them is published or logged as an event.
 *
 * The steps' clock is the monotonic clock plus the difference that the wall clock had when this boot was first seen.
 * If the wall clock is set, only the times that are shown change, not the times for which something waits.
 */
struct hf_agent;
struct hf_exec_peer;

struct hf_agent_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const char *node;
	const char *boot_id;
	/* folder of the journal; NULL: no journal is kept, so a restart of the agent forgets all
	 * faults */
	const char *state_dir;
	const char *kmsg; /* NULL: not read */
	bool kmsg_trust_user;
	/* path of sysfs, to find the driver of a device named in the log; NULL: not checked */
	const char *sys;
	/* table of rules, which outlives the agent; NULL: the built-in table */
	const struct hf_health_rules *rules;
	struct hf_metrics *metrics; /* may be NULL: then do not call hf_agent_update_metrics() */
	uint64_t seed;
	/* The socket for reports of training processes, and the procfs that maps a process to its pod.  NULL: no
	 * reports. */
	const char *report_socket;
	/* The socket for `holdfast exec` (agent/exec_socket.h).  NULL: no restarts in place. */
	const char *exec_socket;
	/* The socket for NVIDIA's node health check (agent/node_check.h).  NULL: none. */
	const char *check_socket;
	/* Sends a target to a connection that the caller has opened by hf_agent_exec_opened(); may be NULL. */
	void (*send_target)(void *arg, struct hf_exec_peer *peer,
			    const struct hf_process_target *target);
	void *send_arg;
	const char *proc; /* NULL: /proc */
	/* Path of the record of contact (health/contact.h), which ranks that fence themselves read.  NULL: no
	 * record. */
	const char *contact;
	hf_time (*boot_clock)(void *loop); /* CLOCK_BOOTTIME; NULL: the machine's */
};

/* Copies all strings.  A journal that cannot be used is logged and replaced by a new journal. */
int hf_agent_create(const struct hf_agent_options *options, struct hf_agent **ret_agent,
		    struct hf_error *err) HF_MUST_CHECK;
struct hf_agent *hf_agent_destroy(struct hf_agent *agent); /* NULL is fine; returns NULL */

/* The intake, to create further probes; the agent takes ownership of these probes. */
struct hf_intake *hf_agent_intake(struct hf_agent *agent);
#define HF_AGENT_PROBES_MAX 8
void hf_agent_add_probe(struct hf_agent *agent, struct hf_probe *probe);

/* Whether the node has an open fault of this boot because a resource of its device plugin is gone. */
bool hf_agent_misses_resource(const struct hf_agent *agent);

/* Takes a report of a training process of that pod, as the report socket does. */
void hf_agent_heard(struct hf_agent *agent, const char *pod_uid, const struct hf_beat *beat);

/* Takes a connection of `holdfast exec` of that pod, as the exec socket does.  False: there are too many
 * connections. */
bool hf_agent_exec_opened(struct hf_agent *agent, struct hf_exec_peer *peer, const char *pod_uid);
void hf_agent_exec_told(struct hf_agent *agent, struct hf_exec_peer *peer,
			const struct hf_process_state *state);
/* An event of the pod. */
void hf_agent_exec_noted(struct hf_agent *agent, const char *pod_uid, const char *words);
void hf_agent_exec_closed(struct hf_agent *agent, struct hf_exec_peer *peer);

void hf_agent_start(struct hf_agent *agent);
/* Makes a last step and writes the journal; does not wait for the last requests to the API server. */
void hf_agent_stop(struct hf_agent *agent);

/* Returns 0 if the agent has written the node's objects; else err names what is missing. */
int hf_agent_ready(const struct hf_agent *agent, struct hf_error *err);
/* The node's state as text for a person, and as the DeviceHealth that the agent would write now. */
void hf_agent_page(struct hf_agent *agent, struct hf_strbuf *sb);
struct hf_json *hf_agent_status(struct hf_agent *agent);
/* Before each render of the metrics. */
void hf_agent_update_metrics(struct hf_agent *agent);

HF_END_DECLS

#endif
