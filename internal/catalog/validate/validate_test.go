// SPDX-License-Identifier: Apache-2.0

package validate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/internal/catalog/fbc"
	"github.com/satchel-dev/satchel/internal/catalog/validate"
)

const (
	declared = "schema: olm.package\nname: p\ndefaultChannel: a\n---\n"
	valid    = declared + `schema: olm.channel
package: p
name: a
entries: [{name: p.v1}, {name: p.v2, replaces: p.v1, skips: [p.v0], skipRange: <2.0.0}]
---
` + one + two
	one = "schema: olm.bundle\npackage: p\nname: p.v1\nimage: i\nproperties: [{type: olm.package, value: {packageName: p, version: 1.0.0}}]\n---\n"
	two = "schema: olm.bundle\npackage: p\nname: p.v2\nimage: i\nproperties: [{type: olm.package, value: {packageName: p, version: 2.0.0}}]\n---\n"
)

// lines are the problems of a catalog.
func lines(text string, limits fbc.Limits) []string {
	report := validate.Files(fstest.MapFS{"c.yaml": {Data: []byte(text)}}, ".", limits)
	var all []string
	for _, p := range report.Problems {
		all = append(all, fmt.Sprintf("%s %s: %s", p.Severity, p.Package, p.Text))
	}
	return all
}

// entries is a channel named a.
func entries(text string) string {
	return declared + "schema: olm.channel\npackage: p\nname: a\nentries: [" + text + "]\n---\n" + one + two
}

