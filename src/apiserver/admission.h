/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APISERVER_ADMISSION_H
#define HF_APISERVER_ADMISSION_H

#include "memstore/memstore.h"

/*
 * Admission: what an API server defaults and refuses, as rules per kind (struct hf_memstore_rules):
 *
 *   jobs      defaults of the CRD (runPolicy {}, suspend false); types; unknown fields, treated as
 *             fieldValidation asks; every rule of the job kind, with upstream's texts and one
 *             cause per field
 *   pods      defaults that clients show and the kubelet relies on; the rules of api/pod_rules.h
 *             (names, containers, ports, restartPolicy)
 *   services  type and ports; clusterIP may be empty or "None"
 *   config maps and secrets  keys, base64, size, immutable
 *
 * All but jobs are also checked against the field tables of api/schema.h.
 */
struct hf_framework;
/* Installs the rules in local. frameworks: the job kinds to run, ended by NULL; static. Other job
 * kinds are refused. */
void hf_admission_install(struct hf_memstore *memstore,
			  const struct hf_framework *const *frameworks);

#endif
