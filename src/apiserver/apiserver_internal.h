/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APISERVER_APISERVER_INTERNAL_H
#define HF_APISERVER_APISERVER_INTERNAL_H

#include "apiserver/apiserver.h"
#include "http/server.h"
#include "store/resource.h"

/*
 * Shared by the files of the HTTP API. An exchange gets a response at once (health, discovery,
 * errors), or becomes a call (request.c), a watch (watch.c) or a log (logs.c). These
 * three have structs that live until the exchange ends or is closed. So the destruction of the
 * server, which closes all exchanges, frees all of them.
 */
struct apiserver_route;
struct apiserver_stream;

struct hf_apiserver {
	struct hf_loop *loop;
	struct hf_memstore *memstore;
	struct hf_store *client;
	struct hf_http_server *http;
	/* The options of hf_apiserver_create. Their texts are set to NULL, because the caller may
	 * free them. */
	struct hf_apiserver_options options;
	char *token;
	size_t token_len;
	struct apiserver_stream *streams;
	bool quiet; /* new streams are refused */
};

/* An open stream: a watch or a log. It has no end of its own: the client, the source of its data,
 * or hf_apiserver_quiesce ends it. */
struct apiserver_stream {
	struct apiserver_stream *prev, *next;
	struct hf_apiserver *server;
	struct hf_exchange *ex;
	void (*end)(
		/* ends the stream: finishes the exchange and frees the stream */
		struct apiserver_stream *stream);
};
void hf_apiserver_stream_link(struct hf_apiserver *server, struct apiserver_stream *stream);
void hf_apiserver_stream_unlink(struct apiserver_stream *stream);
void hf_apiserver_streams_end(struct hf_apiserver *server);

/* --- reading requests (request.c); strings are borrowed from the exchange or options --- */
/* Reads dryRun, fieldManager and fieldValidation. */
int hf_apiserver_read_common(const struct hf_exchange *ex, struct hf_request *request,
			     struct hf_error *err) HF_MUST_CHECK;
/* Decodes the body by its Content-Type. The caller owns *ret_doc. */
int hf_apiserver_read_object(struct hf_exchange *ex, struct hf_doc **ret_doc, struct hf_error *err)
	HF_MUST_CHECK;
/* Reads a DeleteOptions object into the request; options may be NULL. */
int hf_apiserver_delete_options(const struct hf_json *options, struct hf_request *request,
				struct hf_error *err) HF_MUST_CHECK;
/* Returns the verb (enum hf_verb) of the request's method on a path; -1: the path does not allow
 * the method. */
int hf_apiserver_verb_of(const struct hf_exchange *ex, const struct apiserver_route *route);
/* Reads the query and the body of a request, as far as request->verb needs them. The caller owns
 * request->body and *ret_options, which is the body of a deletion. */
int hf_apiserver_read_request(struct hf_exchange *ex, struct hf_request *request,
			      struct hf_doc **ret_options, struct hf_error *err) HF_MUST_CHECK;
/* Reads the selectors, the limit and the continue token of a LIST. */
int hf_apiserver_read_list(const struct hf_exchange *ex, struct hf_request *request,
			   struct hf_error *err) HF_MUST_CHECK;
/* Reads the options of a deletion from the body, or from the query if there is no body. */
int hf_apiserver_read_delete(struct hf_exchange *ex, struct hf_request *request,
			     struct hf_doc **ret_options, struct hf_error *err) HF_MUST_CHECK;

/* --- eviction.c --- */
/* Serves POST pods/NAME/eviction; finishes the exchange. */
void hf_apiserver_evict(struct hf_apiserver *server, struct hf_exchange *ex,
			const struct apiserver_route *route);

/* --- paths (route.c) --- */
struct apiserver_route {
	/* kind that the path names; NULL: the path is not that of a resource */
	const struct hf_resource *resource;
	/* namespace, name and subresource in the path; NULL: the path does not have it */
	const char *ns, *name, *sub;
	bool too_long; /* the path goes on after sub */
	char *text;    /* memory of the other strings */
};
/* Parses a path under /api/v1 or /apis/GROUP/VERSION. The caller frees ret_route->text. */
void hf_apiserver_route(const char *path, struct apiserver_route *ret_route);

