// SPDX-License-Identifier: Apache-2.0

package clirig

import (
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Digests and revisions of the objects.
const (
	DigestA   = "sha256:aaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	DigestB   = "sha256:cccccccccccc1111111111111111111111111111111111111111111111111111"
	RevisionA = "v1.2.0@" + DigestA
	RevisionB = "v1.3.0@" + DigestB
	// OriginB is the origin revision of RevisionB: the digest of the image.
	OriginB = "v1.3.0@" + DigestA
)

// Noon is the time of all tests without a cluster.
var Noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// Ago is a time before Noon.
func Ago(d time.Duration) metav1.Time { return metav1.NewTime(Noon.Add(-d)) }

// Condition is a condition of three minutes before Noon.
func Condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: 2, LastTransitionTime: Ago(3 * time.Minute)}
}

// Yes is a condition that is met.
func Yes(kind, message string) metav1.Condition {
	return Condition(kind, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, message)
}

// No is a condition that is not met.
func No(kind, reason, message string) metav1.Condition {
	return Condition(kind, metav1.ConditionFalse, reason, message)
}

// Source is a source that is Ready.
func Source(edit ...func(*v1alpha1.BundleSource)) *v1alpha1.BundleSource {
	s := &v1alpha1.BundleSource{
		ObjectMeta: metav1.ObjectMeta{Name: "podinfo", Namespace: "demo", Generation: 2, CreationTimestamp: Ago(26 * time.Hour)},
		Spec: v1alpha1.BundleSourceSpec{
			Interval: v1alpha1.Duration{Duration: 10 * time.Minute},
			Sources:  []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Reference: "example.org/podinfo:v1.3.0"}}},
		},
		Status: v1alpha1.BundleSourceStatus{
			ObservedGeneration: 2,
			Conditions:         []metav1.Condition{Yes(meta.ReadyCondition, "stored v1.3.0")},
			Artifact: &meta.Artifact{Path: "a.tar.gz", URL: "http://sources/a.tar.gz", Revision: RevisionB,
				Digest: DigestB, LastUpdateTime: Ago(4 * time.Minute)},
			OriginRevision: OriginB,
			Resolved:       []v1alpha1.ResolvedSource{{Reference: "v1.3.0", Digest: DigestA}},
		},
	}
	for _, change := range edit {
		change(s)
	}
	return s
}

// Catalog is a catalog that is Ready, and that no server serves.
func Catalog(edit ...func(*v1alpha1.BundleCatalog)) *v1alpha1.BundleCatalog {
	c := &v1alpha1.BundleCatalog{
		ObjectMeta: metav1.ObjectMeta{Name: "community", Namespace: "demo", Generation: 2, CreationTimestamp: Ago(26 * time.Hour)},
		Spec: v1alpha1.BundleCatalogSpec{
			Interval: v1alpha1.Duration{Duration: time.Hour}, Priority: 5,
			Source: v1alpha1.CatalogSource{Image: &v1alpha1.ImageSource{Reference: "example.org/catalog:latest"}},
		},
		Status: v1alpha1.BundleCatalogStatus{
			ObservedGeneration: 2,
			Conditions:         []metav1.Condition{Yes(meta.ReadyCondition, "serves 2 packages")},
			Content:            &v1alpha1.CatalogContent{Digest: DigestB, Packages: 2, Bundles: 7, Bytes: 4711, LastUpdateTime: Ago(4 * time.Minute)},
			Resolved:           []v1alpha1.ResolvedSource{{Reference: "latest", Digest: DigestA}},
			URLs:               &v1alpha1.CatalogURLs{Base: "http://sources/catalogs/demo/community"},
		},
	}
	for _, change := range edit {
		change(c)
	}
	return c
}

