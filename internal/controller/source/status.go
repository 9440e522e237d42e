// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/upstream/failure"
	"github.com/satchel-dev/satchel/internal/controller/upstream/trust"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/links"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// updateStatus sets every condition of a source from the facts of the steps, also when
// one of them failed.
func updateStatus(s *state, err error) {
	status := &s.object.Status
	status.ObservedGeneration = s.object.Generation
	if at := pipeline.Requested(s.object); at != "" {
		status.LastHandledReconcileAt = at
	}
	setArtifact(s)
	setArtifactInStorage(s)
	setVerified(s, err)
	report(s, err)
}

// setArtifact advertises the artifact in storage.
func setArtifact(s *state) {
	status := &s.object.Status
	defer func() { status.Warnings = warnings(s) }()
	status.Artifact, status.OriginRevision = s.published, s.originRevision()
	for i := range status.Resolved {
		if again, ok := s.accepted[status.Resolved[i].Destination]; ok {
			status.Resolved[i].Trust, status.Resolved[i].VerifiedBy = again.trust, again.by
		}
	}
	if s.published != nil && s.resolved == nil && !s.moved {
		renewValidators(s)
	}
	if s.resolved == nil || s.published == nil {
		return
	}
	status.SourcesDigest, status.Resolved = effective.SourcesDigest(&s.object.Spec), s.resolvedSources()
}

// warnings are those about links, which stay while the artifact does, and about what was resolved.
func warnings(s *state) []string {
	status := &s.object.Status
	var all []string
	switch {
	case s.published == nil:
		return nil
	case s.resolved != nil:
		all = links.Warnings(s.leftOut)
	default:
		all = slices.DeleteFunc(slices.Clone(status.Warnings), func(warning string) bool { return !links.IsWarning(warning) })
	}
	for _, resolved := range status.Resolved {
		if resolved.Warning != "" {
			all = append(all, resolved.Warning)
		}
	}
	return all
}

// renewValidators records how the upstreams name content that is the same as before: the index of a Helm repository changes
// with every chart in it.
func renewValidators(s *state) {
	for _, part := range s.parts {
		if recorded := s.recorded(part.Destination); recorded != nil && part.Resolved.Validator != "" {
			recorded.Validator = part.Resolved.Validator
			recorded.Warning = pipeline.Shorten(part.Resolved.Warning, 400)
		}
	}
}

func setArtifactInStorage(s *state) {
	kind := v1alpha1.ArtifactInStorageCondition
	switch {
	case s.published != nil:
		pipeline.SetCondition(s.object, kind, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "stored "+s.published.Revision)
	case s.lost != nil:
		pipeline.SetCondition(s.object, kind, metav1.ConditionFalse, v1alpha1.ReasonArtifactLost,
			"the stored artifact is no longer usable and must be fetched again: "+s.lost.Error())
	case s.denied != nil:
		pipeline.SetCondition(s.object, kind, metav1.ConditionFalse, v1alpha1.ReasonImageDenied, "the artifact is no longer published: "+s.denied.Error())
	case s.distrusted != nil:
		pipeline.SetCondition(s.object, kind, metav1.ConditionFalse, v1alpha1.ReasonVerificationFailed,
			"the artifact is no longer published, since the trust settings of the sources have changed: "+s.distrusted.Error())
	default:
		conditions.Delete(s.object, kind)
	}
}

