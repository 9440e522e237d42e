// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"encoding/json"

	"github.com/opencontainers/go-digest"
)

// DigestOfAll digests values as JSON; empty if one cannot be encoded, which does not happen for API types.
func DigestOfAll(values ...any) string {
	data, err := json.Marshal(values)
	if err != nil {
		return ""
	}
	return digest.FromBytes(data).String()
}
