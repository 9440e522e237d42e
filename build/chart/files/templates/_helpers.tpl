{{/* The namespace of the controllers. */}}
{{- define "satchel.namespace" -}}
{{- if .Values.namespace.name -}}
{{- .Values.namespace.name -}}
{{- else if eq .Release.Namespace "default" -}}
satchel-system
{{- else -}}
{{- .Release.Namespace -}}
{{- end -}}
{{- end -}}

{{/* Not empty where the namespace of the controllers is not that of the release, which Helm creates. */}}
{{- define "satchel.createNamespace" -}}
{{- if and .Values.namespace.create (ne (include "satchel.namespace" .) .Release.Namespace) -}}
true
{{- end -}}
{{- end -}}

{{/* The image of a controller: a list of the root, the controller's values and its name. */}}
{{- define "satchel.image" -}}
{{- $root := index . 0 -}}
{{- $values := index . 1 -}}
{{- if $values.image -}}
{{- $values.image -}}
{{- else -}}
{{- $root.Values.image.registry }}/{{ index . 2 }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion -}}
{{- end -}}
{{- end -}}
