/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The agent inside `run` and `up`. Input: NVML, sysfs, the kernel's log and the owners of GPUs, where there are GPUs;
 * connections of `holdfast exec`. Output: DeviceHealth and conditions by the agent, the kubelet's list of GPUs that work,
 * and targets of processes under exec. */
#include "app/node_health.h"

#include "agent/agent.h"
#include "api/device_health.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "fleet/impact.h"
#include "health/types.h"
#include "probes/nvml.h"
#include "probes/sysfs.h"
#include "store/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KMSG "/dev/kmsg"
#define NVML "libnvidia-ml.so.1"
#define NVML_FLAG "--nvml=libnvidia-ml.so.1"
#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define HEALTH_ARENA_BYTES_MAX ((size_t)4 << 20)
#define OWNERS_EVERY (10 * HF_SECOND)

struct hf_node_health {
	struct hf_node_health_options options;
	struct hf_agent *agent;
	struct hf_watch *watch;
};

/* ---- the owners of GPUs, as a probe ------------------------------------------------------------- */

struct owners_probe {
	struct hf_probe base; /* first */
	struct hf_intake *intake;
	const struct hf_kubelet *kubelet;
	struct hf_timer *again;
	struct hf_holding *items;
	size_t len;
};

static void add_owner(void *arg, const struct hf_kubelet_gpu_owner *owner)
{
	struct owners_probe *p = arg;
	struct hf_holding *h = &p->items[p->len];

	if (p->len == HF_HOLDINGS_MAX)
		return;
	p->len++;
	memset(h, 0, sizeof(*h));
	(void)snprintf(h->ns, sizeof(h->ns), "%s", owner->ns);
	(void)snprintf(h->pod, sizeof(h->pod), "%s", owner->pod);
	(void)snprintf(h->container, sizeof(h->container), "%s", owner->container);
	(void)snprintf(h->resource, sizeof(h->resource), "%s", owner->resource);
	/* The agent identifies GPUs of AMD by their PCI address. */
	(void)snprintf(h->id, sizeof(h->id), "%s", hf_str_or(owner->address, owner->id));
}

static void look_at_owners(void *arg)
{
	struct owners_probe *p = arg;

	p->len = 0;
	hf_kubelet_each_gpu_owner(p->kubelet, add_owner, p);
	(void)hf_intake_holdings(p->intake, p->items, p->len, hf_intake_now(p->intake));
	hf_timer_arm(p->again, OWNERS_EVERY);
}

static void start_owners(struct hf_probe *probe)
{
	struct owners_probe *p = (struct owners_probe *)probe;

	/* Switch off the detector of missing device plugins: here the kubelet itself offers the
	 * GPUs. */
	hf_intake_off(p->intake, HF_HEALTH_BY_KUBELET, HF_HEALTH_PLUGIN,
		      "GPUs are offered without a device plugin");
	p->again = hf_timer_create(hf_intake_loop(p->intake), look_at_owners, p);
	look_at_owners(p);
}

/* Called when pods have changed: asks the kubelet again for the owners of the GPUs. The kubelet
 * assigns GPUs to a pod before it publishes the pod's status, so the answer has the new owners. */
static void poke_owners(struct hf_probe *probe)
{
	const struct owners_probe *p = (struct owners_probe *)probe;

	if (p->again != NULL)
		hf_timer_arm(p->again, 0);
}

static void destroy_owners(struct hf_probe *probe)
{
	struct owners_probe *p = (struct owners_probe *)probe;

	hf_timer_destroy(p->again);
	free(p->items);
	free(p);
}

static struct hf_probe *create_owners(struct hf_intake *intake, const struct hf_kubelet *kubelet)
{
	static const struct hf_probe_ops ops = {.name = "kubelet",
						.has_holders = true,
						.start = start_owners,
						.poke = poke_owners,
						.destroy = destroy_owners};
	struct owners_probe *p = hf_xcalloc(1, sizeof(*p));

	p->base.ops = &ops;
	p->intake = intake;
	p->kubelet = kubelet;
	p->items = hf_xcalloc(HF_HOLDINGS_MAX, sizeof(*p->items));
	return &p->base;
}

/* ---- keeping failed GPUs from new pods ------------------------------------------------------------ */

/* Returns why the device is reported as failed: the kernel's line of the newest fault that makes
 * the device unusable, else the class of the fault. */
static const char *find_why(const struct hf_device_report *device)
{
	const struct hf_device_fault *newest = NULL;

	for (size_t i = 0; i < device->faults.len; i++) {
		const struct hf_device_fault *fault = &device->faults.items[i];

		if (fault->acts && (newest == NULL || fault->last >= newest->last))
			newest = fault;
	}
	if (newest != NULL && !hf_str_is_empty(newest->line))
		return newest->line;
	return hf_str_or(device->cls, "it does not answer");
}

