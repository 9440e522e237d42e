// SPDX-License-Identifier: Apache-2.0

// Package load reads untrusted charts, of folders or packages, into memory, within bounds: what a chart depends on has to be in
// it. It renders nothing, and looks at no values.
package load

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/satchel-dev/satchel/internal/convert/helm/message"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// ChartFile is what makes a folder a chart.
const ChartFile = "Chart.yaml"

// library is the type of charts that only define templates for others.
const library = "library"

// Chart reads a chart that lies in files: the folder itself, or a package in it.
func Chart(files fs.FS, packaged string, limits manifest.Limits) (*chart.Chart, *manifest.Problem) {
	b := newBudget(limits)
	all, problem := b.read(files, packaged)
	if problem != nil {
		return nil, problem
	}
	if !slices.ContainsFunc(all, func(f *archive.BufferedFile) bool { return f.Name == ChartFile }) {
		return nil, missingChart(packaged)
	}
	if all, problem = b.flatten(all, 0); problem != nil {
		return nil, problem
	}
	if problem = checkYAML(all, limits); problem != nil {
		return nil, problem
	}
	c, err := parseChart(all)
	if err != nil {
		return nil, &manifest.Problem{File: ChartFile, Rule: message.Rule, Message: loaderSays(err), Remedy: "correct the chart; helm lint says more"}
	}
	if problem = sorted(c); problem != nil {
		return nil, problem
	}
	return c, firstProblem(checkRoot(c), checkCharts(c))
}

// read returns the files of a chart, sorted.
func (b *budget) read(files fs.FS, packaged string) ([]*archive.BufferedFile, *manifest.Problem) {
	if packaged == "" {
		return b.readFolder(files)
	}
	info, err := fs.Lstat(files, packaged)
	switch {
	case err != nil:
		return nil, manifest.Unreadable(packaged, err)
	case !info.Mode().IsRegular():
		return nil, irregular(packaged)
	}
	if info.Size() > b.limit {
		return nil, &manifest.Problem{File: packaged, Rule: manifest.RuleLimit, Message: fmt.Sprintf("the package is larger than %d bytes", b.limit), Remedy: remedyLimit}
	}
	data, err := fs.ReadFile(files, packaged)
	if err != nil {
		return nil, manifest.Unreadable(packaged, err)
	}
	return b.unpack(packaged, data)
}

func missingChart(packaged string) *manifest.Problem {
	if packaged != "" {
		return notPackage(packaged, "its folder holds no "+ChartFile)
	}
	return &manifest.Problem{
		Rule: message.Rule, Message: "the folder has no " + ChartFile + ", and is not the folder of one package of a chart",
		Remedy: "point spec.path at the folder of the chart, or at its package",
	}
}

// parsed are files that the loader parses as YAML.
var parsed = map[string]bool{
	"Chart.yaml": true, "Chart.lock": true, "values.yaml": true, "requirements.yaml": true, "requirements.lock": true,
}

// mostParsed bounds a file that the loader parses without a budget of values.
const mostParsed = 2 << 20

// checkYAML bounds the files that the loader parses.
func checkYAML(all []*archive.BufferedFile, limits manifest.Limits) *manifest.Problem {
	most := min(limits.FileBytes, mostParsed)
	for _, file := range all {
		if !parsed[path.Base(file.Name)] {
			continue
		}
		if int64(len(file.Data)) > most {
			return &manifest.Problem{File: inBundle(file.Name), Rule: manifest.RuleLimit, Message: fmt.Sprintf("the file is larger than %d bytes", most), Remedy: "shorten it"}
		}
	}
	return nil
}

// inBundle is the name of a file as it is in the bundle.
func inBundle(name string) string { return strings.ReplaceAll(name, unpacked+"/", "/") }

// parseChart has Helm's loader make a chart of files that are in memory.
func parseChart(all []*archive.BufferedFile) (c *chart.Chart, err error) {
	defer func() {
		if p := recover(); p != nil { // the library's own mistakes must not end the process
			err = errors.New("the loader broke off")
		}
	}()
	err = Quietly(func() error {
		c, err = loader.LoadFiles(all)
		return err
	})
	return c, err
}

