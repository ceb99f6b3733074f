/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_ENV_FILE_H
#define HF_APP_ENV_FILE_H

#include "base/error.h"
#include "base/strbuf.h"

/*
 * Reads the text of an --env-file by the rules of docker compose, except that `$` is an ordinary
 * character:
 *
 *     # a comment                 also behind a value without quotes, after a blank
 *     export NAME=value           "export" and blanks around name and value are dropped
 *     NAME='a b'                  as written; the value may have several lines
 *     NAME="a\nb"                 \n, \r, \t, \", \\ and \$ are replaced
 *     NAME                        no value: the caller takes the shell's value
 *
 * Lines end with LF or CRLF. A byte order mark at the beginning is dropped. Pure.
 */
struct hf_env_file {
	const char *at, *end;
	int line; /* number of the line that `at` is in, from 1 */
};

struct hf_env_item {
	int line; /* where the variable begins */
	struct hf_strbuf
		text; /* "NAME=value", or "NAME"; empty: the file has no further variable */
};

/* Begin to read. The text is borrowed until the last call of hf_env_file_next. */
void hf_env_file_begin(struct hf_env_file *file, const char *text, size_t len);
/* Read the next variable into an item whose `text` is initialized. HF_E_INVALID: the variable that begins
 * at item->line is wrong. Names are not checked; an empty name before "=" is given as "=value". */
int hf_env_file_next(struct hf_env_file *file, struct hf_env_item *item, struct hf_error *err)
	HF_MUST_CHECK;

#endif
