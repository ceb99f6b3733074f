/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_PROCESS_METRICS_H
#define HF_APP_PROCESS_METRICS_H

#include "ctl/metrics.h"

/* process_* and holdfast_build_info: what every Prometheus client library tells of its own
 * process, read from /proc.  Call before each hf_metrics_render; what cannot be read is left
 * out. */
void hf_process_metrics_update(struct hf_metrics *metrics);

#endif
