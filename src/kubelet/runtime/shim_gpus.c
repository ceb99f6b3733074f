/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/runtime/shim_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * "shim gpus SYSFS": finds the GPUs of this machine and prints a line of JSON. NVIDIA's come from
 * NVML, with their UUIDs; AMD's from the kfd topology in sysfs, by the order and the names of ROCm. It is
 * a process of its own, because a driver that is stuck makes NVML hang.
 */
#define GPUS_MAX 64
#define UUID_MAX 96
#define PROPERTIES_BYTES_MAX ((size_t)64 << 10)

/* --- NVIDIA --- */

/* The functions of NVML that are used here (nvml.h, since driver 418). They return 0 on
 * success. */
struct nvml {
	int (*init)(void);
	int (*count)(unsigned *ret_count);
	int (*by_index)(unsigned index, void **ret_device);
	int (*uuid)(void *device, char *ret_uuid, unsigned size);
};

static bool find_function(void *library, const char *name, void *ret_function)
{
	void *found = dlsym(library, name);

	/* Copy the bytes of the address: C has no cast from an object pointer to a function
	 * pointer, but POSIX makes them equal. */
	memcpy(ret_function, &found, sizeof(found));
	return found != NULL;
}

/* Adds a GPU to the list. address: the GPU's address on the PCI bus; NULL: unknown. */
static void add_gpu(struct hf_json *gpus, const char *resource, const char *id, const char *address)
{
	struct hf_json *gpu = hf_json_object();

	hf_json_set_str(gpu, "resource", resource);
	hf_json_set_str(gpu, "id", id);
	if (address)
		hf_json_set_str(gpu, "address", address);
	hf_json_append(gpus, gpu);
}

static const char *add_nvidia(struct hf_json *gpus)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	struct nvml nvml;
	unsigned count = 0;

	if (!library)
		return ""; /* no driver of NVIDIA's */
	if (!find_function(library, "nvmlInit_v2", &nvml.init) ||
	    !find_function(library, "nvmlDeviceGetCount_v2", &nvml.count) ||
	    !find_function(library, "nvmlDeviceGetHandleByIndex_v2", &nvml.by_index) ||
	    !find_function(library, "nvmlDeviceGetUUID", &nvml.uuid))
		return "NVML is too old";
	if (nvml.init() != 0 || nvml.count(&count) != 0)
		return "NVML does not answer; is the driver loaded?";
	for (unsigned i = 0; i < count && i < GPUS_MAX; i++) {
		char uuid[UUID_MAX] = "";
		void *device = NULL;

		/* NVML gives no handle for a GPU that fell off the bus: such a GPU is left out. */
		if (nvml.by_index(i, &device) == 0 && nvml.uuid(device, uuid, sizeof(uuid)) == 0 &&
		    uuid[0])
			add_gpu(gpus, HF_SHIM_NVIDIA, uuid, NULL);
	}
	return "";
}

/* --- AMD --- */

static uint64_t property_of(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, len) == 0 && line[len] == ' ')
			return strtoull(line + len + 1, NULL, 10);
	}
	return 0;
}

/* Writes the PCI address of a GPU. The property location_id has bus, device and function, as the
 * kernel's kfd_topology.c encodes them. */
static void format_address(const char *properties, char *text, size_t size)
{
	uint64_t place = property_of(properties, "location_id");

	(void)snprintf(text, size, "%04x:%02x:%02x.%x",
		       (unsigned)(property_of(properties, "domain") & 0xffff),
		       (unsigned)(place >> 8 & 0xff), (unsigned)(place >> 3 & 0x1f),
		       (unsigned)(place & 7));
}

/* Adds the GPUs of AMD. Their id is what ROCR_VISIBLE_DEVICES takes: the unique number of the GPU,
 * or its index if it has no number. */
static void add_amd(struct hf_json *gpus, const char *sysfs)
{
	int place = 0;

	for (int node = 0; node < GPUS_MAX; node++) {
		HF_AUTOFREE char *path =
			hf_xasprintf("%s/class/kfd/kfd/topology/nodes/%d/properties", sysfs, node);
		HF_AUTO_STRBUF text = HF_STRBUF_INIT(PROPERTIES_BYTES_MAX);
		uint64_t unique;
		char id[UUID_MAX], address[32];

		if (hf_fs_read(path, &text, NULL) != 0)
			return; /* the nodes have no gaps */
		/* Skip a node of the topology without SIMD units: it is a processor. */
		if (property_of(text.data, "simd_count") == 0)
			continue;
		unique = property_of(text.data, "unique_id");
		if (unique)
			(void)snprintf(id, sizeof(id), "GPU-%016" PRIx64, unique);
		else
			(void)snprintf(id, sizeof(id), "%d", place);
		place++;
		format_address(text.data, address, sizeof(address));
		add_gpu(gpus, HF_SHIM_AMD, id, address);
	}
}

int hf_shim_run_gpus(const char *sysfs)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT((size_t)64 << 10);
	HF_AUTO_JSON root = hf_json_object();
	struct hf_json *gpus = hf_json_ensure_array(root, "gpus");

	hf_json_set_str(root, "why", add_nvidia(gpus));
	add_amd(gpus, sysfs);
	hf_json_write(root, HF_JSON_COMPACT, &sb);
	hf_strbuf_addch(&sb, '\n');
	(void)!write(STDOUT_FILENO, sb.data, sb.len);
	/* Exit without exit handlers and without waiting for threads: NVML has some of its own. */
	_exit(0);
}
