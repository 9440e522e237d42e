// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// DigestOfAll digests values as JSON; empty if one cannot be encoded, which does not happen for API types.
func DigestOfAll(values ...any) string {
	data, err := json.Marshal(values)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
