// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/install"
)

// Name is the chart's.
const Name = "satchel"

//go:embed files files/templates/_helpers.tpl
var static embed.FS

// Files returns the files of the chart of a version, by their paths in it.
func Files(version string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(static, "files", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[strings.TrimPrefix(name, "files/")], err = static.ReadFile(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	if files["Chart.yaml"], err = metadata(version); err != nil {
		return nil, err
	}
	objects, err := install.Manifests(install.Options{})
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		name := path.Join("templates", strings.ToLower(o.GetKind())+"-"+o.GetName()+".yaml")
		if files[name], err = template(o); err != nil {
			return nil, fmt.Errorf("making a template of %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return files, nil
}

// Version is the chart's version for one of the application: charts want three numbers, and what is no version becomes a
// suffix of 0.0.0.
func Version(version string) string {
	if parsed, err := semver.NewVersion(version); err == nil {
		return parsed.String()
	}
	return "0.0.0-" + strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, version)
}

func metadata(version string) ([]byte, error) {
	return yaml.Marshal(map[string]any{
		"apiVersion": "v2", "name": Name, "type": "application", "version": Version(version), "appVersion": version,
		"kubeVersion": ">=1.30.0-0", "description": "Installs cloud-native bundles on Kubernetes from Git-committed manifests",
		"home": "https://github.com/satchel-dev/satchel", "sources": []any{"https://github.com/satchel-dev/satchel"},
		"annotations": map[string]any{"licenses": "Apache-2.0"},
	})
}

// template returns the object as a Helm template: values of the chart set the variable parts.
func template(o *unstructured.Unstructured) ([]byte, error) {
	var placed placeholders
	for _, edit := range edits {
		if edit.kind != o.GetKind() {
			continue
		}
		if err := edit.do(o, &placed); err != nil {
			return nil, err
		}
	}
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	escaped := strings.ReplaceAll(string(text), "{{", "{{ \"{{\" }}")
	var out bytes.Buffer
	condition := conditionOf(o)
	if condition != "" {
		fmt.Fprintf(&out, "{{- if %s }}\n", condition)
	}
	for line := range strings.Lines(escaped) {
		out.WriteString(placed.replace(line, o.GetKind()))
	}
	if condition != "" {
		out.WriteString("{{- end }}\n")
	}
	return out.Bytes(), nil
}

// conditionOf returns the template condition under which an object is installed; empty: always.
func conditionOf(o *unstructured.Unstructured) string {
	switch o.GetKind() {
	case "Namespace":
		return `include "satchel.createNamespace" .`
	case "CustomResourceDefinition":
		return ".Values.crds.install"
	case "PersistentVolumeClaim":
		return ".Values.storage.persistent"
	case "NetworkPolicy":
		return ".Values.networkPolicies.enabled"
	case "ClusterRoleBinding":
		if name := o.GetName(); name == "satchel-impersonator" || name == "satchel-secret-reader" {
			return "not .Values.tenantNamespaces"
		}
	}
	return ""
}
