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

{{- /* Empty if nothing is served. */ -}}
{{- define "dlctl.port" -}}
{{- $own := get .settings .own | toString -}}
{{- $shared := dig "bind-address" ":8080" .settings | toString -}}
{{- if ne $own "0" }}{{ $own | default $shared | regexFind "[0-9]+$" }}{{ end }}
{{- end }}

{{- define "dlctl.authenticates-metrics" -}}
{{- $setting := get .Values.settings "metrics-authentication" | toString | lower -}}
{{- if or .Values.metricsAuthentication (has $setting (list "true" "1")) -}}
yes
{{- end }}
{{- end }}

{{- /* Values files hold numbers as floats: printed as they are, large ones have an exponent. */ -}}
{{- define "dlctl.text" -}}
{{- if kindIs "slice" . }}{{ join "," . }}{{ else if kindIs "string" . }}{{ . }}{{ else }}{{ toJson . }}{{ end }}
{{- end }}
