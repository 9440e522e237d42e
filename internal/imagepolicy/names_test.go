// SPDX-License-Identifier: Apache-2.0

package imagepolicy_test

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/endpoint"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/internal/imagepolicy"
)

// recorder is a registry's address and path, as they were asked.
type recorder struct{ asked *url.URL }

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.asked = request.URL
	return nil, errors.New("recorded")
}

// contacted returns the server and the path that a reference is fetched from.
func contacted(t *testing.T, ref string, insecure bool) (string, bool) {
	t.Helper()
	var seen recorder
	fetcher, err := image.New(image.Options{Ref: ref + "@sha256:" + strings.Repeat("e", 64), Insecure: insecure, Client: &http.Client{Transport: &seen}})
	if err != nil {
		return "", false
	}
	resolved, err := fetcher.Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = fetcher.Verify(t.Context(), resolved)
	if seen.asked == nil {
		t.Fatalf("%q is not asked for", ref)
	}
	if strings.ContainsAny(seen.asked.Host, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") || strings.Contains(seen.asked.Host, ":0") && !strings.HasPrefix(seen.asked.Host, "[") {
		t.Errorf("%q is contacted at %s, which is not the form that was compared", ref, seen.asked.Host)
	}
	server, err := endpoint.OfURL(seen.asked)
	if err != nil {
		t.Fatalf("%q: %v", ref, err)
	}
	return server.String() + seen.asked.Path, true
}

// M39: references and rules that mean one address and port agree, whatever their spelling: deny, verify, mirrors and logins.
func TestM39OneNameForOneAddress(t *testing.T) {
	servers := map[string][]string{ // by the prefix of a rule
		"quay.io":                {"quay.io", "quay.io:443", "quay.io:0443", "quay.io:00443", "QUAY.io:443", "quay.io.", "quay.io.:0443", "quay.io:80", "quay.io:080"},
		"quay.io:8443":           {"quay.io:8443", "quay.io:08443", "Quay.IO.:08443"},
		"127.0.0.1:8443":         {"127.0.0.1:8443", "127.0.0.1:08443", "127.0.0.1.:8443", "[::ffff:127.0.0.1]:8443", "[::ffff:7f00:1]:08443", "[0:0:0:0:0:FFFF:7f00:1]:8443"},
		"[::1]:8443":             {"[::1]:8443", "[0:0:0:0:0:0:0:1]:8443", "[0::01]:08443", "[::0.0.0.1]:8443"},
		"[0:0:0:0:0:0:0:1]:8443": {"[::1]:8443", "[0:0:0:0:0:0:0:1]:8443"},
		"[::1]":                  {"[::1]", "[::1]:443", "[0:0::1]:0443", "[::1]:80"},
		"localhost:8443":         {"localhost:8443", "LOCALHOST:8443", "localhost.:08443"},
		"registry:443":           {"registry:443", "registry:0443", "REGISTRY.:443"},
		"docker.io":              {"docker.io", "docker.io:0443", "index.docker.io", "registry-1.docker.io:443", "Registry.Hub.Docker.com.:00443", "docker.io:80"},
	}
	verify := &v1alpha1.ImageVerification{Provider: "cosign"}
	login := &v1alpha1.LocalReference{Name: "pull"}
	for prefix, spellings := range servers {
		for _, host := range spellings {
			for _, insecure := range []bool{false, true} {
				name, err := image.FullName(host+"/org/app:v1", insecure)
				if err != nil {
					t.Errorf("%s: %v", host, err)
					continue
				}
				if got := decide(t, policiesOf(rules{{Prefix: prefix, Deny: true}}, nil), name); got.Denied == "" {
					t.Errorf("%s is %s, which a rule of %s does not deny", host, name, prefix)
				}
				p := policiesOf(rules{{Prefix: "", Deny: true}, {Prefix: prefix + "/org", Verify: verify, Mirrors: []string{"m.example.org"}, SecretRef: login, Tenants: []string{"team"}}}, nil)
				got := decide(t, p, name)
				if got.Denied != "" || len(got.Verified) != 1 || len(got.Logins) != 1 || len(got.Mirrors) != 1 || got.Mirrors[0] != "m.example.org/app" {
					t.Errorf("%s is %s: %+v", host, name, got)
				}
				// The same spelling as a mirror of a tenant, which the shared policy closes.
				p = policiesOf(rules{{Prefix: prefix, Deny: true}}, rules{{Prefix: "ghcr.io", Insecure: insecure, Mirrors: []string{host + "/org"}}})
				if got := decide(t, p, "ghcr.io/app"); len(got.Mirrors) > 0 {
					t.Errorf("the mirror %s is contacted, which a rule of %s denies", host, prefix)
				}
				asked, err := image.Host(host+"/org/app", insecure)
				if rule := (imagepolicy.Rule{ImageRule: &v1alpha1.ImageRule{Prefix: prefix + "/org"}}); err != nil || !rule.Permits(asked, "org/app") || rule.Permits("evil.example.org", "org/app") {
					t.Errorf("the login of %s and %s: %v", prefix, host, err)
				}
			}
		}
	}
}

// A mirror of a short name of Docker Hub is the image in its folder "library".
func TestM39MirrorAtDockerHub(t *testing.T) {
	for _, mirror := range []string{"docker.io/nginx", "registry-1.docker.io:0443/nginx", "index.docker.io./nginx"} {
		p := policiesOf(rules{{Prefix: "docker.io/library/nginx", Deny: true}}, rules{{Prefix: "ghcr.io/a", Mirrors: []string{mirror}}})
		if got := decide(t, p, "ghcr.io/a"); len(got.Mirrors) > 0 {
			t.Errorf("%s is contacted", mirror)
		}
	}
}

// FuzzFullName: names of policies and of images agree; what is contacted at the same address, port and path has the same name; the
// name is what is contacted.
func FuzzFullName(f *testing.F) {
	for _, seed := range []string{"quay.io/org/app:v1", "nginx", "QUAY.io.:443/a/b", "quay.io:0443/org/app", "quay.io:443/org/app", "quay.io:80/org/app", ".:443/a",
		"[0:0:0:0:0:0:0:1]:8443/a", "[::1]:08443/a", "[::ffff:7f00:1]:1/a", "127.0.0.1.:1/a", "docker.io:0443/library/nginx", "registry-1.docker.io/nginx", "a:80/b", "127.1:1/a"} {
		f.Add(seed, "quay.io/org", false, seed, true)
		f.Add(seed, seed, true, "docker.io/library/nginx", false)
	}
	f.Add("[0:0:0:0:0:0:0:1]:8443/a", "[::1]:8443", false, "[::1]:08443/a", true)
	f.Fuzz(func(t *testing.T, ref, prefix string, insecure bool, other string, otherInsecure bool) {
		name, err := image.FullName(ref, insecure)
		if err != nil {
			return
		}
		if strings.ToLower(name) != name || strings.HasSuffix(name, "/") || strings.HasPrefix(name, "/") {
			t.Errorf("%q is %q", ref, name)
		}
		denied := policiesOf(rules{{Prefix: prefix, Deny: true}}, nil).Decide(name).Denied != nil
		if whole := policiesOf(rules{{Prefix: name, Deny: true}}, nil).Decide(name).Denied != nil; !whole {
			t.Errorf("%q is not below its own full name %q", ref, name)
		}
		if denied && prefix != "" && !strings.HasPrefix(name+"/", imagepolicy.FullPrefix(prefix)+"/") {
			t.Errorf("%q is below %q", name, prefix)
		}
		sameAddress(t, ref, name, insecure, other, otherInsecure)
	})
}

// sameAddress compares the names of references by where they are fetched from.
func sameAddress(t *testing.T, ref, name string, insecure bool, other string, otherInsecure bool) {
	t.Helper()
	repository := func(text string) string {
		text, _, _ = strings.Cut(text, "@")
		if slash := strings.LastIndexByte(text, '/'); strings.LastIndexByte(text, ':') > slash && slash >= 0 {
			text = text[:strings.LastIndexByte(text, ':')]
		}
		return text
	}
	ref, other = repository(ref), repository(other)
	at, ok := contacted(t, ref, insecure)
	if !ok {
		return
	}
	host, _, _ := strings.Cut(name, "/")
	if server, err := endpoint.Parse(host); err != nil {
		t.Errorf("%q is %q, which has no host: %v", ref, name, err)
	} else if address, err := netip.ParseAddr(server.Host); err == nil && !strings.HasPrefix(at, endpoint.Server{Host: address.String()}.String()) {
		t.Errorf("%q is %q, and is contacted at %s", ref, name, at)
	}
	again, err := image.FullName(other, otherInsecure)
	if err != nil {
		return
	}
	if there, ok := contacted(t, other, otherInsecure); ok && (there == at) && again != name {
		t.Errorf("%q is %q, and %q is %q: both are contacted at %s", ref, name, other, again, at)
	}
}
