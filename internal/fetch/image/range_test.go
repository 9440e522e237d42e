// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/versions"
	"github.com/satchel-dev/satchel/tests/canary"
)

func ranged(ref, semver string) Options {
	o := options(ref)
	o.SemVer = semver
	return o
}

func TestRange(t *testing.T) {
	for name, u := range servers(t) {
		t.Run(name, func(t *testing.T) {
			digests := map[string]string{}
			for _, tag := range []string{"latest", "1", "1.9", "v1.2.0", "v1.10.0", "1.10.0", "1.11.0-rc.1", "2.0.0", "v3", "20260131", "1.2.3_build.7"} {
				img := imageOf(t, layer(t, "tag", tag))
				push(t, u.host+"/org/b:"+tag, img)
				digests[tag] = digestOf(t, img)
			}
			for constraint, want := range map[string]string{
				"1.x":         "v1.10.0", // of equal versions the last name
				">=1.2 <2":    "v1.10.0",
				">=1.2.0-0":   "2.0.0",
				"~1.11.0-0":   "1.11.0-rc.1", // a prerelease is asked for
				"*":           "2.0.0",       // no dates, no parts of versions
				"1.2.0":       "v1.2.0",
				"<1.0 || 2.x": "2.0.0",
				"~1.2":        "1.2.3_build.7",
			} {
				u.alter(nil)
				resolved, files, err := pull(t, ranged(u.host+"/org/b", constraint))
				if err != nil || resolved != (fetch.Resolved{Reference: want, Digest: digests[want]}) || files["tag"] != want {
					t.Errorf("%s: %+v, %v, %v", constraint, resolved, files, err)
				}
				if got := u.seen(); len(got) != 4 || got[0] != "GET /v2/org/b/tags/list" || got[1] != "HEAD /v2/org/b/manifests/"+want {
					t.Errorf("not one list and one HEAD: %q", got)
				}
			}
			_, _, err := pull(t, ranged(u.host+"/org/b", ">=7"))
			if fetch.ReasonOf(err) != fetch.NotFound || !strings.Contains(err.Error(), `none of the 11 tags is a version in the range ">=7"`) {
				t.Errorf("nothing in the range: %v", err)
			}
			if _, _, err := pull(t, ranged(u.host+"/org/c", "*")); fetch.ReasonOf(err) != fetch.NotFound {
				t.Errorf("no such repository: %v", err)
			}
		})
	}
}

// TestFluxF29TagsWithMetadata: the tag 1.2.3_build.7 is the version 1.2.3+build.7, as "helm push" writes it.
func TestFluxF29TagsWithMetadata(t *testing.T) {
	two := []string{"1.2.2", "1.2.3_build.7"}
	all := []string{"1.2.2", "1.2.3_build.7", "1.2.3_build.10", "1.3.0-rc.1_up5", "v1.2.9", "1.4_b", "1.9.0_a_b", "latest"}
	for name, tc := range map[string]struct {
		reason, semver, want string
		tags                 []string
	}{
		"Wildcard":   {"the newest is one with metadata", "1.x", "1.2.3_build.7", two},
		"Comparison": {"in any kind of range", ">=1.2.3 <2", "1.2.3_build.7", two},
		"Tilde":      {"in any kind of range", "~1.2", "1.2.3_build.7", two},
		"Span":       {"in any kind of range", "1.2.3 - 1.3", "1.2.3_build.7", two},
		"Exclusion":  {"metadata do not count", "1.x, !=1.2.3", "1.2.2", two},
		"Bare":       {"metadata do not count where the range has none", "1.2.3", "1.2.3_build.10", all},
		"Exactly":    {"that build", "1.2.3+build.7", "1.2.3_build.7", all},
		"Equals":     {"that build", "= 1.2.3+build.7", "1.2.3_build.7", all},
		"V":          {"that build", "v1.2.3+build.10", "1.2.3_build.10", all},
		"AsTag":      {"copied from the registry", "1.2.3_build.7", "1.2.3_build.7", all},
		"OtherBuild": {"another build is not what was asked for", "1.2.3+build.8", "", all},
		"Prerelease": {"with metadata as well", ">=1.3.0-0", "1.3.0-rc.1_up5", all},
		"ExactPre":   {"with metadata as well", "1.3.0-rc.1+up5", "1.3.0-rc.1_up5", all},
		"Highest":    {"a v is no difference", "1.x", "v1.2.9", all},
		"Both":       {"what is written in full comes first", "1.2.3", "1.2.3", []string{"1.2.3_b", "1.2.3", "1.2.3_a"}},
		"BothV":      {"the v is no difference", "1.2.3", "v1.2.3", []string{"1.2.3_b", "v1.2.3", "1.2.3_a"}},
		"Natural":    {"10 is above 9", "*", "1.0.0_10", []string{"1.0.0_9", "1.0.0_10", "1.0.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			wanted, err := versions.Parse(tc.semver)
			if err != nil {
				t.Fatal(err)
			}
			for range tc.tags {
				tc.tags = append(tc.tags[1:], tc.tags[0])
				best := newest{Newest: versions.Newest{Range: wanted}}
				for _, tag := range tc.tags {
					best.look(tag)
				}
				if best.Name != tc.want {
					t.Errorf("%s: %q of %q", tc.reason, best.Name, tc.tags)
				}
			}
		})
	}
}

