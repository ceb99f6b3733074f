/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_FS_H
#define HF_BASE_FS_H

#include "base/compiler.h"
#include "base/error.h"
#include "base/strbuf.h"

#include <sys/types.h>

HF_BEGIN_DECLS

/* Files, with errors that name the path.  Lives in the archive base_os, not in base. */

/* Close at the end of a scope; -1 is "none". */
void hf_fd_cleanup(int *fd);
#define HF_AUTO_FD HF_CLEANUP(hf_fd_cleanup) int

/* Append the whole file to sb; HF_E_TOO_LARGE past sb's maximum.  "-" is not special. */
int hf_fs_read(const char *path, struct hf_strbuf *sb, struct hf_error *err) HF_MUST_CHECK;
int hf_fs_read_fd(int fd, const char *name, struct hf_strbuf *sb, struct hf_error *err)
	HF_MUST_CHECK;

/* Write to a temporary file beside path, fsync it, rename it over path, fsync the
 * folder: after a crash there is the old content or the new, nothing between. */
int hf_fs_write_atomic(const char *path, const void *bytes, size_t len, mode_t mode,
		       struct hf_error *err) HF_MUST_CHECK;

/* mkdir -p; folders that are there keep their mode. */
int hf_fs_mkdirs(const char *path, mode_t mode, struct hf_error *err) HF_MUST_CHECK;

/* rm -rf that never follows a symlink and does not leave the file system of path.
 * A path that does not exist is fine. */
int hf_fs_remove_tree(const char *path, struct hf_error *err) HF_MUST_CHECK;

/* len random bytes from the kernel. */
int hf_random_bytes(void *ret_bytes, size_t len, struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
