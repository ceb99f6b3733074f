/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "mend/mend_internal.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/watchdog.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/*
 * Reboots the node: by logind over D-Bus, then by systemd's signal, then by sysrq, each with a time to work.  An
 * orderly shutdown ends this process; so a method has failed if this process still lives at the end of its time.
 *
 * The host's own busctl calls logind.  libsystemd would be a new library in every image, and an own D-Bus client
 * would be one more parser.  busctl is part of systemd, so every host with logind has it.
 */

#define BUSCTL "busctl"
#define LOGIND "org.freedesktop.login1"
#define LOGIND_PATH "/org/freedesktop/login1"
#define MANAGER "org.freedesktop.login1.Manager"
#define CALL_TIMEOUT (20 * HF_SECOND)
/* How long logind may take to announce a shutdown: it does so at once, and inhibitors delay the shutdown for a few
 * seconds. */
#define ANNOUNCE_WAIT (10 * HF_SECOND)
#define WATCHDOG_FEED_EVERY (5 * HF_SECOND)
/* systemd: SIGRTMIN+5 starts reboot.target. */
#define REBOOT_SIGNAL (SIGRTMIN + 5)

struct reboot {
	const struct hf_mend_options *options;
	int watchdog_fd;
	struct hf_timer *feed_timer;
	struct hf_strbuf story; /* what each method did */
};

static bool is_chosen(const struct hf_mend_options *options, const char *method)
{
	return options->only == NULL || hf_streq(options->only, method);
}

static bool has_logind(const struct hf_mend_options *options)
{
	return is_chosen(options, "logind") && options->root != NULL &&
	       hf_mend_tool_exists(options->root, BUSCTL);
}

/* Whether PID 1 is systemd: for another init SIGRTMIN+5 does not mean a reboot. */
static bool has_signal(const struct hf_mend_options *options)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(256);
	HF_AUTOFREE char *path = NULL;

	if (!is_chosen(options, "signal") || options->init_pid <= 0)
		return false;
	path = hf_xasprintf("%s/%lld/comm", options->proc, (long long)options->init_pid);
	return hf_fs_read_regular(path, &text, NULL) == 0 && hf_streq(text.data, "systemd\n");
}

static bool has_sysrq(const struct hf_mend_options *options)
{
	return is_chosen(options, "sysrq") && options->sysrq != NULL &&
	       access(options->sysrq, W_OK) == 0;
}

int hf_mend_reboot_prepare(const struct hf_mend_options *options, struct hf_error *err)
{
	if (has_logind(options) || has_signal(options) || has_sysrq(options))
		return 0;
	return hf_error_set(err, HF_E_UNSUPPORTED,
			    "no method to reboot is available: give --root, --init-pid or --sysrq "
			    "of a host with busctl, systemd or sysrq-trigger");
}

/* ---- the hardware watchdog -------------------------------------------------------------------- */

static void on_feed(void *arg)
{
	struct reboot *reboot = arg;

	(void)!write(reboot->watchdog_fd, "", 1);
	hf_timer_arm(reboot->feed_timer, WATCHDOG_FEED_EVERY);
}

/* Starts the watchdog.  If the shutdown ends this process and then hangs, nothing feeds the watchdog, and it
 * resets the machine. */
