/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Formats and parses the lines between `holdfast exec` and the agent (health/process_line.h).
 * Input: bytes of any process that may open the socket.  Invariant: a wrong value or a repeated key voids the line.
 */
#include "health/process_line.h"

#include "base/ascii.h"
#include "base/str.h"
#include "health/pairs_internal.h"

#include <inttypes.h>
#include <string.h>

#define KEY_MAX 24
#define STEP_DIGITS 18 /* any number with this many digits fits 63 bits */
#define SMALL_DIGITS 10

static const char *const phase_names[HF_PROCESS_LINE_PHASES] = {
	[HF_PROCESS_LINE_WAITING] = "waiting",
	[HF_PROCESS_LINE_RUNNING] = "running",
	[HF_PROCESS_LINE_ENDED] = "ended",
	[HF_PROCESS_LINE_DOWN] = "down",
};

static int order_numbers(int64_t left, int64_t right)
{
	return (left > right) - (left < right);
}

int hf_process_start_order(const struct hf_process_start *left,
			   const struct hf_process_start *right)
{
	if (!left->known || !right->known)
		return (int)left->known - (int)right->known;
	if (left->generation != right->generation)
		return order_numbers(left->generation, right->generation);
	return order_numbers(left->attempt, right->attempt);
}

/* ---- values -------------------------------------------------------------------------------------- */

static bool is_over(const struct hf_scan *value)
{
	return hf_scan_left(value) == 0;
}

