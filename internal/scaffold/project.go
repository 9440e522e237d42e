// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// Names in a project of kubebuilder or Operator SDK.
const (
	projectFile   = "PROJECT"
	projectConfig = "config"
	projectBundle = "bundle"
	defaultConfig = "config/default"
	basesFolder   = "config/manifests/bases"
	chartOfDist   = "dist/chart"
)

// project is what the file PROJECT says.
type project struct {
	Name    string         `json:"projectName"`
	Plugins map[string]any `json:"plugins"`
}

// title says what made the project.
func (p project) title() string {
	kind := "kubebuilder"
	for plugin := range p.Plugins {
		if strings.Contains(plugin, "operatorframework.io") {
			kind = "Operator SDK"
		}
	}
	return strings.TrimSpace("a project of " + kind + " " + p.Name)
}

// takeProject takes the part of a project that fits the wanted format:
//
//	wanted              bundle/   config/default   taken
//	registry+v1, none   yes       any              bundle/manifests and bundle/metadata
//	registry+v1         no        any              refused: make bundle
//	kustomize, none     no, any   yes              config/, built from config/default
//	plain+v0                                       refused: built manifests are one file, which is to be named
func takeProject(source Source, want convert.Format, folder string) (Bundle, error) {
	if folder != "" {
		return takeFolder(source, want, folder)
	}
	p, err := readProject(source)
	if err != nil {
		return Bundle{}, err
	}
	has := func(name string) bool {
		info, err := fs.Stat(source.Files, name)
		return err == nil && info.IsDir()
	}
	bundled := has(projectBundle+"/manifests") && has(projectBundle+"/metadata")
	t := taker{Bundle: Bundle{Files: map[string][]byte{}}}
	t.note("%s is %s", source.Name, p.title())
	switch {
	case want == convert.PlainV0:
		return Bundle{}, fmt.Errorf("%s is %s, and its manifests have to be built first: run make build-installer, and give --from %s/dist/install.yaml",
			source.Name, p.title(), strings.TrimSuffix(source.Name, "/"))
	case bundled && want != convert.Kustomize:
		return t.fromBundle(source)
	case want == convert.RegistryV1:
		return Bundle{}, fmt.Errorf("%s is %s without a bundle/%s: run make bundle in it, or take config/ with --format kustomize", source.Name, p.title(), t.bases(has))
	case has(defaultConfig):
		return t.fromConfig(source, has)
	}
	return Bundle{}, fmt.Errorf("%s is %s with neither bundle/manifests nor config/default: run make bundle in it, or name a folder in it with --from", source.Name, p.title())
}

// bases tells that the base of a bundle is there.
func (t *taker) bases(has func(string) bool) string {
	if has(basesFolder) {
		return " (its base in " + basesFolder + " is no bundle yet)"
	}
	return ""
}

// fromBundle takes the generated bundle of the project.
func (t *taker) fromBundle(source Source) (Bundle, error) {
	t.Format = convert.RegistryV1
	err := errors.Join(t.tree(source, projectBundle+"/manifests", "manifests", all), t.tree(source, projectBundle+"/metadata", "metadata", all))
	t.note("taken are bundle/manifests and bundle/metadata, which make bundle writes; run bundle init again with --force after it")
	if _, failed := fs.Stat(source.Files, projectBundle+"/tests"); failed == nil {
		t.note("left out is bundle/tests: scorecard reads it in the project")
	}
	return t.finish(err)
}

// fromConfig takes the kustomization of the project.
func (t *taker) fromConfig(source Source, has func(string) bool) (Bundle, error) {
	t.Format, t.Path = convert.Kustomize, defaultConfig
	err := t.tree(source, projectConfig, projectConfig, all)
	t.note("taken is config/, which is built from config/default")
	if has(basesFolder) {
		t.note("there is a base in %s: make bundle makes a registry+v1 bundle of it, which tells what the operator needs and may watch", basesFolder)
	}
	if has(chartOfDist) {
		t.note("there is a chart in %s: --from names it, if that is meant", chartOfDist)
	}
	t.note("the manager's image is what config/manager/kustomization.yaml says: see that it is one that clusters can pull")
	return t.finish(err)
}

// readProject reads the file PROJECT.
func readProject(source Source) (project, error) {
	var p project
	data, problem := manifest.NewReader(source.Files, convert.DefaultLimits()).ReadFile(projectFile, "file")
	if problem != nil {
		return p, fmt.Errorf("reading %s of %s: %s", projectFile, source.Name, problem.Message)
	}
	if err := yaml.Unmarshal(data, &p); err != nil {
		return p, fmt.Errorf("the file %s of %s cannot be read as YAML: correct it, or name another folder with --from", projectFile, source.Name)
	}
	return p, nil
}
