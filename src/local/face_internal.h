/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOCAL_FACE_INTERNAL_H
#define HF_LOCAL_FACE_INTERNAL_H

#include "http/server.h"
#include "local/face.h"
#include "store/resource.h"

/*
 * One exchange at a time becomes one of: an answer at once (health, discovery, what is
 * wrong), a call (face_call.c), a watch (face_watch.c) or a log (face_log.c).  The last
 * three are structs of their own that live until the exchange ends or is closed; so
 * destroying the server, which closes all, frees them all.
 */
struct face_route;
struct face_stream;

struct hf_face {
	struct hf_loop *loop;
	struct hf_local *local;
	struct hf_store *client;
	struct hf_http_server *server;
	struct hf_face_options options; /* texts are ours or NULL */
	char *token;
	size_t token_len;
	struct face_stream *streams;
	bool quiet; /* no further streams */
};

/* What is open and would stay so: watches and logs. */
struct face_stream {
	struct face_stream *prev, *next;
	struct hf_face *face;
	struct hf_exchange *ex;
	void (*end)(struct face_stream *stream); /* finish the exchange and free */
};
void hf_face_stream_link(struct hf_face *face, struct face_stream *stream);
void hf_face_stream_unlink(struct face_stream *stream);

/* --- what a request says (face_call.c); strings are borrowed from the exchange or options --- */
/* dryRun, fieldManager, fieldValidation. */
int hf_face_read_common(const struct hf_exchange *ex, struct hf_request *request,
			struct hf_error *err) HF_MUST_CHECK;
/* The body, by its Content-Type; ret_doc is the caller's. */
int hf_face_read_object(struct hf_exchange *ex, struct hf_doc **ret_doc, struct hf_error *err)
	HF_MUST_CHECK;
/* A DeleteOptions; absent is fine. */
int hf_face_delete_options(const struct hf_json *options, struct hf_request *request,
			   struct hf_error *err) HF_MUST_CHECK;
/* --- face_evict.c --- */
void hf_face_evict(struct hf_face *face, struct hf_exchange *ex, const struct face_route *route);

/* --- paths (face_route.c) --- */
struct face_route {
	const struct hf_resource *resource; /* NULL: no resource's path */
	const char *ns, *name, *sub;        /* NULL: not in the path */
	bool too_long;                      /* there is more behind sub */
	char *text;                         /* what the others point into */
};
/* A path under /api/v1 or /apis/G/V: fills ret_route, whose text is the caller's to free. */
void hf_face_route(const char *path, struct face_route *ret_route);

/* What an Accept header asks for. */
enum face_form {
	FACE_FORM_JSON,
	FACE_FORM_TABLE,
	FACE_FORM_METADATA, /* PartialObjectMetadata */
	FACE_FORM_UNACCEPTABLE,
};
/* accept: NULL is everything. */
enum face_form hf_face_form(const char *accept);
/* "application/json; charset=utf-8" is `type` application/json. */
bool hf_face_media_is(const char *header, const char *type);

/* --- answers (face_answer.c) --- */
void hf_face_answer_json(struct hf_exchange *ex, int status, const struct hf_json *value);
/* The document's text, which it keeps: one version is written once, however many ask for it. */
void hf_face_answer_doc(struct hf_exchange *ex, int status, struct hf_doc *doc);
void hf_face_add_doc(struct hf_strbuf *sb, struct hf_doc *doc);
/* A Status; resource and name may be NULL. */
void hf_face_fail(struct hf_exchange *ex, int code, const char *fmt, ...) HF_PRINTF(3, 4);
void hf_face_fail_err(struct hf_exchange *ex, const struct hf_error *err);
void hf_face_no_such_path(struct hf_exchange *ex);
/* The Status of a failed reply, its Retry-After too. */
void hf_face_fail_reply(struct hf_exchange *ex, const struct hf_reply *reply);
void hf_face_warn(struct hf_exchange *ex, const char *text); /* a Warning header */
/* A query parameter that says yes: "true", "1", or nothing behind the name. */
bool hf_face_query_true(const struct hf_exchange *ex, const char *name);
/* A number of a query; false after a 400.  absent: what stands for none. */
bool hf_face_query_i64(struct hf_exchange *ex, const char *name, int64_t absent,
		       int64_t *ret_value);

/* --- handlers; each ends the exchange or keeps it --- */
void hf_face_serve_resource(struct hf_face *face, struct hf_exchange *ex,
			    const struct face_route *route);
void hf_face_watch(struct hf_face *face, struct hf_exchange *ex, const struct face_route *route,
		   enum face_form form);
void hf_face_log(struct hf_face *face, struct hf_exchange *ex, const struct face_route *route);
bool hf_face_serves(const struct hf_face *face, const struct hf_resource *resource);
/* Discovery and OpenAPI (face_discovery.c, face_openapi.c); false: not such a path. */
bool hf_face_discovery(struct hf_face *face, struct hf_exchange *ex);
bool hf_face_openapi(struct hf_face *face, struct hf_exchange *ex);

/* --- tables and metadata (face_table.c): pure --- */
enum face_include { FACE_INCLUDE_NONE, FACE_INCLUDE_METADATA, FACE_INCLUDE_OBJECT };
extern const struct hf_resource hf_face_scale; /* what a "scale" is printed as */
/* A Table without rows; columns: with its column definitions. */
struct hf_json *hf_face_table(const struct hf_resource *resource, bool columns);
void hf_face_table_add(struct hf_json *table, const struct hf_resource *resource,
		       const struct hf_json *object, enum face_include include, hf_time now);
struct hf_json *hf_face_metadata_of(const struct hf_json *object);

#endif
