// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert/helm"
)

// Capabilities summarizes for the status the capabilities that a chart received: the version, and a digest of the sorted
// list of API versions.
func Capabilities(received helm.Capabilities) *v1alpha1.Capabilities {
	sum := sha256.Sum256([]byte(strings.Join(received.APIVersions, "\n")))
	return &v1alpha1.Capabilities{KubeVersion: received.KubeVersion, APIVersions: "sha256:" + hex.EncodeToString(sum[:])}
}
