/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_SWEEP_RUNS_H
#define HF_APP_SWEEP_RUNS_H

#include "base/error.h"

#include <stddef.h>

/*
 * End the pods that killed `holdfast run` processes left below base (app/kept_runs.h).  Folders of live
 * processes are skipped.  A swept folder keeps its state and logs; one without run.json is removed.
 * Returns the number of swept runs.
 *
 * Errors are ignored: the next sweep tries again.
 */
size_t hf_sweep_runs(const char *base);

#endif
