// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// controller handles requests to reconcile, as configured.
type controller struct {
	mu      sync.Mutex
	handled []string
}

// play answers each request for objects of a kind with statuses, one after the other.
func (c *controller) play(tc testCluster, k kit.Kind, answers ...func(view.Object)) {
	tc.T.Helper()
	w, err := tc.Client.Watch(tc.T.Context(), k.List(), client.InNamespace(tc.Namespace))
	if err != nil {
		tc.T.Fatal(err)
	}
	tc.T.Cleanup(w.Stop)
	go func() {
		for event := range w.ResultChan() {
			o, ok := event.Object.(view.Object)
			if !ok || event.Type == watch.Deleted || view.Requested(o, view.Summarize(o)) == "" {
				continue
			}
			c.mu.Lock()
			c.handled = append(c.handled, k.Word+"/"+o.GetName())
			c.mu.Unlock()
			for _, answer := range answers {
				answer(o)
				// A failure shows as a request that is never handled.
				_ = tc.Client.Status().Update(tc.T.Context(), o)
			}
		}
	}()
}

// answer handles the request and sets conditions.
func answer(conditions ...metav1.Condition) func(view.Object) {
	return func(o view.Object) {
		at := o.GetAnnotations()[meta.ReconcileRequestAnnotation]
		switch o := o.(type) {
		case *v1alpha1.BundleDeployment:
			o.Status.LastHandledReconcileAt, o.Status.ObservedGeneration, o.Status.Conditions = at, o.Generation, conditions
		case *v1alpha1.BundleSource:
			o.Status.LastHandledReconcileAt, o.Status.ObservedGeneration, o.Status.Conditions = at, o.Generation, conditions
		}
	}
}

