/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_CHECK_INTERNAL_H
#define HF_CLI_CHECK_INTERNAL_H

#include "base/arena.h"
#include "base/map.h"
#include "base/time.h"
#include "base/vec.h"
#include "cli/request.h"

/*
 * holdfast check: facts about a cluster, and the lines that the rules make of them.
 *
 * check_fetch.c and check_rights.c send the requests and fill the facts. The rules (check_server.c,
 * check_others.c, check_install.c, check_health.c, check_migrate.c) are pure: the same facts give the same
 * lines.
 */

/* Where the objects come from. One source may be filled by several requests. */
enum hf_check_source {
	HF_CHECK_CRDS,        /* those of jobs, of Holdfast, of Kueue and of gang schedulers */
	HF_CHECK_DEPLOYMENTS, /* those of Holdfast and of training-operator */
	HF_CHECK_PODS,        /* of operators and agents, and pending pods of jobs */
	HF_CHECK_LEASES,      /* of the nodes and of leader election */
	HF_CHECK_NODES,
	HF_CHECK_WEBHOOKS,  /* validating and mutating */
	HF_CHECK_ENDPOINTS, /* EndpointSlices of the Services of webhooks that refuse by default */
	HF_CHECK_POLICIES,
	HF_CHECK_BINDINGS,
	HF_CHECK_CONFIGMAPS, /* Kueue's configuration */
	HF_CHECK_DEVICEHEALTHS,
	HF_CHECK_HEALTHPOLICIES,
	HF_CHECK_REMEDIATIONS,
	HF_CHECK_ROLLOUTS,
	HF_CHECK_JOBS, /* only for migrate */
	HF_CHECK_SOURCES,
};

struct hf_check_list {
	int code;      /* 0, or the HF_E_* of the first request that failed */
	char why[256]; /* why the request failed; "": it did not */
	struct hf_doc **items;
	size_t n_items, n_allocated;
	struct hf_map *by_name; /* the objects by name; of two with one name, the first */
};

/* Whose rights. */
enum hf_check_who {
	HF_CHECK_INSTALLER, /* the caller, to install Holdfast */
	HF_CHECK_USER,      /* the caller, to use jobs in its namespace */
	/* the operator's account, or the caller with --as-operator: for jobs, for Remediations, for DeviceRollouts */
	HF_CHECK_OPERATOR,
	HF_CHECK_MENDER,
	HF_CHECK_ROLLER,
};
enum hf_check_answer { HF_CHECK_ALLOWED, HF_CHECK_DENIED, HF_CHECK_UNKNOWN };

struct hf_check_right {
	enum hf_check_who who;
	enum hf_check_answer answer;
	const char *verb, *group, *resource; /* resource: "pods" or "pods/eviction" */
	const char *ns, *name;               /* NULL: all namespaces, all names */
};
#define HF_CHECK_RIGHTS_MAX 1024

struct hf_check_facts {
	bool migrate;     /* `check migrate` */
	bool as_operator; /* --as-operator */
	hf_time now;      /* by the server's clock */
	/* local clock minus the server's clock, exact to a second; HF_TIME_NONE: unknown */
	hf_time skew;
	char *version;  /* gitVersion of the API server; NULL: unknown */
	const char *ns; /* namespace of the caller's jobs */
	struct hf_check_list lists[HF_CHECK_SOURCES];
	HF_VEC(struct hf_check_right) rights;
	struct hf_arena *arena; /* the texts of the rights */
};
void hf_check_facts_init(struct hf_check_facts *facts);
void hf_check_facts_release(struct hf_check_facts *facts);
/* Adds an object to a list; the list takes the reference over. */
void hf_check_list_add(struct hf_check_list *list, struct hf_doc *doc);

/* ---- lines --------------------------------------------------------------------------------------- */

enum hf_check_result { HF_CHECK_OK, HF_CHECK_WARN, HF_CHECK_FAIL };

struct hf_check_line {
	enum hf_check_result result;
	const char *check; /* name of the check: "api-server" */
	char *found;
	char *action; /* what to do: a command or a sentence; NULL: nothing */
};
#define HF_CHECK_LINES_MAX 256
struct hf_check_lines {
	HF_VEC(struct hf_check_line) list;
};
void hf_check_lines_init(struct hf_check_lines *lines);
void hf_check_lines_release(struct hf_check_lines *lines);
/* Adds a line. action is copied; NULL: there is nothing to do. */
void hf_check_add(struct hf_check_lines *lines, enum hf_check_result result, const char *check,
		  const char *action, const char *fmt, ...) HF_PRINTF(5, 6);

/* A list of names in a sentence: "a, b, c and 12 more". */
struct hf_check_names {
	struct hf_strbuf text;
	size_t len;
};
#define HF_CHECK_NAMES_SHOWN 4
#define HF_CHECK_NAMES_INIT                                                                        \
	{                                                                                          \
		.text = HF_STRBUF_INIT(4096)                                                       \
	}
void hf_check_name(struct hf_check_names *names, const char *fmt, ...) HF_PRINTF(2, 3);
const char *hf_check_names_end(struct hf_check_names *names);
void hf_check_names_release(struct hf_check_names *names);
#define HF_AUTO_CHECK_NAMES HF_CLEANUP(hf_check_names_release) struct hf_check_names

/* ---- what several rules ask of the facts ------------------------------------------------------------ */

