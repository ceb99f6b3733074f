/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/mem.h"
#include "base/quantity.h"
#include "base/str.h"
#include "kubelet/gpu_search.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * The GPUs of the node: their list, and the container that owns each. A container sees only its
 * own GPUs, by CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES; a container that asks for no GPU
 * sees none. A GPU has at most one owner at a time. pod.json records the owners, so that a later
 * kubelet knows them.
 */

struct gpu {
	const char *resource; /* HF_SHIM_NVIDIA or HF_SHIM_AMD */
	char *id;             /* for the variable */
	char *address;        /* the GPU's address on the PCI bus; NULL: unknown */
	bool offered;         /* the option `gpus` allows it */
	bool broken;          /* the GPU is out of service: no further pod gets it */
};

struct hf_kubelet_gpus {
	struct hf_kubelet *kubelet;
	void (*found)(struct hf_kubelet *kubelet);
	struct hf_gpu_search *search;
	bool known;
	struct gpu items[HF_GPUS_MAX];
	size_t n;
};

static const struct {
	const char *resource, *variable;
} kinds[] = {
	{HF_SHIM_NVIDIA, "CUDA_VISIBLE_DEVICES"},
	{HF_SHIM_AMD, "ROCR_VISIBLE_DEVICES"},
};

/* --- finding the GPUs of the machine --- */

struct hf_kubelet_gpus *hf_kubelet_gpus_destroy(struct hf_kubelet_gpus *g)
{
	if (!g)
		return NULL;
	g->search = hf_gpu_search_destroy(g->search);
	for (size_t i = 0; i < g->n; i++) {
		free(g->items[i].id);
		free(g->items[i].address);
	}
	free(g);
	return NULL;
}

bool hf_kubelet_gpus_known(const struct hf_kubelet_gpus *g)
{
	return !g || g->known;
}

static void warn_of_absent(const struct hf_kubelet_gpus *g)
{
	const char *option = g->kubelet->gpus_option;

	for (size_t i = g->n; !hf_streq(option, "all") && i < HF_GPUS_MAX; i++)
		if (hf_gpu_option_allows(option, i))
			hf_kubelet_notice(g->kubelet, "there is no GPU %zu; this machine has %zu",
					  i, g->n);
}

static void add_found(struct hf_kubelet_gpus *g, const struct hf_json *item)
{
	const char *resource = hf_json_path_str(item, "resource", NULL);
	const char *address = hf_json_path_str(item, "address", NULL);
	const char *id = hf_json_path_str(item, "id", NULL);

	for (size_t k = 0; id && k < HF_ARRAY_LEN(kinds); k++) {
		if (!hf_streq(kinds[k].resource, resource))
			continue;
		g->items[g->n] = (struct gpu){
			.resource = kinds[k].resource,
			.id = hf_xstrdup(id),
			.address = address ? hf_xstrdup(address) : NULL,
			.offered = hf_gpu_option_allows(g->kubelet->gpus_option, g->n)};
		g->n++;
	}
}

static void on_found(void *arg, const struct hf_json *gpus, const char *why)
{
	struct hf_kubelet_gpus *g = arg;

	for (size_t i = 0; i < hf_json_len(gpus) && g->n < HF_GPUS_MAX; i++)
		add_found(g, hf_json_item(gpus, i));
	g->known = true;
	if (!hf_str_is_empty(why))
		hf_kubelet_notice(g->kubelet, "no GPU of NVIDIA's is offered to pods: %s", why);
	warn_of_absent(g);
	g->found(g->kubelet);
}

int hf_kubelet_gpus_start(struct hf_kubelet *k, void (*found)(struct hf_kubelet *kubelet),
			  struct hf_error *err)
{
	struct hf_kubelet_gpus *g = hf_xcalloc(1, sizeof(*g));

	k->gpus = g;
	g->kubelet = k;
	g->found = found;
	if (hf_streq(k->gpus_option, "none")) {
		g->known = true;
		return 0;
	}
	return hf_gpu_search_start(&(struct hf_gpu_search_options){.loop = k->loop,
								   .exe = k->exe,
								   .sysfs = k->sysfs,
								   .found = on_found,
								   .arg = g},
				   &g->search, err);
}

static void set_amount(const struct hf_kubelet_gpus *g, size_t kind, bool with_broken,
		       struct hf_json *amounts)
{
	char text[16];
	size_t n = 0;
	bool any = false;

