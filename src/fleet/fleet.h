/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_FLEET_FLEET_H
#define HF_FLEET_FLEET_H

#include "ctl/controller.h"

/*
 * The fleet's controller. It quarantines nodes with failed devices, releases healthy ones, and
 * evicts pods, as HealthPolicy objects allow. A cluster without a HealthPolicy costs one watch of
 * that kind, or one list every half minute if the kind is unknown.
 * The caller owns the result and destroys it by its ops.
 */
struct hf_controller *hf_fleet_create(const struct hf_controller_env *env);

#endif
