// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/internal/convert"
)

// TestFluxF13DuplicateKeys: what server-side apply would refuse in the middle of an installation is refused before, with file, object, list
// and key; of environment variables the last one counts, with a warning. In all formats and for hooks.
func TestFluxF13DuplicateKeys(t *testing.T) {
	const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: twin}
spec:
  selector: {matchLabels: {app: twin}}
  template:
    metadata: {labels: {app: twin}}
    spec:
      containers:
      - name: a
        image: registry.example/a:1
        env: [{name: MODE, value: first}, {name: OTHER, value: x}, {name: MODE, value: second}]
        ports: [{containerPort: 80, name: web}PORT]
`
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-install}}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: x}HOOK]}}}\n"
	tree := func(format convert.Format, port, hook string) fstest.MapFS {
		text := strings.ReplaceAll(deployment, "PORT", port)
		files := fstest.MapFS{}
		switch format {
		case convert.Helm:
			files["Chart.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v2\nname: c\nversion: 1.0.0\n")}
			files["templates/d.yaml"] = &fstest.MapFile{Data: []byte(text)}
			files["templates/hook.yaml"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(job, "HOOK", hook))}
		case convert.Kustomize:
			files["kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [d.yaml]\n")}
			files["d.yaml"] = &fstest.MapFile{Data: []byte(text)}
		default:
			files["manifests/d.yaml"] = &fstest.MapFile{Data: []byte(text)}
		}
		return files
	}
	for _, format := range []convert.Format{convert.PlainV0, convert.Kustomize, convert.Helm} {
		options := convert.Options{Format: format, InstallNamespace: "ns"}
		_, err := convert.Convert(tree(format, ", {containerPort: 80, name: admin}", ", {name: a, image: y}"), options)
		want := []string{"d.yaml", "Deployment twin: spec.template.spec.containers[a].ports has containerPort 80, protocol TCP twice, which the API server refuses to apply; keep one of them"}
		if format == convert.Helm {
			want = append(want, "templates/hook.yaml", "Job hook: spec.template.spec.containers has name a twice")
		}
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) && (format != convert.Kustomize || part != "d.yaml") {
				t.Errorf("%s: %v lacks %q", format, err, part)
			}
		}
		result, err := convert.Convert(tree(format, "", ""), options)
		if err != nil || !slices.ContainsFunc(result.Warnings, func(warning string) bool {
			return strings.Contains(warning, "Deployment twin: spec.template.spec.containers[a].env has name MODE twice: the last one counts, as for the kubelet")
		}) {
			t.Errorf("%s: %q, %v", format, result.Warnings, err)
		}
	}
}
