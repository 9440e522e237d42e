// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/convert/helm/document"
	"github.com/satchel-dev/satchel/internal/spec/values"
)

// ChartOptions say what a chart becomes: the flags of all commands that convert one.
type ChartOptions struct {
	ReleaseName string
	Files       []string // with values
	BundleFiles []string // with values, in the bundle
	Set         []string
	KubeVersion string
	APIVersions []string
	Schemas     string

	values map[string]any // of the files and of set, see read
}

// chartFlags adds the flags about charts.
func chartFlags(a *kit.App, cmd *cobra.Command, o *ChartOptions) {
	flags := cmd.Flags()
	flags.StringVar(&o.ReleaseName, "release-name", "", "Name of the release of a chart, as spec.helm.releaseName; without it: the name of the chart.")
	flags.StringArrayVar(&o.Files, "values", nil,
		"File with values for a chart in YAML, as spec.helm.values, or - for standard input; may be repeated, each over those before it.")
	flags.StringArrayVar(&o.BundleFiles, "values-files", nil,
		"File of the bundle with values for a chart, as spec.helm.valuesFiles; may be repeated, each over those before it, and --values over all of them.")
	flags.StringArrayVar(&o.Set, "set", nil, "Value for a chart as path=value, over those of the files; may be repeated, and may be several with commas between.")
	flags.StringVar(&o.KubeVersion, "kube-version", "", "Version of Kubernetes that a chart gets as .Capabilities; without it: "+helm.DefaultKubeVersion+".")
	flags.StringSliceVar(&o.APIVersions, "api-versions", nil,
		"API versions and kinds that a chart gets in addition to those of Kubernetes itself, such as monitoring.coreos.com/v1/ServiceMonitor.")
	a.EnumFlag(cmd, &o.Schemas, "schema-validation", "", "What a values.schema.json that does not allow the values, or cannot be used, leads to, as spec.helm.schemaValidation.",
		string(helm.SchemasEnforced), string(helm.SchemasWarn), string(helm.SchemasIgnored))
	_ = cmd.MarkFlagFilename("values", "yaml", "yml", "json") // it only fails for a flag that does not exist
}

// Read reads the files, and puts what --set says over them.
func (o *ChartOptions) Read(in io.Reader) (err error) {
	o.values, err = ReadValues(o.Files, o.Set, in)
	return err
}

// ReadValues reads files with values of a chart, each over those before it, and puts expressions such as a.b=c over them. The
// name - is standard input.
func ReadValues(files, set []string, in io.Reader) (map[string]any, error) {
	merged := map[string]any{}
	for _, file := range files {
		name, data, err := kit.ReadFile("--values", file, in, longestValues)
		if err != nil {
			return nil, err
		}
		read, problem := document.Read(data)
		if problem != "" {
			return nil, fmt.Errorf("reading --values: %s: %s", name, problem)
		}
		merged = document.Over(merged, read)
	}
	for _, expression := range set {
		if err := values.Set(merged, expression); err != nil {
			return nil, err
		}
	}
	return merged, nil
}

// longestValues bounds a file with values.
const longestValues = 4 << 20

// Options are those of the format.
func (o *ChartOptions) Options() helm.Options {
	capabilities := helm.Capabilities{KubeVersion: o.KubeVersion}
	if len(o.APIVersions) > 0 {
		capabilities.APIVersions = slices.Compact(slices.Sorted(slices.Values(append(helm.DefaultAPIVersions(), o.APIVersions...))))
	}
	return helm.Options{ReleaseName: o.ReleaseName, Values: o.values, Capabilities: capabilities, Schemas: helm.Schemas(o.Schemas)}
}

// Given tells that one of the flags was given.
func (o *ChartOptions) Given() bool {
	return o.ReleaseName != "" || len(o.Files) > 0 || len(o.BundleFiles) > 0 || len(o.Set) > 0 || o.KubeVersion != "" || len(o.APIVersions) > 0 || o.Schemas != ""
}
