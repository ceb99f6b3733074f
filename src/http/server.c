/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The HTTP server: runs libmicrohttpd on the loop, turns its callbacks into exchanges, and calls
 * the handlers from a task. server_internal.h describes why handlers are never called from inside
 * MHD_run. */
#include "http/server_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "http/certificate.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Most bytes of a request body that are read and dropped after a refusal. A client that sends its
 * whole body before it reads can then get the refusal. */
#define DISCARD_BYTES_MAX ((size_t)16 << 20)

#define URI_TOO_LONG 414 /* HTTP status of a refusal for which no HF_E_* code exists */

/* TCP keepalive finds a dead peer machine after about three minutes. */
#define KEEPALIVE_IDLE_S 60
#define KEEPALIVE_INTERVAL_S 30
#define KEEPALIVE_PROBES 4

/* Runs of MHD_run in a row without an event, while a TLS handshake waits. The last step of a
 * handshake and the request behind it take two or three runs. */
#define RUNS_WITHOUT_EVENT_MAX 8u
#define WITHOUT_EVENT_DELAY (10 * HF_MS)
/* Runs in a row while responses are sent; enough for 1 MiB, at 16 KiB a run. */
#define RUNS_ANSWERING_MAX 64u
#define ANSWERING_DELAY (1 * HF_MS)

#if MHD_VERSION < 0x00097002
#error "libmicrohttpd before 0.9.71 has int where enum MHD_Result is meant"
#endif

/* --- running libmicrohttpd --- */

static void wake_server(struct hf_http_server *server)
{
	hf_task_post(server->run);
}

/* The delay before the next MHD_run. While a TLS handshake waits for its client, libmicrohttpd
 * always asks to run at once: it takes the socket for readable until it has read a request. Events
 * that really come are reported by its epoll fd. So while a connection has sent no request and no
 * event comes, only some runs happen at once, then a delay follows. While a response is being sent
 * more runs happen at once, because each run sends 16 KiB of it. */
static hf_time next_run_delay(struct hf_http_server *server, hf_time timeout)
{
	bool answers = server->answering > 0;

	if (timeout > 0 || server->before_first_request == 0 ||
	    ++server->runs_without_event <= (answers ? RUNS_ANSWERING_MAX : RUNS_WITHOUT_EVENT_MAX))
		return timeout;
	server->runs_without_event = 0;
	return answers ? ANSWERING_DELAY : WITHOUT_EVENT_DELAY;
}

/* Runs libmicrohttpd, then arms the timer for its next run. Its epoll fd is watched separately. */
static void run_daemon(void *arg)
{
	struct hf_http_server *server = arg;
	MHD_UNSIGNED_LONG_LONG timeout_ms = 0;
	unsigned before = hf_http_server_connections(server);

	(void)MHD_run(server->daemon);
	/* At its connection limit libmicrohttpd stops listening. It listens again only in the run
	 * after the one in which a connection ended. */
	if (hf_http_server_connections(server) < before)
		wake_server(server);
	if (MHD_get_timeout(server->daemon, &timeout_ms) == MHD_YES)
		hf_timer_arm(server->timer, next_run_delay(server, (hf_time)timeout_ms * HF_MS));
	else
		hf_timer_disarm(server->timer);
}

static void on_epoll(void *arg, unsigned events)
{
	struct hf_http_server *server = arg;

	server->runs_without_event = 0;
	run_daemon(server);
}

/* --- exchanges and the queue of deliveries --- */

void hf_exchange_queue(struct hf_exchange *ex)
{
	struct hf_http_server *server = ex->server;

	if (ex->queued)
		return;
	ex->queued = true;
	ex->queued_behind = NULL;
	*server->queue_tail = ex;
	server->queue_tail = &ex->queued_behind;
	hf_task_post(server->deliver);
}

static struct hf_exchange *queue_pop(struct hf_http_server *server)
{
	struct hf_exchange *ex = server->queue;

	if (!ex)
		return NULL;
	server->queue = ex->queued_behind;
	if (!server->queue)
		server->queue_tail = &server->queue;
	ex->queued = false;
	return ex;
}

static struct hf_exchange *exchange_create(struct hf_http_server *server,
					   struct MHD_Connection *connection)
{
	struct hf_exchange *ex = hf_xcalloc(1, sizeof(*ex));

