// SPDX-License-Identifier: Apache-2.0

package closure_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/fbc"
	"github.com/satchel-dev/satchel/internal/resolver"
	"github.com/satchel-dev/satchel/internal/resolver/closure"
)

// world is catalogs and a cluster.
type world struct {
	catalogs map[string]string // lines of bundles by the name of the catalog: package version [properties]
	priority map[string]int32
	served   []catalog.Kind
	whole    map[string]fbc.Whole
}

// read reads the lines of the catalogs as file-based catalogs.
func (w *world) read(t testing.TB) {
	t.Helper()
	w.whole = map[string]fbc.Whole{}
	for name, lines := range w.catalogs {
		var blobs strings.Builder
		for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
			fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
			properties := ""
			if len(fields) == 3 {
				properties = "," + fields[2]
			}
			fmt.Fprintf(&blobs, `{"schema":"olm.bundle","package":%q,"name":"%s.v%s","image":"r.example.org/%s@sha256:%s","properties":[{"type":"olm.package","value":{"packageName":%q,"version":%q}}%s]}`+"\n",
				fields[0], fields[0], fields[1], fields[0], fields[1], fields[0], fields[1], properties)
		}
		whole, err := fbc.ReadAll(fstest.MapFS{"c.json": {Data: []byte(blobs.String())}}, ".", fbc.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		for problem, err := range whole.Unusable {
			t.Fatalf("package %s: %v", problem, err)
		}
		w.whole[name] = whole
	}
}

func (w *world) Package(name string) ([]resolver.Catalog, error) {
	var all []resolver.Catalog
	for from, whole := range w.whole {
		all = append(all, resolver.Catalog{Name: from, Priority: w.priority[from], Package: whole.Packages[name]})
	}
	return all, nil
}

func (w *world) Providers(kind catalog.Kind) ([]closure.Provider, error) {
	var all []closure.Provider
	for from, whole := range w.whole {
		for _, name := range whole.Providers(kind) {
			all = append(all, closure.Provider{Package: name, Catalog: from, Priority: w.priority[from]})
		}
	}
	return all, nil
}

func (w *world) Serves(kind catalog.Kind) (bool, error) { return slices.Contains(w.served, kind), nil }

// Properties of bundles.
func requires(name, versions string) string {
	return fmt.Sprintf(`{"type":"olm.package.required","value":{"packageName":%q,"versionRange":%q}}`, name, versions)
}

func requiresKind(kind string) string {
	return fmt.Sprintf(`{"type":"olm.gvk.required","value":{"group":"example.org","version":"v1","kind":%q}}`, kind)
}

func providesKind(kind string) string {
	return fmt.Sprintf(`{"type":"olm.gvk","value":{"group":"example.org","version":"v1","kind":%q}}`, kind)
}

func constraint(value string) string { return `{"type":"olm.constraint","value":` + value + `}` }

const (
	partPackage = `{"package":{"packageName":%q,"versionRange":%q}}`
	partKind    = `{"gvk":{"group":"example.org","version":"v1","kind":%q}}`
)

func properties(list ...string) string { return strings.Join(list, ",") }

