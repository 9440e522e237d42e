// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"slices"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// read reads the current state of an object.
func (c testCluster) read(o view.Object, name string) {
	c.T.Helper()
	if err := c.Client.Get(c.T.Context(), client.ObjectKey{Namespace: c.Namespace, Name: name}, o); err != nil {
		c.T.Fatal(err)
	}
}

func (c testCluster) deployment(name string) *v1alpha1.BundleDeployment {
	c.T.Helper()
	d := new(v1alpha1.BundleDeployment)
	c.read(d, name)
	return d
}

func (c testCluster) source(name string) *v1alpha1.BundleSource {
	c.T.Helper()
	s := new(v1alpha1.BundleSource)
	c.read(s, name)
	return s
}

func TestSuspend(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aSource())
	c.Create(aDeployment(func(d *v1alpha1.BundleDeployment) { d.Labels = map[string]string{"team": "a"} }))
	c.Create(aDeployment(called("other"), func(d *v1alpha1.BundleDeployment) {
		d.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
	}))

	c.Want(c.Satchel("suspend", "podinfo", "none"), kit.ExitError, `there is no BundleDeployment "none"`)
	c.Want(c.Satchel("suspend", "podinfo", "--dry-run"), kit.ExitOK, "BundleDeployment podinfo: suspended (dry run)\n")
	exported := c.Satchel("suspend", "podinfo", "other", "--export")
	c.Want(exported, kit.ExitOK, "kind: BundleDeployment\n", "name: podinfo\n", "suspend: true\n---\n", "name: other\n")
	if c.deployment("podinfo").Spec.Suspend {
		t.Error("something was done although one object is missing, or in a dry run")
	}
	c.Want(c.Satchel("suspend", "-l", "team=a"), kit.ExitOK, "BundleDeployment podinfo: suspended\n")
	c.Want(c.Satchel("suspend", "all", "--all"), kit.ExitOK, "BundleDeployment podinfo: suspended already\n", "BundleDeployment other: suspended\n", "BundleSource podinfo: suspended\n",
		"Warning: BundleDeployment other comes from Flux Kustomization flux-system/apps, which may undo this: commit suspend: true there")
	if !c.deployment("podinfo").Spec.Suspend || !c.deployment("other").Spec.Suspend || !c.source("podinfo").Spec.Suspend {
		t.Error("not all are suspended")
	}
	managers := c.deployment("podinfo").ManagedFields
	if !slices.ContainsFunc(managers, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == kit.FieldManager }) {
		t.Errorf("the field has no manager of its own: %v", managers)
	}
	c.Want(c.Satchel("reconcile", "podinfo"), kit.ExitError, "satchel resume podinfo")
	c.Want(c.Satchel("suspend", "-l", "team=none"), kit.ExitOK, "Nothing found with the labels team=none")
}

func TestResume(t *testing.T) {
	c := newTestCluster(t)
	paused := func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true }
	c.Create(aSource(func(s *v1alpha1.BundleSource) { s.Spec.Suspend = true }))
	c.Create(aDeployment(paused))
	c.Create(aDeployment(paused, called("broken")))
	c.Create(aDeployment(called("running")))
	c.Want(c.Satchel("resume", "podinfo", "--dry-run"), kit.ExitOK, "BundleDeployment podinfo: resumed (dry run)\n")
	c.Want(c.Satchel("resume", "podinfo", "--timeout", "300ms"), kit.ExitError, "BundleDeployment podinfo: resumed\n", "was not handled within 300ms")
	if d := c.deployment("podinfo"); d.Spec.Suspend || d.Annotations[meta.ReconcileRequestAnnotation] == "" {
		t.Errorf("it is not resumed, or no look was asked for: %v", d.Annotations)
	}
	var played controller
	played.play(c, kit.Deployments, func(o view.Object) {
		if o.GetName() == "broken" {
			answer(no(meta.ReadyCondition, v1alpha1.ReasonHealthFailed, "Pod x: no image"), retrying())(o)
			return
		}
		answer(yes(meta.ReadyCondition, "in order"))(o)
	})
	played.play(c, kit.Sources, answer(yes(meta.ReadyCondition, "in order")))
	c.Want(c.Satchel("resume", "all", "--all", "--timeout", "30s"), kit.ExitNo, "BundleDeployment running: is not suspended\n", "BundleDeployment podinfo: is not suspended\n",
		"BundleDeployment broken: resumed\n", "BundleDeployment broken: not Ready, HealthFailed\nPod x: no image\n", "BundleSource podinfo: resumed\n", "BundleSource podinfo: Ready, v1.3.0@")
	c.Want(c.Satchel("resume", "broken"), kit.ExitOK, "BundleDeployment broken: is not suspended\n")

	delivered := c.deployment("running")
	delivered.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
	delivered.Spec.Suspend = true
	if err := c.Client.Update(t.Context(), delivered, client.FieldOwner("kustomize-controller")); err != nil {
		t.Fatal(err)
	}
	c.Want(c.Satchel("suspend", "podinfo"), kit.ExitOK, "BundleDeployment podinfo: suspended\n")
	c.Want(c.Satchel("resume", "running", "podinfo", "--wait=false"), kit.ExitError, "BundleDeployment podinfo: resumed\n",
		"spec.suspend of BundleDeployment "+c.Namespace+"/running is set by Flux Kustomization flux-system/apps, which would set it again: remove it there")
}

