// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"os"
	"runtime"
	"testing"
	"testing/fstest"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/tests/measure"
)

// fiveHundred is a chart of five hundred objects, with what charts usually do for each.
func fiveHundred() fstest.MapFS {
	return inlineChart(
		"values.yaml", "count: 100\nimage: {repository: registry.example.org/app, tag: \"1.0\"}\nresources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 100m, memory: 128Mi}}\n",
		"templates/_helpers.tpl", `{{- define "name" -}}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{- end -}}
{{- define "labels" -}}
app.kubernetes.io/name: {{ include "name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | default "0" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}`,
		"templates/all.yaml", `{{- range $i := until (int .Values.count) }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "name" $ }}-{{ $i }}
  labels: {{- include "labels" $ | nindent 4 }}
spec:
  selector: {matchLabels: {app: {{ include "name" $ | quote }}}}
  template:
    metadata:
      labels: {{- include "labels" $ | nindent 8 }}
    spec:
      containers:
      - name: app
        image: {{ $.Values.image.repository }}:{{ $.Values.image.tag | default $.Chart.AppVersion }}
        {{- if eq (mod $i 2) 0 }}
        args: ["even"]
        {{- end }}
        {{- with $.Values.resources }}
        resources: {{- toYaml . | nindent 10 }}
        {{- end }}
{{- range $kind := list "ConfigMap" "Service" "ServiceAccount" "Secret" }}
---
apiVersion: v1
kind: {{ $kind }}
metadata:
  name: {{ include "name" $ }}-{{ $i }}
  labels: {{- include "labels" $ | nindent 4 }}
{{- end }}
{{- end }}
`)
}

// BenchmarkRender is a chart of five hundred objects, beside Helm's library alone.
func BenchmarkRender(b *testing.B) {
	files := fiveHundred()
	dir := b.TempDir()
	if err := os.CopyFS(dir, files); err != nil {
		b.Fatal(err)
	}
	b.Run("satchel", func(b *testing.B) {
		b.ReportAllocs()
		peak := watchHeap(b)
		measure.CPU(b)
		for b.Loop() {
			made, problems := helm.Convert(files, "", "ns", helm.Options{ReleaseName: "demo"}, manifest.Limits{})
			if len(problems) > 0 || len(made.Manifests) != 500 {
				b.Fatal(len(made.Manifests), problems)
			}
		}
		b.ReportMetric(peak(), "MiB-heap")
	})
	b.Run("library", func(b *testing.B) {
		b.ReportAllocs()
		peak := watchHeap(b)
		for b.Loop() {
			_, _, manifests, err := template(dir, map[string]any{}, "demo")
			if err != nil || len(manifests) != 500 {
				b.Fatal(len(manifests), err)
			}
			for _, m := range manifests { // what becomes of them otherwise is decoded, too
				var object map[string]any
				if err := yaml.Unmarshal([]byte(m.Content), &object); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(peak(), "MiB-heap")
	})
}

// watchHeap returns a function that tells the largest heap since, in MiB.
func watchHeap(b *testing.B) func() float64 {
	b.Helper()
	stop, most := make(chan struct{}), make(chan uint64)
	go func() {
		largest := uint64(0)
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			largest = max(largest, stats.HeapAlloc)
			select {
			case <-stop:
				most <- largest
				return
			case <-ticker.C:
			}
		}
	}()
	return func() float64 { close(stop); return float64(<-most) / (1 << 20) }
}
