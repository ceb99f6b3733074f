/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The page's source of jobs: the caches of the operator in this process. */
#include "app/page_joint.h"

#include "app/operator_flags.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/look.h"

#include <stdlib.h>
#include <string.h>

struct hf_page_joint {
	struct hf_page_joint_options options;
	struct hf_page_source source;
	struct hf_page *page;
	char host[HF_HOST_BYTES_MAX];
};

/* ---- the source ------------------------------------------------------------------------------------------------- */

static struct hf_operator *operator_of(const struct hf_page_joint *joint)
{
	return joint->options.find_operator(joint->options.arg);
}

static bool is_ready(void *arg)
{
	const struct hf_operator *op = operator_of(arg);

	return op != NULL && hf_operator_synced(op);
}

static struct hf_page_job page_job(const struct hf_operator_job *job)
{
	return (struct hf_page_job){.framework = job->framework,
				    .ns = job->ns,
				    .name = job->name,
				    .uid = job->uid,
				    .doc = job->doc};
}

static void each_job(void *arg, hf_page_job_fn fn, void *fn_arg)
{
	const struct hf_operator *op = operator_of(arg);
	struct hf_operator_iterator it = {0};
	struct hf_operator_job found;

	while (op != NULL && hf_operator_next_job(op, &it, &found)) {
		struct hf_page_job job = page_job(&found);

		fn(fn_arg, &job);
	}
}

static bool find_job(void *arg, const struct hf_framework *framework, const char *ns,
		     const char *name, struct hf_page_job *ret_job)
{
	const struct hf_operator *op = operator_of(arg);
	const struct hf_job_ref ref = {framework, ns, name};
	struct hf_operator_job found;

	if (op == NULL || !hf_operator_find_job(op, &ref, &found))
		return false;
	*ret_job = page_job(&found);
	return true;
}

static size_t find_pods(void *arg, const struct hf_page_job *job, struct hf_arena *arena,
			const struct hf_pod **ret_pods)
{
	const struct hf_operator *op = operator_of(arg);

	*ret_pods = NULL;
	return op == NULL ? 0 : hf_operator_find_pods(op, job->uid, arena, ret_pods);
}

struct told {
	hf_page_job_fn fn;
	void *arg;
};

static void tell_job(void *arg, const struct hf_operator_job *found)
{
	const struct told *told = arg;
	struct hf_page_job job = page_job(found);

	told->fn(told->arg, &job);
}

static void jobs_on_node(void *arg, const char *node, hf_page_job_fn fn, void *fn_arg)
{
	const struct hf_operator *op = operator_of(arg);
	struct told told = {fn, fn_arg};

	if (op != NULL)
		hf_operator_each_job_on(op, node, tell_job, &told);
}

static int explain(void *arg, const struct hf_page_job *job, struct hf_arena *arena,
		   struct hf_plan *ret_plan, struct hf_error *err)
{
	struct hf_operator *op = operator_of(arg);
	const struct hf_job_ref ref = {job->framework, job->ns, job->name};
	struct hf_job_view *view = HF_ARENA_NEW(arena, struct hf_job_view);

	if (op == NULL)
		return hf_error_set(err, HF_E_UNAVAILABLE, "no operator runs in this process");
	return hf_operator_explain(op, &ref, arena, view, ret_plan, err);
}

/* ---- what the operator tells ---------------------------------------------------------------------------------------- */

void hf_page_joint_passed(struct hf_page_joint *joint, const struct hf_operator_pass *pass)
{
	HF_AUTOFREE char *key = NULL;

	if (joint == NULL || pass->plan == NULL || pass->gone || pass->job == NULL)
		return;
	key = hf_xasprintf("%s/%s/%s", pass->framework->plural, hf_doc_namespace(pass->job),
			   hf_doc_name(pass->job));
	hf_page_see_plan(joint->page, key, pass->plan);
}

void hf_page_joint_seen(struct hf_page_joint *joint, const char *key)
{
	if (joint != NULL)
		hf_page_see_job(joint->page, key);
}

void hf_page_joint_noted(struct hf_page_joint *joint, const struct hf_event_note *note, hf_time now)
{
	if (joint != NULL)
		hf_page_see_event(joint->page, note, now);
}

