// SPDX-License-Identifier: Apache-2.0

package act

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
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/preview"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/pin"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
	"github.com/satchel-dev/satchel/internal/visible"
)

// rollbackOptions are the flags of rollback.
type rollbackOptions struct {
	to      string
	dryRun  bool
	plan    bool
	wait    bool
	timeout time.Duration
}

// RollbackCommand returns the command rollback.
func RollbackCommand(a *kit.App) *cobra.Command {
	var o rollbackOptions
	cmd := &cobra.Command{
		Use:     "rollback NAME --to previous|REVISION",
		GroupID: kit.GroupAct,
		Short:   "Go back to an earlier revision, by pinning the source to it",
		Long: `Pins the source of a BundleDeployment to what an earlier revision of its history was fetched from: an image to its
digest, a Git repository to the commit, an archive to URL and digest. The controllers then fetch, verify and install it
like any revision. The spec of the deployment itself (patches, options) is not changed.

Before anything is pinned, it shows the plan of that revision, as plan --revision does: with your own permissions, and
with those of the ServiceAccount if you may impersonate it. If the controller would refuse the plan, nothing is
pinned. A CRD that the newer revision has changed stays as it is where the earlier one would break what uses it.

To follow the former tag or branch again, restore the former source; the command prints how. If the object comes from
Git, commit the same change there, or Flux or Argo CD will undo it: --dry-run prints what to commit, and changes
nothing. For sources of Flux it never does more than that.

Exit codes:

    0    the revision is applied and healthy (with --wait=false: requested; with --dry-run: printed)
    1    it is not (yet), or the change has to be committed to Git and was only printed
    2    failed or refused, and nothing was pinned: not found, no access, suspended, no such revision, a refused plan
    130  interrupted by Ctrl-C (the controllers go on)`,
		Example: a.Example(`
# Back to the last healthy revision before this one
satchel rollback podinfo --to previous

# Back to a named revision; the history command lists them
satchel rollback podinfo --to v1.2.0

# What to commit to Git for that
satchel rollback podinfo --to v1.2.0 --dry-run`),
		ValidArgsFunction: a.CompleteOne(kit.Deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := kit.OneTarget(cmd, args)
			switch {
			case err != nil:
				return err
			case t.Kind.Name != kit.Deployments.Name:
				return kit.UsageError(cmd, "rollback is about BundleDeployments: name one that uses the %s", t.Kind.Word)
			case o.to == "":
				return kit.UsageError(cmd, "--to says which revision: previous, or one of the history")
			}
			return rollback(cmd.Context(), a, o, t)
		},
	}
	cmd.Flags().StringVar(&o.to, "to", "", "The revision: previous, a version, a tag, the first 7 digits of a commit, or the first 12 of a digest.")
	a.CompleteFlag(cmd, "to", func(cmd *cobra.Command, args []string, arg2 string) ([]string, cobra.ShellCompDirective) {
		return completeRevisions(a, cmd, args, arg2)
	})
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Only print what to commit.")
	cmd.Flags().BoolVar(&o.plan, "plan", true, "Show the plan first, and pin nothing if it would be refused, or cannot be computed.")
	cmd.Flags().BoolVar(&o.wait, "wait", true, "Wait until it is applied and healthy.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait.")
	return cmd
}

