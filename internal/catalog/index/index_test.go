// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/catalog/fbc"
	"github.com/satchel-dev/satchel/internal/catalog/index"
)

// built is an indexed catalog in memory.
type built struct {
	index     *index.Index
	all, lean bytes.Buffer
	list      bytes.Buffer
}

func build(t testing.TB, files fstest.MapFS, limits fbc.Limits) *built {
	t.Helper()
	b := &built{}
	var err error
	if b.index, err = index.Build(files, ".", limits, &b.all, &b.lean); err != nil {
		t.Fatal(err)
	}
	if err := b.index.Summarize(bytes.NewReader(b.lean.Bytes()), &b.list); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *built) reader() *index.Reader {
	return index.NewReader(b.index, bytes.NewReader(b.lean.Bytes()))
}

// shop is a catalog with two files, in which packages are mixed.
func shop() fstest.MapFS {
	return fstest.MapFS{
		"b.yaml": {Data: []byte(`---
schema: olm.channel
package: shop
name: stable
entries:
- name: shop.v1.0.0
- name: shop.v1.1.0
  replaces: shop.v1.0.0
  skipRange: "<1.1.0"
- name: shop.v9.9.9
  replaces: shop.v1.1.0
---
schema: olm.bundle
package: bakery
name: bakery.v1.0.0
image: registry.example.org/bakery:1
`)},
		"a.json": {Data: []byte(`{"schema":"olm.package","name":"shop","defaultChannel":"stable","icon":{"base64data":"AAAA","mediatype":"image/png"}}
{"schema":"olm.package","name":"bakery"}
{"schema":"olm.bundle","package":"shop","name":"shop.v1.0.0","image":"registry.example.org/shop@sha256:1","properties":[
 {"type":"olm.package","value":{"packageName":"shop","version":"1.0.0"}},
 {"type":"olm.gvk","value":{"group":"shop.example.org","version":"v1","kind":"Shop"}},
 {"type":"olm.bundle.object","value":{"data":"AAAA"}},
 {"type":"olm.csv.metadata","value":{"displayName":"Old","description":"old"}}]}
{"schema":"olm.bundle","package":"shop","name":"shop.v1.1.0","image":"registry.example.org/shop@sha256:2","properties":[
 {"type":"olm.package","value":{"packageName":"shop","version":"1.1.0"}},
 {"type":"olm.csv.metadata","value":{"displayName":"Shop & Co","provider":{"name":"Example"},"keywords":["buy","sell"],"description":"Sells <things>."}}]}
{"schema":"custom","name":"note","number":12345678901234567890}
`)},
		"c/deprecations.json": {Data: []byte(`{"schema":"olm.deprecations","package":"shop","entries":[
 {"reference":{"schema":"olm.package"},"message":"gone soon"},{"reference":{"schema":"olm.channel","name":"stable"},"message":"use fast"}]}`)},
	}
}

// C4: the bytes are those that catalogd writes: encoding/json of the decoded blob, without escapes for HTML, in path order.
func TestAllBlobsAreInTheBytesOfCatalogd(t *testing.T) {
	b := build(t, shop(), fbc.DefaultLimits())
	lines := strings.Split(strings.TrimSuffix(b.all.String(), "\n"), "\n")
	want := []string{
		`{"defaultChannel":"stable","icon":{"base64data":"AAAA","mediatype":"image/png"},"name":"shop","schema":"olm.package"}`,
		`{"name":"bakery","schema":"olm.package"}`,
	}
	if diff := cmp.Diff(want, lines[:2]); diff != "" {
		t.Error(diff)
	}
	if got := lines[4]; got != `{"name":"note","number":12345678901234567000,"schema":"custom"}` {
		t.Errorf("a number is written as catalogd does, by way of float64: %s", got)
	}
	if !strings.Contains(lines[3], "Sells <things>.") || !strings.Contains(lines[3], "Shop & Co") {
		t.Errorf("HTML is not escaped: %s", lines[3])
	}
	if len(lines) != 8 || !strings.Contains(lines[5], "olm.channel") || !strings.Contains(lines[7], "olm.deprecations") {
		t.Errorf("the blobs are not in path order:\n%s", b.all.String())
	}
}