/* Tells the kubelet which GPUs have failed. object: a DeviceHealth, or its patch. */
static void take_health(const struct hf_node_health *health, struct hf_doc *object)
{
	HF_AUTO_ARENA arena = hf_arena_create(HEALTH_ARENA_BYTES_MAX);
	struct hf_device_health seen;

	hf_device_health_read(object, arena, &seen);
	for (size_t i = 0; i < seen.devices.len; i++) {
		const struct hf_device_report *device = &seen.devices.items[i];

		hf_kubelet_set_gpu_works(health->options.kubelet,
					 hf_str_is_empty(device->uuid) ? device->id : device->uuid,
					 !hf_health_is_out(hf_impact_state(device->state)),
					 find_why(device));
	}
}

/* Runs before the kubelet gives GPUs to a new pod. The operator may restart a rank before the
 * agent's DeviceHealth is in the store. So read the agent's state directly, lest the new pod get
 * the failed GPU. */
static void before_gpus_are_given(void *arg)
{
	const struct hf_node_health *health = arg;
	HF_AUTO_DOC now = hf_doc_from_json(hf_agent_status(health->agent));

	take_health(health, now);
}

static void watch_health(struct hf_node_health *health);

static void on_health(void *arg, const struct hf_event *event)
{
	struct hf_node_health *health = arg;

	if (event->type == HF_EVENT_ENDED) {
		health->watch = hf_watch_stop(health->watch);
		watch_health(health);
	} else if (event->type == HF_EVENT_ADDED || event->type == HF_EVENT_MODIFIED) {
		take_health(health, event->object);
	}
}

static void watch_health(struct hf_node_health *health)
{
	const struct hf_watch_options options = {
		.resource = &hf_devicehealths, .field_selector = "metadata.name=" HF_KUBELET_NODE};

	health->watch = hf_store_watch(health->options.store, &options, on_health, health);
}

/* ---- */

static void add_probes(struct hf_node_health *health)
{
	static const char *const nvml_argv[] = {"/proc/self/exe", "agent", NVML_FLAG,
						"--nvml-child", NULL};
	const struct hf_nvml_options nvml = {.library = NVML, .child_argv = nvml_argv};
	const struct hf_sysfs_options sysfs = {.aer = false};
	struct hf_intake *intake = hf_agent_intake(health->agent);

	hf_agent_add_probe(health->agent, hf_nvml_probe_create(intake, &nvml));
	hf_agent_add_probe(health->agent, hf_sysfs_probe_create(intake, &sysfs));
	hf_agent_add_probe(health->agent, create_owners(intake, health->options.kubelet));
}

static int create_agent(struct hf_node_health *health, struct hf_error *err)
{
	HF_AUTO_STRBUF boot = HF_STRBUF_INIT(64);
	struct hf_agent_options options = {
		.loop = health->options.loop,
		.store = health->options.store,
		.node = HF_KUBELET_NODE,
		.state_dir = health->options.journal,
		.kmsg = health->options.gpus ? KMSG : NULL,
		.sys = "/sys",
		.send_target = health->options.send_target,
	};
	int rc = hf_fs_read(BOOT_ID, &boot, err);

	if (rc == 0)
		rc = hf_random_bytes(&options.seed, sizeof(options.seed), err);
	if (rc != 0)
		return rc;
	hf_strbuf_truncate(&boot, strcspn(boot.data, "\n"));
	options.boot_id = boot.data;
	rc = hf_agent_create(&options, &health->agent, err);
	if (rc != 0)
		return rc;
	if (health->options.gpus)
		add_probes(health);
	hf_agent_start(health->agent);
	return 0;
}

int hf_node_health_create(const struct hf_node_health_options *options,
			  struct hf_node_health **ret_health, struct hf_error *err)
{
	struct hf_node_health *health = hf_xcalloc(1, sizeof(*health));
	int rc;

	health->options = *options;
	rc = create_agent(health, err);
	if (rc != 0) {
		hf_node_health_destroy(health);
		return rc;
	}
	if (options->gpus) {
		watch_health(health);
		hf_kubelet_set_gpu_check(options->kubelet, before_gpus_are_given, health);
	}
	*ret_health = health;
	return 0;
}

struct hf_agent *hf_node_health_agent(struct hf_node_health *health)
{
	return health->agent;
}

struct hf_node_health *hf_node_health_destroy(struct hf_node_health *health)
{
	if (health == NULL)
		return NULL;
	if (health->options.gpus)
		hf_kubelet_set_gpu_check(health->options.kubelet, NULL, NULL);
	health->watch = hf_watch_stop(health->watch);
	if (health->agent != NULL)
		hf_agent_stop(health->agent);
	health->agent = hf_agent_destroy(health->agent);
	free(health);
	return NULL;
}
