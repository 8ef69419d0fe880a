{{- define "train.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
{{- end }}
