#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# kubectl_test.sh PROGRAM FOLDER: an unchanged kubectl against the plane, over TLS.  PROGRAM is
# build/holdfast, or build/tests/clients/serve, which runs no pods; checks that need a pod are then left
# out.  If kubectl must be built, it is put into FOLDER.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/clients/lib.sh
. "$here/lib.sh"

# An absolute path, because the test changes its folder.
program=$(realpath "$1")
if ! kubectl=$("$here/get_kubectl.sh" "$2"); then
	echo "SKIPPED: no kubectl" >&2
	exit 77
fi
PATH=$(dirname "$kubectl"):$PATH
folder=$(mktemp -d)
trap 'stop; rm -rf "$folder"' EXIT
start "$program" "$folder/plane"
pods_run=false
[ "$(basename "$program")" != holdfast ] || pods_run=true
cd "$folder"
# A separate HOME, so that kubectl's discovery cache is used by this test only.
export HOME=$folder

# job NAME WORKERS COMMAND
job() {
	cat <<-END
	apiVersion: kubeflow.org/v1
	kind: PyTorchJob
	metadata: {name: $1}
	spec:
	  pytorchReplicaSpecs:
	    Master: &rank
	      replicas: 1
	      restartPolicy: Never
	      template:
	        spec:
	          containers:
	          - {name: pytorch, image: none, command: [sh, -c, "$3"]}
	    Worker: {<<: *rank, replicas: $2}
	END
}
# pod NAME LABEL
pod() {
	cat <<-END
	apiVersion: v1
	kind: Pod
	metadata: {name: $1, labels: {a: $2}}
	spec:
	  restartPolicy: Never
	  containers:
	  - {name: c, image: 'none:1', command: [sh, -c, "echo one; echo two; exec sleep 1000"]}
	END
}

# ---- discovery and lists
expect 'a version is told' 'v1\.[0-9]+\.[0-9]+\+holdfast' kubectl version
expect 'kinds are listed' 'pytorchjobs +kubeflow.org/v1 +true +PyTorchJob' kubectl api-resources
expect 'short names work' 'default +Active' kubectl get ns
expect 'versions are listed' 'kubeflow.org/v1' kubectl api-versions
expect 'health is told' '^ok' kubectl get --raw /readyz
refuse 'other paths are not there' 'could not find the requested resource' kubectl get --raw /nope

# ---- create, read
job crud 2 'sleep 1000' >crud.yaml
# The job is suspended, so that the checks concern only the object.
sed 's/^spec:$/spec:\n  runPolicy: {suspend: true}/' crud.yaml >suspended.yaml
expect 'create' 'pytorchjob.kubeflow.org/crud created' kubectl create --save-config -f suspended.yaml
refuse 'create twice' 'AlreadyExists.*pytorchjobs.kubeflow.org "crud" already exists' \
	kubectl create -f suspended.yaml
expect 'get as a table' 'NAME +STATE +AGE +RESTARTS +CAUSE.crud' kubectl get pytorchjobs
expect 'get wide' 'NAME +STATE +AGE.*GENERATION.crud' kubectl get pytorchjobs -o wide
expect 'get yaml' 'kind: PyTorchJob.*  name: crud.*replicas: 2' kubectl get pytorchjob crud -o yaml
expect 'get json' '"kind": "PyTorchJob"' kubectl get pytorchjob crud -o json
expect 'get jsonpath' '^2.$' kubectl get pytorchjob crud \
	-o "jsonpath={.spec.pytorchReplicaSpecs.Worker.replicas}"
expect 'get by name of kind' 'pytorchjob.kubeflow.org/crud' kubectl get pytorchjobs -o name
expect 'custom columns' 'NAME.crud' kubectl get pytorchjobs -o custom-columns=NAME:.metadata.name
refuse 'get a job that does not exist' 'NotFound.*pytorchjobs.kubeflow.org "no" not found' \
	kubectl get pytorchjob no
expect 'describe a job' 'Name: +crud.*Kind: +PyTorchJob' kubectl describe pytorchjob crud
expect 'get -w begins with what is there' 'NAME +STATE +AGE +RESTARTS +CAUSE.crud' \
	timeout 2 sh -c 'kubectl get pytorchjobs -w --request-timeout=1 || true'

