/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * agent_bench SYS STATE: a day of an agent at rest on the virtual clock and the embedded store, with
 * the devices and ports of the tree SYS and its journal in STATE.  Prints what it wrote to the API
 * server and what CPU time the day took (the store's included).
 */

#include "agent/agent.h"
#include "memstore/memstore.h"
#include "probes/sysfs.h"
#include "store/resource.h"
#include "harness/measure.h"

#include <stdio.h>
#include <string.h>

struct count {
	int node, device, other;
};

static void on_request(void *arg, const struct hf_request *request, struct hf_fault *ret)
{
	struct count *count = arg;

	(void)ret;
	if (request->verb != HF_VERB_PATCH && request->verb != HF_VERB_CREATE)
		return;
	if (request->resource == &hf_nodes)
		count->node++;
	else if (request->resource == &hf_devicehealths)
		count->device++;
	else
		count->other++;
}

static int create_node(struct hf_memstore *memstore)
{
	static const char text[] =
		"{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"}}";
	HF_AUTO_DOC body = hf_doc_from_text(text, strlen(text));
	const struct hf_request request = {
		.verb = HF_VERB_CREATE, .resource = &hf_nodes, .body = body};
	HF_AUTO_RESULT result;

	hf_memstore_apply(memstore, &request, &result);
	return result.code;
}

int main(int argc, char **argv)
{
	struct hf_loop *loop = hf_loop_create_virtual(20000 * HF_DAY);
	const struct hf_memstore_options local_options = {.data_dir = NULL};
	struct hf_memstore *memstore;
	struct hf_error err = {0};
	struct count count = {0};
	struct hf_agent_options options = {
		.loop = loop, .node = "n1", .boot_id = "11111111-2222", .seed = 7};
	struct hf_memstore_faults faults = {.request = on_request, .arg = &count};
	struct hf_agent *agent;
	double start;

	if (argc != 3 || hf_memstore_create(loop, &local_options, &memstore, &err) < 0 ||
	    create_node(memstore) != 0)
		return 1;
	options.state_dir = argv[2];
	options.store = hf_memstore_client_create(memstore, &faults);
	if (hf_agent_create(&options, &agent, &err) < 0)
		return 1;
	hf_agent_add_probe(agent,
			   hf_sysfs_probe_create(hf_agent_intake(agent),
						 &(struct hf_sysfs_options){.sys_root = argv[1],
									    .proc_root = argv[1]}));
	hf_agent_start(agent);
	(void)hf_loop_run_until(loop, HF_MINUTE);
	count = (struct count){0};
	start = cpu_seconds();
	(void)hf_loop_run_until(loop, HF_MINUTE + HF_DAY);
	printf("agent day writes=%d node=%d devicehealth=%d cpu_s=%.3f\n",
	       count.node + count.device + count.other, count.node, count.device,
	       cpu_seconds() - start);
	hf_agent_destroy(agent);
	hf_store_destroy(options.store);
	hf_memstore_destroy(memstore);
	hf_loop_destroy(loop);
	return 0;
}
