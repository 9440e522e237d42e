// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/tests/controlplane"
)

const (
	servingSecret   = "gadgets-service-cert"
	authoritySecret = "satchel-ca-app"
)

// secret reads a Secret; nil when it does not exist.
func (r *rig) secret(t *testing.T, namespace, name string) *corev1.Secret {
	t.Helper()
	var found corev1.Secret
	err := r.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return &found
}

// trusting are the objects of operator that trust its certificate.
func trusting(group string) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "check."+group),
		object("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "", "fill."+group),
		crdObject(group),
	}
}

// bundles reads what the trusting objects trust, by kind; nil where it is nothing.
func (r *rig) bundles(t *testing.T, group string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for _, o := range trusting(group) {
		if !r.get(t, o) {
			continue
		}
		config, _, _ := unstructured.NestedMap(o.Object, "spec", "conversion", "webhook", "clientConfig")
		if hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks"); len(hooks) > 0 {
			config, _ = hooks[0].(map[string]any)["clientConfig"].(map[string]any) //nolint:forcetypeassert // of the API server
		}
		encoded, _ := config["caBundle"].(string)
		bundle, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatal(err)
		}
		found[o.GetKind()] = bundle
	}
	return found
}

// verifies says why the serving certificate is not one that all three webhook
// clients trust at a time; empty when it is.
func (r *rig) verifies(t *testing.T, namespace, group string, at time.Time) string {
	t.Helper()
	serving := r.secret(t, namespace, servingSecret)
	if serving == nil {
		return "no serving Secret"
	}
	if _, err := tls.X509KeyPair(serving.Data["tls.crt"], serving.Data["tls.key"]); err != nil {
		return err.Error()
	}
	bundles := r.bundles(t, group)
	if len(bundles) != 3 {
		return fmt.Sprintf("%d trusting objects", len(bundles))
	}
	for kind, bundle := range bundles {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(bundle)
		_, err := leaf(t, serving).Verify(x509.VerifyOptions{
			Roots: roots, DNSName: "gadgets-service." + namespace + ".svc", CurrentTime: at,
		})
		if err != nil {
			return kind + ": " + err.Error()
		}
	}
	return ""
}

// leaf is the certificate of a Secret.
func leaf(t *testing.T, secret *corev1.Secret) *x509.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

// verified waits until the webhooks would be called.
func (r *rig) verified(t *testing.T, namespace, group string) {
	t.Helper()
	r.eventually(t, t.Context(), "the webhook clients trust the serving certificate", func(context.Context) (bool, string) {
		why := r.verifies(t, namespace, group, time.Now())
		return why == "", why
	})
}

func TestSelfSignedInstallAndRemoval(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mark := r.mark(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	published := r.publish(t, namespace, "app", "v1", operator(group, "1.0.0"))
	key := r.deploy(t, namespace, "app", quick)
	d := r.ready(t, key, published.Revision)
	if why := r.verifies(t, namespace, group, time.Now()); why != "" {
		t.Fatalf("the webhooks could not be called: %s", why)
	}
	serving := leaf(t, r.secret(t, namespace, servingSecret))
	if expire := d.Status.CertificateExpirationTime; expire == nil || !expire.Time.Equal(serving.NotAfter) {
		t.Errorf("status.certificateExpirationTime is %v, want %s", expire, serving.NotAfter)
	}
	if d.Status.Objects.Applied != d.Status.Inventory.Count {
		t.Errorf("%d objects applied, %d in the inventory", d.Status.Objects.Applied, d.Status.Inventory.Count)
	}
	r.told(t, namespace, "CertificateIssued: Issued a certificate authority")
	r.told(t, namespace, "; Issued the serving certificate of ")
	r.inOrder(t, mark, namespace, group)

	r.remove(t, key)
	for _, name := range []string{servingSecret, authoritySecret} {
		if r.secret(t, namespace, name) != nil {
			t.Errorf("Secret %s is still there after the removal", name)
		}
	}
	if bundle := r.bundles(t, group)["CustomResourceDefinition"]; len(bundle) > 0 {
		t.Error("the remaining CRD still trusts a deleted CA")
	}
}

// inOrder checks the writes of an installation: certificates come before what
// trusts or mounts them, and every request about Secrets is the tenant's.
func (r *rig) inOrder(t *testing.T, mark controlplane.AuditMark, namespace, group string) {
	t.Helper()
	tenant, reads := "system:serviceaccount:"+namespace+":installer", 0
	var order []string
	for _, e := range r.audit(t, mark, func(e controlplane.AuditEvent) bool {
		return e.User == controllerUser && (e.Namespace == namespace || strings.Contains(e.Name, group))
	}) {
		if e.Resource == "secrets" && e.ImpersonatedUser != tenant {
			t.Errorf("not as the tenant: %s", e)
		}
		if e.Resource == "secrets" && e.Verb == "get" {
			reads++
		}
		if e.ImpersonatedUser == tenant && isWrite(e) {
			order = append(order, e.Resource)
		}
	}
	if reads == 0 || strings.Join(order[:2], " ") != "secrets secrets" {
		t.Errorf("%d Secrets read; the order of writes is %v, want the Secrets first", reads, order)
	}
	for _, resource := range []string{"customresourcedefinitions", "deployments", "validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		if !slices.Contains(order, resource) {
			t.Errorf("no write of %s is in the audit log: %v", resource, order)
		}
	}
	if slices.Contains(order[2:], "secrets") {
		t.Errorf("Secrets were written again: %v", order)
	}
}