// What a reader returns of a package is what the catalog says when it is read as a whole.
func TestReaderEqualsTheCatalog(t *testing.T) {
	b := build(t, shop(), fbc.DefaultLimits())
	reader := b.reader()
	for _, name := range []string{"shop", "bakery", "absent"} {
		whole, err := fbc.ReadPackage(shop(), ".", name, fbc.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // from the file, then from the cache
			got, err := reader.Package(name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(whole.Package, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
	if strings.Contains(b.lean.String(), "csv.metadata") || strings.Contains(b.lean.String(), "bundle.object") || strings.Contains(b.lean.String(), "icon") {
		t.Errorf("lean blobs have what resolution does not need:\n%s", b.lean.String())
	}
	if got := b.index.Providers("shop.example.org", "v1", "Shop"); !cmp.Equal(got, []string{"shop"}) {
		t.Errorf("the kind Shop is provided by %q", got)
	}
	if got := b.index.Providers("shop.example.org", "v2", "Shop"); got != nil {
		t.Errorf("another version of the kind Shop is provided by %q", got)
	}
}

func TestListOfPackages(t *testing.T) {
	b := build(t, shop(), fbc.DefaultLimits())
	shopDigest, _ := b.index.Find("shop")
	bakeryDigest, _ := b.index.Find("bakery")
	want := `{"name":"bakery","bundles":1,"digest":"` + bakeryDigest.Digest + `"}
{"name":"shop","defaultChannel":"stable","channels":[{"name":"stable","heads":["shop.v9.9.9"],"deprecated":"use fast"}],"bundles":2,` +
		`"displayName":"Shop & Co","provider":"Example","keywords":["buy","sell"],"description":"Sells <things>.","deprecated":"gone soon","digest":"` + shopDigest.Digest + `"}
`
	if diff := cmp.Diff(want, b.list.String()); diff != "" {
		t.Error(diff)
	}
}

// C24 in part: a bad package is left out and named; the others are not affected.
func TestProblemsArePerPackage(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		file     string
		problem  string
		leftOut  bool // the package
		fallsOut string
	}{
		"absent bundle": {
			"OLM v1 resolves such a package", "", "package shop: channel stable names the bundle shop.v9.9.9, which does not exist", false, "",
		},
		"wrong type": {
			"resolution cannot read the channel", `{"schema":"olm.channel","package":"bakery","name":"x","entries":"none"}`,
			"package bakery is left out: z.json, blob 1: olm.channel \"x\": the field entries has the wrong type", true, "",
		},
		"no package": {
			"the blob belongs to no package", `{"schema":"olm.channel","name":"x"}`, "a blob is left out: z.json, blob 1: the name of the package", false, "",
		},
		"no schema": {
			"the blob of a package cannot be understood", `{"package":"bakery","name":"x"}`, "package bakery is left out: z.json, blob 1: the field schema is missing", true, "",
		},
		"two heads": {
			"which bundle is the newest one is not certain", `{"schema":"olm.channel","package":"bakery","name":"x","entries":[{"name":"a"},{"name":"b"}]}`,
			`package bakery: channel "x" has 2 heads, which no entry replaces or skips: a, b`, false, "",
		},
		"cycle": {
			"no bundle is the newest one", `{"schema":"olm.channel","package":"bakery","name":"x","entries":[{"name":"a","replaces":"b"},{"name":"b","replaces":"a"}]}`,
			`package bakery: channel "x" has no head`, false, "",
		},
		"entries": {
			"a limit of one package spoils that package", `{"schema":"olm.channel","package":"bakery","name":"x","entries":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}]}`,
			"package bakery is left out: z.json, blob 1: olm.channel \"x\": more than 3 entries", true, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := shop()
			if tc.file != "" {
				files["z.json"] = &fstest.MapFile{Data: []byte(tc.file)}
			}
			limits := fbc.DefaultLimits()
			limits.Entries = 3
			b := build(t, files, limits)
			if !strings.Contains(strings.Join(b.index.Problems, "\n"), tc.problem) {
				t.Errorf("%s: got the problems %q, want %q", tc.reason, b.index.Problems, tc.problem)
			}
			_, err := b.reader().Package("bakery")
			if (err != nil) != tc.leftOut {
				t.Errorf("%s: reading the package: %v", tc.reason, err)
			}
			if p, err := b.reader().Package("shop"); err != nil || p == nil {
				t.Errorf("another package is affected: %v", err)
			}
			if listed := strings.Contains(b.list.String(), "bakery"); listed == tc.leftOut {
				t.Errorf("the package is listed: %t", listed)
			}
		})
	}
}

// C23 in part: what exceeds a limit of the catalog refuses all of it, and names file, package and limit.
func TestLimitsOfTheCatalog(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*fbc.Limits)
		says   string
	}{
		"bytes":    {"the volume is shared", func(l *fbc.Limits) { l.Bytes = 100 }, "a.json, blob 1: more than 100 bytes of all files"},
		"blob":     {"a blob is held in memory", func(l *fbc.Limits) { l.Blob = 50 }, "a.json, blob 1: more than 50 bytes of one blob"},
		"packages": {"the index is held in memory", func(l *fbc.Limits) { l.Packages = 1 }, `a.json, blob 2: package "bakery": more than 1 packages`},
		"bundles":  {"the index is held in memory", func(l *fbc.Limits) { l.Bundles = 1 }, "a.json, blob 4: more than 1 bundles"},
	} {
		t.Run(name, func(t *testing.T) {
			limits := fbc.DefaultLimits()
			tc.change(&limits)
			var all, lean bytes.Buffer
			_, err := index.Build(shop(), ".", limits, &all, &lean)
			var limit *fbc.LimitError
			if !errors.As(err, &limit) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.says)
			}
		})
	}
}

