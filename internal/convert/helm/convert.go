// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"slices"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// Convert renders the chart that lies in files: in the folder itself, or in the package in it that is named; without a name in
// the only one, where the folder is no chart. Objects without a namespace are left without. It fails with the problems that
// were found.
func Convert(files fs.FS, packaged, namespace string, o Options, limits manifest.Limits) (Result, []manifest.Problem) {
	limits = limits.OrDefault()
	if packaged == "" {
		_, err := fs.Stat(files, chartFile)
		if errors.Is(err, fs.ErrNotExist) {
			packaged, err = Packaged(files)
		}
		if err != nil {
			return Result{}, []manifest.Problem{*manifest.Unreadable(chartFile, err)}
		}
	}
	c, problem := load(files, packaged, limits)
	if problem != nil {
		return Result{}, []manifest.Problem{*problem}
	}
	rendered, m, problems := render(c, namespace, o, limits)
	if len(problems) > 0 {
		return Result{}, problems
	}
	made := newOutput(files, limits)
	made.definitions(c)
	made.rendered(c.Name(), rendered)
	made.warn(warnings(c, m)...)
	return made.result()
}

// render returns what the templates of a chart write, by the name of their file.
func render(c *chart.Chart, namespace string, o Options, limits manifest.Limits) (map[string]string, *meter, []manifest.Problem) {
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
	m := newMeter(limits)
	if given, err := all.Table("Values"); err == nil {
		if problems := checkSchemas(c, given, m); len(problems) > 0 {
			return nil, nil, problems
		}
	}
	templates, err := sources(c, all)
	r := newRenderer(m, c.Name())
	if err != nil {
		return nil, nil, []manifest.Problem{r.problem(err)}
	}
	rendered, err := r.run(templates)
	if err != nil {
		return nil, nil, []manifest.Problem{r.problem(err)}
	}
	return rendered, m, nil
}

// warnings are what a chart asked and was not told, and that it is no longer cared for.
func warnings(c *chart.Chart, m *meter) []string {
	var all []string
	for _, who := range slices.SortedFunc(maps.Keys(m.asked), cmp.Compare) {
		all = append(all, who+", which finds nothing: rendering asks neither the cluster nor the network")
	}
	if c.Metadata.Deprecated {
		all = append(all, "the chart is deprecated")
	}
	return all
}
