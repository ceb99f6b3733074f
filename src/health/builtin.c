/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The built-in table of rules.  Xid numbers follow the vendor's catalogue of October 2025.  Where experience from
 * clusters disagrees with the catalogue, a comment says so.
 */
#include "health/rules.h"

#define ANY .subcode = -1

/* A rule for a code or a range of codes: class, action, scope and end. */
#define RULE(det, from, to, class_, action_, scope_, clear_)                                       \
	ANY, .detector = HF_HEALTH_##det, .code_min = (from), .code_max = (to),                    \
	     .cls = HF_HEALTH_##class_, .action = HF_HEALTH_##action_,                             \
	     .scope = HF_HEALTH_OF_##scope_, .clear = HF_HEALTH_BY_##clear_

#define INFO_XID(from, to)                                                                         \
	{                                                                                          \
		RULE(XID, from, to, INFO, RECORD, DEVICE, AGE)                                     \
	}
#define APP_XID(from, to)                                                                          \
	{                                                                                          \
		RULE(XID, from, to, APP, RESTART_PROCESS, DEVICE, AGE)                             \
	}
#define RESET_XID(from, to)                                                                        \
	{                                                                                          \
		RULE(XID, from, to, GPU_RESET, RESET_DEVICE, DEVICE, SIGNAL)                       \
	}

#define BIT(n) (UINT32_C(1) << (n))
/* Register 0 of Xid 74: the bits that the vendor's catalogue calls errors of the link's hardware. */
#define LINK_HARDWARE                                                                              \
	(BIT(4) | BIT(5) | BIT(8) | BIT(9) | BIT(12) | BIT(16) | BIT(17) | BIT(24) | BIT(28))
#define LINK_SIGNAL (BIT(1) | BIT(20) | BIT(21) | BIT(22))
#define LINK_NOTHING (BIT(0) | BIT(23) | BIT(30))