/* True if the list was read; else adds the line "unknown: …". */
bool hf_check_known(const struct hf_check_facts *facts, enum hf_check_source source,
		    const char *check, struct hf_check_lines *lines);
/* Number of objects in a list, and one of them. */
size_t hf_check_len(const struct hf_check_facts *facts, enum hf_check_source source);
const struct hf_json *hf_check_item(const struct hf_check_facts *facts, enum hf_check_source source,
				    size_t i);
/* The object of a list with this name, in any namespace; NULL: none. */
const struct hf_json *hf_check_find(const struct hf_check_facts *facts, enum hf_check_source source,
				    const char *name);
/* The CRD of a kind; NULL: none. */
const struct hf_json *hf_check_find_crd(const struct hf_check_facts *facts, const char *plural,
					const char *group);

const char *hf_check_name_of(const struct hf_json *object); /* "" without a name */
const char *hf_check_ns_of(const struct hf_json *object);   /* "" without a namespace */
/* Value of a label; "" without the label. */
const char *hf_check_label(const struct hf_json *object, const char *key);

/* The Deployment of Holdfast's operator; NULL: it is not installed. */
const struct hf_json *hf_check_operator(const struct hf_check_facts *facts);
/* Counts training-operator's Pods, and sets *ret_ready to the number of those that are ready. */
size_t hf_check_count_old(const struct hf_check_facts *facts, size_t *ret_ready);
/* The namespace of training-operator; NULL: neither a Pod nor a Deployment of it exists. */
const char *hf_check_old_ns(const struct hf_check_facts *facts);
/* True if the webhook's configuration is that of training-operator. */
bool hf_check_is_old_webhook(const struct hf_json *configuration);
bool hf_check_has_old_webhook(const struct hf_check_facts *facts);
/* True if a CRD lacks status.recovery, as upstream's does. */
bool hf_check_is_narrow(const struct hf_json *crd);
#define HF_CHECK_LABEL_NAME "app.kubernetes.io/name"
#define HF_CHECK_LABEL_COMPONENT "app.kubernetes.io/component"
#define HF_CHECK_OLD_OPERATOR "training-operator"
#define HF_CHECK_OLD_LABEL "control-plane"
#define HF_CHECK_OLD_LABEL_VALUE "kubeflow-training-operator"
#define HF_CHECK_NODE_LEASES_NS "kube-node-lease"

/* Something in the cluster asks for acts on nodes: a HealthPolicy that may order them, or a Remediation that is not at
 * an end. */
bool hf_check_wants_acts(const struct hf_check_facts *facts);
/* A DeviceRollout is not at an end. */
bool hf_check_wants_rollouts(const struct hf_check_facts *facts);

/* ---- rules --------------------------------------------------------------------------------------------- */

typedef void (*hf_check_rule)(const struct hf_check_facts *facts, struct hf_check_lines *lines);
void hf_check_api_server(const struct hf_check_facts *facts, struct hf_check_lines *lines);
void hf_check_clocks(const struct hf_check_facts *facts, struct hf_check_lines *lines);
void hf_check_rights(const struct hf_check_facts *facts, struct hf_check_lines *lines);
void hf_check_operators(const struct hf_check_facts *facts, struct hf_check_lines *lines);
void hf_check_webhooks(const struct hf_check_facts *facts, struct hf_check_lines *lines);
void hf_check_crds(const struct hf_check_facts *facts, struct hf_check_lines *lines);
void hf_check_policies(const struct hf_check_facts *facts, struct hf_check_lines *lines);
void hf_check_kueue(const struct hf_check_facts *facts, struct hf_check_lines *lines);
void hf_check_gang(const struct hf_check_facts *facts, struct hf_check_lines *lines);
void hf_check_agents(const struct hf_check_facts *facts, struct hf_check_lines *lines);
void hf_check_images(const struct hf_check_facts *facts, struct hf_check_lines *lines);
void hf_check_drivers(const struct hf_check_facts *facts, struct hf_check_lines *lines);
void hf_check_rollouts(const struct hf_check_facts *facts, struct hf_check_lines *lines);
void hf_check_remediations(const struct hf_check_facts *facts, struct hf_check_lines *lines);
void hf_check_owners(const struct hf_check_facts *facts, struct hf_check_lines *lines);
void hf_check_jobs(const struct hf_check_facts *facts, struct hf_check_lines *lines);
/* All rules, in the order of the output. */
void hf_check_decide(const struct hf_check_facts *facts, struct hf_check_lines *lines);

/* The steps of the migration to Holdfast. */
struct hf_check_step {
	const char *title;
	char *command;
	bool done;
};
#define HF_CHECK_STEPS 6
void hf_check_plan(const struct hf_check_facts *facts,
		   struct hf_check_step ret_steps[HF_CHECK_STEPS]);

/* ---- requests ------------------------------------------------------------------------------------------ */

/* Reads all facts. Returns the HF_E_* of the first request if the server cannot be reached or rejects the
 * credentials; every other failure stays in the facts. */
int hf_check_fetch(struct hf_cli *cli, struct hf_check_facts *facts, struct hf_error *err)
	HF_MUST_CHECK;
/* Asks the server which rights the caller and the operator's account have. */
void hf_check_ask_rights(struct hf_cli *cli, struct hf_check_facts *facts);

#endif