	for (size_t i = 0; i < g->n; i++) {
		if (!g->items[i].offered || g->items[i].resource != kinds[kind].resource)
			continue;
		any = true;
		n += with_broken || !g->items[i].broken;
	}
	(void)snprintf(text, sizeof(text), "%zu", n);
	/* The amounts are part of a patch of the Node, in which null removes a resource that an
	 * earlier kubelet offered. */
	hf_json_set(amounts, kinds[kind].resource, any ? hf_json_string(text) : hf_json_null());
}

void hf_kubelet_gpus_set_amounts(const struct hf_kubelet_gpus *g, struct hf_json *capacity,
				 struct hf_json *allocatable)
{
	for (size_t k = 0; g && k < HF_ARRAY_LEN(kinds); k++) {
		set_amount(g, k, true, capacity);
		set_amount(g, k, false, allocatable);
	}
}

size_t hf_kubelet_offered_gpus(const struct hf_kubelet *k)
{
	size_t n = 0;

	for (size_t i = 0; k->gpus && i < k->gpus->n; i++)
		n += k->gpus->items[i].offered;
	return n;
}

/* --- GPUs that work --- */

static void wake_pods(struct hf_kubelet *k)
{
	const char *uid;
	void *value;

	for (size_t it = 0; hf_map_next(k->pods, &it, &uid, &value);)
		hf_kubelet_pod_wake(value);
}

static bool is_named(const struct gpu *gpu, const char *id)
{
	return hf_streq(gpu->id, id) || (gpu->address && hf_streq(gpu->address, id));
}

void hf_kubelet_set_gpu_works(struct hf_kubelet *k, const char *id, bool works, const char *why)
{
	for (size_t i = 0; k->gpus && i < k->gpus->n; i++) {
		struct gpu *gpu = &k->gpus->items[i];

		if (!is_named(gpu, id) || gpu->broken == !works)
			continue;
		gpu->broken = !works;
		if (gpu->offered && works)
			hf_kubelet_notice(k, "GPU %zu (%s) works again", i, gpu->id);
		else if (gpu->offered)
			hf_kubelet_notice(k,
					  "GPU %zu (%s) is out of service, and no further pod gets "
					  "it: %s",
					  i, gpu->id, why);
		if (k->node)
			hf_kubelet_node_changed(k->node);
		wake_pods(k);
	}
}

/* --- giving GPUs to containers --- */

static bool is_taken(const struct hf_kubelet *k, const char *id)
{
	const char *uid;
	void *value;

	for (size_t it = 0; hf_map_next(k->pods, &it, &uid, &value);) {
		const struct hf_kubelet_pod *pod = value;

		for (size_t i = 0; pod->state != HF_KUBELET_POD_ENDED && i < pod->config.n_gpus;
		     i++)
			if (hf_streq(pod->config.gpus[i].id, id))
				return true;
	}
	return false;
}

static const char *address_of(const struct hf_kubelet *k, const char *id)
{
	for (size_t i = 0; k->gpus && i < k->gpus->n; i++)
		if (hf_streq(k->gpus->items[i].id, id))
			return k->gpus->items[i].address;
	return NULL;
}

void hf_kubelet_each_gpu_owner(const struct hf_kubelet *k, hf_kubelet_gpu_owner_fn fn, void *arg)
{
	const char *uid;
	void *value;

	for (size_t it = 0; hf_map_next(k->pods, &it, &uid, &value);) {
		const struct hf_kubelet_pod *pod = value;

		for (size_t i = 0; pod->state != HF_KUBELET_POD_ENDED && i < pod->config.n_gpus;
		     i++) {
			const struct hf_shim_gpu *gpu = &pod->config.gpus[i];

			fn(arg, &(struct hf_kubelet_gpu_owner){.ns = pod->ns,
							       .pod = pod->name,
							       .container = gpu->container,
							       .resource = gpu->resource,
							       .id = gpu->id,
							       .address = address_of(k, gpu->id)});
		}
	}
}

static size_t wanted_by(const struct hf_json *container, const char *resource)
{
	const struct hf_json *limit =
		hf_json_path(container, "resources", "limits", resource, NULL);
	const char *text = hf_json_str(limit, NULL);
	int64_t milli = 0, n = hf_json_i64(limit, 0);

	if (text)
		n = hf_quantity_parse_milli(text, &milli, NULL) == 0 ? milli / 1000 : 0;
	return n < 0 ? 0 : n > HF_GPUS_MAX ? HF_GPUS_MAX + 1 : (size_t)n;
}

