/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_ROLLOUT_ROLLOUT_H
#define HF_ROLLOUT_ROLLOUT_H

#include "ctl/controller.h"

/* Creates the controller of DeviceRollouts, which runs beside the controller for jobs (ctl/controller.h). It does
 * nothing until it is started. */
struct hf_controller *hf_rollout_create(const struct hf_controller_env *env);

#endif
