// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const adapting = `apiVersion: satchel.dev/v1alpha1
kind: BundleDeployment
metadata: {name: demo, namespace: demo}
spec:
  sourceRef: {kind: BundleSource, name: demo}
  serviceAccountName: installer
  processors:
  - patch:
      {target: {kind: Pod}, patch: "a: b"}
  - patch:
      {target: {kind: Shop}, patch: "metadata: {annotations: {region: '${region}', size: '${size}', password: '${password}'}}"}
  - names: {prefix: eu-}
  - variables:
      values: {region: eu}
      valuesFrom: [{kind: ConfigMap, name: sizes}, {kind: Secret, name: keys}, {kind: Secret, name: none, optional: true}]
`

const variables = `---
apiVersion: v1
kind: ConfigMap
metadata: {name: sizes}
data: {size: big, region: us}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
data: {password: aHVudGVyMjI=}
`

// TestOverlaysOfAFile renders and describes a bundle as a deployment would have it.
func TestOverlaysOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "deployment.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(adapting + variables)
	got := satchel(t, "render", bundles+"plain", "-f", file)
	for _, want := range []string{"name: eu-", "region: eu", "size: big", "password: hunter22"} {
		if got.Code != 0 || !strings.Contains(got.Out, want) {
			t.Fatalf("no %q in %s", want, got)
		}
	}
	if want := "spec.processors[0].patch selects no object (kind Pod)"; !strings.Contains(got.Err, want) {
		t.Errorf("no warning %q in %s", want, got.Err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"no deployment":       {variables, "no BundleDeployment is in it: give the manifest of one"},
		"two":                 {adapting + "---\n" + adapting, "BundleDeployments are in it"},
		"a field that is not": {strings.Replace(adapting, "prefix: eu-", "begin: eu-", 1), `unknown field "spec.processors[2].names.begin"`},
		"values not there":    {adapting, "spec.processors[3].variables.valuesFrom[0] names the ConfigMap sizes, which is not in "},
		"a variable":          {strings.Replace(adapting+variables, "size: big, ", "", 1), "the variable size has no value"},
		"no YAML":             {"a: [", "this is not valid YAML"},
	} {
		write(c.text)
		got := satchel(t, "render", bundles+"plain", "-f", file)
		if got.Code == 0 || !strings.Contains(got.Err, c.want) || strings.Contains(got.Err, "hunter22") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := satchel(t, "render", bundles+"plain", "-f", "-", "--values", "-"); !strings.Contains(got.Err, "can be standard input") {
		t.Error(got)
	}
}
