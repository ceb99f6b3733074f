/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * serve FOLDER: the HTTP API over a store in memory, without kubelet and operator, for tests of
 * clients that must be the only ones to change objects.  Writes FOLDER/kubeconfig and runs until a signal.
 */

#include "apiserver/admission.h"
#include "apiserver/apiserver.h"
#include "base/fs.h"
#include "base/mem.h"
#include "framework/framework.h"
#include "http/certificate.h"
#include "memstore/gc.h"
#include "scheduler/scheduler.h"
#include "store/resource.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with the error if rc is not 0. */
static void must(int rc, const struct hf_error *err)
{
	if (rc == 0)
		return;
	fprintf(stderr, "serve: %s\n", err->text);
	exit(1);
}

#define TOKEN "serve-for-tests-0123456789"

static bool serves(const struct hf_resource *resource)
{
	return !hf_resource_is_job(resource) || hf_framework_by_name(resource->plural) != NULL;
}

static void on_signal(void *arg, int signum)
{
	hf_loop_stop(arg);
}

static void write_kubeconfig(const char *folder, const char *ca, uint16_t port)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/kubeconfig", folder);
	HF_AUTOFREE char *ca_path = hf_xasprintf("%s/ca.pem", folder);
	HF_AUTOFREE char *text = hf_xasprintf(
		"apiVersion: v1\nkind: Config\ncurrent-context: t\n"
		"clusters: [{name: t, cluster: {server: 'https://127.0.0.1:%d', "
		"certificate-authority: ca.pem}}]\n"
		"users: [{name: t, user: {token: " TOKEN "}}]\n"
		"contexts: [{name: t, context: {cluster: t, user: t, namespace: default}}]\n",
		(int)port);
	struct hf_error err;

	must(hf_fs_write_atomic(ca_path, ca, strlen(ca), 0600, &err), &err);
	must(hf_fs_write_atomic(path, text, strlen(text), 0600, &err), &err);
}

static void add_node(struct hf_memstore *memstore)
{
	static const char text[] =
		"{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"local\"},\"status\":"
		"{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],\"capacity\":{\"cpu\":\"8\","
		"\"memory\":\"16Gi\",\"pods\":\"110\"},\"allocatable\":{\"cpu\":\"8\",\"memory\":\"16Gi\","
		"\"pods\":\"110\"},\"nodeInfo\":{\"kubeletVersion\":\"v1.34.0\"},\"addresses\":"
		"[{\"type\":\"InternalIP\",\"address\":\"127.0.0.1\"}]}}";
	HF_AUTO_DOC body = hf_doc_from_text(text, strlen(text));
	struct hf_request request = {.verb = HF_VERB_CREATE, .resource = &hf_nodes, .body = body};
	HF_AUTO_RESULT result = {0};

	hf_memstore_apply(memstore, &request, &result);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"127.0.0.1", "localhost", NULL};
	struct hf_error err = {0};
	struct hf_loop *loop;
	struct hf_memstore *memstore;
	struct hf_apiserver *server;
	struct hf_signal *sigterm, *sigint;
	struct hf_certificate ca = {0}, cert = {0};

	hf_assert(argc == 2);
	must(hf_loop_create(&loop, &err), &err);
	struct hf_certificate_spec spec = {.common_name = "test",
					   .names = names,
					   .now = hf_loop_wall(loop),
					   .valid_for = HF_DAY};
	must(hf_certificate_make_ca(&spec, &ca, &err), &err);
	spec.common_name = "127.0.0.1";
	must(hf_certificate_make_server(&ca, &spec, &cert, &err), &err);
	must(hf_memstore_create(loop, &(struct hf_memstore_options){0}, &memstore, &err), &err);
	hf_admission_install(memstore, hf_frameworks);
	struct hf_gc *gc = hf_gc_create(memstore, NULL);
	struct hf_scheduler *scheduler = hf_scheduler_create(memstore, NULL);
	add_node(memstore);
	struct hf_apiserver_options options = {.cert_pem = cert.cert_pem,
					       .key_pem = cert.key_pem,
					       .token = TOKEN,
					       .serves = serves};
	must(hf_apiserver_create(loop, memstore, &options, &server, &err), &err);
	must(hf_signal_create(loop, SIGTERM, on_signal, loop, &sigterm, &err), &err);
	must(hf_signal_create(loop, SIGINT, on_signal, loop, &sigint, &err), &err);
	write_kubeconfig(argv[1], ca.cert_pem, hf_apiserver_port(server));
	hf_loop_run(loop);
	hf_signal_destroy(sigterm);
	hf_signal_destroy(sigint);
	hf_apiserver_destroy(server);
	hf_scheduler_destroy(scheduler);
	hf_gc_destroy(gc);
	hf_memstore_destroy(memstore);
	hf_loop_destroy(loop);
	hf_certificate_release(&ca);
	hf_certificate_release(&cert);
	return 0;
}
