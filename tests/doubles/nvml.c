/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * A double of NVML: a real shared library with the functions of the real one that the agent looks
 * for, which does what the file named by HF_NVML_DOUBLE says at each call:
 *
 *     devices 2                   how many there are (none without this line)
 *     driver 570.86.15            versions and names are texts: driver, library, firmware
 *     lost 1                      every call for device 1 gives 15
 *     reset 1                     … gives 16
 *     hang nvmlDeviceGetCount_v2  this one never returns
 *     wait nvmlInitWithFlags      … when this line is gone
 *     crash nvmlInit_v2           … ends the process by a signal
 *     print nvmlInit_v2           … writes to the standard output
 *     code FUNCTION DEVICE CODE   it fails so; DEVICE may be '*'
 *     value FUNCTION DEVICE NUMBER…
 *     xid DEVICE NUMBER           an event, once, in the order of the lines
 *     value nvmlDeviceGetGpuFabricInfoV DEVICE STATE STATUS HEALTH   (without it: not supported)
 *     part DEVICE PLACE UUID GI CI   an instance; MIG mode is a value as all others
 *
 * Of several lines that fit the last one counts.  Without a file it is a library without devices.
 * Built with HF_NVML_DOUBLE_OLD it lacks what drivers lacked five years ago.
 */

#include "probes/nvml_abi.h"
#include "base/compiler.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_HERE 256
#define VALUES_MAX 4
#define DEVICES_MAX 64

#define API __attribute__((visibility("default")))

enum {
	OK = 0,
	UNINITIALIZED = 1,
	BAD_ARGUMENT = 2,
	UNSUPPORTED = 3,
	NOT_FOUND = 6,
	SIZE = 7,
	TIMEOUT = 10,
	BAD_VERSION = 25
};

/* A device's handle is the address of its place here. */
static char handles[DEVICES_MAX];
/* Likewise of its instances. */
#define PARTS_MAX 7
static char part_handles[DEVICES_MAX][PARTS_MAX];
static unsigned events_taken;

struct answer {
	int code;
	unsigned long long values[VALUES_MAX];
	int values_len;
};

/* ---- the file ----------------------------------------------------------------------------------------- */

/* Calls fn for each line, in words. */
static void each_line(void (*fn)(void *arg, char **words, int len), void *arg)
{
	const char *path = getenv("HF_NVML_DOUBLE");
	FILE *file = path ? fopen(path, "re") : NULL;
	char line[LINE_MAX_HERE];

	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		char *words[VALUES_MAX + 3], *save = NULL;
		int len = 0;

		for (char *w = strtok_r(line, " \n", &save); w && len < (int)HF_ARRAY_LEN(words);
		     w = strtok_r(NULL, " \n", &save))
			words[len++] = w;
		if (len > 0)
			fn(arg, words, len);
	}
	fclose(file);
}

struct question {
	const char *function;
	int device; /* -1: none */
	struct answer answer;
	bool hang, wait, crash, print;
};

static bool fits(const struct question *q, const char *word)
{
	return strcmp(word, "*") == 0 || (int)strtol(word, NULL, 10) == q->device;
}

/* "lost 1" and "reset 1". */
static void on_fate(struct question *q, char **words, int len)
{
	if (len != 2 || q->device < 0)
		return;
	if (strcmp(words[0], "lost") == 0 && fits(q, words[1]))
		q->answer.code = 15;
	if (strcmp(words[0], "reset") == 0 && fits(q, words[1]))
		q->answer.code = 16;
}

/* "value FUNCTION DEVICE NUMBER…" and "code FUNCTION DEVICE CODE". */
static void on_answer(struct question *q, char **words, int len)
{
	if (strcmp(words[0], "code") == 0)
		q->answer.code = (int)strtol(words[3], NULL, 10);
	if (strcmp(words[0], "value") != 0)
		return;
	q->answer.code = OK;
	q->answer.values_len = len - 3;
	for (int i = 0; i < q->answer.values_len; i++)
		q->answer.values[i] = strtoull(words[3 + i], NULL, 0);
}

