// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/sprig/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
)

// known are the functions that the libraries give to templates. A new one is looked at before it is added here: one that
// depends on chance, the time, or the machine gets a replacement in chance.go or steady.go.
const known = `abbrev abbrevboth add add1 add1f addf adler32sum ago all any append atoi b32dec b32enc b64dec b64enc base bcrypt biggest
	buildCustomCert camelcase cat ceil chunk clean coalesce compact concat contains date dateInZone dateModify date_in_zone
	date_modify decryptAES deepCopy deepEqual default derivePassword dict dig dir div divf duration durationRound empty
	encryptAES env expandenv ext fail first float64 floor fromJson genCA genCAWithKey genPrivateKey genSelfSignedCert
	genSelfSignedCertWithKey genSignedCert genSignedCertWithKey get getHostByName has hasKey hasPrefix hasSuffix hello
	htmlDate htmlDateInZone htpasswd indent initial initials int int64 isAbs join kebabcase keys kindIs kindOf last list
	lower max maxf merge mergeOverwrite min minf mod mul mulf mustAppend mustChunk mustCompact mustDateModify mustDeepCopy
	mustFirst mustFromJson mustHas mustInitial mustLast mustMerge mustMergeOverwrite mustPrepend mustPush mustRegexFind
	mustRegexFindAll mustRegexMatch mustRegexReplaceAll mustRegexReplaceAllLiteral mustRegexSplit mustRest mustReverse
	mustSlice mustToDate mustToJson mustToPrettyJson mustToRawJson mustUniq mustWithout must_date_modify nindent nospace now
	omit osBase osClean osDir osExt osIsAbs pick pluck plural prepend push quote randAlpha randAlphaNum randAscii randBytes
	randInt randNumeric regexFind regexFindAll regexMatch regexQuoteMeta regexReplaceAll regexReplaceAllLiteral regexSplit
	repeat replace rest reverse round semver semverCompare seq set sha1sum sha256sum sha512sum shuffle slice snakecase
	sortAlpha split splitList splitn squote sub subf substr swapcase ternary title toDate toDecimal toJson toPrettyJson
	toRawJson toString toStrings trim trimAll trimPrefix trimSuffix trimall trunc tuple typeIs typeIsLike typeOf uniq
	unixEpoch unset until untilStep untitle upper urlJoin urlParse uuidv4 values without wrap wrapWith`

func TestFunctionsAreKnown(t *testing.T) {
	names := slices.Sorted(maps.Keys(sprig.TxtFuncMap()))
	if got := strings.Join(names, " "); got != strings.Join(strings.Fields(known), " ") {
		t.Errorf("the functions of the library are others than those that were looked at: %s", got)
	}
	replaced := (&chance{}).functions()
	maps.Copy(replaced, (&chance{}).steady())
	for name := range replaced {
		if !slices.Contains(names, name) && name != "fromToml" {
			t.Errorf("%s is no function", name)
		}
	}
}

