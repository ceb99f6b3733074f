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
 * A function that can fail returns 0 or one of the negative codes below, and fills the struct
 * hf_error of its caller. The text is part of the struct: making an error allocates nothing, so
 * "out of memory" can be reported too. Every function here accepts err == NULL; then only the code
 * is returned.
 *
 * Outputs of a failing function are named ret_*. They keep their old values on failure.
 *
 * Grammar of a text: lower case, no full stop, names in single quotes. The outermost failure comes
 * first and causes follow after a colon:
 *
 *     cannot read 'job.yaml': line 4, column 2: found a tab where indentation is expected
 */

/*
 * X(name, value, HTTP status, Kubernetes reason)
 *
 * The reasons are those of metav1.Status (apimachinery, meta/v1/types.go). So a code has the same
 * meaning on the embedded API server and on a cluster's API server.
 */
#define HF_CODES(X)                                                                                \
	X(INVALID, -1, 422, "Invalid")        /* a value breaks a rule; text names the field */    \
	X(BAD_REQUEST, -2, 400, "BadRequest") /* the request cannot be parsed */                   \
	X(NOT_FOUND, -3, 404, "NotFound")                                                          \
	X(EXISTS, -4, 409, "AlreadyExists")                                                        \
	X(CONFLICT, -5, 409, "Conflict") /* stale resourceVersion, failed precondition */          \
	X(GONE, -6, 410, "Expired")      /* watch or continue token too old: list again */         \
	X(UNAUTHORIZED, -7, 401, "Unauthorized")                                                   \
	X(FORBIDDEN, -8, 403, "Forbidden")                                                         \
	X(TOO_MANY, -9, 429, "TooManyRequests")                                                    \
	X(TIMEOUT, -10, 504, "Timeout") /* the request may or may not have been done */            \
	X(UNAVAILABLE, -11, 503, "ServiceUnavailable") /* not connected, or retry later */         \
	X(UNSUPPORTED, -12, 501, "NotImplemented")     /* Holdfast does not offer this */          \
	X(METHOD, -13, 405, "MethodNotAllowed")                                                    \
	X(MEDIA_TYPE, -14, 415, "UnsupportedMediaType")                                            \
	X(TOO_LARGE, -15, 413, "RequestEntityTooLarge") /* a declared limit was reached */         \
	X(INTERNAL, -16, 500, "InternalError")                                                     \
	X(IO, -17, 500, "InternalError")             /* a system call failed; text has errno */    \
	X(NO_SPACE, -18, 507, "InsufficientStorage") /* the disk is full */                        \
	X(NO_MEMORY, -19, 500, "InternalError")                                                    \
	X(CANCELED, -20, 500, "InternalError") /* the caller canceled the request */               \
	X(NOT_ACCEPTABLE, -21, 406, "NotAcceptable")

enum hf_code {
	HF_OK = 0,
#define X(name, value, http, reason) HF_E_##name = (value),
	HF_CODES(X)
#undef X
};

#define HF_ERROR_TEXT_MAX 512 /* bytes, with the NUL; longer texts end in "..." */

struct hf_error {
	int code; /* 0 (HF_OK) or one HF_E_* code */
	char text[HF_ERROR_TEXT_MAX];
};

/* Sets code and text. Returns code, so that a caller can write "return hf_error_set(err, …)". */
int hf_error_set(struct hf_error *err, int code, const char *fmt, ...) HF_PRINTF(3, 4);
int hf_error_vset(struct hf_error *err, int code, const char *fmt, va_list ap) HF_PRINTF(3, 0);
/* The macro shows the returned code to the compiler. Without it the compiler warns about ret_
 * outputs that the caller reads after success only. */
#define hf_error_set(err, error_code, ...)                                                         \
	__extension__({                                                                            \
		int hf_code_ = (error_code);                                                       \
		(void)(hf_error_set)((err), hf_code_, __VA_ARGS__);                                \
		hf_code_;                                                                          \
	})

/* As hf_error_set, and appends ": <strerror(errnum)>" to the text. ENOSPC and EDQUOT give
 * HF_E_NO_SPACE; every other errnum gives HF_E_IO. */
int hf_error_errno(struct hf_error *err, int errnum, const char *fmt, ...) HF_PRINTF(3, 4);

/* Puts "<text>: " in front of the existing text. Returns the code, which does not change. */
int hf_error_wrap(struct hf_error *err, const char *fmt, ...) HF_PRINTF(2, 3);

void hf_error_clear(struct hf_error *err);

/* "INVALID" for HF_E_INVALID and so on; "UNKNOWN" for a number that is not a code. */
const char *hf_code_name(int code);
/* The HTTP status for a code; 200 for HF_OK, 500 for an unknown code. */
int hf_code_http(int code);
/* The reason of a Kubernetes Status for a code; "" for HF_OK. */
const char *hf_code_reason(int code);
/* The code for an HTTP status and a Status reason. If the reason is "" or NULL, the status alone
 * decides. */
int hf_code_from_http(int http_status, const char *reason);

HF_END_DECLS

#endif
