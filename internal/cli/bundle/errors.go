// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// DownloadError is an image that could not be fetched.
type DownloadError struct {
	What string // as the user wrote it
	Ref  name.Reference
	Err  error
}

// Error says how the name was read, and why the image cannot be fetched.
func (e *DownloadError) Error() string {
	text := fmt.Sprintf("the image %s cannot be fetched: %s", e.Ref.Name(), e.cause())
	if !kit.LooksLikeImage(e.What) {
		text = fmt.Sprintf("there is no folder %s, and %s", e.What, text)
	}
	return text
}

// cause is the error without what the message says already.
func (e *DownloadError) cause() string {
	var asked *url.Error
	var noTLS tls.RecordHeaderError
	switch {
	case errors.As(e.Err, &asked) && errors.As(e.Err, &noTLS):
		return asked.Err.Error() + "; add --insecure if that is a registry without TLS"
	case errors.As(e.Err, &asked) && errors.Is(e.Err, syscall.ECONNREFUSED):
		return asked.Err.Error() // which says what to do
	case errors.As(e.Err, &asked) && kit.IsUnreachable(e.Err):
		return asked.Err.Error() + "; check the name of the registry and your network"
	}
	text := strings.TrimPrefix(e.Err.Error(), "image "+e.Ref.String()+": ")
	return strings.TrimPrefix(text, fmt.Sprintf("image %q: ", e.Ref.String()))
}

// Unwrap returns the cause.
func (e *DownloadError) Unwrap() error { return e.Err }

// FetchError is a source that could not be fetched.
type FetchError struct {
	What string // in words
	Err  error
}

// Error names the source and the cause.
func (e *FetchError) Error() string { return fmt.Sprintf("fetching %s: %v", e.What, e.Err) }

// Unwrap returns the cause.
func (e *FetchError) Unwrap() error { return e.Err }

// ArtifactError is an artifact server that does not answer.
type ArtifactError struct{ Err error }

// Error says how to find out why.
func (e *ArtifactError) Error() string {
	return e.Err.Error() + "; the command check says whether the source controller runs and answers"
}

// Unwrap returns the cause.
func (e *ArtifactError) Unwrap() error { return e.Err }

// NotAboutCluster tells that the message is complete.
func (*ArtifactError) NotAboutCluster() {}

// NotAboutCluster tells that the message is complete.
func (*DownloadError) NotAboutCluster() {}

// NotAboutCluster tells that the message is complete.
func (*FetchError) NotAboutCluster() {}
