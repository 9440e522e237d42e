// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/convert/registryv1"
)

// webhookClients is how an object on the cluster says that the API server reaches a webhook.
func webhookClients(object *unstructured.Unstructured) []map[string]any {
	if object.GetKind() == "CustomResourceDefinition" {
		config, _, _ := unstructured.NestedMap(object.Object, "spec", "conversion", "webhook", "clientConfig")
		return []map[string]any{config}
	}
	var out []map[string]any
	hooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
	for _, hook := range hooks {
		fields, _ := hook.(map[string]any)
		config, _ := fields["clientConfig"].(map[string]any)
		out = append(out, config)
	}
	return out
}

// checkTrust makes sure that each webhook and conversion on the cluster trusts the certificate in the Secret that the
// Deployment behind its Service mounts, for the name by which the API server calls it. It returns how many there are.
func (r *rig) checkTrust(t *testing.T, objects []*unstructured.Unstructured) int {
	t.Helper()
	checked := 0
	for _, object := range objects {
		secret, trusts := object.GetAnnotations()[registryv1.InjectAnnotation]
		if !trusts {
			continue
		}
		live := object.DeepCopy()
		if err := r.admin.Get(t.Context(), client.ObjectKeyFromObject(object), live); err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
			continue
		}
		for _, config := range webhookClients(live) {
			checked++
			if err := r.verify(t, config, secret); err != nil {
				t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
			}
		}
	}
	return checked
}

// verify does what the API server does when it calls a webhook that presents the certificate of a Secret.
func (r *rig) verify(t *testing.T, config map[string]any, namespacedSecret string) error {
	t.Helper()
	encoded, _, _ := unstructured.NestedString(config, "caBundle")
	bundle, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return fmt.Errorf("the CA bundle: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return fmt.Errorf("the CA bundle %q holds no certificate", encoded)
	}
	namespace, name, _ := strings.Cut(namespacedSecret, "/")
	var secret corev1.Secret
	if err := r.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &secret); err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fmt.Errorf("secret %s: %w", namespacedSecret, err)
	}
	host, _, _ := unstructured.NestedString(config, "service", "name")
	of, _, _ := unstructured.NestedString(config, "service", "namespace")
	_, err = pair.Leaf.Verify(x509.VerifyOptions{
		DNSName: host + "." + of + ".svc", Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}