// completeRevisions completes the revisions of the deployment that is named.
func completeRevisions(a *kit.App, cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	words := []string{view.PreviousRevision}
	c, err := a.Connect()
	if err != nil || len(args) == 0 {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), kit.CompletionTimeout)
	defer cancel()
	found, err := c.Get(ctx, kit.ParseTargets(args)[0])
	if d, isDeployment := found.(*v1alpha1.BundleDeployment); err == nil && isDeployment {
		for _, record := range d.Status.History {
			words = append(words, revisionWord(record))
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// revisionWord names a revision in one word that --to accepts: its origin revision, unless that has several parts.
func revisionWord(record v1alpha1.RevisionRecord) string {
	if record.OriginRevision != "" && !strings.Contains(record.OriginRevision, " ") {
		return view.ShortOrigin(view.Inline(record.OriginRevision))
	}
	return view.ShortRevision(view.Inline(record.Revision))
}

// goingBack is the input of a rollback.
type goingBack struct {
	target     kit.Target
	deployment *v1alpha1.BundleDeployment
	source     *v1alpha1.BundleSource
	newest     string
	record     v1alpha1.RevisionRecord
	holder     kit.Target // the object with the sources that are pinned
	holding    view.Object
	before     []v1alpha1.Source
	after      []v1alpha1.Source
}

func rollback(ctx context.Context, a *kit.App, o rollbackOptions, t kit.Target) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	back, err := prepareRollback(ctx, a, c, o, t)
	if err != nil {
		return err
	}
	if back.source == nil {
		return printFluxRollback(a, o, back)
	}
	if view.ContentOf(back.record.Revision) == view.ContentOf(back.newest) && view.ContentOf(back.deployment.Status.Applied.Revision) == view.ContentOf(back.newest) {
		fmt.Fprintf(a.Streams.Out, "%s: revision %s is applied already\n", t, view.ShortRevision(view.Inline(back.record.Revision)))
		return nil
	}
	if back.after, err = pin.Sources(back.before, back.record.Sources, currentOrigins(back)); err != nil {
		return fmt.Errorf("%s cannot be pinned to revision %s: %w", back.holder, view.ShortRevision(back.record.Revision), err)
	}
	if o.plan {
		if err := planRollback(ctx, a, back); err != nil {
			return err
		}
	}
	if o.dryRun {
		return printer.PrintValue(a.Streams.Out, printer.OutputYAML, back.manifest())
	}
	if err := checkRollback(ctx, a, c, back); err != nil {
		return err
	}
	if err := c.Patch(ctx, back.holder, back.patch(), false); err != nil {
		return err
	}
	reportPinned(a, c, back)
	if !o.wait {
		return nil
	}
	return awaitRevision(ctx, a, c, o, back)
}

// planRollback shows what going back would change, and ends the rollback where the controller would refuse it.
func planRollback(ctx context.Context, a *kit.App, back goingBack) error {
	revision := view.ShortRevision(view.Inline(back.record.Revision))
	v, err := preview.Revision(ctx, a, back.target, back.record.Revision)
	if err != nil {
		return fmt.Errorf("the plan of revision %s cannot be computed, so nothing was pinned; --plan=false pins without a plan: %w", revision, err)
	}
	style := printer.StyleFor(a.Streams.ErrOut)
	fmt.Fprintf(a.Streams.ErrOut, "%s\n%s\n", style.Paint(printer.Bold, "The plan of revision "+revision+":"), v.Print(style, a.Name, false))
	if !v.Refused() {
		return nil
	}
	fmt.Fprintf(a.Streams.ErrOut, "%s %s is not rolled back: the plan would be refused, and nothing was pinned.\n", style.Paint(printer.Red, "Refused:"), back.target)
	return kit.ErrRefused
}

// prepareRollback reads the deployment and its source, and finds the revision.
func prepareRollback(ctx context.Context, a *kit.App, c *kit.Cluster, o rollbackOptions, t kit.Target) (goingBack, error) {
	found, err := c.Get(ctx, t)
	if err != nil {
		return goingBack{}, err
	}
	if err := refuseSuspended(a, t, found); err != nil && !o.dryRun {
		return goingBack{}, err
	}
	back := goingBack{target: t, holder: t, holding: found}
	back.deployment, _ = found.(*v1alpha1.BundleDeployment)
	if back.source, err = c.SourceOf(ctx, found); err != nil {
		return back, err
	}
	if of := back.deployment.Spec.Catalog; of != nil {
		return back, fmt.Errorf("%s takes package %s from catalogs, which decide between versions: to go back, set spec.catalog.version to the version, upgradePolicy to SelfCertified and downgrade to Allow", t, of.Package)
	}
	back.newest = view.NewestRevision(back.deployment, back.source)
	if back.record, err = view.FindRevision(back.deployment, back.newest, o.to); err != nil {
		return back, err
	}
	switch {
	case back.source == nil && effective.SourceName(back.deployment) != "":
		return back, &kit.NotFoundError{Kind: kit.Sources, Name: effective.SourceName(back.deployment), Namespace: c.Namespace}
	case back.source == nil: // of Flux
	case back.deployment.Spec.Source != nil:
		back.before = back.deployment.Spec.Source.Sources
	default:
		back.holder = kit.Target{Kind: kit.Sources, Name: back.source.Name}
		back.holding = back.source
		back.before = back.source.Spec.Sources
	}
	return back, nil
}

// checkRollback refuses what the API server would refuse, and names other users of the source.
func checkRollback(ctx context.Context, a *kit.App, c *kit.Cluster, back goingBack) error {
	if back.source.Spec.Immutable {
		return fmt.Errorf("%s is immutable and cannot be pinned: create another BundleSource with the sources that %s rollback --dry-run prints, and refer to it", back.holder, a.Name)
	}
	if back.holder.Kind.Name != kit.Sources.Name {
		return nil
	}
	if err := refuseSuspended(a, back.holder, back.source); err != nil {
		return err
	}
	var others []string
	listed, err := c.List(ctx, kit.Deployments, false, "")
	if err != nil {
		return err
	}
	for _, raw := range listed {
		o, err := kit.Typed(kit.Deployments, raw)
		if d, isDeployment := o.(*v1alpha1.BundleDeployment); err == nil && isDeployment && d.Name != back.target.Name && effective.SourceName(d) == back.source.Name {
			others = append(others, d.Name)
		}
	}
	if len(others) > 0 {
		fmt.Fprintf(a.Streams.ErrOut, "%s the BundleSource %s is also used by others, which are rolled back with it: %s.\n",
			printer.StyleFor(a.Streams.ErrOut).Paint(printer.Yellow, "Warning:"), back.source.Name, strings.Join(others, ", "))
	}
	return nil
}

// spec is the part of the holder that is changed, with the given sources.
func (b goingBack) spec(parts []v1alpha1.Source) map[string]any {
	spec := map[string]any{"sources": parts}
	if b.holder.Kind.Name == kit.Deployments.Name {
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
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": b.holder.Kind.Name,
		"metadata": map[string]any{"name": b.holder.Name, "namespace": b.holding.GetNamespace()},
		"spec":     b.spec(b.after),
	}
}

// reportPinned says what was done, how to undo it, and which GitOps tool may undo it.
func reportPinned(a *kit.App, c *kit.Cluster, b goingBack) {
	fmt.Fprintf(a.Streams.Out, "%s: pinned to revision %s\n", b.holder, view.ShortRevision(view.Inline(b.record.Revision)))
	for i, part := range b.after {
		fmt.Fprintf(a.Streams.Out, "  %s → %s\n", view.Inline(view.Upstream(b.before[i])), view.Inline(view.Upstream(part)))
	}
	former, _ := json.Marshal(map[string]any{"spec": b.spec(b.before)}) // plain structs always encode
	fmt.Fprintf(a.Streams.ErrOut, "To follow the former source again:\n  kubectl patch %s.%s %s -n %s --type merge -p %s\n",
		b.holder.Kind.Resource, v1alpha1.GroupVersion.Group, view.ShellWord(b.holder.Name), view.ShellWord(c.Namespace), view.ShellWord(string(printer.EscapeHidden(former, visible.JSON))))
	if b.deployment.Generation != b.record.Generation && b.holder.Kind.Name == kit.Sources.Name {
		fmt.Fprintf(a.Streams.ErrOut, "The spec of %s has changed since that revision, and stays as it is.\n", b.target)
	}
	switch b.record.Outcome {
	case v1alpha1.OutcomeFailed, v1alpha1.OutcomeRolledBack:
		fmt.Fprintf(a.Streams.ErrOut, "%s that revision failed before: %s\n", printer.StyleFor(a.Streams.ErrOut).Paint(printer.Yellow, "Warning:"), view.OneLine(b.record.Message, 0))
	}
	if kit.Deliverer(b.holding) == "" {
		return
	}
	a.WarnDelivered(b.holder, b.holding, "commit what follows; until then suspend that tool, not Satchel's object")
	if text, err := printer.YamlText(b.manifest()); err == nil {
		fmt.Fprintf(a.Streams.ErrOut, "%s", text)
	}
}

// awaitRevision waits for the revision, and ends early if the source cannot fetch it.
func awaitRevision(ctx context.Context, a *kit.App, c *kit.Cluster, o rollbackOptions, b goingBack) error {
	waiting, cancel := context.WithTimeoutCause(ctx, o.timeout, kit.ErrTooLong)
	defer cancel()
	wanted := view.ContentOf(b.record.Revision)
	return a.WaitFor(waiting, b.target, o.timeout, func() (kit.WaitState, error) {
		found, err := c.Get(waiting, b.target)
		if err != nil {
			return kit.WaitState{}, err
		}
		source, err := c.SourceOf(waiting, found)
		if err != nil {
			return kit.WaitState{}, err
		}
		if v := hopeless(source, b, wanted); v.Never {
			return v, nil
		}
		return kit.ReadinessOf(found, source, wanted, true), nil
	})
}

// hopeless tells that the source cannot fetch what it is pinned to, or that it fetched other content.
func hopeless(source *v1alpha1.BundleSource, b goingBack, wanted string) kit.WaitState {
	if source == nil || !samePins(source.Spec.Sources, b.after) {
		return kit.WaitState{}
	}
	s := view.Summarize(source)
	switch {
	case s.Unseen || view.Requested(source, s) != "":
		return kit.WaitState{}
	case s.Ready == metav1.ConditionFalse && slices.Contains(lasting, s.Reason):
		return kit.WaitState{Never: true, Text: "the source cannot fetch that revision: " + view.Inline(s.Reason) + ": " + view.OneLine(s.Message, 0) +
			"; the previous one stays applied; restore the former source as described above"}
	case s.IsReady() && source.Status.SourcesDigest == effective.SourcesDigest(&source.Spec) && view.ContentOf(s.Revision) != wanted:
		return kit.WaitState{Never: true, Text: "what was fetched has other content, " + view.ShortRevision(view.Inline(s.Revision)) +
			": the source's ignore, platform or submodules have changed since; restore the former source as described above"}
	}
	return kit.WaitState{}
}

// lasting are the reasons of a source that do not resolve while it is pinned.
var lasting = []string{
	v1alpha1.ReasonNotFound, v1alpha1.ReasonDigestMismatch, v1alpha1.ReasonVerificationFailed, v1alpha1.ReasonUnauthorized,
	v1alpha1.ReasonRefused, v1alpha1.ReasonInvalidSpec,
}

func samePins(a, b []v1alpha1.Source) bool {
	return slices.EqualFunc(a, b, func(x, y v1alpha1.Source) bool {
		return view.Upstream(x) == view.Upstream(y) && view.IsPinned(x) == view.IsPinned(y)
	})
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
func printFluxRollback(a *kit.App, o rollbackOptions, b goingBack) error {
	ref := b.deployment.Spec.SourceRef
	manifest, why := FluxPin(ref, b.deployment.Namespace, b.record.Revision)
	if manifest == nil {
		return fmt.Errorf("%s gets revision %s from %s, %w", b.target, view.ShortRevision(b.record.Revision), effective.SourceDisplayName(b.deployment), errors.New(why))
	}
	fmt.Fprintf(a.Streams.ErrOut, "%s gets its content from %s, which Flux fetches. Commit this for revision %s:\n", b.target, view.Inline(effective.SourceDisplayName(b.deployment)), view.ShortRevision(view.Inline(b.record.Revision)))
	if err := printer.PrintValue(a.Streams.Out, printer.OutputYAML, manifest); err != nil || o.dryRun {
		return err
	}
	return kit.ErrNo
}

// FluxPin is the part of a Flux source's manifest that pins it to a revision, or why there is none.
func FluxPin(ref *v1alpha1.SourceReference, namespace, revision string) (map[string]any, string) {
	digest := view.ContentOf(revision)
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
