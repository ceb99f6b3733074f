/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Asks each source once, waits for its answer, and hands it to probe_checks.c and to the functions
 * that write the text.
 */
#include "probes/probe_once.h"

#include "base/mem.h"
#include "base/str.h"
#include "probes/nvml.h"
#include "probes/podresources.h"
#include "probes/sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct look {
	struct hf_loop *loop;
	struct hf_probe_checks *checks;
	struct hf_strbuf *sb;
	bool allocatable; /* the open question to the kubelet is the one for allocatable devices */
	struct hf_sysfs_gpus *gpus; /* the devices that sysfs shows; NULL: sysfs is not read */
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
	hf_probe_check_nvml(look->checks, record, record == NULL ? err->text : "", look->gpus);
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
	/* If the start of the child fails, the callback reports that too. */
	(void)hf_nvml_watch_ask(watch);
	wait_for(look);
	hf_nvml_watch_destroy(watch);
}

static void look_sysfs(struct look *look, const struct hf_probe_once_options *options)
{
	struct hf_sysfs_ports *ports = hf_xcalloc(1, sizeof(*ports));
	const char *proc_root = hf_str_or(options->proc_root, "/proc");
	struct hf_sysfs_driver driver;

	hf_strbuf_addstr(look->sb, "# sysfs\n");
	hf_sysfs_ports(options->sys_root, true, ports);
	hf_probe_check_ports(look->checks, ports);
	hf_sysfs_driver(options->sys_root, proc_root, &driver);
	hf_sysfs_render(look->gpus, ports, &driver, look->sb);
	free(ports);
}

static void on_answer(void *arg, int code, const struct hf_podresources *found,
		      const struct hf_error *err)
{
	struct look *look = arg;

	hf_strbuf_addf(look->sb, "# PodResources: %s\n",
		       look->allocatable ? "allocatable" : "held");
	if (code == 0)
		hf_podresources_render(found, look->sb);
	else
		hf_strbuf_addf(look->sb, "%s\n", err->text);
	if (look->allocatable)
		hf_probe_check_allocatable(look->checks, code == 0 ? found : NULL,
					   code == 0 ? "" : err->text, look->gpus);
	else
		hf_probe_check_holders(look->checks, code == 0 ? found : NULL,
				       code == 0 ? "" : err->text);
	finish_look(look);
}

typedef int (*ask_fn)(struct hf_podresources_client *client, hf_podresources_fn fn, void *arg,
		      struct hf_error *err);

static void look_kubelet(struct look *look, const struct hf_probe_once_options *options)
{
	static const ask_fn questions[] = {hf_podresources_list, hf_podresources_allocatable};
	struct hf_podresources_client *client;
	struct hf_error err = {0};

	if (hf_podresources_client_create(look->loop, options->podresources, options->timeout,
					  &client, &err) < 0) {
		hf_strbuf_addf(look->sb, "# PodResources\n%s\n", err.text);
		hf_probe_check_holders(look->checks, NULL, err.text);
		return;
	}
	for (size_t i = 0; i < HF_ARRAY_LEN(questions); i++) {
		look->allocatable = i == 1;
		if (questions[i](client, on_answer, look, &err) < 0)
			on_answer(look, err.code, NULL, &err);
		wait_for(look);
	}
	hf_podresources_client_destroy(client);
}

/* Tries to open the kernel's log. Returns the reason why it cannot be read; NULL: it can. */
static const char *try_log(const char *path)
{
	struct stat st;
	int fd;

	if (stat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		return access(path, R_OK | W_OK) == 0 ? NULL : strerror(errno);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return strerror(errno);
	close(fd);
	return NULL;
}

static void check_log(struct look *look, const char *path)
{
	if (hf_str_is_empty(path))
		hf_probe_check_off(look->checks, "kernel-log", "--kmsg");
	else
		hf_probe_check_log(look->checks, path, try_log(path));
}

static void look_pci(struct look *look, const struct hf_probe_once_options *options)
{
	if (hf_str_is_empty(options->sys_root)) {
		hf_probe_check_off(look->checks, "pci", "--sysfs");
		return;
	}
	look->gpus = hf_xcalloc(1, sizeof(*look->gpus));
	hf_sysfs_gpus(options->sys_root, hf_str_or(options->proc_root, "/proc"), look->gpus);
	hf_probe_check_pci(look->checks, look->gpus);
}

void hf_probe_once(struct hf_loop *loop, const struct hf_probe_once_options *options,
		   struct hf_probe_checks *ret_checks, struct hf_strbuf *sb)
{
	struct look look = {.loop = loop, .checks = ret_checks, .sb = sb};

	ret_checks->len = 0;
	check_log(&look, options->kmsg);
	look_pci(&look, options);
	if (!hf_str_is_empty(options->library))
		look_nvml(&look, options);
	else
		hf_probe_check_off(ret_checks, "nvml", "--nvml");
	if (look.gpus != NULL)
		look_sysfs(&look, options);
	if (!hf_str_is_empty(options->podresources))
		look_kubelet(&look, options);
	else
		hf_probe_check_off(ret_checks, "holders", "--kubelet-socket");
	free(look.gpus);
}
