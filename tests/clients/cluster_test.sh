#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# cluster_test.sh KUBECTL FOLDER [old]: what users do to jobs with kubectl, on the real Kubernetes cluster
# of KUBECONFIG, where pods run.  old: KUBECTL is Debian's 1.20, which lacks some commands.  The part
# "clients" of ./dev conformance calls this script.
# shellcheck disable=SC2016 # for shells in pods and children
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/clients/lib.sh
. "$here/lib.sh"

kubectl=$1
folder=$2
old=${3:-}
mkdir -p "$folder/bin"
ln -sf "$kubectl" "$folder/bin/kubectl"
PATH=$folder/bin:$PATH
cd "$folder"
export HOME=$folder TMPDIR=$folder
ns=kubectl${old:+-old}
kubectl create namespace "$ns" >/dev/null
kubectl config set-context --current --namespace="$ns" >/dev/null
until_true 300 kubectl get serviceaccount default

# job NAME WORKERS COMMAND
job() {
	cat <<-END
	apiVersion: kubeflow.org/v1
	kind: PyTorchJob
	metadata: {name: $1}
	spec:
	  runPolicy: {suspend: ${suspend:-false}, cleanPodPolicy: None}
	  pytorchReplicaSpecs:
	    Master:
	      replicas: 1
	      restartPolicy: Never
	      template: &rank
	        spec:
	          terminationGracePeriodSeconds: 1
	          containers:
	          - {name: pytorch, image: 'localhost/busybox:1', command: [sh, -c, "$3"]}
	    Worker:
	      replicas: $2
	      restartPolicy: Never
	      template: *rank
	END
}
replicas() { kubectl get pytorchjob "$1" -o "jsonpath={.spec.pytorchReplicaSpecs.Worker.replicas}"; }
# since_120 …: runs a check that needs a kubectl newer than 1.20.
since_120() { [ -n "$old" ] || "$@"; }

# ---- discovery and lists
expect 'kinds are listed' 'pytorchjobs .*kubeflow.org/v1 +true +PyTorchJob' kubectl api-resources
expect 'explain' 'runPolicy.<(RunPolicy|Object)>' kubectl explain pytorchjob.spec
expect 'explain what only Holdfast has' 'restartScope.<string>' \
	kubectl explain pytorchjob.spec.runPolicy.recovery
expect 'explain a pod template' 'containers.<\[\](Container|Object)>' \
	kubectl explain pytorchjob.spec.pytorchReplicaSpecs.template.spec
expect 'explain it all' 'backoffLimit' kubectl explain mpijob --recursive
since_120 expect 'explain as OpenAPI v2 has it' 'runPolicy' \
	kubectl explain pytorchjob.spec --output=plaintext-openapiv2

# ---- an object, whose pods wait
suspend=true job crud 2 'sleep 1000' >crud.yaml
expect 'create' 'pytorchjob.kubeflow.org/crud created' kubectl create --save-config -f crud.yaml
refuse 'create twice' 'AlreadyExists' kubectl create -f crud.yaml
expect 'the job is Suspended' '' until_true 300 sh -c 'kubectl get pytorchjob crud | grep -q Suspended'
expect 'get as a table' 'NAME +STATE +AGE.*crud +Suspended' kubectl get pytorchjobs
expect 'get wide' 'NAME +STATE' kubectl get pytorchjobs -o wide
expect 'describe' 'Kind: +PyTorchJob.*Events:' kubectl describe pytorchjob crud
expect 'apply without a change' 'crud unchanged' kubectl apply -f crud.yaml
sed 's/replicas: 2/replicas: 3/' crud.yaml >three.yaml
expect 'diff shows the change' 'replicas: 3' sh -c 'kubectl diff -f three.yaml || [ $? -eq 1 ]'
expect 'a dry run of the server' 'configured \(server dry run\)' \
	kubectl apply --dry-run=server -f three.yaml
expect 'the dry run stored nothing' '^2.$' replicas crud
expect 'apply with a change' 'crud configured' kubectl apply -f three.yaml
expect 'the change is there' '^3.$' replicas crud
expect 'edit' 'crud edited' env KUBE_EDITOR='sed -i "s/replicas: 3/replicas: 4/"' \
	kubectl edit pytorchjob crud
expect 'the edited replicas are stored' '^4.$' replicas crud
refuse 'edit to what breaks a rule' '"crud" is invalid' \
	env KUBE_EDITOR='sed -i "s/restartPolicy: Never/restartPolicy: Perhaps/"' kubectl edit pytorchjob crud
expect 'replace' 'replaced' sh -c 'kubectl get pytorchjob crud -o json | kubectl replace -f -'
expect 'patch, merge' 'patched' kubectl patch pytorchjob crud --type merge \
	-p '{"metadata":{"labels":{"team":"a"}}}'
expect 'patch, json' 'patched' kubectl patch pytorchjob crud --type json \
	-p '[{"op":"replace","path":"/metadata/labels/team","value":"b"}]'
# The same error as for every custom resource.
refuse 'patch, strategic' 'UnsupportedMediaType|unknown format|merge-patch\+json' \
	kubectl patch pytorchjob crud --type strategic -p '{"metadata":{"labels":{"team":"c"}}}'
expect 'label, and select by it' 'pytorchjob.kubeflow.org/crud' \
	sh -c 'kubectl label pytorchjob crud x=1 >/dev/null && kubectl get pytorchjobs -l x=1 -o name'
expect 'annotate' 'annotated' kubectl annotate pytorchjob crud note=hello
expect 'scale' 'scaled' kubectl scale pytorchjob crud --replicas=2
expect 'the scaled replicas are stored' '^2.$' replicas crud
refuse 'scale to nothing' 'replicas' kubectl scale pytorchjob crud --replicas=0
since_120 expect 'the status alone' 'Suspended' kubectl get pytorchjob crud --subresource=status -o yaml
since_120 expect 'scale as an object' 'kind: Scale' kubectl get pytorchjob crud --subresource=scale -o yaml

