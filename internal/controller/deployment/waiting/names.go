// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Names remembers the names that deployments wait for in their namespace, so that
// they are woken when one appears: required packages, or other deployments. Those that wait for one name are found without
// going through the others: each change of one of thousands of deployments asks for them. The zero
// value is ready for use.
type Names struct {
	mu    sync.Mutex
	names map[types.NamespacedName]map[string]bool
	by    map[awaited]map[types.NamespacedName]bool // who waits
}

// awaited is a name that deployments wait for.
type awaited struct{ namespace, name string }

// Set replaces the names that a deployment waits for; with no names it is forgotten.
func (a *Names) Set(key types.NamespacedName, names map[string]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name := range a.names[key] {
		wanted := awaited{key.Namespace, name}
		delete(a.by[wanted], key)
		if len(a.by[wanted]) == 0 {
			delete(a.by, wanted)
		}
	}
	if len(names) == 0 {
		delete(a.names, key)
		return
	}
	if a.names == nil {
		a.names = map[types.NamespacedName]map[string]bool{}
		a.by = map[awaited]map[types.NamespacedName]bool{}
	}
	a.names[key] = names
	for name := range names {
		wanted := awaited{key.Namespace, name}
		if a.by[wanted] == nil {
			a.by[wanted] = map[types.NamespacedName]bool{}
		}
		a.by[wanted][key] = true
	}
}

// By lists the deployments that wait for a name in a namespace.
func (a *Names) By(namespace, name string) []types.NamespacedName {
	a.mu.Lock()
	defer a.mu.Unlock()
	var keys []types.NamespacedName
	for key := range a.by[awaited{namespace, name}] {
		keys = append(keys, key)
	}
	return keys
}
