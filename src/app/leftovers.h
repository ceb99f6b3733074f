/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_LEFTOVERS_H
#define HF_APP_LEFTOVERS_H

#include "base/error.h"

/*
 * What a `run` that was killed left behind: its pods are ended and its folder goes.  dir holds
 * one folder a run, named "<job>-<pid>"; those whose process is alive are left alone.
 *
 * Best effort: what cannot be removed now is tried again by the next run.
 */
void hf_leftovers_sweep(const char *dir);

#endif
