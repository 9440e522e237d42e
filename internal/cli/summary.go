// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"regexp"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// summary is the status of an object of either kind.
type summary struct {
	ready     metav1.ConditionStatus // "" when no controller has written it yet
	reason    string
	message   string
	revision  string
	objects   *v1alpha1.ObjectCounts // nil for sources, and before anything is applied
	suspended bool
	deleting  bool
	unseen    bool // the status is about an older spec
	observed  int64
	handled   string // the request to reconcile that was handled last
	work      string // reason of Reconciling while it is True
	stalled   bool
	consent   string // what waits for approval, in words
}

// summarize reads an object.
func summarize(o object) summary {
	var s summary
	switch o := o.(type) {
	case *v1alpha1.BundleDeployment:
		s = summary{revision: o.Status.LastAppliedRevision, objects: o.Status.Objects, suspended: o.Spec.Suspend,
			observed: o.Status.ObservedGeneration, handled: o.Status.LastHandledReconcileAt}
	case *v1alpha1.BundleSource:
		s = summary{suspended: o.Spec.Suspend,
			observed: o.Status.ObservedGeneration, handled: o.Status.LastHandledReconcileAt}
		if o.Status.Artifact != nil {
			s.revision = o.Status.Artifact.Revision
		}
	}
	if ready := apimeta.FindStatusCondition(o.GetConditions(), meta.ReadyCondition); ready != nil {
		s.ready, s.reason, s.message = ready.Status, ready.Reason, ready.Message
	}
	if working := apimeta.FindStatusCondition(o.GetConditions(), meta.ReconcilingCondition); working != nil && working.Status == metav1.ConditionTrue {
		s.work = working.Reason
	}
	s.consent = consentText(o)
	s.stalled = apimeta.IsStatusConditionTrue(o.GetConditions(), meta.StalledCondition)
	s.deleting = !o.GetDeletionTimestamp().IsZero()
	s.unseen = s.observed < o.GetGeneration()
	return s
}

// isReady tells whether the current spec of the object is applied and Ready.
func (s summary) isReady() bool { return s.ready == metav1.ConditionTrue && !s.unseen && !s.deleting }

// inProgress tells whether an attempt is under way and its outcome is not known yet.
func (s summary) inProgress() bool {
	return s.unseen || s.ready == "" || s.work != "" && s.work != meta.ProgressingWithRetryReason
}

// readiness is the word for the column READY.
func (s summary) readiness() string {
	switch {
	case s.ready == "":
		return "-"
	case s.unseen && s.ready == metav1.ConditionTrue:
		return string(metav1.ConditionUnknown)
	}
	return string(s.ready)
}

// color is that of the readiness.
func (s summary) color() color {
	switch s.readiness() {
	case string(metav1.ConditionTrue):
		return green
	case string(metav1.ConditionFalse):
		return red
	}
	return yellow
}

// text is the state in words, the most important first.
func (s summary) text() string {
	var parts []string
	if s.deleting {
		parts = append(parts, "being deleted")
	}
	if s.suspended {
		parts = append(parts, "suspended")
	}
	if s.consent != "" {
		parts = append(parts, s.consent)
	}
	switch {
	case s.ready == "":
		parts = append(parts, "no controller has seen it yet")
	case s.unseen:
		parts = append(parts, "the controller has not seen the latest change yet; before")
	}
	if s.message == "" {
		return strings.Join(parts, ", ")
	}
	return strings.Join(append(parts, s.message), ": ")
}

// longDigest matches a digest or commit beyond what people compare.
var longDigest = regexp.MustCompile(`\b((?:sha1|sha256|sha384|sha512):[0-9a-f]{12})[0-9a-f]+`)

// shortRevision cuts the digests of a text to 12 digits.
func shortRevision(text string) string { return longDigest.ReplaceAllString(text, "$1") }
