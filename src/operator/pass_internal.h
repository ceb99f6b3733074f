/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_PASS_INTERNAL_H
#define HF_OPERATOR_PASS_INTERNAL_H

#include "operator/operator_internal.h"

/*
 * A pass over one job, from the step to the last reply.
 *
 * Everything in it is in its arena or referenced, because the caches change while it waits for
 * replies. Lifetime: pass.
 *
 * What a phase does and what may follow it. pass.c asserts this table:
 *
 *   phase    request          next phases
 *   DECIDE   none             LEDGER, STATUS, STAGE, READ, OVER
 *   LEDGER   PATCH job        STATUS, STAGE, OVER    narrow schema: the annotation with the ledger
 *   STATUS   PATCH status     STAGE, OVER
 *   STAGE    those of a stage STAGE, OVER            all requests of a stage at once
 *   READ     GET job          OVER                   the cache may be behind the API server
 *   OVER     none             READ, or the pass ends
 *
 * A reply that is not good leads to OVER. What OVER leads to is the field `then`.
 */
enum hf_pass_phase {
	HF_PASS_DECIDE,
	HF_PASS_LEDGER,
	HF_PASS_STATUS,
	HF_PASS_STAGE,
	HF_PASS_READ,
	HF_PASS_OVER,
	HF_PASS_PHASES,
};

/* How far the plan has been carried out.  A later value includes the earlier ones. */
enum hf_pass_progress {
	HF_PROGRESS_NONE,     /* there is no plan: the step has not run or has failed */
	HF_PROGRESS_PLANNED,  /* `plan` is valid */
	HF_PROGRESS_REPORTED, /* the plan's events are recorded, and its status is stored */
};

/* Which documents the pass writes before the actions. */
enum hf_pass_writes {
	HF_WRITES_NONE,
	HF_WRITES_STATUS,
	HF_WRITES_LEDGER, /* the annotation with the ledger, and then the status without it */
};

/* The state of the single request of the phases LEDGER, STATUS and READ. */
enum hf_pass_request {
	HF_REQUEST_WAITING, /* the request waits at the gate for its turn */
	HF_REQUEST_SENT,
	HF_REQUEST_OVER, /* the request was answered, or is not needed any more */
};

/* The next thing that the pass does after phase OVER. */
enum hf_pass_then {
	HF_THEN_END,
	HF_THEN_READ, /* read the job from the API server before its next step */
	HF_THEN_STEP, /* the pass has only read the job: step the job now */
};

enum hf_call_state {
	HF_CALL_WAITING, /* not sent */
	HF_CALL_SENT,
	/* the reply does not tell whether the action was performed: read the object */
	HF_CALL_UNSURE,
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

/* Finished actions of the same kind in a stage. The actions share an event. */
/* the most names in the event's text; further names are only counted */
#define HF_TALLY_NAMES_MAX 8
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
	struct hf_doc *job; /* the newest version of the job known to the pass */
	/* the version of the job that the step read: the plan borrows from it */
	struct hf_doc *stepped;
	struct hf_job_view view;
	struct hf_views views;
	struct hf_plan plan; /* from PLANNED on */

	enum hf_pass_phase phase;
	enum hf_pass_progress progress;
	enum hf_pass_writes writes;
	enum hf_pass_then then;
	enum hf_pass_request request;
	struct hf_call *call;        /* SENT: the request */
	struct hf_doc *ledger_patch; /* LEDGER: its body */
	struct hf_doc *patch;        /* STATUS: its body */
	hf_time status_due; /* monotonic: when the waiting status is due; NONE: no status waits */

	/* STAGE */
	size_t stage;
	struct hf_pass_call *calls;
	size_t n_calls, next; /* next: index of the first call that was not sent yet */
	size_t n_open;        /* number of calls in the states SENT and READING */
	size_t n_unsure;
	struct hf_tally tally[HF_ACTION_KINDS];

	struct hf_gate *gate; /* the gate at which the pass waits; NULL: the pass does not wait */
	struct hf_pass *gate_next;
	int turn_left; /* how many requests the pass may still send in its turn at the gate */

	int code; /* the error of the pass's first failure; 0: no failure */
	char message[HF_ERROR_TEXT_MAX];
	hf_time retry_after;
};

/* --- pass.c --- */
/* Record a failure of the pass.  If several are recorded, the first stays. */
void hf_pass_fail(struct hf_pass *pass, int code, const char *message);
/* Drop the requests that were not sent, and wait for the replies to the others. */
void hf_pass_give_up(struct hf_pass *pass, int code, const char *message);
/* perform.c calls this when a reply has changed the state of a call. */
void hf_pass_take_reply(struct hf_pass *pass, const struct hf_reply *reply);
/* Go to the next phase, or wait for a reply or for the gate.  May free the pass. */
void hf_pass_advance(struct hf_pass *pass);
/* The job's name still belongs to the job with the UID of this pass. */
bool hf_pass_has_job(const struct hf_pass *pass);
/* Send the next request of the present phase. */
void hf_pass_send(struct hf_pass *pass);

/* --- gate.c: which pass sends next --- */
void hf_gate_enter(struct hf_pass *pass);
void hf_gate_leave(struct hf_pass *pass); /* also from nowhere */

/* --- status_pacing.c: when a status that nothing waits for is written --- */
/* Update the number of starting jobs, after a step. */
void hf_pacing_note_start(struct hf_pass *pass);
void hf_pacing_forget_start(struct hf_operator *op, const struct hf_job_state *state);
/* When the plan's status is to be written, on the monotonic clock; HF_TIME_NONE: now, or there is
 * no status to write. */
hf_time hf_pacing_status_due(struct hf_pass *pass);
/* Call this when the status was written: the gap to the next routine status begins. */
void hf_pacing_note_written(struct hf_pass *pass);
/* Initialise the state of a job that has no status by this process yet. */
void hf_pacing_init(struct hf_job_state *state);

/* --- perform.c: sends one action, or reads its object; the reply goes to hf_pass_take_reply --- */
void hf_perform_send(struct hf_pass_call *call);
void hf_perform_read(struct hf_pass_call *call);

/* --- report.c: events of the job --- */
void hf_report_plan(struct hf_pass *pass);
void hf_report_stage(struct hf_pass *pass);
void hf_report_failure(struct hf_pass *pass, const struct hf_action *action, const char *message);
/* Record an event for the deletion of a PodGroup, as upstream does.  Other extra objects get no
 * event. */
void hf_report_extra(struct hf_pass *pass, const struct hf_action *action);
void hf_report_job(struct hf_pass *pass, bool warning, const char *reason, const char *message);

#endif
