// SPDX-License-Identifier: Apache-2.0

package cli

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
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/ignore"
)

// run is one run of a bundle.
type run struct {
	*app
	*explorer

	options  runOptions
	snapshot *upload.Snapshot // nil for an image
	opened   *bundle          // the folder; nil for an image
	wrote    bool             // there may be something to remove

	installed *unstructured.Unstructured // the BundleDeployment
}

func (r *run) target() target { return target{kind: deployments, name: r.options.name} }

// close removes temporary files.
func (r *run) close() error {
	var err error
	if r.snapshot != nil {
		err = r.snapshot.Close()
	}
	if r.opened != nil {
		err = errors.Join(err, r.opened.close())
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
	account, err := r.accountObjects(ctx, d)
	if err != nil {
		return err
	}
	if r.options.dryRun {
		return writeManifests(r.streams.Out, append(account, r.source(), d))
	}
	for _, k := range []kind{deployments, sources} {
		if err := r.refuseOthers(ctx, k); err != nil {
			return err
		}
	}
	r.wrote = true
	if err := r.makeAccount(ctx, account); err != nil {
		return err
	}
	if err := r.apply(ctx, r.source()); err != nil {
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

// pack takes a snapshot of the folder. An image is left to the source controller.
func (r *run) pack(ctx context.Context) error {
	what := r.options.what
	if info, err := os.Stat(what); err != nil || !info.IsDir() {
		if err == nil || what == "" || looksLikePath(what) {
			_, err := r.openBundle(ctx, what, r.options.bundleOptions) // which says what is wrong with it
			return err
		}
		return nil
	}
	b, err := openFolderBundle(what)
	if err != nil {
		return err
	}
	r.opened = b
	files, err := withoutIgnored(b.files)
	if err != nil {
		return err
	}
	if r.snapshot, err = upload.Take(ctx, files, fetch.DefaultLimits()); err != nil {
		return fmt.Errorf("packing %s: %w", b.from, err)
	}
	r.note(b.notes())
	if r.snapshot.Files == 0 {
		return fmt.Errorf("%s has no files, or %s leaves them all out: there is nothing to run", b.from, ignoreFile)
	}
	fmt.Fprintf(r.streams.ErrOut, "Packed %s: %s, %s, %s.\n", inline(b.from), plural(r.snapshot.Files, "file"), bytesText(r.snapshot.Bytes), r.snapshot.Digest)
	return nil
}

// withoutIgnored leaves out the files of the folder's .satchelignore.
func withoutIgnored(files fs.FS) (fs.FS, error) {
	list, err := fs.ReadFile(files, ignoreFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading %s: %w", ignoreFile, withoutPath(err))
	}
	left, err := ignore.FS(files, string(list)+"\n/"+ignoreFile+"\n")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ignoreFile, err)
	}
	return left, nil
}

// refuseOthers refuses a name that is taken by an object that run did not create.
func (r *run) refuseOthers(ctx context.Context, k kind) error {
	found := k.empty()
	err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: r.options.name}, found)
	switch {
	case isObjectNotFound(err):
		return nil
	case err != nil:
		return &accessError{verb: "get", resource: k.resource, namespace: r.namespace, err: err}
	case found.GetLabels()[runLabel] != r.options.name:
		return fmt.Errorf("there is a %s %s/%s that run did not create: choose another name, or delete that first", k.name, r.namespace, r.options.name)
	case !found.GetDeletionTimestamp().IsZero():
		return fmt.Errorf("the %s %s/%s of an earlier run is being deleted: wait for it with the command cleanup, and run this again", k.name, r.namespace, r.options.name)
	}
	return nil
}

// awaitSource waits until the source has fetched its content. It ends early, with the message of the source, for a reason that
// needs user action.
func (r *run) awaitSource(ctx context.Context) error {
	t := target{kind: sources, name: r.options.name}
	return r.waitFor(ctx, t, r.options.timeout, func() (waitState, error) {
		found := new(v1alpha1.BundleSource)
		if err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: t.name}, found); err != nil {
			return waitState{}, &accessError{verb: "get", resource: t.kind.resource, namespace: r.namespace, err: err}
		}
		state := judgeReadiness(found, nil, "", false)
		if s := summarize(found); !state.done && !s.unseen && isFinal[s.reason] {
			return waitState{never: true, text: oneLine(s.text(), 0) + hintText(s.reason)}, nil
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
	err := r.waitFor(ctx, t, r.options.timeout, func() (waitState, error) {
		found, err := r.cluster.get(ctx, t)
		if err != nil {
			return waitState{}, err
		}
		source, err := r.sourceOf(ctx, found)
		if err != nil {
			return waitState{}, err
		}
		last = summarize(found).reason
		return judgeReadiness(found, source, "", false), nil
	})
	if errors.Is(err, errNo) {
		fmt.Fprintf(r.streams.Out, "%s\n", strings.TrimPrefix(hintText(last)+"\nSee more with: "+r.name+" status "+r.options.name+" -n "+r.namespace, "\n"))
	}
	return err
}

// hintText is what to do about a reason, on the next line.
func hintText(reason string) string {
	if hint := hintFor(reason); hint != "" {
		return "\nWhat to do: " + hint
	}
	return ""
}

// accountName is the ServiceAccount that installs.
func (r *run) accountName(fromSpec string) string {
	return cmp.Or(r.options.account, fromSpec, "installer")
}
