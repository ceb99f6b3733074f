/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Reads devices, ports and drivers from sysfs and procfs. It runs on a thread, because a read may
 * hang. Invariant: it reads regular files only, at most a page of each.
 */
#include "probes/sysfs.h"

#include "base/fs.h"
#include "base/str.h"
#include "health/evidence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_MAX_HERE 512
#define PCI_CLASS_DISPLAY 0x03u
#define PCI_CLASS_ACCELERATOR 0x12u
#define PCI_CLASS_VGA 0x0300u
#define PORTS_A_DEVICE_MAX 16
#define RAS_FILES_MAX 64

/* Reads at most a page of a regular file and adds a NUL. Returns the length, or -1. O_NONBLOCK,
 * because opening a pipe would wait for its writer. */
static ssize_t read_file(const char *path, char ret_text[HF_SYSFS_FILE_MAX + 1])
{
	HF_AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	size_t len = 0;
	ssize_t got;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	do {
		got = read(fd, ret_text + len, HF_SYSFS_FILE_MAX - len);
		if (got > 0)
			len += (size_t)got;
	} while (len < HF_SYSFS_FILE_MAX && (got > 0 || (got < 0 && errno == EINTR)));
	ret_text[len] = '\0';
	return got >= 0 ? (ssize_t)len : -1;
}

static ssize_t read_bytes_at(const char *dir, const char *name,
			     char ret_text[HF_SYSFS_FILE_MAX + 1])
{
	char path[PATH_MAX_HERE];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, name);

	return n > 0 && (size_t)n < sizeof(path) ? read_file(path, ret_text) : -1;
}

static bool read_at(const char *dir, const char *name, char ret_text[HF_SYSFS_FILE_MAX + 1])
{
	return read_bytes_at(dir, name, ret_text) >= 0;
}

static uint64_t number_at(const char *dir, const char *name)
{
	char text[HF_SYSFS_FILE_MAX + 1];
	uint64_t number;

	return read_at(dir, name, text) && hf_sysfs_number(text, &number) ? number
									  : HF_SYSFS_NOT_KNOWN;
}

/* Reads where a link points to, such as a device's driver: the last part of the target. */
static void link_at(const char *dir, const char *name, char *ret_text, size_t size)
{
	char path[PATH_MAX_HERE], target[PATH_MAX_HERE];
	ssize_t len;
	const char *last;

	memset(ret_text, 0, size);
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return;
	len = readlink(path, target, sizeof(target) - 1);
	if (len <= 0)
		return;
	target[len] = '\0';
	last = strrchr(target, '/');
	last = last ? last + 1 : target;
	snprintf(ret_text, size, "%s", last);
	for (char *c = ret_text; *c; c++)
		*c = *c > ' ' && *c <= '~' ? *c : '?';
}

/* Lists the PCI ports above a device from its entry on the bus, which is a link into the tree of
 * all devices. */
static void read_above(const char *devices, const char *name, char ret_above[HF_HEALTH_ABOVE_MAX])
{
	char path[PATH_MAX_HERE], target[PATH_MAX_HERE];
	ssize_t len;

	memset(ret_above, 0, HF_HEALTH_ABOVE_MAX);
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", devices, name) >= sizeof(path))
		return;
	len = readlink(path, target, sizeof(target) - 1);
	if (len <= 0)
		return;
	target[len] = '\0';
	hf_sysfs_list_above(target, ret_above);
}

/* ---- reading the PCI devices -------------------------------------------------------------------------- */

static uint32_t link_fact(const char *dir, const char *name, uint32_t (*read)(const char *))
{
	char text[HF_SYSFS_FILE_MAX + 1];

	return read_at(dir, name, text) ? read(text) : 0;
}

/* The best link width or speed that both the device and the port above it support; if the port is
 * unknown (in a virtual machine), the device's own. */
static uint32_t link_max(const char *dir, const char *name, uint32_t (*read)(const char *))
{
	char above[PATH_MAX_HERE];
	uint32_t mine = link_fact(dir, name, read), its;

	if ((size_t)snprintf(above, sizeof(above), "%s/..", dir) >= sizeof(above))
		return mine;
	its = link_fact(above, name, read);
	return its > 0 && its < mine ? its : mine;
}

