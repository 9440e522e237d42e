// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/cli/catalogs"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// catalogValue is a BundleCatalog in the output for programs.
type catalogValue struct {
	Namespace      string       `json:"namespace"`
	Name           string       `json:"name"`
	Ready          string       `json:"ready"`
	Digest         string       `json:"digest,omitempty"` // of what is served
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty"`
	Packages       int32        `json:"packages"`
	Bundles        int32        `json:"bundles"`
	Priority       int32        `json:"priority"`
	Shared         bool         `json:"shared"`             // with all namespaces
	Shadowed       bool         `json:"shadowed,omitempty"` // by one of the namespace with the same name
	Message        string       `json:"message,omitempty"`
}

func listCommand(a *kit.App) *cobra.Command {
	var flags catalogs.Flags
	var everywhere bool
	var output printer.Output
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the BundleCatalogs that the namespace sees",
		Long: `Lists the BundleCatalogs of the namespace, and those that all namespaces share: whether they are Ready, how many packages
and bundles they serve, their priority, the digest of the content and since when it is served. A shared catalog is
shadowed by one of the namespace with the same name. The command get catalogs shows the messages of the controller.

` + exitCodes,
		Example: a.Example(`
# What can be installed from here?
satchel catalog list -n demo

# All catalogs of the cluster
satchel catalog list -A`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return kit.UsageError(cmd, "list takes no arguments, got %s", kit.Given(args))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			seen, err := flags.List(cmd.Context(), a, everywhere)
			if err != nil {
				return err
			}
			return printCatalogs(a, seen, everywhere, output)
		},
	}
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "List the catalogs of all namespaces.")
	flags.BindShared(cmd)
	a.OutputFlag(cmd, &output, printer.OutputTable, printer.OutputJSON, printer.OutputYAML)
	return cmd
}

func printCatalogs(a *kit.App, seen []catalogs.Seen, everywhere bool, output printer.Output) error {
	values := make([]catalogValue, 0, len(seen))
	for _, s := range seen {
		values = append(values, valueOf(s))
	}
	if output != printer.OutputTable {
		return printer.PrintValue(a.Streams.Out, output, values)
	}
	if len(values) == 0 {
		a.Note([]string{"no BundleCatalog was found"})
		return nil
	}
	table := printer.Table{Headers: []string{"NAME", "READY", "PACKAGES", "BUNDLES", "PRIORITY", "SCOPE", "DIGEST", "UPDATED"}}
	if everywhere {
		table.Headers = append([]string{"NAMESPACE"}, table.Headers...)
	}
	for _, v := range values {
		updated := ""
		if v.LastUpdateTime != nil {
			updated = view.Age(a.Now(), *v.LastUpdateTime)
		}
		cells := []string{
			v.Name, v.Ready, strconv.Itoa(int(v.Packages)), strconv.Itoa(int(v.Bundles)), strconv.Itoa(int(v.Priority)), v.scope(),
			view.ShortRevision(v.Digest), updated,
		}
		if everywhere {
			cells = append([]string{v.Namespace}, cells...)
		}
		addRow(&table, cells...)
	}
	_, err := fmt.Fprint(a.Streams.Out, table.Render(printer.StyleFor(a.Streams.Out)))
	return err
}

func valueOf(s catalogs.Seen) catalogValue {
	summary := view.Summarize(s.BundleCatalog)
	v := catalogValue{
		Namespace: s.Namespace, Name: s.Name, Ready: summary.Readiness(), Priority: s.Spec.Priority,
		Shared: s.Shared, Shadowed: s.Shadowed, Message: view.OneLine(summary.Text(), 0),
	}
	if content := s.Status.Content; content != nil {
		v.Digest = content.Digest
		v.LastUpdateTime = &content.LastUpdateTime
		v.Packages = content.Packages
		v.Bundles = content.Bundles
	}
	return v
}

// scope says who sees the catalog.
func (v catalogValue) scope() string {
	switch {
	case v.Shadowed:
		return "shared, shadowed"
	case v.Shared:
		return "shared"
	}
	return "own"
}
