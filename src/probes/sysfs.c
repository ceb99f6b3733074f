/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The probe of the PCI bus. Input: the files that the thread read. Output: devices, samples,
 * counts, missing devices. Invariant: a device that was named once stays, so the probe finds out
 * excluded devices before it names any.
 */
#include "probes/look_thread.h"
#include "probes/nvml.h"
#include "probes/port_watch.h"
#include "probes/sysfs.h"

#include "base/mem.h"
#include "base/str.h"
#include "health/evidence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEVICES_EVERY (30 * HF_SECOND)
/* How long the probe waits for NVML's first answer or first failure before it names devices. */
#define LIBRARY_WAIT (HF_NVML_FIRST_DEADLINE + 10 * HF_SECOND)
/* A device that a look has seen. */
struct known_gpu {
	char address[HF_HEALTH_DEVICE_MAX];
	uint64_t aer[3]; /* corrected, nonfatal and fatal errors at the last look */
	struct hf_amd_throttle throttle;
	bool seen; /* this look has seen the device */
};

struct sysfs_probe {
	struct hf_probe base; /* first */
	struct hf_intake *intake;
	struct hf_sysfs_options options;
	struct hf_timer *devices;
	hf_time started_at, poked_at;
	struct known_gpu gpus[HF_HEALTH_DEVICES_MAX];
	size_t gpus_len;
	/* Ports have a thread of their own: a GPU that does not answer must not hide the state of
	 * ports. */
	struct hf_port_watch *ports;
	struct hf_look_thread *device_thread;
	struct device_bench *gpu_bench;
	bool amd;      /* the node had an AMD device */
	size_t nvidia; /* number of NVIDIA devices, the excluded ones included */
	/* Devices excluded by the driver, as of the driver's last answer. */
	char kept_back[HF_HEALTH_DEVICES_MAX][HF_HEALTH_DEVICE_MAX];
	size_t kept_back_len;
	bool primed;
};

/* Memory that the thread fills. */
struct device_bench {
	char *sys_root, *proc_root;
	bool ask; /* find out which devices the driver excludes */
	struct hf_sysfs_gpus gpus;
	struct hf_sysfs_driver driver;
};

static struct hf_health_sample make_sysfs_sample(enum hf_health_detector detector,
						 const char *device)
{
	return hf_intake_sample_of(HF_HEALTH_BY_SYSFS, detector, device);
}

/* ---- devices ------------------------------------------------------------------------------------------ */

static struct known_gpu *know_gpu(struct sysfs_probe *p, const struct hf_sysfs_gpu *gpu)
{
	struct known_gpu *known;

	for (size_t i = 0; i < p->gpus_len; i++)
		if (hf_streq(p->gpus[i].address, gpu->address))
			return &p->gpus[i];
	if (p->gpus_len == HF_HEALTH_DEVICES_MAX)
		return NULL;
	known = &p->gpus[p->gpus_len++];
	memset(known, 0, sizeof(*known));
	memcpy(known->address, gpu->address, sizeof(known->address));
	known->aer[0] = gpu->aer_corrected;
	known->aer[1] = gpu->aer_nonfatal;
	known->aer[2] = gpu->aer_fatal;
	return known;
}

/* Takes the devices that an earlier agent saw in this boot, so that the probe reports a device that
 * is gone by now. */
static void prime_known(struct sysfs_probe *p)
{
	const char *id, *address;

	for (size_t i = 0; !p->primed && hf_intake_remembers(p->intake, i, &id, &address); i++) {
		struct hf_sysfs_gpu gpu;

		memset(&gpu, 0, sizeof(gpu));
		if (!hf_health_pci_normalize(id, strlen(id), gpu.address))
			continue;
		gpu.aer_corrected = gpu.aer_nonfatal = gpu.aer_fatal = HF_SYSFS_NOT_KNOWN;
		(void)know_gpu(p, &gpu);
	}
	p->primed = true;
}

static void report_aer(struct sysfs_probe *p, const struct hf_sysfs_gpu *gpu,
		       struct known_gpu *known)
{
	static const enum hf_health_severity severities[3] = {HF_HEALTH_CORRECTED,
							      HF_HEALTH_NONFATAL, HF_HEALTH_FATAL};
	static const char *const names[3] = {"corrected", "non-fatal", "fatal"};
	const uint64_t now[3] = {gpu->aer_corrected, gpu->aer_nonfatal, gpu->aer_fatal};

