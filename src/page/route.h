/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_ROUTE_H
#define HF_PAGE_ROUTE_H

#include "base/compiler.h"

#include <stdbool.h>

HF_BEGIN_DECLS

/* What the path of a request names. Pure: any bytes may come. */

enum hf_page_route {
	HF_PAGE_NOTHING, /* no such path: 404 */
	HF_PAGE_INDEX,   /* /, /j/NS/KIND/NAME, /nodes, /n/NAME, /recovery: one document */
	HF_PAGE_ASSET,   /* /assets/… */
	HF_PAGE_HEALTH,  /* /healthz: needs no session */
	HF_PAGE_SESSION,
	HF_PAGE_LOGIN,
	HF_PAGE_LOGOUT,
	HF_PAGE_JOBS,
	HF_PAGE_JOB,
	HF_PAGE_JOB_YAML,
	HF_PAGE_JOB_RANKS,
	HF_PAGE_JOB_LOG,
	HF_PAGE_JOB_ACTION,
	HF_PAGE_NODES,
	HF_PAGE_NODE,
	HF_PAGE_RECOVERY,
	HF_PAGE_EVENTS,
};

#define HF_PAGE_NS_MAX 64    /* bytes of a namespace with its NUL */
#define HF_PAGE_KIND_MAX 32  /* bytes of a kind, such as "pytorchjobs" */
#define HF_PAGE_NAME_MAX 254 /* bytes of a name */

struct hf_page_place {
	enum hf_page_route route;
	/* of the job; name: also of the node; "": the route has none */
	char ns[HF_PAGE_NS_MAX], kind[HF_PAGE_KIND_MAX], name[HF_PAGE_NAME_MAX];
};

/* path: percent-decoded, begins with '/'. A name that Kubernetes would refuse gives
 * HF_PAGE_NOTHING. */
void hf_page_route(const char *path, struct hf_page_place *ret_place);
/* True if the route changes something, so that it needs POST and a checked Origin. */
bool hf_page_route_is_post(enum hf_page_route route);

HF_END_DECLS

#endif
