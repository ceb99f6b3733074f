/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/report_socket.h"
#include "base/fs.h"
#include "base/str.h"
#include "harness/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define POD_UID "0a1b2c3d-0000-4000-8000-0123456789ab"

static struct {
	struct hf_loop *loop;
	struct hf_report_socket *beats;
	struct hf_metrics *metrics;
	char dir[64], path[96];
	const char *uid; /* the pod of any sender; NULL: the sender is in no pod */
	pid_t asked;
	int heard, other_heard;
	int told; /* of trouble, and of its end */
	char trouble[128];
	struct hf_beat last;
	char last_uid[HF_REPORT_POD_UID_MAX];
} t;

static bool identify(void *arg, pid_t pid, char ret_uid[HF_REPORT_POD_UID_MAX])
{
	t.asked = pid;
	if (t.uid == NULL)
		return false;
	snprintf(ret_uid, HF_REPORT_POD_UID_MAX, "%s", t.uid);
	return true;
}

static void heard(void *arg, const char *pod_uid, const struct hf_beat *beat)
{
	t.heard++;
	t.last = *beat;
	snprintf(t.last_uid, sizeof(t.last_uid), "%s", pod_uid);
}

static void heard_by_other(void *arg, const char *pod_uid, const struct hf_beat *beat)
{
	t.other_heard++;
}

static void trouble(void *arg, const char *why)
{
	t.told++;
	snprintf(t.trouble, sizeof(t.trouble), "%s", why != NULL ? why : "");
}

static int make(void **state)
{
	struct hf_report_socket_options options;
	struct hf_error err;

	memset(&t, 0, sizeof(t));
	snprintf(t.dir, sizeof(t.dir), "/tmp/hf-beats-XXXXXX");
	assert_non_null(mkdtemp(t.dir));
	snprintf(t.path, sizeof(t.path), "%s/s", t.dir);
	assert_ok(hf_loop_create(&t.loop, &err), &err);
	t.metrics = hf_metrics_create();
	t.uid = POD_UID;
	options = (struct hf_report_socket_options){.loop = t.loop,
						    .path = t.path,
						    .mode = 0666,
						    .identify = identify,
						    .look_every = HF_MS,
						    .heard = heard,
						    .trouble = trouble,
						    .metrics = t.metrics};
	assert_ok(hf_report_socket_create(&options, &t.beats, &err), &err);
	return 0;
}

static int unmake(void **state)
{
	hf_report_socket_destroy(t.beats);
	hf_loop_destroy(t.loop);
	hf_metrics_destroy(t.metrics);
	assert_int_equal(rmdir(t.dir), 0);
	return 0;
}

static bool report(const char *text)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	HF_AUTO_FD fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(name.sun_path, t.path, strlen(t.path) + 1);
	return sendto(fd, text, strlen(text), MSG_DONTWAIT, (struct sockaddr *)&name,
		      sizeof(name)) >= 0;
}

static void stop(void *arg)
{
	hf_loop_stop(t.loop);
}

/* Takes all datagrams that were sent: the loop serves sockets before timers. */
static void take_all(void)
{
	struct hf_timer *timer = hf_timer_create(t.loop, stop, NULL);

	hf_timer_arm(timer, HF_MS);
	hf_loop_run(t.loop);
	hf_timer_destroy(timer);
}

static int result(const char *name)
{
	static const struct hf_metric_options options = {.name = "holdfast_agent_reports_total",
							 .help = "h",
							 .type = HF_METRIC_COUNTER,
							 .labels = {"result"}};

	return (int)hf_family_value(hf_metrics_family(t.metrics, &options), name, NULL);
}

static void a_report_comes_with_the_pod_of_its_process(void **state)
{
	struct stat st;

	assert_true(report("holdfast/1 step=5 rank=2"));
	take_all();
	assert_int_equal(t.heard, 1);
	assert_int_equal(t.asked, getpid());
	assert_string_equal(t.last_uid, POD_UID);
	assert_int_equal(t.last.step, 5);
	assert_int_equal(stat(t.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666);
}

static void a_process_in_no_pod_is_not_heard(void **state)
{
	t.uid = NULL;
	assert_true(report("holdfast/1 step=5"));
	take_all();
	assert_int_equal(t.heard, 0);
	assert_int_equal(result("unknown"), 1);
}

static void a_malformed_report_is_counted_and_its_pod_is_not_looked_up(void **state)
{
	char large[2 * HF_BEAT_BYTES_MAX];

	memset(large, 'x', sizeof(large));
	large[sizeof(large) - 1] = '\0';
	assert_true(report("holdfast/2"));
	assert_true(report(large));
	assert_true(report(""));
	take_all();
	assert_int_equal(t.heard, 0);
	assert_int_equal(t.asked, 0);
	assert_int_equal(result("broken"), 3);
}

static void descriptors_that_come_along_are_not_kept(void **state)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	HF_AUTO_FD fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int before = open("/dev/null", O_RDONLY | O_CLOEXEC), after;
	char text[] = "holdfast/1";
	struct iovec mig = {.iov_base = text, .iov_len = 10};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message = {.msg_name = &name,
				 .msg_namelen = sizeof(name),
				 .msg_iov = &mig,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);

	memcpy(name.sun_path, t.path, strlen(t.path) + 1);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &before, sizeof(before));
	assert_int_equal(sendmsg(fd, &message, 0), 10);
	take_all();
	assert_int_equal(close(before), 0);
	after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(after, before);
	assert_int_equal(close(after), 0);
}

