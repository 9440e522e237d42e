// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// selection are the flags that select objects for a command.
type selection struct {
	all      bool
	selector string
}

// flags adds --all and -l.
func (s *selection) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.all, "all", false, "All of the namespace.")
	cmd.Flags().StringVarP(&s.selector, "selector", "l", "", "Objects with matching labels, such as -l app=shop,tier!=test.")
}

// targets reads the arguments: names, or a kind (or "all" for both) with --all or -l.
func (s selection) targets(cmd *cobra.Command, args []string) ([]target, error) {
	targets := parseTargets(args)
	named := targets[0].name != ""
	switch {
	case named && s.all:
		return nil, usageError(cmd, "a name means one object, --all means all of them: use only one of the two")
	case named && s.selector != "":
		return nil, usageError(cmd, "a name means one object whatever its labels: leave -l or the name out")
	case !named && !s.all && s.selector == "":
		return nil, usageError(cmd, "%s needs names, or --all, or -l", cmd.Name())
	}
	return targets, nil
}

// chosen is an object that a command is about.
type chosen struct {
	target
	object object
}

// choose reads all objects before the first is changed.
func (c *cluster) choose(ctx context.Context, s selection, targets []target) ([]chosen, error) {
	var all []chosen
	for _, t := range targets {
		if t.name != "" {
			found, err := c.get(ctx, t)
			if err != nil {
				return nil, err
			}
			all = append(all, chosen{t, found})
			continue
		}
		listed, err := c.list(ctx, t.kind, false, s.selector)
		if err != nil {
			return nil, err
		}
		for _, raw := range listed {
			found, err := typed(t.kind, raw)
			if err != nil {
				return nil, err
			}
			all = append(all, chosen{target{kind: t.kind, name: raw.GetName()}, found})
		}
	}
	return all, nil
}

// nothingChosen says that there is nothing to do; that is no failure.
func (a *app) nothingChosen(c *cluster, s selection) {
	fmt.Fprintln(a.streams.ErrOut, nothingFound(getOptions{selector: s.selector}, c.namespace))
}

// word is how the object is named on a command line: a deployment by its name alone.
func (t target) word() string {
	if t.kind.name == deployments.name {
		return shellWord(t.name)
	}
	return shellWord(t.kind.word + "/" + t.name)
}

// String is the object for people.
func (t target) String() string { return t.kind.name + " " + t.name }
