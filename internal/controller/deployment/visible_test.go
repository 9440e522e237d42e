// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/visible"
)

// TestM30NothingHiddenIsTold: the API server refuses an object, and then warns of it, with terminal escape sequences and
// bidirectional control characters. Status and events contain them only escaped, and each event is recorded once.
func TestM30NothingHiddenIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	const message, escaped = `'fine\u202eenif \u200b\u001b[2J\u3164'`, `fine\u202eenif \u200b\u001b[2J\u3164`
	rules := policy{operation: admissionv1.Create, resource: "configmaps", rule: "object.metadata.name == 'root'", message: message}
	lift := r.refuse(t, namespace, rules, func(ctx context.Context) error {
		return r.admin.Create(ctx, aConfigMap(namespace, "probe"), client.DryRunAll)
	})
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", quick)
	r.until(t, key, "the refusal is told", says(escaped))
	r.handled(t, key)
	r.nothingHidden(t, key)
	told := 0
	for _, event := range r.events(t, namespace, "app") {
		if strings.Contains(event, escaped) {
			told++
		}
	}
	if told == 0 || told > 3 { // one each time that the failing step is another one
		t.Errorf("%d events tell of one refusal", told)
	}
	lift()
	r.handled(t, key)
	r.eventually(t, t.Context(), "the object is there", func(context.Context) (bool, string) {
		return r.get(t, aConfigMap(namespace, "a")), fmt.Sprint(r.events(t, namespace, "app"))
	})
	r.ready(t, key, published.Revision)
	r.nothingHidden(t, key)
}

// nothingHidden looks for hidden characters in the status of a deployment and in the events about it.
func (r *rig) nothingHidden(t *testing.T, key client.ObjectKey) {
	t.Helper()
	found := r.must(t, object(v1alpha1.GroupVersion.String(), v1alpha1.BundleDeploymentKind, key.Namespace, key.Name))
	status, err := json.Marshal(found.Object["status"])
	if err != nil {
		t.Fatal(err)
	}
	decoded := map[string]any{}
	if err := json.Unmarshal(status, &decoded); err != nil {
		t.Fatal(err)
	}
	for _, text := range append(r.events(t, key.Namespace, key.Name), fmt.Sprint(decoded)) {
		if strings.ContainsFunc(strings.NewReplacer("\n", "", "\t", "").Replace(text), visible.Hidden) {
			t.Errorf("this hides something: %q", text)
		}
	}
}
