# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Every pod that was ever made, read from etcd's own history.

A watch of the API server begins anew when that is restarted, and may miss what came and went
meanwhile.  etcd keeps all, as nothing compacts it here (Cluster.up).
"""

import base64
import collections
import http.client
import json
import re

# The first UUID in a stored object is metadata.uid: owners come later in the encoding.
UID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
QUIET_S = 2  # history is sent at once; when nothing more comes for so long, that was all


def b64(text):
    return base64.b64encode(text.encode()).decode()


def made(port, resource, ns):
    """{name: [uid of each creation, in order]} of a namespace."""
    prefix = f"/registry/{resource}/{ns}/"
    found = collections.defaultdict(list)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", "/v3/watch", json.dumps({"create_request": {
        "key": b64(prefix), "range_end": b64(prefix[:-1] + "0"), "start_revision": "1"}}))
    connection.sock.settimeout(QUIET_S)
    answer = connection.getresponse()
    try:
        while line := answer.readline():
            result = json.loads(line)["result"]
            if result.get("canceled"):
                raise OSError("etcd's history is not complete: " + str(result))
            for event in result.get("events", []):
                kv = event["kv"]
                if event.get("type") != "DELETE" and kv["create_revision"] == kv["mod_revision"]:
                    name = base64.b64decode(kv["key"]).decode()[len(prefix):]
                    found[name].append(UID.search(base64.b64decode(kv["value"])).group().decode())
    except TimeoutError:
        pass
    finally:
        connection.close()
    return found
