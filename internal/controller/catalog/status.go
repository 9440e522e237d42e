// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/upstream/failure"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// mostProblems is how many problems a status lists.
const mostProblems = 20

// updateStatus sets every field and condition from the facts of the steps, also when one of them failed.
func (r *Reconciler) updateStatus(s *state, err error) {
	status := &s.object.Status
	status.ObservedGeneration = s.object.Generation
	if at := pipeline.Requested(s.object); at != "" {
		status.LastHandledReconcileAt = at
	}
	r.setContent(s)
	setVerified(s, err)
	report(s, err)
}

// setContent describes what is served.
func (r *Reconciler) setContent(s *state) {
	status := &s.object.Status
	if s.accepted != nil && len(status.Resolved) > 0 {
		status.Resolved[0].Trust, status.Resolved[0].VerifiedBy = s.accepted.trust, s.accepted.by
	}
	if s.served == nil {
		status.Content = nil
		status.Problems = nil
		status.URLs = nil
		return
	}
	x, record := s.served.Index, s.served.Record
	status.Content = &v1alpha1.CatalogContent{
		Digest: record.Digest, Packages: int32(x.Usable()), Bundles: int32(x.Bundles), Bytes: x.AllBytes, //nolint:gosec // bounded by the limits of catalogs
		LastUpdateTime: metav1.NewTime(record.StoredTime),
	}
	status.Problems = nil
	for _, problem := range x.Problems[:min(len(x.Problems), mostProblems)] {
		status.Problems = append(status.Problems, pipeline.Shorten(problem, 500))
	}
	status.URLs = &v1alpha1.CatalogURLs{Base: r.baseOf(s.key)}
	if s.resolved != nil {
		status.SourcesDigest = effective.CatalogDigest(&s.object.Spec)
		status.Resolved = []v1alpha1.ResolvedSource{{
			Reference: s.resolved.Reference, Digest: s.resolved.Digest, Validator: s.resolved.Validator,
			VerifiedBy: s.resolved.VerifiedBy, Trust: s.trust, Transport: s.adapters.Transport(s.source()), Via: s.resolved.Via,
		}}
	}
}

// setVerified names the signer of the served contents. The cases are those of a BundleSource.
func setVerified(s *state, err error) {
	kind := v1alpha1.SourceVerifiedCondition
	switch {
	case s.unsigned != nil:
		pipeline.SetCondition(s.object, kind, metav1.ConditionFalse, v1alpha1.ReasonSignatureRequired, s.unsigned.Error())
	case s.denied != nil:
		pipeline.SetCondition(s.object, kind, metav1.ConditionFalse, v1alpha1.ReasonImageDenied, s.denied.Error())
	case !s.demandsSignature():
		conditions.Delete(s.object, kind)
	case s.untrusted != nil && s.served != nil:
		pipeline.SetCondition(s.object, kind, metav1.ConditionUnknown, v1alpha1.ReasonTrustChanged, fmt.Sprintf(
			"the trust settings of the source have changed since the catalog was accepted, and it is not accepted again yet: %s", s.untrusted))
	case s.distrusted != nil:
		pipeline.SetCondition(s.object, kind, metav1.ConditionFalse, v1alpha1.ReasonVerificationFailed, "the catalog is withdrawn: "+s.distrusted.Error())
	case fetch.ReasonOf(err) == fetch.Unverified:
		pipeline.SetCondition(s.object, kind, metav1.ConditionFalse, v1alpha1.ReasonVerificationFailed, explain(s, err))
	case s.served != nil && (err == nil || conditions.IsUnknown(s.object, kind)):
		pipeline.SetCondition(s.object, kind, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, signer(s.object))
	case s.served == nil:
		conditions.Delete(s.object, kind) // not known yet
	}
}

// signer names the accepted signer.
func signer(object *v1alpha1.BundleCatalog) string {
	if len(object.Status.Resolved) == 0 || object.Status.Resolved[0].VerifiedBy == "" {
		return "verified"
	}
	return "verified " + object.Status.Resolved[0].Digest + ", signed by " + object.Status.Resolved[0].VerifiedBy
}

// served describes what is served, for people.
func served(object *v1alpha1.BundleCatalog) string {
	content := object.Status.Content
	if content == nil {
		return "nothing is served"
	}
	text := fmt.Sprintf("serving %d packages with %d bundles, content %s", content.Packages, content.Bundles, content.Digest)
	if count := len(object.Status.Problems); count > 0 {
		text += fmt.Sprintf("; status.problems lists %d", count)
	}
	return text
}

// report sets Ready, and the conditions beside it.
func report(s *state, err error) {
	if err == nil {
		failure.Report(s.object, nil, served(s.object))
		return
	}
	failure.Report(s.object, err, explain(s, err))
}

