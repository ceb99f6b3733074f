/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy_swarm_wild.h"

#include "api/lifetime.h"
#include "base/mem.h"
#include "base/str.h"
#include "harness/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Jobs in the wild world: the operator under test creates their pods; this file is the scheduler and the kubelets.
 * Each pod holds GPU 0 of its node. A deleted pod saves for up to 25 s before it ends.
 */

#define NS "default"
#define PREFIX "gang-"

struct found {
	struct hf_doc *docs[GANG_PODS_MAX];
	size_t len;
};

static void collect(void *arg, struct hf_doc *doc)
{
	struct found *found = arg;

	if (found->len < GANG_PODS_MAX && hf_str_has_prefix(hf_doc_name(doc), PREFIX))
		found->docs[found->len++] = hf_doc_ref(doc);
}

static struct gang_pod *find_pod(struct wild *wild, const char *uid)
{
	for (size_t i = 0; i < wild->pods_len; i++)
		if (hf_streq(wild->pods[i].uid, uid))
			return &wild->pods[i];
	return NULL;
}

static bool has_taint(const struct hf_json *node)
{
	const struct hf_json *taints = hf_json_path(node, "spec", "taints", NULL);

	for (size_t i = 0; i < hf_json_len(taints); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(taints, i), "key", NULL),
			     "holdfast.dev/device"))
			return true;
	return false;
}

static bool is_free(struct wild *wild, int node)
{
	struct rw *w = wild->s->w;
	const struct hf_json *object;
	char name[16];

	rw_name(node, name);
	object = rw_get(w, &hf_nodes, NULL, name);
	for (size_t i = 0; i < wild->pods_len; i++)
		if (wild->pods[i].node == node)
			return false;
	return object != NULL && !w->silent[node] && w->holder[node] == NULL &&
	       wild->s->pods[node] == NULL && wild->s->a->ends_at[node] == 0 &&
	       !has_taint(object) &&
	       !hf_json_true(hf_json_path(object, "spec", "unschedulable", NULL), false) &&
	       !rs_is_approved(wild->s, node);
}

static int apply(struct wild *wild, const struct hf_request *request)
{
	HF_AUTO_RESULT result = {0};

	hf_memstore_apply(wild->s->w->memstore, request, &result);
	return result.code;
}

static void bind_pod(struct wild *wild, struct hf_doc *doc)
{
	struct rw *w = wild->s->w;
	int node = (int)wild_pick(wild, (unsigned)w->nodes);
	struct gang_pod *pod = &wild->pods[wild->pods_len];
	char name[16], text[512];
	HF_AUTO_DOC body = NULL;

	if (wild->pods_len == GANG_PODS_MAX || !is_free(wild, node))
		return;
	rw_name(node, name);
	snprintf(text, sizeof(text),
		 "{'apiVersion':'v1','kind':'Binding','metadata':{'name':'%s'},'target':{"
		 "'kind':'Node','name':'%s'}}",
		 hf_doc_name(doc), name);
	body = json_doc_of(text);
	const struct hf_request request = {.verb = HF_VERB_CREATE,
					   .resource = &hf_pods,
					   .ns = NS,
					   .name = hf_doc_name(doc),
					   .subresource = "binding",
					   .body = body};

	if (apply(wild, &request) != 0)
		return;
	*pod = (struct gang_pod){.node = node, .seen = true};
	wild->pods_len++;
	snprintf(pod->name, sizeof(pod->name), "%s", hf_doc_name(doc));
	snprintf(pod->uid, sizeof(pod->uid), "%s", hf_doc_uid(doc));
	rw_patch_in(
		w, &hf_pods, NS, pod->name, "status",
		"{'status':{'phase':'Running','conditions':[{'type':'Ready','status':'True'}],"
		"'containerStatuses':[{'name':'pytorch','ready':true,'restartCount':0,'image':'i',"
		"'imageID':'','state':{'running':{'startedAt':'2023-11-14T22:13:20Z'}}}]}}");
	snprintf(wild->holders[node], sizeof(wild->holders[node]), "%s", hf_doc_name(doc));
	w->holder[node] = wild->holders[node];
	rw_report(w, node);
}

static void drop_pod(struct wild *wild, struct gang_pod *pod)
{
	const struct hf_request request = {.verb = HF_VERB_DELETE,
					   .resource = &hf_pods,
					   .ns = NS,
					   .name = pod->name,
					   .precondition_uid = pod->uid,
					   .grace_seconds = 0};

	(void)apply(wild, &request);
}

void gang_forget(struct wild *wild, const char *uid)
{
	struct rw *w = wild->s->w;
	struct gang_pod *pod = find_pod(wild, uid);

	if (pod == NULL)
		return;
	pod->gone_at = hf_loop_mono(w->loop);
	if (w->holder[pod->node] == wild->holders[pod->node])
		w->holder[pod->node] = NULL;
}

/* The pod object is gone. */
static void forget_pod(struct wild *wild, struct gang_pod *pod)
{
	int node = pod->node;

	*pod = wild->pods[--wild->pods_len];
	rw_report(wild->s->w, node);
}

