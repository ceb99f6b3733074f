/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_FRONT_STORE_H
#define HF_TESTS_SIM_FRONT_STORE_H

#include "store/backend.h"

/*
 * A store in front of another one: it answers each request about one API group itself, after a delay, and passes every other
 * request on. The embedded store knows no kinds of such a group. The objects outlive the operator, so a test keeps them
 * itself, and creates one front store for each life of the operator.
 */

struct front_store;

/* A request that waits for its answer. */
struct front_call {
	struct hf_call base; /* first */
	struct front_store *store;
	struct hf_timer *timer;
	enum hf_verb verb;
	char plural[64], version[16], name[254], uid[64], field_selector[254]; /* "": none */
	struct hf_doc *body;                                                   /* NULL: none */
	hf_reply_fn done;
	void *arg;
};

struct front_options {
	struct hf_loop *loop;
	const char *group;
	const hf_time *delay; /* of each answer, read at its request; NULL: 1 ms */
	/* Has to call front_answer or front_answer_list once. */
	void (*answer)(void *arg, struct front_call *call);
	/* Begins a watch of the group; NULL: it goes to the other store. */
	struct hf_watch *(*watch)(void *arg, hf_event_fn fn, void *fn_arg);
	void *arg;
};

/* Takes over `inner`. */
struct hf_store *front_store_create(const struct front_options *options, struct hf_store *inner);
/* object: NULL without success. */
void front_answer(struct front_call *call, int code, struct hf_doc *object);
void front_answer_list(struct front_call *call, struct hf_doc **items, size_t len,
		       const char *version);
/* Gives the object a deletionTimestamp, as the API server does if a finalizer keeps it. */
void front_mark_deleted(struct hf_doc **object);

#endif
