// SPDX-License-Identifier: Apache-2.0

// Package kustomizer runs Flux's kustomize-controller, for tests of what Satchel and Flux do together, and for benchmarks of both.
// It is built from the module in the folder module, which holds its versions apart from those of the product.
package kustomizer

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/satchel-dev/satchel/tests/installation"
)

// Namespace is where the controller takes itself to run.
const Namespace = "flux-system"

// source is the module of the controller.
const source = "github.com/fluxcd/kustomize-controller"

// Controller is the built controller.
type Controller struct {
	binary, crds string
}

// Build builds the controller, which takes minutes for the first time.
func Build(ctx context.Context) (Controller, error) {
	binary, err := command(ctx, "tool", "-n", "kustomize-controller")
	if err != nil {
		return Controller{}, err
	}
	dir, err := command(ctx, "list", "-m", "-f", "{{.Dir}}", source)
	return Controller{binary: binary, crds: filepath.Join(dir, "config", "crd", "bases")}, err
}

// command runs the go command in the module and returns what it prints.
func command(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(installation.Root(), "tests", "kustomizer", "module")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// InstallKinds creates the CRDs of Flux's sources and of Kustomizations.
func (c Controller) InstallKinds(ctx context.Context, admin *rest.Config) error {
	if err := installation.InstallFluxKinds(ctx, admin); err != nil {
		return err
	}
	_, err := envtest.InstallCRDs(admin, envtest.CRDInstallOptions{Paths: []string{c.crds}, ErrorIfPathMissing: true})
	return err
}

// Start runs the controller as the user of a kubeconfig until the context ends, with ExternalArtifacts as sources.
func (c Controller) Start(ctx context.Context, kubeconfig string, log io.Writer) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, c.binary, "--metrics-addr=127.0.0.1:0", "--health-addr=127.0.0.1:0",
		"--feature-gates=ExternalArtifact=true", "--requeue-dependency=1s", "--interval-jitter-percentage=0")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "RUNTIME_NAMESPACE="+Namespace)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd, cmd.Start()
}
