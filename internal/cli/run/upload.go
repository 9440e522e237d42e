// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/upload"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/remove"
	"github.com/satchel-dev/satchel/internal/view"
)

const (
	// grantPatience is how long the API server may take until a new permission is effective.
	grantPatience = 10 * time.Second
	// mostConnections is how often an upload is restarted when its connection breaks.
	mostConnections = 3
	// tokenSeconds is the lifetime of the token, the shortest that the API server permits.
	tokenSeconds = 600
)

// bring uploads the folder, unless the source controller has stored it already.
func (r *run) bring(ctx context.Context) error {
	if r.snapshot == nil || r.published(ctx) {
		return nil
	}
	token, account, err := r.token(ctx)
	if err != nil {
		return err
	}
	way, err := r.reach(ctx)
	if err != nil {
		return err
	}
	defer way.close()
	c := upload.Client{BaseURL: way.url, Token: token, Transport: upload.NewTransport()}
	present, err := r.welcome(ctx, c, account)
	if err != nil || present {
		return r.uploading(err)
	}
	return r.uploading(r.put(ctx, c))
}

func (r *run) contentOf() upload.Target {
	return upload.Target{Namespace: r.Namespace, Name: r.options.name, Digest: r.snapshot.Digest}
}

// published tells whether the source publishes the folder as it is.
func (r *run) published(ctx context.Context) bool {
	found := new(v1alpha1.BundleSource)
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.options.name}, found)
	s := view.Summarize(found)
	return err == nil && s.IsReady() && s.Revision == r.snapshot.Digest
}

// token requests a token for uploads of the ServiceAccount that installs, with the user's permissions.
func (r *run) token(ctx context.Context) (token, account string, err error) {
	account, _, _ = unstructured.NestedString(r.installed.Object, "spec", "serviceAccountName")
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": map[string]any{"name": account},
		"spec": map[string]any{"audiences": []any{upload.Audience}, "expirationSeconds": int64(tokenSeconds)},
	}}
	answer, err := r.Bodies.Resource(remove.RunResources["ServiceAccount"]).Namespace(r.Namespace).Create(ctx, request, metav1.CreateOptions{}, "token")
	switch {
	case apierrors.IsNotFound(err):
		return "", "", fmt.Errorf("there is no ServiceAccount %s/%s to install the bundle: create it, name another with --service-account, or add --create-service-account", r.Namespace, account)
	case apierrors.IsForbidden(err):
		return "", "", fmt.Errorf("you may not request a token of the ServiceAccount %s/%s, which the upload needs: ask an administrator for permission to create serviceaccounts/token there (the cluster says: %w)",
			r.Namespace, account, err)
	case err != nil:
		return "", "", fmt.Errorf("requesting a token of the ServiceAccount %s/%s: %w", r.Namespace, account, err)
	}
	token, _, _ = unstructured.NestedString(answer.Object, "status", "token")
	return token, account, nil
}

// welcome asks whether the content is stored already. If the ServiceAccount may not upload, it is granted that permission for
// this source, if the user may grant it.
func (r *run) welcome(ctx context.Context, c upload.Client, account string) (present bool, err error) {
	present, err = c.Present(ctx, r.contentOf())
	if reasonOfUpload(err) != upload.Forbidden {
		return present, err
	}
	for _, o := range r.uploadPermission(account) {
		if failed := r.apply(ctx, r.labelled(o)); failed != nil {
			return false, fmt.Errorf("%w; and you may not grant it: %w", err, failed)
		}
	}
	patient, cancel := context.WithTimeout(ctx, grantPatience)
	defer cancel()
	for reasonOfUpload(err) == upload.Forbidden && patient.Err() == nil {
		select {
		case <-patient.Done():
		case <-time.After(kit.WaitPause):
			present, err = c.Present(ctx, r.contentOf())
		}
	}
	return present, err
}

// put sends the content; it retries when the connection breaks, or when the server is busy.
func (r *run) put(ctx context.Context, c upload.Client) error {
	for broke := 1; ; {
		err := r.putOnce(ctx, c)
		var said *upload.Error
		switch {
		case err == nil:
			fmt.Fprintf(r.Streams.ErrOut, "Uploaded %s.\n", printer.BytesText(r.snapshot.Bytes))
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &said) && said.RetryAfter == 0, broke == mostConnections && said == nil:
			return err
		case said == nil:
			broke++
			fmt.Fprintf(r.Streams.ErrOut, "Restarting the upload: %s.\n", view.Inline(err.Error()))
		default:
			fmt.Fprintf(r.Streams.ErrOut, "Waiting: %s.\n", view.Inline(said.Message))
		}
		pause := kit.WaitPause
		if said != nil {
			pause = said.RetryAfter
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

func (r *run) putOnce(ctx context.Context, c upload.Client) error {
	progress := printer.NewProgress(r.Streams.ErrOut, "Uploading, of "+printer.BytesText(r.snapshot.Bytes))
	defer progress.Done()
	return c.Put(ctx, r.contentOf(), func(w io.Writer) error {
		return r.snapshot.Write(ctx, countedWriter{w, progress})
	})
}

// countedWriter counts what is written.
type countedWriter struct {
	io.Writer

	to *printer.Progress
}

// Write implements io.Writer.
func (w countedWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.to.Bytes.Add(int64(n))
	return n, err
}

func reasonOfUpload(err error) upload.Reason {
	var said *upload.Error
	if errors.As(err, &said) {
		return said.Reason
	}
	return ""
}

// uploading adds the context to an error.
func (r *run) uploading(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("uploading %s: %w", r.options.what, err)
}
