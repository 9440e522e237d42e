// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// commitOf is an origin revision of a branch.
func commitOf(digit string) string { return "main@sha1:" + strings.Repeat(digit, 40) }

// moveOrigin gives the published artifact another origin, as a commit to other files does.
func (r *rig) moveOrigin(t *testing.T, namespace, name, origin string) {
	t.Helper()
	r.setSource(t, namespace, name, func(s *v1alpha1.BundleSource) { s.Status.OriginRevision = origin })
}

// A commit that does not touch the bundle shows in the status by one write, and nothing is applied or asked. The history keeps
// the commit that was installed.
func TestOriginMoves(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publishFrom(t, namespace, "app", "main", commitOf("1"), chart(nil))
	key := r.deploy(t, namespace, "app", seldom)
	d := r.ready(t, key, first.Revision)
	status := d.Status
	if status.Applied.OriginRevision != commitOf("1") || status.Applied.Version != "1.0.0" || status.Internal.Artifact.OriginRevision != commitOf("1") {
		t.Errorf("applied %q (%s), healthy %q", status.Applied.Version, status.Applied.OriginRevision, status.Internal.Artifact.OriginRevision)
	}
	r.told(t, namespace, "Installed: installed 1.0.0 ("+commitOf("1")+"): 1 object created, 0 updated")
	mark := r.mark(t)
	r.moveOrigin(t, namespace, "app", commitOf("2"))
	moved := r.until(t, key, "the new commit", func(d *v1alpha1.BundleDeployment) bool { return d.Status.Applied.OriginRevision == commitOf("2") })
	if moved.Status.Internal.Artifact.OriginRevision != commitOf("2") || !moved.Status.Applied.CompletionTime.Equal(status.Applied.CompletionTime) {
		t.Errorf("healthy is %q, applied at %s", moved.Status.Internal.Artifact.OriginRevision, moved.Status.Applied.CompletionTime)
	}
	if records := moved.Status.History; len(records) != 1 || records[0].OriginRevision != commitOf("1") || records[0].Version != "1.0.0" {
		t.Errorf("the history is %+v", records)
	}
	asked := slices.DeleteFunc(r.asked(t, namespace, mark), func(e controlplane.AuditEvent) bool {
		return e.Verb == "get" && e.Resource == "serviceaccounts" // as in each reconcile
	})
	if len(asked) != 1 || asked[0].Verb != "patch" || asked[0].Subresource != "status" || asked[0].Resource != "bundledeployments" {
		t.Errorf("a commit to other files caused %d requests, where one write of the status is wanted: %v", len(asked), asked)
	}
	second := r.publishFrom(t, namespace, "app", "main", commitOf("3"), chart(fstest.MapFS{"Chart.yaml": file("apiVersion: v2\nname: shop\nversion: 1.1.0\n")}))
	d = r.ready(t, key, second.Revision)
	if d.Status.Applied.OriginRevision != commitOf("3") || d.Status.Applied.Version != "1.1.0" || len(d.Status.History) != 2 || d.Status.History[1].OriginRevision != commitOf("1") {
		t.Errorf("applied %q (%s), the history is %+v", d.Status.Applied.Version, d.Status.Applied.OriginRevision, d.Status.History)
	}
	r.told(t, namespace, "Upgraded: upgraded from 1.0.0 ("+commitOf("2")+") to 1.1.0 ("+commitOf("3")+")")
}

// After a rollback the tags and digests of both revisions are known.
func TestOriginAfterRollback(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	image := func(tag, digit string) string { return tag + "@sha256:" + strings.Repeat(digit, 64) }
	first := r.publishFrom(t, namespace, "app", "v1.0.0", image("v1.0.0", "1"), good("one"))
	key := r.deploy(t, namespace, "app", both(quick, rollsBack(0, 4*time.Second)))
	r.ready(t, key, first.Revision)
	r.publishFrom(t, namespace, "app", "v2.0.0", image("v2.0.0", "2"), sickly("two"))
	d := r.unready(t, key, v1alpha1.ReasonRevisionRejected)
	status := d.Status
	if status.Applied.OriginRevision != image("v1.0.0", "1") || status.Applied.Version != "v1.0.0" {
		t.Errorf("applied %q (%s)", status.Applied.Version, status.Applied.OriginRevision)
	}
	if h := status.History; len(h) != 2 || h[0].OriginRevision != image("v2.0.0", "2") || h[0].Version != "v2.0.0" || h[1].OriginRevision != image("v1.0.0", "1") || h[1].Version != "v1.0.0" {
		t.Errorf("the history is %+v", h)
	}
	r.told(t, namespace, "RollingBack: rolling back to "+image("v1.0.0", "1"))
	r.moveOrigin(t, namespace, "app", image("v2.0.0", "3"))
	r.patch(t, r.must(t, aConfigMap(namespace, "a")), `{"data":{"value":"changed"}}`)
	r.holds(t, namespace, "a", "one")
	if d = r.unready(t, key, v1alpha1.ReasonRevisionRejected); d.Status.Applied.OriginRevision != image("v1.0.0", "1") {
		t.Errorf("the origin of the rejected revision moved, and that of the applied one is %s", d.Status.Applied.OriginRevision)
	}
}

// The digest of a plan does not depend on the origin: an approval holds after a commit to other files.
func TestOriginAndApproval(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publishFrom(t, namespace, "app", "main", commitOf("1"), chart(nil))
	key := r.deploy(t, namespace, "app", both(seldom, asking(v1alpha1.ApprovalManual)))
	_, plan := r.awaits(t, key, first.Revision, v1alpha1.ReasonApprovalRequired)
	r.moveOrigin(t, namespace, "app", commitOf("2"))
	at := time.Now().Format(time.RFC3339Nano)
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, meta.ReconcileRequestAnnotation, at)
	})
	r.until(t, key, "the request is handled", func(d *v1alpha1.BundleDeployment) bool { return d.Status.LastHandledReconcileAt == at })
	if _, again := r.awaits(t, key, first.Revision, v1alpha1.ReasonApprovalRequired); again != plan {
		t.Errorf("the origin moved, and the plan is %s instead of %s", again, plan)
	}
	r.decide(t, key, plan)
	if d := r.ready(t, key, first.Revision); d.Status.Applied.OriginRevision != commitOf("2") || d.Status.Internal.Executed.Plan != plan {
		t.Errorf("applied %s by the plan %s", d.Status.Applied.OriginRevision, d.Status.Internal.Executed.Plan)
	}
}
