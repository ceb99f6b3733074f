/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_ROLLOUT_PLAN_H
#define HF_HEALTH_ROLLOUT_PLAN_H

#include "base/arena.h"
#include "health/rollout_node.h"

HF_BEGIN_DECLS

/*
 * Decides how a DeviceRollout goes on as a whole: which nodes begin next, when a wave ends, when the rollout halts, is
 * taken back or ends.  rollout_node.h decides about each node that has begun.  Pure; the order of the nodes does not
 * matter.
 */

enum hf_rollout_state {
	HF_ROLLOUT_PENDING, /* not begun, or it cannot begin */
	HF_ROLLOUT_ROLLING,
	HF_ROLLOUT_SOAKING, /* the nodes of the wave are handled; nothing may go wrong for a while */
	HF_ROLLOUT_HALTED,
	HF_ROLLOUT_ROLLING_BACK,
	/* The states from here on are ends. */
	HF_ROLLOUT_SUCCEEDED,
	HF_ROLLOUT_ENDED_FAILED, /* taken back */
	HF_ROLLOUT_CANCELLED,
	HF_ROLLOUT_STATES
};

#define HF_ROLLOUT_MESSAGE_BYTES 400
#define HF_ROLLOUT_BEGIN_MAX 64
#define HF_ROLLOUT_TRIES_MAX                                                                       \
	2 /* how often the rollout begins with a node; as often again to take it back */
/* Evidence of the numbers: so many faults or restarts more than expected, at this multiple of the rate. */
#define HF_ROLLOUT_FAULTS_MORE 3
#define HF_ROLLOUT_RATE_TIMES 3

/* A selected node. */
struct hf_rollout_member {
	const char *name;
	const char *group; /* value of the label of spec.groupBy; "": none */
	/* the node has an entry in the status, with this phase */
	bool listed;
	enum hf_rollout_phase phase;
	int32_t tries;       /* of the entry */
	const char *message; /* of the entry; NULL: none */
	bool changed;        /* the change is there, by the cluster */
	bool had_before;     /* the node had the change when the rollout began */
	/* The mark of this rollout: it has begun to change the node; back: and to take the change back. */
	bool marked, back;
	hf_time changed_at; /* time of the mark; NONE: no mark */
	/* why no work may begin on the node now; NULL: it may */
	const char *blocked;
	bool passing; /* `blocked` may end by itself, such as that the node is not Ready */
	/* A budget permits no further node out of use of this kind now: the wave waits for it. */
	bool limited;
	bool canary_failed; /* the canary has failed on the node before the change, so the node is skipped */
	/* of the entry: when the node was to be taken back, it had not failed, and was `away` */
	bool was_well, was_away;
	bool out;  /* a device of the node is out of use now */
	bool away; /* no proof may be possible now: the node is not Ready, or its agent is silent or does not know a device */
	/* the changed node has a device that failed after the change, or the change was taken away: which, and how; NULL: neither */
	const char *sick;
	/* why nothing good has been seen of the node for a while, such as that it is not Ready; NULL: it is well, or
	 * a person or a tool works on it. An unchanged node has the reason after half of the time already: an outage does not
	 * reach all nodes in the same moment. */
	const char *lost;
	hf_time lost_for; /* how long that has lasted */
};

struct hf_rollout_totals {
	int64_t nodes, device_minutes, faults;
	int64_t restarts; /* of jobs, caused by devices of these nodes */
};

/* One wave: a number of nodes, or a percentage of the selected nodes; the other is -1. */
struct hf_rollout_limit {
	int32_t count, percent;
};

struct hf_rollout_view {
	hf_time now;
	enum hf_rollout_state state;
	int32_t wave;       /* 0: none yet */
	hf_time soak_since; /* NONE: not soaking */
	hf_time newest_end; /* time of the newest proof of a node; NONE: no node is proved */
	hf_time seen_since; /* since when the cluster has been read without a long gap */
	/* Until then a wave waits for nodes of which all are blocked and some are `passing`. */
	hf_time wait_until;

	const struct hf_rollout_limit *waves;
	size_t waves_len;
	int32_t at_once;
	hf_time soak;
	int32_t failures_max;
	bool rolls_back, paused, cancel;
	bool is_label; /* a label, not a DaemonSet */

	/* The spec or the DaemonSet is wrong: nothing begins, and what has begun halts. */
	const char *problem;
	/* The template was changed again: the rollout halts, and is not taken back. */
	const char *superseded;
	/* It has halted for `problem` or `superseded`, which may have ended since: nothing speaks against the change. */
	bool halted_without_evidence;
	/* An older rollout of the same DaemonSet or label is not at an end. */
	const char *rival;
	const char *closed; /* no window is open, or another limit of the whole; NULL: none */
	/* the template of the DaemonSet has the previous revision again; true for a label */
	bool template_is_back;
	/* there is a previous revision to go back to; true for a label */
	bool can_go_back;
	/* The status has no room for more failed nodes than are needed for a halt. */
	bool full;

	const struct hf_rollout_member *members;
	size_t members_len;
	struct hf_rollout_totals changed, unchanged;
	struct hf_rollout_steps steps;
};

struct hf_rollout_plan {
	enum hf_rollout_state next;
	int32_t wave;
	hf_time soak_since;
	const struct hf_rollout_member *begin[HF_ROLLOUT_BEGIN_MAX]; /* these begin */
	size_t begin_len;
	const struct hf_rollout_member *fails; /* a proved node that becomes Failed; NULL: none */
	const char *fails_why;                 /* the message of its entry */
	bool undo_template;                    /* write the previous template into the DaemonSet */
	/* selected: nodes that the rollout handles; work: nodes in work; left: nodes that keep the change after a rollback,
	 * without the failed ones */
	int32_t selected, changed, failed, skipped, work, left;
	/* Why the rollout halts, to be written into condition Halted; "": it does not halt now. */
	char halt[HF_ROLLOUT_MESSAGE_BYTES];
	const char *halt_reason; /* one word; NULL: the rollout does not halt now */
	char message[HF_ROLLOUT_MESSAGE_BYTES];
	hf_time wake_at;
};

void hf_rollout_plan(const struct hf_rollout_view *view, struct hf_arena *arena,
		     struct hf_rollout_plan *ret_plan);

/* Whether the rollout may choose the member as a node that begins. */
bool hf_rollout_may_begin(const struct hf_rollout_view *view, const struct hf_rollout_member *m);

/* When the soak of the present wave ends. */
hf_time hf_rollout_find_soak_end(const struct hf_rollout_view *view);

/* The number of nodes that a wave ends with, of so many selected nodes: a percentage is rounded up. */
int32_t hf_rollout_wave_size(const struct hf_rollout_limit *wave, int32_t selected);
/* Whether the faults of changed nodes speak against the change. */
bool hf_rollout_is_worse(const struct hf_rollout_totals *changed,
			 const struct hf_rollout_totals *unchanged);
/* Whether the restarts by devices of changed nodes do. */
bool hf_rollout_restarts_more(const struct hf_rollout_totals *changed,
			      const struct hf_rollout_totals *unchanged);

bool hf_rollout_state_is_end(enum hf_rollout_state state);
bool hf_rollout_state_may_follow(enum hf_rollout_state from, enum hf_rollout_state to);
const char *hf_rollout_state_name(enum hf_rollout_state state); /* "Pending" */
/* "" and NULL are Pending.  False: the name is unknown. */
bool hf_rollout_state_of(const char *name, enum hf_rollout_state *ret_state);

HF_END_DECLS

#endif
