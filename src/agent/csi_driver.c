/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/csi_driver.h"

#include "agent/named_socket.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/wire.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MESSAGE_BYTES_MAX ((size_t)1024)
#define SERVICE_NODE "/csi.v1.Node/"
#define SERVICE_IDENTITY "/csi.v1.Identity/"
#define SERVICE_REGISTRATION "/pluginregistration.Registration/"

struct hf_csi_driver {
	struct hf_csi_driver_options options;
	char *folder, *pods, *endpoint;
	struct hf_named_socket *driver_socket, *registration_socket;
	struct hf_grpc_service *service;
};

/* ---- mounts ---------------------------------------------------------------------------------------- */

static int mount_folder(const char *folder, const char *target)
{
	/* A bind mount takes its flags by a second call. */
	if (mount(folder, target, NULL, MS_BIND, NULL) != 0)
		return errno;
	if (mount(NULL, target, NULL,
		  MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0)
		return 0;
	int err = errno;

	(void)umount2(target, MNT_DETACH | UMOUNT_NOFOLLOW);
	return err;
}

static int unmount_folder(const char *target)
{
	if (umount2(target, UMOUNT_NOFOLLOW) == 0)
		return 0;
	/* It is no mount: unmounted before. */
	return errno == EINVAL || errno == ENOENT ? 0 : errno;
}

/* Folders on different mounts, or the folder and its parent, differ in their device or are the same folder. */
static bool is_mounted(const struct hf_csi_driver *driver, const char *target)
{
	struct stat here, folder;

	return stat(target, &here) == 0 && stat(driver->folder, &folder) == 0 &&
	       here.st_dev == folder.st_dev && here.st_ino == folder.st_ino;
}

/* The kubelet's request is checked all the same: this process is root on the node. */
static bool is_target(const struct hf_csi_driver *driver, const char *target)
{
	size_t len = strlen(driver->pods);

	return strlen(target) < PATH_MAX && hf_str_has_prefix(target, driver->pods) &&
	       target[len] == '/' && strstr(target, "/../") == NULL &&
	       strstr(target, "/./") == NULL && hf_str_has_suffix(target, "/mount");
}

/* ---- requests -------------------------------------------------------------------------------------- */

/* A text field of a message, copied; NULL: absent, or the message is broken. */
static char *find_text(const struct hf_grpc_asked *asked, uint32_t number)
{
	struct hf_wire in = {.at = asked->message, .end = asked->message + asked->message_len};
	struct hf_wire_field field;

	while (in.at < in.end) {
		if (hf_wire_next(&in, &field) != HF_WIRE_OK)
			return NULL;
		if (field.number == number && field.type == HF_WIRE_BYTES &&
		    memchr(field.bytes.at, '\0', (size_t)(field.bytes.end - field.bytes.at)) ==
			    NULL)
			return hf_xstrndup((const char *)field.bytes.at,
					   (size_t)(field.bytes.end - field.bytes.at));
	}
	return NULL;
}

static uint64_t find_number(const struct hf_grpc_asked *asked, uint32_t number)
{
	struct hf_wire in = {.at = asked->message, .end = asked->message + asked->message_len};
	struct hf_wire_field field;

	while (in.at < in.end && hf_wire_next(&in, &field) == HF_WIRE_OK)
		if (field.number == number && field.type == HF_WIRE_VARINT)
			return field.value;
	return 0;
}

static int refuse_target(const char *target, struct hf_error *err)
{
	(void)hf_error_set(err, HF_E_INVALID, "'%.200s' is no place for a volume of a pod",
			   hf_str_or(target, ""));
	return HF_GRPC_INVALID_ARGUMENT;
}

static int fail_at(const char *what, const char *target, int number, struct hf_error *err)
{
	(void)hf_error_errno(err, number, "cannot %s '%s'", what, target);
	return HF_GRPC_INTERNAL;
}

enum { PUBLISH_TARGET = 4, UNPUBLISH_TARGET = 2 };

/* The kubelet repeats a call until the answer arrives, so the target may be mounted already. */
static int publish_volume(struct hf_csi_driver *driver, const struct hf_grpc_asked *asked,
			  struct hf_error *err)
{
	HF_AUTOFREE char *target = find_text(asked, PUBLISH_TARGET);
	int number;

	if (target == NULL || !is_target(driver, target))
		return refuse_target(target, err);
	if (mkdir(target, 0750) != 0 && errno != EEXIST)
		return fail_at("make the folder", target, errno, err);
	if (is_mounted(driver, target))
		return HF_GRPC_OK;
	number = driver->options.mount(driver->folder, target);
	return number == 0 ? HF_GRPC_OK
			   : fail_at("mount the agent's folder at", target, number, err);
}

static int unpublish_volume(struct hf_csi_driver *driver, const struct hf_grpc_asked *asked,
			    struct hf_error *err)
{
	HF_AUTOFREE char *target = find_text(asked, UNPUBLISH_TARGET);
	int number;

	if (target == NULL || !is_target(driver, target))
		return refuse_target(target, err);
	number = driver->options.unmount(target);
	if (number != 0)
		return fail_at("unmount", target, number, err);
	/* rmdir fails if the agent's folder is still mounted, or if another program wrote files
	 * here. */
	if (rmdir(target) != 0 && errno != ENOENT)
		return fail_at("remove", target, errno, err);
	return HF_GRPC_OK;
}

/* ---- answers --------------------------------------------------------------------------------------- */

static int answer_node(struct hf_csi_driver *driver, const char *method,
		       const struct hf_grpc_asked *asked, struct hf_strbuf *ret_message,
		       struct hf_error *err)
{
	if (hf_streq(method, "NodePublishVolume"))
		return publish_volume(driver, asked, err);
	if (hf_streq(method, "NodeUnpublishVolume"))
		return unpublish_volume(driver, asked, err);
	if (hf_streq(method, "NodeGetInfo")) {
		hf_wire_add_text(ret_message, 1, driver->options.node);
		return HF_GRPC_OK;
	}
	/* None: an empty answer. */
	return hf_streq(method, "NodeGetCapabilities") ? HF_GRPC_OK : HF_GRPC_UNIMPLEMENTED;
}

static int answer_identity(const char *method, struct hf_strbuf *ret_message)
{
	HF_AUTO_STRBUF ready = HF_STRBUF_INIT(MESSAGE_BYTES_MAX);

	if (hf_streq(method, "GetPluginInfo")) {
		hf_wire_add_text(ret_message, 1, HF_CSI_DRIVER_NAME);
		hf_wire_add_text(ret_message, 2, HF_VERSION);
		return HF_GRPC_OK;
	}
	if (hf_streq(method, "Probe")) {
		hf_wire_add_number(&ready, 1, 1);
		hf_wire_add_message(ret_message, 1, &ready);
		return HF_GRPC_OK;
	}
	return hf_streq(method, "GetPluginCapabilities") ? HF_GRPC_OK : HF_GRPC_UNIMPLEMENTED;
}

static int answer_registration(struct hf_csi_driver *driver, const char *method,
			       const struct hf_grpc_asked *asked, struct hf_strbuf *ret_message)
{
	if (hf_streq(method, "GetInfo")) {
		hf_wire_add_text(ret_message, 1, "CSIPlugin");
		hf_wire_add_text(ret_message, 2, HF_CSI_DRIVER_NAME);
		hf_wire_add_text(ret_message, 3, driver->endpoint);
		hf_wire_add_text(ret_message, 4, "1.0.0");
		return HF_GRPC_OK;
	}
	if (hf_streq(method, "NotifyRegistrationStatus")) {
		HF_AUTOFREE char *error = find_text(asked, 2);
		bool worked = find_number(asked, 1) != 0;

		driver->options.registered(driver->options.arg,
					   worked ? NULL : hf_str_or(error, "no reason"));
		return HF_GRPC_OK;
	}
	return HF_GRPC_UNIMPLEMENTED;
}

int hf_csi_driver_answer(void *arg, const struct hf_grpc_asked *asked,
			 struct hf_strbuf *ret_message, struct hf_error *err)
{
	struct hf_csi_driver *driver = arg;
	const char *method = asked->method;
	int status = HF_GRPC_UNIMPLEMENTED;

	if (hf_str_has_prefix(method, SERVICE_NODE))
		status =
			answer_node(driver, method + strlen(SERVICE_NODE), asked, ret_message, err);
	else if (hf_str_has_prefix(method, SERVICE_IDENTITY))
		status = answer_identity(method + strlen(SERVICE_IDENTITY), ret_message);
	else if (hf_str_has_prefix(method, SERVICE_REGISTRATION))
		status = answer_registration(driver, method + strlen(SERVICE_REGISTRATION), asked,
					     ret_message);
	if (status == HF_GRPC_UNIMPLEMENTED)
		(void)hf_error_set(err, HF_E_UNSUPPORTED, "there is no method %s", method);
	return status;
}

/* ---- life ------------------------------------------------------------------------------------------ */

static void on_connections(void *arg, int listener)
{
	const struct hf_csi_driver *driver = arg;

	hf_grpc_service_accept(driver->service, listener);
}

static void on_trouble(void *arg, const char *why)
{
	const struct hf_csi_driver *driver = arg;

	driver->options.trouble(driver->options.arg, why);
}

static int listen_at(struct hf_csi_driver *driver, const char *path,
		     struct hf_named_socket **ret_socket, struct hf_error *err)
{
	const struct hf_named_socket_options named = {.loop = driver->options.loop,
						      .path = path,
						      .type = SOCK_STREAM,
						      .look_every = driver->options.look_every,
						      .mode = 0600,
						      .ready = on_connections,
						      .trouble = on_trouble,
						      .arg = driver};

	return hf_named_socket_create(&named, ret_socket, err);
}

static int open_sockets(struct hf_csi_driver *driver, struct hf_error *err)
{
	const char *dir = driver->options.kubelet_dir;
	HF_AUTOFREE char *plugin = hf_xasprintf("%s/plugins/" HF_CSI_DRIVER_NAME, dir);
	HF_AUTOFREE char *registry = hf_xasprintf("%s/plugins_registry", dir);
	HF_AUTOFREE char *registration =
		hf_xasprintf("%s/" HF_CSI_DRIVER_NAME "-reg.sock", registry);
	int rc = hf_fs_mkdirs(plugin, 0750, err);

	if (rc == 0)
		rc = hf_fs_mkdirs(registry, 0750, err);
	if (rc == 0)
		rc = listen_at(driver, driver->endpoint, &driver->driver_socket, err);
	/* The driver's socket comes first: the kubelet calls the driver as soon as it finds this
	 * socket. */
	if (rc == 0)
		rc = listen_at(driver, registration, &driver->registration_socket, err);
	return rc;
}

int hf_csi_driver_create(const struct hf_csi_driver_options *options,
			 struct hf_csi_driver **ret_driver, struct hf_error *err)
{
	struct hf_csi_driver *driver = hf_xcalloc(1, sizeof(*driver));
	int rc;

	driver->options = *options;
	if (options->mount == NULL)
		driver->options.mount = mount_folder;
	if (options->unmount == NULL)
		driver->options.unmount = unmount_folder;
	driver->folder = hf_xstrdup(options->folder);
	driver->pods = hf_xasprintf("%s/pods", options->kubelet_dir);
	driver->endpoint =
		hf_xasprintf("%s/plugins/" HF_CSI_DRIVER_NAME "/csi.sock", options->kubelet_dir);
	driver->service = hf_grpc_service_create(options->loop, hf_csi_driver_answer, driver);
	rc = open_sockets(driver, err);
	if (rc != 0) {
		hf_csi_driver_destroy(driver);
		return rc;
	}
	driver->options.kubelet_dir = NULL;
	*ret_driver = driver;
	return 0;
}

struct hf_csi_driver *hf_csi_driver_destroy(struct hf_csi_driver *driver)
{
	if (driver == NULL)
		return NULL;
	hf_named_socket_destroy(driver->registration_socket);
	hf_named_socket_destroy(driver->driver_socket);
	hf_grpc_service_destroy(driver->service);
	free(driver->folder);
	free(driver->pods);
	free(driver->endpoint);
	free(driver);
	return NULL;
}
