// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/rollout/forecast"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
	"github.com/satchel-dev/satchel/internal/view"
	"github.com/satchel-dev/satchel/internal/view/rollouts"
)

func planCommand(a *kit.App) *cobra.Command {
	var o choice
	var output printer.Output
	cmd := &cobra.Command{
		Use:   "plan NAME",
		Short: "Show what a run of the waves would do, without changing anything",
		Long: `Shows, wave by wave, how many clusters there are, how many are updated at once, how many may fail, what each wave waits
for, the plan that a BundleApproval has to name, and which clusters are started first. It reads the clusters with your
own permissions and decides as the controller does, as if every wave succeeded.

Without flags it is the run that is under way, or the next one. With -f it is a run of the manifest in the file, which is
compared with what the waves have now; with --revision one that goes back to a revision of the history.

Exit codes:

    0    shown
    1    shown, and for some clusters no BundleDeployment can be rendered
    2    failed: not found, no access, a field that is not valid
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Which clusters are next, and what has to be approved?
satchel rollout plan cert-manager -n fleet

# Before merging a change
satchel rollout plan cert-manager -n fleet -f rollout.yaml

# Before going back
satchel rollout plan cert-manager -n fleet --revision 1c09e4b7aa`),
		ValidArgsFunction: a.CompleteOne(kit.Rollouts),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := kit.OneRollout(cmd, args)
			if err != nil {
				return err
			}
			return plan(cmd.Context(), a, o, output, t)
		},
	}
	o.flags(a, cmd)
	a.OutputFlag(cmd, &output, printer.OutputText, printer.OutputJSON, printer.OutputYAML)
	return cmd
}

func plan(ctx context.Context, a *kit.App, o choice, output printer.Output, t kit.Target) error {
	r, err := newReader(a)
	if err != nil {
		return err
	}
	run, err := r.candidate(ctx, a, o, t)
	if err != nil {
		return err
	}
	if err := revision.CheckTemplate(&run.object.Spec); err != nil {
		return fmt.Errorf("%s: %w", t, err)
	}
	seen, err := r.see(ctx, a, run.object)
	if err != nil {
		return err
	}
	value := planOf(seen, run)
	if output == printer.OutputText {
		fmt.Fprint(a.Streams.Out, printPlan(value, printer.StyleFor(a.Streams.Out), printer.WidthOf(a.Streams.Out)))
	} else if err := printer.PrintValue(a.Streams.Out, output, value); err != nil {
		return err
	}
	if len(value.Invalid) > 0 {
		return kit.ErrNo
	}
	return nil
}

// nextRevision stands for a revision that does not exist yet.
var nextRevision = rollout.Revision{Name: "next", Digest: "next", Content: "next"}

// planOf forecasts a run.
func planOf(seen *forecast.Seen, run *candidate) rollouts.Plan {
	status := &run.object.Status
	value := rollouts.Plan{
		Namespace: run.object.Namespace, Name: run.object.Name, Revision: rollouts.Revision{Name: run.name, Version: run.version},
	}
	isComplete := seen.Current != nil && status.CurrentRevision.Digest == run.digest
	underWay := run.isKnown && !isComplete && status.RejectedRevision != run.name
	done := map[string]bool{}
	switch {
	case isComplete && run.isKnown:
		value.State = "all waves have it; the next revision would go as follows"
		seen.Update = nextRevision
	case underWay:
		value.State = "under way"
		for i := range status.Waves {
			done[status.Waves[i].Name] = status.Waves[i].State == v1alpha1.WaveComplete
		}
	default:
		value.State = "not started"
		seen.Update = rollout.Revision{Name: run.name, Digest: run.digest, Content: run.data.Content}
		if run.name == "" {
			seen.Update = nextRevision
		}
	}
	in := seen.Input()
	if !underWay {
		in.Run++
	}
	withPlans := seen.Update.Digest != nextRevision.Digest
	value.Waves = rollouts.PlanWaves(forecast.Of(in), done, withPlans, seen.Now)
	if run.known != nil && !run.isKnown {
		value.Changes = changesOf(run)
	}
	value.Invalid = invalid(seen.Clusters, run)
	return value
}