	ex->server = server;
	ex->connection = connection;
	ex->response_headers.len_max = HF_HTTP_RESPONSE_HEADERS_MAX;
	hf_strbuf_init(&ex->body, server->spec.body_bytes_max);
	hf_strbuf_init(&ex->out, server->spec.stream_bytes_max);
	ex->next = server->all;
	if (server->all)
		server->all->prev = ex;
	server->all = ex;
	return ex;
}

static void exchange_unlink(struct hf_exchange *ex)
{
	struct hf_http_server *server = ex->server;

	if (ex->prev)
		ex->prev->next = ex->next;
	else
		server->all = ex->next;
	if (ex->next)
		ex->next->prev = ex->prev;
	ex->prev = ex->next = NULL;
	server->bodies_bytes -= ex->body.len;
}

void hf_exchange_resume(struct hf_exchange *ex)
{
	if (!ex->suspended)
		return;
	ex->suspended = false;
	MHD_resume_connection(ex->connection);
	/* MHD_resume_connection does not wake a loop that watches the epoll fd from outside. */
	wake_server(ex->server);
}

static void on_hangup(void *arg, unsigned events)
{
	struct hf_exchange *ex = arg;

	ex->hangup = hf_io_destroy(ex->hangup);
	ex->cut = true;
	hf_exchange_resume(ex);
}

static void watch_hangup(struct hf_exchange *ex)
{
	const union MHD_ConnectionInfo *info;
	struct hf_http_server *server = ex->server;

	info = MHD_get_connection_info(ex->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (!info ||
	    hf_io_create(server->loop, info->connect_fd, on_hangup, ex, &ex->hangup, NULL) < 0) {
		/* Without the watch nothing would notice that the client has left, and the exchange
		 * would stay for ever. So cut the connection. */
		ex->cut = true;
		hf_exchange_resume(ex);
		return;
	}
	hf_io_want(ex->hangup, HF_IO_HANGUP);
}

/* Handles one queued exchange: calls its handler, on_drained or on_closed. The server may be
 * destroyed when this returns. */
static void deliver_exchange(struct hf_exchange *ex)
{
	struct hf_http_server *server = ex->server;
	/* A copy of the pointer: the flag itself still exists after the server was freed. */
	bool *dead = server->dead;

	if (!ex->connection) {
		exchange_unlink(ex);
		if (ex->handed && !ex->ended) {
			ex->ended = true;
			server->live--;
			if (ex->on_closed)
				ex->on_closed(ex->closed_arg, ex);
		}
		hf_exchange_free(ex);
	} else if (!ex->handed) {
		ex->handed = true;
		server->live++;
		server->spec.handler(server->spec.arg, ex);
		if (!*dead && !ex->ended)
			watch_hangup(ex);
	} else if (ex->drained && !ex->ended) {
		ex->drained = false;
		if (ex->on_drained)
			ex->on_drained(ex->drained_arg, ex);
	}
}

static void on_deliver(void *arg)
{
	struct hf_http_server *server = arg;
	struct hf_exchange *ex;
	bool dead = false;

	server->dead = &dead;
	while ((ex = queue_pop(server))) {
		deliver_exchange(ex);
		if (dead)
			return;
	}
	server->dead = NULL;
}

/* --- callbacks of libmicrohttpd, from inside MHD_run --- */

/* The connection's first request has come, so its TLS handshake is over. */
static void note_first_request(struct hf_http_server *server, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	if (info && info->socket_context)
		hf_http_peer_note_request(server, info->socket_context);
}

static void *on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
	struct hf_exchange *ex = exchange_create(cls, connection);

	note_first_request(ex->server, connection);
	/* A malformed target is not refused here: the refusal is sent once the headers have
	 * come. */
	if (hf_target_parse(target, &ex->target, &ex->refused) == HF_E_TOO_LARGE)
		ex->status = URI_TOO_LONG;
	return ex;
}

struct header_copy {
	size_t count, bytes;
	struct hf_target_pair *pairs; /* NULL in the first pass, which only counts */
	char *text;
};

static char *copy_text(struct header_copy *copy, const char *text)
{
	size_t size = strlen(text) + 1;

	copy->bytes += size;
	if (!copy->pairs)
		return NULL;
	char *at = copy->text;
	memcpy(at, text, size);
	copy->text += size;
	return at;
}

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *name,
				 const char *value)
{
	struct header_copy *copy = cls;
	const char *copied_name = copy_text(copy, name);
	const char *copied_value = copy_text(copy, value ? value : "");

	if (copy->pairs)
		copy->pairs[copy->count] =
			(struct hf_target_pair){.name = copied_name, .value = copied_value};
	copy->count++;
	return MHD_YES;
}

