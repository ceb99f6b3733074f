# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""A small client of the API server: one connection a thread, JSON in and out."""

import http.client
import json
import ssl
import threading
import time
import urllib.parse

MERGE, JSON, APPLY = ("application/merge-patch+json", "application/json",
                      "application/apply-patch+yaml")
# Where a resource lives; the rest is under /api/v1.
GROUPS = {
    "devicehealths": "holdfast.dev/v1alpha1",
    "healthpolicies": "holdfast.dev/v1alpha1",
    "remediations": "holdfast.dev/v1alpha1",
    "devicerollouts": "holdfast.dev/v1alpha1",
    # Kinds of part mending: an external remediation, as medik8s has them.
    "repairs": "fix.example/v1", "repairtemplates": "fix.example/v1",
    **{kind: "resource.k8s.io/v1" for kind in ("resourceslices", "resourceclaims", "resourceclaimtemplates",
                                               "deviceclasses")},
    "devicetaintrules": "resource.k8s.io/v1beta2",
    "poddisruptionbudgets": "policy/v1", "replicasets": "apps/v1",
    "horizontalpodautoscalers": "autoscaling/v2",
    # Two groups have this name: what is behind the dot says which.
    "podgroups.volcano": "scheduling.volcano.sh/v1beta1",
    "podgroups.plugins": "scheduling.x-k8s.io/v1alpha1",
    "csinodes": "storage.k8s.io/v1", "deployments": "apps/v1", "daemonsets": "apps/v1",
    "controllerrevisions": "apps/v1", "jobs": "batch/v1",
    "leases": "coordination.k8s.io/v1", "roles": "rbac.authorization.k8s.io/v1",
    "rolebindings": "rbac.authorization.k8s.io/v1",
    "clusterroles": "rbac.authorization.k8s.io/v1",
    "clusterrolebindings": "rbac.authorization.k8s.io/v1",
    "customresourcedefinitions": "apiextensions.k8s.io/v1",
    "flowschemas": "flowcontrol.apiserver.k8s.io/v1",
    "prioritylevelconfigurations": "flowcontrol.apiserver.k8s.io/v1",
    **{kind + "jobs": "kubeflow.org/v1" for kind in ("pytorch", "tf", "mpi", "xgboost", "paddle",
                                                     "jax")},
}


class Refused(Exception):
    """An answer that is not 2xx."""

    def __init__(self, code, reason, message):
        super().__init__(f"{code} {reason}: {message}")
        self.code, self.reason, self.message = code, reason, message


def path(resource, ns=None, name=None, sub=None, **query):
    group = GROUPS.get(resource)
    parts = ["/apis/" + group if group else "/api/v1"]
    if ns:
        parts += ["namespaces", ns]
    parts += [p for p in (resource.partition(".")[0], name, sub) if p]
    text = "/".join(parts)
    query = {k: v for k, v in query.items() if v is not None}
    return text + ("?" + urllib.parse.urlencode(query) if query else "")


class Client:
    """Speaks to https://ADDRESS:PORT; lost connections are made anew, and reads tried again."""

    def __init__(self, port, ca, token, timeout_s=60, agent="holdfast-conformance",
                 address="127.0.0.1"):
        self.port, self.token, self.timeout_s, self.agent = port, token, timeout_s, agent
        self.address = address
        self.tls = ssl.create_default_context(cafile=ca)
        self.local = threading.local()

    def connection(self):
        if getattr(self.local, "connection", None) is None:
            self.local.connection = http.client.HTTPSConnection(
                self.address, self.port, timeout=self.timeout_s, context=self.tls)
        return self.local.connection

    def forget(self):
        if getattr(self.local, "connection", None) is not None:
            self.local.connection.close()
        self.local.connection = None

    def raw(self, method, target, body=None, kind=JSON, headers=None):
        """(status, headers, bytes)"""
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        send = {"Authorization": "Bearer " + self.token, "User-Agent": self.agent,
                "Content-Type": kind, **(headers or {})}
        for last in (False, True):
            sent = False
            try:
                c = self.connection()
                c.request(method, target, body, send)
                sent = True
                answer = c.getresponse()
                return answer.status, answer.headers, answer.read()
            except (OSError, http.client.HTTPException):
                self.forget()
                # What could not be sent was not done: the server has closed an idle connection.
                if last or (sent and method != "GET"):
                    raise

    def call(self, method, target, body=None, kind=JSON):
        status, _, data = self.raw(method, target, body, kind)
        if status // 100 == 2:
            try:
                return json.loads(data) if data else None
            except ValueError:
                return data.decode(errors="replace")
        try:
            said = json.loads(data)
        except ValueError:
            said = {"message": data.decode(errors="replace").strip()}
        raise Refused(status, said.get("reason", ""), said.get("message", ""))

    def get(self, resource, ns=None, name=None, sub=None, **query):
        return self.call("GET", path(resource, ns, name, sub, **query))

    def find(self, resource, ns, name):
        """The object, or None."""
        try:
            return self.get(resource, ns, name)
        except Refused as e:
            if e.code == 404:
                return None
            raise

    def list(self, resource, ns=None, selector=None, fields=None):
        items, more = [], None
        while True:
            page = self.get(resource, ns, labelSelector=selector, fieldSelector=fields,
                            limit=1000, **({"continue": more} if more else {}))
            items += page.get("items") or []
            more = page["metadata"].get("continue")
            if not more:
                return items

    def create(self, resource, ns, body):
        return self.call("POST", path(resource, ns), body)

    def patch(self, resource, ns, name, body, sub=None):
        return self.call("PATCH", path(resource, ns, name, sub), body, MERGE)

    def apply(self, resource, ns, name, body):
        """Server-side apply: makes it or makes it so."""
        return self.call("PATCH", path(resource, ns, name, fieldManager="conformance",
                                       force="true"), body, APPLY)

    def delete(self, resource, ns, name, **options):
        return self.call("DELETE", path(resource, ns, name),
                         {"kind": "DeleteOptions", "apiVersion": "v1", **options})

    def token_of(self, ns, account, bound=None, seconds=3600):
        """A new token of a ServiceAccount; bound to an object, it ends with it."""
        spec = {"expirationSeconds": seconds}
        if bound:
            spec["boundObjectRef"] = bound
        made = self.call("POST", path("serviceaccounts", ns, account, "token"), {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
        return made["status"]["token"]


def stamp(later_s=0):
    """RFC 3339, so many seconds from now."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + later_s))


def pause(seconds):
    """Between two looks."""
    threading.Event().wait(seconds)


def until(what, get, timeout_s=60, every_s=0.1):
    """Ask until the answer is true; it is returned.  Lost connections count as 'not yet'."""
    end = time.monotonic() + timeout_s
    pause = threading.Event()
    seen = None
    while True:
        try:
            seen = get()
            if seen:
                return seen
        except (OSError, http.client.HTTPException) as e:
            seen = e
        except Refused as e:
            # 401 and 403: an API server that has just started knows no tokens and roles yet.
            if e.code < 500 and e.code not in (401, 403, 404, 429):
                raise
            seen = e
        if time.monotonic() > end:
            hint = f" (last: {str(seen)[:300]})" if seen not in (None, False) else ""
            raise TimeoutError(f"{what}: not within {timeout_s:.0f} s{hint}")
        pause.wait(every_s)
