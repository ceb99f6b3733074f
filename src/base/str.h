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

/* Questions about strings. Strings are NUL-terminated UTF-8, and never NULL unless a comment
 * says so. */

bool hf_streq(const char *a, const char *b); /* two NULLs are equal */
bool hf_str_has_prefix(const char *s, const char *prefix);
bool hf_str_has_suffix(const char *s, const char *suffix);
bool hf_str_is_empty(const char *s); /* NULL is empty */
const char *hf_str_or(const char *s,
		      const char *fallback); /* s, or fallback if s is NULL or empty */
/* Compares without regard to case, and makes lower case, for ASCII letters only. The locale has
 * no influence. */
bool hf_str_case_eq(const char *a, const char *b);
void hf_str_lower(char *s);
/* Copies bytes as a printable text: each byte outside printable ASCII becomes '?', and the text
 * is cut to size with its NUL. The rest of ret_text is filled with NULs, so that equal texts are
 * equal in every byte. ret_text and bytes may be the same. */
void hf_str_print(char *ret_text, size_t size, const char *bytes, size_t len);

/* Reads a decimal number that is the whole text and lies in [min, max]. "+" and blanks are
 * HF_E_INVALID. */
int hf_str_to_i64(const char *text, int64_t min, int64_t max, int64_t *ret_value,
		  struct hf_error *err) HF_MUST_CHECK;
/* True if Go's strconv.Atoi accepts the text: an optional sign, then digits, at most 64 bits. */
bool hf_str_is_integer(const char *text);

bool hf_utf8_valid(const char *bytes, size_t len);
/* The length of the valid UTF-8 sequence at the start of bytes; 0 if no valid sequence starts
 * there. */
size_t hf_utf8_sequence(const char *bytes, size_t len);
/* Counts the characters of a valid UTF-8 text. */
size_t hf_utf8_count(const char *text);
/* Returns the length of the longest start of the text that has at most bytes_max bytes and does not
 * cut a UTF-8 character. */
size_t hf_utf8_cut(const char *text, size_t bytes_max);
/* Writes the UTF-8 sequence of a number below 2^21, also if it is not a code point. Returns its
 * length. */
size_t hf_utf8_encode(uint32_t c, char ret_bytes[4]);

/* The name rules of Kubernetes (apimachinery, util/validation). Each function returns NULL for a
 * valid name, else upstream's message as a static string. Upstream lists every broken rule;
 * these functions return the first message of that list. */
const char *hf_dns1123_label_problem(const char *text);     /* a-z 0-9 -, at most 63 */
const char *hf_dns1123_subdomain_problem(const char *text); /* labels with dots, at most 253 */
const char *hf_dns1035_label_problem(const char *text);     /* starts with a letter, at most 63 */
const char *hf_qualified_name_problem(const char *text);    /* label and annotation keys */
const char *hf_label_value_problem(const char *text);

/* FNV-1a with 64 bits, to spread load and for tests. Do not use it for a table if an attacker
 * may choose the keys. */
uint64_t hf_hash_bytes(const void *bytes, size_t len);
uint64_t hf_hash_str(const char *s);
/* SipHash-1-3, for tables with keys from outside the process. */
uint64_t hf_siphash(uint64_t key, const void *bytes, size_t len);

HF_END_DECLS

#endif
