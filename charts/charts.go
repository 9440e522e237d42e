// SPDX-License-Identifier: Apache-2.0

// Package charts has the Helm chart of Satchel. `satchel install` renders it, so both install the same objects.
package charts

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"
)

// Name is that of the chart.
const Name = "satchel"

//go:embed all:satchel
var chart embed.FS

// Files returns the files of the chart by their paths in it. Chart.yaml has the version of a release: appVersion as it is,
// version as Version returns it.
func Files(version string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(chart, Name, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[strings.TrimPrefix(path, Name+"/")], err = chart.ReadFile(path)
		return err
	})
	if err != nil {
		return nil, err
	}
	const metadata = "Chart.yaml"
	var fields map[string]any
	if err := yaml.Unmarshal(files[metadata], &fields); err != nil {
		return nil, fmt.Errorf("reading %s: %w", metadata, err)
	}
	fields["version"], fields["appVersion"] = Version(version), version
	if files[metadata], err = yaml.Marshal(fields); err != nil {
		return nil, fmt.Errorf("writing %s: %w", metadata, err)
	}
	return files, nil
}

// Version is the version of the chart for that of a program: a chart needs a semantic version, so another one becomes a
// suffix of 0.0.0.
func Version(version string) string {
	if parsed, err := semver.NewVersion(version); err == nil {
		return parsed.String()
	}
	return "0.0.0-" + strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, version)
}
