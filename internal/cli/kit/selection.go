// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/view"
)

// Selection are the flags that select objects for a command.
type Selection struct {
	all        bool
	everywhere bool
	Selector   string
}

// Flags adds --all and -l.
func (s *Selection) Flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.all, "all", false, "All of the namespace.")
	cmd.Flags().StringVarP(&s.Selector, "selector", "l", "", "Objects with matching labels, such as -l app=shop,tier!=test.")
}

// EverywhereFlag adds -A.
func (s *Selection) EverywhereFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&s.everywhere, "all-namespaces", "A", false, "Of all namespaces, with --all or -l.")
}

// Everywhere tells whether objects of all namespaces are selected.
func (s Selection) Everywhere() bool { return s.everywhere }

// Targets reads the arguments: names, or a kind (or "all" for all kinds) with --all or -l.
func (s Selection) Targets(cmd *cobra.Command, args []string) ([]Target, error) {
	targets := ParseTargets(args)
	named := targets[0].Name != ""
	switch {
	case named && s.all:
		return nil, UsageError(cmd, "a name means one object, --all means all of them: use only one of the two")
	case named && s.Selector != "":
		return nil, UsageError(cmd, "a name means one object whatever its labels: leave -l or the name out")
	case named && s.everywhere:
		return nil, UsageError(cmd, "a name means one object of one namespace: leave -A or the name out")
	case !named && !s.all && s.Selector == "":
		return nil, UsageError(cmd, "%s needs names, or --all, or -l", cmd.Name())
	}
	return targets, refuseRollouts(cmd, targets)
}

// insteadOf is what does to a rollout what a command does to the other kinds.
var insteadOf = map[string]string{
	"suspend": "rollout suspend", "resume": "rollout resume", "wait": "rollout status --wait", "reconcile": "rollout retry",
	"approve": "rollout approve", "plan": "rollout plan", "rollback": "rollout abort", "history": "rollout history",
	"tree": "rollout clusters", "render": "rollout render",
}

// refuseRollouts names the command for rollouts, where a command is about the other kinds.
func refuseRollouts(cmd *cobra.Command, targets []Target) error {
	ofRollouts := takesRollouts[cmd.Name()] || cmd.HasParent() && cmd.Parent().Name() == "rollout"
	for _, t := range targets {
		if t.Kind.Name != Rollouts.Name || ofRollouts {
			continue
		}
		if other := insteadOf[cmd.Name()]; other != "" {
			return UsageError(cmd, "%s is not about a %s: use %s %s %s", cmd.Name(), t.Kind.Name, cmd.Root().DisplayName(), other, view.ShellWord(t.Name))
		}
		return UsageError(cmd, "%s is not about a %s", cmd.Name(), t.Kind.Name)
	}
	return nil
}

// takesRollouts are the commands that are also about rollouts.
var takesRollouts = map[string]bool{"get": true, "status": true, "events": true, "export": true}

// Chosen is an object that a command is about.
type Chosen struct {
	Target
	Object view.Object
}

// Choose reads all objects before the first is changed.
func (c *Cluster) Choose(ctx context.Context, s Selection, targets []Target) ([]Chosen, error) {
	var all []Chosen
	for _, t := range targets {
		if t.Name != "" {
			found, err := c.Get(ctx, t)
			if err != nil {
				return nil, err
			}
			all = append(all, Chosen{t, found})
			continue
		}
		listed, err := c.List(ctx, t.Kind, s.everywhere, s.Selector)
		if err != nil {
			return nil, err
		}
		for _, raw := range listed {
			found, err := Typed(t.Kind, raw)
			if err != nil {
				return nil, err
			}
			all = append(all, Chosen{Target{Kind: t.Kind, Name: raw.GetName()}, found})
		}
	}
	return all, nil
}

// NothingChosen says that there is nothing to do; that is no failure.
func (a *App) NothingChosen(c *Cluster, s Selection) {
	fmt.Fprintln(a.Streams.ErrOut, NothingFound(GetOptions{Selector: s.Selector, Everywhere: s.everywhere}, c.Namespace))
}

// Word is how the object is named on a command line: a deployment by its name alone.
func (t Target) Word() string {
	if t.Kind.Name == Deployments.Name {
		return view.ShellWord(t.Name)
	}
	return view.ShellWord(t.Kind.Word + "/" + t.Name)
}

// String is the object for people.
func (t Target) String() string { return t.Kind.Name + " " + t.Name }

// GetOptions say where objects are looked for.
type GetOptions struct {
	Everywhere bool
	Selector   string
}

// Group is the objects of one kind.
type Group struct {
	Kind    Kind
	Objects []view.Object
	Raw     []*unstructured.Unstructured // the same, as the cluster has them
}

// Find reads one target: one object, or all of its kind.
func (c *Cluster) Find(ctx context.Context, o GetOptions, t Target) ([]*unstructured.Unstructured, error) {
	if t.Name == "" {
		return c.List(ctx, t.Kind, o.Everywhere, o.Selector)
	}
	one, err := c.getRaw(ctx, t)
	return []*unstructured.Unstructured{one}, err
}

// NothingFound says that nothing was found, and where.
func NothingFound(o GetOptions, namespace string) string {
	text := "Nothing found"
	if o.Selector != "" {
		text += " with the labels " + o.Selector
	}
	if o.Everywhere {
		return text + " in any namespace."
	}
	return fmt.Sprintf("%s in the namespace %s; -A looks in all.", text, namespace)
}

// OneTarget reads the arguments of a command about one object.
func OneTarget(cmd *cobra.Command, args []string) (Target, error) {
	targets := ParseTargets(args)
	if len(targets) != 1 || targets[0].Name == "" {
		return Target{}, UsageError(cmd, "%s needs the name of one object, got %s", cmd.Name(), Given(args))
	}
	return targets[0], refuseRollouts(cmd, targets)
}

// OneDeployment reads the arguments of a command about one BundleDeployment.
func OneDeployment(cmd *cobra.Command, args []string) (Target, error) {
	t, err := OneTarget(cmd, args)
	if err == nil && t.Kind.Name != Deployments.Name {
		return Target{}, UsageError(cmd, "%s is about BundleDeployments, not about a %s", cmd.Name(), t.Kind.Name)
	}
	return t, err
}

// Deployment reads a BundleDeployment.
func (c *Cluster) Deployment(ctx context.Context, t Target) (*v1alpha1.BundleDeployment, error) {
	o, err := c.Get(ctx, t)
	if err != nil {
		return nil, err
	}
	return o.(*v1alpha1.BundleDeployment), nil //nolint:errcheck,forcetypeassert // the kind makes no other
}

// OneRollout reads the argument of a command about one BundleRollout.
func OneRollout(cmd *cobra.Command, args []string) (Target, error) {
	if len(args) != 1 || args[0] == "" {
		return Target{}, UsageError(cmd, "rollout %s needs the name of one BundleRollout, got %s", cmd.Name(), Given(args))
	}
	return Target{Kind: Rollouts, Name: args[0]}, nil
}

// Rollout reads a BundleRollout.
func (c *Cluster) Rollout(ctx context.Context, t Target) (*v1alpha1.BundleRollout, error) {
	o, err := c.Get(ctx, t)
	if err != nil {
		return nil, err
	}
	return o.(*v1alpha1.BundleRollout), nil //nolint:errcheck,forcetypeassert // the kind makes no other
}

// Dash is the text, or a dash for none.
func Dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// StatusWidth is where messages are cut in lists.
const StatusWidth = 100
