// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"errors"
	"io/fs"

	"helm.sh/helm/v4/pkg/chart/common"
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
	rendered, said, problems := render(c, namespace, o)
	if len(problems) > 0 {
		return Result{}, problems
	}
	made := newOutput(files, limits)
	made.definitions(c)
	made.rendered(c.Name(), rendered)
	made.warn(warnings(c, said)...)
	made.version = c.Metadata.Version
	return made.result()
}

// render returns what the templates of a chart write, by the name of their file, and warnings.
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
	schemaWarnings, problems := checkSchemas(c, all, o.Schemas)
	if len(problems) > 0 {
		return nil, nil, problems
	}
	r := newRenderer(c, all)
	r.secret = o.Secret
	rendered, err := r.run()
	if err != nil {
		return nil, nil, []manifest.Problem{r.problem(err)}
	}
	return rendered, append(askedWarnings(r.askers()), schemaWarnings...), nil
}

// checkSchemas holds values against the schemas of a chart: what they do not allow is a problem, or a warning where schemas only warn.
func checkSchemas(c *chart.Chart, all common.Values, use Schemas) (warnings []string, problems []manifest.Problem) {
	given, err := all.Table("Values")
	if err != nil || use == SchemasIgnored {
		return nil, nil
	}
	problems = schema.Check(c, given)
	if use != SchemasWarn {
		return nil, problems
	}
	for _, problem := range problems {
		warnings = append(warnings, problem.File+": "+problem.Message+"; spec.helm.schemaValidation is Warn")
	}
	return warnings, nil
}

// askedWarnings are the questions of a chart that were not answered.
func askedWarnings(asked []string) []string {
	var all []string
	for _, who := range asked {
		all = append(all, who+", which finds nothing: rendering asks neither the cluster nor the network")
	}
	return all
}

// warnings are those of rendering, and say whether the chart is deprecated.
func warnings(c *chart.Chart, all []string) []string {
	if c.Metadata.Deprecated {
		all = append(all, "the chart is deprecated")
	}
	return all
}
