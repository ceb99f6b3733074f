/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_COMPILER_H
#define HF_BASE_COMPILER_H

/* Compiler attributes, and the assertion that stays active in production. */

/* Every header puts its declarations between these two macros, so that the header also compiles
 * as C++. */
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
/* Runs fn when the local variable leaves its scope. `unused` is needed because clang 14 warns
 * about a variable that only holds a reference. */
#define HF_CLEANUP(fn) __attribute__((cleanup(fn), unused))
#define HF_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* HF_UNDER_ASAN is 1 in a build with AddressSanitizer. gcc and clang announce such a build
 * differently. */
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

/* Checks an invariant of this program; never use it to check input. A broken invariant ends the
 * process, in release builds too. Every daemon of Holdfast can restart safely at any time, so
 * stopping is better than acting on an impossible state. */
#define hf_assert(cond) ((cond) ? (void)0 : hf_assert_failed(#cond, __FILE__, __LINE__))

HF_BEGIN_DECLS
HF_NORETURN void hf_assert_failed(const char *cond, const char *file, int line);
HF_END_DECLS

#endif