func TestProblems(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"valid", valid, nil},
		{"of other schemas", valid + "schema: custom\nanything: 1\n", nil},
		{"no olm.package", strings.TrimPrefix(valid, declared), []string{"error p: the blob olm.package is missing"}},
		{"olm.package twice", declared + valid, []string{"error p: 2 blobs olm.package: c.yaml, blob 1; c.yaml, blob 2"}},
		{"no default channel", strings.Replace(valid, "defaultChannel: a\n", "", 1), []string{"error p: the default channel is missing: set defaultChannel of olm.package"}},
		{"default channel elsewhere", strings.Replace(valid, "defaultChannel: a", "defaultChannel: b", 1), []string{`error p: the default channel "b" does not exist`}},
		{"bundle twice", valid + two, []string{`error p: 2 blobs of the bundle "p.v2": c.yaml, blob 4; c.yaml, blob 5`}},
		{"channel twice", valid + "schema: olm.channel\npackage: p\nname: a\nentries: [{name: p.v1}]\n", []string{`error p: 2 blobs of the channel "a": c.yaml, blob 2; c.yaml, blob 5`}},
		{"no name", valid + "schema: olm.channel\npackage: p\nentries: [{name: p.v1}]\n", []string{`error p: c.yaml, blob 5: channel: the field name is missing`}},
		{"missing bundle", entries("{name: p.v1}, {name: p.v2, replaces: p.v1}, {name: p.v3, replaces: p.v2}"), []string{`error p: channel "a" names the bundle "p.v3", which does not exist`}},
		{"no entries", entries(""), []string{
			`error p: channel "a" has no entries`,
			`warning p: bundle "p.v1" is in no channel: only queries without channels find it, and no upgrade leads to it`,
			`warning p: bundle "p.v2" is in no channel: only queries without channels find it, and no upgrade leads to it`,
		}},
		{"an entry twice", entries("{name: p.v1}, {name: p.v2, replaces: p.v1}, {name: p.v2, replaces: p.v1}"), []string{`error p: channel "a" has two entries of the bundle "p.v2"`}},
		{"several heads", entries("{name: p.v1}, {name: p.v2}"), []string{`error p: channel "a" has 2 heads, which no entry replaces or skips: p.v1, p.v2`}},
		{"no head", entries("{name: p.v1, replaces: p.v2}, {name: p.v2, replaces: p.v1}"), []string{`error p: channel "a" has no head: each entry is replaced or skipped by another one, so there is a cycle`}},
		{"a cycle", entries("{name: p.v1, replaces: p.v1}, {name: p.v2, replaces: p.v1}"), []string{`error p: channel "a": replaces has a cycle: p.v2 replaces p.v1 replaces p.v1`}},
		{"stranded", entries("{name: p.v2}, {name: p.v1, replaces: p.v1}"), []string{`error p: channel "a": no chain of replaces leads from the head p.v2 to p.v1, and no entry skips it`}},
		{"skipped", entries("{name: p.v2, skips: [p.v1]}, {name: p.v1, replaces: p.v0}"), nil},
		{"behind a skipped entry", entries("{name: p.v2, replaces: p.x, skips: [p.x]}, {name: p.x, replaces: p.v1}, {name: p.v1}"), []string{
			`error p: channel "a" names the bundle "p.x", which does not exist`,
			`error p: channel "a": no chain of replaces leads from the head p.v2 to p.v1, and no entry skips it`,
		}},
		{"in no channel", entries("{name: p.v1}"), []string{`warning p: bundle "p.v2" is in no channel: only queries without channels find it, and no upgrade leads to it`}},
		{"skipRange", strings.Replace(valid, "<2.0.0", "new", 1), []string{`error p: channel "a": the skipRange "new" of "p.v2" is invalid, and counts for nothing: Could not get version from string: "new"`}},
		{"version", strings.Replace(valid, "version: 2.0.0", "version: v2", 1), []string{`error p: bundle "p.v2" has no valid version: No Major.Minor.Patch elements found`}},
		{"no version", strings.Replace(valid, "type: olm.package, value: {packageName: p, version: 2", "type: other, value: {packageName: p, version: 2", 1), []string{`error p: bundle "p.v2" has no valid version: no package property found in bundle "p.v2"`}},
		{"the same version", strings.Replace(valid, "version: 2.0.0", "version: 1.0.0", 1), []string{`error p: bundles "p.v1" and "p.v2" have the same version 1.0.0`}},
		{"no image", strings.Replace(valid, "image: i\n", "", 1), []string{`error p: bundle "p.v1" has no image`}},
		{"deprecations", valid + "schema: olm.deprecations\npackage: p\nentries: [{reference: {schema: olm.bundle, name: x}, message: m}, {reference: {schema: olm.channel, name: z}, message: m}, {reference: {schema: olm.package}}]\n",
			[]string{`warning p: the deprecated bundle "x" does not exist`, `warning p: the deprecated channel "z" does not exist`, `error p: the deprecation of olm.package "" has no message`}},
		{"several packages, and what belongs to none", "name: stray\n---\n" + valid + "schema: olm.package\nname: b\n---\nschema: olm.channel\nname: c\n---\nschema: olm.channel\npackage: p\nname: z\nentries: 7\n", []string{
			"error : c.yaml, blob 1: the field schema is missing",
			"error : c.yaml, blob 7: the name of the package of this olm.channel is missing",
			"error b: the default channel is missing: set defaultChannel of olm.package",
			"error b: the package has no channels",
			`error p: c.yaml, blob 8: olm.channel "z": the field entries has the wrong type: number`,
		}},
		{"syntax", "name: stray\n---\n" + one + "{", []string{
			"error : c.yaml, blob 1: the field schema is missing",
			"error : c.yaml, blob 3: yaml: line 1: did not find expected node content; every file of the folder has to be part of the catalog, except those that .indexignore names",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := lines(c.text, fbc.DefaultLimits()); !slices.Equal(got, c.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		change func(*fbc.Limits)
		want   string
	}{
		{func(l *fbc.Limits) { l.Packages = 0 }, "error : c.yaml, blob 1: more than 0 packages"},
		{func(l *fbc.Limits) { l.Bundles = 1 }, "error : c.yaml, blob 4: more than 1 bundles"},
		{func(l *fbc.Limits) { l.Entries = 1 }, `error p: c.yaml, blob 2: olm.channel "a": more than 1 entries`},
	} {
		limits := fbc.DefaultLimits()
		c.change(&limits)
		if got := lines(valid, limits); len(got) == 0 || got[0] != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestReport(t *testing.T) {
	report := validate.Files(fstest.MapFS{"c.yaml": {Data: []byte(entries("{name: p.v1}"))}}, "c.yaml", fbc.DefaultLimits())
	if report.Packages != 1 || report.Bundles != 2 || report.Errors() != 0 || len(report.Problems) != 1 || report.Incomplete {
		t.Errorf("warnings are no errors: %+v", report)
	}
	report = validate.Files(fstest.MapFS{"c.yaml": {Data: []byte("{")}}, ".", fbc.DefaultLimits())
	if report.Errors() != 1 || !report.Incomplete {
		t.Errorf("a syntax error: %+v", report)
	}
}
