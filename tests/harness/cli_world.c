/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/cli_world.h"

#include "apiserver/admission.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "framework/framework.h"
#include "harness/json_text.h"
#include "harness/test.h"
#include "store/backend.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 32

/* ---- requests ------------------------------------------------------------------------------ */

struct asked {
	struct hf_loop *loop;
	bool over;
	int code;
	char *message;
	struct hf_doc *object;
};

static void on_reply(void *arg, const struct hf_reply *reply)
{
	struct asked *asked = arg;

	asked->over = true;
	asked->code = reply->code;
	asked->message = hf_xstrdup(reply->message);
	if (reply->code == 0)
		asked->object = hf_doc_ref(reply->object);
	hf_loop_stop(asked->loop);
}

/* Sends a request and runs the loop until the reply has arrived. Must not be called from a
 * callback of the loop. */
static struct hf_doc *ask(struct cli_world *world, const struct hf_request *request, int *ret_code)
{
	struct asked asked = {.loop = world->loop};

	(void)hf_store_request(hf_memstore_store(world->memstore), request, on_reply, &asked);
	while (!asked.over)
		hf_loop_run(world->loop);
	if (asked.code != 0 && ret_code == NULL)
		fail_msg("%s", asked.message);
	if (ret_code != NULL)
		*ret_code = asked.code;
	free(asked.message);
	return asked.object;
}

/* The reply to a request that a callback sent: no caller waits for it. */
static void on_done(void *arg, const struct hf_reply *reply)
{
	if (reply->code != 0)
		fail_msg("%s", reply->message);
}

/* ---- logs ---------------------------------------------------------------------------------- */

struct stream {
	struct hf_log_stream base; /* first */
	struct hf_timer *timer;
	const char *text;
	hf_log_fn fn;
	void *arg;
	bool sent;
};

static void stream_stop(struct hf_log_stream *base)
{
	struct stream *stream = (struct stream *)base;

	hf_timer_destroy(stream->timer);
	free(stream);
}

static void stream_go_on(void *arg)
{
	struct stream *stream = arg;

	if (stream->text == NULL) {
		stream->fn(stream->arg, NULL, 0, HF_E_BAD_REQUEST,
			   "container \"pytorch\" is waiting to start");
	} else if (stream->sent || stream->text[0] == '\0') {
		stream->fn(stream->arg, NULL, 0, 0, "");
	} else {
		stream->sent = true;
		hf_timer_arm(stream->timer, HF_MS);
		stream->fn(stream->arg, stream->text, strlen(stream->text), 0, "");
	}
}

static struct hf_log_stream *stream_start(void *arg, struct hf_doc *pod,
					  const struct hf_log_options *options, hf_log_fn fn,
					  void *fn_arg)
{
	static const struct hf_store_ops ops = {.logs_stop = stream_stop};
	struct cli_world *world = arg;
	struct stream *stream = hf_xcalloc(1, sizeof(*stream));

	stream->base.ops = &ops;
	stream->fn = fn;
	stream->arg = fn_arg;
	stream->timer = hf_timer_create(world->loop, stream_go_on, stream);
	for (size_t i = 0; i < world->n_logs; i++)
		if (hf_streq(world->logs[i].pod, hf_doc_name(pod)) &&
		    !(options->previous && world->previous_log))
			stream->text = world->logs[i].text;
	if (options->previous && world->previous_log)
		stream->text = world->previous_log;
	world->log_asked = *options;
	world->log_asked.ns = world->log_asked.pod = world->log_asked.container = NULL;
	hf_timer_arm(stream->timer, HF_MS);
	return &stream->base;
}

void cli_world_log(struct cli_world *world, const char *pod, const char *text)
{
	for (size_t i = 0; i < world->n_logs; i++) {
		if (hf_streq(world->logs[i].pod, pod)) {
			world->logs[i].text = text;
			return;
		}
	}
	assert_true(world->n_logs < CLI_WORLD_LOGS_MAX);
	world->logs[world->n_logs].pod = pod;
	world->logs[world->n_logs++].text = text;
}

/* ---- the version of the server ------------------------------------------------------------- */

/* The memory store has no /version. */
struct version_call {
	struct hf_call base; /* first */
	struct hf_timer *timer;
	hf_reply_fn fn;
	void *arg;
};

static struct {
	const struct hf_store_ops *below;
	struct hf_store_ops ops;
	struct cli_world *world;
	const char *text;
} version;

static void version_cancel(struct hf_call *base)
{
	struct version_call *call = (struct version_call *)base;

	hf_timer_destroy(call->timer);
	free(call);
}

static void version_reply(void *arg)
{
	struct version_call *call = arg;
	struct hf_json *info = hf_json_object();

	hf_json_set_str(info, "gitVersion", version.text);
	HF_AUTO_DOC object = hf_doc_from_json(info);
	const struct hf_reply reply = {
		.object = object, .message = "", .server_time = HF_TIME_NONE};

	call->fn(call->arg, &reply);
	version_cancel(&call->base);
}