func TestFind(t *testing.T) {
	db := "db 1.0.0\ndb 2.0.0\ndb 3.0.0\n"
	tests := map[string]struct {
		reason    string
		catalogs  map[string]string
		priority  map[string]int32
		served    []catalog.Kind
		installed []closure.Installed
		want      []string // bundles in order, with what they depend on
		notes     []string
		refusal   string
	}{
		"nothing": {
			reason:   "a bundle without dependencies is its closure",
			catalogs: map[string]string{"c": "shop 1.0.0"}, want: []string{"shop.v1.0.0"},
		},
		"range": {
			reason:   "the newest bundle in the range of the requirement",
			catalogs: map[string]string{"c": "shop 1.0.0 " + requires("db", ">=1.0.0 <3.0.0") + "\n" + db},
			want:     []string{"db.v2.0.0", "shop.v1.0.0: db"},
		},
		"ranges of two": {
			reason: "they are intersected, so that the first choice satisfies both",
			catalogs: map[string]string{"c": "shop 1.0.0 " + properties(requires("db", ">=1.0.0"), requires("web", "")) + "\n" +
				"web 1.0.0 " + requires("db", "<3.0.0") + "\n" + db},
			want: []string{"db.v2.0.0", "web.v1.0.0: db", "shop.v1.0.0: db web"},
		},
		"backtracking": {
			reason: "the newest web needs a db that shop excludes, and an older one does not",
			catalogs: map[string]string{"c": "shop 1.0.0 " + properties(requires("db", "<2.0.0"), requires("web", "")) + "\n" +
				"web 2.0.0 " + requires("db", ">=2.0.0") + "\nweb 1.0.0 " + requires("db", "<2.0.0") + "\n" + db},
			want: []string{"db.v1.0.0", "web.v1.0.0: db", "shop.v1.0.0: db web"},
		},
		"conflict": {
			reason: "the first failure is reported, with the bundles that led to it",
			catalogs: map[string]string{"c": "shop 1.0.0 " + properties(requires("db", "<2.0.0"), requires("web", "")) + "\n" +
				"web 2.0.0 " + requires("db", ">=2.0.0") + "\n" + db},
			refusal: "web.v2.0.0 requires package db in version >=2.0.0, but db.v1.0.0 is needed: shop.v1.0.0 requires package db in version <2.0.0; required by: shop.v1.0.0 -> web.v2.0.0",
		},
		"no version": {
			reason:   "what the catalogs have is named",
			catalogs: map[string]string{"c": "shop 1.0.0 " + requires("db", ">=4.0.0") + "\n" + db},
			refusal:  "shop.v1.0.0 requires package db in version >=4.0.0, and no bundle of package db satisfies that; the newest one is db.v3.0.0",
		},
		"no package": {
			reason:   "no catalog has it",
			catalogs: map[string]string{"c": "shop 1.0.0 " + requires("db", "")},
			refusal:  "shop.v1.0.0 requires package db, and no catalog has the package db",
		},
		"kind": {
			reason:   "the only package that provides it, in a version that does",
			catalogs: map[string]string{"c": "shop 1.0.0 " + requiresKind("Db") + "\ndb 1.0.0 " + providesKind("Db") + "\ndb 2.0.0"},
			want:     []string{"db.v1.0.0", "shop.v1.0.0: db"},
		},
		"kind of a chosen bundle": {
			reason: "a required package that has the kind comes before another provider",
			catalogs: map[string]string{"c": "shop 1.0.0 " + properties(requiresKind("Db"), requires("db", "")) + "\n" +
				"db 1.0.0 " + providesKind("Db") + "\nother 1.0.0 " + providesKind("Db")},
			want: []string{"db.v1.0.0", "shop.v1.0.0: db"},
		},
		"kind of its own": {
			reason:   "a bundle that provides what it requires depends on nothing",
			catalogs: map[string]string{"c": "shop 1.0.0 " + properties(requiresKind("Db"), providesKind("Db"))},
			want:     []string{"shop.v1.0.0"},
		},
		"kind of the cluster": {
			reason:   "what is served needs no bundle",
			catalogs: map[string]string{"c": "shop 1.0.0 " + requiresKind("Db") + "\ndb 1.0.0 " + providesKind("Db")},
			served:   []catalog.Kind{{Group: "example.org", Version: "v1", Kind: "Db"}},
			want:     []string{"shop.v1.0.0"}, notes: []string{"shop.v1.0.0 requires kind Db of example.org/v1: the cluster serves it"},
		},
		"kind of several": {
			reason:   "a person chooses",
			catalogs: map[string]string{"c": "shop 1.0.0 " + requiresKind("Db") + "\ndb 1.0.0 " + providesKind("Db") + "\nother 1.0.0 " + providesKind("Db")},
			refusal:  "shop.v1.0.0 requires kind Db of example.org/v1, which several packages provide: db, other",
		},
		"kind, the same catalog first": {
			reason:   "a catalog belongs together, whatever the priority of another one",
			catalogs: map[string]string{"c": "shop 1.0.0 " + requiresKind("Db") + "\ndb 1.0.0 " + providesKind("Db"), "d": "other 1.0.0 " + providesKind("Db")},
			priority: map[string]int32{"d": 5}, want: []string{"db.v1.0.0", "shop.v1.0.0: db"},
		},
		"kind by priority": {
			reason:   "the catalog of the bundle has none",
			catalogs: map[string]string{"c": "shop 1.0.0 " + requiresKind("Db"), "d": "other 1.0.0 " + providesKind("Db"), "e": "db 1.0.0 " + providesKind("Db")},
			priority: map[string]int32{"e": 5}, want: []string{"db.v1.0.0", "shop.v1.0.0: db"},
		},
		"kind of nothing": {
			reason:   "a CRD may be missing",
			catalogs: map[string]string{"c": "shop 1.0.0 " + requiresKind("Db")},
			refusal:  "shop.v1.0.0 requires kind Db of example.org/v1, which no package of the catalogs provides",
		},
		"installed": {
			reason:    "a BundleDeployment of the namespace has it: it is depended on, and not installed twice",
			catalogs:  map[string]string{"c": "shop 1.0.0 " + requires("db", ">=1.0.0") + "\n" + db},
			installed: []closure.Installed{{Deployment: "database", Package: "db", Version: "1.5.0"}},
			want:      []string{"shop.v1.0.0: @database"}, notes: []string{"shop.v1.0.0 requires package db in version >=1.0.0: BundleDeployment database has installed version 1.5.0"},
		},
		"installed, too old": {
			reason:    "it would be upgraded by its own deployment",
			catalogs:  map[string]string{"c": "shop 1.0.0 " + requires("db", ">=2.0.0") + "\n" + db},
			installed: []closure.Installed{{Deployment: "database", Package: "db", Version: "1.5.0"}},
			refusal:   "shop.v1.0.0 requires package db in version >=2.0.0, and BundleDeployment database has installed version 1.5.0",
		},
		"all": {
			reason:   "each part counts",
			catalogs: map[string]string{"c": "shop 1.0.0 " + constraint(`{"all":{"constraints":[`+fmt.Sprintf(partPackage, "db", "<3.0.0")+`,`+fmt.Sprintf(partPackage, "web", "")+`]}}`) + "\nweb 1.0.0\n" + db},
			want:     []string{"db.v2.0.0", "web.v1.0.0", "shop.v1.0.0: db web"},
		},
		"any": {
			reason:   "the first that leads to an answer",
			catalogs: map[string]string{"c": "shop 1.0.0 " + constraint(`{"any":{"constraints":[`+fmt.Sprintf(partPackage, "gone", "")+`,`+fmt.Sprintf(partPackage, "web", "")+`,`+fmt.Sprintf(partPackage, "db", "")+`]}}`) + "\nweb 1.0.0\n" + db},
			want:     []string{"web.v1.0.0", "shop.v1.0.0: web"},
		},
		"any, met already": {
			reason: "no second one beside what is needed anyway",
			catalogs: map[string]string{"c": "shop 1.0.0 " + properties(constraint(`{"any":{"constraints":[`+fmt.Sprintf(partPackage, "web", "")+`,`+fmt.Sprintf(partKind, "Db")+`]}}`), requires("db", "")) +
				"\nweb 1.0.0\ndb 1.0.0 " + providesKind("Db")},
			want: []string{"db.v1.0.0", "shop.v1.0.0: db"},
		},
		"not": {
			reason:   "what is excluded is not chosen, although it is newer",
			catalogs: map[string]string{"c": "shop 1.0.0 " + properties(constraint(`{"not":{"constraints":[`+fmt.Sprintf(partPackage, "db", ">=3.0.0")+`]}}`), requires("db", "")) + "\n" + db},
			want:     []string{"db.v2.0.0", "shop.v1.0.0: db"},
		},
		"not, of the cluster": {
			reason:   "the cluster has what the bundle excludes",
			catalogs: map[string]string{"c": "shop 1.0.0 " + constraint(`{"not":{"constraints":[`+fmt.Sprintf(partKind, "Db")+`]}}`)},
			served:   []catalog.Kind{{Group: "example.org", Version: "v1", Kind: "Db"}},
			refusal:  "shop.v1.0.0 cannot be installed together with kind Db of example.org/v1",
		},
		"CEL": {
			reason:   "it is not checked, and that is said",
			catalogs: map[string]string{"c": "shop 1.0.0 " + constraint(`{"failureMessage":"needs certificates","cel":{"rule":"true"}}`)},
			want:     []string{"shop.v1.0.0"}, notes: []string{"shop.v1.0.0 has a constraint in CEL: needs certificates: it is not checked"},
		},
		"unreadable": {
			reason:   "fail closed",
			catalogs: map[string]string{"c": `shop 1.0.0 {"type":"olm.package.required","value":7}`},
			refusal:  "bundle shop.v1.0.0: the property olm.package.required cannot be read: a JSON object is expected, not: number",
		},
		"no range": {
			reason:   "fail closed",
			catalogs: map[string]string{"c": "shop 1.0.0 " + requires("db", "newest") + "\n" + db},
			refusal:  `shop.v1.0.0 requires package db in version newest, which is no range of versions: Could not get version from string: "newest"`,
		},
		"each other": {
			reason:   "each would wait for the other one",
			catalogs: map[string]string{"c": "shop 1.0.0 " + requires("db", "") + "\ndb 1.0.0 " + requires("shop", "")},
			refusal:  "packages require each other, so that none of them can be installed first: shop -> db -> shop",
		},
		"ambiguous": {
			reason:   "two catalogs of the same priority have the required package",
			catalogs: map[string]string{"c": "shop 1.0.0 " + requires("db", "") + "\ndb 1.0.0", "d": "db 2.0.0"},
			refusal:  `shop.v1.0.0 requires package db: found bundles for package "db" in multiple catalogs with the same priority [c d]`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := &world{catalogs: tt.catalogs, priority: tt.priority, served: tt.served}
			w.read(t)
			found, err := closure.Find(resolver.Query{Package: "shop"}, w, tt.installed)
			var refusal *closure.RefusalError
			if errors.As(err, &refusal) {
				text := strings.Join(append([]string{refusal.Text}, refusal.Details()...), "; ")
				if tt.refusal == "" || !strings.HasPrefix(text, tt.refusal) {
					t.Errorf("%s: refused: %s", tt.reason, text)
				}
				return
			}
			if err != nil || tt.refusal != "" {
				t.Fatalf("%s: got %v, %v, want %q", tt.reason, found, err, tt.refusal)
			}
			if diff := cmp.Diff(tt.want, shown(found)); diff != "" {
				t.Errorf("%s: %s", tt.reason, diff)
			}
			if diff := cmp.Diff(tt.notes, found.Notes); diff != "" {
				t.Errorf("%s: notes: %s", tt.reason, diff)
			}
		})
	}
}

