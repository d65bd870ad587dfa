{{- define "keyrail.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "keyrail.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "keyrail.labels" -}}
{{ include "keyrail.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "keyrail.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* What does not fit together, said before anything is installed. */}}
{{- define "keyrail.check" -}}
{{- $b := .Values.broker -}}
{{- $brokers := 0 -}}
{{- if $b.address }}{{ $brokers = add1 $brokers }}{{ end -}}
{{- if $b.existingSecret.name }}{{ $brokers = add1 $brokers }}{{ end -}}
{{- if $b.embedded.enabled }}{{ $brokers = add1 $brokers }}{{ end -}}
{{- if ne (int $brokers) 1 -}}
{{- fail "give exactly one of broker.address (redis://HOST), broker.existingSecret.name and broker.embedded.enabled" -}}
{{- end -}}
{{- if and $b.embedded.enabled (gt (int .Values.replicas) 1) -}}
{{- fail "replicas is more than 1, and an embedded broker is held by one host; set replicas=1, or broker.address to a Redis" -}}
{{- end -}}
{{- if contains "@" $b.address -}}
{{- fail "broker.address has a password or a user in it; put the whole address into a secret and name it in broker.existingSecret" -}}
{{- end -}}
{{- if not .Values.http.tokens.existingSecret -}}
{{- fail "http.tokens.existingSecret is empty; make a secret with the tokens file and name it here (deploy/kubernetes/secret.example.yaml)" -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.serviceMonitor.tokenSecret.name) -}}
{{- fail "metrics.serviceMonitor.tokenSecret.name is empty; /metrics wants a token of the role read" -}}
{{- end -}}
{{- end -}}
