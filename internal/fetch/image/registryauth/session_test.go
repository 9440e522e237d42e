// SPDX-License-Identifier: Apache-2.0

package registryauth

import (
	"net/url"
	"testing"

	"github.com/satchel-dev/satchel/internal/endpoint"
)

func TestSameSite(t *testing.T) {
	cases := map[string]struct {
		reason, a, b string
		want         bool
	}{
		"Equal":     {"one host", "quay.io", "QUAY.io", true},
		"DockerHub": {"as it is", "auth.docker.io", "index.docker.io", true},
		"GitLab":    {"the domain itself", "gitlab.com", "registry.gitlab.com", true},
		"Below":     {"the other way round", "auth.registry.example.co.uk", "registry.example.co.uk", true},
		"Other":     {"two owners", "auth.docker.io", "quay.io", false},
		"Suffix":    {"anybody can have a name there", "a.co.uk", "b.co.uk", false},
		"Private":   {"anybody can have a name there as well", "a.github.io", "b.github.io", false},
		"Ending":    {"only looks alike", "auth.evildocker.io", "docker.io", false},
		"Cluster":   {"each service has another owner", "a.b.svc.cluster.local", "c.d.svc.cluster.local", false},
		"Internal":  {"names of this network", "a.corp", "b.corp", false},
		"Addresses": {"nothing is known of them", "10.0.0.1", "10.0.0.2", false},
		"Address":   {"who listens on another port is not known", "10.0.0.1", "10.0.0.1", false},
		"Empty":     {"no host", "", "docker.io", false},
		"TopLevel":  {"no domain", "io", "docker.io", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if sameSite(tc.a, tc.b) != tc.want || sameSite(tc.b, tc.a) != tc.want {
				t.Errorf("%s and %s: %s", tc.a, tc.b, tc.reason)
			}
		})
	}
}

// TestM12SameServer: scheme, host and port.
func TestM12SameServer(t *testing.T) {
	cases := map[string]struct {
		reason, realm, registry string
		want                    bool
	}{
		"Same":     {"the registry itself", "http://127.0.0.1:5000/token", "http://127.0.0.1:5000", true},
		"Default":  {"443 is understood", "https://Registry.corp:443/token", "https://registry.corp", true},
		"Port":     {"another server may listen there", "http://127.0.0.1:5001/token", "http://127.0.0.1:5000", false},
		"Unnamed":  {"443 is another one", "https://registry.corp/token", "https://registry.corp:5000", false},
		"Scheme":   {"anybody may listen to it", "http://registry.corp:443/token", "https://registry.corp", false},
		"Host":     {"another one", "https://auth.corp/token", "https://registry.corp", false},
		"IPv6":     {"in brackets", "https://[fd00::1]:5000/token", "https://[fd00::1]:5000", true},
		"IPv6Port": {"as above", "https://[fd00::1]:5001/token", "https://[fd00::1]:5000", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			realm, err := url.Parse(tc.realm)
			registry, failed := url.Parse(tc.registry)
			if err != nil || failed != nil {
				t.Fatal(err, failed)
			}
			if endpoint.SameOrigin(realm, registry) != tc.want {
				t.Errorf("%s and %s: %s", tc.realm, tc.registry, tc.reason)
			}
		})
	}
}
