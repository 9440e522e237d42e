// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Look runs one look of the guard, as at its interval.
func (g *Guard) Look(t *testing.T, config *rest.Config) {
	t.Helper()
	g.Reads(t, config)
	if err := g.look(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Reads has the guard read by a client, and as often as every millisecond after a disturbance.
func (g *Guard) Reads(t *testing.T, config *rest.Config) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := apimeta.NewDefaultRESTMapper(nil)
	mapper.Add(v1alpha1.GroupVersion.WithKind(v1alpha1.BundleSourceKind), apimeta.RESTScopeNamespace)
	reader, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	g.reader, g.every = reader, time.Millisecond
}

// Passes has the guard measure passing time by a function.
func (g *Guard) Passes(passed func() time.Duration) { g.passed = passed }
