// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/tests/docs/markdown"
)

// trial is the namespace where manifests are tried: a dry run of what exists elsewhere would change it.
const trial = "trial"

// whole is an object of each kind with what is required, for pages that show a part.
var whole = map[string]string{
	"BundleDeployment":  `{"sourceRef": {"kind": "BundleSource", "name": "gadget"}, "serviceAccountName": "installer"}`,
	"BundleSource":      `{"sources": [{"configMap": {"name": "gadget"}}]}`,
	"BundleCatalog":     `{"source": {"image": {"reference": "registry.example.org/catalogs/community:v1"}}}`,
	"BundleImagePolicy": `{"images": [{"prefix": "registry.example.org/org", "deny": true}]}`,
	"BundleApproval":    `{"deployment": "gadget", "plan": "sha256:` + strings.Repeat("0", 64) + `", "decision": "Approve"}`,
}

// manifest tries a block of YAML: as objects, as the spec of one, or as a part of it.
func (p *reader) manifest(ctx context.Context, step markdown.Step) error {
	for document := range strings.SplitSeq(p.names.Replace("\n"+step.Text), "\n---\n") {
		var part any
		if err := yaml.UnmarshalStrict([]byte(document), &part); err != nil {
			return fmt.Errorf("%w in\n%s", err, document)
		}
		if reason, given := step.Mark("parse"); given {
			p.tally.skipped = append(p.tally.skipped, fmt.Sprintf("%s: only parsed: %s", step, reason))
			continue
		}
		object, err := p.complete(step, part)
		if err == nil {
			err = p.try(ctx, &unstructured.Unstructured{Object: object})
		}
		if err != nil {
			return fmt.Errorf("%w:\n%s", err, document)
		}
	}
	return nil
}

// complete makes an object of a part of one.
func (p *reader) complete(step markdown.Step, part any) (map[string]any, error) {
	place, given := step.Mark("in")
	fields, _ := part.(map[string]any)
	if _, isObject := fields["apiVersion"]; isObject && !given {
		return fields, nil
	}
	kind, path, _ := strings.Cut(place, " ")
	if !given {
		kind, path = p.kind, ""
	}
	if whole[kind] == "" {
		return nil, fmt.Errorf("say of what kind this is a part: <!-- test: in KIND PATH --> or <!-- test: page kind KIND -->")
	}
	object := map[string]any{
		"apiVersion": "satchel.dev/v1alpha1", "kind": kind,
		"metadata": map[string]any{"name": "part", "namespace": trial},
	}
	if path != "" {
		if err := unstructured.SetNestedField(object, part, strings.Split(path, ".")...); err != nil {
			return nil, err
		}
	} else {
		object["spec"] = fields["spec"]
	}
	return object, withRequired(object, kind)
}

// withRequired adds what is required and was left out.
func withRequired(object map[string]any, kind string) error {
	required := map[string]any{}
	if err := yaml.Unmarshal([]byte(whole[kind]), &required); err != nil {
		return err
	}
	for field, value := range required {
		_, there, err := unstructured.NestedFieldNoCopy(object, "spec", field)
		if err != nil {
			return err
		}
		_, inline, _ := unstructured.NestedFieldNoCopy(object, "spec", "source")
		_, byName, _ := unstructured.NestedFieldNoCopy(object, "spec", "catalog")
		if there || field == "sourceRef" && (inline || byName) {
			continue
		}
		if err := unstructured.SetNestedField(object, value, "spec", field); err != nil {
			return err
		}
	}
	return nil
}

// try has the API server judge an object, without keeping it.
func (p *reader) try(ctx context.Context, object *unstructured.Unstructured) error {
	namespaced, err := p.admin.IsObjectNamespaced(object)
	if err != nil {
		return err
	}
	if namespaced {
		object.SetNamespace(trial)
	}
	return p.admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("docs"), client.ForceOwnership, client.DryRunAll)
}
