// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Memory holds the notes. The zero value is ready for use.
type Memory struct {
	mu    sync.Mutex
	notes map[types.NamespacedName]Note
}

// Recall finds the note of a deployment; the note of an earlier deployment with the
// same name does not count.
func (m *Memory) Recall(key types.NamespacedName, uid types.UID) Note {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, found := m.notes[key]
	if !found || n.UID != uid {
		return Note{UID: uid}
	}
	n.Known = true
	return n
}

// Clear drops all notes, and returns the keys of their deployments.
func (m *Memory) Clear() []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.Collect(maps.Keys(m.notes))
	m.notes = nil
	return keys
}

// Keep stores the note of a deployment.
func (m *Memory) Keep(key types.NamespacedName, n Note) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.notes == nil {
		m.notes = map[types.NamespacedName]Note{}
	}
	m.notes[key] = n
}

// Forget drops a note and returns the UID of its deployment; "" when there was none.
func (m *Memory) Forget(key types.NamespacedName) types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	uid := m.notes[key].UID
	delete(m.notes, key)
	return uid
}
