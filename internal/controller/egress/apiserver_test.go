// SPDX-License-Identifier: Apache-2.0

package egress_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/controller/egress"
)

// T14: the API server is no upstream.
func TestT14APIServerIsDenied(t *testing.T) {
	cases := map[string]struct {
		reason, host, service string
		want                  []string
	}{
		"in a cluster":  {"both names of one address count once", "https://10.96.0.1:443", "10.96.0.1", []string{"10.96.0.1/32"}},
		"two addresses": {"a kubeconfig may name another one than the Pod was told", "https://[fd00::1]:6443", "10.96.0.1", []string{"fd00::1/128", "10.96.0.1/32"}},
		"loopback":      {"its address is shared, and refused by default", "https://127.0.0.1:6443", "", nil},
		"a name":        {"names are not addresses", "https://kubernetes.example.org", "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, prefix := range egress.APIServers(tc.host, tc.service) {
				got = append(got, prefix.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
