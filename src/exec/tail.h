/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_TAIL_H
#define HF_EXEC_TAIL_H

#include "base/compiler.h"
#include "exec/cause.h"

#include <stdint.h>

HF_BEGIN_DECLS

/*
 * The last bytes of a stream, and the cause that its lines name.  As large as the termination
 * message can be, in the object itself.
 */
#define HF_TAIL_BYTES_MAX 4096
/* A sentence further back in one line is not looked for. */
#define HF_TAIL_LINE_BYTES_MAX 1024
/* Another rank's exception, and what it is wrapped in, is printed by then, also to a reader that is slow. */
#define HF_TAIL_OTHERS_SECONDS 60

struct hf_tail {
	char ring[HF_TAIL_BYTES_MAX];
	uint64_t total; /* bytes that came */
	char line[HF_TAIL_LINE_BYTES_MAX];
	size_t line_len;
	enum hf_exec_cause cause;
	char cause_line[256];
	int64_t cause_at_s;
	int64_t others_until_s; /* what is said before then may be another rank's words */
};

void hf_tail_add(struct hf_tail *tail, const char *bytes, size_t len, int64_t now_s);
/* The stream has ended: a line without its end counts too. */
void hf_tail_end(struct hf_tail *tail, int64_t now_s);
/* What was named last, if not before that. */
enum hf_exec_cause hf_tail_cause(const struct hf_tail *tail, int64_t since_s);
/* As many of the last bytes as fit size, beginning with a line where one does, and with a whole
 * character in any case, as text (exec/text.h).  No NUL is added; returns the length. */
size_t hf_tail_text(const struct hf_tail *tail, char *ret_text, size_t size);

HF_END_DECLS

#endif
