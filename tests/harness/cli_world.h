/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_CLI_WORLD_H
#define HF_TESTS_HARNESS_CLI_WORLD_H

#include "cli/cli.h"
#include "json/json.h"
#include "memstore/memstore.h"

HF_BEGIN_DECLS

/*
 * A server for verbs: the embedded store in memory on a virtual clock, without operator and
 * kubelet, so that what is stored is what the test put there.  A verb runs as from the command
 * line, with what it prints caught.
 */

/* Of the namespace default, as far as the object names none; all times in tests count from it. */
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
	/* What containers wrote, by pod; NULL text: the container waits to start. */
	struct {
		const char *pod, *text;
	} logs[CLI_WORLD_LOGS_MAX];
	const char *previous_log; /* of the run before, of each pod; NULL: as the last one */
	size_t n_logs;
	struct hf_log_options log_asked; /* the last one; texts are not kept */
	int connect_code;                /* not 0: connecting fails so */

	/* Of the last verb. */
	int code;
	char *out, *err;
};

void cli_world_init(struct cli_world *world);
void cli_world_release(struct cli_world *world);
/* A world for each test, as cmocka has it. */
int cli_world_setup(void **state);
int cli_world_teardown(void **state);

/* JSON with ' for ".  A "status" in it is stored too. */
void cli_world_put(struct cli_world *world, const char *text);
/* A PyTorchJob of one master and `workers`, with the type of its last condition that is True. */
void cli_world_job(struct cli_world *world, const char *name, int workers, const char *state);
/* A pod of that job in that phase. */
void cli_world_pod(struct cli_world *world, const char *job, const char *rank, const char *phase);
/* A merge patch; "status" in a patch goes to the status. */
void cli_world_patch(struct cli_world *world, const struct hf_resource *resource, const char *name,
		     const char *text);
void cli_world_delete(struct cli_world *world, const struct hf_resource *resource,
		      const char *name);
/* While a verb runs: make an object, and end every watch with that code. */
void cli_world_create(struct cli_world *world, const char *text);
void cli_world_break(struct cli_world *world, int code);
/* What is stored; the reference is the caller's, NULL: it is not there. */
struct hf_doc *cli_world_get(struct cli_world *world, const struct hf_resource *resource,
			     const char *name);
/* While a verb runs: after so long. */
void cli_world_later(struct cli_world *world, hf_time span, void (*fn)(struct cli_world *world));
void cli_world_log(struct cli_world *world, const char *pod, const char *text);

/* holdfast WORD…, ended by NULL; fills code, out and err. */
int cli_world_run(struct cli_world *world, ...) __attribute__((sentinel));

/* The verb ended so and printed exactly that. */
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