func TestEmptyCatalogIsRefused(t *testing.T) {
	var all, lean bytes.Buffer
	_, err := index.Build(fstest.MapFS{"README.yaml": {Data: []byte("\n")}}, ".", fbc.DefaultLimits(), &all, &lean)
	if err == nil || !strings.Contains(err.Error(), "has no catalog") {
		t.Errorf("got %v", err)
	}
}

// The digest of a package changes with what resolution reads, and with nothing else.
func TestPackageDigest(t *testing.T) {
	before := build(t, shop(), fbc.DefaultLimits())
	digest := func(b *built) string {
		p, _ := b.index.Find("shop")
		return p.Digest
	}
	for name, tc := range map[string]struct {
		from, to string
		same     bool
	}{
		"icon":          {"AAAA\",\"mediatype", "BBBB\",\"mediatype", true},
		"description":   {"Sells", "Buys", true},
		"other package": {`"name":"bakery"`, `"name":"bakery","defaultChannel":"x"`, true},
		"version":       {`"version":"1.1.0"`, `"version":"1.1.1"`, false},
		"image":         {"shop@sha256:2", "shop@sha256:3", false},
	} {
		files := shop()
		changed := strings.Replace(string(files["a.json"].Data), tc.from, tc.to, 1)
		files["a.json"] = &fstest.MapFile{Data: []byte(changed)}
		if same := digest(build(t, files, fbc.DefaultLimits())) == digest(before); same != tc.same {
			t.Errorf("%s: the digest is the same: %t", name, same)
		}
	}
}

