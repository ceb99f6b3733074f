/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_PLOT_H
#define HF_APP_PLOT_H

#include "app/history.h"

/*
 * Draws the steps of a run as SVG: for each rank the loss and the time of a step, over the time of
 * the run, with a line at each restart. The picture follows the light or dark scheme of its
 * viewer; a viewer without schemes shows the light scheme. If there are more than
 * HF_PLOT_RANKS_MAX ranks, only those with the slowest steps are drawn.
 */
#define HF_PLOT_RANKS_MAX 32
#define HF_PLOT_BYTES_MAX ((size_t)8 << 20)

struct hf_plot {
	const char *title; /* title of the picture, which names the run; any text */
	const char *note;  /* a second line below the title */
	hf_time started;   /* the time at the left end of the time axis */
	const struct hf_history *history;
};

/* HF_E_NOT_FOUND: no rank has reported two steps. */
int hf_plot_write(const struct hf_plot *plot, struct hf_strbuf *sb, struct hf_error *err)
	HF_MUST_CHECK;

#endif