// changesOf compares a revision with the one that the waves have.
func changesOf(run *candidate) []string {
	var changes []string
	if run.known.Content != run.data.Content {
		changes = append(changes, "source: "+view.ShortRevision(view.Inline(run.known.Content))+" → "+view.ShortRevision(view.Inline(run.data.Content)))
	}
	if run.known.Ignore != run.data.Ignore {
		changes = append(changes, "source: ignore changed")
	}
	return append(changes, rollouts.Changes(specOf(run.known), specOf(&run.data))...)
}

func specOf(data *revision.Data) *v1alpha1.BundleRolloutSpec {
	return &v1alpha1.BundleRolloutSpec{Template: data.Template, Variables: data.Variables, Overrides: data.Overrides}
}

// invalid are the clusters for which no BundleDeployment can be rendered.
func invalid(clusters []revision.Cluster, run *candidate) []rollouts.PlanProblem {
	renderer, err := run.renderer()
	if err != nil {
		return []rollouts.PlanProblem{{Cluster: "all", Message: err.Error()}}
	}
	var problems []rollouts.PlanProblem
	for i := range clusters {
		if _, err := renderer.Render(&clusters[i]); err != nil {
			problems = append(problems, rollouts.PlanProblem{Cluster: clusters[i].Name, Message: err.Error()})
		}
	}
	return problems
}

// renderer renders the BundleDeployments of the candidate.
func (c *candidate) renderer() (*revision.Renderer, error) {
	return revision.NewRenderer(c.object.Name, c.name, c.data, c.object.Spec.DependsOn)
}

// mostFirst bounds the clusters that are named of a wave, and mostInvalid those that cannot be rendered.
const (
	mostFirst   = 5
	mostInvalid = 20
)

func printPlan(p rollouts.Plan, style printer.Style, width int) string {
	var out strings.Builder
	name := "a new revision"
	if p.Revision.Name != "" {
		name = p.Revision.String()
	}
	fmt.Fprintf(&out, "%s %s/%s: %s, %s\n", v1alpha1.BundleRolloutKind, view.Inline(p.Namespace), style.Paint(printer.Bold, view.Inline(p.Name)), name, p.State)
	for _, change := range p.Changes {
		fmt.Fprintf(&out, "  %s\n", view.Printable(change))
	}
	table := &printer.Table{Headers: []string{"WAVE", "CLUSTERS", "AT ONCE", "MAX FAILURES", "OPENS", "PLAN", "FIRST"}, Width: width}
	for i := range p.Waves {
		w := &p.Waves[i]
		plans := slices.DeleteFunc([]string{w.Before, w.After}, func(plan string) bool { return plan == "" })
		for k := range plans {
			plans[k] = view.ShortRevision(plans[k])
		}
		first := strings.Join(w.First[:min(len(w.First), mostFirst)], ", ")
		if more := len(w.First) - mostFirst; more > 0 {
			first += fmt.Sprintf(", and %d more", more)
		}
		table.Add(w.Name, strconv.Itoa(w.Clusters), strconv.Itoa(w.Concurrency), strconv.Itoa(w.Failures), w.Opens, kit.Dash(strings.Join(plans, ", ")), kit.Dash(first))
	}
	out.WriteString(table.Render(style))
	for i := range p.Invalid[:min(len(p.Invalid), mostInvalid)] {
		fmt.Fprintf(&out, "%s %s: %s\n", style.Paint(printer.Red, "Cannot be updated:"), view.Inline(p.Invalid[i].Cluster), view.OneLine(p.Invalid[i].Message, 0))
	}
	if more := len(p.Invalid) - mostInvalid; more > 0 {
		fmt.Fprintf(&out, "and %d more; -o json lists all\n", more)
	}
	return out.String()
}