// expressions are what templates compute; each gives the same here as with Helm's engine.
var expressions = strings.Split(strings.TrimSpace(`
.Values.text | quote
.Values.text | squote | upper
.Values.missing
.Values.missing | quote
.Values.list
.Values.map
.Values
.
.Values.number
.Values.large
.Values.map.none.deeper | default "x"
.Values.YAML
.Values.AsMap.text
(.Values.Table "map").a
.Values.PathValue "map.a"
.Values.map.YAML
.Template.Name
.Template.BasePath
.Chart.Name
.Chart
.Release
.Capabilities.KubeVersion
.Capabilities.KubeVersion.Version
.Capabilities.KubeVersion.Minor
quote .Capabilities.KubeVersion
.Capabilities.APIVersions.Has "apps/v1"
semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version
typeOf .Values.map
kindOf .Values
typeOf .Values.number
toYaml .Values
toYamlPretty .Values
toJson .Values
toPrettyJson .Values
toRawJson .Values.html
toToml .Values.map
mustToYaml .Values.list
mustToJson .Values.list
fromYaml "a: 1\nb: [x, y]"
fromYaml "a: ["
(fromYaml "a: [").Error
fromYaml "- 1"
fromYaml ""
fromYaml "null"
fromYamlArray "[1, 2]"
fromYamlArray "a: 1"
fromJson "{\"a\": [1, 2.5]}"
fromJson "["
fromJsonArray "[1]"
fromJsonArray "{"
fromToml "a = 1\n[b]\nc = \"d\""
fromToml "a ="
mustFromJson "{\"a\":1}"
.Files.Get "a.txt"
.Files.Get "none"
(.Files.Glob "*.txt").AsConfig
(.Files.Glob "*.txt").AsSecrets
(.Files.Glob "[").AsConfig
.Files.AsConfig
.Files.Lines "a.txt"
.Files.Lines "none"
.Files.GetBytes "a.txt" | toString
index .Files "a.txt" | toString
len .Files
if .Files.Glob "none/*" }}yes{{ else }}no{{ end
range $name, $data := .Files.Glob "*.txt" }}{{ $name }}={{ $data | toString }};{{ end
range .Values.list }}[{{ . }}]{{ end
range $k, $v := .Values.map }}{{ $k }}={{ $v }};{{ end
range .Values.missing }}x{{ else }}none{{ end
range 3 }}{{ . }}{{ end
range $i := until 5 }}{{ if eq $i 1 }}{{ continue }}{{ end }}{{ if gt $i 3 }}{{ break }}{{ end }}{{ $i }}{{ end
with .Values.map }}{{ .a }}{{ else }}none{{ end
with $x := .Values.text }}{{ $x }}{{ . }}{{ end
if and .Values.text (not .Values.missing) (eq .Values.text "words & <signs>") }}yes{{ end
if or .Values.missing .Values.text }}yes{{ end
if eq .Values.text .Values.text .Values.number }}same{{ end
if ne .Values.number 3 }}other{{ end
lt 1 2
index .Values.list 1
index .Values.map "a"
index .Values "map" "nested" "x"
slice .Values.list 1 2
len .Values.list
print .Values.text .Values.number
printf "%s %v %5.2f %d %-5s| %q" .Values.text .Values.number .Values.fraction (int .Values.number) "a" "b"
printf "%#v" .Values.list
println .Values.list
html .Values.html
js .Values.html
urlquery .Values.html
include "part" .Values
include "part" .Values | indent 4
nindent 2 .Values.lines
indent 2 .Values.lines
template "part" .Values
tpl "{{ .Values.text }}" .
tpl "plain" .
tpl "{{ define \"inner\" }}<{{ . }}>{{ end }}{{ include \"inner\" .Values.text }}" .
tpl "{{ include \"part\" .Values }}" .
tpl .Values.template .
tpl "{{ tpl .Values.template . }}" .
tpl "a <no value> {{ .Values.missing }} b" .
required "give it" .Values.text
default "d" .Values.missing
default "d" .Values.text
coalesce .Values.missing .Values.text
ternary "a" "b" true
empty .Values.missing
trim "  a "
trimAll "$" "$5$"
trimSuffix "-" "a-"
trimPrefix "-" "-a"
trunc 3 "abcdef"
trunc -3 "abcdef"
substr 1 3 "abcdef"
replace "a" "bb" "banana"
repeat 3 "ab"
nospace "a b c"
title "hello world"
untitle "Hello"
initials "First Try"
snakecase "FirstName"
camelcase "first_name"
kebabcase "FirstName"
swapcase "aBc"
wrap 5 "hello big world"
wrapWith 5 "\t" "hello big world"
abbrev 5 "hello world"
abbrevboth 5 10 "1234 5678 9123"
contains "a" "banana"
hasPrefix "ba" "banana"
hasSuffix "na" "banana"
cat "a" 1 nil
plural "one" "many" 2
join "-" .Values.list
join "," (list 1 nil "x")
split "," "a,b,c"
(split "," "a,b,c")._1
splitList "," "a,b,c"
splitn "," 2 "a,b,c"
sortAlpha (list "c" "a" "b")
toStrings (list 1 2)
list 1 2 3
first .Values.list
last .Values.list
rest .Values.list
initial .Values.list
append .Values.list 4
prepend .Values.list 0
reverse .Values.list
uniq (list 1 1 2)
without (list 1 2 3) 2
has "a" (list "a" "b")
compact (list 1 "" nil 2)
concat (list 1) (list 2 3)
chunk 2 (list 1 2 3)
until 4
untilStep 3 9 2
untilStep 3 -3 -2
seq 3
seq -2 2
seq 0 2 10
dict "a" 1 "b"
get .Values.map "a"
get .Values.map "none"
hasKey .Values.map "a"
dig "nested" "x" "d" .Values.map
dig "none" "x" "d" .Values.map
pluck "a" .Values.map (dict "a" 2)
pick .Values.map "a"
omit .Values.map "a"
keys (dict "a" 1)
values (dict "a" 1)
merge (dict "a" 1) (dict "a" 2 "b" 3)
mergeOverwrite (dict "a" 1) (dict "a" 2 "b" 3)
deepCopy .Values.map
deepEqual (list 1) (list 1)
set (dict) "a" 1
unset (dict "a" 1) "a"
add 1 2 3
add1 1
sub 5 2
div 7 2
mod 7 2
mul 2 3 4
max 1 5 2
min 4 2
floor 1.7
ceil 1.2
round 1.2345 2
addf 1.5 2
mulf 1.5 2
divf 3 2
subf 3 1.5
add1f 1.5
biggest 1 2
int "12"
int64 12.7
float64 "1.5"
atoi "7"
toDecimal 777
toString 1.0
b64enc "hello"
b64dec "aGVsbG8="
b32enc "hello"
b32dec "NBSWY3DP"
sha1sum "a"
sha256sum "a"
sha512sum "a"
adler32sum "a"
regexMatch "^a+$" "aaa"
regexFind "[0-9]+" "a12b3"
regexFindAll "[0-9]" "a1b2" -1
regexReplaceAll "a(.)" "abac" "x$1"
regexReplaceAllLiteral "a" "aba" "$1"
regexSplit "," "a,b" -1
regexQuoteMeta "a.b"
urlParse "https://u:p@example.org:80/p?q=1#f"
urlJoin (dict "host" "example.org" "scheme" "https" "path" "/x")
base "/a/b.c"
dir "/a/b.c"
ext "/a/b.c"
clean "/a/../b"
isAbs "/a"
osBase "/a/b"
osDir "/a/b"
semver "1.2.3"
(semver "1.2.3").Minor
date "2006-01-02" 86400
dateInZone "2006-01-02 15:04" 86400 "UTC"
htmlDateInZone 86400 "UTC"
duration 95
durationRound "2h10m5s"
toDate "2006-01-02" "2020-01-02" | unixEpoch
dateModify "1h" (toDate "2006-01-02" "2020-01-02") | unixEpoch
kindIs "string" .Values.text
typeIs "string" .Values.text
all 1 2
any 0 1
lookup "v1" "Secret" "" ""
getHostByName "example.org"
derivePassword 1 "long" "p" "u" "s"
hello
`), "\n")

