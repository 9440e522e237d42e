// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/view"
	"github.com/satchel-dev/satchel/internal/view/rollouts"
)

// clustersOptions are the flags of rollout clusters.
type clustersOptions struct {
	output printer.Output
	wave   string
	state  string
}

func clustersCommand(a *kit.App) *cobra.Command {
	var o clustersOptions
	cmd := &cobra.Command{
		Use:   "clusters NAME",
		Short: "List the clusters of a BundleRollout, with their wave, state and revision",
		Long: `Lists all clusters that a BundleRollout selects, and those that it still has to remove, by wave: the state that a decision
gives them, the revision that they were started with, the version that is applied, and the message of their
BundleDeployment. Clusters that stand for Secrets or objects of Cluster API are listed with your own permissions.

A cluster with the newest revision counts as such also where a label has changed since in a way that changes its
BundleDeployment; the controller updates it with its wave.

` + kit.ExitCodes,
		Example: a.Example(`
# Which clusters failed, and why?
satchel rollout clusters cert-manager -n fleet --state Failed

# The BundleDeployments of a wave, for further commands
satchel rollout clusters cert-manager -n fleet --wave canary -o name`),
		ValidArgsFunction: a.CompleteOne(kit.Rollouts),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := kit.OneRollout(cmd, args)
			if err != nil {
				return err
			}
			return clusters(cmd.Context(), a, o, t)
		},
	}
	a.OutputFlag(cmd, &o.output, printer.OutputTable, printer.OutputWide, printer.OutputJSON, printer.OutputYAML, printer.OutputName)
	cmd.Flags().StringVar(&o.wave, "wave", "", "List only clusters of this wave.")
	a.CompleteFlag(cmd, "wave", completeWaves(a))
	cmd.Flags().Var(stateFlag{&o.state}, "state", "List only clusters in this state. One of: "+strings.Join(rollouts.States, ", ")+".")
	a.CompleteFlag(cmd, "state", kit.Fixed(rollouts.States...))
	return cmd
}

// stateFlag takes a state in any case of letters.
type stateFlag struct{ value *string }

// Set implements the value of a flag.
func (f stateFlag) Set(word string) error {
	at := slices.IndexFunc(rollouts.States, func(state string) bool { return strings.EqualFold(state, word) })
	if at < 0 {
		return fmt.Errorf("%q is not one of: %s", word, strings.Join(rollouts.States, ", "))
	}
	*f.value = rollouts.States[at]
	return nil
}

// String implements the value of a flag.
func (f stateFlag) String() string {
	if f.value == nil {
		return ""
	}
	return *f.value
}

// Type implements the value of a flag.
func (stateFlag) Type() string { return "string" }

// completeWaves completes the waves of the named rollout.
func completeWaves(a *kit.App) kit.Completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return waveNames(cmd.Context(), a, args[0]), cobra.ShellCompDirectiveNoFileComp
	}
}

// waveNames are the waves of a rollout; none when the cluster does not answer in time.
func waveNames(ctx context.Context, a *kit.App, name string) []string {
	ctx, cancel := context.WithTimeout(ctx, kit.CompletionTimeout)
	defer cancel()
	c, err := a.Connect()
	if err != nil {
		return nil
	}
	o, err := c.Rollout(ctx, kit.Target{Kind: kit.Rollouts, Name: name})
	if err != nil {
		return nil
	}
	words := make([]string, 0, len(o.Status.Waves))
	for i := range o.Status.Waves {
		words = append(words, o.Status.Waves[i].Name)
	}
	return words
}

func clusters(ctx context.Context, a *kit.App, o clustersOptions, t kit.Target) error {
	r, err := newReader(a)
	if err != nil {
		return err
	}
	object, err := r.Rollout(ctx, t)
	if err != nil {
		return err
	}
	seen, err := r.see(ctx, a, object)
	if err != nil {
		return err
	}
	if o.wave != "" && !hasWave(seen.Strategy, o.wave) {
		return fmt.Errorf("%s has no wave %q; it has: %s", t, o.wave, strings.Join(namesOf(seen.Strategy), ", "))
	}
	all := slices.DeleteFunc(rollouts.Clusters(seen), func(one rollouts.Cluster) bool {
		return o.wave != "" && one.Wave != o.wave || o.state != "" && one.State != o.state
	})
	return printClusters(a, o, object, all)
}

func hasWave(strategy *rollout.Strategy, name string) bool {
	return slices.Contains(namesOf(strategy), name)
}

func namesOf(strategy *rollout.Strategy) []string {
	names := make([]string, 0, len(strategy.Waves))
	for i := range strategy.Waves {
		names = append(names, strategy.Waves[i].Name)
	}
	return names
}

// clusterList is what rollout clusters -o json prints.
type clusterList struct {
	Namespace string             `json:"namespace"`
	Name      string             `json:"name"`
	Clusters  []rollouts.Cluster `json:"clusters"`
}

func printClusters(a *kit.App, o clustersOptions, object *v1alpha1.BundleRollout, all []rollouts.Cluster) error {
	switch {
	case o.output == printer.OutputJSON || o.output == printer.OutputYAML:
		return printer.PrintValue(a.Streams.Out, o.output, clusterList{object.Namespace, object.Name, all})
	case len(all) == 0:
		fmt.Fprintln(a.Streams.ErrOut, "No such cluster.")
		return nil
	case o.output == printer.OutputName:
		for i := range all {
			if all[i].Deployment != "" {
				fmt.Fprintln(a.Streams.Out, "bundledeployment."+v1alpha1.GroupVersion.Group+"/"+view.Inline(all[i].Deployment))
			}
		}
		return nil
	}
	fmt.Fprint(a.Streams.Out, clusterTable(a, o.output == printer.OutputWide, all).Render(printer.StyleFor(a.Streams.Out)))
	return nil
}

func clusterTable(a *kit.App, wide bool, all []rollouts.Cluster) *printer.Table {
	t := &printer.Table{Headers: []string{"CLUSTER", "WAVE", "STATE", "REVISION", "VERSION", "READY", "SINCE", "REASON", "MESSAGE"}}
	if wide {
		t.Headers = slices.Insert(t.Headers, 1, "BUNDLEDEPLOYMENT")
	} else {
		t.Width = printer.WidthOf(a.Streams.Out)
	}
	for i := range all {
		one := &all[i]
		since := "-"
		if one.Since != nil {
			since = view.Age(a.Now(), *one.Since)
		}
		texts := []string{
			one.Name, kit.Dash(one.Wave), one.State, kit.Dash(one.Revision), kit.Dash(one.Version), kit.Dash(one.Ready), since, kit.Dash(one.Reason),
			view.OneLine(one.Message, 0),
		}
		if wide {
			texts = slices.Insert(texts, 1, kit.Dash(one.Deployment))
		}
		row := t.Add(texts...)
		row[len(row)-7].Color = clusterColor(one.State)
	}
	return t
}

func clusterColor(state string) printer.Color {
	switch state {
	case string(rollout.Updated):
		return printer.Green
	case string(rollout.Failed):
		return printer.Red
	case string(rollout.Pending), rollouts.Unmatched:
		return printer.Plain
	}
	return printer.Yellow
}
