/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The child process that loads NVML. Input: questions on standard input. Output: records on
 * standard output. Invariant: if this version of the library lacks a function, the fact has the
 * code NO_FUNCTION; the child does not crash.
 */
#include "probes/nvml_child.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "health/evidence.h"
#include "probes/mig_instances.h"
#include "probes/nvml_abi.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Longest wait in the library for an event; after it, the child looks for a question. */
#define EVENT_WAIT_MS 100u

/* A device as an earlier look saw it, because a lost device no longer reports its name. A device
 * keeps its index while the library is loaded. */
struct seen {
	void *handle;
	struct hf_nvml_device names; /* the names and the minor number */
};

/* Functions of the library; NULL: this version of the library lacks the function. */
struct nvml {
	void *library;
	bool ready, watching;
	void *events;
	/* NVML's error number of the last try to initialize the library; 0: it succeeded */
	int32_t code;
	char why[HF_NVML_TEXT_MAX];
	struct seen seen[HF_NVML_DEVICES_MAX];

	int (*init_with_flags)(unsigned flags);
	int (*init)(void);
	int (*shutdown)(void);
	int (*driver_version)(char *text, unsigned size);
	int (*library_version)(char *text, unsigned size);
	int (*firmware_version)(void *device, char *text);
	int (*count)(unsigned *count);
	int (*by_index)(unsigned index, void **device);
	int (*uuid)(void *device, char *text, unsigned size);
	int (*serial)(void *device, char *text, unsigned size);
	int (*name)(void *device, char *text, unsigned size);
	int (*pci)(void *device, struct hf_nvml_pci *pci);
	int (*temperature)(void *device, int sensor, unsigned *value);
	int (*clock)(void *device, int type, unsigned *value);
	int (*ecc_mode)(void *device, unsigned *now, unsigned *pending);
	int (*mig_mode)(void *device, unsigned *now, unsigned *pending);
	int (*ecc_errors)(void *device, int kind, int counter, unsigned long long *value);
	int (*remapped)(void *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
			unsigned *failed);
	int (*utilization)(void *device, struct hf_nvml_utilization *value);
	int (*throttle)(void *device, unsigned long long *value);
	int (*nvlink)(void *device, unsigned link, unsigned *active);
	int (*processes)(void *device, unsigned *count, void *infos);
	int (*fields)(void *device, int count, struct hf_nvml_field *fields);
	int (*fabric_v2)(void *device, struct hf_nvml_fabric_v2 *info);
	int (*fabric)(void *device, struct hf_nvml_fabric *info);
	int (*mig)(void *device, unsigned index, void **mig);
	/* Functions from a device to an unsigned number. */
	int (*minor)(void *device, unsigned *value);
	int (*power)(void *device, unsigned *value);
	int (*power_limit)(void *device, unsigned *value);
	int (*retire_pending)(void *device, unsigned *value);
	int (*pcie_generation)(void *device, unsigned *value);
	int (*pcie_generation_max)(void *device, unsigned *value);
	int (*pcie_width)(void *device, unsigned *value);
	int (*pcie_width_max)(void *device, unsigned *value);
	int (*pcie_replays)(void *device, unsigned *value);
	int (*parts_max)(void *device, unsigned *value);
	int (*gpu_instance)(void *mig, unsigned *value);
	int (*compute_instance)(void *mig, unsigned *value);

	int (*events_create)(void **set);
	int (*events_supported)(void *device, unsigned long long *types);
	int (*events_register)(void *device, unsigned long long types, void *set);
	int (*events_wait)(void *set, struct hf_nvml_event_data *data, unsigned wait_ms);
};

