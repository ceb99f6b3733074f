/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/observed.h"

#include "base/str.h"

/*
 * The device classes that an agent of this version or the kubelet publishes.  health/types.c has
 * the same list, and core may not include module health; a test of the operator compares the two
 * lists.
 */

static const char *const classes[] = {"info",     "unrated", "app",     "software",
				      "degraded", "fabric",  "drain",   "gpu-reset",
				      "reboot",   "support", "replace", HF_DEVICE_UNHEALTHY};

bool hf_device_class_is_known(const char *cls)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(classes); i++)
		if (hf_streq(cls, classes[i]))
			return true;
	return false;
}