/* Copies the headers: the handle may outlive libmicrohttpd's request for a moment. */
static void copy_headers(struct hf_exchange *ex)
{
	struct header_copy copy = {0};

	(void)MHD_get_connection_values(ex->connection, MHD_HEADER_KIND, on_header, &copy);
	size_t count = copy.count;
	copy.pairs = hf_xmalloc(count * sizeof(*copy.pairs) + copy.bytes + 1);
	copy.text = (char *)(copy.pairs + count);
	copy.count = 0;
	ex->headers = copy.pairs;
	(void)MHD_get_connection_values(ex->connection, MHD_HEADER_KIND, on_header, &copy);
	ex->headers_count = copy.count;
	hf_assert(copy.count == count);
}

static enum MHD_Result queue_refusal(struct hf_exchange *ex)
{
	struct hf_http_server *server = ex->server;
	const char *content_type = "text/plain; charset=utf-8";
	HF_AUTO_STRBUF body = HF_STRBUF_INIT(HF_HTTP_HEAD_BYTES_MAX);

	if (server->spec.refusal) {
		content_type = server->spec.refusal_content_type;
		server->spec.refusal(server->spec.arg, ex->refused.code, ex->refused.text, &body);
	} else {
		hf_strbuf_addf(&body, "%s\n", ex->refused.text);
	}
	struct MHD_Response *response =
		MHD_create_response_from_buffer(body.len, body.data, MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	if (content_type)
		(void)MHD_add_response_header(response, "Content-Type", content_type);
	int status = ex->status ? ex->status : hf_code_http(ex->refused.code);
	enum MHD_Result rc = MHD_queue_response(ex->connection, (unsigned)status, response);
	MHD_destroy_response(response);
	return rc;
}

/* The first call for a request: the headers have come. */
static enum MHD_Result take_headers(struct hf_exchange *ex, const char *method)
{
	struct hf_http_server *server = ex->server;
	int64_t announced = 0;

	ex->method = hf_xstrdup(method);
	copy_headers(ex);
	const char *length = hf_exchange_header(ex, "Content-Length");
	bool has_body =
		hf_exchange_header(ex, "Transfer-Encoding") || (length && strcmp(length, "0") != 0);
	if (ex->refused.code == 0 && length &&
	    hf_str_to_i64(length, 0, INT64_MAX, &announced, NULL) == 0 &&
	    announced > (int64_t)server->spec.body_bytes_max)
		hf_error_set(&ex->refused, HF_E_TOO_LARGE,
			     "the request's body is larger than %zu bytes",
			     server->spec.body_bytes_max);
	else if (ex->refused.code == 0 && server->spec.admit)
		(void)server->spec.admit(server->spec.arg, ex, &ex->refused);
	else if (ex->refused.code == 0)
		hf_exchange_trust(ex);
	/* If the request has a body, the refusal is sent now and ends the connection, because the
	 * body will not be read. For a request without a body the next call sends the refusal, and
	 * the connection stays open. */
	return ex->refused.code != 0 && has_body ? queue_refusal(ex) : MHD_YES;
}

/* Takes a piece of the body. After a refusal the rest is read and dropped: libmicrohttpd accepts a
 * response before the body or after it, not in the middle. */
static enum MHD_Result take_body(struct hf_exchange *ex, const char *bytes, size_t len)
{
	struct hf_http_server *server = ex->server;

