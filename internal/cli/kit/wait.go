// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// WaitPause is the pause between two reads of an object.
const WaitPause = 500 * time.Millisecond

// What wait can wait for.
const (
	ForReady    = "ready"
	ForDeleted  = "deleted"
	ForRevision = "revision="
)

// WaitState is the progress of a wait.
type WaitState struct {
	Done  bool
	Never bool   // needs user action
	Text  string // what is waited for, or what the outcome is
}

// WaitFor calls look repeatedly, prints what is waited for when that changes, and prints the outcome.
func (a *App) WaitFor(ctx context.Context, t Target, timeout time.Duration, look func() (WaitState, error)) error {
	said := ""
	for {
		v, err := look()
		switch {
		case ctx.Err() != nil:
			return a.waitEnded(ctx, t, said, timeout)
		case err != nil:
			return err
		case v.Done:
			fmt.Fprintf(a.Streams.Out, "%s: %s\n", t, v.Text)
			return nil
		case v.Never:
			fmt.Fprintf(a.Streams.Out, "%s: %s\n", t, v.Text)
			return ErrNo
		case v.Text != said:
			fmt.Fprintf(a.Streams.ErrOut, "%s: waiting: %s\n", t, v.Text)
			said = v.Text
		}
		select {
		case <-ctx.Done():
		case <-time.After(WaitPause):
		}
	}
}

// waitEnded distinguishes a timeout from Ctrl-C.
func (a *App) waitEnded(ctx context.Context, t Target, said string, timeout time.Duration) error {
	if !errors.Is(context.Cause(ctx), ErrTooLong) {
		return context.Cause(ctx)
	}
	fmt.Fprintf(a.Streams.Out, "%s: not within %s: %s\n", t, view.Short(timeout), Dash(said))
	return ErrNo
}

// SourceOf is the BundleSource of a deployment; nil where there is none.
func (c *Cluster) SourceOf(ctx context.Context, o view.Object) (*v1alpha1.BundleSource, error) {
	d, isDeployment := o.(*v1alpha1.BundleDeployment)
	if !isDeployment || effective.SourceName(d) == "" {
		return nil, nil
	}
	source := new(v1alpha1.BundleSource)
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: effective.SourceName(d)}, source)
	switch {
	case IsObjectNotFound(err):
		return nil, nil
	case err != nil:
		return nil, &AccessError{Verb: "get", Resource: Sources.Resource, Namespace: c.Namespace, Err: err}
	}
	return source, nil
}

// ReadinessOf says how far an object is. The first line that holds decides.
//
//	being deleted                             never
//	Ready, with the source's revision         done, if it is the wanted one
//	suspended                                 never
//	stalled, about the spec as it is          never
//	else                                      waits
func ReadinessOf(o view.Object, source *v1alpha1.BundleSource, wanted string, particular bool) WaitState {
	s := view.Summarize(o)
	behind := behindSource(o, source)
	ready := s.IsReady() && behind == "" && view.Requested(o, s) == ""
	switch {
	case s.Deleting:
		return WaitState{Never: true, Text: "it is being deleted"}
	case ready && (!particular || view.MatchesRevision(s.Revision, wanted) || view.MatchesOrigin(s.Version, s.Origin, wanted)):
		return WaitState{Done: true, Text: "Ready, " + s.RevisionName()}
	case s.Suspended:
		return WaitState{Never: true, Text: "it is suspended" + WithText(s)}
	case s.Stalled && !s.Unseen:
		return WaitState{Never: true, Text: "it is stalled" + WithText(s)}
	}
	return WaitState{Text: waitsFor(o, s, behind, ready)}
}

// waitsFor says why the condition is not met.
func waitsFor(o view.Object, s view.Summary, behind string, ready bool) string {
	switch approval := approvalText(o); {
	case ready:
		return "it is Ready with " + s.RevisionName()
	case s.IsReady() && behind != "" && approval != "":
		return "it waits for approval: " + approval
	case s.IsReady() && behind != "":
		return behind
	case s.IsReady():
		return "a reconcile was requested and is not handled yet"
	}
	return view.OneLine(s.Text(), 0)
}

// approvalText names the plan that waits for approval; empty if none does.
func approvalText(o view.Object) string {
	pending := apimeta.FindStatusCondition(o.GetConditions(), v1alpha1.ApprovalPendingCondition)
	if pending == nil || pending.Status != metav1.ConditionTrue {
		return ""
	}
	return view.OneLine(pending.Message, 0)
}

// behindSource says which revision of the source is not applied yet.
func behindSource(o view.Object, source *v1alpha1.BundleSource) string {
	d, isDeployment := o.(*v1alpha1.BundleDeployment)
	if !isDeployment || source == nil || source.Spec.Suspend {
		return ""
	}
	s := view.Summarize(source)
	switch {
	case s.InProgress(), view.Requested(source, s) != "":
		return "its source " + source.Name + " is being fetched"
	case s.Revision != d.Status.Applied.Revision && s.Revision != "":
		return "its source has another revision, " + strings.TrimPrefix(s.RevisionName(), "revision ")
	}
	return ""
}

// WithText is the message of an object, to follow what is said about it.
func WithText(s view.Summary) string {
	if s.Message == "" {
		return ""
	}
	return ": " + view.OneLine(s.Message, 0)
}
