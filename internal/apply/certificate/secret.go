// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// Keys of the Secrets.
const (
	certFile  = "tls.crt"
	keyFile   = "tls.key"
	trustFile = "ca.crt"
	nextCert  = "next.crt"
	nextKey   = "next.key"

	opaque = "Opaque"
	tls    = "kubernetes.io/tls"

	authorityPrefix = "satchel-ca-"
	longestName     = 253
)

// AuthorityID is the Secret of an owner's certificate authority, in the owner's namespace.
func AuthorityID(owner inventory.Owner) inventory.ID { return AuthorityIn(owner, owner.Namespace) }

// AuthorityIn is AuthorityID in another namespace, for a cluster that does not know the owner.
func AuthorityIn(owner inventory.Owner, namespace string) inventory.ID {
	name := authorityPrefix + owner.Name
	if len(name) > longestName {
		sum := sha256.Sum256([]byte(owner.Name))
		mark := "-" + hex.EncodeToString(sum[:8])
		name = name[:longestName-len(mark)] + mark
	}
	return secretID(namespace, name)
}

func secretID(namespace, name string) inventory.ID {
	return inventory.ID{Kind: "Secret", Namespace: namespace, Name: name}
}

// contents of a Secret by key, without invalid data.
func contents(secret *unstructured.Unstructured) map[string][]byte {
	out := map[string][]byte{}
	if secret == nil {
		return out
	}
	data, _ := secret.Object["data"].(map[string]any)
	for key, value := range data {
		text, ok := value.(string)
		if !ok {
			continue
		}
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
			out[key] = raw
		}
	}
	return out
}

// newSecret is a complete desired object.
func newSecret(id inventory.ID, role, secretType string, data map[string][]byte) *unstructured.Unstructured {
	encoded := make(map[string]any, len(data))
	for key, value := range data {
		encoded[key] = base64.StdEncoding.EncodeToString(value)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": id.Kind, "type": secretType, "data": encoded,
		"metadata": map[string]any{
			"namespace": id.Namespace, "name": id.Name,
			"labels": map[string]any{plan.LabelCertificate: role},
		},
	}}
}

// upToDate tells whether a live Secret equals the desired one.
func upToDate(live, desired *unstructured.Unstructured) bool {
	if live == nil || live.Object["type"] != desired.Object["type"] {
		return false
	}
	return maps.EqualFunc(contents(live), contents(desired), bytes.Equal)
}

// End is the lifetime of the certificate of a Secret.
type End struct {
	ID                  inventory.ID
	NotBefore, NotAfter time.Time
}

func endOf(id inventory.ID, p pair) End {
	return End{ID: id, NotBefore: p.cert.NotBefore, NotAfter: p.cert.NotAfter}
}

// Late tells that less than a sixth of the life is left. Renewal is due at a third, so it must have been failing.
func (e End) Late(now time.Time) bool {
	return e.NotAfter.Sub(now) < e.NotAfter.Sub(e.NotBefore)/6
}

// Life is the lifetime of the certificate in a live Secret: the served one, or the signing authority. It is
// false where there is none.
func Life(live *unstructured.Unstructured) (End, bool) {
	certs := readCertificates(contents(live)[certFile])
	if len(certs) == 0 {
		return End{}, false
	}
	return endOf(inventory.IDOf(live), pair{cert: certs[0]}), true
}
