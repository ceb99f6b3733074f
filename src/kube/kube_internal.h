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

/*
 * What calls, watches and log streams have in common: a transfer, a place in the
 * store's list so that destroy finds them, and what may stand between the wish to
 * send and the sending: credentials that are being fetched, a delay before a
 * repetition.
 *
 *   start ──▶ (wait for credentials) ──▶ kind->send ──▶ transfer
 *     ▲                                                    │ 401 once, or worth a repetition
 *     └──────────────── delay ◀────────────────────────────┘
 */
struct hf_kube_op;

struct hf_kube_op_class {
	void (*send)(struct hf_kube_op *op); /* credentials are good: hf_kube_op_send */
	void (*failed)(struct hf_kube_op *op, const struct hf_error *err); /* before sending */
	void (*abandon)(struct hf_kube_op *op); /* store destroyed: HF_E_CANCELED */
};

struct hf_kube_op {
	const struct hf_kube_op_class *kind;
	struct hf_kube_op *prev, *next;
	struct hf_kube *kube;
	struct hf_transfer *transfer; /* NULL: not under way */
	struct hf_task *fail_task;    /* NULL unless sending failed at once */
	struct hf_timer *timer;       /* NULL unless waiting */
	struct hf_error err;          /* what fail_task reports */
	bool waiting;                 /* for credentials */
	bool signed_in_again;         /* a 401 has led to other credentials already */
	unsigned credentials;         /* generation that the transfer was sent with */
	unsigned tries;               /* begun */
	const char *method;           /* of the transfer, for observations */
	hf_time sent_at;              /* monotonic */
	hf_time deadline;             /* monotonic; HF_TIME_NEVER */
};

struct hf_kube_credentials;

struct hf_kube {
	struct hf_store base;
	struct hf_loop *loop;
	struct hf_http_client *client;
	struct hf_kube_credentials *credentials;
	struct hf_kube_op *ops;
	struct hf_kube_options options; /* filled in */
	struct hf_rng rng;
	char *host;
	bool gzip;
	bool no_streams; /* the server does not know sendInitialEvents */
};

extern const struct hf_store_ops hf_kube_ops;

void hf_kube_op_link(struct hf_kube *kube, struct hf_kube_op *op,
		     const struct hf_kube_op_class *kind);
/* Cancels the transfer and whatever it waits for. */
void hf_kube_op_unlink(struct hf_kube_op *op);
/* Send as soon as there are credentials; may call nothing of the user's. */
void hf_kube_op_start(struct hf_kube_op *op);
/* As start, after a delay. */
void hf_kube_op_start_after(struct hf_kube_op *op, hf_time delay);
/* For kind->send. */
void hf_kube_op_send(struct hf_kube_op *op, const struct hf_http_request *request);
/* Have kind->failed run from the loop; op->err says why. */
void hf_kube_op_fail(struct hf_kube_op *op);
/* An answer has come, or the end: tell who counts requests. */
void hf_kube_op_observe(struct hf_kube_op *op, int status);
/* The answer was 401, or there is no connection, perhaps as a certificate is not taken (the server's
 * by us, or ours).  True where there are, or soon will be, other credentials to try with. */
bool hf_kube_op_sign_in_again(struct hf_kube_op *op, const struct hf_http_result *result);
/* Of an answer that failed: what this program knows of the reason. */
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

/* url.c: targets ("/api/v1/namespaces/default/pods?limit=500") */
void hf_kube_target(struct hf_strbuf *sb, const struct hf_request *request);
void hf_kube_watch_target(struct hf_strbuf *sb, const struct hf_watch_options *options);
void hf_kube_log_target(struct hf_strbuf *sb, const struct hf_log_options *options);

/* --- answer.c --- */

/* What a failed answer says: its Status' message and reason, or the HTTP status alone. */
struct hf_kube_failure {
	struct hf_error err;
	hf_time retry_after;   /* span; 0: not told */
	struct hf_doc *status; /* owned; NULL: the body was no Status */
};
/* now: this machine's wall clock, for a Retry-After that is a date where there is no Date. */
void hf_kube_failure_read(const struct hf_http_result *result, const char *body, size_t len,
			  hf_time now, struct hf_kube_failure *ret_failure);
/* "HTTP status 200, text/html, begins '<html>'": an answer that is not what an API server says. */
#define HF_KUBE_ANSWER_TEXT_MAX 192
void hf_kube_answer_describe(const struct hf_http_result *result, const char *body, size_t len,
			     char ret_text[HF_KUBE_ANSWER_TEXT_MAX]);
/* The Date header: HF_TIME_NONE where absent or malformed. */
hf_time hf_kube_date_parse(const char *text);
/* Retry-After, seconds or a date; 0: absent, malformed or past.  At most a day. */
hf_time hf_kube_retry_after_parse(const char *text, hf_time now);
/* details.retryAfterSeconds; 0: absent or not between a second and a day. */
hf_time hf_kube_status_retry_after(const struct hf_json *status);
/* The text of a Warning header ('299 - "text"'): false where it is none.  To be freed. */
bool hf_kube_warning_parse(const char *header, char **ret_text);

