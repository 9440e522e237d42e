// SPDX-License-Identifier: Apache-2.0

// Program chart writes the templates of charts/satchel that have no values of their own: the objects of config/default but for
// the controllers. `make generate` runs it from the root of the repository.
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

const (
	manifests = "config/default"
	generated = "charts/satchel/templates/generated"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run() error {
	objects, err := kustomized(manifests)
	if err != nil {
		return fmt.Errorf("building %s: %w", manifests, err)
	}
	if err := os.RemoveAll(generated); err != nil {
		return err
	}
	if err := os.MkdirAll(generated, 0o755); err != nil {
		return err
	}
	for _, o := range objects {
		if isHandWritten(o) {
			continue
		}
		text, err := template(o)
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
	return slices.Contains(handWritten, o.GetKind()) || o.GetKind() == "Role" && o.GetName() == "satchel-leader-election"
}

// template is the object with the namespace of the release, under the condition of its kind.
func template(o *unstructured.Unstructured) ([]byte, error) {
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
	out.WriteString("# SPDX-License-Identifier: Apache-2.0\n# Generated from " + manifests + ": make generate.\n")
	condition := conditionOf(o)
	if condition != "" {
		fmt.Fprintf(&out, "{{- if %s }}\n", condition)
	}
	out.WriteString(text)
	if condition != "" {
		out.WriteString("{{- end }}\n")
	}
	return out.Bytes(), nil
}

// conditionOf is the condition under which an object is installed; empty: always.
func conditionOf(o *unstructured.Unstructured) string {
	switch o.GetKind() {
	case "CustomResourceDefinition":
		return ".Values.crds.install"
	case "NetworkPolicy":
		return ".Values.networkPolicies.enabled"
	case "ClusterRoleBinding":
		if name := o.GetName(); name == "satchel-impersonator" || name == "satchel-secret-reader" {
			return "not .Values.tenantNamespaces"
		}
	}
	return ""
}