void hf_page_joint_changed(struct hf_page_joint *joint)
{
	if (joint != NULL)
		hf_page_see_all(joint->page);
}

/* ---- life ------------------------------------------------------------------------------------------------------------- */

/* Opens a store that has the caller's token and nothing of this process's own rights. */
static int open_store(void *arg, const char *token, struct hf_store **ret_store,
		      struct hf_error *err)
{
	const struct hf_page_joint *joint = arg;
	const struct hf_kube_config *kube = joint->options.kube;
	/* A copy that borrows: hf_kube_create_with copies what it needs. */
	const struct hf_kube_config config = {
		.server = kube->server,
		.ca_pem = kube->ca_pem,
		.ca_file = kube->ca_file,
		.token = (char *)(uintptr_t)token,
		.tls_server_name = kube->tls_server_name,
		.proxy_url = kube->proxy_url,
		.ns = kube->ns,
		.insecure = kube->insecure,
		.no_gzip = kube->no_gzip,
	};

	return hf_kube_create_with(joint->options.loop, &config, NULL, ret_store, err);
}

static int fill_hosts(const struct hf_page_joint *joint, struct hf_page_hosts *hosts,
		      struct hf_error *err)
{
	const char *const *names = joint->options.hosts;
	size_t len = 0;

	hosts->loopback = hf_page_is_loopback(joint->host);
	if (joint->host[0] != '\0' && !hosts->loopback)
		hosts->names[len++] = joint->host;
	for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
		if (len == HF_PAGE_HOSTS_MAX)
			return hf_error_set(err, HF_E_INVALID, "at most %d names of the page",
					    HF_PAGE_HOSTS_MAX - 1);
		hosts->names[len++] = names[i];
	}
	return 0;
}

static int create_page(struct hf_page_joint *joint, struct hf_error *err)
{
	struct hf_page_options options = {
		.loop = joint->options.loop,
		.address = joint->host,
		.cluster = joint->options.kube != NULL,
		.source = &joint->source,
		.store = joint->options.store,
		.watch_nodes = joint->options.watch_nodes,
		.open_store = open_store,
		.arg = joint,
		.metrics = joint->options.metrics,
	};
	int rc = hf_bind_address_parse(joint->options.address, joint->host, &options.port, err);

	if (rc == 0)
		rc = fill_hosts(joint, &options.hosts, err);
	if (rc == 0)
		rc = hf_random_bytes(&options.seed, sizeof(options.seed), err);
	return rc != 0 ? rc : hf_page_create(&options, &joint->page, err);
}

int hf_page_joint_create(const struct hf_page_joint_options *options,
			 struct hf_page_joint **ret_joint, struct hf_error *err)
{
	struct hf_page_joint *joint = hf_xcalloc(1, sizeof(*joint));
	int rc;

	joint->options = *options;
	joint->source = (struct hf_page_source){.ready = is_ready,
						.each_job = each_job,
						.find_job = find_job,
						.find_pods = find_pods,
						.jobs_on_node = jobs_on_node,
						.explain = explain,
						.arg = joint};
	rc = create_page(joint, err);
	if (rc != 0) {
		free(joint);
		return hf_error_wrap(err, "--page '%s'", options->address);
	}
	*ret_joint = joint;
	return 0;
}

struct hf_page_joint *hf_page_joint_destroy(struct hf_page_joint *joint)
{
	if (joint == NULL)
		return NULL;
	hf_page_destroy(joint->page);
	free(joint);
	return NULL;
}

struct hf_page *hf_page_joint_page(struct hf_page_joint *joint)
{
	return joint->page;
}

void hf_page_joint_url(const struct hf_page_joint *joint, struct hf_strbuf *sb)
{
	const char *token = hf_page_token(joint->page);
	bool v6 = strchr(joint->host, ':') != NULL;

	hf_strbuf_addf(sb, "http://%s%s%s:%u/", v6 ? "[" : "", hf_str_or(joint->host, "localhost"),
		       v6 ? "]" : "", (unsigned)hf_page_port(joint->page));
	if (token != NULL)
		hf_strbuf_addf(sb, "?token=%s", token);
}
