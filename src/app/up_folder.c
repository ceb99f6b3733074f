/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The folder of `holdfast up`: takes the lock, makes certificates and the token, and writes the
 * kubeconfig. Invariant: files are replaced whole, with mode 0600. */
#include "app/up_folder.h"

#include "app/plane.h"
#include "base/base64.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "http/certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define TOKEN_BYTES 32
#define FILE_BYTES_MAX ((size_t)64 << 10)
#define CERTIFICATE_VALID (730 * HF_DAY)
/* a start renews the certificate if the remaining validity is shorter than this time */
#define CERTIFICATE_RENEW (60 * HF_DAY)

int hf_up_folder_path(const char *data_dir, char **ret_dir, struct hf_error *err)
{
	char cwd[4096];

	if (data_dir == NULL)
		return hf_plane_default_dir(ret_dir, err);
	if (*data_dir == '\0')
		return hf_error_set(err, HF_E_INVALID,
				    "--data-dir is empty; give the path of a folder");
	if (*data_dir == '/') {
		*ret_dir = hf_xstrdup(data_dir);
		return 0;
	}
	if (getcwd(cwd, sizeof(cwd)) == NULL)
		return hf_error_errno(err, errno,
				      "--data-dir is relative, and the current folder is unknown");
	*ret_dir = hf_xasprintf("%s/%s", cwd, data_dir);
	return 0;
}

/* ---- the lock ----------------------------------------------------------------------------- */

static pid_t read_pid(int fd)
{
	char text[24];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	int64_t pid;

	if (n <= 0)
		return 0;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return hf_str_to_i64(text, 1, INT32_MAX, &pid, NULL) == 0 ? (pid_t)pid : 0;
}

/* Writes "no process". The file keeps one byte, because on a full disk an empty file could not be
 * written again. */
static bool write_no_pid(int fd)
{
	return pwrite(fd, "\n", 1, 0) == 1 && ftruncate(fd, 1) == 0;
}

static int take_lock(const char *dir, int *ret_fd, struct hf_error *err)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/up.pid", dir);
	HF_AUTO_FD fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return hf_error_errno(err, errno, "cannot open '%s'", path);
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		pid_t pid = read_pid(fd);
		if (errno != EWOULDBLOCK)
			return hf_error_errno(err, errno, "cannot lock '%s'", path);
		if (pid != 0)
			return hf_error_set(
				err, HF_E_CONFLICT,
				"'holdfast up' is already running in '%s' (process %d); end it with 'holdfast down' or use another --data-dir",
				dir, (int)pid);
		return hf_error_set(
			err, HF_E_CONFLICT,
			"another 'holdfast up' is just starting in '%s'; wait for it, or use another --data-dir",
			dir);
	}
	if (!write_no_pid(fd))
		return hf_error_errno(err, errno, "cannot write '%s'", path);
	*ret_fd = fd;
	fd = -1;
	return 0;
}

int hf_up_folder_announce(struct hf_up_folder *home, struct hf_error *err)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());

	if (pwrite(home->lock, text, (size_t)n, 0) != n)
		return hf_error_errno(err, errno, "cannot write '%s/up.pid'", home->dir);
	return 0;
}

int hf_up_folder_is_locked(const char *dir, bool *ret_running, pid_t *ret_pid, struct hf_error *err)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/up.pid", dir);
	HF_AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 && errno != ENOENT && errno != ENOTDIR)
		return hf_error_errno(err, errno, "cannot open '%s'", path);
	/* A shared lock excludes only the exclusive lock of an `up`, not other readers. */
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0) {
		*ret_running = false;
		*ret_pid = 0;
		return 0;
	}
	if (errno != EWOULDBLOCK)
		return hf_error_errno(err, errno, "cannot lock '%s'", path);
	*ret_running = true;
	*ret_pid = read_pid(fd);
	return 0;
}

/* ---- files -------------------------------------------------------------------------------- */

static int read_file(const struct hf_up_folder *home, const char *name, char **ret_text,
		     struct hf_error *err)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", home->dir, name);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(FILE_BYTES_MAX);
	int rc = hf_fs_read(path, &sb, err);

	if (rc == 0)
		*ret_text = hf_strbuf_detach(&sb);
	return rc;
}

static int write_file(const struct hf_up_folder *home, const char *name, const char *text,
		      struct hf_error *err)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", home->dir, name);

	return hf_fs_write_atomic(path, text, strlen(text), 0600, err);
}

