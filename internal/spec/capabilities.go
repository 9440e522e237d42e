// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert/helm"
)

// Capabilities summarizes for the status the capabilities that a chart received: the version, and a digest of the sorted
// list of API versions.
func Capabilities(received helm.Capabilities) *v1alpha1.Capabilities {
	versions := digest.FromString(strings.Join(received.APIVersions, "\n"))
	return &v1alpha1.Capabilities{KubeVersion: received.KubeVersion, APIVersions: versions.String()}
}
