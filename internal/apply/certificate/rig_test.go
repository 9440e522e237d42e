// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
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

// cluster holds the Secrets that Make reads and writes.
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

// different are the Secrets of a set with other data or another type than on the cluster.
func (c *cluster) different(set Set) []inventory.ID {
	var out []inventory.ID
	for i, secret := range set.Secrets {
		live := c.authority
		if i > 0 {
			live = c.serving[inventory.IDOf(secret)]
		}
		if live == nil || !equal(live.Object["data"], secret.Object["data"]) || !equal(live.Object["type"], secret.Object["type"]) {
			out = append(out, inventory.IDOf(secret))
		}
	}
	return out
}

func sentences(set Set) []string {
	var out []string
	for _, issued := range set.Issued {
		out = append(out, issued.ID.Name+": "+issued.Sentence)
	}
	return out
}

// servedBy is the certificate that a set serves a request with.
func servedBy(t testing.TB, set Set, r Request) *x509.Certificate {
	t.Helper()
	for _, secret := range set.Secrets {
		if inventory.IDOf(secret) == r.ID() {
			return certOf(t, secret, certFile)
		}
	}
	t.Fatalf("the set does not contain %s", r.ID())
	return nil
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

// verify is what a client that trusts the bundle does.
func verify(cert *x509.Certificate, bundle []byte, name string, now time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := cert.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now})
	return err
}

func sameSecrets(a, b []*unstructured.Unstructured) bool {
	return slices.EqualFunc(a, b, func(x, y *unstructured.Unstructured) bool { return equal(x.Object, y.Object) })
}

// edit returns a copy of a Secret with other data under a key; nil removes it.
func edit(secret *unstructured.Unstructured, key string, value []byte) *unstructured.Unstructured {
	edited := secret.DeepCopy()
	data := edited.Object["data"].(map[string]any)
	delete(data, key)
	if value != nil {
		data[key] = base64.StdEncoding.EncodeToString(value)
	}
	return edited
}

func (c *cluster) editAuthority(key string, value []byte) {
	c.authority = edit(c.authority, key, value)
}

func (c *cluster) editServing(r Request, key string, value []byte) {
	c.serving[r.ID()] = edit(c.serving[r.ID()], key, value)
}

// putAuthority replaces the authority under the keys.
func (c *cluster) putAuthority(t testing.TB, certKey, keyKey string, cert *x509.Certificate, key crypto.Signer) {
	t.Helper()
	c.editAuthority(certKey, writeCertificates(cert))
	c.editAuthority(keyKey, encodeKey(t, key))
}

func (c *cluster) putServing(t testing.TB, r Request, cert *x509.Certificate, key crypto.Signer) {
	t.Helper()
	c.editServing(r, certFile, writeCertificates(cert))
	c.editServing(r, keyFile, encodeKey(t, key))
}

func encodeKey(t testing.TB, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// signing is the pair that signs.
func (c *cluster) signing(t testing.TB) pair {
	t.Helper()
	data := contents(c.authority)
	p, why := readPair(data[certFile], data[keyFile])
	if why != "" {
		t.Fatal(why)
	}
	return p
}

// newKey is a key of our type.
func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// forge makes a certificate from another one's template. Without a signer it signs itself.
func forge(t testing.TB, template *x509.Certificate, key crypto.Signer, change func(*x509.Certificate), by ...pair) *x509.Certificate {
	t.Helper()
	copied := *template
	copied.SignatureAlgorithm, copied.SubjectKeyId, copied.AuthorityKeyId, copied.PublicKey = 0, nil, nil, key.Public()
	if change != nil {
		change(&copied)
	}
	parent, signer := &copied, key
	if len(by) > 0 {
		parent, signer = by[0].cert, by[0].key
	}
	der, err := x509.CreateCertificate(cryptorand.Reader, &copied, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
