// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/catalogs"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/resolver"
)

const exitCodes = `Exit codes:

    0    done
    2    failed: wrong use, a package that is not found, a catalog that cannot be read
    130  interrupted by Ctrl-C`

// Command returns the command catalog.
func Command(a *kit.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "catalog COMMAND",
		GroupID: kit.GroupPreview,
		Short:   "Show packages, channels and upgrade graphs of catalogs",
		Long: `Reads file-based catalogs (FBC): the channels of a package, its upgrade graph and the path that upgrades take, and
problems.

` + catalogs.Help + `

` + exitCodes,
		Example: a.Example(`
# The catalogs that the namespace sees
satchel catalog list

# The channels of a package, with what each bundle replaces, in a BundleCatalog, in files and in an image
satchel catalog channels argocd-operator --catalog community
satchel catalog channels argocd-operator --catalog community=./catalog
satchel catalog channels argocd-operator --catalog community=quay.io/operatorhubio/catalog:latest`),
		ValidArgsFunction: cobra.NoFileCompletions, // the commands below are completed
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return kit.UsageError(cmd, "catalog has no command %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(listCommand(a), searchCommand(a), showCommand(a), channelsCommand(a), graphCommand(a), validateCommand(a))
	return cmd
}

// options are the flags of all commands.
type options struct {
	catalogs catalogs.Flags
	output   printer.Output
}

func (o *options) flags(a *kit.App, cmd *cobra.Command, formats ...printer.Output) {
	o.catalogs.Bind(a, cmd)
	a.OutputFlag(cmd, &o.output, formats...)
}

// onePackage reads the package that the arguments name.
func (o *options) onePackage(a *kit.App, cmd *cobra.Command, args []string) (resolver.Catalog, error) {
	if len(args) != 1 || args[0] == "" {
		return resolver.Catalog{}, kit.UsageError(cmd, "%s needs one package, got %s", cmd.Name(), kit.Given(args))
	}
	return o.read(a, cmd, args[0])
}

// read reads a package from the catalog that has it, of several the one with the highest priority.
func (o *options) read(a *kit.App, cmd *cobra.Command, name string) (_ resolver.Catalog, err error) {
	if err := o.catalogs.Parse(cmd); err != nil {
		return resolver.Catalog{}, err
	}
	set, err := o.catalogs.Open(cmd.Context(), a)
	defer func() { err = errors.Join(err, set.Close()) }()
	if err != nil {
		return resolver.Catalog{}, err
	}
	loaded, err := set.Load(cmd.Context(), name)
	if err != nil {
		return resolver.Catalog{}, err
	}
	a.Note(loaded.Problems)
	return choose(name, loaded)
}

// choose returns the catalog to show, as resolution would choose among them.
func choose(name string, loaded catalogs.Loaded) (resolver.Catalog, error) {
	var chosen []resolver.Catalog
	for _, c := range loaded.Catalogs {
		switch {
		case c.Problem != nil:
			return c, fmt.Errorf("package %s of catalog %s cannot be read: %w", name, c.Name, c.Problem)
		case c.Package == nil:
			continue
		case len(chosen) > 0 && c.Priority < chosen[0].Priority:
			continue
		case len(chosen) > 0 && c.Priority > chosen[0].Priority:
			chosen = nil
		}
		chosen = append(chosen, c)
	}
	switch len(chosen) {
	case 0:
		return resolver.Catalog{}, errors.New(strings.Join(append([]string{"no catalog has the package " + name}, loaded.Similar(name)...), "; "))
	case 1:
		return chosen[0], nil
	}
	var names []string
	for _, c := range chosen {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return resolver.Catalog{}, fmt.Errorf("catalogs %s of the same priority have the package %s: give only one, or one of them a higher priority",
		strings.Join(names, ", "), name)
}
