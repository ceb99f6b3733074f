/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_PASS_INTERNAL_H
#define HF_OPERATOR_PASS_INTERNAL_H

#include "operator/operator_internal.h"

/*
 * A pass over one job, from the step to the last reply.
 *
 *   STATUS ─▶ STAGE 0 ─▶ STAGE 1 … ─▶ OVER
 *      │          │                     ▲
 *      └──────────┴──────▶ REREAD ──────┘      (the job may differ from what is cached)
 *
 * Under narrow CRDs LEDGER comes before STATUS, or after the one that ends the job.  A job whose ledger
 * may be hidden is only reread; the next pass steps it.
 *
 * Lives for one pass: everything in it is in its arena or referenced, since the caches
 * change under it.
 */
enum hf_pass_phase {
	HF_PASS_LEDGER,
	HF_PASS_STATUS,
	HF_PASS_STAGE,
	HF_PASS_REREAD,
	HF_PASS_OVER,
};

enum hf_call_state {
	HF_CALL_WAITING, /* not sent */
	HF_CALL_SENT,
	HF_CALL_UNSURE, /* answered, but what is so must be read */
	HF_CALL_READING,
	HF_CALL_GOOD,
	HF_CALL_BAD,
};

/* One action of the present stage. */
struct hf_pass_call {
	struct hf_pass *pass;
	const struct hf_action *action;
	enum hf_call_state state;
	struct hf_call *call; /* SENT, READING */
};

/* What was done in a stage, for one event a kind of action. */
#define HF_TALLY_NAMES_MAX 8 /* named in the event's text; the rest is counted */
struct hf_tally {
	size_t n;
	const char *names[HF_TALLY_NAMES_MAX];
};
#define HF_ACTION_KINDS (HF_ACTION_DELETE_EXTRA + 1)

struct hf_pass {
	struct hf_operator *op;
	struct hf_kind *kind;
	struct hf_job_state *state;
	char *key;
	hf_time began; /* monotonic */
	struct hf_arena *arena;
	struct hf_doc *job;     /* the newest version known to this pass */
	struct hf_doc *stepped; /* the one the step read: the plan borrows from it */
	struct hf_job_view view;
	struct hf_views views;
	struct hf_plan plan;
	bool planned, told;            /* told: the plan's events are recorded */
	struct hf_doc *ledger_patch;   /* of the annotation; NULL: none to send */
	struct hf_doc *patch;          /* of the status; NULL: none to send */
	bool narrow;                   /* the ledger goes into the annotation */
	bool ledger_left, status_left; /* to be written */
	bool status_put_off;
	hf_time status_due; /* monotonic; when it was put off */

	enum hf_pass_phase phase;
	struct hf_call *call; /* STATUS, REREAD */
	bool sent;            /* STATUS, REREAD: the one request was sent */
	size_t stage;
	struct hf_pass_call *calls;
	size_t n_calls, next; /* next: first that was not sent yet */
	size_t n_open;        /* sent or reading */
	size_t n_unsure;
	struct hf_tally tally[HF_ACTION_KINDS];

	struct hf_gate *gate; /* NULL: it waits at none */
	struct hf_pass *gate_next;
	int turn_left; /* requests */

	int code; /* the first thing that went wrong */
	char message[HF_ERROR_TEXT_MAX];
	hf_time retry_after;
	bool reread;  /* the job itself is to be read before it is stepped again */
	bool looking; /* that is all this pass is for */
};

/* Remember what went wrong; the first one stays. */
void hf_pass_fail(struct hf_pass *pass, int code, const char *message);

/* perform.c: send one action, or read what became of it; the reply goes to hf_pass_moved. */
void hf_perform_send(struct hf_pass_call *call);
void hf_perform_read(struct hf_pass_call *call);
/* pass.c: a call changed its state because a reply came. */
void hf_pass_replied(struct hf_pass *pass, const struct hf_reply *reply);

/* report.c: events. */
void hf_report_plan(struct hf_pass *pass);
void hf_report_stage(struct hf_pass *pass);
void hf_report_failure(struct hf_pass *pass, const struct hf_action *action, const char *message);
/* Of what upstream tells when an extra object is done with. */
void hf_report_extra(struct hf_pass *pass, const struct hf_action *action);
void hf_report_job(struct hf_pass *pass, bool warning, const char *reason, const char *message);

#endif
