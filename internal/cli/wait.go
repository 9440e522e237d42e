// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// waitPause is the pause between two reads of an object.
const waitPause = 500 * time.Millisecond

// What wait can wait for.
const (
	forReady    = "ready"
	forDeleted  = "deleted"
	forRevision = "revision="
)

// waitOptions are the flags of wait.
type waitOptions struct {
	selection
	until   string
	timeout time.Duration
}

func (a *app) waitCommand() *cobra.Command {
	var o waitOptions
	cmd := &cobra.Command{
		Use:     "wait [deployment|source] NAME...",
		GroupID: groupAct,
		Short:   "Wait until objects are Ready, have a revision, or are gone",
		Long: `Waits for a condition, and shows the progress on standard error. It changes nothing.

    --for ready           Ready with the current spec and, for a BundleDeployment, the current revision of its source.
                          It ends early, with 1, for an object that needs user action: stalled or suspended.
    --for revision=REV    Ready with this revision: its full name, the part before the @, or a digest of 12 or more digits
    --for deleted         gone, with all installed objects

Exit codes:

    0    condition met
    1    timed out, stalled or suspended
    2    failed: not found, no access
    130  interrupted by Ctrl-C`,
		Example: a.example(`
# In a pipeline, after applying the manifests
satchel wait podinfo --timeout 10m

# Until a release is installed
satchel wait podinfo --for revision=v1.4.0

# All sources of a team
satchel wait sources -l team=payments

# After kubectl delete --wait=false
satchel wait podinfo --for deleted`),
		ValidArgsFunction: a.completeTargets(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, err := o.targets(cmd, args)
			if err != nil {
				return err
			}
			if err := o.check(cmd); err != nil {
				return err
			}
			return a.wait(cmd.Context(), o, targets)
		},
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&o.until, "for", forReady, "What to wait for: ready, deleted or revision=REV.")
	a.completeFlag(cmd, "for", fixed(forReady, forDeleted, forRevision))
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait, for all of them together.")
	return cmd
}

// check refuses unknown conditions.
func (o waitOptions) check(cmd *cobra.Command) error {
	revision, isRevision := strings.CutPrefix(o.until, forRevision)
	if isRevision && revision != "" || o.until == forReady || o.until == forDeleted {
		return nil
	}
	return usageError(cmd, "--for takes ready, deleted or revision=REV, not %q", o.until)
}

func (a *app) wait(ctx context.Context, o waitOptions, targets []target) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	all, err := a.chooseToWait(ctx, c, o, targets)
	if err != nil {
		return err
	}
	if len(all) == 0 && o.until != forDeleted {
		a.nothingChosen(c, o.selection)
	}
	waiting, cancel := context.WithTimeoutCause(ctx, o.timeout, errTooLong)
	defer cancel()
	var outcome error
	for _, one := range all {
		err := a.waitOne(waiting, c, o, one.target)
		if outcome = worse(outcome, err); outcome != nil && !errors.Is(outcome, errNo) {
			return outcome
		}
	}
	return outcome
}

// chooseToWait is choose; with --for deleted, objects that do not exist are no error.
func (a *app) chooseToWait(ctx context.Context, c *cluster, o waitOptions, targets []target) ([]chosen, error) {
	if o.until != forDeleted {
		return c.choose(ctx, o.selection, targets)
	}
	var all []chosen
	for _, t := range targets {
		found, err := c.choose(ctx, o.selection, []target{t})
		var missing *notFoundError
		if errors.As(err, &missing) {
			fmt.Fprintf(a.streams.Out, "%s: gone\n", t)
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// waitState is the progress of a wait.
type waitState struct {
	done  bool
	never bool   // needs user action
	text  string // what is waited for, or what the outcome is
}

// waitOne waits for one object.
func (a *app) waitOne(ctx context.Context, c *cluster, o waitOptions, t target) error {
	return a.waitFor(ctx, t, o.timeout, func() (waitState, error) { return a.look(ctx, c, o, t) })
}

// waitFor calls look repeatedly, prints what is waited for when that changes, and prints the outcome.
func (a *app) waitFor(ctx context.Context, t target, timeout time.Duration, look func() (waitState, error)) error {
	said := ""
	for {
		v, err := look()
		switch {
		case ctx.Err() != nil:
			return a.waitEnded(ctx, t, said, timeout)
		case err != nil:
			return err
		case v.done:
			fmt.Fprintf(a.streams.Out, "%s: %s\n", t, v.text)
			return nil
		case v.never:
			fmt.Fprintf(a.streams.Out, "%s: %s\n", t, v.text)
			return errNo
		case v.text != said:
			fmt.Fprintf(a.streams.ErrOut, "%s: waiting: %s\n", t, v.text)
			said = v.text
		}
		select {
		case <-ctx.Done():
		case <-time.After(waitPause):
		}
	}
}

// waitEnded distinguishes a timeout from Ctrl-C.
func (a *app) waitEnded(ctx context.Context, t target, said string, timeout time.Duration) error {
	if !errors.Is(context.Cause(ctx), errTooLong) {
		return context.Cause(ctx)
	}
	fmt.Fprintf(a.streams.Out, "%s: not within %s: %s\n", t, short(timeout), dash(said))
	return errNo
}

// look reads the object, and its source where that matters.
func (a *app) look(ctx context.Context, c *cluster, o waitOptions, t target) (waitState, error) {
	found := t.kind.empty()
	err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: t.name}, found)
	switch {
	case isObjectNotFound(err) && o.until == forDeleted:
		return waitState{done: true, text: "gone"}, nil
	case isObjectNotFound(err):
		return waitState{}, c.notFound(ctx, t)
	case err != nil:
		return waitState{}, &accessError{verb: "get", resource: t.kind.resource, namespace: c.namespace, err: err}
	}
	if o.until == forDeleted {
		return judgeDeletion(found), nil
	}
	source, err := c.sourceOf(ctx, found)
	if err != nil {
		return waitState{}, err
	}
	return judgeReadiness(found, source, strings.TrimPrefix(o.until, forRevision), o.until != forReady), nil
}

// sourceOf is the BundleSource of a deployment; nil where there is none.
func (c *cluster) sourceOf(ctx context.Context, o object) (*v1alpha1.BundleSource, error) {
	d, isDeployment := o.(*v1alpha1.BundleDeployment)
	if !isDeployment || d.SourceName() == "" {
		return nil, nil
	}
	source := new(v1alpha1.BundleSource)
	err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: d.SourceName()}, source)
	switch {
	case isObjectNotFound(err):
		return nil, nil
	case err != nil:
		return nil, &accessError{verb: "get", resource: sources.resource, namespace: c.namespace, err: err}
	}
	return source, nil
}

