// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/satchel-dev/satchel/tests/controlplane/progress"
)

// KubernetesVersion is the version of the control plane, and what it says its version is.
const KubernetesVersion = "v1.36.3"

// binaryName is the file name of the multi-call binary.
const binaryName = "cluster"

// Programs are the names that the binary can be called by.
var Programs = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"}

// Build builds the control plane, once for each state of its sources, and returns the path of the binary;
// its folder has a symbolic link for each of [Programs]. It takes minutes with an empty Go build cache,
// seconds with a filled one, and milliseconds when the binary is there. Several processes that call it at
// once build once. It writes a line to the writer, if that is not nil, at least every 10 seconds.
func Build(ctx context.Context, to io.Writer) (bin string, err error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	source, err := sourceDir()
	if err != nil {
		return "", err
	}
	hash, err := sourceHash(source)
	if err != nil {
		return "", err
	}
	builds := filepath.Join(cache, "builds")
	bin = filepath.Join(builds, hash, binaryName)
	if exists(bin) {
		markUsed(filepath.Dir(bin))
		return bin, nil
	}
	return bin, buildOnce(ctx, to, source, bin)
}

// buildOnce builds the binary unless another process does so first.
func buildOnce(ctx context.Context, to io.Writer, source, bin string) error {
	target := filepath.Dir(bin)
	builds := filepath.Dir(target)
	if err := os.MkdirAll(builds, 0o755); err != nil {
		return fmt.Errorf("creating the folder of builds: %w", err)
	}
	stop := progress.Report(to, func() string { return "waiting for another process to build the control plane" })
	lock, err := lockFirst(ctx, filepath.Join(filepath.Dir(builds), "build.lock"))
	stop()
	if err != nil {
		return err
	}
	defer unlock(lock)
	if exists(bin) {
		return nil
	}
	return buildInto(ctx, to, source, target)
}

// buildInto builds beside the target folder and renames, so that the target is complete or absent.
func buildInto(ctx context.Context, to io.Writer, source, target string) error {
	temp, err := os.MkdirTemp(filepath.Dir(target), ".building-")
	if err != nil {
		return fmt.Errorf("creating a folder to build in: %w", err)
	}
	defer func() { _ = os.RemoveAll(temp) }()
	if err := os.Chmod(temp, 0o755); err != nil {
		return fmt.Errorf("preparing the folder to build in: %w", err)
	}
	if err := compile(ctx, to, source, filepath.Join(temp, binaryName)); err != nil {
		return err
	}
	for _, program := range Programs {
		if err := os.Symlink(binaryName, filepath.Join(temp, program)); err != nil {
			return fmt.Errorf("linking the programs: %w", err)
		}
	}
	if err := os.Rename(temp, target); err != nil {
		return fmt.Errorf("publishing the build: %w", err)
	}
	sweepBuilds(filepath.Dir(target), filepath.Base(target))
	return nil
}

// compile runs `go build`, with progress.
func compile(ctx context.Context, to io.Writer, source, out string) error {
	started := time.Now()
	progress.Sayf(to, "building the control plane in %s; this takes minutes the first time", source)
	packages := &progress.Packages{}
	defer progress.Report(to, packages.String)()
	cmd := exec.CommandContext(ctx, "go", buildArgs(out)...)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS=", "GOARCH=")
	cmd.Stdout, cmd.Stderr = packages, packages
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building the control plane: %w", errors.Join(context.Cause(ctx), err, packages.Problem()))
	}
	progress.Sayf(to, "built the control plane in %s", time.Since(started).Round(time.Second))
	return nil
}

// buildArgs are the arguments of `go`. They change nothing about how packages are compiled, so that those which the product
// uses as well are compiled once. The version goes where the release builds of Kubernetes put it.
func buildArgs(out string) []string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(KubernetesVersion, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	flags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X", pkg+".gitVersion="+KubernetesVersion,
			"-X", pkg+".gitMajor="+major,
			"-X", pkg+".gitMinor="+minor,
			"-X", pkg+".gitTreeState=clean")
	}
	return []string{"build", "-v", "-buildvcs=false", "-ldflags", strings.Join(flags, " "), "-o", out, "."}
}

func markUsed(dir string) {
	now := time.Now()
	_ = os.Chtimes(dir, now, now)
}
