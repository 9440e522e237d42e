// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// PlanDigests holds the digests of what a plan contains: see package plan. The content
// digest reveals nothing about Secrets; the material digest includes them, keyed.
type PlanDigests struct{ Content, Material, terms, key string }

// termsOf are the settings of the spec, on the target cluster.
func termsOf(d *v1alpha1.BundleDeployment, target, reach string) plan.Terms {
	of := &d.Spec
	terms := plan.Terms{
		Account: of.ServiceAccountName, RemoteAccount: of.Target.ServiceAccountName, KubeConfig: kubeConfigText(effective.RemoteCluster(of.Target.ClusterReference)), KubeConfigReach: reach,
		Target: target, InstallNamespace: effective.InstallNamespace(d), CreateNamespace: of.Target.CreateNamespace,
		Pruning: spec.Pruning(of), Protection: ownership.Protection(effective.CollisionProtection(of)),
		Recreate:      of.Apply.Recreate == v1alpha1.RecreateOnImmutableChange,
		UpgradeSafety: plan.Enforcement(effective.UpgradeSafety(of)), Ignore: spec.IgnoreRules(d),
	}
	if of.Apply.CRDs != nil {
		terms.Exempt = of.Apply.CRDs.UpgradeSafetyExemptions
	}
	return terms
}

// kubeConfigText is a reference to a kubeconfig as a string; "" for none.
func kubeConfigText(ref *v1alpha1.ClusterReference) string {
	if ref == nil {
		return ""
	}
	if profile := ref.ClusterProfileRef; profile != nil { // no Secret has a name with such letters
		return strings.TrimSuffix("ClusterProfile:"+profile.Name+"/"+profile.AccessProvider, "/")
	}
	return strings.TrimSuffix(ref.KubeConfig.SecretRef.Name+"/"+ref.KubeConfig.SecretRef.Key, "/")
}

// What proofs say.
const (
	executed = "executed" // this plan
	healthy  = "healthy"  // this material
)

// proofParts are the signed parts of a proof: only this installation can make it, and it is valid for one deployment,
// purpose and version of the digests in it.
func proofParts(of format.Format, d *v1alpha1.BundleDeployment, purpose string, text []byte) []string {
	return []string{of.Purpose("proof"), string(d.UID), purpose, string(text)}
}

// sign returns a proof, which names the version of the digests in it.
func (a Approvals) sign(d *v1alpha1.BundleDeployment, purpose string, text []byte) string {
	return format.Plan.Text(a.Keys.Sign(proofParts(format.Plan, d, purpose, text)...))
}

// verify tells whether this installation made a proof, with digests of whatever version.
func (a Approvals) verify(proof string, d *v1alpha1.BundleDeployment, purpose string, text []byte) bool {
	of := format.Plan
	signature, err := of.CutText(proof)
	var another *format.AnotherVersionError
	if errors.As(err, &another) {
		of.Version, err = another.Found, nil
	}
	return err == nil && a.Keys.Verify(signature, proofParts(of, d, purpose, text)...)
}

// Prove signs the record of a plan.
func (a Approvals) Prove(d *v1alpha1.BundleDeployment, record *v1alpha1.ExecutedPlan) {
	record.Proof = a.sign(d, executed, recordBytes(*record))
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

// Proven is the executed plan in the status; nil if this installation did not sign it.
func (a Approvals) Proven(d *v1alpha1.BundleDeployment) *v1alpha1.ExecutedPlan {
	record := d.Status.Internal.Executed
	if record == nil || !a.verify(record.Proof, d, executed, recordBytes(*record)) {
		return nil
	}
	return record
}

// RenewProofs signs what is proven in the status with the newest key of the installation.
func (a Approvals) RenewProofs(d *v1alpha1.BundleDeployment) {
	if record := a.Proven(d); record != nil {
		a.Prove(d, record)
	}
	if kept := d.Status.Internal.Artifact; kept != nil && a.WasHealthy(d, kept) {
		kept.Proof = a.ProveHealthy(d, kept.Material)
	}
}

// ProveHealthy signs that a revision was healthy, for remediation.
func (a Approvals) ProveHealthy(d *v1alpha1.BundleDeployment, material string) string {
	return a.sign(d, healthy, []byte(material))
}

// WasHealthy tells whether the proof of a kept artifact is that of ProveHealthy.
func (a Approvals) WasHealthy(d *v1alpha1.BundleDeployment, kept *v1alpha1.KeptArtifact) bool {
	return a.verify(kept.Proof, d, healthy, []byte(kept.Material))
}

// returns tells whether the revision that remediation rolls back to was executed before
// with the current terms.
func (a Approvals) returns(d *v1alpha1.BundleDeployment, c *State) bool {
	kept := d.Status.Internal.Artifact
	return kept != nil && c.record != nil && c.record.Terms == c.terms && kept.Material == c.Material && a.WasHealthy(d, kept)
}
