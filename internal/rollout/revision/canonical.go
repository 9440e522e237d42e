// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// canonical is the one JSON text of a value: sorted keys, no blanks, numbers as the API server stores them.
func canonical(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var plain any
	if err := utiljson.Unmarshal(text, &plain); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(plain); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// DigestOf is the SHA-256 digest of the canonical JSON of a value, as sha256: and 64 hexadecimal digits.
func DigestOf(value any) (string, error) {
	text, err := canonical(value)
	if err != nil {
		return "", fmt.Errorf("computing a digest: %w", err)
	}
	return digest.FromBytes(text).String(), nil
}
