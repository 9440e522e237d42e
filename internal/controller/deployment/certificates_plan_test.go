// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// A foreign Secret is a collision, and its key never signs for the deployment.
func TestT13ForeignSecretsOfTheNames(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mark := r.mark(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	authority, serving := planted(t, namespace)
	for _, foreign := range []*unstructured.Unstructured{authority, serving} {
		r.create(t, foreign.DeepCopy())
	}
	published := r.publish(t, namespace, "app", "v1", operator(group, "1.0.0"))
	key := r.deploy(t, namespace, "app", quick)
	d := r.unready(t, key, v1alpha1.ReasonPlanRefused)
	for _, name := range []string{authoritySecret, servingSecret} {
		if message := conditions.GetMessage(d, v1alpha1.PlannedCondition); !strings.Contains(message, "Secret "+namespace+"/"+name+" exists already and was written by") {
			t.Errorf("the collision of %s is not named: %s", name, message)
		}
	}
	if d.Status.CertificateExpirationTime != nil {
		t.Errorf("the status has the expiry of a foreign certificate: %s", d.Status.CertificateExpirationTime)
	}
	r.untouched(t, mark, namespace, group)
	r.delete(t, authority)
	r.delete(t, serving)
	r.ready(t, key, published.Revision)
	r.replaced(t, namespace, group, authority)
}

// untouched checks that nothing was written of the bundle since a mark.
func (r *rig) untouched(t *testing.T, mark controlplane.AuditMark, namespace, group string) {
	t.Helper()
	for _, e := range r.audit(t, mark, func(e controlplane.AuditEvent) bool {
		return e.User == controllerUser && e.ImpersonatedUser != "" && isWrite(e) && (e.Namespace == namespace || strings.Contains(e.Name, group))
	}) {
		t.Errorf("written although the plan is refused: %s", e)
	}
}

func TestT5NoRightToSecrets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mark := r.mark(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	group := r.group(t, namespace)
	r.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"apps", "admissionregistration.k8s.io", "apiextensions.k8s.io", "rbac.authorization.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{APIGroups: []string{""}, Resources: []string{"services", "serviceaccounts"}, Verbs: []string{"*"}},
	}})
	if err := installation.Account(t.Context(), r.admin, namespace, "installer", namespace, ""); err != nil {
		t.Fatal(err)
	}
	published := r.publish(t, namespace, "app", "v1", operator(group, "1.0.0"))
	key := r.deploy(t, namespace, "app", quick)
	d := r.unready(t, key, v1alpha1.ReasonPlanRefused)
	message := conditions.GetMessage(d, v1alpha1.PlannedCondition)
	for _, name := range []string{authoritySecret, servingSecret} {
		if !strings.Contains(message, name) || !strings.Contains(message, "secrets") {
			t.Errorf("the permission on Secret %s is not named: %s", name, message)
		}
	}
	r.untouched(t, mark, namespace, group)
	role := object("rbac.authorization.k8s.io/v1", "ClusterRole", "", namespace)
	r.patch(t, role, `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`)
	r.ready(t, key, published.Revision)
	r.verified(t, namespace, group)
}

// foreignDefinition is a CRD of cert-manager, without its controller.
func foreignDefinition(plural, kind string) *unstructured.Unstructured {
	o := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", plural+".cert-manager.io")
	o.Object["spec"] = map[string]any{
		"group": "cert-manager.io", "scope": "Namespaced",
		"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": plural, "singular": strings.ToLower(kind)},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
	}
	return o
}

func TestSwitchOfTheProvider(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.create(t, foreignDefinition("certificates", "Certificate"))
	r.create(t, foreignDefinition("issuers", "Issuer"))
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	published := r.publish(t, namespace, "app", "v1", operator(group, "1.0.0"))
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, published.Revision)
	provider := func(name string) {
		r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
			d.Spec.RegistryV1 = &v1alpha1.RegistryV1Options{CertificateProvider: name}
		})
	}
	provider("cert-manager")
	r.until(t, key, "without own certificates", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.IsTrue(d, "Ready") && d.Status.CertificateExpirationTime == nil
	})
	for _, name := range []string{servingSecret, authoritySecret} {
		r.gone(t, object("v1", "Secret", namespace, name))
	}
	r.eventually(t, t.Context(), "the CA bundles are released", func(context.Context) (bool, string) {
		for kind, bundle := range r.bundles(t, group) {
			if len(bundle) > 0 {
				return false, kind
			}
		}
		return true, ""
	})
	r.must(t, object("cert-manager.io/v1", "Certificate", namespace, servingSecret))

	// And back, over a CA bundle that another client has injected meanwhile.
	r.patch(t, crdObject(group), `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":"`+
		base64.StdEncoding.EncodeToString(r.cp.RESTConfig().CAData)+`"}}}}}`)
	provider("self-signed")
	r.gone(t, object("cert-manager.io/v1", "Certificate", namespace, servingSecret))
	r.verified(t, namespace, group)
	r.ready(t, key, published.Revision)
}

