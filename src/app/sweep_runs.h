/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_SWEEP_RUNS_H
#define HF_APP_SWEEP_RUNS_H

#include "base/error.h"

#include <stddef.h>

/*
 * End the pods that killed `holdfast run` processes left.  base has the folders "run" and "kept" (for
 * --keep).  Each has one folder for each run, named "<job>-<pid>".  Folders of live processes are
 * skipped.  Swept folders in "run" are removed; those in "kept" stay, with their logs.  Returns the
 * number of swept runs.
 *
 * Errors are ignored: the next sweep tries again.
 */
size_t hf_sweep_runs(const char *base);
/* Mark the folder of a --keep run that has ended by itself: a sweep skips it. */
void hf_sweep_runs_skip(const char *path);

#endif
