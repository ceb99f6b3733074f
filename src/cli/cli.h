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
	/* no server is named or reached, or the server rejects the credentials */
	HF_EXIT_UNREACHABLE = 3,
	HF_EXIT_TIMEOUT = 124,
	HF_EXIT_INTERNAL = 125, /* Holdfast itself failed */
	HF_EXIT_INTERRUPTED = 130,
};

#define HF_CLI_ARGS_MAX 4096 /* words of a command line */
#define HF_CLI_FLAGS_MAX 64  /* flags given on one command line */

/* The groups of verbs, in the order of `holdfast --help`. */
enum hf_cli_group {
	HF_CLI_RUN_HERE,
	HF_CLI_LOOK,
	HF_CLI_ACT,
	HF_CLI_ON_CLUSTER,
	HF_CLI_GROUPS,
};

/* What the arguments of a verb are, so that a shell can complete them. */
enum hf_cli_words {
	HF_CLI_WORDS_NONE,
	HF_CLI_WORDS_FILES,
	HF_CLI_WORDS_JOBS,
	HF_CLI_WORDS_NODES, /* jobs, nodes as node/NAME, DeviceRollouts as rollout/NAME */
	HF_CLI_WORDS_ACTS,  /* jobs, Remediations as remediation/NAME, DeviceRollouts */
	HF_CLI_WORDS_MEND,  /* names of nodes */
	HF_CLI_WORDS_RUNS,  /* kept runs alone */
	/* the first argument is a kind, the others are names of objects of the kind */
	HF_CLI_WORDS_KINDS,
	HF_CLI_WORDS_SHELLS,
	HF_CLI_WORDS_CHECK, /* the word "migrate" */
};

/* The note in the help of verbs that take a JOB. */
#define HF_CLI_NOTE_JOB "JOB is NAME, KIND/NAME or @latest, the newest job."
/* The note in the help of verbs that take a JOB and can also read kept runs. */
#define HF_CLI_NOTE_RUN                                                                            \
	HF_CLI_NOTE_JOB                                                                            \
	"\nWithout a server, JOB is a run that 'holdfast run' kept. @1 is always the newest of these, @2 the one before."

struct hf_cli;
struct hf_kept_store; /* app/kept_store.h */
struct hf_manifest;   /* cli/job_manifest.h */

/* Called for a field of a manifest that this machine refuses (refused true) or ignores. text: why,
 * as a sentence. */
typedef void (*hf_finding_fn)(void *arg, bool refused, const char *field, const char *text);

/* A flag of another program that users of the verb may try, and what to do instead. */
struct hf_cli_foreign {
	const char *flag;   /* without dashes; "_" is written as "-" */
	const char *advice; /* follows "unknown flag '--FLAG': " */
};

struct hf_cli_verb {
	const char *name;
	const char *summary; /* one line about the verb, for the list in `holdfast --help` */
	const char *usage; /* the words behind "holdfast VERB" in the help, such as "JOB [--all]" */
	enum hf_cli_group group;
	const char *examples; /* three lines of commands, shown first by --help */
	/* a sentence about the arguments, which --help prints behind the usage; NULL: none */
	const char *note;
	/* the verb's own flags, in addition to the global flags; NULL: none */
	const struct hf_flag *flags;
	/* ends with a row of NULL; NULL: none */
	const struct hf_cli_foreign *foreign;
	/* the smallest and largest number of arguments (words that are not flags); args_max -1: no
	 * limit */
	int args_min, args_max;
	enum hf_cli_words words;
	bool hidden; /* the list of verbs in `holdfast --help` leaves the verb out */
	enum hf_flags_style style;
	/* the verb's one argument may be two words, a kind and a name, as in "why pytorchjob
	 * ddp" */
	bool takes_kind;
	bool reads_kept; /* the verb's first argument may name a run that `holdfast run` kept */
	bool connects;   /* the verb talks to a server: store and ns are set before it runs */
	/* True if the argument `word` begins a program, so that all words behind it are the
	 * program's. NULL: never. literal: "--" stands before `word`. */
	bool (*takes_rest)(const struct hf_cli *cli, const char *word, bool literal);
	/* Runs the verb: prints the result or the error, and returns the exit code. */
	int (*run)(struct hf_cli *cli);
};

struct hf_cli {
	/* name of the program in texts: "holdfast", or "kubectl holdfast" as kubectl's plugin */
	const char *program;
	const struct hf_cli_verb *verb;
	const char **args; /* the words that are not flags */
	int n_args;
	bool literal; /* "--" stands before the first argument */
	char *joined; /* memory for an argument that was two words (takes_kind): "KIND/NAME" */
	struct hf_flag_item flags[HF_CLI_FLAGS_MAX];
	size_t n_flags;

