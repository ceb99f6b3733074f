/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBE_KUBE_INTERNAL_H
#define HF_KUBE_KUBE_INTERNAL_H

#include "base/random.h"
#include "base/strbuf.h"
#include "http/client.h"
#include "kube/kube.h"
#include "loop/command.h"
#include "loop/loop.h"
#include "store/backend.h"

#define HF_KUBE_TARGET_BYTES_MAX ((size_t)8 << 10)

/* An operation in flight: the common part of calls, watches and log streams. An op holds a transfer
 * and a place in the store's list, so that destroy can end it. Before sending, an op may wait for
 * credentials or for a retry delay.
 *
 *   start ──▶ (wait for credentials) ──▶ kind->send ──▶ transfer
 *     ▲                                                    │ first 401, or a retry is allowed
 *     └──────────────── delay ◀────────────────────────────┘ */
struct hf_kube_op;

struct hf_kube_op_class {
	void (*send)(struct hf_kube_op *op); /* called when credentials are ready; calls
	                                      * hf_kube_op_send */
	/* reports that the op failed before the request was sent */
	void (*failed)(struct hf_kube_op *op, const struct hf_error *err);
	void (*abandon)(struct hf_kube_op *op); /* the store is being destroyed: report
	                                         * HF_E_CANCELED */
};

struct hf_kube_op {
	const struct hf_kube_op_class *kind;
	struct hf_kube_op *prev, *next;
	struct hf_kube *kube;
	/* the HTTP request of the operation; NULL: no request is in flight */
	struct hf_transfer *transfer;
	/* task that reports an error of sending from the loop; NULL: sending did not fail at
	 * once */
	struct hf_task *fail_task;
	/* timer of a retry delay or of the wait for credentials; NULL: the op never waited */
	struct hf_timer *timer;
	struct hf_error err; /* the error that fail_task reports */
	bool waiting;        /* the op waits for credentials */
	bool renewed;        /* a 401 or a lost connection has renewed the credentials
	                               * once already */
	/* number of the credentials with which the transfer was sent; each renewal increases the
	 * number */
	unsigned credentials;
	unsigned tries;     /* number of tries begun */
	const char *method; /* HTTP method of the transfer, for observations */
	hf_time sent_at;    /* monotonic time when the transfer was sent */
	hf_time deadline;   /* monotonic time; HF_TIME_NEVER: none */
};

struct hf_kube_credentials;

struct hf_kube {
	struct hf_store base;
	struct hf_loop *loop;
	struct hf_http_client *client;
	struct hf_kube_credentials *credentials;
	struct hf_kube_op *ops;
	struct hf_kube_options options; /* the options of the store, with defaults filled in */
	struct hf_rng rng;
	char *host;
	bool gzip;
	bool no_streams; /* the server does not support sendInitialEvents */
};

/* --- op.c --- */

void hf_kube_op_link(struct hf_kube *kube, struct hf_kube_op *op,
		     const struct hf_kube_op_class *kind);
/* Removes the op from the store's list, and does not free the op. Cancels the op's transfer, retry
 * delay and wait for credentials. */
void hf_kube_op_unlink(struct hf_kube_op *op);
/* Sends the op as soon as credentials are ready. Never calls a callback of the store's user. */
void hf_kube_op_start(struct hf_kube_op *op);
/* As hf_kube_op_start, after a delay. */
void hf_kube_op_start_after(struct hf_kube_op *op, hf_time delay);
/* Sends the request; for kind->send. */
void hf_kube_op_send(struct hf_kube_op *op, const struct hf_http_request *request);
/* Fails the op: posts a task that calls kind->failed with op->err. */
void hf_kube_op_fail(struct hf_kube_op *op);
/* Reports a response, or its absence (status 0), to options.observe. */
void hf_kube_op_observe(struct hf_kube_op *op, int status);
/* Renews the credentials after a 401 or a failed connection. (If the server or the client rejects a
 * certificate, the connection fails too.) Returns true if the op should be sent again, because
 * other credentials are there or a plugin will supply them. Returns true at most once per op. */
