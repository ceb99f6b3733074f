/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_PAGE_JOINT_H
#define HF_APP_PAGE_JOINT_H

#include "kube/kube.h"
#include "operator/operator.h"
#include "page/page.h"

/*
 * Joins the page (src/page) to the operator of this process: the page reads the operator's caches, and the operator's
 * callbacks tell the page what has changed. Lifetime: process; create it before the operator, and destroy it before the
 * store.
 */
struct hf_page_joint;

struct hf_page_joint_options {
	struct hf_loop *loop;
	struct hf_store *store;
	/* Returns the operator of this process; NULL: there is none now. */
	struct hf_operator *(*find_operator)(void *arg);
	void *arg;
	const char *address;      /* "127.0.0.1:0", ":8443" */
	const char *const *hosts; /* further names of the page; ends with NULL; NULL: none */
	/* The API server, for a cluster: logs and actions go there with the caller's token. NULL: this machine. */
	const struct hf_kube_config *kube;
	bool watch_nodes;
	struct hf_metrics *metrics; /* NULL: none */
};

/* HF_E_INVALID: the address is malformed, or there are too many names. */
int hf_page_joint_create(const struct hf_page_joint_options *options,
			 struct hf_page_joint **ret_joint, struct hf_error *err) HF_MUST_CHECK;
struct hf_page_joint *hf_page_joint_destroy(
	struct hf_page_joint *joint); /* NULL is fine; returns NULL */
struct hf_page *hf_page_joint_page(struct hf_page_joint *joint);
/* Appends "http://127.0.0.1:41234/", on one machine with the token. */
void hf_page_joint_url(const struct hf_page_joint *joint, struct hf_strbuf *sb);

/* To be called from the callbacks of the operator with these names. joint NULL: does nothing. */
void hf_page_joint_passed(struct hf_page_joint *joint, const struct hf_operator_pass *pass);
void hf_page_joint_seen(struct hf_page_joint *joint, const char *key);
void hf_page_joint_noted(struct hf_page_joint *joint, const struct hf_event_note *note,
			 hf_time now);
/* Another operator runs in this process now, for instance because this process has begun to lead. */
void hf_page_joint_changed(struct hf_page_joint *joint);

#endif
