/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/cause.h"

#include <string.h>

const char *hf_exec_cause_name(enum hf_exec_cause cause)
{
	switch (cause) {
	case HF_EXEC_CAUSE_DEVICE_FATAL: return "device-fatal";
	case HF_EXEC_CAUSE_DEVICE_TRANSIENT: return "device-transient";
	case HF_EXEC_CAUSE_FABRIC: return "fabric";
	case HF_EXEC_CAUSE_STRAGGLER: return "straggler";
	case HF_EXEC_CAUSE_DRIVER: return "driver";
	case HF_EXEC_CAUSE_HANG: return "hang";
	case HF_EXEC_CAUSE_NO_CONTACT: return "no-contact";
	default: return "";
	}
}

/* ---- who says it ------------------------------------------------------------------------------- */

/* What stands right before a sentence where it is an error's: as frameworks, tools and the kernel print
 * it, in small letters.  '#' is a number, also in parentheses, '@' a word, '*' anything; none is empty. */
static const char *const of_runtime[] = {
	/* torch, ggml, Paddle, TensorFlow, old torch */
	"cuda error: ",
	"hip error: ",
	"cuda driver error: ",
	"cuda runtime error: ",
	"cuda error #: ",
	"cuda error#, ",
	"cuda error at @: ",
	"cuda runtime error # : ",
	/* the names of the codes: XLA, CuPy, Kokkos */
	"cuda_error_@: ",
	"cudaerror@: ",
	"hip_error_@: ",
	"hiperror@: ",
	/* NCCL and its tests */
	"cuda failure '",
	"cuda failure # '",
	"cuda failure @ '",
	"hip failure '",
	"hip failure # '",
	"hip failure @ '",
	"cuda failure: ",
	/* Triton, TensorRT, MXNet, and a macro that many copy */
	"triton error [cuda]: ",
	"triton error [hip]: ",
	"cuda runtime (",
	"cuda: ",
	"gpuassert: ",
	NULL,
};

static const char *const of_nvml[] = {
	"nvml: ",
	"nvml error: ",
	"nvml error #: ",
	"nvmlerror: ",
	"nvmlerror_@: ",
	"nvml_error_@: ",
	"nvml@ failed: ",
	"unable to determine the device handle for gpu @: ",
	"unable to determine the device handle for gpu@: ",
	"unable to determine the device handle for gpu@: @: ",
	NULL,
};

static const char *const of_kernel[] = {"nvrm: *, ", "nvrm: *: ", NULL};

/* The texts of cudaGetErrorString and hipGetErrorString, and the driver's words in NVML's.  The
 * first that matches counts.  Not among them is what a program built for devices says where it was given
 * none, and then works without: "no CUDA-capable device is detected", "CUDA driver version is
 * insufficient for CUDA runtime version". */
static const struct {
	const char *text;
	enum hf_exec_cause cause;
	const char *const *labels;
	const char *number; /* torch's, of cudaGetDeviceCount; NULL: none */
} table[] = {
	{"uncorrectable NVLink error detected", HF_EXEC_CAUSE_FABRIC, of_runtime, "error 220: "},
	{"uncorrectable ECC error encountered", HF_EXEC_CAUSE_DEVICE_FATAL, of_runtime,
	 "error 214: "},
	{"GPU has fallen off the bus", HF_EXEC_CAUSE_DEVICE_FATAL, of_kernel, NULL},
	{"GPU is lost", HF_EXEC_CAUSE_DEVICE_FATAL, of_nvml, NULL},
	{"CUDA-capable device(s) is/are busy or unavailable", HF_EXEC_CAUSE_DEVICE_TRANSIENT,
	 of_runtime, "error 46: "},
	{"system has unsupported display driver / cuda driver combination", HF_EXEC_CAUSE_DRIVER,
	 of_runtime, "error 803: "},
	{"system not yet initialized", HF_EXEC_CAUSE_DRIVER, of_runtime, "error 802: "},
	{"Driver/library version mismatch", HF_EXEC_CAUSE_DRIVER, of_nvml, NULL},
};

/* ---- matching ---------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_small(char c)
{
	return c >= 'a' && c <= 'z';
}

static char small(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_of_word(char c)
{
	return is_digit(c) || is_small(small(c));
}

static bool ends_with(const char *text, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && memcmp(text + len - n, end, n) == 0;
}

/* A label may begin there.  Behind a quotation mark it is an error only as an exception's text: else it
 * is a program's own list, or its source in a traceback. */
static bool may_begin(const char *line, size_t at)
{
	char before = at > 0 ? line[at - 1] : ' ';

	if (before == '\'' || before == '"')
		return ends_with(line, at - 1, "Error(") || ends_with(line, at - 1, "Exception(");
	return !is_of_word(before);
}

static bool stands_for(char wildcard, char c)
{
	switch (wildcard) {
	case '#': return is_digit(c) || c == '(' || c == ')';
	case '@': return c != ' ';
	default: return true;
	}
}

/* The line's first len bytes end with the label's. */
static bool is_labelled(const char *line, size_t len, const char *label, size_t label_len)
{
	char last;

	if (label_len == 0)
		return may_begin(line, len);
	last = label[--label_len];
	if (strchr("#@*", last) == NULL)
		return len > 0 && small(line[len - 1]) == last &&
		       is_labelled(line, len - 1, label, label_len);
	while (len > 0 && stands_for(last, line[len - 1]))
		if (is_labelled(line, --len, label, label_len))
			return true;
	return false;
}

/* A word that may go before a place. */
static bool is_of_place(const char *word, size_t len)
{
	static const char *const words[] = {"at", "in", "on", "during", "file"};

	for (size_t i = 0; i < HF_ARRAY_LEN(words); i++)
		if (strlen(words[i]) == len && memcmp(word, words[i], len) == 0)
			return true;
	return false;
}

/* The sentence is over: nothing but a place or a remark is behind it, "at FILE", "(code 214)". */
static bool is_over(const char *rest, size_t len)
{
	size_t n = 0;

	if (len == 0)
		return true;
	/* A clause more is a program's own ("…, retrying"). */
	if (len > 1 && rest[0] == ',' && rest[1] == ' ')
		rest++, len--;
	if (rest[0] != ' ')
		return !is_of_word(rest[0]) && rest[0] != '_' && rest[0] != '-';
	for (rest++, len--; n < len && is_small(rest[n]); n++)
		continue;
	/* A number, a new sentence, the name of a file. */
	if (n == 0 || (n < len && rest[n] != ' ' && rest[n] != ','))
		return true;
	return is_of_place(rest, n);
}

static bool is_said(const char *line, size_t at, const char *const *labels, const char *number)
{
	for (; *labels != NULL; labels++)
		if (is_labelled(line, at, *labels, strlen(*labels)))
			return true;
	return number != NULL && is_labelled(line, at, number, strlen(number));
}

/* One row of the table; the words may stand in the line before the sentence does. */
static bool holds(const char *line, size_t len, size_t row)
{
	const char *text = table[row].text, *found = line;
	size_t n = strlen(text);

	while ((found = memmem(found, len - (size_t)(found - line), text, n)) != NULL) {
		size_t at = (size_t)(found - line);

		if (is_over(found + n, len - at - n) &&
		    is_said(line, at, table[row].labels, table[row].number))
			return true;
		found += n;
	}
	return false;
}

enum hf_exec_cause hf_exec_cause_of(const char *line, size_t len)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(table); i++)
		if (holds(line, len, i))
			return table[i].cause;
	return HF_EXEC_CAUSE_NONE;
}
