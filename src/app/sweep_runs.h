/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_SWEEP_RUNS_H
#define HF_APP_SWEEP_RUNS_H

#include "base/error.h"

#include <stddef.h>

/*
 * Sweep the folders of killed `holdfast run` processes below base (app/kept_runs.h).  Folders of live
 * processes are skipped.  A swept folder keeps its state and logs; one without run.json is removed.
 * Returns the number of swept runs.
 *
 * The pods of a killed run end by themselves: their shims send SIGTERM after 2 seconds, and SIGKILL 10 seconds
 * later.  wait_ms: how long to wait for that before the pods are killed; 0: skip folders whose pods still run.
 *
 * Errors are ignored: the next sweep tries again.
 */
#define HF_SWEEP_WAIT_MS 15000
size_t hf_sweep_runs(const char *base, int wait_ms);

#endif