static void a_process_that_floods_is_cut_and_counted(void **state)
{
	int taken, sent = 0;

	for (int i = 0; i < 3 * HF_REPORT_LIMITS_PROCESS; i++) {
		sent += report("holdfast/1");
		take_all();
	}
	taken = result("taken");
	/* A new second may have begun meanwhile, with limits of its own. */
	assert_true(taken >= HF_REPORT_LIMITS_PROCESS && taken <= 2 * HF_REPORT_LIMITS_PROCESS);
	assert_int_equal(taken + result("limited"), sent);
	assert_int_equal(t.heard, taken);
}

static void an_old_socket_is_replaced(void **state)
{
	struct hf_report_socket_options options = {
		.loop = t.loop, .path = t.path, .mode = 0600, .identify = identify, .heard = heard};
	struct hf_report_socket *second;
	struct hf_error err;
	char longer[200];

	assert_ok(hf_report_socket_create(&options, &second, &err), &err);
	assert_true(report("holdfast/1"));
	take_all();
	assert_int_equal(t.heard, 1);
	hf_report_socket_destroy(second);
	assert_int_equal(access(t.path, F_OK), -1);
	memset(longer, 'a', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	options.path = longer;
	assert_code(hf_report_socket_create(&options, &second, &err), HF_E_INVALID);
}

static void what_cannot_be_made_at_first_is_made_later(void **state)
{
	struct hf_report_socket_options options = {.loop = t.loop,
						   .look_every = HF_MS,
						   .mode = 0666,
						   .identify = identify,
						   .heard = heard,
						   .trouble = trouble};
	struct hf_error err;
	FILE *file;

	t.beats = hf_report_socket_destroy(t.beats);
	options.path = t.path;
	file = fopen(t.path, "we");
	assert_non_null(file);
	fclose(file);
	assert_ok(hf_report_socket_create(&options, &t.beats, &err), &err);
	assert_int_equal(t.told, 1);
	assert_non_null(strstr(t.trouble, "cannot create the socket"));
	take_all();
	/* A regular file at the path is no old socket, so it stays. */
	assert_int_equal(unlink(t.path), 0);
	while (t.told == 1)
		take_all();
	assert_string_equal(t.trouble, "");
	assert_true(report("holdfast/1"));
	take_all();
	assert_int_equal(t.heard, 1);
}

static struct hf_report_socket *another(void)
{
	struct hf_report_socket_options options = {.loop = t.loop,
						   .path = t.path,
						   .mode = 0600,
						   .identify = identify,
						   .heard = heard_by_other};
	struct hf_report_socket *other;
	struct hf_error err;

	assert_ok(hf_report_socket_create(&options, &other, &err), &err);
	return other;
}

static void an_agent_that_ends_leaves_the_socket_of_a_later_agent(void **state)
{
	struct hf_report_socket *other = another();

	t.beats = hf_report_socket_destroy(t.beats);
	assert_true(report("holdfast/1"));
	take_all();
	assert_int_equal(t.heard, 0);
	assert_int_equal(t.other_heard, 1);
	hf_report_socket_destroy(other);
}

static void what_another_listens_at_is_left_to_it_and_taken_back_after_it(void **state)
{
	struct hf_report_socket *other = another();

	while (t.told == 0)
		take_all();
	assert_non_null(strstr(t.trouble, "another process listens at '"));
	assert_true(report("holdfast/1"));
	take_all();
	assert_int_equal(t.other_heard, 1);
	hf_report_socket_destroy(other);
	while (t.told == 1)
		take_all();
	assert_string_equal(t.trouble, "");
	assert_true(report("holdfast/1"));
	take_all();
	assert_int_equal(t.heard, 1);
	assert_int_equal(t.told, 2);
}

static void a_name_that_is_gone_is_made_again(void **state)
{
	struct stat st;

	assert_int_equal(unlink(t.path), 0);
	assert_false(report("holdfast/1"));
	while (lstat(t.path, &st) != 0)
		take_all();
	assert_int_equal(st.st_mode & 0777, 0666);
	assert_true(report("holdfast/1"));
	take_all();
	assert_int_equal(t.heard, 1);
	assert_int_equal(t.told, 0);
}

static void a_folder_that_is_gone_is_told_and_waited_for(void **state)
{
	assert_int_equal(unlink(t.path), 0);
	assert_int_equal(rmdir(t.dir), 0);
	while (t.told == 0)
		take_all();
	assert_non_null(strstr(t.trouble, "cannot create the socket"));
	assert_int_equal(mkdir(t.dir, 0700), 0);
	while (t.told == 1)
		take_all();
	assert_true(report("holdfast/1"));
	take_all();
	assert_int_equal(t.heard, 1);
}

static const struct {
	const char *text, *uid;
} cgroups[] = {
	{"0::/kubepods.slice/kubepods-burstable.slice/"
	 "kubepods-burstable-pod0a1b2c3d_0000_4000_8000_0123456789ab.slice/cri-containerd-ff.scope\n",
	 POD_UID},
	{"0::/kubepods/besteffort/pod" POD_UID "/4f5e\n", POD_UID},
	{"0::/kubepods.slice/kubepods-pod0a1b2c3d_0000_4000_8000_0123456789ab.slice/x\n", POD_UID},
	{"12:memory:/kubepods/pod" POD_UID "/4f5e\n0::/\n", POD_UID},
	{"0::/../../kubepods-besteffort-pod0a1b2c3d_0000_4000_8000_0123456789ab.slice/x", POD_UID},
	{"0::/docker/1234/kubelet.slice/kubelet-kubepods.slice/"
	 "kubelet-kubepods-pod0a1b2c3d_0000_4000_8000_0123456789ab.slice/x\n",
	 POD_UID},
	/* Static pods. */
	{"0::/kubepods/pod0123456789abcdef0123456789abcdef/1\n",
	 "0123456789abcdef0123456789abcdef"},
	/* Names that a container gives to its own groups do not count. */
	{"0::/kubepods/pod" POD_UID "/4f5e/kubepods/podffffffff-0000-4000-8000-0123456789ab\n",
	 POD_UID},
	{"0::/user.slice/user-0.slice/session-1.scope\n", NULL},
	{"0::/podman/pod-1\n", NULL},
	{"0::/kubepods/pod\n", NULL},
	{"", NULL},
	{"0::/", NULL},
};

static void the_pod_is_in_the_name_of_the_outermost_group(void **state)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(cgroups); i++) {
		char uid[HF_REPORT_POD_UID_MAX] = "";
		bool found = hf_report_socket_pod_of_cgroup(cgroups[i].text,
							    strlen(cgroups[i].text), uid);

		if (found != (cgroups[i].uid != NULL) || (found && !hf_streq(uid, cgroups[i].uid)))
			fail_msg("'%s' gave '%s'", cgroups[i].text, uid);
	}
}

