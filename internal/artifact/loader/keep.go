// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"errors"
	"fmt"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/cache"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
)

// Kept is an artifact that a deployment runs or may return to.
type Kept struct {
	Owner  artifact.Owner
	Digest string
}

// Keep replaces the pins of a deployment; key is its UID. It pins the artifacts that it runs or may return to; none removes
// its pins, and the pins of other keys are not touched. Pins survive restarts. A pinned archive is evicted last, and is
// evicted nevertheless where nothing else is left, so that the pins of one deployment do not refuse the loads of another:
// it can be loaded again by its digest, and a snapshot of the applied objects covers drift until then.
func (l *Loader) Keep(key string, artifacts ...Kept) error {
	if err := volume.CheckUID(key); err != nil {
		return fmt.Errorf("keeping artifacts for %.80q: %w", key, err)
	}
	pinned := make([]string, 0, len(artifacts))
	for _, kept := range artifacts {
		if err := kept.Owner.Validate(); err != nil {
			return err
		}
		digits, err := artifact.ParseDigest(kept.Digest)
		if err != nil {
			return fmt.Errorf("keeping artifacts of %s: %w", kept.Owner, err)
		}
		pinned = append(pinned, cache.Key(kept.Owner, digits))
	}
	if err := l.cache.Pin(key, pinned); err != nil {
		return fmt.Errorf("keeping artifacts for %s: %w", key, err)
	}
	return nil
}

// Forget lifts the pins of a key, if it has any: its deployment is gone.
func (l *Loader) Forget(key string) error {
	if err := volume.CheckUID(key); err != nil {
		return fmt.Errorf("forgetting the artifacts of %.80q: %w", key, err)
	}
	if err := l.cache.Pin(key, nil); err != nil {
		return fmt.Errorf("forgetting the artifacts of %s: %w", key, err)
	}
	return nil
}

// KeepOnly removes the pins of all keys that are not listed: of deployments that were deleted while no controller ran. It is
// for the start, before Keep is called for a key that the list may lack. It removes what it can before it returns an error.
func (l *Loader) KeepOnly(keys map[string]bool) error {
	var failed []error
	for _, key := range l.cache.Pinning() {
		if !keys[key] {
			failed = append(failed, l.cache.Pin(key, nil))
		}
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("lifting the pins of deployments that are gone: %w", err)
	}
	return nil
}
