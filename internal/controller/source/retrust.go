// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/upstream/trust"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
	"github.com/satchel-dev/satchel/internal/pattern"
)

// defaultTrustInterval is how often the Secrets with trust are checked while a source is idle. Only their metadata is
// read.
const defaultTrustInterval = time.Minute

// acceptance says that a part was accepted again, by other trust settings.
type acceptance struct{ trust, by string }

// keepSignatures stores the signatures by which the parts of an artifact were accepted, so that changed trust settings
// can be checked without the upstream. If that fails, the upstream is needed.
func (r *Reconciler) keepSignatures(ctx context.Context, s *state, published meta.Artifact) {
	var kept []trust.KeptSignature
	for i, resolved := range s.resolved {
		if resolved.Signature != "" {
			kept = append(kept, trust.KeptSignature{Destination: s.parts[i].Destination, Digest: resolved.Digest, Signature: resolved.Signature})
		}
	}
	var content []byte
	var err error
	if len(kept) > 0 {
		content, err = json.Marshal(kept)
	}
	if err == nil {
		err = r.Store.KeepSignature(ctx, s.owner, published, content)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "changed trust settings can only be checked with the upstream")
	}
}

// retrust checks whether the published artifact is still accepted by the current trust settings of the sources. If they
// changed, the kept signatures are verified again. Until the artifact is accepted again, no other deployment installs it,
// whatever else fails; it is withdrawn if no key or identity is trusted any more.
func (r *Reconciler) retrust(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if s.published == nil {
		return pipeline.Continue, nil
	}
	published := *s.published
	for _, source := range s.object.Spec.Sources {
		if err := r.retrustPart(ctx, s, source, published); err != nil {
			return pipeline.Stop, err
		}
	}
	s.trustChecked = true
	if s.untrusted == nil && s.distrusted == nil {
		return pipeline.Continue, nil
	}
	return pipeline.Continue, r.tellDistrust(ctx, s)
}

func (r *Reconciler) retrustPart(ctx context.Context, s *state, source v1alpha1.Source, published meta.Artifact) error {
	current, err := trust.Of(source, s.secrets, s.adapters).Current(ctx)
	if err != nil || current == "" || s.sameTrust(source.Destination, current) {
		return err
	}
	by, err := trust.VerifyKept(ctx, s.adapters, source, s.recorded(source.Destination), func() ([]byte, error) {
		return r.Store.Signature(ctx, s.owner, published)
	})
	s.secrets.Patterns = pattern.NewBudget() // the fetch has its own budget
	switch {
	case err == nil:
		s.accepted[source.Destination] = acceptance{current, by}
	case errors.Is(err, verify.ErrNoTrust):
		s.distrusted, s.published = err, nil
	default:
		s.untrusted = err
	}
	return nil
}

// tellDistrust writes at once that the published artifact is not accepted by the current trust settings, since the
// upstream, which is asked next, may be slow. The ExternalArtifact no longer offers it.
func (r *Reconciler) tellDistrust(ctx context.Context, s *state) error {
	before := s.object.DeepCopy()
	setVerified(s, errTrustJudged)
	if s.published == nil {
		s.object.Status.Artifact = nil
		setArtifactInStorage(s)
	}
	if err := r.keepExternal(ctx, s); err != nil {
		ctrl.LoggerFrom(ctx).Info("cannot update the externalartifact of a source with changed trust settings", "error", err.Error())
	}
	was, is := conditions.Get(before, v1alpha1.SourceVerifiedCondition), conditions.Get(s.object, v1alpha1.SourceVerifiedCondition)
	if is != nil && (was == nil || was.Reason != is.Reason || was.Status != is.Status) {
		r.Events.Eventf(s.object, nil, corev1.EventTypeWarning, is.Reason, "Verify", "%s", pipeline.Shorten(is.Message, 900))
	}
	return r.writer.Write(ctx, before, s.object)
}

// errTrustJudged marks a reconcile that did not ask the upstream.
var errTrustJudged = errors.New("the upstream was not asked")

// offered is the artifact for consumers that do not check the trust themselves.
func (s *state) offered() *meta.Artifact {
	if s.untrusted != nil || s.unsigned != nil {
		return nil
	}
	return s.published
}
