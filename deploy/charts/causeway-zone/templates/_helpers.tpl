{{/* The name of everything of a release. */}}
{{- define "causeway-zone.name" -}}
{{- if contains "causeway-zone" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-causeway-zone" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* What selects the pods: never changed, as a StatefulSet cannot. */}}
{{- define "causeway-zone.selector" -}}
app.kubernetes.io/name: causeway-zone
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* The pods of the zone ingress. */}}
{{- define "causeway-zone.ingressSelector" -}}
app.kubernetes.io/name: causeway-zone-ingress
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "causeway-zone.ingressLabels" -}}
{{ include "causeway-zone.ingressSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "causeway-zone.labels" -}}
{{ include "causeway-zone.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* The names of the Services, and those that the values add, for the server's certificate. */}}
{{- define "causeway-zone.hosts" -}}
{{- $name := include "causeway-zone.name" . }}{{ $svc := printf "%s.svc" .Release.Namespace }}{{ $full := printf "%s.%s" $svc .Values.clusterDomain }}
{{- $hosts := list }}
{{- range $service := list $name (printf "%s-api" $name) }}
{{- $hosts = concat $hosts (list $service (printf "%s.%s" $service $.Release.Namespace) (printf "%s.%s" $service $svc) (printf "%s.%s" $service $full)) }}
{{- end }}
{{- $hosts = concat $hosts (list (printf "*.%s-headless.%s" $name $svc) (printf "*.%s-headless.%s" $name $full)) .Values.tls.names }}
{{- join "," $hosts }}
{{- end }}

{{/* The size in the StatefulSet's template: that of an installed one, as it cannot be changed. */}}
{{- define "causeway-zone.templateSize" -}}
{{- $set := lookup "apps/v1" "StatefulSet" .Release.Namespace (include "causeway-zone.name" .) }}
{{- $claims := dig "spec" "volumeClaimTemplates" (list) $set }}
{{- if $claims }}{{ (first $claims).spec.resources.requests.storage }}{{ else }}4Gi{{ end }}
{{- end }}

{{/* The data folder: the volume, or a folder in it. Everybody may write an emptyDir, which the server refuses. */}}
{{- define "causeway-zone.dataDir" -}}
/var/lib/causeway{{ if not .Values.persistence.enabled }}/data{{ else if .Values.persistence.folder }}/{{ .Values.persistence.folder }}{{ end }}
{{- end }}

{{/* The name of what has no namespace. */}}
{{- define "causeway-zone.unique" -}}
{{ printf "%s-%s" (include "causeway-zone.name" .) .Release.Namespace | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The types with a namespace, in plural. */}}
{{- define "causeway-zone.namespaced" -}}
dataplaneinsights,dataplanes,hostnamegenerators,meshaccesslogs,meshcircuitbreakers,meshexternalservices,meshfaultinjections,meshhealthchecks,meshhttproutes,meshidentities,meshloadbalancingstrategies,meshmetrics,meshmultizoneservices,meshpassthroughs,meshproxypatches,meshratelimits,meshreferencegrants,meshretries,meshservices,meshtcproutes,meshtimeouts,meshtlses,meshtraces,meshtrafficpermissions,meshtrusts,zoneingresses
{{- end }}

{{/* Whether there has been a Lease: what its replicas shared is in Secrets, and may be newer than any volume. */}}
{{- define "causeway-zone.shared" -}}
{{- $lease := lookup "coordination.k8s.io/v1" "Lease" .Release.Namespace (include "causeway-zone.name" .) }}
{{- if and .Values.kubernetes.enabled (or .Values.kubernetes.lease (dig "metadata" "annotations" "causeway.io/begun" "" $lease)) }}true{{ end }}
{{- end }}

{{/* Whether replicas choose a leader by a Lease: several of them, with a store in a file each, or one that is left. */}}
{{- define "causeway-zone.lease" -}}
{{- if and (gt (int .Values.replicas) 1) (eq .Values.store.kind "etcd") }}{{ fail "replicas: a zone on etcd has one" }}{{ end }}
{{- if and (or (gt (int .Values.replicas) 1) (include "causeway-zone.shared" .)) (eq .Values.store.kind "bolt") }}
{{- if not .Values.kubernetes.enabled }}{{ fail "replicas: more than one needs kubernetes.enabled" }}{{ end }}
{{- if not .Values.secretsKey.secretName }}{{ fail "replicas: more than one, and one that is left of several, need secretsKey.secretName: what the replicas share is sealed with that key" }}{{ end }}
{{- include "causeway-zone.name" . }}
{{- end }}
{{- end }}

{{/* What selects the pod that serves. */}}
{{- define "causeway-zone.serving" -}}
{{ include "causeway-zone.selector" . }}
{{- if include "causeway-zone.lease" . }}
causeway.io/leader: "true"
{{- end }}
{{- end }}

{{/* The name of what installs the plugin on each node. It may be in a namespace that other releases use. */}}
{{- define "causeway-zone.cni" -}}
{{ printf "%s-cni" (include "causeway-zone.unique" . | trunc 59 | trimSuffix "-") }}
{{- end }}

{{- define "causeway-zone.cniSelector" -}}
app.kubernetes.io/name: causeway-cni
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "causeway-zone.cniLabels" -}}
{{ include "causeway-zone.cniSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* Where the plugin belongs, as the container sees the folders of its node. */}}
{{- define "causeway-zone.cniFlags" -}}
- --bin-dir=/host/bin
- --conf-dir=/host/conf
- --except-namespaces=kube-system,kube-public,kube-node-lease,{{ .Release.Namespace }}
{{- with .Values.injection.cni.confFile }}
- {{ printf "--conf-file=%s" . | quote }}
{{- end }}
{{- end }}

{{/* Fails if users' objects have another server already: two would contradict each other in the status of every object. */}}
{{- define "causeway-zone.only" -}}
{{- $all := lookup "admissionregistration.k8s.io/v1" "ValidatingWebhookConfiguration" "" "" }}
{{- range dig "items" (list) $all }}
{{- $of := dig "metadata" "labels" "app.kubernetes.io/name" "" . }}
{{- if and (or (eq $of "causeway-zone") (eq $of "causeway-global")) (ne .metadata.name (include "causeway-zone.unique" $)) }}
{{- fail (printf "kubernetes.enabled: the objects of this cluster have a server already, whose webhooks are in %s: an object has one server. Uninstall that release first, or delete its webhook configurations if it is gone" .metadata.name) }}
{{- end }}
{{- end }}
{{- end }}
