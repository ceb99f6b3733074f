/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_BANNED_H
#define HF_BASE_BANNED_H

/*
 * Functions that this program must not call: each call is a compile error.
 *
 * The build includes this file in front of every C source (-include in the root meson.build); no
 * source includes it by name. The file declares each function a second time with the attribute
 * `deprecated`, and the build turns warnings into errors. Repeated declarations are legal C, so the
 * headers of the system and of libraries compile in any order. Taking the address of such a
 * function is an error too. The attribute `error` would not do: it only reports calls that are left
 * after optimization.
 *
 * The compiler options -Walloca and -Wvla refuse alloca and arrays of variable length.
 */

#ifdef __cplusplus
extern "C" {
#endif

#define HF_BANNED(instead) __attribute__((deprecated("banned here: " instead)))

struct _IO_FILE;

/* These functions write without knowing the size of the target. */
char *strcpy(char *to, const char *from) HF_BANNED("use snprintf or a strbuf");
char *strcat(char *to, const char *from) HF_BANNED("use snprintf or a strbuf");
char *stpcpy(char *to, const char *from) HF_BANNED("use snprintf or a strbuf");
int sprintf(char *to, const char *fmt, ...) HF_BANNED("use snprintf or a strbuf");
int vsprintf(char *to, const char *fmt, __builtin_va_list ap)
	HF_BANNED("use vsnprintf or a strbuf");
char *gets(char *to) HF_BANNED("use hf_fs_read or fgets");

/* strncpy may leave out the NUL; the length of strncat is not the size of the target. */
char *strncpy(char *to, const char *from, __SIZE_TYPE__ len) HF_BANNED("use snprintf or memcpy");
char *strncat(char *to, const char *from, __SIZE_TYPE__ len) HF_BANNED("use snprintf or a strbuf");

/* These functions keep a hidden state that all callers share. */
char *strtok(char *text, const char *delimiters) HF_BANNED("use strcspn");
int rand(void) HF_BANNED("use hf_random_bytes, or numbers with a seed");
void srand(unsigned int seed) HF_BANNED("use numbers with a seed of their own");

/* These functions cannot report a malformed number. */
int atoi(const char *text) HF_BANNED("use hf_str_to_i64");
long atol(const char *text) HF_BANNED("use hf_str_to_i64");
long long atoll(const char *text) HF_BANNED("use hf_str_to_i64");
double atof(const char *text) HF_BANNED("use strtod and look at its end");

/* Another process may create the file between the choice of its name and its use. */
char *tmpnam(char *name) HF_BANNED("use mkostemp");
char *tempnam(const char *folder, const char *prefix) HF_BANNED("use mkostemp");
char *mktemp(char *name) HF_BANNED("use mkostemp");

/* These functions start a process through a shell. */
int system(const char *command) HF_BANNED("start processes through loop");
struct _IO_FILE *popen(const char *command, const char *mode)
	HF_BANNED("start processes through loop");

#ifdef __cplusplus
}
#endif

#endif
