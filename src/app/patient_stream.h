/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_PATIENT_STREAM_H
#define HF_APP_PATIENT_STREAM_H

#include <stdio.h>

/*
 * Streams for standard output and standard error.
 *
 * Another program may have made the file behind the descriptor non-blocking: on a terminal, or on a pipe that
 * several programs write, the flag holds for all of them. A stream of the C library drops its buffer when a write
 * then fails with EAGAIN. A stream of this module waits until the file takes bytes again.
 */

/* time for which one write waits for a file that takes no byte; then the stream has failed */
#define HF_PATIENT_STREAM_WAIT_MS 10000

/* Open a stream on fd, which stays the caller's. On a terminal it is line buffered. NULL: no memory. */
FILE *hf_patient_stream_open(int fd);

#endif