# An operator leaves the status of such a job to the controller that manages it.
sed 's/name: crud/name: told/; s/^spec:$/spec:\n  runPolicy: {managedBy: kueue.x-k8s.io\/multikueue}/' crud.yaml >told.yaml
kubectl create -f told.yaml >/dev/null
kubectl patch pytorchjob told --subresource=status --type=merge -p '{"status": {
	"conditions": [{"type": "Running", "status": "True"}],
	"recovery": {"summary": "1 (infrastructure)", "last": {"cause": "infrastructure"}}}}' >/dev/null
expect 'get shows the restarts in words' 'told +Running +[^ ]+ +1 \(infrastructure\) +infrastructure' \
	kubectl get pytorchjobs
kubectl delete pytorchjob told >/dev/null

# ---- apply, on the client
expect 'apply without a change' 'crud unchanged' kubectl apply -f suspended.yaml
sed 's/replicas: 2/replicas: 3/' suspended.yaml >three.yaml
expect 'apply with a change' 'crud configured' kubectl apply -f three.yaml
expect 'the change is there' '^3.$' kubectl get pytorchjob crud \
	-o "jsonpath={.spec.pytorchReplicaSpecs.Worker.replicas}"
expect 'diff finds no change' '^.?$' kubectl diff -f three.yaml
expect 'a dry run of the server stores nothing' 'configured \(server dry run\)' \
	kubectl apply --dry-run=server -f suspended.yaml
expect 'the dry run changed no field' '^3.$' kubectl get pytorchjob crud \
	-o "jsonpath={.spec.pytorchReplicaSpecs.Worker.replicas}"
expect 'replace' 'replaced' sh -c 'kubectl get pytorchjob crud -o json | kubectl replace -f -'

# ---- server-side apply and field ownership
sed 's/name: crud/name: owned/' suspended.yaml >owned.yaml
expect 'server-side apply creates a job' 'owned serverside-applied' kubectl apply --server-side -f owned.yaml
managers() {
	kubectl get pytorchjob owned --show-managed-fields \
		-o 'jsonpath={range .metadata.managedFields[*]}{.manager}:{.operation}:{.subresource}{"\n"}{end}'
}
expect 'who owns what' 'kubectl:Apply:' managers
version() { kubectl get pytorchjob owned -o 'jsonpath={.metadata.resourceVersion}'; }
expect_owners 2
before=$(version)
kubectl apply --server-side -f owned.yaml >/dev/null
expect 'apply again without a change writes nothing' "^$before.\$" version
sed 's/suspend: true/nope: true/' owned.yaml >nope.yaml
refuse 'an unknown field is refused' 'unknown field|field not declared' \
	kubectl apply --server-side -f nope.yaml
kubectl delete pytorchjob owned >/dev/null

# ---- change
expect 'patch, merge' 'patched' kubectl patch pytorchjob crud --type merge \
	-p '{"metadata":{"labels":{"team":"a"}}}'
expect 'patch, json' 'patched' kubectl patch pytorchjob crud --type json \
	-p '[{"op":"replace","path":"/metadata/labels/team","value":"b"}]'
refuse 'patch, strategic' 'application/merge-patch\+json' kubectl patch pytorchjob crud \
	--type strategic -p '{"metadata":{"labels":{"team":"c"}}}'
refuse 'a json patch whose test fails' 'test' kubectl patch pytorchjob crud --type json \
	-p '[{"op":"test","path":"/metadata/labels/team","value":"z"}]'
expect 'label' 'labeled' kubectl label pytorchjob crud x=1
expect 'select by label' 'crud' kubectl get pytorchjobs -l 'team=b,x in (1,2)' -o name
expect 'select by field' 'crud' kubectl get pytorchjobs --field-selector metadata.name=crud -o name
expect 'annotate' 'annotated' kubectl annotate pytorchjob crud note=hello
expect 'scale' 'scaled' kubectl scale pytorchjob crud --replicas=2
expect 'a scale' 'NAME +DESIRED +AVAILABLE.*crud +2 +' kubectl get pytorchjob crud --subresource=scale
expect 'wait for a field' 'condition met' kubectl wait pytorchjob/crud --timeout=10s \
	--for='jsonpath={.spec.pytorchReplicaSpecs.Worker.replicas}=2'

