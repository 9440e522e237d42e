// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

func chartYAML(more string) string { return "apiVersion: v2\nname: app\nversion: 1.0.0\n" + more }

// TestCharts: what is wrong with a chart is said with the file, and what to do.
func TestCharts(t *testing.T) {
	sub := func(name, more string) []string {
		return []string{"charts/" + name + "/Chart.yaml", "apiVersion: v2\nname: " + name + "\nversion: 1.2.0\n" + more, "charts/" + name + "/templates/a.yaml", strings.Replace(aMap, "}}}", "}}-"+name+"}", 1)}
	}
	for name, c := range map[string]struct {
		files []string
		o     helm.Options
		says  string
	}{
		"good":                   {[]string{"templates/a.yaml", aMap}, helm.Options{}, ""},
		"v1":                     {[]string{"Chart.yaml", "name: app\nversion: 1.0.0\n", "templates/a.yaml", aMap}, helm.Options{}, ""},
		"v1, requirements":       {append(sub("sub", ""), "Chart.yaml", "apiVersion: v1\nname: app\nversion: 1.0.0\n", "requirements.yaml", "dependencies: [{name: sub, version: 1.x}]\n", "templates/a.yaml", aMap), helm.Options{}, ""},
		"v3":                     {[]string{"Chart.yaml", "apiVersion: v3\nname: app\nversion: 1.0.0\n"}, helm.Options{}, `the apiVersion "v3" is not supported`},
		"named .":                {[]string{"Chart.yaml", "apiVersion: v2\nname: .\nversion: 1.0.0\n"}, helm.Options{}, "Chart.yaml: chart.metadata.name"},
		"named ..":               {append(sub("sub", ""), "charts/sub/Chart.yaml", "apiVersion: v2\nname: ..\nversion: 1.0.0\n"), helm.Options{}, "chart.metadata.name"},
		"named with a path":      {[]string{"Chart.yaml", "apiVersion: v2\nname: ../../x\nversion: 1.0.0\n"}, helm.Options{}, "chart.metadata.name"},
		"named with a space":     {[]string{"Chart.yaml", "apiVersion: v2\nname: 'a b'\nversion: 1.0.0\n"}, helm.Options{}, `"a b" is no name for a chart`},
		"alias with a path":      {append(sub("sub", ""), "Chart.yaml", chartYAML("dependencies: [{name: sub, version: 1.x, alias: ../x}]\n")), helm.Options{}, "disallowed characters in the alias"},
		"library":                {[]string{"Chart.yaml", chartYAML("type: library\n"), "templates/_a.tpl", ""}, helm.Options{}, "this is a library chart"},
		"kube":                   {[]string{"Chart.yaml", chartYAML("kubeVersion: '>=1.40'\n"), "templates/a.yaml", aMap}, helm.Options{}, "the chart is for Kubernetes >=1.40, and this is v1.36.0"},
		"kube, of the cluster":   {[]string{"Chart.yaml", chartYAML("kubeVersion: '>=1.40'\n"), "templates/a.yaml", aMap}, helm.Options{Capabilities: helm.Capabilities{KubeVersion: "v1.41.2-gke.5"}}, ""},
		"kube, nonsense":         {[]string{"templates/a.yaml", aMap}, helm.Options{Capabilities: helm.Capabilities{KubeVersion: "new"}}, `"new" is no version of Kubernetes`},
		"missing dependency":     {[]string{"Chart.yaml", chartYAML("dependencies: [{name: sub, version: 1.x, repository: 'https://example.org'}]\n"), "templates/a.yaml", aMap}, helm.Options{}, "the chart depends on sub 1.x, which charts/ does not hold; run helm dependency build"},
		"other version":          {append(sub("sub", ""), "Chart.yaml", chartYAML("dependencies: [{name: sub, version: 2.x}]\n")), helm.Options{}, "the chart depends on sub 2.x, and charts/ holds its version 1.2.0"},
		"missing further down":   {append(sub("sub", "dependencies: [{name: deep, version: 1.x}]\n"), "Chart.yaml", chartYAML("dependencies: [{name: sub, version: 1.x}]\n")), helm.Options{}, "charts/sub/Chart.yaml: the chart depends on deep 1.x"},
		"not a chart in charts/": {[]string{"charts/README.md", "hello", "templates/a.yaml", aMap}, helm.Options{}, "README.md in app: Chart.yaml file is missing"},
		"twice":                  {append(sub("sub", ""), "charts/copy/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.2.0\n"), helm.Options{}, "charts/ holds the chart sub 1.2.0 twice"},
		"two versions":           {append(sub("sub", ""), "charts/copy/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.3.0\n"), helm.Options{}, "charts/ holds two charts of the name sub"},
		"values are a list":      {[]string{"values.yaml", "[hunter22]", "templates/a.yaml", aMap}, helm.Options{}, "cannot load values.yaml"},
		"large values":           {[]string{"values.yaml", "a: " + strings.Repeat("x", 3<<20)}, helm.Options{}, "values.yaml: the file is larger than 2097152 bytes"},
		"release name":           {[]string{"templates/a.yaml", aMap}, helm.Options{ReleaseName: "A B"}, `"A B" is no name for a release`},
		"values of a dependency": {append(sub("sub", ""), "templates/a.yaml", aMap), helm.Options{Values: map[string]any{"sub": "hunter22"}}, "the values of the chart sub, which this one contains, are not a mapping"},
		"nothing":                {[]string{"templates/_a.tpl", ""}, helm.Options{}, "nothing comes out of the chart"},
		"no identity":            {[]string{"templates/a.yaml", "a: b\n"}, helm.Options{}, "templates/a.yaml (document 1): the object has no kind"},
		"broken YAML":            {[]string{"templates/a.yaml", aMap + "---\na: b: c\n"}, helm.Options{}, "templates/a.yaml (document 2): this is not valid YAML"},
		"ignore":                 {[]string{".helmignore", "a/**\n", "templates/a.yaml", aMap}, helm.Options{}, ".helmignore: a line is no pattern"},
	} {
		t.Run(name, func(t *testing.T) {
			said := says(t, inlineChart(c.files...), c.o)
			if !strings.Contains(said, c.says) || c.says == "" && said != "" {
				t.Errorf("said %q, want %q", said, c.says)
			}
			if strings.Contains(said, "hunter22") {
				t.Errorf("shows a value: %q", said)
			}
		})
	}
}

