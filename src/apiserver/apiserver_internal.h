/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOCAL_FACE_INTERNAL_H
#define HF_LOCAL_FACE_INTERNAL_H

#include "http/server.h"
#include "apiserver/apiserver.h"
#include "store/resource.h"

/*
 * Shared by the files of the HTTP API. An exchange gets a response at once (health, discovery,
 * errors), or becomes a call (face_call.c), a watch (face_watch.c) or a log (face_log.c). These
 * three have structs that live until the exchange ends or is closed. So the destruction of the
 * server, which closes all exchanges, frees all of them.
 */
struct face_route;
struct face_stream;

struct hf_face {
	struct hf_loop *loop;
	struct hf_local *local;
	struct hf_store *client;
	struct hf_http_server *server;
	struct hf_face_options options; /* texts are NULL, because the caller may have freed them */
	char *token;
	size_t token_len;
	struct face_stream *streams;
	bool quiet; /* new streams are refused */
};

/* An open stream, a watch or a log. It ends only when the client, the source or hf_face_quiesce
 * ends it. */
struct face_stream {
	struct face_stream *prev, *next;
	struct hf_face *face;
	struct hf_exchange *ex;
	void (*end)(struct face_stream *stream); /* finishes the exchange and frees the stream */
};
void hf_face_stream_link(struct hf_face *face, struct face_stream *stream);
void hf_face_stream_unlink(struct face_stream *stream);

/* --- reading requests (face_call.c); strings are borrowed from the exchange or options --- */
/* Reads dryRun, fieldManager and fieldValidation. */
int hf_face_read_common(const struct hf_exchange *ex, struct hf_request *request,
			struct hf_error *err) HF_MUST_CHECK;
/* Decodes the body by its Content-Type. The caller owns *ret_doc. */
int hf_face_read_object(struct hf_exchange *ex, struct hf_doc **ret_doc, struct hf_error *err)
	HF_MUST_CHECK;
/* Reads a DeleteOptions object; options may be NULL. */
int hf_face_delete_options(const struct hf_json *options, struct hf_request *request,
			   struct hf_error *err) HF_MUST_CHECK;
/* --- face_evict.c --- */
/* Serves POST pods/NAME/eviction; finishes the exchange. */
void hf_face_evict(struct hf_face *face, struct hf_exchange *ex, const struct face_route *route);

/* --- paths (face_route.c) --- */
struct face_route {
	const struct hf_resource *resource; /* NULL: not the path of a resource */
	const char *ns, *name, *sub;        /* NULL: the path has no such part */
	bool too_long;                      /* the path goes on after sub */
	char *text;                         /* memory of the other strings */
};
/* Parses a path under /api/v1 or /apis/GROUP/VERSION. The caller frees ret_route->text. */
void hf_face_route(const char *path, struct face_route *ret_route);

/* The form of a response, by the Accept header. */
enum face_form {
	FACE_FORM_JSON,
	FACE_FORM_TABLE,
	FACE_FORM_METADATA, /* PartialObjectMetadata */
	FACE_FORM_UNACCEPTABLE,
};
/* accept NULL: any form. */
enum face_form hf_face_form(const char *accept);
/* True if a header's media type, without parameters, is type. */
bool hf_face_media_is(const char *header, const char *type);

/* --- answers (face_answer.c) --- */
void hf_face_answer_json(struct hf_exchange *ex, int status, const struct hf_json *value);
/* Sends the document's text. The document keeps the text, so each version is written only once. */
void hf_face_answer_doc(struct hf_exchange *ex, int status, struct hf_doc *doc);
void hf_face_add_doc(struct hf_strbuf *sb, struct hf_doc *doc);
/* Sends a Status. */
void hf_face_fail(struct hf_exchange *ex, int code, const char *fmt, ...) HF_PRINTF(3, 4);
void hf_face_fail_err(struct hf_exchange *ex, const struct hf_error *err);
void hf_face_no_such_path(struct hf_exchange *ex);
/* Sends the Status of a failed reply, with its warnings and Retry-After. */
void hf_face_fail_reply(struct hf_exchange *ex, const struct hf_reply *reply);
void hf_face_warn(struct hf_exchange *ex, const char *text); /* adds a Warning header */
/* True if a query parameter is set, and is not "false", "False" or "0". */
bool hf_face_query_true(const struct hf_exchange *ex, const char *name);
/* Reads a number of the query; false after a 400. absent: the value of a missing parameter. */
bool hf_face_query_i64(struct hf_exchange *ex, const char *name, int64_t absent,
		       int64_t *ret_value);

/* --- handlers: finish the exchange, or keep it for later --- */
/* Dispatches a request for a resource's path to a call, a watch, a log or an eviction. */
void hf_face_serve_resource(struct hf_face *face, struct hf_exchange *ex,
			    const struct face_route *route);
void hf_face_watch(struct hf_face *face, struct hf_exchange *ex, const struct face_route *route,
		   enum face_form form);
void hf_face_log(struct hf_face *face, struct hf_exchange *ex, const struct face_route *route);
/* True if options.serves allows the kind. */
bool hf_face_serves(const struct hf_face *face, const struct hf_resource *resource);
/* Discovery and OpenAPI (face_discovery.c, face_openapi.c); false: the path belongs to neither. */
bool hf_face_discovery(struct hf_face *face, struct hf_exchange *ex);
bool hf_face_openapi(struct hf_face *face, struct hf_exchange *ex);

/* --- tables and metadata (face_table.c); pure functions --- */
enum face_include { FACE_INCLUDE_NONE, FACE_INCLUDE_METADATA, FACE_INCLUDE_OBJECT };
extern const struct hf_resource hf_face_scale; /* kind of the rows of a Scale's table */
/* Makes a Table without rows; columns: with column definitions. */
struct hf_json *hf_face_table(const struct hf_resource *resource, bool columns);
/* Adds the object's row. now: for ages. */
void hf_face_table_add(struct hf_json *table, const struct hf_resource *resource,
		       const struct hf_json *object, enum face_include include, hf_time now);
/* The object as a PartialObjectMetadata. */
struct hf_json *hf_face_metadata_of(const struct hf_json *object);

#endif