static const struct hf_health_rule rules[] = {
	/* Xid 13 and 31 are errors of a program.  If they come again on the same unit, the unit may be broken. */
	{RULE(XID, 13, 13, DEGRADED, MOVE_POD, DEVICE, AGE), .count = 2, .window = HF_DAY,
	 .burst = 15 * HF_SECOND, .below = HF_HEALTH_APP, .same_unit = true},
	{RULE(XID, 31, 31, DEGRADED, MOVE_POD, DEVICE, AGE), .count = 2, .window = HF_DAY,
	 .burst = 3 * HF_MINUTE, .below = HF_HEALTH_APP},
	/* Xid 45 follows a killed process or another Xid. */
	{RULE(XID, 45, 45, APP, RESTART_PROCESS, DEVICE, AGE), .follows = true},
	/* The vendor tells to ignore Xid 43; after Xid 13 or 31 it is a consequence. */
	{RULE(XID, 43, 43, INFO, RECORD, DEVICE, AGE), .follows = true},
	/* Xid 48 is a double-bit error: the memory row must be remapped, and a reset does that. */
	RESET_XID(48, 48),
	{RULE(XID, 171, 172, INFO, RECORD, DEVICE, AGE), .follows = true},
	/* Xid 74 is an error of NVLink before version 5; register 0 tells which one. */
	{RULE(XID, 74, 74, GPU_RESET, RESET_DEVICE, DEVICE, SIGNAL), .bits_any = LINK_HARDWARE,
	 .count = 2, .window = HF_DAY, .burst = 15 * HF_SECOND, .below = HF_HEALTH_FABRIC,
	 .same_unit = true},
	{RULE(XID, 74, 74, FABRIC, MOVE_POD, FABRIC, SIGNAL), .bits_any = LINK_SIGNAL,
	 .follows = true},
	{RULE(XID, 74, 74, INFO, RECORD, DEVICE, AGE), .bits_any = LINK_NOTHING,
	 .bits_only = LINK_NOTHING},
	{RULE(XID, 74, 74, FABRIC, MOVE_POD, FABRIC, SIGNAL)},
	/* NVLink 5: each line has a severity; a line without a severity is not rated. */
	{RULE(XID, 144, 150, GPU_RESET, RESET_DEVICE, FABRIC, SIGNAL), .severity = HF_HEALTH_FATAL},
	{RULE(XID, 144, 150, INFO, RECORD, FABRIC, AGE), .severity = HF_HEALTH_NONFATAL},
	/* Auxiliary power is not connected. */
	{RULE(XID, 54, 54, SUPPORT, REPLACE_NODE, DEVICE, BOOT)},
	/* Device plugins skip Xid 109, but the vendor asks for a reset, so Holdfast does too. */
	RESET_XID(46, 46),
	RESET_XID(62, 62),
	RESET_XID(64, 64),
	RESET_XID(95, 95),
	RESET_XID(109, 110),
	RESET_XID(119, 120),
	RESET_XID(136, 136),
	RESET_XID(140, 140),
	RESET_XID(143, 143),
	RESET_XID(155, 156),
	RESET_XID(158, 158),
	{RULE(XID, 151, 151, REBOOT, RESTART_NODE, NODE, BOOT)},
	/* Xid 78: software or firmware is too old for a request. */
	{RULE(XID, 78, 78, SOFTWARE, RESTART_DRIVER, DEVICE, SIGNAL)},
	{RULE(XID, 159, 159, SOFTWARE, RESTART_DRIVER, DEVICE, SIGNAL)},
	{RULE(XID, 142, 142, SUPPORT, REPLACE_NODE, DEVICE, BOOT)},
	/* Xid 63 (a row was remapped) and 160 only inform, though EC2 replaces a node for 63.  What counts is
	 * whether a remapping is pending or failed, and detector ecc measures that. */
	INFO_XID(14, 14),
	INFO_XID(37, 38),
	INFO_XID(44, 44),
	INFO_XID(63, 63),
	INFO_XID(66, 67),
	INFO_XID(92, 93),
	INFO_XID(106, 107),
	INFO_XID(121, 121),
	INFO_XID(137, 137),
	INFO_XID(141, 141),
	INFO_XID(152, 154),
	INFO_XID(157, 157),
	INFO_XID(160, 161),
	APP_XID(8, 8),
	APP_XID(11, 11),
	APP_XID(25, 25),
	APP_XID(32, 32),
	APP_XID(39, 41),
	APP_XID(60, 60),
	APP_XID(68, 72),
	APP_XID(75, 77),
	APP_XID(80, 80),
	APP_XID(82, 86),
	APP_XID(88, 89),
	APP_XID(94, 94),
	APP_XID(96, 105),
	APP_XID(126, 135),
	APP_XID(139, 139),
	/* A lost bus.  faults.c needs two witnesses if none of them is the kernel. */
	{RULE(BUSLOST, HF_HEALTH_CODE_BUS, HF_HEALTH_CODE_BUS, REBOOT, RESTART_NODE, NODE, BOOT)},
	/* A driver that cannot initialize the GPU cannot reset the GPU either.  The fault ends when the GPU
	 * answers. */
	{RULE(BUSLOST, HF_HEALTH_CODE_INIT, HF_HEALTH_CODE_INIT, REBOOT, RESTART_NODE, NODE,
	      SIGNAL)},
	/* NVSwitch: the line has a severity, and all GPUs share the switch. */
	{RULE(SXID, 0, 99999, REBOOT, RESTART_NODE, FABRIC, BOOT), .severity = HF_HEALTH_FATAL},
	{RULE(SXID, 0, 99999, INFO, RECORD, FABRIC, AGE), .severity = HF_HEALTH_NONFATAL},
	/* What the driver itself asks for. */
	{RULE(RECOVERY, 1, 1, GPU_RESET, RESET_DEVICE, DEVICE, SIGNAL)},
	{RULE(RECOVERY, 2, 2, REBOOT, RESTART_NODE, NODE, SIGNAL)},
	{RULE(RECOVERY, 3, 3, DRAIN, QUARANTINE, NODE, SIGNAL)},
	{RULE(RECOVERY, 4, 4, GPU_RESET, RESET_DEVICE, NODE, SIGNAL)},
	{RULE(RECOVERY, 5, 5, FABRIC, RESTART_DRIVER, FABRIC, SIGNAL)},
	{RULE(RECOVERY, HF_HEALTH_CODE_RESET_REQUIRED, HF_HEALTH_CODE_RESET_REQUIRED, GPU_RESET,
	      RESET_DEVICE, DEVICE, SIGNAL)},
	/* The driver asks for a reset without the GPU's name.  The rule stops no GPU, because most of the GPUs are
	 * well. */
	{RULE(RECOVERY, HF_HEALTH_CODE_RESET_SOMEWHERE, HF_HEALTH_CODE_RESET_SOMEWHERE, DEGRADED,
	      RESET_DEVICE, NODE, AGE)},
	/* Memory. */
	{RULE(ECC, HF_HEALTH_CODE_UNCORRECTABLE, HF_HEALTH_CODE_UNCORRECTABLE, GPU_RESET,
	      RESET_DEVICE, DEVICE, SIGNAL)},
	{RULE(ECC, HF_HEALTH_CODE_REMAP_PENDING, HF_HEALTH_CODE_REMAP_PENDING, GPU_RESET,
	      RESET_DEVICE, DEVICE, LEVEL)},
	{RULE(ECC, HF_HEALTH_CODE_REMAP_FAILED, HF_HEALTH_CODE_REMAP_RMA, REPLACE, REPLACE_NODE,
	      DEVICE, PERSON)},
	/* Slow. */
	{RULE(THROTTLE, 1, 1, DEGRADED, MOVE_POD, DEVICE, LEVEL)},
	{RULE(CLOCK, 1, 1, DEGRADED, MOVE_POD, DEVICE, LEVEL)},
	{RULE(PCIE, 1, 2, DEGRADED, MOVE_POD, DEVICE, LEVEL)},
	{RULE(REPLAY, 1, 1, DEGRADED, MOVE_POD, DEVICE, LEVEL)},
	{RULE(STRAGGLER, 1, 1, DEGRADED, MOVE_POD, DEVICE, LEVEL)},
	/* Counts. */
	{RULE(COUNT, 1, 1, REBOOT, RESTART_NODE, NODE, LEVEL)},
	{RULE(COUNT, 2, 2, SOFTWARE, RESTART_DRIVER, NODE, LEVEL)},
	/* A restart would not bring the missing GPU back, and the other GPUs work. */
	{RULE(COUNT, 3, 3, DEGRADED, REPLACE_NODE, NODE, LEVEL)},
	/* Links and ports.  A link or port that is degraded again and again becomes Failed by the count of its
	 * entries into Suspect. */
	{RULE(NVLINK, HF_HEALTH_CODE_LINK_INACTIVE, HF_HEALTH_CODE_LINK_INACTIVE, GPU_RESET,
	      RESET_DEVICE, FABRIC, LEVEL)},
	{RULE(NVLINK, HF_HEALTH_CODE_FABRIC_UNHEALTHY, HF_HEALTH_CODE_FABRIC_UNHEALTHY, FABRIC,
	      QUARANTINE, FABRIC, LEVEL)},
	{RULE(IB, HF_HEALTH_CODE_PORT_DOWN, HF_HEALTH_CODE_PORT_ERRORS, FABRIC, QUARANTINE, FABRIC,
	      LEVEL)},
	{RULE(IB, HF_HEALTH_CODE_PORT_SLOW, HF_HEALTH_CODE_PORT_SLOW, DEGRADED, MOVE_POD, FABRIC,
	      LEVEL)},
	{RULE(IB, HF_HEALTH_CODE_PORT_MISSING, HF_HEALTH_CODE_PORT_MISSING, FABRIC, QUARANTINE,
	      FABRIC, LEVEL)},
	{RULE(IB, HF_HEALTH_CODE_PORT_BLINK, HF_HEALTH_CODE_PORT_BLINK, INFO, RECORD, FABRIC, AGE)},
	/* Lines of mlx5_core (mlx5/core/health.c, en/reporter_tx.c of Linux).  The driver tries to recover from a
	 * fatal error, and reports the result. */
	{RULE(MLX5, HF_HEALTH_CODE_MLX5_LEAK, HF_HEALTH_CODE_MLX5_LEAK, REBOOT, RESTART_NODE,
	      FABRIC, BOOT)},
	{RULE(MLX5, HF_HEALTH_CODE_MLX5_HEALTH, HF_HEALTH_CODE_MLX5_HEALTH, REBOOT, RESTART_NODE,
	      FABRIC, SIGNAL)},
	{RULE(MLX5, HF_HEALTH_CODE_MLX5_HARDWARE, HF_HEALTH_CODE_MLX5_HARDWARE, REBOOT,
	      RESTART_NODE, FABRIC, BOOT)},
	{RULE(MLX5, HF_HEALTH_CODE_MLX5_TIMEOUT, HF_HEALTH_CODE_MLX5_CABLE, INFO, RECORD, FABRIC,
	      AGE)},
	{RULE(MLX5, HF_HEALTH_CODE_MLX5_FATAL, HF_HEALTH_CODE_MLX5_UNRECOVERED, REBOOT,
	      RESTART_NODE, FABRIC, SIGNAL)},
	{RULE(MLX5, HF_HEALTH_CODE_MLX5_COLD_RESET, HF_HEALTH_CODE_MLX5_COLD_RESET, REBOOT,
	      RESTART_NODE, FABRIC, BOOT)},
	/* The firmware gives its errors a severity; errors milder than "error" only inform. */
	{RULE(MLX5, HF_HEALTH_CODE_MLX5_SYNDROME, HF_HEALTH_CODE_MLX5_SYNDROME, INFO, RECORD,
	      FABRIC, AGE),
	 .severity = HF_HEALTH_NONFATAL},
	{RULE(MLX5, HF_HEALTH_CODE_MLX5_SYNDROME, HF_HEALTH_CODE_MLX5_LOCKUP, FABRIC, QUARANTINE,
	      FABRIC, AGE)},
	/* Lines of the kernel's PCIe services (pci/pcie/aer.c, dpc.c, err.c of Linux): reports about the device
	 * and about the ports above it, and failed recoveries.  A recovery that succeeds ends faults of fatal
	 * errors. */
	{RULE(AER, HF_HEALTH_CODE_AER, HF_HEALTH_CODE_AER, REBOOT, RESTART_NODE, DEVICE, SIGNAL),
	 .severity = HF_HEALTH_FATAL},
	{RULE(AER, HF_HEALTH_CODE_AER, HF_HEALTH_CODE_AER, DEGRADED, MOVE_POD, DEVICE, AGE),
	 .severity = HF_HEALTH_NONFATAL, .count = 3, .window = HF_HOUR, .below = HF_HEALTH_INFO},
	{RULE(AER, HF_HEALTH_CODE_AER, HF_HEALTH_CODE_AER, INFO, RECORD, DEVICE, AGE),
	 .severity = HF_HEALTH_CORRECTED},
	{RULE(AER, HF_HEALTH_CODE_AER_PORT, HF_HEALTH_CODE_AER_PORT, REBOOT, RESTART_NODE, NODE,
	      SIGNAL),
	 .severity = HF_HEALTH_FATAL},
	/* These lines follow a report about the same port. The report and the lines are one
	 * incident. */
	{RULE(AER, HF_HEALTH_CODE_CONTAINED, HF_HEALTH_CODE_UNRECOVERED, REBOOT, RESTART_NODE, NODE,
	      SIGNAL),
	 .severity = HF_HEALTH_FATAL, .follows = true},
	{RULE(AER, HF_HEALTH_CODE_AER_PORT, HF_HEALTH_CODE_UNRECOVERED, INFO, RECORD, NODE, AGE),
	 .severity = HF_HEALTH_NONFATAL},
	{RULE(AER, HF_HEALTH_CODE_UNRECOVERED, HF_HEALTH_CODE_UNRECOVERED, DEGRADED, MOVE_POD,
	      DEVICE, AGE)},
	/* Faults of the driver and of the device plugin, and faults of all devices at once. */
	{RULE(DRIVER, HF_HEALTH_CODE_MISMATCH, HF_HEALTH_CODE_FABRIC_DOWN, SOFTWARE, RESTART_DRIVER,
	      NODE, LEVEL)},
	{RULE(PLUGIN, 1, 2, SOFTWARE, RESTART_DRIVER, NODE, LEVEL)},
	{RULE(PEERS, 1, 2, SOFTWARE, RESTART_DRIVER, NODE, LEVEL)},
	/* AMD. */
	{RULE(AMD, HF_HEALTH_CODE_UNCORRECTABLE, HF_HEALTH_CODE_UNCORRECTABLE, GPU_RESET,
	      RESET_DEVICE, DEVICE, SIGNAL)},
	{RULE(AMD, HF_HEALTH_CODE_AMD_SLOW, HF_HEALTH_CODE_AMD_SLOW, DEGRADED, MOVE_POD, DEVICE,
	      LEVEL)},
};

const struct hf_health_rules hf_health_rules_builtin = {
	.items = rules,
	.len = HF_ARRAY_LEN(rules),
	.escalate_count = 5,
	.escalate_window = HF_DAY,
};
