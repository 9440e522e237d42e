// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"sync"

	"github.com/satchel-dev/satchel/internal/catalog"
)

// mostDecoded bounds the packages in memory, by the bytes that they were decoded from.
const mostDecoded = 4 << 20

// decoded has the packages that were decoded last, by the digest of what they were decoded from. They are shared, and not changed.
type decoded struct {
	mu    sync.Mutex
	known map[string]*catalog.Package
	bytes int
}

// get returns nil for a package that is not there.
func (d *decoded) get(digest string) *catalog.Package {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[digest]
}

// put drops all others if there is no room.
func (d *decoded) put(digest string, p *catalog.Package, size int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil || d.bytes+size > mostDecoded {
		d.known, d.bytes = map[string]*catalog.Package{}, 0
	}
	d.known[digest] = p
	d.bytes += size
}
