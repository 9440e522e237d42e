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

{{/* The templates below get a dict: root, the root; name, that of the controller; values, those of the controller. */}}

{{- define "satchel.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ include "satchel.namespace" .root }}
{{- with .values.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end -}}

{{/* How many replicas, and how they are replaced: a volume can be mounted once, so the previous Pod has to go first. */}}
{{- define "satchel.replicas" -}}
replicas: {{ .values.replicas }}
strategy:
  type: {{ if gt (int .values.replicas) 1 }}RollingUpdate{{ else }}Recreate{{ end }}
selector:
  matchLabels:
    app.kubernetes.io/name: {{ .name }}
{{- end -}}

{{- define "satchel.podMetadata" -}}
labels:
  {{- range $key, $value := .values.podLabels }}
  {{ $key | quote }}: {{ $value | quote }}
  {{- end }}
  app.kubernetes.io/name: {{ .name }}
  app.kubernetes.io/part-of: satchel
annotations:
  {{- range $key, $value := .values.podAnnotations }}
  {{ $key | quote }}: {{ $value | quote }}
  {{- end }}
  kubectl.kubernetes.io/default-container: manager
{{- end -}}

{{/* Fields of the Pod that are the same for both controllers. */}}
{{- define "satchel.pod" -}}
serviceAccountName: {{ .name }}
# Longer than the 20 s that a controller gives its running reconciles.
terminationGracePeriodSeconds: 30
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
{{ toYaml . }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.topologySpreadConstraints }}
topologySpreadConstraints:
{{ toYaml . }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* Fields of the container that are the same for both controllers. */}}
{{- define "satchel.container" -}}
name: manager
image: {{ .values.image | default (printf "%s/%s:%s" .root.Values.image.registry .name (.root.Values.image.tag | default .root.Chart.AppVersion)) }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
env:
- name: RUNTIME_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
{{- with .values.goMemoryLimit }}
- name: GOMEMLIMIT
  value: {{ . }}
{{- end }}
{{- with .values.env }}
{{ toYaml . }}
{{- end }}
livenessProbe:
  httpGet:
    path: /healthz
    port: healthz
readinessProbe:
  httpGet:
    path: /readyz
    port: healthz
{{- with .values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{/* Flags that follow those of the controller. */}}
{{- define "satchel.extraArgs" -}}
{{- with .root.Values.watchLabelSelector }}
- {{ printf "--watch-label-selector=%s" . | quote }}
{{- end }}
{{- range .values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{/* The volume that outlives the Pod, or not. */}}
{{- define "satchel.volume" -}}
{{- if .root.Values.storage.persistent -}}
persistentVolumeClaim:
  claimName: {{ .name }}
{{- else -}}
emptyDir: {}
{{- end -}}
{{- end -}}

{{- define "satchel.volumeClaim" -}}
{{- if .root.Values.storage.persistent -}}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {{ .name }}
  namespace: {{ include "satchel.namespace" .root }}
  labels:
    app.kubernetes.io/part-of: satchel
spec:
  accessModes: [ReadWriteOnce]
{{- with .root.Values.storage.className }}
  storageClassName: {{ . }}
{{- end }}
  resources:
    requests:
      storage: {{ .values.storageSize }}
{{- end -}}
{{- end -}}

{{- define "satchel.podDisruptionBudget" -}}
{{- if .values.podDisruptionBudget.enabled -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ include "satchel.namespace" .root }}
  labels:
    app.kubernetes.io/part-of: satchel
spec:
  maxUnavailable: {{ .values.podDisruptionBudget.maxUnavailable }}
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ .name }}
{{- end -}}
{{- end -}}