	for (int i = 0; i < 3; i++) {
		struct hf_health_evidence e = hf_health_evidence_none();
		uint64_t before = known->aer[i];

		if (now[i] == HF_SYSFS_NOT_KNOWN)
			continue;
		known->aer[i] = now[i];
		if (before == HF_SYSFS_NOT_KNOWN || now[i] <= before)
			continue;
		e.detector = HF_HEALTH_AER;
		e.source = HF_HEALTH_BY_SYSFS;
		e.code = HF_HEALTH_CODE_AER;
		e.severity = severities[i];
		memcpy(e.device, gpu->address, sizeof(e.device));
		snprintf(e.line, sizeof(e.line), "AER: %llu %s errors more",
			 (unsigned long long)(now[i] - before), names[i]);
		(void)hf_intake_evidence(p->intake, &e);
	}
}

/* Reports AMD's error counts and throttling. An unknown value makes no sample. */
static void report_amd(struct sysfs_probe *p, const struct hf_sysfs_gpu *gpu,
		       struct known_gpu *known)
{
	struct hf_health_sample s = make_sysfs_sample(HF_HEALTH_AMD, gpu->address);

	if (gpu->ras_uncorrectable != HF_SYSFS_NOT_KNOWN) {
		s.amd.counted = true;
		s.amd.uncorrectable = gpu->ras_uncorrectable;
	}
	if (known) {
		s.amd.timed =
			hf_amd_throttled(&known->throttle, &gpu->throttle, &s.amd.throttle_percent);
		s.amd.load_percent = gpu->throttle.load_percent;
		known->throttle = gpu->throttle;
	}
	if (s.amd.counted || s.amd.timed)
		(void)hf_intake_sample(p->intake, &s);
	if (s.amd.counted || gpu->throttle.known)
		hf_intake_heard(p->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_AMD);
}

static void report_gpu(struct sysfs_probe *p, const struct hf_sysfs_gpu *gpu)
{
	struct hf_health_presence there;
	struct hf_health_sample s = make_sysfs_sample(HF_HEALTH_BUSLOST, gpu->address);
	struct known_gpu *known = know_gpu(p, gpu);

	memset(&there, 0, sizeof(there));
	there.kind = HF_HEALTH_GPU;
	memcpy(there.id, gpu->address, sizeof(there.id));
	memcpy(there.above, gpu->above, sizeof(there.above));
	/* NVML names the devices of NVIDIA. */
	snprintf(there.uuid, sizeof(there.uuid), "%s", gpu->unique_id);
	hf_intake_device(p->intake, &there);
	(void)hf_intake_sample(p->intake, &s);
	if (gpu->width > 0 || gpu->speed > 0) {
		s = make_sysfs_sample(HF_HEALTH_PCIE, gpu->address);
		s.pcie.width = gpu->width;
		s.pcie.width_max = gpu->width_max;
		s.pcie.speed = gpu->speed;
		s.pcie.speed_max = gpu->speed_max;
		if (!hf_intake_load_of(p->intake, gpu->address, &s.pcie.load_percent))
			s.pcie.load_percent = 0;
		(void)hf_intake_sample(p->intake, &s);
		hf_intake_heard(p->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_PCIE);
	}
	report_amd(p, gpu, known);
	if (known) {
		known->seen = true;
		if (p->options.aer)
			report_aer(p, gpu, known);
	}
}

static bool is_on_bus(const struct sysfs_probe *p, const char *address)
{
	char path[512];
	struct stat st;

	return (size_t)snprintf(path, sizeof(path), "%s/bus/pci/devices/%s", p->options.sys_root,
				address) < sizeof(path) &&
	       stat(path, &st) == 0;
}

/* Reports devices that were on the bus and are gone. A device that only got another driver, such as
 * a virtual machine's, is not gone. */
