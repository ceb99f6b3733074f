/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_CLI_WORLD_H
#define HF_TESTS_HARNESS_CLI_WORLD_H

#include "cli/cli.h"
#include "json/json.h"
#include "memstore/memstore.h"

HF_BEGIN_DECLS

/*
 * A server for tests of verbs: the embedded store in memory, on a virtual clock. There is no
 * operator and no kubelet, so the store has only what the test puts there. A verb runs as from the
 * command line, and its output is kept in memory.
 */

/* The wall clock at the start of a test. */
#define CLI_WORLD_START ((hf_time)1700000000 * HF_SECOND) /* 2023-11-14T22:13:20Z */
#define CLI_WORLD_LOGS_MAX 16
#define CLI_WORLD_LATER_MAX 8

struct cli_world;

struct cli_world_later {
	struct cli_world *world;
	struct hf_timer *timer;
	void (*fn)(struct cli_world *world);
};

struct cli_world {
	struct hf_loop *loop;
	struct hf_memstore *memstore;
	struct hf_store *store; /* the verbs' own */
	struct cli_world_later later[CLI_WORLD_LATER_MAX];
	size_t n_later;
	/* The log of each pod's container; text NULL: the container waits to start, so there is no
	 * log. */
	struct {
		const char *pod, *text;
	} logs[CLI_WORLD_LOGS_MAX];
	/* log of the previous run, for all pods; NULL: equal to the log of the last run */
	const char *previous_log;
	size_t n_logs;
	/* options of the last request for a log; their texts are not kept */
	struct hf_log_options log_asked;
	int connect_code; /* not 0: connecting fails so */

	/* Of the last verb. */
	int code;
	char *out, *err;
};

void cli_world_init(struct cli_world *world);
void cli_world_release(struct cli_world *world);
/* Set-up and tear-down functions of cmocka: each test gets a world of its own. */
int cli_world_setup(void **state);
int cli_world_teardown(void **state);

/* Stores an object given as JSON, with ' in place of ". A "status" in it is stored too. The
 * namespace is default if the object names none. */
void cli_world_put(struct cli_world *world, const char *text);
/* Makes the server answer /version, as API servers do. */
void cli_world_version(struct cli_world *world, const char *text);
/* Stores a PyTorchJob with one master and `workers` workers. state: the type of its last condition
 * that is True. */
void cli_world_job(struct cli_world *world, const char *name, int workers, const char *state);
/* Stores a pod of the job for the replica `rank`, with the given phase. */
void cli_world_pod(struct cli_world *world, const char *job, const char *rank, const char *phase);
/* Patches an object by a merge patch; a "status" in the patch changes the status. */
void cli_world_patch(struct cli_world *world, const struct hf_resource *resource, const char *name,
		     const char *text);
void cli_world_delete(struct cli_world *world, const struct hf_resource *resource,
		      const char *name);
/* For use while a verb runs: creates an object; ends every watch with the code. */
void cli_world_create(struct cli_world *world, const char *text);
void cli_world_break(struct cli_world *world, int code);
/* Reads an object. NULL: the store does not have it. The caller owns the reference. */
struct hf_doc *cli_world_get(struct cli_world *world, const struct hf_resource *resource,
			     const char *name);
/* Calls fn after the time `span` of a running verb. */
void cli_world_later(struct cli_world *world, hf_time span, void (*fn)(struct cli_world *world));
void cli_world_log(struct cli_world *world, const char *pod, const char *text);

/* Runs "holdfast WORD…"; NULL ends the words. Sets code, out and err. */
int cli_world_run(struct cli_world *world, ...) __attribute__((sentinel));

/* Asserts that the last verb ended with the code and printed exactly these texts. */
#define assert_said(world, wanted_code, wanted_out, wanted_err)                                    \
	do {                                                                                       \
		assert_string_equal((world)->err, wanted_err);                                     \
		assert_string_equal((world)->out, wanted_out);                                     \
		assert_int_equal((world)->code, wanted_code);                                      \
	} while (0)
#define assert_has(text, part)                                                                     \
	do {                                                                                       \
		if (strstr(text, part) == NULL)                                                    \
			fail_msg("'%s' is not in: %s", part, text);                                \
	} while (0)

HF_END_DECLS

#endif