static void on_line(void *arg, char **words, int len)
{
	struct question *q = arg;

	on_fate(q, words, len);
	if (len < 2 || strcmp(words[1], q->function) != 0)
		return;
	q->hang = q->hang || strcmp(words[0], "hang") == 0;
	q->wait = q->wait || strcmp(words[0], "wait") == 0;
	q->crash = q->crash || strcmp(words[0], "crash") == 0;
	q->print = q->print || strcmp(words[0], "print") == 0;
	if (len >= 4 && fits(q, words[2]))
		on_answer(q, words, len);
}

static int device_of(const void *handle)
{
	const char *at = handle;

	return at >= handles && at < handles + DEVICES_MAX ? (int)(at - handles) : -1;
}

static struct question read_for(const char *function, const void *handle, int code)
{
	struct question q = {.function = function, .device = handle ? device_of(handle) : -1};

	q.answer.code = code;
	each_line(on_line, &q);
	return q;
}

/* What the file says of this call; what it says nothing of is answered with `code`. */
static struct answer ask(const char *function, const void *handle, int code)
{
	struct question q = read_for(function, handle, code);

	for (; q.wait; q = read_for(function, handle, code))
		(void)poll(NULL, 0, 5);
	while (q.hang)
		pause();
	if (q.crash)
		raise(SIGKILL);
	if (q.print)
		(void)!write(1, "NVML says hello\n", 16);
	return q.answer;
}

struct word {
	const char *verb;
	char text[LINE_MAX_HERE];
};

static void on_word(void *arg, char **words, int len)
{
	struct word *word = arg;

	if (len == 2 && strcmp(words[0], word->verb) == 0)
		snprintf(word->text, sizeof(word->text), "%s", words[1]);
}

static int text(const char *verb, const char *otherwise, char *ret_text, unsigned size)
{
	struct word word = {.verb = verb};

	snprintf(word.text, sizeof(word.text), "%s", otherwise);
	each_line(on_word, &word);
	if (strlen(word.text) >= size)
		return SIZE;
	memcpy(ret_text, word.text, strlen(word.text) + 1);
	return OK;
}

static unsigned devices(void)
{
	char count[16] = "0";

	(void)text("devices", "0", count, sizeof(count));
	return (unsigned)strtoul(count, NULL, 10);
}

/* ---- the library ---------------------------------------------------------------------------------------- */

#ifndef HF_NVML_DOUBLE_OLD
API int nvmlInitWithFlags(unsigned flags);
int nvmlInitWithFlags(unsigned flags)
{
	return flags == HF_NVML_INIT_NO_GPUS ? ask("nvmlInitWithFlags", NULL, OK).code
					     : BAD_ARGUMENT;
}
#endif

API int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
	return ask("nvmlInit_v2", NULL, OK).code;
}

API int nvmlShutdown(void);
int nvmlShutdown(void)
{
	return ask("nvmlShutdown", NULL, OK).code;
}

API int nvmlSystemGetDriverVersion(char *ret_text, unsigned size);
int nvmlSystemGetDriverVersion(char *ret_text, unsigned size)
{
	return text("driver", "570.86.15", ret_text, size);
}

API int nvmlSystemGetNVMLVersion(char *ret_text, unsigned size);
int nvmlSystemGetNVMLVersion(char *ret_text, unsigned size)
{
	return text("library", "12.570.86.15", ret_text, size);
}

#ifndef HF_NVML_DOUBLE_OLD
/* Older GPUs have no such firmware: without a line "firmware" it is not supported. */
API int nvmlDeviceGetGspFirmwareVersion(void *device, char *ret_text);
int nvmlDeviceGetGspFirmwareVersion(void *device, char *ret_text)
{
	struct answer a = ask("nvmlDeviceGetGspFirmwareVersion", device, OK);
	int code = a.code == OK ? text("firmware", "", ret_text, 64) : a.code;

	return code == OK && ret_text[0] == '\0' ? UNSUPPORTED : code;
}
#endif

API int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetCount_v2(unsigned *count)
{
	struct answer a = ask("nvmlDeviceGetCount_v2", NULL, OK);

	*count = devices();
	return a.code;
}

API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
	if (index >= devices() || index >= DEVICES_MAX)
		return BAD_ARGUMENT;
	*device = &handles[index];
	return ask("nvmlDeviceGetHandleByIndex_v2", *device, OK).code;
}

static int answer_text(struct answer a, const char *full, char *ret_text, unsigned size)
{
	if (a.code != OK)
		return a.code;
	if (strlen(full) >= size)
		return SIZE;
	memcpy(ret_text, full, strlen(full) + 1);
	return OK;
}

