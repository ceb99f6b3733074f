/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_EXPLAIN_H
#define HF_CLI_EXPLAIN_H

#include "base/arena.h"
#include "cli/cli.h"
#include "core/step.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/* An annotation of pods in a kept run that were deleted during the run: they are kept for their logs, and the
 * job's state does not include them. */
#define HF_CLI_GONE_ANNOTATION "holdfast.dev/gone"

/* The operator's next step for a job, computed from the objects that the server has now. */
struct hf_explanation {
	struct hf_arena *arena;
	/* the objects read from the server; the texts of the plan point into them */
	struct hf_doc **docs;
	size_t n_docs;
	struct hf_plan plan;
};
int hf_cli_explain(struct hf_cli *cli, const struct hf_framework *framework, struct hf_doc *job,
		   struct hf_explanation *ret_explanation, struct hf_error *err) HF_MUST_CHECK;
void hf_explanation_release(struct hf_explanation *explanation);
#define HF_AUTO_EXPLANATION HF_CLEANUP(hf_explanation_release) struct hf_explanation

/* What `why` and `describe` say of a kept run that ended before its job: "was interrupted by SIGTERM 5s after its start,
 * when its state was Running". NULL: the run is none, or goes on. The caller frees the text. */
char *hf_cli_kept_end(const struct hf_cli *cli, struct hf_doc *job);

HF_END_DECLS

#endif