#define AT(member) offsetof(struct nvml, member)
static const struct {
	size_t at;
	/* before: the function's name in older versions of the library; NULL: the same */
	const char *name, *before;
} symbols[] = {
	{AT(init_with_flags), "nvmlInitWithFlags", NULL},
	{AT(init), "nvmlInit_v2", NULL},
	{AT(shutdown), "nvmlShutdown", NULL},
	{AT(driver_version), "nvmlSystemGetDriverVersion", NULL},
	{AT(library_version), "nvmlSystemGetNVMLVersion", NULL},
	{AT(firmware_version), "nvmlDeviceGetGspFirmwareVersion", NULL},
	{AT(count), "nvmlDeviceGetCount_v2", NULL},
	{AT(by_index), "nvmlDeviceGetHandleByIndex_v2", NULL},
	{AT(uuid), "nvmlDeviceGetUUID", NULL},
	{AT(serial), "nvmlDeviceGetSerial", NULL},
	{AT(name), "nvmlDeviceGetName", NULL},
	{AT(pci), "nvmlDeviceGetPciInfo_v3", NULL},
	{AT(temperature), "nvmlDeviceGetTemperature", NULL},
	{AT(clock), "nvmlDeviceGetClockInfo", NULL},
	{AT(ecc_mode), "nvmlDeviceGetEccMode", NULL},
	{AT(mig_mode), "nvmlDeviceGetMigMode", NULL},
	{AT(ecc_errors), "nvmlDeviceGetTotalEccErrors", NULL},
	{AT(remapped), "nvmlDeviceGetRemappedRows", NULL},
	{AT(utilization), "nvmlDeviceGetUtilizationRates", NULL},
	{AT(throttle), "nvmlDeviceGetCurrentClocksEventReasons",
	 "nvmlDeviceGetCurrentClocksThrottleReasons"},
	{AT(nvlink), "nvmlDeviceGetNvLinkState", NULL},
	{AT(processes), "nvmlDeviceGetComputeRunningProcesses_v3", NULL},
	{AT(fields), "nvmlDeviceGetFieldValues", NULL},
	{AT(fabric_v2), "nvmlDeviceGetGpuFabricInfoV", NULL},
	{AT(fabric), "nvmlDeviceGetGpuFabricInfo", NULL},
	{AT(mig), "nvmlDeviceGetMigDeviceHandleByIndex", NULL},
	{AT(parts_max), "nvmlDeviceGetMaxMigDeviceCount", NULL},
	{AT(gpu_instance), "nvmlDeviceGetGpuInstanceId", NULL},
	{AT(compute_instance), "nvmlDeviceGetComputeInstanceId", NULL},
	{AT(minor), "nvmlDeviceGetMinorNumber", NULL},
	{AT(power), "nvmlDeviceGetPowerUsage", NULL},
	{AT(power_limit), "nvmlDeviceGetEnforcedPowerLimit", NULL},
	{AT(retire_pending), "nvmlDeviceGetRetiredPagesPendingStatus", NULL},
	{AT(pcie_generation), "nvmlDeviceGetCurrPcieLinkGeneration", NULL},
	{AT(pcie_generation_max), "nvmlDeviceGetMaxPcieLinkGeneration", NULL},
	{AT(pcie_width), "nvmlDeviceGetCurrPcieLinkWidth", NULL},
	{AT(pcie_width_max), "nvmlDeviceGetMaxPcieLinkWidth", NULL},
	{AT(pcie_replays), "nvmlDeviceGetPcieReplayCounter", NULL},
	{AT(events_create), "nvmlEventSetCreate", NULL},
	{AT(events_supported), "nvmlDeviceGetSupportedEventTypes", NULL},
	{AT(events_register), "nvmlDeviceRegisterEvents", NULL},
	{AT(events_wait), "nvmlEventSetWait_v2", NULL},
};

/* Facts with an unsigned number as value, and the library functions for them. */
static const struct {
	enum hf_nvml_fact fact;
	size_t at;
} simple[] = {
	{HF_NVML_MINOR, AT(minor)},
	{HF_NVML_POWER_MW, AT(power)},
	{HF_NVML_POWER_LIMIT_MW, AT(power_limit)},
	{HF_NVML_RETIRE_PENDING, AT(retire_pending)},
	{HF_NVML_PCIE_GENERATION, AT(pcie_generation)},
	{HF_NVML_PCIE_GENERATION_MAX, AT(pcie_generation_max)},
	{HF_NVML_PCIE_WIDTH, AT(pcie_width)},
	{HF_NVML_PCIE_WIDTH_MAX, AT(pcie_width_max)},
	{HF_NVML_PCIE_REPLAYS, AT(pcie_replays)},
};

/* Calls a function of the library if it exists. check_code replaces codes that a record cannot
 * hold. */
#define CALL(fn, ...) ((fn) ? check_code((fn)(__VA_ARGS__)) : (int)HF_NVML_NO_FUNCTION)

static int check_code(int code)
{
	return code >= 0 && code <= HF_NVML_CODE_MAX ? code : HF_NVML_UNKNOWN;
}

/* ---- loading ------------------------------------------------------------------------------------------ */

