/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_ERROR_H
#define HF_BASE_ERROR_H

#include "base/compiler.h"

#include <stdarg.h>

HF_BEGIN_DECLS

/*
 * Errors.
 *
 * A function that can fail returns 0 or one of the negative codes below and
 * fills the struct hf_error that its caller owns.  The text is inline: making
 * an error allocates nothing, so running out of memory can be reported too.
 * Every function here takes err == NULL ("the caller does not want the text").
 *
 * Outputs are named ret_* and stay untouched when a function fails.
 *
 * Grammar of a text: lower case, no full stop, the outermost failure first and
 * causes after a colon, names in single quotes:
 *
 *     cannot read 'job.yaml': line 4, column 2: found a tab where indentation is expected
 */

/*
 * X(name, value, HTTP status, Kubernetes reason)
 *
 * The reasons are those of metav1.Status (apimachinery, meta/v1/types.go), so
 * that one code means the same on the embedded plane and on an API server.
 */
#define HF_CODES(X)                                                                                \
	X(INVALID, -1, 422, "Invalid")        /* a value breaks a rule; text names the field */    \
	X(BAD_REQUEST, -2, 400, "BadRequest") /* could not be understood at all */                 \
	X(NOT_FOUND, -3, 404, "NotFound")                                                          \
	X(EXISTS, -4, 409, "AlreadyExists")                                                        \
	X(CONFLICT, -5, 409, "Conflict") /* stale resourceVersion, failed precondition */          \
	X(GONE, -6, 410, "Expired")      /* watch or continue token too old: list again */         \
	X(UNAUTHORIZED, -7, 401, "Unauthorized")                                                   \
	X(FORBIDDEN, -8, 403, "Forbidden")                                                         \
	X(TOO_MANY, -9, 429, "TooManyRequests")                                                    \
	X(TIMEOUT, -10, 504, "Timeout")                /* whether it was done is not known */      \
	X(UNAVAILABLE, -11, 503, "ServiceUnavailable") /* not connected, or told to come back */   \
	X(UNSUPPORTED, -12, 501, "NotImplemented")     /* refused by design */                     \
	X(METHOD, -13, 405, "MethodNotAllowed")                                                    \
	X(MEDIA_TYPE, -14, 415, "UnsupportedMediaType")                                            \
	X(TOO_LARGE, -15, 413, "RequestEntityTooLarge") /* a declared limit was reached */         \
	X(INTERNAL, -16, 500, "InternalError")                                                     \
	X(IO, -17, 500, "InternalError") /* the operating system said no; text has errno */        \
	X(NO_SPACE, -18, 507, "InsufficientStorage") /* the disk is full */                        \
	X(NO_MEMORY, -19, 500, "InternalError")                                                    \
	X(CANCELED, -20, 500, "InternalError") /* the caller went away */                          \
	X(NOT_ACCEPTABLE, -21, 406, "NotAcceptable")

enum hf_code {
	HF_OK = 0,
#define X(name, value, http, reason) HF_E_##name = (value),
	HF_CODES(X)
#undef X
};

#define HF_ERROR_TEXT_MAX 512 /* bytes, with the NUL; longer texts end in "..." */

struct hf_error {
	int code; /* 0 or an HF_E_* */
	char text[HF_ERROR_TEXT_MAX];
};

/* Set code and text; returns code, so that "return hf_error_set(err, …)" reads well. */
int hf_error_set(struct hf_error *err, int code, const char *fmt, ...) HF_PRINTF(3, 4);
int hf_error_vset(struct hf_error *err, int code, const char *fmt, va_list ap) HF_PRINTF(3, 0);
/* The macro tells the compiler which code is returned, so that it does not take what a caller
 * does after success for a use of outputs that a failure left unset. */
#define hf_error_set(err, error_code, ...)                                                         \
	__extension__({                                                                            \
		int hf_code_ = (error_code);                                                       \
		(void)(hf_error_set)((err), hf_code_, __VA_ARGS__);                                \
		hf_code_;                                                                          \
	})

/* As hf_error_set, with ": <strerror(errnum)>" behind the text.  ENOSPC and EDQUOT
 * give HF_E_NO_SPACE, every other errnum HF_E_IO. */
int hf_error_errno(struct hf_error *err, int errnum, const char *fmt, ...) HF_PRINTF(3, 4);

/* Put "<text>: " in front of what is there; the code stays and is returned. */
int hf_error_wrap(struct hf_error *err, const char *fmt, ...) HF_PRINTF(2, 3);

void hf_error_clear(struct hf_error *err);

/* "INVALID", or "UNKNOWN" for a number that is no code. */
const char *hf_code_name(int code);
/* The HTTP status that stands for a code; 200 for HF_OK, 500 for an unknown one. */
int hf_code_http(int code);
/* The reason of a Kubernetes Status for a code; "" for HF_OK. */
const char *hf_code_reason(int code);
/* The code for an HTTP status and a Status reason ("" or NULL: by status alone). */
int hf_code_from_http(int http_status, const char *reason);

HF_END_DECLS

#endif
