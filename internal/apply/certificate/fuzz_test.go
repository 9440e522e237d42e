// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// FuzzMake passes Secrets with any contents, at any time. The outcome always verifies, gives a reason for each change and
// is stable.
func FuzzMake(f *testing.F) {
	c := newCluster(hook)
	c.now = start.Add(AuthorityLife - Succession)
	first := c.settle(f)
	authority, serving := contents(first.Secrets[0]), contents(first.Secrets[1])
	for _, hours := range []int32{0, 25, 24 * 365, 24 * 365 * 4, -24 * 365} {
		f.Add(authority[certFile], authority[keyFile], authority[trustFile], authority[nextCert], authority[nextKey], serving[certFile], serving[keyFile], hours, true)
		f.Add(authority[certFile], authority[keyFile], []byte(nil), []byte(nil), []byte(nil), serving[certFile], authority[keyFile], hours, false)
		f.Add(authority[nextCert], authority[nextKey], authority[trustFile], authority[certFile], authority[keyFile], []byte("x"), serving[keyFile], hours, true)
		f.Add(serving[certFile], serving[keyFile], serving[certFile], serving[certFile], serving[keyFile], authority[certFile], authority[keyFile], hours, true)
	}
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----"), []byte("-----BEGIN PRIVATE KEY-----\nMII=\n-----END PRIVATE KEY-----"), bytes.Repeat([]byte("-----BEGIN "), 9999), []byte{0}, []byte{}, []byte{}, []byte{}, int32(1), true)
	f.Fuzz(func(t *testing.T, cert, key, trust, nextC, nextK, servingC, servingK []byte, hours int32, trusted bool) {
		c := newCluster(hook)
		c.now = start.Add(AuthorityLife - Succession).Add(time.Duration(hours%(40*365*24)) * time.Hour)
		c.authority = newSecret(AuthorityID(owner), "authority", opaque, map[string][]byte{certFile: cert, keyFile: key, trustFile: trust, nextCert: nextC, nextKey: nextK})
		c.serving[hook.ID()] = newSecret(hook.ID(), "serving", tls, map[string][]byte{certFile: servingC, keyFile: servingK})
		set := c.make(t, trusted)
		for _, host := range hook.DNSNames {
			if err := verify(servedBy(t, set, hook), set.Bundle, host, c.now); err != nil {
				t.Fatalf("%s: %v", host, err)
			}
		}
		if len(set.Issued) > 0 && len(set.Stale) == 0 {
			t.Fatal("something was issued and is not to be written")
		}
		if !set.Next.After(c.now) {
			t.Fatalf("next at %s, and it is %s", set.Next, c.now)
		}
		c.write(set)
		if again := c.make(t, false); len(again.Issued)+len(again.Stale) > 0 || !sameSecrets(set.Secrets, again.Secrets) {
			t.Fatalf("a second look finds %v, stale %v", sentences(again), again.Stale)
		}
	})
}

// An object that is not even a Secret is treated as absent.
func TestGarbledObjects(t *testing.T) {
	for name, object := range map[string]map[string]any{
		"empty":        {},
		"no mapping":   {"data": []any{"x"}},
		"no texts":     {"data": map[string]any{certFile: 7, keyFile: nil, trustFile: map[string]any{}}},
		"no base64":    {"data": map[string]any{certFile: "%%%", keyFile: "===", trustFile: "\x00"}},
		"huge":         {"data": map[string]any{certFile: strings.Repeat("AAAA", 1<<18), keyFile: strings.Repeat("AAAA", 1<<18), trustFile: strings.Repeat("LS0tLS1CRUdJTiAt", 1<<16)}},
		"wrong labels": {"metadata": "x"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(hook)
			c.authority = &unstructured.Unstructured{Object: object}
			c.serving[hook.ID()] = &unstructured.Unstructured{Object: object}
			set := c.make(t, true)
			if len(set.Issued) != 2 || len(set.Stale) != 2 {
				t.Errorf("issued %v, stale %v", sentences(set), set.Stale)
			}
			if _, found := Life(c.authority); found {
				t.Error("it has a life")
			}
		})
	}
}

// broken is a source of randomness that ends, or gives no key.
type broken struct{ err error }

func (b broken) Read(p []byte) (int, error) {
	clear(p)
	if b.err != nil {
		return 0, b.err
	}
	return len(p), nil
}

// TestNoSecretsInWords: neither errors nor sentences quote the contents of a Secret, be it a key or garbage that
// another client wrote in place of one.
func TestNoSecretsInWords(t *testing.T) {
	c := newCluster(hook)
	c.settle(t)
	canaries := []string{"CANARY", "Q0FOQVJZ"}
	for _, secret := range []*unstructured.Unstructured{c.authority, c.serving[hook.ID()]} {
		for line := range strings.Lines(string(contents(secret)[keyFile])) {
			if !strings.HasPrefix(line, "-----") {
				canaries = append(canaries, strings.TrimSpace(line))
			}
		}
	}
	garbage := []byte("-----BEGIN PRIVATE KEY-----\nCANARY: CANARY\n\nQ0FOQVJZQ0FOQVJZQ0FOQVJZ\n-----END PRIVATE KEY-----\nCANARY")
	var words []string
	say := func(in Input) {
		set, err := Make(in)
		words = append(words, sentences(set)...)
		if err != nil {
			words = append(words, err.Error())
		}
	}
	for _, key := range []string{certFile, keyFile, trustFile, nextCert, nextKey} {
		for _, entropy := range []io.Reader{c.entropy, broken{io.ErrUnexpectedEOF}, broken{}} {
			in := c.input(true)
			in.Entropy = entropy
			in.Authority = edit(c.authority, key, garbage)
			in.Serving = map[inventory.ID]*unstructured.Unstructured{hook.ID(): edit(c.serving[hook.ID()], key, garbage)}
			say(in)
		}
	}
	if len(words) < 8 {
		t.Fatalf("too few words to judge: %q", words)
	}
	for _, text := range words {
		for _, canary := range canaries {
			if strings.Contains(text, canary) {
				t.Errorf("%q quotes a Secret", text)
			}
		}
	}
}

// Without randomness nothing is issued, and certificates that are not due are kept.
func TestBrokenRandomness(t *testing.T) {
	for name, entropy := range map[string]io.Reader{"ends": broken{io.ErrUnexpectedEOF}, "zeros": broken{}} {
		c := newCluster(hook)
		in := c.input(false)
		in.Entropy = entropy
		if set, err := Make(in); err == nil || set.Secrets != nil {
			t.Errorf("%s: issued without randomness", name)
		} else if name == "ends" && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the cause is lost: %v", err)
		}
		c.settle(t)
		in = c.input(false)
		in.Entropy = entropy
		if _, err := Make(in); err != nil {
			t.Errorf("%s: nothing is due, yet: %v", name, err)
		}
	}
}

// TestMakeIsPure: the same input gives the same bytes, and is not changed.
func TestMakeIsPure(t *testing.T) {
	run := func() []byte {
		c := newCluster(hook, audit)
		c.settle(t)
		c.now = start.Add(AuthorityLife - Succession)
		before := c.authority.DeepCopy()
		set := c.make(t, false)
		if !equal(before.Object, c.authority.Object) || c.wanted[0].Secret != hook.Secret {
			t.Error("the input was changed")
		}
		data, err := json.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	if first := run(); !bytes.Equal(first, run()) {
		t.Error("two runs differ")
	}
}