static void load_library(struct nvml *n, const char *library)
{
	n->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!n->library) {
		const char *why = hf_str_or(dlerror(), "the library cannot be loaded");

		n->code = HF_NVML_NO_LIBRARY;
		hf_str_print(n->why, sizeof(n->why), why, strlen(why));
		return;
	}
	for (size_t i = 0; i < HF_ARRAY_LEN(symbols); i++) {
		void *symbol = dlsym(n->library, symbols[i].name);

		if (!symbol && symbols[i].before)
			symbol = dlsym(n->library, symbols[i].before);
		memcpy((char *)n + symbols[i].at, &symbol, sizeof(symbol));
	}
}

/* Initializes the library; tries again in each look until it works, because the driver may be
 * loaded after the agent's start. */
static void initialize_library(struct nvml *n)
{
	if (n->ready || !n->library)
		return;
	n->code =
		n->init_with_flags ? CALL(n->init_with_flags, HF_NVML_INIT_NO_GPUS) : CALL(n->init);
	n->ready = n->code == HF_NVML_OK;
}

static void watch_events(struct nvml *n, void *handle)
{
	unsigned long long types = 0;

	if (!n->events && CALL(n->events_create, &n->events) != HF_NVML_OK) {
		n->events = NULL;
		return;
	}
	if (CALL(n->events_supported, handle, &types) == HF_NVML_OK &&
	    (types & HF_NVML_EVENT_XID) != 0 &&
	    CALL(n->events_register, handle, HF_NVML_EVENT_XID, n->events) == HF_NVML_OK)
		n->watching = true;
}

/* ---- looking ------------------------------------------------------------------------------------------ */

static void put_fact(struct hf_nvml_device *d, enum hf_nvml_fact fact, int code, uint64_t value)
{
	d->codes[fact] = (uint16_t)code;
	d->values[fact] = code == HF_NVML_OK ? value : 0;
}

static void read_text(int (*fn)(void *, char *, unsigned), void *handle, char *ret_text,
		      size_t size)
{
	char text[256] = "";

	if (CALL(fn, handle, text, HF_NVML_TEXT_MAX) == HF_NVML_OK)
		hf_str_print(ret_text, size, text, strnlen(text, sizeof(text)));
}

static void look_names(struct nvml *n, void *handle, struct hf_nvml_device *d)
{
	struct hf_nvml_pci pci;

	memset(&pci, 0, sizeof(pci));
	read_text(n->uuid, handle, d->uuid, sizeof(d->uuid));
	read_text(n->serial, handle, d->serial, sizeof(d->serial));
	read_text(n->name, handle, d->name, sizeof(d->name));
	if (CALL(n->pci, handle, &pci) == HF_NVML_OK)
		(void)hf_health_pci_normalize(
			pci.address, strnlen(pci.address, sizeof(pci.address)), d->address);
}

static void look_memory(struct nvml *n, void *handle, struct hf_nvml_device *d)
{
	static const enum hf_nvml_fact rows[4] = {HF_NVML_REMAPPED_CORRECTED,
						  HF_NVML_REMAPPED_UNCORRECTED,
						  HF_NVML_REMAP_PENDING, HF_NVML_REMAP_FAILED};
	unsigned now = 0, pending = 0, row[4] = {0};
	unsigned long long errors = 0;
	int code;

	code = CALL(n->ecc_mode, handle, &now, &pending);
	put_fact(d, HF_NVML_ECC_ON, code, now);
	code = CALL(n->ecc_errors, handle, HF_NVML_ERRORS_CORRECTED, HF_NVML_COUNTER_VOLATILE,
		    &errors);
	put_fact(d, HF_NVML_ECC_CORRECTED, code, errors);
	code = CALL(n->ecc_errors, handle, HF_NVML_ERRORS_UNCORRECTED, HF_NVML_COUNTER_VOLATILE,
		    &errors);
	put_fact(d, HF_NVML_ECC_UNCORRECTED, code, errors);
	code = CALL(n->remapped, handle, &row[0], &row[1], &row[2], &row[3]);
	for (int i = 0; i < 4; i++)
		put_fact(d, rows[i], code, row[i]);
}

