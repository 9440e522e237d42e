// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/health"
)

// treeOptions are the flags of tree.
type treeOptions struct {
	output output
	follow bool
	all    bool
}

func (a *app) treeCommand() *cobra.Command {
	var o treeOptions
	cmd := &cobra.Command{
		Use:     "tree NAME",
		GroupID: groupSee,
		Short:   "Show the objects of a BundleDeployment and what they own, with their health",
		Long: `Shows the objects in the inventory of a BundleDeployment and what they own, down to Pods: whether each is healthy, its
age, and why it is not healthy. Of kinds that are healthy as soon as they exist only metadata is read; owned objects are
searched in the namespaces of workloads and custom resources, without ReplicaSets that are scaled to zero.

Of many healthy objects of one kind some are shown; --all shows every one, and so do -o json, yaml and name. Objects that
you may not read are named on standard error. Objects on a remote cluster (spec.kubeConfig) are listed without their
state. With -w each change follows as a line, until Ctrl-C.

` + exitCodes,
		Example: a.example(`
# What does it consist of, and what is not healthy?
satchel tree podinfo -n demo

# Follow an upgrade until Ctrl-C
satchel tree podinfo -w

# The Pods of a deployment, for a script
satchel tree podinfo -o name | grep ^pod/`),
		ValidArgsFunction: a.completeOne(deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := oneDeployment(cmd, args)
			if err != nil {
				return err
			}
			if o.follow && o.output != outputTable && o.output != outputWide {
				return usageError(cmd, "-w writes lines for people: omit it or -o %s", o.output)
			}
			return a.tree(cmd.Context(), o, t)
		},
	}
	a.outputFlag(cmd, &o.output, outputTable, outputWide, outputJSON, outputYAML, outputName)
	cmd.Flags().BoolVarP(&o.follow, "watch", "w", false, "Go on with a line for each change, until Ctrl-C.")
	cmd.Flags().BoolVar(&o.all, "all", false, "Show every object, also where many of one kind are healthy.")
	return cmd
}

// oneDeployment reads the arguments of a command about one BundleDeployment.
func oneDeployment(cmd *cobra.Command, args []string) (target, error) {
	t, err := oneTarget(cmd, args)
	if err == nil && t.kind.name != deployments.name {
		return target{}, usageError(cmd, "%s is about BundleDeployments, not about a %s", cmd.Name(), t.kind.name)
	}
	return t, err
}

// deployment reads a BundleDeployment.
func (c *cluster) deployment(ctx context.Context, t target) (*v1alpha1.BundleDeployment, error) {
	o, err := c.get(ctx, t)
	if err != nil {
		return nil, err
	}
	return o.(*v1alpha1.BundleDeployment), nil //nolint:errcheck,forcetypeassert // the kind makes no other
}

func (a *app) tree(ctx context.Context, o treeOptions, t target) error {
	x, err := a.explore()
	if err != nil {
		return err
	}
	found, err := x.readTree(ctx, t)
	if err != nil {
		return err
	}
	a.noteOmitted(found.Omitted)
	if err := a.printTree(o, found); err != nil || !o.follow {
		return err
	}
	return a.followTree(ctx, t, x, found)
}

func (a *app) printTree(o treeOptions, found tree) error {
	switch o.output {
	case outputJSON, outputYAML:
		return printValue(a.streams.Out, o.output, found)
	case outputName:
		found.walk(func(n *treeNode) { fmt.Fprintln(a.streams.Out, n.resourceName()) })
		return nil
	}
	fmt.Fprint(a.streams.Out, found.print(styleFor(a.streams.Out), a.now(), o))
	return nil
}

// resourceName is what kubectl calls the object, such as deployment.apps/web.
func (n *treeNode) resourceName() string {
	return inline(strings.ToLower(schema.GroupKind{Group: n.Group, Kind: n.Kind}.String()) + "/" + n.Name)
}

// rulesFor are the rules of a deployment about health.
func rulesFor(d *v1alpha1.BundleDeployment) (health.Rules, error) {
	all := make([]health.Expressions, 0, len(d.Spec.HealthCheckExprs))
	for _, of := range d.Spec.HealthCheckExprs {
		all = append(all, health.Expressions{Kind: schema.FromAPIVersionAndKind(of.APIVersion, of.Kind),
			InProgress: of.InProgress, Failed: of.Failed, Current: of.Current})
	}
	rules, err := health.NewRules(all)
	if err != nil {
		return rules, fmt.Errorf("reading spec.healthCheckExprs of %s %s: %w", v1alpha1.BundleDeploymentKind, d.Name, err)
	}
	return rules, nil
}