static struct hf_call *version_request(struct hf_store *store, const struct hf_request *request,
				       hf_reply_fn fn, void *arg)
{
	static const struct hf_store_ops ops = {.cancel = version_cancel};
	struct version_call *call;

	if (request->resource != &hf_server_version)
		return version.below->request(store, request, fn, arg);
	call = hf_xcalloc(1, sizeof(*call));
	call->base.ops = &ops;
	call->fn = fn;
	call->arg = arg;
	call->timer = hf_timer_create(version.world->loop, version_reply, call);
	hf_timer_arm(call->timer, HF_MS);
	return &call->base;
}

void cli_world_version(struct cli_world *world, const char *text)
{
	version.below = world->store->ops;
	version.ops = *version.below;
	version.ops.request = version_request;
	version.world = world;
	version.text = text;
	world->store->ops = &version.ops;
}

/* ---- the world ----------------------------------------------------------------------------- */

void cli_world_init(struct cli_world *world)
{
	struct hf_error err;

	*world = (struct cli_world){.loop = hf_loop_create_virtual(CLI_WORLD_START)};
	assert_ok(hf_memstore_create(world->loop, &(struct hf_memstore_options){0},
				     &world->memstore, &err),
		  &err);
	world->store = hf_memstore_client_create(world->memstore, NULL);
	hf_admission_install(world->memstore, hf_frameworks);
	hf_memstore_set_logs(world->memstore,
			     &(struct hf_memstore_logs){.start = stream_start, .arg = world});
}

void cli_world_release(struct cli_world *world)
{
	if (world->store->ops == &version.ops)
		world->store->ops = version.below;
	for (size_t i = 0; i < world->n_later; i++)
		hf_timer_destroy(world->later[i].timer);
	hf_memstore_set_logs(world->memstore, NULL);
	hf_store_destroy(world->store);
	hf_memstore_destroy(world->memstore);
	hf_loop_destroy(world->loop);
	free(world->out);
	free(world->err);
}

int cli_world_setup(void **state)
{
	struct cli_world *world = hf_xcalloc(1, sizeof(*world));

	cli_world_init(world);
	*state = world;
	return 0;
}

int cli_world_teardown(void **state)
{
	cli_world_release(*state);
	free(*state);
	return 0;
}

static void put_status(struct cli_world *world, const struct hf_resource *resource,
		       const struct hf_json *object, struct hf_json *status)
{
	struct hf_json *patch = hf_json_object();

	hf_json_set(patch, "status", status);
	HF_AUTO_DOC body = hf_doc_from_json(patch);
	struct hf_request request = {
		.verb = HF_VERB_PATCH,
		.resource = resource,
		.ns = resource->namespaced
			      ? hf_str_or(hf_json_path_str(object, "metadata", "namespace", NULL),
					  "default")
			      : NULL,
		.name = hf_json_path_str(object, "metadata", "name", NULL),
		.subresource = "status",
		.patch_type = HF_PATCH_MERGE,
		.body = body};
	hf_doc_unref(ask(world, &request, NULL));
}

void cli_world_put(struct cli_world *world, const char *text)
{
	HF_AUTO_DOC body = json_doc_of(text);
	const struct hf_json *object = hf_doc_json(body);
	const struct hf_resource *resource =
		hf_resource_by_kind(hf_json_path_str(object, "apiVersion", NULL),
				    hf_json_path_str(object, "kind", NULL));
	const char *ns =
		hf_str_or(hf_json_path_str(object, "metadata", "namespace", NULL), "default");
	const struct hf_json *status = hf_json_get(object, "status");
	struct hf_request request = {.verb = HF_VERB_CREATE, .resource = resource, .body = body};

	if (resource == NULL)
		fail_msg("no such kind: %s", text);
	request.ns = resource->namespaced ? ns : NULL;
	hf_doc_unref(ask(world, &request, NULL));
	if (status != NULL)
		put_status(world, resource, object, hf_json_copy(status));
}

void cli_world_job(struct cli_world *world, const char *name, int workers, const char *state)
{
	HF_AUTOFREE char *text = hf_xasprintf(
		"{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{'name':'%s'},"
		"'spec':{'pytorchReplicaSpecs':{'Master':{'replicas':1,'template':{'spec':"
		"{'containers':[{'name':'pytorch','image':'x'}]}}},'Worker':{'replicas':%d,"
		"'template':{'spec':{'containers':[{'name':'pytorch','image':'x'}]}}}}},"
		"'status':{'conditions':[{'type':'%s','status':'True','reason':'R',"
		"'message':'it is so'}],'replicaStatuses':{'Master':{'active':1}}}}",
		name, workers, state);

	cli_world_put(world, text);
}

