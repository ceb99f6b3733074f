# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""What the operator does to a cluster, and the code that does it.

(group, resource): {verb: (source file, a text in it)}.  deploy/operator/rbac.yaml must grant
exactly this.
"""

KINDS = ("pytorchjobs", "tfjobs", "mpijobs", "xgboostjobs", "paddlejobs", "jaxjobs")

CACHE = {"list": ("src/ctl/cache.c", ".verb = HF_VERB_LIST"),
         "watch": ("src/ctl/cache.c", "hf_store_watch(")}

CLUSTER = {}
for kind in KINDS:
    CLUSTER["kubeflow.org", kind] = {
        **CACHE,
        "get": ("src/operator/pass.c", "status ? HF_VERB_PATCH : HF_VERB_GET"),
        "patch": ("src/operator/pass.c", "hf_ledger_patch("),
        "delete": ("src/operator/perform.c", "HF_ACTION_DELETE_JOB"),
    }
    CLUSTER["kubeflow.org", kind + "/status"] = {
        "patch": ("src/operator/pass.c", "status ? HF_VERB_PATCH : HF_VERB_GET"),
    }
    CLUSTER["kubeflow.org", kind + "/finalizers"] = {
        "update": ("src/operator/render.c", "blockOwnerDeletion"),
    }
for resource in ("pods", "services"):
    CLUSTER["", resource] = {
        **CACHE,
        "get": ("src/operator/perform.c", ".verb = HF_VERB_GET"),
        "create": ("src/operator/perform.c", "request.verb = HF_VERB_CREATE"),
        "delete": ("src/operator/perform.c", "request.verb = HF_VERB_DELETE"),
    }
CLUSTER["", "pods"]["patch"] = ("src/operator/perform.c", "hf_stop_pod_patch(")
EXTRA = {
    **CACHE,
    "get": ("src/operator/perform.c", ".verb = HF_VERB_GET"),
    "create": ("src/operator/perform.c", "HF_ACTION_CREATE_EXTRA"),
}
for group, resource in (("", "configmaps"), ("rbac.authorization.k8s.io", "roles"),
                        ("rbac.authorization.k8s.io", "rolebindings")):
    CLUSTER[group, resource] = {
        **EXTRA, "patch": ("src/operator/perform.c", "hf_extra_patch(")}
GROUPS = {**EXTRA, "patch": ("src/operator/perform.c", "hf_extra_patch("),
          "delete": ("src/operator/perform.c", "request.verb = HF_VERB_DELETE")}
CLUSTER["autoscaling", "horizontalpodautoscalers"] = GROUPS
CLUSTER["", "serviceaccounts"] = {
    **EXTRA, "delete": ("src/operator/perform.c", "request.verb = HF_VERB_DELETE")}
# deploy/operator/gang.yaml, with --gang-scheduler-name.
GANG = {("scheduling.volcano.sh", "podgroups"): GROUPS, ("scheduling.x-k8s.io", "podgroups"): GROUPS}
# deploy/page/page.yaml, with --page.
PAGE = {("authentication.k8s.io", "tokenreviews"): {"create": ("src/page/access.c", ".resource = &token_reviews")},
        ("authorization.k8s.io", "subjectaccessreviews"): {"create": ("src/page/access.c", ".resource = &access_reviews")}}
CLUSTER["", "pods/exec"] = {"create": ("src/framework/mpi.c", "pods/exec")}
CLUSTER["", "pods/status"] = {
    "patch": ("src/operator/perform.c", "hf_fail_pod_patch("),
}
CLUSTER["", "nodes"] = {
    **CACHE,
    "get": ("src/operator/asks.c", "[HF_ASK_NODE] = &hf_nodes"),
    "patch": ("src/fleet/act.c", "hf_node_quarantine_patch("),
}
CLUSTER["holdfast.dev", "devicehealths"] = {
    **CACHE, "get": ("src/fleet/act.c", "FLEET_LOOK_HEALTH)"),
    "patch": ("src/fleet/device_taint.c", "HF_DEVICES_OUT_ANNOTATION")}
CLUSTER["holdfast.dev", "healthpolicies"] = {
    **CACHE, "get": ("src/fleet/act.c", "FLEET_LOOK_POLICY)")}
CLUSTER["holdfast.dev", "remediations"] = {**CACHE}
CLUSTER["holdfast.dev", "devicerollouts"] = {**CACHE}
CLUSTER["holdfast.dev", "healthpolicies/status"] = {
    "patch": ("src/fleet/act.c", '.subresource = "status"')}
CLUSTER["resource.k8s.io", "devicetaintrules"] = {
    **CACHE,
    "create": ("src/fleet/device_taint.c", "request.verb = HF_VERB_CREATE"),
    "patch": ("src/fleet/device_taint.c", "request.verb = HF_VERB_PATCH"),
    "delete": ("src/fleet/device_taint.c", "request.verb = HF_VERB_DELETE"),
}
CLUSTER["resource.k8s.io", "resourceslices"] = {
    "list": ("src/fleet/device_taint.c", ".resource = &hf_resourceslices"),
}
CLUSTER["", "pods/eviction"] = {
    "create": ("src/fleet/drain.c", '.subresource = "eviction"')}
CLUSTER["", "persistentvolumeclaims"] = {
    "get": ("src/operator/asks.c", "[HF_ASK_CLAIM] = &hf_persistentvolumeclaims"),
}
CLUSTER["", "events"] = {
    "create": ("src/ctl/recorder.c", "created ? HF_VERB_PATCH : HF_VERB_CREATE"),
    "patch": ("src/ctl/recorder.c", "created ? HF_VERB_PATCH : HF_VERB_CREATE"),
}
CLUSTER["apiextensions.k8s.io", "customresourcedefinitions"] = {
    "list": ("src/operator/narrow_schema.c", "hf_cache_create("),
    "watch": ("src/operator/narrow_schema.c", "hf_cache_create("),
}
CLUSTER["apps", "deployments"] = {
    "get": ("src/operator/manager.c", ".resource = &hf_rival_deployments"),
}

NAMESPACE = {
    ("coordination.k8s.io", "leases"): {
        "get": ("src/ctl/lease.c", ".verb = HF_VERB_GET"),
        "create": ("src/ctl/lease.c", "HF_VERB_UPDATE : HF_VERB_CREATE"),
        "update": ("src/ctl/lease.c", "HF_VERB_UPDATE : HF_VERB_CREATE"),
    },
}

# deploy/rollout/rbac.yaml, with --rollouts.
ROLLOUT = {
    ("holdfast.dev", "devicerollouts"): {
        "get": ("src/rollout/read.c", "request->resource = &hf_devicerollouts"),
        "patch": ("src/rollout/status.c", "HF_ROLLOUT_FINALIZER"),
    },
    ("holdfast.dev", "devicerollouts/status"): {"patch": ("src/rollout/status.c", '.subresource = "status"')},
    ("", "nodes"): {"get": ("src/rollout/read.c", "request->resource = &hf_nodes"),
                    "patch": ("src/rollout/act.c", ".resource = &hf_nodes")},
    ("", "nodes/status"): {"patch": ("src/rollout/act.c", "hf_node_maintenance_patch(")},
    ("", "pods"): {"list": ("src/rollout/read.c", "request->resource = &hf_pods"),
                   "delete": ("src/rollout/act.c", "delete_object(&hf_pods")},
    ("", "pods/eviction"): {"create": ("src/rollout/act.c", '.subresource = "eviction"')},
    ("apps", "daemonsets"): {"get": ("src/rollout/read.c", "request->resource = &hf_daemonsets"),
                             "patch": ("src/rollout/whole.c", ".resource = &hf_daemonsets")},
    ("apps", "controllerrevisions"): {"list": ("src/rollout/read.c", "&hf_controllerrevisions")},
    ("nodemaintenance.medik8s.io", "nodemaintenances"): {
        "list": ("src/rollout/read.c", "request->resource = &hf_nodemaintenances")},
    **{(group, plural): {"get": ("src/rollout/read.c", "request->resource = hf_ro_canary_kind"),
                         "create": ("src/rollout/canary.c", "HF_VERB_CREATE"),
                         "delete": ("src/rollout/act.c", "delete_object(hf_ro_canary_kind")}
       for group, plurals in (("kubeflow.org", KINDS), ("batch", ("jobs",))) for plural in plurals},
    ("holdfast.dev", "devicehealths"): {"get": ("src/rollout/read.c", "request->resource = &hf_devicehealths"),
                                        "patch": ("src/rollout/act.c", ".resource = &hf_devicehealths")},
}
# In holdfast-mend.
ROLLOUT_NAMESPACE = {
    ("coordination.k8s.io", "leases"): {
        "get": ("src/rollout/read.c", "request->resource = &hf_leases"),
        "create": ("src/rollout/act.c", "HF_VERB_UPDATE : HF_VERB_CREATE"),
        "update": ("src/rollout/act.c", "HF_VERB_UPDATE : HF_VERB_CREATE"),
        "delete": ("src/rollout/act.c", "delete_object(&hf_leases"),
    },
}

# In kube-node-lease.
NODE_LEASES = {
    ("coordination.k8s.io", "leases"): {
        "get": ("src/operator/asks.c", "[HF_ASK_LEASE] = &hf_leases"),
    },
}
