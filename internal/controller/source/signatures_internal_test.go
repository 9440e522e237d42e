// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

type unreadable struct{ client.Reader }

func (unreadable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("forbidden")
}

// If the label of the namespace cannot be read, a source without a required signature publishes nothing.
func TestT29UnreadableLabelStops(t *testing.T) {
	for name, tc := range map[string]struct {
		source v1alpha1.Source
		stops  bool
	}{
		"ConfigMap": {v1alpha1.Source{ConfigMap: &v1alpha1.LocalReference{Name: "a"}}, true},
		"signed":    {v1alpha1.Source{Git: &v1alpha1.GitSource{Verify: &v1alpha1.GitVerification{}}}, false},
	} {
		r := &Reconciler{Deps: Deps{APIReader: unreadable{}}}
		object := &v1alpha1.BundleSource{Spec: v1alpha1.BundleSourceSpec{Sources: []v1alpha1.Source{tc.source}}}
		outcome, err := r.requireSignatures(t.Context(), r.newState(object))
		if (err != nil) != tc.stops || (outcome == pipeline.Stop) != tc.stops {
			t.Errorf("%s: %v, %v", name, outcome, err)
		}
	}
}