// Deployment is a deployment that is Ready.
func Deployment(edit ...func(*v1alpha1.BundleDeployment)) *v1alpha1.BundleDeployment {
	applied := Ago(2 * time.Minute)
	d := &v1alpha1.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "podinfo", Namespace: "demo", Generation: 2, CreationTimestamp: Ago(25 * time.Hour)},
		Spec: v1alpha1.BundleDeploymentSpec{
			Source:             &Source().Spec,
			ServiceAccountName: "installer",
			Interval:           v1alpha1.Duration{Duration: 10 * time.Minute},
			RetryInterval:      v1alpha1.Duration{Duration: time.Minute},
			Health:             v1alpha1.HealthOptions{Timeout: v1alpha1.Duration{Duration: 90 * time.Second}},
		},
		Status: v1alpha1.BundleDeploymentStatus{
			ObservedGeneration: 2,
			Conditions: []metav1.Condition{
				Yes(meta.ReadyCondition, "revision v1.3.0 is applied and healthy"),
				Yes(v1alpha1.SourceReadyCondition, ""), Yes(v1alpha1.ConvertedCondition, ""),
				Yes(v1alpha1.PlannedCondition, ""), Yes(v1alpha1.AppliedCondition, ""), Yes(v1alpha1.HealthyCondition, ""),
			},
			Attempted: v1alpha1.AttemptedRevision{Revision: RevisionB},
			Applied:   v1alpha1.AppliedRevision{Revision: RevisionB, OriginRevision: OriginB, Version: "1.3.0", CompletionTime: &applied},
			Healthy:   v1alpha1.HealthyRevision{Revision: RevisionB},
			Plan:      &v1alpha1.PlanStatus{Revision: RevisionB, Create: 4, Update: 1, Delete: 2},
			Format:    v1alpha1.FormatPlainV0,
			Objects:   &v1alpha1.ObjectCounts{Applied: 5},
		},
	}
	for _, change := range edit {
		change(d)
	}
	return d
}

// With replaces conditions.
func With(conditions ...metav1.Condition) func(*v1alpha1.BundleDeployment) {
	return func(d *v1alpha1.BundleDeployment) { d.Status.Conditions = Replaced(d.Status.Conditions, conditions) }
}

// Replaced are conditions after a change: one of the same type takes the place of the former.
func Replaced(present, changed []metav1.Condition) []metav1.Condition {
	for _, c := range changed {
		found := false
		for i := range present {
			if present[i].Type == c.Type {
				present[i], found = c, true
			}
		}
		if !found {
			present = append(present, c)
		}
	}
	return present
}

// Without removes conditions, and the status fields that are set after them.
func Without(kinds ...string) func(*v1alpha1.BundleDeployment) {
	return func(d *v1alpha1.BundleDeployment) {
		var kept []metav1.Condition
		for _, c := range d.Status.Conditions {
			if !strings.Contains(strings.Join(kinds, " "), c.Type) {
				kept = append(kept, c)
			}
		}
		d.Status.Conditions = kept
	}
}

// Never is a deployment that no controller has seen.
func Never(d *v1alpha1.BundleDeployment) {
	d.Status = v1alpha1.BundleDeploymentStatus{ObservedGeneration: -1}
}

// First is a deployment without an applied revision.
func First(d *v1alpha1.BundleDeployment) {
	d.Status.Applied.Revision, d.Status.Healthy.Revision, d.Status.Applied.CompletionTime, d.Status.Objects = "", "", nil, nil
}

// Retrying is the condition of an object that is retried.
func Retrying() metav1.Condition {
	return Condition(meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingWithRetryReason, "")
}

// Working is the condition of an object that is reconciled.
func Working() metav1.Condition {
	return Condition(meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingReason, "")
}

// Called names a deployment.
func Called(name string) func(*v1alpha1.BundleDeployment) {
	return func(d *v1alpha1.BundleDeployment) { d.Name = name }
}

// Reference is a deployment with a source of its own object.
func Reference(d *v1alpha1.BundleDeployment) {
	d.Spec.Source = nil
	d.Spec.SourceRef = &v1alpha1.SourceReference{Kind: "BundleSource", Name: "podinfo"}
}
