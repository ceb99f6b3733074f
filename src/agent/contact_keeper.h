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
 * Contact is a renewal of the kubelet's Lease (spec.renewTime) that the control plane has.  Operators
 * take a rank for stopped when renewTime stands still, so nothing else may keep the rank alive: not
 * our own connection, not a kubelet that merely runs, not a change of the Lease's metadata.  Its time is when we asked for the Lease that was still the older
 * one: the newer was written after that, whenever we come to see it.  So the record lags behind the
 * kubelet by up to two looks, and is never ahead of it.
 */
struct hf_contact_keeper;

/* Kubelets renew their Lease every 10 s. */
#define HF_CONTACT_KEEPER_LOOK_EVERY (5 * HF_SECOND)
#define HF_CONTACT_KEEPER_FIRST_LOOK_EVERY                                                         \
	HF_SECOND /* until the first contact, which a starting process waits for */

struct hf_contact_keeper_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const char *node, *boot_id, *path; /* copied */
	/* CLOCK_BOOTTIME; NULL: the machine's. */
	hf_time (*clock)(void *arg);
	/* The record cannot be written; NULL: it can again.  At each change. */
	void (*trouble)(void *arg, const char *message);
	void *arg;
};

struct hf_contact_keeper *hf_contact_keeper_create(const struct hf_contact_keeper_options *options);
/* Leaves the record in place; its readers see its age. NULL is fine; returns NULL. */
struct hf_contact_keeper *hf_contact_keeper_destroy(struct hf_contact_keeper *keeper);
/* Only while it is wanted anything is read. */
void hf_contact_keeper_want(struct hf_contact_keeper *keeper, bool wanted);

HF_END_DECLS

#endif
