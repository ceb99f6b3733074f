/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/runtime/shim.h"

#include "harness/test.h"
#include "kubelet/runtime/self_test.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/runtime/shim_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Tests the stand-in for kubectl with a shim without namespaces. This program is its own shim and
 * its own kubectl: main calls hf_shim_helper_main first. The example of an MPIJob tests the same
 * with namespaces. */

struct fixture {
	char dir[64];
	char pod[96];
	int client; /* the kubelet's end */
};

static void write_json(const char *path, struct hf_json *json)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_RUN_BYTES_MAX);
	HF_AUTO_JSON owned = json;
	struct hf_error err;

	hf_json_write(owned, HF_JSON_COMPACT, &sb);
	assert_ok(hf_fs_write_atomic(path, sb.data, sb.len, 0600, &err), &err);
}

static int set_up(void **state)
{
	struct fixture *f = hf_xcalloc(1, sizeof(*f));
	const struct hf_shim_pod pod = {.ns = "lab",
					.name = "pi-worker-0",
					.uid = "11-22",
					.hostname = "pi-worker-0",
					.log_bytes_max = 1 << 20,
					.log_files_max = 3};
	const char *const folders[] = {"", "/run", "/logs"};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int stdio[] = {null, null, STDERR_FILENO};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/hf-kubectl-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(f->pod, sizeof(f->pod), "%s/11-22", f->dir);
	for (size_t i = 0; i < HF_ARRAY_LEN(folders); i++) {
		HF_AUTOFREE char *path = hf_xasprintf("%s%s", f->pod, folders[i]);

		assert_int_equal(mkdir(path, 0700), 0);
	}
	HF_AUTOFREE char *config = hf_xasprintf("%s/" HF_SHIM_CONFIG_FILE, f->pod);
	char *const argv[] = {(char[]){"test"}, (char[]){"shim"}, (char[]){"pod"}, f->pod, NULL};

	write_json(config, hf_shim_pod_to_json(&pod));
	assert_int_equal(wait_for(spawn(argv, stdio)), 0);
	f->client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/" HF_SHIM_SOCKET_FILE, f->pod);
	assert_int_equal(connect(f->client, (struct sockaddr *)&addr, sizeof(addr)), 0);
	(void)close(null);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	char message[HF_SHIM_MESSAGE_MAX];
	struct hf_error err;

	assert_int_equal(send(f->client, "quit", 4, 0), 4);
	while (recv(f->client, message, sizeof(message), 0) > 0)
		;
	(void)close(f->client);
	assert_ok(hf_fs_remove_tree(f->dir, &err), &err);
	free(f);
	return 0;
}

/* Starts a container that runs until the pod ends. */
static void start(struct fixture *f, const char *name, bool init)
{
	const char *const argv[] = {"sleep", "600", NULL};
	const char *const env[] = {"PATH=/usr/bin:/bin", "GREETING=hello", NULL};
	struct hf_run run = {.argv = argv, .env = env, .uid = -1, .gid = -1, .init = init};
	HF_AUTOFREE char *path = hf_xasprintf("%s/run/%s.0.json", f->pod, name);
	HF_AUTOFREE char *message = hf_xasprintf("start %s 0 0", name);

	write_json(path, hf_run_to_json(&run));
	assert_int_equal(send(f->client, message, strlen(message), 0), strlen(message));
}

/* Reads the output of the pipe until every process that holds the pipe has closed it. */
static void read_all(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len + 1 < size && (n = read(fd, text + len, size - len - 1)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	(void)close(fd);
}

/* Starts kubectl with the words, split at blanks, and the script as the last argument. */
static pid_t kubectl(struct fixture *f, const char *words, const char *script, int *ret_output)
{
	HF_AUTOFREE char *copy = hf_xstrdup(words);
	HF_AUTOFREE char *last = hf_xstrdup(script ? script : "");
	char *argv[32] = {(char[]){"test"}, (char[]){"shim"}, (char[]){"kubectl"}, f->dir,
			  (char[]){"lab"}};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), fds[2];
	char *rest = copy;
	size_t n = 5;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	while (n < 30 && rest)
		argv[n++] = strsep(&rest, " ");
	if (script)
		argv[n++] = last;
	const int stdio[] = {null, fds[1], fds[1]};

	pid = spawn(argv, stdio);
	(void)close(null);
	(void)close(fds[1]);
	*ret_output = fds[0];
	return pid;
}