	if (ex->refused.code == 0 && server->bodies_bytes + len > HF_HTTP_BODIES_BYTES_MAX)
		hf_error_set(&ex->refused, HF_E_UNAVAILABLE, "too many request bodies at a time");
	if (ex->refused.code == 0) {
		server->bodies_bytes -= ex->body.len;
		hf_strbuf_add(&ex->body, bytes, len);
		server->bodies_bytes += ex->body.len;
		if (!ex->body.full)
			return MHD_YES;
		hf_error_set(&ex->refused, HF_E_TOO_LARGE,
			     "the request's body is larger than %zu bytes",
			     server->spec.body_bytes_max);
	}
	server->bodies_bytes -= ex->body.len;
	hf_strbuf_release(&ex->body);
	ex->discarded += len;
	return ex->discarded <= DISCARD_BYTES_MAX ? MHD_YES : MHD_NO;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *upload_data,
				  size_t *upload_data_size, void **request_cls)
{
	struct hf_exchange *ex = *request_cls;

	if (!ex->method)
		return take_headers(ex, method);
	if (*upload_data_size > 0) {
		size_t len = *upload_data_size;
		*upload_data_size = 0;
		return take_body(ex, upload_data, len);
	}
	if (ex->refused.code != 0)
		return queue_refusal(ex);
	if (ex->cut)
		return MHD_NO;
	if (ex->response) {
		enum MHD_Result rc =
			MHD_queue_response(connection, (unsigned)ex->status, ex->response);
		MHD_destroy_response(ex->response);
		ex->response = NULL;
		ex->answering = true;
		ex->server->answering++;
		return rc;
	}
	ex->suspended = true;
	MHD_suspend_connection(connection);
	if (!ex->handed)
		hf_exchange_queue(ex);
	return MHD_YES;
}

static void end_trust(struct hf_http_server *server, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info;

	if (!server->spec.trust_ends_with_request)
		return;
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	if (info != NULL && info->socket_context != NULL)
		hf_http_peer_end_trust(server, info->socket_context);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **request_cls,
			 enum MHD_RequestTerminationCode how)
{
	struct hf_exchange *ex = *request_cls;

	if (!ex)
		return;
	*request_cls = NULL;
	end_trust(ex->server, connection);
	if (ex->answering)
		ex->server->answering--;
	ex->answering = false;
	ex->connection = NULL;
	ex->suspended = false;
	ex->hangup = hf_io_destroy(ex->hangup);
	hf_exchange_queue(ex);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **socket_cls,
			  enum MHD_ConnectionNotificationCode how)
{
	const union MHD_ConnectionInfo *info;
	int on = 1, idle = KEEPALIVE_IDLE_S, interval = KEEPALIVE_INTERVAL_S,
	    probes = KEEPALIVE_PROBES;

	if (how != MHD_CONNECTION_NOTIFY_STARTED) {
		if (*socket_cls)
			hf_http_peer_destroy(cls, *socket_cls);
		*socket_cls = NULL;
		return;
	}
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	*socket_cls = hf_http_peer_create(cls, info ? info->connect_fd : -1);
	if (!info)
		return;
	/* The calls fail on a unix socket, which needs no keepalive. */
	int fd = info->connect_fd;
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

/* --- lifetime of the server --- */

static void fill_limits(struct hf_http_server_spec *spec)
{
	if (spec->body_bytes_max == 0)
		spec->body_bytes_max = HF_HTTP_BODY_BYTES_MAX;
	if (spec->head_bytes_max == 0)
		spec->head_bytes_max = HF_HTTP_HEAD_BYTES_MAX;
	if (spec->stream_bytes_max == 0)
		spec->stream_bytes_max = HF_HTTP_STREAM_BYTES_MAX;
	if (spec->connections_max == 0)
		spec->connections_max = HF_HTTP_CONNECTIONS_MAX;
	if (spec->idle_timeout_s == 0)
		spec->idle_timeout_s = HF_HTTP_IDLE_TIMEOUT_S;
	if (spec->untrusted_max == 0)
		spec->untrusted_max = spec->connections_max / 4 + 1;
	if (spec->untrusted_timeout_s == 0)
		spec->untrusted_timeout_s = HF_HTTP_UNTRUSTED_TIMEOUT_S;
}

static struct MHD_Daemon *start_daemon(struct hf_http_server *server, int listen_fd)
{
	const struct hf_http_server_spec *spec = &server->spec;
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)spec->cert_pem},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)spec->key_pem},
		{MHD_OPTION_END, 0, NULL},
	};

	if (spec->cert_pem)
		flags |= MHD_USE_TLS;
	else
		tls[0].option = MHD_OPTION_END;
	return MHD_start_daemon(
		flags, 0, NULL, NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET, listen_fd,
		MHD_OPTION_CONNECTION_LIMIT, spec->connections_max, MHD_OPTION_CONNECTION_TIMEOUT,
		spec->idle_timeout_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, spec->head_bytes_max,
		MHD_OPTION_URI_LOG_CALLBACK, on_target, server, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
		MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

static int watch_daemon(struct hf_http_server *server, struct hf_error *err)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);

	if (!info)
		return hf_error_set(err, HF_E_INTERNAL, "libmicrohttpd has no epoll fd");
	int rc = hf_io_create(server->loop, info->epoll_fd, on_epoll, server, &server->io, err);
	if (rc < 0)
		return rc;
	hf_io_want(server->io, HF_IO_READ);
	wake_server(server);
	return 0;
}

