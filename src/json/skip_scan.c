/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "json/skip_internal.h"

#include <stddef.h>

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

/* [ and { differ in one bit, and so do ] and }: with it set, two comparisons find all four. */
const char *hf_skip_container_end(const char *p, const char *end)
{
	const __m128i quote = _mm_set1_epi8('"'), bit = _mm_set1_epi8(0x20);
	const __m128i open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}');
	size_t depth = 0;
	bool escaped;

	while (p && end - p >= 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i folded = _mm_or_si128(v, bit);
		unsigned quotes = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, quote));
		unsigned opens = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(folded, open));
		unsigned closes = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(folded, close));
		/* Only what stands before the first quote is known to be outside of strings. */
		unsigned before = quotes ? (quotes & -quotes) - 1 : ~0u;
		for (unsigned hits = (opens | closes) & before; hits; hits &= hits - 1) {
			if (opens & hits & -hits)
				depth++;
			else if (--depth == 0)
				return p + __builtin_ctz(hits) + 1;
		}
		p = quotes ? hf_skip_string_end(p + __builtin_ctz(quotes), end, &escaped) : p + 16;
	}
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
