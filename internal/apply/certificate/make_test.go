// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/x509"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }

// A first Set is complete: an API server that trusts its bundle reaches every Service under every name, and nothing is due
// once it is written.
func TestFirstSet(t *testing.T) {
	c := newCluster(hook, audit)
	set := c.make(t, false)
	var got []inventory.ID
	for _, secret := range set.Secrets {
		got = append(got, inventory.IDOf(secret))
	}
	want := []inventory.ID{AuthorityID(owner), audit.ID(), hook.ID()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, set.Stale); diff != "" {
		t.Errorf("stale (-want +got):\n%s", diff)
	}
	wantWords := []string{
		"satchel-ca-web: Issued a certificate authority, valid until 2036-11-18: none existed",
		"audit-cert: Issued the serving certificate of audit.shop, valid until 2028-11-20: none existed",
		"hook-cert: Issued the serving certificate of hook.shop, valid until 2028-11-20: none existed",
	}
	if diff := cmp.Diff(wantWords, sentences(set)); diff != "" {
		t.Errorf("sentences (-want +got):\n%s", diff)
	}
	for i, r := range []Request{audit, hook} {
		for _, name := range r.DNSNames {
			if err := verify(certOf(t, set.Secrets[i+1], certFile), set.Bundle, name, c.now); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	c.write(set)
	again := c.make(t, false)
	if !sameSecrets(set.Secrets, again.Secrets) || again.Issued != nil || again.Stale != nil || again.Waiting || !equal(set.Bundle, again.Bundle) {
		t.Errorf("nothing is due, yet: %v, stale %v", sentences(again), again.Stale)
	}
	if want := start.Add(-backdated).Add((ServingLife + backdated) / 3 * 2); !again.Next.Equal(want) {
		t.Errorf("next at %s, want %s", again.Next, want)
	}
}

// The objects are complete, of the right type, and labelled for their stage.
func TestSecretsAreComplete(t *testing.T) {
	set := newCluster(hook).make(t, false)
	for i, want := range []struct {
		secretType, role string
		keys             []string
	}{
		{"Opaque", plan.CertificateAuthority, []string{"ca.crt", "tls.crt", "tls.key"}},
		{"kubernetes.io/tls", plan.CertificateServing, []string{"ca.crt", "tls.crt", "tls.key"}},
	} {
		secret := set.Secrets[i]
		if secret.GetAPIVersion() != "v1" || secret.GetKind() != "Secret" || secret.Object["type"] != want.secretType {
			t.Errorf("%s is a %s %s of type %v", secret.GetName(), secret.GetAPIVersion(), secret.GetKind(), secret.Object["type"])
		}
		if got := secret.GetLabels()[plan.LabelCertificate]; got != want.role {
			t.Errorf("%s is marked %q", secret.GetName(), got)
		}
		data := contents(secret)
		for _, key := range want.keys {
			if len(data[key]) == 0 {
				t.Errorf("%s has no %s", secret.GetName(), key)
			}
			delete(data, key)
		}
		if len(data) > 0 {
			t.Errorf("%s has more than its keys", secret.GetName())
		}
	}
}

// An authority is useless beyond servers of its namespaces.
func TestAuthorityIsConfined(t *testing.T) {
	c := newCluster(hook)
	set := c.make(t, false)
	signs, why := readPair(contents(set.Secrets[0])[certFile], contents(set.Secrets[0])[keyFile])
	if why != "" {
		t.Fatal(why)
	}
	authority := signs.cert
	if diff := cmp.Diff([]string{"shop", "shop.svc", "shop.svc.cluster.local"}, authority.PermittedDNSDomains); diff != "" {
		t.Errorf("domains (-want +got):\n%s", diff)
	}
	if !authority.PermittedDNSDomainsCritical || !authority.MaxPathLenZero || len(authority.SubjectKeyId) == 0 || len(authority.ExcludedIPRanges) != 2 {
		t.Error("the authority is not confined")
	}
	i := issuer{now: c.now, entropy: c.entropy, owner: owner}
	for name, names := range map[string][]string{
		"another namespace": {"api.kube-system.svc"},
		"the world":         {"example.com"},
		"one of each":       {"hook.shop.svc", "example.com"},
	} {
		forged, err := i.newServing(names, signs)
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(forged.cert, set.Bundle, names[0], c.now); err == nil {
			t.Errorf("a stolen key vouches for %s", name)
		}
	}
	forged, err := i.newServing(hook.DNSNames, signs)
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(forged.cert, set.Bundle, "hook.shop.svc", c.now); err != nil {
		t.Errorf("the same way of forging works inside the namespace, or the test proves nothing: %v", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	if _, err := forged.cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: c.now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err == nil {
		t.Error("a serving certificate is good for clients, too")
	}
}
