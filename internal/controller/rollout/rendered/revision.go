// SPDX-License-Identifier: Apache-2.0

package rendered

import (
	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/rollout/children"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// Revision is a revision that BundleDeployments are rendered from.
type Revision struct {
	Name, Digest string
	Data         revision.Data
	// HasOwnInputs tells that clusters may have inputs of their own.
	HasOwnInputs bool

	renderer *revision.Renderer
}

// NewRevision prepares a revision of a rollout.
func NewRevision(rollout string, data revision.Data, digest string, dependsOn []v1alpha1.RolloutDependency) (*Revision, error) {
	name := revision.Name(digest)
	renderer, err := revision.NewRenderer(rollout, name, data, dependsOn)
	if err != nil {
		return nil, err
	}
	return &Revision{Name: name, Digest: digest, Data: data, HasOwnInputs: data.HasOwnInputs(), renderer: renderer}, nil
}

// DigestsOf reads the digests of the inputs that only one cluster has, in their order.
type DigestsOf func(wanted []revision.FrozenInput) ([]string, error)

// StartedWith are the digests that the last start of a BundleDeployment copied: what it reads until it is started again.
func StartedWith(child *v1alpha1.BundleDeployment) DigestsOf {
	digests := revision.DecodeDigests(child.Annotations[v1alpha1.RolloutInputsAnnotation])
	return func([]revision.FrozenInput) ([]string, error) { return digests, nil }
}

// Child is the BundleDeployment of a cluster without the copies of its own inputs: see Complete.
func (v *Revision) Child(cluster *revision.Cluster) (*revision.Child, error) {
	return v.renderer.Render(cluster)
}

// Shape is equal for clusters of which the specs differ in nothing but variables.
func (v *Revision) Shape(cluster *revision.Cluster) string { return v.renderer.Shape(cluster) }

// Render is the BundleDeployment of a cluster, with the hash of its spec.
func (v *Revision) Render(cluster *revision.Cluster, digests DigestsOf) (*revision.Child, string, error) {
	child, err := v.Child(cluster)
	if err != nil {
		return nil, "", err
	}
	_, hash, err := Complete(child, digests)
	return child, hash, err
}

// spec is what is remembered of the spec of a cluster.
func (v *Revision) spec(cluster *revision.Cluster, digests DigestsOf) (spec, error) {
	child, err := v.Child(cluster)
	if err != nil {
		return spec{}, err
	}
	of := spec{inputs: child.Inputs}
	of.digests, of.hash, err = Complete(child, digests)
	return of, err
}

// Complete has a rendered BundleDeployment read the copies of the inputs that only its cluster has, and returns the hash of its spec.
func Complete(child *revision.Child, of DigestsOf) (digests []string, hash string, err error) {
	if len(child.Inputs) > 0 {
		if digests, err = of(child.Inputs); err != nil {
			return nil, "", err
		}
		if err := child.UseInputs(digests); err != nil {
			return nil, "", err
		}
		child.Annotations = children.Annotated(child.Annotations, map[string]string{v1alpha1.RolloutInputsAnnotation: revision.EncodeDigests(digests)})
	}
	hash, err = revision.SpecHash(&child.Spec, digests)
	return digests, hash, err
}