static void assert_kubectl(struct fixture *f, const char *words, const char *script, int code,
			   const char *output)
{
	char text[4096];
	int fd;
	pid_t pid = kubectl(f, words, script, &fd);

	read_all(fd, text, sizeof(text));
	if (!strstr(text, output))
		fail_msg("'%s' is not in '%s'", output, text);
	assert_int_equal(wait_for(pid), code);
}

static void a_program_runs_as_the_container_does_and_its_code_is_told(void **state)
{
	struct fixture *f = *state;

	start(f, "mpi", false);
	assert_kubectl(f, "exec pi-worker-0 -- /bin/sh -c", "echo $GREETING; exit 7", 7, "hello\n");
	assert_kubectl(f, "exec -i -n lab pi-worker-0 --container mpi -- sh -c",
		       "echo to the error >&2", 0, "to the error\n");
	assert_kubectl(f, "exec pi-worker-0 -- nothing-like-that", NULL, 127,
		       "exec: nothing-like-that: No such file");
	assert_kubectl(f, "exec pi-worker-0 -- sh -c", "kill -9 $$", 137, "");
}

static void exec_waits_until_the_container_runs_and_takes_no_init_container(void **state)
{
	struct fixture *f = *state;
	char text[256];
	int fd;
	pid_t pid;

	start(f, "prepare", true);
	assert_kubectl(f, "exec pi-worker-0 -c prepare -- echo", "asked for by name", 0, "by name");
	pid = kubectl(f, "exec pi-worker-0 -- sh -c", "echo ran", &fd);
	start(f, "mpi", false);
	read_all(fd, text, sizeof(text));
	assert_string_equal(text, "ran\n");
	assert_int_equal(wait_for(pid), 0);
}

static void the_program_ends_with_its_client(void **state)
{
	struct fixture *f = *state;
	char text[256];
	int fd;
	pid_t pid;

	start(f, "mpi", false);
	pid = kubectl(f, "exec pi-worker-0 -- sh -c", "echo up; sleep 600", &fd);
	assert_int_equal(read(fd, text, 3), 3);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(wait_for(pid), -1);
	/* read_all returns when the last process that could write to the pipe has ended. */
	read_all(fd, text, sizeof(text));
}

static void what_it_does_not_know_is_refused(void **state)
{
	struct fixture *f = *state;

	assert_kubectl(f, "get pods", NULL, 1, "supports only: kubectl exec");
	assert_kubectl(f, "exec pi-worker-0 ls", NULL, 1, "error: two pods");
	assert_kubectl(f, "exec pi-worker-0 --", NULL, 1, "no command behind --");
	assert_kubectl(f, "exec --tty pi-worker-0 -- ls", NULL, 1, "an unknown flag");
}

static void the_delivery_is_known_by_its_image_and_lack_of_a_command(void **state)
{
	static const struct {
		const char *container;
		bool is;
	} cases[] = {
		{"{\"image\":\"ghcr.io/kubeflow/training-v1/kubectl-delivery:latest\"}", true},
		{"{\"image\":\"kubectl-delivery\"}", true},
		{"{\"image\":\"host:5000/kubectl-delivery@sha256:00\"}", true},
		{"{\"image\":\"kubectl-delivery\",\"command\":[\"x\"]}", false},
		{"{\"image\":\"my-kubectl-delivery\"}", false},
		{"{}", false},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_JSON json = NULL;
		const char *text = cases[i].container;

		assert_int_equal(hf_json_parse(text, strlen(text), NULL, &json, NULL), 0);
		assert_int_equal(hf_kubectl_is_delivery(json), cases[i].is);
	}
}

static void what_is_delivered_is_a_program(void **state)
{
	struct fixture *f = *state;
	HF_AUTOFREE char *path = hf_xasprintf("%s/kubectl", f->dir);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
	struct hf_error err;
	struct stat st;

	assert_int_equal(setenv("TARGET_DIR", f->dir, 1), 0);
	assert_int_equal(hf_kubectl_deliver(f->dir, "lab"), 0);
	assert_ok(hf_fs_read(path, &text, &err), &err);
	assert_non_null(strstr(text.data, "' shim kubectl '"));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
}

int main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(a_program_runs_as_the_container_does_and_its_code_is_told),
		T(exec_waits_until_the_container_runs_and_takes_no_init_container),
		T(the_program_ends_with_its_client),
		T(what_it_does_not_know_is_refused),
		cmocka_unit_test(the_delivery_is_known_by_its_image_and_lack_of_a_command),
		T(what_is_delivered_is_a_program),
	};
	int rc = hf_shim_helper_main(argc, argv);

	return rc >= 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
