/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_STR_H
#define HF_BASE_STR_H

#include "base/compiler.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

HF_BEGIN_DECLS

/* Small questions about strings.  Strings are NUL-terminated UTF-8 and never NULL
 * unless a comment says so. */

bool hf_streq(const char *a, const char *b); /* two NULLs are equal */
bool hf_str_has_prefix(const char *s, const char *prefix);
bool hf_str_has_suffix(const char *s, const char *suffix);
bool hf_str_is_empty(const char *s);                        /* NULL is empty */
const char *hf_str_or(const char *s, const char *fallback); /* s unless NULL or empty */
/* ASCII only, whatever the locale. */
bool hf_str_case_eq(const char *a, const char *b);
void hf_str_lower(char *s);
/* Cut to what fits size with its NUL, all but printable ASCII as '?', and NULs behind it, so that
 * equal texts are equal bytes.  ret_text may be where the bytes are. */
void hf_str_print(char *ret_text, size_t size, const char *bytes, size_t len);

/* The whole text is one decimal number in [min, max], "+" and blanks refused. */
int hf_str_to_i64(const char *text, int64_t min, int64_t max, int64_t *ret_value,
		  struct hf_error *err) HF_MUST_CHECK;
/* As Go's strconv.Atoi decides: optional sign, digits, fits 64 bits. */
bool hf_str_is_integer(const char *text);

bool hf_utf8_valid(const char *bytes, size_t len);
/* Length of the one valid sequence these bytes begin with; 0 where they do not. */
size_t hf_utf8_sequence(const char *bytes, size_t len);
/* Characters of a text that is valid. */
size_t hf_utf8_count(const char *text);
/* The sequence of a number below 2^21, a code point or not; its length. */
size_t hf_utf8_encode(uint32_t c, char ret_bytes[4]);

/*
 * Kubernetes' name rules (apimachinery, util/validation): NULL when the text is
 * fine, else upstream's message for clients to see, a static string.  Upstream
 * lists every rule that is broken; here it is the first of that list.
 */
const char *hf_dns1123_label_problem(const char *text);     /* a-z 0-9 -, at most 63 */
const char *hf_dns1123_subdomain_problem(const char *text); /* labels with dots, at most 253 */
const char *hf_dns1035_label_problem(const char *text);     /* starts with a letter, at most 63 */
const char *hf_qualified_name_problem(const char *text);    /* label and annotation keys */
const char *hf_label_value_problem(const char *text);

/* 64-bit FNV-1a: for spreading and for tests, not for tables with hostile keys. */
uint64_t hf_hash_bytes(const void *bytes, size_t len);
uint64_t hf_hash_str(const char *s);
/* SipHash-1-3, for tables whose keys come from outside. */
uint64_t hf_siphash(uint64_t key, const void *bytes, size_t len);

HF_END_DECLS

#endif