/* One that no other device has. */
static int name(const char *function, void *device, const char *format, char *ret_text,
		unsigned size)
{
	char full[LINE_MAX_HERE];

	snprintf(full, sizeof(full), "%s%02d", format, device_of(device));
	return answer_text(ask(function, device, OK), full, ret_text, size);
}

struct part {
	unsigned device, place;
	bool found;
	char uuid[LINE_MAX_HERE];
	unsigned gpu_instance, compute_instance;
};

static void on_part(void *arg, char **words, int len)
{
	struct part *part = arg;

	if (len != 6 || strcmp(words[0], "part") != 0 ||
	    strtoul(words[1], NULL, 10) != part->device ||
	    strtoul(words[2], NULL, 10) != part->place)
		return;
	part->found = true;
	snprintf(part->uuid, sizeof(part->uuid), "%s", words[3]);
	part->gpu_instance = (unsigned)strtoul(words[4], NULL, 10);
	part->compute_instance = (unsigned)strtoul(words[5], NULL, 10);
}

/* Whose handle it is; false: a device's. */
static bool part_of(const void *handle, struct part *part)
{
	const char *first = &part_handles[0][0], *at = handle;

	memset(part, 0, sizeof(*part));
	if (at < first || at >= first + sizeof(part_handles))
		return false;
	part->device = (unsigned)(at - first) / PARTS_MAX;
	part->place = (unsigned)(at - first) % PARTS_MAX;
	each_line(on_part, part);
	return part->found;
}

API int nvmlDeviceGetUUID(void *device, char *ret_text, unsigned size);
int nvmlDeviceGetUUID(void *device, char *ret_text, unsigned size)
{
	struct part part;

	if (part_of(device, &part))
		return answer_text(ask("nvmlDeviceGetUUID", NULL, OK), part.uuid, ret_text, size);
	return name("nvmlDeviceGetUUID", device, "GPU-5a1d0000-0000-4000-8000-0000000000", ret_text,
		    size);
}

API int nvmlDeviceGetSerial(void *device, char *ret_text, unsigned size);
int nvmlDeviceGetSerial(void *device, char *ret_text, unsigned size)
{
	return name("nvmlDeviceGetSerial", device, "16500000000", ret_text, size);
}

API int nvmlDeviceGetName(void *device, char *ret_text, unsigned size);
int nvmlDeviceGetName(void *device, char *ret_text, unsigned size)
{
	return answer_text(ask("nvmlDeviceGetName", device, OK), "Double", ret_text, size);
}

API int nvmlDeviceGetPciInfo_v3(void *device, struct hf_nvml_pci *pci);
int nvmlDeviceGetPciInfo_v3(void *device, struct hf_nvml_pci *pci)
{
	struct answer a = ask("nvmlDeviceGetPciInfo_v3", device, OK);

	if (a.code != OK)
		return a.code;
	memset(pci, 0, sizeof(*pci));
	pci->bus = 0x1aU + (unsigned)device_of(device);
	pci->id = 0x233010deU;
	snprintf(pci->address_legacy, sizeof(pci->address_legacy), "0000:%02X:00.0", pci->bus);
	snprintf(pci->address, sizeof(pci->address), "00000000:%02X:00.0", pci->bus);
	return OK;
}

static int number(const char *function, void *device, unsigned otherwise, unsigned *value)
{
	struct answer a = ask(function, device, OK);

	*value = a.values_len > 0 ? (unsigned)a.values[0] : otherwise;
	return a.code;
}

#define NUMBER(function, otherwise)                                                                \
	API int function(void *device, unsigned *value);                                           \
	int function(void *device, unsigned *value)                                                \
	{                                                                                          \
		return number(#function, device, (otherwise), value);                              \
	}

NUMBER(nvmlDeviceGetMinorNumber, (unsigned)device_of(device))
NUMBER(nvmlDeviceGetPowerUsage, 71000)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, 700000)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, 16)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, 16)
NUMBER(nvmlDeviceGetPcieReplayCounter, 0)

