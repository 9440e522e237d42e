// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// The parts of a bill of materials in the format CycloneDX 1.6 that are used here.
type (
	billOfMaterials struct {
		Format       string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		SerialNumber string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     billMetadata `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	billMetadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		URL        string     `json:"purl,omitempty"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
)

// bill lists the modules in the programs of a target, as the Go toolchain recorded them.
func (r *release) bill(t target) ([]byte, error) {
	var names []string
	for _, name := range programs {
		names = append(names, filepath.Join(r.folder(t), name))
	}
	return materials(names, r.version, t.String(), r.epoch)
}

func materials(binaries []string, version, platform string, at time.Time) ([]byte, error) {
	root := component{Type: "application", Ref: "satchel", Name: "satchel " + platform, Version: version}
	b := billOfMaterials{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: billMetadata{Timestamp: at.Format(time.RFC3339), Component: root}}
	libraries, whole := map[string]component{}, dependency{Ref: root.Ref}
	for _, binary := range binaries {
		info, err := buildinfo.ReadFile(binary)
		if err != nil {
			return nil, fmt.Errorf("reading what is in %s: %w", binary, err)
		}
		content, err := os.ReadFile(binary)
		if err != nil {
			return nil, err
		}
		name := filepath.Base(binary)
		b.Components = append(b.Components, component{
			Type: "application", Ref: "program:" + name, Name: name, Version: version,
			Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(content))}},
		})
		whole.DependsOn = append(whole.DependsOn, "program:"+name)
		linked := dependency{Ref: "program:" + name}
		for _, library := range librariesOf(info, version) {
			libraries[library.Ref] = library
			linked.DependsOn = append(linked.DependsOn, library.Ref)
		}
		slices.Sort(linked.DependsOn)
		b.Dependencies = append(b.Dependencies, linked)
	}
	b.Dependencies = append([]dependency{whole}, b.Dependencies...)
	for _, ref := range slices.Sorted(maps.Keys(libraries)) {
		b.Components = append(b.Components, libraries[ref])
	}
	return b.identified()
}

// librariesOf are the modules in a program of a release, and the standard library. A module that is replaced by a folder is
// in this repository, and has the version of the release.
func librariesOf(info *debug.BuildInfo, release string) []component {
	version, _, _ := strings.Cut(strings.TrimPrefix(info.GoVersion, "go"), " ")
	found := []component{library("std", version, "")}
	for _, module := range info.Deps {
		switch {
		case module.Replace != nil && strings.HasPrefix(module.Replace.Path, "."):
			found = append(found, library(module.Path, release, ""))
			continue
		case module.Replace != nil:
			module = module.Replace
		}
		found = append(found, library(module.Path, module.Version, module.Sum))
	}
	return found
}

func library(path, version, sum string) component {
	url := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	c := component{Type: "library", Ref: url, Name: path, Version: version, URL: url}
	if sum != "" {
		c.Properties = []property{{"go:sum", sum}} // of the module's tree, as in go.sum
	}
	return c
}

// identified writes the bill with a serial number that is made of its content.
func (b billOfMaterials) identified() ([]byte, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(text)
	id := digest[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // version 8: made by its user, of RFC 9562
	b.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	text, err = json.MarshalIndent(b, "", "  ")
	return append(text, '\n'), err
}
