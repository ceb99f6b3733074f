/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The names of classes, actions, scopes, detectors, sources and states, and the values of names. */
#include "health/types.h"

#include "base/str.h"

static const char *const class_names[HF_HEALTH_CLASSES] = {
	"none",   "info",  "unrated",   "app",    "software", "degraded",
	"fabric", "drain", "gpu-reset", "reboot", "support",  "replace",
};
static const char *const action_names[HF_HEALTH_ACTIONS] = {
	"record",       "restart-process", "move-pod",     "quarantine",
	"reset-device", "restart-driver",  "restart-node", "replace-node",
};
static const char *const scope_names[HF_HEALTH_SCOPES] = {"device", "node", "fabric"};
static const char *const clear_names[HF_HEALTH_CLEARS] = {"age", "signal", "boot", "level",
							  "person"};
static const char *const severity_names[HF_HEALTH_SEVERITIES] = {"", "non-fatal", "fatal",
								 "corrected"};
static const char *const detector_names[HF_HEALTH_DETECTORS] = {
	"xid",       "buslost", "sxid",  "recovery", "ecc",   "throttle", "clock",
	"pcie",      "replay",  "count", "nvlink",   "ib",    "driver",   "plugin",
	"straggler", "amd",     "aer",   "mlx5",     "peers",
};
static const char *const source_names[HF_HEALTH_SOURCES] = {"kmsg",    "nvml",    "sysfs",
							    "kubelet", "reports", "step"};
static const char *const state_names[HF_HEALTH_STATES] = {
	"Unknown",     "Healthy",     "Suspect",   "Degraded", "Unhealthy",
	"Quarantined", "Remediating", "Probation", "Failed",
};
static const char *const kind_names[HF_HEALTH_KINDS] = {"node", "gpu", "switch", "port"};

static const char *get_name(const char *const *names, size_t len, unsigned value)
{
	return value < len ? names[value] : "?";
}

static bool find_value(const char *const *names, size_t len, const char *name, unsigned *ret_value)
{
	for (unsigned i = 0; i < len; i++) {
		if (hf_streq(names[i], name)) {
			*ret_value = i;
			return true;
		}
	}
	return false;
}

/* Defines hf_health_<what>_name(), which reads the array of names for that enumeration. */
#define NAME(what)                                                                                 \
	const char *hf_health_##what##_name(enum hf_health_##what value)                           \
	{                                                                                          \
		return get_name(what##_names, HF_ARRAY_LEN(what##_names), (unsigned)value);        \
	}
#define VALUE(what)                                                                                \
	bool hf_health_##what##_of(const char *name, enum hf_health_##what *ret_value)             \
	{                                                                                          \
		unsigned value;                                                                    \
                                                                                                   \
		if (!find_value(what##_names, HF_ARRAY_LEN(what##_names), name, &value))           \
			return false;                                                              \
		*ret_value = (enum hf_health_##what)value;                                         \
		return true;                                                                       \
	}

NAME(class)
NAME(action)
NAME(scope)
NAME(clear)
NAME(severity)
NAME(detector)
NAME(source)
NAME(state)
NAME(kind)
VALUE(class)
VALUE(action)
VALUE(detector)
VALUE(state)