bool hf_kube_op_renew_credentials(struct hf_kube_op *op, const struct hf_http_result *result);
/* Adds to the error of a 401 what is known about the credentials, for example their expiry. */
void hf_kube_op_explain(const struct hf_kube_op *op, const struct hf_http_result *result,
			struct hf_error *err);

/* call.c */
struct hf_call *hf_kube_request(struct hf_store *store, const struct hf_request *request,
				hf_reply_fn done, void *arg);
void hf_kube_cancel(struct hf_call *call);
/* watch.c */
struct hf_watch *hf_kube_watch(struct hf_store *store, const struct hf_watch_options *options,
			       hf_event_fn fn, void *arg);
void hf_kube_watch_stop(struct hf_watch *watch);
/* logs.c */
struct hf_log_stream *hf_kube_logs(struct hf_store *store, const struct hf_log_options *options,
				   hf_log_fn fn, void *arg);
void hf_kube_logs_stop(struct hf_log_stream *stream);

/* url.c: request targets ("/api/v1/namespaces/default/pods?limit=500") */
void hf_kube_target(struct hf_strbuf *sb, const struct hf_request *request);
void hf_kube_watch_target(struct hf_strbuf *sb, const struct hf_watch_options *options);
void hf_kube_log_target(struct hf_strbuf *sb, const struct hf_log_options *options);

/* --- failure.c --- */

/* The content of a failed response: message and reason of its Status, or the HTTP status alone. */
struct hf_kube_failure {
	struct hf_error err;
	hf_time retry_after;   /* a time span; 0: not given */
	struct hf_doc *status; /* the Status in the body, owned; NULL: the body is not a Status */
};
/* now: this machine's wall clock. It is used for a Retry-After date if the response has no Date
 * header. */
void hf_kube_failure_read(const struct hf_http_result *result, const char *body, size_t len,
			  hf_time now, struct hf_kube_failure *ret_failure);
/* Describes a response that is not from an API server: "HTTP status 200, text/html, begins
 * '<html>'". */
#define HF_KUBE_RESPONSE_TEXT_MAX 192
void hf_kube_response_describe(const struct hf_http_result *result, const char *body, size_t len,
			       char ret_text[HF_KUBE_RESPONSE_TEXT_MAX]);
/* Parses a Date header. HF_TIME_NONE: the header is absent or malformed. */
hf_time hf_kube_date_parse(const char *text);
/* Parses a Retry-After header: seconds or a date. Returns at most a day; 0: the header is absent
 * or malformed, or the date is past. */
hf_time hf_kube_retry_after_parse(const char *text, hf_time now);
/* Reads details.retryAfterSeconds of a Status; 0: the field is absent, or not between one second
 * and one day. */
hf_time hf_kube_status_retry_after(const struct hf_json *status);
/* The text of a Warning header ('299 - "text"'), which the caller frees. Returns false for another
 * form. */
bool hf_kube_warning_parse(const char *header, char **ret_text);

/* --- watch_line.c: the lines of a watch, one event per line --- */

enum hf_kube_line {
	HF_KUBE_LINE_EVENT,
	HF_KUBE_LINE_ERROR, /* ret_failure is filled */
	/* an event of an unknown type; the caller skips the event */
	HF_KUBE_LINE_UNKNOWN,
};
/* Reads one line. HF_E_BAD_REQUEST: the line is not an event. The caller releases the event's
 * object. */
int hf_kube_line_read(const char *line, size_t len, enum hf_kube_line *ret_line,
		      struct hf_event *ret_event, struct hf_kube_failure *ret_failure,
		      struct hf_error *err) HF_MUST_CHECK;

/* --- retry.c: which requests may be retried, and when --- */

struct hf_kube_try {
	bool reads;     /* the request only reads (GET or LIST), so it can be repeated safely */
	unsigned tries; /* tries made so far, including the failed one */
	int code;       /* error code of the transfer; 0: a response arrived */
	int status;     /* HTTP status of the response */
	hf_time retry_after; /* delay from the server's header Retry-After; 0: no delay */
	/* the server closed the HTTP/2 connection in order (GOAWAY); a retry needs no delay */
	bool retry_now;
	bool permanent; /* true: a certificate was rejected, so a retry would fail too */
};
/* Returns the delay before the next try; HF_TIME_NEVER: report the failure. */
hf_time hf_kube_retry_delay(const struct hf_kube_try *made, struct hf_rng *rng);

