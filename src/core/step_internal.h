/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_STEP_INTERNAL_H
#define HF_CORE_STEP_INTERNAL_H

#include "core/actions/actions_internal.h"
#include "core/step.h"

HF_BEGIN_DECLS

/* The top of core: what step.c calls beside the policies. */

/* apply.c: run all terminations through coverage, incident, budget and verdict; restart what is to be restarted. */
void hf_terminations_apply(struct hf_brain *b);

/* finish.c: the job fails by its verdict; the job succeeds; what a finished job still does. */
void hf_finish_failed(struct hf_brain *b);
void hf_finish_succeeded(struct hf_brain *b, const struct hf_judgement *judgement);
void hf_finish_continue(struct hf_brain *b);

HF_END_DECLS

#endif
