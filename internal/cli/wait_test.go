// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

func TestReadinessOf(t *testing.T) {
	newer := aSource(func(s *v1alpha1.BundleSource) {
		s.Status.Artifact.Revision, s.Status.OriginRevision = "v1.4.0@"+digestA, "v1.4.0@"+digestB
	})
	for name, tc := range map[string]struct {
		reason string
		edit   func(*v1alpha1.BundleDeployment)
		source *v1alpha1.BundleSource
		wanted string
		want   kit.WaitState
	}{
		"ready":         {reason: "the usual end", source: aSource(), want: kit.WaitState{Done: true, Text: "Ready, v1.3.0@sha256:aaaaaaa"}},
		"flux":          {reason: "a source of Flux is not looked at", want: kit.WaitState{Done: true, Text: "Ready, v1.3.0@sha256:aaaaaaa"}},
		"unseen":        {reason: "what is Ready is the spec of before", edit: func(d *v1alpha1.BundleDeployment) { d.Generation = 3 }, source: aSource(), want: kit.WaitState{Text: "the controller has not seen the latest change yet; before: revision v1.3.0 is applied and healthy"}},
		"newer source":  {reason: "what is Ready is the revision of before", source: newer, want: kit.WaitState{Text: "its source has another revision, v1.4.0@sha256:ccccccc"}},
		"source edited": {reason: "what the source names now is not known yet", source: aSource(func(s *v1alpha1.BundleSource) { s.Generation = 3 }), want: kit.WaitState{Text: "its source podinfo is being fetched"}},
		"source frozen": {reason: "a suspended source does not move", source: aSource(func(s *v1alpha1.BundleSource) { s.Generation, s.Spec.Suspend = 3, true }), want: kit.WaitState{Done: true, Text: "Ready, v1.3.0@sha256:aaaaaaa"}},
		"asked": {reason: "a look was asked for", edit: func(d *v1alpha1.BundleDeployment) {
			d.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "x"}
		}, source: aSource(), want: kit.WaitState{Text: "a reconcile was requested and is not handled yet"}},
		"suspended": {reason: "Ready is Ready", edit: func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true }, source: aSource(), want: kit.WaitState{Done: true, Text: "Ready, v1.3.0@sha256:aaaaaaa"}},
		"suspended and not ready": {reason: "nothing would happen", edit: func(d *v1alpha1.BundleDeployment) {
			d.Spec.Suspend = true
			with(no(meta.ReadyCondition, v1alpha1.ReasonHealthFailed, "Pod x"))(d)
		}, source: aSource(), want: kit.WaitState{Never: true, Text: "it is suspended: Pod x"}},
		"stalled": {reason: "nothing happens by itself", edit: with(no(meta.ReadyCondition, v1alpha1.ReasonPlanRefused, "2 obstacles\none"),
			condition(meta.StalledCondition, metav1.ConditionTrue, v1alpha1.ReasonPlanRefused, "")), source: aSource(), want: kit.WaitState{Never: true, Text: "it is stalled: 2 obstacles …"}},
		"going":            {reason: "it will not be Ready again", edit: func(d *v1alpha1.BundleDeployment) { at := ago(time.Second); d.DeletionTimestamp = &at }, source: aSource(), want: kit.WaitState{Never: true, Text: "it is being deleted"}},
		"revision":         {reason: "the wanted one", source: aSource(), wanted: "v1.3.0", want: kit.WaitState{Done: true, Text: "Ready, v1.3.0@sha256:aaaaaaa"}},
		"version":          {reason: "as people say it", source: aSource(), wanted: "1.3.0", want: kit.WaitState{Done: true, Text: "Ready, v1.3.0@sha256:aaaaaaa"}},
		"upstream digest":  {reason: "as the registry shows it", source: aSource(), wanted: digestA[:14], want: kit.WaitState{Done: true, Text: "Ready, v1.3.0@sha256:aaaaaaa"}},
		"another revision": {reason: "it may come", source: aSource(), wanted: "v1.4.0", want: kit.WaitState{Text: "it is Ready with v1.3.0@sha256:aaaaaaa"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := aDeployment()
			if tc.edit != nil {
				tc.edit(d)
			}
			if got := kit.ReadinessOf(d, tc.source, tc.wanted, tc.wanted != ""); got != tc.want {
				t.Errorf("%s: got %+v, want %+v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestMatchesRevision(t *testing.T) {
	for name, tc := range map[string]struct {
		reason           string
		revision, wanted string
		want             bool
	}{
		"in full":          {"as status has it", revisionA, revisionA, true},
		"its name":         {"as people say it", revisionA, "v1.2.0", true},
		"another name":     {"names are not cut", revisionA, "v1.2", false},
		"digest":           {"as a short one is shown", revisionA, digestA[:19], true},
		"digits":           {"without the algorithm", revisionA, digestA[7:19], true},
		"too few digits":   {"which could be a name", revisionA, digestA[7:12], false},
		"another digest":   {"", revisionA, digestB, false},
		"shortened":        {"as it is shown in lists", revisionA, "v1.2.0@" + digestA[:19], true},
		"name and another": {"both have to be right", revisionA, "v1.3.0@" + digestA, false},
		"without a name":   {"a pinned source's", digestA, digestA[:19], true},
		"other algorithm":  {"the same digits by chance", revisionA, "sha512:" + digestA[7:30], false},
		"none":             {"nothing is not everything", revisionA, "", false},
		"nothing there":    {"before the first revision", "", "v1.2.0", false},
		"neither":          {"", "", "", false},
	} {
		if got := view.MatchesRevision(tc.revision, tc.wanted); got != tc.want {
			t.Errorf("%s (%s): matchesRevision(%q, %q) = %t", name, tc.reason, tc.revision, tc.wanted, got)
		}
	}
}

func TestWait(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aSource())
	c.Create(aDeployment())
	c.Create(aDeployment(called("slow"), with(condition(meta.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonHealthProgressing, "waiting for Pod "+steering), working())))
	c.Want(c.Satchel("wait", "podinfo", "source/podinfo"), kit.ExitOK, "BundleDeployment podinfo: Ready, v1.3.0@sha256:aaaaaaa", "BundleSource podinfo: Ready, v1.3.0@")
	c.Want(c.Satchel("wait", "slow", "podinfo", "--timeout", "700ms"), kit.ExitNo, "BundleDeployment slow: waiting: waiting for Pod ", "BundleDeployment slow: not within 700ms: waiting for Pod ")
	if got := c.Satchel("wait", "slow", "--timeout", "1ms"); hiddenIn(got.Out+got.Err) != "" {
		t.Error(hiddenIn(got.Out + got.Err))
	}
	c.Want(c.Satchel("wait", "none"), kit.ExitError, `there is no BundleDeployment "none"`)
	c.Want(c.Satchel("wait", "none", "--for", "deleted"), kit.ExitOK, "BundleDeployment none: gone\n")
	c.Want(c.Satchel("wait", "podinfo", "--for", "revision=v2", "--timeout", "100ms"), kit.ExitNo, "not within 100ms: it is Ready with v1.3.0@")
	c.Want(c.Satchel("wait", "--all", "--for", "deleted", "--timeout", "100ms"), kit.ExitNo, "its deletion has not been requested")

	slow := c.deployment("slow")
	done := make(chan outcome)
	go func() { done <- c.Satchel("wait", "slow", "--timeout", "60s") }()
	slow.Status.Conditions = []metav1.Condition{yes(meta.ReadyCondition, "in order")}
	if err := c.Client.Status().Update(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	c.Want(<-done, kit.ExitOK, "BundleDeployment slow: Ready")

	go func() { done <- c.Satchel("wait", "slow", "--for", "deleted", "--timeout", "60s") }()
	if err := c.Client.Delete(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	c.Want(<-done, kit.ExitOK, "BundleDeployment slow: gone\n")
}