// setVerified names the signers of the published artifact.
//
//	the namespace requires signatures, the spec does not  False, SignatureRequired
//	a policy denies an image                              False, ImageDenied
//	no signature is required                              none
//	the current trust settings did not accept it yet      Unknown, TrustChanged, whatever else fails
//	new content is not accepted                           False; the published artifact was accepted
//	nothing is trusted any more: it is withdrawn          False
//	it is accepted                                        True
//	another failure                                       as it was
func setVerified(s *state, err error) {
	kind := v1alpha1.SourceVerifiedCondition
	switch {
	case s.unsigned != nil:
		pipeline.SetCondition(s.object, kind, metav1.ConditionFalse, v1alpha1.ReasonSignatureRequired, s.unsigned.Error())
	case s.denied != nil:
		pipeline.SetCondition(s.object, kind, metav1.ConditionFalse, v1alpha1.ReasonImageDenied, s.denied.Error())
	case !s.demandsSignature():
		conditions.Delete(s.object, kind)
	case s.untrusted != nil && s.published != nil:
		pipeline.SetCondition(s.object, kind, metav1.ConditionUnknown, v1alpha1.ReasonTrustChanged, fmt.Sprintf(
			"the trust settings of the sources have changed since revision %s was accepted, and it is not accepted again yet: deployments that run it keep it, and no other installs it: %s",
			s.published.Revision, s.untrusted))
	case fetch.ReasonOf(err) == fetch.Unverified:
		pipeline.SetCondition(s.object, kind, metav1.ConditionFalse, v1alpha1.ReasonVerificationFailed, explain(s, err))
	case s.distrusted != nil:
		pipeline.SetCondition(s.object, kind, metav1.ConditionFalse, v1alpha1.ReasonVerificationFailed, "the published artifact is withdrawn: "+s.distrusted.Error())
	case s.published != nil && (err == nil || s.trustChecked && conditions.IsUnknown(s.object, kind)):
		pipeline.SetCondition(s.object, kind, metav1.ConditionTrue, v1alpha1.ReasonSucceeded,
			signers(s.object.Status.Resolved)+s.unverified())
	case s.published == nil:
		conditions.Delete(s.object, kind) // not known yet
	}
}

// signers names the accepted signer of each source that requires a signature.
func signers(resolved []v1alpha1.ResolvedSource) string {
	var all []string
	for _, r := range resolved {
		switch {
		case r.VerifiedBy == "":
		case r.Destination == "":
			all = append(all, "verified "+r.Digest+", signed by "+r.VerifiedBy)
		default:
			all = append(all, "verified "+r.Digest+" for "+r.Destination+", signed by "+r.VerifiedBy)
		}
	}
	return strings.Join(all, "; ")
}