static void look_work(struct nvml *n, void *handle, struct hf_nvml_device *d)
{
	struct hf_nvml_utilization busy = {0};
	unsigned long long reasons = 0;
	unsigned value = 0, pending = 0, count = 0;
	int code;

	code = CALL(n->temperature, handle, HF_NVML_SENSOR_GPU, &value);
	put_fact(d, HF_NVML_TEMPERATURE_C, code, value);
	code = CALL(n->clock, handle, HF_NVML_CLOCK_SM, &value);
	put_fact(d, HF_NVML_SM_MHZ, code, value);
	code = CALL(n->utilization, handle, &busy);
	put_fact(d, HF_NVML_LOAD_PERCENT, code, busy.gpu);
	code = CALL(n->throttle, handle, &reasons);
	put_fact(d, HF_NVML_THROTTLE_REASONS, code, reasons);
	code = CALL(n->mig_mode, handle, &value, &pending);
	put_fact(d, HF_NVML_MIG_ON, code, value);
	/* Called with room for no entry, this function returns only the number of processes. */
	code = CALL(n->processes, handle, &count, NULL);
	put_fact(d, HF_NVML_PROCESSES, code == HF_NVML_SIZE ? (int)HF_NVML_OK : code, count);
}

static void look_links(struct nvml *n, void *handle, struct hf_nvml_device *d)
{
	int code = HF_NVML_UNSUPPORTED;
	uint64_t active = 0;

	for (unsigned link = 0; link < HF_NVML_LINKS_MAX; link++) {
		unsigned on = 0;
		int link_code = CALL(n->nvlink, handle, link, &on);

		if (link_code == HF_NVML_OK) {
			code = HF_NVML_OK;
			active |= (uint64_t)(on == 1) << link;
		} else if (link_code != HF_NVML_UNSUPPORTED && link_code != HF_NVML_BAD_ARGUMENT) {
			/* If the state of one link is unknown, the states of all links are:
			 * otherwise that link would look inactive. */
			code = link_code;
			break;
		}
	}
	put_fact(d, HF_NVML_NVLINKS, code, active);
}

static uint32_t read_instance(int (*fn)(void *, unsigned *), void *handle)
{
	unsigned value = 0;

	return CALL(fn, handle, &value) == HF_NVML_OK ? value : UINT32_MAX;
}

/* Reads the MIG instances of a device. Unused indexes may lie between used ones. */
static void read_mig_instances(struct nvml *n, void *handle, struct hf_nvml_device *d)
{
	unsigned max = HF_NVML_MIG_INSTANCES_MAX;

	if (d->codes[HF_NVML_MIG_ON] != HF_NVML_OK || d->values[HF_NVML_MIG_ON] != 1)
		return;
	if (CALL(n->parts_max, handle, &max) != HF_NVML_OK || max > HF_NVML_MIG_INSTANCES_MAX)
		max = HF_NVML_MIG_INSTANCES_MAX;
	for (unsigned i = 0; i < max; i++) {
		struct hf_nvml_mig_instance *mig = &d->mig_instances[d->mig_instances_len];
		void *of_part = NULL;

		if (CALL(n->mig, handle, i, &of_part) != HF_NVML_OK)
			continue;
		read_text(n->uuid, of_part, mig->uuid, sizeof(mig->uuid));
		if (!hf_str_has_prefix(mig->uuid, HF_MIG_PREFIX)) {
			memset(mig->uuid, 0, sizeof(mig->uuid));
			continue;
		}
		mig->gpu_instance = read_instance(n->gpu_instance, of_part);
		mig->compute_instance = read_instance(n->compute_instance, of_part);
		d->mig_instances_len++;
	}
}

static void look_recovery(struct nvml *n, void *handle, struct hf_nvml_device *d)
{
	struct hf_nvml_field field;
	int code;

	memset(&field, 0, sizeof(field));
	field.id = HF_NVML_FIELD_RECOVERY_ACTION;
	code = CALL(n->fields, handle, 1, &field);
	if (code == HF_NVML_OK)
		code = check_code(field.code);
	switch (field.type) {
	case HF_NVML_VALUE_UINT:
		put_fact(d, HF_NVML_RECOVERY_ACTION, code, field.value.as_uint);
		break;
	case HF_NVML_VALUE_ULONG:
		put_fact(d, HF_NVML_RECOVERY_ACTION, code, field.value.as_ulong);
		break;
	case HF_NVML_VALUE_ULONGLONG:
		put_fact(d, HF_NVML_RECOVERY_ACTION, code, field.value.as_ulonglong);
		break;
	default:
		put_fact(d, HF_NVML_RECOVERY_ACTION, code == HF_NVML_OK ? HF_NVML_UNKNOWN : code,
			 0);
		break;
	}
}

