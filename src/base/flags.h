/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_FLAGS_H
#define HF_BASE_FLAGS_H

#include "base/compiler.h"
#include "base/error.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

HF_BEGIN_DECLS

/*
 * Reads a command line by tables of flags. Parsing, error texts and help come from the same rows.
 * A reader allocates nothing; the values that it returns point into argv.
 */

/* One flag, "--name VALUE" or a switch.  A table ends with name NULL. */
struct hf_flag {
	const char *name;  /* without dashes */
	char letter;       /* 0: none */
	const char *value; /* placeholder of the value in help texts; NULL: a switch */
	const char *help;
	const char *
		fallback; /* what counts without the flag, shown in brackets; NULL: nothing to show */
};

enum hf_flags_style {
	/* --name=VALUE, --name VALUE, -n VALUE, -nVALUE, -abc for three switches.  Flags and words mix. */
	HF_FLAGS_MIXED,
	/* The same, but the flags end before the first word: the words are the command to run. */
	HF_FLAGS_COMMAND,
	/* As in Go's flag package: -name is --name. */
	HF_FLAGS_GO,
};

#define HF_FLAGS_TABLES_MAX 3
#define HF_FLAG_NAME_BYTES_MAX 64

struct hf_flags {
	enum hf_flags_style style;
	const struct hf_flag *tables[HF_FLAGS_TABLES_MAX]; /* searched in this order; NULL: none */
	int argc;
	const char *const *argv;
	/* The rest is the reader's own. */
	int at; /* the next word; after the end of HF_FLAGS_COMMAND: the command's first */
	const char *letters; /* the rest of "-abc"; NULL or "": none */
	bool over;           /* "--" was read: only words follow */
};

/* A flag, or a word (flag NULL). */
struct hf_flag_item {
	const struct hf_flag *flag;
	const char *value; /* the word or the flag's value; a switch: "", or NULL if --name=false */
};

/* Read the next flag or word.  1: ret_item is set.  0: the command line is over.  HF_E_INVALID: the
 * flag is unknown (the text has the nearest name), or its value is missing or wrong. */
int hf_flags_next(struct hf_flags *flags, struct hf_flag_item *ret_item, struct hf_error *err)
	HF_MUST_CHECK;

/* Find a flag by its name in one table.  The table may be NULL.  Returns NULL if the table has no flag
 * of that name. */
const struct hf_flag *hf_flag_find(const struct hf_flag *table, const char *name);

/* Add one line of help: "  -n, --name VALUE   text [fallback]", without a newline.  The text begins
 * in the same column for all flags of the table. */
void hf_flag_add_help(const struct hf_flag *table, const struct hf_flag *flag,
		      struct hf_strbuf *sb);

/* Finds the nearest of the names that are offered, for "did you mean".  Begins with {.len = strlen(text)}
 * and the text; nearest stays NULL if every name differs in more than 3 letters, or in half of them. */
struct hf_nearest {
	const char *text;
	size_t len; /* bytes of the text */
	const char *nearest;
	size_t distance; /* of nearest */
};
void hf_nearest_offer(struct hf_nearest *search, const char *name);

HF_END_DECLS

#endif
