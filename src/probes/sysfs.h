/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_SYSFS_H
#define HF_PROBES_SYSFS_H

#include "probes/amd.h"
#include "probes/probe.h"

HF_BEGIN_DECLS

/*
 * The probe of sysfs and procfs: PCI devices and links, InfiniBand ports, AMD's error counts and
 * throttling, drivers. It reads regular files only, at most a page of each. Drivers answer these
 * reads and may wait for the device, so the probe looks on threads (look_thread.h). A driver or a
 * broken device chooses the content: a malformed number is unknown.
 */

/* A page, as sysfs has it. */
#define HF_SYSFS_FILE_MAX 4096
/* Of /sys/bus/pci/devices: servers have some hundreds. */
#define HF_SYSFS_PCI_MAX 8192
#define HF_SYSFS_NAME_MAX 32
#define HF_SYSFS_NVIDIA 0x10deu
#define HF_SYSFS_AMD 0x1002u
#define HF_SYSFS_NOT_KNOWN UINT64_MAX

/* ---- texts of files; pure ---- */

/* A whole decimal number, or a hexadecimal one behind "0x"; blanks around it are fine. */
bool hf_sysfs_number(const char *text, uint64_t *ret_number);
/* "32.0 GT/s PCIe", "8 GT/s", "2.5 GT/s" in tenths of a GT/s; 0 for "Unknown" and any other. */
uint32_t hf_sysfs_speed(const char *text);
/* A width is 1 to 32 lanes; 0 for other numbers (63: the device does not answer any more). */
uint32_t hf_sysfs_width(const char *text);
/* Finds NAME in lines "NAME NUMBER"; false: not found. */
bool hf_sysfs_line(const char *text, const char *name, uint64_t *ret_number);
/* AMD's "ue: 3\nce: 14": the uncorrectable ones. */
bool hf_sysfs_ras(const char *text, uint64_t *ret_uncorrectable);
/* Of NVIDIA's "information" in procfs a line "GPU Excluded: Yes", by NVreg_ExcludedGpus. */
bool hf_sysfs_excluded(const char *text);
/* "4: ACTIVE" is 4; -1 for other texts. */
int hf_sysfs_state(const char *text);
/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue …": the version, or "". */
void hf_sysfs_driver_version(const char *text, char ret_version[HF_SYSFS_NAME_MAX]);

/* The entry of a device in /sys/bus/pci/devices is a link to its place in the tree of all devices.  Lists the addresses
 * of the ports in such a target: "../../../devices/pci0000:9c/0000:9c:01.0/0000:9d:00.0" gives "0000:9c:01.0".  If there
 * are too many, those nearest to the device are kept. */
void hf_sysfs_list_above(const char *target, char ret_above[HF_HEALTH_ABOVE_MAX]);

/* ---- looking ---- */

struct hf_sysfs_gpu {
	char address[HF_HEALTH_DEVICE_MAX];
	char above[HF_HEALTH_ABOVE_MAX]; /* addresses of the ports between it and the processor */
	uint32_t vendor;                 /* HF_SYSFS_NVIDIA, HF_SYSFS_AMD */
	char driver[HF_SYSFS_NAME_MAX];  /* "nvidia", "amdgpu"; "": none is bound */
	bool kept_back; /* excluded by NVreg_ExcludedGpus (procfs): no program gets the device */
	bool draws;     /* of the class of displays (VGA): what computes may be, too */
	/* Now, and what device and slot can do together; 0: not known. */
	uint32_t width, width_max, speed, speed_max;
	/* In all since it came up; HF_SYSFS_NOT_KNOWN. */
	uint64_t aer_corrected, aer_nonfatal, aer_fatal;
	/* Of AMD devices. */
	uint64_t ras_uncorrectable; /* of all blocks */
	struct hf_amd_throttle throttle;
};

struct hf_sysfs_gpus {
	size_t len;
	struct hf_sysfs_gpu items[HF_HEALTH_DEVICES_MAX];
	size_t foreign; /* further devices that another driver has or is to have, or none has */
	bool known;     /* false: there is no PCI bus to be seen */
};
/* Lists the devices by address. A device with a foreign driver (for a virtual machine), or with
 * driver_override, is left out. A device without a driver is listed: its driver failed or is not
 * loaded, and pods cannot use the device. The probe leaves out display devices that never had
 * their driver. */
/* proc_root NULL: do not ask for excluded devices (the driver answers, and may hang). */
void hf_sysfs_gpus(const char *sys_root, const char *proc_root, struct hf_sysfs_gpus *ret_gpus);

/* "" if no driver has the device at that address, or no device is there. Reads a link and asks
 * no driver, as the next function. */
void hf_sysfs_driver_of(const char *sys_root, const char *address,
			char ret_driver[HF_SYSFS_NAME_MAX]);
/* A driver has the device at that address, and not NVIDIA's.  Reads a link and asks no driver: for any thread. */
bool hf_sysfs_is_anothers(const char *sys_root, const char *address);

struct hf_sysfs_port {
	char id[HF_HEALTH_DEVICE_MAX];      /* "mlx5_0/1" */
	char address[HF_HEALTH_DEVICE_MAX]; /* of its function on the bus; "" not known */
	char above[HF_HEALTH_ABOVE_MAX];    /* as of a GPU */
	char driver[HF_SYSFS_NAME_MAX];     /* that function's: "mlx5_core" */
	int state, phys_state;              /* 4 is active, 5 is up; -1: not known */
	/* HF_SYSFS_NOT_KNOWN where there is no such counter. */
	uint64_t link_downed, overruns, integrity, retries, symbol_errors, recoveries,
		slow_restarts;
};

/* Looked at: more than are watched (HF_HEALTH_PORTS_MAX), so that the first by name are those and the rest
 * is counted. */
#define HF_SYSFS_PORTS_MAX 256

struct hf_sysfs_ports {
	size_t len;
	struct hf_sysfs_port items[HF_SYSFS_PORTS_MAX];
	bool known;
};
/* counters: their states alone are cheaper, by ten files a port; else they are not known. */
void hf_sysfs_ports(const char *sys_root, bool counters, struct hf_sysfs_ports *ret_ports);

struct hf_sysfs_driver {
	bool nvidia, amdgpu;             /* the module is loaded */
	char version[HF_SYSFS_NAME_MAX]; /* of nvidia's; "" not known */
};
void hf_sysfs_driver(const char *sys_root, const char *proc_root,
		     struct hf_sysfs_driver *ret_driver);

/* All of it as text, the same bytes for the same files. */
void hf_sysfs_render(const struct hf_sysfs_gpus *gpus, const struct hf_sysfs_ports *ports,
		     const struct hf_sysfs_driver *driver, struct hf_strbuf *sb);

/* ---- the probe ---- */

struct hf_sysfs_options {
	const char *sys_root, *proc_root; /* NULL: "/sys", "/proc" */
	hf_time ports_every;              /* 0: a second */
	hf_time devices_every;            /* 0: half a minute */
	hf_time deadline;                 /* of a look; 0: HF_LOOK_THREAD_DEADLINE */
	/* False while the kernel's log is read: it reports PCIe errors (AER) as they happen, and
	 * the counters would repeat them. True otherwise. */
	bool aer;
};

struct hf_probe *hf_sysfs_probe_create(struct hf_intake *intake,
				       const struct hf_sysfs_options *options);

HF_END_DECLS

#endif