int hf_http_server_create(struct hf_loop *loop, const struct hf_http_server_spec *spec,
			  struct hf_http_server **ret_server, struct hf_error *err)
{
	int listen_fd = -1;
	uint16_t port = 0;

	hf_assert(spec->handler && !spec->unix_path != !spec->address);
	if (!hf_loop_is_real(loop))
		return hf_error_set(err, HF_E_UNSUPPORTED, "a virtual loop has no network");
	int rc = spec->cert_pem || spec->key_pem
			 ? hf_certificate_check(spec->cert_pem, spec->key_pem, err)
			 : 0;
	if (rc == 0)
		rc = hf_http_listen(spec, &listen_fd, &port, err);
	if (rc < 0)
		return rc;
	struct hf_http_server *server = hf_xcalloc(1, sizeof(*server));
	server->loop = loop;
	server->spec = *spec;
	fill_limits(&server->spec);
	server->port = port;
	server->unix_path = spec->unix_path ? hf_xstrdup(spec->unix_path) : NULL;
	server->queue_tail = &server->queue;
	server->timer = hf_timer_create(loop, run_daemon, server);
	server->run = hf_task_create(loop, run_daemon, server);
	server->deliver = hf_task_create(loop, on_deliver, server);
	server->untrusted_timer = hf_timer_create(loop, hf_http_peers_cut_expired, server);
	server->daemon = start_daemon(server, listen_fd);
	if (server->daemon)
		rc = watch_daemon(server, err);
	else
		rc = hf_error_set(err, HF_E_INTERNAL, "libmicrohttpd cannot start");
	server->spec.cert_pem = server->spec.key_pem = NULL;
	server->spec.address = server->spec.unix_path = NULL;
	if (rc < 0) {
		hf_http_server_destroy(server);
		return rc;
	}
	*ret_server = server;
	return 0;
}

int hf_http_server_create_at(struct hf_loop *loop, const struct hf_http_server_spec *spec,
			     struct hf_http_server **ret_server, struct hf_error *err)
{
	struct hf_http_server_spec at = *spec;

	if (hf_streq(spec->address, "localhost"))
		at.address = "127.0.0.1";
	if (!hf_str_is_empty(spec->address))
		return hf_http_server_create(loop, &at, ret_server, err);
	/* "::" also accepts IPv4 connections. */
	at.address = "::";
	if (hf_http_server_create(loop, &at, ret_server, err) == 0)
		return 0;
	at.address = "0.0.0.0";
	return hf_http_server_create(loop, &at, ret_server, err);
}

struct hf_http_server *hf_http_server_destroy(struct hf_http_server *server)
{
	if (!server)
		return NULL;
	if (server->dead)
		*server->dead = true;
	/* libmicrohttpd ends the process if it is stopped with a suspended connection. */
	for (struct hf_exchange *ex = server->all; ex; ex = ex->next) {
		ex->cut = true;
		hf_exchange_resume(ex);
	}
	server->io = hf_io_destroy(server->io);
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	for (struct hf_exchange *ex; (ex = queue_pop(server));)
		deliver_exchange(ex); /* reports the end of each exchange */
	hf_assert(!server->all && server->live == 0);
	hf_task_destroy(server->run);
	hf_task_destroy(server->deliver);
	hf_timer_destroy(server->timer);
	hf_timer_destroy(server->untrusted_timer);
	if (server->unix_path)
		(void)unlink(server->unix_path);
	free(server->unix_path);
	free(server);
	return NULL;
}

uint16_t hf_http_server_port(const struct hf_http_server *server)
{
	return server->port;
}

void hf_http_server_quiesce(struct hf_http_server *server)
{
	int fd = server->quiet ? -1 : MHD_quiesce_daemon(server->daemon);

	server->quiet = true;
	/* An open fd would accept connections that no code serves. */
	if (fd >= 0)
		(void)close(fd);
}

unsigned hf_http_server_connections(const struct hf_http_server *server)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

	return info ? info->num_connections : 0;
}
