/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_FS_H
#define HF_BASE_FS_H

#include "base/compiler.h"
#include "base/error.h"
#include "base/strbuf.h"

#include <sys/types.h>

HF_BEGIN_DECLS

/*
 * Files, with errors that name the path.  Lives in the archive base_os, not in base.
 *
 * HF_E_NOT_FOUND where the path (or its folder) is not there, HF_E_NO_SPACE for a
 * full disk or quota, HF_E_IO for every other answer of the kernel.  All of them
 * block, so none belongs on the loop's thread while requests wait.
 */

/* Close at the end of a scope; -1 is "none". */
void hf_fd_cleanup(int *fd);
#define HF_AUTO_FD HF_CLEANUP(hf_fd_cleanup) int

/* Append the whole file to sb; HF_E_TOO_LARGE past sb's maximum.  "-" is not special.
 * A failure leaves in sb what was there before. */
int hf_fs_read(const char *path, struct hf_strbuf *sb, struct hf_error *err) HF_MUST_CHECK;
/* The same, of a regular file alone: never waits for who writes into a pipe.  HF_E_INVALID: it is none. */
int hf_fs_read_regular(const char *path, struct hf_strbuf *sb, struct hf_error *err) HF_MUST_CHECK;
int hf_fs_read_fd(int fd, const char *name, struct hf_strbuf *sb, struct hf_error *err)
	HF_MUST_CHECK;

/* All of it, through interruptions and short writes; -1 and errno. */
int hf_fs_write_all(int fd, const void *bytes, size_t len);

/* Write to a temporary file beside path, fsync it, rename it over path, fsync the
 * folder: after a crash there is the old content or the new, nothing between.  mode
 * is exact, whatever the umask.  A symlink at path is replaced, not followed.  On
 * failure the old file stands, unless it was the last fsync that failed. */
int hf_fs_write_atomic(const char *path, const void *bytes, size_t len, mode_t mode,
		       struct hf_error *err) HF_MUST_CHECK;

/* As hf_fs_write_atomic, but a file of ours with this content and mode is left alone: a program
 * that starts again on a full disk needs no room for what it wrote before. */
int hf_fs_write_changed(const char *path, const void *bytes, size_t len, mode_t mode,
			struct hf_error *err) HF_MUST_CHECK;

/* mkdir -p; folders that are there keep their mode, new ones get mode less the umask. */
int hf_fs_mkdirs(const char *path, mode_t mode, struct hf_error *err) HF_MUST_CHECK;

/* rm -rf for trees that somebody else filled: never follows a symlink, does not leave
 * the mount of path (what is mounted inside stays and makes it fail), goes to any
 * depth with a bounded number of descriptors, and takes read-only folders of the
 * caller's own.  Goes on past what cannot be removed and tells the first of it.  A
 * path that does not exist is fine; one that ends in "/", "." or ".." is refused. */
int hf_fs_remove_tree(const char *path, struct hf_error *err) HF_MUST_CHECK;

/* len random bytes from the kernel. */
int hf_random_bytes(void *ret_bytes, size_t len, struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
