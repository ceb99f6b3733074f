/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The list of the verbs of this folder. */
#include "cli/verbs_internal.h"

/* The order is that of the list in `holdfast --help`. */
const struct hf_cli_verb *const hf_cli_verbs[] = {
	&hf_verb_get,
	&hf_verb_describe,
	&hf_verb_why,
	&hf_verb_logs,
	&hf_verb_events,
	&hf_verb_wait,
	&hf_verb_suspend,
	&hf_verb_resume,
	&hf_verb_restart,
	&hf_verb_delete,
	&hf_verb_mend,
	&hf_verb_check,
	&hf_verb_lint,
	&hf_verb_manifests,
	&hf_verb_version,
	&hf_verb_completion,
	&hf_verb_complete,
	NULL,
};