/* The forms of a response. A client chooses the form by its Accept header. */
enum apiserver_form {
	APISERVER_FORM_JSON,
	APISERVER_FORM_TABLE,
	APISERVER_FORM_METADATA, /* PartialObjectMetadata */
	APISERVER_FORM_UNACCEPTABLE,
};
/* Returns the form that an Accept header asks for; accept NULL: the client takes any form. */
enum apiserver_form hf_apiserver_form(const char *accept);
/* True if the media type in the header, without its parameters, is `type`. */
bool hf_apiserver_media_is(const char *header, const char *type);

/* --- answers (response.c) --- */
void hf_apiserver_answer_json(struct hf_exchange *ex, int status, const struct hf_json *value);
/* Sends a document as JSON. The document keeps the text, so each version of an object is converted
 * to text only once. */
void hf_apiserver_answer_doc(struct hf_exchange *ex, int status, struct hf_doc *doc);
void hf_apiserver_add_doc(struct hf_strbuf *sb, struct hf_doc *doc);
/* Sends a Status. */
void hf_apiserver_fail(struct hf_exchange *ex, int code, const char *fmt, ...) HF_PRINTF(3, 4);
void hf_apiserver_fail_err(struct hf_exchange *ex, const struct hf_error *err);
void hf_apiserver_no_such_path(struct hf_exchange *ex);
/* Sends the Status of a failed reply, with its warnings and Retry-After. */
void hf_apiserver_fail_reply(struct hf_exchange *ex, const struct hf_reply *reply);
void hf_apiserver_warn(struct hf_exchange *ex, const char *text); /* adds a Warning header */
/* True if a query parameter is set, and is not "false", "False" or "0". */
bool hf_apiserver_query_true(const struct hf_exchange *ex, const char *name);
/* Reads a number from a query parameter; `absent` is the result if the parameter is missing.
 * Returns false, after sending a 400, if the number is malformed. */
bool hf_apiserver_query_i64(struct hf_exchange *ex, const char *name, int64_t absent,
			    int64_t *ret_value);

/* --- handlers: finish the exchange, or keep it for later --- */
/* Dispatches a request for a resource's path to a call, a watch, a log or an eviction. */
void hf_apiserver_serve_resource(struct hf_apiserver *server, struct hf_exchange *ex,
				 const struct apiserver_route *route);
void hf_apiserver_watch(struct hf_apiserver *server, struct hf_exchange *ex,
			const struct apiserver_route *route, enum apiserver_form form);
void hf_apiserver_log(struct hf_apiserver *server, struct hf_exchange *ex,
		      const struct apiserver_route *route);
/* True if options.serves allows the kind. */
bool hf_apiserver_serves(const struct hf_apiserver *server, const struct hf_resource *resource);
/* Serves discovery and OpenAPI (discovery.c, openapi.c). Returns false if the path belongs to
 * neither. */
bool hf_apiserver_discovery(struct hf_apiserver *server, struct hf_exchange *ex);
bool hf_apiserver_openapi(struct hf_apiserver *server, struct hf_exchange *ex);

/* --- tables and metadata (table.c); pure functions --- */
enum apiserver_include {
	APISERVER_INCLUDE_NONE,
	APISERVER_INCLUDE_METADATA,
	APISERVER_INCLUDE_OBJECT
};
/* kind of the rows in a table of Scale objects */
extern const struct hf_resource hf_apiserver_scale;
/* Makes a Table without rows. If columns is true, the Table has the column definitions. */
struct hf_json *hf_apiserver_table(const struct hf_resource *resource, bool columns);
/* Adds the row of an object to a Table. The ages in the row are counted up to now. */
void hf_apiserver_table_add(struct hf_json *table, const struct hf_resource *resource,
			    const struct hf_json *object, enum apiserver_include include,
			    hf_time now);
/* The object as a PartialObjectMetadata. */
struct hf_json *hf_apiserver_metadata_of(const struct hf_json *object);

#endif
