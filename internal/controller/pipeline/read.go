// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unknownVersion is the version of an object after a write was refused, or its answer was lost.
const unknownVersion = ""

// ReadCurrent reads an object from a cache, unless a write of it failed since. If that was
// refused because the cache is outdated, or its answer was lost, the next write would be
// refused, too, until the cache has caught up, which takes seconds while its watch
// reconnects. So the object is read from the API server until the cache has that version.
// It fails with NotFound when there is no such object.
func ReadCurrent[T any, O interface {
	*T
	client.Object
}](ctx context.Context, b *Backoff, cache, live client.Reader, key types.NamespacedName) (O, error) {
	version, doubted := b.doubts(key)
	if !doubted || version != unknownVersion {
		object := O(new(T))
		err := cache.Get(ctx, key, object)
		if !doubted {
			return object, err
		}
		if err == nil && !OlderVersion(object.GetResourceVersion(), version) {
			b.believe(key)
			return object, nil
		}
	}
	object := O(new(T))
	err := live.Get(ctx, key, object)
	switch {
	case err == nil:
		b.doubt(key, object.GetResourceVersion())
	case apierrors.IsNotFound(err):
		b.believe(key)
	}
	return object, err
}

// OlderVersion tells whether one resource version is older than another. Versions are compared
// as numbers (KEP-5504); others never count as older.
func OlderVersion(version, than string) bool {
	a, err := strconv.ParseUint(version, 10, 64)
	b, failed := strconv.ParseUint(than, 10, 64)
	return err == nil && failed == nil && a < b
}

func (b *Backoff) doubts(key types.NamespacedName) (version string, doubted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	version, doubted = b.doubted[key]
	return version, doubted
}

// doubt makes Read use the API server until the cache has the version.
func (b *Backoff) doubt(key types.NamespacedName, version string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.doubted == nil {
		b.doubted = map[types.NamespacedName]string{}
	}
	b.doubted[key] = version
}

func (b *Backoff) believe(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.doubted, key)
}
