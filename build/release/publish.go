// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/build/oci"
	"github.com/satchel-dev/satchel/charts"
	"github.com/satchel-dev/satchel/internal/install"
)

// images builds the controllers' images: an archive for each architecture, one with all of them, and a list of what is in
// them.
func (r *release) images() error {
	var contents strings.Builder
	for _, name := range append(slices.Clone(install.Controllers), install.RolloutController) {
		var all []v1.Image
		for _, t := range r.targets {
			if t.system != "linux" {
				continue
			}
			image, err := oci.Build(filepath.Join(r.folder(t), name), r.version, t.arch)
			if err != nil {
				return fmt.Errorf("building the image of %s for %s: %w", name, t.arch, err)
			}
			all = append(all, image)
			archive := fmt.Sprintf("%s_%s_%s.tar", name, r.version, t)
			if err := oci.WriteArchive(filepath.Join(r.out, archive), name+":"+r.version, image); err != nil {
				return fmt.Errorf("writing %s: %w", archive, err)
			}
			listed, err := oci.Contents(image)
			if err != nil {
				return fmt.Errorf("listing what is in %s: %w", archive, err)
			}
			fmt.Fprintf(&contents, "%s\n%s\n", archive, listed)
		}
		if len(all) < 2 {
			continue
		}
		archive := fmt.Sprintf("%s_%s_linux.tar", name, r.version)
		if err := oci.WriteArchive(filepath.Join(r.out, archive), name+":"+r.version, all...); err != nil {
			return fmt.Errorf("writing %s: %w", archive, err)
		}
	}
	return r.write("images.txt", []byte(contents.String()))
}

// manifests writes install.yaml.
func (r *release) manifests() error {
	options := install.Options{Version: r.version}
	if r.registry != "" {
		options.SetValue(r.registry, "image", "registry")
	}
	objects, err := install.Manifests(options)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return fmt.Errorf("writing %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	return r.write("install.yaml", out.Bytes())
}

// chart writes the Helm chart.
func (r *release) chart() error {
	contents, err := charts.Files(r.version)
	if err != nil {
		return err
	}
	var files []file
	for name, content := range contents {
		files = append(files, file{name: charts.Name + "/" + name, mode: 0o644, content: content})
	}
	archive, err := pack(files, r.epoch)
	if err != nil {
		return err
	}
	return r.write(fmt.Sprintf("%s-%s.tgz", charts.Name, charts.Version(r.version)), archive)
}