// shown is a closure in words.
func shown(found closure.Closure) []string {
	var lines []string
	for _, b := range found.Bundles {
		line := b.Bundle
		needs := slices.Clone(b.DependsOn)
		for _, name := range b.Deployments {
			needs = append(needs, "@"+name)
		}
		if len(needs) > 0 {
			line += ": " + strings.Join(needs, " ")
		}
		lines = append(lines, line)
	}
	return lines
}

// TestLimits: a search that finds nothing ends, and says where it was.
func TestLimits(t *testing.T) {
	var long, wide strings.Builder
	for i := range 60 {
		fmt.Fprintf(&long, "p%d 1.0.0 %s\n", i, requires(fmt.Sprintf("p%d", i+1), ""))
	}
	fmt.Fprintf(&wide, "shop 1.0.0 %s\n", properties(requires("a", ""), requires("b", ""), requires("c", ""), requires("d", "")))
	for _, name := range []string{"a", "b", "c"} {
		for i := range 20 {
			fmt.Fprintf(&wide, "%s %d.0.0\n", name, i)
		}
	}
	wide.WriteString("d 1.0.0 " + requires("a", ">=99.0.0"))
	for name, tt := range map[string]struct{ lines, want string }{
		"packages": {"shop 1.0.0 " + requires("p0", "") + "\n" + long.String(), "p48.v1.0.0 requires package p49, and more than 50 packages would be needed"},
		"steps":    {wide.String(), "no closure was found in 1000 steps"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{catalogs: map[string]string{"c": tt.lines}}
			w.read(t)
			_, err := closure.Find(resolver.Query{Package: "shop"}, w, nil)
			var refusal *closure.RefusalError
			if !errors.As(err, &refusal) || !strings.HasPrefix(refusal.Text, tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
