// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

const (
	digestA   = "sha256:aaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	digestB   = "sha256:cccccccccccc1111111111111111111111111111111111111111111111111111"
	revisionA = "v1.2.0@" + digestA
	revisionB = "v1.3.0@" + digestB
	// originB is the origin revision of revisionB: the digest of the image.
	originB = "v1.3.0@" + digestA
)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: 2, LastTransitionTime: ago(3 * time.Minute)}
}

func yes(kind, message string) metav1.Condition {
	return condition(kind, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, message)
}

func no(kind, reason, message string) metav1.Condition {
	return condition(kind, metav1.ConditionFalse, reason, message)
}

// aSource is a source that is Ready.
func aSource(edit ...func(*v1alpha1.BundleSource)) *v1alpha1.BundleSource {
	s := &v1alpha1.BundleSource{
		ObjectMeta: metav1.ObjectMeta{Name: "podinfo", Namespace: "demo", Generation: 2, CreationTimestamp: ago(26 * time.Hour)},
		Spec: v1alpha1.BundleSourceSpec{
			Interval: v1alpha1.Duration{Duration: 10 * time.Minute},
			Sources:  []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Ref: "example.org/podinfo:v1.3.0"}}},
		},
		Status: v1alpha1.BundleSourceStatus{
			ObservedGeneration: 2,
			Conditions:         []metav1.Condition{yes(meta.ReadyCondition, "stored v1.3.0")},
			Artifact: &meta.Artifact{Path: "a.tar.gz", URL: "http://sources/a.tar.gz", Revision: revisionB,
				Digest: digestB, LastUpdateTime: ago(4 * time.Minute)},
			OriginRevision: originB,
			Resolved:       []v1alpha1.ResolvedSource{{Reference: "v1.3.0", Digest: digestA}},
		},
	}
	for _, change := range edit {
		change(s)
	}
	return s
}

// aCatalog is a catalog that is Ready, and that no server serves.
func aCatalog(edit ...func(*v1alpha1.BundleCatalog)) *v1alpha1.BundleCatalog {
	c := &v1alpha1.BundleCatalog{
		ObjectMeta: metav1.ObjectMeta{Name: "community", Namespace: "demo", Generation: 2, CreationTimestamp: ago(26 * time.Hour)},
		Spec: v1alpha1.BundleCatalogSpec{
			Interval: v1alpha1.Duration{Duration: time.Hour}, Priority: 5,
			Sources: []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Ref: "example.org/catalog:latest"}}},
		},
		Status: v1alpha1.BundleCatalogStatus{
			ObservedGeneration: 2,
			Conditions:         []metav1.Condition{yes(meta.ReadyCondition, "serves 2 packages")},
			Content:            &v1alpha1.CatalogContent{Digest: digestB, Packages: 2, Bundles: 7, Bytes: 4711, LastUpdateTime: ago(4 * time.Minute)},
			Resolved:           []v1alpha1.ResolvedSource{{Reference: "latest", Digest: digestA}},
			URLs:               &v1alpha1.CatalogURLs{Base: "http://sources/catalogs/demo/community"},
		},
	}
	for _, change := range edit {
		change(c)
	}
	return c
}

// aDeployment is a deployment that is Ready.
func aDeployment(edit ...func(*v1alpha1.BundleDeployment)) *v1alpha1.BundleDeployment {
	applied := ago(2 * time.Minute)
	d := &v1alpha1.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "podinfo", Namespace: "demo", Generation: 2, CreationTimestamp: ago(25 * time.Hour)},
		Spec: v1alpha1.BundleDeploymentSpec{
			Source:             &aSource().Spec,
			ServiceAccountName: "installer",
			Interval:           v1alpha1.Duration{Duration: 10 * time.Minute},
			RetryInterval:      v1alpha1.Duration{Duration: time.Minute},
			Timeout:            v1alpha1.Duration{Duration: 90 * time.Second},
		},
		Status: v1alpha1.BundleDeploymentStatus{
			ObservedGeneration: 2,
			Conditions: []metav1.Condition{
				yes(meta.ReadyCondition, "revision v1.3.0 is applied and healthy"),
				yes(v1alpha1.SourceReadyCondition, ""), yes(v1alpha1.ConvertedCondition, ""),
				yes(v1alpha1.PlannedCondition, ""), yes(v1alpha1.AppliedCondition, ""), yes(v1alpha1.HealthyCondition, ""),
			},
			LastAttemptedRevision: revisionB, LastAppliedRevision: revisionB, LastHealthyRevision: revisionB,
			LastAppliedOriginRevision: originB, LastAppliedVersion: "1.3.0",
			LastAppliedTime: &applied,
			Plan:            &v1alpha1.PlanStatus{Revision: revisionB, Create: 4, Update: 1, Delete: 2},
			Format:          v1alpha1.FormatPlainV0,
			Objects:         &v1alpha1.ObjectCounts{Applied: 5},
		},
	}
	for _, change := range edit {
		change(d)
	}
	return d
}

// with replaces conditions.
func with(conditions ...metav1.Condition) func(*v1alpha1.BundleDeployment) {
	return func(d *v1alpha1.BundleDeployment) { d.Status.Conditions = replaced(d.Status.Conditions, conditions) }
}

func replaced(present, changed []metav1.Condition) []metav1.Condition {
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

// without removes conditions, and the status fields that are set after them.
func without(kinds ...string) func(*v1alpha1.BundleDeployment) {
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

// never is a deployment that no controller has seen.
func never(d *v1alpha1.BundleDeployment) {
	d.Status = v1alpha1.BundleDeploymentStatus{ObservedGeneration: -1}
}

// first is a deployment without an applied revision.
func first(d *v1alpha1.BundleDeployment) {
	d.Status.LastAppliedRevision, d.Status.LastHealthyRevision, d.Status.LastAppliedTime, d.Status.Objects = "", "", nil, nil
}

func retrying() metav1.Condition {
	return condition(meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingWithRetryReason, "")
}

func working() metav1.Condition {
	return condition(meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingReason, "")
}
