// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// versions is what the version command prints.
type versions struct {
	Client kit.VersionInfo `json:"client"`
	Server *serverVersion  `json:"server,omitempty"`
}

// serverVersion is what is known about the cluster.
type serverVersion struct {
	Kubernetes string   `json:"kubernetes"`
	Satchel    []string `json:"satchel"` // API versions that the cluster serves; empty when it is not installed
}

func versionCommand(a *kit.App) *cobra.Command {
	var o printer.Output
	var clientOnly bool
	cmd := &cobra.Command{
		Use:     "version",
		GroupID: kit.GroupPreview,
		Short:   "Show the versions of this program and of the cluster",
		Long: `Shows the version of this program, that of Kubernetes in the cluster, and whether the cluster serves Satchel's API. If
no cluster is chosen or it does not answer, standard error says so, and the exit code is 0.

` + kit.ExitCodes,
		Example: a.Example(`
# Both
satchel version

# Without a cluster
satchel version --client -o json`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			v := versions{Client: a.Version}
			var failure error
			if !clientOnly {
				v.Server, failure = askServerVersion(a)
			}
			if failure != nil {
				a.Note([]string{a.Explain(failure)})
			}
			return printVersions(a, o, v)
		},
	}
	a.OutputFlag(cmd, &o, printer.OutputText, printer.OutputJSON, printer.OutputYAML)
	cmd.Flags().BoolVar(&clientOnly, "client", false, "Show only the version of this program, without a cluster.")
	return cmd
}

func printVersions(a *kit.App, o printer.Output, v versions) error {
	if o != printer.OutputText {
		return printer.PrintValue(a.Streams.Out, o, v)
	}
	fmt.Fprintf(a.Streams.Out, "%s %s\n", a.Name, v.Client)
	if v.Server == nil {
		return nil
	}
	fmt.Fprintf(a.Streams.Out, "Kubernetes %s\n", view.Inline(v.Server.Kubernetes))
	if len(v.Server.Satchel) == 0 {
		fmt.Fprintln(a.Streams.Out, "Satchel is not installed in this cluster")
	}
	for _, version := range v.Server.Satchel {
		fmt.Fprintf(a.Streams.Out, "API %s\n", view.Inline(version))
	}
	return nil
}

// askServerVersion asks the cluster.
func askServerVersion(a *kit.App) (*serverVersion, error) {
	config, err := a.RestConfig()
	if err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config) // without the cache on disk, which may be hours old
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	kubernetes, err := client.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking the cluster for its version: %w", err)
	}
	groups, err := client.ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("asking the cluster for its APIs: %w", err)
	}
	v := &serverVersion{Kubernetes: kubernetes.GitVersion, Satchel: []string{}}
	for _, g := range groups.Groups {
		if g.Name != v1alpha1.GroupVersion.Group {
			continue
		}
		for _, version := range g.Versions {
			v.Satchel = append(v.Satchel, version.GroupVersion)
		}
	}
	return v, nil
}
