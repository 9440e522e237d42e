// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/certificates"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/leftout"
)

// Rendered is the revision as objects: the result of the steps load, convert and certify.
type Rendered struct {
	Unpacked *loader.Content // the unpacked artifact, until the conversion takes it over
	// Capabilities of the cluster that a chart asked for; nil for none.
	Capabilities *v1alpha1.Capabilities
	Release      func() // releases the room of Desired; nil when none is held
	// Desired are the objects of the revision, once Converted.
	Desired   []*unstructured.Unstructured
	Converted bool
	Ranks     map[inventory.ID]int // of Desired: see observe.Request
	Hooks     []plan.Hook          // of the revision
	// Bundle are the files of the revision, and Origins those that Desired came from.
	Bundle  leftout.Bundle
	Origins map[inventory.ID]string
	// Wanted are the certificates that Desired mounts and trusts, and Issued the result
	// of certify; nil while none is wanted or certify did not run.
	Wanted []convert.Certificate
	Issued *certificates.Issuance
	// Unproven: nothing but the plan tells whether Desired is what was applied, which has to be so.
	Unproven bool
	// Requires are the requirements of the bundle, and Contains its package.
	Requires []convert.Requirement
	Contains convert.Package
	Version  string // that the bundle states; "" for none
	Warnings []string

	approval.PlanDigests // of Desired
}

// Describe notes the files of a conversion.
func (r *Rendered) Describe(of convert.Result) {
	r.Bundle.Format, r.Bundle.Root = of.Format, of.Root
	r.Origins = spec.Origins(of)
}

// Files says where some objects of the plan, as they are applied, came from, and what links of the artifact hold.
func (r *Rendered) Files(objects []*unstructured.Unstructured, held *pruning.Held) snapshot.Files {
	files := snapshot.Files{Origins: leftout.OriginsOf(objects, r.Origins), LeftOut: r.Bundle.LeftOut}
	if held != nil {
		files.Hold(held.LeftOut)
	}
	return files
}

// AnotherContent says that a revision that was converted again is not as it was applied.
func AnotherContent(revision string) error {
	return fmt.Errorf("with the spec and inputs as they are now, revision %s becomes something else than what was applied", revision)
}

// Close removes the unpacked artifact.
func (r *Rendered) Close() {
	if r.Unpacked != nil {
		_ = r.Unpacked.Close() // leftover files are removed at the next start
		r.Unpacked = nil
	}
}

// Drop releases the contents of the objects, but keeps their number.
func (r *Rendered) Drop() {
	clear(r.Desired)
	if r.Release != nil {
		r.Release()
		r.Release = nil
	}
}

// Trusts tells whether an object trusts one of the wanted certificates.
func (r *Rendered) Trusts(object *unstructured.Unstructured) bool {
	return certificate.Trusts(object, certificates.Requests(r.Wanted))
}

// Bare returns the objects of the plan as the bundle has them, without what certify added.
func (r *Rendered) Bare(of *Subject, objects []plan.Object) ([]*unstructured.Unstructured, error) {
	return r.Issued.Bare(objects, of.Owner, r.Desired, r.Wanted)
}

// LastFields returns an object with all the fields that this deployment owned when it
// was applied last; nil if it was not applied. Fields that certify adds are included
// with any value, since they are issued again. The CA bundle of an object that trusts
// none of the certificates, then or now, is not.
func (r *Rendered) LastFields(of *Subject, id inventory.ID) *unstructured.Unstructured {
	if secret := r.Issued.Secret(id); secret != nil {
		return secret
	}
	last, trusted := of.Snapshot.Object(id)
	if last == nil || !trusted && !r.trustsNow(id) {
		return last
	}
	return certificate.Inject(last, nil)
}

// trustsNow tells whether an object of the revision trusts one of the certificates: its
// CA bundle is taken from its former owner, such as cert-manager.
func (r *Rendered) trustsNow(id inventory.ID) bool {
	return slices.ContainsFunc(r.Desired, func(object *unstructured.Unstructured) bool {
		return inventory.IDOf(object) == id && r.Trusts(object)
	})
}

// Earlier returns the kept contents that may have been written to an object: those of the
// last apply, and those begun since.
func (r *Rendered) Earlier(of *Subject, entry inventory.Entry) []*unstructured.Unstructured {
	var contents []*unstructured.Unstructured
	if last := r.LastFields(of, entry.ID); last != nil {
		contents = append(contents, last)
	}
	return append(contents, of.Snapshot.BegunAs(entry)...)
}
