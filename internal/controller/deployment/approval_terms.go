// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/spec"
)

// substance is what a plan is of, in digests: see package plan. The content tells nothing
// of Secrets; the material does, to who has the key.
type substance struct{ content, material, terms, key string }

// digestContent digests what the conversion yielded.
func (r *Reconciler) digestContent(s *state) error {
	var err error
	all := slices.Concat(s.desired, plan.Rendered(s.hooks))
	if s.substance.content, err = plan.Content(all, s.object.InstallNamespaceOrDefault()); err == nil {
		s.substance.material, err = plan.Material(s.substance.content, s.inputs.digest, all, r.HashKey)
	}
	return err
}

// terms are those of the spec, on the cluster that is reached.
func (s *state) terms() plan.Terms {
	of := &s.object.Spec
	terms := plan.Terms{
		Account: of.ServiceAccountName, RemoteAccount: of.RemoteServiceAccountName, KubeConfig: kubeConfigText(of.KubeConfig),
		Target: s.previous.Target, InstallNamespace: s.object.InstallNamespaceOrDefault(), CreateNamespace: of.CreateNamespace,
		Pruning: spec.Pruning(of), Protection: plan.Protection(of.CollisionProtectionOrDefault()),
		Recreate:      of.Recreate == v1alpha1.RecreateOnImmutableChange,
		UpgradeSafety: plan.Enforcement(of.UpgradeSafetyOrDefault()), Ignore: spec.IgnoreRules(s.object),
	}
	if of.CRDs != nil {
		terms.Exempt = of.CRDs.UpgradeSafetyExemptions
	}
	return terms
}

// kubeConfigText is a reference to a kubeconfig in words; "" for none.
func kubeConfigText(ref *v1alpha1.KubeConfigReference) string {
	if ref == nil {
		return ""
	}
	return strings.TrimSuffix(ref.SecretRef.Name+"/"+ref.SecretRef.Key, "/")
}

// proof is what nobody without the controller's key can make of a text about a deployment.
func (r *Reconciler) proof(d *v1alpha1.BundleDeployment, about string, text []byte) string {
	mac := hmac.New(sha256.New, r.HashKey)
	for _, part := range []string{"satchel.dev/proof/v1", string(d.UID), about, string(text)} {
		mac.Write([]byte(part))
		mac.Write([]byte{0})
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// prove gives a record of a plan its proof.
func (r *Reconciler) prove(d *v1alpha1.BundleDeployment, record *v1alpha1.ExecutedPlan) {
	record.Proof = r.proofOf(d, *record)
}

func (r *Reconciler) proofOf(d *v1alpha1.BundleDeployment, record v1alpha1.ExecutedPlan) string {
	record.Proof = ""
	text, err := json.Marshal(record) // strings, a time and a flag: it cannot fail
	if err != nil {
		return ""
	}
	return r.proof(d, "executed", text)
}

// proven is the plan that the status says was carried out, unless somebody else wrote that.
func (r *Reconciler) proven(d *v1alpha1.BundleDeployment) *v1alpha1.ExecutedPlan {
	record := d.Status.Executed
	if record == nil || !hmac.Equal([]byte(record.Proof), []byte(r.proofOf(d, *record))) {
		return nil
	}
	return record
}

// returns tells whether the revision that remediation goes back to was carried out before
// with the terms of now.
func (r *Reconciler) returns(s *state, c *consent) bool {
	kept := s.object.Status.LastHealthyArtifact
	return kept != nil && c.record != nil && c.record.Terms == c.terms && kept.Material == c.material &&
		hmac.Equal([]byte(kept.Proof), []byte(r.proof(s.object, "healthy", []byte(kept.Material))))
}
