/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_CONTRACT_H
#define HF_TESTS_CONTRACT_H

/*
 * The contract of src/store/README.md as tests, against store/store.h alone.  A back end
 * gives a world; each group of tests is a function table that runs on any of them.
 * Tests make a namespace of their own, so that one world serves them all.
 */

#include "harness/test.h"

#include "loop/loop.h"
#include "store/resource.h"
#include "store/store.h"

struct world {
	struct hf_loop *loop;
	struct hf_store *store;
	struct hf_store *other; /* another client of the same objects */
	/* Run what is ready; false: nothing happened, and nothing will without waiting. */
	bool (*turn)(struct world *world);
	/* Run until nothing is under way that was begun; NULL: as turn, until it says false. */
	void (*settle)(struct world *world);
	/* Let that much time pass, or as much as the back end needs for its own delays. */
	void (*pass)(struct world *world, hf_time span);
	/* A further client, to be destroyed by the test. */
	struct hf_store *(*client)(struct world *world);
	/* Make so many changes to a kind that a watch's history is overwritten; NULL: cannot. */
	void (*forget)(struct world *world, const char *ns);
	int serial;   /* for namespaces */
};

/* Called whenever a reply or an event has come, for worlds that must wait; NULL: nobody. */
extern void (*contract_moved)(void *arg);
extern void *contract_moved_arg;

/* --- synchronous requests --- */

struct outcome {
	int calls; /* of the callback */
	int code;
	char message[1024];
	struct hf_doc *object;
	struct hf_doc *items[64];
	size_t n_items;
	char version[32]; /* of a list */
	char token[256];
	int64_t remaining;
};
void outcome_release(struct outcome *o);
#define AUTO_OUTCOME HF_CLEANUP(outcome_release) struct outcome
void outcome_take(void *arg, const struct hf_reply *reply); /* the callback: arg is an outcome */

/* Send and wait for the reply.  The outcome is reset before. */
int ask(struct world *w, const struct hf_request *request, struct outcome *o);
/* Turn until *calls is at least n; fails the test when nothing moves any more. */
void wait_for(struct world *w, const int *calls, int n);
void settle(struct world *w); /* until nothing moves */

/* Bodies are JSON with ' for ", so that tests read well. */
struct hf_doc *json_doc(const char *text, ...) HF_PRINTF(1, 2);

int create(struct world *w, const struct hf_resource *r, const char *ns, struct outcome *o,
	   const char *text, ...) HF_PRINTF(5, 6);
int get(struct world *w, const struct hf_resource *r, const char *ns, const char *name,
	struct outcome *o);
int update(struct world *w, const struct hf_resource *r, const char *ns, const char *name,
	   struct outcome *o, struct hf_json *object); /* object is taken over */

/* One object. */
struct at {
	const struct hf_resource *resource;
	const char *ns, *name;
};
#define AT(resource, ns, name) ((struct at){(resource), (ns), (name)})
int merge(struct world *w, struct at at, struct outcome *o, const char *text, ...) HF_PRINTF(4, 5);
int merge_status(struct world *w, struct at at, struct outcome *o, const char *text, ...)
	HF_PRINTF(4, 5);
int erase(struct world *w, const struct hf_resource *r, const char *ns, const char *name,
	  struct outcome *o);
int list(struct world *w, const struct hf_resource *r, const char *ns, struct outcome *o);

/* A namespace of this test alone; the name is good until the next call. */
const char *fresh_namespace(struct world *w);
/* A minimal object of the kind. */
int create_configmap(struct world *w, const char *ns, const char *name, struct outcome *o);
int create_pod(struct world *w, const char *ns, const char *name, struct outcome *o);
int create_job(struct world *w, const char *ns, const char *name, struct outcome *o);
void bind_pod(struct world *w, const char *ns, const char *name, const char *node);

/* Text at a path "a.b.c" of the outcome's object; "" where there is none. */
const char *text_at(const struct outcome *o, const char *path);
int64_t number_at(const struct outcome *o, const char *path);
bool has(const struct outcome *o, const char *path);

/* --- watches --- */

#define SEEN_MAX 256
struct seen {
	struct hf_watch *watch;
	int n; /* events so far */
	struct {
		enum hf_event_type type;
		char name[64], version[32];
		struct hf_doc *object;
		bool initial_end;
	} events[SEEN_MAX];
	bool ended;
	int end_code;
	int stop_after; /* stop from the callback after that many events; 0: never */
};
void seen_take(void *arg, const struct hf_event *event);
void seen_start(struct world *w, struct seen *s, const struct hf_watch_options *options);
void seen_release(struct seen *s);
#define AUTO_SEEN HF_CLEANUP(seen_release) struct seen
void wait_events(struct world *w, struct seen *s, int n);
void wait_ended(struct world *w, struct seen *s);
/* "A:x M:x D:x": types and names of what came, for one comparison. */
const char *seen_text(const struct seen *s);

/* --- groups --- */

struct contract_test {
	const char *name;
	void (*run)(struct world *world);
};
extern const struct contract_test contract_replies[], contract_reads[], contract_writes[],
	contract_patches[], contract_deletes[], contract_watches[];
/* All groups on the world; ends the process' tests with cmocka's exit code. */
int contract_run(const char *name, struct world *world);

#endif