static void report_gone(struct sysfs_probe *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->gpus_len; i++) {
		struct known_gpu *gpu = &p->gpus[i];
		struct hf_health_sample s = make_sysfs_sample(HF_HEALTH_BUSLOST, gpu->address);

		if (!gpu->seen) {
			if (is_on_bus(p, gpu->address))
				continue;
			s.bus.lost = true;
			(void)hf_intake_sample(p->intake, &s);
		}
		gpu->seen = false;
		p->gpus[kept++] = *gpu;
	}
	p->gpus_len = kept;
}

/* Reports whether the driver is loaded, unless NVML reports the driver: a hanging driver would look
 * well here because its module is loaded. */
static void report_driver_by_sysfs(struct sysfs_probe *p, size_t nvidia, size_t amd)
{
	struct hf_health_sample s = make_sysfs_sample(HF_HEALTH_DRIVER, "");
	const struct hf_sysfs_driver *driver = &p->gpu_bench->driver;
	const char *why;

	if (nvidia + amd == 0) {
		hf_intake_off(p->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_DRIVER, "no device");
		return;
	}
	if (hf_intake_state(p->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, &why) != HF_INTAKE_OFF)
		return;
	s.driver.not_loaded = (nvidia > 0 && !driver->nvidia) || (amd > 0 && !driver->amdgpu);
	/* If the library is present and fails, it may hang the next time. A loaded module does not
	 * show that the driver works. */
	if (hf_str_has_prefix(why, HF_NVML_ERROR) && !s.driver.not_loaded)
		return;
	hf_intake_heard(p->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_DRIVER);
	(void)hf_intake_sample(p->intake, &s);
}

static void off_looks(struct sysfs_probe *p, const char *why)
{
	static const enum hf_health_detector all[] = {HF_HEALTH_BUSLOST, HF_HEALTH_PCIE,
						      HF_HEALTH_AMD};

	for (size_t i = 0; i < HF_ARRAY_LEN(all); i++)
		hf_intake_off(p->intake, HF_HEALTH_BY_SYSFS, all[i], why);
	if (p->options.aer)
		hf_intake_off(p->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_AER, why);
}

static void off_devices(struct sysfs_probe *p, const char *why)
{
	off_looks(p, why);
	hf_intake_off(p->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_DRIVER, why);
}

/* Reports a detector as off if no device gave the facts that it needs. */
static void report_unseen(struct sysfs_probe *p)
{
	const struct hf_sysfs_gpus *gpus = &p->gpu_bench->gpus;
	bool link = false, amd = false;

	for (size_t i = 0; i < gpus->len; i++) {
		link = link || gpus->items[i].width > 0 || gpus->items[i].speed > 0;
		amd = amd || gpus->items[i].ras_uncorrectable != HF_SYSFS_NOT_KNOWN ||
		      gpus->items[i].throttle.known;
	}
	if (!link)
		hf_intake_off(p->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_PCIE,
			      "sysfs shows no link of any device");
	if (!amd)
		hf_intake_off(p->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_AMD,
			      "sysfs has neither RAS counts nor a known version of gpu_metrics");
}

static void read_devices(void *arg)
{
	struct device_bench *bench = arg;

	hf_sysfs_gpus(bench->sys_root, bench->ask ? bench->proc_root : NULL, &bench->gpus);
	hf_sysfs_driver(bench->sys_root, bench->proc_root, &bench->driver);
}

static void release_devices(void *arg)
{
	struct device_bench *bench = arg;

	free(bench->sys_root);
	free(bench->proc_root);
	free(bench);
}

/* How many devices NVML counts; -1: NVML does not answer. */
static int32_t get_nvml_count(const struct sysfs_probe *p)
{
	const char *why;
	bool ok = hf_intake_state(p->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, &why) ==
		  HF_INTAKE_OK;

	return ok ? hf_intake_counted(p->intake, HF_COUNT_NVML) : -1;
}

/* The driver must be asked which devices are excluded: NVML answers and counts fewer devices than
 * the bus. The driver may hang on this question, so it is not asked otherwise. */
static bool wants_to_ask(const struct sysfs_probe *p)
{
	return get_nvml_count(p) >= 0 && (size_t)get_nvml_count(p) < p->nvidia;
}

static bool counts_all(const struct sysfs_probe *p)
{
	return get_nvml_count(p) >= 0 && (size_t)get_nvml_count(p) >= p->nvidia;
}