// loaderSays is why the loader fails, in the names of the bundle and without values.
func loaderSays(err error) string {
	text := message.Quoted.ReplaceAllString(strings.ReplaceAll(err.Error(), unpacked, ""), "…")
	return message.OneLine(strings.TrimPrefix(text, "validation: "))
}

// sorted puts the charts that a chart contains into an order of their own: the loader leaves it to chance.
func sorted(c *chart.Chart) *manifest.Problem {
	within := slices.Clone(c.Dependencies())
	slices.SortFunc(within, func(a, b *chart.Chart) int {
		return cmp.Or(cmp.Compare(a.Name(), b.Name()), cmp.Compare(a.Metadata.Version, b.Metadata.Version))
	})
	for i, child := range within {
		if i > 0 && child.Name() == within[i-1].Name() && child.Metadata.Version == within[i-1].Metadata.Version {
			return ProblemOf(c, fmt.Sprintf("charts/ holds the chart %s %s twice", message.Shorten(child.Name()), message.Shorten(child.Metadata.Version)), "keep one of them")
		}
		if problem := sorted(child); problem != nil {
			return problem
		}
	}
	c.SetDependencies(within...)
	return nil
}

// ProblemOf is a problem of a chart.
func ProblemOf(c *chart.Chart, text, remedy string) *manifest.Problem {
	_, below, _ := strings.Cut(c.ChartFullPath(), "/")
	return &manifest.Problem{File: path.Join(below, ChartFile), Rule: message.Rule, Message: text, Remedy: remedy}
}

// chartName is what a chart may be called: its name becomes part of paths.
var chartName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,249}$`)

// checkRoot refuses a chart that cannot be installed.
func checkRoot(c *chart.Chart) *manifest.Problem {
	if strings.EqualFold(c.Metadata.Type, library) {
		return ProblemOf(c, "this is a library chart: it only defines templates for others", "install a chart that depends on it")
	}
	return nil
}

// checkCharts looks at a chart and all that it contains.
func checkCharts(c *chart.Chart) *manifest.Problem {
	if !chartName.MatchString(c.Name()) {
		return ProblemOf(c, fmt.Sprintf("%q is no name for a chart", message.Shorten(c.Name())), "use letters, digits, dots and dashes")
	}
	if v := c.Metadata.APIVersion; v != chart.APIVersionV1 && v != chart.APIVersionV2 {
		return ProblemOf(c, fmt.Sprintf("the apiVersion %q is not supported", message.Shorten(v)), "use v2")
	}
	for _, dependency := range c.Metadata.Dependencies {
		if problem := checkDependency(c, dependency); problem != nil {
			return problem
		}
	}
	for _, child := range c.Dependencies() {
		if problem := checkCharts(child); problem != nil {
			return problem
		}
	}
	return nil
}

// checkDependency looks for a dependency in charts/: nothing is fetched.
func checkDependency(c *chart.Chart, wanted *chart.Dependency) *manifest.Problem {
	found := ""
	for _, child := range c.Dependencies() {
		if child.Name() != wanted.Name {
			continue
		}
		if wanted.Version == "" || chartutil.IsCompatibleRange(wanted.Version, child.Metadata.Version) {
			return nil
		}
		found = child.Metadata.Version
	}
	name := fmt.Sprintf("%s %s", message.Shorten(wanted.Name), message.Shorten(wanted.Version))
	if found != "" {
		return ProblemOf(c, fmt.Sprintf("the chart depends on %s, and charts/ holds its version %s", strings.TrimSpace(name), message.Shorten(found)),
			"run helm dependency update before publishing the chart")
	}
	return ProblemOf(c, fmt.Sprintf("the chart depends on %s, which charts/ does not hold", strings.TrimSpace(name)),
		"run helm dependency build before publishing the chart: nothing is fetched while a bundle is rendered")
}

func firstProblem(problems ...*manifest.Problem) *manifest.Problem {
	for _, p := range problems {
		if p != nil {
			return p
		}
	}
	return nil
}
