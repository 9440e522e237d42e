// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/satchel-dev/satchel/internal/cli"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/pages"
)

// programs are built for every target.
var programs = []string{"bundle-deployment-controller", "bundle-rollout-controller", "bundle-source-controller", "satchel"}

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
	further, err := companions()
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
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags", "-s -w -buildid= -X main.version="+r.version, "-o", r.folder(t)+"/", "./cmd/...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off",
		"GOOS="+t.system, "GOARCH="+t.arch)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	return build.Run()
}

// companions are what comes with the programs: the licence, completions of shells, and man pages.
func companions() ([]file, error) {
	var files []file
	for name, from := range map[string]string{"LICENSE": "LICENSE", "README.md": "README.md"} {
		content, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: name, mode: 0o644, content: content})
	}
	for shell, name := range map[string]string{"bash": "satchel.bash", "zsh": "_satchel", "fish": "satchel.fish", "powershell": "satchel.ps1"} {
		script, err := completion(shell)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: path.Join("completions", name), mode: 0o644, content: script})
	}
	manual, err := os.MkdirTemp("", "satchel-man-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(manual) //nolint:errcheck // a folder of temporary files
	if err := pages.Man(manual); err != nil {
		return nil, err
	}
	written, err := filepath.Glob(filepath.Join(manual, "*.1"))
	if err != nil {
		return nil, err
	}
	for _, page := range written {
		content, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: path.Join("man", "man1", filepath.Base(page)), mode: 0o644, content: content})
	}
	return files, nil
}

// completion is what the command line prints for a shell.
func completion(shell string) ([]byte, error) {
	var out, failure bytes.Buffer
	code := cli.Run(context.Background(), kit.Program{
		Path: "satchel", Now: func() time.Time { return time.Time{} },
		Streams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &failure},
	}, []string{"completion", shell})
	if code != kit.ExitOK || out.Len() == 0 {
		return nil, fmt.Errorf("writing the completion for %s: %s", shell, failure.String())
	}
	return out.Bytes(), nil
}

// write writes one file of the release.
func (r *release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}
