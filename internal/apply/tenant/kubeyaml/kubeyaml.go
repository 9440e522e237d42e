// SPDX-License-Identifier: Apache-2.0

// Package kubeyaml reads kubeconfigs of tenants. Aliases are refused: they multiply what they refer to, outside of worker processes.
package kubeyaml

import (
	"errors"
	"slices"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// ErrAlias refuses a document.
var ErrAlias = errors.New("has a YAML alias (*name): write out what it refers to")

// Unmarshal reads a document without aliases. Other errors may quote values.
func Unmarshal(data []byte, into any) error {
	var node yamlv3.Node
	if err := yamlv3.Unmarshal(data, &node); err != nil {
		return err
	}
	if hasAlias(&node) {
		return ErrAlias
	}
	return yaml.Unmarshal(data, into)
}

// hasAlias looks at nodes, in which aliases are not replaced.
func hasAlias(node *yamlv3.Node) bool {
	return node.Kind == yamlv3.AliasNode || slices.ContainsFunc(node.Content, hasAlias)
}
