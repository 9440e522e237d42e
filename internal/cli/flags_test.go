// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"github.com/satchel-dev/satchel/internal/cli/kit"
)

func TestFlagsFor(t *testing.T) {
	for said, want := range map[string]string{
		`add it, or set spec.format to "registry+v1", "plain+v0", "helm" or "kustomize" if it is one`: "add it, or choose with --format registry+v1, --format plain+v0, --format helm or --format kustomize if it is one",
		`set spec.format to "helm" or "kustomize", or point spec.path at a folder`:                    "choose with --format helm or --format kustomize, or point --path at a folder",
		`set registryV1.certificateProvider to "cert-manager"`:                                        `choose with --certificate-provider "cert-manager"`,
		`the name "a b" is not valid`:                                                                 `the name "a b" is not valid`,
	} {
		if got := kit.FlagsFor(said); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