func TestReconcile(t *testing.T) {
	inOrder := answer(yes(meta.ReadyCondition, "in order"))
	atIt := answer(condition(meta.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonHealthProgressing, "waiting for Pods"), working())
	failed := answer(no(meta.ReadyCondition, v1alpha1.ReasonHealthFailed, "Pod x: no image"), retrying())
	for name, tc := range map[string]struct {
		reason  string
		args    []string
		answers []func(view.Object)
		source  []func(view.Object)
		code    int
		says    []string
		handled []string
	}{
		"ready": {reason: "the usual case", args: []string{"podinfo"}, answers: []func(view.Object){inOrder},
			says: []string{"reconcile requested, waiting for the outcome ...\n", "BundleDeployment podinfo: Ready, v1.3.0@sha256:aaaaaaa\n"}, handled: []string{"deployment/podinfo"}},
		"ready later": {reason: "progress is no outcome", args: []string{"podinfo"}, answers: []func(view.Object){atIt, inOrder},
			says: []string{": Ready, v1.3.0@"}, handled: []string{"deployment/podinfo"}},
		"fails": {reason: "a failure is an outcome, although it is tried again", args: []string{"podinfo"}, answers: []func(view.Object){atIt, failed}, code: kit.ExitNo,
			says: []string{": not Ready, HealthFailed\nPod x: no image\nWhat to do: See the status of the object"}, handled: []string{"deployment/podinfo"}},
		"to be approved": {reason: "that may take days", args: []string{"podinfo"}, code: kit.ExitNo, handled: []string{"deployment/podinfo"},
			answers: []func(view.Object){answer(condition(meta.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonHealthProgressing, "waiting for Pods"), working(),
				condition(v1alpha1.ApprovalPendingCondition, metav1.ConditionTrue, v1alpha1.ReasonApprovalRequired, "the plan waits"))},
			says: []string{"not Ready", "Pending: a plan waits for approval; see it with satchel plan podinfo, and decide with satchel approve podinfo"}},
		"takes long": {reason: "handled, and not settled", args: []string{"podinfo", "--timeout", "1500ms"}, answers: []func(view.Object){atIt}, code: kit.ExitNo,
			says: []string{"still in progress after 1.5s\nwaiting for Pods"}, handled: []string{"deployment/podinfo"}},
		"no controller": {reason: "no controller runs", args: []string{"podinfo", "--timeout", "500ms"}, code: kit.ExitError,
			says: []string{`the BundleDeployment "podinfo" was not handled within 500ms: check that its controller runs`}},
		"without waiting": {reason: "asked for, no more", args: []string{"podinfo", "--wait=false"},
			says: []string{"BundleDeployment podinfo: reconcile requested.\n"}},
		"source": {reason: "a source by itself", args: []string{"source", "podinfo"}, source: []func(view.Object){inOrder},
			says: []string{"BundleSource podinfo: Ready, v1.3.0@sha256:aaaaaaa\n"}, handled: []string{"source/podinfo"}},
		"with source": {reason: "the source first", args: []string{"podinfo", "--with-source"}, answers: []func(view.Object){inOrder}, source: []func(view.Object){inOrder},
			says: []string{"BundleSource podinfo: Ready", "BundleDeployment podinfo: Ready"}, handled: []string{"source/podinfo", "deployment/podinfo"}},
		"source fails": {reason: "the deployment is not asked for then", args: []string{"podinfo", "--with-source"}, answers: []func(view.Object){inOrder}, source: []func(view.Object){failed}, code: kit.ExitNo,
			says: []string{"BundleSource podinfo: not Ready"}, handled: []string{"source/podinfo"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster(t)
			c.Create(aSource())
			c.Create(aDeployment())
			var played controller
			if tc.answers != nil {
				played.play(c, kit.Deployments, tc.answers...)
			}
			if tc.source != nil {
				played.play(c, kit.Sources, tc.source...)
			}
			c.Want(c.Satchel(append([]string{"reconcile"}, tc.args...)...), tc.code, tc.says...)
			played.mu.Lock()
			defer played.mu.Unlock()
			if diff := cmp.Diff(tc.handled, played.handled); diff != "" {
				t.Errorf("%s: handled -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReconcileRefuses(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aSource(func(s *v1alpha1.BundleSource) { s.Spec.Suspend = true }))
	c.Create(aDeployment())
	c.Create(aDeployment(called("paused"), func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true }))
	c.Want(c.Satchel("reconcile", "paused"), kit.ExitError, `Error: the BundleDeployment "paused" is suspended, so nothing would happen: resume it, with satchel resume paused`)
	c.Want(c.Satchel("reconcile", "podinfo", "--with-source"), kit.ExitError, `the BundleSource "podinfo" is suspended`)
	c.Want(c.Satchel("reconcile", "source", "none"), kit.ExitError, `there is no BundleSource "none"`, "there is: podinfo")
}

// TestReconcileWhileItGoes deletes the object during the wait.
func TestReconcileWhileItGoes(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aDeployment())
	gone := make(chan struct{})
	var played controller
	played.play(c, kit.Deployments, func(o view.Object) {
		defer close(gone)
		if err := c.Client.Delete(t.Context(), o); err != nil {
			t.Error(err)
		}
	})
	got := c.Satchel("reconcile", "podinfo", "--timeout", "20s")
	<-gone
	c.Want(got, kit.ExitError, `Error: there is no BundleDeployment "podinfo"`)
}

// TestReconcileInterrupted presses Ctrl-C during the wait.
func TestReconcileInterrupted(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aDeployment())
	ctx, interrupt := context.WithCancel(t.Context())
	var played controller
	played.play(c, kit.Deployments, func(view.Object) { interrupt() })
	var out, errOut bytes.Buffer
	code := Run(ctx, kit.Program{Path: "satchel", Now: time.Now, Streams: genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}},
		[]string{"--kubeconfig", c.CP.KubeconfigPath(), "-n", c.Namespace, "reconcile", "podinfo"})
	if code != kit.ExitInterrupted || !strings.HasSuffix(errOut.String(), "Interrupted.\n") {
		t.Errorf("exit %d: %s", code, errOut.String())
	}
}
