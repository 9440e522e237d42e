// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// serve replaces the Pods of operator: it serves its webhooks on a local port, with the
// certificate of the Secret, as a Pod would.
func (r *rig) serve(t *testing.T, namespace string) (port int) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Handler: http.HandlerFunc(answer), ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			var secret corev1.Secret
			if err := r.admin.Get(context.WithoutCancel(t.Context()), client.ObjectKey{Namespace: namespace, Name: servingSecret}, &secret); err != nil {
				return nil, err
			}
			pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
			return &pair, err
		}},
	}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it listens on TCP
}

// answer refuses objects of the name refused, leaves all others as they are, and
// converts by the version alone.
func answer(w http.ResponseWriter, request *http.Request) {
	var review map[string]any
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	asked, _ := review["request"].(map[string]any)
	response := map[string]any{"uid": asked["uid"], "allowed": asked["name"] != "refused"}
	if request.URL.Path == "/convert" {
		objects, _ := asked["objects"].([]any)
		for _, object := range objects {
			object.(map[string]any)["apiVersion"] = asked["desiredAPIVersion"] //nolint:forcetypeassert // of the API server
		}
		response = map[string]any{"uid": asked["uid"], "convertedObjects": objects, "result": map[string]any{"status": "Success"}}
	}
	review["response"] = response
	delete(review, "request")
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// serving is operator with webhooks that must answer, on a port.
func serving(group string, port int) fstest.MapFS {
	files := operator(group, "1.0.0")
	csv := files["manifests/clusterserviceversion.yaml"]
	csv.Data = []byte(strings.NewReplacer("containerPort: 443", "containerPort: "+strconv.Itoa(port), "failurePolicy: Ignore", "failurePolicy: Fail").Replace(string(csv.Data)))
	return files
}

// The API server really calls the webhooks, and trusts the certificate, also after
// everything was issued again.
func TestWebhooksAreCalled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	published := r.publish(t, namespace, "app", "v1", serving(group, r.serve(t, namespace)))
	key := r.deploy(t, namespace, "app", rarely)
	r.ready(t, key, published.Revision)
	r.called(t, namespace, group, "first")

	// Everything is issued again; a restart finds it missing.
	r.delete(t, object("v1", "Secret", namespace, authoritySecret))
	r.delete(t, object("v1", "Secret", namespace, servingSecret))
	d := r.drive(t, key, nil)
	d.reconcile(t)
	r.called(t, namespace, group, "second")
}

// called creates objects, which two webhooks have to allow, and reads one in another
// version, which the third converts. The Service leads to this machine meanwhile; it is
// changed again when a reconcile, which may still be under way, corrected it.
func (r *rig) called(t *testing.T, namespace, group, name string) {
	t.Helper()
	redirected := func(what string, done func(ctx context.Context) (bool, string)) {
		t.Helper()
		r.eventually(t, t.Context(), what, func(ctx context.Context) (bool, string) {
			if err := r.redirect(ctx, namespace); err != nil {
				return false, err.Error()
			}
			return done(ctx)
		})
	}
	redirected("the webhooks answer", func(ctx context.Context) (bool, string) {
		err := r.admin.Create(ctx, object(group+"/v1", "Gadget", namespace, name))
		return err == nil, fmt.Sprint(err)
	})
	t.Cleanup(func() {
		_ = r.admin.Delete(context.WithoutCancel(t.Context()), object(group+"/v1", "Gadget", namespace, name))
	})
	redirected("the webhook refuses", func(ctx context.Context) (bool, string) {
		err := r.admin.Create(ctx, object(group+"/v1", "Gadget", namespace, "refused"))
		if err == nil {
			t.Fatal("an object that the webhook refuses was created")
		}
		return strings.Contains(err.Error(), "denied the request"), err.Error()
	})
	redirected("the conversion answers", func(ctx context.Context) (bool, string) {
		err := r.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object(group+"/v2", "Gadget", namespace, name))
		return err == nil, fmt.Sprint(err)
	})
}

// redirect makes the Service of the webhooks an alias of this machine.
func (r *rig) redirect(ctx context.Context, namespace string) error {
	var service corev1.Service
	if err := r.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "gadgets-service"}, &service); err != nil {
		return err
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}
	return r.admin.Update(ctx, &service)
}

func TestI3CertificatesAreNotWrittenAtRest(t *testing.T) {
	r := newRig(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	published := r.publish(t, namespace, "app", "v1", operator(group, "1.0.0"))
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, published.Revision)
	r.looks(t, namespace, "installer", 2) // what is left to do after it was Ready
	watched := append(trusting(group), object("v1", "Secret", namespace, authoritySecret), object("v1", "Secret", namespace, servingSecret),
		object(v1alpha1.GroupVersion.String(), v1alpha1.BundleDeploymentKind, namespace, key.Name))
	before := r.versions(t, watched)
	reads := 0
	for _, e := range r.looks(t, namespace, "installer", 3) {
		if e.Verb == "get" && e.Resource == "secrets" && e.Name == authoritySecret {
			reads++
		}
		if isWrite(e) {
			t.Errorf("written at rest: %s", e)
		}
	}
	if reads < 3 {
		t.Errorf("the certificate authority was read %d times in three looks", reads)
	}
	if diff := cmp.Diff(before, r.versions(t, watched)); diff != "" {
		t.Errorf("resource versions changed at rest (-before +after):\n%s", diff)
	}
}

// versions reads the resource versions of objects.
func (r *rig) versions(t *testing.T, objects []*unstructured.Unstructured) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, o := range objects {
		found[o.GetKind()+" "+o.GetName()] = r.must(t, o.DeepCopy()).GetResourceVersion()
	}
	return found
}