/* True for init containers, which share GPUs with the main containers: they have ended when the
 * main containers start. A sidecar runs beside the main containers, so it needs its own GPUs. */
static bool uses_gpus_of_others(const struct hf_kubelet_pod_container *c)
{
	return c->init && !c->sidecar;
}

static int give_gpus(struct hf_kubelet_pod *pod, const struct hf_kubelet_pod_container *c,
		     const char *resource, size_t wanted, struct hf_error *err)
{
	const struct hf_kubelet_gpus *g = pod->kubelet->gpus;
	struct hf_shim_pod *config = &pod->config;

	for (size_t i = 0; wanted > 0 && g && i < g->n; i++) {
		const struct gpu *gpu = &g->items[i];

		if (gpu->resource != resource || !gpu->offered || gpu->broken ||
		    is_taken(pod->kubelet, gpu->id) || config->n_gpus == HF_GPUS_MAX)
			continue;
		/* The id is borrowed from the kubelet's list of GPUs, from which no entry is ever
		 * removed. */
		config->gpus[config->n_gpus++] = (struct hf_shim_gpu){
			.container = c->name, .resource = resource, .id = gpu->id};
		wanted--;
	}
	if (wanted > 0)
		return hf_error_set(err, HF_E_TOO_MANY, "container %s waits for %zu more free %s",
				    c->name, wanted, resource);
	return 0;
}

void hf_kubelet_set_gpu_check(struct hf_kubelet *k, void (*check)(void *arg), void *arg)
{
	k->gpu_check = check;
	k->gpu_check_arg = arg;
}

int hf_kubelet_gpus_give(struct hf_kubelet_pod *pod, struct hf_error *err)
{
	int rc = 0;

	if (pod->kubelet->gpu_check)
		pod->kubelet->gpu_check(pod->kubelet->gpu_check_arg);

	pod->config.gpus = HF_ARENA_ARRAY(pod->arena, struct hf_shim_gpu, HF_GPUS_MAX);
	pod->config.n_gpus = 0;
	for (size_t k = 0; k < HF_ARRAY_LEN(kinds); k++) {
		size_t own = 0;

		for (size_t i = 0; !rc && i < pod->n; i++) {
			const struct hf_kubelet_pod_container *c = &pod->containers[i];
			size_t n =
				uses_gpus_of_others(c) ? 0 : wanted_by(c->spec, kinds[k].resource);

			own += n;
			rc = give_gpus(pod, c, kinds[k].resource, n, err);
		}
		/* If an init container wants more GPUs than all main containers and sidecars
		 * together, take the additional GPUs for it. */
		for (size_t i = 0; !rc && i < pod->n; i++) {
			const struct hf_kubelet_pod_container *c = &pod->containers[i];
			size_t n =
				uses_gpus_of_others(c) ? wanted_by(c->spec, kinds[k].resource) : 0;

			rc = give_gpus(pod, c, kinds[k].resource, n > own ? n - own : 0, err);
			own = n > own ? n : own;
		}
	}
	if (rc)
		pod->config.n_gpus = 0;
	return rc;
}

const char *hf_kubelet_gpus_variable(const struct hf_kubelet_pod *pod,
				     const struct hf_kubelet_pod_container *c, size_t kind,
				     struct hf_arena *arena)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT((size_t)HF_GPUS_MAX * 128);
	size_t left = wanted_by(c->spec, kinds[kind].resource);

	hf_strbuf_addf(&sb, "%s=", kinds[kind].variable);
	for (size_t i = 0; i < pod->config.n_gpus && left > 0; i++) {
		const struct hf_shim_gpu *gpu = &pod->config.gpus[i];

		if (!hf_streq(gpu->resource, kinds[kind].resource) ||
		    (!uses_gpus_of_others(c) && !hf_streq(gpu->container, c->name)))
			continue;
		hf_strbuf_addf(&sb, "%s%s", sb.data[sb.len - 1] == '=' ? "" : ",", gpu->id);
		left--;
	}
	return hf_arena_strndup(arena, sb.data, sb.len);
}

bool hf_kubelet_gpus_any(const struct hf_kubelet *k, size_t kind)
{
	if (hf_streq(k->gpus_option, "none"))
		return true; /* hides them all */
	for (size_t i = 0; k->gpus && i < k->gpus->n; i++)
		if (k->gpus->items[i].resource == kinds[kind].resource)
			return true;
	return false;
}
