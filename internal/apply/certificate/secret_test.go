// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// TestAuthorityID: names stay valid and apart, however long that of the deployment is.
func TestAuthorityID(t *testing.T) {
	long := strings.Repeat("a", 252)
	seen := map[string]bool{}
	for _, name := range []string{"web", long + "a", long + "b", long[:242], long[:243]} {
		id := AuthorityID(inventory.Owner{Namespace: "team", Name: name})
		if id.Kind != "Secret" || id.Group != "" || id.Namespace != "team" || len(id.Name) > 253 || !strings.HasPrefix(id.Name, "satchel-ca-") {
			t.Errorf("%d bytes: %v", len(name), id)
		}
		if seen[id.Name] {
			t.Errorf("two deployments share %s", id.Name)
		}
		seen[id.Name] = true
	}
	if !seen["satchel-ca-web"] {
		t.Errorf("got %v", seen)
	}
}

// A name that is too long for X.509 gets no common name; the alternative names suffice.
func TestLongNames(t *testing.T) {
	long := request(strings.Repeat("n", 63), strings.Repeat("s", 63))
	c := newCluster(long)
	c.owner = inventory.Owner{Namespace: strings.Repeat("o", 63), Name: strings.Repeat("d", 253)}
	set := c.make(t, false)
	served := certOf(t, set.Secrets[1], certFile)
	if served.Subject.CommonName != "" {
		t.Errorf("common name %q", served.Subject.CommonName)
	}
	for _, name := range long.DNSNames {
		if err := verify(served, set.Bundle, name, c.now); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if name := certOf(t, set.Secrets[0], certFile).Subject.CommonName; len(name) > 64 {
		t.Errorf("common name of %d bytes", len(name))
	}
}

// TestLife: the lifetime of the served certificate, and of the signing authority, for an account that cannot renew it.
func TestLife(t *testing.T) {
	c := newCluster(hook)
	set := c.settle(t)
	for i, secret := range set.Secrets {
		got, found := Life(secret)
		if diff := cmp.Diff(set.Ends[i], got); diff != "" || !found {
			t.Errorf("%t (-want +got):\n%s", found, diff)
		}
	}
	if _, found := Life(nil); found {
		t.Error("no Secret has a life")
	}
	end := set.Ends[1]
	for when, late := range map[time.Duration]bool{0: false, ServingLife / 3 * 2: false, ServingLife/6*5 + time.Hour: true, ServingLife + time.Hour: true} {
		if got := end.Late(start.Add(when)); got != late {
			t.Errorf("late after %s: %t", when, got)
		}
	}
}
