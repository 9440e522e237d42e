// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// Options are the flags of a command that changes objects.
type Options struct {
	kit.Selection
	Export bool
	DryRun bool
}

// WritingFlags adds --export and --dry-run.
func (o *Options) WritingFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.Export, "export", false, "Print what to commit to Git instead of changing the objects.")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "Only ask the API server whether it could be done.")
	cmd.MarkFlagsMutuallyExclusive("export", "dry-run")
}

// Change is what a command does to one object.
type Change struct {
	// Spec are the fields of the spec that change; a nil one is removed.
	Spec map[string]any
	// Annotations are those that are set.
	Annotations map[string]any
	// In is the object that has the fields, where it is another one than the chosen object.
	In *kit.Chosen
	// Done says what was done, or why nothing has to be.
	Done string
	// Then is what happens next, and Command a command for that, without the name of the program.
	Then    string
	Command string
	// Commit says what to change in Git, where a GitOps tool delivers the object.
	Commit string
	// Await are the objects that handle the change.
	Await []kit.Target
}

// isNothing tells that the object is as it should be.
func (c *Change) isNothing() bool { return len(c.Spec) == 0 && len(c.Annotations) == 0 }

// patch is the change as a merge patch.
func (c *Change) patch() map[string]any {
	patch := map[string]any{}
	if len(c.Spec) > 0 {
		patch["spec"] = c.Spec
	}
	if len(c.Annotations) > 0 {
		patch["metadata"] = map[string]any{"annotations": c.Annotations}
	}
	return patch
}

// manifest is the part of the manifest that changes, to be committed.
func (c *Change) manifest(of kit.Chosen) map[string]any {
	metadata := map[string]any{"name": of.Name, "namespace": of.Object.GetNamespace()}
	if len(c.Annotations) > 0 {
		metadata["annotations"] = c.Annotations
	}
	manifest := map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": of.Kind.Name, "metadata": metadata}
	if len(c.Spec) > 0 {
		manifest["spec"] = c.Spec
	}
	return manifest
}

// Decide says what becomes of an object; the cluster has its namespace.
type Decide func(ctx context.Context, c *kit.Cluster, one kit.Chosen) (Change, error)

// Run changes the chosen objects, and returns those that handle the changes. All objects are read before the first is changed; one
// that cannot be changed does not keep the others from it.
func Run(ctx context.Context, a *kit.App, o Options, targets []kit.Target, decide Decide) ([]kit.Target, error) {
	c, err := a.Connect()
	if err != nil {
		return nil, err
	}
	chosen, err := c.Choose(ctx, o.Selection, targets)
	if err != nil {
		return nil, err
	}
	if len(chosen) == 0 {
		a.NothingChosen(c, o.Selection)
	}
	r := run{App: a, options: o}
	var await []kit.Target
	var problems []error
	for _, one := range chosen {
		at := *c
		at.Namespace = one.Object.GetNamespace()
		wanted, err := decide(ctx, &at, one)
		if err == nil {
			err = r.carryOut(ctx, &at, one, wanted)
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		await = append(await, wanted.Await...)
	}
	return await, errors.Join(problems...)
}

// run is one run of a command.
type run struct {
	*kit.App
	options  Options
	exported int
}

// carryOut patches the object or prints its change, and reports it.
func (r *run) carryOut(ctx context.Context, c *kit.Cluster, one kit.Chosen, wanted Change) error {
	holder := one
	if wanted.In != nil {
		holder = *wanted.In
	}
	switch {
	case wanted.isNothing() && r.options.Export:
		fmt.Fprintf(r.Streams.ErrOut, "%s: %s\n", r.nameOf(one), wanted.Done)
		return nil
	case wanted.isNothing():
		fmt.Fprintf(r.Streams.Out, "%s: %s\n", r.nameOf(one), wanted.Done)
		return nil
	case r.options.Export:
		if r.exported > 0 {
			fmt.Fprintln(r.Streams.Out, "---")
		}
		r.exported++
		return printer.PrintValue(r.Streams.Out, printer.OutputYAML, wanted.manifest(holder))
	}
	if err := c.Patch(ctx, holder.Target, wanted.patch(), r.options.DryRun); err != nil {
		return err
	}
	if r.options.DryRun {
		fmt.Fprintf(r.Streams.Out, "%s: %s (dry run)\n", r.nameOf(one), wanted.Done)
		return nil
	}
	fmt.Fprintf(r.Streams.Out, "%s: %s\n", r.nameOf(one), wanted.Done)
	if wanted.Then != "" {
		fmt.Fprintf(r.Streams.Out, "  %s\n", wanted.Then)
	}
	if wanted.Command != "" {
		fmt.Fprintf(r.Streams.Out, "  %s %s\n", r.Name, wanted.Command)
	}
	if wanted.Commit != "" {
		r.WarnDelivered(holder.Target, holder.Object, wanted.Commit)
	}
	return nil
}

// nameOf names an object, with its namespace where objects of several can be chosen.
func (r *run) nameOf(one kit.Chosen) string {
	if r.options.Everywhere() {
		return view.Inline(one.Kind.Name + " " + one.Object.GetNamespace() + "/" + one.Name)
	}
	return view.Inline(one.String())
}
