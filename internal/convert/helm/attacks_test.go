// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// says is what is said about a chart.
func says(t testing.TB, files fstest.MapFS, o helm.Options) string {
	t.Helper()
	return saysWithin(t, files, o, noLimits)
}

func saysWithin(t testing.TB, files fstest.MapFS, o helm.Options, limits manifest.Limits) string {
	t.Helper()
	_, problems := helm.Convert(files, "", "ns", o, limits)
	lines := make([]string, 0, len(problems))
	for _, p := range problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

const (
	tooMuch   = "the templates do too much"
	tooLarge  = "the templates make more text and data than a render may"
	tooNested = "nested too deep"
)

// bombs are templates that would run for ever, or take all memory.
var bombs = map[string]struct{ template, says string }{
	"a width taken again":       {"{{ printf (repeat 2000 \"%[1]*[1]d\") 1000000 | len }}", "more text and data than a render may"},
	"lists put together":        {"{{ $l := until 100000 }}{{ $x := concat" + strings.Repeat(" $l", 2000) + " }}", "more text and data than a render may"},
	"range over a number":       {`{{ range 2000000000 }}x{{ end }}`, tooMuch},
	"range without a body":      {`{{ range 2000000000 }}{{ end }}`, tooMuch},
	"range that only continues": {`{{ range 2000000000 }}{{ continue }}{{ end }}`, tooMuch},
	"trimmed range":             {`{{- range $i := 2000000000 -}} {{- end -}}`, tooMuch},
	"nested ranges":             {`{{ range 3000 }}{{ range 3000 }}{{ range 3000 }}{{ end }}{{ end }}{{ end }}`, tooMuch},
	"range in a define":         {`{{ define "a" }}{{ range 2000000000 }}{{ end }}{{ end }}{{ include "a" . }}`, tooMuch},
	"range in tpl":              {`{{ tpl "{{ range 2000000000 }}{{ end }}" . }}`, tooMuch},
	"tpl in a loop":             {`{{ range 2000000 }}{{ tpl "{{ define \"a\" }}{{ end }}{{ . }}" . }}{{ end }}`, ""},
	"until":                     {`{{ range until 2000000000 }}{{ end }}`, "more than 100000 numbers"},
	"untilStep that overflows":  {`{{ untilStep 0 9223372036854775807 9000000000000000000 }}`, "more than 100000 numbers"},
	"untilStep backwards":       {`{{ untilStep 2000000000 0 -1 }}`, "more than 100000 numbers"},
	"seq":                       {`{{ seq 1 2000000000 }}`, "more than 100000 numbers"},
	"seq with a step":           {`{{ seq 1 1 2000000000 }}`, "more than 100000 numbers"},
	"repeat":                    {`{{ repeat 2000000000 "x" }}`, tooLarge},
	"doubling":                  {`{{ $s := "xxxxxxxx" }}{{ range 60 }}{{ $s = print $s $s }}{{ end }}`, tooLarge},
	"doubling by replace":       {`{{ $s := "xxxxxxxx" }}{{ range 60 }}{{ $s = replace "x" "xxxxxxxx" $s }}{{ end }}`, tooLarge},
	"doubling by regex":         {`{{ $s := "xxxxxxxx" }}{{ range 60 }}{{ $s = regexReplaceAll "x" $s "$0$0$0$0" }}{{ end }}`, tooLarge},
	"doubling by join":          {`{{ $s := "xxxxxxxx" }}{{ range 60 }}{{ $s = join $s (list 1 2 3) }}{{ end }}`, tooLarge},
	"doubling by wrapWith":      {`{{ $s := "x x x x x x" }}{{ range 60 }}{{ $s = wrapWith 1 $s $s }}{{ end }}`, tooLarge},
	"doubling lists":            {`{{ $l := list 1 2 3 }}{{ range 60 }}{{ $l = concat $l $l }}{{ end }}`, tooLarge},
	"doubling maps":             {`{{ $d := dict "a" 1 }}{{ range 60 }}{{ $d = dict "a" $d "b" $d }}{{ end }}{{ toYaml $d }}`, ""},
	"doubling maps, printed":    {`{{ $d := dict "a" 1 }}{{ range 60 }}{{ $d = dict "a" $d "b" $d }}{{ end }}{{ $d }}`, ""},
	"doubling maps, compared":   {`{{ $d := dict "a" 1 }}{{ range 60 }}{{ $d = dict "a" $d "b" $d }}{{ end }}{{ deepEqual $d (deepCopy $d) }}`, ""},
	"printf width":              {`{{ printf "%999999d%999999d" 1 2 }}{{ range 1000 }}{{ $x := printf "%999999d" 1 }}{{ end }}`, tooLarge},
	"printf star":               {`{{ range 1000 }}{{ $x := printf "%*d" 999999 1 }}{{ end }}`, tooLarge},
	"printf index":              {`{{ $s := repeat 1000000 "x" }}{{ $f := repeat 1000 "%[1]s" }}{{ $x := printf $f $s }}`, tooLarge},
	"indent":                    {`{{ indent 2000000000 "a" }}`, tooLarge},
	"nindent of lines":          {`{{ nindent 10000 (repeat 100000 "\n") }}`, tooLarge},
	"split into letters":        {`{{ $s := repeat 8000000 "x" }}{{ $l := splitList "" $s }}{{ $m := split "" $s }}`, tooLarge},
	"memory kept":               {`{{ $l := list }}{{ range 100000 }}{{ $l = append $l (repeat 10000 "x") }}{{ end }}`, tooLarge},
	"files kept":                {`{{ $l := list }}{{ range 100000 }}{{ $l = append $l ($.Files.Get "big.txt") }}{{ end }}`, tooLarge},
	"files without a call":      {`{{ $l := list }}{{ $g := .Files.Glob "*.txt" }}{{ range 100000 }}{{ $l = append $l $g.AsConfig }}{{ end }}`, tooLarge},
	"lines of files":            {`{{ range 100000 }}{{ $x := $.Files.Lines "big.txt" }}{{ end }}`, tooLarge},
	"compared texts":            {`{{ $a := repeat 1000000 "x" }}{{ $b := repeat 1000000 "x" }}{{ range 1000000 }}{{ if eq $a $b }}{{ end }}{{ end }}`, tooMuch},
	"searched texts":            {`{{ $a := repeat 4000000 "x" }}{{ range 1000000 }}{{ if contains "y" $a }}{{ end }}{{ end }}`, tooMuch},
	"sorted maps":               {`{{ $d := dict }}{{ range until 20000 }}{{ $_ := set $d (toString .) 1 }}{{ end }}{{ range 1000000 }}{{ range $d }}{{ break }}{{ end }}{{ end }}`, tooMuch},
	"uniq":                      {`{{ $l := until 100000 }}{{ $x := uniq $l }}`, tooMuch},
	"regex of repetitions":      {`{{ regexMatch "((a{30}){30}b{900}){1}(c{900})(d{900})(e{900})" (repeat 3000000 "a") }}`, tooMuch},
	"long regex":                {`{{ regexMatch (repeat 1000 "a{1000}") "a" }}`, "longer than 1000 bytes"},
	"deriving keys":             {`{{ range 1000 }}{{ $x := derivePassword 1 "long" "p" "u" "s" }}{{ end }}`, tooMuch},
	"template that calls itself": {`{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`,
		"call one another without an end"},
	"include that calls itself": {`{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`, "call one another without an end"},
	"tpl that calls itself":     {`{{ tpl .Values.again . }}`, "call one another without an end"},
	"two that double":           {`{{ define "a" }}{{ if lt (len .) 60 }}{{ $n := append . 1 }}{{ template "a" $n }}{{ template "a" $n }}{{ end }}{{ end }}{{ template "a" list }}`, ""},
	"value within itself":       {`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ $d }}`, tooNested},
	"the same as YAML":          {`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ toYaml $d }}`, tooNested},
	"the same compared":         {`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ has $d (list $d) }}`, tooNested},
	"the same merged":           {`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ merge $d (dict "b" $d) }}`, tooNested},
	"the same formatted":        {`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ printf "%v" $d }}`, tooNested},
	"the same quoted":           {`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ quote $d }}`, tooNested},
	"values within themselves":  {`{{ $_ := set .Values "a" .Values }}{{ .Values.YAML }}`, tooNested},
	"the same in a variable":    {`{{ $_ := set .Values "a" .Values }}{{ $v := .Values }}{{ $v.YAML | len }}`, tooNested},
	"the same as an argument":   {`{{ $_ := set .Values "a" .Values }}{{ len (.Values.YAML) }}`, tooNested},
	"the same by the dot":       {`{{ $_ := set .Values "a" .Values }}{{ with .Values }}{{ .YAML }}{{ end }}`, tooNested},
	"aliases":                   {"{{ $x := fromYaml \"a: &a [x,x,x,x,x,x,x,x,x]\\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\\ng: [*f,*f,*f,*f]\" }}", "aliases of a text"},
	"nested TOML":               {`{{ fromToml (printf "a = %s" (repeat 500000 "[")) }}`, tooNested},
	"long JSON":                 {`{{ fromJson (repeat 2000000 "[") }}`, "is parsed"},
	"output":                    {`{{ range 100000 }}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{{ end }}`, ""},
	"actions":                   {strings.Repeat(`{{ . }}`, 30_000), "too many actions"},
	"nested actions":            {strings.Repeat(`{{ if . }}`, 300) + strings.Repeat(`{{ end }}`, 300), "nested too deep"},
	"nested parentheses":        {`{{ ` + strings.Repeat(`(`, 300) + `1` + strings.Repeat(`)`, 300) + ` }}`, "nested too deep"},
	"variables":                 {strings.Repeat(`{{ $a := 1 }}`, 2000), "more than a thousand variables"},
	"pattern of files":          {`{{ .Files.Glob (repeat 50 "{a,*}") }}`, "too long"},
	"counters":                  {`{{ _leave }}`, `function "_leave" not defined`},
}

// TestM8TemplatesThatDoNotEnd: each is refused, within limits of time and memory, with the reason and the file.
func TestM8TemplatesThatDoNotEnd(t *testing.T) {
	limits := manifest.Limits{TotalBytes: 2 << 20} // an eighth of the default, to be done in seconds
	if os.Getenv("SATCHEL_FULL") != "" {
		limits = noLimits
	}
	for name, c := range bombs {
		t.Run(name, func(t *testing.T) {
			files := inlineChart("templates/bomb.yaml", c.template, "values.yaml", "again: '{{ tpl .Values.again . }}'\n", "big.txt", strings.Repeat("line\n", 200_000))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			said := saysWithin(t, files, helm.Options{}, limits)
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			if said == "" || !strings.Contains(said, c.says) || !strings.Contains(said, "templates/bomb.yaml") {
				t.Errorf("said %.500q, want %q", said, c.says)
			}
			if took > 90*time.Second {
				t.Errorf("took %s, want less than 15 s", took)
			}
			if more := int64(after.Sys) - int64(before.Sys); more > 1<<30 {
				t.Errorf("the process has grown by %d MiB", more>>20)
			}
			t.Logf("%s, %d MiB made: %.200s", took.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>20, said)
		})
	}
}

// tarred packages files, each under the name given.
func tarred(t testing.TB, headers ...*tar.Header) []byte {
	t.Helper()
	var data bytes.Buffer
	compressed := gzip.NewWriter(&data)
	writer := tar.NewWriter(compressed)
	for _, h := range headers {
		content := h.Xattrs["content"] //nolint:staticcheck // a place for the content of the file
		h.Xattrs = nil                 //nolint:staticcheck // likewise
		h.Mode = 0o644
		if h.Size == 0 {
			h.Size = int64(len(content))
		}
		if err := writer.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

func entry(name, content string) *tar.Header {
	return &tar.Header{Name: name, Typeflag: tar.TypeReg, Xattrs: map[string]string{"content": content}} //nolint:staticcheck // see tarred
}

const (
	aChart = "apiVersion: v2\nname: app\nversion: 1.0.0\n"
	aMap   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n"
)

// TestPackages: a package is read from memory, and refused where it is not what helm package makes.
func TestPackages(t *testing.T) {
	good := []*tar.Header{entry("app/Chart.yaml", aChart), entry("app/templates/a.yaml", aMap)}
	inner := func() []byte {
		return tarred(t, entry("sub/Chart.yaml", strings.Replace(aChart, "app", "sub", 1)), entry("sub/templates/a.yaml", strings.Replace(aMap, "}}}", "}}-sub}", 1)))
	}
	nested := inner()
	for range 10 {
		nested = tarred(t, entry("sub/Chart.yaml", strings.Replace(aChart, "app", "sub", 1)), entry("sub/charts/sub.tgz", string(nested)))
	}
	for name, c := range map[string]struct {
		headers []*tar.Header
		says    string
	}{
		"good":           {good, ""},
		"charts within":  {append(good[:2:2], entry("app/charts/sub-1.0.0.tgz", string(inner()))), ""},
		"deep":           {append(good[:2:2], entry("app/charts/sub.tgz", string(nested))), "lie within one another more than 5 times"},
		"no chart":       {[]*tar.Header{entry("app/templates/a.yaml", aMap)}, "its folder holds no Chart.yaml"},
		"no folder":      {[]*tar.Header{entry("Chart.yaml", aChart)}, `holds "Chart.yaml", which is not in the folder of the chart`},
		"climbing":       {append(good[:2:2], entry("app/../../x", "")), "not in the folder"},
		"absolute":       {append(good[:2:2], entry("/etc/passwd", "")), "not in the folder"},
		"backslash":      {append(good[:2:2], entry(`app/a\b`, "")), "not in the folder"},
		"drive":          {append(good[:2:2], entry(`app/c:/x`, "")), "not in the folder"},
		"twice":          {append(good[:2:2], entry("app/x", ""), entry("other/x", "")), "holds this file twice"},
		"link":           {append(good[:2:2], &tar.Header{Name: "app/Chart.lock", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), "Chart.lock: this is a link"},
		"hard link":      {append(good[:2:2], &tar.Header{Name: "app/x", Typeflag: tar.TypeLink, Linkname: "app/Chart.yaml"}), "app/x: this is a link"},
		"large":          {append(good[:2:2], entry("app/x", strings.Repeat("\x00", 6<<20))), "larger than 5242880 bytes"},
		"large in all":   {append(good[:2:2], entry("app/x", strings.Repeat("\x00", 5<<20)), entry("app/y", strings.Repeat("\x00", 5<<20)), entry("app/z", strings.Repeat("\x00", 5<<20)), entry("app/u", strings.Repeat("\x00", 5<<20))), "larger than 16777216 bytes in all"},
		"large, within":  {append(good[:2:2], entry("app/charts/sub.tgz", string(tarred(t, entry("sub/x", strings.Repeat("\x00", 5<<20)), entry("sub/y", strings.Repeat("\x00", 5<<20)), entry("sub/z", strings.Repeat("\x00", 5<<20)), entry("sub/u", strings.Repeat("\x00", 5<<20)))))), "larger than 16777216 bytes in all"},
		"many":           {append(good[:2:2], many(10_001)...), "more than 10000 files"},
		"no gzip within": {append(good[:2:2], entry("app/charts/sub.tgz", "hello")), "charts/sub.tgz: this is no package of a chart: it is not compressed by gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			copied := make([]*tar.Header, 0, len(c.headers))
			for _, h := range c.headers {
				again := *h
				copied = append(copied, &again)
			}
			said := says(t, fstest.MapFS{"app-1.0.0.tgz": {Data: tarred(t, copied...)}}, helm.Options{})
			if !strings.Contains(said, c.says) || c.says == "" && said != "" {
				t.Errorf("said %.300q, want %q", said, c.says)
			}
		})
	}
}

func many(n int) []*tar.Header {
	var all []*tar.Header
	for i := range n {
		all = append(all, entry(fmt.Sprintf("app/f%d", i), ""))
	}
	return all
}

// TestDamagedPackages: one that is cut short, or followed by something, is refused.
func TestDamagedPackages(t *testing.T) {
	whole := tarred(t, entry("app/Chart.yaml", aChart), entry("app/templates/a.yaml", aMap))
	for _, data := range [][]byte{whole[:len(whole)-6], whole[:len(whole)/2], append(bytes.Clone(whole), "garbage"...), nil, []byte("hello")} {
		if said := says(t, fstest.MapFS{"app-1.0.0.tgz": {Data: data}}, helm.Options{}); !strings.Contains(said, "no package of a chart") {
			t.Errorf("said %q", said)
		}
	}
}

// noLimits are the default ones.
var noLimits = manifest.Limits{}
