// SPDX-License-Identifier: Apache-2.0

package egress_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/controller/egress"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
)

// T14: the API server is no upstream.
func TestT14APIServers(t *testing.T) {
	const what = "the Kubernetes API server"
	service := guard.Server{What: what, Host: "kubernetes.default.svc"}
	cases := map[string]struct {
		reason, host, service string
		want                  []guard.Server
	}{
		"in a cluster": {"as a Pod sees it", "https://10.96.0.1:443", "10.96.0.1",
			[]guard.Server{service, {What: what, Host: "10.96.0.1", Port: 443}, {What: what, Host: "10.96.0.1"}}},
		"two addresses": {"a kubeconfig may name another one than the Pod was told", "https://[fd00::1]:6443", "10.96.0.1",
			[]guard.Server{service, {What: what, Host: "fd00::1", Port: 6443}, {What: what, Host: "10.96.0.1"}}},
		"loopback": {"its port tells it from others", "https://127.0.0.1:6443", "", []guard.Server{service, {What: what, Host: "127.0.0.1", Port: 6443}}},
		"a name":   {"it is looked up", "https://kubernetes.example.org", "", []guard.Server{service, {What: what, Host: "kubernetes.example.org"}}},
		"nothing":  {"the Service is known by its name", "", "", []guard.Server{service}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, egress.APIServers(tc.host, tc.service)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// T14: nor is the artifact server.
func TestT14ArtifactServer(t *testing.T) {
	const what = "Satchel's artifact server"
	cases := map[string]struct {
		reason, advertised, listen string
		want                       []guard.Server
	}{
		"in a cluster": {"the Service, and this Pod", "sources.system.svc", ":9090",
			[]guard.Server{{What: what, Host: "sources.system.svc", Shared: true}, {What: what, Port: 9090}}},
		"everywhere": {"another spelling", "sources.system.svc:8080", "0.0.0.0:9090",
			[]guard.Server{{What: what, Host: "sources.system.svc", Port: 8080, Shared: true}, {What: what, Port: 9090}}},
		"loopback": {"its port tells it from others", "127.0.0.1:9090", "127.0.0.1:9090",
			[]guard.Server{{What: what, Host: "127.0.0.1", Port: 9090, Shared: true}, {What: what, Host: "127.0.0.1", Port: 9090}}},
		"any port": {"the port is not known", "sources.system.svc", ":0", []guard.Server{{What: what, Host: "sources.system.svc", Shared: true}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, egress.ArtifactServer(tc.advertised, tc.listen)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
