/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_FAKE_STORE_H
#define HF_TESTS_HARNESS_FAKE_STORE_H

#include "store/backend.h"

/*
 * A store that does nothing by itself: it keeps what it was asked, and the test
 * answers, in any order, at any time, with anything.  For what an engine that
 * behaves could not show: replies that never come, watches that fall silent.
 */
#define FAKE_CALLS_MAX 512
#define FAKE_WATCHES_MAX 256

struct fake_call {
	struct hf_call base;        /* first */
	struct hf_request *request; /* a copy */
	hf_reply_fn done;
	void *arg;
	bool live; /* neither answered nor canceled */
	bool canceled;
};

struct fake_watch {
	struct hf_watch base; /* first */
	const struct hf_resource *resource;
	char *resource_version; /* NULL as asked */
	char *field_selector;   /* likewise */
	hf_time timeout;
	bool initial_events;
	hf_event_fn fn;
	void *arg;
	bool live; /* not stopped */
};

struct fake_store {
	struct hf_store base; /* first */
	struct fake_call calls[FAKE_CALLS_MAX];
	struct fake_watch watches[FAKE_WATCHES_MAX];
	size_t n_calls, n_watches;
	size_t looked; /* calls that fake_next has returned */
	bool streams;  /* what hf_store_can_stream_lists says; set by the test */
};

struct fake_store *fake_store_create(void);
void fake_store_destroy(struct fake_store *store);

/* The next request in the order made; NULL: no more. */
struct fake_call *fake_next(struct fake_store *store);
void fake_answer(struct fake_call *call, const struct hf_reply *reply);
void fake_refuse(struct fake_call *call, int code);
void fake_answer_object(struct fake_call *call, struct hf_doc *object);
/* A list reply; takes over the references of items. */
void fake_answer_list(struct fake_call *call, const char *version, const char *token,
		      struct hf_doc **items, size_t n_items);

/* The newest watch that is not stopped; NULL: none. */
struct fake_watch *fake_watch_live(struct fake_store *store);
/* An event with that object's resourceVersion; takes over the reference. */
void fake_event(struct fake_watch *watch, enum hf_event_type type, struct hf_doc *object);
void fake_bookmark(struct fake_watch *watch, const char *version);
void fake_initial_end(struct fake_watch *watch, const char *version);
void fake_end(struct fake_watch *watch, int code, hf_time retry_after);

/* An object with that metadata, and "value" beside it. */
struct hf_doc *fake_object(const char *name, const char *uid, const char *version,
			   const char *value);

#endif
