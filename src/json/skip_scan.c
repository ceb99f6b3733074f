/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Finds the end of a JSON string or container, 16 or 64 bytes at a time with SSE2, else byte by
 * byte.
 *
 * Input: the position of the opening quote or bracket; output: the position after the closing one,
 * or NULL.
 */
#include "json/skip_internal.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* p is inside a string. */
static const char *string_tail(const char *p, const char *end, bool *find_escaped)
{
	while (p < end) {
		if (*p == '"')
			return p + 1;
		if (*p == '\\') {
			*find_escaped = true;
			if (++p == end)
				break;
		}
		p++;
	}
	return NULL;
}

/* Scans byte by byte and returns the end of the container. p is outside of strings and inside
 * `depth` brackets, or (depth 0) at the first bracket. */
static const char *container_tail(const char *p, const char *end, size_t depth)
{
	bool find_escaped;

	while (p && p < end) {
		switch (*p) {
		case '"': p = string_tail(p + 1, end, &find_escaped); continue;
		case '{':
		case '[': depth++; break;
		case '}':
		case ']':
			if (--depth == 0)
				return p + 1;
			break;
		}
		p++;
	}
	return NULL;
}

const char *hf_skip_string_end_portable(const char *p, const char *end, bool *find_escaped)
{
	return string_tail(p + 1, end, find_escaped);
}

const char *hf_skip_container_end_portable(const char *p, const char *end)
{
	return container_tail(p, end, 0);
}

#ifdef __SSE2__
/* Every x86-64 machine has SSE2. Wider vectors would gain little, because strings are short. */
const char *hf_skip_string_end(const char *p, const char *end, bool *find_escaped)
{
	const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');

	p++;
	while (end - p >= 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
		unsigned hits = (unsigned)_mm_movemask_epi8(
			_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, backslash)));
		if (hits == 0) {
			p += 16;
			continue;
		}
		p += __builtin_ctz(hits);
		if (*p == '"')
			return p + 1;
		*find_escaped = true;
		if (end - p < 2)
			return NULL;
		p += 2;
	}
	return string_tail(p, end, find_escaped);
}

#define BLOCK 64

struct masks {
	uint64_t quotes, backslashes, opens, closes;
};

/* Makes a mask with one bit for each byte. '[' and '{' differ in one bit, and so do ']' and '}'.
 * With that bit set, two comparisons find all four. */
static inline struct masks make_masks(const char *p)
{
	const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
	const __m128i open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}');
	const __m128i bit = _mm_set1_epi8(0x20);
	struct masks m = {0};

	for (int i = 0; i < BLOCK; i += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
		__m128i folded = _mm_or_si128(v, bit);

#define MASK(a, b) ((uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(a, b)) << i)
		m.quotes |= MASK(v, quote);
		m.backslashes |= MASK(v, backslash);
		m.opens |= MASK(folded, open);
		m.closes |= MASK(folded, close);
#undef MASK
	}
	return m;
}

/* Sets each bit to the parity of the bits up to and including it. */
static inline uint64_t prefix_parity(uint64_t bits)
{
	for (int shift = 1; shift < BLOCK; shift *= 2)
		bits ^= bits << shift;
	return bits;
}

/* Marks the bytes that an odd number of backslashes precedes; they are escaped. A run of
 * backslashes that starts at an odd position is carried by the addition to the position after
 * it, where it inverts the result. *carry says whether the previous block escapes the first
 * byte, and then the same for the next block. */
static inline uint64_t find_escaped(uint64_t backslashes, uint64_t *carry)
{
	const uint64_t even = 0x5555555555555555;
	uint64_t behind, starts, runs;

	if ((backslashes | *carry) == 0)
		return 0;
	backslashes &= ~*carry;
	behind = backslashes << 1 | *carry;
	starts = backslashes & ~even & ~behind;
	*carry = __builtin_add_overflow(starts, backslashes, &runs);
	return (even ^ runs << 1) & behind;
}

/* Counts the brackets of a block that are outside of strings. Returns the position after the
 * last closing bracket, or NULL if it is not in this block. */
static const char *count_brackets(const char *p, const struct masks *m, uint64_t outside,
				  size_t *depth)
{
	for (uint64_t hits = (m->opens | m->closes) & outside; hits; hits &= hits - 1) {
		if (m->opens & hits & -hits)
			++*depth;
		else if (--*depth == 0)
			return p + __builtin_ctzll(hits) + 1;
	}
	return NULL;
}

/* Scans block by block; the number of strings in a block does not matter. */
const char *hf_skip_container_end(const char *p, const char *end)
{
	uint64_t inside = 0, carry = 0; /* all bits are set while inside a string, else none */
	size_t depth = 0;
	bool ignored;

	for (; end - p >= BLOCK; p += BLOCK) {
		struct masks m = make_masks(p);
		uint64_t next = carry, quotes = m.quotes & ~find_escaped(m.backslashes, &next);
		uint64_t strings = prefix_parity(quotes) ^ inside;
		const char *found;

		/* A backslash outside a string is not JSON, and it escapes nothing: stop the
		 * fast scan here. */
		if (m.backslashes & ~strings)
			break;
		found = count_brackets(p, &m, ~strings, &depth);
		if (found)
			return found;
		inside = strings >> (BLOCK - 1) ? ~(uint64_t)0 : 0;
		carry = next;
	}
	p += carry && p < end;
	if (inside)
		p = string_tail(p, end, &ignored);
	return container_tail(p, end, depth);
}
#else
const char *hf_skip_string_end(const char *p, const char *end, bool *find_escaped)
{
	return string_tail(p + 1, end, find_escaped);
}

const char *hf_skip_container_end(const char *p, const char *end)
{
	return container_tail(p, end, 0);
}
#endif
