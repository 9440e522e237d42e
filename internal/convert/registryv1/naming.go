// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"math/big"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

const longestLabel = 63

// permissionHash is rule R2: base36 of SHA-224 over compact JSON with HTML escapes and a newline at the end.
func permissionHash(permission v1alpha1.StrategyDeploymentPermissions) (string, error) {
	var encoded bytes.Buffer
	if err := json.NewEncoder(&encoded).Encode(permission); err != nil {
		return "", err
	}
	return base36(encoded.Bytes()), nil
}

func base36(data []byte) string {
	sum := sha256.Sum224(data)
	return new(big.Int).SetBytes(sum[:]).Text(36)
}

// joinName is rule R3, with its off-by-one: parts of exactly 63 bytes together make a name of 64. Names of RBAC objects
// and Secrets bear that, and OLM's names are kept so that a user can change over.
func joinName(base, suffix string) string {
	if len(base)+len(suffix) > longestLabel {
		base = base[:max(0, longestLabel-len(suffix)-1)]
	}
	return base + "-" + suffix
}

// serviceName is OLM's (W1) where that is a valid label, else cut with a hash of the Deployment's name.
func serviceName(deployment string) string {
	const suffix = "-service"
	base := strings.ReplaceAll(deployment, ".", "-")
	if len(base)+len(suffix) <= longestLabel {
		return base + suffix
	}
	hash := base36([]byte(deployment))[:8]
	return strings.TrimRight(base[:longestLabel-len(suffix)-len(hash)-1], "-") + "-" + hash + suffix
}

func certificateName(service string) string { return joinName(service, "cert") }

func issuerName(certificate string) string { return joinName(certificate, "selfsigned-issuer") }
