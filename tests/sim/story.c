/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/sim.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * The story of a run: its last lines in a ring, each with the virtual time.  Lines are kept and
 * printed when a failed seed runs again.
 */

#define LINE_MAX_BYTES 600

void sim_say(struct sim *sim, const char *fmt, ...)
{
	hf_time now = hf_loop_mono(sim->loop);
	HF_AUTO_STRBUF line = HF_STRBUF_INIT(LINE_MAX_BYTES);
	char **slot = &sim->story.lines[sim->story.next % SIM_STORY_LINES];
	va_list ap;

	hf_strbuf_addf(&line, "%5lld.%03lld  ", (long long)(now / HF_SECOND),
		       (long long)(now % HF_SECOND / HF_MS));
	va_start(ap, fmt);
	hf_strbuf_vaddf(&line, fmt, ap);
	va_end(ap);
	if (sim->story.aloud)
		printf("%s\n", line.data);
	free(*slot);
	*slot = hf_xstrdup(line.data);
	sim->story.next++;
}

void sim_story_print(const struct sim *sim)
{
	const struct sim_story *story = &sim->story;
	size_t from = story->next > SIM_STORY_LINES ? story->next - SIM_STORY_LINES : 0;

	if (from > 0)
		printf("  … %zu earlier lines; --verbose shows them\n", from);
	for (size_t i = from; i < story->next; i++)
		printf("%s\n", story->lines[i % SIM_STORY_LINES]);
}

void sim_story_release(struct sim *sim)
{
	for (size_t i = 0; i < SIM_STORY_LINES; i++)
		free(sim->story.lines[i]);
}
