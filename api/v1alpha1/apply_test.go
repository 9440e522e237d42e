// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/satchel-dev/satchel/tests/controlplane"
)

// TestListsOfSpecHaveNoDefaults wants no default below a list of a spec. `kubectl apply` compares lists of custom resources as
// a whole: a field that the API server added to an entry is a difference for ever, and a merge patch each time.
func TestListsOfSpecHaveNoDefaults(t *testing.T) {
	for kind, fields := range fieldsOf(t) {
		for name, schema := range fields {
			if items := schema.Items; strings.HasPrefix(name, "spec.") && items != nil && items.Schema != nil {
				checkNoDefaults(t, kind, name, *items.Schema)
			}
		}
	}
}

func checkNoDefaults(t *testing.T, kind, name string, schema apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	if schema.Default != nil {
		t.Errorf("%s of %s lies in a list and has the default %s: let the code apply it, and document it", name, kind, schema.Default.Raw)
	}
	for key, property := range schema.Properties {
		checkNoDefaults(t, kind, name+"."+key, property)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		checkNoDefaults(t, kind, name, *schema.Items.Schema)
	}
}

// unchanged are manifests as users write them, with a field of each list that could be defaulted.
const unchanged = `
apiVersion: satchel.dev/v1alpha1
kind: BundleSource
metadata:
  name: unchanged
spec:
  sources:
  - image:
      reference: example.org/bundle:v1
---
apiVersion: satchel.dev/v1alpha1
kind: BundleSource
metadata:
  name: composed
spec:
  sources:
  - destination: a
    git:
      url: https://git.example.org/a.git
      verify:
        secretRef: {name: keys}
  - destination: b
    http:
      url: https://example.org/b.tar.gz
      verify:
        signatureURL: https://example.org/b.tar.gz.sig
        secretRef: {name: keys}
---
apiVersion: satchel.dev/v1alpha1
kind: BundleDeployment
metadata:
  name: unchanged
spec:
  serviceAccountName: installer
  source:
    sources:
    - image:
        reference: example.org/bundle:v1
  helm:
    valuesFrom:
    - kind: ConfigMap
      name: values
  prune:
    limit: 20%
`

// TestApplyOfTheSameManifestChangesNothing applies manifests twice, as users and pipelines do that look at what is printed.
func TestApplyOfTheSameManifestChangesNothing(t *testing.T) {
	a := newAdmission(t)
	cp := controlplane.Shared(t)
	cp.RequireControl(t)
	apply := func() string {
		cmd := exec.CommandContext(t.Context(), filepath.Join(cp.BinDir(), "kubectl"),
			"--kubeconfig", cp.KubeconfigPath(), "--namespace", a.namespace, "apply", "-f", "-")
		cmd.Stdin = strings.NewReader(unchanged)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for line := range strings.SplitSeq(apply(), "\n") {
		if !strings.HasSuffix(line, " created") {
			t.Errorf("the first time: %s", line)
		}
	}
	for line := range strings.SplitSeq(apply(), "\n") {
		if !strings.HasSuffix(line, " unchanged") {
			t.Errorf("the second time: %s", line)
		}
	}
}
