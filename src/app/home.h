/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_HOME_H
#define HF_APP_HOME_H

#include "base/error.h"
#include "base/time.h"

#include <stdint.h>
#include <sys/types.h>

/*
 * The folder of `holdfast up`: who works in it, and what its clients need.
 *
 *   up.pid       locked while `up` runs; holds its number
 *   token        what clients say to be let in
 *   ca.pem, server.pem, server-key.pem
 *                made at the first start, and anew before they end
 *   kubeconfig   written at every start
 *   store/, node/, up.log
 *
 * Everything is for the owner alone (0700, 0600) and written whole or not at all.
 */
struct hf_home {
	char *dir; /* absolute */
	int lock;  /* -1: not ours */
	char *ca_pem, *cert_pem, *key_pem;
	char *token;
	char *kubeconfig; /* its path */
};

/* --data-dir (made absolute), or the default folder where it is NULL. */
int hf_home_path(const char *data_dir, char **ret_dir, struct hf_error *err) HF_MUST_CHECK;

/*
 * Make the folder if need be and become the one who works in it; then have certificates
 * and token.  HF_E_CONFLICT: another `up` does (the text has its number).  HF_E_IO,
 * HF_E_NO_SPACE: the folder.
 */
int hf_home_open(const char *dir, hf_time now, struct hf_home *ret_home, struct hf_error *err)
	HF_MUST_CHECK;
/* Put our number in, from when on `down` may send signals. */
int hf_home_announce(struct hf_home *home, struct hf_error *err) HF_MUST_CHECK;
int hf_home_write_kubeconfig(const struct hf_home *home, const char *address, uint16_t port,
			     struct hf_error *err) HF_MUST_CHECK;
void hf_home_release(struct hf_home *home);

/* Is an `up` at work there?  ret_pid: its number, 0 where it has not told yet. */
int hf_home_running(const char *dir, bool *ret_running, pid_t *ret_pid, struct hf_error *err)
	HF_MUST_CHECK;

#endif