static void tick_pod(struct wild *wild, struct hf_doc *doc)
{
	struct rw *w = wild->s->w;
	struct gang_pod *pod = find_pod(wild, hf_doc_uid(doc));
	hf_time now = hf_loop_mono(w->loop);
	bool leaves = hf_json_path(hf_doc_json(doc), "metadata", "deletionTimestamp", NULL) != NULL;
	char node[16];

	if (pod == NULL) {
		if (!leaves && hf_json_path(hf_doc_json(doc), "spec", "nodeName", NULL) == NULL)
			bind_pod(wild, doc);
		return;
	}
	pod->seen = true;
	rw_name(pod->node, node);
	if (leaves && pod->gone_at == 0)
		pod->gone_at = now + (hf_time)wild_pick(wild, 25) * HF_SECOND;
	if (rw_get(w, &hf_nodes, NULL, node) == NULL ||
	    (pod->gone_at != 0 && now >= pod->gone_at && !w->silent[pod->node]))
		drop_pod(wild, pod);
}

static void tick_plugin(struct wild *wild, int node);

void gang_tick(struct wild *wild)
{
	struct found *found = hf_xcalloc(1, sizeof(*found));

	for (size_t i = 0; i < wild->pods_len; i++)
		wild->pods[i].seen = false;
	hf_memstore_each(wild->s->w->memstore, &hf_pods, NS, collect, found);
	for (size_t i = 0; i < found->len; i++) {
		tick_pod(wild, found->docs[i]);
		hf_doc_unref(found->docs[i]);
	}
	free(found);
	for (size_t i = wild->pods_len; i > 0; i--)
		if (!wild->pods[i - 1].seen)
			forget_pod(wild, &wild->pods[i - 1]);
	for (int i = 0; i < wild->s->w->nodes; i++)
		tick_plugin(wild, i);
}

/* ---- device plugins ------------------------------------------------------------------------------ */

static bool wants_plugin(struct wild *wild, int node)
{
	char name[16];

	rw_name(node, name);
	return hf_streq(hf_json_path_str(rw_get(wild->s->w, &hf_nodes, NULL, name), "metadata",
					 "labels", "nvidia.com/gpu.deploy.device-plugin", NULL),
			"true");
}

static void put_plugin(struct wild *wild, const char *name, int node)
{
	char text[512];

	snprintf(
		text, sizeof(text),
		"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':'" NS
		"','labels':{'app':'nvidia-device-plugin-daemonset'},'ownerReferences':[{"
		"'apiVersion':'apps/v1','kind':'DaemonSet','name':'d','uid':'d','controller':true}]},"
		"'spec':{'nodeName':'n%03d','containers':[{'name':'c','image':'i'}]}}",
		name, node);
	rw_create(wild->s->w, &hf_pods, NS, text);
	rw_patch_in(wild->s->w, &hf_pods, NS, name, "status", "{'status':{'phase':'Running'}}");
}

/* The GPU Operator's DaemonSet, by the label of the node. */
static void tick_plugin(struct wild *wild, int node)
{
	struct rw *w = wild->s->w;
	const struct hf_json *pod;
	bool wanted = wants_plugin(wild, node);
	char name[24];

	snprintf(name, sizeof(name), "plugin-%d", node);
	pod = rw_get(w, &hf_pods, NS, name);
	if (pod == NULL && wanted && !w->silent[node])
		put_plugin(wild, name, node);
	else if (pod != NULL && !w->silent[node] && wild_pick(wild, 4) == 0 &&
		 (!wanted || hf_json_path(pod, "metadata", "deletionTimestamp", NULL) != NULL))
		(void)rw_remove(wild->s->w, &hf_pods, NS, name, 0);
}

bool gang_has_plugin(struct wild *wild, int node)
{
	char name[24];

	snprintf(name, sizeof(name), "plugin-%d", node);
	return rw_get(wild->s->w, &hf_pods, NS, name) != NULL;
}

void gang_drop_plugin(struct wild *wild, int node)
{
	char name[24];

	snprintf(name, sizeof(name), "plugin-%d", node);
	(void)rw_remove(wild->s->w, &hf_pods, NS, name, 0);
}

/* ---- for the world ------------------------------------------------------------------------------- */

void gang_create(struct wild *wild, int number)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{'name':'" PREFIX
		 "%d','namespace':'" NS "'},'spec':{'pytorchReplicaSpecs':{'Worker':{'replicas':%u,"
		 "'restartPolicy':'OnFailure','template':{'spec':{'containers':[{'name':'pytorch',"
		 "'image':'i'}]}}}}}}",
		 number, 1 + wild_pick(wild, 3));
	rw_create(wild->s->w, &hf_pytorchjobs, NS, text);
}

const char *gang_on_node(struct wild *wild, int node)
{
	for (size_t i = 0; i < wild->pods_len; i++)
		if (wild->pods[i].node == node && wild->pods[i].gone_at == 0)
			return wild->pods[i].name;
	return NULL;
}
