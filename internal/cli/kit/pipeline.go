// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// ReadPipeline reads a deployment and its source.
func (c *Cluster) ReadPipeline(ctx context.Context, t Target, a *App) (view.Pipeline, error) {
	raw, err := c.getRaw(ctx, t)
	if err != nil {
		return view.Pipeline{}, err
	}
	d := new(v1alpha1.BundleDeployment)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, d); err != nil {
		return view.Pipeline{}, fmt.Errorf("reading %s %s: %w", t.Kind.Name, t.Name, err)
	}
	if effective.SourceName(d) == "" { // a source of Flux
		return view.NewPipeline(d, nil, a.Name, a.Now()), nil
	}
	source := new(v1alpha1.BundleSource)
	err = c.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: effective.SourceName(d)}, source)
	switch {
	case IsObjectNotFound(err):
		source = nil
	case err != nil:
		return view.Pipeline{}, &AccessError{Verb: "get", Resource: Sources.Resource, Namespace: c.Namespace, Err: err}
	}
	return view.NewPipeline(d, source, a.Name, a.Now()), nil
}
