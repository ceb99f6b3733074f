/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_PORT_WATCH_H
#define HF_PROBES_PORT_WATCH_H

#include "probes/sysfs.h"

HF_BEGIN_DECLS

/* The part of the sysfs probe for InfiniBand and RoCE ports: states each second, counters each
 * ten seconds. A port that was never up is not watched; a port that an agent of this boot saw up
 * is missed when it is gone. */
struct hf_port_watch;

/* It begins to look.  The options' roots and deadline count, devices_every where there is no port, and ports_every. */
struct hf_port_watch *hf_port_watch_create(struct hf_intake *intake,
					   const struct hf_sysfs_options *options);
struct hf_port_watch *hf_port_watch_destroy(struct hf_port_watch *watch); /* NULL is fine */

HF_END_DECLS

#endif
