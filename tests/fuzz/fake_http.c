/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fuzz/fake_http.h"

#include "base/mem.h"
#include "base/str.h"
#include "http/target.h"
#include "json/json.h"

#include <stdlib.h>
#include <string.h>

#define STREAM_BYTES_MAX ((size_t)1 << 12) /* small, so that streams run full */

struct hf_http_server {
	struct hf_http_server_spec spec;
	struct hf_exchange *all;
};

struct hf_exchange {
	struct hf_exchange *prev, *next;
	struct hf_target target;
	const struct fake_request *request;
	hf_exchange_fn on_closed, on_drained;
	void *closed_arg, *drained_arg;
	bool begun, starved;
	size_t written;
};

static struct hf_http_server *the_server;

static void forget(struct hf_exchange *ex)
{
	*(ex->prev != NULL ? &ex->prev->next : &the_server->all) = ex->next;
	if (ex->next != NULL)
		ex->next->prev = ex->prev;
	hf_target_release(&ex->target);
	free(ex);
}

/* ---- the server --------------------------------------------------------------------------- */

int hf_http_server_create(struct hf_loop *loop, const struct hf_http_server_spec *spec,
			  struct hf_http_server **ret_server, struct hf_error *err)
{
	hf_assert(the_server == NULL);
	the_server = hf_xcalloc(1, sizeof(*the_server));
	the_server->spec = *spec;
	*ret_server = the_server;
	return 0;
}

struct hf_http_server *hf_http_server_destroy(struct hf_http_server *server)
{
	if (server == NULL)
		return NULL;
	hf_assert(server == the_server);
	fake_http_hang_up();
	free(the_server);
	the_server = NULL;
	return NULL;
}

uint16_t hf_http_server_port(const struct hf_http_server *server)
{
	return 1;
}

void hf_exchange_trust(const struct hf_exchange *ex)
{
}

void hf_http_server_quiesce(struct hf_http_server *server)
{
}

bool fake_http_say(const struct fake_request *request)
{
	struct hf_exchange *ex = hf_xcalloc(1, sizeof(*ex));

	if (hf_target_parse(request->target, &ex->target, NULL) != 0) {
		free(ex);
		return false;
	}
	ex->request = request;
	ex->next = the_server->all;
	if (ex->next != NULL)
		ex->next->prev = ex;
	the_server->all = ex;
	the_server->spec.handler(the_server->spec.arg, ex);
	return true;
}

void fake_http_hang_up(void)
{
	while (the_server->all != NULL) {
		struct hf_exchange *ex = the_server->all;
		/* Without on_closed, the handler could not end the request. */
		hf_assert(ex->on_closed != NULL);
		ex->on_closed(ex->closed_arg, ex);
		forget(ex);
	}
}

void fake_http_drain(void)
{
	for (struct hf_exchange *ex = the_server->all, *next; ex != NULL; ex = next) {
		next = ex->next;
		ex->written = 0;
		if (ex->starved && ex->on_drained != NULL) {
			ex->starved = false;
			ex->on_drained(ex->drained_arg, ex);
		}
	}
}

/* ---- the request -------------------------------------------------------------------------- */

const char *hf_exchange_method(const struct hf_exchange *ex)
{
	return ex->request->method;
}

const char *hf_exchange_path(const struct hf_exchange *ex)
{
	return ex->target.path;
}

const char *hf_exchange_query(const struct hf_exchange *ex, const char *name)
{
	for (size_t i = 0; i < ex->target.query_count; i++)
		if (hf_streq(ex->target.query[i].name, name))
			return ex->target.query[i].value;
	return NULL;
}

const char *hf_exchange_header(const struct hf_exchange *ex, const char *name)
{
	for (size_t i = 0; i < ex->request->headers; i++)
		if (hf_str_case_eq(ex->request->names[i], name))
			return ex->request->values[i];
	return NULL;
}

const char *hf_exchange_body(const struct hf_exchange *ex, size_t *ret_len)
{
	*ret_len = ex->request->body_len;
	return ex->request->body;
}

/* ---- the answer --------------------------------------------------------------------------- */

void hf_exchange_on_closed(struct hf_exchange *ex, hf_exchange_fn fn, void *arg)
{
	ex->on_closed = fn;
	ex->closed_arg = arg;
}

void hf_exchange_on_drained(struct hf_exchange *ex, hf_exchange_fn fn, void *arg)
{
	ex->on_drained = fn;
	ex->drained_arg = arg;
}

static void check_line(const char *text)
{
	for (; *text != '\0'; text++)
		hf_assert((unsigned char)*text >= 0x20 && *text != 0x7f);
}

void hf_exchange_add_header(struct hf_exchange *ex, const char *name, const char *value)
{
	hf_assert(!ex->begun);
	check_line(name);
	check_line(value);
}

/* Checks a response. A response that claims to be JSON must be JSON. Status 500 is a failure of
 * this program, which no request may cause. */
static void check_answer(int status, const char *content_type, const char *body, size_t len)
{
	const struct hf_json_limits limits = {.bytes_max = (size_t)64 << 20, .depth_max = 128};
	HF_AUTO_JSON value = NULL;

	hf_assert(status >= 200 && status < 600 && status != 500);
	if (hf_streq(content_type, "application/json"))
		hf_assert(hf_json_parse(body, len, &limits, &value, NULL) == 0);
}

void hf_exchange_respond(struct hf_exchange *ex, int status, const char *content_type,
			 const void *body, size_t len)
{
	hf_assert(!ex->begun);
	check_answer(status, content_type, body, len);
	forget(ex);
}

void hf_exchange_respond_take(struct hf_exchange *ex, int status, const char *content_type,
			      struct hf_strbuf *body)
{
	hf_exchange_respond(ex, status, content_type, body->data, body->len);
	hf_strbuf_release(body);
}

void hf_exchange_begin(struct hf_exchange *ex, int status, const char *content_type)
{
	hf_assert(!ex->begun && status == 200);
	ex->begun = true;
}

bool hf_exchange_write(struct hf_exchange *ex, const void *bytes, size_t len)
{
	hf_assert(ex->begun);
	ex->starved = len > STREAM_BYTES_MAX - ex->written;
	if (ex->starved)
		return false;
	ex->written += len;
	return true;
}

size_t hf_exchange_room(const struct hf_exchange *ex)
{
	return STREAM_BYTES_MAX - ex->written;
}

void hf_exchange_finish(struct hf_exchange *ex)
{
	hf_assert(ex->begun);
	forget(ex);
}

void hf_exchange_abort(struct hf_exchange *ex)
{
	forget(ex);
}