// unverified names the parts of a composition that require no signature; "" for none.
func (s *state) unverified() string {
	var parts []string
	for i := range s.object.Spec.Sources {
		source := s.object.Spec.Sources[i : i+1]
		if !trust.Demanded(source, s.adapters) {
			parts = append(parts, effective.UnverifiedParts(&v1alpha1.BundleSourceSpec{Sources: source})...)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "; no signature is required of " + strings.Join(parts, ", ")
}

// report sets Ready, and the conditions beside it.
func report(s *state, err error) {
	if err == nil {
		failure.Report(s.object, nil, "stored artifact for revision "+s.published.Revision)
		return
	}
	failure.Report(s.object, err, explain(s, err))
}

// explain is the message of a failure: the cause, and the revision that is still published.
func explain(s *state, err error) string {
	message := failure.Explain(err, s.object.Namespace, s.secrets.Names(), effective.SourceTimeout(&s.object.Spec))
	if s.published != nil && s.unsigned != nil {
		return message + "; deployments that run revision " + s.published.Revision + " keep it, and no other installs it"
	}
	if s.published != nil {
		message = strings.TrimSuffix(message, ".") + "; revision " + s.published.Revision + " stays published"
	}
	return message
}

// tell records changes since before in an event and in the log, with a rate limit: the
// errors of an upstream may change each second.
func (r *Reconciler) tell(ctx context.Context, before, after *v1alpha1.BundleSource, err error) {
	if conditions.GetMessage(before, meta.ReadyCondition) == conditions.GetMessage(after, meta.ReadyCondition) && sameRevision(before, after) &&
		slices.Equal(before.Status.Warnings, after.Status.Warnings) {
		return
	}
	if !r.pace.Allow(client.ObjectKeyFromObject(after), time.Now()) {
		r.Measures.Suppress()
		return
	}
	r.emit(before, after)
	r.emitWarnings(before, after)
	pipeline.LogFailure(ctx, before, after, err)
}

// tellLost emits that the advertised artifact is missing or damaged in storage: if it is
// fetched again at once, nothing else shows that.
func (r *Reconciler) tellLost(s *state) {
	if s.lost != nil && r.pace.Allow(client.ObjectKeyFromObject(s.object), time.Now()) {
		r.Events.Eventf(s.object, nil, corev1.EventTypeWarning, v1alpha1.ReasonArtifactLost, "Check", "the stored artifact is no longer usable: %s", s.lost.Error())
	}
}

// emit emits one event if something changed since before.
func (r *Reconciler) emit(before, after *v1alpha1.BundleSource) {
	was, is := conditions.Get(before, meta.ReadyCondition), conditions.Get(after, meta.ReadyCondition)
	switch {
	case is == nil:
	case is.Status == metav1.ConditionTrue && !sameRevision(before, after):
		r.Events.Eventf(after, nil, corev1.EventTypeNormal, "NewArtifact", "Publish", "published %s%s", published(after), signedBy(after))
	case is.Status == metav1.ConditionTrue && was != nil && was.Status == metav1.ConditionFalse:
		r.Events.Eventf(after, nil, corev1.EventTypeNormal, "Recovered", "Fetch", "recovered at %s", published(after))
	case is.Status == metav1.ConditionFalse && (was == nil || was.Message != is.Message):
		r.Events.Eventf(after, nil, corev1.EventTypeWarning, is.Reason, "Fetch", "%s", is.Message)
	}
}

// emitWarnings emits the warnings that the status did not have before.
func (r *Reconciler) emitWarnings(before, after *v1alpha1.BundleSource) {
	var aboutLinks, others []string
	for _, warning := range after.Status.Warnings {
		switch {
		case slices.Contains(before.Status.Warnings, warning):
		case links.IsWarning(warning):
			aboutLinks = append(aboutLinks, warning)
		default:
			others = append(others, warning)
		}
	}
	if len(aboutLinks) > 0 {
		r.Events.Eventf(after, nil, corev1.EventTypeWarning, "FilesLeftOut", "Publish", "%s", pipeline.Shorten(strings.Join(aboutLinks, "; "), 900))
	}
	if len(others) > 0 {
		r.Events.Eventf(after, nil, corev1.EventTypeWarning, "EntriesLeftOut", "Resolve", "%s", pipeline.Shorten(strings.Join(others, "; "), 900))
	}
}

// published names the published revision for an event.
func published(s *v1alpha1.BundleSource) string {
	if s.Status.OriginRevision == "" {
		return "revision " + s.Status.Artifact.Revision
	}
	return s.Status.OriginRevision + " as revision " + s.Status.Artifact.Revision
}

// signedBy names the accepted signers for an event.
func signedBy(s *v1alpha1.BundleSource) string {
	if text := signers(s.Status.Resolved); text != "" {
		return ": " + text
	}
	return ""
}

func sameRevision(before, after *v1alpha1.BundleSource) bool {
	return before.Status.Artifact != nil && after.Status.Artifact != nil &&
		before.Status.Artifact.Revision == after.Status.Artifact.Revision
}

// markSuspended updates the status of a suspended source. Ready does not change, since
// the published artifact stays published.
func markSuspended(s *state) {
	object := s.object
	object.Status.ObservedGeneration = object.Generation
	if at := pipeline.Requested(object); at != "" {
		object.Status.LastHandledReconcileAt = at
	}
	setArtifact(s)
	setArtifactInStorage(s)
	setVerified(s, errTrustJudged)
	conditions.Delete(object, meta.ReconcilingCondition)
	switch {
	case s.unsigned != nil:
		pipeline.SetCondition(object, meta.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonSignatureRequired, explain(s, s.unsigned))
	case conditions.GetReason(object, meta.ReadyCondition) == v1alpha1.ReasonSignatureRequired && s.published != nil:
		report(s, nil)
	case s.denied != nil:
		pipeline.SetCondition(object, meta.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonImageDenied, s.denied.Error())
	case s.distrusted != nil:
		pipeline.SetCondition(object, meta.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonVerificationFailed,
			"the published artifact is withdrawn: "+s.distrusted.Error())
	case s.lost != nil:
		pipeline.SetCondition(object, meta.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonArtifactLost,
			"the stored artifact is lost and is not fetched again while suspended: set spec.suspend to false")
	case conditions.Get(object, meta.ReadyCondition) == nil:
		pipeline.SetCondition(object, meta.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonSuspended,
			"suspended before the first fetch: set spec.suspend to false")
	}
}
