// SPDX-License-Identifier: Apache-2.0

package see

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
)

// GetCommand returns the command get.
func GetCommand(a *kit.App) *cobra.Command {
	var o kit.GetOptions
	cmd := &cobra.Command{
		Use:     "get [deployments|sources|all] [NAME...]",
		GroupID: kit.GroupSee,
		Short:   "List BundleDeployments and BundleSources and their state",
		Long: `Lists BundleDeployments (when no kind is given), BundleSources or both, one line each: whether it is Ready, the version
of the bundle, its origin revision (the branch or tag, and the commit or digest upstream), the number of its objects, its
age, and the message of its controller. Digests are cut to 7 digits; -o wide shows them in full, the revision of the
content, and more columns.

` + kit.ExitCodes,
		Example: a.Example(`
# The deployments of the current namespace
satchel get

# Deployments and sources of all namespaces
satchel get all -A

# One source, with all fields
satchel get source podinfo -o yaml

# Names for a script
satchel get deployments -l team=payments -o name`),
		ValidArgsFunction: a.CompleteTargets(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			targets := kit.ParseTargets(args)
			if o.Everywhere && targets[0].Name != "" {
				return kit.UsageError(cmd, "a name means one object of one namespace: leave -A or the name out")
			}
			if o.Selector != "" && targets[0].Name != "" {
				return kit.UsageError(cmd, "a name means one object whatever its labels: leave -l or the name out")
			}
			return get(cmd.Context(), a, o, targets)
		},
	}
	a.OutputFlag(cmd, &o.Output, printer.OutputTable, printer.OutputWide, printer.OutputJSON, printer.OutputYAML, printer.OutputName)
	cmd.Flags().BoolVarP(&o.Everywhere, "all-namespaces", "A", false, "List the objects of all namespaces.")
	cmd.Flags().StringVarP(&o.Selector, "selector", "l", "", "List only objects with matching labels, such as -l app=shop,tier!=test.")
	return cmd
}

// add appends an object in both forms.
func add(g *kit.Group, raw ...*unstructured.Unstructured) error {
	for _, one := range raw {
		o, err := kit.Typed(g.Kind, one)
		if err != nil {
			return err
		}
		one.SetManagedFields(nil)
		g.Objects, g.Raw = append(g.Objects, o), append(g.Raw, one)
	}
	return nil
}

func get(ctx context.Context, a *kit.App, o kit.GetOptions, targets []kit.Target) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	groups, err := collect(ctx, c, o, targets)
	if err != nil {
		return err
	}
	return PrintGroups(a, o, groups, c.Namespace, len(targets) == 1 && targets[0].Name != "")
}

// collect reads the targets and groups them by kind.
func collect(ctx context.Context, c *kit.Cluster, o kit.GetOptions, targets []kit.Target) ([]kit.Group, error) {
	var groups []kit.Group
	for _, k := range kit.Kinds {
		g := kit.Group{Kind: k}
		for _, t := range targets {
			if t.Kind.Name != k.Name {
				continue
			}
			found, err := c.Find(ctx, o, t)
			if err == nil {
				err = add(&g, found...)
			}
			if err != nil {
				return nil, err
			}
		}
		if len(g.Objects) > 0 {
			groups = append(groups, g)
		}
	}
	return groups, nil
}

// PrintGroups writes what was found; single means that the user asked for one object by its name.
func PrintGroups(a *kit.App, o kit.GetOptions, groups []kit.Group, namespace string, single bool) error {
	switch o.Output {
	case printer.OutputJSON, printer.OutputYAML:
		return printer.PrintValue(a.Streams.Out, o.Output, document(groups, single))
	case printer.OutputName:
		for _, g := range groups {
			for _, item := range g.Objects {
				fmt.Fprintf(a.Streams.Out, "%s.%s/%s\n", strings.ToLower(g.Kind.Name), v1alpha1.GroupVersion.Group, item.GetName())
			}
		}
		return nil
	}
	if len(groups) == 0 {
		fmt.Fprintln(a.Streams.ErrOut, kit.NothingFound(o, namespace))
		return nil
	}
	for i, g := range groups {
		if i > 0 {
			fmt.Fprintln(a.Streams.Out)
		}
		fmt.Fprint(a.Streams.Out, a.ObjectTable(g, o, len(groups) > 1).Render(printer.StyleFor(a.Streams.Out)))
	}
	return nil
}

// document is what -o json and yaml print: the object itself when one was named, else a List as kubectl has it.
func document(groups []kit.Group, single bool) any {
	items := []any{}
	for _, g := range groups {
		for _, item := range g.Raw {
			items = append(items, item.Object)
		}
	}
	if single && len(items) == 1 {
		return items[0]
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items}
}
