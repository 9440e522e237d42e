// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Resolved says what is to be installed, where and with which permissions: the result of the
// steps from account to due.
type Resolved struct {
	Access   Access
	Catalog  *Catalog // what spec.catalog resolved to; nil without it
	Source   *Origin
	Artifact *meta.Artifact
	// OriginRevision names Artifact as its upstream does; "" where that is not known.
	OriginRevision string
	// Rejected is the artifact of the source while its revision is rejected and Artifact
	// is that of the last healthy one; nil otherwise. SourceOwner is the owner of the
	// rejected one. Lifted: the rejection ended in this reconcile.
	Rejected    *meta.Artifact
	SourceOwner artifact.Owner
	Lifted      bool
	Inputs      Inputs // Secrets and ConfigMaps for the conversion
	// Unapproved: the spec waits for an approval, so only the approved settings apply.
	Unapproved bool
	// BesideAttempt: an attempt at a newer revision waits, and what it has written and deleted stays so.
	BesideAttempt bool
	Found         drift.Findings // what watches reported
	// Due: the objects have to be compared with the cluster, not only their health. Routine: for no other reason than the
	// interval or a request, and with the input of the last complete reconcile.
	Due     bool
	Routine bool
}

// Access is how the objects of a deployment are reached.
type Access struct {
	Client *tenant.Client
	Local  *tenant.Client // impersonates the ServiceAccount on this cluster, also if Client is for another one
	Remote string         // the Secret with the kubeconfig of Client, as shown in messages; empty on this cluster
	// Reach is where the kubeconfig of Client leads; zero on this cluster.
	Reach tenant.Reach
	// Gone: the ServiceAccount on this cluster does not exist any more. Only a removal has such clients.
	Gone bool
}

// Origin is where the content of a deployment comes from.
type Origin struct {
	Owner    artifact.Owner
	Artifact *meta.Artifact
	Revision string            // of the upstream: see Resolved.OriginRevision
	Ready    *metav1.Condition // nil when the source says nothing
	Parts    []v1alpha1.RevisionOrigin
	Grounds  string // digest of its spec
	// Unverified names the parts that require no signature.
	Unverified []string
	// Untrusted says why the source's current trust settings have not accepted the artifact; "" when they have, or no
	// signature is required.
	Untrusted string
}

// Inputs are the Secrets and ConfigMaps that the conversion needs.
type Inputs struct {
	Sought bool // Needed is known
	Needed []spec.Input
	// Read: they were read in this reconcile into Contents and Values.
	Read     bool
	Contents spec.Contents
	Values   map[string]any // for the templates of a chart
	// Digest of them: see status.plan.inputs. If they were not read, it is the last known one.
	Digest string
	// Readings are the observed versions of the objects.
	Readings []drift.Reading
}

// Secret tells that there are Secrets among them.
func (i *Inputs) Secret() bool {
	return slices.ContainsFunc(i.Needed, func(input spec.Input) bool { return input.Kind == spec.SecretKind })
}

// Public returns the digest of what they were converted with; "" if there are Secrets among them, since a reader could test
// guesses of their values against it.
func (i *Inputs) Public(content string) string {
	if i.Secret() {
		return ""
	}
	return content
}

// Revision of the artifact that is installed or tried.
func (r *Resolved) Revision() string {
	if r.Artifact == nil {
		return ""
	}
	return r.Artifact.Revision
}

// Attempt identifies the input of this reconcile.
func (r *Resolved) Attempt(of *Subject) Attempt {
	a := Attempt{Generation: of.Object.Generation, Requested: pipeline.Requested(of.Object), Inputs: r.Inputs.Digest, Reach: r.Reach(of)}
	if r.Artifact != nil {
		a.Revision, a.Digest = r.Artifact.Revision, r.Artifact.Digest
	}
	return a
}

// Reach is where the kubeconfig leads, as keyed hashes: see approval.Reach.
func (r *Resolved) Reach(of *Subject) string { return approval.Reach(r.Access.Reach, of.HashKey) }