// TestLinks: a link is no file of a chart, wherever it points.
func TestLinks(t *testing.T) {
	for _, name := range []string{"Chart.lock", "values.yaml", "templates/b.yaml", ".helmignore", "charts/sub"} {
		files := inlineChart("templates/a.yaml", aMap)
		files[name] = &fstest.MapFile{Data: []byte("/etc/passwd"), Mode: 0o777 | 1<<27} // fs.ModeSymlink
		if said := says(t, files, helm.Options{}); !strings.Contains(said, name+": this is a link") {
			t.Errorf("%s: said %q", name, said)
		}
	}
}

const portSchema = `{"properties": {"port": {"type": "integer", "maximum": 65535}, "password": {"type": "string", "pattern": "^[a-z]*$", "enum": ["a", "b"]}}, "required": ["port"], "additionalProperties": false}`

// TestSchemas: values that a schema does not allow are named by their path, and never shown.
func TestSchemas(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		fmt.Fprint(w, "{}")
	}))
	defer server.Close()
	for name, c := range map[string]struct {
		schema string
		values map[string]any
		says   string
	}{
		"good":       {portSchema, map[string]any{"port": 80, "password": "a"}, ""},
		"type":       {portSchema, map[string]any{"port": "hunter22"}, "values.schema.json: the values are not as the chart's schema asks: port: this is of the type string, and has to be of integer"},
		"too large":  {portSchema, map[string]any{"port": 77777}, "port: this may be at most 65535"},
		"pattern":    {portSchema, map[string]any{"port": 80, "password": "hunter22"}, `password: this is none of "a", "b"`},
		"missing":    {portSchema, nil, "the values as a whole: missing: port"},
		"unknown":    {portSchema, map[string]any{"port": 80, "prot": "hunter22", "a": 1}, "not known: a, prot"},
		"URL":        {`{"$ref": "` + server.URL + `/s.json"}`, nil, "the schema refers to another file, or to a URL"},
		"URL by id":  {`{"$id": "` + server.URL + `/a.json", "properties": {"a": {"$ref": "other.json"}}}`, nil, "the schema refers to another file, or to a URL"},
		"file":       {`{"$ref": "file:///etc/passwd"}`, nil, "the schema refers to another file, or to a URL"},
		"other file": {`{"$ref": "other.json"}`, nil, "the schema refers to another file, or to a URL"},
		"draft":      {`{"$schema": "` + server.URL + `/draft", "type": "object"}`, nil, "values.schema.json"},
		"urn":        {`{"$ref": "urn:example:anything"}`, nil, ""},
		"no JSON":    {`{`, nil, "this is no valid schema: it is not valid JSON"},
		"no schema":  {`{"type": 5}`, nil, "this is no valid schema"},
		"itself":     {`{"$ref": "#"}`, nil, "values.schema.json"},
	} {
		t.Run(name, func(t *testing.T) {
			said := says(t, inlineChart("templates/a.yaml", aMap, "values.schema.json", c.schema), helm.Options{Values: c.values})
			if !strings.Contains(said, c.says) || c.says == "" && said != "" {
				t.Errorf("said %q, want %q", said, c.says)
			}
			if strings.Contains(said, "hunter22") || strings.Contains(said, "77777") {
				t.Errorf("shows a value: %q", said)
			}
		})
	}
	if asked > 0 {
		t.Errorf("the server was asked %d times", asked)
	}
}

