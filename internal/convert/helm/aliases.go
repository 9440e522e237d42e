// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

var (
	errAliases = &stopped{"the aliases of a text in YAML expand to too much", "write the values out"}
	errNoYAML  = &stopped{"a text with aliases is no valid YAML", "correct it"}
)

// aliases fails where the aliases of a text in YAML expand to more than the manifests of a bundle may have: Helm's parser
// writes each of them out.
func aliases(data []byte, limits manifest.Limits) error {
	if !bytes.ContainsRune(data, '&') || !bytes.ContainsRune(data, '*') {
		return nil // nothing to repeat
	}
	left := expansion{values: limits.Values, bytes: limits.TotalBytes, depth: limits.Depth}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return errNoYAML
		case !left.expand(&node, 0):
			return errAliases
		}
	}
}

// expansion is what aliases may still expand to.
type expansion struct {
	values, depth int
	bytes         int64
}

func (e *expansion) expand(n *yaml.Node, depth int) bool {
	e.values--
	e.bytes -= int64(len(n.Value))
	if e.values < 0 || e.bytes < 0 || depth > e.depth {
		return false
	}
	if n.Kind == yaml.AliasNode {
		return e.expand(n.Alias, depth+1)
	}
	for _, child := range n.Content {
		if !e.expand(child, depth+1) {
			return false
		}
	}
	return true
}