// ChangedInputs tells that the inputs changed since the plan in the status.
func (r *Resolved) ChangedInputs(of *Subject) bool {
	was := of.Before.Status.Plan
	return r.Inputs.Digest != "" && was != nil && was.Inputs != r.Inputs.Digest
}

// SameAsBefore tells that the last reconcile had the same spec, inputs and revision.
func (r *Resolved) SameAsBefore(of *Subject) bool {
	was := &of.Before.Status
	return !r.ChangedInputs(of) && was.ObservedGeneration == of.Object.Generation && was.Attempted.Revision == r.Revision()
}

// PlannedBefore tells that a plan was made before of the same revision, spec and inputs: it is not enough that they were the same, as
// while they were converted.
func (r *Resolved) PlannedBefore(of *Subject) bool {
	was, planned := conditions.Get(of.Before, v1alpha1.ConvertedCondition), of.Before.Status.Plan
	converted := was != nil && was.Status == metav1.ConditionTrue && was.ObservedGeneration == of.Object.Generation
	return converted && planned != nil && planned.Revision == r.Revision() && r.SameAsBefore(of)
}

// AppliedAsIs tells whether the artifact was applied completely with the current spec.
func (r *Resolved) AppliedAsIs(of *Subject) bool {
	applied := conditions.Get(of.Object, v1alpha1.AppliedCondition)
	return applied != nil && !r.ChangedInputs(of) && conditions.IsTrue(of.Object, v1alpha1.AppliedCondition) &&
		applied.ObservedGeneration == of.Object.Generation && of.Object.Status.Applied.Revision == r.Revision()
}

// LeavesDrift tells that drift is not corrected: by the mode, and because the revision,
// the spec and its inputs were applied before.
func (r *Resolved) LeavesDrift(of *Subject) bool {
	if effective.DriftMode(&of.Object.Spec) == v1alpha1.DriftEnabled {
		return false
	}
	was := &of.Before.Status
	return of.Keeping || !r.ChangedInputs(of) && was.Applied.Revision == r.Revision() && was.ObservedGeneration == of.Object.Generation
}

// Record is the record in the history of the revision that is tried or applied; nil when there
// is none. While the source's revision is rejected it is the record of that one.
func (r *Resolved) Record(of *Subject) *v1alpha1.RevisionRecord {
	history, revision := of.Object.Status.History, r.Revision()
	if r.Rejected != nil {
		revision = r.Rejected.Revision
	}
	if len(history) == 0 || history[0].Revision != revision {
		return nil
	}
	return &history[0]
}

// Edits tells whether the spec or its inputs changed since a revision was tried.
func (r *Resolved) Edits(of *Subject, record *v1alpha1.RevisionRecord) bool {
	return record.Generation != of.Object.Generation || r.ChangedInputs(of)
}

// Retries tells whether failures of the revision are counted and retried.
func (r *Resolved) Retries(of *Subject) bool {
	return r.Rejected == nil && effective.RollsBack(&of.Object.Spec) && of.Object.Status.Healthy.Revision != r.Revision()
}

// Subscription is the subscription to changes of the objects of the deployment, without objects.
func (r *Resolved) Subscription(of *Subject, listed *Listing) drift.Subscription {
	return drift.Subscription{
		Client: r.Access.Client, Owner: of.Owner, Target: listed.Current().Target(),
		Drift: effective.DriftMode(&of.Object.Spec) != v1alpha1.DriftNone, DriftResolved: of.Warns(),
	}
}

// OwnerOf is the source of a kept artifact, in the deployment's namespace.
func OwnerOf(kept *v1alpha1.KeptArtifact, namespace string) (artifact.Owner, error) {
	kind, name, _ := strings.Cut(kept.Source, "/")
	owner := artifact.Owner{Kind: kind, Namespace: namespace, Name: name}
	return owner, owner.Validate()
}