func TestSelect(t *testing.T) {
	b := build(t, shop(), fbc.DefaultLimits())
	read := func(q index.Query) (lines int) {
		for _, part := range b.index.Select(q) {
			lines += strings.Count(b.all.String()[part.Offset:part.Offset+part.Length], "\n")
		}
		return lines
	}
	for _, tc := range []struct {
		query index.Query
		want  int
	}{
		{index.Query{}, 8},
		{index.Query{Schema: "olm.bundle"}, 3},
		{index.Query{Package: "shop"}, 4}, // as in catalogd, an olm.package has no package
		{index.Query{Schema: "olm.package", Name: "shop"}, 1},
		{index.Query{Schema: "olm.bundle", Package: "shop", Name: "shop.v1.1.0"}, 1},
		{index.Query{Schema: "olm.bundle", Package: "bakery", Name: "shop.v1.1.0"}, 0},
	} {
		if got := read(tc.query); got != tc.want {
			t.Errorf("%+v selects %d blobs, want %d", tc.query, got, tc.want)
		}
	}
}

func TestEncoding(t *testing.T) {
	b := build(t, shop(), fbc.DefaultLimits())
	encoded, err := b.index.Encode()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := index.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.index, decoded); diff != "" {
		t.Error(diff)
	}
	for name, damage := range map[string]func(*index.Index){
		"string":   func(x *index.Index) { x.Blobs[0].Name = 1 << 20 },
		"gap":      func(x *index.Index) { x.Blobs[1].Offset++ },
		"end":      func(x *index.Index) { x.AllBytes-- },
		"lean":     func(x *index.Index) { x.Packages[0].Lean[0].Length = 1 << 40 },
		"order":    func(x *index.Index) { x.Packages[0].Name = "zoo" },
		"provider": func(x *index.Index) { x.Provides[0].Packages[0] = 7 },
	} {
		broken, err := index.Decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		damage(broken)
		bad, err := broken.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := index.Decode(bad); err == nil {
			t.Errorf("an index with a wrong %s is accepted", name)
		}
	}
}

// The cache forgets packages, and answers stay right.
func TestCacheIsBounded(t *testing.T) {
	files := fstest.MapFS{}
	filler := strings.Repeat("x", 4<<20) // in a field that is kept
	for i := range 6 {
		files[fmt.Sprintf("%d.json", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, `{"schema":"olm.package","name":"p%d","filler":%q}`, i, filler)}
	}
	b := build(t, files, fbc.DefaultLimits())
	counted := &countingReader{from: bytes.NewReader(b.lean.Bytes())}
	reader := index.NewReader(b.index, counted)
	read := func(name string) {
		if p, err := reader.Package(name); err != nil || p.Name != name {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for i := range 6 {
		read(fmt.Sprintf("p%d", i))
	}
	read("p5")
	if counted.reads != 6 {
		t.Errorf("the newest package was read again: %d reads", counted.reads)
	}
	read("p0")
	if counted.reads != 7 {
		t.Errorf("24 MiB of packages are in a cache of 16 MiB: %d reads", counted.reads)
	}
}

type countingReader struct {
	from  *bytes.Reader
	reads int
}

func (c *countingReader) ReadAt(p []byte, at int64) (int, error) {
	c.reads++
	return c.from.ReadAt(p, at)
}

// C20 in part: damaged files of an index lead to an error, never to a panic or a read outside of the files.
func FuzzReader(f *testing.F) {
	b := build(f, shop(), fbc.DefaultLimits())
	encoded, err := b.index.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encoded, b.lean.Bytes())
	f.Fuzz(func(_ *testing.T, encoded, lean []byte) {
		x, err := index.Decode(encoded)
		if err != nil || x.LeanBytes > 1<<20 {
			return
		}
		reader := index.NewReader(x, bytes.NewReader(lean))
		for _, p := range x.Packages {
			_, _ = reader.Package(p.Name)
		}
		x.Select(index.Query{Schema: "olm.bundle"})
		_ = x.Summarize(bytes.NewReader(lean), &bytes.Buffer{})
	})
}
