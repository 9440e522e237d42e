// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// pinsFolder holds a file a key, named like the key, that lists the archives it pins, one path a line. No owner can have
// a folder of that name.
const pinsFolder = ".pins"

// Kept is an artifact that a deployment runs or may return to.
type Kept struct {
	Owner  Owner
	Digest string
}

// Keep replaces the pins of a deployment; key is its UID. It pins the artifacts that it runs or may return to; none removes
// its pins, and the pins of other keys are not touched. Pins survive restarts. A pinned archive is evicted last, and is
// evicted nevertheless where nothing else is left, so that the pins of one deployment do not refuse the loads of another:
// it can be loaded again by its digest, and a snapshot of the applied objects covers drift until then.
func (l *Loader) Keep(key string, artifacts ...Kept) error {
	if err := checkUID(key); err != nil {
		return fmt.Errorf("keeping artifacts for %.80q: %w", key, err)
	}
	pinned := make([]string, 0, len(artifacts))
	for _, kept := range artifacts {
		if err := kept.Owner.Validate(); err != nil {
			return err
		}
		digits, err := parseDigest(kept.Digest)
		if err != nil {
			return fmt.Errorf("keeping artifacts of %s: %w", kept.Owner, err)
		}
		pinned = append(pinned, cacheKey(kept.Owner, digits))
	}
	if err := l.cache.pin(key, pinned); err != nil {
		return fmt.Errorf("keeping artifacts for %s: %w", key, err)
	}
	return nil
}

// Forget lifts the pins of a key, if it has any: its deployment is gone.
func (l *Loader) Forget(key string) error {
	if err := checkUID(key); err != nil {
		return fmt.Errorf("forgetting the artifacts of %.80q: %w", key, err)
	}
	if err := l.cache.pin(key, nil); err != nil {
		return fmt.Errorf("forgetting the artifacts of %s: %w", key, err)
	}
	return nil
}

// KeepOnly removes the pins of all keys that are not listed: of deployments that were deleted while no controller ran. It is
// for the start, before Keep is called for a key that the list may lack. It removes what it can before it returns an error.
func (l *Loader) KeepOnly(keys map[string]bool) error {
	var failed []error
	for _, key := range l.cache.pinning() {
		if !keys[key] {
			failed = append(failed, l.cache.pin(key, nil))
		}
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("lifting the pins of deployments that are gone: %w", err)
	}
	return nil
}

// checkUID refuses a key that cannot be the name of a file.
func checkUID(key string) error {
	if problems := validation.IsDNS1123Label(key); len(problems) > 0 {
		return fmt.Errorf("it is no UID: %s", problems[0])
	}
	return nil
}

// pinning lists the keys that pin something.
func (c *cache) pinning() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.pins))
}

// pinned is the set of the archives that any key pins.
func (c *cache) pinned() map[string]bool {
	all := map[string]bool{}
	for _, archives := range c.pins {
		for _, archive := range archives {
			all[archive] = true
		}
	}
	return all
}

// pin replaces the archives of one key; it holds over restarts.
func (c *cache) pin(key string, archives []string) error {
	archives = slices.Compact(slices.Sorted(slices.Values(archives)))
	c.mu.Lock()
	defer c.mu.Unlock()
	if present, known := c.pins[key]; slices.Equal(present, archives) && known == (len(archives) > 0) {
		return nil
	}
	if err := c.writePins(key, archives); err != nil {
		return err
	}
	c.pins[key] = archives
	if len(archives) == 0 {
		delete(c.pins, key)
	}
	return nil
}

func (c *cache) writePins(key string, archives []string) error {
	root, err := openRoot(c.dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // all that was written is synced by then
	name := path.Join(pinsFolder, key)
	if len(archives) == 0 {
		return storageError("removing what is pinned", root.RemoveAll(name))
	}
	if err := makeFolders(c.files, root, pinsFolder); err != nil {
		return err
	}
	return writeDurably(c.files, root, name, []byte(strings.Join(archives, "\n")+"\n"))
}

// loadPins reads what all keys pin. A file without a sound line stays known, so that KeepOnly finds it.
func (c *cache) loadPins(root *os.Root) error {
	entries, err := listFolder(root, pinsFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return storageError("listing what is pinned", err)
	}
	if err := removeTemporary(root, pinsFolder); err != nil {
		return err
	}
	for _, entry := range entries {
		if checkUID(entry.Name()) != nil {
			continue
		}
		if c.pins[entry.Name()], err = readPins(root, path.Join(pinsFolder, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func readPins(root *os.Root, name string) ([]string, error) {
	opened, _, err := openRegular(root, name)
	if err != nil {
		return nil, storageError("reading what is pinned", err)
	}
	defer opened.Close() //nolint:errcheck // only read from
	content, err := io.ReadAll(opened)
	if err != nil {
		return nil, storageError("reading what is pinned", err)
	}
	var archives []string
	for line := range strings.Lines(string(content)) {
		archive := strings.TrimSuffix(line, "\n")
		if isArchive(archive) {
			archives = append(archives, archive)
		}
	}
	return archives, nil
}
