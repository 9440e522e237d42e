// SPDX-License-Identifier: Apache-2.0

// Package rendered remembers the hashes of rendered specs, and which BundleDeployments have all of theirs: with a thousand clusters,
// to render each of them at each decision takes longer than the decision.
package rendered

import (
	"reflect"

	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// Cache is what one rollout remembers. The zero value is empty.
type Cache struct {
	generation int64
	// recent are those that the present decision asked for, former those of the one before.
	recent, former map[key]entry
	// intact are the versions of BundleDeployments that had all of their spec, by cluster.
	intact map[string]version
}

type key struct{ revision, cluster string }

type entry struct {
	cluster revision.Cluster
	hash    string
	err     error
}

type version struct{ resource, hash string }

// Begin begins a decision about a generation of the rollout. What was rendered for another one, and what neither this decision nor the one before
// asks for, is forgotten.
func (c *Cache) Begin(generation int64) {
	if c.generation != generation {
		*c = Cache{generation: generation}
	}
	c.former = c.recent
	c.recent = map[key]entry{}
}

// Hash is the hash of the spec of a cluster in a revision. It is rendered if the cluster changed.
func (c *Cache) Hash(of string, cluster *revision.Cluster, render func() (string, error)) (string, error) {
	at := key{of, cluster.Name}
	for _, kept := range []map[key]entry{c.recent, c.former} {
		if known, found := kept[at]; found && reflect.DeepEqual(known.cluster, *cluster) {
			c.recent[at] = known
			return known.hash, known.err
		}
	}
	hash, err := render()
	if c.recent == nil {
		c.recent = map[key]entry{}
	}
	c.recent[at] = entry{*cluster, hash, err}
	return hash, err
}

// Intact tells whether a BundleDeployment of this version had all of the spec with a hash.
func (c *Cache) Intact(cluster, resourceVersion, hash string) bool {
	return c.intact[cluster] == version{resourceVersion, hash}
}

// Keep remembers that.
func (c *Cache) Keep(cluster, resourceVersion, hash string) {
	if c.intact == nil {
		c.intact = map[string]version{}
	}
	c.intact[cluster] = version{resourceVersion, hash}
}

// Forget drops what is known of the BundleDeployments of clusters that do not exist any more.
func (c *Cache) Forget(exists func(cluster string) bool) {
	for cluster := range c.intact {
		if !exists(cluster) {
			delete(c.intact, cluster)
		}
	}
}
