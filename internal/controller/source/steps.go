// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/upstream/failure"
	"github.com/satchel-dev/satchel/internal/controller/upstream/figures"
	"github.com/satchel-dev/satchel/internal/controller/upstream/scratch"
	"github.com/satchel-dev/satchel/internal/controller/upstream/trust"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/ignore"
	"github.com/satchel-dev/satchel/internal/fetch/links"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// steps is the whole reconcile of a source.
func (r *Reconciler) steps() []pipeline.Step[*state] {
	return []pipeline.Step[*state]{
		{Name: "policies", Run: r.policies},
		{Name: "check", Run: r.check},
		{Name: "accept", Run: r.accept},
		{Name: "signatures", Run: r.requireSignatures},
		{Name: "denial", Run: r.denial},
		{Name: "trust", Run: r.retrust},
		{Name: "resolve", Run: r.resolve},
		{Name: "fetch", Run: r.fetch},
		{Name: "collect", Run: r.collect},
	}
}

// check finds out whether the advertised artifact is still in storage.
func (r *Reconciler) check(ctx context.Context, s *state) (pipeline.Outcome, error) {
	advertised := s.object.Status.Artifact
	if advertised == nil {
		return pipeline.Continue, nil
	}
	current := r.Store.Adopt(*advertised)
	switch err := r.Store.Verify(ctx, s.owner, *advertised); {
	case err == nil:
		s.published = &current
	case fetch.ReasonOf(err) != "":
		s.lost = err // it is missing or damaged
	default:
		s.published = &current // the volume or a timeout is the problem, not the artifact
		return pipeline.Stop, err
	}
	return pipeline.Continue, nil
}

// accept stops a source with an invalid spec.
func (r *Reconciler) accept(_ context.Context, s *state) (pipeline.Outcome, error) {
	if err := effective.SourceProblem(&s.object.Spec); err != nil {
		return pipeline.Stop, failure.InvalidSpec(err)
	}
	return pipeline.Continue, nil
}

// resolve asks each upstream for the digest of its reference. Immutable references, and
// those of an immutable source, are resolved once.
func (r *Reconciler) resolve(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if err := ignore.Check(s.object.Spec.Ignore); err != nil {
		return pipeline.Stop, err
	}
	s.moved = s.published == nil || !s.sameSources()
	for _, source := range s.object.Spec.Sources {
		part, moved, err := r.resolveOne(ctx, s, source)
		if err != nil {
			return pipeline.Stop, err
		}
		r.Measures.Resolved(effective.KindOf(&source), moved || s.published == nil)
		s.parts = append(s.parts, part)
		s.moved = s.moved || moved
	}
	return pipeline.Continue, nil
}

func (r *Reconciler) resolveOne(ctx context.Context, s *state, source v1alpha1.Source) (fetch.Part, bool, error) {
	previous, known := s.previous(source.Destination)
	fetcher, err := s.adapters.Fetcher(ctx, source, previous)
	if err != nil {
		return fetch.Part{}, false, err
	}
	part, current := fetch.Part{Destination: source.Destination, Fetcher: fetcher}, trust.Of(source, s.secrets, s.adapters).Digest()
	s.trusts = append(s.trusts, current)
	again := !known || !s.sameTrust(source.Destination, current)
	if known && s.object.Spec.Immutable {
		part.Resolved = previous
		return part, again, nil
	}
	if part.Resolved, err = fetcher.Resolve(ctx); err != nil {
		return fetch.Part{}, false, err
	}
	return part, again || !part.Resolved.Same(previous), nil
}

// fetch downloads the resolved versions into a temporary folder, and stores them, if they have changed.
func (r *Reconciler) fetch(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.moved {
		return pipeline.Continue, nil
	}
	if effective.UploadDigest(&s.object.Spec) != "" {
		return r.publishUpload(ctx, s)
	}
	return r.announced(ctx, s, func(ctx context.Context) (pipeline.Outcome, error) { return r.download(ctx, s) })
}

func (r *Reconciler) download(ctx context.Context, s *state) (pipeline.Outcome, error) {
	newTree := scratch.NewTree
	if onlyImages(s.object.Spec.Sources) {
		newTree = scratch.NewPackedTree
	}
	tree, remove, err := newTree(r.Scratch, "fetch-*", r.Upstreams.Limits)
	if err != nil {
		return pipeline.Stop, err
	}
	defer remove()
	resolved, err := fetch.Compose(ctx, s.parts, tree)
	if err != nil {
		s.distrust(len(resolved), err)
		return pipeline.Stop, scratch.UnpackingError(s.forGood(err))
	}
	s.resolved = resolved
	return r.store(ctx, s, tree)
}

// onlyImages tells that no source needs a folder for intermediate files.
func onlyImages(sources []v1alpha1.Source) bool {
	return !slices.ContainsFunc(sources, func(source v1alpha1.Source) bool { return source.Image == nil })
}

// distrust withdraws the published artifact if a part is not accepted by changed trust
// settings, by which the artifact was not verified. Deployments that run it keep it.
func (s *state) distrust(part int, err error) {
	if fetch.ReasonOf(err) == fetch.Unverified && part < len(s.parts) && !s.sameTrust(s.parts[part].Destination, s.trusts[part]) {
		s.distrusted, s.published = err, nil
	}
}

// forGood says that the first resolved version of an immutable source is gone from the
// upstream: it cannot be replaced.
func (s *state) forGood(err error) error {
	switch reason := fetch.ReasonOf(err); {
	case !s.object.Spec.Immutable || !s.sameSources():
		return err
	case reason == fetch.Moved, reason == fetch.DigestMismatch:
		return fetch.Errorf(fetch.DigestMismatch, "%w: the source is immutable and keeps the version that it resolved first, which the upstream no longer has: create another BundleSource", err)
	}
	return err
}

func (r *Reconciler) store(ctx context.Context, s *state, tree *fetch.Tree) (pipeline.Outcome, error) {
	reference := ""
	if len(s.resolved) == 1 {
		reference = s.resolved[0].Reference
	}
	files, err := ignore.FS(tree.FS(), s.object.Spec.Ignore)
	if err != nil {
		return pipeline.Stop, err
	}
	began := time.Now()
	published, err := r.put(ctx, s, reference, files)
	r.Measures.Observe(figures.Storing, kindOfAll(s.object.Spec.Sources), time.Since(began), err)
	if err != nil {
		return pipeline.Stop, err
	}
	s.published = &published
	s.untrusted = nil
	s.leftOut = links.Of(files)
	r.keepSignatures(ctx, s, published)
	return pipeline.Continue, nil
}

// kindOfAll is the kind of all sources of a spec, or "several" if they differ.
func kindOfAll(sources []v1alpha1.Source) string {
	kind := effective.KindOf(&sources[0])
	for _, source := range sources[1:] {
		if effective.KindOf(&source) != kind {
			return "several"
		}
	}
	return kind
}

// collect removes unused artifacts of this source. Failures are logged only: the next
// reconcile tries again.
func (r *Reconciler) collect(ctx context.Context, s *state) (pipeline.Outcome, error) {
	inUse, err := r.inUse(ctx, s)
	if err == nil {
		_, err = r.Store.Collect(ctx, s.owner, inUse, r.Retention.Records, r.Retention.TTL)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "superseded artifacts stay until the next reconcile")
	}
	return pipeline.Continue, nil
}
