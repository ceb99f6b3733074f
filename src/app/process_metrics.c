/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Computes the process_* metrics from /proc. */
#include "app/process_metrics.h"

#include "base/fs.h"
#include "base/procstat.h"
#include "base/str.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PROC_BYTES_MAX 65536

static void set_metric(struct hf_metrics *metrics, enum hf_metric_type type, const char *name,
		       const char *help, double value)
{
	const struct hf_metric_options options = {.name = name, .help = help, .type = type};
	struct hf_family *family = hf_metrics_family(metrics, &options);

	/* A counter may not fall. Rounding may make a value of the kernel lower than the last
	 * value: skip such a value. */
	if (type == HF_METRIC_GAUGE || value >= hf_family_value(family, NULL))
		hf_family_set(family, value, NULL);
}

static double read_field(const char *stat, int number)
{
	const char *at = hf_proc_stat_field(stat, number);

	return at == NULL ? 0 : strtod(at, NULL);
}

static double boot_time(void)
{
	struct timespec wall, boot;

	(void)clock_gettime(CLOCK_REALTIME, &wall);
	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	return (double)(wall.tv_sec - boot.tv_sec) + (double)(wall.tv_nsec - boot.tv_nsec) / 1e9;
}

static void update_stat(struct hf_metrics *metrics)
{
	HF_AUTO_STRBUF stat = HF_STRBUF_INIT(PROC_BYTES_MAX);
	double ticks = (double)sysconf(_SC_CLK_TCK), page = (double)sysconf(_SC_PAGESIZE);
	double start;

	if (hf_fs_read("/proc/self/stat", &stat, NULL) != 0)
		return;
	set_metric(metrics, HF_METRIC_COUNTER, "process_cpu_seconds_total",
		   "User and system CPU time spent.",
		   (read_field(stat.data, HF_PROC_USER_TICKS) +
		    read_field(stat.data, HF_PROC_SYSTEM_TICKS)) /
			   ticks);
	set_metric(metrics, HF_METRIC_GAUGE, "process_virtual_memory_bytes", "Virtual memory size.",
		   read_field(stat.data, HF_PROC_VIRTUAL_BYTES));
	set_metric(metrics, HF_METRIC_GAUGE, "process_resident_memory_bytes",
		   "Resident memory size.", read_field(stat.data, HF_PROC_RESIDENT_PAGES) * page);
	start = boot_time() + read_field(stat.data, HF_PROC_START_TICKS) / ticks;
	/* Round to whole seconds: the value is a sum of two clocks and varies by fractions of a
	 * second, and queries count its changes as restarts. */
	set_metric(metrics, HF_METRIC_GAUGE, "process_start_time_seconds",
		   "Start of the process, in seconds since the Unix epoch.",
		   (double)(long long)(start + 0.5));
}

static void update_fds(struct hf_metrics *metrics)
{
	DIR *dir = opendir("/proc/self/fd");
	struct rlimit limit;
	int n = -1; /* starts at -1: the descriptor that reads the folder is itself in the list */

	if (dir != NULL) {
		for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
			n += entry->d_name[0] != '.';
		(void)closedir(dir);
		set_metric(metrics, HF_METRIC_GAUGE, "process_open_fds", "Open file descriptors.",
			   n);
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		set_metric(metrics, HF_METRIC_GAUGE, "process_max_fds",
			   "Limit of the open file descriptors.", (double)limit.rlim_cur);
}

void hf_process_metrics_update(struct hf_metrics *metrics)
{
	const struct hf_metric_options build = {
		.name = "holdfast_build_info",
		.help = "Version of Holdfast, in a label; the value is always 1.",
		.type = HF_METRIC_GAUGE,
		.labels = {"version"},
	};

	hf_family_set(hf_metrics_family(metrics, &build), 1, HF_VERSION, NULL);
	update_stat(metrics);
	update_fds(metrics);
}
