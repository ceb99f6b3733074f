/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/apiserver_internal.h"

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

/* Limit of open connections; the jobs of one machine need far fewer. */
#define CONNECTIONS_MAX 1024
#define METRICS_BYTES_MAX ((size_t)4 << 20)

/* ---- authentication ------------------------------------------------------------------------- */

/* Compares a token with the server's token. The comparison takes the same time wherever the two
 * differ, so that a client cannot guess the token byte by byte. */
static bool token_is(const struct hf_apiserver *server, const char *given)
{
	size_t len = strlen(given);
	unsigned char different = len != server->token_len;

	for (size_t i = 0; i < server->token_len; i++)
		different |= (unsigned char)(server->token[i] ^ (i < len ? given[i] : 0));
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
	const struct hf_apiserver *server = arg;
	const char *header = hf_exchange_header(ex, "Authorization");

	if (is_public(hf_exchange_path(ex)))
		return 0;
	if (header != NULL && strncasecmp(header, "Bearer ", 7) == 0 &&
	    token_is(server, header + 7 + strspn(header + 7, " "))) {
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

static void serve_ready(struct hf_apiserver *server, struct hf_exchange *ex)
{
	struct hf_error err = {0};
	int rc = hf_memstore_health(server->memstore, &err);

	if (rc == 0 && server->options.ready != NULL)
		rc = server->options.ready(server->options.arg, &err);
	if (rc == 0)
		answer_text(ex, 200, "ok");
	else
		answer_text(ex, 503, err.text);
}

static void serve_metrics(struct hf_apiserver *server, struct hf_exchange *ex)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(METRICS_BYTES_MAX);

	if (server->options.metrics == NULL) {
		hf_apiserver_no_such_path(ex);
		return;
	}
	server->options.metrics(server->options.arg, &sb);
	hf_exchange_respond_take(ex, 200, "text/plain; version=0.0.4; charset=utf-8", &sb);
}

/* Sends the version of Kubernetes whose API the plane serves. A client warns if its own minor version is
 * more than one away. */
static void serve_version(struct hf_exchange *ex)
{
	static const char *const members[][2] = {
		{"major", "1"},
		{"minor", "36"},
		{"gitVersion", "v1.36.0+holdfast." HF_VERSION},
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
	hf_apiserver_answer_json(ex, 200, version);
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
	hf_apiserver_answer_json(ex, 201, review);
	return true;
}

static bool serve_plain(struct hf_apiserver *server, struct hf_exchange *ex, const char *path)
{
	if (hf_streq(path, "/healthz") || hf_streq(path, "/livez"))
		answer_text(ex, 200, "ok");
	else if (hf_streq(path, "/readyz"))
		serve_ready(server, ex);
	else if (hf_streq(path, "/version") || hf_streq(path, "/version/"))
		serve_version(ex);
	else if (hf_streq(path, "/metrics"))
		serve_metrics(server, ex);
	else
		return false;
	return true;
}

static void on_request(void *arg, struct hf_exchange *ex)
{
	struct hf_apiserver *server = arg;
	const char *path = hf_exchange_path(ex);
	bool get =
		hf_streq(hf_exchange_method(ex), "GET") || hf_streq(hf_exchange_method(ex), "HEAD");
	struct apiserver_route route;
	struct hf_error err = {0};

	if (on_admit(server, ex, &err) != 0) {
		hf_apiserver_fail_err(ex, &err);
		return;
	}
	if (get && (serve_plain(server, ex, path) || hf_apiserver_discovery(server, ex) ||
		    hf_apiserver_openapi(server, ex)))
		return;
	if (serve_access_review(ex, path))
		return;
	hf_apiserver_route(path, &route);
	if (route.resource != NULL)
		hf_apiserver_serve_resource(server, ex, &route);
	else
		hf_apiserver_no_such_path(ex);
	free(route.text);
}

/* ---- life --------------------------------------------------------------------------------- */

static int create_server(struct hf_apiserver *server, struct hf_error *err)
{
	struct hf_http_server_spec spec = {
		.address = hf_str_or(server->options.address, "127.0.0.1"),
		.port = server->options.port,
		.cert_pem = server->options.cert_pem,
		.key_pem = server->options.key_pem,
		.handler = on_request,
		.admit = on_admit,
		.refusal = on_refusal,
		.refusal_content_type = "application/json",
		.arg = server,
		.stream_bytes_max = HF_APISERVER_STREAM_BYTES_MAX,
		.connections_max = CONNECTIONS_MAX,
	};

	return hf_http_server_create(server->loop, &spec, &server->http, err);
}

int hf_apiserver_create(struct hf_loop *loop, struct hf_memstore *memstore,
			const struct hf_apiserver_options *options,
			struct hf_apiserver **ret_server, struct hf_error *err)
{
	struct hf_apiserver *server;
	int rc;

	if (options->token == NULL || strlen(options->token) < HF_APISERVER_TOKEN_MIN)
		return hf_error_set(err, HF_E_INVALID, "the token must have %d bytes or more",
				    HF_APISERVER_TOKEN_MIN);
	server = hf_xcalloc(1, sizeof(*server));
	server->loop = loop;
	server->memstore = memstore;
	server->options = *options;
	server->token = hf_xstrdup(options->token);
	server->token_len = strlen(server->token);
	server->client = hf_memstore_client_create(memstore, NULL);
	rc = create_server(server, err);
	/* Forget these texts of the caller: server->token is a copy, and the HTTP server has
	 * copied the others. */
	server->options.address = server->options.token = NULL;
	server->options.cert_pem = server->options.key_pem = NULL;
	if (rc != 0) {
		hf_apiserver_destroy(server);
		return rc;
	}
	*ret_server = server;
	return 0;
}

struct hf_apiserver *hf_apiserver_destroy(struct hf_apiserver *server)
{
	if (server == NULL)
		return NULL;
	hf_http_server_destroy(server->http);
	hf_assert(server->streams == NULL);
	hf_store_destroy(server->client);
	explicit_bzero(server->token, server->token_len);
	free(server->token);
	free(server);
	return NULL;
}

uint16_t hf_apiserver_port(const struct hf_apiserver *server)
{
	return hf_http_server_port(server->http);
}

void hf_apiserver_quiesce(struct hf_apiserver *server)
{
	server->quiet = true;
	hf_http_server_quiesce(server->http);
	hf_apiserver_streams_end(server);
}
