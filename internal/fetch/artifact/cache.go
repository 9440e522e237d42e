// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// pinsName is the file in an owner's folder that lists what must not be evicted, one digest a line.
const pinsName = "pinned"

// cache keeps archives by owner and digest, up to a number of bytes. An owner finds only what was fetched for it, so that
// knowing a digest gives nobody the content of somebody else.
type cache struct {
	dir   string
	most  int64
	files FileSystem
	now   func() time.Time

	mu      sync.Mutex
	bytes   int64 // of all entries, and of what is being fetched
	entries map[string]cacheEntry
	pins    map[string][]string // by folder: digests, sorted
}

type cacheEntry struct {
	size int64
	used time.Time
}

// cacheKey is the path of an archive below the cache folder.
func cacheKey(o Owner, digest string) string { return o.file(digest) }

// load finds out what an earlier process left, and removes what it left unfinished.
func (c *cache) load() error {
	root, err := openRoot(c.dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	if err := removeTemporary(root, "."); err != nil {
		return err
	}
	owners, err := listOwners(root)
	if err != nil {
		return err
	}
	for _, o := range owners {
		if err := c.loadOwner(root, o); err != nil {
			return fmt.Errorf("reading the cache of %s: %w", o, err)
		}
	}
	if err := c.makeRoom(root, 0); err != nil && !errors.Is(err, errCacheFull) {
		return err
	}
	return nil
}

func (c *cache) loadOwner(root *os.Root, o Owner) error {
	if err := removeTemporary(root, o.folder()); err != nil {
		return err
	}
	entries, err := listFolder(root, o.folder())
	if err != nil {
		return storageError("listing a folder", err)
	}
	for _, entry := range entries {
		digest, ok := parseArchiveName(entry.Name())
		if !ok || !entry.Type().IsRegular() {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return storageError("listing a folder", err)
		}
		c.entries[cacheKey(o, digest)] = cacheEntry{size: info.Size(), used: info.ModTime()}
		c.bytes += info.Size()
	}
	return c.loadPins(root, o)
}

func (c *cache) loadPins(root *os.Root, o Owner) error {
	opened, _, err := openRegular(root, path.Join(o.folder(), pinsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return storageError("reading what is pinned", err)
	}
	defer opened.Close() //nolint:errcheck // only read from
	content, err := io.ReadAll(opened)
	if err != nil {
		return storageError("reading what is pinned", err)
	}
	for line := range strings.Lines(string(content)) {
		if digest := strings.TrimSuffix(line, "\n"); isHexDigest(digest) {
			c.pins[o.folder()] = append(c.pins[o.folder()], digest)
		}
	}
	return nil
}

// open opens a cached archive after it was read once more; false when there is none, or it was damaged and is gone now.
func (c *cache) open(o Owner, digest string) (*os.File, bool, error) {
	root, err := openRoot(c.dir)
	if err != nil {
		return nil, false, err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	key := cacheKey(o, digest)
	found, at, err := digestFile(root, key)
	if err != nil || found != digest {
		return nil, false, c.drop(root, key)
	}
	opened, info, err := openRegular(root, key)
	if err != nil || stampOf(info) != at {
		return nil, false, errors.Join(c.drop(root, key), closeAny(opened))
	}
	c.touch(root, key, at.size)
	return opened, true, nil
}

// closeAny closes a file that may be nil.
func closeAny(file *os.File) error {
	if file == nil {
		return nil
	}
	return file.Close()
}

// touch notes a use, for this process and the next one.
func (c *cache) touch(root *os.Root, key string, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	c.bytes += size - c.entries[key].size
	c.entries[key] = cacheEntry{size: size, used: now}
	root.Chtimes(key, now, now) //nolint:errcheck // only the order of eviction after a restart suffers
}

// drop removes an archive, whatever took its place included.
func (c *cache) drop(root *os.Root, key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.remove(root, key)
}

func (c *cache) remove(root *os.Root, key string) error {
	c.bytes -= c.entries[key].size
	delete(c.entries, key)
	err := root.RemoveAll(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return storageError("removing a cached artifact", err)
}

// add stores an archive of size bytes that fill writes; it is kept only when fill returns nil.
func (c *cache) add(o Owner, digest string, size int64, fill func(io.Writer) error) error {
	root, err := openRoot(c.dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // all that was written is synced by then
	if err := c.reserve(root, size); err != nil {
		return err
	}
	err = c.fill(root, o, digest, fill)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.bytes -= size
		return err
	}
	c.bytes -= c.entries[cacheKey(o, digest)].size
	c.entries[cacheKey(o, digest)] = cacheEntry{size: size, used: c.now()}
	return nil
}

func (c *cache) fill(root *os.Root, o Owner, digest string, fill func(io.Writer) error) error {
	if err := makeFolders(c.files, root, o.folder()); err != nil {
		return err
	}
	archive, err := newDraft(c.files, root, o.folder())
	if err != nil {
		return err
	}
	defer archive.discard()
	if err := fill(archive); err != nil {
		return err
	}
	return archive.publish(digest + archiveSuffix)
}

// reserve takes size bytes of the cache for an archive that will be added.
func (c *cache) reserve(root *os.Root, size int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.makeRoom(root, size); err != nil {
		return err
	}
	c.bytes += size
	return nil
}

// makeRoom evicts what was used least recently and is not pinned, until size more bytes fit. It evicts nothing where that
// would not be enough.
func (c *cache) makeRoom(root *os.Root, size int64) error {
	victims, reachable := c.victims()
	if c.bytes-reachable+size > c.most && size > 0 {
		return storageError("caching an artifact", errCacheFull)
	}
	for _, key := range victims {
		if c.bytes+size <= c.most {
			break
		}
		if err := c.remove(root, key); err != nil {
			return err
		}
	}
	return nil
}

// victims lists what may be evicted, least recently used first, and how many bytes that is.
func (c *cache) victims() (keys []string, size int64) {
	for _, key := range slices.Sorted(maps.Keys(c.entries)) {
		digest, _ := parseArchiveName(path.Base(key))
		if !slices.Contains(c.pins[path.Dir(key)], digest) {
			keys = append(keys, key)
			size += c.entries[key].size
		}
	}
	slices.SortStableFunc(keys, func(a, b string) int { return c.entries[a].used.Compare(c.entries[b].used) })
	return keys, size
}

// pin replaces what must not be evicted for an owner; it holds over restarts.
func (c *cache) pin(o Owner, digests []string) error {
	digests = slices.Compact(slices.Sorted(slices.Values(digests)))
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Equal(c.pins[o.folder()], digests) {
		return nil
	}
	if err := c.writePins(o, digests); err != nil {
		return err
	}
	c.pins[o.folder()] = digests
	if len(digests) == 0 {
		delete(c.pins, o.folder())
	}
	return nil
}

func (c *cache) writePins(o Owner, digests []string) error {
	root, err := openRoot(c.dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // all that was written is synced by then
	name := path.Join(o.folder(), pinsName)
	if len(digests) == 0 {
		return storageError("removing what is pinned", root.RemoveAll(name))
	}
	if err := makeFolders(c.files, root, o.folder()); err != nil {
		return err
	}
	var content bytes.Buffer
	for _, digest := range digests {
		content.WriteString(digest + "\n")
	}
	return writeDurably(c.files, root, name, content.Bytes())
}
