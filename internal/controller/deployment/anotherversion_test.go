// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/format"
)

// F56: the file with what was applied last is of another version of the controller, damaged or missing, and the newest revision is
// refused, or waits for an approval. The applied revision is converted again from its artifact, and its drift is corrected; unless it
// would become something else than what was applied.
func TestF56WithoutTheFile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	newer := func(content []byte) []byte {
		return []byte(strings.Replace(string(content), "snapshot 4", "snapshot 5", 1))
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
			return []byte(strings.Replace(string(content), "snapshot 4", "snapshot 1", 1))
		}},
		"damaged":                                {file: cut},
		"missing":                                {file: none},
		"a newer version, waits for an approval": {file: newer, manual: true},
		"the spec has changed since": {
			file: newer, refused: true,
			edit: func(d *v1alpha1.BundleDeployment) {
				d.Spec.Processors = []v1alpha1.Processor{{Metadata: &v1alpha1.MetadataProcessor{Labels: map[string]string{"changed": "since"}}}}
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
				return d.Status.Attempted.Revision == newest.Revision && (conditions.IsTrue(d, v1alpha1.ApprovalPendingCondition) || conditions.GetReason(d, "Ready") == v1alpha1.ReasonPlanRefused)
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
			if again := err == nil && strings.HasPrefix(string(content), "satchel snapshot 4\n"); again == c.refused {
				t.Errorf("it was converted again: %v, want %v (%.30q, %v):\n%s", again, !c.refused, content, err, describe(d.deployment(t)))
			}
			if value := r.value(t, t.Context(), namespace, "a"); value != "one" && !c.refused {
				t.Errorf("the value is %q:\n%s", value, describe(d.deployment(t)))
			}
		})
	}
}

// leave leaves a deployment to a driver.
func (r *rig) leave(t *testing.T, key client.ObjectKey) {
	t.Helper()
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { metav1.SetMetaDataLabel(&d.ObjectMeta, driven, "true") })
	t.Cleanup(func() { r.undrive(t, key) })
}

