/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The CSI driver with mounts that are only noted. ./dev conformance inject has a real kubelet. */
#include "agent/csi_driver.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/wire.h"
#include "harness/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
	struct hf_loop *loop;
	struct hf_csi_driver *driver;
	char dir[64];
	char mounted[512], unmounted[512];
	int mounts, fails;
	char registered[64];
	struct hf_strbuf message;
	struct hf_error err;
} t;

static int note_mount(const char *folder, const char *target)
{
	assert_non_null(strstr(folder, "/run"));
	t.mounts++;
	snprintf(t.mounted, sizeof(t.mounted), "%s", target);
	return t.fails;
}

static int note_unmount(const char *target)
{
	snprintf(t.unmounted, sizeof(t.unmounted), "%s", target);
	return t.fails;
}

static void on_registered(void *arg HF_UNUSED, const char *error)
{
	snprintf(t.registered, sizeof(t.registered), "%s", error != NULL ? error : "registered");
}

static void on_trouble(void *arg HF_UNUSED, const char *why)
{
	assert_null(why);
}

static int set_up(void **state HF_UNUSED)
{
	struct hf_error err;

	memset(&t, 0, sizeof(t));
	snprintf(t.dir, sizeof(t.dir), "/tmp/holdfast-csi-XXXXXX");
	assert_non_null(mkdtemp(t.dir));
	HF_AUTOFREE char *run = hf_xasprintf("%s/run", t.dir);
	HF_AUTOFREE char *volume = hf_xasprintf("%s/pods/uid/volumes/v", t.dir);
	assert_ok(hf_fs_mkdirs(run, 0700, &err), &err);
	assert_ok(hf_fs_mkdirs(volume, 0700, &err), &err);
	assert_ok(hf_loop_create(&t.loop, &err), &err);
	hf_strbuf_init(&t.message, 4096);
	assert_ok(hf_csi_driver_create(&(struct hf_csi_driver_options){.loop = t.loop,
								       .kubelet_dir = t.dir,
								       .folder = run,
								       .node = "n1",
								       .mount = note_mount,
								       .unmount = note_unmount,
								       .registered = on_registered,
								       .trouble = on_trouble},
				       &t.driver, &err),
		  &err);
	return 0;
}

static int tear_down(void **state HF_UNUSED)
{
	struct hf_error err;

	hf_csi_driver_destroy(t.driver);
	hf_loop_destroy(t.loop);
	hf_strbuf_release(&t.message);
	assert_ok(hf_fs_remove_tree(t.dir, &err), &err);
	return 0;
}

static int ask_raw(const char *method, const void *bytes, size_t len)
{
	const struct hf_grpc_asked asked = {.method = method, .message = bytes, .message_len = len};

	hf_strbuf_consume(&t.message, t.message.len);
	return hf_csi_driver_answer(t.driver, &asked, &t.message, &t.err);
}

/* A request with one text. */
static int ask(const char *method, uint32_t field, const char *text)
{
	HF_AUTO_STRBUF message = HF_STRBUF_INIT(4096);

	hf_wire_add_text(&message, field, text);
	return ask_raw(method, message.data, message.len);
}

static const char *find_text(uint32_t number)
{
	static char text[512];
	struct hf_wire in = {.at = (const unsigned char *)t.message.data,
			     .end = (const unsigned char *)t.message.data + t.message.len};
	struct hf_wire_field field;

	while (in.at < in.end && hf_wire_next(&in, &field) == HF_WIRE_OK)
		if (field.number == number) {
			snprintf(text, sizeof(text), "%.*s",
				 (int)(field.bytes.end - field.bytes.at),
				 (const char *)field.bytes.at);
			return text;
		}
	return "";
}