# ---- errors
sed 's/^spec:/spec:\n  foo: 1/' crud.yaml | sed 's/name: crud/name: odd/' >odd.yaml
refuse 'unknown fields' 'strict decoding error: unknown field "spec.foo"' kubectl create -f odd.yaml
expect 'unknown fields, asked to be warned' 'Warning: unknown field "spec.foo".*created' \
	kubectl create --validate=warn --dry-run=server -f odd.yaml
sed 's/replicas: 1$/replicas: 2/; s/name: crud/name: odd/' crud.yaml >two.yaml
refuse 'a job that breaks a rule is refused' \
	'PyTorchJob "odd" is invalid: spec.pytorchReplicaSpecs.Master..replicas: Forbidden' \
	kubectl create -f two.yaml
printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {containers: []}\n' >bad.yaml
refuse 'a pod without containers' 'Pod "bad" is invalid: spec.containers: Required value' \
	kubectl create -f bad.yaml
printf 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n' >deployment.yaml
refuse 'a kind that is not here' 'no matches for kind "Deployment"' kubectl create -f deployment.yaml

# ---- core kinds
pod p1 b >pod.yaml
expect 'apply a pod' 'pod/p1 created' kubectl apply -f pod.yaml
expect 'apply it again' 'pod/p1 unchanged' kubectl apply -f pod.yaml
pod p1 c >pod.yaml
expect 'apply it changed' 'pod/p1 configured' kubectl apply -f pod.yaml
expect 'patch a core kind, strategic' 'patched' kubectl patch pod p1 -p '{"metadata":{"labels":{"z":"3"}}}'
expect 'pods as a table' 'NAME +READY +STATUS +RESTARTS +AGE.p1 +[01]/1 ' kubectl get pods
expect 'pods wide' 'IP +NODE +NOMINATED NODE +READINESS GATES' kubectl get pods -o wide
expect 'nodes' 'local +Ready' kubectl get nodes -o wide
expect 'describe a pod' 'Name: +p1.*Image: +none:1' kubectl describe pod p1
expect 'describe a node' 'Name: +local.*Allocatable' kubectl describe node local
expect 'events' 'pod/p1' kubectl get events
expect 'all of it' 'pod/p1.*pytorchjob.kubeflow.org/crud' kubectl get all
refuse 'exec' 'NotImplemented.*pods/exec is not supported' kubectl exec p1 -- true

# ---- requests in protobuf, as Go's typed clients send
expect 'create a namespace' 'namespace/extra created' kubectl create namespace extra
expect 'create a config map' 'created' kubectl create configmap extra --from-literal=a=1
expect 'create a secret' 'created' kubectl create secret generic extra --from-literal='p=x y'
expect 'the value of the secret arrived' '^eCB5.$' kubectl get secret extra -o 'jsonpath={.data.p}'
expect 'create a service account' 'created' kubectl create serviceaccount extra
expect 'create a service' 'created' kubectl create service clusterip extra --clusterip=None --tcp=80:8080
expect 'the port of the service arrived' '^8080.$' kubectl get service extra -o 'jsonpath={.spec.ports[0].targetPort}'
refuse 'create twice, typed' 'AlreadyExists|already exists' kubectl create namespace extra
refuse 'create what is not here, typed' 'could not find the requested resource' \
	kubectl create quota q --hard=pods=1
expect 'auth can-i answers yes' '^yes' kubectl auth can-i create pods
expect 'label a namespace' 'labeled' kubectl label namespace extra a=b
expect 'delete them' 'secret "extra" deleted' kubectl delete secret/extra serviceaccount/extra service/extra

# ---- fields
expect 'explain a job' 'runPolicy.<RunPolicy>.*Settings of the job' kubectl explain pytorchjob.spec
expect 'explain what only Holdfast has' 'restartScope.<string>' kubectl explain pytorchjob.spec.runPolicy.recovery
expect 'explain a status' 'downtimeSeconds.<integer>' kubectl explain pytorchjob.status.recovery
expect 'explain a template' 'valueFrom.<EnvVarSource>' \
	kubectl explain pytorchjob.spec.pytorchReplicaSpecs.template.spec.containers.env
