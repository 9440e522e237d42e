// SPDX-License-Identifier: Apache-2.0

package fetch

import "io"

// headerBytes is what one entry of an archive may cost beside its content: header, padding, long name.
const headerBytes = 4 << 10

// budget is what a tree may still take in. Nothing is ever refunded: removing a file does not make room.
type budget struct {
	entries   int
	extracted int64
	download  int64
	stream    int64 // unpacked archive bytes, headers included
}

func newBudget(l Limits) budget {
	return budget{
		entries:   l.Entries,
		extracted: l.ExtractedBytes,
		download:  l.DownloadBytes,
		stream:    streamBytes(l),
	}
}

// streamBytes bounds the archives of a source once decompressed: what its files and their headers may take.
func streamBytes(l Limits) int64 {
	return max(l.StreamBytes, l.ExtractedBytes+int64(l.Entries+1)*headerBytes)
}

// entry takes one entry from the budget.
func (b *budget) entry(l Limits) error {
	if b.entries == 0 {
		return Errorf(LimitExceeded, "the source has more than %d files, folders and links", l.Entries)
	}
	b.entries--
	return nil
}

// meter fails the read that goes beyond what is left.
type meter struct {
	reader io.Reader
	left   *int64
	limit  int64
	what   string
}

func (m *meter) Read(p []byte) (int, error) {
	if int64(len(p)) > *m.left+1 {
		p = p[:*m.left+1]
	}
	n, err := m.reader.Read(p)
	if int64(n) > *m.left {
		*m.left = 0
		return 0, Errorf(LimitExceeded, "the %s has more than %d bytes", m.what, m.limit)
	}
	*m.left -= int64(n)
	return n, err
}