static void the_kubelet_finds_the_driver(void **state HF_UNUSED)
{
	HF_AUTOFREE char *endpoint = hf_xasprintf("%s/plugins/exec.holdfast.dev/csi.sock", t.dir);
	HF_AUTOFREE char *registration =
		hf_xasprintf("%s/plugins_registry/exec.holdfast.dev-reg.sock", t.dir);
	struct stat st;

	assert_int_equal(stat(endpoint, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(registration, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(ask_raw("/pluginregistration.Registration/GetInfo", "", 0), HF_GRPC_OK);
	assert_string_equal(find_text(1), "CSIPlugin");
	assert_string_equal(find_text(2), "exec.holdfast.dev");
	assert_string_equal(find_text(3), endpoint);
	assert_string_equal(find_text(4), "1.0.0");
	assert_int_equal(
		ask_raw("/pluginregistration.Registration/NotifyRegistrationStatus", "\x08\x01", 2),
		HF_GRPC_OK);
	assert_string_equal(t.registered, "registered");
	assert_int_equal(
		ask("/pluginregistration.Registration/NotifyRegistrationStatus", 2, "no room"),
		HF_GRPC_OK);
	assert_string_equal(t.registered, "no room");
}

static void it_says_who_and_where_it_is(void **state HF_UNUSED)
{
	assert_int_equal(ask_raw("/csi.v1.Identity/GetPluginInfo", "", 0), HF_GRPC_OK);
	assert_string_equal(find_text(1), "exec.holdfast.dev");
	assert_int_equal(ask_raw("/csi.v1.Identity/Probe", "", 0), HF_GRPC_OK);
	assert_int_equal(t.message.len, 4);
	assert_memory_equal(t.message.data, "\x0a\x02\x08\x01", 4);
	assert_int_equal(ask_raw("/csi.v1.Node/NodeGetInfo", "", 0), HF_GRPC_OK);
	assert_string_equal(find_text(1), "n1");
	assert_int_equal(ask_raw("/csi.v1.Node/NodeGetCapabilities", "", 0), HF_GRPC_OK);
	assert_int_equal(t.message.len, 0);
	assert_int_equal(ask_raw("/csi.v1.Node/NodeStageVolume", "", 0), HF_GRPC_UNIMPLEMENTED);
	assert_int_equal(ask_raw("/csi.v1.Controller/CreateVolume", "", 0), HF_GRPC_UNIMPLEMENTED);
}

static void a_volume_is_a_mount_in_the_folder_of_the_pod(void **state HF_UNUSED)
{
	HF_AUTOFREE char *target = hf_xasprintf("%s/pods/uid/volumes/v/mount", t.dir);
	struct stat st;

	assert_int_equal(ask("/csi.v1.Node/NodePublishVolume", 4, target), HF_GRPC_OK);
	assert_string_equal(t.mounted, target);
	assert_int_equal(stat(target, &st), 0);
	/* The kubelet repeats the call. */
	assert_int_equal(ask("/csi.v1.Node/NodePublishVolume", 4, target), HF_GRPC_OK);
	assert_int_equal(ask("/csi.v1.Node/NodeUnpublishVolume", 2, target), HF_GRPC_OK);
	assert_string_equal(t.unmounted, target);
	assert_int_equal(stat(target, &st), -1);
	assert_int_equal(ask("/csi.v1.Node/NodeUnpublishVolume", 2, target), HF_GRPC_OK);
}

static void a_mount_that_fails_is_an_error_with_its_reason(void **state HF_UNUSED)
{
	HF_AUTOFREE char *target = hf_xasprintf("%s/pods/uid/volumes/v/mount", t.dir);

	t.fails = EPERM;
	assert_int_equal(ask("/csi.v1.Node/NodePublishVolume", 4, target), HF_GRPC_INTERNAL);
	assert_non_null(strstr(t.err.text, "cannot mount the agent's folder at"));
	assert_non_null(strstr(t.err.text, "Operation not permitted"));
	assert_int_equal(ask("/csi.v1.Node/NodeUnpublishVolume", 2, target), HF_GRPC_INTERNAL);
}

static void only_places_of_pods_are_mounted_at(void **state HF_UNUSED)
{
	static const char *const places[] = {
		"/etc/mount",
		"%s/pods/../../etc/mount",
		"%s/pods/uid/../uid/mount",
		"%s/pods/./uid/mount",
		"%s/pods",
		"%s/pods/uid/volumes/v",
		"%s/podsx/uid/mount",
		"mount",
		"",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(places); i++) {
		const char *rest = strncmp(places[i], "%s", 2) == 0 ? places[i] + 2 : NULL;
		HF_AUTOFREE char *place =
			rest != NULL ? hf_xasprintf("%s%s", t.dir, rest) : hf_xstrdup(places[i]);

		assert_int_equal(ask("/csi.v1.Node/NodePublishVolume", 4, place),
				 HF_GRPC_INVALID_ARGUMENT);
		assert_int_equal(ask("/csi.v1.Node/NodeUnpublishVolume", 2, place),
				 HF_GRPC_INVALID_ARGUMENT);
	}
	assert_int_equal(ask_raw("/csi.v1.Node/NodePublishVolume", "\x22\x7f/x", 4),
			 HF_GRPC_INVALID_ARGUMENT);
	assert_int_equal(ask_raw("/csi.v1.Node/NodePublishVolume", "\x22\x02/\0", 4),
			 HF_GRPC_INVALID_ARGUMENT);
	assert_int_equal(t.mounts, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_kubelet_finds_the_driver, set_up, tear_down),
		cmocka_unit_test_setup_teardown(it_says_who_and_where_it_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_volume_is_a_mount_in_the_folder_of_the_pod,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_mount_that_fails_is_an_error_with_its_reason,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_places_of_pods_are_mounted_at, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