static uint64_t aer_at(const char *dir, const char *name, const char *total)
{
	char text[HF_SYSFS_FILE_MAX + 1];
	uint64_t number;

	return read_at(dir, name, text) && hf_sysfs_line(text, total, &number) ? number
									       : HF_SYSFS_NOT_KNOWN;
}

/* The sum of uncorrectable errors over all blocks of an AMD device. An unreadable block makes the
 * sum unknown: a smaller sum would look like a rise later. */
static uint64_t ras_at(const char *device)
{
	char dir[PATH_MAX_HERE], text[HF_SYSFS_FILE_MAX + 1];
	uint64_t sum = 0, count;
	unsigned files = 0;
	bool bad = false;
	DIR *d;

	if ((size_t)snprintf(dir, sizeof(dir), "%s/ras", device) >= sizeof(dir))
		return HF_SYSFS_NOT_KNOWN;
	d = opendir(dir);
	if (!d)
		return HF_SYSFS_NOT_KNOWN;
	for (const struct dirent *e; (e = readdir(d)) && files < RAS_FILES_MAX;) {
		if (!hf_str_has_suffix(e->d_name, "_err_count"))
			continue;
		files++;
		if (!read_at(dir, e->d_name, text) || !hf_sysfs_ras(text, &count) ||
		    __builtin_add_overflow(sum, count, &sum))
			bad = true;
	}
	closedir(d);
	return bad || files == 0 ? HF_SYSFS_NOT_KNOWN : sum;
}

static void look_amd(const char *dir, struct hf_sysfs_gpu *gpu)
{
	char bytes[HF_SYSFS_FILE_MAX + 1], text[HF_SYSFS_FILE_MAX + 1];
	ssize_t len = read_bytes_at(dir, "gpu_metrics", bytes);

	if (read_at(dir, "unique_id", text))
		hf_sysfs_unique_id(text, gpu->unique_id);
	gpu->ras_uncorrectable = ras_at(dir);
	hf_amd_metrics(bytes, len > 0 ? (size_t)len : 0, &gpu->throttle);
}

/* The device is a virtual function of a device on this machine, and is left out: faults are the
 * physical device's, and neither NVML nor the kubelet counts virtual functions. In a virtual
 * machine the physical device is not visible, and its function counts. */
static bool is_virtual(const char *dir, const char *device)
{
	char path[PATH_MAX_HERE];
	struct stat st;

	return (size_t)snprintf(path, sizeof(path), "%s/%sphysfn", dir, device) < sizeof(path) &&
	       lstat(path, &st) == 0;
}

/* The device belongs to pods: it has its maker's driver, or no driver and no driver_override that
 * reserves it for another one. */
static bool is_ours(const struct hf_sysfs_gpu *gpu, const char *dir)
{
	const char *own = gpu->vendor == HF_SYSFS_NVIDIA ? "nvidia" : "amdgpu";
	char kept_for[HF_SYSFS_FILE_MAX + 1];

	if (gpu->driver[0] != '\0')
		return hf_streq(gpu->driver, own);
	if (!read_at(dir, "driver_override", kept_for))
		return true;
	kept_for[strcspn(kept_for, "\n")] = '\0';
	return kept_for[0] == '\0' || hf_streq(kept_for, "(null)") || hf_streq(kept_for, own);
}

static bool is_kept_back(const char *proc_root, const char *address)
{
	char path[PATH_MAX_HERE], text[HF_SYSFS_FILE_MAX + 1];

	return proc_root != NULL &&
	       (size_t)snprintf(path, sizeof(path), "%s/driver/nvidia/gpus/%s/information",
				proc_root, address) < sizeof(path) &&
	       read_file(path, text) >= 0 && hf_sysfs_excluded(text);
}

/* Reads an accelerator. False: the device is none, or it is not for pods and counted in
 * *foreign. */
