/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_AGENT_WORLD_H
#define HF_TESTS_HARNESS_AGENT_WORLD_H

#include "agent/agent.h"
#include "api/device_health.h"
#include "memstore/memstore.h"
#include "store/resource.h"

/* A whole agent, on the embedded store and the virtual clock. A plain file takes the place of the
 * kernel's log. */

#define GPU "0000:1a:00.0"
#define UUID "GPU-00000000-1111"
#define LOST "NVRM: Xid (PCI:0000:1a:00): 79, pid=1, GPU has fallen off the bus.\n"
#define HUNG "NVRM: Xid (PCI:0000:1a:00): 119, pid=1, Timeout after 6s of waiting\n"
#define MENDED                                                                                     \
	"NVRM: Xid (PCI:0000:1a:00): 154, GPU recovery action changed from 0x1 (GPU Reset "        \
	"Required) to 0x0 (None)\n"

struct world {
	struct hf_loop *loop;
	struct hf_memstore *memstore;
	struct hf_store *store;
	struct hf_metrics *metrics;
	struct hf_agent *agent;
	char dir[64], log[96], state[96], contact[96];
	const char *boot;
	/* How many writes of each kind of object the API server got, and how it answers them. */
	int writes, node_writes, device_writes, pod_writes;
	int refuse;
	bool no_crd;
	bool no_health_watch; /* the agent has no right to watch DeviceHealth */
	bool no_devices;      /* no source tells the agent of a device */
	/* Takes the targets that the agent sends to processes under exec; may be NULL. */
	void (*send_target)(void *arg, struct hf_exec_peer *peer,
			    const struct hf_process_target *target);
	void *send_arg;
	/* a probe that the agent gets at its start; NULL: the agent reads only the kernel's log */
	struct hf_probe *probe;
};

void apply(struct world *w, enum hf_verb verb, const struct hf_resource *resource, const char *name,
	   const char *sub, const char *text);
void run_for(struct world *w, hf_time span);
void open_agent(struct world *w);
hf_time boot_clock(void *loop);
int setup(void **state);
int teardown(void **state);
void kernel_says(struct world *w, const char *line);
const struct hf_json *condition_of(struct world *w, const struct hf_resource *resource,
				   const char *name, const char *type);
const char *status_of(struct world *w, const struct hf_resource *resource, const char *name,
		      const char *type);
struct hf_device_health health_of(struct world *w, struct hf_arena *arena);
const struct hf_device_report *device_in(const struct hf_device_health *health, const char *id);

#endif