API int nvmlDeviceGetRetiredPagesPendingStatus(void *device, unsigned *value);
int nvmlDeviceGetRetiredPagesPendingStatus(void *device, unsigned *value)
{
#ifdef HF_NVML_DOUBLE_OLD
	return number("nvmlDeviceGetRetiredPagesPendingStatus", device, 0, value);
#else
	struct answer a = ask("nvmlDeviceGetRetiredPagesPendingStatus", device, UNSUPPORTED);

	*value = (unsigned)a.values[0];
	return a.code;
#endif
}

API int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *value);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *value)
{
	return sensor == 0 ? number("nvmlDeviceGetTemperature", device, 41, value) : BAD_ARGUMENT;
}

API int nvmlDeviceGetClockInfo(void *device, int type, unsigned *value);
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *value)
{
	return type == 1 ? number("nvmlDeviceGetClockInfo", device, 1980, value) : BAD_ARGUMENT;
}

API int nvmlDeviceGetEccMode(void *device, unsigned *now, unsigned *pending);
int nvmlDeviceGetEccMode(void *device, unsigned *now, unsigned *pending)
{
	*pending = 1;
	return number("nvmlDeviceGetEccMode", device, 1, now);
}

API int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *pending);
int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *pending)
{
	*pending = 0;
	return number("nvmlDeviceGetMigMode", device, 0, now);
}

/* value nvmlDeviceGetTotalEccErrors DEVICE CORRECTED UNCORRECTED */
API int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *value);
int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *value)
{
	struct answer a = ask("nvmlDeviceGetTotalEccErrors", device, OK);

	if (kind < 0 || kind > 1 || counter != 0)
		return BAD_ARGUMENT;
	*value = a.values[kind];
	return a.code;
}

API int nvmlDeviceGetUtilizationRates(void *device, struct hf_nvml_utilization *busy);
int nvmlDeviceGetUtilizationRates(void *device, struct hf_nvml_utilization *busy)
{
	busy->memory = 3;
	return number("nvmlDeviceGetUtilizationRates", device, 97, &busy->gpu);
}

static int reasons(const char *function, void *device, unsigned long long *value)
{
	struct answer a = ask(function, device, OK);

	*value = a.values[0];
	return a.code;
}

API int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *value);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *value)
{
	return reasons("nvmlDeviceGetCurrentClocksThrottleReasons", device, value);
}

/* Links 0 to 17; value nvmlDeviceGetNvLinkState DEVICE BITS */
API int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *active);
int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *active)
{
	struct answer a = ask("nvmlDeviceGetNvLinkState", device, OK);

	if (link >= 18)
		return BAD_ARGUMENT;
	*active = a.values_len == 0 || (a.values[0] >> link & 1);
	return a.code;
}

API int nvmlEventSetCreate(void **set);
int nvmlEventSetCreate(void **set)
{
	*set = handles;
	return ask("nvmlEventSetCreate", NULL, OK).code;
}

API int nvmlDeviceGetSupportedEventTypes(void *device, unsigned long long *types);
int nvmlDeviceGetSupportedEventTypes(void *device, unsigned long long *types)
{
	struct answer a = ask("nvmlDeviceGetSupportedEventTypes", device, OK);

	*types = a.values_len > 0 ? a.values[0] : 0x1b;
	return a.code;
}

API int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set);
int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set)
{
	return set == handles && types == HF_NVML_EVENT_XID
		       ? ask("nvmlDeviceRegisterEvents", device, OK).code
		       : BAD_ARGUMENT;
}

struct next_event {
	unsigned at;
	bool found;
	struct hf_nvml_event_data *data;
};

static void on_event(void *arg, char **words, int len)
{
	struct next_event *next = arg;

	if (len != 3 || strcmp(words[0], "xid") != 0)
		return;
	if (next->at++ != events_taken || next->found)
		return;
	next->found = true;
	next->data->device = &handles[strtoul(words[1], NULL, 10) % DEVICES_MAX];
	next->data->type = HF_NVML_EVENT_XID;
	next->data->data = strtoull(words[2], NULL, 10);
	next->data->gpu_instance = next->data->compute_instance = ~0u;
}

