// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/satchel-dev/satchel/internal/convert/helm/load"
	"github.com/satchel-dev/satchel/internal/convert/helm/message"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// values joins the values given with those of a chart and of the charts it contains, and takes away those charts that the
// values switch off.
func values(c *chart.Chart, given map[string]any, release common.ReleaseOptions, cluster *common.Capabilities) (common.Values, *manifest.Problem) {
	own, err := plain(given)
	if err != nil {
		return nil, &manifest.Problem{Rule: message.Rule, Message: "the values cannot be written as JSON", Remedy: "correct them"}
	}
	var all common.Values
	err = load.Quietly(func() error {
		if err := chartutil.ProcessDependencies(c, withSubchartTables(c, own)); err != nil {
			return err
		}
		all, err = util.ToRenderValuesWithSchemaValidation(c, withSubchartTables(c, own), release, cluster, true)
		return err
	})
	if err != nil {
		return nil, &manifest.Problem{Rule: message.Rule, Message: valuesSay(err), Remedy: "correct the values"}
	}
	return all, sameName(c)
}

// plain copies values as Helm reads them from a file: all numbers become floating-point ones.
func plain(given map[string]any) (map[string]any, error) {
	text, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	copied := map[string]any{}
	err = json.Unmarshal(text, &copied)
	if copied == nil {
		copied = map[string]any{}
	}
	return copied, err
}

// withSubchartTables are values with a mapping for each subchart, on every level. Without one, Helm 4.2 drops each null with
// which a chart's values.yaml removes a default of a subchart (https://github.com/helm/helm/issues/32132): it cleans the
// mapping of nulls when it copies it, before the defaults of the subchart are known. TestHelmDropsNullsForSubcharts fails once
// Helm no longer does; then this can go.
func withSubchartTables(c *chart.Chart, values map[string]any) map[string]any {
	out := maps.Clone(values)
	if out == nil {
		out = map[string]any{}
	}
	for _, child := range c.Dependencies() {
		for _, name := range subchartNames(c, child) {
			given, present := out[name]
			table, isTable := given.(map[string]any)
			if isTable || !present && !isScalar(c.Values[name]) {
				out[name] = withSubchartTables(child, table)
			}
		}
	}
	return out
}

// isScalar tells whether a value is neither a mapping nor null.
func isScalar(value any) bool {
	_, table := value.(map[string]any)
	return !table && value != nil
}

// subchartNames are the names under which the values of a subchart stand: its own, and its aliases, before Helm has renamed it.
func subchartNames(c, child *chart.Chart) []string {
	names := []string{child.Name()}
	for _, dependency := range c.Metadata.Dependencies {
		if dependency != nil && dependency.Name == child.Name() && dependency.Alias != "" {
			names = append(names, dependency.Alias)
		}
	}
	return names
}

// valuesSay is why values cannot be joined, without one of them.
func valuesSay(err error) string {
	const mismatch = "type mismatch on "
	if after, ok := strings.CutPrefix(err.Error(), mismatch); ok {
		name, _, _ := strings.Cut(after, ":")
		return fmt.Sprintf("the values of the chart %s, which this one contains, are not a mapping", message.Shorten(name))
	}
	return "the values cannot be joined with those of the chart"
}

// sameName refuses two charts of one name: the values and templates of one would be the other's.
func sameName(c *chart.Chart) *manifest.Problem {
	seen := map[string]bool{}
	for _, child := range c.Dependencies() {
		if seen[child.Name()] {
			return load.ProblemOf(c, fmt.Sprintf("charts/ holds two charts of the name %s", message.Shorten(child.Name())), "name each version in dependencies, with an alias, or keep one of them")
		}
		seen[child.Name()] = true
		if problem := sameName(child); problem != nil {
			return problem
		}
	}
	return nil
}

// checkKube refuses a chart that is not made for the version of the cluster.
func checkKube(c *chart.Chart, cluster *common.Capabilities) *manifest.Problem {
	wanted := c.Metadata.KubeVersion
	if wanted == "" || chartutil.IsCompatibleRange(wanted, cluster.KubeVersion.String()) {
		return nil
	}
	return load.ProblemOf(c, fmt.Sprintf("the chart is for Kubernetes %s, and this is %s", message.Shorten(wanted), cluster.KubeVersion.Version), "use a version of the chart for this cluster")
}

// releaseOf is what templates see as .Release: always that of a first installation, so that a chart means the same objects at
// each reconcile.
func releaseOf(c *chart.Chart, name, namespace string) (common.ReleaseOptions, *manifest.Problem) {
	if name == "" {
		name = c.Name()
	}
	if err := chartutil.ValidateReleaseName(name); err != nil {
		return common.ReleaseOptions{}, &manifest.Problem{
			Rule: message.Rule, Message: fmt.Sprintf("%q is no name for a release", message.Shorten(name)),
			Remedy: "give one of at most 53 lower-case letters, digits, dots and dashes in spec.helm.releaseName",
		}
	}
	return common.ReleaseOptions{Name: name, Namespace: namespace, Revision: 1, IsInstall: true}, nil
}
