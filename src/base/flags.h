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

/* One flag, "--name VALUE" or a switch. The last row of a table has the name NULL. */
struct hf_flag {
	const char *name;  /* without dashes */
	char letter;       /* 0: none */
	const char *value; /* placeholder of the value in help texts; NULL: a switch */
	const char *help;
	const char *fallback; /* the default as help shows it in brackets; NULL: help shows none */
};

enum hf_flags_style {
	/* --name=VALUE, --name VALUE, -n VALUE, -nVALUE, -abc for three switches. Flags may follow
	 * words. */
	HF_FLAGS_MIXED,
	/* As HF_FLAGS_MIXED, but flags end before the first word. The words are a command to
	 * run. */
	HF_FLAGS_COMMAND,
	/* As in Go's flag package: -name means the same as --name. */
	HF_FLAGS_GO,
};

#define HF_FLAGS_TABLES_MAX 3
#define HF_FLAG_NAME_BYTES_MAX 64

struct hf_flags {
	enum hf_flags_style style;
	const struct hf_flag *tables[HF_FLAGS_TABLES_MAX]; /* searched in this order; NULL: none */
	int argc;
	const char *const *argv;
	/* The members from here on belong to hf_flags_next. */
	/* Index of the next word in argv; at the end of HF_FLAGS_COMMAND: of the command's first
	 * word. */
	int at;
	/* Letters of a word like "-abc" that were not read yet; NULL or "": none. */
	const char *letters;
	bool over; /* "--" was read: only words follow */
};

/* One item of the command line: a flag with its value, or a word (then flag is NULL). */
struct hf_flag_item {
	const struct hf_flag *flag;
	/* A word: its text; a flag: its value; a switch: "", or NULL for --name=false. */
	const char *value;
};

/* Reads the next flag or word. Returns 1 if ret_item is set, and 0 at the end of the command line.
 * HF_E_INVALID: the flag is unknown (the text names the most similar flag), or its value is missing
 * or wrong. */
int hf_flags_next(struct hf_flags *flags, struct hf_flag_item *ret_item, struct hf_error *err)
	HF_MUST_CHECK;

/* Finds a flag by its name in one table, which may be NULL. Returns NULL if the table has no flag
 * of that name. */
const struct hf_flag *hf_flag_find(const struct hf_flag *table, const char *name);

/* Adds one line of help: "  -n, --name VALUE   text [fallback]", without a newline. The help texts
 * of all flags of a table begin in the same column. */
void hf_flag_add_help(const struct hf_flag *table, const struct hf_flag *flag,
		      struct hf_strbuf *sb);

/* Finds the most similar of several names, for "did you mean". Start with {.text = text, .len =
 * strlen(text)}, then offer each name. nearest stays NULL if every name differs from the text in
 * more than 3 letters, or in more than half of them. */
struct hf_nearest {
	const char *text;
	size_t len; /* bytes of the text */
	const char *nearest;
	size_t distance; /* edit distance between the text and nearest */
};
void hf_nearest_offer(struct hf_nearest *search, const char *name);

HF_END_DECLS

#endif
