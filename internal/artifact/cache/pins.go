// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/format"
)

// pinsFolder holds a file a key, named like the key, that lists the archives it pins, one path a line. No owner can have
// a folder of that name.
const pinsFolder = ".pins"

// Pinning lists the keys that pin something.
func (c *Cache) Pinning() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.pins))
}

// Pin replaces the archives of one key; it holds over restarts.
func (c *Cache) Pin(key string, archives []string) error {
	archives = slices.Compact(slices.Sorted(slices.Values(archives)))
	c.mu.Lock()
	defer c.mu.Unlock()
	if present, known := c.pins[key]; slices.Equal(present, archives) && known == (len(archives) > 0) {
		return nil
	}
	if err := c.writePins(key, archives); err != nil {
		return err
	}
	c.setPins(key, archives)
	if len(archives) == 0 {
		delete(c.pins, key)
	}
	return nil
}

// setPins replaces what a key pins, in memory.
func (c *Cache) setPins(key string, archives []string) {
	before := c.pins[key]
	c.pins[key] = archives
	for _, archive := range archives {
		c.pinning[archive]++
	}
	for _, archive := range before {
		if c.pinning[archive]--; c.pinning[archive] == 0 {
			delete(c.pinning, archive)
		}
	}
	for _, archive := range slices.Concat(before, archives) {
		c.entries.setRank(archive, c.rankOf(archive))
	}
}

func (c *Cache) writePins(key string, archives []string) error {
	root, err := volume.OpenFolder(c.dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // all that was written is synced by then
	name := path.Join(pinsFolder, key)
	if len(archives) == 0 {
		return volume.WrapError("removing what is pinned", root.RemoveAll(name))
	}
	if err := volume.MakeFolders(c.files, root, pinsFolder); err != nil {
		return err
	}
	return volume.WriteDurably(c.files, root, name, format.Pins.Prepend([]byte(strings.Join(archives, "\n")+"\n")))
}

// loadPins reads what all keys pin. A file without a sound line stays known, so that KeepOnly finds it.
func (c *Cache) loadPins(root *os.Root) error {
	entries, err := volume.ListFolder(root, pinsFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return volume.WrapError("listing what is pinned", err)
	}
	if err := volume.RemoveTemporary(root, pinsFolder); err != nil {
		return err
	}
	for _, entry := range entries {
		if volume.CheckUID(entry.Name()) != nil {
			continue
		}
		archives, err := readPins(root, path.Join(pinsFolder, entry.Name()))
		if err != nil {
			return err
		}
		c.setPins(entry.Name(), archives)
	}
	return nil
}

func readPins(root *os.Root, name string) ([]string, error) {
	opened, _, err := volume.OpenRegular(root, name)
	if err != nil {
		return nil, volume.WrapError("reading what is pinned", err)
	}
	defer opened.Close() //nolint:errcheck // only read from
	content, err := io.ReadAll(opened)
	if err != nil {
		return nil, volume.WrapError("reading what is pinned", err)
	}
	if content, err = format.Pins.Cut(content); err != nil {
		return nil, nil //nolint:nilerr // the next reconcile of the deployment pins again
	}
	var archives []string
	for line := range strings.Lines(string(content)) {
		archive := strings.TrimSuffix(line, "\n")
		if artifact.IsArchive(archive) {
			archives = append(archives, archive)
		}
	}
	return archives, nil
}
