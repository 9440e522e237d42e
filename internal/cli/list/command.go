// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// Options are the flags of get.
type Options struct {
	kit.GetOptions

	Output    Format
	NotReady  bool // only objects that are not Ready
	NoHeaders bool
	watch     bool
}

// Command returns the command get.
func Command(a *kit.App) *cobra.Command {
	o := Options{Output: Format(printer.OutputTable)}
	cmd := &cobra.Command{
		Use:     "get [deployments|sources|catalogs|rollouts|all] [NAME...]",
		GroupID: kit.GroupSee,
		Short:   "List BundleDeployments, BundleSources and BundleCatalogs and their state",
		Long: `Lists BundleDeployments (when no kind is given), BundleSources, BundleCatalogs, all three, or BundleRollouts, one line
each: whether it is Ready, the version of the bundle, its origin revision (the branch or tag, and the commit or digest
upstream), the number of its objects, what waits for an approval, its age, and the message of its controller. Of a
BundleCatalog it shows the numbers of packages and bundles, and the priority; of a BundleRollout the open wave, and how
many clusters are updated and failed. Digests are cut to 7 digits, and on a terminal the message is cut at its width;
-o wide shows them in full, the revision of the content, and more columns.

-o, -A, -l, -w and --no-headers work as in kubectl.

` + kit.ExitCodes,
		Example: a.Example(`
# The deployments of the current namespace
satchel get

# What is not Ready, in all namespaces, and what changes
satchel get all -A --not-ready
satchel get -w

# One source, with all fields
satchel get source podinfo -o yaml

# Names for a script, and one field of each
satchel get deployments -l team=payments -o name
satchel get -o custom-columns=NAME:.metadata.name,VERSION:.status.applied.version`),
		ValidArgsFunction: a.CompleteTargets(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			targets := kit.ParseTargets(args)
			switch named := targets[0].Name != ""; {
			case o.Everywhere && named:
				return kit.UsageError(cmd, "a name means one object of one namespace: leave -A or the name out")
			case o.Selector != "" && named:
				return kit.UsageError(cmd, "a name means one object whatever its labels: leave -l or the name out")
			case o.watch && !o.Output.isTable() && o.Output != Format(printer.OutputName):
				return kit.UsageError(cmd, "-w writes a line for each change: leave -o %s out, or use -o wide or -o name", o.Output)
			}
			return get(cmd.Context(), a, o, targets)
		},
	}
	flags := cmd.Flags()
	flags.VarP(&o.Output, "output", "o", "Format of the output. One of: table, wide, name, json, yaml, jsonpath=TEMPLATE, custom-columns=HEADER:PATH,...")
	a.CompleteFlag(cmd, "output", kit.Fixed(formatWords()...))
	flags.BoolVarP(&o.Everywhere, "all-namespaces", "A", false, "List the objects of all namespaces.")
	flags.StringVarP(&o.Selector, "selector", "l", "", "List only objects with matching labels, such as -l app=shop,tier!=test.")
	flags.BoolVar(&o.NotReady, "not-ready", false, "List only objects that are not Ready.")
	flags.BoolVar(&o.NoHeaders, "no-headers", false, "Omit the headers of the columns.")
	flags.BoolVarP(&o.watch, "watch", "w", false, "Go on with a line for each change, until Ctrl-C.")
	return cmd
}

func get(ctx context.Context, a *kit.App, o Options, targets []kit.Target) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	groups, err := collect(ctx, c, o, targets)
	if err != nil {
		return err
	}
	if err := PrintGroups(a, o, groups, c.Namespace, len(targets) == 1 && targets[0].Name != ""); err != nil || !o.watch {
		return err
	}
	return follow(ctx, a, c, o, targets, groups)
}

// collect reads the targets and groups them by kind.
func collect(ctx context.Context, c *kit.Cluster, o Options, targets []kit.Target) ([]kit.Group, error) {
	var groups []kit.Group
	for _, k := range kit.Known {
		g := kit.Group{Kind: k}
		for _, t := range targets {
			if t.Kind.Name != k.Name {
				continue
			}
			found, err := c.Find(ctx, o.GetOptions, t)
			if err == nil {
				err = o.add(&g, found...)
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

// add appends objects in both forms, those that the flags select.
func (o Options) add(g *kit.Group, raw ...*unstructured.Unstructured) error {
	for _, one := range raw {
		typed, err := kit.Typed(g.Kind, one)
		if err != nil {
			return err
		}
		if !o.selects(typed) {
			continue
		}
		one.SetManagedFields(nil)
		g.Objects, g.Raw = append(g.Objects, typed), append(g.Raw, one)
	}
	return nil
}

// selects tells whether an object is listed.
func (o Options) selects(found view.Object) bool {
	return !o.NotReady || !view.Summarize(found).IsReady()
}

// PrintGroups writes what was found; single means that the user asked for one object by its name.
func PrintGroups(a *kit.App, o Options, groups []kit.Group, namespace string, single bool) error {
	if !o.Output.isTable() {
		return o.Output.print(a.Streams.Out, groups, single, o.NoHeaders)
	}
	if len(groups) == 0 {
		fmt.Fprintln(a.Streams.ErrOut, o.nothingFound(namespace))
		return nil
	}
	for i, g := range groups {
		if i > 0 {
			fmt.Fprintln(a.Streams.Out)
		}
		t := objectTable(a, g, o, len(groups) > 1)
		fmt.Fprint(a.Streams.Out, t.Render(printer.StyleFor(a.Streams.Out)))
	}
	return nil
}

// nothingFound says that nothing was found, and where.
func (o Options) nothingFound(namespace string) string {
	if o.NotReady {
		return "Nothing that is not Ready was found" + map[bool]string{true: " in any namespace.", false: " in the namespace " + namespace + "; -A looks in all."}[o.Everywhere]
	}
	return kit.NothingFound(o.GetOptions, namespace)
}

// kindsOf are the kinds of targets, each once, in their order.
func kindsOf(targets []kit.Target) []kit.Kind {
	var kinds []kit.Kind
	for _, t := range targets {
		if !slices.ContainsFunc(kinds, func(k kit.Kind) bool { return k.Name == t.Kind.Name }) {
			kinds = append(kinds, t.Kind)
		}
	}
	return kinds
}
