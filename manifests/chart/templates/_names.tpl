{{- define "dlctl.labels" -}}
app.kubernetes.io/name: dlctl
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "dlctl.selector" -}}
app.kubernetes.io/name: dlctl
app.kubernetes.io/component: controller
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "dlctl.lease" -}}
{{ index .Values.settings "leader-election-id" | default .Release.Name }}
{{- end }}

{{- define "dlctl.lease-namespace" -}}
{{ index .Values.settings "leader-election-namespace" | default .Release.Namespace }}
{{- end }}

{{- define "dlctl.metrics-port" -}}
{{ include "dlctl.port" (dict "settings" .Values.settings "own" "metrics-bind-address") }}
{{- end }}

{{- define "dlctl.health-port" -}}
{{ include "dlctl.port" (dict "settings" .Values.settings "own" "health-probe-bind-address") }}
{{- end }}

{{- define "dlctl.port" -}}
{{ index .settings .own | default (index .settings "bind-address") | default ":8080" | toString | regexFind "[0-9]+$" }}
{{- end }}

{{- define "dlctl.authenticates-metrics" -}}
{{- if or .Values.metricsAuthentication (eq (index .Values.settings "metrics-authentication" | toString) "true") -}}
yes
{{- end }}
{{- end }}

{{- /* Values files hold numbers as floats: printed as they are, large ones have an exponent. */ -}}
{{- define "dlctl.setting" -}}
{{- if kindIs "slice" . }}{{ join "," . }}{{ else if kindIs "string" . }}{{ . }}{{ else }}{{ toJson . }}{{ end }}
{{- end }}
