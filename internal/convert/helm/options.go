// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// Options are what a chart is rendered with, beside its files.
type Options struct {
	// ReleaseName is what templates get as .Release.Name; empty: the chart's name.
	ReleaseName string
	// Values are merged over those of the chart. They are not changed.
	Values map[string]any
	// Secret says that values came from Secrets: problems then tell where a template failed, and nothing of what it says, for
	// a template can write a value in a form that nothing would recognise.
	Secret bool
	// Capabilities are what templates get as .Capabilities.
	Capabilities Capabilities
	// Schemas says what a schema that does not allow the values leads to; empty: SchemasEnforced.
	Schemas Schemas
}

// Schemas says what a values.schema.json is used for.
type Schemas string

// Uses of schemas.
const (
	SchemasEnforced Schemas = "Enforce"
	SchemasWarn     Schemas = "Warn"
	SchemasIgnored  Schemas = "None"
)

// Capabilities are what a chart may ask of the cluster.
type Capabilities struct {
	// KubeVersion is the version of the API server; empty: DefaultKubeVersion.
	KubeVersion string
	// APIVersions are what the API server has, as group/version and group/version/Kind; none: DefaultAPIVersions.
	APIVersions []string
}

// Hook is an object that runs at a point in the life of a release instead of being part of it.
type Hook struct {
	manifest.Manifest
	// Events at which it runs: pre-install, post-install, pre-upgrade, post-upgrade, pre-delete, post-delete; at least one.
	Events []string
	// Weight orders the hooks of an event; the lowest runs first.
	Weight int
	// DeletePolicies say when it is deleted: before-hook-creation, hook-succeeded, hook-failed; at least one.
	DeletePolicies []string
}

// Result is what a chart becomes.
type Result struct {
	// Version of the chart.
	Version string
	// Manifests are the objects of crds/ first, then those of templates in the order of their files.
	Manifests []manifest.Manifest
	// Hooks in the order in which they run: by weight, name and kind.
	Hooks []Hook
	// Warnings about what was left out or is not as Helm has it; sorted.
	Warnings []string
}
