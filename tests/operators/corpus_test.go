// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/tests/installation"
)

// bundle is a published operator.
type bundle struct {
	name, version string
	// own says that it watches the namespace it is installed in; the others watch all.
	own bool
	dir string
}

func (b bundle) files() fs.FS { return os.DirFS(b.dir) }

// corpus lists the published bundles beside the repository.
func corpus(t *testing.T) []bundle {
	t.Helper()
	root := filepath.Join(installation.Root(), "..", "shared", "corpus", "registryv1")
	modes, err := os.ReadFile(filepath.Join(root, "modes.txt"))
	if err != nil {
		t.Skip("the corpus of published bundles is not beside the repository (../shared/corpus), so none is installed")
	}
	var out []bundle
	for line := range strings.Lines(string(modes)) {
		fields := strings.Fields(line)
		out = append(out, bundle{
			name: fields[0], version: fields[1], own: fields[2] == "OwnNamespace",
			dir: filepath.Join(root, "bundles", fields[0], fields[1]),
		})
	}
	return out
}

// configure writes how the bundle is installed into a spec; everything else keeps its default.
func (b bundle) configure(d *v1alpha1.BundleDeployment) {
	if b.own {
		d.Spec.RegistryV1 = &v1alpha1.RegistryV1Options{WatchNamespaces: []string{d.Namespace}}
	}
}

// render is what the controller makes of the files for a deployment.
func render(t *testing.T, files fs.FS, d *v1alpha1.BundleDeployment) convert.Result {
	t.Helper()
	rendered, err := convert.Convert(files, spec.Conversion(d, spec.Given{}, convert.DefaultLimits()))
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

func count(objects []*unstructured.Unstructured, kind string) int {
	found := 0
	for _, object := range objects {
		if object.GetKind() == kind {
			found++
		}
	}
	return found
}
