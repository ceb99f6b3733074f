/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The checks of `holdfast agent --probe-once`; probe_checks.h describes them. Pure functions. */
#include "probes/probe_checks.h"

#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PORT_ACTIVE 4 /* as sysfs writes it: "4: ACTIVE" */
#define SOCKET_MISSING                                                                             \
	"a running kubelet whose socket is at the path of --kubelet-socket; in a pod, mount it"

const char *hf_probe_verdict_name(enum hf_probe_verdict verdict)
{
	static const char *const names[] = {"ok", "warn", "fail"};

	return names[verdict];
}

static struct hf_probe_check *add_check(struct hf_probe_checks *checks, const char *name,
					enum hf_probe_verdict verdict, const char *missing)
{
	struct hf_probe_check *check;

	hf_assert(checks->len < HF_PROBE_CHECKS_MAX);
	check = &checks->items[checks->len++];
	check->name = name;
	check->verdict = verdict;
	check->message[0] = '\0';
	snprintf(check->missing, sizeof(check->missing), "%s", missing);
	return check;
}

static void set_message(struct hf_probe_check *check, const char *format, ...) HF_PRINTF(2, 3);

static void set_message(struct hf_probe_check *check, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(check->message, sizeof(check->message), format, args);
	va_end(args);
	/* A reason may contain text from libraries and files, so make it printable. */
	hf_str_print(check->message, sizeof(check->message), check->message,
		     strnlen(check->message, sizeof(check->message)));
}

static size_t count_vendor(const struct hf_sysfs_gpus *gpus, uint32_t vendor)
{
	size_t n = 0;

	for (size_t i = 0; gpus != NULL && i < gpus->len; i++)
		n += gpus->items[i].vendor == vendor && !gpus->items[i].kept_back;
	return n;
}

void hf_probe_check_off(struct hf_probe_checks *checks, const char *name, const char *flag)
{
	struct hf_probe_check *check = add_check(checks, name, HF_CHECK_WARN, "");

	snprintf(check->missing, sizeof(check->missing), "%s with a value", flag);
	set_message(check, "turned off by %s=''", flag);
}

void hf_probe_check_log(struct hf_probe_checks *checks, const char *path, const char *why)
{
	if (why == NULL)
		set_message(add_check(checks, "kernel-log", HF_CHECK_OK, ""), "%s is readable",
			    path);
	else
		set_message(add_check(checks, "kernel-log", HF_CHECK_FAIL,
				      "the right to read the kernel's log: run as root, or as a "
				      "privileged container with the device mounted"),
			    "%s: %s", path, why);
}

void hf_probe_check_pci(struct hf_probe_checks *checks, const struct hf_sysfs_gpus *gpus)
{
	const struct hf_sysfs_gpu *first = NULL;
	size_t without = 0;

	for (size_t i = 0; i < gpus->len; i++) {
		if (gpus->items[i].driver[0] != '\0' || gpus->items[i].draws)
			continue;
		if (without++ == 0)
			first = &gpus->items[i];
	}
	if (!gpus->known)
		set_message(add_check(checks, "pci", HF_CHECK_FAIL,
				      "sysfs mounted at the path of --sysfs"),
			    "sysfs shows no PCI bus");
	else if (without > 0)
		set_message(add_check(checks, "pci", HF_CHECK_FAIL,
				      "the device's kernel module; see 'dmesg' for its errors"),
			    "%zu of %zu devices without a driver, first %s", without, gpus->len,
			    first->address);
	else if (gpus->len == 0)
		set_message(add_check(checks, "pci", HF_CHECK_WARN,
				      "an NVIDIA or AMD accelerator on this node"),
			    "no accelerator on the PCI bus");
	else
		set_message(add_check(checks, "pci", HF_CHECK_OK, ""),
			    "%zu devices: %zu NVIDIA, %zu AMD", gpus->len,
			    count_vendor(gpus, HF_SYSFS_NVIDIA), count_vendor(gpus, HF_SYSFS_AMD));
}

static const char *nvml_missing(int code)
{
	switch (code) {
	case HF_NVML_NO_LIBRARY:
		return "the driver's library: install the driver, mount its folder, or give --nvml";
	case HF_NVML_NOT_LOADED: return "the kernel module nvidia: load it with 'modprobe nvidia'";
	case HF_NVML_MISMATCH:
		return "a driver and a library of the same version: restart the node";
	default: return "a driver that answers; see 'dmesg' for its errors";
	}
}

static size_t count_failed(const struct hf_nvml_record *record)
{
	size_t n = 0;

	for (size_t i = 0; i < record->devices_len; i++)
		n += record->devices[i].code != HF_NVML_OK ||
		     hf_nvml_failure(&record->devices[i]) != HF_NVML_OK;
	return n;
}

