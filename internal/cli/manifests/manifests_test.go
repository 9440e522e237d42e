// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/cli/manifests"
)

const deployment = `apiVersion: satchel.dev/v1alpha1
kind: BundleDeployment
metadata: {name: web, namespace: shop}
spec:
  serviceAccountName: installer
  sourceRef: {kind: BundleSource, name: web}
  helm: {valuesFrom: [{kind: Secret, name: keys}]}
`

const source = `---
apiVersion: satchel.dev/v1alpha1
kind: BundleSource
metadata: {name: web}
spec: {sources: [{image: {reference: "example.org/web:v1"}}]}
`

const secret = `---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {values.yaml: "password: hunter22"}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
`

// TestRead reads what a deployment refers to, from a file, from a folder and from standard input.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"deployment.yaml": deployment, "source.yml": source, "secret.yaml": secret, "kustomization.yaml": "resources: [deployment.yaml]\n", "README.md": "{",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	whole := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(whole, []byte(deployment+source+secret), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string][]string{
		"a folder": {dir}, "a file": {whole}, "standard input": {"-"},
		"several": {filepath.Join(dir, "deployment.yaml"), filepath.Join(dir, "source.yml"), filepath.Join(dir, "secret.yaml")},
	} {
		set, err := manifests.Read(files, strings.NewReader(deployment+source+secret))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		d, err := set.Deployment(t.Context(), "", "default")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		spec, err := set.Source(t.Context(), d)
		if err != nil || spec == nil || spec.Sources[0].Image.Reference != "example.org/web:v1" {
			t.Errorf("%s: the source is %+v %v", name, spec, err)
		}
		contents, err := set.Contents(d)
		if err != nil || set.Missing(d, contents) != nil || len(contents) != 1 {
			t.Errorf("%s: the inputs are %v %v", name, contents, err)
		}
	}
}

// TestRefused checks that errors name the file, the object and the field, and no value of a Secret.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, deployment, want string }{
		"none":            {source, "", "no BundleDeployment is in it"},
		"two":             {deployment + "---\n" + strings.Replace(deployment, "name: web", "name: other", 1), "", "2 BundleDeployments are in it: web, other; give a file with one"},
		"another":         {deployment, "shop", `no BundleDeployment "shop" is in it: it has web`},
		"no YAML":         {"a: [", "", "this is not valid YAML"},
		"unknown field":   {strings.Replace(deployment, "helm:", "helms:", 1), "", `BundleDeployment web is not valid:` + "\n" + `  - unknown field "spec.helms"`},
		"required":        {strings.Replace(deployment, "  serviceAccountName: installer\n", "", 1), "", "spec.serviceAccountName: "},
		"type":            {strings.Replace(deployment, "serviceAccountName: installer", "serviceAccountName: 5", 1), "", "spec.serviceAccountName: "},
		"a rule":          {deployment + "  source: {sources: [{image: {reference: a}}]}\n", "", "source"},
		"another version": {strings.Replace(deployment, "v1alpha1", "v9", 1), "", `apiVersion "satchel.dev/v9" is not served: write apiVersion: satchel.dev/v1alpha1`},
	} {
		set, err := manifests.Read([]string{"-"}, strings.NewReader(c.text+secret))
		if err == nil {
			_, err = set.Deployment(t.Context(), c.deployment, "default")
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter22") || !strings.Contains(err.Error(), "standard input") {
			t.Errorf("%s: got %v", name, err)
		}
		t.Log(err)
	}
	if _, err := manifests.Read([]string{t.TempDir()}, nil); err == nil || !strings.Contains(err.Error(), "has no manifests") {
		t.Errorf("an empty folder: %v", err)
	}
}
