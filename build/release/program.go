// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"

	"github.com/satchel-dev/satchel/internal/cli"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/pages"
)

// programs are built for every target.
var programs = []string{"bundle-deployment-controller", "bundle-rollout-controller", "bundle-source-controller", "kubectl-satchel_migrate", "satchel"}

// pluginModule is the folder of the kubectl plugin for migrations, which is a module of its own.
const pluginModule = "migrate"

// program builds the programs for a target, packs them, and lists what is in them.
func (r *release) program(ctx context.Context, t target) error {
	began := time.Now()
	if err := r.compile(ctx, t); err != nil {
		return err
	}
	top := fmt.Sprintf("satchel_%s_%s", r.version, t)
	var files []file
	for _, name := range programs {
		content, err := os.ReadFile(filepath.Join(r.folder(t), name))
		if err != nil {
			return err
		}
		files = append(files, file{name: path.Join(top, name), mode: 0o755, content: content})
	}
	further, err := companions(ctx)
	if err != nil {
		return err
	}
	for _, f := range further {
		f.name = path.Join(top, f.name)
		files = append(files, f)
	}
	archive, err := pack(files, r.epoch)
	if err != nil {
		return err
	}
	bill, err := r.bill(t)
	if err != nil {
		return err
	}
	fmt.Printf("%s/%s: %s\n", t.system, t.arch, time.Since(began).Round(time.Second))
	return errors.Join(r.write(top+".tar.gz", archive), r.write(top+".cdx.json", bill))
}

// folder is where the programs for a target are built.
func (r *release) folder(t target) string { return filepath.Join(r.work, t.String()) }

// compile builds static programs that record the commit, and no path or environment variable, whatever the Go settings of
// this machine are.
func (r *release) compile(ctx context.Context, t target) error {
	for _, module := range []string{".", pluginModule} {
		build := exec.CommandContext(ctx, "go", "build", "-C", module, "-trimpath", "-buildvcs=true",
			"-ldflags", "-s -w -buildid= -X main.version="+r.version, "-o", r.folder(t)+"/", "./cmd/...")
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off",
			"GOOS="+t.system, "GOARCH="+t.arch)
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("building the programs of the module in %s: %w", module, err)
		}
	}
	return nil
}

// companions are what comes with the programs: the licence, completions of shells, and man pages.
func companions(ctx context.Context) (files []file, err error) {
	work, err := os.MkdirTemp("", "satchel-companions-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work) //nolint:errcheck // a folder of temporary files
	if err := pages.Write(cli.Root(kit.Program{Path: "satchel"}), work); err != nil {
		return nil, err
	}
	plugin := exec.CommandContext(ctx, "go", "run", "-C", pluginModule, "./build/companions", "-out", work)
	plugin.Stdout, plugin.Stderr = os.Stderr, os.Stderr
	if err := plugin.Run(); err != nil {
		return nil, fmt.Errorf("writing the completions and man pages of the plugin: %w", err)
	}
	for pattern, folder := range map[string]string{"LICENSE": "", "README.md": "", filepath.Join(work, "completions", "*"): "completions", filepath.Join(work, "man", "*.1"): "man/man1"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			content, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			files = append(files, file{name: path.Join(folder, filepath.Base(name)), mode: 0o644, content: content})
		}
	}
	return files, nil
}

// write writes one file of the release.
func (r *release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}
