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
 * Files, with errors that name the path. These functions are in the archive base_os, not in base.
 *
 * Every function here returns HF_E_NOT_FOUND if the path or its folder does not exist,
 * HF_E_NO_SPACE if the disk or the quota is full, and HF_E_IO for every other failure. All of them
 * block, so do not call them on the loop's thread while requests wait.
 */

/* HF_AUTO_FD declares a descriptor that is closed at the end of its scope; -1 means "not open". */
void hf_fd_cleanup(int *fd);
#define HF_AUTO_FD HF_CLEANUP(hf_fd_cleanup) int

/* Appends the whole file to sb; HF_E_TOO_LARGE if sb's maximum is exceeded. "-" has no special
 * meaning. On failure sb keeps its old content. */
int hf_fs_read(const char *path, struct hf_strbuf *sb, struct hf_error *err) HF_MUST_CHECK;
/* As hf_fs_read, but for regular files only, so that it never waits for the writer of a pipe.
 * HF_E_INVALID for any other type of file. */
int hf_fs_read_regular(const char *path, struct hf_strbuf *sb, struct hf_error *err) HF_MUST_CHECK;
/* As hf_fs_read, from an open descriptor; name appears in error texts. */
int hf_fs_read_fd(int fd, const char *name, struct hf_strbuf *sb, struct hf_error *err)
	HF_MUST_CHECK;

/* Writes all bytes; continues after interruptions and short writes. Returns 0, or -1 and errno. */
int hf_fs_write_all(int fd, const void *bytes, size_t len);

/* Replaces the file at path: writes a temporary file beside it, syncs it, renames it over path,
 * and syncs the folder. After a crash, path has the old content or the new content, never a
 * mixture. The umask does not change mode. A symlink at path is replaced, not followed. On
 * failure the old file remains, unless only the last sync failed. */
int hf_fs_write_atomic(const char *path, const void *bytes, size_t len, mode_t mode,
		       struct hf_error *err) HF_MUST_CHECK;

/* As hf_fs_write_atomic, but does nothing if path is a file of this user with the same content
 * and mode. So a program that restarts on a full disk does not fail on files it wrote before. */
int hf_fs_write_changed(const char *path, const void *bytes, size_t len, mode_t mode,
			struct hf_error *err) HF_MUST_CHECK;

/* As mkdir -p. Existing folders keep their mode; new folders get mode without the bits of the
 * umask. */
int hf_fs_mkdirs(const char *path, mode_t mode, struct hf_error *err) HF_MUST_CHECK;

/*
 * As rm -rf, safe for a tree that an untrusted program filled:
 *
 * - It never follows a symlink.
 * - It stays on the mount of path. A mount inside the tree stays and makes the call fail.
 * - It handles any depth with a bounded number of descriptors.
 * - It removes read-only folders of the calling user.
 * - It continues after an entry that cannot be removed, and reports the first such entry.
 *
 * A path that does not exist is a success. A path that ends in "/", "." or ".." is refused.
 */
int hf_fs_remove_tree(const char *path, struct hf_error *err) HF_MUST_CHECK;

/* Fills ret_bytes with len random bytes from the kernel. */
int hf_random_bytes(void *ret_bytes, size_t len, struct hf_error *err) HF_MUST_CHECK;
/* Fills ret_text with `digits` random hexadecimal digits and a NUL; each digit holds four random bits. */
int hf_random_hex(char *ret_text, size_t digits, struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
