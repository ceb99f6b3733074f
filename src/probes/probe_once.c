/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "probes/probe_once.h"

#include "probes/nvml.h"
#include "probes/podresources.h"
#include "probes/sysfs.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>

struct look {
	struct hf_loop *loop;
	struct hf_strbuf *sb;
	const char *title;
	bool done;
};

static void finish_look(struct look *look)
{
	look->done = true;
	hf_loop_stop(look->loop);
}

static void wait_for(struct look *look)
{
	while (!look->done)
		hf_loop_run(look->loop);
	look->done = false;
}

static void on_nvml(void *arg, enum hf_nvml_outcome outcome, const struct hf_nvml_record *record,
		    const struct hf_error *err)
{
	struct look *look = arg;

	if (outcome == HF_NVML_EVENTS)
		return;
	if (record)
		hf_nvml_record_render(record, look->sb);
	else
		hf_strbuf_addf(look->sb, "%s\n", err->text);
	finish_look(look);
}

static void look_nvml(struct look *look, const struct hf_probe_once_options *options)
{
	struct hf_nvml_watch *watch;

	hf_strbuf_addstr(look->sb, "# NVML\n");
	watch = hf_nvml_watch_create(look->loop, &(struct hf_nvml_watch_options){
							 .child_argv = options->child_argv,
							 .deadline = options->timeout,
							 .first_deadline = options->timeout,
							 .told = on_nvml,
							 .arg = look,
						 });
	/* A failed start is reported by the callback, too. */
	(void)hf_nvml_watch_ask(watch);
	wait_for(look);
	hf_nvml_watch_destroy(watch);
}

static void look_sysfs(struct look *look, const struct hf_probe_once_options *options)
{
	struct hf_sysfs_gpus *gpus = hf_xcalloc(1, sizeof(*gpus));
	struct hf_sysfs_ports *ports = hf_xcalloc(1, sizeof(*ports));
	const char *proc_root = hf_str_or(options->proc_root, "/proc");
	struct hf_sysfs_driver driver;

	hf_strbuf_addstr(look->sb, "# sysfs\n");
	hf_sysfs_gpus(options->sys_root, proc_root, gpus);
	hf_sysfs_ports(options->sys_root, true, ports);
	hf_sysfs_driver(options->sys_root, proc_root, &driver);
	hf_sysfs_render(gpus, ports, &driver, look->sb);
	free(gpus);
	free(ports);
}

static void on_answer(void *arg, int code, const struct hf_podresources *found,
		      const struct hf_error *err)
{
	struct look *look = arg;

	hf_strbuf_addf(look->sb, "# PodResources: %s\n", look->title);
	if (code == 0)
		hf_podresources_render(found, look->sb);
	else
		hf_strbuf_addf(look->sb, "%s\n", err->text);
	finish_look(look);
}

typedef int (*ask_fn)(struct hf_podresources_client *client, hf_podresources_fn fn, void *arg,
		      struct hf_error *err);

static void look_kubelet(struct look *look, const struct hf_probe_once_options *options)
{
	static const struct {
		const char *title;
		ask_fn ask;
	} questions[] = {{"held", hf_podresources_list},
			 {"allocatable", hf_podresources_allocatable}};
	struct hf_podresources_client *client;
	struct hf_error err = {0};

	if (hf_podresources_client_create(look->loop, options->podresources, options->timeout,
					  &client, &err) < 0) {
		hf_strbuf_addf(look->sb, "# PodResources\n%s\n", err.text);
		return;
	}
	for (size_t i = 0; i < HF_ARRAY_LEN(questions); i++) {
		look->title = questions[i].title;
		if (questions[i].ask(client, on_answer, look, &err) < 0)
			on_answer(look, err.code, NULL, &err);
		wait_for(look);
	}
	hf_podresources_client_destroy(client);
}

void hf_probe_once(struct hf_loop *loop, const struct hf_probe_once_options *options,
		   struct hf_strbuf *sb)
{
	struct look look = {.loop = loop, .sb = sb};

	if (!hf_str_is_empty(options->library))
		look_nvml(&look, options);
	if (!hf_str_is_empty(options->sys_root))
		look_sysfs(&look, options);
	if (!hf_str_is_empty(options->podresources))
		look_kubelet(&look, options);
}
