/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_LOCAL_PAGE_H
#define HF_APP_LOCAL_PAGE_H

#include "cli/cli.h"

/* The flags of the page for the verbs of one machine: --page, and --page-listen ADDRESS:PORT. */
#define HF_LOCAL_PAGE_DEFAULT "127.0.0.1:0"
#define HF_LOCAL_PAGE_FLAGS                                                                        \
	{"page", 0, NULL, "serve a page with jobs and nodes, for a browser on this machine",       \
	 NULL},                                                                                    \
	{                                                                                          \
		"page-listen", 0, "ADDRESS:PORT",                                                  \
			"address of the page, on loopback; port 0: any free port; none: no page",  \
			"with --page " HF_LOCAL_PAGE_DEFAULT                                       \
	}

/* The address of the page; NULL: no page. */
const char *hf_local_page_address(const struct hf_cli *cli);
/* 0, or an exit code after a message: the address is not one of loopback. */
int hf_local_page_check(struct hf_cli *cli);

#endif