/* Asks for the fabric state. If the library lacks the newer function or refuses its struct, asks
 * the older function. The union is larger than both structs, because a library may write more than
 * it should. */
static void look_fabric(struct nvml *n, void *handle, struct hf_nvml_device *d)
{
	union {
		struct hf_nvml_fabric_v2 v2;
		struct hf_nvml_fabric v1;
		char room[256];
	} info;
	int code, health = HF_NVML_UNSUPPORTED;

	memset(&info, 0, sizeof(info));
	info.v2.version = HF_NVML_FABRIC_V2;
	code = CALL(n->fabric_v2, handle, &info.v2);
	if (code == HF_NVML_OK) {
		health = code;
		put_fact(d, HF_NVML_FABRIC_STATE, code, info.v2.state);
		put_fact(d, HF_NVML_FABRIC_STATUS, code, (uint64_t)check_code(info.v2.status));
	} else {
		memset(&info, 0, sizeof(info));
		code = CALL(n->fabric, handle, &info.v1);
		put_fact(d, HF_NVML_FABRIC_STATE, code, info.v1.state);
		put_fact(d, HF_NVML_FABRIC_STATUS, code, (uint64_t)check_code(info.v1.status));
	}
	put_fact(d, HF_NVML_FABRIC_HEALTH, health, info.v2.health);
}

static void look_device(struct nvml *n, unsigned index, struct hf_nvml_device *d)
{
	struct seen *seen = &n->seen[index];
	void *handle = NULL;

	for (int i = 0; i < HF_NVML_FACTS; i++)
		d->codes[i] = HF_NVML_UNSUPPORTED;
	d->code = CALL(n->by_index, index, &handle);
	if (d->code == HF_NVML_OK) {
		look_names(n, handle, d);
		if (handle != seen->handle)
			watch_events(n, handle);
		seen->handle = handle;
		for (size_t i = 0; i < HF_ARRAY_LEN(simple); i++) {
			int (*fn)(void *, unsigned *);
			unsigned value = 0;

			memcpy(&fn, (const char *)n + simple[i].at, sizeof(fn));
			int code = CALL(fn, handle, &value);
			put_fact(d, simple[i].fact, code, value);
		}
		look_memory(n, handle, d);
		look_work(n, handle, d);
		read_mig_instances(n, handle, d);
		look_links(n, handle, d);
		look_recovery(n, handle, d);
		look_fabric(n, handle, d);
	}
	for (int i = 0; i < HF_NVML_FACTS; i++) {
		/* The device's code is the worst of its facts: LOST is worse than
		 * RESET_REQUIRED. */
		if (d->codes[i] == HF_NVML_LOST ||
		    (d->codes[i] == HF_NVML_RESET_REQUIRED && d->code == HF_NVML_OK))
			d->code = d->codes[i];
	}
	if (d->address[0] != '\0') {
		seen->names = *d;
	} else {
		/* The device no longer reports its names: use those of an earlier look. */
		memcpy(d->address, seen->names.address, sizeof(d->address));
		memcpy(d->uuid, seen->names.uuid, sizeof(d->uuid));
		memcpy(d->serial, seen->names.serial, sizeof(d->serial));
		memcpy(d->name, seen->names.name, sizeof(d->name));
	}
}

static void read_version(int (*fn)(char *, unsigned), char ret_text[HF_NVML_TEXT_MAX])
{
	char text[256] = "";

	if (CALL(fn, text, 80) == HF_NVML_OK)
		hf_str_print(ret_text, HF_NVML_TEXT_MAX, text, strnlen(text, sizeof(text)));
}

/* All GPUs of a node load their firmware from the files of one driver, so the first answer is enough. */
static void read_firmware(struct nvml *n, struct hf_nvml_record *r)
{
	/* NVML writes up to 64 bytes and takes no size. */
	char text[256] = "";

	for (unsigned i = 0; i < r->devices_len; i++) {
		if (r->devices[i].code != HF_NVML_OK ||
		    CALL(n->firmware_version, n->seen[i].handle, text) != HF_NVML_OK)
			continue;
		hf_str_print(r->firmware, HF_NVML_TEXT_MAX, text, strnlen(text, sizeof(text)));
		return;
	}
}