static bool read_gpu(const char *devices, const char *name, struct hf_sysfs_gpu *ret_gpu,
		     size_t *foreign)
{
	char dir[PATH_MAX_HERE];
	struct hf_sysfs_gpu *gpu = ret_gpu;
	uint64_t vendor, class;

	memset(gpu, 0, sizeof(*gpu));
	if ((size_t)snprintf(dir, sizeof(dir), "%s/%s", devices, name) >= sizeof(dir) ||
	    !hf_health_pci_normalize(name, strlen(name), gpu->address))
		return false;
	vendor = number_at(dir, "vendor");
	if (vendor != HF_SYSFS_NVIDIA && vendor != HF_SYSFS_AMD)
		return false;
	class = number_at(dir, "class");
	if (class == HF_SYSFS_NOT_KNOWN ||
	    (class >> 16 != PCI_CLASS_DISPLAY && class >> 16 != PCI_CLASS_ACCELERATOR))
		return false;
	gpu->vendor = (uint32_t)vendor;
	gpu->draws = class >> 8 == PCI_CLASS_VGA;
	link_at(dir, "driver", gpu->driver, sizeof(gpu->driver));
	if (is_virtual(dir, ""))
		return false;
	if (!is_ours(gpu, dir)) {
		++*foreign;
		return false;
	}
	read_above(devices, name, gpu->above);
	gpu->width = link_fact(dir, "current_link_width", hf_sysfs_width);
	gpu->speed = link_fact(dir, "current_link_speed", hf_sysfs_speed);
	gpu->width_max = link_max(dir, "max_link_width", hf_sysfs_width);
	gpu->speed_max = link_max(dir, "max_link_speed", hf_sysfs_speed);
	gpu->aer_corrected = aer_at(dir, "aer_dev_correctable", "TOTAL_ERR_COR");
	gpu->aer_nonfatal = aer_at(dir, "aer_dev_nonfatal", "TOTAL_ERR_NONFATAL");
	gpu->aer_fatal = aer_at(dir, "aer_dev_fatal", "TOTAL_ERR_FATAL");
	gpu->ras_uncorrectable = HF_SYSFS_NOT_KNOWN;
	if (gpu->vendor == HF_SYSFS_AMD)
		look_amd(dir, gpu);
	return true;
}

static int by_address(const void *left, const void *right)
{
	const struct hf_sysfs_gpu *a = left, *b = right;

	return strcmp(a->address, b->address);
}

void hf_sysfs_gpus(const char *sys_root, const char *proc_root, struct hf_sysfs_gpus *ret_gpus)
{
	char dir[PATH_MAX_HERE];
	unsigned looked_at = 0;
	DIR *d;

	ret_gpus->len = ret_gpus->foreign = 0;
	ret_gpus->known = false;
	if ((size_t)snprintf(dir, sizeof(dir), "%s/bus/pci/devices", sys_root) >= sizeof(dir))
		return;
	d = opendir(dir);
	if (!d)
		return;
	for (const struct dirent *e; (e = readdir(d)) && looked_at < HF_SYSFS_PCI_MAX &&
				     ret_gpus->len < HF_HEALTH_DEVICES_MAX;) {
		struct hf_sysfs_gpu *gpu = &ret_gpus->items[ret_gpus->len];

		if (e->d_name[0] == '.')
			continue;
		looked_at++;
		if (!read_gpu(dir, e->d_name, gpu, &ret_gpus->foreign))
			continue;
		gpu->kept_back =
			gpu->vendor == HF_SYSFS_NVIDIA && is_kept_back(proc_root, gpu->address);
		ret_gpus->len++;
	}
	closedir(d);
	qsort(ret_gpus->items, ret_gpus->len, sizeof(ret_gpus->items[0]), by_address);
	ret_gpus->known = true;
}

void hf_sysfs_driver_of(const char *sys_root, const char *address,
			char ret_driver[HF_SYSFS_NAME_MAX])
{
	char dir[PATH_MAX_HERE];

	ret_driver[0] = '\0';
	if ((size_t)snprintf(dir, sizeof(dir), "%s/bus/pci/devices/%s", sys_root, address) <
	    sizeof(dir))
		link_at(dir, "driver", ret_driver, HF_SYSFS_NAME_MAX);
}

bool hf_sysfs_is_anothers(const char *sys_root, const char *address)
{
	char driver[HF_SYSFS_NAME_MAX];

	hf_sysfs_driver_of(sys_root, address, driver);
	return driver[0] != '\0' && !hf_streq(driver, "nvidia");
}

/* ---- ports ---------------------------------------------------------------------------------------------- */

