// SPDX-License-Identifier: Apache-2.0

package see

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/tree"
	"github.com/satchel-dev/satchel/internal/view"
)

// eventsOptions are the flags of events.
type eventsOptions struct {
	output     printer.Output
	everywhere bool
	follow     bool
	warnings   bool
	limit      int
}

// EventsCommand returns the command events.
func EventsCommand(a *kit.App) *cobra.Command {
	var o eventsOptions
	cmd := &cobra.Command{
		Use:     "events [[deployment|source|catalog|rollout] NAME]",
		GroupID: kit.GroupSee,
		Short:   "Show what happened to a BundleDeployment, its source, its objects and their Pods",
		Long: `Shows the events of a BundleDeployment, of its source, of the objects in its inventory and of what those own, such as
Pods, in one list by time, the newest last. What happened again counts as one event. Kubernetes keeps events for an hour
unless the cluster is configured otherwise; history shows the outcome of earlier revisions.

Of a BundleSource, a BundleCatalog and a BundleRollout it shows the events of that object, not those of the clusters of a
rollout. Without a name it shows the events of all of Satchel's objects of the namespace, and with -A of all namespaces.

Events that you may not read are named on standard error, and the rest is shown. Events of objects on a remote cluster
(spec.target) are on that cluster. With -w new events follow, until Ctrl-C.

` + kit.ExitCodes,
		Example: a.Example(`
# What happened lately?
satchel events podinfo -n demo

# What goes wrong anywhere?
satchel events -A --warnings

# Only what is wrong, with all columns
satchel events podinfo --warnings -o wide

# Of a catalog
satchel events catalog community

# Follow an upgrade until Ctrl-C
satchel events podinfo -w`),
		ValidArgsFunction: a.CompleteTargets(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			t := kit.Target{Kind: kit.Deployments}
			if len(args) > 0 {
				var err error
				if t, err = kit.OneTarget(cmd, args); err != nil {
					return err
				}
			}
			switch {
			case o.everywhere && t.Name != "":
				return kit.UsageError(cmd, "a name means one object of one namespace: leave -A or the name out")
			case o.limit < 0:
				return kit.UsageError(cmd, "--limit is a number of events, or 0 for all")
			case o.follow && o.output != printer.OutputTable && o.output != printer.OutputWide:
				return kit.UsageError(cmd, "-w writes lines for people: omit it or -o %s", o.output)
			}
			return events(cmd.Context(), a, o, t)
		},
	}
	a.OutputFlag(cmd, &o.output, printer.OutputTable, printer.OutputWide, printer.OutputJSON, printer.OutputYAML)
	cmd.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "Show the events of all namespaces.")
	cmd.Flags().BoolVarP(&o.follow, "watch", "w", false, "Go on with a line for each event, until Ctrl-C.")
	cmd.Flags().BoolVar(&o.warnings, "warnings", false, "Show warnings only.")
	cmd.Flags().IntVar(&o.limit, "limit", 200, "Show so many of the newest events; 0 shows all.")
	return cmd
}

func events(ctx context.Context, a *kit.App, o eventsOptions, t kit.Target) error {
	x, err := a.Explore()
	if err != nil {
		return err
	}
	r := &eventReader{Explorer: x, target: t, everywhere: o.everywhere, owners: map[inventory.ID]*inventory.ID{}, listed: map[tree.KindInNamespace]bool{}, seen: map[string]string{}}
	if err := r.refresh(ctx); err != nil {
		return err
	}
	found, err := r.read(ctx, o)
	if err != nil {
		return err
	}
	a.NoteOmitted(found.Omitted)
	if err := printEvents(a, o, found); err != nil || !o.follow {
		return err
	}
	return followEvents(ctx, a, o, r)
}

func printEvents(a *kit.App, o eventsOptions, found EventList) error {
	if o.output == printer.OutputJSON || o.output == printer.OutputYAML {
		return printer.PrintValue(a.Streams.Out, o.output, found)
	}
	if found.Older > 0 {
		fmt.Fprintf(a.Streams.ErrOut, "%s older are not shown; --limit 0 shows all.\n", view.Plural(found.Older, "event"))
	}
	if len(found.Events) == 0 && !o.follow {
		fmt.Fprintln(a.Streams.ErrOut, "No events: nothing happened lately, or the events have expired; status and history tell more.")
		return nil
	}
	fmt.Fprint(a.Streams.Out, found.Table(o.output == printer.OutputWide, a.Now()).Render(printer.StyleFor(a.Streams.Out)))
	return nil
}
