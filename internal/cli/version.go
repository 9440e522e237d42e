// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// VersionInfo is what is known about a binary.
type VersionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// BuildVersion returns what the linker (-ldflags "-X main.version=...") said, completed with what the Go toolchain
// recorded in the binary.
func BuildVersion(linked string) VersionInfo {
	info := VersionInfo{Version: linked, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, found := debug.ReadBuildInfo()
	if !found {
		return info.complete()
	}
	if info.Version == "" && build.Main.Version != "(devel)" {
		info.Version = build.Main.Version
	}
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.Commit = setting.Value
		case "vcs.modified":
			info.Modified = setting.Value == "true"
		}
	}
	return info.complete()
}

func (v VersionInfo) complete() VersionInfo {
	if v.Version == "" {
		v.Version = "devel"
	}
	return v
}

// versions is what the version command prints.
type versions struct {
	Client VersionInfo    `json:"client"`
	Server *serverVersion `json:"server,omitempty"`
}

// serverVersion is what is known about the cluster.
type serverVersion struct {
	Kubernetes string   `json:"kubernetes"`
	Satchel    []string `json:"satchel"` // API versions that the cluster serves; empty when it is not installed
}

func (a *app) versionCommand() *cobra.Command {
	var o output
	var clientOnly bool
	cmd := &cobra.Command{
		Use:     "version",
		GroupID: groupPreview,
		Short:   "Show the versions of this program and of the cluster",
		Long: `Shows the version of this program, that of Kubernetes in the cluster, and whether the cluster serves Satchel's API.

` + exitCodes,
		Example: a.example(`
# Both
satchel version

# Without a cluster
satchel version --client -o json`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			v := versions{Client: a.version}
			var failure error
			if !clientOnly {
				v.Server, failure = a.serverVersion()
			}
			if err := a.printVersions(o, v); err != nil {
				return err
			}
			return failure
		},
	}
	a.outputFlag(cmd, &o, outputText, outputJSON, outputYAML)
	cmd.Flags().BoolVar(&clientOnly, "client", false, "Show only the version of this program, without a cluster.")
	return cmd
}

func (a *app) printVersions(o output, v versions) error {
	if o != outputText {
		return printValue(a.streams.Out, o, v)
	}
	commit := ""
	if v.Client.Commit != "" {
		commit = ", commit " + v.Client.Commit[:min(len(v.Client.Commit), 12)]
	}
	if v.Client.Modified {
		commit += " with changes"
	}
	fmt.Fprintf(a.streams.Out, "%s %s (%s, %s%s)\n", a.name, v.Client.Version, v.Client.Go, v.Client.Platform, commit)
	if v.Server == nil {
		return nil
	}
	fmt.Fprintf(a.streams.Out, "Kubernetes %s\n", inline(v.Server.Kubernetes))
	if len(v.Server.Satchel) == 0 {
		fmt.Fprintln(a.streams.Out, "Satchel is not installed in this cluster")
	}
	for _, version := range v.Server.Satchel {
		fmt.Fprintf(a.streams.Out, "API %s\n", inline(version))
	}
	return nil
}

// serverVersion asks the cluster.
func (a *app) serverVersion() (*serverVersion, error) {
	config, err := a.restConfig()
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