/* NVML has not answered yet, and may still do so. */
static bool is_awaited(const struct sysfs_probe *p)
{
	const char *why;

	return p->nvidia > 0 && hf_intake_now(p->intake) - p->started_at < LIBRARY_WAIT &&
	       hf_intake_state(p->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, &why) ==
		       HF_INTAKE_UNTOLD;
}

/* True: wait for NVML's first count, or ask the driver first which devices are excluded, then
 * repeat this look. A device that was named cannot be taken back. */
static bool looks_again(struct sysfs_probe *p)
{
	if (p->gpu_bench->ask || (!is_awaited(p) && !wants_to_ask(p)))
		return false;
	hf_timer_arm(p->devices, is_awaited(p) ? HF_SECOND : 0);
	return true;
}

static void look_devices(void *arg)
{
	struct sysfs_probe *p = arg;

	hf_timer_arm(p->devices, p->options.devices_every);
	if (hf_look_thread_is_free(p->device_thread))
		p->gpu_bench->ask = wants_to_ask(p);
	(void)hf_look_thread_look(p->device_thread);
}

static void put_counts(struct sysfs_probe *p, int32_t pci, int32_t nvidia, int32_t bus)
{
	hf_intake_count(p->intake, HF_COUNT_PCI, pci);
	hf_intake_count(p->intake, HF_COUNT_NVIDIA, nvidia);
	hf_intake_count(p->intake, HF_COUNT_BUS, bus);
}

/* The read of sysfs passed its deadline. For AMD's devices sysfs is the only source, so this shows
 * a hanging driver. */
static void late_devices(void *arg)
{
	struct sysfs_probe *p = arg;
	struct hf_health_sample s = make_sysfs_sample(HF_HEALTH_DRIVER, "");
	const char *why;

	put_counts(p, -1, -1, -1);
	off_looks(p, "sysfs does not answer");
	if (!p->amd ||
	    hf_intake_state(p->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, &why) != HF_INTAKE_OFF)
		return;
	s.driver.timed_out = true;
	hf_intake_heard(p->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_DRIVER);
	(void)hf_intake_sample(p->intake, &s);
}

/* The device only draws: it is a display (accelerators have a PCI class of their own) and never had
 * its driver. A card that draws and computes counts once its driver had it. */
static bool is_for_screens(const struct sysfs_probe *p, const struct hf_sysfs_gpu *gpu)
{
	if (!gpu->draws || gpu->driver[0] != '\0' || hf_intake_was_driven(p->intake, gpu->address))
		return false;
	for (size_t i = 0; i < p->gpus_len; i++)
		if (hf_streq(p->gpus[i].address, gpu->address))
			return false;
	return true;
}

static bool is_kept_back(const struct sysfs_probe *p, const struct hf_sysfs_gpu *gpu)
{
	for (size_t i = 0; i < p->kept_back_len; i++)
		if (hf_streq(p->kept_back[i], gpu->address))
			return true;
	return false;
}

/* Stores which devices the driver excludes. The answer is valid until the next question, or until
 * NVML counts all devices. */
static void note_kept_back(struct sysfs_probe *p)
{
	const struct hf_sysfs_gpus *gpus = &p->gpu_bench->gpus;

	p->nvidia = 0;
	for (size_t i = 0; i < gpus->len; i++)
		p->nvidia += gpus->items[i].vendor == HF_SYSFS_NVIDIA;
	if (!p->gpu_bench->ask && !counts_all(p))
		return;
	p->kept_back_len = 0;
	for (size_t i = 0; i < gpus->len; i++)
		if (gpus->items[i].kept_back)
			memcpy(p->kept_back[p->kept_back_len++], gpus->items[i].address,
			       HF_HEALTH_DEVICE_MAX);
}

static void leave_out_others(struct sysfs_probe *p)
{
	struct hf_sysfs_gpus *gpus = &p->gpu_bench->gpus;
	size_t kept = 0;

	note_kept_back(p);
	for (size_t i = 0; i < gpus->len; i++) {
		if (is_for_screens(p, &gpus->items[i]) || is_kept_back(p, &gpus->items[i])) {
			gpus->foreign++;
			continue;
		}
		if (kept != i)
			gpus->items[kept] = gpus->items[i];
		kept++;
	}
	gpus->len = kept;
}

