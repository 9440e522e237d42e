// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// single is a source of one file.
type single struct {
	name string
	err  error
}

func (s single) Resolve(context.Context) (Resolved, error) {
	return Resolved{Digest: "sha256:" + s.name}, s.err
}

func (s single) Fetch(_ context.Context, r Resolved, tree *Tree) (Resolved, error) {
	if s.err != nil {
		return Resolved{}, s.err
	}
	r.Validator = "fetched"
	return r, tree.WriteFile(s.name, strings.NewReader(s.name))
}

func TestCompose(t *testing.T) {
	parts := func(destinations ...string) []Part {
		all := make([]Part, 0, len(destinations))
		for _, d := range destinations {
			all = append(all, Part{Destination: d, Fetcher: single{name: "f"}, Resolved: Resolved{Digest: "sha256:" + d}})
		}
		return all
	}
	cases := map[string]struct {
		reason string
		parts  []Part
		want   map[string]string
	}{
		"One":         {"the usual case", parts(""), map[string]string{"f": "f"}},
		"Two":         {"side by side", parts("b", "a/c"), map[string]string{"a/": "", "a/c/": "", "a/c/f": "f", "b/": "", "b/f": "f"}},
		"CommonStart": {"names, not strings, are compared", parts("a", "ab", "a-b"), map[string]string{"a/": "", "a/f": "f", "ab/": "", "ab/f": "f", "a-b/": "", "a-b/f": "f"}},
		"RootAndSub":  {"one lies in the other", parts("", "a"), nil},
		"RootLast":    {"in any order", parts("+a", "."), nil},
		"Same":        {"two would mix", parts("a", "./a/"), nil},
		"Nested":      {"one lies in the other", parts("a/b", "a-b", "a"), nil},
		"Outside":     {"nothing leaves the tree", parts("../a"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t, DefaultLimits())
			resolved, err := Compose(context.Background(), tc.parts, tree)
			if tc.want == nil {
				if ReasonOf(err) != Refused || len(contents(t, tree.FS())) > 0 {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, contents(t, tree.FS())); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			for i, r := range resolved {
				if r.Digest != tc.parts[i].Resolved.Digest || r.Validator != "fetched" {
					t.Errorf("part %d: %+v", i, r)
				}
			}
		})
	}
	cause := errors.New("broken")
	_, err := Compose(context.Background(), []Part{{Fetcher: single{err: cause}}}, newTree(t, DefaultLimits()))
	if !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestResolvedSame(t *testing.T) {
	cases := map[string]struct {
		reason   string
		now, old Resolved
		want     bool
	}{
		"SameDigest":    {"nothing moved", Resolved{Reference: "v1", Digest: "d"}, Resolved{Reference: "v1", Digest: "d"}, true},
		"OtherDigest":   {"the tag moved", Resolved{Reference: "v1", Digest: "e"}, Resolved{Reference: "v1", Digest: "d"}, false},
		"OtherTag":      {"the revision shows the tag", Resolved{Reference: "v2", Digest: "d"}, Resolved{Reference: "v1", Digest: "d"}, false},
		"SameValidator": {"the URL did not change", Resolved{Validator: "x"}, Resolved{Validator: "x", Digest: "d"}, true},
		"NoValidator":   {"nothing to compare", Resolved{}, Resolved{Digest: "d"}, false},
		"First":         {"nothing was fetched before", Resolved{Digest: "d"}, Resolved{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.now.Same(tc.old); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}
