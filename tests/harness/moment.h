/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_MOMENT_H
#define HF_TESTS_HARNESS_MOMENT_H

#include "base/arena.h"
#include "core/step.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/*
 * A moment of a job, read from one document: what golden files hold (tests/golden/README.md) and
 * what the step is fuzzed with.  Whatever is missing or of a wrong type is left out, as the
 * operator would.
 */
#define MOMENT_DOCS_MAX 64

struct moment {
	const struct hf_framework *framework; /* NULL: `job` is of no kind there is */
	struct hf_settings settings;
	struct hf_job_view view;
	struct hf_observed seen;
	hf_time now;
	struct hf_doc *docs[MOMENT_DOCS_MAX]; /* what the views were read from */
	size_t docs_len;
};

/* root must outlive the moment; lists come from the arena. */
void moment_read(struct moment *moment, const struct hf_json *root, struct hf_arena *arena);
void moment_release(struct moment *moment);

HF_END_DECLS

#endif
