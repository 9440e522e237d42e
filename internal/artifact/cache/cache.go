// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/fetch/packed"
)

// Cache keeps archives by owner and digest, up to a number of bytes. An owner finds only what was fetched for it, so that
// knowing a digest gives no access to the content of another owner. Where room is needed, the least recently used archive
// is evicted, unpinned ones first, then pinned ones: a cache full of pins refuses no load. Only an archive
// that is larger than the cache is refused; where nothing is left to evict because all of it is being fetched or read by
// others, a load waits for them.
type Cache struct {
	dir   string
	most  int64
	files volume.FileSystem
	now   func() time.Time

	mu       sync.Mutex
	entries  entries
	incoming int64               // bytes of what is being fetched
	pins     map[string][]string // by key: cache keys of archives, sorted
	pinning  map[string]int      // by the cache key of an archive: how many keys pin it
	held     map[string]bool     // cache keys that a load is busy with
	freed    chan struct{}       // closed, and replaced, whenever what is held or fetched becomes less
}

// Options say where a cache keeps its files.
type Options struct {
	// dir is the cache folder; it is created when missing. One process uses it at a time.
	Dir string
	// most bounds the archives in it, in bytes; 0 means 1 GiB.
	Bytes int64
	// files is the file system; nil means the real one.
	FS volume.FileSystem
	// now is the clock.
	Now func() time.Time
}

const defaultCacheBytes = 1 << 30

// Open finds out what an earlier process left in a folder, and removes what it left unfinished.
func Open(o Options) (*Cache, error) {
	c := &Cache{
		dir: o.Dir, most: o.Bytes, files: o.FS, now: o.Now,
		entries: entries{byKey: map[string]*entry{}}, pins: map[string][]string{}, pinning: map[string]int{},
		held: map[string]bool{}, freed: make(chan struct{}),
	}
	if c.most <= 0 {
		c.most = defaultCacheBytes
	}
	if c.files == nil {
		c.files = volume.OSFileSystem{}
	}
	if err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

// Size is how many bytes the archives take, and those that are being fetched.
func (c *Cache) Size() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes()
}

// bytes is what the archives and those that are being fetched take.
func (c *Cache) bytes() int64 { return c.entries.bytes + c.incoming }

// Temporary opens an unnamed file on the volume of the cache, for writing and for reading.
func (c *Cache) Temporary() (write, read *os.File, err error) {
	return packed.Temporary(c.dir, volume.TemporaryPrefix)
}

// Key is the path of an archive below the cache folder.
func Key(o artifact.Owner, digest string) string { return o.File(digest) }