// TestSuspendInlineSource: an inline source is changed in its deployment, because the controller undoes other changes.
func TestSuspendInlineSource(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aDeployment())
	owner := c.deployment("podinfo")
	c.Create(aSource(func(s *v1alpha1.BundleSource) {
		s.OwnerReferences = ownedBy(owner)
	}))
	c.Want(c.Satchel("suspend", "source", "podinfo"), kit.ExitOK, "BundleSource podinfo: suspended, by spec.source.suspend of BundleDeployment podinfo, which it belongs to\n")
	if c.source("podinfo").Spec.Suspend || !c.deployment("podinfo").Spec.Source.Suspend {
		t.Error("the source itself was changed, or its deployment was not")
	}
	c.Want(c.Satchel("suspend", "source", "podinfo"), kit.ExitOK, "BundleSource podinfo: suspended already\n")
	c.Want(c.Satchel("resume", "source", "podinfo", "--export"), kit.ExitOK, "kind: BundleDeployment\n", "  source:\n    suspend: null\n")
	c.Want(c.Satchel("resume", "source", "podinfo", "--wait=false"), kit.ExitOK, "BundleSource podinfo: resumed, by spec.source.suspend of BundleDeployment podinfo, which it belongs to\n")
	if c.deployment("podinfo").Spec.Source.Suspend {
		t.Error("the source is still suspended")
	}
}

func TestRetry(t *testing.T) {
	failed := no(meta.ReadyCondition, v1alpha1.ReasonRevisionRejected, "revision v1.4.0 was rejected")
	stalled := condition(meta.StalledCondition, metav1.ConditionTrue, v1alpha1.ReasonRevisionRejected, "")
	c := newTestCluster(t)
	c.Create(aSource())
	c.Create(aDeployment())
	c.Create(aDeployment(called("rejected"), with(failed, stalled), func(d *v1alpha1.BundleDeployment) { d.Status.Rejected.Revision = revisionA }))
	c.Create(aDeployment(called("sourceless"), reference, with(no(meta.ReadyCondition, v1alpha1.ReasonSourceNotReady, "no"),
		no(v1alpha1.SourceReadyCondition, v1alpha1.ReasonSourceNotReady, "no"))))
	c.Create(aDeployment(called("paused"), func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true }))
	var played, fetched controller
	played.play(c, kit.Deployments, answer(yes(meta.ReadyCondition, "in order")))
	fetched.play(c, kit.Sources, answer(yes(meta.ReadyCondition, "in order")))

	c.Want(c.Satchel("reconcile", "podinfo", "--retry"), kit.ExitOK, "BundleDeployment podinfo: Ready with v1.3.0@sha256:aaaaaaa, so there is nothing to retry\n")
	c.Want(c.Satchel("reconcile", "paused", "--retry"), kit.ExitError, "resume it, with satchel resume paused")
	c.Want(c.Satchel("reconcile", "rejected", "--retry"), kit.ExitOK, "revision v1.2.0@sha256:aaaaaaaaaaaa was rejected, and is retried\n", "BundleDeployment rejected: Ready")
	c.Want(c.Satchel("reconcile", "source/podinfo", "--retry"), kit.ExitError, "--retry is for deployments")
	played.mu.Lock()
	defer played.mu.Unlock()
	if !slices.Equal(played.handled, []string{"deployment/rejected"}) {
		t.Errorf("handled %v", played.handled)
	}
}

// TestRetryAtSource: if the source failed, it is reconciled first.
func TestRetryAtSource(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aSource(func(s *v1alpha1.BundleSource) { s.Status.Artifact = nil; s.Status.Resolved = nil },
		func(s *v1alpha1.BundleSource) {
			s.Status.Conditions = []metav1.Condition{no(meta.ReadyCondition, v1alpha1.ReasonUnreachable, "no route"), retrying()}
		}))
	c.Create(aDeployment(with(no(meta.ReadyCondition, v1alpha1.ReasonSourceNotReady, "no"), no(v1alpha1.SourceReadyCondition, v1alpha1.ReasonSourceNotReady, "no"))))
	var played, fetched controller
	played.play(c, kit.Deployments, answer(yes(meta.ReadyCondition, "in order")))
	fetched.play(c, kit.Sources, answer(yes(meta.ReadyCondition, "in order")))
	c.Want(c.Satchel("reconcile", "podinfo", "--retry"), kit.ExitOK, "SourceReady failed (Unreachable), and is retried\n", "BundleSource podinfo: Ready", "BundleDeployment podinfo: Ready")
}

func ownedBy(d *v1alpha1.BundleDeployment) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(d, v1alpha1.GroupVersion.WithKind(v1alpha1.BundleDeploymentKind))}
}

// parse reads an object from YAML.
func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// newPipe is an input without content.
func newPipe() (in io.Reader, closeIt func()) {
	r, w := io.Pipe()
	return r, func() { _ = w.Close() }
}