# ---- errors
sed 's/^spec:/spec:\n  foo: 1/; s/name: crud/name: odd/' crud.yaml >odd.yaml
refuse 'unknown fields' 'unknown field "(spec.)?foo"' kubectl create -f odd.yaml
sed 's/replicas: 1$/replicas: 2/; s/name: crud/name: odd/' crud.yaml >two.yaml
refuse 'a job that breaks a rule is refused' 'PyTorchJob "odd" is invalid: ' kubectl create -f two.yaml

# ---- server-side apply, while the operator writes the status
suspend=true job owned 1 'sleep 1000' >owned.yaml
expect 'server-side apply creates a job' 'owned serverside-applied' kubectl apply --server-side -f owned.yaml
expect 'the operator has written' '' until_true 300 sh -c 'kubectl get pytorchjob owned | grep -q Suspended'
fields='jsonpath={range .metadata.managedFields[*]}{.manager}:{.operation}:{.subresource}{"\n"}{end}'
managers() { kubectl get pytorchjob owned -o "$fields"; }
expect 'who owns what' 'kubectl:Apply:' managers
expect 'the operator owns but the status' '^(holdfast:Update:status.|kubectl:Apply:.)+$' managers
expect 'apply again without a change' 'serverside-applied' kubectl apply --server-side -f owned.yaml
version() { kubectl get pytorchjob owned -o 'jsonpath={.metadata.resourceVersion}'; }
before=$(version)
kubectl apply --server-side -f owned.yaml >/dev/null
expect 'that apply wrote nothing' "^$before.\$" version
expect_owners 1 ${old:+--validate=false}

# ---- pods that run
job live 1 'echo rank $RANK; exec tail -f /dev/null' | kubectl create -f - >/dev/null
expect 'wait until it runs' 'condition met' \
	kubectl wait pytorchjob/live --for=condition=Running --timeout=120s
since_120 expect 'wait for a field' 'condition met' kubectl wait pytorchjob/live --timeout=60s \
	--for='jsonpath={.status.replicaStatuses.Worker.active}=1'
expect 'the worker runs after the master' '' \
	until_true 900 sh -c 'kubectl get pod live-worker-0 | grep -q Running'
expect 'pods' 'live-master-0 +1/1 +Running.*live-worker-0 +1/1 +Running' kubectl get pods
expect 'logs' 'rank 0' kubectl logs live-master-0
expect 'logs by label' 'rank 1' kubectl logs -l training.kubeflow.org/replica-type=worker -c pytorch
expect 'exec' '1.$' kubectl exec live-worker-0 -- sh -c 'echo $RANK'
expect 'events' 'SuccessfulCreatePod' kubectl get events
since_120 expect 'events of a job' 'PyTorchJobRunning|SuccessfulCreatePod' kubectl events --for pytorchjob/live
expect 'suspend' 'patched' kubectl patch pytorchjob live --type merge -p '{"spec":{"runPolicy":{"suspend":true}}}'
expect 'the pods of a suspended job are deleted' '' kubectl wait pod/live-master-0 --for=delete --timeout=60s
expect 'the job has the condition Suspended' 'condition met' \
	kubectl wait pytorchjob/live --for=condition=Suspended --timeout=60s
job 'done' 1 'echo rank $RANK' | kubectl create -f - >/dev/null
expect 'wait until a job has succeeded' 'condition met' \
	kubectl wait pytorchjob/done --for=condition=Succeeded --timeout=120s
expect 'the job is Succeeded' 'done +Succeeded' kubectl get pytorchjobs
expect 'the job has its events' '' until_true 300 \
	sh -c 'kubectl describe pytorchjob "done" | grep -q "Normal *PyTorchJobSucceeded"'
job fails 1 'exit 3' | kubectl create -f - >/dev/null
expect 'wait until a job has failed' 'condition met' \
	kubectl wait pytorchjob/fails --for=condition=Failed --timeout=120s

# ---- the ClusterRoles for users
expect 'an editor' 'created' kubectl create rolebinding e --clusterrole=edit --user=ed
expect 'a viewer' 'created' kubectl create rolebinding v --clusterrole=view --user=vi
expect 'an editor may make jobs' '' until_true 100 kubectl auth can-i create pytorchjobs --as=ed
expect 'a viewer may get jobs' '^yes' kubectl auth can-i get mpijobs --as=vi
refuse 'a viewer may not delete jobs' '^no' kubectl auth can-i delete pytorchjobs --as=vi

# ---- the end
how=(background foreground orphan)
for how in "${how[@]}"; do
	suspend=true job "by-$how" 1 true | kubectl create -f - >/dev/null
	expect "delete, $how" 'deleted' kubectl delete pytorchjob "by-$how" --cascade="$how" --timeout=60s
done
job whole 1 'sleep 1000' | kubectl create -f - >/dev/null
kubectl wait pytorchjob/whole --for=condition=Running --timeout=120s >/dev/null || true
expect 'delete a running job and what it has' 'deleted' \
	kubectl delete pytorchjob whole --cascade=foreground --timeout=60s
expect 'nothing of the deleted job is left' '^.?$' \
	kubectl get pods,services -l training.kubeflow.org/job-name=whole -o name
expect 'delete all' 'crud" deleted' kubectl delete pytorchjobs --all --timeout=60s
expect 'the pods of the deleted jobs are deleted' '' until_true 600 sh -c '[ -z "$(kubectl get pods -o name)" ]'
kubectl delete namespace "$ns" --wait=false >/dev/null
kubectl config set-context --current --namespace=default >/dev/null
finish
