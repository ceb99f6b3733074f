/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "local/face_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "store/request.h"

#include <stdlib.h>
#include <string.h>

/* The HTTP server of the API: checks tokens, answers requests that are about no object (health,
 * version, metrics, access reviews), and passes the others to discovery, OpenAPI or the handlers of
 * resources.
 *
 * Only /healthz, /livez, /readyz and /version are answered without the token. */

/* Limit of connections at a time; the jobs of one machine need far fewer. */
#define CONNECTIONS_MAX 1024
#define METRICS_BYTES_MAX ((size_t)4 << 20)

/* ---- streams ------------------------------------------------------------------------------ */

void hf_face_stream_link(struct hf_face *face, struct face_stream *stream)
{
	stream->face = face;
	stream->next = face->streams;
	if (stream->next != NULL)
		stream->next->prev = stream;
	face->streams = stream;
}

void hf_face_stream_unlink(struct face_stream *stream)
{
	*(stream->prev != NULL ? &stream->prev->next : &stream->face->streams) = stream->next;
	if (stream->next != NULL)
		stream->next->prev = stream->prev;
	stream->prev = stream->next = NULL;
}

/* ---- authentication ------------------------------------------------------------------------- */

/* Compares in a time that does not depend on where the token differs. */
static bool token_is(const struct hf_face *face, const char *given)
{
	size_t len = strlen(given);
	unsigned char different = len != face->token_len;

	for (size_t i = 0; i < face->token_len; i++)
		different |= (unsigned char)(face->token[i] ^ (i < len ? given[i] : 0));
	return different == 0;
}

static bool is_public(const char *path)
{
	static const char *const paths[] = {"/healthz", "/livez", "/readyz", "/version"};

	for (size_t i = 0; i < HF_ARRAY_LEN(paths); i++)
		if (hf_streq(path, paths[i]))
			return true;
	return false;
}

static int on_admit(void *arg, const struct hf_exchange *ex, struct hf_error *err)
{
	const struct hf_face *face = arg;
	const char *header = hf_exchange_header(ex, "Authorization");

	if (is_public(hf_exchange_path(ex)))
		return 0;
	if (header != NULL && strncasecmp(header, "Bearer ", 7) == 0 &&
	    token_is(face, header + 7 + strspn(header + 7, " "))) {
		hf_exchange_trust(ex);
		return 0;
	}
	return hf_error_set(err, HF_E_UNAUTHORIZED, "Unauthorized");
}

static void on_refusal(void *arg, int code, const char *text, struct hf_strbuf *ret_body)
{
	HF_AUTO_JSON status =
		hf_status_failure(&(struct hf_status_args){.code = code, .message = text});

	hf_json_write(status, HF_JSON_COMPACT, ret_body);
	hf_strbuf_addch(ret_body, '\n');
}

/* ---- requests that are about no object ------------------------------------------------------ */

static void answer_text(struct hf_exchange *ex, int status, const char *text)
{
	hf_exchange_respond(ex, status, "text/plain; charset=utf-8", text, strlen(text));
}

static void serve_ready(struct hf_face *face, struct hf_exchange *ex)
{
	struct hf_error err = {0};
	int rc = hf_local_health(face->local, &err);

	if (rc == 0 && face->options.ready != NULL)
		rc = face->options.ready(face->options.arg, &err);
	if (rc == 0)
		answer_text(ex, 200, "ok");
	else
		answer_text(ex, 503, err.text);
}

static void serve_metrics(struct hf_face *face, struct hf_exchange *ex)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(METRICS_BYTES_MAX);

	if (face->options.metrics == NULL) {
		hf_face_no_such_path(ex);
		return;
	}
	face->options.metrics(face->options.arg, &sb);
	hf_exchange_respond_take(ex, 200, "text/plain; version=0.0.4; charset=utf-8", &sb);
}

/* The version that is reported: current clients support API servers of this version. */
static void serve_version(struct hf_exchange *ex)
{
	static const char *const members[][2] = {
		{"major", "1"},
		{"minor", "34"},
		{"gitVersion", "v1.34.0+holdfast." HF_VERSION},
		{"gitCommit", ""},
		{"gitTreeState", "clean"},
		{"buildDate", "1970-01-01T00:00:00Z"},
		{"goVersion", "none"},
		{"compiler", "cc"},
		{"platform", "linux"},
	};
	HF_AUTO_JSON version = hf_json_object();

	for (size_t i = 0; i < HF_ARRAY_LEN(members); i++)
		hf_json_set_str(version, members[i][0], members[i][1]);
	hf_face_answer_json(ex, 200, version);
}

