/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_FAKE_STORE_H
#define HF_TESTS_HARNESS_FAKE_STORE_H

#include "store/backend.h"

/*
 * A store for tests that does nothing by itself: it records requests and watches, and the test
 * answers them, in any order and at any time. Other stores cannot show replies that never come, or
 * watches that stay silent.
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
	bool streams;  /* the answer of hf_store_can_stream_lists; set by the test */
};

struct fake_store *fake_store_create(void);
void fake_store_destroy(struct fake_store *store);

/* Returns the next request, in the order in which they were made; NULL: there is no further
 * request. */
struct fake_call *fake_next(struct fake_store *store);
void fake_answer(struct fake_call *call, const struct hf_reply *reply);
void fake_refuse(struct fake_call *call, int code);
void fake_answer_object(struct fake_call *call, struct hf_doc *object);
/* Answers a request with a list; takes over the references of items. */
void fake_answer_list(struct fake_call *call, const char *version, const char *token,
		      struct hf_doc **items, size_t n_items);

/* Returns the newest watch that is not stopped; NULL: all are stopped. */
struct fake_watch *fake_watch_live(struct fake_store *store);
/* Sends an event with the object and its resourceVersion; takes over the reference. */
void fake_event(struct fake_watch *watch, enum hf_event_type type, struct hf_doc *object);
void fake_bookmark(struct fake_watch *watch, const char *version);
void fake_initial_end(struct fake_watch *watch, const char *version);
void fake_end(struct fake_watch *watch, int code, hf_time retry_after);

/* Makes an object with this metadata and a member "value". */
struct hf_doc *fake_object(const char *name, const char *uid, const char *version,
			   const char *value);

#endif
