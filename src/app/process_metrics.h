/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_PROCESS_METRICS_H
#define HF_APP_PROCESS_METRICS_H

#include "ctl/metrics.h"

/* Update process_* (as in every Prometheus client library, read from /proc) and holdfast_build_info.
 * Call it before each hf_metrics_render.  Values that cannot be read are left out. */
void hf_process_metrics_update(struct hf_metrics *metrics);

#endif
