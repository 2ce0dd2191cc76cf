{{/* The name of everything of a release. */}}
{{- define "causeway-zone.name" -}}
{{- if contains "causeway-zone" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-causeway-zone" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* What selects the pods: never changed, as a StatefulSet cannot. */}}
{{- define "causeway-zone.selector" -}}
app.kubernetes.io/name: causeway-zone
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "causeway-zone.labels" -}}
{{ include "causeway-zone.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
