/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/golden.h"
#include "harness/moment.h"
#include "harness/plan_text.h"
#include "harness/test.h"

#include "api/job.h"

/* The job brain's golden files: see README.md for what is in one. */

#define ARENA_BYTES ((size_t)256 << 20)

enum { PLAN, ERRORS };
static const char *const sections[] = {[PLAN] = "plan:\n", [ERRORS] = "errors:\n", NULL};

static void actual_plan(const struct golden_file *file, struct hf_arena *arena,
			struct hf_strbuf *sb)
{
	struct hf_error err = {0};
	struct moment moment;
	struct hf_plan plan;

	moment_read(&moment, file->root, arena);
	assert_non_null(moment.framework);
	assert_ok(hf_job_step(&moment.view, &moment.seen, moment.now, arena, &plan, &err), &err);
	hf_plan_render(&plan, moment.framework, sb);
	moment_release(&moment);
}

static void actual_errors(const struct golden_file *file, struct hf_arena *arena,
			  struct hf_strbuf *sb)
{
	const struct hf_json *old = hf_json_get(file->root, "old");
	HF_AUTO_DOC old_doc = old ? hf_doc_from_json(hf_json_copy(old)) : NULL;
	struct hf_field_errors errors;
	struct hf_job_view old_view;
	struct moment moment;

	hf_field_errors_init(&errors, arena);
	moment_read(&moment, file->root, arena);
	assert_non_null(moment.framework);
	if (old_doc)
		hf_job_read(old_doc, moment.framework, NULL, arena, NULL, &old_view);
	hf_job_validate(&moment.view, old_doc ? &old_view : NULL, &errors);
	for (size_t i = 0; i < errors.len; i++) {
		struct hf_strbuf line = HF_STRBUF_INIT(GOLDEN_TEXT_MAX);

		hf_field_error_write(&errors.items[i], &line);
		hf_strbuf_addf(sb, "- %s\n", hf_field_quote(&errors, line.data));
		hf_strbuf_release(&line);
	}
	for (size_t i = 0; i < errors.warnings_len; i++)
		hf_strbuf_addf(sb, "- \"warning: %s\"\n", errors.warnings[i]);
	moment_release(&moment);
}

static void actual(const struct golden_file *file, struct hf_strbuf *sb)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);

	(file->section == ERRORS ? actual_errors : actual_plan)(file, arena, sb);
}

int main(int argc, char **argv)
{
	static const struct golden_kind kind = {
		.name = "golden", .sections = sections, .actual = actual};

	return golden_main(argc, argv, &kind);
}
