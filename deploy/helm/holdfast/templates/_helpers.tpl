{{- /* SPDX-License-Identifier: Apache-2.0
Copyright The Holdfast authors */}}

{{- /* The image, by digest if there is one. */}}
{{- define "holdfast.image" }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- /* What stands in front of the path of a runbook. */}}
{{- define "holdfast.runbookBase" }}
{{- with .Values.alerts.runbookBase }}
{{- printf "%s/" (trimSuffix "/" .) }}
{{- end }}
{{- end }}

{{- /* Values that contradict each other. */}}
{{- define "holdfast.check" }}
{{- if and .Values.admission.deny .Values.crds.enabled .Values.crds.jobs }}
{{- fail "admission.deny repeats the rules of Holdfast's CRDs: set crds.jobs=false, or admission.deny=false" }}
{{- end }}
{{- if and .Values.page.enabled (gt (int .Values.operator.replicas) 1) }}
{{- fail "page.enabled needs operator.replicas=1: only the leader knows the jobs, and sessions are in its memory" }}
{{- end }}
{{- if and .Values.operator.watchNamespace (or .Values.mender.enabled .Values.rollouts.enabled) }}
{{- fail "mender.enabled and rollouts.enabled need an empty operator.watchNamespace: an operator of one namespace works on no node" }}
{{- end }}
{{- if and .Values.agent.csi (not .Values.agent.enabled) }}
{{- fail "agent.csi needs agent.enabled=true: the agents serve the volume" }}
{{- end }}
{{- if and .Values.agent.enabled (eq .Values.agent.namespace .Release.Namespace) }}
{{- fail (printf "agent.namespace is the namespace of the release, %s: the agent is privileged and needs a namespace of its own" .Release.Namespace) }}
{{- end }}
{{- end }}

{{- /* Where a pod may run, and as what: (dict "pod" VALUES "root" $). */}}
{{- define "holdfast.scheduling" }}
{{- with .pod.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .pod.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Flags of the operator, one a line. */}}
{{- define "holdfast.operatorArgs" }}
{{- with .Values.operator }}
- --leader-elect
{{- if .gangSchedulerName }}
- {{ printf "--gang-scheduler-name=%s" .gangSchedulerName | quote }}
{{- end }}
{{- if .watchNamespace }}
- {{ printf "--namespace=%s" .watchNamespace | quote }}
{{- end }}
{{- if .pytorchInitContainerImage }}
- {{ printf "--pytorch-init-container-image=%s" .pytorchInitContainerImage | quote }}
{{- end }}
{{- if .mpiKubectlDeliveryImage }}
- {{ printf "--mpi-kubectl-delivery-image=%s" .mpiKubectlDeliveryImage | quote }}
{{- end }}
{{- if and $.Values.agent.enabled $.Values.agent.csi }}
- --exec-csi-driver=exec.holdfast.dev
{{- end }}
{{- if $.Values.page.enabled }}
- --page=:8082
{{- range $.Values.page.hosts }}
- {{ printf "--page-host=%s" . | quote }}
{{- end }}
{{- end }}
{{- range .extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}
