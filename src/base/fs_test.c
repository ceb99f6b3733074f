/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/fs.h"

#include "harness/test.h"

#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- system calls that fail on demand */

enum call {
	CALL_READ,
	CALL_WRITE,
	CALL_FSYNC,
	CALL_FCHMOD,
	CALL_RENAME,
	CALL_GETRANDOM,
	CALL_STATX,
	CALL_FDOPENDIR,
	CALL_UNLINKAT,
	CALL_RENAMEAT2,
	CALL_RMDIR,
	CALLS
};

/* The next `skip` calls succeed, the call after them fails with errnum, and later calls succeed. */
static struct fault {
	int errnum;
	int skip;
} faults[CALLS];
/* Limits the bytes that one read or write handles; 0: no limit. */
static size_t bytes_at_once;

static bool take_fault(enum call call)
{
	if (!faults[call].errnum || faults[call].skip-- > 0)
		return false;
	errno = faults[call].errnum;
	faults[call].errnum = 0;
	return true;
}

static size_t limit_bytes(size_t len)
{
	return bytes_at_once && len > bytes_at_once ? bytes_at_once : len;
}

ssize_t __real_read(int fd, void *buf, size_t len);
ssize_t __wrap_read(int fd, void *buf, size_t len);
ssize_t __real_write(int fd, const void *buf, size_t len);
ssize_t __wrap_write(int fd, const void *buf, size_t len);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fchmod(int fd, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
ssize_t __real_getrandom(void *buf, size_t len, unsigned int flags);
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned int flags);
int __real_statx(int fd, const char *path, int flags, unsigned int mask, struct statx *st);
int __wrap_statx(int fd, const char *path, int flags, unsigned int mask, struct statx *st);
DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd);
int __real_unlinkat(int fd, const char *path, int flags);
int __wrap_unlinkat(int fd, const char *path, int flags);
int __real_renameat2(int fd, const char *from, int to_fd, const char *to, unsigned int flags);
int __wrap_renameat2(int fd, const char *from, int to_fd, const char *to, unsigned int flags);
int __real_rmdir(const char *path);
int __wrap_rmdir(const char *path);

ssize_t __wrap_read(int fd, void *buf, size_t len)
{
	return take_fault(CALL_READ) ? -1 : __real_read(fd, buf, limit_bytes(len));
}

ssize_t __wrap_write(int fd, const void *buf, size_t len)
{
	return take_fault(CALL_WRITE) ? -1 : __real_write(fd, buf, limit_bytes(len));
}

int __wrap_fsync(int fd)
{
	return take_fault(CALL_FSYNC) ? -1 : __real_fsync(fd);
}

int __wrap_fchmod(int fd, mode_t mode)
{
	return take_fault(CALL_FCHMOD) ? -1 : __real_fchmod(fd, mode);
}

int __wrap_rename(const char *from, const char *to)
{
	return take_fault(CALL_RENAME) ? -1 : __real_rename(from, to);
}

ssize_t __wrap_getrandom(void *buf, size_t len, unsigned int flags)
{
	return take_fault(CALL_GETRANDOM) ? -1 : __real_getrandom(buf, limit_bytes(len), flags);
}

int __wrap_statx(int fd, const char *path, int flags, unsigned int mask, struct statx *st)
{
	return take_fault(CALL_STATX) ? -1 : __real_statx(fd, path, flags, mask, st);
}

DIR *__wrap_fdopendir(int fd)
{
	return take_fault(CALL_FDOPENDIR) ? NULL : __real_fdopendir(fd);
}

int __wrap_unlinkat(int fd, const char *path, int flags)
{
	return take_fault(CALL_UNLINKAT) ? -1 : __real_unlinkat(fd, path, flags);
}

int __wrap_renameat2(int fd, const char *from, int to_fd, const char *to, unsigned int flags)
{
	return take_fault(CALL_RENAMEAT2) ? -1 : __real_renameat2(fd, from, to_fd, to, flags);
}

