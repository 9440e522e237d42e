// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// steering are the flags of the commands that change a rollout.
type steering struct {
	kit.Selection
	everywhere bool
	follow     bool
	dryRun     bool
	export     bool
}

// writingFlags adds --export and --dry-run.
func (o *steering) writingFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.export, "export", false, "Print what to commit to Git instead of changing the BundleRollout.")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Only ask the API server whether it could be done.")
	cmd.MarkFlagsMutuallyExclusive("export", "dry-run")
}

// change is what a command does to one rollout.
type change struct {
	// spec are the fields of the spec that change; a nil one is removed.
	spec map[string]any
	// annotations are those that are set.
	annotations map[string]any
	// done says what was done, or why nothing has to be.
	done string
	// then is what happens next, and command a command for that, without the name of the program.
	then    string
	command string
	// commit says what to change in Git, where a GitOps tool delivers the object.
	commit string
}

// isNothing tells that the rollout is as it should be.
func (c *change) isNothing() bool { return len(c.spec) == 0 && len(c.annotations) == 0 }

// patch is the change as a merge patch.
func (c *change) patch() map[string]any {
	patch := map[string]any{}
	if len(c.spec) > 0 {
		patch["spec"] = c.spec
	}
	if len(c.annotations) > 0 {
		patch["metadata"] = map[string]any{"annotations": c.annotations}
	}
	return patch
}

// manifest is the part of the manifest that changes, to be committed.
func (c *change) manifest(o *v1alpha1.BundleRollout) map[string]any {
	metadata := map[string]any{"name": o.Name, "namespace": o.Namespace}
	if len(c.annotations) > 0 {
		metadata["annotations"] = c.annotations
	}
	manifest := map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.BundleRolloutKind, "metadata": metadata}
	if len(c.spec) > 0 {
		manifest["spec"] = c.spec
	}
	return manifest
}

// steer changes rollouts.
func steer(ctx context.Context, a *kit.App, o steering, names []string, decide func(*v1alpha1.BundleRollout) (change, error)) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	chosen, err := choose(ctx, c, o, names)
	if err != nil {
		return err
	}
	if len(chosen) == 0 {
		fmt.Fprintln(a.Streams.ErrOut, kit.NothingFound(kit.GetOptions{Selector: o.Selector, Everywhere: o.everywhere}, c.Namespace))
		return nil
	}
	var problems []error
	for i, object := range chosen {
		at := *c
		at.Namespace = object.Namespace
		if o.export && i > 0 {
			fmt.Fprintln(a.Streams.Out, "---")
		}
		// One that cannot be changed does not keep the others from being stopped.
		problems = append(problems, steerOne(ctx, a, &at, o, object, decide))
	}
	return errors.Join(problems...)
}

// choose reads the rollouts that the command line names.
func choose(ctx context.Context, c *kit.Cluster, o steering, names []string) ([]*v1alpha1.BundleRollout, error) {
	var all []*v1alpha1.BundleRollout
	for _, name := range names {
		object, err := c.Rollout(ctx, kit.Target{Kind: kit.Rollouts, Name: name})
		if err != nil {
			return nil, err
		}
		all = append(all, object)
	}
	if len(names) > 0 {
		return all, nil
	}
	listed, err := c.List(ctx, kit.Rollouts, o.everywhere, o.Selector)
	if err != nil {
		return nil, err
	}
	for _, raw := range listed {
		found, err := kit.Typed(kit.Rollouts, raw)
		if err != nil {
			return nil, err
		}
		if object, isRollout := found.(*v1alpha1.BundleRollout); isRollout {
			all = append(all, object)
		}
	}
	return all, nil
}

func steerOne(ctx context.Context, a *kit.App, c *kit.Cluster, o steering, object *v1alpha1.BundleRollout, decide func(*v1alpha1.BundleRollout) (change, error)) error {
	t := kit.Target{Kind: kit.Rollouts, Name: object.Name}
	wanted, err := decide(object)
	if err != nil {
		return err
	}
	named := v1alpha1.BundleRolloutKind + " " + view.Inline(object.Namespace+"/"+object.Name)
	switch {
	case o.export:
		if wanted.isNothing() {
			fmt.Fprintf(a.Streams.ErrOut, "%s: %s\n", named, wanted.done)
		}
		return printer.PrintValue(a.Streams.Out, printer.OutputYAML, wanted.manifest(object))
	case wanted.isNothing():
		fmt.Fprintf(a.Streams.Out, "%s: %s\n", named, wanted.done)
		return nil
	}
	if err := c.Patch(ctx, t, wanted.patch(), o.dryRun); err != nil {
		return err
	}
	if o.dryRun {
		fmt.Fprintf(a.Streams.Out, "%s: %s (dry run)\n", named, wanted.done)
		return nil
	}
	fmt.Fprintf(a.Streams.Out, "%s: %s\n", named, wanted.done)
	if wanted.then != "" {
		fmt.Fprintf(a.Streams.Out, "  %s\n", wanted.then)
	}
	if wanted.command != "" {
		fmt.Fprintf(a.Streams.Out, "  %s %s\n", a.Name, wanted.command)
	}
	if wanted.commit != "" {
		a.WarnDelivered(t, object, wanted.commit)
	}
	return nil
}

// completeMany completes the names of rollouts.
func completeMany(a *kit.App) kit.Completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		words, directive := a.CompleteOne(kit.Rollouts)(cmd, nil, begun)
		return slices.DeleteFunc(words, func(word string) bool { return slices.Contains(args, word) }), directive
	}
}
