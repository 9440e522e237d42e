// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"errors"
	"io/fs"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/satchel-dev/satchel/internal/convert/helm/load"
	"github.com/satchel-dev/satchel/internal/convert/helm/schema"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// Convert renders the chart that lies in files: in the folder itself, or in the package in it that is named; without a name in
// the only one, where the folder is no chart. Objects without a namespace are left without. It fails with the problems that
// were found.
func Convert(files fs.FS, packaged, namespace string, o Options, limits manifest.Limits) (Result, []manifest.Problem) {
	limits = limits.OrDefault()
	if packaged == "" {
		_, err := fs.Stat(files, load.ChartFile)
		if errors.Is(err, fs.ErrNotExist) {
			packaged, err = load.Packaged(files)
		}
		if err != nil {
			return Result{}, []manifest.Problem{*manifest.Unreadable(load.ChartFile, err)}
		}
	}
	c, problem := load.Chart(files, packaged, limits)
	if problem != nil {
		return Result{}, []manifest.Problem{*problem}
	}
	rendered, asked, problems := render(c, namespace, o)
	if len(problems) > 0 {
		return Result{}, problems
	}
	made := newOutput(files, limits)
	made.definitions(c)
	made.rendered(c.Name(), rendered)
	made.warn(warnings(c, asked)...)
	made.version = c.Metadata.Version
	return made.result()
}

// render returns what the templates of a chart write, by the name of their file, and which of them asked the cluster something.
func render(c *chart.Chart, namespace string, o Options) (map[string]string, []string, []manifest.Problem) {
	cluster, problem := capabilities(o.Capabilities)
	if problem == nil {
		problem = checkKube(c, cluster)
	}
	if problem != nil {
		return nil, nil, []manifest.Problem{*problem}
	}
	release, problem := releaseOf(c, o.ReleaseName, namespace)
	if problem != nil {
		return nil, nil, []manifest.Problem{*problem}
	}
	all, problem := values(c, o.Values, release, cluster)
	if problem != nil {
		return nil, nil, []manifest.Problem{*problem}
	}
	if given, err := all.Table("Values"); err == nil {
		if problems := schema.Check(c, given); len(problems) > 0 {
			return nil, nil, problems
		}
	}
	r := newRenderer(c, all)
	r.secret = o.Secret
	rendered, err := r.run()
	if err != nil {
		return nil, nil, []manifest.Problem{r.problem(err)}
	}
	return rendered, r.askers(), nil
}

// warnings list the questions of a chart that were not answered, and say whether the chart is deprecated.
func warnings(c *chart.Chart, asked []string) []string {
	var all []string
	for _, who := range asked {
		all = append(all, who+", which finds nothing: rendering asks neither the cluster nor the network")
	}
	if c.Metadata.Deprecated {
		all = append(all, "the chart is deprecated")
	}
	return all
}
