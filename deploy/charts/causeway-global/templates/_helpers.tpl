{{/* The name of everything of a release. */}}
{{- define "causeway-global.name" -}}
{{- if contains "causeway-global" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-causeway-global" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* What selects the pods: never changed, as a StatefulSet cannot. */}}
{{- define "causeway-global.selector" -}}
app.kubernetes.io/name: causeway-global
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "causeway-global.labels" -}}
{{ include "causeway-global.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