static void read_devices(struct nvml *n, struct hf_nvml_record *r)
{
	unsigned count = 0;
	int code;

	memset(r, 0, sizeof(*r));
	r->kind = HF_NVML_ROUND;
	r->count = -1;
	initialize_library(n);
	r->code = n->code;
	memcpy(r->why, n->why, sizeof(r->why));
	if (!n->library)
		return;
	/* Even without a driver, the library can report its own version. */
	read_version(n->library_version, r->library);
	if (!n->ready)
		return;
	read_version(n->driver_version, r->driver);
	code = CALL(n->count, &count);
	if (code != HF_NVML_OK) {
		r->code = code;
		return;
	}
	r->count = count > UINT16_MAX - 1 ? UINT16_MAX - 1 : (int32_t)count;
	r->devices_len = count < HF_NVML_DEVICES_MAX ? count : HF_NVML_DEVICES_MAX;
	for (unsigned i = 0; i < r->devices_len; i++)
		look_device(n, i, &r->devices[i]);
	read_firmware(n, r);
}

/* ---- events ------------------------------------------------------------------------------------------- */

static const char *find_address(const struct nvml *n, const void *handle)
{
	for (size_t i = 0; i < HF_NVML_DEVICES_MAX; i++)
		if (handle && n->seen[i].handle == handle)
			return n->seen[i].names.address;
	return "";
}

/* Waits for an event, and takes all further events that are ready. True: at least one came. */
static bool take_events(struct nvml *n, struct hf_nvml_record *r)
{
	unsigned wait_ms = EVENT_WAIT_MS;

	memset(r, 0, sizeof(*r));
	r->kind = HF_NVML_NEWS;
	r->count = -1;
	while (r->events_len < HF_NVML_EVENTS_MAX) {
		struct hf_nvml_event *e = &r->events[r->events_len];
		struct hf_nvml_event_data data;
		int code;

		memset(&data, 0, sizeof(data));
		code = CALL(n->events_wait, n->events, &data, wait_ms);
		if (code != HF_NVML_OK) {
			/* After an error of the wait, stop waiting for events: a wait that fails at
			 * once would be repeated without end. */
			n->watching = code == HF_NVML_TIMEOUT;
			break;
		}
		snprintf(e->address, sizeof(e->address), "%s", find_address(n, data.device));
		e->type = data.type;
		e->data = data.data;
		e->gpu_instance = data.gpu_instance;
		e->compute_instance = data.compute_instance;
		r->events_len++;
		wait_ms = 0;
	}
	return r->events_len > 0;
}

/* ---- the process ----------------------------------------------------------------------------------------- */

static int write_answer(int fd, const struct hf_nvml_record *r, struct hf_strbuf *sb)
{
	hf_strbuf_clear(sb);
	hf_nvml_record_write(r, sb);
	return hf_fs_write_all(fd, sb->data, sb->len);
}

/* Looks for a question. 1: one came; 0: none yet; -1: the agent has closed the pipe. */
static int read_question(bool wait)
{
	struct pollfd in = {.fd = 0, .events = POLLIN};
	char byte;
	ssize_t got;

	if (poll(&in, 1, wait ? -1 : 0) <= 0)
		return 0;
	got = read(0, &byte, 1);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return got == 1 ? 1 : -1;
}

int hf_nvml_child_main(const char *library)
{
	struct nvml *n = hf_xcalloc(1, sizeof(*n));
	struct hf_nvml_record *r = hf_xcalloc(1, sizeof(*r));
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_NVML_FRAME_HEAD + HF_NVML_FRAME_MAX);
	/* Send the library's own output to /dev/null: on standard output it would stand between
	 * records. */
	int out = fcntl(1, F_DUPFD_CLOEXEC, 3), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int asked, rc = out < 0 || null < 0 || dup2(null, 1) < 0 ? -1 : 0;

	if (rc == 0)
		load_library(n, library);
	while (rc == 0 && (asked = read_question(!n->watching)) >= 0) {
		if (asked == 1) {
			read_devices(n, r);
			rc = write_answer(out, r, &sb);
		} else if (n->watching && take_events(n, r)) {
			rc = write_answer(out, r, &sb);
		}
	}
	/* Do not shut the library down: that may hang. The kernel frees what the library holds. */
	free(n);
	free(r);
	return rc == 0 ? 0 : 1;
}
