// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/upstream"
)

// F17: a branch is rewritten, which is followed, and deleted. The source says so, and the
// deployment keeps what it runs, and goes on to keep it from drifting.
func TestF17RunningStateIsKept(t *testing.T) {
	r := newRig(t)
	namespace := r.Namespace(t)
	git, err := upstream.NewGit()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = git.Close() })
	base := commit(t, git, 1)
	commit(t, git, 5)
	key := r.Deploy(t, namespace, "app", "", func(d *v1alpha1.BundleDeployment) {
		d.Spec.Interval = v1alpha1.Duration{Duration: time.Second}
		d.Spec.Source.Sources = []v1alpha1.Source{{Git: &v1alpha1.GitSource{URL: git.URL(), Ref: &v1alpha1.GitRef{Branch: "main"}}}}
	})
	r.Ready(t, key)
	if got := r.named(t, namespace, "kept"); len(got) != 5 {
		t.Fatalf("installed are %v", got)
	}
	if err := git.Move("refs/heads/main", base); err != nil {
		t.Fatal(err)
	}
	rewritten := commit(t, git, 4)
	moved := r.sourceUntil(t, key, "the forced push is followed", func(s *v1alpha1.BundleSource) bool {
		return s.Status.Resolved[0].Digest == "sha1:"+rewritten && conditions.IsTrue(s, meta.ReadyCondition)
	})
	applied := moved.Status.Artifact.Revision
	r.Until(t, key, "what was pushed is applied", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.Applied.Revision == applied && conditions.IsTrue(d, meta.ReadyCondition)
	})
	r.Eventually(t, t.Context(), "four objects", func(context.Context) (bool, string) {
		got := r.named(t, namespace, "kept")
		return len(got) == 4, fmt.Sprint(got)
	})
	if err := git.Delete("refs/heads/main"); err != nil {
		t.Fatal(err)
	}
	gone := r.sourceUntil(t, key, "the deleted branch is reported", func(s *v1alpha1.BundleSource) bool {
		return conditions.GetReason(s, meta.ReadyCondition) == v1alpha1.ReasonNotFound
	})
	if gone.Status.Artifact == nil || gone.Status.Artifact.Revision != applied {
		t.Errorf("what was published is gone: %v", gone.Status)
	}
	drifted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kept-02"}}
	if err := r.Admin.Delete(t.Context(), drifted); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	r.Eventually(t, t.Context(), "the deleted object is back", func(context.Context) (bool, string) {
		got := r.named(t, namespace, "kept")
		return len(got) == 4, fmt.Sprint(got)
	})
	t.Logf("restored %s after it was deleted, without the branch", time.Since(began).Round(time.Millisecond))
	r.Until(t, key, "the same revision is applied", func(d *v1alpha1.BundleDeployment) bool { return d.Status.Applied.Revision == applied })
}

// commit makes so many objects the content of the main branch.
func commit(t *testing.T, git *upstream.Git, objects int) string {
	t.Helper()
	hash, err := git.Commit(fmt.Sprint(objects, " objects"), configMaps("kept", objects))
	if err != nil {
		t.Fatal(err)
	}
	return hash
}
