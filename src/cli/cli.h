/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_CLI_H
#define HF_CLI_CLI_H

#include "base/error.h"
#include "base/flags.h"
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
	HF_EXIT_FAILED = 1, /* the server refused, an object was not found, or the job failed */
	HF_EXIT_USAGE = 2,  /* the command line or the manifest is wrong; nothing was changed */
	HF_EXIT_UNREACHABLE = 3, /* no server is reached, or it rejects the credentials */
	HF_EXIT_TIMEOUT = 124,
	HF_EXIT_INTERNAL = 125, /* Holdfast itself failed */
	HF_EXIT_INTERRUPTED = 130,
};

#define HF_CLI_ARGS_MAX 4096 /* words of a command line */
#define HF_CLI_FLAGS_MAX 64  /* flags given on one command line */

/* The groups of verbs in the list of `holdfast --help`, in its order. */
enum hf_cli_group {
	HF_CLI_RUN_HERE,
	HF_CLI_LOOK,
	HF_CLI_ACT,
	HF_CLI_ON_CLUSTER,
	HF_CLI_GROUPS,
};

/* What the words of a verb name, for completion in a shell. */
enum hf_cli_words {
	HF_CLI_WORDS_NONE,
	HF_CLI_WORDS_FILES,
	HF_CLI_WORDS_JOBS,
	HF_CLI_WORDS_NODES, /* jobs, and nodes as node/NAME */
	HF_CLI_WORDS_RUNS,  /* kept runs alone */
	HF_CLI_WORDS_KINDS, /* a kind, then names of its objects */
	HF_CLI_WORDS_SHELLS,
};

/* For verbs with a JOB as their argument. */
#define HF_CLI_NOTE_JOB "JOB is NAME, KIND/NAME or @latest, the newest job."
/* For verbs that also read kept runs. */
#define HF_CLI_NOTE_RUN                                                                            \
	HF_CLI_NOTE_JOB                                                                            \
	"\nWithout a server, JOB is a run that 'holdfast run' kept. @1 is always the newest of these, @2 the one before."

struct hf_cli;
struct hf_kept_store; /* app/kept_store.h */
struct hf_manifest;   /* cli/job_manifest.h */

/* A field of a manifest that this machine refuses, or (refused false) ignores.  text: a sentence. */
typedef void (*hf_finding_fn)(void *arg, bool refused, const char *field, const char *text);

struct hf_cli_verb {
	const char *name;
	const char *summary; /* one line, for the list of verbs */
	const char *usage;   /* the words after "holdfast NAME", such as "JOB [--all]" */
	enum hf_cli_group group;
	const char *examples; /* three lines of commands, shown first by --help */
	const char *note;     /* a sentence about the arguments, behind the usage; NULL: none */
	const struct hf_flag *flags; /* in addition to the global flags; NULL: none */
	int args_min, args_max;      /* number of words that are not flags; args_max -1: no limit */
	enum hf_cli_words words;
	bool hidden; /* the list of verbs leaves it out */
	enum hf_flags_style style;
	bool takes_kind; /* its one argument may be two words, as "why pytorchjob ddp" */
	bool reads_kept; /* its first argument may name a run that `holdfast run` kept */
	bool connects;   /* talks to a server: store and ns are set before it runs */
	/* True if the words behind the first one belong to it, as those of a program.  NULL: never.
	 * literal: "--" stands before it. */
	bool (*takes_rest)(const struct hf_cli *cli, const char *word, bool literal);
	/* Prints the result or the error itself and returns the exit code. */
	int (*run)(struct hf_cli *cli);
};

struct hf_cli {
	const char *program; /* "holdfast", or "kubectl holdfast" as its plugin */
	const struct hf_cli_verb *verb;
	const char **args; /* the words that are not flags */
	int n_args;
	bool literal; /* "--" stands before the first of args */
	char *joined; /* the argument of a verb with takes_kind that was two words */
	struct hf_flag_item flags[HF_CLI_FLAGS_MAX];
	size_t n_flags;

	FILE *out, *err;
	bool tty;   /* out is a terminal that takes control sequences */
	bool color; /* tty, and neither NO_COLOR, --color=never nor TERM=dumb */
	bool utf8;  /* the locale's encoding */
	int width;  /* columns of the terminal; 0: unlimited */

	/* Set by main, for verbs that talk to a server: makes the loop's store on first use. */
	int (*connect)(struct hf_cli *cli, struct hf_store **ret_store, struct hf_error *err);
	/* Set by main, for verbs that ask whether a job can run on this machine. */
	void (*check_here)(const struct hf_cli *cli, const struct hf_manifest *job,
			   hf_finding_fn found, void *arg);
	/* Set by main: calls fn for each kept run of this machine, with its name and a description. */
	void (*each_run)(void (*fn)(void *arg, const char *name, const char *description),
			 void *arg);
	/* Set by main: this program can start itself as a helper that looks for GPUs.  false, in tests:
	 * no GPU is found. */
	bool finds_gpus;
	const struct hf_cli_verb *const *const *tables; /* of hf_cli_main */
	struct hf_loop *loop;
	struct hf_store *store;     /* from connect; NULL for verbs without a server */
	struct hf_kept_store *kept; /* likewise: the run behind store; NULL: a server */
	hf_time request_timeout; /* --request-timeout, for each request; 0: the store's default */
	char *ns;                /* --namespace, else the context's, else "default" */
	bool all_namespaces;
};

/* Flags of every verb, and those of verbs that talk to a server. */
extern const struct hf_flag hf_cli_global_flags[], hf_cli_server_flags[];
/* Find the verb in cli->tables.  NULL: no verb has this name. */
const struct hf_cli_verb *hf_cli_verb_by_name(const struct hf_cli *cli, const char *name);
/* Make the reader of a command line take the flags of the verb, in its style. */
void hf_cli_choose_flags(const struct hf_cli_verb *verb, struct hf_flags *flags);

/* The verbs of this module, ended by name NULL. */
extern const struct hf_cli_verb *const hf_cli_verbs[];

/* Parse the command line and run the verb.  Returns the exit code.  tables: NULL-terminated list of
 * NULL-terminated tables of verbs. */
int hf_cli_main(struct hf_cli *cli, const struct hf_cli_verb *const *const *tables, int argc,
		const char *const *argv);

/* The value of a flag; "" for a switch; NULL: the flag is absent, or a switch is false.  If a flag is
 * given twice, the last value counts. */
const char *hf_cli_flag(const struct hf_cli *cli, const char *name);
bool hf_cli_has(const struct hf_cli *cli, const char *name);

/* Print "holdfast: TEXT" on stderr.  Returns the exit code for err->code. */
int hf_cli_fail(const struct hf_cli *cli, const struct hf_error *err);
/* Report a wrong command line: prints the text and which --help to read.  Returns HF_EXIT_USAGE. */
int hf_cli_usage(const struct hf_cli *cli, const char *fmt, ...) HF_PRINTF(2, 3);

HF_END_DECLS

#endif
