/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_LEADER_H
#define HF_CLI_LEADER_H

#include "cli/cli.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/* The leader of the operator's replicas, by its Lease.  The strings belong to the Lease. */
struct hf_leader {
	const char *ns;
	const char *holder; /* "": the Lease was given up */
	hf_time renewed_at; /* by the holder's clock; HF_TIME_NONE: unknown */
	bool leads;         /* the holder has renewed the Lease lately */
};
/* Read a Lease of leader election. now: the API server's clock. */
void hf_leader_read(const struct hf_json *lease, hf_time now, struct hf_leader *ret_leader);

/* Why nothing decides on jobs: sentences for people. */
struct hf_no_leader {
	char *found; /* NULL: an operator leads, or nothing is known */
	char *action;
};
/*
 * Find out whether an operator leads on the cluster that has these jobs.
 *
 * Nothing is known, and `found` stays NULL, if the user may not list Leases, if no job is active, or if there is no
 * Lease although an operator has written the status of each job (one without --leader-elect, or with another
 * --leader-election-id).
 */
void hf_no_leader_find(struct hf_cli *cli, struct hf_doc *const *jobs, size_t n,
		       struct hf_no_leader *ret_missing);
void hf_no_leader_release(struct hf_no_leader *missing);
#define HF_AUTO_NO_LEADER HF_CLEANUP(hf_no_leader_release) struct hf_no_leader

HF_END_DECLS

#endif
