/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/runtime/shim_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/*
 * A stand-in for kubectl inside pods, for launchers of MPIJobs. It supports only `exec POD --
 * COMMAND`, through the shim of that pod. An init container of the launcher copies kubectl from
 * its image; here it writes this stand-in instead. The stand-in gives no rights beyond those of
 * the plane's user: a process that can open the pod's folder could run the command anyway.
 */
/* how long to wait until the pod runs: a launcher starts at the same time as its workers */
#define WAIT_MAX_S 60
#define LOOK_AGAIN_MS 100
#define ARENA_BYTES_MAX ((size_t)4 << 20)
#define DELIVERY_IMAGE "kubectl-delivery"
#define TARGET_DIR "/opt/kube"

/* --- the init container --- */

bool hf_kubectl_is_delivery(const struct hf_json *container)
{
	const char *image = hf_json_str(hf_json_get(container, "image"), "");
	const char *slash = strrchr(image, '/');
	const char *name = slash ? slash + 1 : image;
	size_t len = strcspn(name, ":@");

	return hf_json_len(hf_json_get(container, "command")) == 0 &&
	       hf_json_len(hf_json_get(container, "args")) == 0 && len == strlen(DELIVERY_IMAGE) &&
	       strncmp(name, DELIVERY_IMAGE, len) == 0;
}

/* Writes the stand-in into the folder that the launcher mounts: a script that calls this
 * program. */
int hf_kubectl_deliver(const char *pods_dir, const char *ns)
{
	const char *dir = getenv("TARGET_DIR");
	HF_AUTOFREE char *exe = NULL, *text = NULL, *path = NULL;
	struct hf_error err;
	ssize_t n;

	exe = hf_xmalloc(4096);
	n = readlink("/proc/self/exe", exe, 4095);
	if (n < 0) {
		perror("kubectl");
		return 1;
	}
	exe[n] = '\0';
	if (strchr(exe, '\'') || strchr(pods_dir, '\'')) {
		(void)fprintf(stderr, "kubectl: a quote in '%s' or '%s'\n", exe, pods_dir);
		return 1;
	}
	text = hf_xasprintf("#!/bin/sh\n"
			    "# Starts programs in the pods of this plane; see `exec` alone.\n"
			    "exec '%s' shim kubectl '%s' '%s' \"$@\"\n",
			    exe, pods_dir, ns);
	path = hf_xasprintf("%s/kubectl", dir && dir[0] ? dir : TARGET_DIR);
	if (hf_fs_write_atomic(path, text, strlen(text), 0755, &err) != 0) {
		(void)fprintf(stderr, "kubectl: %s\n", err.text);
		return 1;
	}
	return 0;
}

/* --- the command line --- */

struct request {
	const char *ns, *pod, *container; /* container NULL: the first one */
	char **argv;                      /* NULL-terminated */
};

static int print_usage(const char *why)
{
	(void)fprintf(stderr,
		      "error: %s; this stand-in for kubectl supports only: kubectl exec POD "
		      "[-n NAMESPACE] [-c CONTAINER] -- COMMAND [ARGS...]\n",
		      why);
	return 1;
}

/* Returns the value of the flag at *arg, written as "-c x", "--container x" or "--container=x";
 * NULL: *arg is not that flag. */
static const char *flag_value(char ***arg, const char *letter, const char *name)
{
	const char *word = **arg;
	size_t len = strlen(name);

	if (hf_streq(word, letter) || hf_streq(word, name)) {
		if ((*arg)[1])
			(*arg)++;
		return **arg;
	}
	return strncmp(word, name, len) == 0 && word[len] == '=' ? word + len + 1 : NULL;
}