// testChart is a chart with one template and what expressions look at.
func testChart(text string) *chart.Chart {
	return &chart.Chart{
		Metadata: &chart.Metadata{APIVersion: "v2", Name: "app", Version: "1.0.0", Keywords: []string{"a"}},
		Templates: []*common.File{
			{Name: "templates/_parts.tpl", Data: []byte(`{{ define "part" }}<{{ .text }}>{{ end }}`)},
			{Name: "templates/a.yaml", Data: []byte(text)},
		},
		Files: []*common.File{{Name: "a.txt", Data: []byte("one\ntwo\n")}, {Name: "b.txt", Data: []byte("b")}},
	}
}

func testValues() common.Values {
	return common.Values{
		"Release": map[string]any{"Name": "demo", "Namespace": "ns"}, "Capabilities": common.DefaultCapabilities,
		"Values": common.Values{
			"text": "words & <signs>", "html": `<a href="x">'&`, "number": 3.0, "large": 30000000.0, "fraction": 1.25, "lines": "a\nb\n",
			"list": []any{"a", 2.0, true}, "template": "{{ .Values.number }}-{{ .Template.Name }}",
			"map": map[string]any{"a": "x", "nested": map[string]any{"x": 1.5}, "YAML": "own"},
		},
	}
}

// TestFunctionsAsHelm: what a template computes is what Helm's engine computes.
func TestFunctionsAsHelm(t *testing.T) {
	for _, expression := range expressions {
		text := "{{ " + expression + " }}"
		want, wantErr := engine.Render(testChart(text), testValues())
		got, gotErr := renderText(text)
		if (wantErr == nil) != (gotErr == nil) || got != want["app/templates/a.yaml"] {
			t.Errorf("%s: got %q, %v; Helm has %q, %v", expression, got, gotErr, want["app/templates/a.yaml"], wantErr)
		}
	}
	t.Logf("%d expressions", len(expressions))
}

