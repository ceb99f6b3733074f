/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/node_check.h"

#include "agent/named_socket.h"
#include "agent/report_limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/wire.h"
#include "http/grpc_service.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define METHOD "/nvhcd.HealthCheckService/RunHealthCheck"
#define OUTPUT_BYTES_MAX ((size_t)32 << 10)
#define ERROR_BYTES_MAX ((size_t)4096)
/* Of HealthCheckResponse. */
enum { FIELD_SUCCESS = 1, FIELD_EXIT_CODE, FIELD_OUTPUT, FIELD_ERROR };

struct hf_node_check {
	struct hf_node_check_options options;
	struct hf_named_socket *socket;
	struct hf_grpc_service *service;
	struct hf_report_limits limits;
};

/* ---- the verdict ----------------------------------------------------------------------------------- */

static void add_device(struct hf_json *list, const struct hf_health_device *device)
{
	const struct hf_health_fault *fault = hf_health_device_worst(device);
	struct hf_json *object = hf_json_object();

	hf_json_set_str(object, "device", device->id[0] != '\0' ? device->id : "node");
	hf_json_set_str(object, "state", hf_health_state_name(device->state));
	if (fault != NULL) {
		hf_json_set_str(object, "class", hf_health_class_name(fault->cls));
		hf_json_set_str(object, "action", hf_health_action_name(fault->action));
	}
	hf_json_append(list, object);
}

static bool has_device(const struct hf_json *list, const char *id)
{
	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(list, i), "device", NULL),
			     id[0] != '\0' ? id : "node"))
			return true;
	return false;
}

/* False: nothing is known of what the pod holds. */
static bool judge_pod(const struct hf_report *report, const char *pod_uid, struct hf_json *list)
{
	bool holds = false;

	for (size_t i = 0; i < report->holders_len; i++) {
		const struct hf_holder *h = &report->holders[i];
		const struct hf_health_device *sick;

		if (h->until != HF_TIME_NONE ||
		    (!hf_streq(h->uid, pod_uid) && !hf_streq(h->hash, pod_uid)) ||
		    hf_report_device_of(report, h) == NULL)
			continue;
		holds = true;
		sick = hf_report_sick_device(report, h);
		/* A fault of the node stops several holdings. */
		if (sick != NULL && !has_device(list, sick->id))
			add_device(list, sick);
	}
	return holds;
}

static void judge_node(const struct hf_report *report, struct hf_json *list)
{
	for (size_t i = 0; i < report->memory->devices_len; i++)
		if (hf_health_is_out(report->memory->devices[i].state))
			add_device(list, &report->memory->devices[i]);
}

size_t hf_node_check_judge(const struct hf_report *report, const char *pod_uid,
			   struct hf_json **ret_json)
{
	struct hf_json *root = hf_json_object(), *list = hf_json_array();
	bool pod = pod_uid[0] != '\0' && judge_pod(report, pod_uid, list);
	size_t n;

	if (!pod)
		judge_node(report, list);
	n = hf_json_len(list);
	hf_json_set_i64(root, "fail_count", (int64_t)n);
	hf_json_set_str(root, "node", report->node);
	hf_json_set_str(root, "scope", pod ? "pod" : "node");
	hf_json_set(root, "devices", list);
	*ret_json = root;
	return n;
}

/* ---- HealthCheckResponse --------------------------------------------------------------------------- */

static void write_error(const struct hf_json *json, struct hf_strbuf *sb)
{
	const struct hf_json *list = hf_json_get(json, "devices");

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *device = hf_json_item(list, i);

		hf_strbuf_addf(sb, "%s%s is %s", i > 0 ? ", " : "",
			       hf_json_path_str(device, "device", NULL),
			       hf_json_path_str(device, "state", NULL));
	}
}

static void write_response(const struct hf_report *report, const char *pod_uid,
			   struct hf_strbuf *ret_message)
{
	HF_AUTO_STRBUF output = HF_STRBUF_INIT(OUTPUT_BYTES_MAX);
	HF_AUTO_STRBUF error = HF_STRBUF_INIT(ERROR_BYTES_MAX);
	HF_AUTO_JSON json = NULL;
	size_t sick = hf_node_check_judge(report, pod_uid, &json);

	hf_json_write(json, HF_JSON_COMPACT, &output);
	write_error(json, &error);
	hf_wire_add_number(ret_message, FIELD_SUCCESS, sick == 0);
	hf_wire_add_number(ret_message, FIELD_EXIT_CODE, sick > 0);
	hf_wire_add_text(ret_message, FIELD_OUTPUT, output.data);
	hf_wire_add_text(ret_message, FIELD_ERROR, error.data);
}

/* The arguments of the request are those of NVIDIA's own script. */
static int answer_call(void *arg, const struct hf_grpc_asked *asked, struct hf_strbuf *ret_message,
		       struct hf_error *err)
{
	struct hf_node_check *check = arg;
	char uid[HF_REPORT_POD_UID_MAX] = "";
	struct hf_report report;

	if (!hf_streq(asked->method, METHOD)) {
		(void)hf_error_set(err, HF_E_UNSUPPORTED, "there is " METHOD " alone");
		return HF_GRPC_UNIMPLEMENTED;
	}
	if (!hf_report_limits_may_ask(&check->limits, asked->pid,
				      hf_loop_mono(check->options.loop)) ||
	    (check->options.identify(check->options.arg, asked->pid, uid) &&
	     !hf_report_limits_may_hear(&check->limits, asked->pid, uid))) {
		(void)hf_error_set(err, HF_E_TOO_MANY, "too many calls in a second");
		return HF_GRPC_RESOURCE_EXHAUSTED;
	}
	report = check->options.report(check->options.arg);
	write_response(&report, uid, ret_message);
	return HF_GRPC_OK;
}

/* ---- life ------------------------------------------------------------------------------------------ */

static void on_connections(void *arg, int listener)
{
	const struct hf_node_check *check = arg;

	hf_grpc_service_accept(check->service, listener);
}

static void on_trouble(void *arg, const char *why)
{
	const struct hf_node_check *check = arg;

	check->options.trouble(check->options.arg, why);
}

int hf_node_check_create(const struct hf_node_check_options *options,
			 struct hf_node_check **ret_check, struct hf_error *err)
{
	struct hf_node_check *check = hf_xcalloc(1, sizeof(*check));
	const struct hf_named_socket_options named = {.loop = options->loop,
						      .path = options->path,
						      .type = SOCK_STREAM,
						      .look_every = options->look_every,
						      .mode = options->mode,
						      .ready = on_connections,
						      .trouble = on_trouble,
						      .arg = check};
	int rc;

	check->options = *options;
	check->service = hf_grpc_service_create(options->loop, answer_call, check);
	rc = hf_named_socket_create(&named, &check->socket, err);
	if (rc != 0) {
		hf_node_check_destroy(check);
		return rc;
	}
	*ret_check = check;
	return 0;
}

struct hf_node_check *hf_node_check_destroy(struct hf_node_check *check)
{
	if (check == NULL)
		return NULL;
	hf_named_socket_destroy(check->socket);
	hf_grpc_service_destroy(check->service);
	free(check);
	return NULL;
}
