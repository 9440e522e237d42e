// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"strings"
	"testing"
	"time"
)

// A foreign authority in the place of ours is neither used nor trusted.
func TestForeignAuthorities(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]struct {
		reason string
		put    func(t *testing.T, c *cluster, certKey, keyKey string)
	}{
		"RSA": {"another kind of key", func(t *testing.T, c *cluster, certKey, keyKey string) {
			c.putAuthority(t, certKey, keyKey, forge(t, c.signing(t).cert, rsaKey, nil), rsaKey)
		}},
		"P-384": {"another curve", func(t *testing.T, c *cluster, certKey, keyKey string) {
			c.putAuthority(t, certKey, keyKey, forge(t, c.signing(t).cert, p384, nil), p384)
		}},
		"no authority": {"it may not sign", put(func(c *x509.Certificate) { c.IsCA, c.MaxPathLenZero = false, false; c.MaxPathLen = -1 })},
		"no usage":     {"it may do anything", put(func(c *x509.Certificate) { c.KeyUsage = 0 })},
		"more usages":  {"ours may do less", put(func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageDigitalSignature })},
		"no domains":   {"it could vouch for any name", put(func(c *x509.Certificate) { c.PermittedDNSDomains = nil })},
		"not binding":  {"who does not know name constraints would skip them", put(func(c *x509.Certificate) { c.PermittedDNSDomainsCritical = false })},
		"no certSign":  {"it may not sign", put(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature })},
		"more levels":  {"it could make authorities", put(func(c *x509.Certificate) { c.MaxPathLen, c.MaxPathLenZero = 1, false })},
		"unconfined":   {"it could vouch for anything", put(func(c *x509.Certificate) { c.PermittedDNSDomains, c.ExcludedIPRanges = nil, nil })},
		"everything":   {"it could vouch for any name", put(func(c *x509.Certificate) { c.PermittedDNSDomains = []string{""} })},
		"addresses":    {"it could vouch for addresses", put(func(c *x509.Certificate) { c.ExcludedIPRanges = nil })},
		"clients":      {"it could vouch for clients", put(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny} })},
		"for ever":     {"it would never be replaced", put(func(c *x509.Certificate) { c.NotAfter = c.NotBefore.Add(100 * year) })},
		"not self-signed": {"its origin is unknown", func(t *testing.T, c *cluster, certKey, keyKey string) {
			key := newKey(t)
			c.putAuthority(t, certKey, keyKey, forge(t, c.signing(t).cert, key, nil, c.signing(t)), key)
		}},
	} {
		for _, keys := range [][2]string{{certFile, keyFile}, {nextCert, nextKey}} {
			t.Run(name+" in "+keys[0], func(t *testing.T) {
				c := newCluster(hook)
				c.settle(t)
				c.editAuthority(trustFile, nil)
				s.put(t, c, keys[0], keys[1])
				foreign := certOf(t, c.authority, keys[0])
				set := c.make(t, true)
				if certOf(t, set.Secrets[0], certFile).Equal(foreign) {
					t.Errorf("%s: it signs", s.reason)
				}
				for _, cert := range readCertificates(set.Bundle) {
					if cert.Equal(foreign) {
						t.Errorf("%s: it is trusted", s.reason)
					}
				}
				if err := verify(certOf(t, set.Secrets[1], certFile), set.Bundle, "hook.shop.svc", c.now); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func put(change func(*x509.Certificate)) func(*testing.T, *cluster, string, string) {
	return func(t *testing.T, c *cluster, certKey, keyKey string) {
		key := newKey(t)
		template := *c.signing(t).cert
		template.NotAfter = template.NotAfter.Add(-time.Hour) // ends earlier as a successor, unless changed
		if certKey == nextCert {
			template.NotAfter = template.NotAfter.Add(2 * time.Hour)
			template.NotBefore = template.NotBefore.Add(2 * time.Hour)
			c.now = c.now.Add(2 * Settling)
		}
		c.putAuthority(t, certKey, keyKey, forge(t, &template, key, change), key)
	}
}

// A serving certificate that is not what we would issue is replaced, even when an authority of ours signed it.
func TestForeignServingCertificates(t *testing.T) {
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]struct {
		want   string
		change func(*x509.Certificate)
	}{
		"authority": {"was not issued by Satchel", func(c *x509.Certificate) { c.IsCA = true; c.KeyUsage |= x509.KeyUsageCertSign }},
		"no leaf":   {"was not issued by Satchel", func(c *x509.Certificate) { c.IsCA = true }},
		"usages":    {"was not issued by Satchel", func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageKeyEncipherment }},
		"client":    {"was not issued by Satchel", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }},
		"both":      {"was not issued by Satchel", func(c *x509.Certificate) { c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageClientAuth) }},
		"too long":  {"was not issued by Satchel", func(c *x509.Certificate) { c.NotAfter = c.NotAfter.Add(day1) }},
		"outlives": {"outlived its authority", func(c *x509.Certificate) {
			c.NotAfter = start.Add(AuthorityLife + day1)
			c.NotBefore = c.NotAfter.Add(-ServingLife)
		}},
		"one name":   {"DNS names had changed", func(c *x509.Certificate) { c.DNSNames = c.DNSNames[:1] }},
		"more names": {"DNS names had changed", func(c *x509.Certificate) { c.DNSNames = append(c.DNSNames, "other.shop.svc") }},
		"an address": {"DNS names had changed", func(c *x509.Certificate) { c.EmailAddresses = []string{"a@shop"} }},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(hook)
			c.settle(t)
			if name == "outlives" {
				c.now = start.Add(AuthorityLife - Succession)
				c.settle(t)
				c.now = start.Add(AuthorityLife - ServingLife/2)
			}
			key := newKey(t)
			c.putServing(t, hook, forge(t, certOf(t, c.serving[hook.ID()], certFile), key, s.change, c.signing(t)), key)
			if got := sentences(c.make(t, false)); len(got) != 1 || !strings.Contains(got[0], s.want) {
				t.Errorf("got %v", got)
			}
		})
	}
	t.Run("not changed", func(t *testing.T) {
		c := newCluster(hook)
		c.settle(t)
		key := newKey(t)
		c.putServing(t, hook, forge(t, certOf(t, c.serving[hook.ID()], certFile), key, nil, c.signing(t)), key)
		if got := sentences(c.make(t, false)); got != nil {
			t.Errorf("a certificate like ours is replaced, so the test proves nothing: %v", got)
		}
	})
	t.Run("P-384", func(t *testing.T) {
		c := newCluster(hook)
		c.settle(t)
		c.putServing(t, hook, forge(t, certOf(t, c.serving[hook.ID()], certFile), p384, nil, c.signing(t)), p384)
		if got := sentences(c.make(t, false)); len(got) != 1 || !strings.Contains(got[0], "unsupported type") {
			t.Errorf("got %v", got)
		}
	})
	t.Run("another authority", func(t *testing.T) {
		c, other := newCluster(hook), newCluster(hook)
		c.settle(t)
		other.owner.Name = "other"
		other.entropy.Uint64()
		other.settle(t)
		c.serving = other.serving
		if got := sentences(c.make(t, false)); len(got) != 1 || !strings.Contains(got[0], "no trusted authority") {
			t.Errorf("got %v", got)
		}
	})
}
