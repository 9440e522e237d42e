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
	"github.com/satchel-dev/satchel/internal/controller/report"
	"github.com/satchel-dev/satchel/internal/controller/step"
	"github.com/satchel-dev/satchel/internal/fetch"
	archive "github.com/satchel-dev/satchel/internal/fetch/http"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
	"github.com/satchel-dev/satchel/internal/pattern"
)

// lookAtTrustEvery is how often the Secrets with trust are looked at while nothing else is to be done for a source. Only
// their metadata is read.
const lookAtTrustEvery = time.Minute

// keptSignature is the signature by which one part of an artifact was accepted, as it is kept in the store.
type keptSignature struct {
	Destination string `json:"destination"`
	Digest      string `json:"digest"`
	Signature   string `json:"signature"`
}

// acceptance is that a part was accepted again, by another trust.
type acceptance struct{ trust, by string }

// keepSignatures keeps beside an artifact by which signatures its parts were accepted, so that a changed trust is judged
// without the upstream. Where that fails, the upstream is needed.
func (r *Reconciler) keepSignatures(ctx context.Context, s *state, published meta.Artifact) {
	var kept []keptSignature
	for i, resolved := range s.resolved {
		if resolved.Signature != "" {
			kept = append(kept, keptSignature{s.parts[i].Destination, resolved.Digest, resolved.Signature})
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
		ctrl.LoggerFrom(ctx).Error(err, "a changed trust can be judged with the upstream only")
	}
}

// retrust finds out whether what is published is still accepted by the trust that the sources have now. What was accepted
// by another one is judged by the signature that was kept. Until it is accepted again nobody new takes it, whatever else
// fails; a trust that trusts nobody any more withdraws it.
func (r *Reconciler) retrust(ctx context.Context, s *state) (step.Outcome, error) {
	if s.published == nil {
		return step.Continue, nil
	}
	published := *s.published
	for _, source := range s.object.Spec.Sources {
		if err := r.retrustPart(ctx, s, source, published); err != nil {
			return step.Stop, err
		}
	}
	if s.untrusted == nil && s.distrusted == nil {
		return step.Continue, nil
	}
	return step.Continue, r.tellDistrust(ctx, s)
}

func (r *Reconciler) retrustPart(ctx context.Context, s *state, source v1alpha1.Source, published meta.Artifact) error {
	demand, from := demands(source)
	if demand == nil {
		return nil
	}
	for _, ref := range from {
		if ref == nil {
			continue
		}
		if _, err := s.secrets.find(ctx, ref.Name); err != nil {
			return err
		}
	}
	trust := s.trust(source)
	if s.sameTrust(source.Destination, trust) {
		return nil
	}
	by, err := r.judgeKept(ctx, s, source, published)
	s.secrets.patterns = pattern.NewBudget() // the fetch has one of its own
	switch {
	case err == nil:
		s.accepted[source.Destination] = acceptance{trust, by}
	case errors.Is(err, verify.ErrNoTrust):
		s.distrusted, s.published = err, nil
	default:
		s.untrusted = err
	}
	return nil
}

// judgeKept tells who signed the published content of one source, by the present trust and the signature that was kept.
func (r *Reconciler) judgeKept(ctx context.Context, s *state, source v1alpha1.Source, published meta.Artifact) (by string, err error) {
	judge, err := r.judgeOf(ctx, s, source)
	if err != nil {
		return "", err
	}
	record := s.recorded(source.Destination)
	if record == nil || record.Trust == "" {
		return "", errors.New("no signature was demanded when it was fetched")
	}
	content, err := r.Store.Signature(ctx, s.owner, published)
	if err != nil {
		return "", err
	}
	var kept []keptSignature
	if len(content) > 0 && json.Unmarshal(content, &kept) != nil {
		return "", errors.New("the signature that was kept cannot be read")
	}
	for _, k := range kept {
		if k.Destination == source.Destination && k.Digest == record.Digest {
			return judge(ctx, record.Digest, k.Signature)
		}
	}
	return "", errors.New("its signature was not kept")
}

// judgeFunc tells who signed what has a digest, by a signature that was kept.
type judgeFunc func(ctx context.Context, digest, signature string) (by string, err error)

// judgeOf is how the signature of a source is judged by its present trust, without asking the upstream.
func (r *Reconciler) judgeOf(ctx context.Context, s *state, source v1alpha1.Source) (judgeFunc, error) {
	switch {
	case source.Image != nil:
		v, err := imageVerifier(ctx, s.secrets, source.Image.Verify, r.http)
		return func(ctx context.Context, digest, signature string) (string, error) {
			return image.Judge(ctx, v, digest, signature)
		}, err
	case source.Git != nil:
		v, err := gitVerification(ctx, s.secrets, source.Git.Verify)
		if err != nil {
			return nil, err
		}
		return func(_ context.Context, digest, signature string) (string, error) { return v.Judge(digest, signature) }, nil
	case source.HTTP != nil:
		v, err := archiveVerifier(ctx, s.secrets, source.HTTP.Verify)
		return func(ctx context.Context, digest, signature string) (string, error) {
			return archive.Judge(ctx, v, digest, signature)
		}, err
	}
	return nil, fetch.Errorf(fetch.Refused, "a source of this kind has no signature")
}

// tellDistrust writes at once that what is published is not accepted by the present trust: the upstream, which is asked
// next, may take its time. Consumers by way of the ExternalArtifact lose it.
func (r *Reconciler) tellDistrust(ctx context.Context, s *state) error {
	before := s.object.DeepCopy()
	setVerified(s, errTrustJudged)
	if s.published == nil {
		s.object.Status.Artifact = nil
		setArtifactInStorage(s)
	}
	if err := r.keepExternal(ctx, s); err != nil {
		ctrl.LoggerFrom(ctx).Info("cannot keep the externalartifact of a source whose trust has changed", "error", err.Error())
	}
	was, is := conditions.Get(before, v1alpha1.SourceVerifiedCondition), conditions.Get(s.object, v1alpha1.SourceVerifiedCondition)
	if is != nil && (was == nil || was.Reason != is.Reason || was.Status != is.Status) {
		r.Events.Eventf(s.object, nil, corev1.EventTypeWarning, is.Reason, "Verify", "%s", report.Shorten(is.Message, 900))
	}
	return r.writer.Write(ctx, before, s.object)
}

// errTrustJudged stands for a reconcile that has not asked the upstream, or does not.
var errTrustJudged = errors.New("the upstream was not asked")

// offered is the artifact that consumers who do not judge for themselves may take.
func (s *state) offered() *meta.Artifact {
	if s.untrusted != nil || s.unsigned != nil {
		return nil
	}
	return s.published
}

// trustSeen are the Secrets with trust that were seen.
func (s *state) trustSeen() seen {
	found := seen{}
	for _, source := range s.object.Spec.Sources {
		_, from := demands(source)
		for _, ref := range from {
			if ref == nil {
				continue
			}
			object := seenObject{"Secret", ref.Name}
			if version, known := s.secrets.seen[object]; known {
				found[object] = version
			}
		}
	}
	return found
}
