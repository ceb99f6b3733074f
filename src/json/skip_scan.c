/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "json/skip_internal.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* p is inside a string. */
static const char *string_tail(const char *p, const char *end, bool *escaped)
{
	while (p < end) {
		if (*p == '"')
			return p + 1;
		if (*p == '\\') {
			*escaped = true;
			if (++p == end)
				break;
		}
		p++;
	}
	return NULL;
}

/* p is outside of strings, inside `depth` brackets (or at the first one). */
static const char *container_tail(const char *p, const char *end, size_t depth)
{
	bool escaped;

	while (p && p < end) {
		switch (*p) {
		case '"': p = string_tail(p + 1, end, &escaped); continue;
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

const char *hf_skip_string_end_portable(const char *p, const char *end, bool *escaped)
{
	return string_tail(p + 1, end, escaped);
}

const char *hf_skip_container_end_portable(const char *p, const char *end)
{
	return container_tail(p, end, 0);
}

#ifdef __SSE2__
/* Every x86-64 has SSE2.  Wider vectors would gain little: strings are short. */
const char *hf_skip_string_end(const char *p, const char *end, bool *escaped)
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
		*escaped = true;
		if (end - p < 2)
			return NULL;
		p += 2;
	}
	return string_tail(p, end, escaped);
}

#define BLOCK 64

struct masks {
	uint64_t quotes, backslashes, opens, closes;
};

/* One bit for each byte.  [ and { differ in one bit, and so do ] and }: with it set, two
 * comparisons find all four. */
static inline struct masks look(const char *p)
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

/* Each bit: whether an odd number of bits is set up to and with it. */
static inline uint64_t parity(uint64_t bits)
{
	for (int shift = 1; shift < BLOCK; shift *= 2)
		bits ^= bits << shift;
	return bits;
}

/* Behind the string that p is in or that begins in the block at p. */
static const char *behind_string(const char *p, const char *end, bool inside)
{
	bool escaped;

	return inside ? string_tail(p, end, &escaped) : hf_skip_string_end(p, end, &escaped);
}

/* Brackets of the block that are outside of strings; NULL: the end is not among them. */
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

/* Block by block, however many strings are in one.  Where there is a backslash, what stands before
 * the next string counts, and then the scan begins anew behind that string. */
const char *hf_skip_container_end(const char *p, const char *end)
{
	bool inside = false;
	size_t depth = 0;

	while (p && end - p >= BLOCK) {
		struct masks m = look(p);
		uint64_t strings = parity(m.quotes) ^ (inside ? ~0ull : 0);
		const char *found;

		if (m.backslashes && inside) {
			p = behind_string(p, end, true);
			inside = false;
			continue;
		}
		if (m.backslashes) {
			uint64_t first = m.quotes & -m.quotes;

			/* Outside of strings a backslash is no JSON: nothing is found then. */
			found = count_brackets(p, &m, first ? first - 1 : ~0ull, &depth);
			if (found)
				return found;
			p = first ? behind_string(p + __builtin_ctzll(first), end, false)
				  : p + BLOCK;
			continue;
		}
		found = count_brackets(p, &m, ~strings, &depth);
		if (found)
			return found;
		inside = strings >> (BLOCK - 1);
		p += BLOCK;
	}
	if (p && inside)
		p = behind_string(p, end, true);
	return container_tail(p, end, depth);
}
#else
const char *hf_skip_string_end(const char *p, const char *end, bool *escaped)
{
	return string_tail(p + 1, end, escaped);
}

const char *hf_skip_container_end(const char *p, const char *end)
{
	return container_tail(p, end, 0);
}
#endif
