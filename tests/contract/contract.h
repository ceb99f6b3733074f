/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_CONTRACT_H
#define HF_TESTS_CONTRACT_H

/* The store contract of src/store/CONTRACT.md as tests that use store/store.h alone. A back end
 * supplies a `world`. Each group of tests is a table of functions that run on any world. Each test
 * makes its own namespace, so one world serves all tests. */

#include "harness/test.h"

#include "loop/loop.h"
#include "store/resource.h"
#include "store/store.h"

struct world {
	struct hf_loop *loop;
	struct hf_store *store;
	struct hf_store *other; /* a second client of the same objects */
	/* Runs what is ready. Returns false if nothing happened and nothing will happen without
	 * waiting. */
	bool (*turn)(struct world *world);
	/* Runs until all requests in flight have ended; NULL: call turn until it returns false. */
	void (*settle)(struct world *world);
	/* Lets `span` pass, or as much as the back end needs for its own delays. */
	void (*pass)(struct world *world, hf_time span);
	/* Makes a further client, which the test destroys. */
	struct hf_store *(*client)(struct world *world);
	/* Makes enough changes to ConfigMaps to overwrite the watch history; NULL: not possible. */
	void (*forget)(struct world *world, const char *ns);
	int serial; /* number of the last namespace */
};

/* Called for each reply and event, so that a world that waits can stop waiting; NULL: not
 * needed. */
extern void (*contract_moved)(void *arg);
extern void *contract_moved_arg;

/* --- synchronous requests --- */

struct outcome {
	int calls; /* how often the reply callback ran */
	int code;
	char message[1024];
	struct hf_doc *object;
	struct hf_doc *items[64];
	size_t n_items;
	char version[32]; /* resourceVersion of a list */
	char token[256];
	int64_t remaining;
};
void outcome_release(struct outcome *o);
#define AUTO_OUTCOME HF_CLEANUP(outcome_release) struct outcome
void outcome_take(void *arg, const struct hf_reply *reply); /* reply callback; arg is an outcome */

/* Sends a request and waits for the reply. Resets the outcome first. */
int ask(struct world *w, const struct hf_request *request, struct outcome *o);
/* Runs turns until *calls is at least n. Fails the test if nothing happens any more. */
void wait_for(struct world *w, const int *calls, int n);
void settle(struct world *w); /* waits until nothing happens any more */

/* Bodies are JSON with ' instead of ", which makes the tests easier to read. */
struct hf_doc *json_doc(const char *text, ...) HF_PRINTF(1, 2);

int create(struct world *w, const struct hf_resource *r, const char *ns, struct outcome *o,
	   const char *text, ...) HF_PRINTF(5, 6);
int get(struct world *w, const struct hf_resource *r, const char *ns, const char *name,
	struct outcome *o);
int update(struct world *w, const struct hf_resource *r, const char *ns, const char *name,
	   struct outcome *o, struct hf_json *object); /* takes ownership of object */

/* The address of one object. */
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

/* Makes a namespace for one test. The name is valid until the next call. */
const char *fresh_namespace(struct world *w);
/* Make a minimal object of the kind. */
int create_configmap(struct world *w, const char *ns, const char *name, struct outcome *o);
int create_pod(struct world *w, const char *ns, const char *name, struct outcome *o);
int create_job(struct world *w, const char *ns, const char *name, struct outcome *o);
void bind_pod(struct world *w, const char *ns, const char *name, const char *node);

/* The text at a path "a.b.c" of the outcome's object; "" if absent. */
const char *text_at(const struct outcome *o, const char *path);
int64_t number_at(const struct outcome *o, const char *path);
bool has(const struct outcome *o, const char *path);

/* --- watches --- */

#define SEEN_MAX 256
struct seen {
	struct hf_watch *watch;
	int n; /* number of events seen so far */
	struct {
		enum hf_event_type type;
		char name[64], version[32];
		struct hf_doc *object;
		bool initial_end;
	} events[SEEN_MAX];
	bool ended;
	int end_code;
	int stop_after; /* stop the watch from the callback after this many events; 0: never */
};
void seen_take(void *arg, const struct hf_event *event);
void seen_start(struct world *w, struct seen *s, const struct hf_watch_options *options);
void seen_release(struct seen *s);
#define AUTO_SEEN HF_CLEANUP(seen_release) struct seen
void wait_events(struct world *w, struct seen *s, int n);
void wait_ended(struct world *w, struct seen *s);
/* "A:x M:x D:x": types and names of the events so far, for one comparison. */
const char *seen_text(const struct seen *s);

/* --- groups --- */

struct contract_test {
	const char *name;
	void (*run)(struct world *world);
};
extern const struct contract_test contract_replies[], contract_reads[], contract_writes[],
	contract_patches[], contract_deletes[], contract_watches[];
/* Runs all groups on the world; returns cmocka's exit code. */
int contract_run(const char *name, struct world *world);

#endif
