/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/ascii.h"
#include "base/str.h"

#include <inttypes.h>
#include <string.h>

/*
 * Translates the handler of a probe or hook (exec, httpGet, tcpSocket, sleep) into a command for
 * the pod's shim.
 */
#define HEADERS_MAX 64

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

/* Returns the number of a port, which may be the name of one of the container's ports. */
static const char *port_of(const struct hf_json *container, const struct hf_json *port,
			   struct hf_arena *arena)
{
	const struct hf_json *ports = hf_json_get(container, "ports");
	const char *name = hf_json_str(port, NULL);
	int64_t number = hf_json_i64(port, -1);

	for (size_t i = 0; name && i < hf_json_len(ports); i++) {
		const struct hf_json *p = hf_json_item(ports, i);

		if (hf_streq(hf_json_path_str(p, "name", NULL), name))
			number = hf_json_i64(hf_json_get(p, "containerPort"), -1);
	}
	if (number < 1 || number > 65535)
		return NULL;
	return hf_arena_printf(arena, "%" PRId64, number);
}

static const char *pod_address(const struct hf_kubelet_pod *pod)
{
	return pod->config.host_network || !pod->config.ip ? HF_KUBELET_HOST_IP : pod->config.ip;
}

static bool is_host(const char *name)
{
	return hf_ascii_to_lower(name[0]) == 'h' && hf_streq(name + 1, "ost");
}

static bool add_headers(const struct hf_json *get, const char *host, struct hf_arena *arena,
			const char **argv, size_t *n)
{
	const struct hf_json *headers = hf_json_get(get, "httpHeaders");
	bool named = false;

	for (size_t i = 0; i < hf_json_len(headers) && i < HEADERS_MAX; i++) {
		const struct hf_json *h = hf_json_item(headers, i);
		const char *name = hf_str_or(hf_json_path_str(h, "name", NULL), "");
		const char *value = hf_str_or(hf_json_path_str(h, "value", NULL), "");

		if (!is_printable(name) || !is_printable(value))
			return false;
		named = named || is_host(name);
		argv[(*n)++] = hf_arena_printf(arena, "%s: %s", name, value);
	}
	if (!named)
		argv[(*n)++] = hf_arena_printf(arena, "Host: %s", host);
	argv[(*n)++] = "User-Agent: kube-probe/holdfast";
	argv[(*n)++] = "Accept: */*";
	return true;
}

static bool make_http(const struct hf_kubelet_pod *pod, const struct hf_json *container,
		      const struct hf_json *get, const char *timeout_s, struct hf_arena *arena,
		      struct hf_kubelet_handler *ret)
{
	const char **argv = HF_ARENA_ARRAY(arena, const char *, HEADERS_MAX + 10);
	const char *host = hf_json_path_str(get, "host", NULL);
	const char *path = hf_str_or(hf_json_path_str(get, "path", NULL), "/");
	const char *port = port_of(container, hf_json_get(get, "port"), arena);
	const char *at = hf_str_is_empty(host) ? pod_address(pod) : host;
	size_t n = 0;

	if (!port || !is_printable(path) || !is_printable(at) || strchr(path, ' '))
		return false;
	argv[n++] = "http";
	argv[n++] = timeout_s;
	argv[n++] = at;
	argv[n++] = port;
	argv[n++] = path[0] == '/' ? path : hf_arena_printf(arena, "/%s", path);
	ret->probe = true;
	ret->argv = argv;
	return add_headers(get, hf_arena_printf(arena, "%s:%s", at, port), arena, argv, &n);
}

static bool make_tcp(const struct hf_kubelet_pod *pod, const struct hf_json *container,
		     const struct hf_json *socket, const char *timeout_s, struct hf_arena *arena,
		     struct hf_kubelet_handler *ret)
{
	const char **argv = HF_ARENA_ARRAY(arena, const char *, 5);
	const char *host = hf_json_path_str(socket, "host", NULL);

	argv[0] = "tcp";
	argv[1] = timeout_s;
	argv[2] = hf_str_is_empty(host) ? pod_address(pod) : host;
	argv[3] = port_of(container, hf_json_get(socket, "port"), arena);
	ret->probe = true;
	ret->argv = argv;
	return argv[3] != NULL;
}

static bool make_exec(const struct hf_json *exec, struct hf_arena *arena,
		      struct hf_kubelet_handler *ret)
{
	const struct hf_json *command = hf_json_get(exec, "command");
	size_t n = hf_json_len(command);
	const char **argv = HF_ARENA_ARRAY(arena, const char *, n + 1);

	for (size_t i = 0; i < n; i++)
		argv[i] = hf_json_str(hf_json_item(command, i), "");
	ret->argv = argv;
	return n > 0;
}

bool hf_kubelet_handler_uses_tls(const struct hf_json *handler)
{
	return hf_streq(hf_json_path_str(handler, "httpGet", "scheme", NULL), "HTTPS");
}

bool hf_kubelet_handler_make(const struct hf_kubelet_pod *pod, const struct hf_json *container,
			     const struct hf_json *handler, int64_t timeout_s,
			     struct hf_arena *arena, struct hf_kubelet_handler *ret)
{
	const char *limit = hf_arena_printf(arena, "%" PRId64, timeout_s);
	const struct hf_json *one;

	*ret = (struct hf_kubelet_handler){0};
	if ((one = hf_json_get(handler, "exec")))
		return make_exec(one, arena, ret);
	if ((one = hf_json_get(handler, "httpGet")))
		return make_http(pod, container, one, limit, arena, ret);
	if ((one = hf_json_get(handler, "tcpSocket")))
		return make_tcp(pod, container, one, limit, arena, ret);
	if ((one = hf_json_get(handler, "sleep"))) {
		const char **argv = HF_ARENA_ARRAY(arena, const char *, 3);

		argv[0] = "sleep";
		argv[1] = hf_arena_printf(arena, "%" PRId64,
					  hf_json_i64(hf_json_get(one, "seconds"), 0));
		ret->argv = argv;
		return true;
	}
	return false;
}
