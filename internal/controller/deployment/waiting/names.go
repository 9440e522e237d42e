// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Names remembers the names that deployments wait for in their namespace, so that
// they are woken when one appears: required packages, or other deployments. The zero
// value is ready for use.
type Names struct {
	mu    sync.Mutex
	names map[types.NamespacedName]map[string]bool
}

// Set replaces the names that a deployment waits for; with no names it is forgotten.
func (a *Names) Set(key types.NamespacedName, names map[string]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(names) == 0 {
		delete(a.names, key)
		return
	}
	if a.names == nil {
		a.names = map[types.NamespacedName]map[string]bool{}
	}
	a.names[key] = names
}

// By lists the deployments that wait for a name in a namespace.
func (a *Names) By(namespace, name string) []types.NamespacedName {
	a.mu.Lock()
	defer a.mu.Unlock()
	var keys []types.NamespacedName
	for key, names := range a.names {
		if key.Namespace == namespace && names[name] {
			keys = append(keys, key)
		}
	}
	return keys
}
