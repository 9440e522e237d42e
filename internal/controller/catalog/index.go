// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/artifact/catalogs"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/catalog/index"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/packed"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/worker/indexing"
)

// index has the fetched catalog indexed in a worker process, and returns what is to be published. The caller discards it, also
// with an error.
func (r *Reconciler) index(ctx context.Context, s *state, tree *fetch.Tree) (draft *catalogs.Draft, err error) {
	if _, err := fs.Stat(tree.FS(), s.root()); err != nil {
		return nil, fetch.Errorf(fetch.InvalidContent, "the content has no folder or file %s for the catalog: set spec.path", fetch.Quote(s.root()))
	}
	write, read, err := packed.Temporary(r.Scratch, "catalog-")
	if err != nil {
		return nil, &volume.StorageError{Op: "creating a temporary file", Err: err}
	}
	defer func() { err = errors.Join(err, read.Close()) }()
	limits := tree.Limits()
	files, err := packed.Pack(ctx, tree.FS(), write, packed.Limits{Bytes: limits.ExtractedBytes, FileBytes: limits.FileBytes, Entries: limits.Entries})
	if err = errors.Join(err, write.Close()); err != nil {
		return nil, volume.WrapError("packing a catalog", err)
	}
	input := indexing.Catalog{File: read, Files: files, Root: s.root(), Limits: r.Limits}
	x, err := indexing.Build(ctx, r.Workers, s.object.Namespace, input, func() (indexing.Output, error) {
		if draft != nil {
			draft.Discard() // of an attempt that did not end
		}
		if draft, err = r.Store.NewDraft(); err != nil {
			return indexing.Output{}, err
		}
		return indexing.Output{All: draft.File(index.AllFile), Lean: draft.File(index.LeanFile)}, nil
	})
	if err != nil {
		return draft, err
	}
	return draft, r.list(ctx, s, x, draft)
}

// list has the list of packages written, and writes the index.
func (r *Reconciler) list(ctx context.Context, s *state, x *index.Index, draft *catalogs.Draft) error {
	lean, err := draft.OpenLean()
	if err != nil {
		return err
	}
	defer lean.Close() //nolint:errcheck // only read from
	x, err = indexing.Summarize(ctx, r.Workers, s.object.Namespace, x, lean, func() (io.Writer, error) {
		return draft.File(index.ListFile), draft.File(index.ListFile).Restart()
	})
	if err != nil {
		return err
	}
	if all := draft.File(index.AllFile).Size(); all != x.AllBytes || draft.File(index.LeanFile).Size() != x.LeanBytes {
		return fmt.Errorf("a worker process wrote %d bytes of a catalog where its index has %d", all, x.AllBytes)
	}
	encoded, err := x.Encode()
	if err == nil {
		_, err = draft.File(index.IndexFile).Write(encoded)
	}
	return err
}

// publish makes the artifact server serve what was indexed.
func (r *Reconciler) publish(s *state, draft *catalogs.Draft, resolved fetch.Resolved) error {
	signature, err := keptSignature(resolved)
	if err == nil {
		_, err = r.Store.Publish(s.key, draft, signature)
	}
	if err != nil {
		return err
	}
	if s.served, err = r.Store.Contents(s.key); err != nil {
		return err
	}
	s.resolved, s.untrusted = &resolved, nil
	return nil
}

// refusals remember versions that were refused for good, so that they are not downloaded at each interval.
type refusals struct {
	mu   sync.Mutex
	kept map[types.NamespacedName]refusal
}

// refusal is one such version.
type refusal struct {
	digest, source, trust string
	err                   error
}

// known returns why the resolved version was refused; nil if it was not.
func (r *refusals) known(s *state) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept, found := r.kept[s.key]
	if !found || kept.digest != s.part.Resolved.Digest || kept.trust != s.trust || kept.source != effective.CatalogDigest(&s.object.Spec) {
		return nil
	}
	return kept.err
}

// note remembers how fetching the resolved version ended.
func (r *refusals) note(s *state, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kept, s.key)
	var typed *fetch.Error
	if !errors.As(err, &typed) || !typed.Permanent() || s.part.Resolved.Digest == "" {
		return
	}
	if r.kept == nil {
		r.kept = map[types.NamespacedName]refusal{}
	}
	r.kept[s.key] = refusal{digest: s.part.Resolved.Digest, source: effective.CatalogDigest(&s.object.Spec), trust: s.trust, err: err}
}

// forget forgets a catalog.
func (r *refusals) forget(catalog types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kept, catalog)
}
