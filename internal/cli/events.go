// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// eventsOptions are the flags of events.
type eventsOptions struct {
	output   output
	follow   bool
	warnings bool
	limit    int
}

func (a *app) eventsCommand() *cobra.Command {
	var o eventsOptions
	cmd := &cobra.Command{
		Use:     "events NAME",
		GroupID: groupSee,
		Short:   "Show what happened to a BundleDeployment, its source, its objects and their Pods",
		Long: `Shows the events of a BundleDeployment, of its source, of the objects in its inventory and of what those own, such as
Pods, in one list by time, the newest last. What happened again counts as one event. Kubernetes keeps events for an hour
unless the cluster is configured otherwise; history shows the outcome of earlier revisions.

Events that you may not read are named on standard error, and the rest is shown. Events of objects on a remote cluster
(spec.kubeConfig) are on that cluster. With -w new events follow, until Ctrl-C.

` + exitCodes,
		Example: a.example(`
# What happened lately?
satchel events podinfo -n demo

# Only what is wrong, with all columns
satchel events podinfo --warnings -o wide

# Follow an upgrade until Ctrl-C
satchel events podinfo -w`),
		ValidArgsFunction: a.completeOne(deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := oneDeployment(cmd, args)
			switch {
			case err != nil:
				return err
			case o.limit < 0:
				return usageError(cmd, "--limit is a number of events, or 0 for all")
			case o.follow && o.output != outputTable && o.output != outputWide:
				return usageError(cmd, "-w writes lines for people: omit it or -o %s", o.output)
			}
			return a.events(cmd.Context(), o, t)
		},
	}
	a.outputFlag(cmd, &o.output, outputTable, outputWide, outputJSON, outputYAML)
	cmd.Flags().BoolVarP(&o.follow, "watch", "w", false, "Go on with a line for each event, until Ctrl-C.")
	cmd.Flags().BoolVar(&o.warnings, "warnings", false, "Show warnings only.")
	cmd.Flags().IntVar(&o.limit, "limit", 200, "Show so many of the newest events; 0 shows all.")
	return cmd
}

func (a *app) events(ctx context.Context, o eventsOptions, t target) error {
	x, err := a.explore()
	if err != nil {
		return err
	}
	r := &eventReader{explorer: x, target: t, owners: map[inventory.ID]*inventory.ID{}, listed: map[kindInNamespace]bool{}, seen: map[string]string{}}
	if err := r.refresh(ctx); err != nil {
		return err
	}
	found, err := r.read(ctx, o)
	if err != nil {
		return err
	}
	a.noteOmitted(found.Omitted)
	if err := a.printEvents(o, found); err != nil || !o.follow {
		return err
	}
	return a.followEvents(ctx, o, r)
}

func (a *app) printEvents(o eventsOptions, found eventList) error {
	if o.output == outputJSON || o.output == outputYAML {
		return printValue(a.streams.Out, o.output, found)
	}
	if found.Older > 0 {
		fmt.Fprintf(a.streams.ErrOut, "%s older are not shown; --limit 0 shows all.\n", plural(found.Older, "event"))
	}
	if len(found.Events) == 0 && !o.follow {
		fmt.Fprintln(a.streams.ErrOut, "No events: nothing happened lately, or the events have expired; status and history tell more.")
		return nil
	}
	fmt.Fprint(a.streams.Out, found.table(o.output == outputWide, a.now()).render(styleFor(a.streams.Out)))
	return nil
}