/* Parses a word before "--": a flag or the pod's name. */
static int parse_word(char ***arg, struct request *request)
{
	static const char *const accepted[] = {"-i", "--stdin", "-q", "--quiet"};
	const char *value = flag_value(arg, "-c", "--container");

	if (value) {
		request->container = value;
		return 0;
	}
	value = flag_value(arg, "-n", "--namespace");
	if (value) {
		request->ns = value;
		return 0;
	}
	for (size_t i = 0; i < HF_ARRAY_LEN(accepted); i++)
		if (hf_streq(**arg, accepted[i]))
			return 0;
	if (***arg == '-' || request->pod)
		return print_usage(***arg == '-' ? "an unknown flag" : "two pods");
	request->pod = **arg;
	return 0;
}

static int parse_request(char **arg, struct request *request)
{
	int rc = 0;

	if (!*arg || !hf_streq(*arg, "exec"))
		return print_usage("not asked for exec");
	for (arg++; rc == 0 && *arg && !hf_streq(*arg, "--"); arg++)
		rc = parse_word(&arg, request);
	if (rc == 0 && (!request->pod || !*arg || !arg[1]))
		rc = print_usage(request->pod ? "no command behind --" : "no pod");
	if (rc == 0)
		request->argv = arg + 1;
	return rc;
}

/* --- the pod --- */

static bool is_pod(int dir, const struct request *request)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	HF_AUTO_JSON json = NULL;
	struct hf_shim_pod pod;

	return hf_shim_read_json(dir, HF_SHIM_CONFIG_FILE, &json, NULL) == 0 &&
	       hf_shim_pod_from_json(json, arena, &pod, NULL) == 0 &&
	       hf_streq(pod.ns, request->ns) && hf_streq(pod.name, request->pod);
}

/* Connects to the shim of the pod: tries the folders of all pods that have this name, and takes
 * the first with a live shim. Returns -1 if there is none. */
static int find_shim(const char *pods_dir, const struct request *request)
{
	DIR *pods = opendir(pods_dir);
	struct dirent *entry;
	int fd = -1;

	while (pods && fd < 0 && (entry = readdir(pods))) {
		HF_AUTO_FD dir =
			openat(dirfd(pods), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (dir >= 0 && entry->d_name[0] != '.' && is_pod(dir, request))
			fd = hf_shim_connect(dir, 0);
	}
	if (pods)
		(void)closedir(pods);
	return fd;
}

/* Waits for the end of the program in the other pod and returns its exit code. Returns -1 if the
 * program was not started, but may be on a retry. */
static int await_exit(int fd)
{
	char message[HF_SHIM_MESSAGE_MAX + 1];
	bool started = false;
	int64_t code;
	ssize_t n;

	while ((n = recv(fd, message, sizeof(message) - 1, 0)) > 0 || (n < 0 && errno == EINTR)) {
		message[n > 0 ? n : 0] = '\0';
		if (hf_str_has_prefix(message, "started"))
			started = true;
		else if (hf_str_has_prefix(message, "exit ") &&
			 hf_str_to_i64(message + strlen("exit "), 0, 255, &code, NULL) == 0)
			return (int)code;
		else if (hf_streq(message, "wait"))
			return -1;
		else if (hf_str_has_prefix(message, "fail ")) {
			(void)fprintf(stderr, "error: %s\n", message + strlen("fail "));
			return 1;
		}
	}
	if (!started)
		return -1;
	(void)fprintf(stderr, "error: the container has ended\n");
	return 137;
}

int hf_kubectl_main(const char *pods_dir, const char *ns, char **argv)
{
	static const int stdio[3] = {0, 1, 2};
	struct request request = {.ns = ns};
	time_t end = time(NULL) + WAIT_MAX_S;
	int rc = parse_request(argv, &request);

	while (rc == 0) {
		HF_AUTO_FD fd = find_shim(pods_dir, &request);
		int code = fd >= 0 && hf_shim_ask(fd, "exec", hf_str_or(request.container, ""),
						  (const char *const *)request.argv, stdio)
				   ? await_exit(fd)
				   : -1;

		if (code >= 0)
			return code;
		if (time(NULL) >= end) {
			(void)fprintf(stderr, "error: pod %s/%s does not run\n", request.ns,
				      request.pod);
			return 1;
		}
		(void)poll(NULL, 0, LOOK_AGAIN_MS);
	}
	return rc;
}