// TestSchemaOfDependency: the path of a value is the one in spec.helm.values.
func TestSchemaOfDependency(t *testing.T) {
	files := inlineChart("templates/a.yaml", aMap, "charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/values.schema.json", portSchema)
	said := says(t, files, helm.Options{Values: map[string]any{"sub": map[string]any{"port": "x"}}})
	if want := "charts/sub/values.schema.json: the values are not as the chart's schema asks: sub.port: this is of the type string"; !strings.Contains(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

// TestHelmWritesNothingToTheLog: its library quotes values there when they do not fit.
func TestHelmWritesNothingToTheLog(t *testing.T) {
	var written bytes.Buffer
	before := log.Writer()
	defer log.SetOutput(before)
	log.SetOutput(&written)
	files := inlineChart("templates/a.yaml", aMap, "values.yaml", "a: {b: canary-hunter22}\nglobal: {x: {y: 1}}\n",
		"charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/values.yaml", "c: {d: 1}\n")
	given := map[string]any{"a": "canary-hunter22", "sub": map[string]any{"c": "canary-hunter22", "global": map[string]any{"x": "canary-hunter22"}}}
	if said := says(t, files, helm.Options{Values: given}); said != "" {
		t.Error(said)
	}
	if written.Len() > 0 {
		t.Errorf("written: %s", written.String())
	}
}

// TestValuesAreNotChanged: templates may change values; not those of the caller.
func TestValuesAreNotChanged(t *testing.T) {
	given := map[string]any{"a": map[string]any{"b": 1}}
	files := inlineChart("templates/a.yaml", `{{ $_ := set .Values.a "b" 2 }}{{ $_ := set .Values "c" 3 }}`+aMap)
	if said := says(t, files, helm.Options{Values: given}); said != "" {
		t.Fatal(said)
	}
	if len(given) != 1 || fmt.Sprint(given["a"]) != "map[b:1]" {
		t.Errorf("given %v", given)
	}
}

// TestWarnings: what is left out, or answered by nothing, is said.
func TestWarnings(t *testing.T) {
	files := chartOf(t, "hooks")
	maps.Copy(files, fstest.MapFS{"templates/ask.yaml": {Data: []byte(`{{ $s := lookup "v1" "Secret" .Release.Namespace "x" }}{{ tpl "{{ $h := getHostByName .}}" "example.org" }}`)},
		"Chart.yaml": {Data: []byte(chartYAML("deprecated: true\n"))}})
	made, problems := helm.Convert(files, "", "ns", helm.Options{ReleaseName: "demo"}, noLimits)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := []string{
		"templates/ask.yaml calls getHostByName, which finds nothing: rendering asks neither the cluster nor the network",
		"templates/ask.yaml calls lookup, which finds nothing: rendering asks neither the cluster nor the network",
		`templates/others.yaml: ConfigMap back is left out: it is a hook for pre-rollback, which does not happen here`,
		`templates/others.yaml: ConfigMap old is left out: "crd-install" is no event of a hook`,
		"templates/others.yaml: the weight of the hook ConfigMap heavy is no number, and counts as 0",
		"the chart is deprecated",
	}
	if fmt.Sprint(made.Warnings) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", made.Warnings, want)
	}
}

// TestHooksInOrder: by weight, then name, then kind.
func TestHooksInOrder(t *testing.T) {
	made, problems := helm.Convert(chartOf(t, "hooks"), "", "ns", helm.Options{ReleaseName: "demo"}, noLimits)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var order []string
	for _, h := range made.Hooks {
		if h.Events[0] == "pre-install" {
			order = append(order, fmt.Sprintf("%d %s/%s", h.Weight, h.Object.GetKind(), h.Object.GetName()))
		}
	}
	want := []string{"-5 ServiceAccount/both", "-5 ConfigMap/both", "-5 Job/demo-pre-install-m5", "0 Job/demo-pre-install-0", "10 Job/demo-pre-install-10"}
	if fmt.Sprint(order) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", order, want)
	}
}

// TestUnreadable: a disk that fails is no fault of the chart, and is tried again.
func TestUnreadable(t *testing.T) {
	files := inlineChart("templates/a.yaml", aMap)
	for name := range files {
		_, problems := helm.Convert(failing{files, name}, "", "ns", helm.Options{}, noLimits)
		if len(problems) != 1 || problems[0].Rule != manifest.RuleRead {
			t.Errorf("%s fails: %v", name, problems)
		}
	}
	large := fstest.MapFS{"app-1.0.0.tgz": {Data: make([]byte, 17<<20)}}
	if said := says(t, large, helm.Options{}); !strings.Contains(said, "the package is larger than 16777216 bytes") {
		t.Errorf("said %q", said)
	}
}

// failing is a tree of which one file cannot be read.
type failing struct {
	fstest.MapFS
	name string
}

func (f failing) Open(name string) (fs.File, error) {
	if name == f.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("input/output error")}
	}
	return f.MapFS.Open(name)
}

func (f failing) Stat(name string) (fs.FileInfo, error) {
	if name == f.name {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: errors.New("input/output error")}
	}
	return f.MapFS.Stat(name)
}
