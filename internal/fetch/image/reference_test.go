// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/fetch"
)

func TestM1References(t *testing.T) {
	cases := map[string]struct {
		reason, ref string
		ok          bool
	}{
		"Tag":       {"the usual form", "quay.io/org/bundle:v1.2.3", true},
		"Digest":    {"the pinned form", "quay.io/org/bundle@sha256:" + strings.Repeat("a", 64), true},
		"Both":      {"as renovate writes it", "quay.io/org/bundle:v1@sha256:" + strings.Repeat("a", 64), true},
		"Port":      {"a registry in the cluster", "registry.svc:5000/bundle:v1", true},
		"Scheme":    {"not part of a reference", "https://quay.io/org/bundle:v1", false},
		"OCIScheme": {"not part of a reference", "oci://quay.io/org/bundle:v1", false},
		"Empty":     {"nothing", "", false},
		"Upper":     {"repositories are lower case", "quay.io/Org/bundle:v1", false},
		"Parent":    {"would leave the API's path", "quay.io/../../x:v1", false},
		"Query":     {"would change the request", "quay.io/org/bundle:v1?x=y", false},
		"Userinfo":  {"would send credentials", "user:pass@quay.io/org/bundle:v1", false},
		"Newline":   {"would forge a request", "quay.io/org/bundle:v1\n", false},
		"SHA1":      {"broken", "quay.io/org/bundle@sha1:" + strings.Repeat("a", 40), false},
		"Long":      {"longer than any", "quay.io/" + strings.Repeat("a/", 500) + "b:v1", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := New(Options{Ref: tc.ref, Client: client()})
			if (err == nil) != tc.ok || err != nil && fetch.ReasonOf(err) != fetch.Refused {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	for _, bad := range []string{"linux", "linux/", "/amd64", "linux/amd64/v1/x", "Linux/amd64", "linux/amd64\n", "a:b"} {
		if _, err := New(Options{Ref: "a/b:c", Platform: bad, Client: client()}); fetch.ReasonOf(err) != fetch.Refused {
			t.Errorf("platform %q: %v", bad, err)
		}
	}
}

func FuzzImageReference(f *testing.F) {
	f.Add("quay.io/org/bundle:v1", "linux/amd64")
	f.Add("localhost:5000/a@sha256:"+strings.Repeat("0", 64), "")
	f.Add("../..//x?y#z@w:v", "linux/arm/v7")
	shared := client()
	f.Fuzz(func(t *testing.T, ref, platform string) {
		fetcher, err := New(Options{Ref: ref, Platform: platform, Client: shared})
		if err != nil {
			return
		}
		repository := fetcher.places[0].repository
		fetcher.places[0].client = &http.Client{Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			want := "/v2/" + repository.RepositoryStr() + "/manifests/" + fetcher.tag
			if r.URL.Scheme != "https" || r.URL.Host != repository.RegistryStr() || r.URL.Path != want || r.URL.User != nil ||
				r.URL.RawQuery != "" || strings.Contains(r.URL.Path, "..") && strings.Contains(r.URL.Path, "/../") {
				t.Errorf("%q asks %s", ref, r.URL)
			}
			return nil, io.ErrUnexpectedEOF
		})}
		_, _ = fetcher.Resolve(context.Background())
	})
}
