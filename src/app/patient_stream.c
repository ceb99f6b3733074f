/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Streams that wait while the file behind them, which another program made non-blocking, is full. */
#include "app/patient_stream.h"

#include "base/mem.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

struct patient {
	int fd;
	bool failed; /* the file took nothing for the whole time: later writes fail at once */
};

static bool wait_for_room(struct patient *patient)
{
	struct pollfd file = {.fd = patient->fd, .events = POLLOUT};
	int n;

	do
		n = poll(&file, 1, HF_PATIENT_STREAM_WAIT_MS);
	while (n < 0 && errno == EINTR);
	patient->failed = n <= 0;
	errno = EAGAIN;
	return n > 0;
}

/* As fopencookie wants it: returns how many bytes were written; fewer than len: an error. */
static ssize_t write_all(void *cookie, const char *bytes, size_t len)
{
	struct patient *patient = cookie;
	size_t done = 0;

	while (done < len) {
		ssize_t n = patient->failed ? -1 : write(patient->fd, bytes + done, len - done);

		if (n > 0)
			done += (size_t)n;
		else if (patient->failed || (n < 0 && errno != EINTR && errno != EAGAIN))
			break;
		else if (errno != EINTR && !wait_for_room(patient))
			break;
	}
	return (ssize_t)done;
}

static int free_patient(void *cookie)
{
	free(cookie);
	return 0;
}

FILE *hf_patient_stream_open(int fd)
{
	const cookie_io_functions_t functions = {.write = write_all, .close = free_patient};
	struct patient *patient = hf_xcalloc(1, sizeof(*patient));
	FILE *stream;

	patient->fd = fd;
	stream = fopencookie(patient, "w", functions);
	if (stream == NULL)
		free(patient);
	else if (isatty(fd) == 1)
		(void)setvbuf(stream, NULL, _IOLBF, 0);
	return stream;
}