// A dry run contains what will be written: the real CA bundle.
func TestDryRunSeesTheRealBundle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	first := r.publish(t, namespace, "app", "v1", operator(group, "1.0.0"))
	key := r.deploy(t, namespace, "app", rarely)
	r.ready(t, key, first.Revision)
	bundle := base64.StdEncoding.EncodeToString(r.bundles(t, group)["CustomResourceDefinition"])
	r.refuse(t, namespace, policy{operation: admissionv1.Update, resource: "customresourcedefinitions",
		rule: fmt.Sprintf("object.metadata.name != 'gadgets.%s' || object.metadata.deletionTimestamp != null || object.spec.conversion.strategy == 'None' || "+
			"string(object.spec.conversion.webhook.clientConfig.caBundle) == %q", group, bundle), message: "'this is not the bundle'"},
		func(ctx context.Context) error {
			return r.admin.Patch(ctx, crdObject(group), client.RawPatch("application/merge-patch+json",
				[]byte(`{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":null}}}}}`)), client.DryRunAll)
		})
	mark := r.mark(t)
	second := r.publish(t, namespace, "app", "v2", operator(group, "2.0.0"))
	r.ready(t, key, second.Revision)
	asked := r.audit(t, mark, func(e controlplane.AuditEvent) bool {
		return e.User == controllerUser && e.Name == "gadgets."+group && strings.Contains(e.RequestURI, "dryRun=All") && e.Code == 200
	})
	if len(asked) == 0 {
		t.Error("the upgrade was not tried by a dry run")
	}
}

// The controller's volume holds no private key: the snapshot keeps the objects as
// the bundle has them.
func TestNoKeyOnTheVolume(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.selfSigned(t)
	contents := s.contents(t)
	for _, bundle := range r.bundles(t, s.group) {
		if strings.Contains(contents, base64.StdEncoding.EncodeToString(bundle)) {
			t.Error("the snapshot holds the bundle")
		}
	}
	if !strings.Contains(contents, `"certificates":[{"Namespace":"`+s.namespace+`"`) || !strings.Contains(contents, "check."+s.group) {
		t.Errorf("the snapshot lacks the certificates or the objects: %.300s", contents)
	}
	secrets := map[string]*corev1.Secret{servingSecret: s.serving(t), authoritySecret: s.authority(t)}
	err := filepath.WalkDir(filepath.Join(shared.dir, "cache"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // what goes meanwhile is of other tests
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil //nolint:nilerr // what goes meanwhile is of other tests
		}
		for name, secret := range secrets {
			if holdsKey(string(raw), secret) {
				t.Errorf("%s holds the key of %s", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, secret := range secrets {
		if holdsKey(contents, secret) {
			t.Errorf("the snapshot holds the key of %s", name)
		}
	}
}

// holdsKey tells whether a string contains the private key of a Secret in any encoding.
func holdsKey(text string, secret *corev1.Secret) bool {
	key := secret.Data["tls.key"]
	for _, form := range []string{string(key), base64.StdEncoding.EncodeToString(key), strings.Split(string(key), "\n")[1], "PRIVATE KEY"} {
		if strings.Contains(text, form) {
			return true
		}
	}
	return false
}

// The applied revision is reconciled while a newer one fails, including its
// certificates.
func TestCertificatesOfTheKeptRevision(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	first := r.publish(t, namespace, "app", "v1", operator(group, "1.0.0"))
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, first.Revision)
	authority := string(r.secret(t, namespace, authoritySecret).Data["tls.crt"])
	r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": file("kind: [broken")})
	r.unready(t, key, v1alpha1.ReasonConversionFailed)
	r.delete(t, object("v1", "Secret", namespace, servingSecret))
	r.patch(t, crdObject(group), `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":null}}}}}`)
	r.verified(t, namespace, group)
	d := r.unready(t, key, v1alpha1.ReasonConversionFailed)
	until := leaf(t, r.secret(t, namespace, servingSecret)).NotAfter
	if expire := d.Status.CertificateExpirationTime; expire == nil || expire.Time.Before(until.Add(-time.Hour)) {
		t.Errorf("status.certificateExpirationTime is %v, want %s", expire, until)
	}
	if string(r.secret(t, namespace, authoritySecret).Data["tls.crt"]) != authority {
		t.Error("another authority was made")
	}
	r.remove(t, key)
	for _, name := range []string{servingSecret, authoritySecret} {
		r.gone(t, object("v1", "Secret", namespace, name))
	}
}