static void the_embedded_planes_pods_carry_it_in_a_variable(void **state)
{
	static const char text[] = "PATH=/bin\0HOLDFAST_POD_UID=" POD_UID "\0X=1";
	char uid[HF_REPORT_POD_UID_MAX];

	assert_true(hf_report_socket_pod_of_environ(text, sizeof(text), uid));
	assert_string_equal(uid, POD_UID);
	assert_false(hf_report_socket_pod_of_environ(text, 12, uid));
	assert_false(hf_report_socket_pod_of_environ("HOLDFAST_POD_UID=", 17, uid));
	assert_false(hf_report_socket_pod_of_environ("", 0, uid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_report_comes_with_the_pod_of_its_process, make,
						unmake),
		cmocka_unit_test_setup_teardown(a_process_in_no_pod_is_not_heard, make, unmake),
		cmocka_unit_test_setup_teardown(
			a_malformed_report_is_counted_and_its_pod_is_not_looked_up, make, unmake),
		cmocka_unit_test_setup_teardown(descriptors_that_come_along_are_not_kept, make,
						unmake),
		cmocka_unit_test_setup_teardown(a_process_that_floods_is_cut_and_counted, make,
						unmake),
		cmocka_unit_test_setup_teardown(an_old_socket_is_replaced, make, unmake),
		cmocka_unit_test_setup_teardown(what_cannot_be_made_at_first_is_made_later, make,
						unmake),
		cmocka_unit_test_setup_teardown(
			an_agent_that_ends_leaves_the_socket_of_a_later_agent, make, unmake),
		cmocka_unit_test_setup_teardown(
			what_another_listens_at_is_left_to_it_and_taken_back_after_it, make,
			unmake),
		cmocka_unit_test_setup_teardown(a_name_that_is_gone_is_made_again, make, unmake),
		cmocka_unit_test_setup_teardown(a_folder_that_is_gone_is_told_and_waited_for, make,
						unmake),
		cmocka_unit_test(the_pod_is_in_the_name_of_the_outermost_group),
		cmocka_unit_test(the_embedded_planes_pods_carry_it_in_a_variable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
