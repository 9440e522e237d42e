// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/x509"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

var (
	owner = inventory.Owner{Namespace: "team", Name: "web"}
	start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	hook  = request("shop", "hook")
	audit = request("shop", "audit")
)

func request(namespace, service string) Request {
	host := service + "." + namespace
	return Request{Namespace: namespace, Secret: service + "-cert", DNSNames: []string{host, host + ".svc", host + ".svc.cluster.local"}}
}

// cluster holds what Make reads and what it wants written.
type cluster struct {
	now       time.Time
	owner     inventory.Owner
	wanted    []Request
	authority *unstructured.Unstructured
	serving   map[inventory.ID]*unstructured.Unstructured
	entropy   *rand.ChaCha8
}

func newCluster(wanted ...Request) *cluster {
	return &cluster{now: start, owner: owner, wanted: wanted, serving: map[inventory.ID]*unstructured.Unstructured{}, entropy: rand.NewChaCha8([32]byte{1})}
}

func (c *cluster) input(trusted bool) Input {
	return Input{Now: c.now, Entropy: c.entropy, Owner: c.owner, Authority: c.authority, Serving: c.serving, Wanted: c.wanted, Trusted: trusted}
}

func (c *cluster) make(t testing.TB, trusted bool) Set {
	t.Helper()
	set, err := Make(c.input(trusted))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// write stores a set, as applying it would.
func (c *cluster) write(set Set) {
	for i, secret := range set.Secrets {
		if i == 0 {
			c.authority = secret
			continue
		}
		c.serving[inventory.IDOf(secret)] = secret
	}
}

// settle makes and writes until nothing is due.
func (c *cluster) settle(t testing.TB) Set {
	t.Helper()
	c.write(c.make(t, false))
	return c.make(t, false)
}

// after is a cluster that was set up, and had its successor made where that was due, so long ago.
func (c *cluster) after(d time.Duration) *cluster {
	c.now = c.now.Add(d)
	return c
}

func sentences(set Set) []string {
	var out []string
	for _, issued := range set.Issued {
		out = append(out, issued.ID.Name+": "+issued.Sentence)
	}
	return out
}

// certOf reads one certificate of a Secret.
func certOf(t testing.TB, secret *unstructured.Unstructured, key string) *x509.Certificate {
	t.Helper()
	certs := readCertificates(contents(secret)[key])
	if len(certs) != 1 {
		t.Fatalf("%s holds %d certificates in %s", secret.GetName(), len(certs), key)
	}
	return certs[0]
}

// verify is what a client does that trusts the bundle.
func verify(cert *x509.Certificate, bundle []byte, name string, now time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := cert.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now})
	return err
}

func sameSecrets(a, b []*unstructured.Unstructured) bool {
	return slices.EqualFunc(a, b, func(x, y *unstructured.Unstructured) bool { return equal(x.Object, y.Object) })
}
