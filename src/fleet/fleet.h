/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_FLEET_FLEET_H
#define HF_FLEET_FLEET_H

#include "ctl/controller.h"

/*
 * The fleet's controller: quarantines nodes whose devices fail, releases them, and evicts pods, as
 * HealthPolicy objects allow. If the cluster has no HealthPolicy, it sends one watch of that kind;
 * if the kind is unknown, one list every half minute.
 *
 * The result belongs to the caller, who destroys it by its ops.
 */
struct hf_controller *hf_fleet_create(const struct hf_controller_env *env);

#endif
