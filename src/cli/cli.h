/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_CLI_H
#define HF_CLI_CLI_H

#include "base/error.h"
#include "loop/loop.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

HF_BEGIN_DECLS

/*
 * The command line: a table of verbs, each in a file of its own.
 *
 * Exit codes (of every verb):
 */
enum hf_exit {
	HF_EXIT_OK = 0,
	HF_EXIT_FAILED = 1,      /* refused, not found, or the job failed */
	HF_EXIT_USAGE = 2,       /* the command line or the manifest is wrong; nothing was done */
	HF_EXIT_UNREACHABLE = 3, /* no server, or it does not know us */
	HF_EXIT_TIMEOUT = 124,
	HF_EXIT_INTERNAL = 125, /* Holdfast itself failed */
	HF_EXIT_INTERRUPTED = 130,
};

/* One flag of a verb, "--name VALUE" or a switch.  The table of a verb ends with name NULL. */
struct hf_flag {
	const char *name;  /* without dashes */
	char letter;       /* 0: none */
	const char *value; /* what help calls its value; NULL: a switch */
	const char *help;
};

#define HF_CLI_ARGS_MAX 4096 /* words of a command line */
#define HF_CLI_FLAGS_MAX 64  /* flags given on one command line */

struct hf_cli_flag {
	const struct hf_flag *flag;
	const char *value; /* "" for a switch */
};

struct hf_cli;

struct hf_cli_verb {
	const char *name;
	const char *summary;         /* one line, for the list of verbs */
	const char *usage;           /* what stands behind "holdfast NAME", e.g. "JOB [--all]" */
	const char *examples;        /* three lines of commands, shown first by --help */
	const struct hf_flag *flags; /* beside the global ones; NULL: none */
	int args_min, args_max;      /* words that are no flags; max -1: any number */
	bool hidden;                 /* not in the list */
	bool raw;                    /* reads its words itself: all of them are in args */
	bool connects;               /* talks to a server: store and ns are set before it runs */
	/* Returns the exit code; has printed what there is to say. */
	int (*run)(struct hf_cli *cli);
};

struct hf_cli {
	const char *program; /* "holdfast", or "kubectl holdfast" as its plugin */
	const struct hf_cli_verb *verb;
	const char **args; /* words that are no flags */
	int n_args;
	struct hf_cli_flag flags[HF_CLI_FLAGS_MAX];
	size_t n_flags;

	FILE *out, *err;
	bool tty;   /* out is a terminal that takes control sequences */
	bool color; /* tty, and neither NO_COLOR, --color=never nor TERM=dumb */
	bool utf8;  /* the locale's encoding */
	int width;  /* columns of the terminal; 0: unlimited */

	/* Set by main, for verbs that talk to a server: makes the loop's store on first use. */
	int (*connect)(struct hf_cli *cli, struct hf_store **ret_store, struct hf_error *err);
	struct hf_loop *loop;
	struct hf_store *store;  /* what connect gave */
	hf_time request_timeout; /* --request-timeout: span for each request; 0: the usual one */
	char *ns;                /* --namespace, else the context's, else "default" */
	bool all_namespaces;
};

/* The verbs of this module, ended by name NULL. */
extern const struct hf_cli_verb *const hf_cli_verbs[];

/* Parse and run.  verbs: tables of pointers, the last NULL. */
int hf_cli_main(struct hf_cli *cli, const struct hf_cli_verb *const *const *tables, int argc,
		const char *const *argv);

/* NULL: not given.  A switch that is given has "". */
const char *hf_cli_flag(const struct hf_cli *cli, const char *name);
bool hf_cli_has(const struct hf_cli *cli, const char *name);

/* "holdfast: <text>" on stderr; returns the exit code for err->code. */
int hf_cli_fail(const struct hf_cli *cli, const struct hf_error *err);
/* A mistake on the command line: text, then where to read on; returns HF_EXIT_USAGE. */
int hf_cli_usage(const struct hf_cli *cli, const char *fmt, ...) HF_PRINTF(2, 3);

HF_END_DECLS

#endif