static void look_counters(const char *dir, struct hf_sysfs_port *port)
{
	port->link_downed = number_at(dir, "counters/link_downed");
	port->overruns = number_at(dir, "counters/excessive_buffer_overrun_errors");
	port->integrity = number_at(dir, "counters/local_link_integrity_errors");
	port->symbol_errors = number_at(dir, "counters/symbol_error");
	port->recoveries = number_at(dir, "counters/link_error_recovery");
	port->retries = number_at(dir, "hw_counters/rnr_nak_retry_err");
	port->slow_restarts = number_at(dir, "hw_counters/roce_slow_restart");
}

static void look_port(const char *dir, bool counters, struct hf_sysfs_port *port)
{
	char text[HF_SYSFS_FILE_MAX + 1];

	port->state = read_at(dir, "state", text) ? hf_sysfs_state(text) : -1;
	port->phys_state = read_at(dir, "phys_state", text) ? hf_sysfs_state(text) : -1;
	if (counters) {
		look_counters(dir, port);
		return;
	}
	port->link_downed = port->overruns = port->integrity = port->symbol_errors =
		port->recoveries = port->retries = port->slow_restarts = HF_SYSFS_NOT_KNOWN;
}

static void read_ports(const char *sys_root, const char *devices, const char *name, bool counters,
		       struct hf_sysfs_ports *ports)
{
	char bus[PATH_MAX_HERE];
	char dir[PATH_MAX_HERE], address[HF_HEALTH_DEVICE_MAX], driver[HF_SYSFS_NAME_MAX];

	if ((size_t)snprintf(dir, sizeof(dir), "%s/%s", devices, name) >= sizeof(dir) ||
	    is_virtual(dir, "device/"))
		return;
	link_at(dir, "device", address, sizeof(address));
	link_at(dir, "device/driver", driver, sizeof(driver));
	for (int number = 1; number <= PORTS_A_DEVICE_MAX && ports->len < HF_SYSFS_PORTS_MAX;
	     number++) {
		struct hf_sysfs_port *port = &ports->items[ports->len];
		struct stat st;

		if ((size_t)snprintf(dir, sizeof(dir), "%s/%s/ports/%d", devices, name, number) >=
			    sizeof(dir) ||
		    stat(dir, &st) < 0)
			break;
		memset(port, 0, sizeof(*port));
		if ((size_t)snprintf(port->id, sizeof(port->id), "%s/%d", name, number) >=
		    sizeof(port->id))
			break;
		if (!hf_health_pci_normalize(address, strlen(address), port->address))
			memset(port->address, 0, sizeof(port->address));
		memcpy(port->driver, driver, sizeof(port->driver));
		if (counters && (size_t)snprintf(bus, sizeof(bus), "%s/bus/pci/devices", sys_root) <
					sizeof(bus))
			read_above(bus, address, port->above);
		look_port(dir, counters, port);
		ports->len++;
	}
}

static int by_id(const void *left, const void *right)
{
	const struct hf_sysfs_port *a = left, *b = right;

	return strcmp(a->id, b->id);
}

void hf_sysfs_ports(const char *sys_root, bool counters, struct hf_sysfs_ports *ret_ports)
{
	char dir[PATH_MAX_HERE];
	DIR *d;

	ret_ports->len = 0;
	ret_ports->known = false;
	if ((size_t)snprintf(dir, sizeof(dir), "%s/class/infiniband", sys_root) >= sizeof(dir))
		return;
	d = opendir(dir);
	if (!d)
		return;
	for (const struct dirent *e; (e = readdir(d)) && ret_ports->len < HF_SYSFS_PORTS_MAX;) {
		if (e->d_name[0] != '.')
			read_ports(sys_root, dir, e->d_name, counters, ret_ports);
	}
	closedir(d);
	qsort(ret_ports->items, ret_ports->len, sizeof(ret_ports->items[0]), by_id);
	ret_ports->known = true;
}

/* ---- drivers -------------------------------------------------------------------------------------------- */

static bool is_there(const char *root, const char *name)
{
	char path[PATH_MAX_HERE];
	struct stat st;

	return (size_t)snprintf(path, sizeof(path), "%s/%s", root, name) < sizeof(path) &&
	       stat(path, &st) == 0;
}

void hf_sysfs_driver(const char *sys_root, const char *proc_root,
		     struct hf_sysfs_driver *ret_driver)
{
	char text[HF_SYSFS_FILE_MAX + 1];

