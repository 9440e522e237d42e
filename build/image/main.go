// SPDX-License-Identifier: Apache-2.0

// Command image packs the controllers' static binaries into container images, see package oci, and writes each as an
// OCI archive, which podman, skopeo, crane, containerd and Docker load.
//
//	image -version v0.1.0 -bin bin -out bin/images -registry registry.example.org/satchel
package main

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"

	"github.com/satchel-dev/satchel/build/oci"
)

// names are the binaries that become images.
var names = []string{"bundle-source-controller", "bundle-deployment-controller", "bundle-rollout-controller"}

func main() {
	version := flag.String("version", "dev", "tag of the images")
	bin := flag.String("bin", "bin", "folder with the static binaries")
	out := flag.String("out", "bin/images", "folder for the archives")
	arch := flag.String("arch", runtime.GOARCH, "architecture that the binaries were built for")
	registry := flag.String("registry", "", "what the names of the images in the archives begin with; empty for the bare names")
	flag.Parse()
	if err := run(*version, *bin, *out, *arch, *registry); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run writes an archive for each binary.
func run(version, bin, out, arch, registry string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		image, err := oci.Build(filepath.Join(bin, name), version, arch)
		if err != nil {
			return fmt.Errorf("building the image of %s: %w", name, err)
		}
		archive, reference := filepath.Join(out, name+".tar"), path.Join(registry, name)+":"+version
		if err := oci.WriteArchive(archive, reference, image); err != nil {
			return fmt.Errorf("writing %s: %w", archive, err)
		}
		digest, err := image.Digest()
		if err != nil {
			return err
		}
		fmt.Printf("%s: %s, %s\n", archive, reference, digest)
	}
	return nil
}
