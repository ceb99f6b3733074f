/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_LEFTOVERS_H
#define HF_APP_LEFTOVERS_H

#include "base/error.h"

#include <stddef.h>

/*
 * What runs that were killed left behind in the folder of all runs: their pods are ended.  base
 * has a folder "run", and "kept" of those with --keep, each with one folder a run, named
 * "<job>-<pid>"; those whose process is alive are left alone.  Folders in "run" go, logs in
 * "kept" stay.  Returns how many runs there were to end.
 *
 * Best effort: what cannot be ended now is tried again by the next run.
 */
size_t hf_leftovers_sweep(const char *base);
/* A run with --keep has ended by itself: nothing is to be swept in its folder. */
void hf_leftovers_none(const char *path);

#endif
