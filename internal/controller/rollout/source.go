// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/rollout/inputs"
	"github.com/satchel-dev/satchel/internal/controller/rollout/pinned"
	"github.com/satchel-dev/satchel/internal/controller/rollout/rendered"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// findSource reads the BundleSource that the rollout follows. Without it the rollout goes on with the revision that it has.
func (r *Reconciler) findSource(ctx context.Context, s *state) (pipeline.Outcome, error) {
	key := client.ObjectKey{Namespace: s.object.Namespace, Name: s.object.Spec.SourceRef.Name}
	var source v1alpha1.BundleSource
	err := r.Client.Get(ctx, key, &source)
	switch {
	case apierrors.IsNotFound(err):
		s.awaits = waitsFor(v1alpha1.ReasonSourceNotFound, "bundlesource %s does not exist: create it, or change spec.sourceRef", key)
		return pipeline.Continue, nil
	case err != nil:
		return pipeline.Stop, fmt.Errorf("reading bundlesource %s: %w", key, err)
	case !pinned.Usable(&source):
		s.awaits = waitsFor(v1alpha1.ReasonSourceNotReady, "bundlesource %s is not ready: %s", key, pinned.Message(&source))
	}
	s.source = &source
	return pipeline.Continue, nil
}

// pinRevision finds the revision to move to, stores it with sources that are pinned by digest, and waits until these are fetched
// and have the same content.
func (r *Reconciler) pinRevision(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if name := s.object.Spec.Revision; name != "" {
		return pipeline.Continue, r.stayAt(ctx, s, name)
	}
	if s.awaits != nil {
		return pipeline.Continue, nil
	}
	if err := r.readInputs(ctx, s); err != nil || s.awaits != nil {
		return pipeline.Continue, err
	}
	found, err := s.newest()
	if err != nil {
		return pipeline.Stop, &failure{reason: v1alpha1.ReasonInvalidSpec, stalled: true, err: err}
	}
	if err := r.store(ctx, s, found); err != nil {
		return pipeline.Stop, inputFailure(err)
	}
	return pipeline.Continue, r.want(ctx, s, found, pinned.Version(s.source))
}

// stayAt wants a stored revision.
func (r *Reconciler) stayAt(ctx context.Context, s *state, name string) error {
	found, err := r.load(ctx, s, name)
	if err != nil {
		return err
	}
	if found == nil {
		return stalledBy(v1alpha1.ReasonRevisionNotFound, "spec.revision is %q, and no such revision is stored: name one of status.history, or leave it out to follow the source", name)
	}
	s.awaits = nil
	version := ""
	for _, known := range s.object.Status.History {
		if known.Name == name {
			version = known.Revision
		}
	}
	return r.want(ctx, s, found, version)
}

// want wants a revision, as soon as its pinned source is ready.
func (r *Reconciler) want(ctx context.Context, s *state, found *rendered.Revision, version string) error {
	key := client.ObjectKey{Namespace: s.object.Namespace, Name: revision.SourceName(s.object.Name, found.Name)}
	var source v1alpha1.BundleSource
	err := r.Client.Get(ctx, key, &source)
	switch {
	case apierrors.IsNotFound(err): // just created, and not in the cache yet
		s.awaits = waitsFor(v1alpha1.ReasonSourceNotReady, "bundlesource %s, with the pinned sources of revision %s, was not reconciled yet", key, found.Name)
		return nil
	case err != nil:
		return fmt.Errorf("reading bundlesource %s: %w", key, err)
	case !pinned.Usable(&source):
		s.awaits = waitsFor(v1alpha1.ReasonSourceNotReady, "bundlesource %s, with the pinned sources of revision %s, is not ready: %s", key, found.Name, pinned.Message(&source))
		return nil
	}
	if got := artifact.Identity(source.Status.Artifact.Revision); got != found.Data.Content {
		return stalledBy(v1alpha1.ReasonRevisionCollision, "bundlesource %s has the content %s, and revision %s was made of %s: the upstream changed what the reference stands for; "+
			"delete that BundleSource to fetch it again, or publish a new revision", key, got, found.Name, found.Data.Content)
	}
	if version == "" {
		version = pinned.Version(&source)
	}
	s.wanted = &v1alpha1.RolloutRevision{Name: found.Name, Digest: found.Digest, Revision: version}
	return nil
}

// newest is the revision of what the source publishes and the spec says now.
func (s *state) newest() (*rendered.Revision, error) {
	spec := &s.object.Spec
	data := revision.Data{
		Content: artifact.Identity(s.source.Status.Artifact.Revision), Ignore: s.source.Spec.Ignore,
		Template: spec.Template, Variables: spec.Variables, Overrides: spec.Overrides, Sources: pinned.Sources(s.source),
		Inputs: inputs.Frozen(s.memory.inputs.read),
	}
	digest, err := data.Digest()
	if err != nil {
		return nil, err
	}
	return s.prepared(data, digest)
}

// prepared is a revision that can be rendered.
func (s *state) prepared(data revision.Data, digest string) (*rendered.Revision, error) {
	one, err := rendered.NewRevision(s.object.Name, data, digest, s.object.Spec.DependsOn)
	if err == nil {
		s.revisions[one.Name] = one
	}
	return one, err
}

