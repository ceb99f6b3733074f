/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_BANNED_H
#define HF_BASE_BANNED_H

/*
 * Functions that this program does not use: a call is a compile error.
 *
 * The build puts this file in front of every C source of ours (-include in the root
 * meson.build); nobody includes it by hand.  It declares each function once more,
 * with the attribute `deprecated`, and warnings are errors.  Declarations add up, so
 * headers of the system and of libraries compile as ever, whatever their order, and
 * a function is found where its address is taken too.  The compiler does not have
 * to see the call survive optimization, as the attribute `error` would need.
 *
 * alloca and arrays of variable length are refused by -Walloca and -Wvla.
 */

#ifdef __cplusplus
extern "C" {
#endif

#define HF_BANNED(instead) __attribute__((deprecated("banned here: " instead)))

struct _IO_FILE;

/* Writing without knowing the room. */
char *strcpy(char *to, const char *from) HF_BANNED("use snprintf or a strbuf");
char *strcat(char *to, const char *from) HF_BANNED("use snprintf or a strbuf");
char *stpcpy(char *to, const char *from) HF_BANNED("use snprintf or a strbuf");
int sprintf(char *to, const char *fmt, ...) HF_BANNED("use snprintf or a strbuf");
int vsprintf(char *to, const char *fmt, __builtin_va_list ap)
	HF_BANNED("use vsnprintf or a strbuf");
char *gets(char *to) HF_BANNED("use hf_fs_read or fgets");

/* Cutting without a NUL, or counting the wrong thing. */
char *strncpy(char *to, const char *from, __SIZE_TYPE__ len) HF_BANNED("use snprintf or memcpy");
char *strncat(char *to, const char *from, __SIZE_TYPE__ len) HF_BANNED("use snprintf or a strbuf");

/* State that others share. */
char *strtok(char *text, const char *delimiters) HF_BANNED("use strcspn");
int rand(void) HF_BANNED("use hf_random_bytes, or numbers with a seed");
void srand(unsigned int seed) HF_BANNED("use numbers with a seed of their own");

/* Numbers without errors. */
int atoi(const char *text) HF_BANNED("use hf_str_to_i64");
long atol(const char *text) HF_BANNED("use hf_str_to_i64");
long long atoll(const char *text) HF_BANNED("use hf_str_to_i64");
double atof(const char *text) HF_BANNED("use strtod and look at its end");

/* Names that somebody else may take first. */
char *tmpnam(char *name) HF_BANNED("use mkostemp");
char *tempnam(const char *folder, const char *prefix) HF_BANNED("use mkostemp");
char *mktemp(char *name) HF_BANNED("use mkostemp");

/* Processes by way of a shell. */
int system(const char *command) HF_BANNED("start processes through loop");
struct _IO_FILE *popen(const char *command, const char *mode)
	HF_BANNED("start processes through loop");

#ifdef __cplusplus
}
#endif

#endif
