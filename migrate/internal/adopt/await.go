// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// awaitSource waits until the BundleSource of a deployment is fetched, since the deployment may have been created just now. It
// does not wait for a source that needs user action, and for none that a deployment only refers to and that does not exist.
func awaitSource(ctx context.Context, a *kit.App, c *kit.Cluster, d *v1alpha1.BundleDeployment, timeout time.Duration) error {
	name := effective.SourceName(d)
	if name == "" {
		return nil // a source of Flux
	}
	waiting, cancel := context.WithTimeoutCause(ctx, timeout, kit.ErrTooLong)
	defer cancel()
	said := ""
	for {
		v, err := sourceState(waiting, c, d, name)
		if err == nil && (v.Done || v.Never) {
			return nil // reading the artifact says what is wrong
		}
		if err != nil && waiting.Err() == nil {
			return err
		}
		if v.Text != "" && v.Text != said {
			fmt.Fprintf(a.Streams.ErrOut, "Waiting for the %s %s: %s.\n", kit.Sources.Name, view.Inline(name), v.Text)
			said = v.Text
		}
		if err := kit.Pause(waiting, kit.WaitPause); err != nil {
			if ctx.Err() == nil && errors.Is(context.Cause(waiting), kit.ErrTooLong) {
				return nil
			}
			return context.Cause(waiting)
		}
	}
}

// sourceState says how far the source of a deployment is.
func sourceState(ctx context.Context, c *kit.Cluster, d *v1alpha1.BundleDeployment, name string) (kit.WaitState, error) {
	source := new(v1alpha1.BundleSource)
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: name}, source)
	switch {
	case kit.IsObjectNotFound(err) && effective.OwnsSource(d):
		return kit.WaitState{Text: "it does not exist yet"}, nil // the deployment controller creates it
	case kit.IsObjectNotFound(err):
		return kit.WaitState{Never: true}, nil
	case err != nil:
		return kit.WaitState{}, &kit.AccessError{Verb: "get", Resource: kit.Sources.Resource, Namespace: d.Namespace, Err: err}
	}
	s := view.Summarize(source)
	switch {
	case d.Spec.Source != nil && effective.SourcesDigest(d.Spec.Source) != effective.SourcesDigest(&source.Spec):
		return kit.WaitState{Text: "it does not have the spec of the deployment yet"}, nil
	case source.Status.Artifact != nil && source.Status.SourcesDigest == effective.SourcesDigest(&source.Spec):
		return kit.WaitState{Done: true}, nil
	case s.Suspended, s.Stalled && !s.Unseen:
		return kit.WaitState{Never: true}, nil
	case s.Message == "":
		return kit.WaitState{Text: "it is not fetched yet"}, nil
	}
	return kit.WaitState{Text: view.OneLine(s.Message, 0)}, nil
}
