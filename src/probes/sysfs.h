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

/* Size of a file in sysfs: a page. */
#define HF_SYSFS_FILE_MAX 4096
/* Limit of entries in /sys/bus/pci/devices; servers have some hundreds. */
#define HF_SYSFS_PCI_MAX 8192
#define HF_SYSFS_NAME_MAX 32
#define HF_SYSFS_NVIDIA 0x10deu
#define HF_SYSFS_AMD 0x1002u
#define HF_SYSFS_NOT_KNOWN UINT64_MAX

/* ---- texts of files; pure ---- */

/* Parses a decimal number, or a hexadecimal one that begins with "0x"; blanks around it are
 * fine. */
bool hf_sysfs_number(const char *text, uint64_t *ret_number);
/* Parses "32.0 GT/s PCIe", "8 GT/s" or "2.5 GT/s" into tenths of a GT/s; 0 for "Unknown" and all
 * other texts. */
uint32_t hf_sysfs_speed(const char *text);
/* Parses a link width of 1 to 32 lanes; 0 for other numbers (63 means that the device does not
 * answer any more). */
uint32_t hf_sysfs_width(const char *text);
/* Finds the number in a line "NAME NUMBER"; false: there is no such line. */
bool hf_sysfs_line(const char *text, const char *name, uint64_t *ret_number);
/* Parses AMD's "ue: 3\nce: 14" and returns the uncorrectable errors (ue). */
bool hf_sysfs_ras(const char *text, uint64_t *ret_uncorrectable);
/* NVIDIA's file "information" in procfs has the line "GPU Excluded: Yes": NVreg_ExcludedGpus
 * excludes the device. */
bool hf_sysfs_excluded(const char *text);
/* Takes AMD's hexadecimal number of a device, such as "deff74a0c5f5d080\n"; "": none, or another text. */
void hf_sysfs_unique_id(const char *text, char ret_id[HF_SYSFS_NAME_MAX]);
/* Parses the state of a port: "4: ACTIVE" is 4; -1 for other texts. */
int hf_sysfs_state(const char *text);
/* Finds the version in "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue …"; "":
 * none. */
void hf_sysfs_driver_version(const char *text, char ret_version[HF_SYSFS_NAME_MAX]);

/* Lists the PCI ports above a device. The device's entry in /sys/bus/pci/devices links to its place
 * in the tree: "../../../devices/pci0000:9c/0000:9c:01.0/0000:9d:00.0" gives "0000:9c:01.0". If
 * there are too many, keeps those nearest to the device. */
void hf_sysfs_list_above(const char *target, char ret_above[HF_HEALTH_ABOVE_MAX]);

/* ---- looking ---- */

struct hf_sysfs_gpu {
	char address[HF_HEALTH_DEVICE_MAX];
	/* addresses of the PCI ports between the device and the processor */
	char above[HF_HEALTH_ABOVE_MAX];
	uint32_t vendor;                /* HF_SYSFS_NVIDIA, HF_SYSFS_AMD */
	char driver[HF_SYSFS_NAME_MAX]; /* "nvidia", "amdgpu"; "": none is bound */
	/* excluded by NVreg_ExcludedGpus (procfs): no program can use the device */
	bool kept_back;
	/* the device's PCI class is display (VGA); such a device may compute as well */
	bool draws;
	/* The link's present width and speed, and the best that device and slot support together;
	 * 0: not known. */
	uint32_t width, width_max, speed, speed_max;
	/* Error counts since the device came up; HF_SYSFS_NOT_KNOWN: not known. */
	uint64_t aer_corrected, aer_nonfatal, aer_fatal;
	/* The next three members are known for AMD devices only. */
	char unique_id[HF_SYSFS_NAME_MAX]; /* hexadecimal; "": not known */
	uint64_t ras_uncorrectable;        /* sum over all blocks */
	struct hf_amd_throttle throttle;
};

