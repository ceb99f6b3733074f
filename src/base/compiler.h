/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_COMPILER_H
#define HF_BASE_COMPILER_H

/* Attributes, and the assert that stays on in production. */

/* Around the declarations of every header, so that each reads as C++ too. */
#ifdef __cplusplus
#define HF_BEGIN_DECLS extern "C" {
#define HF_END_DECLS }
#else
#define HF_BEGIN_DECLS
#define HF_END_DECLS
#endif

#define HF_PRINTF(fmt_index, first_arg) __attribute__((format(printf, fmt_index, first_arg)))
#define HF_MUST_CHECK __attribute__((warn_unused_result))
#define HF_NORETURN __attribute__((noreturn))
#define HF_UNUSED __attribute__((unused))
/* unused: a local that only holds a reference is used by its end (clang 14 thinks otherwise). */
#define HF_CLEANUP(fn) __attribute__((cleanup(fn), unused))
#define HF_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* 1 where AddressSanitizer watches: gcc and clang each tell it in their own way. */
#if defined(__SANITIZE_ADDRESS__)
#define HF_UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HF_UNDER_ASAN 1
#endif
#endif
#ifndef HF_UNDER_ASAN
#define HF_UNDER_ASAN 0
#endif

/*
 * A broken invariant of this program (never bad input) ends it here, in release
 * builds too: every daemon of Holdfast is level-triggered and restarts safely,
 * so stopping is better than acting on a state that cannot be.
 */
#define hf_assert(cond) ((cond) ? (void)0 : hf_assert_failed(#cond, __FILE__, __LINE__))

HF_BEGIN_DECLS
HF_NORETURN void hf_assert_failed(const char *cond, const char *file, int line);
HF_END_DECLS

#endif
