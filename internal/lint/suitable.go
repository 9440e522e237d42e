// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"io/fs"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/internal/convert"
)

// SuggestedNamespace is the annotation by which a bundle says where it wants to be installed.
const SuggestedNamespace = "operatorframework.io/suggested-namespace"

// Suitable fills in the namespaces that the user did not give, so that a bundle can be converted: one to
// install in, the one that the bundle suggests, and one to watch where it cannot watch all.
func Suitable(files fs.FS, o convert.Options) convert.Options {
	t := &tree{}
	if root, format, err := convert.Enter(files, o); err == nil && format == convert.RegistryV1 {
		t = readTree(root, o.Limits)
	}
	return suitable(o, t)
}

func suitable(o convert.Options, t *tree) convert.Options {
	if o.InstallNamespace != "" {
		return o
	}
	o.InstallNamespace = "operators"
	if t.bundle == nil {
		return o
	}
	if name := t.bundle.CSV.Annotations[SuggestedNamespace]; len(validation.IsDNS1123Label(name)) == 0 {
		o.InstallNamespace = name
	}
	supported := t.modes()
	switch {
	case len(o.RegistryV1.WatchNamespaces) > 0, supported[v1alpha1.InstallModeTypeAllNamespaces]:
	case supported[v1alpha1.InstallModeTypeOwnNamespace]:
		o.RegistryV1.WatchNamespaces = []string{o.InstallNamespace}
	default:
		o.RegistryV1.WatchNamespaces = []string{"watched"}
	}
	return o
}
