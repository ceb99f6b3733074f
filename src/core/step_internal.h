/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_STEP_INTERNAL_H
#define HF_CORE_STEP_INTERNAL_H

#include "core/actions/actions_internal.h"
#include "core/step.h"

HF_BEGIN_DECLS

/* The top of core: the functions that only step.c calls. */

/* apply.c: decide all terminations of the step: incident, budget, verdict; and restart ranks. */
void hf_terminations_apply(struct hf_brain *b);

/* finish.c: fail the job by its verdict, let the job succeed, clean up afterwards. */
void hf_finish_failed(struct hf_brain *b);
void hf_finish_succeeded(struct hf_brain *b, const struct hf_judgement *judgement);
void hf_finish_continue(struct hf_brain *b);
/* finish.c: what a suspended and a finished job have in common.  Lowers the conditions that only an
 * active job has, handles terminating pods and extra objects, and stages the deletes. */
void hf_inactive_step(struct hf_brain *b, enum hf_life life);

HF_END_DECLS

#endif