struct hf_sysfs_gpus {
	size_t len;
	struct hf_sysfs_gpu items[HF_HEALTH_DEVICES_MAX];
	/* number of devices left out of `items`: with a foreign driver, reserved for a foreign
	 * driver, or displays without a driver */
	size_t foreign;
	bool known; /* false: sysfs shows no PCI bus */
};
/* Lists the devices by address. A device with a foreign driver (for a virtual machine), or with
 * driver_override, is left out. A device without a driver is listed: its driver failed or is not
 * loaded, and pods cannot use the device. The probe leaves out display devices that never had
 * their driver. */
/* proc_root NULL: do not find out which devices are excluded. The driver answers that question and
 * may hang. */
void hf_sysfs_gpus(const char *sys_root, const char *proc_root, struct hf_sysfs_gpus *ret_gpus);

/* The driver of the device at this address; "": no driver has it, or there is no device. Reads a
 * link and asks no driver, so any thread may call this. */
void hf_sysfs_driver_of(const char *sys_root, const char *address,
			char ret_driver[HF_SYSFS_NAME_MAX]);
/* Another driver than NVIDIA's has the device at this address. Reads a link and asks no driver, so
 * any thread may call this. */
bool hf_sysfs_is_anothers(const char *sys_root, const char *address);

struct hf_sysfs_port {
	char id[HF_HEALTH_DEVICE_MAX];      /* "mlx5_0/1" */
	char address[HF_HEALTH_DEVICE_MAX]; /* PCI address of the port's function; "": not known */
	char above[HF_HEALTH_ABOVE_MAX];    /* as in struct hf_sysfs_gpu */
	char driver[HF_SYSFS_NAME_MAX];     /* that function's: "mlx5_core" */
	int state, phys_state; /* 4 is active (state), 5 is up (phys_state); -1: not known */
	/* Counters; HF_SYSFS_NOT_KNOWN: the port has no such counter. */
	uint64_t link_downed, overruns, integrity, retries, symbol_errors, recoveries,
		slow_restarts;
};

/* Limit of ports that are read. It is larger than the limit of watched ports (HF_HEALTH_PORTS_MAX):
 * the first ports by name are watched, and the rest is counted as refused. */
#define HF_SYSFS_PORTS_MAX 256

struct hf_sysfs_ports {
	size_t len;
	struct hf_sysfs_port items[HF_SYSFS_PORTS_MAX];
	bool known;
};
/* Reads the ports. counters false: reads only their states, which saves ten files a port. */
void hf_sysfs_ports(const char *sys_root, bool counters, struct hf_sysfs_ports *ret_ports);

struct hf_sysfs_driver {
	bool nvidia, amdgpu;             /* the module is loaded */
	char version[HF_SYSFS_NAME_MAX]; /* version of the module nvidia; "": not known */
};
void hf_sysfs_driver(const char *sys_root, const char *proc_root,
		     struct hf_sysfs_driver *ret_driver);

/* Writes all facts as text. The same files always give the same bytes. */
void hf_sysfs_render(const struct hf_sysfs_gpus *gpus, const struct hf_sysfs_ports *ports,
		     const struct hf_sysfs_driver *driver, struct hf_strbuf *sb);

/* ---- the probe ---- */

struct hf_sysfs_options {
	const char *sys_root, *proc_root; /* NULL: "/sys", "/proc" */
	hf_time ports_every;              /* how often the ports are looked at; 0: every second */
	/* how often the devices are looked at; 0: every half minute */
	hf_time devices_every;
	/* how long a look at the devices may take; 0: HF_LOOK_THREAD_DEADLINE */
	hf_time deadline;
	/* True: read the counters of PCIe errors (AER). False while the kernel's log is read, which
	 * reports these errors as they happen. */
	bool aer;
};

struct hf_probe *hf_sysfs_probe_create(struct hf_intake *intake,
				       const struct hf_sysfs_options *options);

HF_END_DECLS

#endif
