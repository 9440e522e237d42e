// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// entryBytes is what one entry may add to an archive beside its content.
const entryBytes = 4 << 10

// receiveBufferBytes is how much of a body is read at once.
const receiveBufferBytes = 64 << 10

// mostArchiveBytes bounds an archive with content within the limits, also when it cannot be compressed.
func mostArchiveBytes(l fetch.Limits) int64 {
	return l.ExtractedBytes + int64(l.Entries+1)*entryBytes
}

// download fetches an archive into the cache. Nothing is kept but the advertised bytes.
func (l *Loader) download(ctx context.Context, want Wanted) error {
	response, err := l.request(ctx, want.url)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	if err := answerError(response); err != nil {
		return err
	}
	size := response.ContentLength
	if err := l.checkSize(size, want); err != nil {
		return err
	}
	return l.cache.Add(ctx, want.owner, want.digest, size, func(w io.Writer) error {
		return receive(ctx, w, response.Body, size, want.digest)
	})
}

// standbyAttempts is how often a request is made while servers that wait to lead answer.
const standbyAttempts = 6

// request asks until the server that leads answers.
func (l *Loader) request(ctx context.Context, url string) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		response, err := l.requestOnce(ctx, url)
		if err != nil || attempt == standbyAttempts || response.Header.Get(artifact.StandbyHeader) == "" {
			return response, err
		}
		response.Body.Close() //nolint:errcheck // nothing in it is of use
	}
}

func (l *Loader) requestOnce(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fetch.Errorf(fetch.Refused, "making a request: %w", err)
	}
	// The digest is that of the bytes as they are stored.
	request.Header.Set("Accept-Encoding", "identity")
	response, err := l.client.Do(request)
	if err != nil {
		return nil, transferError(ctx, err)
	}
	return response, nil
}

// answerError gives a reason to every answer but 200.
func answerError(response *http.Response) error {
	e := fetch.Errorf(fetch.Unreachable, "the artifact server answered %d %s",
		response.StatusCode, http.StatusText(response.StatusCode))
	switch response.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusNotFound, http.StatusGone:
		e = fetch.Errorf(fetch.NotFound, "the artifact server no longer has it: the source has to store it again")
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		e = fetch.Errorf(fetch.Refused, "the artifact server answered with a redirect, which is not followed")
	case http.StatusUnauthorized, http.StatusForbidden:
		e = fetch.Errorf(fetch.Unauthorized, "the artifact server answered %d %s: check --artifact-token-file here and --artifact-readers there",
			response.StatusCode, http.StatusText(response.StatusCode))
	case http.StatusTooManyRequests:
		e.Reason = fetch.RateLimited
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(min(seconds, 3600)) * time.Second
	}
	return e
}

// checkSize wants a length, the advertised one, within the limit, before any byte is read.
func (l *Loader) checkSize(size int64, want Wanted) error {
	switch most := mostArchiveBytes(l.limits); {
	case size < 0:
		return fetch.Errorf(fetch.Refused, "the artifact server did not say how long the archive is")
	case size > most:
		return fetch.Errorf(fetch.LimitExceeded, "the archive has %d bytes, the limit is %d", size, most)
	case want.size != nil && size != *want.size:
		return fetch.Errorf(fetch.DigestMismatch, "the artifact server offers %d bytes where %d are advertised", size, *want.size)
	}
	return nil
}

// receive copies a body of size bytes, which must have the wanted digest.
func receive(ctx context.Context, to io.Writer, from io.Reader, size int64, digest string) error {
	sum := sha256.New()
	// A body that ends before the length that was announced is an error of the client already.
	_, err := io.CopyBuffer(io.MultiWriter(to, sum), struct{ io.Reader }{io.LimitReader(from, size)}, make([]byte, receiveBufferBytes))
	if err != nil {
		return transferError(ctx, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != digest {
		return fetch.Errorf(fetch.DigestMismatch, "the artifact server sent bytes with digest %s%s where %s%s is advertised",
			artifact.DigestPrefix, got, artifact.DigestPrefix, digest)
	}
	return nil
}

// transferError gives a reason to a failed transfer. What the volume failed at, and cancellation, stay what they are.
func transferError(ctx context.Context, err error) error {
	var storage *volume.StorageError
	var timeout net.Error
	switch {
	case errors.As(err, &storage):
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Cause(ctx)
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return fetch.Errorf(fetch.Timeout, "the artifact server did not answer in time: %w", err)
	}
	return fetch.Errorf(fetch.Unreachable, "the artifact server cannot be reached: %w", err)
}
