// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// chooseLocked takes the bundle of spec.catalog.lock. A catalog has to list it with its image, and it has to be a permitted upgrade.
// While a catalog cannot be read, the digest suffices.
func (in *Input) chooseLocked(all []looked) error {
	lock := in.Object.Spec.Catalog.Lock
	var readable []looked
	unread := len(all) == 0
	for _, one := range all {
		unread = unread || one.unread != nil
		if one.unread == nil {
			readable = append(readable, one)
		}
	}
	listed := filtered(said(readable), func(b catalog.Bundle) bool { return b.Name == lock.Bundle && sameImage(b.Image, lock.Image) })
	if !anyBundle(listed) {
		if unread {
			in.recordUnlisted(lock)
			return nil
		}
		return failure.Error{Reason: v1alpha1.ReasonLockMismatch, Stalled: true, Err: fmt.Errorf(
			"no catalog lists the bundle %s of package %s with the image %s, as spec.catalog.lock says: resolve it again with satchel resolve --write, or remove the lock",
			lock.Bundle, in.Object.Spec.Catalog.Package, lock.Image)}
	}
	query := queryOf(in)
	query.Range = "" // the lock is more precise
	answer, err := resolver.Resolve(query, listed)
	if err != nil {
		return refused(err)
	}
	in.record(answer, readable)
	in.Object.Status.Catalog.Resolved.Image = lock.Image
	in.Object.Status.Catalog.Newest = nil
	return nil
}

// sameImage tells whether a catalog names the image of a lock: by the same digest, or by a tag of the same repository.
func sameImage(listed, locked string) bool {
	_, digest, _ := strings.Cut(locked, "@")
	if _, named, found := strings.Cut(listed, "@"); found {
		return named == digest
	}
	return repositoryOf(listed) == repositoryOf(locked)
}

func anyBundle(all []resolver.Catalog) bool {
	for _, one := range all {
		if one.Package != nil && len(one.Package.Bundles) > 0 {
			return true
		}
	}
	return false
}

// recordUnlisted writes a lock to the status that no catalog confirms now. Its version is known if it was resolved before.
func (in *Input) recordUnlisted(lock *v1alpha1.CatalogLock) {
	status := in.Object.Status.Catalog
	now := &v1alpha1.ResolvedBundle{Bundle: lock.Bundle, Reference: lock.Image, Image: lock.Image}
	if was := status.Resolved; was != nil && was.Bundle == lock.Bundle {
		now.Version = was.Version
		now.Release = was.Release
		now.Catalog = was.Catalog
		now.CatalogNamespace = was.CatalogNamespace
		now.Channels = was.Channels
	}
	status.Resolved = now
}