// another rewrites the file with what was applied last as one of another version.
func another(t *testing.T, d *driver) {
	t.Helper()
	stored := filepath.Join(d.cache, "applied", string(d.deployment(t).UID)+".snapshot")
	content, err := os.ReadFile(stored)
	if err == nil {
		err = os.WriteFile(stored, bytes.Replace(content, []byte(format.Snapshot.Line()), []byte("satchel snapshot 99\n"), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// F56: the hooks of a removal are found in the artifact, if the file with what was applied last is of another version.
func TestF56HooksOfARemoval(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	hook := hookMap("before-delete", hookTerms("pre-delete", 0, "before-hook-creation"), "ran")
	first := r.publish(t, namespace, "app", "v1", charted(fstest.MapFS{"a.yaml": configMap("a", "one"), "h.yaml": hook, "k.yaml": hookJob("k", hookTerms("pre-delete", 5, ""), "suspend: true")}))
	key := r.deploy(t, namespace, "app", rarely)
	r.ready(t, key, first.Revision)
	d := r.drive(t, key, nil)
	another(t, d)
	r.leave(t, key)
	if err := r.admin.Delete(t.Context(), d.deployment(t)); err != nil {
		t.Fatal(err)
	}
	r.eventually(t, t.Context(), "the hook runs", func(context.Context) (bool, string) {
		d.reconcile(t)
		found := d.deployment(t)
		return found.Status.Hooks.Running != nil && found.Status.Hooks.Running.Name == "k", describe(found)
	})
	if value := r.value(t, t.Context(), namespace, "before-delete"); value != "ran" {
		t.Errorf("the hook left %q", value)
	}
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
		d.Annotations = map[string]string{v1alpha1.DeleteHooksAnnotation: "Skip"}
	})
}

// F56: the packed inventory is of another version. The objects are found again, nothing is written, and no approval is asked for.
func TestF56InventoryOfAnotherVersion(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", rarely)
	r.ready(t, key, first.Revision)
	r.edit(t, key, asking(v1alpha1.ApprovalManual))
	r.ready(t, key, first.Revision)
	d := r.drive(t, key, nil)
	r.leave(t, key)
	before := r.must(t, aConfigMap(namespace, "a")).GetResourceVersion()
	var packed bytes.Buffer
	writer := zlib.NewWriter(&packed)
	if _, err := writer.Write([]byte("\x63of another version")); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	found := d.deployment(t)
	found.Status.Inventory.Entries, found.Status.Inventory.Compressed = nil, base64.StdEncoding.EncodeToString(packed.Bytes())
	if err := r.admin.Status().Update(t.Context(), found); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		d.reconcile(t)
		d.now = d.now.Add(time.Minute)
	}
	found = d.deployment(t)
	if len(found.Status.Inventory.Entries) != 1 || found.Status.Inventory.Compressed != "" || !isReady(found) || conditions.IsTrue(found, v1alpha1.ApprovalPendingCondition) {
		t.Errorf("the inventory is %+v:\n%s", found.Status.Inventory, describe(found))
	}
	if now := r.must(t, aConfigMap(namespace, "a")).GetResourceVersion(); now != before {
		t.Errorf("the object was written")
	}
}

// F56: the digests of the executed plan are of another version. It needs no other approval, unless something changed since, also if that has no effect on the objects.
func TestF56DigestsOfAnotherVersion(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, asks := range map[string]bool{"nothing changed": false, "another revision": true, "another mode of pruning": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "s.yaml": secret("s")})
			key := r.deploy(t, namespace, "app", both(rarely, asking(v1alpha1.ApprovalManual)))
			waits := r.until(t, key, "a plan", func(d *v1alpha1.BundleDeployment) bool {
				return conditions.IsTrue(d, v1alpha1.ApprovalPendingCondition)
			})
			r.decide(t, key, waits.Status.Plan.Digest)
			r.ready(t, key, first.Revision)
			d := r.drive(t, key, nil)
			r.leave(t, key)
			switch name {
			case "another revision":
				r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two"), "s.yaml": secret("s")})
			case "another mode of pruning":
				r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Prune.Timing = v1alpha1.PruneBeforeApply })
			}
			found := d.deployment(t)
			record := found.Status.Internal.Executed
			record.Key, record.Terms, record.Proof = "sha256:another", "sha256:another", ""
			text, err := json.Marshal(record)
			if err != nil {
				t.Fatal(err)
			}
			record.Proof = "plan/99:" + d.Keys.Sign("satchel.dev/proof/v99", string(found.UID), "executed", string(text))
			if err := r.admin.Status().Update(t.Context(), found); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				d.reconcile(t)
				d.now = d.now.Add(time.Minute)
			}
			found = d.deployment(t)
			if got := conditions.IsTrue(found, v1alpha1.ApprovalPendingCondition); got != asks || !asks && (!isReady(found) || !strings.HasPrefix(found.Status.Internal.Executed.Proof, format.Plan.Name())) {
				t.Errorf("it asks for an approval: %v, want %v; proof %s:\n%s", got, asks, found.Status.Internal.Executed.Proof, describe(found))
			}
		})
	}
}

// F56: a harmless revision goes on by itself in the mode OnEscalation, though the file with what was applied last is of another version.
func TestF56EscalationsWithoutTheFile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", both(rarely, asking(v1alpha1.ApprovalOnEscalation)))
	r.until(t, key, "begun", func(d *v1alpha1.BundleDeployment) bool {
		if conditions.IsTrue(d, v1alpha1.ApprovalPendingCondition) {
			r.decide(t, key, d.Status.Plan.Digest)
		}
		return isReady(d) && d.Status.Applied.Revision == first.Revision
	})
	d := r.drive(t, key, nil)
	r.leave(t, key)
	another(t, d)
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
	for range 4 {
		d.reconcile(t)
		d.now = d.now.Add(time.Minute)
	}
	if found := d.deployment(t); found.Status.Applied.Revision != second.Revision {
		t.Errorf("it is not applied:\n%s", describe(found))
	}
}