int __wrap_rmdir(const char *path)
{
	return take_fault(CALL_RMDIR) ? -1 : __real_rmdir(path);
}

/* ---- a folder for each test */

static char folder[64];

/* Returns the path of a name in the test's folder. The text is valid until the eighth call after
 * this one. */
static const char *path_of(const char *name)
{
	static char paths[8][256];
	static unsigned int next;
	char *path = paths[next++ % 8];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static int folder_setup(void **state)
{
	memset(faults, 0, sizeof(faults));
	bytes_at_once = 0;
	(void)snprintf(folder, sizeof(folder), "%.40s/hf-fs-XXXXXX",
		       hf_str_or(getenv("TMPDIR"), "/tmp"));
	return mkdtemp(folder) ? 0 : -1;
}

static int folder_teardown(void **state)
{
	memset(faults, 0, sizeof(faults));
	return hf_fs_remove_tree(folder, NULL);
}

static void put_file(const char *path, const char *text)
{
	struct hf_error err;

	assert_ok(hf_fs_write_atomic(path, text, strlen(text), 0644, &err), &err);
}

static void assert_content(const char *path, const char *text)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 20);
	struct hf_error err;

	assert_ok(hf_fs_read(path, &sb, &err), &err);
	assert_string_equal(sb.data, text);
}

static bool path_exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2; /* without "." and ".." */
}

/* ---- reading */

static void a_file_is_appended_to_the_buffer(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(100);
	struct hf_error err;

	put_file(path_of("f"), "content");
	hf_strbuf_addstr(&sb, "before ");
	assert_ok(hf_fs_read(path_of("f"), &sb, &err), &err);
	assert_string_equal(sb.data, "before content");
}

static void an_empty_file_is_read(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(0);
	struct hf_error err;

	put_file(path_of("f"), "");
	assert_ok(hf_fs_read(path_of("f"), &sb, &err), &err);
	assert_int_equal(sb.len, 0);
}

static void a_large_file_is_read_in_pieces(void **state)
{
	size_t len = 300 * 1000;
	HF_AUTOFREE char *bytes = hf_xmalloc(len);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(len);
	struct hf_error err;

	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)(i * 7 / 3);
	assert_ok(hf_fs_write_atomic(path_of("f"), bytes, len, 0600, &err), &err);
	/* A file of exactly the maximum size is accepted. */
	assert_ok(hf_fs_read(path_of("f"), &sb, &err), &err);
	assert_int_equal(sb.len, len);
	assert_memory_equal(sb.data, bytes, len);
	hf_strbuf_clear(&sb);
	bytes_at_once = 1000;
	assert_ok(hf_fs_read(path_of("f"), &sb, &err), &err);
	assert_memory_equal(sb.data, bytes, len);
}

static void a_file_past_the_maximum_is_refused_and_nothing_added(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(10);
	struct hf_error err;

	put_file(path_of("f"), "12345678");
	hf_strbuf_addstr(&sb, "abc");
	assert_code(hf_fs_read(path_of("f"), &sb, &err), HF_E_TOO_LARGE);
	assert_true(hf_str_has_suffix(err.text, "/f': larger than 7 bytes"));
	assert_string_equal(sb.data, "abc");
	assert_false(sb.full);
}

static void a_missing_file_has_its_own_code(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(10);
	struct hf_error err;

	assert_code(hf_fs_read(path_of("none"), &sb, &err), HF_E_NOT_FOUND);
	assert_int_equal(err.code, HF_E_NOT_FOUND);
	assert_true(hf_str_has_prefix(err.text, "cannot open '"));
	assert_true(hf_str_has_suffix(err.text, "/none': No such file or directory"));
	assert_code(hf_fs_read(path_of("none"), &sb, NULL), HF_E_NOT_FOUND);
	assert_code(hf_fs_read("", &sb, NULL), HF_E_NOT_FOUND);
}