// load finds out what an earlier process left, and removes what it left unfinished.
func (c *Cache) load() error {
	root, err := volume.OpenFolder(c.dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	if err := volume.RemoveTemporary(root, "."); err != nil {
		return err
	}
	owners, err := artifact.ListOwners(root)
	if err != nil {
		return err
	}
	for _, o := range owners {
		if err := c.loadOwner(root, o); err != nil {
			return fmt.Errorf("reading the cache of %s: %w", o, err)
		}
	}
	if err := c.loadPins(root); err != nil {
		return err
	}
	return c.makeRoom(root, 0)
}

func (c *Cache) loadOwner(root *os.Root, o artifact.Owner) error {
	if err := volume.RemoveTemporary(root, o.Folder()); err != nil {
		return err
	}
	entries, err := volume.ListFolder(root, o.Folder())
	if err != nil {
		return volume.WrapError("listing a folder", err)
	}
	for _, file := range entries {
		digest, ok := artifact.ParseArchiveName(file.Name())
		if !ok || !file.Type().IsRegular() {
			continue
		}
		info, err := file.Info()
		if err != nil {
			return volume.WrapError("listing a folder", err)
		}
		c.entries.set(Key(o, digest), info.Size(), info.ModTime(), unpinned)
	}
	return nil
}

// Open opens a cached archive after it was read once more; false when there is none, or it was damaged and is gone now.
func (c *Cache) Open(o artifact.Owner, digest string) (*os.File, bool, error) {
	root, err := volume.OpenFolder(c.dir)
	if err != nil {
		return nil, false, err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	key := Key(o, digest)
	found, at, err := volume.DigestFile(root, key)
	if err != nil || found != digest {
		return nil, false, c.drop(root, key)
	}
	opened, info, err := volume.OpenRegular(root, key)
	if err != nil || volume.StampOf(info) != at {
		return nil, false, errors.Join(c.drop(root, key), closeAny(opened))
	}
	c.touch(root, key, at.Size)
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
func (c *Cache) touch(root *os.Root, key string, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	c.entries.set(key, size, now, c.rankOf(key))
	root.Chtimes(key, now, now) //nolint:errcheck // only the order of eviction after a restart suffers
}

// drop removes an archive, whatever took its place included.
func (c *Cache) drop(root *os.Root, key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.remove(root, key)
}

func (c *Cache) remove(root *os.Root, key string) error {
	c.entries.remove(key)
	err := root.RemoveAll(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return volume.WrapError("removing a cached artifact", err)
}

// Add stores an archive of size bytes that fill writes; it is kept only when fill returns nil.
func (c *Cache) Add(ctx context.Context, o artifact.Owner, digest string, size int64, fill func(io.Writer) error) error {
	root, err := volume.OpenFolder(c.dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // all that was written is synced by then
	if err := c.reserve(ctx, root, size); err != nil {
		return err
	}
	err = c.fill(root, o, digest, fill)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.signal()
	c.incoming -= size
	if err != nil {
		return err
	}
	key := Key(o, digest)
	c.entries.set(key, size, c.now(), c.rankOf(key))
	return nil
}

// Hold keeps an archive from being evicted between its download and its use. A load holds one archive only, and waits
// for room only while the cache does not have that archive, so that those that wait do not wait for each other.
func (c *Cache) Hold(key string) (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[key] = true
	c.entries.setRank(key, held)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.held, key)
		c.entries.setRank(key, c.rankOf(key))
		c.signal()
	}
}

// signal wakes those that wait for room.
func (c *Cache) signal() {
	close(c.freed)
	c.freed = make(chan struct{})
}

func (c *Cache) fill(root *os.Root, o artifact.Owner, digest string, fill func(io.Writer) error) error {
	if err := volume.MakeFolders(c.files, root, o.Folder()); err != nil {
		return err
	}
	archive, err := volume.NewDraft(c.files, root, o.Folder())
	if err != nil {
		return err
	}
	defer archive.Discard()
	if err := fill(archive); err != nil {
		return err
	}
	return archive.Publish(digest + artifact.ArchiveSuffix)
}

// reserve takes size bytes of the cache for an archive that will be added, as soon as they can be had.
func (c *Cache) reserve(ctx context.Context, root *os.Root, size int64) error {
	if size > c.most {
		return volume.WrapError("caching an artifact", volume.ErrCacheSmall)
	}
	for {
		freed, err := c.tryReserve(root, size)
		if err != nil || freed == nil {
			return err
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tryReserve takes the bytes, or returns what will be closed when it is worth while to try again.
func (c *Cache) tryReserve(root *os.Root, size int64) (freed <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unreachable()+size > c.most {
		return c.freed, nil
	}
	if err := c.makeRoom(root, size); err != nil {
		return nil, err
	}
	c.incoming += size
	return nil, nil
}

// unreachable is how many bytes cannot be evicted: of what is being fetched, and of the few archives that loads are busy with.
func (c *Cache) unreachable() int64 {
	sum := c.incoming
	for key := range c.held {
		sum += c.entries.sizeOf(key)
	}
	return sum
}

// makeRoom evicts until size more bytes fit: unpinned archives before pinned ones, the least recently used ones first.
func (c *Cache) makeRoom(root *os.Root, size int64) error {
	for c.bytes()+size > c.most {
		key, found := c.entries.next()
		if !found {
			return nil
		}
		if err := c.remove(root, key); err != nil {
			return err
		}
	}
	return nil
}

// rankOf tells when an archive may be evicted.
func (c *Cache) rankOf(key string) rank {
	switch {
	case c.held[key]:
		return held
	case c.pinning[key] > 0:
		return pinned
	}
	return unpinned
}
