// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"path"
	"reflect"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
)

// source is a template of a chart, or of one that it depends on.
type source struct {
	name  string // as Helm has it: chart/charts/other/templates/x.yaml
	text  string
	scope map[string]any // what it sees as the dot; nothing for partials
	own   any            // what it sees as .Template
}

const fnScope = "satchelScope"

// sources lists the templates of a chart with what each of them sees. Helm's engine prepares that; so each template is
// replaced by one that only hands it over, and rendered. The chart is left as it was.
func sources(c *chart.Chart, values common.Values) ([]source, error) {
	all := map[string]*source{}
	originals := replaceTemplates(c, all)
	defer func() {
		for file, data := range originals {
			file.Data = data
		}
	}()
	e := engine.Engine{CustomTemplateFuncs: map[string]any{fnScope: func(scope map[string]any) string {
		own, _ := scope["Template"].(common.Values)
		name, _ := own["Name"].(string) // what is missing is reported by the render
		if s := all[name]; s != nil {
			s.scope, s.own = scope, own
			scope["Files"] = asFiles(scope["Files"])
		}
		return ""
	}}}
	if _, err := e.Render(c, values); err != nil {
		return nil, err
	}
	sorted := make([]source, 0, len(all))
	for _, s := range all {
		sorted = append(sorted, *s)
	}
	slices.SortFunc(sorted, inOrder)
	return sorted, nil
}

// replaceTemplates gathers the templates of a chart and of those it depends on, and returns their texts by file.
func replaceTemplates(c *chart.Chart, into map[string]*source) map[*common.File][]byte {
	originals := map[*common.File][]byte{}
	var gather func(c *chart.Chart)
	gather = func(c *chart.Chart) {
		for _, child := range c.Dependencies() {
			gather(child)
		}
		for _, file := range c.Templates {
			text, again := originals[file] // two aliases of a chart share its files
			if !again {
				text = file.Data
				originals[file], file.Data = text, []byte("{{ "+fnScope+" . }}")
			}
			if name := path.Join(c.ChartFullPath(), file.Name); !strings.EqualFold(c.Metadata.Type, library) || partial(file.Name) {
				into[name] = &source{name: name, text: string(text)}
			}
		}
	}
	gather(c)
	return originals
}

// partial tells files that only define templates.
func partial(name string) bool { return strings.HasPrefix(path.Base(name), "_") }

// library is the type of charts that only define templates for others.
const library = "library"

// asFiles makes files of those of Helm's engine.
func asFiles(engines any) files {
	made, _ := reflect.ValueOf(engines).Convert(reflect.TypeFor[files]()).Interface().(files) // of that type
	return made
}

// inOrder is the order in which Helm parses and runs templates: those further down first.
func inOrder(a, b source) int {
	return cmp.Or(cmp.Compare(strings.Count(b.name, "/"), strings.Count(a.name, "/")), cmp.Compare(b.name, a.name))
}
