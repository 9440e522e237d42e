// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan/digest"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec"
)

// contentOfFolder converts a folder, and returns the digest of the result.
func contentOfFolder(t *testing.T, folder string, o convert.Options) string {
	t.Helper()
	result, err := convert.Convert(os.DirFS(folder), o)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := digest.Content(result.Objects, o.InstallNamespace)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// TestContentOfTheCorpus: equal options, as flags of this program and as the spec of a BundleDeployment, give one digest for
// each published bundle, and other options give another one.
func TestContentOfTheCorpus(t *testing.T) {
	root := filepath.Join("..", "..", "..", "shared", "corpus", "registryv1")
	modes, err := os.ReadFile(filepath.Join(root, "modes.txt"))
	if os.IsNotExist(err) {
		t.Skip("the corpus of published bundles is not beside the repository (../shared/corpus), so nothing is compared")
	}
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for line := range strings.Lines(string(modes)) {
		fields := strings.Fields(line)
		name, folder := fields[0], filepath.Join(root, "bundles", fields[0], fields[1])
		flags := bundle.ConversionOptions{InstallNamespace: "operators", CertificateProvider: "cert-manager"}
		d := &v1alpha1.BundleDeployment{}
		d.Namespace, d.Spec.Target.Namespace = "somewhere", "operators"
		d.Spec.RegistryV1 = &v1alpha1.RegistryV1Options{CertificateProvider: "cert-manager"}
		if fields[2] == "OwnNamespace" {
			flags.WatchNamespaces, d.Spec.RegistryV1.WatchNamespaces = []string{"operators"}, []string{"operators"}
		}
		offline, inCluster := contentOfFolder(t, folder, flags.Convert()), contentOfFolder(t, folder, spec.Conversion(d, spec.Given{}, convert.DefaultLimits()))
		if offline != inCluster {
			t.Errorf("%s: this program has %s, and the controller %s", name, offline, inCluster)
		}
		d.Spec.RegistryV1.DeploymentConfig = &apiextensionsv1.JSON{Raw: []byte(`{"nodeSelector":{"a":"b"}}`)}
		if other := contentOfFolder(t, folder, spec.Conversion(d, spec.Given{}, convert.DefaultLimits())); other == offline {
			t.Errorf("%s: with a node selector it is still %s", name, other)
		}
		if before, twice := seen[offline]; twice {
			t.Errorf("%s and %s have one digest", before, name)
		}
		seen[offline] = name
	}
	const fewest = 20
	if len(seen) < fewest {
		t.Errorf("%d bundles were compared, want %d at least", len(seen), fewest)
	}
	t.Logf("%d bundles, the digests equal", len(seen))
}
