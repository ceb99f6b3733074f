/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_UP_FOLDER_H
#define HF_APP_UP_FOLDER_H

#include "base/error.h"
#include "base/time.h"

#include <stdint.h>
#include <sys/types.h>

/*
 * The folder of `holdfast up`: its lock, and the files that clients need.
 *
 *   up.pid       locked while `up` runs; contains its process ID
 *   token        bearer token of the clients
 *   ca.pem, server.pem, server-key.pem
 *                made at the first start and renewed before they expire
 *   kubeconfig   written at every start
 *   store/, node/, up.log
 *
 * Only the owner can read the folder (0700) and the files (0600).  Files are written whole or not at all.
 */
struct hf_up_folder {
	char *dir; /* absolute */
	int lock;  /* file descriptor that holds the lock; -1: the lock is not held */
	char *ca_pem, *cert_pem, *key_pem;
	char *token;
	char *kubeconfig; /* its path */
};

/* Return the absolute path of data_dir, the value of --data-dir; of the default folder if data_dir
 * is NULL. */
int hf_up_folder_path(const char *data_dir, char **ret_dir, struct hf_error *err) HF_MUST_CHECK;

/*
 * Make the folder if it is missing, take its lock, then load or make the certificates and the token.
 * HF_E_CONFLICT: another `up` holds the lock; the error text has its process ID.  HF_E_IO,
 * HF_E_NO_SPACE: the folder cannot be made or written.
 */
int hf_up_folder_open(const char *dir, hf_time now, struct hf_up_folder *ret_home,
		      struct hf_error *err) HF_MUST_CHECK;
/* Write the process ID to up.pid.  From then on `down` may send signals. */
int hf_up_folder_announce(struct hf_up_folder *home, struct hf_error *err) HF_MUST_CHECK;
int hf_up_folder_write_kubeconfig(const struct hf_up_folder *home, const char *address,
				  uint16_t port, struct hf_error *err) HF_MUST_CHECK;
void hf_up_folder_release(struct hf_up_folder *home);

/* Check whether an `up` process holds the lock of the folder. ret_pid: its process ID; 0: the
 * process is still starting. */
int hf_up_folder_is_locked(const char *dir, bool *ret_running, pid_t *ret_pid, struct hf_error *err)
	HF_MUST_CHECK;

#endif
