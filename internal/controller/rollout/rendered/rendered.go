// SPDX-License-Identifier: Apache-2.0

// Package rendered remembers the hashes of rendered specs, and which BundleDeployments have all of theirs: with a thousand clusters,
// to render each of them at each decision takes longer than the decision.
package rendered

import (
	"reflect"
	"slices"

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
	spec
	err error
}

// spec is what is remembered of a rendered spec.
type spec struct {
	hash string
	// inputs are those that only the cluster has, and digests what they had.
	inputs  []revision.FrozenInput
	digests []string
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

// Hash is the hash of the spec of a cluster in a revision. It is rendered if the cluster, or an input that only it has, changed.
func (c *Cache) Hash(of *Revision, cluster *revision.Cluster, digests DigestsOf) (string, error) {
	return c.hash(of.Name, cluster, digests, func() (spec, error) { return of.spec(cluster, digests) })
}

// hash is Hash with a function that renders. Where digests fails, it returns the inputs with the error.
func (c *Cache) hash(of string, cluster *revision.Cluster, digests DigestsOf, render func() (spec, error)) (string, error) {
	at := key{of, cluster.Name}
	for _, kept := range []map[key]entry{c.recent, c.former} {
		known, found := kept[at]
		if !found || !reflect.DeepEqual(known.cluster, *cluster) {
			continue
		}
		if len(known.inputs) > 0 {
			now, err := digests(known.inputs)
			if err != nil {
				c.recent[at] = known
				return "", err
			}
			if known.err != nil || !slices.Equal(now, known.digests) {
				continue
			}
		}
		c.recent[at] = known
		return known.hash, known.err
	}
	fresh, err := render()
	if c.recent == nil {
		c.recent = map[key]entry{}
	}
	c.recent[at] = entry{*cluster, fresh, err}
	return fresh.hash, err
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
