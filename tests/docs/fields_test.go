// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/docs/markdown"
	"github.com/satchel-dev/satchel/tests/installation"
)

// kinds are the kinds of Satchel, with all of their fields.
var kinds = map[string]func() any{
	"BundleApproval":    func() any { return new(v1alpha1.BundleApproval) },
	"BundleCatalog":     func() any { return new(v1alpha1.BundleCatalog) },
	"BundleDeployment":  func() any { return new(v1alpha1.BundleDeployment) },
	"BundleImagePolicy": func() any { return new(v1alpha1.BundleImagePolicy) },
	"BundleRollout":     func() any { return new(v1alpha1.BundleRollout) },
	"BundleSource":      func() any { return new(v1alpha1.BundleSource) },
}

// TestManifestsHaveKnownFields shows that manifests of Satchel, on the pages and in the samples, have only fields that exist. TestDocs
// has the API server try most of them; this test also reads BundleRollouts, with their templates, and needs no control plane.
func TestManifestsHaveKnownFields(t *testing.T) {
	found := 0
	for name, page := range pages(t) {
		if generated(name) {
			continue
		}
		p := &reader{}
		p.kind, _ = page.Mark("kind")
		for _, step := range page.Steps {
			if step.Language == "yaml" {
				found += p.known(t, step)
			}
		}
	}
	for _, pattern := range []string{"*/*.yaml", "*/*/*.yaml"} {
		samples, err := filepath.Glob(filepath.Join(installation.Root(), "config/samples", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range samples {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			found += new(reader).known(t, markdown.Step{Page: name, Text: string(text)})
		}
	}
	if found < 90 {
		t.Errorf("only %d manifests of Satchel were found", found)
	}
}

// known reads the manifests of a block strictly, and returns how many are of Satchel.
func (p *reader) known(t *testing.T, step markdown.Step) int {
	t.Helper()
	found := 0
	_, isPart := step.Mark("in")
	for document := range strings.SplitSeq("\n"+step.Text, "\n---\n") {
		var part any
		if err := yaml.Unmarshal([]byte(document), &part); err != nil {
			t.Errorf("%s: %v", step, err)
			continue
		}
		if isPart || p.kind != "" {
			if object, err := p.complete(step, part); err == nil {
				part = object
			}
		}
		known, err := decode(part)
		if err != nil {
			t.Errorf("%s: %v:\n%s", step, err, document)
		}
		found += known
	}
	return found
}

// decode reads an object of Satchel strictly, and counts it. Objects of others are not looked at.
func decode(object any) (int, error) {
	fields, _ := object.(map[string]any)
	kind, _ := fields["kind"].(string)
	version, _ := fields["apiVersion"].(string)
	if kinds[kind] == nil || !strings.HasPrefix(version, v1alpha1.GroupVersion.Group+"/") {
		return 0, nil
	}
	into := kinds[kind]()
	if err := strictly(object, into); err != nil {
		return 1, err
	}
	rollout, is := into.(*v1alpha1.BundleRollout)
	if !is {
		return 1, nil
	}
	parts := [][]byte{rollout.Spec.Template.Spec.Raw}
	for i := range rollout.Spec.Overrides {
		parts = append(parts, rollout.Spec.Overrides[i].Patch.Raw)
	}
	for _, part := range parts {
		if err := yaml.UnmarshalStrict(part, new(v1alpha1.BundleDeploymentSpec)); err != nil {
			return 1, fmt.Errorf("the template or an override: %w", err)
		}
	}
	return 1, nil
}

func strictly(object, into any) error {
	text, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(text, into)
}
