/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/agent_world.h"

#include "base/fs.h"
#include "base/str.h"
#include "harness/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void on_request(void *arg, const struct hf_request *request, struct hf_fault *ret)
{
	struct world *w = arg;

	if (request->verb == HF_VERB_LIST && request->resource == &hf_devicehealths &&
	    w->no_health_watch)
		ret->refuse = HF_E_FORBIDDEN;
	if (request->verb != HF_VERB_PATCH && request->verb != HF_VERB_CREATE)
		return;
	w->writes++;
	w->node_writes += request->resource == &hf_nodes;
	w->device_writes += request->resource == &hf_devicehealths;
	w->pod_writes += request->resource == &hf_pods;
	ret->refuse = w->refuse;
	if (w->no_crd && request->resource == &hf_devicehealths)
		ret->refuse = HF_E_NOT_FOUND;
	ret->message = "as the test wants it";
}

void apply(struct world *w, enum hf_verb verb, const struct hf_resource *resource, const char *name,
	   const char *sub, const char *text)
{
	HF_AUTO_DOC body = text != NULL ? hf_doc_from_text(text, strlen(text)) : NULL;
	const struct hf_request request = {
		.verb = verb,
		.resource = resource,
		.ns = resource->namespaced ? "default" : NULL,
		.name = verb == HF_VERB_CREATE ? NULL : name,
		.subresource = sub,
		.body = body,
		.patch_type = HF_PATCH_MERGE,
		.grace_seconds = verb == HF_VERB_DELETE ? 0 : HF_GRACE_DEFAULT,
	};
	HF_AUTO_RESULT result;

	hf_memstore_apply(w->memstore, &request, &result);
	if (result.code != 0)
		fail_msg("%s: %s", name, result.err.text);
}

void run_for(struct world *w, hf_time span)
{
	assert_true(hf_loop_run_until(w->loop, hf_loop_mono(w->loop) + span));
}

/* The agent's clock of the time since the boot. The agent uses the machine's clock, which a test
 * cannot change, so the tests give it the virtual clock. */
hf_time boot_clock(void *loop)
{
	return hf_loop_mono(loop);
}

void open_agent(struct world *w)
{
	const struct hf_agent_options options = {
		.loop = w->loop,
		.store = w->store,
		.node = "n1",
		.boot_id = w->boot,
		.state_dir = w->state,
		.kmsg = w->log,
		.metrics = w->metrics,
		.seed = 7,
		.send_target = w->send_target,
		.send_arg = w->send_arg,
		.contact = w->contact,
		.boot_clock = boot_clock,
	};
	struct hf_health_presence gpu = {.kind = HF_HEALTH_GPU};
	struct hf_error err;

	assert_ok(hf_agent_create(&options, &w->agent, &err), &err);
	if (w->probe != NULL)
		hf_agent_add_probe(w->agent, w->probe);
	if (w->no_devices) {
		hf_agent_start(w->agent);
		return;
	}
	snprintf(gpu.id, sizeof(gpu.id), GPU);
	snprintf(gpu.uuid, sizeof(gpu.uuid), UUID);
	hf_intake_device(hf_agent_intake(w->agent), &gpu);
	snprintf(gpu.id, sizeof(gpu.id), "0000:1b:00.0");
	snprintf(gpu.uuid, sizeof(gpu.uuid), "GPU-2");
	hf_intake_device(hf_agent_intake(w->agent), &gpu);
	snprintf(gpu.id, sizeof(gpu.id), "0000:1c:00.0");
	snprintf(gpu.uuid, sizeof(gpu.uuid), "GPU-3");
	hf_intake_device(hf_agent_intake(w->agent), &gpu);
	hf_agent_start(w->agent);
}

int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	const struct hf_memstore_options options = {.data_dir = NULL};
	struct hf_memstore_faults faults = {.request = on_request, .arg = w};
	struct hf_error err;

	w->loop = hf_loop_create_virtual(20000 * HF_DAY);
	assert_ok(hf_memstore_create(w->loop, &options, &w->memstore, &err), &err);
	w->store = hf_memstore_client_create(w->memstore, &faults);
	w->metrics = hf_metrics_create();
	snprintf(w->dir, sizeof(w->dir), "/tmp/hf-agent-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->log, sizeof(w->log), "%s/kmsg", w->dir);
	snprintf(w->state, sizeof(w->state), "%s/state", w->dir);
	snprintf(w->contact, sizeof(w->contact), "%s/contact", w->dir);
	assert_ok(hf_fs_write_atomic(w->log, "", 0, 0600, &err), &err);
	w->boot = "11111111-2222";
	apply(w, HF_VERB_CREATE, &hf_nodes, "n1", NULL,
	      "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"},"
	      "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}");
	*state = w;
	return 0;
}

int teardown(void **state)
{
	struct world *w = *state;
	struct hf_error err;

	hf_agent_destroy(w->agent);
	hf_store_destroy(w->store);
	hf_memstore_destroy(w->memstore);
	hf_metrics_destroy(w->metrics);
	hf_loop_destroy(w->loop);
	assert_ok(hf_fs_remove_tree(w->dir, &err), &err);
	free(w);
	return 0;
}

void kernel_says(struct world *w, const char *line)
{
	int fd = open(w->log, O_WRONLY | O_APPEND | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, line, strlen(line)), strlen(line));
	close(fd);
}

const struct hf_json *condition_of(struct world *w, const struct hf_resource *resource,
				   const char *name, const char *type)
{
	struct hf_doc *doc = hf_memstore_peek(w->memstore, resource,
					      resource->namespaced ? "default" : NULL, name);
	const struct hf_json *list = hf_json_path(hf_doc_json(doc), "status", "conditions", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(list, i), "type", NULL), type))
			return hf_json_item(list, i);
	return NULL;
}

const char *status_of(struct world *w, const struct hf_resource *resource, const char *name,
		      const char *type)
{
	return hf_str_or(hf_json_path_str(condition_of(w, resource, name, type), "status", NULL),
			 "-");
}

struct hf_device_health health_of(struct world *w, struct hf_arena *arena)
{
	struct hf_device_health health = {0};
	struct hf_doc *doc = hf_memstore_peek(w->memstore, &hf_devicehealths, NULL, "n1");

	assert_non_null(doc);
	hf_device_health_read(doc, arena, &health);
	return health;
}

const struct hf_device_report *device_in(const struct hf_device_health *health, const char *id)
{
	for (size_t i = 0; i < health->devices.len; i++)
		if (hf_streq(health->devices.items[i].id, id))
			return &health->devices.items[i];
	return NULL;
}
