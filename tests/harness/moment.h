/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_MOMENT_H
#define HF_TESTS_HARNESS_MOMENT_H

#include "base/arena.h"
#include "core/step.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/*
 * A job at one moment, with everything that a decision step sees, read from one document: the
 * input of golden files (tests/golden/README.md) and of fuzz_step.c. A field that is missing or of
 * a wrong type is left out, as in the operator.
 */
#define MOMENT_DOCS_MAX 64

struct moment {
	/* the job's kind; NULL: `job` is of an unknown kind */
	const struct hf_framework *framework;
	struct hf_settings settings;
	struct hf_job_view view;
	struct hf_observed seen;
	hf_time now;
	struct hf_doc *docs[MOMENT_DOCS_MAX]; /* what the views were read from */
	size_t docs_len;
};

/* Reads a moment. root must outlive the moment; the lists are in the arena. */
void moment_read(struct moment *moment, const struct hf_json *root, struct hf_arena *arena);
void moment_release(struct moment *moment);

HF_END_DECLS

#endif
