/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Fuzzes what kube reads from outside: lines of watches, pages of lists, plugin output, headers and
 * kubeconfig files. Accepted input must give a complete result. */

#include "base/mem.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "kube/config_internal.h"
#include "kube/kube_internal.h"
#include "kube/json_split_internal.h"
#include "store/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void read_lines(const char *text, size_t len)
{
	while (len > 0) {
		const char *end = memchr(text, '\n', len);
		size_t line_len = end ? (size_t)(end - text) : len;
		enum hf_kube_line kind;
		struct hf_kube_failure failure;
		struct hf_event event;
		struct hf_error err;

		if (hf_kube_line_read(text, line_len, &kind, &event, &failure, &err) != 0) {
			hf_assert(err.code < 0 && err.text[0] != '\0');
		} else if (kind == HF_KUBE_LINE_EVENT) {
			hf_assert(event.object && event.resource_version[0] != '\0');
			hf_assert(event.type == HF_EVENT_BOOKMARK ||
				  hf_doc_name(event.object)[0] != '\0');
			hf_doc_unref(event.object);
		} else if (kind == HF_KUBE_LINE_ERROR) {
			hf_assert(failure.err.code < 0 && failure.retry_after >= 0);
		}
		if (!end)
			return;
		text += line_len + 1;
		len -= line_len + 1;
	}
}

static void read_list(const char *text, size_t len)
{
	struct hf_kube_list list;
	struct hf_error err;

	if (hf_kube_list_read(text, len, &hf_pods, &list, &err) != 0)
		return;
	for (size_t i = 0; i < list.len; i++)
		(void)hf_doc_name(list.items[i]);
	hf_assert(list.remaining >= -1);
	hf_kube_list_release(&list);
}

static void read_answer(const char *text, size_t len)
{
	struct hf_kube_exec_answer answer;
	struct hf_error err;

	if (hf_kube_exec_answer_read(text, len, "client.authentication.k8s.io/v1", &answer, &err) !=
	    0)
		return;
	hf_assert(answer.token[0] != '\0' || answer.cert_pem[0] != '\0');
	hf_assert((answer.cert_pem[0] == '\0') == (answer.key_pem[0] == '\0'));
	hf_kube_exec_answer_release(&answer);
}

static void read_headers(const char *text)
{
	char *warning = NULL;
	char host[64], port[8];
	hf_time span = hf_kube_retry_after_parse(text, 0);

	hf_assert(span >= 0 && span <= HF_DAY);
	if (hf_kube_warning_parse(text, &warning))
		free(warning);
	if (hf_kube_url_host(text, host, sizeof(host), port))
		hf_assert(host[0] != '\0' && port[0] != '\0');
	free(hf_kube_proxy_url(text));
	free(hf_kube_proxy_choose("https://10.0.0.1:6443",
				  &(struct hf_kube_proxy_env){.https = "p", .no_proxy = text}));
}

static void read_config(const char *text, size_t len)
{
	static int fd = -1;
	static char path[32];
	struct hf_kube_config config;
	struct hf_error err;

	if (fd < 0) {
		fd = memfd_create("kubeconfig", MFD_CLOEXEC);
		hf_assert(fd >= 0);
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	hf_assert(ftruncate(fd, 0) == 0 && pwrite(fd, text, len, 0) == (ssize_t)len);
	if (hf_kube_config_read(path, NULL, &config, &err) != 0) {
		hf_assert(err.code < 0 && strstr(err.text, "kubeconfig"));
		return;
	}
	hf_assert(config.server[0] != '\0' && config.ns[0] != '\0');
	hf_assert(!config.insecure || config.warning);
	hf_kube_config_release(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	HF_AUTOFREE char *text = hf_xstrndup((const char *)bytes, len);

	read_lines((const char *)bytes, len);
	read_list((const char *)bytes, len);
	read_answer((const char *)bytes, len);
	read_headers(text);
	read_config((const char *)bytes, len);
	return 0;
}