/* --- rotation.c: certificate files, which are replaced before the certificates expire --- */

struct hf_kube_pem {
	/* Path of the PEM file; NULL: the text is from no file, and is never read again. */
	char *file;
	char *text; /* the content in use */
};

struct hf_kube_rotation {
	struct hf_kube_pem ca, cert, key;
};

void hf_kube_rotation_init(struct hf_kube_rotation *rotation, const struct hf_kube_config *config);
void hf_kube_rotation_release(struct hf_kube_rotation *rotation);
bool hf_kube_rotation_is_needed(const struct hf_kube_rotation *rotation);
/* Reads the files again and gives new content to the client. Returns true if something changed. A
 * file that cannot be read keeps its old content. A new certificate is used only with its matching
 * key. */
bool hf_kube_rotation_read(struct hf_kube_rotation *rotation, struct hf_http_client *client);

/* --- credentials.c --- */

struct hf_kube_credentials {
	struct hf_kube *kube;
	char *path; /* path of the kubeconfig, for messages */
	char *token_file, *token;
	struct hf_kube_rotation rotation;
	hf_time files_read_at;
	struct hf_error files_failure; /* why the token file could not be read; code 0: the last
	                                * read succeeded */
	struct hf_kube_exec *exec;
	struct hf_command *command; /* the running plugin; NULL: none */
	/* True: the plugin's last credentials are usable, because no 401 has rejected them. */
	bool have;
	hf_time expires; /* wall clock time when the plugin's credentials expire */
	/* Monotonic time. Until then the credentials are used even if they expire soon; the plugin
	 * does not run. */
	hf_time use_until;
	unsigned generation;
	struct hf_error failure;
	/* When the plugin failed last (monotonic clock), and how long it is not run after that.
	 * hold 0: the last run succeeded. */
	hf_time failed_at, hold;
};

enum hf_kube_ready { HF_KUBE_READY, HF_KUBE_WAIT, HF_KUBE_NO_CREDENTIALS };

struct hf_kube_credentials *hf_kube_credentials_create(struct hf_kube *kube,
						       const struct hf_kube_config *config);
struct hf_kube_credentials *hf_kube_credentials_destroy(struct hf_kube_credentials *credentials);
/* Returns whether a request may be sent now. HF_KUBE_WAIT: hf_kube_wake_ops will later start or
 * fail every op that waits. HF_KUBE_NO_CREDENTIALS: err holds the reason. */
enum hf_kube_ready hf_kube_credentials_check(struct hf_kube_credentials *credentials,
					     struct hf_error *err);
unsigned hf_kube_credentials_generation(const struct hf_kube_credentials *credentials);
/* Call this when a request that used the credentials of this generation got a 401. Returns true if
 * other credentials are there or a plugin will supply them. */
bool hf_kube_credentials_renew_after_401(struct hf_kube_credentials *credentials,
					 unsigned generation);
/* Call this when the connection for a request with the credentials of this generation failed.
 * Returns true if other credentials are there. Reads the files at most once per second. */
bool hf_kube_credentials_renew_after_disconnect(struct hf_kube_credentials *credentials,
						unsigned generation);
/* Adds to the error of a 401 what is known to be wrong with the credentials. */
void hf_kube_credentials_explain(const struct hf_kube_credentials *credentials,
				 struct hf_error *err);
/* op.c: starts (err NULL) or fails every op that waits for credentials. */
void hf_kube_wake_ops(struct hf_kube *kube, const struct hf_error *err);

/* What a credential plugin printed, parsed. Public within the module for tests and fuzzing. */
struct hf_kube_exec_answer {
	/* the credentials that the plugin printed; "": no credentials printed */
	char *token, *cert_pem, *key_pem;
	hf_time expires; /* HF_TIME_NEVER if not given */
};
int hf_kube_exec_answer_read(const char *text, size_t len, const char *api_version,
			     struct hf_kube_exec_answer *ret_answer, struct hf_error *err)
	HF_MUST_CHECK;
void hf_kube_exec_answer_release(struct hf_kube_exec_answer *answer);

#endif