func TestM22Ranges(t *testing.T) {
	cases := map[string]struct {
		reason, ref, semver string
		ok                  bool
	}{
		"Range":   {"the usual form", "quay.io/org/b", ">=1.2 <2", true},
		"Port":    {"a port is no tag", "registry.svc:5000/org/b", "1.x", true},
		"Longest": {"at the limit", "quay.io/org/b", ">=1" + strings.Repeat(" ", versions.MaxRange-3), true},
		"Bomb":    {"10,000 alternatives", "quay.io/org/b", ">=0" + strings.Repeat(" || >=0", 10_000), false},
		"Long":    {"one more than the limit", "quay.io/org/b", ">=1" + strings.Repeat(" ", versions.MaxRange-2), false},
		"Words":   {"no range", "quay.io/org/b", "newest", false},
		"Tag":     {"what is it to be", "quay.io/org/b:v1", "1.x", false},
		"Digest":  {"what is it to be", "quay.io/org/b@sha256:" + strings.Repeat("a", 64), "1.x", false},
		"Neither": {"no reference", "https://quay.io/org/b", "1.x", false},
		"Parent":  {"would leave the API's path", "quay.io/../b", "1.x", false},
		"LongRef": {"longer than any", strings.Repeat("a", 700), "1.x", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := ranged(tc.ref, tc.semver)
			_, err := New(o)
			if (err == nil) != tc.ok || err != nil && (fetch.ReasonOf(err) != fetch.Refused || len(err.Error()) > 2000) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// listing serves tags as the specification says: as many a page as it likes, with a link to the next.
func listing(tags []string, most int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, _ := slices.BinarySearch(tags, r.URL.Query().Get("last"))
		if r.URL.Query().Get("last") != "" {
			from++
		}
		to := min(from+most, len(tags))
		if to < len(tags) {
			w.Header().Set("Link", fmt.Sprintf(`<%s?last=%s&n=%d>; rel="next"`, r.URL.Path, tags[to-1], most))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"name": "b", "tags": tags[from:to]})
	}
}

func TestRangeOverPages(t *testing.T) {
	var tags []string
	for i := range 2500 {
		tags = append(tags, fmt.Sprintf("1.0.%d", i))
	}
	slices.Sort(tags)
	u := serve(t, listing(tags, 100))
	f, err := New(ranged(u.host+"/b", "*"))
	if err != nil {
		t.Fatal(err)
	}
	tag, err := f.places[0].newest(context.Background(), f.versions)
	if err != nil || tag != "1.0.2499" || len(u.seen()) != 25 {
		t.Errorf("%s, %v, after %d requests", tag, err, len(u.seen()))
	}
}

// TestM22RangeOverManyVersions has the slowest range over the most versions that are compared with it.
func TestM22RangeOverManyVersions(t *testing.T) {
	wanted, err := versions.Parse(">9" + strings.Repeat("||>9", 31))
	if err != nil {
		t.Fatal(err)
	}
	best, began := newest{Newest: versions.Newest{Range: wanted}}, time.Now()
	for i := range versions.MaxCompared {
		best.look(fmt.Sprintf("v1.%d.%d-rc.1.2.3", i/1000, i%1000))
	}
	if took := time.Since(began); best.bounded() != nil || took > 12*time.Second {
		t.Errorf("%v after %v", best.bounded(), took)
	}
	if best.look("v1.0.0"); fetch.ReasonOf(best.bounded()) != fetch.LimitExceeded {
		t.Errorf("one more: %v", best.bounded())
	}
	// Where some match, those below the best need no comparison.
	best = newest{Newest: versions.Newest{Range: wanted}}
	best.look("v10.0.0")
	for i := range maxTags - 1 {
		best.look(fmt.Sprintf("v9.%d.%d", i/1000, i%1000))
	}
	if best.bounded() != nil || best.Name != "v10.0.0" {
		t.Errorf("%s, %v", best.Name, best.bounded())
	}
	if best.look("x"); fetch.ReasonOf(best.bounded()) != fetch.LimitExceeded {
		t.Errorf("one more: %v", best.bounded())
	}
}

func TestM12ListsThatLeadElsewhere(t *testing.T) {
	port := strings.TrimPrefix(canary.Serve(t).URL, "http://127.0.0.1:")
	for _, link := range []string{
		"http://localhost:" + port + "/v2/b/tags/list?n=1", "//127.0.0.1:" + port + "/v2/b/tags/list?n=1",
		"http://169.254.169.254/latest", "http://user@127.0.0.1:" + port + "/x",
	} {
		_, o := elsewhere(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "<"+link+`>; rel="next"`)
			_, _ = io.WriteString(w, `{"tags":["1.0.0"]}`)
		})
		o.Ref, o.SemVer = strings.TrimSuffix(o.Ref, ":v1"), "*"
		if _, _, err := pull(t, o); fetch.ReasonOf(err) != fetch.Refused {
			t.Errorf("%s: %v", link, err)
		}
	}
}

