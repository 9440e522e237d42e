// SPDX-License-Identifier: Apache-2.0

package git

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// number is a hash for tests.
func number(i int) string { return fmt.Sprintf("%040x", i+1) }

func TestM15OnlyNeededReferencesAreHeld(t *testing.T) {
	refs := []string{number(0), "HEAD", number(0), "refs/heads/main", number(1), "refs/heads/other"}
	for i := range 5 {
		refs = append(refs, number(10+i), fmt.Sprintf("refs/pull/%d/head", i))
	}
	refs = append(refs,
		number(20), "refs/tags/v1.0.0", number(21), "refs/tags/v1.1.0", number(22), "refs/tags/v1.1.0^{}",
		number(23), "refs/tags/v2.0.0", number(24), "refs/tags/v2.0.0^{}", number(25), "refs/tags/weekly")
	url := hostile(t, advertisement("symref=HEAD:refs/heads/main", refs...), nil)
	cases := map[string]struct {
		reason string
		o      Options
		commit string // instead of what o wants
		held   []string
		want   string
	}{
		"Default": {"HEAD and what it is called", Options{}, "", []string{"HEAD"}, "main " + number(0)},
		"Branch":  {"one branch", Options{Branch: "other"}, "", []string{"refs/heads/other"}, "other " + number(1)},
		"Tag":     {"a tag without a commit of its own", Options{Tag: "weekly"}, "", []string{"refs/tags/weekly"}, "weekly " + number(25)},
		"Peeled":  {"a tag and its commit", Options{Tag: "v1.1.0"}, "", []string{"refs/tags/v1.1.0", "refs/tags/v1.1.0^{}"}, "v1.1.0 " + number(22)},
		"SemVer": {"the versions in the range", Options{SemVer: "1.x"}, "",
			[]string{"refs/tags/v1.0.0", "refs/tags/v1.1.0", "refs/tags/v1.1.0^{}"}, "v1.1.0 " + number(22)},
		"Commit":       {"a commit that a branch points at", Options{}, number(1), []string{"refs/heads/other"}, number(1)},
		"TaggedCommit": {"a commit is had by asking for its tag", Options{}, number(24), []string{"refs/tags/v2.0.0", "refs/tags/v2.0.0^{}"}, number(23)},
		"NoCommit":     {"a commit that nothing points at", Options{}, number(99), nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.o.URL = url
			f := fetcher(t, tc.o)
			selected := f.want.selection()
			if tc.commit != "" {
				selected = selectCommit(plumbing.NewHash(tc.commit))
			}
			s, err := f.connect(t.Context(), selected, true)
			if err != nil {
				t.Fatal(err)
			}
			held := slices.Collect(maps.Keys(s.refs.named))
			for name := range s.refs.peeled {
				held = append(held, name+"^{}")
			}
			slices.Sort(held)
			if diff := cmp.Diff(tc.held, held); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			got := ""
			if tc.commit != "" {
				if asked, found := s.refs.leading(plumbing.NewHash(tc.commit)); found {
					got = asked.String()
				}
			} else if name, commit, err := f.want.choose(s.refs); err == nil {
				got = name + " " + commit.String()
			}
			if got != tc.want {
				t.Errorf("%s: got %q", tc.reason, got)
			}
		})
	}
}

// TestM15References has the number of references that docs/dev/reliability.md names, with names as people give them.
func TestM15References(t *testing.T) {
	refs := []string{number(0), "HEAD"}
	for i := range 100_000 {
		refs = append(refs, number(i), fmt.Sprintf("refs/heads/feature/some-change-of-a-feature-%06d", i))
	}
	last := refs[len(refs)-1]
	url := hostile(t, advertisement("", refs...), nil)
	resolved, err := fetcher(t, Options{URL: url, Branch: strings.TrimPrefix(last, branchPrefix)}).Resolve(t.Context())
	if err != nil || resolved.Digest != "sha1:"+number(99_999) {
		t.Errorf("got %+v, %v", resolved, err)
	}
	url = hostile(t, advertisement("", append(refs, number(0), "refs/heads/x")...), nil)
	if _, err := fetcher(t, Options{URL: url, Branch: "x"}).Resolve(t.Context()); fetch.ReasonOf(err) != fetch.LimitExceeded ||
		!strings.Contains(err.Error(), "more than 100000 references") {
		t.Errorf("one more: %v", err)
	}
}

// TestM18BytesOfReferences has a server with few but long references, and one that answers with another success.
func TestM18BytesOfReferences(t *testing.T) {
	var refs []string
	for i := range 40 {
		refs = append(refs, number(i), "refs/heads/"+strings.Repeat("x", 60_000)+fmt.Sprint(i))
	}
	limits := fetch.DefaultLimits()
	limits.GitRefs = 1000
	_, err := fetcher(t, Options{URL: hostile(t, advertisement("", refs...), nil), Branch: "x", Limits: limits}).Resolve(t.Context())
	if fetch.ReasonOf(err) != fetch.LimitExceeded || !strings.Contains(err.Error(), "more than 265536 bytes") {
		t.Errorf("got %v", err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte(advertisement("", number(0), "a", number(0), "b", number(0), "c")))
	}))
	t.Cleanup(server.Close)
	limits.GitRefs = 2
	if _, err := fetcher(t, Options{URL: server.URL, Branch: "x", Limits: limits}).Resolve(t.Context()); fetch.ReasonOf(err) != fetch.LimitExceeded {
		t.Errorf("got %v", err)
	}
}
