// SPDX-License-Identifier: Apache-2.0

package fetch

import "github.com/spf13/pflag"

// Limits bounds everything that comes from outside. Input at a limit is accepted, one more is refused.
type Limits struct {
	// DownloadBytes bounds the bytes that one source transfers, as they come over the wire.
	DownloadBytes int64
	// ExtractedBytes bounds the bytes that one source writes when unpacked.
	ExtractedBytes int64
	// StreamBytes bounds what is read of the archives of a source once decompressed, where parts of them are dropped; 0 for what
	// ExtractedBytes and Entries may take.
	StreamBytes int64
	// FileBytes bounds one file of a source.
	FileBytes int64
	// GitPackBytes bounds what one fetch from a Git server transfers.
	GitPackBytes int64
	// Entries bounds files, folders and links of one source, replaced and skipped ones included.
	Entries int
	// Depth bounds the parts of a path.
	Depth int
	// PathBytes bounds the length of a path.
	PathBytes int
	// Layers bounds the layers of an image.
	Layers int
	// Redirects bounds the redirects that one request follows.
	Redirects int
	// GitRefs bounds the references that a Git server advertises.
	GitRefs int
	// HelmIndexBytes bounds the index of a Helm repository, uncompressed.
	HelmIndexBytes int64
}

// DefaultLimits returns the limits that hold without flags.
func DefaultLimits() Limits {
	return Limits{
		DownloadBytes:  128 << 20,
		ExtractedBytes: 512 << 20,
		FileBytes:      64 << 20,
		GitPackBytes:   512 << 20,
		Entries:        20_000,
		Depth:          64,
		PathBytes:      1024,
		Layers:         128,
		Redirects:      5,
		GitRefs:        100_000,
		HelmIndexBytes: 64 << 20,
	}
}

// BindFlags adds a flag for each limit; the present values are the defaults.
func (l *Limits) BindFlags(fs *pflag.FlagSet) {
	l.BindTransferFlags(fs)
	l.BindContentFlags(fs)
}

// BindContentFlags adds the flags for what content may be, once unpacked: all that matters to who loads artifacts and
// talks to no upstream.
func (l *Limits) BindContentFlags(fs *pflag.FlagSet) {
	fs.Int64Var(&l.ExtractedBytes, "max-extracted-bytes", l.ExtractedBytes,
		"Most bytes that a bundle, all its sources together, may hold once unpacked.")
	fs.Int64Var(&l.FileBytes, "max-file-bytes", l.FileBytes,
		"Most bytes that one file may hold.")
	fs.IntVar(&l.Entries, "max-entries", l.Entries,
		"Most files, folders and links that a bundle, all its sources together, may hold; those that are left out or replaced count.")
	fs.IntVar(&l.Depth, "max-depth", l.Depth,
		"Most folders within folders.")
	fs.IntVar(&l.PathBytes, "max-path-bytes", l.PathBytes,
		"Longest path, in bytes.")
}

// BindTransferFlags adds the flags for what an upstream may send and ask.
func (l *Limits) BindTransferFlags(fs *pflag.FlagSet) {
	fs.Int64Var(&l.DownloadBytes, "max-download-bytes", l.DownloadBytes,
		"Most bytes that the images and archives of one BundleSource may transfer, all together.")
	fs.Int64Var(&l.GitPackBytes, "max-git-pack-bytes", l.GitPackBytes,
		"Most bytes that one Git repository may transfer, its submodules included.")
	fs.IntVar(&l.Layers, "max-layers", l.Layers,
		"Most layers that an image may have.")
	fs.IntVar(&l.Redirects, "max-redirects", l.Redirects,
		"Most redirects that one request follows.")
	fs.IntVar(&l.GitRefs, "max-git-refs", l.GitRefs,
		"Most branches, tags and other references that a Git server may advertise.")
	fs.Int64Var(&l.HelmIndexBytes, "max-helm-index-bytes", l.HelmIndexBytes,
		"Most bytes that the index of a Helm repository may have, uncompressed.")
}