expect 'explain a pod' 'emptyDir.<EmptyDirVolumeSource>' kubectl explain pod.spec.volumes
expect 'explain a service, all of it' 'clientIP.<ClientIPConfig>' kubectl explain service --recursive
refuse 'explain what is not there' 'field "nope" does not exist' kubectl explain pod.spec.nope
expect 'delete a configmap' 'deleted' kubectl delete configmap extra
expect 'delete a namespace and wait' 'deleted' kubectl delete namespace extra --timeout=30s
expect 'delete a pod by force' 'force deleted' kubectl delete pod p1 --force --grace-period=0

pod drained b | kubectl create -f - >/dev/null
# kubectl sends these DeleteOptions as protobuf.
expect 'drain a node' 'node/local drained' kubectl drain local --force --grace-period=0 --timeout=30s
expect 'the pod of the drained node is gone' '^.?$' kubectl get pods -o name
expect 'uncordon it' 'uncordoned' kubectl uncordon local

# ---- pods that run
if $pods_run; then
	pod live b | kubectl create -f - >/dev/null
	expect 'wait until a pod is ready' 'condition met' kubectl wait pod/live --for=condition=Ready \
		--timeout=60s
	until_true 100 sh -c 'kubectl logs live | grep -q two'
	expect 'logs' '^one.two' kubectl logs live
	expect 'logs --tail' '^two' kubectl logs live --tail=1
	kubectl logs -f live >followed 2>&1 &
	follower=$!
	expect 'logs -f begins with what there is' '' until_true 100 grep -q two followed
	kubectl delete pod live --grace-period=1 >/dev/null
	expect_end 'logs -f ends with the pod' "$follower"

	# shellcheck disable=SC2016 # for the shell of the pod
	job 'done' 1 'echo rank $RANK' | kubectl create -f - >/dev/null
	expect 'wait until a job has succeeded' 'condition met' kubectl wait pytorchjob/done \
		--for=condition=Succeeded --timeout=90s
	expect 'the job is Succeeded' 'done +Succeeded' kubectl get pytorchjobs
	expect 'the log of the job' 'rank 0' kubectl logs done-master-0
	# An event is sent after the status, and may arrive later. The condition has the same reason, so the pattern has the type
	# of the event too.
	expect 'the events of the job' '' until_true 100 \
		sh -c 'kubectl describe pytorchjob "done" | grep -q "Normal *PyTorchJobSucceeded"'
	for how in background foreground orphan; do
		job "by-$how" 1 'exec sleep 1000' | kubectl create -f - >/dev/null
		until_true 600 sh -c "kubectl get pods by-$how-worker-0 | grep -q Running"
		expect "delete, $how" 'deleted' kubectl delete pytorchjob "by-$how" --cascade="$how" --timeout=60s
	done
	expect 'the pods of an orphaning deletion stay' 'by-orphan-master-0' \
		kubectl get pods by-orphan-master-0 -o name
	expect 'the pods of a deletion in the foreground are gone' '^.?$' \
		kubectl get pods -l training.kubeflow.org/job-name=by-foreground -o name
	# shellcheck disable=SC2016 # for the shell that is started again and again
	expect 'the pods of a deletion in the background are deleted' '' until_true 600 sh -c \
		'[ -z "$(kubectl get pods -l training.kubeflow.org/job-name=by-background -o name)" ]'
	expect 'delete the orphaned pods' 'deleted' kubectl delete pods \
		-l training.kubeflow.org/job-name=by-orphan --grace-period=1 --timeout=60s
fi
for how in background foreground orphan; do
	sed "s/name: crud/name: plain-$how/" suspended.yaml | kubectl create -f - >/dev/null
	expect "delete a suspended job, $how" 'deleted' \
		kubectl delete pytorchjob "plain-$how" --cascade="$how" --timeout=30s
done
expect 'delete all' 'crud" deleted' kubectl delete pytorchjobs --all --timeout=30s
finish