// explain is the message of a failure: the cause, and the content that is still served.
func explain(s *state, err error) string {
	message := failure.Explain(err, s.object.Namespace, s.secrets.Names(), effective.SourceTimeout(s.spec))
	if s.served != nil {
		message = strings.TrimSuffix(message, ".") + "; content " + s.served.Record.Digest + " stays served"
	}
	return message
}

// announce sets Reconciling before a download.
func (r *Reconciler) announce(ctx context.Context, s *state) error {
	if conditions.IsFalse(s.object, meta.ReadyCondition) && s.object.Status.ObservedGeneration == s.object.Generation && s.served != nil {
		return nil // a retry: the condition keeps the failure
	}
	before := s.object.DeepCopy()
	message := "fetching " + s.part.Resolved.Reference + " " + s.part.Resolved.Digest
	conditions.Delete(s.object, meta.StalledCondition)
	pipeline.SetCondition(s.object, meta.ReconcilingCondition, metav1.ConditionTrue, v1alpha1.ReasonProgressing, strings.TrimSpace(message))
	if conditions.Get(s.object, meta.ReadyCondition) == nil {
		pipeline.SetCondition(s.object, meta.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonProgressing, message)
	}
	r.setContent(s)
	return r.writer.Write(ctx, before, s.object)
}

// tellDistrust writes at once that the served contents are not accepted by the current trust settings, since the upstream,
// which is asked next, may be slow.
func (r *Reconciler) tellDistrust(ctx context.Context, s *state) error {
	before := s.object.DeepCopy()
	r.setContent(s)
	setVerified(s, errNotAsked)
	was, is := conditions.Get(before, v1alpha1.SourceVerifiedCondition), conditions.Get(s.object, v1alpha1.SourceVerifiedCondition)
	if is != nil && (was == nil || was.Reason != is.Reason || was.Status != is.Status) {
		r.Events.Eventf(s.object, nil, corev1.EventTypeWarning, is.Reason, "Verify", "%s", pipeline.Shorten(is.Message, 900))
	}
	return r.writer.Write(ctx, before, s.object)
}

// errNotAsked marks a reconcile that did not ask the upstream.
var errNotAsked = errors.New("the upstream was not asked")

// tell records changes since before in an event and in the log, with a rate limit.
func (r *Reconciler) tell(ctx context.Context, s *state, before *v1alpha1.BundleCatalog, err error) {
	after := s.object
	if conditions.GetMessage(before, meta.ReadyCondition) == conditions.GetMessage(after, meta.ReadyCondition) {
		return
	}
	if !r.pace.Allow(s.key, time.Now()) {
		r.Measures.Suppress()
		return
	}
	switch is := conditions.Get(after, meta.ReadyCondition); {
	case is == nil:
	case is.Status == metav1.ConditionTrue:
		r.Events.Eventf(after, nil, corev1.EventTypeNormal, "NewCatalog", "Publish", "%s", is.Message)
	case is.Status == metav1.ConditionFalse:
		r.Events.Eventf(after, nil, corev1.EventTypeWarning, is.Reason, "Fetch", "%s", is.Message)
	}
	pipeline.LogFailure(ctx, before, after, err)
}

// markSuspended updates the status of a suspended catalog. Ready does not change while it is served.
func (r *Reconciler) markSuspended(s *state) {
	object := s.object
	object.Status.ObservedGeneration = object.Generation
	if at := pipeline.Requested(object); at != "" {
		object.Status.LastHandledReconcileAt = at
	}
	r.setContent(s)
	setVerified(s, errNotAsked)
	conditions.Delete(object, meta.ReconcilingCondition)
	reason, message := v1alpha1.ReasonSuspended, "suspended before the first fetch: set spec.suspend to false"
	switch {
	case s.served != nil && conditions.Get(object, meta.ReadyCondition) != nil:
		return
	case s.served != nil:
		report(s, nil)
		return
	case s.unsigned != nil:
		reason, message = v1alpha1.ReasonSignatureRequired, s.unsigned.Error()
	case s.denied != nil:
		reason, message = v1alpha1.ReasonImageDenied, s.denied.Error()
	case s.distrusted != nil:
		reason, message = v1alpha1.ReasonVerificationFailed, "the catalog is withdrawn: "+s.distrusted.Error()
	case s.lost != nil:
		reason, message = v1alpha1.ReasonArtifactLost, "the stored catalog is lost and is not fetched again while suspended: set spec.suspend to false"
	case conditions.IsFalse(object, meta.ReadyCondition):
		return
	}
	pipeline.SetCondition(object, meta.ReadyCondition, metav1.ConditionFalse, reason, message)
}