/* Answers every question of "kubectl auth can-i" with yes: the token allows everything. */
static bool serve_access_review(struct hf_exchange *ex, const char *path)
{
	HF_AUTO_JSON review = NULL;

	if (!hf_streq(path, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews") ||
	    !hf_streq(hf_exchange_method(ex), "POST"))
		return false;
	review = hf_json_object();
	hf_json_set_str(review, "kind", "SelfSubjectAccessReview");
	hf_json_set_str(review, "apiVersion", "authorization.k8s.io/v1");
	(void)hf_json_ensure_object(review, "spec");
	hf_json_set_bool(hf_json_ensure_object(review, "status"), "allowed", true);
	hf_face_answer_json(ex, 201, review);
	return true;
}

static bool serve_plain(struct hf_face *face, struct hf_exchange *ex, const char *path)
{
	if (hf_streq(path, "/healthz") || hf_streq(path, "/livez"))
		answer_text(ex, 200, "ok");
	else if (hf_streq(path, "/readyz"))
		serve_ready(face, ex);
	else if (hf_streq(path, "/version") || hf_streq(path, "/version/"))
		serve_version(ex);
	else if (hf_streq(path, "/metrics"))
		serve_metrics(face, ex);
	else
		return false;
	return true;
}

static void on_request(void *arg, struct hf_exchange *ex)
{
	struct hf_face *face = arg;
	const char *path = hf_exchange_path(ex);
	bool get =
		hf_streq(hf_exchange_method(ex), "GET") || hf_streq(hf_exchange_method(ex), "HEAD");
	struct face_route route;
	struct hf_error err = {0};

	if (on_admit(face, ex, &err) != 0) {
		hf_face_fail_err(ex, &err);
		return;
	}
	if (get && (serve_plain(face, ex, path) || hf_face_discovery(face, ex) ||
		    hf_face_openapi(face, ex)))
		return;
	if (serve_access_review(ex, path))
		return;
	hf_face_route(path, &route);
	if (route.resource != NULL)
		hf_face_serve_resource(face, ex, &route);
	else
		hf_face_no_such_path(ex);
	free(route.text);
}

/* ---- life --------------------------------------------------------------------------------- */

bool hf_face_serves(const struct hf_face *face, const struct hf_resource *resource)
{
	return face->options.serves == NULL || face->options.serves(resource);
}

static int create_server(struct hf_face *face, struct hf_error *err)
{
	struct hf_http_server_spec spec = {
		.address = hf_str_or(face->options.address, "127.0.0.1"),
		.port = face->options.port,
		.cert_pem = face->options.cert_pem,
		.key_pem = face->options.key_pem,
		.handler = on_request,
		.admit = on_admit,
		.refusal = on_refusal,
		.refusal_content_type = "application/json",
		.arg = face,
		.stream_bytes_max = HF_FACE_STREAM_BYTES_MAX,
		.connections_max = CONNECTIONS_MAX,
	};

	return hf_http_server_create(face->loop, &spec, &face->server, err);
}

int hf_face_create(struct hf_loop *loop, struct hf_local *local,
		   const struct hf_face_options *options, struct hf_face **ret_face,
		   struct hf_error *err)
{
	struct hf_face *face;
	int rc;

	if (options->token == NULL || strlen(options->token) < HF_FACE_TOKEN_MIN)
		return hf_error_set(err, HF_E_INVALID, "the token must have %d bytes or more",
				    HF_FACE_TOKEN_MIN);
	face = hf_xcalloc(1, sizeof(*face));
	face->loop = loop;
	face->local = local;
	face->options = *options;
	face->token = hf_xstrdup(options->token);
	face->token_len = strlen(face->token);
	face->client = hf_local_client_create(local, NULL);
	rc = create_server(face, err);
	/* The server has copied these texts, and face->token is a copy. */
	face->options.address = face->options.token = NULL;
	face->options.cert_pem = face->options.key_pem = NULL;
	if (rc != 0) {
		hf_face_destroy(face);
		return rc;
	}
	*ret_face = face;
	return 0;
}

struct hf_face *hf_face_destroy(struct hf_face *face)
{
	if (face == NULL)
		return NULL;
	hf_http_server_destroy(face->server);
	hf_assert(face->streams == NULL);
	hf_store_destroy(face->client);
	explicit_bzero(face->token, face->token_len);
	free(face->token);
	free(face);
	return NULL;
}

uint16_t hf_face_port(const struct hf_face *face)
{
	return hf_http_server_port(face->server);
}

void hf_face_quiesce(struct hf_face *face)
{
	face->quiet = true;
	hf_http_server_quiesce(face->server);
	while (face->streams != NULL)
		face->streams->end(face->streams);
}
