// SPDX-License-Identifier: Apache-2.0

package view

import (
	"regexp"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/revision"
)

// Summary is the status of an object of any kind.
type Summary struct {
	Ready     metav1.ConditionStatus // "" when no controller has written it yet
	Reason    string
	Message   string
	Revision  string
	Origin    string                 // origin revision of Revision
	Version   string                 // of the bundle; "" for sources and catalogs
	Objects   *v1alpha1.ObjectCounts // nil for sources and catalogs, and before anything is applied
	Suspended bool
	Deleting  bool
	Unseen    bool // the status is about an older spec
	observed  int64
	Handled   string // the request to reconcile that was handled last
	work      string // reason of Reconciling while it is True
	Stalled   bool
	Pending   string // what waits for approval, in words
}

// Summarize reads an object.
func Summarize(o Object) Summary {
	var s Summary
	switch o := o.(type) {
	case *v1alpha1.BundleDeployment:
		s = Summary{Revision: o.Status.Applied.Revision, Origin: o.Status.Applied.OriginRevision, Version: o.Status.Applied.Version, Objects: o.Status.Objects, Suspended: o.Spec.Suspend,
			observed: o.Status.ObservedGeneration, Handled: o.Status.LastHandledReconcileAt}
	case *v1alpha1.BundleSource:
		s = Summary{Suspended: o.Spec.Suspend,
			observed: o.Status.ObservedGeneration, Handled: o.Status.LastHandledReconcileAt}
		if o.Status.Artifact != nil {
			s.Revision, s.Origin = o.Status.Artifact.Revision, o.Status.OriginRevision
		}
	case *v1alpha1.BundleRollout:
		s = Summary{Suspended: o.Spec.Suspend,
			observed: o.Status.ObservedGeneration, Handled: o.Status.LastHandledReconcileAt}
		if o.Status.UpdateRevision != nil {
			s.Revision = o.Status.UpdateRevision.Revision
			s.Origin = s.Revision
		}
	case *v1alpha1.BundleCatalog:
		s = Summary{Suspended: o.Spec.Suspend, Origin: catalogOrigin(o),
			observed: o.Status.ObservedGeneration, Handled: o.Status.LastHandledReconcileAt}
		if o.Status.Content != nil {
			s.Revision = o.Status.Content.Digest
		}
	}
	if ready := apimeta.FindStatusCondition(o.GetConditions(), meta.ReadyCondition); ready != nil {
		s.Ready, s.Reason, s.Message = ready.Status, ready.Reason, ready.Message
	}
	if working := apimeta.FindStatusCondition(o.GetConditions(), meta.ReconcilingCondition); working != nil && working.Status == metav1.ConditionTrue {
		s.work = working.Reason
	}
	s.Pending = pendingText(o)
	s.Stalled = apimeta.IsStatusConditionTrue(o.GetConditions(), meta.StalledCondition)
	s.Deleting = !o.GetDeletionTimestamp().IsZero()
	s.Unseen = s.observed < o.GetGeneration()
	return s
}

// catalogOrigin is what the reference of a catalog resolved to, such as latest@sha256:1234; "" for nothing.
func catalogOrigin(o *v1alpha1.BundleCatalog) string {
	if o.Status.Content == nil || len(o.Status.Resolved) == 0 || o.Status.Resolved[0].Digest == "" {
		return ""
	}
	return strings.TrimPrefix(o.Status.Resolved[0].Reference+"@"+o.Status.Resolved[0].Digest, "@")
}

// RevisionName names the revision in a sentence, with shortened digests.
func (s Summary) RevisionName() string {
	if s.Revision == "" {
		return "revision -"
	}
	name := revision.Name(s.Version, s.Origin, s.Revision)
	if s.Version == "" && s.Origin == "" {
		return ShortRevision(Inline(name))
	}
	return ShortOrigin(Inline(name))
}

// IsReady tells whether the current spec of the object is applied and Ready.
func (s Summary) IsReady() bool { return s.Ready == metav1.ConditionTrue && !s.Unseen && !s.Deleting }

// InProgress tells whether an attempt is under way and its outcome is not known yet.
func (s Summary) InProgress() bool {
	return s.Unseen || s.Ready == "" || s.work != "" && s.work != meta.ProgressingWithRetryReason
}

// Readiness is the word for the column READY.
func (s Summary) Readiness() string {
	switch {
	case s.Ready == "":
		return "-"
	case s.Unseen && s.Ready == metav1.ConditionTrue:
		return string(metav1.ConditionUnknown)
	}
	return string(s.Ready)
}

// Text is the state in words, the most important first.
func (s Summary) Text() string {
	var parts []string
	if s.Deleting {
		parts = append(parts, "being deleted")
	}
	if s.Suspended {
		parts = append(parts, "suspended")
	}
	if s.Pending != "" {
		parts = append(parts, s.Pending)
	}
	switch {
	case s.Ready == "":
		parts = append(parts, "no controller has seen it yet")
	case s.Unseen:
		parts = append(parts, "the controller has not seen the latest change yet; before")
	}
	if s.Message == "" {
		return strings.Join(parts, ", ")
	}
	return strings.Join(append(parts, s.Message), ": ")
}

// longDigest matches a digest or commit beyond what people compare.
var longDigest = regexp.MustCompile(`\b((?:sha1|sha256|sha384|sha512):[0-9a-f]{12})[0-9a-f]+`)

// ShortRevision cuts the digests of a text to 12 digits.
func ShortRevision(text string) string { return longDigest.ReplaceAllString(text, "$1") }

// originDigest matches a digest or commit of an origin revision beyond what people need to recognise it.
var originDigest = regexp.MustCompile(`\b((?:sha1|sha256|sha384|sha512):[0-9a-f]{7})[0-9a-f]+`)

// ShortOrigin cuts the digests of an origin revision to 7 digits, as Git shortens commits.
func ShortOrigin(text string) string { return originDigest.ReplaceAllString(text, "$1") }

// OriginColumn is the short origin revision for a table; where that is not known, as in what an earlier release recorded, the
// short revision of the content.
func OriginColumn(originRevision, revision string) string {
	if originRevision == "" {
		return ShortRevision(Inline(revision))
	}
	return ShortOrigin(Inline(originRevision))
}
