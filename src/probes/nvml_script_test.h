/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_NVML_SCRIPT_TEST_H
#define HF_PROBES_NVML_SCRIPT_TEST_H

#include "harness/test.h"

#include "base/fs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The script of the tests' double of NVML: a file that says what the library does at each call. */

#define NVML_SCRIPT "/tmp/holdfast-nvml-XXXXXX"

/* Creates an empty script for the children of this process. The caller deletes the file. */
static inline void nvml_script_make(char path[sizeof(NVML_SCRIPT)])
{
	int fd;

	memcpy(path, NVML_SCRIPT, sizeof(NVML_SCRIPT));
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	setenv("HF_NVML_DOUBLE", path, 1);
}

/* Replaces the file atomically: a child may read it at any time. */
static inline void nvml_script_write(const char *path, const char *lines)
{
	struct hf_error err = {0};

	assert_ok(hf_fs_write_atomic(path, lines, strlen(lines), 0600, &err), &err);
}

#endif