func renderText(text string) (string, error) {
	rendered, err := newRenderer(testChart(text), testValues()).run()
	return rendered["app/templates/a.yaml"], err
}

// TestRandomAndTime: what would make two renders differ is refused where it is used, in the name of the function and the line.
func TestRandomAndTime(t *testing.T) {
	for text, says := range map[string]string{
		`{{ randAlphaNum 8 }}`:                                                                     "line 2: the function randAlphaNum gives another value at each render",
		`{{ randAlphaNum 8 | b64enc | quote }}`:                                                    "line 2: the function randAlphaNum gives",
		`{{ default (randAlphaNum 8 | b64enc) .Values.text }}`:                                     "",
		`{{ default (randAlphaNum 8 | b64enc) .Values.none }}`:                                     "line 2: the function randAlphaNum gives",
		`{{ .Values.text | default (uuidv4) | sha256sum }}`:                                        "",
		`{{ if .Values.none }}{{ randAlphaNum 8 }}{{ end }}`:                                       "",
		`{{ $d := dict "a" (randAlpha 8) }}{{ toYaml $d }}`:                                        "line 2: the function randAlpha gives",
		`{{ $d := dict "a" (randAlpha 8) }}{{ $d.b }}`:                                             "",
		`{{ $d := dict "a" (randAlpha 8) }}{{ toYaml $d | sha256sum }}`:                            "line 2: the function randAlpha gives",
		`{{ randInt 1 5 }}`:                                                                        "line 2: the function randInt gives",
		`{{ $x := randInt 1 5 }}`:                                                                  "",
		`{{ (genCA "a" 1).Cert }}`:                                                                 "line 2: the function genCA gives",
		`{{ $ca := genCA "a" 1 }}{{ $c := genSignedCert "a" nil nil 1 $ca }}{{ $c.Key | b64enc }}`: "line 2: the function genSignedCert gives",
		`{{ $ca := genCA "a" 1 }}`:                                                                 "",
		`{{ genPrivateKey "rsa" }}`:                                                                "line 2: the function genPrivateKey gives",
		`{{ htpasswd "a" "b" }}`:                                                                   "line 2: the function htpasswd gives",
		`{{ bcrypt "a" | trunc 5 }}`:                                                               "line 2: the function bcrypt gives",
		`{{ encryptAES "a" "b" }}`:                                                                 "line 2: the function encryptAES gives",
		`{{ shuffle "abc" | len }}{{ shuffle "abc" | upper }}`:                                     "line 2: the function shuffle gives",
		`{{ tpl "{{ randAlphaNum 5 }}" . }}`:                                                       "the function randAlphaNum gives",
		`{{ include "x" . }}{{ define "x" }}{{ randAlphaNum 5 }}{{ end }}`:                         "line 2: the function randAlphaNum gives",
		`{{ now }}`:                                  "line 2: the function now depends on the time of day",
		`{{ now | date "2006" }}`:                    "line 2: the function now depends",
		`{{ ago 5 }}`:                                "line 2: the function ago depends",
		`{{ date "2006" "x" }}`:                      "line 2: the function date depends on the time of day",
		`{{ htmlDate nil }}`:                         "line 2: the function date depends on the time of day",
		`{{ dateInZone "2006" 1 "Asia/Tokyo" }}`:     "line 2: the function dateInZone fails: the zone is not UTC",
		`{{ durationRound (toDate "2006" "2020") }}`: "line 2: the function durationRound depends",
		`{{ env "HOME" }}`:                           `line 2: this is no template: function "env" not defined`,
		`{{ expandenv "$HOME" }}`:                    `line 2: this is no template: function "expandenv" not defined`,
	} {
		_, err := renderText("# first\n" + text)
		said := ""
		if err != nil {
			said = newRenderer(testChart(text), testValues()).problem(err).String()
		}
		if !strings.Contains(said, says) || says == "" && said != "" {
			t.Errorf("%s: said %q, want %q", text, said, says)
		}
	}
}

