// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"helm.sh/helm/v4/pkg/chart/common"
)

// renderer runs the templates of one chart.
type renderer struct {
	m       *meter
	chart   string         // its name, which Helm puts before the names of templates
	known   map[string]any // the names of functions, for the parser
	set     *template.Template
	scanned actions
	marks   []*refusal // the random values that were made
}

// noValue is what text/template prints for nothing; Helm takes it away.
const noValue = "<no value>"

// tplName is the name of texts that are run as templates.
const tplName = "gotpl"

func newRenderer(m *meter, chart string) *renderer {
	r := &renderer{m: m, chart: chart}
	functions := r.functions()
	r.set = template.New(tplName).Option("missingkey=zero").Funcs(functions)
	r.set.Funcs(r.calls(r.set))
	r.known = map[string]any{}
	for name, function := range functions { // all but those that count
		if !strings.HasPrefix(name, "_") {
			r.known[name] = function
		}
	}
	for _, name := range strings.Fields("and or not len index slice call eq ne lt le gt ge include tpl") {
		r.known[name] = true
	}
	return r
}

// run parses all templates, runs those that are not partials, and returns what they write.
func (r *renderer) run(all []source) (map[string]string, error) {
	for _, s := range all {
		if err := r.parse(s); err != nil {
			return nil, err
		}
	}
	rendered := make(map[string]string, len(all))
	for _, s := range all {
		if partial(s.name) {
			continue
		}
		text, err := r.execute(s)
		var refused *refusal
		switch {
		case err != nil && path.Base(s.name) == notes && errors.As(err, &refused):
			continue // it is shown to nobody
		case err != nil:
			return nil, err
		}
		rendered[s.name] = text
	}
	return rendered, nil
}

// parse adds the templates of a file to the set, ready to count.
func (r *renderer) parse(s source) error {
	found := scan(s.text)
	r.scanned.count += found.count
	r.scanned.bytes += found.bytes
	if err := found.check(1); err != nil {
		return &failure{file: s.name, err: err}
	}
	if err := r.scanned.check(allActionsFactor); err != nil {
		return &failure{file: s.name, err: err}
	}
	trees, err := parse.Parse(s.name, s.text, "", "", r.known)
	if err != nil {
		return &failure{file: s.name, err: err, parsing: true}
	}
	if err := add(r.set, trees); err != nil {
		return &failure{file: s.name, err: err}
	}
	return nil
}

// add puts parsed templates into a set; as everywhere in text/template, an empty one does not replace another.
func add(set *template.Template, trees map[string]*parse.Tree) error {
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		tree := trees[name]
		if set.Lookup(name) != nil && parse.IsEmptyTree(tree.Root) {
			continue
		}
		if err := instrument(tree); err != nil {
			return err
		}
		if _, err := set.AddParseTree(name, tree); err != nil {
			return fmt.Errorf("template %q: %w", name, err)
		}
	}
	return nil
}

// execute runs the template of a file.
func (r *renderer) execute(s source) (text string, err error) {
	defer func() {
		if p := recover(); p != nil { // the library's own mistakes must not end the process
			err = &failure{file: s.name, err: fmt.Errorf("it broke off")}
		}
	}()
	if s.scope == nil {
		return "", &failure{file: s.name, err: fmt.Errorf("the engine of Helm does not know it")}
	}
	s.scope["Template"], r.m.within = s.own, nil
	out := &sink{m: r.m}
	if err := r.set.ExecuteTemplate(out, s.name, common.Values(s.scope)); err != nil {
		return "", &failure{file: s.name, err: err}
	}
	text = strings.ReplaceAll(out.text.String(), noValue, "")
	if err := r.used(text); err != nil && path.Base(s.name) != notes {
		return "", &failure{file: s.name, err: err}
	}
	return text, nil
}

// calls are the functions that run templates of a set.
func (r *renderer) calls(set *template.Template) template.FuncMap {
	return template.FuncMap{
		"include": func(name string, data any) (string, error) { return r.include(set, name, data) },
		"tpl":     func(text string, data any) (string, error) { return r.tpl(set, text, data) },
	}
}

func (r *renderer) include(set *template.Template, name string, data any) (string, error) {
	found := set.Lookup(name)
	if found == nil {
		return "", fmt.Errorf("no template %q is defined", shorten(name))
	}
	out := &sink{m: r.m}
	err := found.Execute(out, data)
	return out.text.String(), err
}

// costs of running a text, beside what it does.
const (
	stepsToParse = 200
	stepsToClone = 1000
)

// tpl runs a text as a template. What it defines is known within it only.
func (r *renderer) tpl(set *template.Template, text string, data any) (string, error) {
	if err := r.m.step(stepsToParse + int64(len(text))/4); err != nil {
		return "", err
	}
	if !strings.Contains(text, "{{") {
		return strings.ReplaceAll(text, noValue, ""), nil
	}
	if err := scan(text).check(1); err != nil {
		return "", err
	}
	trees, err := parse.Parse(tplName, text, "", "", r.known)
	if err != nil {
		return "", &misparsed{err}
	}
	if len(trees) > 1 {
		if set, err = r.within(set, trees); err != nil {
			return "", err
		}
	} else if err := instrument(trees[tplName]); err != nil {
		return "", err
	}
	main := set.New(tplName)
	main.Tree = trees[tplName]
	out := &sink{m: r.m}
	if err := main.Execute(out, data); err != nil {
		return "", err
	}
	return strings.ReplaceAll(out.text.String(), noValue, ""), nil
}

// within returns a copy of a set with more templates.
func (r *renderer) within(set *template.Template, trees map[string]*parse.Tree) (*template.Template, error) {
	if err := r.m.step(stepsToClone + 10*int64(len(set.Templates()))); err != nil {
		return nil, err
	}
	if err := r.m.make(stepsToClone * 10); err != nil {
		return nil, err
	}
	copied, err := set.Clone()
	if err != nil {
		return nil, err
	}
	copied.Option("missingkey=zero").Funcs(r.calls(copied))
	if err := instrument(trees[tplName]); err != nil {
		return nil, err
	}
	named := maps.Clone(trees)
	delete(named, tplName)
	return copied, add(copied, named)
}

// file is the name of a template in the bundle's own terms: the chart's folder is where the bundle is.
func (r *renderer) file(name string) string {
	return strings.TrimPrefix(path.Clean(name), r.chart+"/")
}

// misparsed is the error of a text that is no template; its words may be those of a value.
type misparsed struct{ err error }

func (e *misparsed) Error() string { return e.err.Error() }