static bool take_small(struct hf_scan *value, uint64_t max, uint32_t *ret_number)
{
	uint64_t number;

	if (!hf_pairs_take_number(value, SMALL_DIGITS, max, &number))
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

static bool take_counter(struct hf_scan *value, int64_t *ret_number)
{
	uint64_t number;

	if (!hf_pairs_take_number(value, SMALL_DIGITS, HF_PROCESS_COUNTER_MAX, &number))
		return false;
	*ret_number = (int64_t)number;
	return true;
}

static bool take_phase(struct hf_scan *value, enum hf_process_line_phase *ret_phase)
{
	int phase = hf_pairs_find_key(phase_names, HF_PROCESS_LINE_PHASES, value);

	if (phase < 0)
		return false;
	*ret_phase = (enum hf_process_line_phase)phase;
	return true;
}

static bool take_bit(struct hf_scan *value, bool *ret_bit)
{
	uint64_t number;

	if (!hf_pairs_take_number(value, 1, 1, &number))
		return false;
	*ret_bit = number == 1;
	return true;
}

static bool take_cause(struct hf_scan *value, char ret_cause[HF_PROCESS_CAUSE_MAX])
{
	struct hf_scan word;
	size_t len = hf_scan_left(value);

	if (len >= HF_PROCESS_CAUSE_MAX || !hf_scan_word(value, "-", &word) || !is_over(value))
		return false;
	memcpy(ret_cause, word.at, len);
	ret_cause[len] = '\0';
	return true;
}

/* The length of the character at the beginning; 0: the bytes are no character, or a control character. */
static size_t find_character(const char *bytes, size_t len)
{
	size_t n = hf_utf8_sequence(bytes, len);
	unsigned char first = (unsigned char)bytes[0];

	if (n == 1 && (first < ' ' || first == 0x7f))
		return 0;
	/* The characters U+0080 to U+009F are control characters that a terminal may obey. */
	if (n == 2 && first == 0xc2 && (unsigned char)bytes[1] < 0xa0)
		return 0;
	return n;
}

static bool take_words(const struct hf_scan *value, char ret_words[HF_PROCESS_WORDS_MAX])
{
	size_t len = hf_scan_left(value);

	if (len >= HF_PROCESS_WORDS_MAX)
		return false;
	for (size_t at = 0, n; at < len; at += n)
		if ((n = find_character(value->at + at, len - at)) == 0)
			return false;
	memcpy(ret_words, value->at, len);
	ret_words[len] = '\0';
	return true;
}

/* ---- lines --------------------------------------------------------------------------------------- */

/* Takes the value of a key.  False: the value is wrong. */
typedef bool (*take_fn)(void *arg, int key, struct hf_scan *value);

struct reader {
	const char *word; /* the first of the line */
	const char *const *keys;
	int keys_len;
	/* the key with a value up to the end of the line; NULL: no key */
	const char *last;
	take_fn take;
	void *arg;
	uint32_t seen; /* a set of the keys */
};

static bool take_pair(struct reader *r, struct hf_scan *s)
{
	struct hf_scan pair = *s, name;
	int key;

	if (!hf_scan_until(&pair, "=", &name) || is_over(&name) || hf_scan_left(&name) > KEY_MAX ||
	    memchr(name.at, ' ', hf_scan_left(&name)) != NULL)
		return false;
	key = hf_pairs_find_key(r->keys, r->keys_len, &name);
	if (key < 0 || r->last == NULL || !hf_streq(r->keys[key], r->last)) {
		const char *blank = memchr(pair.at, ' ', hf_scan_left(&pair));

		if (blank != NULL)
			pair.end = blank;
	}
	s->at = pair.end;
	if (key < 0)
		return true;
	if ((r->seen & 1u << key) != 0)
		return false;
	r->seen |= 1u << key;
	return r->take(r->arg, key, &pair);
}

static bool read_line(struct reader *r, const char *bytes, size_t len)
{
	struct hf_scan s;

	if (len > 0 && bytes[len - 1] == '\n')
		len--;
	if (len >= HF_PROCESS_LINE_BYTES_MAX || memchr(bytes, '\0', len) != NULL)
		return false;
	s = hf_scan_of(bytes, len);
	if (!hf_scan_text(&s, r->word))
		return false;
	for (int pairs = 0; !is_over(&s); pairs++)
		if (pairs == HF_PROCESS_KEYS_MAX || !hf_scan_char(&s, ' ') || !take_pair(r, &s))
			return false;
	return true;
}

static bool has_key(const struct reader *r, int key)
{
	return (r->seen & 1u << key) != 0;
}

/* ---- state --------------------------------------------------------------------------------------- */

enum {
	S_PHASE,
	S_GENERATION,
	S_ATTEMPT,
	S_ORDINAL,
	S_CODE,
	S_SIGNAL,
	S_ENDED_MS,
	S_CAUSE,
	S_STEP,
	S_SAVED,
	S_SAVE_MS,
	S_WORDS,
	S_KEYS
};

static const char *const state_keys[S_KEYS] = {
	[S_PHASE] = "phase",     [S_GENERATION] = "generation",
	[S_ATTEMPT] = "attempt", [S_ORDINAL] = "ordinal",
	[S_CODE] = "code",       [S_SIGNAL] = "signal",
	[S_CAUSE] = "cause",     [S_ENDED_MS] = "ended_ms",
	[S_STEP] = "step",       [S_SAVED] = "saved",
	[S_SAVE_MS] = "save_ms", [S_WORDS] = "words",
};

static bool take_state_value(void *arg, int key, struct hf_scan *value)
{
	struct hf_process_state *state = arg;

	switch (key) {
	case S_PHASE: return take_phase(value, &state->phase);
	case S_GENERATION: return take_counter(value, &state->start.generation);
	case S_ATTEMPT: return take_counter(value, &state->start.attempt);
	case S_ORDINAL: return take_small(value, HF_PROCESS_COUNTER_MAX, &state->ordinal);
	case S_CODE: return take_small(value, HF_PROCESS_CODE_MAX, &state->code);
	case S_SIGNAL: return take_small(value, HF_PROCESS_SIGNAL_MAX, &state->signal);
	case S_ENDED_MS: return take_small(value, HF_PROCESS_ENDED_MS_MAX, &state->ended_ms);
	case S_CAUSE: return take_cause(value, state->cause);
	case S_STEP:
		state->has_step = true;
		return hf_pairs_take_number(value, STEP_DIGITS, UINT64_MAX, &state->step);
	case S_SAVED:
		state->has_saved = true;
		return hf_pairs_take_number(value, STEP_DIGITS, UINT64_MAX, &state->saved);
	case S_SAVE_MS: return take_small(value, HF_PROCESS_SPAN_MAX * 1000, &state->save_ms);
	default: return take_words(value, state->words);
	}
}

bool hf_process_state_parse(const char *bytes, size_t len, struct hf_process_state *ret_state)
{
	struct hf_process_state state = {.phase = HF_PROCESS_LINE_WAITING};
	struct reader r = {.word = "state",
			   .keys = state_keys,
			   .keys_len = S_KEYS,
			   .last = "words",
			   .take = take_state_value,
			   .arg = &state};

	if (!read_line(&r, bytes, len) || !has_key(&r, S_PHASE) ||
	    has_key(&r, S_GENERATION) != has_key(&r, S_ATTEMPT) ||
	    (state.phase != HF_PROCESS_LINE_WAITING && state.ordinal == 0))
		return false;
	state.start.known = has_key(&r, S_GENERATION);
	*ret_state = state;
	return true;
}

/* ---- note ---------------------------------------------------------------------------------------- */

static bool take_note_value(void *arg, int key HF_UNUSED, struct hf_scan *value)
{
	return take_words(value, arg);
}

bool hf_process_note_parse(const char *bytes, size_t len, char ret_words[HF_PROCESS_WORDS_MAX])
{
	static const char *const keys[] = {"words"};
	char words[HF_PROCESS_WORDS_MAX] = "";
	struct reader r = {.word = "note",
			   .keys = keys,
			   .keys_len = 1,
			   .last = "words",
			   .take = take_note_value,
			   .arg = words};

	if (!read_line(&r, bytes, len) || words[0] == '\0')
		return false;
	memcpy(ret_words, words, sizeof(words));
	return true;
}

/* ---- target -------------------------------------------------------------------------------------- */

enum {
	T_GENERATION,
	T_ATTEMPT,
	T_HOLD,
	T_WAIT,
	T_GRACE,
	T_SAVE,
	T_FIRST_GENERATION,
	T_FIRST_ATTEMPT,
	T_RENDEZVOUS,
	T_KEYS
};

static const char *const target_keys[T_KEYS] = {
	[T_GENERATION] = "generation",
	[T_ATTEMPT] = "attempt",
	[T_HOLD] = "hold",
	[T_WAIT] = "wait",
	[T_GRACE] = "grace",
	[T_SAVE] = "save",
	[T_FIRST_GENERATION] = "first_generation",
	[T_FIRST_ATTEMPT] = "first_attempt",
	[T_RENDEZVOUS] = "rendezvous",
};

static bool take_target_value(void *arg, int key, struct hf_scan *value)
{
	struct hf_process_target *target = arg;

	switch (key) {
	case T_GENERATION: return take_counter(value, &target->start.generation);
	case T_ATTEMPT: return take_counter(value, &target->start.attempt);
	case T_HOLD: return take_bit(value, &target->hold);
	case T_WAIT: return take_small(value, HF_PROCESS_SPAN_MAX, &target->wait_s);
	case T_GRACE: return take_small(value, HF_PROCESS_SPAN_MAX, &target->grace_s);
	case T_SAVE: return take_small(value, HF_PROCESS_SPAN_MAX, &target->save_s);
	case T_FIRST_GENERATION: return take_counter(value, &target->first.generation);
	case T_FIRST_ATTEMPT: return take_counter(value, &target->first.attempt);
	default: return take_counter(value, &target->rendezvous);
	}
}

bool hf_process_target_parse(const char *bytes, size_t len, struct hf_process_target *ret_target)
{
	struct hf_process_target target = {.hold = false};
	struct reader r = {.word = "target",
			   .keys = target_keys,
			   .keys_len = T_KEYS,
			   .take = take_target_value,
			   .arg = &target};

	if (!read_line(&r, bytes, len) || has_key(&r, T_GENERATION) != has_key(&r, T_ATTEMPT) ||
	    has_key(&r, T_FIRST_GENERATION) != has_key(&r, T_FIRST_ATTEMPT))
		return false;
	target.start.known = has_key(&r, T_GENERATION);
	target.first.known = has_key(&r, T_FIRST_GENERATION);
	*ret_target = target;
	return true;
}

/* ---- writing ------------------------------------------------------------------------------------- */

static void add_number(struct hf_pairs *line, const char *key, uint64_t number)
{
	if (number > 0)
		hf_pairs_add(line, " %s=%" PRIu64, key, number);
}

size_t hf_process_state_format(const struct hf_process_state *state, char *ret_text)
{
	struct hf_pairs line = {.text = ret_text, .size = HF_PROCESS_LINE_BYTES_MAX};

	hf_pairs_add(&line, "state phase=%s", phase_names[state->phase]);
	if (state->start.known)
		hf_pairs_add(&line, " generation=%" PRId64 " attempt=%" PRId64,
			     state->start.generation, state->start.attempt);
	add_number(&line, "ordinal", state->ordinal);
	add_number(&line, "code", state->code);
	add_number(&line, "signal", state->signal);
	add_number(&line, "ended_ms", state->ended_ms);
	if (state->cause[0] != '\0')
		hf_pairs_add(&line, " cause=%s", state->cause);
	if (state->has_step)
		hf_pairs_add(&line, " step=%" PRIu64, state->step);
	if (state->has_saved)
		hf_pairs_add(&line, " saved=%" PRIu64, state->saved);
	add_number(&line, "save_ms", state->save_ms);
	if (state->words[0] != '\0')
		hf_pairs_add(&line, " words=%s", state->words);
	return line.len;
}

size_t hf_process_note_format(const char *words, char *ret_text)
{
	struct hf_pairs line = {.text = ret_text, .size = HF_PROCESS_LINE_BYTES_MAX};
	char clean[HF_PROCESS_WORDS_MAX];

	hf_process_words(words, strlen(words), clean);
	hf_pairs_add(&line, "note words=%s", clean);
	return line.len;
}

size_t hf_process_target_format(const struct hf_process_target *target, char *ret_text)
{
	struct hf_pairs line = {.text = ret_text, .size = HF_PROCESS_LINE_BYTES_MAX};

	hf_pairs_add(&line, "target");
	if (target->start.known)
		hf_pairs_add(&line, " generation=%" PRId64 " attempt=%" PRId64,
			     target->start.generation, target->start.attempt);
	add_number(&line, "hold", target->hold ? 1 : 0);
	add_number(&line, "wait", target->wait_s);
	add_number(&line, "grace", target->grace_s);
	add_number(&line, "save", target->save_s);
	if (target->first.known)
		hf_pairs_add(&line, " first_generation=%" PRId64 " first_attempt=%" PRId64,
			     target->first.generation, target->first.attempt);
	add_number(&line, "rendezvous", (uint64_t)target->rendezvous);
	return line.len;
}

void hf_process_words(const char *text, size_t len, char ret_words[HF_PROCESS_WORDS_MAX])
{
	size_t out = 0;

	for (size_t at = 0; at < len;) {
		size_t n = find_character(text + at, len - at);

		if (n == 0) {
			size_t bad = hf_utf8_sequence(text + at, len - at);

			if (out + 1 >= HF_PROCESS_WORDS_MAX)
				break;
			ret_words[out++] = ' ';
			at += bad > 0 ? bad : 1;
			continue;
		}
		if (out + n >= HF_PROCESS_WORDS_MAX)
			break;
		memcpy(ret_words + out, text + at, n);
		out += n;
		at += n;
	}
	while (out > 0 && ret_words[out - 1] == ' ')
		out--;
	ret_words[out] = '\0';
}