	FILE *out, *err;
	int out_fd; /* the descriptor behind `out`; 0: that of the stream */
	bool tty;   /* `out` is a terminal that understands control sequences */
	/* colour is allowed: tty is true, and neither NO_COLOR, --color=never nor TERM=dumb
	 * forbids it */
	bool color;
	bool utf8; /* the locale's encoding */
	int width; /* columns of the terminal; 0: unlimited */

	/* Set by main. Connects the verb to its server: creates cli->loop and the store at the
	 * first call. */
	int (*connect)(struct hf_cli *cli, struct hf_store **ret_store, struct hf_error *err);
	/* Set by main. Reports what keeps a job from running on this machine, for `run` and `lint
	 * --local`. */
	void (*check_here)(const struct hf_cli *cli, const struct hf_manifest *job,
			   hf_finding_fn found, void *arg);
	/* Set by main. Calls fn for each kept run of this machine, with its name and a
	 * description. */
	void (*each_run)(void (*fn)(void *arg, const char *name, const char *description),
			 void *arg);
	/* Set by main: true if this program can start itself as a helper, which looks for GPUs and
	 * tries namespaces. Tests leave it false: then no GPU is found, and namespaces count as
	 * allowed. */
	bool starts_helpers;
	const struct hf_cli_verb *const *const *tables; /* of hf_cli_main */
	struct hf_loop *loop;
	/* the store of the server, from connect; NULL for verbs that use no server */
	struct hf_store *store;
	/* the kept run that `store` serves; NULL: `store` is a server's */
	struct hf_kept_store *kept;
	/* the argument names a kept run (@2), so an error of connect is not about a server */
	bool asked_kept;
	/* The kept run has ended, so nothing comes next for its job. */
	bool kept_over;
	/* what ended the kept run before the end of its job, and its state in `runs`: "was interrupted by SIGTERM",
	 * "Interrupted"; NULL: nothing did */
	char *kept_end, *kept_state;
	hf_time kept_started, kept_ended; /* HF_TIME_NONE: unknown */
	char *kept_id;                    /* the name of its folder */
	/* facts about the kept run that its objects do not have, one a line; NULL: none */
	char *kept_notes;
	/* time limit of each request (--request-timeout); 0: the store's default */
	hf_time request_timeout;
	char *ns; /* --namespace, else the context's, else "default" */
	bool all_namespaces;
};

/* The flags of every verb, and the flags of every verb that talks to a server. */
extern const struct hf_flag hf_cli_global_flags[], hf_cli_server_flags[];
/* Find the verb in cli->tables.  NULL: no verb has this name. */
const struct hf_cli_verb *hf_cli_verb_by_name(const struct hf_cli *cli, const char *name);
/* Make the reader `flags` accept the flags of the verb, in the verb's style. */
void hf_cli_choose_flags(const struct hf_cli_verb *verb, struct hf_flags *flags);

/* The verbs of src/cli; the last entry is NULL. */
extern const struct hf_cli_verb *const hf_cli_verbs[];

/* Parse the command line and run the verb.  Returns the exit code.  tables: NULL-terminated list of
 * NULL-terminated tables of verbs. */
int hf_cli_main(struct hf_cli *cli, const struct hf_cli_verb *const *const *tables, int argc,
		const char *const *argv);

/* Return the value of a flag; "" for a switch. NULL: the flag is absent, or it is a switch set to
 * false. If a flag is given twice, the last value counts. */
const char *hf_cli_flag(const struct hf_cli *cli, const char *name);
bool hf_cli_has(const struct hf_cli *cli, const char *name);

/* The descriptor behind cli->out; -1: the stream has none. */
int hf_cli_out_fd(const struct hf_cli *cli);
/* Print on stderr that the output could not be written, and why that is likely. */
void hf_cli_print_lost(const struct hf_cli *cli);
/* Print kept_notes on `out`, if there are any. */
void hf_cli_print_kept_notes(const struct hf_cli *cli);
/* Print "holdfast: TEXT" on stderr.  Returns the exit code for err->code. */
int hf_cli_fail(const struct hf_cli *cli, const struct hf_error *err);
/* Report a wrong command line: prints the text and which --help to read.  Returns HF_EXIT_USAGE. */
int hf_cli_usage(const struct hf_cli *cli, const char *fmt, ...) HF_PRINTF(2, 3);

HF_END_DECLS

#endif