// TestOrderIsNotChance: maps come in the order of their keys.
func TestOrderIsNotChance(t *testing.T) {
	for range 50 {
		got, err := renderText(`{{ keys (dict "c" 1 "a" 2 "b" 3) }}{{ values (dict "c" 1 "a" 2 "b" 3) }}{{ (fromToml "a = 1979-05-27T07:32:00").a }}`)
		if want := "[a b c][2 3 1]1979-05-27 07:32:00 +0000 UTC"; got != want || err != nil {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	}
}

// TestErrors: an error has the file, the line, who called, and the cause; no value, and nothing of how rendering works.
func TestErrors(t *testing.T) {
	const canary = "canary-hunter22"
	for text, says := range map[string]string{
		`{{ .Values.none.deeper.x }}`:                                              "templates/a.yaml: line 2: nil pointer evaluating interface {}.deeper at .Values.none.deeper.x",
		`{{ range .Values.secret }}{{ end }}`:                                      "line 2: range can't iterate over this value at .Values.secret;",
		`{{ .Values.secret.x }}`:                                                   "line 2: can't evaluate field x in type",
		`{{ fail "no storage class" }}`:                                            "line 2: the chart says: no storage class; give the values that it asks for",
		`{{ required "give x" .Values.none }}`:                                     "line 2: the chart says: give x",
		`{{ include "none" . }}`:                                                   `line 2: the function include fails: no template "none" is defined`,
		`{{ template "none" . }}`:                                                  `line 2: template "none" not defined`,
		`{{ mustToDate "2006" .Values.secret }}`:                                   "line 2: the function mustToDate fails: ",
		`{{ mustFromJson .Values.secret }}`:                                        "line 2: the function mustFromJson fails: ",
		`{{ mustRegexMatch .Values.secret "(" }}`:                                  "",
		`{{ mustRegexMatch (print "(" .Values.secret) "a" }}`:                      "line 2: the function mustRegexMatch fails: ",
		`{{ urlParse (print "%zz" .Values.secret) }}`:                              "line 2: the function urlParse fails: ",
		`{{ index .Values.list 99 }}`:                                              "line 2: the function index fails: ",
		`{{ tpl (print "{{ " .Values.secret " }}") . }}`:                           "line 2: a string that tpl runs as a template is not a valid template",
		`{{ tpl "{{ .Values.none.x.y }}" . }}`:                                     "line 2: ",
		`{{ add 1 (div 1 0) }}`:                                                    "line 2: the function div fails: ",
		`{{ semver .Values.secret }}`:                                              "line 2: the function semver fails: ",
		`{{ if }}`:                                                                 "templates/a.yaml: line 2: this is no template: missing value for if",
		`{{ .Values.x`:                                                             "line 2: this is no template: unclosed action",
		`{{ define "deep" }}{{ .Values.none.x.y }}{{ end }}{{ include "deep" . }}`: "line 2: nil pointer evaluating interface {}.x",
		`{{ include "broken" . }}`:                                                 "templates/_broken.tpl: line 3 (called by templates/a.yaml, line 2): nil pointer",
	} {
		c := testChart("# first\n" + text)
		c.Templates = append(c.Templates, &common.File{Name: "templates/_broken.tpl", Data: []byte("\n\n{{ define \"broken\" }}{{ .Values.none.x.y }}{{ end }}")})
		given := testValues()
		values, _ := given["Values"].(common.Values)
		values["secret"] = canary
		r := newRenderer(c, given)
		_, err := r.run()
		said := ""
		if err != nil {
			said = r.problem(err).String()
		}
		if !strings.Contains(said, says) || says == "" && said != "" {
			t.Errorf("%s: said %q, want %q", text, said, says)
		}
		for _, not := range []string{canary, "hunter", "_out", "_tick", "gotpl", "reflect", "app/templates"} {
			if strings.Contains(said, not) {
				t.Errorf("%s: %q shows %q", text, said, not)
			}
		}
	}
}
