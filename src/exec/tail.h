/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_TAIL_H
#define HF_EXEC_TAIL_H

#include "base/compiler.h"
#include "exec/cause.h"

#include <stdbool.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * The last bytes of a stream, and the cause of a failure that its lines name.  It keeps as many bytes as a
 * termination message may have.
 */
#define HF_TAIL_BYTES_MAX 4096
/* How many bytes at the beginning of a line are searched for an error. */
#define HF_TAIL_LINE_BYTES_MAX 1024
/* How long lines may be another rank's after the first line of another rank's exception: the time to print the
 * exceptions around it too. */
#define HF_TAIL_OTHERS_SECONDS 60

/* The number of causes that a line may name. */
#define HF_TAIL_CAUSES 4

/* The last line that names a certain cause. */
struct hf_tail_named {
	char line[256]; /* "": no line does */
	int64_t at_s;
};

struct hf_tail {
	char ring[HF_TAIL_BYTES_MAX];
	uint64_t total; /* bytes of the stream */
	char line[HF_TAIL_LINE_BYTES_MAX];
	size_t line_len;
	struct hf_tail_named named[HF_TAIL_CAUSES]; /* the gravest cause first */
	bool headed;            /* the previous line may be the first of an error of two lines */
	int64_t others_until_s; /* until this time lines may be of another rank */
};

void hf_tail_add(struct hf_tail *tail, const char *bytes, size_t len, int64_t now_s);
/* Call it at the end of the stream: a last line without a line feed counts too. */
void hf_tail_end(struct hf_tail *tail, int64_t now_s);
/* The gravest cause that a line has named since since_s: one broken device makes peers print milder errors, before
 * or after its own error. */
enum hf_exec_cause hf_tail_cause(const struct hf_tail *tail, int64_t since_s);
/* The last line that names the gravest cause since since_s; "": no line names a cause. */
const char *hf_tail_cause_line(const struct hf_tail *tail, int64_t since_s);
/* The last bytes, at most size, as text (exec/text.h).  The text begins with a whole line if there is one, else
 * with a whole character.  Adds no NUL; returns the length. */
size_t hf_tail_text(const struct hf_tail *tail, char *ret_text, size_t size);

HF_END_DECLS

#endif