static void check_nvml_devices(struct hf_probe_checks *checks, const struct hf_nvml_record *record,
			       size_t on_bus)
{
	size_t failed = count_failed(record);

	if (failed > 0)
		set_message(add_check(checks, "nvml", HF_CHECK_FAIL,
				      "a reset of these devices or a restart of the node"),
			    "%zu of %zu devices are lost or do not answer", failed,
			    record->devices_len);
	else if (record->count < 0 || (size_t)record->count < on_bus)
		set_message(
			add_check(checks, "nvml", HF_CHECK_FAIL,
				  "a driver that counts all devices; see 'dmesg' for its errors"),
			"driver %s counts %d devices, the PCI bus has %zu", record->driver,
			record->count, on_bus);
	else
		set_message(add_check(checks, "nvml", HF_CHECK_OK, ""), "driver %s, %d devices",
			    record->driver, record->count);
}

void hf_probe_check_nvml(struct hf_probe_checks *checks, const struct hf_nvml_record *record,
			 const char *why, const struct hf_sysfs_gpus *gpus)
{
	size_t on_bus = count_vendor(gpus, HF_SYSFS_NVIDIA);
	int code = record != NULL ? record->code : HF_NVML_TIMEOUT;

	if (record != NULL && code == HF_NVML_OK)
		check_nvml_devices(checks, record, on_bus);
	else if (gpus != NULL && gpus->known && on_bus == 0)
		set_message(add_check(checks, "nvml", HF_CHECK_OK, ""),
			    "not needed: no NVIDIA device on the PCI bus");
	else if (record == NULL || record->why[0] != '\0')
		set_message(add_check(checks, "nvml", HF_CHECK_FAIL, nvml_missing(code)), "%s",
			    record == NULL ? why : record->why);
	else
		set_message(add_check(checks, "nvml", HF_CHECK_FAIL, nvml_missing(code)),
			    "NVML returned error %d", code);
}

void hf_probe_check_ports(struct hf_probe_checks *checks, const struct hf_sysfs_ports *ports)
{
	const struct hf_sysfs_port *down = NULL;
	size_t inactive = 0;

	for (size_t i = 0; i < ports->len; i++) {
		if (ports->items[i].state == PORT_ACTIVE)
			continue;
		if (inactive++ == 0)
			down = &ports->items[i];
	}
	if (ports->len == 0)
		set_message(add_check(checks, "ports", HF_CHECK_OK, ""),
			    "not needed: no InfiniBand or RoCE port");
	else if (inactive > 0)
		set_message(
			add_check(
				checks, "ports", HF_CHECK_WARN,
				"a cable to an active switch port; if a port needs no cable, ignore this"),
			"%zu of %zu ports are not active, first %s", inactive, ports->len,
			down->id);
	else
		set_message(add_check(checks, "ports", HF_CHECK_OK, ""), "%zu ports are active",
			    ports->len);
}

void hf_probe_check_holders(struct hf_probe_checks *checks, const struct hf_podresources *found,
			    const char *why)
{
	if (found == NULL)
		set_message(add_check(checks, "holders", HF_CHECK_FAIL, SOCKET_MISSING), "%s", why);
	else
		set_message(add_check(checks, "holders", HF_CHECK_OK, ""),
			    "containers hold %zu devices; the kubelet lists %zu pods",
			    found->devices_len, found->pods);
}

void hf_probe_check_allocatable(struct hf_probe_checks *checks, const struct hf_podresources *found,
				const char *why, const struct hf_sysfs_gpus *gpus)
{
	if (found == NULL)
		set_message(add_check(checks, "allocatable", HF_CHECK_FAIL, SOCKET_MISSING), "%s",
			    why);
	else if (found->devices_len == 0 && gpus != NULL && gpus->len > 0)
		set_message(add_check(checks, "allocatable", HF_CHECK_FAIL,
				      "a running device plugin; see its DaemonSet"),
			    "the kubelet offers no device, the PCI bus has %zu", gpus->len);
	else
		set_message(add_check(checks, "allocatable", HF_CHECK_OK, ""),
			    "the kubelet offers %zu devices", found->devices_len);
}

void hf_probe_checks_render(const struct hf_probe_checks *checks, struct hf_strbuf *sb)
{
	for (size_t i = 0; i < checks->len; i++) {
		const struct hf_probe_check *check = &checks->items[i];

		hf_strbuf_addf(sb, "%-4s  %-11s  %s%s%s\n", hf_probe_verdict_name(check->verdict),
			       check->name, check->message,
			       check->missing[0] != '\0' ? "; missing: " : "", check->missing);
	}
}
