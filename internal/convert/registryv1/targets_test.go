// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
)

func bundleSupporting(modes string) *bundle.Bundle {
	b := &bundle.Bundle{}
	b.Source.Object = &unstructured.Unstructured{Object: map[string]any{}}
	for _, mode := range strings.Fields(modes) {
		b.CSV.Spec.InstallModes = append(b.CSV.Spec.InstallModes, v1alpha1.InstallMode{Type: v1alpha1.InstallModeType(mode + "Namespace"), Supported: true})
		b.CSV.Spec.InstallModes = append(b.CSV.Spec.InstallModes, v1alpha1.InstallMode{Type: v1alpha1.InstallModeType(mode + "Namespaces"), Supported: true})
	}
	return b
}

// TestN2TargetNamespaces is the decision table of install modes. The operator is installed in "own".
func TestN2TargetNamespaces(t *testing.T) {
	const refused = "refused"
	for _, c := range []struct{ modes, watch, want string }{
		{"All", "", "*"},
		{"All", "*", "*"},
		{"All", "own", refused},
		{"All", "a", refused},
		{"All Own", "", "*"},
		{"All Own", "own", "own"},
		{"All Own", "a", refused},
		{"All Single", "", "*"},
		{"All Single", "a", "a"},
		{"All Single", "own", refused},
		{"All Own Single", "own", "own"},
		{"All Own Single", "a", "a"},
		{"All Own Single", "a b", refused},
		{"Own", "", "own"},
		{"Own", "own", "own"},
		{"Own", "a", refused},
		{"Own", "*", refused},
		{"Single", "", refused},
		{"Single", "own", refused},
		{"Single", "a", "a"},
		{"Own Single", "", refused},
		{"Own Single", "own", "own"},
		{"Own Single", "a", "a"},
		{"Multi", "", refused},
		{"Multi", "b a b", "a b"},
		{"Multi", "a", "a"},
		{"Multi", "a own", refused},
		{"Multi Own", "a own", "a own"},
		{"Multi Own", "a *", refused},
		{"All Multi", "", "*"},
		{"All Multi", "a b", "a b"},
		{"Own Single", "a_b", refused},
		{"Own Single", strings.Repeat("a", 64), refused},
	} {
		t.Run(c.modes+" watch "+c.watch, func(t *testing.T) {
			o := Options{InstallNamespace: "own", WatchNamespaces: strings.Fields(strings.ReplaceAll(c.watch, "*", "\"\""))}
			for i, name := range o.WatchNamespaces {
				o.WatchNamespaces[i] = strings.Trim(name, "\"")
			}
			targets, problems := targetNamespaces(bundleSupporting(c.modes), o)
			got := refused
			if len(problems) == 0 {
				got = strings.Join(targets, " ")
				if got == "" {
					got = "*"
				}
			}
			for _, p := range problems {
				proposed := strings.Contains(p.Remedy, "spec.registryV1.watchNamespaces: [own]")
				if chooses := strings.Contains(c.modes, "Own") && c.watch == "" && !strings.Contains(c.modes, "All"); proposed != chooses {
					t.Errorf("proposes the install namespace: %v, in %s", proposed, p)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("problems %v (-want +got):\n%s", problems, diff)
			}
		})
	}
}
