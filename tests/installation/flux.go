// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// InstallFluxKinds applies the CRDs of Flux's sources, made from the types of its API
// module, and waits until they are served.
func InstallFluxKinds(ctx context.Context, admin *rest.Config) error {
	dir, err := os.MkdirTemp("", "satchel-flux-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	generate := exec.CommandContext(ctx, "go", "tool", "-modfile=tools/go.mod", "controller-gen", "crd",
		"paths=github.com/fluxcd/source-controller/api/v1", "output:crd:dir="+dir)
	generate.Dir = Root()
	if output, err := generate.CombinedOutput(); err != nil {
		return fmt.Errorf("generating Flux's CRDs: %w: %s", err, output)
	}
	c, err := Client(admin)
	if err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(names) == 0 {
		return fmt.Errorf("no CRDs of Flux were generated: %w", err)
	}
	for _, name := range names {
		if err := createDefinition(ctx, c, name); err != nil {
			return err
		}
	}
	return fluxServed(ctx, admin)
}

func createDefinition(ctx context.Context, c client.Client, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var definition unstructured.Unstructured
	if err := yaml.Unmarshal(data, &definition.Object); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	return client.IgnoreAlreadyExists(c.Create(ctx, &definition))
}

func fluxServed(ctx context.Context, admin *rest.Config) error {
	c, err := discovery.NewDiscoveryClientForConfig(admin)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		list, err := c.ServerResourcesForGroupVersion(sourcev1.GroupVersion.String())
		return err == nil && serves(list, sourcev1.ExternalArtifactKind) && serves(list, sourcev1.OCIRepositoryKind) &&
			serves(list, sourcev1.GitRepositoryKind) && serves(list, sourcev1.BucketKind), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for Flux's CRDs to be served: %w", err)
	}
	return nil
}
