// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/helm"
)

// RepositoryFlags adds the flags that name the Helm repository of a chart.
func RepositoryFlags(cmd *cobra.Command, o *OpenOptions) {
	flags := cmd.Flags()
	flags.StringVar(&o.HelmRepository, "helm-repository", "", "URL of a Helm repository with an index: the bundle is then the name of a chart in it.")
	flags.StringVar(&o.ChartVersion, "version", "", "Version of that chart, or a range such as 1.x; without it: the newest.")
}

// CheckRepository refuses flags about charts and images that have no effect together.
func (o OpenOptions) CheckRepository() error {
	switch {
	case o.HelmRepository == "" && o.ChartVersion != "":
		return errors.New("--version has no effect without --helm-repository")
	case o.HelmRepository != "" && o.Platform != "":
		return errors.New("--platform is for images, and has no effect on the chart of a Helm repository")
	}
	return nil
}

// openChart downloads a chart of a Helm repository into a temporary folder, which close removes.
func openChart(ctx context.Context, a *kit.App, chart string, o OpenOptions) (b *Bundle, err error) {
	dir, err := os.MkdirTemp("", "satchel-")
	if err != nil {
		return nil, fmt.Errorf("creating a temporary folder: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	tree, resolved, err := downloadChart(ctx, a, chart, dir, o)
	if err != nil {
		return nil, &FetchError{What: "the chart", Err: err}
	}
	return &Bundle{
		Files: tree.FS(),
		From:  fmt.Sprintf("the chart %s %s of %s, which is %s", chart, resolved.Reference, o.HelmRepository, resolved.Digest),
		Close: func() error { return errors.Join(tree.Close(), os.RemoveAll(dir)) },
		Notes: func() []string { return nil },

		Resolved: resolved,
	}, nil
}

func downloadChart(ctx context.Context, a *kit.App, chart, dir string, o OpenOptions) (*fetch.Tree, fetch.Resolved, error) {
	var insecure []string
	if at, err := url.Parse(o.HelmRepository); err == nil && (o.Insecure || IsLoopback(at.Host)) {
		insecure = []string{at.Host}
	}
	limits := fetch.DefaultLimits()
	client := LocalPolicy(insecure).HTTPClient(limits)
	progress := printer.NewProgress(a.Streams.ErrOut, "Downloading "+chart)
	client.Transport = progress.Count(client.Transport)
	defer progress.Done()
	fetcher, err := helm.New(helm.Options{Repository: o.HelmRepository, Chart: chart, Version: o.ChartVersion, Client: client, Limits: limits})
	if err != nil {
		return nil, fetch.Resolved{}, err
	}
	return fetchInto(ctx, fetcher, dir, limits)
}