static void reading_a_folder_or_a_broken_disk_is_an_io_error(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 20);
	struct hf_error err;

	hf_strbuf_addstr(&sb, "kept");
	assert_code(hf_fs_read(folder, &sb, &err), HF_E_IO);
	put_file(path_of("f"), "0123456789");
	bytes_at_once = 4;
	faults[CALL_READ] = (struct fault){.errnum = EIO, .skip = 1};
	assert_code(hf_fs_read(path_of("f"), &sb, &err), HF_E_IO);
	assert_true(hf_str_has_suffix(err.text, "/f': Input/output error"));
	assert_string_equal(sb.data, "kept");
}

static void an_interrupted_read_goes_on(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(100);
	struct hf_error err;

	put_file(path_of("f"), "0123456789");
	bytes_at_once = 4;
	faults[CALL_READ] = (struct fault){.errnum = EINTR, .skip = 1};
	assert_ok(hf_fs_read(path_of("f"), &sb, &err), &err);
	assert_string_equal(sb.data, "0123456789");
}

static void a_pipe_is_read_to_its_end(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(100);
	struct hf_error err;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "piped", 5), 5);
	close(ends[1]);
	assert_ok(hf_fs_read_fd(ends[0], "the pipe", &sb, &err), &err);
	assert_string_equal(sb.data, "piped");
	close(ends[0]);
	assert_code(hf_fs_read_fd(ends[0], "the pipe", &sb, &err), HF_E_IO);
	assert_string_equal(err.text, "cannot read 'the pipe': Bad file descriptor");
}

static void an_fd_of_a_scope_is_closed_and_errno_kept(void **state)
{
	int fd;

	{
		HF_AUTO_FD owner = open("/", O_RDONLY | O_CLOEXEC);
		HF_AUTO_FD none = -1;

		fd = owner;
		assert_int_equal(none, -1);
		errno = 1234;
	}
	assert_int_equal(errno, 1234);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

/* ---- writing */

static void a_file_is_written_with_its_mode(void **state)
{
	struct hf_error err;
	struct stat st;
	mode_t mask = umask(077);

	assert_ok(hf_fs_write_atomic(path_of("f"), "a\0b", 3, 0640, &err), &err);
	umask(mask);
	assert_int_equal(stat(path_of("f"), &st), 0);
	assert_int_equal(st.st_size, 3);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(count_entries(folder), 1);
}

static void a_file_with_the_same_content_and_mode_is_not_written(void **state)
{
	struct hf_error err;
	struct stat before, after;

	assert_ok(hf_fs_write_changed(path_of("f"), "abc", 3, 0640, &err), &err);
	assert_int_equal(stat(path_of("f"), &before), 0);
	assert_ok(hf_fs_write_changed(path_of("f"), "abc", 3, 0640, &err), &err);
	assert_int_equal(stat(path_of("f"), &after), 0);
	assert_true(before.st_ino == after.st_ino);
	/* Different bytes, a different length and a different mode each cause a write. */
	assert_ok(hf_fs_write_changed(path_of("f"), "abd", 3, 0640, &err), &err);
	assert_content(path_of("f"), "abd");
	assert_ok(hf_fs_write_changed(path_of("f"), "abde", 4, 0640, &err), &err);
	assert_content(path_of("f"), "abde");
	assert_ok(hf_fs_write_changed(path_of("f"), "abde", 4, 0600, &err), &err);
	assert_int_equal(stat(path_of("f"), &after), 0);
	assert_int_equal(after.st_mode & 07777, 0600);
	assert_int_equal(count_entries(folder), 1);
	assert_code(hf_fs_write_changed(path_of("none/f"), "x", 1, 0600, &err), HF_E_NOT_FOUND);
}

static void a_file_is_replaced_whole(void **state)
{
	put_file(path_of("f"), "a longer old content");
	put_file(path_of("f"), "new");
	assert_content(path_of("f"), "new");
	assert_int_equal(count_entries(folder), 1);
}

static void a_path_may_be_relative(void **state)
{
	HF_AUTO_FD was = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(chdir(folder), 0);
	put_file("f", "here");
	assert_content("f", "here");
	assert_int_equal(fchdir(was), 0);
}

static void a_symlink_is_replaced_and_not_followed(void **state)
{
	struct stat st;

	put_file(path_of("target"), "untouched");
	assert_int_equal(symlink("target", path_of("link")), 0);
	put_file(path_of("link"), "new");
	assert_content(path_of("target"), "untouched");
	assert_int_equal(lstat(path_of("link"), &st), 0);
	assert_true(S_ISREG(st.st_mode));
}

static void short_and_interrupted_writes_go_on(void **state)
{
	bytes_at_once = 3;
	faults[CALL_WRITE] = (struct fault){.errnum = EINTR, .skip = 1};
	put_file(path_of("f"), "0123456789");
	bytes_at_once = 0;
	assert_content(path_of("f"), "0123456789");
}

static void a_failed_write_leaves_the_old_file_and_no_other(void **state)
{
	static const struct {
		enum call call;
		int errnum;
		int code;
	} rows[] = {
		{CALL_WRITE, ENOSPC, HF_E_NO_SPACE},  {CALL_WRITE, EDQUOT, HF_E_NO_SPACE},
		{CALL_WRITE, EIO, HF_E_IO},           {CALL_FCHMOD, EPERM, HF_E_IO},
		{CALL_FSYNC, ENOSPC, HF_E_NO_SPACE},  {CALL_FSYNC, EIO, HF_E_IO},
		{CALL_RENAME, ENOSPC, HF_E_NO_SPACE}, {CALL_RENAME, EACCES, HF_E_IO},
	};
	struct hf_error err;

	put_file(path_of("f"), "old");
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		faults[rows[i].call] = (struct fault){.errnum = rows[i].errnum};
		assert_code(hf_fs_write_atomic(path_of("f"), "new", 3, 0600, &err), rows[i].code);
		assert_int_equal(err.code, rows[i].code);
		assert_true(hf_str_has_prefix(err.text, "cannot write '"));
		assert_non_null(strstr(err.text, strerror(rows[i].errnum)));
		assert_content(path_of("f"), "old");
		assert_int_equal(count_entries(folder), 1);
	}
}