// store keeps a revision, and creates its pinned source.
func (r *Reconciler) store(ctx context.Context, s *state, found *rendered.Revision) error {
	if kept, remembered := s.memory.data[found.Name]; remembered && kept.digest == found.Digest {
		return r.keepSource(ctx, s, found)
	}
	known, err := r.fetch(ctx, s, found.Name)
	if err != nil {
		return err
	}
	if known != nil && known.Annotations[revision.DigestAnnotation] != found.Digest {
		return stalledBy(v1alpha1.ReasonRevisionCollision, "controllerrevision %s/%s exists, and is another revision: delete it if nothing uses it", known.Namespace, known.Name)
	}
	if known == nil {
		text, err := found.Data.Encode()
		if err != nil {
			return &failure{reason: v1alpha1.ReasonLimitExceeded, stalled: true, err: err}
		}
		if err := r.copyInputs(ctx, s, found); err != nil {
			return err
		}
		kept := &appsv1.ControllerRevision{ObjectMeta: s.objectMeta(found), Data: runtime.RawExtension{Raw: text}, Revision: s.now.Unix()}
		if err := r.Client.Create(ctx, kept, client.FieldOwner(FieldManager)); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("storing revision %s in controllerrevision %s/%s: %w", found.Name, kept.Namespace, kept.Name, err)
		}
	}
	s.memory.data[found.Name] = keptRevision{found.Digest, found.Data}
	return r.keepSource(ctx, s, found)
}

// keepSource creates the immutable BundleSource of a revision, where there is none. Its sources are those of the BundleSource that the
// rollout follows, never of a stored revision: the user who wrote them was permitted to use the Secrets that they name.
func (r *Reconciler) keepSource(ctx context.Context, s *state, found *rendered.Revision) error {
	source := &v1alpha1.BundleSource{ObjectMeta: s.objectMeta(found)}
	var known v1alpha1.BundleSource
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(source), &known)
	if apierrors.IsNotFound(err) {
		source.Spec = v1alpha1.BundleSourceSpec{Sources: found.Data.Sources, Ignore: found.Data.Ignore, Immutable: true}
		if s.source != nil {
			source.Spec.Interval = s.source.Spec.Interval
			source.Spec.Timeout = s.source.Spec.Timeout
		}
		err = r.Client.Create(ctx, source, client.FieldOwner(FieldManager))
		if err == nil {
			return nil
		}
		if apierrors.IsAlreadyExists(err) {
			err = r.APIReader.Get(ctx, client.ObjectKeyFromObject(source), &known)
		}
	}
	if err != nil {
		return fmt.Errorf("keeping bundlesource %s/%s for revision %s: %w", source.Namespace, source.Name, found.Name, err)
	}
	if known.Labels[v1alpha1.RolloutLabel] != s.object.Name || known.Annotations[revision.DigestAnnotation] != found.Digest || !known.Spec.Immutable {
		return stalledBy(v1alpha1.ReasonRevisionCollision, "bundlesource %s/%s exists, and is not the source of revision %s: delete or rename it", known.Namespace, known.Name, found.Name)
	}
	return nil
}

// objectMeta is the metadata of the objects of a revision. They have no owner: they stay when the rollout is deleted and its
// BundleDeployments stay.
func (s *state) objectMeta(found *rendered.Revision) metav1.ObjectMeta {
	labels := map[string]string{}
	if s.source != nil {
		maps.Copy(labels, s.source.Labels) // of the shard, for instance
	}
	labels[v1alpha1.RolloutLabel] = s.object.Name
	return metav1.ObjectMeta{
		Namespace: s.object.Namespace, Name: revision.SourceName(s.object.Name, found.Name), Labels: labels,
		Annotations: map[string]string{revision.DigestAnnotation: found.Digest},
	}
}

// fetch reads the object of a stored revision; nil if there is none.
func (r *Reconciler) fetch(ctx context.Context, s *state, name string) (*appsv1.ControllerRevision, error) {
	var kept appsv1.ControllerRevision
	key := client.ObjectKey{Namespace: s.object.Namespace, Name: revision.SourceName(s.object.Name, name)}
	err := r.APIReader.Get(ctx, key, &kept)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading controllerrevision %s: %w", key, err)
	case kept.Labels[v1alpha1.RolloutLabel] != s.object.Name:
		return nil, stalledBy(v1alpha1.ReasonRevisionCollision, "controllerrevision %s exists, and does not belong to this rollout: delete or rename it", key)
	}
	return &kept, nil
}

// load is a stored revision; nil if it is not stored.
func (r *Reconciler) load(ctx context.Context, s *state, name string) (*rendered.Revision, error) {
	if known := s.revisions[name]; known != nil {
		return known, nil
	}
	if known, remembered := s.memory.data[name]; remembered {
		return s.prepared(known.data, known.digest)
	}
	kept, err := r.fetch(ctx, s, name)
	if kept == nil || err != nil {
		return nil, err
	}
	digest := kept.Annotations[revision.DigestAnnotation]
	data, err := revision.Decode(kept.Data.Raw, digest)
	if err == nil && revision.Name(digest) != name {
		err = errors.New("its digest is that of another revision")
	}
	if err != nil {
		return nil, stalledBy(revision.ReasonOf(err), "controllerrevision %s/%s cannot be used: %w", kept.Namespace, kept.Name, err)
	}
	s.memory.data[name] = keptRevision{digest, data}
	return s.prepared(data, digest)
}