func judgeDeletion(o object) waitState {
	s := summarize(o)
	if !s.deleting {
		return waitState{text: "its deletion has not been requested"}
	}
	return waitState{text: "being deleted" + withText(s)}
}

// judgeReadiness: the first line that holds decides.
//
//	being deleted                             never
//	Ready, with the source's revision         done, if it is the wanted one
//	suspended                                 never
//	stalled, about the spec as it is          never
//	else                                      waits
func judgeReadiness(o object, source *v1alpha1.BundleSource, wanted string, particular bool) waitState {
	s := summarize(o)
	behind := behindSource(o, source)
	ready := s.isReady() && behind == "" && requested(o, s) == ""
	revision := dash(shortRevision(inline(s.revision)))
	switch {
	case s.deleting:
		return waitState{never: true, text: "it is being deleted"}
	case ready && (!particular || matchesRevision(s.revision, wanted)):
		return waitState{done: true, text: "Ready, revision " + revision}
	case s.suspended:
		return waitState{never: true, text: "it is suspended" + withText(s)}
	case s.stalled && !s.unseen:
		return waitState{never: true, text: "it is stalled" + withText(s)}
	}
	return waitState{text: waitsFor(o, s, behind, ready)}
}

// waitsFor says why the condition is not met.
func waitsFor(o object, s summary, behind string, ready bool) string {
	switch approval := approvalText(o); {
	case ready:
		return "it is Ready with revision " + dash(shortRevision(inline(s.revision)))
	case s.isReady() && behind != "" && approval != "":
		return "it waits for approval: " + approval
	case s.isReady() && behind != "":
		return behind
	case s.isReady():
		return "a reconcile was requested and is not handled yet"
	}
	return oneLine(s.text(), 0)
}

// approvalText names the plan that waits for approval; empty if none does.
func approvalText(o object) string {
	pending := apimeta.FindStatusCondition(o.GetConditions(), v1alpha1.ApprovalPendingCondition)
	if pending == nil || pending.Status != metav1.ConditionTrue {
		return ""
	}
	return oneLine(pending.Message, 0)
}

// behindSource says which revision of the source is not applied yet.
func behindSource(o object, source *v1alpha1.BundleSource) string {
	d, isDeployment := o.(*v1alpha1.BundleDeployment)
	if !isDeployment || source == nil || source.Spec.Suspend {
		return ""
	}
	s := summarize(source)
	switch {
	case s.inProgress(), requested(source, s) != "":
		return "its source " + source.Name + " is being fetched"
	case s.revision != d.Status.LastAppliedRevision && s.revision != "":
		return "its source has another revision, " + dash(shortRevision(inline(s.revision)))
	}
	return ""
}

func withText(s summary) string {
	if s.message == "" {
		return ""
	}
	return ": " + oneLine(s.message, 0)
}

// shortestDigest is how many digits of a digest name a revision.
const shortestDigest = 12

// matchesRevision tells whether a revision is the wanted one, which may be named in full, by what is before the @, or by
// the beginning of its digest.
func matchesRevision(revision, wanted string) bool {
	name, digest, found := strings.Cut(revision, "@")
	if !found {
		name, digest = "", revision
	}
	if wanted == revision || wanted == name && name != "" {
		return wanted != ""
	}
	wantedName, wantedDigest, both := strings.Cut(wanted, "@")
	if both && wantedName != name {
		return false
	}
	if !both {
		wantedDigest = wanted
	}
	_, hex, _ := strings.Cut(digest, ":")
	algorithm, digits, prefixed := strings.Cut(wantedDigest, ":")
	if !prefixed {
		digits = wantedDigest
	} else if !strings.HasPrefix(digest, algorithm+":") {
		return false
	}
	return len(digits) >= shortestDigest && strings.HasPrefix(hex, digits)
}