static void arm_watchdog(struct reboot *reboot)
{
	const struct hf_mend_options *options = reboot->options;
	int seconds = (int)(options->watchdog_timeout / HF_SECOND);

	if (options->watchdog == NULL)
		return;
	reboot->watchdog_fd = open(options->watchdog, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (reboot->watchdog_fd < 0) {
		hf_strbuf_addf(&reboot->story, "watchdog: %s; ", strerror(errno));
		return;
	}
	(void)ioctl(reboot->watchdog_fd, WDIOC_SETTIMEOUT, &seconds);
	reboot->feed_timer = hf_timer_create(options->loop, on_feed, reboot);
	on_feed(reboot);
}

/* Stops the watchdog after an act that failed, by the letter V before the file is closed.  The operator puts pods
 * back on the node, so the machine must not reset itself later. */
static void disarm_watchdog(struct reboot *reboot)
{
	hf_timer_destroy(reboot->feed_timer);
	if (reboot->watchdog_fd >= 0)
		(void)!write(reboot->watchdog_fd, "V", 1);
	hf_fd_cleanup(&reboot->watchdog_fd);
}

/* Lets SIGTERM end this process while a shutdown may run: systemd waits 90 s for a process that ignores SIGTERM. */
static void obey_shutdown(bool obeys)
{
	(void)signal(SIGTERM, obeys ? SIG_DFL : SIG_IGN);
}

/* ---- methods ---------------------------------------------------------------------------------- */

static bool call_logind(struct reboot *reboot, const struct hf_mend_tool *tool,
			struct hf_mend_tool_result *result)
{
	struct hf_error err;

	if (hf_mend_tool_run(reboot->options, tool, result, &err) != 0)
		snprintf(result->output, sizeof(result->output), "%.200s", err.text);
	return result->exit_code == 0;
}

/* Asks logind whether a shutdown has begun. */
static bool is_shutting_down(struct reboot *reboot)
{
	const struct hf_mend_tool tool = {
		.root = reboot->options->root,
		.argv = {BUSCTL, "get-property", LOGIND, LOGIND_PATH, MANAGER,
			 "PreparingForShutdown"},
		.timeout = hf_mend_shorter_of(CALL_TIMEOUT, reboot->options->tool_timeout),
	};
	struct hf_mend_tool_result result;

	return call_logind(reboot, &tool, &result) && hf_streq(result.output, "b true");
}

static void reboot_by_logind(struct reboot *reboot)
{
	const struct hf_mend_options *options = reboot->options;
	hf_time announce = hf_mend_shorter_of(ANNOUNCE_WAIT, options->orderly_wait);
	const struct hf_mend_tool tool = {
		.root = options->root,
		.argv = {BUSCTL, "call", LOGIND, LOGIND_PATH, MANAGER, "Reboot", "b", "false"},
		.timeout = hf_mend_shorter_of(CALL_TIMEOUT, options->tool_timeout),
	};
	struct hf_mend_tool_result result;

	hf_log(HF_LOG_INFO, "mend", "Asking logind to reboot", NULL);
	if (!call_logind(reboot, &tool, &result)) {
		hf_strbuf_addf(&reboot->story, "logind: exit code %d, %.120s; ", result.exit_code,
			       result.output);
		return;
	}
	obey_shutdown(true);
	hf_mend_wait(options->loop, announce);
	if (!is_shutting_down(reboot)) {
		obey_shutdown(false);
		hf_strbuf_addstr(&reboot->story, "logind: accepted, but no shutdown began; ");
		return;
	}
	hf_mend_wait(options->loop, options->orderly_wait - announce);
	obey_shutdown(false);
	hf_strbuf_addstr(&reboot->story, "logind: the shutdown did not end; ");
}

static void reboot_by_signal(struct reboot *reboot)
{
	const struct hf_mend_options *options = reboot->options;

	hf_log(HF_LOG_INFO, "mend", "Asking systemd to reboot by SIGRTMIN+5", NULL);
	if (kill((pid_t)options->init_pid, REBOOT_SIGNAL) != 0) {
		hf_strbuf_addf(&reboot->story, "signal: %s; ", strerror(errno));
		return;
	}
	obey_shutdown(true);
	hf_mend_wait(options->loop, options->signal_wait);
	obey_shutdown(false);
	hf_strbuf_addstr(&reboot->story, "signal: no reboot in time; ");
}

/* Sync, remount read-only, reset. */
static void reboot_by_sysrq(struct reboot *reboot)
{
	const struct hf_mend_options *options = reboot->options;

	for (const char *letter = "sub"; *letter != '\0'; letter++) {
		HF_AUTO_FD fd = open(options->sysrq, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);

		hf_log(HF_LOG_WARN, "mend", "Writing to sysrq-trigger", NULL);
		if (fd < 0 || write(fd, letter, 1) != 1) {
			hf_strbuf_addf(&reboot->story, "sysrq %c: %s; ", *letter, strerror(errno));
			continue;
		}
		hf_mend_wait(options->loop, options->sync_wait);
	}
	hf_strbuf_addstr(&reboot->story, "sysrq: the machine still runs; ");
}

void hf_mend_reboot_act(const struct hf_mend_options *options, struct hf_mend_outcome *ret_outcome)
{
	struct reboot reboot = {.options = options, .watchdog_fd = -1};

	*ret_outcome = (struct hf_mend_outcome){.exit_code = 1};
	hf_strbuf_init(&reboot.story, HF_MEND_TEXT_MAX - 1);
	arm_watchdog(&reboot);
	if (has_logind(options)) {
		ret_outcome->tool = "logind";
		reboot_by_logind(&reboot);
	}
	if (has_signal(options)) {
		ret_outcome->tool = "signal";
		reboot_by_signal(&reboot);
	}
	if (has_sysrq(options)) {
		ret_outcome->tool = "sysrq";
		reboot_by_sysrq(&reboot);
	}
	snprintf(ret_outcome->message, sizeof(ret_outcome->message),
		 "no method rebooted the node: %s", reboot.story.data);
	hf_strbuf_release(&reboot.story);
	disarm_watchdog(&reboot);
}
