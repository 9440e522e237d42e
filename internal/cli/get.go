// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// getOptions are the flags of get.
type getOptions struct {
	output     output
	everywhere bool
	selector   string
}

func (a *app) getCommand() *cobra.Command {
	var o getOptions
	cmd := &cobra.Command{
		Use:     "get [deployments|sources|all] [NAME...]",
		GroupID: groupSee,
		Short:   "List BundleDeployments and BundleSources and their state",
		Long: `Lists BundleDeployments (when no kind is given), BundleSources or both, one line each: whether it is Ready, the current
revision, the number of its objects, its age, and the message of its controller. Digests are cut to 12 digits; -o wide
shows them in full, and more columns.

` + exitCodes,
		Example: a.example(`
# The deployments of the current namespace
satchel get

# Deployments and sources of all namespaces
satchel get all -A

# One source, with all fields
satchel get source podinfo -o yaml

# Names for a script
satchel get deployments -l team=payments -o name`),
		ValidArgsFunction: a.completeTargets(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			targets := parseTargets(args)
			if o.everywhere && targets[0].name != "" {
				return usageError(cmd, "a name means one object of one namespace: leave -A or the name out")
			}
			if o.selector != "" && targets[0].name != "" {
				return usageError(cmd, "a name means one object whatever its labels: leave -l or the name out")
			}
			return a.get(cmd.Context(), o, targets)
		},
	}
	a.outputFlag(cmd, &o.output, outputTable, outputWide, outputJSON, outputYAML, outputName)
	cmd.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "List the objects of all namespaces.")
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "List only objects with matching labels, such as -l app=shop,tier!=test.")
	return cmd
}

// group is the objects of one kind.
type group struct {
	kind    kind
	objects []object
	raw     []*unstructured.Unstructured // the same, as the cluster has them
}

// add appends an object in both forms.
func (g *group) add(raw ...*unstructured.Unstructured) error {
	for _, one := range raw {
		o, err := typed(g.kind, one)
		if err != nil {
			return err
		}
		one.SetManagedFields(nil)
		g.objects, g.raw = append(g.objects, o), append(g.raw, one)
	}
	return nil
}

func (a *app) get(ctx context.Context, o getOptions, targets []target) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	groups, err := c.collect(ctx, o, targets)
	if err != nil {
		return err
	}
	return a.printGroups(o, groups, c.namespace, len(targets) == 1 && targets[0].name != "")
}

// collect reads the targets and groups them by kind.
func (c *cluster) collect(ctx context.Context, o getOptions, targets []target) ([]group, error) {
	var groups []group
	for _, k := range kinds {
		g := group{kind: k}
		for _, t := range targets {
			if t.kind.name != k.name {
				continue
			}
			found, err := c.find(ctx, o, t)
			if err == nil {
				err = g.add(found...)
			}
			if err != nil {
				return nil, err
			}
		}
		if len(g.objects) > 0 {
			groups = append(groups, g)
		}
	}
	return groups, nil
}

// find reads one target: one object, or all of its kind.
func (c *cluster) find(ctx context.Context, o getOptions, t target) ([]*unstructured.Unstructured, error) {
	if t.name == "" {
		return c.list(ctx, t.kind, o.everywhere, o.selector)
	}
	one, err := c.getRaw(ctx, t)
	return []*unstructured.Unstructured{one}, err
}

// printGroups writes what was found; single means that the user asked for one object by its name.
func (a *app) printGroups(o getOptions, groups []group, namespace string, single bool) error {
	switch o.output {
	case outputJSON, outputYAML:
		return printValue(a.streams.Out, o.output, document(groups, single))
	case outputName:
		for _, g := range groups {
			for _, item := range g.objects {
				fmt.Fprintf(a.streams.Out, "%s.%s/%s\n", strings.ToLower(g.kind.name), v1alpha1.GroupVersion.Group, item.GetName())
			}
		}
		return nil
	}
	if len(groups) == 0 {
		fmt.Fprintln(a.streams.ErrOut, nothingFound(o, namespace))
		return nil
	}
	for i, g := range groups {
		if i > 0 {
			fmt.Fprintln(a.streams.Out)
		}
		fmt.Fprint(a.streams.Out, a.objectTable(g, o, len(groups) > 1).render(styleFor(a.streams.Out)))
	}
	return nil
}

func nothingFound(o getOptions, namespace string) string {
	text := "Nothing found"
	if o.selector != "" {
		text += " with the labels " + o.selector
	}
	if o.everywhere {
		return text + " in any namespace."
	}
	return fmt.Sprintf("%s in the namespace %s; -A looks in all.", text, namespace)
}

// document is what -o json and yaml print: the object itself when one was named, else a List as kubectl has it.
func document(groups []group, single bool) any {
	items := []any{}
	for _, g := range groups {
		for _, item := range g.raw {
			items = append(items, item.Object)
		}
	}
	if single && len(items) == 1 {
		return items[0]
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items}
}
