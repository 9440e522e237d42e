// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
)

// renderer renders one chart by Helm's engine.
type renderer struct {
	chart  *chart.Chart
	values common.Values
	secret bool // values came from Secrets
	asked  map[string]bool
}

func newRenderer(c *chart.Chart, values common.Values) *renderer {
	return &renderer{chart: c, values: values, asked: map[string]bool{}}
}

// complaint is the message of fail or required in a chart; it is meant for the user who installs it.
type complaint struct{ text string }

func (c *complaint) Error() string { return c.text }

// run returns what the templates write, by the name of their file. It refuses what depends on chance or the time of day.
func (r *renderer) run() (map[string]string, error) {
	restore := r.steadyFiles()
	defer restore()
	first := &chance{refused: -1}
	rendered, err := r.render(first)
	if err != nil || len(first.calls) == 0 {
		return rendered, err
	}
	same := func(changed int) bool {
		again, err := r.render(&chance{changed: changed, refused: -1})
		return err == nil && maps.Equal(withoutNotes(rendered), withoutNotes(again))
	}
	if same(math.MaxInt) {
		return rendered, nil
	}
	alike, differ := 0, len(first.calls)
	for differ-alike > 1 {
		if middle := (alike + differ) / 2; same(middle) {
			alike = middle
		} else {
			differ = middle
		}
	}
	if _, err := r.render(&chance{refused: alike}); err != nil { // which tells where it is called
		return nil, err
	}
	return nil, &first.calls[alike]
}

// withoutNotes leaves out what is not installed.
func withoutNotes(rendered map[string]string) map[string]string {
	left := maps.Clone(rendered)
	maps.DeleteFunc(left, func(name, _ string) bool { return path.Base(name) == notes })
	return left
}

// render renders once. Templates may change the values that they get, so that each render has its own.
func (r *renderer) render(c *chance) (map[string]string, error) {
	functions := template.FuncMap{
		"fail": func(text string) (string, error) { return "", &complaint{text} },
		"required": func(complain string, v any) (any, error) {
			if v == nil || v == "" {
				return v, &complaint{complain}
			}
			return v, nil
		},
		"lookup": func(_, _, _, _ string) map[string]any {
			r.asked["lookup"] = true
			return map[string]any{}
		},
		"getHostByName": func(string) string {
			r.asked["getHostByName"] = true
			return ""
		},
		fnFiles: replaceFiles,
	}
	maps.Copy(functions, c.functions())
	maps.Copy(functions, c.steady())
	values, _ := copied(r.values).(common.Values) // of the type that it was given
	rendered, err := engine.Engine{CustomTemplateFuncs: functions}.Render(r.chart, values)
	if err != nil {
		return nil, err
	}
	return rendered, nil
}

// copied copies maps and lists, and what they hold.
func copied(v any) any {
	switch v := v.(type) {
	case common.Values:
		return common.Values(copied(map[string]any(v)).(map[string]any)) //nolint:errcheck,forcetypeassert // of the type that it was given
	case map[string]any:
		if v == nil {
			return v
		}
		made := make(map[string]any, len(v))
		for key, inner := range v {
			made[key] = copied(inner)
		}
		return made
	case []any:
		made := slices.Clone(v)
		for i := range made {
			made[i] = copied(made[i])
		}
		return made
	}
	return v
}

// askers are the templates that name functions which ask the cluster or the network, where one was called.
func (r *renderer) askers() []string {
	var all []string
	for function := range r.asked {
		calls := regexp.MustCompile(`\{\{[^}]*\b` + function + `\b`)
		eachChart(r.chart, func(c *chart.Chart) {
			for _, file := range c.Templates {
				if calls.Match(file.Data) {
					all = append(all, r.file(path.Join(c.ChartFullPath(), file.Name))+" calls "+function)
				}
			}
		})
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func eachChart(c *chart.Chart, do func(*chart.Chart)) {
	do(c)
	for _, child := range c.Dependencies() {
		eachChart(child, do)
	}
}

// file is the name of a template in the bundle's own terms: the chart's folder is where the bundle is.
func (r *renderer) file(name string) string {
	return strings.TrimPrefix(path.Clean(name), r.chart.Name()+"/")
}

// fnFiles is a function that puts files in a fixed order in place of those of the engine.
const fnFiles = "satchelFiles"

// steadyFiles has the templates of a chart see files of which those of one name, in different folders, come in a fixed order:
// the engine leaves to chance which of them AsConfig and AsSecrets take. Charts without such files are left alone. The
// function that is returned makes the chart what it was.
func (r *renderer) steadyFiles() (restore func()) {
	originals := map[*common.File][]byte{}
	ambiguous := false
	eachChart(r.chart, func(c *chart.Chart) {
		seen := map[string]bool{}
		for _, file := range c.Files {
			ambiguous = ambiguous || seen[path.Base(file.Name)]
			seen[path.Base(file.Name)] = true
		}
		for _, file := range c.Templates {
			originals[file] = file.Data // two aliases of a chart share its files
		}
	})
	if !ambiguous {
		return func() {}
	}
	for file, data := range originals {
		file.Data = append([]byte("{{ "+fnFiles+" . }}"), data...)
	}
	return func() {
		for file, data := range originals {
			file.Data = data
		}
	}
}

// replaceFiles replaces the files of what a template sees, and of the charts below.
func replaceFiles(scope map[string]any) (string, error) {
	if _, done := scope["Files"].(files); done {
		return "", nil
	}
	made, err := asFiles(scope["Files"])
	if err != nil {
		return "", err
	}
	scope["Files"] = made
	below, _ := scope["Subcharts"].(map[string]any) // a chart may have none
	for _, inner := range below {
		if inner, ok := inner.(map[string]any); ok {
			if _, err := replaceFiles(inner); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}