static void erase_text(char **text)
{
	if (*text != NULL)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

static bool has_valid_certificate(struct hf_up_folder *home, hf_time now)
{
	hf_time expiry, ca_expiry;

	return read_file(home, "ca.pem", &home->ca_pem, NULL) == 0 &&
	       read_file(home, "server.pem", &home->cert_pem, NULL) == 0 &&
	       read_file(home, "server-key.pem", &home->key_pem, NULL) == 0 &&
	       hf_certificate_check(home->cert_pem, home->key_pem, NULL) == 0 &&
	       hf_certificate_expiry(home->ca_pem, &ca_expiry, NULL) == 0 &&
	       hf_certificate_expiry(home->cert_pem, &expiry, NULL) == 0 &&
	       expiry > now + CERTIFICATE_RENEW;
}

/* Makes a CA and a server certificate. The CA's key is thrown away after one signature, so that a thief
 * of the folder cannot sign a certificate for another server. */
static int make_certificate(struct hf_up_folder *home, hf_time now, struct hf_error *err)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "::1", NULL};
	struct hf_certificate ca = {0}, server = {0};
	struct hf_certificate_spec spec = {.common_name = "holdfast CA",
					   .names = names,
					   .now = now,
					   .valid_for = CERTIFICATE_VALID};
	int rc = hf_certificate_make_ca(&spec, &ca, err);

	spec.common_name = "holdfast";
	if (rc == 0)
		rc = hf_certificate_make_server(&ca, &spec, &server, err);
	/* Write the key last: if a crash comes before, key and certificate do not match, and the
	 * next start makes new ones. */
	if (rc == 0)
		rc = write_file(home, "ca.pem", ca.cert_pem, err);
	if (rc == 0)
		rc = write_file(home, "server.pem", server.cert_pem, err);
	if (rc == 0)
		rc = write_file(home, "server-key.pem", server.key_pem, err);
	if (rc == 0) {
		erase_text(&home->ca_pem);
		erase_text(&home->cert_pem);
		erase_text(&home->key_pem);
		home->ca_pem = hf_xstrdup(ca.cert_pem);
		home->cert_pem = hf_xstrdup(server.cert_pem);
		home->key_pem = hf_xstrdup(server.key_pem);
	}
	hf_certificate_release(&ca);
	hf_certificate_release(&server);
	return rc;
}

static int load_token(struct hf_up_folder *home, struct hf_error *err)
{
	unsigned char bytes[TOKEN_BYTES];
	char text[2 * TOKEN_BYTES + 1];
	int rc;

	if (read_file(home, "token", &home->token, NULL) == 0 &&
	    strlen(home->token) == 2 * TOKEN_BYTES)
		return 0;
	erase_text(&home->token);
	rc = hf_random_bytes(bytes, sizeof(bytes), err);
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	rc = write_file(home, "token", text, err);
	if (rc == 0)
		home->token = hf_xstrdup(text);
	explicit_bzero(text, sizeof(text));
	return rc;
}

int hf_up_folder_open(const char *dir, hf_time now, struct hf_up_folder *ret_home,
		      struct hf_error *err)
{
	struct hf_up_folder home = {.dir = hf_xstrdup(dir), .lock = -1};
	int rc = hf_plane_make_dir(dir, err);

	if (rc == 0)
		rc = take_lock(dir, &home.lock, err);
	if (rc == 0 && !has_valid_certificate(&home, now))
		rc = make_certificate(&home, now, err);
	if (rc == 0)
		rc = load_token(&home, err);
	if (rc != 0) {
		hf_up_folder_release(&home);
		return rc;
	}
	home.kubeconfig = hf_xasprintf("%s/kubeconfig", dir);
	*ret_home = home;
	return 0;
}

void hf_up_folder_release(struct hf_up_folder *home)
{
	/* Do not remove the lock file: else one process could lock the removed file and another a
	 * new file of the same name. */
	if (home->lock >= 0) {
		(void)write_no_pid(home->lock);
		(void)close(home->lock);
	}
	home->lock = -1;
	erase_text(&home->ca_pem);
	erase_text(&home->cert_pem);
	erase_text(&home->key_pem);
	erase_text(&home->token);
	free(home->kubeconfig);
	free(home->dir);
	*home = (struct hf_up_folder){.lock = -1};
}

/* ---- the kubeconfig ----------------------------------------------------------------------- */

int hf_up_folder_write_kubeconfig(const struct hf_up_folder *home, const char *address,
				  uint16_t port, struct hf_error *err)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(FILE_BYTES_MAX);
	bool v6 = strchr(address, ':') != NULL;

	hf_strbuf_addf(&sb,
		       "apiVersion: v1\nkind: Config\ncurrent-context: holdfast\n"
		       "contexts:\n- name: holdfast\n  context:\n    cluster: holdfast\n"
		       "    namespace: default\n    user: holdfast\n"
		       "clusters:\n- name: holdfast\n  cluster:\n    server: https://%s%s%s:%u\n"
		       "    certificate-authority-data: ",
		       v6 ? "[" : "", address, v6 ? "]" : "", (unsigned)port);
	hf_base64_encode(home->ca_pem, strlen(home->ca_pem), &sb);
	hf_strbuf_addf(&sb, "\nusers:\n- name: holdfast\n  user:\n    token: \"%s\"\n",
		       home->token);
	return hf_fs_write_changed(home->kubeconfig, sb.data, sb.len, 0600, err);
}
