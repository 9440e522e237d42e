// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/visible"
)

// rollbackOptions are the flags of rollback.
type rollbackOptions struct {
	to      string
	dryRun  bool
	wait    bool
	timeout time.Duration
}

func (a *app) rollbackCommand() *cobra.Command {
	var o rollbackOptions
	cmd := &cobra.Command{
		Use:     "rollback NAME --to previous|REVISION",
		GroupID: groupAct,
		Short:   "Go back to an earlier revision, by pinning the source to it",
		Long: `Pins the source of a BundleDeployment to what an earlier revision of its history was fetched from: an image to its
digest, a Git repository to the commit, an archive to URL and digest. The controllers then fetch, verify and install it
like any revision. The spec of the deployment itself (patches, options) is not changed.

To follow the former tag or branch again, restore the former source; the command prints how. If the object comes from Git,
commit the same change there, or Flux or Argo CD will undo it: --dry-run prints what to commit, and changes nothing. For
sources of Flux it never does more than that.

Exit codes:

    0    the revision is applied and healthy (with --wait=false: requested; with --dry-run: printed)
    1    it is not (yet), or the change has to be committed to Git and was only printed
    2    failed: not found, no access, suspended, no such revision
    130  interrupted by Ctrl-C (the controllers go on)`,
		Example: a.example(`
# Back to the last healthy revision before this one
satchel rollback podinfo --to previous

# Back to a named revision; the history command lists them
satchel rollback podinfo --to v1.2.0

# What to commit to Git for that
satchel rollback podinfo --to v1.2.0 --dry-run`),
		ValidArgsFunction: a.completeOne(deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := oneTarget(cmd, args)
			switch {
			case err != nil:
				return err
			case t.kind.name != deployments.name:
				return usageError(cmd, "rollback is about BundleDeployments: name one that uses the source")
			case o.to == "":
				return usageError(cmd, "--to says which revision: previous, or one of the history")
			}
			return a.rollback(cmd.Context(), o, t)
		},
	}
	cmd.Flags().StringVar(&o.to, "to", "", "The revision: previous, its name, or a digest of 12 or more digits.")
	a.completeFlag(cmd, "to", a.completeRevisions)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Only print what to commit.")
	cmd.Flags().BoolVar(&o.wait, "wait", true, "Wait until it is applied and healthy.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait.")
	return cmd
}