static void looked_devices(void *arg)
{
	struct sysfs_probe *p = arg;
	const struct hf_sysfs_gpus *gpus = &p->gpu_bench->gpus;
	size_t nvidia = 0;

	if (!gpus->known) {
		put_counts(p, -1, -1, -1);
		off_devices(p, "sysfs shows no PCI bus");
		return;
	}
	prime_known(p);
	leave_out_others(p);
	if (looks_again(p))
		return;
	for (size_t i = 0; i < gpus->len; i++)
		nvidia += gpus->items[i].vendor == HF_SYSFS_NVIDIA;
	p->amd = gpus->len > nvidia;
	put_counts(p, (int32_t)(nvidia > 0 ? nvidia : gpus->len), (int32_t)nvidia,
		   (int32_t)(gpus->len + gpus->foreign));
	if (gpus->len == 0 && p->gpus_len == 0) {
		off_devices(p, "no device");
		return;
	}
	for (size_t i = 0; i < gpus->len; i++)
		report_gpu(p, &gpus->items[i]);
	report_gone(p);
	hf_intake_note_version(p->intake, HF_VERSION_MODULE, p->gpu_bench->driver.version);
	report_driver_by_sysfs(p, nvidia, gpus->len - nvidia);
	report_unseen(p);
	hf_intake_heard(p->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_BUSLOST);
	if (p->options.aer)
		hf_intake_heard(p->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_AER);
}

/* ---- the probe ------------------------------------------------------------------------------------------ */

static void create_thread(struct sysfs_probe *p)
{
	struct hf_look_thread_options thread = {
		.intake = p->intake, .deadline = p->options.deadline, .arg = p};

	p->gpu_bench = hf_xcalloc(1, sizeof(*p->gpu_bench));
	p->gpu_bench->sys_root = hf_xstrdup(p->options.sys_root);
	p->gpu_bench->proc_root = hf_xstrdup(p->options.proc_root);
	thread.probe = HF_PROBE_DEVICES;
	thread.bench = p->gpu_bench;
	thread.look = read_devices;
	thread.release = release_devices;
	thread.looked = looked_devices;
	thread.late = late_devices;
	p->device_thread = hf_look_thread_create(&thread);
}

static void start_sysfs(struct hf_probe *probe)
{
	struct sysfs_probe *p = (struct sysfs_probe *)probe;

	create_thread(p);
	p->started_at = hf_intake_now(p->intake);
	p->devices = hf_timer_create(hf_intake_loop(p->intake), look_devices, p);
	hf_timer_arm(p->devices, 0);
	p->ports = hf_port_watch_create(p->intake, &p->options);
}

static void poke_sysfs(struct hf_probe *probe)
{
	struct sysfs_probe *p = (struct sysfs_probe *)probe;
	hf_time now = hf_intake_now(p->intake);

	/* Looks now, but at most once a second: in a flood of kernel lines, each line may ask for a
	 * look. */
	if (!p->devices || now - p->poked_at < HF_SECOND)
		return;
	p->poked_at = now;
	hf_timer_arm(p->devices, 0);
}

static void destroy_sysfs(struct hf_probe *probe)
{
	struct sysfs_probe *p = (struct sysfs_probe *)probe;

	hf_look_thread_destroy(p->device_thread);
	hf_timer_destroy(p->devices);
	hf_port_watch_destroy(p->ports);
	free(p);
}

struct hf_probe *hf_sysfs_probe_create(struct hf_intake *intake,
				       const struct hf_sysfs_options *options)
{
	static const struct hf_probe_ops ops = {.name = "sysfs",
						.start = start_sysfs,
						.poke = poke_sysfs,
						.destroy = destroy_sysfs};
	struct sysfs_probe *p = hf_xcalloc(1, sizeof(*p));

	p->base.ops = &ops;
	p->intake = intake;
	p->options = *options;
	p->options.sys_root = hf_str_or(options->sys_root, "/sys");
	p->options.proc_root = hf_str_or(options->proc_root, "/proc");
	if (p->options.devices_every == 0)
		p->options.devices_every = DEVICES_EVERY;
	return &p->base;
}
