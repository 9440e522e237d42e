// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"io/fs"

	"github.com/satchel-dev/satchel/internal/convert/helm/load"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// Description is what a chart says of itself.
type Description struct {
	Name, Version, AppVersion, Description, KubeVersion string
	// Schema: there is one for the values.
	Schema bool
	// Dependencies are the charts in it, as "name version", in its order.
	Dependencies []string
}

// Describe reads a chart, of a folder or of the package in it that is named, without rendering it.
func Describe(files fs.FS, packaged string, limits manifest.Limits) (Description, *manifest.Problem) {
	if packaged == "" {
		if _, err := fs.Stat(files, load.ChartFile); err != nil {
			if packaged, err = load.Packaged(files); err != nil {
				return Description{}, manifest.Unreadable(".", err)
			}
		}
	}
	loaded, problem := load.Chart(files, packaged, limits.OrDefault())
	if problem != nil {
		return Description{}, problem
	}
	d := Description{Schema: len(loaded.Schema) > 0}
	if m := loaded.Metadata; m != nil {
		d.Name = m.Name
		d.Version = m.Version
		d.AppVersion = m.AppVersion
		d.Description = m.Description
		d.KubeVersion = m.KubeVersion
	}
	for _, inner := range loaded.Dependencies() {
		if inner.Metadata != nil {
			d.Dependencies = append(d.Dependencies, inner.Metadata.Name+" "+inner.Metadata.Version)
		}
	}
	return d, nil
}
