// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
	"github.com/satchel-dev/satchel/internal/view/rollouts"
)

func historyCommand(a *kit.App) *cobra.Command {
	var output printer.Output
	cmd := &cobra.Command{
		Use:   "history NAME",
		Short: "Show the revisions of a BundleRollout, how they ended, and who approved them",
		Long: `Lists the revision that the waves get now, and those that ended, the newest first: how each ended, on how many clusters
it was ready or had failed then, how long it took, and the BundleApprovals that were used. spec.historyLimit is how many
are kept, and it is possible to go back to each of these: set spec.revision to its name, in quotes.

` + kit.ExitCodes,
		Example: a.Example(`
# Which revisions were there?
satchel rollout history cert-manager -n fleet`),
		ValidArgsFunction: a.CompleteOne(kit.Rollouts),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := kit.OneRollout(cmd, args)
			if err != nil {
				return err
			}
			return history(cmd.Context(), a, output, t)
		},
	}
	a.OutputFlag(cmd, &output, printer.OutputTable, printer.OutputWide, printer.OutputJSON, printer.OutputYAML, printer.OutputName)
	return cmd
}

func history(ctx context.Context, a *kit.App, o printer.Output, t kit.Target) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	object, err := c.Rollout(ctx, t)
	if err != nil {
		return err
	}
	found := rollouts.NewHistory(object)
	switch {
	case o == printer.OutputJSON || o == printer.OutputYAML:
		return printer.PrintValue(a.Streams.Out, o, found)
	case len(found.Revisions) == 0:
		fmt.Fprintf(a.Streams.ErrOut, "No revision of %s was started yet; rollout status says what it waits for.\n", t)
	case o == printer.OutputName:
		for _, one := range found.Revisions {
			fmt.Fprintln(a.Streams.Out, view.Inline(one.Name))
		}
	default:
		fmt.Fprint(a.Streams.Out, historyTable(a, found, o == printer.OutputWide).Render(printer.StyleFor(a.Streams.Out)))
	}
	return nil
}

func historyTable(a *kit.App, found rollouts.History, wide bool) *printer.Table {
	t := &printer.Table{Headers: []string{"REVISION", "VERSION", "OUTCOME", "UPDATED", "FAILED", "BEGAN", "TOOK", "APPROVED BY"}}
	for _, one := range found.Revisions {
		version := kit.Dash(view.ShortOrigin(view.Inline(one.Version)))
		if wide {
			version = kit.Dash(view.Inline(one.Version))
		}
		began, took := "-", "-"
		if one.Began != nil {
			began = one.Began.UTC().Format("2006-01-02 15:04")
			took = tookText(a, one)
		}
		approvals := make([]string, 0, len(one.Approvals))
		for _, approval := range one.Approvals {
			approvals = append(approvals, approval.Wave+": "+cmp.Or(approval.Approver, approval.Name))
		}
		row := t.Add(one.Name, version, one.Outcome, fmt.Sprint(one.Updated), fmt.Sprint(one.Failed), began, took, kit.Dash(strings.Join(approvals, "; ")))
		row[2].Color = outcomeColors[one.Outcome]
	}
	return t
}

// tookText is how long a revision took, or has taken so far.
func tookText(a *kit.App, one rollouts.Ended) string {
	if one.Ended != nil {
		return view.Age(one.Ended.Time, *one.Began)
	}
	return view.Age(a.Now(), metav1.NewTime(one.Began.Time)) + " so far"
}

// outcomeColors are those of the outcomes.
var outcomeColors = map[string]printer.Color{
	"Complete": printer.Green, "RolledBack": printer.Red, "Aborted": printer.Red, rollouts.InProgress: printer.Yellow,
}
