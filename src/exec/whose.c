/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/whose.h"

#include "base/ascii.h"

#include <stdbool.h>
#include <string.h>

/* ---- forms ------------------------------------------------------------------------------------- */

/* What stands somewhere in a line; '#' is a number. */
static const char *const others[] = {
	/* Ray: a task's exception, and all of those of a training */
	"(pid=#, ip=",
	"Training failed due to worker errors",
	/* torch.distributed.checkpoint: all ranks raise what those that failed have raised */
	"(most recent call last): (RANK #)",
	/* JAX and TensorFlow: what the coordinator tells all tasks */
	"an error from this or another task",
	"another task died",
	"Error reported from /job:",
	/* Spark: a task's exception in its driver */
	"(TID #) (",
	NULL,
};

/* A C++ program's abort, NCCL's log, and the thread of torch that watches it: none is raised in another process. */
static const char *const own[] = {
	"what():  ",
	" NCCL WARN ",
	"watchdog thread terminated with exception: ",
	NULL,
};

/* At the beginning of a line, where a launcher marks whose it is: Hydra (-l), Slurm (--label), Open MPI (--xml),
 * kubectl (--prefix). */
static const char *const marks[] = {"[#] ",      "#: ",   "<stderr ", "<stdout ",
				    "<stddiag ", "[pod/", NULL};

static bool begins(const char *line, size_t len, const char *form)
{
	size_t at = 0;

	for (; *form != '\0'; form++) {
		if (at == len || (*form == '#' ? !hf_ascii_is_digit(line[at]) : line[at] != *form))
			return false;
		for (at++; *form == '#' && at < len && hf_ascii_is_digit(line[at]); at++)
			continue;
	}
	return true;
}

static bool holds_form(const char *line, size_t len, const char *form)
{
	const char *end = line + len;

	while ((line = memmem(line, (size_t)(end - line), form, strcspn(form, "#"))) != NULL) {
		if (begins(line, (size_t)(end - line), form))
			return true;
		line++;
	}
	return false;
}

static bool holds(const char *line, size_t len, const char *const *forms)
{
	for (; *forms != NULL; forms++)
		if (holds_form(line, len, *forms))
			return true;
	return false;
}

/* ---- marks of launchers ------------------------------------------------------------------------ */

/* Words that are no host's though they look like it; an exception's class may end with one. */
static bool is_said_of_errors(const char *word, size_t len)
{
	static const char *const words[] = {"error", "fatal", "panic", "cuda", "hip", "nvml"};
	const char *dot = memrchr(word, '.', len);

	if (dot != NULL) {
		len -= (size_t)(dot + 1 - word);
		word = dot + 1;
	}
	for (size_t i = 0; i < HF_ARRAY_LEN(words); i++)
		if (strlen(words[i]) == len && memcmp(word, words[i], len) == 0)
			return true;
	return false;
}

/* A name of DNS, or an address.  What has capitals is an exception's class, unless it has what no class has: a dash,
 * or a number, which few have. */
static bool is_host(const char *word, size_t len)
{
	bool capital = false, other = false;

	for (size_t i = 0; i < len; i++) {
		char c = word[i];

		if (!hf_ascii_is_alnum(c) && c != '.' && c != '-')
			return false;
		capital |= hf_ascii_is_upper(c);
		other |= hf_ascii_is_digit(c) || c == '-';
	}
	return len > 0 && (other || !capital) && !is_said_of_errors(word, len);
}

static bool is_of_address(const char *word, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((hf_ascii_hex_value(word[i]) < 0 || hf_ascii_is_upper(word[i])) &&
		    word[i] != ':')
			return false;
	return memmem(word, len, "::", 2) != NULL;
}

/* "10.0.0.7: …", as pdsh writes it for DeepSpeed. */
static bool is_behind_host(const char *line, size_t len)
{
	const char *end = memmem(line, len, ": ", 2);

	return end != NULL &&
	       (is_host(line, (size_t)(end - line)) || is_of_address(line, (size_t)(end - line)));
}

/* "(NAME pid=7, ip=10.0.0.2) …", as Ray writes it; of its own host there is no address. */
static bool is_behind_address(const char *line, size_t len)
{
	const char *end = len > 0 && line[0] == '(' ? memchr(line, ')', len) : NULL;

	return end != NULL && memmem(line, (size_t)(end - line), " ip=", 4) != NULL;
}

static bool is_relayed(const char *line, size_t len)
{
	/* "[1,3]<stderr>:…" of Open MPI and Horovod, behind a time too. */
	if (is_behind_host(line, len) || memmem(line, len, "]<std", 5) != NULL)
		return true;
	/* Numbers are made as wide as the longest. */
	for (; len > 0 && line[0] == ' '; line++, len--)
		continue;
	for (size_t i = 0; marks[i] != NULL; i++)
		if (begins(line, len, marks[i]))
			return true;
	return is_behind_address(line, len);
}

/* "[Rank 1, 5]:", a line of its own: what workers of Ray Train raised follows. */
static bool is_heading(const char *line, size_t len)
{
	return begins(line, len, "[Rank #") && memcmp(line + len - 2, "]:", 2) == 0;
}

enum hf_exec_whose hf_exec_whose(const char *line, size_t len)
{
	if (is_relayed(line, len))
		return HF_EXEC_WHOSE_RELAYED;
	if (holds(line, len, others) || is_heading(line, len))
		return HF_EXEC_WHOSE_OTHERS;
	return holds(line, len, own) ? HF_EXEC_WHOSE_OWN : HF_EXEC_WHOSE_UNSAID;
}
