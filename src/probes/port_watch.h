/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_PORT_WATCH_H
#define HF_PROBES_PORT_WATCH_H

#include "probes/sysfs.h"

HF_BEGIN_DECLS

/* The part of the sysfs probe that watches InfiniBand and RoCE ports: states each second, counters
 * each ten seconds. A port that was never up is not watched. A port that an agent saw up in this
 * boot is reported when it is gone. */
struct hf_port_watch;

/* Begins to look. It uses these options: the roots, deadline, ports_every, and devices_every while
 * the node has no port. */
struct hf_port_watch *hf_port_watch_create(struct hf_intake *intake,
					   const struct hf_sysfs_options *options);
struct hf_port_watch *hf_port_watch_destroy(struct hf_port_watch *watch); /* NULL is fine */

HF_END_DECLS

#endif