API int nvmlEventSetWait_v2(void *set, struct hf_nvml_event_data *data, unsigned wait_ms);
int nvmlEventSetWait_v2(void *set, struct hf_nvml_event_data *data, unsigned wait_ms)
{
	struct next_event next = {.data = data};
	struct answer a = ask("nvmlEventSetWait_v2", NULL, OK);

	if (set != handles || a.code != OK)
		return a.code != OK ? a.code : BAD_ARGUMENT;
	each_line(on_event, &next);
	if (!next.found) {
		/* The wait of the real one, cut into pieces in which a question is looked for. */
		if (wait_ms > 0)
			(void)poll(NULL, 0, 20);
		return TIMEOUT;
	}
	events_taken++;
	return OK;
}

#ifndef HF_NVML_DOUBLE_OLD
NUMBER(nvmlDeviceGetMaxMigDeviceCount, PARTS_MAX)

API int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **part);
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **part)
{
	struct part there;
	int at = device_of(device);

	if (at < 0 || index >= PARTS_MAX)
		return BAD_ARGUMENT;
	*part = &part_handles[at][index];
	return part_of(*part, &there) ? OK : NOT_FOUND;
}

API int nvmlDeviceGetGpuInstanceId(void *part, unsigned *value);
int nvmlDeviceGetGpuInstanceId(void *part, unsigned *value)
{
	struct part of;

	if (!part_of(part, &of))
		return BAD_ARGUMENT;
	*value = of.gpu_instance;
	return ask("nvmlDeviceGetGpuInstanceId", NULL, OK).code;
}

API int nvmlDeviceGetComputeInstanceId(void *part, unsigned *value);
int nvmlDeviceGetComputeInstanceId(void *part, unsigned *value)
{
	struct part of;

	if (!part_of(part, &of))
		return BAD_ARGUMENT;
	*value = of.compute_instance;
	return OK;
}

API int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *value);
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *value)
{
	return reasons("nvmlDeviceGetCurrentClocksEventReasons", device, value);
}

/* value nvmlDeviceGetRemappedRows DEVICE CORRECTED UNCORRECTED PENDING FAILED */
API int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected,
				  unsigned *pending, unsigned *failed);
int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected,
			      unsigned *pending, unsigned *failed)
{
	struct answer a = ask("nvmlDeviceGetRemappedRows", device, OK);

	*corrected = (unsigned)a.values[0];
	*uncorrected = (unsigned)a.values[1];
	*pending = (unsigned)a.values[2];
	*failed = (unsigned)a.values[3];
	return a.code;
}

API int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *infos);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *infos)
{
	int code = number("nvmlDeviceGetComputeRunningProcesses_v3", device, 0, count);

	/* Who brings no room is told how much it takes. */
	return code == OK && *count > 0 && !infos ? SIZE : code;
}

/* What a caller passes says how much of it may be written. */
API int nvmlDeviceGetGpuFabricInfoV(void *device, struct hf_nvml_fabric_v2 *info);
int nvmlDeviceGetGpuFabricInfoV(void *device, struct hf_nvml_fabric_v2 *info)
{
	struct answer a = ask("nvmlDeviceGetGpuFabricInfoV", device, OK);

	if (info->version != HF_NVML_FABRIC_V2)
		return BAD_VERSION;
	info->state = (unsigned char)a.values[0];
	info->status = (int)a.values[1];
	info->health = (unsigned)a.values[2];
	return a.code;
}

/* value nvmlDeviceGetGpuFabricInfo DEVICE STATE STATUS */
API int nvmlDeviceGetGpuFabricInfo(void *device, struct hf_nvml_fabric *info);
int nvmlDeviceGetGpuFabricInfo(void *device, struct hf_nvml_fabric *info)
{
	struct answer a = ask("nvmlDeviceGetGpuFabricInfo", device, OK);

	info->state = (unsigned char)a.values[0];
	info->status = (int)a.values[1];
	return a.code;
}

/* value nvmlDeviceGetFieldValues DEVICE ACTION */
API int nvmlDeviceGetFieldValues(void *device, int count, struct hf_nvml_field *fields);
int nvmlDeviceGetFieldValues(void *device, int count, struct hf_nvml_field *fields)
{
	struct answer a = ask("nvmlDeviceGetFieldValues", device, OK);

	for (int i = 0; i < count; i++) {
		fields[i].code = fields[i].id == HF_NVML_FIELD_RECOVERY_ACTION ? OK : UNSUPPORTED;
		fields[i].type = HF_NVML_VALUE_UINT;
		fields[i].value.as_uint = (unsigned)a.values[0];
	}
	return a.code;
}
#endif
