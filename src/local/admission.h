/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOCAL_ADMISSION_H
#define HF_LOCAL_ADMISSION_H

#include "local/local.h"

/*
 * What an API server defaults and refuses, per kind, as rules of the engine (local.h):
 *
 *   jobs      the CRD's defaults (runPolicy {}, suspend false), types, unknown fields as
 *             fieldValidation asks, and every rule of core and of the kind, with upstream's
 *             texts and one cause per field
 *   pods      the defaults that clients show and the kubelet relies on, and the checks
 *             whose lack would surprise (names, containers, ports, restartPolicy)
 *   services  type, ports, and a clusterIP only where it is "None"
 */
struct hf_framework;
/* frameworks: the kinds to serve, ended by NULL; static. */
void hf_admission_install(struct hf_local *local, const struct hf_framework *const *frameworks);

#endif
