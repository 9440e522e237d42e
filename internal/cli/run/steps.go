// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/upload"
	"github.com/satchel-dev/satchel/internal/cli/author"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/remove"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/ignore"
	"github.com/satchel-dev/satchel/internal/view"
)

// run is one run of a bundle.
type run struct {
	*kit.App
	*kit.Explorer

	options  runOptions
	snapshot *upload.Snapshot // nil for an image or a chart
	opened   *bundle.Bundle   // the folder; nil for an image or a chart
	wrote    bool             // there may be something to remove

	installed *unstructured.Unstructured // the BundleDeployment

	declared       *bundle.Declared           // the manifest of -f; nil without
	declaredSource *v1alpha1.BundleSourceSpec // its source; nil where a folder or an image takes its place
}

func (r *run) target() kit.Target { return kit.Target{Kind: kit.Deployments, Name: r.options.name} }

// close removes temporary files.
func (r *run) close() error {
	var err error
	if r.snapshot != nil {
		err = r.snapshot.Close()
	}
	if r.opened != nil {
		err = errors.Join(err, r.opened.Close())
	}
	return err
}

// all runs all steps.
func (r *run) all(ctx context.Context) error {
	if err := r.pack(ctx); err != nil {
		return err
	}
	d, err := r.deployment()
	if err != nil {
		return err
	}
	r.installed = d
	source, err := r.source()
	if err != nil {
		return err
	}
	account, err := r.accountObjects(ctx, d)
	if err != nil {
		return err
	}
	if r.options.dryRun {
		return printer.WriteManifests(r.Streams.Out, append(account, source, d))
	}
	for _, k := range []kit.Kind{kit.Deployments, kit.Sources} {
		if err := r.refuseOthers(ctx, k); err != nil {
			return err
		}
	}
	r.wrote = true
	if err := r.makeAccount(ctx, account); err != nil {
		return err
	}
	if err := r.apply(ctx, source); err != nil {
		return err
	}
	if err := r.bring(ctx); err != nil {
		return err
	}
	if err := r.awaitSource(ctx); err != nil {
		return err
	}
	if err := r.apply(ctx, d); err != nil || !r.options.wait {
		return err
	}
	return r.awaitReady(ctx)
}

// pack takes a snapshot of the folder. An image or a chart is left to the source controller.
func (r *run) pack(ctx context.Context) error {
	if err := r.options.CheckRepository(); err != nil || r.options.HelmRepository != "" {
		return err
	}
	what := r.options.what
	if r.declaredSource != nil {
		return nil
	}
	if info, err := os.Stat(what); err != nil || !info.IsDir() {
		if err == nil || what == "" || kit.LooksLikePath(what) {
			_, err := bundle.OpenBundle(ctx, r.App, what, r.options.OpenOptions) // which says what is wrong with it
			return err
		}
		return nil
	}
	b, err := bundle.OpenFolderBundle(what)
	if err != nil {
		return err
	}
	r.opened = b
	files, err := withoutIgnored(b.Files)
	if err != nil {
		return err
	}
	if r.snapshot, err = upload.Take(ctx, files, fetch.DefaultLimits()); err != nil {
		return fmt.Errorf("packing %s: %w", b.From, err)
	}
	r.Note(b.Notes())
	if r.snapshot.Files == 0 {
		return fmt.Errorf("%s has no files, or %s leaves them all out: there is nothing to run", b.From, author.IgnoreFile)
	}
	fmt.Fprintf(r.Streams.ErrOut, "Packed %s: %s, %s, %s.\n", view.Inline(b.From), view.Plural(r.snapshot.Files, "file"), printer.BytesText(r.snapshot.Bytes), r.snapshot.Digest)
	return nil
}

// withoutIgnored leaves out the files of the folder's .satchelignore.
func withoutIgnored(files fs.FS) (fs.FS, error) {
	list, err := fs.ReadFile(files, author.IgnoreFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading %s: %w", author.IgnoreFile, kit.WithoutPath(err))
	}
	left, err := ignore.FS(files, string(list)+"\n/"+author.IgnoreFile+"\n")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", author.IgnoreFile, err)
	}
	return left, nil
}

// refuseOthers refuses a name that is taken by an object that run did not create.
func (r *run) refuseOthers(ctx context.Context, k kit.Kind) error {
	found := k.Empty()
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.options.name}, found)
	switch {
	case kit.IsObjectNotFound(err):
		return nil
	case err != nil:
		return &kit.AccessError{Verb: "get", Resource: k.Resource, Namespace: r.Namespace, Err: err}
	case found.GetLabels()[remove.RunLabel] != r.options.name:
		return fmt.Errorf("there is a %s %s/%s that run did not create: choose another name, or delete that first", k.Name, r.Namespace, r.options.name)
	case !found.GetDeletionTimestamp().IsZero():
		return fmt.Errorf("the %s %s/%s of an earlier run is being deleted: wait for it with the command delete, and run this again", k.Name, r.Namespace, r.options.name)
	}
	return nil
}

// awaitSource waits until the source has fetched its content. It ends early, with the message of the source, for a reason that
// needs user action.
func (r *run) awaitSource(ctx context.Context) error {
	t := kit.Target{Kind: kit.Sources, Name: r.options.name}
	return r.WaitFor(ctx, t, r.options.timeout, func() (kit.WaitState, error) {
		found := new(v1alpha1.BundleSource)
		if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: t.Name}, found); err != nil {
			return kit.WaitState{}, &kit.AccessError{Verb: "get", Resource: t.Kind.Resource, Namespace: r.Namespace, Err: err}
		}
		state := kit.ReadinessOf(found, nil, "", false)
		if s := view.Summarize(found); !state.Done && !s.Unseen && isFinal[s.Reason] {
			return kit.WaitState{Never: true, Text: view.OneLine(s.Text(), 0) + hintText(s.Reason)}, nil
		}
		return state, nil
	})
}

// isFinal are the reasons of a source that need user action.
var isFinal = map[string]bool{
	v1alpha1.ReasonNotFound: true, v1alpha1.ReasonUnauthorized: true, v1alpha1.ReasonVerificationFailed: true,
	v1alpha1.ReasonQuotaExceeded: true, v1alpha1.ReasonStorageFailed: true,
}

// awaitReady waits until the deployment has applied the current revision of the source.
func (r *run) awaitReady(ctx context.Context) error {
	t, last := r.target(), ""
	err := r.WaitFor(ctx, t, r.options.timeout, func() (kit.WaitState, error) {
		found, err := r.Cluster.Get(ctx, t)
		if err != nil {
			return kit.WaitState{}, err
		}
		source, err := r.SourceOf(ctx, found)
		if err != nil {
			return kit.WaitState{}, err
		}
		last = view.Summarize(found).Reason
		return kit.ReadinessOf(found, source, "", false), nil
	})
	if errors.Is(err, kit.ErrNo) {
		fmt.Fprintf(r.Streams.Out, "%s\n", strings.TrimPrefix(hintText(last)+"\nSee more with: "+r.Name+" status "+r.options.name+" -n "+r.Namespace, "\n"))
	}
	return err
}

// hintText is what to do about a reason, on the next line.
func hintText(reason string) string {
	if hint := view.HintFor(reason); hint != "" {
		return "\nWhat to do: " + hint
	}
	return ""
}

// accountName is the ServiceAccount that installs.
func (r *run) accountName(fromSpec string) string {
	return cmp.Or(r.options.account, fromSpec, "installer")
}
