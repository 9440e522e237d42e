// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"

	"github.com/satchel-dev/satchel/internal/convert/helm/message"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// DefaultKubeVersion is what a chart sees where no cluster is known: the version of the libraries, as Helm has it.
const DefaultKubeVersion = "v1.36.0"

// DefaultAPIVersions are those that a chart sees where no cluster is known: those of Kubernetes itself, as
// "helm template" has it. The list is the caller's.
func DefaultAPIVersions() []string {
	return slices.Sorted(slices.Values(common.DefaultVersionSet))
}

// capabilities are what templates see as .Capabilities.
func capabilities(of Capabilities) (*common.Capabilities, *manifest.Problem) {
	text := of.KubeVersion
	if text == "" {
		text = DefaultKubeVersion
	}
	version, err := common.ParseKubeVersion(text)
	if err != nil {
		return nil, &manifest.Problem{Rule: message.Rule, Message: fmt.Sprintf("%q is no version of Kubernetes", message.Shorten(text)), Remedy: "give one like v1.36.0"}
	}
	served := of.APIVersions
	if len(served) == 0 {
		served = DefaultAPIVersions()
	}
	made := &common.Capabilities{KubeVersion: *version, APIVersions: slices.Sorted(slices.Values(served))}
	made.HelmVersion.Version = common.DefaultCapabilities.HelmVersion.Version // nothing of how this program was built
	return made, nil
}
