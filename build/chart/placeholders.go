// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/install"
)

// placeholders stand in an object for parts of a template. They are strings that YAML does not quote.
type placeholders struct{ parts []part }

// part replaces a placeholder, or the line that contains it.
type part struct {
	text  string
	whole bool // takes the whole line, with its indentation put before each line of it
}

// inline returns a placeholder for a value within a line.
func (m *placeholders) inline(text string) string { return m.add(part{text: text}) }

// line returns a placeholder for a field with its name.
func (m *placeholders) line(text string) string { return m.add(part{text: text, whole: true}) }

func (m *placeholders) add(p part) string {
	m.parts = append(m.parts, p)
	return fmt.Sprintf("mark%dkram", len(m.parts)-1)
}

// replace puts the parts into a line. The controllers' namespace occurs in all objects except CRDs.
func (m *placeholders) replace(line, kind string) string {
	if kind == "CustomResourceDefinition" {
		return m.withParts(line)
	}
	return strings.ReplaceAll(m.withParts(line), install.DefaultNamespace, `{{ include "satchel.namespace" . }}`)
}

func (m *placeholders) withParts(line string) string {
	for at, p := range m.parts {
		mark := fmt.Sprintf("mark%dkram", at)
		if !strings.Contains(line, mark) {
			continue
		}
		if !p.whole {
			return strings.Replace(line, mark, p.text, 1)
		}
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		var out strings.Builder
		for l := range strings.Lines(strings.TrimSpace(p.text) + "\n") {
			if !strings.HasPrefix(l, "{{-") {
				l = indent + l
			}
			out.WriteString(strings.ReplaceAll(l, "INDENT", fmt.Sprint(len(indent)+2)))
		}
		return out.String()
	}
	return line
}

// edit puts placeholders into the objects of a kind.
type edit struct {
	kind string
	do   func(*unstructured.Unstructured, *placeholders) error
}

var edits = []edit{
	{"CustomResourceDefinition", keepCRD},
	{"Deployment", deployment},
	{"PersistentVolumeClaim", claim},
}

// keepCRD has Helm keep the CRD on uninstall.
func keepCRD(o *unstructured.Unstructured, m *placeholders) error {
	return unstructured.SetNestedField(o.Object, m.line(`
{{- if .Values.crds.keep }}
helm.sh/resource-policy: keep
{{- end }}`), "metadata", "annotations", "helm.sh/resource-policy")
}

// valuesOf are the values of a controller.
func valuesOf(o *unstructured.Unstructured) string {
	if o.GetName() == install.SourceController {
		return ".Values.sourceController"
	}
	return ".Values.deploymentController"
}

func claim(o *unstructured.Unstructured, m *placeholders) error {
	if err := unstructured.SetNestedField(o.Object, m.inline("{{ "+valuesOf(o)+".storageSize }}"), "spec", "resources", "requests", "storage"); err != nil {
		return err
	}
	return unstructured.SetNestedField(o.Object, m.line(`
{{- with .Values.storage.className }}
storageClassName: {{ . }}
{{- end }}`), "spec", "storageClassName")
}

func deployment(o *unstructured.Unstructured, m *placeholders) error {
	values := valuesOf(o)
	spec, _, err := unstructured.NestedMap(o.Object, "spec")
	if err != nil {
		return err
	}
	spec["replicas"] = m.inline("{{ " + values + ".replicas }}")
	spec["strategy"] = map[string]any{"type": m.inline("{{ if gt (int " + values + ".replicas) 1 }}RollingUpdate{{ else }}Recreate{{ end }}")}
	if err := unstructured.SetNestedField(spec, m.line(`
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}`), "template", "spec", "imagePullSecrets"); err != nil {
		return err
	}
	if err := eachOf(spec, func(container map[string]any) {
		container["image"] = m.inline(`{{ include "satchel.image" (list . ` + values + ` "` + o.GetName() + `") }}`)
		container["imagePullPolicy"] = m.inline("{{ .Values.image.pullPolicy }}")
		container["resources"] = m.line("resources:\n{{- toYaml " + values + ".resources | nindent INDENT }}")
		if args, isList := container["args"].([]any); isList {
			container["args"] = append(args, m.line("{{- range "+values+".extraArgs }}\n- {{ . | quote }}\n{{- end }}"))
		}
	}, "template", "spec", "containers"); err != nil {
		return err
	}
	if err := eachOf(spec, func(volume map[string]any) {
		if _, claimed := volume["persistentVolumeClaim"]; claimed {
			volume["persistentVolumeClaim"] = m.line(`
{{- if .Values.storage.persistent }}
persistentVolumeClaim:
  claimName: ` + o.GetName() + `
{{- else }}
emptyDir: {}
{{- end }}`)
		}
	}, "template", "spec", "volumes"); err != nil {
		return err
	}
	return unstructured.SetNestedMap(o.Object, spec, "spec")
}

// eachOf edits the elements of a list of objects.
func eachOf(fields map[string]any, do func(map[string]any), path ...string) error {
	list, _, err := unstructured.NestedSlice(fields, path...)
	if err != nil {
		return err
	}
	for _, element := range list {
		object, isObject := element.(map[string]any)
		if !isObject {
			return fmt.Errorf("%s holds something other than objects", strings.Join(path, "."))
		}
		do(object)
	}
	return unstructured.SetNestedSlice(fields, list, path...)
}