	memset(ret_driver, 0, sizeof(*ret_driver));
	ret_driver->nvidia = is_there(sys_root, "module/nvidia");
	ret_driver->amdgpu = is_there(sys_root, "module/amdgpu");
	if (read_at(proc_root, "driver/nvidia/version", text)) {
		hf_sysfs_driver_version(text, ret_driver->version);
		ret_driver->nvidia = true;
	} else if (read_at(sys_root, "module/nvidia/version", text)) {
		hf_sysfs_driver_version(text, ret_driver->version);
	}
}

/* ---- the facts of sysfs as text for people ---------------------------------------------------------------- */

static void render_number(struct hf_strbuf *sb, const char *name, uint64_t number)
{
	if (number == HF_SYSFS_NOT_KNOWN)
		hf_strbuf_addf(sb, "  %s: not known\n", name);
	else
		hf_strbuf_addf(sb, "  %s: %llu\n", name, (unsigned long long)number);
}

static void render_throttle(const struct hf_amd_throttle *throttle, struct hf_strbuf *sb)
{
	static const char *const names[HF_AMD_LIMITS] = {"held_by_heat", "held_by_socket",
							 "held_by_regulators", "held_by_memory"};

	render_number(sb, "cycles", throttle->known ? throttle->cycles : HF_SYSFS_NOT_KNOWN);
	for (int i = 0; i < HF_AMD_LIMITS; i++) {
		uint32_t held = throttle->held[i];

		render_number(sb, names[i],
			      throttle->known && held != UINT32_MAX ? held : HF_SYSFS_NOT_KNOWN);
	}
}

static void render_gpu(const struct hf_sysfs_gpu *gpu, struct hf_strbuf *sb)
{
	hf_strbuf_addf(sb,
		       "gpu %s\n  vendor: 0x%04x\n  driver: %s\n  width: %u of %u\n"
		       "  speed: %u.%u of %u.%u GT/s\n",
		       gpu->address, gpu->vendor, hf_str_or(gpu->driver, "none"), gpu->width,
		       gpu->width_max, gpu->speed / 10, gpu->speed % 10, gpu->speed_max / 10,
		       gpu->speed_max % 10);
	if (gpu->above[0] != '\0')
		hf_strbuf_addf(sb, "  below: %s\n", gpu->above);
	render_number(sb, "aer_corrected", gpu->aer_corrected);
	render_number(sb, "aer_nonfatal", gpu->aer_nonfatal);
	render_number(sb, "aer_fatal", gpu->aer_fatal);
	render_number(sb, "ras_uncorrectable", gpu->ras_uncorrectable);
	if (gpu->unique_id[0] != '\0')
		hf_strbuf_addf(sb, "  unique_id: %s\n", gpu->unique_id);
	if (gpu->vendor == HF_SYSFS_AMD)
		render_throttle(&gpu->throttle, sb);
}

void hf_sysfs_render(const struct hf_sysfs_gpus *gpus, const struct hf_sysfs_ports *ports,
		     const struct hf_sysfs_driver *driver, struct hf_strbuf *sb)
{
	hf_strbuf_addf(sb, "nvidia: %s%s%s\namdgpu: %s\n", driver->nvidia ? "loaded" : "not loaded",
		       driver->version[0] ? ", " : "", driver->version,
		       driver->amdgpu ? "loaded" : "not loaded");
	if (!gpus->known)
		hf_strbuf_addstr(sb, "no PCI bus\n");
	for (size_t i = 0; i < gpus->len; i++)
		render_gpu(&gpus->items[i], sb);
	for (size_t i = 0; i < ports->len; i++) {
		const struct hf_sysfs_port *port = &ports->items[i];

		hf_strbuf_addf(sb, "port %s\n  address: %s\n  state: %d\n  phys_state: %d\n",
			       port->id, port->address, port->state, port->phys_state);
		render_number(sb, "link_downed", port->link_downed);
		render_number(sb, "overruns", port->overruns);
		render_number(sb, "integrity", port->integrity);
		render_number(sb, "retries", port->retries);
		render_number(sb, "symbol_errors", port->symbol_errors);
		render_number(sb, "recoveries", port->recoveries);
		render_number(sb, "slow_restarts", port->slow_restarts);
	}
}
