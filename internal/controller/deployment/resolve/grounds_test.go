// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// T26: what people of the namespace change about a source is part of what was approved; what an upstream publishes, and how
// often it is asked, is not.
func TestT26GroundsOfASource(t *testing.T) {
	source := func(change func(*v1alpha1.BundleSource)) string {
		of := &v1alpha1.BundleSource{}
		of.Name = "app"
		of.Spec.Sources = []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Reference: "registry.example/app:v1"}}}
		of.Status.Artifact = &meta.Artifact{Revision: "v1@sha256:a"}
		of.Status.Resolved = []v1alpha1.ResolvedSource{{Digest: "sha256:a", Trust: "sha256:keys"}}
		change(of)
		return groundsOf(of)
	}
	same := source(func(*v1alpha1.BundleSource) {})
	for name, tc := range map[string]struct {
		changes bool
		change  func(*v1alpha1.BundleSource)
	}{
		"another reference": {true, func(s *v1alpha1.BundleSource) { s.Spec.Sources[0].Image.Reference = "registry.example/app:v2" }},
		"another login": {true, func(s *v1alpha1.BundleSource) {
			s.Spec.Sources[0].Image.SecretRef = &v1alpha1.LocalReference{Name: "a"}
		}},
		"other keys":        {true, func(s *v1alpha1.BundleSource) { s.Status.Resolved[0].Trust = "sha256:others" }},
		"no keys":           {true, func(s *v1alpha1.BundleSource) { s.Status.Resolved[0].Trust = "" }},
		"other authorities": {true, func(s *v1alpha1.BundleSource) { s.Status.Resolved[0].Transport = "sha256:others" }},
		"a new revision": {false, func(s *v1alpha1.BundleSource) {
			s.Status.Artifact.Revision, s.Status.Resolved[0].Digest = "v1@sha256:b", "sha256:b"
		}},
		"asked more often": {false, func(s *v1alpha1.BundleSource) { s.Spec.Interval = v1alpha1.Duration{Duration: time.Minute} }},
		"a ConfigMap": {true, func(s *v1alpha1.BundleSource) {
			s.Spec.Sources[0] = v1alpha1.Source{ConfigMap: &v1alpha1.LocalReference{}}
		}},
		"suspended for a time": {false, func(s *v1alpha1.BundleSource) { s.Spec.Suspend = true }},
	} {
		if got := source(tc.change); (got != same) != tc.changes {
			t.Errorf("%s: the grounds change: %t, want %t", name, got != same, tc.changes)
		}
	}
}