func TestM12ListStaysAtItsPath(t *testing.T) {
	u := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == pageSize {
			w.Header().Set("Link", `</v2/secret/manifests/x?last=1>; rel="next"`)
		}
		_, _ = io.WriteString(w, `{"tags":["1.0.0"]}`)
	}))
	f, err := New(ranged(u.host+"/b", "*"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.places[0].newest(context.Background(), f.versions)
	if got := u.seen(); err != nil || !slices.Equal(got, []string{"GET /v2/b/tags/list", "GET /v2/b/tags/list"}) {
		t.Errorf("%v, %q", err, got)
	}
}

func TestM12HostileLists(t *testing.T) {
	next := func(w http.ResponseWriter, query string) {
		w.Header().Set("Link", "</v2/b/tags/list?"+query+`>; rel="next"`)
	}
	cases := map[string]struct {
		reason string
		answer http.HandlerFunc
		want   fetch.Reason
	}{
		"Circle": {"no end", func(w http.ResponseWriter, _ *http.Request) {
			next(w, "last=1")
			_, _ = io.WriteString(w, `{"tags":["1.0.0"]}`)
		}, fetch.InvalidContent},
		"Endless": {"no end", func(w http.ResponseWriter, r *http.Request) {
			page, _ := strconv.Atoi(r.URL.Query().Get("last"))
			next(w, "last="+strconv.Itoa(page+1))
			_, _ = io.WriteString(w, `{"tags":["1.0.0"]}`)
		}, fetch.LimitExceeded},
		"Tags": {"more tags than any repository has", func(w http.ResponseWriter, r *http.Request) {
			next(w, r.URL.RawQuery+"1")
			_, _ = io.WriteString(w, `{"tags":["`+strings.Repeat(`1","`, 60_000)+`"]}`)
		}, fetch.LimitExceeded},
		"Bytes": {"a page without end", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.CopyN(w, zeros{}, maxManifest+1)
		}, fetch.LimitExceeded},
		"AllBytes": {"many large pages", func(w http.ResponseWriter, r *http.Request) {
			next(w, r.URL.RawQuery+"1")
			_, _ = io.WriteString(w, `{"x":"`+strings.Repeat("x", maxManifest-100)+`"}`)
		}, fetch.LimitExceeded},
		"HTML":    {"a login page", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, fetch.InvalidContent},
		"Numbers": {"no names", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"tags":[1]}`) }, fetch.InvalidContent},
		"Null":    {"what some registries say for none", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"tags":null}`) }, fetch.NotFound},
		"Names": {"would leave the API's path", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"tags":["1.0.0/../../x","v1.0.0\n","1.0.0+x",""]}`)
		}, fetch.NotFound},
		"Limited": {"come back later", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
		}, fetch.RateLimited},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := serve(t, tc.answer)
			began := time.Now()
			_, _, err := pull(t, ranged(u.host+"/b", "*"))
			if fetch.ReasonOf(err) != tc.want || !strings.Contains(err.Error(), "image "+u.host+"/b: ") {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if took := time.Since(began); took > 12*time.Second {
				t.Errorf("it took %v", took)
			}
			if tc.want == fetch.RateLimited && waits(err) != 30 {
				t.Errorf("the server's wish is lost: %v", err)
			}
		})
	}
}

func FuzzRange(f *testing.F) {
	f.Add(">=1.2 <2", "1.2.0 v1.2.0 1.3.0-rc.1 2 latest 20260131")
	f.Add("*", "v1.0.0 1.0.0 1.0.0-0 1.0.0+x")
	f.Add("1.2.3+build.7", "1.2.3 1.2.3_build.7 1.2.3_build.10 v1.2.3_build.7")
	f.Add("~1.11.0-0 || 2.x - 3.1 , !=2.0.0", "1.11.0-rc.1 3.1.0 99999999999999999999.0.0")
	f.Fuzz(func(t *testing.T, text, tags string) {
		wanted, err := versions.Parse(text)
		if err != nil {
			var typed *fetch.Error
			if !errors.As(err, &typed) || typed.Reason != fetch.Refused || len(text) <= versions.MaxRange && len(err.Error()) > 2<<10 {
				t.Errorf("%v", err)
			}
			return
		}
		forwards, backwards := newest{Newest: versions.Newest{Range: wanted}}, newest{Newest: versions.Newest{Range: wanted}}
		list := strings.Fields(tags)
		for i := range list {
			forwards.look(list[i])
			backwards.look(list[len(list)-1-i])
		}
		if forwards.Name != backwards.Name {
			t.Errorf("%q: %q or %q, by the order", text, forwards.Name, backwards.Name)
		}
		if forwards.Version == nil {
			return
		}
		if !tagText.MatchString(forwards.Name) || !wanted.Check(forwards.Version) {
			t.Errorf("%q: %q", text, forwards.Name)
		}
		for _, tag := range list {
			version, err := semver.StrictNewVersion(strings.TrimPrefix(strings.ReplaceAll(tag, "_", "+"), "v"))
			if err == nil && tagText.MatchString(tag) && wanted.Check(version) && version.GreaterThan(forwards.Version) {
				t.Errorf("%q: %q is newer than %q", text, tag, forwards.Name)
			}
		}
	})
}
