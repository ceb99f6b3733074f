/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_CONTACT_KEEPER_H
#define HF_AGENT_CONTACT_KEEPER_H

#include "store/store.h"

HF_BEGIN_DECLS

/*
 * When this node last had contact with the control plane, for ranks that fence themselves: a record
 * (health/contact.h) in a file beside the socket for reports.
 *
 * Contact is a renewal of the kubelet's Lease (spec.renewTime) that the control plane has.  Operators take a rank for
 * stopped when renewTime stands still.  So nothing else may keep the rank alive: not the agent's own connection, not
 * a kubelet that merely runs, not a change of the Lease's metadata.
 *
 * The time of a contact is when the agent sent its last read that still brought the older renewTime: the kubelet
 * renewed the Lease after that, whenever the agent sees the renewal.  So the record is up to two reads behind the
 * kubelet, and never ahead of it.
 */
struct hf_contact_keeper;

/* How often the Lease is read; kubelets renew their Lease every 10 s. */
#define HF_CONTACT_KEEPER_LOOK_EVERY (5 * HF_SECOND)
/* How often the Lease is read until the first contact, which a starting process waits for. */
#define HF_CONTACT_KEEPER_FIRST_LOOK_EVERY HF_SECOND

struct hf_contact_keeper_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const char *node, *boot_id, *path; /* copied */
	/* CLOCK_BOOTTIME; NULL: the machine's. */
	hf_time (*clock)(void *arg);
	/* The record cannot be written, and the reason; NULL: it can be written again.  Called at each change. */
	void (*trouble)(void *arg, const char *message);
	void *arg;
};

struct hf_contact_keeper *hf_contact_keeper_create(const struct hf_contact_keeper_options *options);
/* Leaves the record in place; its readers see from its time how old it is.  NULL is fine; returns NULL. */
struct hf_contact_keeper *hf_contact_keeper_destroy(struct hf_contact_keeper *keeper);
/* The Lease is read only while the record is wanted. */
void hf_contact_keeper_want(struct hf_contact_keeper *keeper, bool wanted);

HF_END_DECLS

#endif
