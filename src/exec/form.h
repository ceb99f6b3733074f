/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_FORM_H
#define HF_EXEC_FORM_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

HF_BEGIN_DECLS

/* The rows of forms.def by kind, and functions that compare a line with the forms of a kind. */
enum hf_exec_form_kind {
	HF_EXEC_FORM_RUNTIME,
	HF_EXEC_FORM_NVML,
	HF_EXEC_FORM_KERNEL,
	HF_EXEC_FORM_CONTAINER,
	HF_EXEC_FORM_VERBS,
	HF_EXEC_FORM_HEAD,
	HF_EXEC_FORM_MILD,
	HF_EXEC_FORM_GRAVE,
	HF_EXEC_FORM_RECOVERED,
	HF_EXEC_FORM_GOES_ON,
	HF_EXEC_FORM_ANOTHERS,
	HF_EXEC_FORM_REPORTED,
	HF_EXEC_FORM_LOG,
	HF_EXEC_FORM_SOURCE,
	HF_EXEC_FORM_OTHERS,
	HF_EXEC_FORM_OWN,
	HF_EXEC_FORM_RELAYED,
	HF_EXEC_FORM_LOCAL,
	HF_EXEC_FORM_NO_HOST,
	HF_EXEC_FORM_KINDS,
};

/* The next form of the kind.  *at is the caller's position, 0 at first.  NULL: there are no more. */
const char *hf_exec_form_next(enum hf_exec_form_kind kind, size_t *at);

/* Whether the line begins with the form, in which '#' stands for a number. */
bool hf_exec_form_begins(const char *line, size_t len, const char *form);
/* Whether one of the forms of this kind is somewhere in the line. */
bool hf_exec_form_any_in(const char *line, size_t len, enum hf_exec_form_kind kind);
/* Whether one of the kind's phrases is somewhere in the line.  Phrases are in small letters and match capitals
 * too; '%' stands for a number. */
bool hf_exec_form_any_phrase_in(const char *line, size_t len, enum hf_exec_form_kind kind);
/* Whether the word is one of the kind's words.  Words are in small letters and match capitals too. */
bool hf_exec_form_is_word(const char *word, size_t len, enum hf_exec_form_kind kind);

/* Whether the word is the form, which is a word in small letters; capitals match too. */
bool hf_exec_form_is_same_word(const char *word, size_t len, const char *form);

HF_END_DECLS

#endif
