/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/exec_internal.h"

#include "base/fs.h"
#include "base/str.h"
#include "exec/tail.h"
#include "exec/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Writes the termination message of the container: a headline with the exit code and its cause,
 * then the last lines of the program's output.  The kubelet copies the file into the pod's status.
 */

#define HEADLINE_BYTES_MAX 512

/* The first line of the message: "exit code 1, given as 220 (device-fatal): …". */
static size_t format_headline(const struct hf_exec_ending *ending, char *text, size_t size)
{
	const char *name = hf_exec_cause_name((enum hf_exec_cause)ending->given), *colon;
	char why[HEADLINE_BYTES_MAX];
	int n;

	/* The reason may hold control bytes: it may be a line of the program. */
	snprintf(why, sizeof(why), "%s", hf_str_or(ending->why, ""));
	why[hf_exec_text_clean(why, strlen(why))] = '\0';
	colon = why[0] == '\0' ? "" : ": ";
	if (ending->given != ending->code)
		n = snprintf(text, size, "exit code %d, given as %d (%s)%s%s\n", ending->code,
			     ending->given, name, colon, why);
	else
		n = snprintf(text, size, "exit code %d%s%s\n", ending->code, colon, why);
	if (n < (int)size)
		return n > 0 ? (size_t)n : 0;
	/* The reason may name a program whose name is very long; the line is cut where a character begins. */
	for (n = (int)size - 2; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80; n--)
		continue;
	text[n] = '\n';
	return (size_t)n + 1;
}

size_t hf_exec_message_format(const struct hf_exec_ending *ending, char *text, size_t size)
{
	size_t len = format_headline(ending, text,
				     size < HEADLINE_BYTES_MAX ? size : HEADLINE_BYTES_MAX);

	return len + hf_tail_text(ending->tail, text + len, size - len);
}

void hf_exec_message_write(const char *path, bool create, const struct hf_exec_ending *ending)
{
	char text[HF_EXEC_MESSAGE_BYTES_MAX];
	struct stat st;
	size_t len;
	int fd;

	if (hf_str_is_empty(path))
		return;
	fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (create ? O_CREAT : 0),
		  0644);
	if (fd < 0)
		return;
	/* If the program has written a message itself, the program's message stays. */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0) {
		len = hf_exec_message_format(ending, text, sizeof(text));
		(void)hf_fs_write_all(fd, text, len);
	}
	(void)close(fd);
}
