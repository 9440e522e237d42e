// SPDX-License-Identifier: Apache-2.0

// Program chart writes the templates of charts/satchel that have no values of their own: the objects of config/default and of
// config/rollouts but for the controllers. `make generate` runs it from the root of the repository.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/install"
)

const generated = "charts/satchel/templates/generated"

// part is a kustomization, and the condition under which its objects are installed; empty: always.
type part struct{ folder, condition string }

var parts = []part{
	{"config/default", ""},
	{"config/rollouts", ".Values.rollouts.enabled"},
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run() error {
	if err := os.RemoveAll(generated); err != nil {
		return err
	}
	if err := os.MkdirAll(generated, 0o755); err != nil {
		return err
	}
	for _, p := range parts {
		if err := p.write(); err != nil {
			return err
		}
	}
	return nil
}

// write writes the templates of a kustomization.
func (p part) write() error {
	objects, err := kustomized(p.folder)
	if err != nil {
		return fmt.Errorf("building %s: %w", p.folder, err)
	}
	for _, o := range objects {
		if isHandWritten(o) {
			continue
		}
		text, err := p.template(o)
		if err != nil {
			return fmt.Errorf("writing the template of %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		name := filepath.Join(generated, strings.ToLower(o.GetKind())+"-"+o.GetName()+".yaml")
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func kustomized(folder string) ([]*unstructured.Unstructured, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // the kustomization sets its own
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, resource := range resources.Resources() {
		fields, err := resource.Map()
		if err != nil {
			return nil, err
		}
		objects = append(objects, &unstructured.Unstructured{Object: fields})
	}
	return objects, nil
}

// isHandWritten tells whether charts/satchel/templates has a template of the object that is not generated.
func isHandWritten(o *unstructured.Unstructured) bool {
	handWritten := []string{"Namespace", "ServiceAccount", "Deployment", "PersistentVolumeClaim", "Service"}
	electionRoles := []string{"satchel-leader-election", "satchel-rollout-leader-election"}
	return slices.Contains(handWritten, o.GetKind()) || o.GetKind() == "Role" && slices.Contains(electionRoles, o.GetName())
}

// template is the object with the namespace of the release, under the condition of its kind.
func (p part) template(o *unstructured.Unstructured) ([]byte, error) {
	isCRD := o.GetKind() == "CustomResourceDefinition"
	if isCRD {
		annotations := o.GetAnnotations()
		annotations["helm.sh/resource-policy"] = "keep"
		o.SetAnnotations(annotations)
	}
	fields, err := yaml.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	text := strings.ReplaceAll(string(fields), "{{", `{{ "{{" }}`)
	if isCRD {
		const keep = "    helm.sh/resource-policy: keep\n"
		text = strings.Replace(text, keep, "    {{- if .Values.crds.keep }}\n"+keep+"    {{- end }}\n", 1)
	} else { // descriptions in CRDs may name the default
		text = strings.ReplaceAll(text, install.DefaultNamespace, `{{ include "satchel.namespace" . }}`)
	}
	var out bytes.Buffer
	out.WriteString("# SPDX-License-Identifier: Apache-2.0\n# Generated from " + p.folder + ": make generate.\n")
	condition := allOf(p.condition, conditionOf(o))
	if condition != "" {
		fmt.Fprintf(&out, "{{- if %s }}\n", condition)
	}
	out.WriteString(text)
	if condition != "" {
		out.WriteString("{{- end }}\n")
	}
	return out.Bytes(), nil
}

// allOf joins conditions, where they are not empty.
func allOf(one, other string) string {
	switch {
	case one == "":
		return other
	case other == "":
		return one
	}
	return fmt.Sprintf("and (%s) (%s)", one, other)
}

// conditionOf is the condition under which an object is installed; empty: always.
func conditionOf(o *unstructured.Unstructured) string {
	switch o.GetKind() {
	case "CustomResourceDefinition":
		return ".Values.crds.install"
	case "NetworkPolicy":
		return ".Values.networkPolicies.enabled"
	case "ClusterRoleBinding":
		if name := o.GetName(); name == "satchel-impersonator" || name == "satchel-secret-reader" || name == "satchel-rollout-impersonator" {
			return "not .Values.tenantNamespaces"
		}
	}
	return ""
}
