// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bufio"
	"bytes"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// documentsOf returns a function for the next document of a text of YAML, which ends with io.EOF.
func documentsOf(text []byte) func() ([]byte, error) {
	return utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))).Read
}
