/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* look NVML-LIBRARY SYS PROC PODRESOURCES-SOCKET: prints the details of one look of the probes.  "" turns a
 * source off. */

#include "probes/nvml_child.h"
#include "probes/probe_once.h"

#include <stdio.h>
#include <string.h>

#define TIMEOUT (10 * HF_SECOND)

int main(int argc, char **argv)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_PROBE_ONCE_BYTES_MAX);
	struct hf_loop *loop = NULL;
	struct hf_probe_checks checks;
	struct hf_error err = {0};

	if (argc == 3 && strcmp(argv[1], "child") == 0)
		return hf_nvml_child_main(argv[2]);
	if (argc != 5 || hf_loop_create(&loop, &err) < 0) {
		fprintf(stderr, "usage: look NVML-LIBRARY SYS PROC PODRESOURCES-SOCKET %s\n",
			err.text);
		return 2;
	}
	const char *const child[] = {"/proc/self/exe", "child", argv[1], NULL};

	hf_probe_once(loop,
		      &(struct hf_probe_once_options){
			      .library = argv[1],
			      .child_argv = child,
			      .sys_root = argv[2],
			      .proc_root = argv[3],
			      .podresources = argv[4],
			      .timeout = TIMEOUT,
		      },
		      &checks, &sb);
	hf_loop_destroy(loop);
	fputs(sb.data, stdout);
	return 0;
}
