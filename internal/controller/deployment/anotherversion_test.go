// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// F56: the file with what was applied last is of another version of the controller, damaged or missing, and the newest revision is
// refused, or waits for an approval. The applied revision is converted again from its artifact, and its drift is corrected; unless it
// would become something else than what was applied.
func TestF56WithoutTheFile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	newer := func(content []byte) []byte {
		return []byte(strings.Replace(string(content), "snapshot 3", "snapshot 4", 1))
	}
	cut := func(content []byte) []byte { return content[:len(content)/2] }
	none := func([]byte) []byte { return nil }
	for name, c := range map[string]struct {
		file   func([]byte) []byte
		manual bool
		edit   func(*v1alpha1.BundleDeployment)
		// refused: it would become something else than what was applied.
		refused bool
	}{
		"a newer version": {file: newer},
		"an older version": {file: func(content []byte) []byte {
			return []byte(strings.Replace(string(content), "snapshot 3", "snapshot 1", 1))
		}},
		"damaged":                                {file: cut},
		"missing":                                {file: none},
		"a newer version, waits for an approval": {file: newer, manual: true},
		"the spec has changed since": {
			file: newer, refused: true,
			edit: func(d *v1alpha1.BundleDeployment) {
				d.Spec.CommonMetadata = &v1alpha1.CommonMetadata{Labels: map[string]string{"changed": "since"}}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "s.yaml": secret("s")})
			key := r.deploy(t, namespace, "app", rarely)
			r.ready(t, key, first.Revision)
			second := fstest.MapFS{"a.yaml": configMap("a", "two"), "s.yaml": secret("s"), "b.yaml": file("apiVersion: v1\nkind: Nothing\nmetadata: {name: b}")}
			if c.manual {
				delete(second, "b.yaml")
				r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
					d.Spec.Approval = &v1alpha1.ApprovalOptions{Mode: v1alpha1.ApprovalManual}
				})
			}
			newest := r.publish(t, namespace, "app", "v2", second)
			notApplied := func(d *v1alpha1.BundleDeployment) bool {
				return d.Status.LastAttemptedRevision == newest.Revision && (conditions.IsTrue(d, v1alpha1.ApprovalPendingCondition) || conditions.GetReason(d, "Ready") == v1alpha1.ReasonPlanRefused)
			}
			r.until(t, key, "not applied", notApplied)
			d := r.drive(t, key, nil)
			if c.edit != nil {
				r.edit(t, key, c.edit)
			}
			stored := filepath.Join(d.cache, "applied", string(d.deployment(t).UID)+".snapshot")
			content, err := os.ReadFile(stored)
			if err != nil {
				t.Fatal(err)
			}
			if changed := c.file(content); changed == nil {
				err = os.Remove(stored)
			} else {
				err = os.WriteFile(stored, changed, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			r.patch(t, aConfigMap(namespace, "a"), `{"data":{"value":"drift"}}`)
			for range 3 {
				d.reconcile(t)
				d.now = d.now.Add(time.Minute)
			}
			content, err = os.ReadFile(stored)
			if again := err == nil && strings.HasPrefix(string(content), "satchel snapshot 3\n"); again == c.refused {
				t.Errorf("it was converted again: %v, want %v (%.30q, %v):\n%s", again, !c.refused, content, err, describe(d.deployment(t)))
			}
			if value := r.value(t, t.Context(), namespace, "a"); value != "one" && !c.refused {
				t.Errorf("the value is %q:\n%s", value, describe(d.deployment(t)))
			}
		})
	}
}