// completeRevisions completes the revisions of the deployment that is named.
func (a *app) completeRevisions(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	words := []string{previousRevision}
	c, err := a.connect()
	if err != nil || len(args) == 0 {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	found, err := c.get(ctx, parseTargets(args)[0])
	if d, isDeployment := found.(*v1alpha1.BundleDeployment); err == nil && isDeployment {
		for _, record := range d.Status.History {
			words = append(words, shortRevision(record.Revision))
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// goingBack is the input of a rollback.
type goingBack struct {
	target     target
	deployment *v1alpha1.BundleDeployment
	source     *v1alpha1.BundleSource
	newest     string
	record     v1alpha1.RevisionRecord
	holder     target // the object with the sources that are pinned
	holding    object
	before     []v1alpha1.Source
	after      []v1alpha1.Source
}

func (a *app) rollback(ctx context.Context, o rollbackOptions, t target) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	back, err := a.prepareRollback(ctx, c, o, t)
	if err != nil {
		return err
	}
	if back.source == nil {
		return a.printFluxRollback(o, back)
	}
	if contentOf(back.record.Revision) == contentOf(back.newest) && contentOf(back.deployment.Status.LastAppliedRevision) == contentOf(back.newest) {
		fmt.Fprintf(a.streams.Out, "%s: revision %s is applied already\n", t, shortRevision(inline(back.record.Revision)))
		return nil
	}
	if back.after, err = pinned(back.before, back.record.Sources, currentOrigins(back)); err != nil {
		return fmt.Errorf("%s cannot be pinned to revision %s: %w", back.holder, shortRevision(back.record.Revision), err)
	}
	if o.dryRun {
		return printValue(a.streams.Out, outputYAML, back.manifest())
	}
	if err := a.checkRollback(ctx, c, back); err != nil {
		return err
	}
	if err := c.patch(ctx, back.holder, back.patch(), false); err != nil {
		return err
	}
	a.reportPinned(c, back)
	if !o.wait {
		return nil
	}
	return a.awaitRevision(ctx, c, o, back)
}

// prepareRollback reads the deployment and its source, and finds the revision.
func (a *app) prepareRollback(ctx context.Context, c *cluster, o rollbackOptions, t target) (goingBack, error) {
	found, err := c.get(ctx, t)
	if err != nil {
		return goingBack{}, err
	}
	if err := a.refuseSuspended(t, found); err != nil && !o.dryRun {
		return goingBack{}, err
	}
	back := goingBack{target: t, holder: t, holding: found}
	back.deployment, _ = found.(*v1alpha1.BundleDeployment)
	if back.source, err = c.sourceOf(ctx, found); err != nil {
		return back, err
	}
	back.newest = newestRevision(back.deployment, back.source)
	if back.record, err = findRevision(back.deployment, back.newest, o.to); err != nil {
		return back, err
	}
	switch {
	case back.source == nil && back.deployment.SourceName() != "":
		return back, &notFoundError{kind: sources, name: back.deployment.SourceName(), namespace: c.namespace}
	case back.source == nil: // of Flux
	case back.deployment.Spec.Source != nil:
		back.before = back.deployment.Spec.Source.Sources
	default:
		back.holder, back.holding, back.before = target{kind: sources, name: back.source.Name}, back.source, back.source.Spec.Sources
	}
	return back, nil
}

// checkRollback refuses what the API server would refuse, and names other users of the source.
func (a *app) checkRollback(ctx context.Context, c *cluster, back goingBack) error {
	if back.source.Spec.Immutable {
		return fmt.Errorf("%s is immutable and cannot be pinned: create another BundleSource with the sources that %s rollback --dry-run prints, and refer to it", back.holder, a.name)
	}
	if back.holder.kind.name != sources.name {
		return nil
	}
	if err := a.refuseSuspended(back.holder, back.source); err != nil {
		return err
	}
	var others []string
	listed, err := c.list(ctx, deployments, false, "")
	if err != nil {
		return err
	}
	for _, raw := range listed {
		o, err := typed(deployments, raw)
		if d, isDeployment := o.(*v1alpha1.BundleDeployment); err == nil && isDeployment && d.Name != back.target.name && d.SourceName() == back.source.Name {
			others = append(others, d.Name)
		}
	}
	if len(others) > 0 {
		fmt.Fprintf(a.streams.ErrOut, "%s the BundleSource %s is also used by others, which are rolled back with it: %s.\n",
			styleFor(a.streams.ErrOut).paint(yellow, "Warning:"), back.source.Name, strings.Join(others, ", "))
	}
	return nil
}

// spec is the part of the holder that is changed, with the given sources.
func (b goingBack) spec(parts []v1alpha1.Source) map[string]any {
	spec := map[string]any{"sources": parts}
	if b.holder.kind.name == deployments.name {
		spec = map[string]any{"source": spec}
	}
	return spec
}

// patch applies only if no other client has changed the object.
func (b goingBack) patch() map[string]any {
	return map[string]any{"metadata": map[string]any{"resourceVersion": b.holding.GetResourceVersion()}, "spec": b.spec(b.after)}
}

// manifest is what to commit: the part of the manifest that changes.
func (b goingBack) manifest() map[string]any {
	return map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": b.holder.kind.name,
		"metadata": map[string]any{"name": b.holder.name, "namespace": b.holding.GetNamespace()},
		"spec":     b.spec(b.after),
	}
}

// reportPinned says what was done, how to undo it, and which GitOps tool may undo it.
func (a *app) reportPinned(c *cluster, b goingBack) {
	fmt.Fprintf(a.streams.Out, "%s: pinned to revision %s\n", b.holder, shortRevision(inline(b.record.Revision)))
	for i, part := range b.after {
		fmt.Fprintf(a.streams.Out, "  %s → %s\n", inline(upstream(b.before[i])), inline(upstream(part)))
	}
	former, _ := json.Marshal(map[string]any{"spec": b.spec(b.before)}) // plain structs always encode
	fmt.Fprintf(a.streams.ErrOut, "To follow the former source again:\n  kubectl patch %s.%s %s -n %s --type merge -p %s\n",
		b.holder.kind.resource, v1alpha1.GroupVersion.Group, shellWord(b.holder.name), shellWord(c.namespace), shellWord(string(escapeHidden(former, visible.JSON))))
	if b.deployment.Generation != b.record.Generation && b.holder.kind.name == sources.name {
		fmt.Fprintf(a.streams.ErrOut, "The spec of %s has changed since that revision, and stays as it is.\n", b.target)
	}
	switch b.record.Outcome {
	case v1alpha1.OutcomeFailed, v1alpha1.OutcomeRolledBack:
		fmt.Fprintf(a.streams.ErrOut, "%s that revision failed before: %s\n", styleFor(a.streams.ErrOut).paint(yellow, "Warning:"), oneLine(b.record.Message, 0))
	}
	if deliverer(b.holding) == "" {
		return
	}
	a.warnDelivered(b.holder, b.holding, "commit what follows; until then suspend that tool, not Satchel's object")
	if text, err := yamlText(b.manifest()); err == nil {
		fmt.Fprintf(a.streams.ErrOut, "%s", text)
	}
}

// awaitRevision waits for the revision, and ends early if the source cannot fetch it.
func (a *app) awaitRevision(ctx context.Context, c *cluster, o rollbackOptions, b goingBack) error {
	waiting, cancel := context.WithTimeoutCause(ctx, o.timeout, errTooLong)
	defer cancel()
	wanted := contentOf(b.record.Revision)
	return a.waitFor(waiting, b.target, o.timeout, func() (waitState, error) {
		found, err := c.get(waiting, b.target)
		if err != nil {
			return waitState{}, err
		}
		source, err := c.sourceOf(waiting, found)
		if err != nil {
			return waitState{}, err
		}
		if v := hopeless(source, b, wanted); v.never {
			return v, nil
		}
		return judgeReadiness(found, source, wanted, true), nil
	})
}

// hopeless tells that the source cannot fetch what it is pinned to, or that it fetched other content.
func hopeless(source *v1alpha1.BundleSource, b goingBack, wanted string) waitState {
	if source == nil || !samePins(source.Spec.Sources, b.after) {
		return waitState{}
	}
	s := summarize(source)
	switch {
	case s.unseen || requested(source, s) != "":
		return waitState{}
	case s.ready == metav1.ConditionFalse && slices.Contains(lasting, s.reason):
		return waitState{never: true, text: "the source cannot fetch that revision: " + inline(s.reason) + ": " + oneLine(s.message, 0) +
			"; the previous one stays applied; restore the former source as described above"}
	case s.isReady() && source.Status.SourcesDigest == source.Spec.SourcesDigest() && contentOf(s.revision) != wanted:
		return waitState{never: true, text: "what was fetched has other content, " + shortRevision(inline(s.revision)) +
			": the source's ignore, platform or submodules have changed since; restore the former source as described above"}
	}
	return waitState{}
}

// lasting are the reasons of a source that do not resolve while it is pinned.
var lasting = []string{
	v1alpha1.ReasonNotFound, v1alpha1.ReasonDigestMismatch, v1alpha1.ReasonVerificationFailed, v1alpha1.ReasonUnauthorized,
	v1alpha1.ReasonRefused, v1alpha1.ReasonInvalidSpec,
}

func samePins(a, b []v1alpha1.Source) bool {
	return slices.EqualFunc(a, b, func(x, y v1alpha1.Source) bool { return upstream(x) == upstream(y) && isPinned(x) == isPinned(y) })
}

// currentOrigins are the origins of the source's current artifact.
func currentOrigins(b goingBack) []v1alpha1.RevisionOrigin {
	var now []v1alpha1.RevisionOrigin
	for _, r := range b.source.Status.Resolved {
		now = append(now, v1alpha1.RevisionOrigin{Destination: r.Destination, Digest: r.Digest})
	}
	return now
}

// printFluxRollback prints what to commit for a source of Flux, which Satchel does not change.
func (a *app) printFluxRollback(o rollbackOptions, b goingBack) error {
	ref := b.deployment.Spec.SourceRef
	manifest, why := fluxPin(ref, b.deployment.Namespace, b.record.Revision)
	if manifest == nil {
		return fmt.Errorf("%s gets revision %s from %s, %w", b.target, shortRevision(b.record.Revision), b.deployment.SourceDisplayName(), errors.New(why))
	}
	fmt.Fprintf(a.streams.ErrOut, "%s gets its content from %s, which Flux fetches. Commit this for revision %s:\n", b.target, inline(b.deployment.SourceDisplayName()), shortRevision(inline(b.record.Revision)))
	if err := printValue(a.streams.Out, outputYAML, manifest); err != nil || o.dryRun {
		return err
	}
	return errNo
}

// fluxPin is the part of a Flux source's manifest that pins it to a revision, or why there is none.
func fluxPin(ref *v1alpha1.SourceReference, namespace, revision string) (map[string]any, string) {
	digest := contentOf(revision)
	pin := map[string]any{}
	switch ref.Kind {
	case "GitRepository":
		_, commit, _ := strings.Cut(digest, ":")
		pin["commit"] = commit
	case "OCIRepository":
		pin["digest"] = digest
	case "Bucket":
		return nil, "and a Bucket only has the newest files: restore the former ones there"
	default:
		return nil, "which another controller publishes: roll back there"
	}
	return map[string]any{
		"apiVersion": ref.APIVersion, "kind": ref.Kind,
		"metadata": map[string]any{"name": ref.Name, "namespace": namespace},
		"spec":     map[string]any{"ref": pin},
	}, ""
}
