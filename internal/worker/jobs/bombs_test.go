// SPDX-License-Identifier: Apache-2.0

package jobs_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/overlay"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// bomb is a bundle that would keep a process busy for ever, or take all memory.
type bomb struct {
	files  fstest.MapFS
	format convert.Format // empty: a chart
	adapt  overlay.Options
	often  bool // run in every suite, and not in the full one only
}

// templateBombs are templates of charts; those that begin with ! run in every suite.
var templateBombs = map[string]string{
	"!range over a number":       `{{ range 2000000000 }}{{ end }}`,
	"nested ranges":              `{{ range 3000 }}{{ range 3000 }}{{ range 3000 }}{{ end }}{{ end }}{{ end }}`,
	"range in tpl":               `{{ tpl "{{ range 2000000000 }}{{ end }}" . }}`,
	"until":                      `{{ range until 2000000000 }}{{ end }}`,
	"!repeat":                    `{{ repeat 2000000000 "x" }}`,
	"!doubling":                  `{{ $s := "xxxxxxxx" }}{{ range 60 }}{{ $s = print $s $s }}{{ end }}`,
	"doubling by regex":          `{{ $s := "xxxxxxxx" }}{{ range 60 }}{{ $s = regexReplaceAll "x" $s "$0$0$0$0" }}{{ end }}`,
	"doubling lists":             `{{ $l := list 1 2 3 }}{{ range 60 }}{{ $l = concat $l $l }}{{ end }}`,
	"doubling maps":              `{{ $d := dict "a" 1 }}{{ range 60 }}{{ $d = dict "a" $d "b" $d }}{{ end }}{{ toYaml $d }}`,
	"printf width":               `{{ range 1000 }}{{ $x := printf "%999999d" 1 }}{{ end }}{{ range 2000000000 }}{{ end }}`,
	"memory kept":                `{{ $l := list }}{{ range 100000 }}{{ $l = append $l (repeat 10000 "x") }}{{ end }}`,
	"compared texts":             `{{ $a := repeat 1000000 "x" }}{{ $b := repeat 1000000 "x" }}{{ range 1000000 }}{{ if eq $a $b }}{{ end }}{{ end }}`,
	"uniq":                       `{{ $l := until 100000 }}{{ $x := uniq $l }}`,
	"regex of repetitions":       `{{ regexMatch "((a{30}){30}b{900}){1}(c{900})(d{900})(e{900})" (repeat 3000000 "a") }}`,
	"deriving keys":              `{{ range 1000 }}{{ $x := derivePassword 1 "long" "p" "u" "s" }}{{ end }}`,
	"template that calls itself": `{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`,
	"include that calls itself":  `{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`,
	"tpl that calls itself":      `{{ tpl .Values.again . }}`,
	"!value within itself":       `{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ $d }}`,
	"the same as YAML":           `{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ toYaml $d }}`,
	"nested TOML":                `{{ fromToml (printf "a = %s" (repeat 5000000 "[")) }}`,
	"nested parentheses":         `{{ ` + strings.Repeat(`(`, 500_000) + `1` + strings.Repeat(`)`, 500_000) + ` }}`,
	"pattern of files":           `{{ .Files.Glob (repeat 50 "{a,*}") }}`,
}

// bombs are the bombs of all formats.
func bombs() map[string]bomb {
	chart := func(more fstest.MapFS) fstest.MapFS {
		files := fstest.MapFS{
			"Chart.yaml":  {Data: []byte("apiVersion: v2\nname: app\nversion: 1.0.0\n")},
			"values.yaml": {Data: []byte("again: '{{ tpl .Values.again . }}'\n")},
		}
		for name, file := range more {
			files[name] = file
		}
		return files
	}
	all := map[string]bomb{}
	for name, template := range templateBombs {
		all[strings.TrimPrefix(name, "!")] = bomb{files: chart(fstest.MapFS{"templates/a.yaml": {Data: []byte(template)}}), often: strings.HasPrefix(name, "!")}
	}
	aliases, last := "a: &a [x,x,x,x,x,x,x,x,x]\n", "a"
	for _, next := range strings.Split("bcdefghij", "") {
		aliases += fmt.Sprintf("%s: &%s [%s]\n", next, next, strings.Repeat("*"+last+",", 9))
		last = next
	}
	all["aliases in values"] = bomb{files: chart(fstest.MapFS{"values.yaml": {Data: []byte(aliases)}}), often: true}
	schema := `{"definitions": {"d0": {"type": "object"}`
	for i := range 40 {
		schema += fmt.Sprintf(`, "d%d": {"allOf": [{"$ref": "#/definitions/d%d"}, {"$ref": "#/definitions/d%d"}]}`, i+1, i, i)
	}
	all["schema that doubles (M26)"] = bomb{files: chart(fstest.MapFS{"values.schema.json": {Data: []byte(schema + `}, "$ref": "#/definitions/d40"}`)}}), often: true}
	maps.Copy(all, kustomizeBombs())
	maps.Copy(all, overlayBombs())
	return all
}

const oneMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: x}\n"

// copies doubles its result with each operation.
var copies = "- {op: add, path: /data, value: {a: {b: x}}}\n" +
	strings.Repeat("- {op: copy, from: /data, path: /data/a/c}\n- {op: copy, from: /data/a, path: /data/d}\n", 40)

// kustomizeBombs are kustomizations.
func kustomizeBombs() map[string]bomb {
	doubling := fstest.MapFS{"leaf/kustomization.yaml": {Data: []byte("resources: [one.yaml]\n")}, "leaf/one.yaml": {Data: []byte(oneMap)}}
	below := "leaf"
	for level := range 20 {
		for _, side := range []string{"a", "b"} {
			name := fmt.Sprintf("%d%s/kustomization.yaml", level, side)
			doubling[name] = &fstest.MapFile{Data: fmt.Appendf(nil, "namePrefix: %s\nresources: [../%s]\n", side, below)}
		}
		below = fmt.Sprintf("level%d", level)
		doubling[below+"/kustomization.yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, "resources: [../%da, ../%db]\n", level, level)}
	}
	doubling["kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [" + below + "]\n")}
	inline := "resources: [one.yaml]\npatches:\n- target: {name: one}\n  patch: |\n    " + strings.ReplaceAll(strings.TrimSpace(copies), "\n", "\n    ") + "\n"
	return map[string]bomb{
		"bases that double":                        {files: doubling, format: convert.Kustomize, often: true},
		"patches of a kustomization that double":   {files: fstest.MapFS{"kustomization.yaml": {Data: []byte(inline)}, "one.yaml": {Data: []byte(oneMap)}}, format: convert.Kustomize, often: true},
		"patches of a kustomization on each (M25)": {files: costly(2000), format: convert.Kustomize},
	}
}

// overlayBombs are overlays of few bytes on a small bundle.
func overlayBombs() map[string]bomb {
	var many strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&many, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n", i)
	}
	patch := func(text, variable string) overlay.Options {
		return overlay.Options{Processors: []overlay.Processor{
			{Patch: &overlay.Patch{Text: text, Target: &overlay.Selector{}}},
			{Variables: &overlay.Variables{Given: map[string]string{"x": variable}}},
		}}
	}
	annotation := func(value string) string { return "metadata: {annotations: {x: '" + value + "'}}" }
	long := strings.Repeat("x", 1<<20)
	all := map[string]bomb{
		"copies of patches that double": {adapt: patch(copies, ""), often: true},
		"a variable on many objects":    {adapt: patch(annotation("${x}${x//x/yy}"), long)},
		"replacements that grow":        {adapt: patch(annotation("${x//x/"+long[:60_000]+"}"), long), often: true},
		"values looked at for nothing":  {adapt: patch(annotation(strings.Repeat("${x:0:0}", 100)), long)},
	}
	for name, b := range all {
		b.files, b.format = fstest.MapFS{"manifests/many.yaml": {Data: []byte(many.String())}}, convert.PlainV0
		all[name] = b
	}
	return all
}

// TestM8BombsEndInWorkers: each ends by a limit of its process, or is refused, and the pool goes on.
func TestM8BombsEndInWorkers(t *testing.T) {
	pool := newPool(t, func(o *worker.Options) { o.CPU, o.Memory, o.NamespaceCPU = 2*time.Second, 200<<20, 0 })
	for name, b := range bombs() {
		if !b.often && os.Getenv("SATCHEL_FULL") == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			o := convert.Options{Format: cmp.Or(b.format, convert.Helm), InstallNamespace: "ns", Overlay: b.adapt}
			_, err := jobs.Convert(t.Context(), pool, "tenant", jobs.Conversion{Files: pack(t, b.files), Options: o})
			var limit *worker.LimitError
			var refused *convert.Error
			if !errors.As(err, &limit) && !errors.As(err, &refused) {
				t.Errorf("it ends with %v", err)
			}
			t.Log(err)
		})
	}
}
