/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

/*
 * The folders of PersistentVolumeClaims: CLAIMS_DIR/NAMESPACE/NAME. This module never removes a
 * folder: a claim of the same name, in a later run too, finds the data again. The size and the
 * access modes of a claim are not enforced.
 */
#define CLAIMS_MAX 4096
#define REQUESTS_MAX 16
#define DEFAULT_SIZE "1Gi"

struct hf_kubelet_claims {
	struct hf_kubelet *kubelet;
	struct hf_map *told; /* paths of folders that were already printed for the user */
	struct claim_call {
		struct hf_call *call;
	} calls[REQUESTS_MAX];
};

struct hf_kubelet_claims *hf_kubelet_claims_create(struct hf_kubelet *kubelet)
{
	struct hf_kubelet_claims *claims = hf_xcalloc(1, sizeof(*claims));

	claims->kubelet = kubelet;
	claims->told = hf_map_create(CLAIMS_MAX, 0, NULL);
	return claims;
}

struct hf_kubelet_claims *hf_kubelet_claims_destroy(struct hf_kubelet_claims *claims)
{
	if (!claims)
		return NULL;
	for (size_t i = 0; i < REQUESTS_MAX; i++)
		hf_call_cancel(claims->calls[i].call);
	claims->told = hf_map_destroy(claims->told);
	free(claims);
	return NULL;
}

static void on_created(void *arg, const struct hf_reply *reply HF_UNUSED)
{
	struct claim_call *call = arg;

	/* Ignore the reply: if the claim exists already, nothing is to be done. */
	call->call = NULL;
}

/* Creates the claim's object in the store if a pod names a claim that no manifest has. */
static void create_object(struct hf_kubelet *k, const char *ns, const char *name)
{
	struct hf_json *claim = hf_json_object();
	struct hf_json *meta = hf_json_ensure_object(claim, "metadata");
	struct hf_json *spec = hf_json_ensure_object(claim, "spec");
	struct hf_request request = {.verb = HF_VERB_CREATE,
				     .resource = &hf_persistentvolumeclaims,
				     .ns = ns,
				     .field_manager = "kubelet"};
	struct claim_call *call = NULL;

	hf_json_set_str(claim, "apiVersion", "v1");
	hf_json_set_str(claim, "kind", "PersistentVolumeClaim");
	hf_json_set_str(meta, "name", name);
	hf_json_append(hf_json_ensure_array(spec, "accessModes"), hf_json_string("ReadWriteMany"));
	hf_json_set_str(hf_json_ensure_object(hf_json_ensure_object(spec, "resources"), "requests"),
			"storage", DEFAULT_SIZE);
	HF_AUTO_DOC body = hf_doc_from_json(claim);
	for (size_t i = 0; i < REQUESTS_MAX && !call; i++)
		call = k->claims->calls[i].call ? NULL : &k->claims->calls[i];
	if (!call)
		return;
	request.body = body;
	call->call = hf_store_request(k->store, &request, on_created, call);
}

char *hf_kubelet_claim_folder(const struct hf_kubelet *k, const char *ns, const char *name)
{
	return hf_xasprintf("%s/%s/%s", k->claims_dir, ns, name);
}

int hf_kubelet_claim_prepare(struct hf_kubelet *k, const char *ns, const char *name, bool exists,
			     struct hf_error *err)
{
	HF_AUTOFREE char *folder = NULL;
	struct stat st;
	bool is_new;
	int rc;

	if (hf_dns1123_subdomain_problem(name))
		return hf_error_set(err, HF_E_INVALID, "'%s' is no name of a claim", name);
	if (!exists && !k->make_claims)
		return hf_error_set(err, HF_E_NOT_FOUND, "persistentvolumeclaim \"%s\" not found",
				    name);
	folder = hf_kubelet_claim_folder(k, ns, name);
	is_new = stat(folder, &st) < 0;
	/* Only the user of the plane can enter the folders above the claim's folder. The claim's
	 * folder itself is open to every user, because a container may run as any user. */
	rc = hf_fs_mkdirs(folder, 0700, err);
	if (rc)
		return rc;
	if (is_new && chmod(folder, 0777) < 0)
		return hf_error_errno(err, errno, "cannot open '%s' to all", folder);
	if (!exists)
		create_object(k, ns, name);
	if (!hf_map_get(k->claims->told, folder) && hf_map_put(k->claims->told, folder, k))
		hf_kubelet_notice(k, "claim %s/%s%s is the folder %s; its data stays after the run",
				  ns, name, exists ? "" : ", which no manifest has,", folder);
	return 0;
}
