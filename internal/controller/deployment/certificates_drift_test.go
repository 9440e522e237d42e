// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// planted makes the Secrets of another, valid CA for the deployment app: the CA and the
// serving certificate.
func planted(t *testing.T, namespace string) (authority, serving *unstructured.Unstructured) {
	t.Helper()
	host := "gadgets-service." + namespace
	set, err := certificate.Make(certificate.Input{
		Now: time.Now(), Entropy: rand.Reader, Owner: inventory.Owner{Namespace: namespace, Name: "app"},
		Wanted: []certificate.Request{{Namespace: namespace, Secret: servingSecret, DNSNames: []string{host, host + ".svc", host + ".svc.cluster.local"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return set.Secrets[0], set.Secrets[1]
}

// certificateDamages are changes of certificate objects by users; each says whether the
// CA must stay the same.
var certificateDamages = map[string]struct {
	do    func(r *rig, t *testing.T, namespace, group string)
	stays bool
}{
	"serving certificate edited": {func(r *rig, t *testing.T, namespace, _ string) {
		t.Helper()
		r.patch(t, object("v1", "Secret", namespace, servingSecret), `{"data":{"tls.crt":"eA=="}}`)
	}, true},
	"serving Secret deleted": {func(r *rig, t *testing.T, namespace, _ string) {
		t.Helper()
		r.delete(t, object("v1", "Secret", namespace, servingSecret))
	}, true},
	"serving Secret unlabelled": {func(r *rig, t *testing.T, namespace, _ string) {
		t.Helper()
		r.patch(t, object("v1", "Secret", namespace, servingSecret), `{"metadata":{"labels":null}}`)
	}, true},
	"authority stripped of its managed fields": {func(r *rig, t *testing.T, namespace, _ string) {
		t.Helper()
		r.patch(t, object("v1", "Secret", namespace, authoritySecret), `{"metadata":{"managedFields":[{}]}}`)
	}, true},
	"something added to the authority": {func(r *rig, t *testing.T, namespace, _ string) {
		t.Helper()
		r.patch(t, object("v1", "Secret", namespace, authoritySecret), `{"data":{"note":"eA=="},"metadata":{"annotations":{"a":"b"}}}`)
		r.patch(t, object("v1", "Secret", namespace, servingSecret), `{"metadata":{"labels":null}}`) // what shows the repair
	}, true},
	"authority deleted": {func(r *rig, t *testing.T, namespace, _ string) {
		t.Helper()
		r.delete(t, object("v1", "Secret", namespace, authoritySecret))
	}, false},
	"bundle of a webhook replaced": {func(r *rig, t *testing.T, _, group string) {
		t.Helper()
		hook := trusting(group)[0]
		hooks, _, _ := unstructured.NestedSlice(r.must(t, hook).Object, "webhooks")
		hooks[0].(map[string]any)["clientConfig"].(map[string]any)["caBundle"] = base64.StdEncoding.EncodeToString(r.cp.RESTConfig().CAData) //nolint:forcetypeassert // of the API server
		hook.Object["webhooks"] = hooks
		if err := r.admin.Update(t.Context(), hook); err != nil {
			t.Fatal(err)
		}
	}, true},
	"bundle of a conversion replaced": {func(r *rig, t *testing.T, _, group string) {
		t.Helper()
		r.patch(t, crdObject(group), `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":"`+
			base64.StdEncoding.EncodeToString(r.cp.RESTConfig().CAData)+`"}}}}}`)
	}, true},
	"bundle and serving certificate at once": {func(r *rig, t *testing.T, namespace, group string) {
		t.Helper()
		r.delete(t, object("v1", "Secret", namespace, authoritySecret))
		r.patch(t, object("v1", "Secret", namespace, servingSecret), `{"data":{"tls.crt":"eA=="}}`)
		r.patch(t, crdObject(group), `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":"`+
			base64.StdEncoding.EncodeToString(r.cp.RESTConfig().CAData)+`"}}}}}`)
	}, false},
}

// holdsCertificates tells whether the deployment holds both Secrets again.
func (r *rig) holdsCertificates(t *testing.T, namespace string) bool {
	t.Helper()
	for _, name := range []string{servingSecret, authoritySecret} {
		secret := object("v1", "Secret", namespace, name)
		if !r.get(t, secret) || secret.GetLabels()["satchel.dev/deployment"] != "app" || secret.GetLabels()["satchel.dev/certificate"] == "" {
			return false
		}
		held := false
		for _, entry := range secret.GetManagedFields() {
			held = held || entry.Manager == "satchel/"+namespace+"/app"
		}
		if !held {
			return false
		}
	}
	return true
}

func TestF26DriftOfCertificates(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, damage := range certificateDamages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			group := r.group(t, namespace)
			published := r.publish(t, namespace, "app", "v1", operator(group, "1.0.0"))
			key := r.deploy(t, namespace, "app", quick)
			r.ready(t, key, published.Revision)
			before := string(r.secret(t, namespace, authoritySecret).Data["tls.key"])
			damage.do(r, t, namespace, group)
			r.eventually(t, t.Context(), "the certificates are in order", func(context.Context) (bool, string) {
				why := r.verifies(t, namespace, group, time.Now())
				return why == "" && r.holdsCertificates(t, namespace), why + " held: " + fmt.Sprint(r.holdsCertificates(t, namespace))
			})
			r.ready(t, key, published.Revision)
			if same := string(r.secret(t, namespace, authoritySecret).Data["tls.key"]) == before; same != damage.stays {
				t.Errorf("the authority stayed the same: %v, want %v", same, damage.stays)
			}
		})
	}
}

// A user who may write the Secret of the CA, under any field manager, must not get
// another CA trusted by the API server.
func TestT13PlantedAuthority(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, write := range map[string]func(namespace string, live *unstructured.Unstructured) error{
		"as another field manager": func(_ string, live *unstructured.Unstructured) error { return r.admin.Update(t.Context(), live) },
		"in the name of the deployment": func(namespace string, live *unstructured.Unstructured) error {
			return r.applyAs(t, namespace, live)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			group := r.group(t, namespace)
			published := r.publish(t, namespace, "app", "v1", operator(group, "1.0.0"))
			key := r.deploy(t, namespace, "app", quick)
			r.ready(t, key, published.Revision)
			foreign, _ := planted(t, namespace)
			live := r.must(t, object("v1", "Secret", namespace, authoritySecret))
			live.Object["data"] = foreign.Object["data"]
			if err := write(namespace, live); err != nil {
				t.Fatal(err)
			}
			r.replaced(t, namespace, group, foreign)
			r.ready(t, key, published.Revision)
		})
	}
}

// A CA that existed before the first revision, and looks like the deployment's own in
// every way, is not trusted either.
func TestT13AuthorityPlantedBeforehand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	foreign, _ := planted(t, namespace)
	foreign.SetLabels(map[string]string{
		v1alpha1.DeploymentLabel: "app", v1alpha1.NamespaceLabel: namespace, plan.LabelCertificate: plan.CertificateAuthority,
	})
	if err := r.applyAs(t, namespace, foreign.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	published := r.publish(t, namespace, "app", "v1", operator(group, "1.0.0"))
	key := r.deploy(t, namespace, "app", quick)
	r.replaced(t, namespace, group, foreign)
	r.ready(t, key, published.Revision)
}

// applyAs applies an object under the field manager of the deployment app.
func (r *rig) applyAs(t *testing.T, namespace string, object *unstructured.Unstructured) error {
	t.Helper()
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	object.SetUID("")
	return r.admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner("satchel/"+namespace+"/app"), client.ForceOwnership)
}

// replaced waits until nothing is left of a planted authority, and all works.
func (r *rig) replaced(t *testing.T, namespace, group string, foreign *unstructured.Unstructured) {
	t.Helper()
	data, _, _ := unstructured.NestedStringMap(foreign.Object, "data")
	r.eventually(t, t.Context(), "the planted authority is gone", func(context.Context) (bool, string) {
		secret := r.secret(t, namespace, authoritySecret)
		if secret == nil || base64.StdEncoding.EncodeToString(secret.Data["tls.crt"]) == data["tls.crt"] {
			return false, "it is still in the Secret"
		}
		for kind, bundle := range r.bundles(t, group) {
			if base64.StdEncoding.EncodeToString(bundle) == data["ca.crt"] {
				return false, "it is trusted by the " + kind
			}
		}
		why := r.verifies(t, namespace, group, time.Now())
		return why == "", why
	})
}
