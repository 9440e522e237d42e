// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// M40: a spec that is too large is refused, and not in the cache. What the deployment applied before is still kept from drifting, and
// removed with it.
func TestM40LargeSpecs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, published.Revision)
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Helm = &v1alpha1.HelmOptions{Values: &apiextensionsv1.JSON{Raw: []byte(`{"large":"` + strings.Repeat("v", 300_000) + `"}`)}}
	})
	d := r.unready(t, key, v1alpha1.ReasonInvalidSpec)
	if message := conditions.GetMessage(d, meta.ReadyCondition); !strings.Contains(message, "more than 262144: move values") {
		t.Errorf("the message is %q", message)
	}
	if len(d.Spec.Helm.Values.Raw) < 300_000 {
		t.Errorf("the stored spec has %d bytes of values", len(d.Spec.Helm.Values.Raw))
	}
	if err := r.admin.Delete(t.Context(), aConfigMap(namespace, "a")); err != nil {
		t.Fatal(err)
	}
	r.eventually(t, t.Context(), "the deleted object comes back", func(ctx context.Context) (bool, string) {
		value := r.value(t, ctx, namespace, "a")
		return value == "one", value
	})
	r.remove(t, key)
	if r.get(t, aConfigMap(namespace, "a")) {
		t.Error("the object is left")
	}
}
