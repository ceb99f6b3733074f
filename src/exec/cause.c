/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/cause.h"

#include "base/ascii.h"

#include <stdint.h>
#include <stdio.h>
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
	/* Numba, DALI, RMM, the samples of CUDA and of cuda-python: before a name */
	"cudaerror: ",
	"call to @ results in ",
	"cuda runtime api error ",
	"cuda driver api error ",
	"cuda error at: @: ",
	"cuda error at @ code=#",
	"cuda error code=#(b'",
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

/* ---- what is said ------------------------------------------------------------------------------ */

struct sentence {
	const char *name; /* as the header has it */
	const char *text; /* as the library prints it; "" */
	int number;
	enum hf_exec_cause cause;
	const char *const *labels;
};

#define LABELS_RUNTIME of_runtime
#define LABELS_DRIVER of_runtime
#define LABELS_HIP of_runtime
#define LABELS_NVML of_nvml
#define LABELS_KERNEL of_kernel

#define ROW(library, number, name, cause, text) {name, text, number, cause, LABELS_##library},
#define ROW_DEVICE_FATAL(library, number, name, text)                                              \
	ROW(library, number, name, HF_EXEC_CAUSE_DEVICE_FATAL, text)
#define ROW_DEVICE_TRANSIENT(library, number, name, text)                                          \
	ROW(library, number, name, HF_EXEC_CAUSE_DEVICE_TRANSIENT, text)
#define ROW_FABRIC(library, number, name, text)                                                    \
	ROW(library, number, name, HF_EXEC_CAUSE_FABRIC, text)
#define ROW_DRIVER(library, number, name, text)                                                    \
	ROW(library, number, name, HF_EXEC_CAUSE_DRIVER, text)
#define ROW_APPLICATION(library, number, name, text)
#define E(library, number, name, class, text, source, why) ROW_##class(library, number, name, text)

/* Those of the errors that name a cause; two rows may share a text. */
static const struct sentence sentences[] = {
#include "exec/errors.def"
};

/* ---- matching ---------------------------------------------------------------------------------- */

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
	return !hf_ascii_is_alnum(before);
}

static bool stands_for(char wildcard, char c)
{
	switch (wildcard) {
	case '#': return hf_ascii_is_digit(c) || c == '(' || c == ')';
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
		return len > 0 && hf_ascii_to_lower(line[len - 1]) == last &&
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
		return !hf_ascii_is_alnum(rest[0]) && rest[0] != '_' && rest[0] != '-';
	for (rest++, len--; n < len && hf_ascii_is_lower(rest[n]); n++)
		continue;
	/* A number, a new sentence, the name of a file. */
	if (n == 0 || (n < len && rest[n] != ' ' && rest[n] != ','))
		return true;
	return is_of_place(rest, n);
}

static bool begins_with(const char *text, size_t len, const char *start)
{
	size_t n;

	if (start[0] == '\0' || len < 2 || text[0] != start[0] || text[1] != start[1])
		return false;
	n = strlen(start);
	return len >= n && memcmp(text, start, n) == 0;
}

/* PyTorch's cudaGetDeviceCount prints the number alone: "Error 802: …". */
static bool is_numbered(const char *line, size_t at, const struct sentence *sentence)
{
	char label[32];
	int n = snprintf(label, sizeof(label), "error %d: ", sentence->number);

	return sentence->labels == of_runtime && is_labelled(line, at, label, (size_t)n);
}

static bool is_said(const char *line, size_t at, const struct sentence *sentence)
{
	for (const char *const *label = sentence->labels; *label != NULL; label++)
		if (is_labelled(line, at, *label, strlen(*label)))
			return true;
	return is_numbered(line, at, sentence);
}

/* The sentence's text begins at from, and the error ends with it. */
static bool is_text(const char *from, size_t len, const struct sentence *sentence)
{
	size_t n = strlen(sentence->text);

	return begins_with(from, len, sentence->text) && is_over(from + n, len - n);
}

/* The sentence's name begins at from; the text of the same error may follow the name. */
static bool is_name(const char *from, size_t len, const struct sentence *sentence)
{
	size_t n = strlen(sentence->name);

	if (!begins_with(from, len, sentence->name))
		return false;
	return is_over(from + n, len - n) ||
	       (from[n] == ' ' && is_text(from + n + 1, len - n - 1, sentence));
}

/* Whether a label may end there: all end with one of these marks, but for those before a name, "results in " and
 * "api error ". */
static bool is_behind_label(const char *line, size_t at)
{
	char last = line[at - 1], before = at > 1 ? line[at - 2] : ' ';

	if (last != ' ')
		return last == '\'' || last == '(';
	return before == ':' || before == ',' || before == 'n' || before == 'r';
}

static uint64_t letter_bit(char c)
{
	return c >= 'A' && c <= 'z' ? 1ULL << (c - 'A') : 0;
}

/* The first letters of all sentences: most words of most lines have another one. */
static uint64_t first_letters(void)
{
	uint64_t letters = 0;

	for (size_t i = 0; i < HF_ARRAY_LEN(sentences); i++)
		letters |= letter_bit(sentences[i].name[0]) | letter_bit(sentences[i].text[0]);
	return letters;
}

static enum hf_exec_cause cause_at(const char *line, size_t len, size_t at)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(sentences); i++) {
		const struct sentence *sentence = &sentences[i];

		if ((is_text(line + at, len - at, sentence) ||
		     is_name(line + at, len - at, sentence)) &&
		    is_said(line, at, sentence))
			return sentence->cause;
	}
	return HF_EXEC_CAUSE_NONE;
}

enum hf_exec_cause hf_exec_cause_of(const char *line, size_t len)
{
	uint64_t letters = 0; /* most lines have no label, and need none */
	enum hf_exec_cause cause = HF_EXEC_CAUSE_NONE;

	for (size_t at = 1; at < len && cause == HF_EXEC_CAUSE_NONE; at++) {
		if (!is_behind_label(line, at))
			continue;
		if (letters == 0)
			letters = first_letters();
		if ((letters & letter_bit(line[at])) != 0)
			cause = cause_at(line, len, at);
	}
	return cause;
}