/* --- lines.c: what a watch sends, one line an event --- */

enum hf_kube_line {
	HF_KUBE_LINE_EVENT,
	HF_KUBE_LINE_ERROR,   /* the failure is filled */
	HF_KUBE_LINE_UNKNOWN, /* a type of the future: passed over */
};
/* HF_E_BAD_REQUEST for what is no event.  The event's object is the caller's to release. */
int hf_kube_line_read(const char *line, size_t len, enum hf_kube_line *ret_line,
		      struct hf_event *ret_event, struct hf_kube_failure *ret_failure,
		      struct hf_error *err) HF_MUST_CHECK;

/* --- retry.c: what may be repeated, and when --- */

struct hf_kube_try {
	bool reads;          /* GET or LIST */
	unsigned tries;      /* made so far, the failed one included */
	int code;            /* of the transfer: 0, there is an answer */
	int status;          /* of the answer */
	hf_time retry_after; /* the server's wish; 0: none */
	bool retry_now;      /* HTTP/2 broke off */
	bool permanent;      /* certificates */
};
/* The span to wait, or HF_TIME_NEVER: report it. */
hf_time hf_kube_retry_delay(const struct hf_kube_try *made, struct hf_rng *rng);

/* --- rotation.c: certificates in files that are replaced in time --- */

struct hf_kube_pem {
	char *file; /* NULL: does not rotate */
	char *text; /* as last taken */
};

struct hf_kube_rotation {
	struct hf_kube_pem ca, cert, key;
};

void hf_kube_rotation_init(struct hf_kube_rotation *rotation, const struct hf_kube_config *config);
void hf_kube_rotation_release(struct hf_kube_rotation *rotation);
bool hf_kube_rotation_is_needed(const struct hf_kube_rotation *rotation);
/* Read again; what is new is given to the client.  true: something is.  A file that cannot be read,
 * and a certificate whose key has not come yet, leave the last one standing. */
bool hf_kube_rotation_read(struct hf_kube_rotation *rotation, struct hf_http_client *client);

/* --- credentials.c --- */

struct hf_kube_credentials {
	struct hf_kube *kube;
	char *path; /* the kubeconfig, for messages */
	char *token_file, *token;
	struct hf_kube_rotation rotation;
	hf_time files_read_at;
	struct hf_error files_failure; /* why the token file could not be read; code 0: it could */
	struct hf_kube_exec *exec;
	struct hf_command *command; /* under way */
	bool have;                  /* of a plugin: an answer that was not refused */
	hf_time expires;            /* wall */
	hf_time use_until; /* monotonic: before it, one that ends soon is not fetched anew */
	unsigned generation;
	struct hf_error failure;
	hf_time failed_at, hold; /* monotonic; 0: the last run was good */
};

enum hf_kube_ready { HF_KUBE_READY, HF_KUBE_WAIT, HF_KUBE_NO_CREDENTIALS };

struct hf_kube_credentials *hf_kube_credentials_create(struct hf_kube *kube,
						       const struct hf_kube_config *config);
struct hf_kube_credentials *hf_kube_credentials_destroy(struct hf_kube_credentials *credentials);
/* May a request be sent now?  WAIT: every waiting op of the store is started or failed once it is
 * known.  NO_CREDENTIALS: err says why. */
enum hf_kube_ready hf_kube_credentials_check(struct hf_kube_credentials *credentials,
					     struct hf_error *err);
unsigned hf_kube_credentials_generation(const struct hf_kube_credentials *credentials);
/* A request sent with that generation was answered 401.  true: others are there or will be. */
bool hf_kube_credentials_rejected(struct hf_kube_credentials *credentials, unsigned generation);
/* ... or did not get that far. */
bool hf_kube_credentials_distrusted(struct hf_kube_credentials *credentials, unsigned generation);
/* In front of what a 401 says: what is known to be wrong with what was sent. */
void hf_kube_credentials_explain(const struct hf_kube_credentials *credentials,
				 struct hf_error *err);
/* kube.c: start (err NULL) or fail all ops that wait. */
void hf_kube_wake(struct hf_kube *kube, const struct hf_error *err);

/* A plugin's answer; for tests and fuzzing. */
struct hf_kube_exec_answer {
	char *token, *cert_pem, *key_pem; /* "" where absent */
	hf_time expires;                  /* HF_TIME_NEVER where not told */
};
int hf_kube_exec_answer_read(const char *text, size_t len, const char *api_version,
			     struct hf_kube_exec_answer *ret_answer, struct hf_error *err)
	HF_MUST_CHECK;
void hf_kube_exec_answer_release(struct hf_kube_exec_answer *answer);

#endif
