// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/spec"
)

// substance holds the digests of what a plan contains: see package plan. The content
// digest reveals nothing about Secrets; the material digest includes them, keyed.
type substance struct{ content, material, terms, key string }

// digestMaterial digests the converted objects with their Secrets. The worker process, which does not know the key,
// digested the content.
func (r *Reconciler) digestMaterial(s *state) (err error) {
	all := slices.Concat(s.rendered.desired, plan.Rendered(s.rendered.hooks))
	s.rendered.substance.material, err = plan.Material(s.rendered.substance.content, s.resolved.inputs.digest, all, s.hashKey)
	return err
}

// terms are the settings of the spec, on the target cluster.
func (s *state) terms() plan.Terms {
	of := &s.object.Spec
	terms := plan.Terms{
		Account: of.ServiceAccountName, RemoteAccount: of.RemoteServiceAccountName, KubeConfig: kubeConfigText(of.KubeConfig),
		Target: s.listed.inventory.Target, InstallNamespace: s.object.InstallNamespaceOrDefault(), CreateNamespace: of.CreateNamespace,
		Pruning: spec.Pruning(of), Protection: plan.Protection(of.CollisionProtectionOrDefault()),
		Recreate:      of.Recreate == v1alpha1.RecreateOnImmutableChange,
		UpgradeSafety: plan.Enforcement(of.UpgradeSafetyOrDefault()), Ignore: spec.IgnoreRules(s.object),
	}
	if of.CRDs != nil {
		terms.Exempt = of.CRDs.UpgradeSafetyExemptions
	}
	return terms
}

// kubeConfigText is a reference to a kubeconfig as a string; "" for none.
func kubeConfigText(ref *v1alpha1.KubeConfigReference) string {
	if ref == nil {
		return ""
	}
	return strings.TrimSuffix(ref.SecretRef.Name+"/"+ref.SecretRef.Key, "/")
}

// proofParts are the signed parts of a proof: only this installation can make it, and it is valid for one deployment
// and purpose.
func proofParts(d *v1alpha1.BundleDeployment, purpose string, text []byte) []string {
	return []string{"satchel.dev/proof/v1", string(d.UID), purpose, string(text)}
}

// prove signs the record of a plan.
func (r *Reconciler) prove(d *v1alpha1.BundleDeployment, record *v1alpha1.ExecutedPlan) {
	record.Proof = r.Keys.Sign(proofParts(d, "executed", recordBytes(*record))...)
}

// recordBytes is a record as it is signed.
func recordBytes(record v1alpha1.ExecutedPlan) []byte {
	record.Proof = ""
	text, err := json.Marshal(record) // strings, a time and a flag: it cannot fail
	if err != nil {
		return nil
	}
	return text
}

// proven is the executed plan in the status; nil if this installation did not sign it.
func (r *Reconciler) proven(d *v1alpha1.BundleDeployment) *v1alpha1.ExecutedPlan {
	record := d.Status.Executed
	if record == nil || !r.Keys.Verify(record.Proof, proofParts(d, "executed", recordBytes(*record))...) {
		return nil
	}
	return record
}

// proveHealthy signs that a revision was healthy, for remediation.
func (r *Reconciler) proveHealthy(d *v1alpha1.BundleDeployment, material string) string {
	return r.Keys.Sign(proofParts(d, "healthy", []byte(material))...)
}

func (r *Reconciler) wasHealthy(d *v1alpha1.BundleDeployment, kept *v1alpha1.KeptArtifact) bool {
	return r.Keys.Verify(kept.Proof, proofParts(d, "healthy", []byte(kept.Material))...)
}

// unlock decrypts the key of the hashes in the status. Where the keys of the installation were rotated, it encrypts that key
// with the newest one, and renews the proofs that are valid, so that the former key can be removed. Hashes and digests
// stay as they are: nothing is applied again, no hook runs again, and no approval is lost.
func (r *Reconciler) unlock(s *state) {
	was := s.object.Status.HashKey
	var err error
	if s.hashKey, s.wrappedKey, err = r.Keys.HashKey(string(s.object.UID), was); err != nil {
		s.hashKey, s.wrappedKey = nil, was // a process without keys does not start
		return
	}
	if s.wrappedKey == was {
		return
	}
	s.object.Status.HashKey = s.wrappedKey
	if record := r.proven(s.object); record != nil {
		r.prove(s.object, record)
	}
	if kept := s.object.Status.LastHealthyArtifact; kept != nil && r.wasHealthy(s.object, kept) {
		kept.Proof = r.proveHealthy(s.object, kept.Material)
	}
}

// returns tells whether the revision that remediation rolls back to was executed before
// with the current terms.
func (r *Reconciler) returns(s *state, c *consent) bool {
	kept := s.object.Status.LastHealthyArtifact
	return kept != nil && c.record != nil && c.record.Terms == c.terms && kept.Material == c.material && r.wasHealthy(s.object, kept)
}
