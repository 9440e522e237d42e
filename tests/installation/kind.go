// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// InstallClusterProfiles installs the kind ClusterProfile, with the CRD of the version of cluster-inventory-api that Satchel is built with.
func InstallClusterProfiles(ctx context.Context, c client.Client) error {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-inventory-api").Output()
	if err != nil {
		return fmt.Errorf("finding the module of cluster-inventory-api: %w", err)
	}
	return InstallKind(ctx, c, filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "bases", "multicluster.x-k8s.io_clusterprofiles.yaml"))
}

// InstallKind creates the CustomResourceDefinition of a file, and waits until it is served.
func InstallKind(ctx context.Context, c client.Client, file string) error {
	if err := createDefinition(ctx, c, file); err != nil {
		return err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var named apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &named); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		listed := &unstructured.UnstructuredList{}
		listed.SetAPIVersion(named.Spec.Group + "/" + named.Spec.Versions[0].Name)
		listed.SetKind(named.Spec.Names.ListKind)
		return c.List(ctx, listed, client.Limit(1)) == nil, nil
	})
}
