/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/mend_internal.h"

/* The metrics of Remediations. */

void hf_fleet_mend_init_metrics(struct fleet_mend *mend)
{
	const struct hf_metric_options open = {.name = "holdfast_mend_open",
					       .help = "Unfinished Remediations, by phase.",
					       .type = HF_METRIC_GAUGE,
					       .labels = {"phase"}};
	const struct hf_metric_options done = {.name = "holdfast_mend_total",
					       .help = "Remediations that came to an end, by rung "
						       "and result.",
					       .type = HF_METRIC_COUNTER,
					       .labels = {"rung", "result"}};

	if (mend->fleet->env.metrics == NULL)
		return;
	mend->metrics.open = hf_metrics_family(mend->fleet->env.metrics, &open);
	mend->metrics.done = hf_metrics_family(mend->fleet->env.metrics, &done);
}

void hf_fleet_mend_update_metrics(struct fleet_mend *mend)
{
	int64_t counts[HF_MEND_PHASES] = {0};
	const struct hf_cache_entry *entry;

	hf_family_clear(mend->metrics.open);
	for (size_t it = 0; (entry = hf_cache_next(mend->cache, &it)) != NULL;)
		counts[((const struct mend_object *)entry->view)->phase]++;
	for (unsigned i = 0; i < HF_MEND_SUCCEEDED; i++)
		hf_family_set(mend->metrics.open, (double)counts[i],
			      hf_mend_phase_name((enum hf_mend_phase)i), NULL);
}
