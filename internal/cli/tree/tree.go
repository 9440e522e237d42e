// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/expression"
	"github.com/satchel-dev/satchel/internal/view"
)

// Options are the flags of tree.
type Options struct {
	Output printer.Output
	follow bool
	All    bool
}

// Command returns the command tree.
func Command(a *kit.App) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:     "tree NAME",
		GroupID: kit.GroupSee,
		Short:   "Show the objects of a BundleDeployment and what they own, with their health",
		Long: `Shows the objects in the inventory of a BundleDeployment and what they own, down to Pods: whether each is healthy, its
age, and why it is not healthy. Of kinds that are healthy as soon as they exist only metadata is read; owned objects are
searched in the namespaces of workloads and custom resources, without ReplicaSets that are scaled to zero.

Of many healthy objects of one kind some are shown; --all shows every one, and so do -o json, yaml and name. Objects that
you may not read are named on standard error. Objects on a remote cluster (spec.target) are listed without their state.
With -w each change follows as a line, until Ctrl-C.

` + kit.ExitCodes,
		Example: a.Example(`
# What does it consist of, and what is not healthy?
satchel tree podinfo -n demo

# Follow an upgrade until Ctrl-C
satchel tree podinfo -w

# The Pods of a deployment, for a script
satchel tree podinfo -o name | grep ^pod/`),
		ValidArgsFunction: a.CompleteOne(kit.Deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := kit.OneDeployment(cmd, args)
			if err != nil {
				return err
			}
			if o.follow && o.Output != printer.OutputTable && o.Output != printer.OutputWide {
				return kit.UsageError(cmd, "-w writes lines for people: omit it or -o %s", o.Output)
			}
			return tree(cmd.Context(), a, o, t)
		},
	}
	a.OutputFlag(cmd, &o.Output, printer.OutputTable, printer.OutputWide, printer.OutputJSON, printer.OutputYAML, printer.OutputName)
	cmd.Flags().BoolVarP(&o.follow, "watch", "w", false, "Go on with a line for each change, until Ctrl-C.")
	cmd.Flags().BoolVar(&o.All, "all", false, "Show every object, also where many of one kind are healthy.")
	return cmd
}

func tree(ctx context.Context, a *kit.App, o Options, t kit.Target) error {
	x, err := a.Explore()
	if err != nil {
		return err
	}
	found, err := readTree(ctx, x, t)
	if err != nil {
		return err
	}
	a.NoteOmitted(found.Omitted)
	if err := printTree(a, o, found); err != nil || !o.follow {
		return err
	}
	return followTree(ctx, a, t, x, found)
}

func printTree(a *kit.App, o Options, found Tree) error {
	switch o.Output {
	case printer.OutputJSON, printer.OutputYAML:
		return printer.PrintValue(a.Streams.Out, o.Output, found)
	case printer.OutputName:
		found.Walk(func(n *Node) { fmt.Fprintln(a.Streams.Out, n.resourceName()) })
		return nil
	}
	fmt.Fprint(a.Streams.Out, found.Print(printer.StyleFor(a.Streams.Out), a.Now(), o))
	return nil
}

// resourceName is what kubectl calls the object, such as deployment.apps/web.
func (n *Node) resourceName() string {
	return view.Inline(strings.ToLower(schema.GroupKind{Group: n.Group, Kind: n.Kind}.String()) + "/" + n.Name)
}

// rulesFor are the rules of a deployment about health.
func rulesFor(d *v1alpha1.BundleDeployment) (health.Rules, error) {
	all := make([]health.Expressions, 0, len(d.Spec.Health.Expressions))
	for _, of := range d.Spec.Health.Expressions {
		all = append(all, health.Expressions{Kind: schema.FromAPIVersionAndKind(of.APIVersion, of.Kind),
			InProgress: of.InProgress, Failed: of.Failed, Current: of.Current})
	}
	rules, err := health.NewRules(all, expression.NewBudget(nil))
	if err != nil {
		return rules, fmt.Errorf("reading spec.health.expressions of %s %s: %w", v1alpha1.BundleDeploymentKind, d.Name, err)
	}
	return rules, nil
}