static void a_folder_that_cannot_be_synced_is_reported(void **state)
{
	struct hf_error err;

	put_file(path_of("f"), "old");
	faults[CALL_FSYNC] = (struct fault){.errnum = EIO, .skip = 1};
	assert_code(hf_fs_write_atomic(path_of("f"), "new", 3, 0600, &err), HF_E_IO);
	/* The last sync failed after the rename, so the new content stays. */
	assert_content(path_of("f"), "new");
}

static void writing_where_no_folder_is_fails(void **state)
{
	struct hf_error err;

	assert_code(hf_fs_write_atomic(path_of("none/f"), "x", 1, 0600, &err), HF_E_NOT_FOUND);
	put_file(path_of("f"), "x");
	assert_code(hf_fs_write_atomic(path_of("f/g"), "x", 1, 0600, &err), HF_E_IO);
	/* A folder exists at the path. */
	assert_ok(hf_fs_mkdirs(path_of("d"), 0755, &err), &err);
	assert_code(hf_fs_write_atomic(path_of("d"), "x", 1, 0600, &err), HF_E_IO);
	assert_int_equal(count_entries(folder), 2);
}

/* ---- folders */

static void folders_are_made_up_to_the_last(void **state)
{
	struct hf_error err;
	struct stat st;
	mode_t mask = umask(022);

	assert_ok(hf_fs_mkdirs(path_of("a/b//c/"), 0775, &err), &err);
	assert_int_equal(stat(path_of("a/b/c"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	umask(mask);
	/* A second call succeeds and does not change modes. */
	assert_int_equal(chmod(path_of("a/b"), 0700), 0);
	assert_ok(hf_fs_mkdirs(path_of("a/b/c"), 0775, &err), &err);
	assert_int_equal(stat(path_of("a/b"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_ok(hf_fs_mkdirs("/", 0755, &err), &err);
	assert_ok(hf_fs_mkdirs(folder, 0755, &err), &err);
}

static void a_file_in_the_way_of_folders_is_an_error(void **state)
{
	struct hf_error err;

	put_file(path_of("f"), "x");
	assert_code(hf_fs_mkdirs(path_of("f"), 0755, &err), HF_E_IO);
	assert_true(hf_str_has_suffix(err.text, "/f': Not a directory"));
	assert_code(hf_fs_mkdirs(path_of("f/g"), 0755, &err), HF_E_IO);
	assert_code(hf_fs_mkdirs("", 0755, &err), HF_E_NOT_FOUND);
}

static void a_symlink_to_a_folder_is_a_folder(void **state)
{
	struct hf_error err;

	assert_ok(hf_fs_mkdirs(path_of("real"), 0755, &err), &err);
	assert_int_equal(symlink("real", path_of("link")), 0);
	assert_ok(hf_fs_mkdirs(path_of("link/sub"), 0755, &err), &err);
	assert_true(path_exists(path_of("real/sub")));
}

/* ---- removing */

static void removing_a_missing_path_is_a_success(void **state)
{
	struct hf_error err;

	assert_ok(hf_fs_remove_tree(path_of("none"), &err), &err);
	assert_ok(hf_fs_remove_tree(path_of("none/none"), &err), &err);
}

static void a_file_or_a_symlink_alone_is_removed(void **state)
{
	struct hf_error err;

	put_file(path_of("f"), "x");
	assert_int_equal(symlink("f", path_of("link")), 0);
	assert_int_equal(symlink("/nowhere", path_of("dangling")), 0);
	assert_ok(hf_fs_remove_tree(path_of("link"), &err), &err);
	assert_ok(hf_fs_remove_tree(path_of("dangling"), &err), &err);
	assert_content(path_of("f"), "x");
	assert_ok(hf_fs_remove_tree(path_of("f"), &err), &err);
	assert_int_equal(count_entries(folder), 0);
}

static void a_tree_of_all_kinds_is_removed(void **state)
{
	struct hf_error err;
	char name[32];

	assert_ok(hf_fs_mkdirs(path_of("t/a/b/c"), 0755, &err), &err);
	assert_ok(hf_fs_mkdirs(path_of("t/new\nline/ space "), 0755, &err), &err);
	assert_int_equal(mkfifo(path_of("t/a/fifo"), 0600), 0);
	for (int i = 0; i < 300; i++) {
		(void)snprintf(name, sizeof(name), "t/a/b/file-%d", i);
		put_file(path_of(name), "x");
	}
	assert_ok(hf_fs_remove_tree(path_of("t"), &err), &err);
	assert_false(path_exists(path_of("t")));
}

static void symlinks_in_a_tree_are_not_followed(void **state)
{
	struct hf_error err;

	assert_ok(hf_fs_mkdirs(path_of("outside/deep"), 0755, &err), &err);
	put_file(path_of("outside/deep/f"), "x");
	assert_ok(hf_fs_mkdirs(path_of("t/sub"), 0755, &err), &err);
	assert_int_equal(symlink("../outside", path_of("t/link")), 0);
	assert_int_equal(symlink("../..", path_of("t/sub/up")), 0);
	assert_int_equal(symlink("/", path_of("t/sub/root")), 0);
	assert_ok(hf_fs_remove_tree(path_of("t"), &err), &err);
	assert_content(path_of("outside/deep/f"), "x");
	/* The path itself is a symlink to a folder. */
	assert_int_equal(symlink("outside", path_of("l")), 0);
	assert_ok(hf_fs_remove_tree(path_of("l"), &err), &err);
	assert_content(path_of("outside/deep/f"), "x");
}

static void read_only_folders_are_removed(void **state)
{
	struct hf_error err;

	assert_ok(hf_fs_mkdirs(path_of("t/a/b"), 0755, &err), &err);
	put_file(path_of("t/a/b/f"), "x");
	assert_int_equal(chmod(path_of("t/a/b"), 0500), 0);
	assert_int_equal(chmod(path_of("t/a"), 0500), 0);
	assert_int_equal(chmod(path_of("t"), 0500), 0);
	assert_ok(hf_fs_remove_tree(path_of("t"), &err), &err);
	assert_false(path_exists(path_of("t")));
}

/* Makes a chain of folders named "d"; each contains a file, an empty folder and the next "d". */
static void make_chain(const char *path, int depth)
{
	struct hf_error err;
	int fd;

	assert_ok(hf_fs_mkdirs(path, 0755, &err), &err);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < depth; i++) {
		int file = openat(fd, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		int next;

		assert_true(file >= 0);
		close(file);
		assert_int_equal(mkdirat(fd, "beside", 0755), 0);
		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(fd);
		fd = next;
	}
	close(fd);
}

static void any_depth_is_removed_with_few_descriptors(void **state)
{
	static const int depths[] = {1, 29, 30, 31, 32, 33, 62, 63, 64, 65, 2000};
	struct rlimit was, few;
	struct hf_error err;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	few.rlim_cur = 48;
	for (size_t i = 0; i < HF_ARRAY_LEN(depths); i++) {
		make_chain(path_of("deep"), depths[i]);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		assert_ok(hf_fs_remove_tree(path_of("deep"), &err), &err);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
		assert_false(path_exists(path_of("deep")));
	}
}

static void names_that_exist_do_not_stop_a_removal(void **state)
{
	struct hf_error err;
	char name[64];

	make_chain(path_of("deep"), 100);
	/* An attacker may have created the names that folders get when they are moved up. */
	for (int i = 0; i < 5; i++) {
		(void)snprintf(name, sizeof(name), "deep/.hf-removed-%d", i);
		put_file(path_of(name), "x");
	}
	assert_ok(hf_fs_remove_tree(path_of("deep"), &err), &err);
	assert_false(path_exists(path_of("deep")));
}

static void an_entry_that_cannot_be_removed_is_reported_and_the_rest_removed(void **state)
{
	static const struct {
		enum call call;
		int skip;
		int left; /* at least this many entries of the tree remain */
	} rows[] = {
		{CALL_STATX, 0, 3},     {CALL_STATX, 1, 1},    {CALL_FDOPENDIR, 0, 3},
		{CALL_FDOPENDIR, 1, 1}, {CALL_UNLINKAT, 0, 1}, {CALL_UNLINKAT, 1, 1},
		{CALL_RENAMEAT2, 0, 1}, {CALL_RMDIR, 0, 0},
	};
	struct hf_error err;

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		make_chain(path_of("t"), 40);
		faults[rows[i].call] = (struct fault){.errnum = EACCES, .skip = rows[i].skip};
		assert_code(hf_fs_remove_tree(path_of("t"), i % 2 ? &err : NULL), HF_E_IO);
		if (i % 2)
			assert_non_null(strstr(err.text, "Permission denied"));
		assert_true(count_entries(path_of("t")) >= rows[i].left);
		/* The second call meets no failing system call, so it removes the whole tree. */
		assert_ok(hf_fs_remove_tree(path_of("t"), &err), &err);
		assert_false(path_exists(path_of("t")));
	}
}

static void an_entry_removed_by_another_process_is_no_failure(void **state)
{
	struct hf_error err;

	make_chain(path_of("t"), 3);
	/* ENOENT counts as success. But the entry still exists, so removing its folder fails. */
	faults[CALL_UNLINKAT] = (struct fault){.errnum = ENOENT};
	assert_code(hf_fs_remove_tree(path_of("t"), &err), HF_E_IO);
	assert_non_null(strstr(err.text, "Directory not empty"));
	faults[CALL_RMDIR] = (struct fault){.errnum = ENOENT};
	assert_ok(hf_fs_remove_tree(path_of("t"), &err), &err);
}

static void only_plain_names_are_removed(void **state)
{
	static const char *const names[] = {"", "/", ".", "..", "a/", "a/.", "a/..", "/tmp/"};
	struct hf_error err;

	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++) {
		assert_code(hf_fs_remove_tree(names[i], &err), HF_E_INVALID);
		assert_true(hf_str_has_suffix(err.text, "not a plain name"));
	}
}

static bool write_proc_file(const char *path, const char *text)
{
	HF_AUTO_FD fd = open(path, O_WRONLY | O_CLOEXEC);

	return write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* Enters a user namespace that maps this user and group to themselves, so that they can own
 * files on a new mount. */
static bool enter_user_namespace(void)
{
	HF_AUTOFREE char *user = hf_xasprintf("%u %u 1", geteuid(), geteuid());
	HF_AUTOFREE char *group = hf_xasprintf("%u %u 1", getegid(), getegid());

	return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
	       write_proc_file("/proc/self/uid_map", user) &&
	       write_proc_file("/proc/self/setgroups", "deny") &&
	       write_proc_file("/proc/self/gid_map", group);
}

/* Makes mounts visible to this process only. False if the system does not permit it. */
static bool enter_mount_namespace(void)
{
	static bool tried, have;

	if (!tried)
		have = (unshare(CLONE_NEWNS) == 0 || enter_user_namespace()) &&
		       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	tried = true;
	return have;
}

static void mounts_in_a_tree_are_left_alone(void **state)
{
	struct hf_error err;

	assert_ok(hf_fs_mkdirs(path_of("outside"), 0755, &err), &err);
	put_file(path_of("outside/f"), "precious");
	assert_ok(hf_fs_mkdirs(path_of("t/a/mnt"), 0755, &err), &err);
	put_file(path_of("t/a/f"), "x");
	/* A bind mount of the same file system: only its mount id differs. */
	if (!enter_mount_namespace() ||
	    mount(path_of("outside"), path_of("t/a/mnt"), NULL, MS_BIND, NULL) < 0)
		skip();
	assert_code(hf_fs_remove_tree(path_of("t"), &err), HF_E_IO);
	assert_true(hf_str_has_suffix(err.text, "/t': something is mounted on 'mnt'"));
	assert_true(path_exists(path_of("outside/f")));
	/* Everything else was removed. */
	assert_false(path_exists(path_of("t/a/f")));
	assert_int_equal(umount(path_of("t/a/mnt")), 0);
	assert_ok(hf_fs_remove_tree(path_of("t"), &err), &err);
	assert_content(path_of("outside/f"), "precious");
}

static void a_full_disk_is_reported_and_leaves_the_old_file(void **state)
{
	static char large[1 << 20];
	struct hf_error err;

	assert_ok(hf_fs_mkdirs(path_of("disk"), 0755, &err), &err);
	if (!enter_mount_namespace() || mount("none", path_of("disk"), "tmpfs", 0, "size=64k") < 0)
		skip();
	put_file(path_of("disk/f"), "old");
	assert_code(hf_fs_write_atomic(path_of("disk/f"), large, sizeof(large), 0600, &err),
		    HF_E_NO_SPACE);
	assert_true(hf_str_has_suffix(err.text, "/disk/f': No space left on device"));
	assert_content(path_of("disk/f"), "old");
	assert_int_equal(count_entries(path_of("disk")), 1);
	assert_int_equal(umount(path_of("disk")), 0);
}

/* ---- randomness */

static void random_bytes_fill_all_and_differ(void **state)
{
	unsigned char a[1000] = {0}, b[1000] = {0};
	struct hf_error err;
	int zeroes = 0;

	assert_ok(hf_random_bytes(a, sizeof(a), &err), &err);
	/* Read in small pieces, with one interruption. */
	bytes_at_once = 7;
	faults[CALL_GETRANDOM] = (struct fault){.errnum = EINTR, .skip = 3};
	assert_ok(hf_random_bytes(b, sizeof(b), &err), &err);
	assert_memory_not_equal(a, b, sizeof(a));
	for (size_t i = 0; i < sizeof(b); i++)
		zeroes += b[i] == 0;
	/* About 4 zeros are expected in 1,000 bytes; more than 100 are practically impossible. */
	assert_in_range(zeroes, 0, 100);
	assert_ok(hf_random_bytes(a, 0, &err), &err);
}

static void random_digits_are_hexadecimal_and_differ(void **state)
{
	char a[33], b[33];
	struct hf_error err;

	memset(a, 'x', sizeof(a));
	assert_ok(hf_random_hex(a, 32, &err), &err);
	assert_ok(hf_random_hex(b, 32, &err), &err);
	assert_int_equal(strlen(a), 32);
	assert_int_equal(strspn(a, "0123456789abcdef"), 32);
	assert_string_not_equal(a, b);
}

static void a_kernel_without_randomness_is_an_error(void **state)
{
	unsigned char a[8];
	struct hf_error err;

	faults[CALL_GETRANDOM] = (struct fault){.errnum = ENOSYS};
	assert_code(hf_random_bytes(a, sizeof(a), &err), HF_E_IO);
	assert_string_equal(err.text, "cannot draw random bytes: Function not implemented");
	faults[CALL_GETRANDOM] = (struct fault){.errnum = ENOSYS};
	assert_code(hf_random_hex((char *)a, sizeof(a) - 1, &err), HF_E_IO);
}

#define fs_test(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fs_test(a_file_is_appended_to_the_buffer),
		fs_test(an_empty_file_is_read),
		fs_test(a_large_file_is_read_in_pieces),
		fs_test(a_file_past_the_maximum_is_refused_and_nothing_added),
		fs_test(a_missing_file_has_its_own_code),
		fs_test(reading_a_folder_or_a_broken_disk_is_an_io_error),
		fs_test(an_interrupted_read_goes_on),
		fs_test(a_pipe_is_read_to_its_end),
		fs_test(an_fd_of_a_scope_is_closed_and_errno_kept),
		fs_test(a_file_is_written_with_its_mode),
		fs_test(a_file_with_the_same_content_and_mode_is_not_written),
		fs_test(a_file_is_replaced_whole),
		fs_test(a_path_may_be_relative),
		fs_test(a_symlink_is_replaced_and_not_followed),
		fs_test(short_and_interrupted_writes_go_on),
		fs_test(a_failed_write_leaves_the_old_file_and_no_other),
		fs_test(a_folder_that_cannot_be_synced_is_reported),
		fs_test(writing_where_no_folder_is_fails),
		fs_test(folders_are_made_up_to_the_last),
		fs_test(a_file_in_the_way_of_folders_is_an_error),
		fs_test(a_symlink_to_a_folder_is_a_folder),
		fs_test(removing_a_missing_path_is_a_success),
		fs_test(a_file_or_a_symlink_alone_is_removed),
		fs_test(a_tree_of_all_kinds_is_removed),
		fs_test(symlinks_in_a_tree_are_not_followed),
		fs_test(read_only_folders_are_removed),
		fs_test(any_depth_is_removed_with_few_descriptors),
		fs_test(names_that_exist_do_not_stop_a_removal),
		fs_test(an_entry_that_cannot_be_removed_is_reported_and_the_rest_removed),
		fs_test(an_entry_removed_by_another_process_is_no_failure),
		fs_test(only_plain_names_are_removed),
		fs_test(mounts_in_a_tree_are_left_alone),
		fs_test(a_full_disk_is_reported_and_leaves_the_old_file),
		fs_test(random_bytes_fill_all_and_differ),
		fs_test(random_digits_are_hexadecimal_and_differ),
		fs_test(a_kernel_without_randomness_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
