/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_MEND_MEND_H
#define HF_MEND_MEND_H

#include "base/time.h"
#include "loop/loop.h"
#include "store/store.h"

HF_BEGIN_DECLS

/*
 * The actor performs one approved Remediation on its node, at most once.  It runs in a short-lived privileged pod.
 * README.md describes the order and the promises.
 *
 * Nothing that changes the machine has a default, neither the folder of the tools nor a method to reboot.  A method
 * without its path is not available.  So a test, or a person, that forgets a flag cannot change the real machine.
 */

#define HF_MEND_DIAGNOSTIC_MAX 16 /* words of the diagnostic command */
#define HF_MEND_TEXT_MAX 513      /* message for status.act.message, with the NUL */

struct hf_mend_options {
	struct hf_loop *loop; /* a real one */
	struct hf_store *store;
	const char *name; /* name of the Remediation to perform */
	const char *node; /* name of the node of this process */
	/* spec.nonce that the Remediation must have; another nonce means another act */
	const char *nonce;
	/* This program, which enters `root` and becomes the tool (hf_mend_enter_root). */
	const char *self;

	const char *root; /* root folder of the host; NULL: no tool is available */
	const char *proc; /* where the host's procfs is mounted; never NULL */
	const char *sys;  /* where sysfs is mounted; NULL: AMD devices cannot be found */
	/* path of the host's sysrq-trigger; NULL: this method is not available */
	const char *sysrq;
	/* path of the watchdog device that is armed before a reboot; NULL: none is armed */
	const char *watchdog;
	/* pid of the host's systemd, which gets the signal to reboot; 0: this method is not
	 * available */
	int64_t init_pid;
	/* logind, signal or sysrq: only this method; NULL: all methods in this order */
	const char *only;

	/* program of the host that runs after a reset, and its arguments, ended by NULL; [0] NULL: none */
	const char *diagnostic[HF_MEND_DIAGNOSTIC_MAX + 1];
	hf_time diagnostic_timeout;

	hf_time holders_wait; /* how long to wait for processes to close the devices */
	hf_time tool_timeout;
	hf_time orderly_wait; /* how long to wait for a shutdown that logind has begun */
	hf_time signal_wait;  /* how long to wait for a shutdown after the signal to systemd */
	/* how long to wait between two letters that are written to sysrq-trigger */
	hf_time sync_wait;
	hf_time watchdog_timeout;
};

/* Performs the act.  Returns an exit code of enum hf_mend_exit.  ret_message is one line for people. */
int hf_mend_run(const struct hf_mend_options *options, char ret_message[HF_MEND_TEXT_MAX]);

/* Makes `root` the root folder of this process, and becomes the program argv[0], which is searched in the usual
 * folders.  Returns only if this fails: 127, as shells do. */
int hf_mend_enter_root(const char *root, const char *const *argv);

HF_END_DECLS

#endif
