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
 * A step comes within 20 ms of evidence (100 ms after the one before) and a second after anything
 * else; what it changed is in the journal before anybody hears of it.  The clock of the steps is
 * the monotonic one since the boot plus what the wall clock said when this boot was first seen: a
 * wall clock that is set moves what is shown and nothing that is waited for.
 */
struct hf_agent;
struct hf_exec_peer;

struct hf_agent_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const char *node;
	const char *boot_id;
	const char *state_dir; /* NULL: nothing outlives this process */
	const char *kmsg;      /* NULL: not read */
	bool kmsg_trust_user;
	/* sysfs, to find the driver of a device named in the log; NULL: not checked */
	const char *sys;
	const struct hf_health_rules *rules; /* NULL: the built-in ones; outlives the agent */
	struct hf_metrics *metrics; /* may be NULL: then hf_agent_update_metrics is not called */
	uint64_t seed;
	/* The socket for reports of training processes, and the procfs that maps a process to
	 * its pod; NULL: no reports. */
	const char *report_socket;
	/* The socket for `holdfast exec` (agent/exec_socket.h); NULL: no restarts in place. */
	const char *exec_socket;
	/* Takes the targets of connections that hf_agent_exec_opened has made; may be NULL. */
	void (*send_target)(void *arg, struct hf_exec_peer *peer,
			    const struct hf_process_target *target);
	void *send_arg;
	const char *proc; /* NULL: /proc */
	/* Where ranks that fence themselves read of contacts (health/contact.h); NULL: nowhere. */
	const char *contact;
	hf_time (*boot_clock)(void *loop); /* CLOCK_BOOTTIME; NULL: the machine's */
};

/* Strings are copied. An unusable journal is logged and replaced by a new one. */
int hf_agent_create(const struct hf_agent_options *options, struct hf_agent **ret_agent,
		    struct hf_error *err) HF_MUST_CHECK;
struct hf_agent *hf_agent_destroy(struct hf_agent *agent); /* NULL is fine; returns NULL */

/* The intake for further probes; the agent takes ownership of the probes. */
struct hf_intake *hf_agent_intake(struct hf_agent *agent);
#define HF_AGENT_PROBES_MAX 8
void hf_agent_add_probe(struct hf_agent *agent, struct hf_probe *probe);

/* In this boot the node has an open fault: a resource of its device plugin is gone. */
bool hf_agent_misses_resource(const struct hf_agent *agent);

/* Takes a report of a training process of that pod, as the socket does. */
void hf_agent_heard(struct hf_agent *agent, const char *pod_uid, const struct hf_beat *beat);

/* A connection of `holdfast exec` in that pod, as the socket has it. */
bool hf_agent_exec_opened(struct hf_agent *agent, struct hf_exec_peer *peer, const char *pod_uid);
void hf_agent_exec_told(struct hf_agent *agent, struct hf_exec_peer *peer,
			const struct hf_process_state *state);
void hf_agent_exec_closed(struct hf_agent *agent, struct hf_exec_peer *peer);

void hf_agent_start(struct hf_agent *agent);
/* Makes a last step and writes the journal; does not wait for the last requests. */
void hf_agent_stop(struct hf_agent *agent);

/* 0: the node's objects have been written; else err names the missing part. */
int hf_agent_ready(const struct hf_agent *agent, struct hf_error *err);
/* The node's state for a person, and as DeviceHealth would show it now. */
void hf_agent_page(struct hf_agent *agent, struct hf_strbuf *sb);
struct hf_json *hf_agent_status(struct hf_agent *agent);
/* Before each render of the metrics. */
void hf_agent_update_metrics(struct hf_agent *agent);

HF_END_DECLS

#endif