void cli_world_pod(struct cli_world *world, const char *job, const char *rank, const char *phase)
{
	HF_AUTOFREE char *role = hf_xstrndup(rank, strcspn(rank, "-"));
	HF_AUTOFREE char *text = hf_xasprintf(
		"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s-%s','labels':"
		"{'training.kubeflow.org/job-name':'%s','training.kubeflow.org/job-role':'%s'}},"
		"'spec':{'nodeName':'n1','containers':[{'name':'pytorch','image':'x'}]},"
		"'status':{'phase':'%s','podIP':'10.0.0.1','containerStatuses':[{'name':'pytorch',"
		"'ready':true,'restartCount':2,'image':'x','imageID':'',"
		"'state':{'running':{}}}]}}",
		job, rank, job, role, phase);

	cli_world_put(world, text);
}

void cli_world_patch(struct cli_world *world, const struct hf_resource *resource, const char *name,
		     const char *text)
{
	HF_AUTO_DOC body = json_doc_of(text);
	struct hf_request request = {
		.verb = HF_VERB_PATCH,
		.resource = resource,
		.ns = resource->namespaced ? "default" : NULL,
		.name = name,
		.subresource = hf_json_get(hf_doc_json(body), "status") != NULL ? "status" : NULL,
		.patch_type = HF_PATCH_MERGE,
		.body = body};

	(void)hf_store_request(hf_memstore_store(world->memstore), &request, on_done, NULL);
}

void cli_world_delete(struct cli_world *world, const struct hf_resource *resource, const char *name)
{
	struct hf_request request = {.verb = HF_VERB_DELETE,
				     .resource = resource,
				     .ns = resource->namespaced ? "default" : NULL,
				     .name = name};

	(void)hf_store_request(hf_memstore_store(world->memstore), &request, on_done, NULL);
}

void cli_world_create(struct cli_world *world, const char *text)
{
	HF_AUTO_DOC body = json_doc_of(text);
	const struct hf_json *object = hf_doc_json(body);
	struct hf_request request = {
		.verb = HF_VERB_CREATE,
		.resource = hf_resource_by_kind(hf_json_path_str(object, "apiVersion", NULL),
						hf_json_path_str(object, "kind", NULL)),
		.ns = "default",
		.body = body};

	(void)hf_store_request(hf_memstore_store(world->memstore), &request, on_done, NULL);
}

void cli_world_break(struct cli_world *world, int code)
{
	hf_memstore_client_break_watches(world->store, code, "the server went away");
}

struct hf_doc *cli_world_get(struct cli_world *world, const struct hf_resource *resource,
			     const char *name)
{
	struct hf_request request = {.verb = HF_VERB_GET,
				     .resource = resource,
				     .ns = resource->namespaced ? "default" : NULL,
				     .name = name};
	int code;
	struct hf_doc *doc = ask(world, &request, &code);

	assert_true(code == 0 || code == HF_E_NOT_FOUND);
	return doc;
}

static void on_later(void *arg)
{
	struct cli_world_later *later = arg;

	later->fn(later->world);
}

void cli_world_later(struct cli_world *world, hf_time span, void (*fn)(struct cli_world *world))
{
	struct cli_world_later *later = &world->later[world->n_later++];

	assert_true(world->n_later <= CLI_WORLD_LATER_MAX);
	*later = (struct cli_world_later){.world = world, .fn = fn};
	later->timer = hf_timer_create(world->loop, on_later, later);
	hf_timer_arm(later->timer, span);
}

/* ---- verbs --------------------------------------------------------------------------------- */

static struct cli_world *connected; /* hf_cli.connect gets no argument of the test */

static int connect_to_world(struct hf_cli *cli, struct hf_store **ret_store, struct hf_error *err)
{
	if (connected->connect_code != 0)
		return hf_error_set(err, connected->connect_code, "cannot connect");
	*ret_store = connected->store;
	return 0;
}

int cli_world_run(struct cli_world *world, ...)
{
	static const struct hf_cli_verb *const *const tables[] = {hf_cli_verbs, NULL};
	const char *argv[WORDS_MAX] = {"holdfast"};
	struct hf_cli cli = {.connect = connect_to_world, .loop = world->loop};
	size_t out_len, err_len;
	va_list ap;
	int argc = 1;

	va_start(ap, world);
	while ((argv[argc] = va_arg(ap, const char *)) != NULL)
		assert_true(++argc < WORDS_MAX);
	va_end(ap);
	free(world->out);
	free(world->err);
	world->out = world->err = NULL;
	connected = world;
	cli.ns = hf_xstrdup("default");
	cli.out = open_memstream(&world->out, &out_len);
	cli.err = open_memstream(&world->err, &err_len);
	world->code = hf_cli_main(&cli, tables, argc, argv);
	assert_int_equal(fclose(cli.out), 0);
	assert_int_equal(fclose(cli.err), 0);
	free(cli.ns);
	return world->code;
}
